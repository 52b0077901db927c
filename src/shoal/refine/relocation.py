"""Priced relocation (ours): records move to cheaper classes, and pay for the slack that they use up there.

Under t-closeness and its relatives a class can be cheap and full: one more record of a value that it has too much of would
break the rule, while a record of a rare value makes room for others. How far a class is from its limits is its *slack*
(`shoal.kernels.relocation.slack`). A move of a record costs

    growth of the loss − μ · Σ (largest loss − loss of the class) · growth of the class's slack

over the two classes it touches, so at first records arrange themselves such that cheap classes have slack, and as μ falls
to 0 the slack is spent. Waves of falling μ are followed by swaps of records with the same sensitive values, which no rule
can notice. Every move leaves both classes good; the best state that μ = 0 has reached is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import InternalError
from shoal.partition import Partition
from shoal.policy import FlatRules, Rules
from shoal.progress import SLICE, Progress, Told
from shoal.refine.effort import Effort, relocation_budget
from shoal.space import Set, Space

if TYPE_CHECKING:
    from shoal.kernels.relocation import Classes, Sweep, Table

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# The prices of slack in the first wave, which shall undo what the start settled on, and in later ones, which start from what
# the last one has found and need not be as hot. These and the next two were chosen by trying a few; no script here compares
# others.
FIRST_PRICES = np.linspace(1.5, 0.0, 10)
PRICES = np.linspace(0.8, 0.0, 6)
# Waves differ by their order alone: after so many without gain another one is not likely to gain either.
PATIENCE = 10
# Larger partitions are searched in blocks of so many neighbouring classes, other blocks in every wave: a sweep takes every
# record past every class, and records hardly ever move far.
BLOCK = 2048
# So many pairs of a group and a class are remembered at most, 128 MB of each kind.
REMEMBERED = 2**24
# Losses are sums: what differs by less is the same, added in another order.
TOLERANCE = 1e-9
# Units of work between two looks at whether the search is still wanted: as long as a slice of other loops.
PAUSE = 5 * SLICE


def relocate(
    codes: Codes,
    space: Space,
    rules: Rules,
    partition: Partition,
    *,
    effort: Effort = "fast",
    seed: int = 0,
    progress: Told | None = None,
) -> Partition:
    """Move records between the classes of a partition until the budget is used up or nothing is gained any more.

    The loss never grows. The number of classes stays what it is, and suppressed records stay suppressed. Where a rule has no
    form for compiled loops, records only change places with others of the same sensitive values.
    """
    budget, told = relocation_budget(effort), Progress.of(progress)
    return relocated(codes, space, rules, partition, budget=budget, seed=seed, progress=told)[0]


def relocated(
    codes: Codes, space: Space, rules: Rules, partition: Partition, *, budget: int, seed: int, progress: Progress
) -> tuple[Partition, int]:
    """What `relocate` finds within so many units of work, and how many it took."""
    flat_rules = rules.flat()
    kept = np.flatnonzero(partition.labels >= 0)
    if partition.classes < 2:
        return partition, 0
    search = _Search(codes[kept], space, rules, flat_rules, kept, partition.labels[kept], seed)
    with progress.stage("moving single records") as part:
        search.run(budget, part)
    labels = partition.labels.copy()
    labels[kept] = search.best
    if (rules.deficits(labels, partition.classes) > 0).any():
        raise InternalError("priced relocation left a class that does not satisfy the policy")
    progress(1.0)
    return Partition(labels, None, partition.notes), search.work


class _Search:
    """The state of one search: labels now, the best ones, and the work done."""

    def __init__(
        self,
        codes: Codes,
        space: Space,
        rules: Rules,
        flat_rules: FlatRules | None,
        kept: Ints,
        labels: Codes,
        seed: int,
    ) -> None:
        from shoal.kernels.space import flatten

        self.codes, self.space, self.rules, self.flat = np.ascontiguousarray(codes), space, flat_rules, flatten(space)
        self.group, self.cells, self.width = _groups(rules, kept)
        self.random = np.random.default_rng(seed)
        self.labels = labels.astype(np.int64)
        self.best, self.least, self.top = self.labels.copy(), 0.0, 0.0
        self.least = self.loss()
        self.work, self.budget, self.progress = 0, 1, Progress()

    def loss(self) -> float:
        """Total loss now; notes the largest loss of a class on the way."""
        order, starts = _by_class(self.labels)
        unit = self.space.unit(self.space.states(self.codes, order, starts))
        self.top = float(unit.max())
        return exact.weighed(np.bincount(self.labels), unit)

    def run(self, budget: int, progress: Progress) -> None:
        """Waves while they can be finished, plain sweeps before and where they cannot."""
        self.budget, self.progress = budget, progress
        improved = self.wave([0.0], budget)
        sweep, idle, wave = 2 * max(1, self.work), 0, 0
        while self.work < budget and idle < PATIENCE:
            affordable = (budget - self.work) // sweep
            if affordable > len(PRICES):
                prices, before = FIRST_PRICES[-affordable:] if wave == 0 else PRICES, self.work
                improved = self.wave(prices.tolist(), 2 * budget)
                sweep = (self.work - before) // len(prices)
                idle, wave = 0 if improved else idle + 1, wave + 1
            elif not improved:
                break
            else:
                improved = self.wave([0.0], budget - self.work)
        progress(1.0)

    def wave(self, prices: list[float], limit: int) -> bool:
        """Sweeps at falling prices and one of swaps, block by block; says whether the best state got better."""
        end = self.work + limit
        for block in self.blocks():
            self.progress.check()
            inside, table, classes = self.part(block)
            order = np.arange(len(inside))
            if self.rules is not None:
                for price in prices:
                    order = self.random.permutation(order)
                    self.sweep(table, classes, order, end, price)
            order = self.random.permutation(order)
            self.sweep(table, classes, order, end)
            self.labels[inside] = block[classes.label]
        loss = self.loss()
        better = loss < self.least - TOLERANCE
        if better:
            self.best, self.least = self.labels.copy(), loss
        return better

    def sweep(self, table: Table, classes: Classes, order: Ints, end: int, price: float | None = None) -> None:
        """Move the records at a price of slack, or without one swap them, a pause's work at a time."""
        from shoal.kernels.relocation import PLACE, WORK, move_records, swap_records

        sweep = self.before(order, 0.0 if price is None else price)
        at = sweep.at
        while at[PLACE] < len(order) and at[WORK] <= end:
            until = min(end, int(at[WORK]) + PAUSE)
            if price is None:
                swap_records(self.flat, table, classes, sweep, until)
            elif self.rules is not None:
                move_records(self.flat, self.rules, table, classes, sweep, until)
            self.work = int(at[WORK])
            self.progress(min(1.0, self.work / self.budget))

    def before(self, order: Ints, price: float) -> Sweep:
        """A sweep that has not begun, with all that the loops write on."""
        from shoal.kernels.relocation import Sweep

        rest = np.empty((2, self.space.slots[-1]), dtype=np.int64)
        at = np.array([0, self.work], dtype=np.int64)
        return Sweep(order, at, price, self.top, rest, np.empty((2, len(self.space.domains))))

    def blocks(self) -> Iterator[Ints]:
        """All classes at once, or classes halved along random attributes until they are few enough."""
        order, starts = _by_class(self.labels)
        states = self.space.states(self.codes, order, starts)
        most = max(2, min(BLOCK, REMEMBERED // len(self.cells)))
        waiting = [np.arange(len(states))]
        while waiting:
            block = waiting.pop()
            if len(block) <= most:
                yield np.sort(block)
                continue
            slots = np.flatnonzero(np.ptp(states[block], axis=0) > 0)
            key = states[block, self.random.choice(slots)] if len(slots) else block
            ranked = block[np.argsort(key, kind="stable")]
            waiting += [ranked[: len(ranked) // 2], ranked[len(ranked) // 2 :]]

    def part(self, block: Ints) -> tuple[Ints, Table, Classes]:
        """The records of some classes, and these classes, as the compiled loops want them."""
        from shoal.kernels.relocation import Classes, Table

        number = np.full(int(self.labels.max()) + 1, -1, dtype=np.int64)
        number[block] = np.arange(len(block))
        inside = np.flatnonzero(number[self.labels] >= 0)
        codes, group, labels = self.codes[inside], self.group[inside], number[self.labels[inside]]
        order, starts = _by_class(labels)
        states = self.space.states(codes, order, starts)
        parts = self.space.losses(states) * self.space.weights
        last = np.append(starts[1:], len(order)) - 1
        after, before = np.empty_like(order), np.empty_like(order)
        after[order[:-1]], before[order[1:]] = order[1:], order[:-1]
        after[order[last]], before[order[starts]] = order[starts], order[last]
        counts = np.zeros((len(block), self.width), dtype=np.int32)
        for column in self.cells.T:
            cell = column[group]
            np.add.at(counts, (labels[cell >= 0], cell[cell >= 0]), 1)
        classes = Classes(
            label=labels,
            state=states,
            edge=self.edges(codes, labels, states),
            part=parts,
            loss=parts.sum(axis=1),
            size=np.bincount(labels),
            counts=counts,
            head=order[starts],
            after=after,
            before=before,
            room=np.full((len(self.cells), len(block)), np.nan),
            spare=np.full((len(self.cells), len(block)), np.nan),
        )
        return inside, Table(codes, group, self.cells), classes

    def edges(self, codes: Codes, labels: Ints, states: Ints) -> Ints:
        """How many members of each class are at the lowest and at the highest code of each attribute."""
        edge = np.zeros((len(states), 2 * len(self.space.domains)), dtype=np.int64)
        for a, domain in enumerate(self.space.domains):
            if not isinstance(domain, Set):
                ends = states[labels, self.space.slots[a] : self.space.slots[a] + 2] == codes[:, a, None]
                for end in range(2):
                    edge[:, 2 * a + end] = np.bincount(labels, ends[:, end], len(states))
        return edge


def _groups(rules: Rules, kept: Ints) -> tuple[Ints, Ints, int]:
    """The group of each record (equal codes in all views), the cells of each group, and the number of cells."""
    offsets = np.concatenate([[0], np.cumsum([view.width for view in rules.views])]).astype(np.int64)
    codes = rules.codes()[kept]
    if codes.shape[1] == 0:
        return np.zeros(len(kept), dtype=np.int64), np.zeros((1, 0), dtype=np.int64), 0
    distinct, group = np.unique(codes, axis=0, return_inverse=True)
    cells = np.where(distinct >= 0, distinct + offsets[:-1], -1)
    return group.ravel().astype(np.int64), cells.astype(np.int64), int(offsets[-1])


def _by_class(labels: Ints) -> tuple[Ints, Ints]:
    """Records class by class, and where each class begins."""
    sizes = np.bincount(labels)
    return np.argsort(labels, kind="stable"), np.cumsum(sizes) - sizes
