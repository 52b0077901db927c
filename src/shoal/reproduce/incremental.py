"""Truta & Campan 2007, §5: I3M+ and I3M− on Adult against full runs on the final table, before and after IL_Optimization.

The paper leaves it there. Here two more figures stand beside its own: I3M+ followed by a box search among the classes that
changed and their neighbours, and the same where full runs get a box search too, so that the comparison stays fair.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

import shoal
from shoal import exact
from shoal.algorithms import run as run_algorithm
from shoal.evolve.i3m.classes import Binding, Classes
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.progress import Progress
from shoal.refine import refined
from shoal.refine.il_optimization import il_optimization
from shoal.reproduce import Line, judged
from shoal.reproduce.tables import EIGHT, adult_sample

SHARES = (0.005, 0.01, 0.05, 0.2, 0.5)
SMALL = 0.01

# The partition before a change, and the same after a box search.
Start = tuple[Partition, Partition]


def experiments(quick: bool, progress: Progress) -> list[Line]:
    """Excess loss by size of the change, for insertions (k = 3, 5, 10) and deletions (k = 5)."""
    n = 2_000 if quick else 10_000
    data = adult_sample(n + n // 2, EIGHT)
    runs = [(k, "insert") for k in ((3, 10) if quick else (3, 5, 10))] + [(5, "delete")]
    lines: list[Line] = []
    # The first step of all compiles, and would be timed with it.
    starts: dict[tuple[str, int, int], Start] = {}
    for kind in ("insert", "delete"):
        _outcome(Experiment(data, 100, 5, 3, kind, progress), starts)
    for k, kind in runs:
        found: list[Outcome] = []
        for share in SHARES:
            with progress.stage(f"k = {k}, {kind} {100 * share:g} %", 0.9 / (len(SHARES) * len(runs))) as part:
                found.append(_outcome(Experiment(data, n, int(n * share), k, kind, part), starts))
        lines += _lines(k, kind, found)
    return lines


@dataclass(frozen=True)
class Experiment:
    """A table, a change of it, and what both can be anonymized with."""

    data: Microdata
    n: int
    moved: int
    k: int
    kind: str
    progress: Progress

    def table(self, after: bool) -> Microdata:
        """The records before or after the change: the larger table has `moved` more than n."""
        larger = after == (self.kind == "insert")
        return self.data.take(np.arange(self.n + self.moved if larger else self.n))

    @property
    def start(self) -> tuple[str, int, int]:
        """What the table before the change depends on: insertions all begin with the same one."""
        return self.kind, self.k, self.n if self.kind == "insert" else self.n + self.moved

    def full(self, after: bool) -> Partition:
        """The paper's static algorithm."""
        table = self.table(after)
        rules = table.rules(self.policy)
        with self.progress.stage(weight=0.2) as part:
            return run_algorithm("k_member", table, rules, objective="il", progress=part)

    @property
    def policy(self) -> Policy:
        """k-anonymity."""
        return Policy((shoal.KAnonymity(self.k),))

    def refined(self, after: bool, partition: Partition) -> Partition:
        """A full run with a box search."""
        table = self.table(after)
        rules = table.rules(self.policy)
        with self.progress.stage(weight=0.2) as part:
            return refined(table, rules, partition, objective="il", progress=part)

    def optimized(self, partition: Partition) -> Partition:
        """A full run on the final table with IL_Optimization."""
        table = self.table(True)
        return il_optimization(table.codes, table.space("il"), table.rules(self.policy), partition)

    def loss(self, partition: Partition) -> float:
        """IL of the final table."""
        space, codes = self.data.space("il"), self.table(True).codes
        return exact.weighed(partition.sizes, space.unit(space.states(codes, partition.order, partition.starts)))


@dataclass(frozen=True)
class Outcome:
    """Losses and processor seconds of one experiment."""

    share: float
    full: float
    full_optimized: float
    plain: float
    optimized: float
    refined: float
    fair_plain: float
    fair_refined: float
    faster: float

    @property
    def excess(self) -> float:
        """The paper's figure: I3M over a full run."""
        return self.plain / self.full - 1


