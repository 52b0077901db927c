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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import InternalError, UnsupportedError
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import SLICE, Progress, Told, side_by_side
from shoal.refine.box_tables import Encoded, Part, by_class, encode, spread, take
from shoal.refine.effort import Effort, box_budget, remoteness
from shoal.refine.merging import Pool, merging_work, schedule, worth_merging
from shoal.refine.regions import regions
from shoal.space import Space

Ints = NDArray[np.int64]

# The temperature falls in so many steps, and after each the best state until now is kept.
SLICES = 100
# A region has at most so many records, but room for at least so many classes of the smallest size: too small, and it is
# all seam.
REGION_RECORDS, REGION_CLASSES = 120_000, 1_500
# The seams between regions move so often: as often as the steps of temperature can be shared out, with a dozen left to each.
ROUNDS = 8
# Losses are sums: what differs by less is the same, added in another order.
EPSILON = 1e-9
# The share of the whole time that near tuples take, as progress tells it; most searches need less for them.
NEAR_SHARE = 0.1
# Finding near tuples may take this share of the budget beside the search; what it takes beyond comes off the search, which
# keeps at least half.
BESIDE, KEPT = 0.1, 0.5
# Where steps see near tuples alone, a record that heat sends away comes back less easily: with all the heat, 30,000 answers to 24
# questions lose 2 % more.
GENTLE = 0.2


def box_search(
    codes: NDArray[np.int32],
    space: Space,
    rules: Rules,
    partition: Partition,
    *,
    effort: Effort = "fast",
    seed: int = 0,
    progress: Told | None = None,
) -> Partition:
    """A partition with no more loss than `partition`, which must satisfy the rules; suppressed records stay out.

    `effort` is "fast", "thorough" or a number of nominal seconds; `progress` is called with the share that is done.
    """
    told = Progress.of(progress)
    if rules.flat() is None:
        raise UnsupportedError(
            "The box search needs a policy of which every model has a compiled form; turn refine off."
        )
    inside = np.flatnonzero(partition.labels >= 0)
    # A range takes two words and so does a set of up to 128 values; larger sets make every operation heavier.
    budget = box_budget(effort, len(inside), len(space.domains), max(0, space.width - 2 * len(space.domains)))
    if len(inside) < 2 * rules.k:
        return partition
    if rules.deficits(partition.labels, partition.classes).max() > 0:
        raise InternalError("the box search was given a partition that does not satisfy the policy")
    labels = partition.labels[inside].astype(np.int64)
    rows = np.ascontiguousarray(codes[inside], dtype=np.int32)
    if rules.union_closed:
        labels = _pooled(rows, space, labels)
    with told.stage("finding near records", NEAR_SHARE) as part:
        whole = encode(rows, space, rules, inside, part, budget=budget, seed=seed)
    with told.stage("searching for better classes") as part:
        found = _Search.over(whole, budget, seed).run(labels, part)
    if found is None:
        told(1.0)
        return partition
    if rules.union_closed:
        found = _pooled(rows, space, found)
    result = Partition.compact(spread(found, inside, partition.n), notes=partition.notes)
    if rules.deficits(result.labels, result.classes).max() > 0:
        raise InternalError("the box search broke the policy")
    told(1.0)
    return result


class _Job(NamedTuple):
    """Records and their classes to be searched, with a draw, a share of the operations and of the heat of their own.

    The temperature falls from where it is after the share `begin` of the whole search to where it is after `end`.
    """

    records: Ints
    labels: Ints
    draw: tuple[int, ...]
    budget: int
    begin: float = 0.0
    end: float = 1.0
    slices: int = SLICES
    warmth: float = 1.0
    keeps_best: bool = True


