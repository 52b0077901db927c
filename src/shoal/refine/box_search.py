"""Box search: anonymity as facility location.

A class is seen as a *box*, one state an attribute, that costs its loss for every record in it and must hold enough of
them for the policy. A step proposes a box around a record, lets it win the records that now pay more, dissolves or
repairs the classes it took them from, sends homeless records to the classes where they cost least, and stays if the
loss falls, or by annealing if it rises. Moving a box moves whole groups of records at once, and surplus records of
rich classes help poor ones for nothing. For small k many steps shift a single record instead, and a short chain of others
that take each other's places.

Every class that a step touches satisfies the policy afterwards. The budget is a number of elementary operations, never a
clock: a seed gives the same partition on every machine. Large tables are searched region by region, on all cores, and in
rounds, so that the seams between regions move.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import ConfigError, InternalError, UnsupportedError
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.refine.box_tables import Encoded, by_class, encode, spread, take
from shoal.refine.regions import regions
from shoal.space import Space

Ints = NDArray[np.int64]
Effort = Literal["fast", "thorough"] | float

# Elementary operations: about this many a second on one core of an ordinary machine.
SECOND = 60_000_000
# Operations per record, and the seconds that ORDINARY records may take at most; larger tables get more in proportion.
EFFORTS = {"fast": (20_000, 1.8), "thorough": (200_000, 15.0)}
ORDINARY = 30_000
SLICES = 100
# A region has at most so many records, but room for at least so many classes of the smallest size: too small, and it is
# all seam.
REGION_RECORDS, REGION_CLASSES = 120_000, 1_500
ROUNDS = 8


def box_search(
    codes: NDArray[np.int32],
    space: Space,
    rules: Rules,
    partition: Partition,
    *,
    effort: Effort = "fast",
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Partition:
    """A partition with no more loss than `partition`, which must satisfy the rules; suppressed records stay out.

    `effort` is "fast", "thorough" or a number of nominal seconds; `progress` is called with the share that is done.
    """
    flat_rules = rules.flat()
    if flat_rules is None:
        raise UnsupportedError(
            "The box search needs a policy of which every model has a compiled form; turn refine off."
        )
    inside = np.flatnonzero(partition.labels >= 0)
    budget = _budget(effort, len(inside))
    if len(inside) < 2 * rules.k:
        return partition
    if rules.deficits(partition.labels, partition.classes).max() > 0:
        raise InternalError("the box search was given a partition that does not satisfy the policy")
    labels = partition.labels[inside].astype(np.int64)
    rows = np.ascontiguousarray(codes[inside], dtype=np.int32)
    if rules.union_closed:
        labels = _pooled(rows, space, labels)
    search = _Search(encode(rows, space, rules, inside), budget, seed, progress or (lambda share: None))
    found = search.run(labels)
    if found is None:
        return partition
    if rules.union_closed:
        found = _pooled(rows, space, found)
    result = Partition.compact(spread(found, inside, partition.n), notes=partition.notes)
    if rules.deficits(result.labels, result.classes).max() > 0:
        raise InternalError("the box search broke the policy")
    return result


@dataclass(eq=False)
class _Search:
    """One search: rounds of slices, region by region."""

    whole: Encoded
    budget: int
    seed: int
    progress: Callable[[float], None]
    done: float = 0.0
    lock: Lock = field(default_factory=Lock)
    stopped: Event = field(default_factory=Event)

    def run(self, labels: Ints) -> Ints | None:
        """Labels with less loss than these, or None."""
        n, k = len(labels), self.whole.rules.k
        count = max(1, min(-(-n // REGION_RECORDS), n // (k * REGION_CLASSES)))
        rounds = ROUNDS if count > 1 else 1
        random = np.random.default_rng([self.seed, n])
        strangers = _strangers(self.whole.codes, self.whole.space, self.seed)
        change = 0.0
        for number in range(rounds):
            parts = regions(self.whole.codes, labels, count, random) if count > 1 else [np.arange(n)]
            jobs = [
                (records, np.unique(labels[records], return_inverse=True)[1].ravel(), number, rounds, strangers, place)
                for place, records in enumerate(parts)
            ]
            with ThreadPoolExecutor(min(len(jobs), os.cpu_count() or 1)) as pool:
                try:
                    found = list(pool.map(lambda job: self.part(*job), jobs))
                except BaseException:
                    # Whoever interrupts should not have to wait for the others.
                    self.stopped.set()
                    raise
            classes = 0
            for records, (fresh, difference) in zip(parts, found, strict=True):
                dense = np.unique(fresh, return_inverse=True)[1].ravel()
                labels[records] = dense + classes
                classes += int(dense.max()) + 1
                change += difference
        return labels if change < -1e-9 else None

    def part(
        self, records: Ints, labels: Ints, number: int, rounds: int, strangers: float, place: int
    ) -> tuple[Ints, float]:
        """The slices of one round in one region: labels, and what the loss changed by."""
        from shoal.kernels.box_search import search

        rules, n = self.whole.rules, len(self.whole.codes)
        flat = rules.flat()
        assert flat is not None
        part = take(self.whole, records, labels)
        desk = part.store.desk
        desk.random = np.uint64(np.random.default_rng([self.seed, number, place]).integers(1, 2**63))
        before = total = best = part.total()
        kept = part.held()
        slices = SLICES // rounds
        budget = self.budget * len(records) // (n * rounds)
        for i in range(slices):
            if self.stopped.is_set():
                break
            cooled = (1 - (number + i / slices) / rounds) ** 2
            heat = _heat(total, int(desk.live), len(records) / rules.k, strangers) * cooled
            until = budget * (i + 1) // slices
            desk.gained = np.float64(0.0)
            search(self.whole.gauge, flat, part.table, part.store, heat, until)
            total += float(desk.gained)
            # Only the end has to be as good as can be; until then a round hands on the state it has cooled to.
            if total < best - 1e-9 or number < rounds - 1:
                best, kept = total, part.held()
            self.tell(len(records) / (n * rounds * slices))
        return part.labels(kept), best - before

    def tell(self, share: float) -> None:
        """Report progress, one thread at a time."""
        with self.lock:
            self.done += share
            self.progress(min(1.0, self.done))


def _budget(effort: Effort, n: int) -> int:
    """Elementary operations for an effort."""
    if isinstance(effort, str) and effort in EFFORTS:
        per_record, seconds = EFFORTS[effort]
        return int(min(per_record * n, seconds * SECOND * max(1.0, n / ORDINARY)))
    if isinstance(effort, (str, bool)) or not 0 <= effort < np.inf:
        raise ConfigError(f"refine = {effort!r} is not allowed; write fast, thorough or a number of seconds.")
    return int(effort * SECOND)


def _pooled(codes: NDArray[np.int32], space: Space, labels: Ints) -> Ints:
    """Classes with the same box made one: they are published alike, and one class shares its surplus."""
    dense = np.unique(labels, return_inverse=True)[1].ravel()
    boxes = space.states(codes, *by_class(dense))
    return np.asarray(np.unique(boxes, axis=0, return_inverse=True)[1].ravel()[dense], dtype=np.int64)


def _strangers(codes: NDArray[np.int32], space: Space, seed: int) -> float:
    """What a record loses on average in a class of two random records."""
    pairs = np.random.default_rng(seed).integers(0, len(codes), size=2 * 1000)
    return exact.mean(space.unit(space.states(codes, pairs, np.arange(0, len(pairs), 2))))


def _heat(total: float, classes: int, most: float, strangers: float) -> float:
    """The temperature of the beginning, between what a class costs now and what two strangers would.

    The exponents fit what worked best on Adult for k from 2 to 100; a factor of two either way hardly matters. A start
    with few classes says little about the classes to come, of which there can be at most `most`.
    """
    cost = max(0.0, total) / max(classes, 0.5 * most)
    return float(exact.power(strangers, 0.3) * exact.power(cost, 0.7))
