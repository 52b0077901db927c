"""Mondrian: cut the table, and the parts again, as long as all parts satisfy the policy.

LeFevre et al. 2006; docs/algorithms.md#mondrian. Children are tested with the
policy itself, so it may be any. Classes publish what their records have in common, never the cut's borders.

Which cut a part gets is up to `split`: the attribute with the largest extent at its median ("median", the paper), or the
cut that lowers the loss most ("loss"), of the median cuts (`cuts="median"`) or of all cuts (`cuts="all"`).
Numbers are cut between two values. How the others are measured and cut is up to `categories`:

- "hierarchy": along the taxonomy, one part for each child of the lowest common ancestor; without one, as "sets";
- "sets": extent = distinct values over all values; cut between two codes (taxonomy order, or most frequent first);
- "codes": the same cut, extent = difference of codes over the largest possible;
- "auto": as "hierarchy", and with `cuts="all"` also any one node, or any one value, against the rest.

The defaults mostly lose far less than the others, for O(n · d² · depth); `split="median"` costs O(n · d · depth).
`mode="relaxed"` sends the first half of the records, by (value, record), to the left: equal values may be separated,
classes are smaller and mostly lose more. Attribute weights count in savings, not in extents.

>>> import polars as pl, shoal
>>> frame = pl.DataFrame({"age": [25, 40, 35, 55, 33, 42, 38], "sex": ["M", "F", "M", "M", "F", "M", "M"]})
>>> data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}, "sex": {"role": "quasi"}})
>>> rules = data.rules(shoal.Policy((shoal.KAnonymity(2),)))
>>> mondrian(data, rules).labels.tolist()
[0, 2, 0, 1, 2, 1, 0]
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.algorithms.common import require_one_class
from shoal.errors import ConfigError, UnsupportedError
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules, Stats
from shoal.progress import SLICE, Progress, side_by_side
from shoal.space import Interval, Measure, Set, Space, Tree

if TYPE_CHECKING:
    from shoal.kernels.mondrian_parts import Cuts, Table, Work

Mode = Literal["strict", "relaxed"]
Categories = Literal["auto", "hierarchy", "sets", "codes"]
Split = Literal["loss", "median"]
Places = Literal["all", "median"]
Part = tuple[int, int]

# Parts with fewer rows are not worth a thread of their own, and are cut to the end without looking up.
SMALL = 20_000
# Blocks are cut no smaller than this part of the size asked for.
SMALLEST_BLOCK = 8


def mondrian(
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Progress | None = None,
    mode: Mode = "strict",
    categories: Categories = "auto",
    split: Split = "loss",
    cuts: Places | None = None,
    threads: int = 0,
) -> Partition:
    """Cut the table. Nothing is random; `threads` (0: one per core) changes the time, never the result.

    `cuts` is "all" by default where that is possible (`split="loss"`, strict), else "median".
    """
    space = data.space(objective)
    settings: dict[str, Any] = {"mode": mode, "categories": categories, "split": split, "cuts": cuts}
    settings |= {"threads": threads, "progress": progress}
    if rules.only_size and mode == "strict":
        # Strict cuts never separate equal records, so each distinct tuple is one row with a weight.
        points = data.points
        labels = cut_columns(list(points.codes.T), space, rules, points.weights, **settings)
        return Partition(labels[points.of_record])
    return Partition(cut_columns(list(data.codes.T), space, rules, **settings))


def cut_columns(
    columns: Sequence[NDArray[Any]],
    space: Space,
    rules: Rules,
    weights: NDArray[np.int64] | None = None,
    *,
    mode: Mode = "strict",
    categories: Categories = "auto",
    split: Split = "loss",
    cuts: Places | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> NDArray[np.int32]:
    """The class of each row of encoded columns, one array a quasi-identifier; a row may stand for `weights` records.

    Works on one copy, two bytes a code, so that 100 million records fit into memory where a table of them would not.
    """
    if cuts is None:
        cuts = "all" if split == "loss" and mode == "strict" else "median"
    _check(space, rules, mode, categories, split, cuts, threads)
    from shoal.kernels import mondrian as kernel

    how = kernel.MEDIANS if split == "median" else kernel.LOSS_OF_MEDIANS if cuts == "median" else kernel.LOSS_OF_ALL
    table = _table(columns, space, rules, weights)
    plan, prices = flat_plan(space, rules, mode, categories)
    _cut(_Job(table, plan, prices, rules, how), threads or os.cpu_count() or 1, Progress.of(progress))
    labels = np.empty(len(table.begins), dtype=np.int32)
    kernel.number_classes(table, labels)
    return labels


def cut_blocks(
    data: Microdata, rules: Rules, space: Space, size: int, progress: Progress, threads: int = 0
) -> NDArray[np.int32]:
    """The block of each record: parts of at most about `size` records, each of which satisfies the policy.

    The cuts are those that save most loss, so that seams lie where classes would hardly cross them. A block has no fewer
    than an eighth of `size` records as long as such cuts can be found. Equal records are never separated.
    """
    from shoal.kernels import mondrian as kernel
    from shoal.kernels.mondrian_parts import weight_of

    whole = data.points if rules.only_size else None
    columns = list((data.codes if whole is None else whole.codes).T)
    table = _table(columns, space, rules, None if whole is None else whole.weights)
    plan, prices = flat_plan(space, rules, "strict", "auto")
    even = plan._replace(k=max(rules.k, size // SMALLEST_BLOCK))
    jobs = [_Job(table, way, prices, rules, kernel.LOSS_OF_ALL) for way in (even, plan)]

    def cut(part: Part, told: Progress) -> list[Part]:
        if weight_of(table, *part) > size:
            for job in jobs:
                children = job.cut_once(*part, told)
                if len(children) > 1:
                    table.begins[part[0]] = 0
                    return children
        table.begins[part[0]] = 1
        return []

    parts = [(0, len(table.begins))]
    while parts:
        with progress.stage(weight=0.1) as level:
            cuts = side_by_side(cut, parts, level, threads=threads or os.cpu_count() or 1)
        parts = [child for children in cuts for child in children]
    labels = np.empty(len(table.begins), dtype=np.int32)
    kernel.number_classes(table, labels)
    return labels if whole is None else labels[whole.of_record]


def _check(
    space: Space, rules: Rules, mode: Mode, categories: Categories, split: Split, cuts: Places, threads: int
) -> None:
    if threads < 0:
        raise ConfigError(f"mondrian: threads = {threads!r} is not allowed; it must be 0 (one per core) or more.")
    if cuts == "all" and (split == "median" or mode == "relaxed"):
        raise ConfigError('mondrian: cuts = "all" needs split = "loss" and mode = "strict".')
    if rules.union_closed:
        if not whole_is_good(rules):
            require_one_class(rules, "mondrian")
    elif mode == "relaxed" or (
        categories in ("sets", "codes") and any(isinstance(domain, Tree) for domain in space.domains)
    ):
        raise UnsupportedError(
            "mondrian: such cuts can give two classes the same published values, and good classes merged are not always "
            'good under this policy; use mode = "strict" and categories = "auto" or "hierarchy".'
        )


def whole_is_good(rules: Rules) -> bool:
    """Whether all records together are a good class."""
    return rules.n >= rules.k if rules.only_size else rules.ok(np.arange(rules.n))


def _table(columns: Sequence[NDArray[Any]], space: Space, rules: Rules, weights: NDArray[np.int64] | None) -> Table:
    """One copy of the columns, which cutting will reorder, with what travels along."""
    from shoal.kernels.mondrian_parts import Table

    n = len(columns[0])
    codes = np.empty((len(columns) + 1, n), dtype=code_type(space))
    for a, column in enumerate(columns):
        codes[a] = column
    counted: list[NDArray[Any]] = [view.codes for view in rules.views] if weights is None else [weights]
    cargo = np.empty((1 + len(counted), n), dtype=np.int32)
    cargo[0] = np.arange(n, dtype=np.int32)
    for row in range(len(counted)):
        cargo[1 + row] = counted[row]
    scratch, begins = np.empty((3, n), dtype=np.int32), np.zeros(n, dtype=np.uint8)
    return Table(codes, cargo, scratch, begins, weighted=weights is not None)


def code_type(space: Space) -> type[np.unsignedinteger[Any]]:
    """Two bytes even where one would do: every width is compiled apart."""
    return np.uint16 if max(domain.size for domain in space.domains) <= 2**16 else np.uint32


def flat_plan(space: Space, rules: Rules, mode: str, categories: str) -> tuple[Cuts, NDArray[np.float64]]:
    """How each attribute is measured and cut, and what its states cost, as flat arrays."""
    from shoal.kernels import mondrian_parts as parts

    attribute = np.zeros((len(space.domains), 8), dtype=np.int64)
    numbers: list[NDArray[np.float64]] = [np.zeros(1)]
    ranks: list[NDArray[np.int32]] = [np.zeros(1, dtype=np.int32)]
    prices: list[NDArray[np.float64]] = [np.zeros(1)]
    for a, (domain, weight) in enumerate(zip(space.domains, space.weights, strict=True)):
        attribute[a, parts.SIZE], attribute[a, parts.MISSING] = domain.size, domain.missing_code
        attribute[a, parts.START], attribute[a, parts.PRICE] = sum(map(len, numbers)), sum(map(len, prices))
        attribute[a, parts.APART] = int(categories == "auto" and not isinstance(domain, Interval))
        kind = parts.CODES if categories == "codes" else parts.SETS
        if isinstance(domain, Interval):
            kind, state = parts.NUMBER, parts.RANGE
            width = domain.width if domain.width > 0 else 1.0
            numbers.append(np.append(width, domain.values))
            ranks.append(np.zeros(len(domain.values) + 1, dtype=np.int32))
            prices.append(np.append(weight * (domain.values - domain.values[:1]) / width, weight))
        elif isinstance(domain, Set):
            state = parts.SET
            prices.append(weight * domain.size_losses(space.measure))
        else:
            state, attribute[a, parts.LEVELS] = parts.NODE, domain.taxonomy.levels
            if categories in ("auto", "hierarchy"):
                kind = parts.HIERARCHY
            rank, nodes = _levels(domain)
            ranks.append(rank)
            numbers.append(domain.taxonomy.leaf_counts[nodes] / domain.taxonomy.leaves)
            prices.append(weight * domain.node_losses(space.measure)[nodes])
        attribute[a, parts.KIND], attribute[a, parts.STATE] = kind, state
    cuts = parts.Cuts(
        attribute=attribute,
        numbers=np.concatenate(numbers),
        rank=np.concatenate(ranks),
        view_start=rules.view_starts,
        relaxed=mode == "relaxed",
        k=rules.k,
    )
    return cuts, np.concatenate(prices)


def _levels(domain: Tree) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Per level from the root down and per leaf: its ancestor there, by number along the level and as a node."""
    tree = domain.taxonomy
    nodes = np.arange(tree.leaves)
    ranks, ancestors = [], []
    for level in range(tree.levels - 1, -1, -1):
        nodes = np.where(tree.depth[nodes] > level, tree.parent[nodes], nodes)
        ranks.append(np.concatenate([[0], np.cumsum(nodes[1:] != nodes[:-1])]).astype(np.int32))
        ancestors.append(nodes)
    return np.concatenate(ranks[::-1]), np.concatenate(ancestors[::-1])