@dataclass(frozen=True, eq=False)
class _Search:
    """One search: rounds of slices, region by region, or runs that are merged."""

    whole: Encoded
    budget: int
    seed: int
    strangers: float
    regions: int
    rounds: int

    @classmethod
    def over(cls, whole: Encoded, budget: int, seed: int) -> _Search:
        """A search over these records, in as many regions as there have to be."""
        n = len(whole.codes)
        left = min(budget, max(KEPT * budget, (1 + BESIDE) * budget - whole.work))
        budget = int(left / remoteness(*whole.tuples.shape))
        count = max(1, min(-(-n // REGION_RECORDS), n // (whole.rules.k * REGION_CLASSES)))
        return cls(whole, budget, seed, _strangers(whole.codes, whole.space, seed), count, ROUNDS if count > 1 else 1)

    def run(self, labels: Ints, progress: Progress) -> Ints | None:
        """Labels with less loss than these, or None."""
        if self.regions == 1 and worth_merging(self.whole, self.budget):
            return self.merged(labels, progress)
        n = len(labels)
        random = np.random.default_rng([self.seed, n])
        change = 0.0
        for number in range(self.rounds):
            parts = regions(self.whole.codes, labels, self.regions, random) if self.regions > 1 else [np.arange(n)]
            jobs = [
                _Job(
                    records=records,
                    labels=_dense(labels[records]),
                    draw=(number, place),
                    budget=self.budget * len(records) // (n * self.rounds),
                    begin=number / self.rounds,
                    end=(number + 1) / self.rounds,
                    slices=SLICES // self.rounds,
                    # Only the end has to be as good as can be; until then a round hands on the state it has cooled to.
                    keeps_best=number == self.rounds - 1,
                )
                for place, records in enumerate(parts)
            ]
            with progress.stage(weight=1 / self.rounds) as part:
                found = self.side_by_side(jobs, part)
            classes = 0
            for records, (fresh, difference) in zip(parts, found, strict=True):
                dense = _dense(fresh)
                labels[records] = dense + classes
                classes += int(dense.max()) + 1
                change += difference
        return labels if change < -EPSILON else None

    def merged(self, labels: Ints, progress: Progress) -> Ints | None:
        """Runs from these labels, then from the best there is, warmed up again; after each few the best of all their classes."""
        pool, rounds = Pool(self.whole, labels), schedule(self.whole.rules.k)
        # A start is something to be better than; its classes, often one of everybody, would only make the programs heavy.
        pool.weigh(_dense(labels))
        before, left, everyone = pool.least, self.budget, np.arange(len(labels))
        program = merging_work(self.whole)
        for number, (runs, weight, warmth) in enumerate(rounds):
            # Programs pay for what they look through; the runs to come share what they leave, by their weights.
            ahead = sum(later.runs * later.weight for later in rounds[number:])
            each = max(0, left - program * (len(rounds) - number)) * weight // ahead
            begun = _dense(labels if number == 0 else pool.best)
            jobs = [
                _Job(everyone, begun, (number, place), each, warmth=warmth, keeps_best=False) for place in range(runs)
            ]
            with progress.stage(weight=runs * each / self.budget) as part:
                for found, _ in self.side_by_side(jobs, part):
                    pool.add(_dense(self.pooled(found)))
            progress.check()
            paid = pool.merge(self.seed, progress)
            left, program = left - runs * each - paid, max(program, paid)
        return pool.best if pool.least < before else None

    def pooled(self, labels: Ints) -> Ints:
        """Classes with the same box made one where the policy allows it."""
        whole = self.whole
        return _pooled(whole.codes, whole.space, labels) if whole.rules.union_closed else labels

    def side_by_side(self, jobs: Sequence[_Job], progress: Progress) -> list[tuple[Ints, float]]:
        """What comes of the jobs, on all cores."""
        return side_by_side(
            self.part, jobs, progress, threads=os.cpu_count() or 1, weights=[len(job.records) for job in jobs]
        )

    def part(self, job: _Job, progress: Progress) -> tuple[Ints, float]:
        """The slices of one job: labels, and what the loss changed by."""
        size = len(job.records)
        part = take(self.whole, job.records, job.labels)
        desk = part.store.desk
        desk.random = np.uint64(np.random.default_rng([self.seed, *job.draw]).integers(1, 2**63))
        before = total = best = part.total()
        kept = part.held()
        warmth = job.warmth * (GENTLE if desk.narrow else 1.0)
        for i in range(job.slices):
            cooled = (1 - (job.begin + (job.end - job.begin) * i / job.slices)) ** 2
            heat = warmth * _heat(total, int(desk.live), size / self.whole.rules.k, self.strangers) * cooled
            total += self.walk(part, heat, job.budget * (i + 1) // job.slices, progress)
            if job.keeps_best and total < best - EPSILON:
                best, kept = total, part.held()
            progress((i + 1) / job.slices)
        if not job.keeps_best:
            best, kept = total, part.held()
        return part.labels(kept), best - before

    def walk(self, part: Part, heat: float, until: int, progress: Progress) -> float:
        """Steps at one temperature until the budget counts so many operations; what the loss changes by."""
        from shoal.kernels.box_search import search

        flat, desk = self.whole.flat, part.store.desk
        desk.gained = np.float64(0.0)
        while desk.work < until:
            search(self.whole.gauge, flat, part.table, part.store, heat, min(until, int(desk.work) + SLICE))
            progress.check()
        return float(desk.gained)


def _dense(labels: Ints) -> Ints:
    """Classes numbered 0, 1, 2 … without gaps."""
    return np.unique(labels, return_inverse=True)[1].ravel()


def _pooled(codes: NDArray[np.int32], space: Space, labels: Ints) -> Ints:
    """Classes with the same box made one: they are published alike, and one class shares its surplus."""
    dense = _dense(labels)
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
