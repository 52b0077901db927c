"""Algorithms side by side on one table and policy: each result as soon as it is there, and what refused, with its reason.

>>> import polars as pl, shoal
>>> frame = pl.DataFrame({"age": [21, 22, 23, 40, 41, 42], "illness": ["flu", "cold"] * 3})
>>> found = shoal.compare(frame, {"k": 3}, quasi="age", sensitive="illness", algorithms=["mondrian", "datafly"])
>>> found.best.losses["classes"], [one.algorithm for one in found.results]
(2, ['datafly', 'mondrian'])
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Timer
from typing import Any

import numpy as np
import polars as pl

from shoal.algorithms import find, names
from shoal.errors import Cancelled, InfeasibleError, InternalError, ShoalError
from shoal.inputs import Roles, as_policy, encoded
from shoal.io.frames import from_polars
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.progress import Progress, Told
from shoal.release import Release
from shoal.road import anonymize
from shoal.shown import Shown
from shoal.space import Measure

LOSSES = ("ncp", "granularity", "il", "dm", "avg", "classes", "smallest_class", "suppressed")
SECONDS, LEAST = 50.0, 8.0
"""For all algorithms together, where nobody says how long each may take, and for each at least; what one does not need is there
for the others."""
FEW = 200
"""Records on which an algorithm is tried first, so that compiling its loops is not taken for its own time."""
QUICK_FIRST = (
    "mondrian",
    "datafly",
    "top_down",
    "three_layer",
    "greedy_pk",
    "k_member",
    "peel",
    "mdav",
    "p_mdav",
    "kpqr",
)
"""Those that seldom take long come first, so that the others know how much time is left."""


@dataclass(frozen=True)
class Outcome:
    """What one algorithm made of a table, or why it made nothing.

    - `algorithm`: its name; `seconds`: the time it took.
    - `losses`: what masking cost, by measure (docs/measures.md#loss); empty where it refused.
    - `risk`: the highest risk of being found, one over the smallest class; None where it refused.
    - `refused`: the sentence with which it did; None where it did not.

    >>> from shoal.comparison import Outcome
    >>> Outcome("incognito", 0.1, refused="Nine columns are too many.").to_dict()["refused"]
    'Nine columns are too many.'
    """

    algorithm: str
    seconds: float
    losses: Mapping[str, Any] = field(default_factory=dict)
    risk: float | None = None
    refused: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "algorithm": self.algorithm,
            "refused": self.refused,
            "seconds": self.seconds,
            "risk": self.risk,
            **self.losses,
        }


@dataclass(frozen=True)
class Comparison(Shown):
    """Algorithms side by side; `shoal.compare` makes it.

    - `objective`: the loss by which they are ranked.
    - `results`: the best first, those that refused last.

    >>> from shoal.comparison import Comparison, Outcome
    >>> Comparison("ncp", (Outcome("mondrian", 0.1, {"ncp": 0.2}, 0.5),)).frame["ncp"].to_list()
    [0.2]
    """

    objective: str
    results: tuple[Outcome, ...]
    backend: str = field(default="polars", repr=False, compare=False)

    @property
    def best(self) -> Outcome | None:
        """The result with the least loss; None when all refused."""
        return self.results[0] if self.results and self.results[0].refused is None else None

    @property
    def frame(self) -> Any:
        """One row an algorithm, in the frame library that came in."""
        rows = [one.to_dict() for one in self.results]
        return from_polars(pl.DataFrame(rows, infer_schema_length=None), self.backend)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"objective": self.objective, "results": [one.to_dict() for one in self.results]}


def compare(
    data: Any,
    policy: Any,
    *,
    schema: Any = None,
    quasi: str | Iterable[str] = (),
    sensitive: str | Iterable[str] = (),
    person: str | None = None,
    algorithms: Iterable[str] | None = None,
    limit: float | None = None,
    each: Callable[[Outcome], object] | None = None,
    progress: Told | None = None,
    **settings: Any,
) -> Comparison:
    """Run algorithms on one table and policy, and set their releases side by side.

    - `data`, `policy`, `schema`, `quasi`, `sensitive`, `person`: as for `anonymize`.
    - `algorithms`: their names; all of them by default.
    - `limit`: how many seconds each may take. By default all together have 50, and what one does not need is there for the
      others, at least 8 each.
    - `each`: called with every `Outcome` as soon as it is there; nobody by default.
    - `progress`: as for `anonymize`; nothing by default.
    - `settings`: what else `anonymize` takes: `objective`, `refine` (False by default here), `seed`, `suppress` …

    Returns the results, the best first.

    >>> import polars as pl, shoal
    >>> frame = pl.DataFrame({"age": [21, 22, 40, 41]})
    >>> [one.losses["classes"] for one in shoal.compare(frame, {"k": 2}, quasi="age", algorithms=["mondrian"]).results]
    [2]
    """
    table = encoded(data, Roles(schema, quasi, sensitive, person), policy=policy)
    wanted = as_policy(policy)
    chosen = list(algorithms) if algorithms is not None else _ordered(names())
    for name in chosen:
        find(name)
    told = Progress.of(progress)
    objective: Measure = settings.get("objective", "ncp")
    found: list[Outcome] = []
    deadline = time.monotonic() + SECONDS
    for i, name in enumerate(chosen):
        with told.stage(f"running {name}", 1 / len(chosen)) as part:
            _warm(table, wanted, name, part, settings)
            share = limit if limit is not None else max(LEAST, (deadline - time.monotonic()) / (len(chosen) - i))
            one, _ = attempt(table, wanted, name, part, limit=share, **{"refine": False, **settings})
        found.append(one)
        if each is not None:
            each(one)
    return Comparison(objective, tuple(ranked(found, objective)), table.backend)


def ranked(found: Sequence[Outcome], objective: str) -> list[Outcome]:
    """The best first, those that refused last."""
    return sorted(found, key=lambda one: (one.refused is not None, one.losses.get(objective, 0.0), one.algorithm))


def attempt(
    data: Microdata, policy: Policy, name: str, progress: Progress, *, limit: float | None = None, **settings: Any
) -> tuple[Outcome, Release | None]:
    """One algorithm's release, or the sentence with which it refused, within a time limit."""
    started = time.perf_counter()
    release = None
    try:
        with within(limit, progress) as own:
            release = anonymize(data, policy, algorithm=name, progress=own, **settings)
    except Cancelled:
        progress.check()  # whoever waits does not want it any more
        refused = f"It was stopped after {limit:.0f} s; give it more time, or a sample."
    except (InternalError, InfeasibleError):
        raise  # a mistake of ours, or a policy that nobody can satisfy
    except ShoalError as problem:
        refused = str(problem)
    seconds = time.perf_counter() - started
    if release is None:
        return Outcome(name, seconds, refused=refused), None
    losses = release.measures.to_dict()
    return Outcome(name, seconds, {one: losses[one] for one in LOSSES}, 1 / release.evidence.smallest), release


def _warm(data: Microdata, policy: Policy, name: str, progress: Progress, settings: Mapping[str, Any]) -> None:
    """Compile what the algorithm needs, on a few records; whether they satisfy anything is not asked."""
    few = data.take(np.arange(0, data.n, max(1, data.n // FEW)))
    progress.check()
    if data.n > 2 * FEW:
        with suppress(ShoalError):
            attempt(few, policy, name, Progress(), **{"refine": False, **settings})
    progress.check()


@contextmanager
def within(limit: float | None, progress: Progress) -> Iterator[Progress]:
    """A progress of its own that tells another one, and is cancelled when its time is over."""
    own = Progress(lambda moment: progress(moment.share))
    if limit is None:
        yield own
        return
    timer = Timer(limit, own.cancel)
    timer.daemon = True
    timer.start()
    try:
        yield own
    finally:
        timer.cancel()


def _ordered(there: Sequence[str]) -> list[str]:
    return sorted(there, key=lambda name: (QUICK_FIRST.index(name) if name in QUICK_FIRST else len(QUICK_FIRST), name))