def _outcome(experiment: Experiment, starts: dict[tuple[str, int, int], Start]) -> Outcome:
    if experiment.start not in starts:
        plain = experiment.full(False)
        starts[experiment.start] = plain, experiment.refined(False, plain)
    start, better_start = starts[experiment.start]
    started = time.process_time()
    full = experiment.full(True)
    took = time.process_time() - started
    losses = _follow(experiment, start)
    best = experiment.loss(experiment.refined(True, full))
    fair = _follow(experiment, better_start)
    return Outcome(
        share=experiment.moved / experiment.n,
        full=experiment.loss(full),
        full_optimized=experiment.loss(experiment.optimized(full)),
        plain=losses[0],
        optimized=losses[1],
        refined=losses[2],
        fair_plain=fair[0] / best - 1,
        fair_refined=fair[2] / best - 1,
        faster=took / max(losses[3], 1e-4),
    )


def _follow(experiment: Experiment, start: Partition) -> tuple[float, float, float, float]:
    """The loss after the step, after IL_Optimization of all classes, after refining what changed; seconds of the step."""
    (plain, optimized, spent), (_, refined, _) = (_finished(experiment, start, way) for way in ("optimize", "refine"))
    return plain, optimized, refined, spent


def _finished(experiment: Experiment, start: Partition, way: str) -> tuple[float, float, float]:
    space, before = experiment.data.space("il"), experiment.table(False)
    classes = Classes(space, before.codes, start.labels, Binding(experiment.policy))
    moved = np.arange(experiment.n, experiment.n + experiment.moved)
    started = time.process_time()
    insert = experiment.kind == "insert"
    change = classes.insert(experiment.data.codes[moved]) if insert else classes.delete(moved)
    spent = time.process_time() - started
    plain = classes.loss
    if way == "optimize":
        classes.optimize()
    else:
        classes.refine(change.touched)
    return plain, classes.loss, spent


def _lines(k: int, kind: str, found: list[Outcome]) -> list[Line]:
    lines = []
    for one in found:
        what = f"k = {k}, {kind} {100 * one.share:g} %: excess of IL over a full run"
        shown = (
            f"{_percent(one.excess)}, both after IL_Optimization {_percent(one.optimized / one.full_optimized - 1)}, "
            f"box search where it changed {_percent(one.refined / one.full - 1)}"
        )
        small = one.excess <= 0.03 if one.share <= 0.005 else True
        lines.append(judged(what, "figures only", shown, small and one.refined < one.plain))
    shown = ", ".join(_percent(one.excess) for one in found)
    growing = all(less.excess <= more.excess + 0.005 for less, more in pairwise(found))
    note = "against full runs with a box search: " + ", ".join(_percent(one.fair_plain) for one in found)
    lines.append(judged(f"k = {k}, {kind}: excess grows with the change", "grows", shown, growing, note))
    before, after = [(one.full, one.plain) for one in found], [(one.full_optimized, one.optimized) for one in found]
    saved = [1 - b / a for pair, other in zip(before, after, strict=True) for a, b in zip(pair, other, strict=True)]
    shown = f"by {100 * min(saved):.2f} % to {100 * max(saved):.2f} % in {len(saved)} runs"
    what = f"k = {k}, {kind}: IL_Optimization lowers the loss"
    lines.append(judged(what, "improves every run", shown, min(saved) > 0))
    shown = _list(f"{100 * one.share:g} %: {one.faster:.0f}" for one in found)
    quick = all(one.faster > 3 for one in found if one.share <= SMALL)
    what = f"k = {k}, {kind}: times faster than a full run"
    lines.append(judged(what, "much faster", shown, quick, "k_member here is compiled and indexed"))
    shown = _list(
        f"{100 * one.share:g} %: {_percent(one.fair_plain)} plain, {_percent(one.fair_refined)} refined"
        for one in found
    )
    what = f"k = {k}, {kind}: excess where every full run gets a box search"
    less = all(one.fair_refined < one.fair_plain for one in found)
    lines.append(judged(what, "no such run", shown, less, "refined: box search among the classes that changed"))
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %"


def _list(parts: Iterable[str]) -> str:
    return "; ".join(parts)