class _Job:
    """One run over one table: cuts a part once, or until nothing can be cut."""

    def __init__(self, table: Table, plan: Cuts, prices: NDArray[np.float64], rules: Rules, split: int) -> None:
        from shoal.kernels.mondrian import MEDIANS

        self.table, self.plan, self.rules, self.split = table, plan, rules, split
        # What is not needed is not passed: the kernels are then compiled without it.
        self.prices = None if split == MEDIANS else prices
        self.flat = None if rules.only_size else rules.flat()
        self.compiled = rules.only_size or self.flat is not None

    def cut_all(self, part: Part, progress: Progress) -> None:
        """Cut the part until nothing can be cut: cut by cut while parts are large, or where only NumPy can judge them."""
        stack, done = [part], 0
        while stack:
            progress(done / (part[1] - part[0]))
            begin, end = stack.pop()
            if self.compiled and end - begin <= SMALL:
                self.cut(begin, end, False, progress)
                children = []
            else:
                children = self.cut_once(begin, end, progress)
            if len(children) > 1:
                stack.extend(children)
            else:
                done += end - begin

    def cut(self, begin: int, end: int, once: bool, progress: Progress) -> NDArray[np.int64]:
        """`kernels.mondrian.cut`, slice by slice."""
        from shoal.kernels.mondrian import LEFT, cut, todo_of

        todo = todo_of(begin, end)
        # To weigh the cuts of a part takes a step for every row and pair of attributes.
        steps = max(SLICE, (end - begin) * len(self.plan.attribute) ** 2)
        while True:
            bounds: NDArray[np.int64] = cut(
                self.table, self.plan, self.prices, self.flat, self.split, todo, once, steps
            )
            if todo.at[LEFT] == 0:
                return bounds
            progress.check()

    def cut_once(self, begin: int, end: int, progress: Progress) -> list[Part]:
        """The children of the part's best allowed cut; the part alone, marked as a class, when there is none."""
        from shoal.kernels.mondrian_parts import new_work

        progress.check()
        if self.compiled:
            bounds = self.cut(begin, end, True, progress)
        else:
            bounds = self._cut_once(new_work(self.plan), begin, end, progress)
        if len(bounds) == 2:
            self.table.begins[begin] = 1
        return [(int(low), int(high)) for low, high in pairwise(bounds)]

    def _cut_once(self, work: Work, begin: int, end: int, progress: Progress) -> NDArray[np.int64]:
        """`kernels.mondrian.cut` for rules that have no compiled form."""
        from shoal.kernels import mondrian as kernel
        from shoal.kernels import mondrian_parts as parts

        table, plan = self.table, self.plan
        if end - begin >= 2 * plan.k:
            parts.measure_part(table.columns, plan, work, begin, end)
            tried = kernel.candidates(table, plan, self.prices, work, self.split, begin, end)
            chosen = kernel.next_best(tried.key, -1)
            while chosen >= 0:
                progress.check()
                a, first, last = int(tried.attribute[chosen]), int(tried.first[chosen]), int(tried.last[chosen])
                children, ties = 2, end - begin
                if first < 0:
                    children, last, ties = parts.median_cut(table, plan, work, a, begin, end)
                    first = min(last, 0)
                if first >= 0:
                    column, side = table.columns[a, begin:end], table.scratch[parts.SIDE, begin:end]
                    parts.mark_halves(column, first, last, ties, side)
                if children and self._satisfy(children, begin, end):
                    return np.asarray(parts.make_cut(table, a, children, first, last, ties, begin, end))
                chosen = kernel.next_best(tried.key, chosen)
        return np.array([begin, end])

    def _satisfy(self, children: int, begin: int, end: int) -> bool:
        """Whether every marked child satisfies all rules."""
        from shoal.kernels.mondrian import CELLS
        from shoal.kernels.mondrian_parts import count_children

        starts = self.plan.view_start
        step = max(1, min(children, CELLS // max(1, int(starts[-1]))))
        for first in range(0, children, step):
            counted = min(step, children - first)
            sizes = np.empty(counted, dtype=np.int64)
            counts = np.empty((counted, int(starts[-1])), dtype=np.int32)
            count_children(self.table, starts, first, counted, begin, end, sizes, counts)
            views = tuple(counts[:, low:high].astype(np.int64) for low, high in pairwise(starts))
            if (self.rules.deficit(Stats(sizes, views)) > 0).any():
                return False
        return True


def _cut(job: _Job, threads: int, progress: Progress) -> None:
    """Cut the largest parts one by one until there are enough for all threads, then each of them to the end."""
    n = len(job.table.begins)
    parts = job.cut_once(0, n, progress)
    if len(parts) == 1:
        if not job.rules.union_closed and not whole_is_good(job.rules):
            raise UnsupportedError(
                "mondrian: neither the whole table nor the parts of any cut satisfy the policy; "
                "weaken it or take another algorithm."
            )
        return
    while parts and len(parts) < 8 * threads:
        parts.sort(key=lambda part: (part[0] - part[1], part[0]))
        begin, end = parts[0]
        if end - begin < SMALL:
            break
        children = job.cut_once(begin, end, progress)
        parts[:1] = children if len(children) > 1 else []
    sizes = [end - begin for begin, end in parts]
    side_by_side(job.cut_all, parts, progress, threads=threads, weights=sizes)
