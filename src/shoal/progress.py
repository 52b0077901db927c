"""Long work and whoever waits for it: named stages, a share that never falls, the time left, and cancelling.

>>> from shoal.progress import Progress
>>> progress = Progress(lambda moment: print(f"{moment.stage}: {moment.share:.0%}"), every=0)
>>> with progress.stage("grouping records", 0.8) as part:
...     for done in range(1, 3):
...         part(done / 2)
grouping records: 0%
grouping records: 40%
grouping records: 80%
>>> with progress.stage("verifying") as part:
...     pass
verifying: 80%
verifying: 100%

Whoever works is given a `Progress`, calls it with the share that is done and, where there is no share to tell, calls `check`.
Both raise `Cancelled` once somebody has called `cancel`, from whatever thread. They cost about a microsecond: call them
several times a second, and never in between what must not be torn apart. A compiled loop that may take longer works in
slices: it returns when it has done a certain amount of work (never after a certain time: the same work is cut at the same
places on every machine), and is called again to go on where it was.

Functions for users take `progress: Told | None` and begin with `Progress.of(progress)`, so that a plain
function of the share will do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import NamedTuple, TypeVar

from shoal.errors import Cancelled, ConfigError, shown

Told = Callable[[float], None]
Job = TypeVar("Job")
Result = TypeVar("Result")

# Elementary steps of a compiled loop between two checks: about a twentieth of a second.
SLICE = 5_000_000
# Seconds between two tellings, and how much must have been seen before the time left is worth telling.
EVERY = 0.1
SEEN_SECONDS, SEEN_SHARE = 1.0, 0.01
NEARLY = 1.0 - 1e-9
"""A share that is the whole: sums of many small parts end a little below it."""


class Moment(NamedTuple):
    """How far the work is: what is being done, the share of the whole, seconds so far, seconds left (None: too early to say)."""

    stage: str
    share: float
    elapsed: float
    left: float | None


class Progress:
    """The way to say how far the work is, and to hear that it is not wanted any more.

    - `listener`: called with a `Moment` (stage, share, seconds so far, seconds left), in the thread that works; nobody
      by default.
    - `every`: how many seconds lie between two calls at least; 0.1 by default.
    - `clock`: where the time comes from.

    >>> import shoal
    >>> progress = shoal.Progress.of(lambda share: print(f"{share:.0%}"))
    >>> with progress.stage("counting", weight=0.5) as part:
    ...     sum(part.each([1, 2, 3])), len(list(part.slices(1_000, cost=1)))
    0%
    (6, 1)
    >>> progress.seal()
    >>> progress.cancel()
    False
    >>> progress.check()
    """

    def __init__(
        self,
        listener: Callable[[Moment], object] | None = None,
        *,
        every: float = EVERY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Tell `listener`, if there is one, at most every so many seconds, in the thread that works."""
        self._whole = _Whole(listener, every, clock)
        self._parent: Progress | None = None
        self._name, self._weight, self._share, self._given_up = "", 1.0, 0.0, False

    @classmethod
    def of(cls, told: Told | None) -> Progress:
        """What a user handed over (`told`): a Progress, a plain function of the share, or nothing. Returns a Progress."""
        if isinstance(told, Progress):
            return told
        if told is None:
            return cls()
        if not callable(told):
            raise ConfigError(
                f"progress = {shown(told)} is not allowed; it must be a function of the share, or a Progress."
            )
        return cls(lambda moment: told(moment.share))

    def __call__(self, share: float) -> None:
        """So much of this stage is done; less than before counts as before. Raises `Cancelled`."""
        self.check()
        self._advance(share)

    def check(self) -> None:
        """Raise `Cancelled` if the work is not wanted any more."""
        whole = self._whole
        if whole.cancelled:
            raise Cancelled(self._name or whole.stage, whole.share)
        part: Progress | None = self
        while part is not None:
            if part._given_up:
                raise Cancelled(self._name or whole.stage, whole.share)
            part = part._parent

    def cancel(self) -> bool:
        """Stop the whole work at its next check. False: too late, it is being written and will be finished."""
        with self._whole.lock:
            self._whole.cancelled = not self._whole.sealed
            return self._whole.cancelled

    def seal(self) -> None:
        """From here on nothing can be cancelled: what follows is written whole. Raises `Cancelled` for the last time."""
        with self._whole.lock:
            self.check()
            self._whole.sealed = True

    @contextmanager
    def stage(self, name: str = "", weight: float | None = None) -> Iterator[Progress]:
        """A part of this work with a share of its own, which makes up `weight` of this one's (None: all that is left).

        The `name` says what is being done ("refining"); without one the part is not worth telling apart. Parts may be
        open at the same time, in other threads. Returns a context that gives the part.
        """
        self.check()
        part = self._part(name, weight)
        if name:
            self._whole.stage = name
            self._whole.tell(name, at_once=True)
        yield part
        part._advance(1.0)

    def each(self, items: Sequence[Job]) -> Iterator[Job]:
        """The `items` one after the other; tells the share in between. Returns an iterator."""
        for done, item in enumerate(items):
            self(done / len(items))
            yield item

    def slices(self, items: int, cost: int) -> Iterator[slice]:
        """Stretches of so many `items`, each of about SLICE steps where an item has the `cost` of so many; tells the
        share in between.

        Returns an iterator of slices.
        """
        step = max(1, SLICE // max(1, cost))
        for begin in range(0, items, step):
            self(begin / items)
            yield slice(begin, begin + step)

    def _part(self, name: str, weight: float | None) -> Progress:
        part = Progress.__new__(Progress)
        part._whole, part._parent, part._name = self._whole, self, name or self._name
        part._weight = max(0.0, 1.0 - self._share) if weight is None else weight
        part._share, part._given_up = 0.0, False
        return part

    def _advance(self, share: float) -> None:
        whole = self._whole
        with whole.lock:
            gain = share - self._share
            part: Progress | None = self
            while part is not None and gain > 0:
                after = part._share + gain
                after = 1.0 if after > NEARLY else after  # parts of parts may add up to a little less
                gain = (after - part._share) * part._weight
                part._share = after
                if part._parent is None:
                    whole.share = after
                part = part._parent
            whole.tell(self._name, at_once=False)


class _Whole:
    """What all stages of one work have in common."""

    def __init__(self, listener: Callable[[Moment], object] | None, every: float, clock: Callable[[], float]) -> None:
        self.listener, self.every, self.clock = listener, every, clock
        self.lock = RLock()
        self.share, self.stage, self.cancelled, self.sealed = 0.0, "", False, False
        self.began = clock()
        self.last, self.told = self.began, -1.0

    def tell(self, name: str, at_once: bool) -> None:
        """Tell the listener, unless it has just been told."""
        if self.listener is None:
            return
        with self.lock:
            now = self.clock()
            ended = self.share == 1.0 and self.told < 1.0
            if not at_once and not ended and (now - self.last < self.every or self.share == self.told):
                return
            self.last, self.told = now, self.share
            elapsed = now - self.began
            known = elapsed >= SEEN_SECONDS and self.share >= SEEN_SHARE
            left = elapsed * (1.0 - self.share) / self.share if known else None
            self.listener(Moment(name, self.share, elapsed, left))


def side_by_side(
    work: Callable[[Job, Progress], Result],
    jobs: Sequence[Job],
    progress: Progress,
    *,
    threads: int,
    weights: Sequence[float] | None = None,
) -> list[Result]:
    """`work(job, progress)` for every job on several threads; the results in the order of the jobs.

    The jobs share what is left of `progress` by their weights. When one of them fails, or the caller is interrupted, the others
    stop at their next check: no thread is left behind.
    """
    from concurrent.futures import ThreadPoolExecutor, as_completed

    if not jobs:
        return []
    shares = [1.0] * len(jobs) if weights is None else [float(weight) for weight in weights]
    group = progress._part("", None)
    whole = sum(shares) or 1.0

    def begun(job: Job, share: float) -> Result:
        with group.stage(weight=share / whole) as part:
            return work(job, part)

    with ThreadPoolExecutor(max(1, min(threads, len(jobs)))) as pool:
        try:
            futures = [pool.submit(begun, job, share) for job, share in zip(jobs, shares, strict=True)]
            for future in as_completed(futures):
                future.result()
        except BaseException:
            group._given_up = True
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    group._advance(1.0)
    return [future.result() for future in futures]
