"""Mondrian's cuts without the records: a table is cut into blocks from counts alone, one walk over the records a level.

The cuts are those of `shoal.algorithms.mondrian`, one by one and bit for bit, so the classes are the same wherever the records
are. A part that holds no more than a block is left to whoever has its records; a larger one that nothing may cut is a class
already. Whether the children of a cut satisfy the policy follows from the same counts: no cut costs another walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.algorithms.mondrian import SMALLEST_BLOCK, code_type, flat_plan
from shoal.engines.corners import Corners, Groups, Part, Shape
from shoal.engines.guessing import Guess, Runs, Sample, guess, heaps
from shoal.errors import UnsupportedError
from shoal.policy import Rules, Stats
from shoal.progress import Progress
from shoal.space import Space

if TYPE_CHECKING:
    from shoal.kernels.corners import Tree
    from shoal.kernels.mondrian_parts import Cuts

Ints = NDArray[np.int64]
Weigh = Callable[["Tree", Shape], Corners]


@dataclass(frozen=True, eq=False)
class Leaf:
    """A part that is cut no further: a block that somebody solves, or (`groups`) a class of its own, too large for one."""

    part: Part
    groups: tuple[Groups, ...] | None = None
    """What is known of a class, one entry an attribute."""


@dataclass(eq=False)
class CutTree:
    """The cuts that were made, as a tree of pairs, and its leaves."""

    nodes: list[list[int]] = field(default_factory=lambda: [[-1, 0, 0, -1, -1]])
    """Attribute (-1: a leaf), first and last code that go left, the left and the right node."""
    leaves: dict[int, Leaf] = field(default_factory=dict)
    """The finished parts, by node."""
    level: dict[int, int] = field(default_factory=lambda: {0: 1})
    """The level of each part, by node: one more than the cuts above it."""
    jobs: int = 0
    """How often the records were walked over."""
    levels: int = 0
    """The deepest level at which a cut was weighed; without a sample to guess from, each takes a walk."""

    def split(self, node: int, attribute: int, runs: Runs) -> list[int]:
        """A node becomes a cut: one child for each run of codes, and a last one for all others. The children's nodes."""
        children, level = [], self.level[node] + 1
        for first, last in runs:
            left, right = len(self.nodes), len(self.nodes) + 1
            self.nodes += [[-1, 0, 0, -1, -1], [-1, 0, 0, -1, -1]]
            self.nodes[node] = [attribute, first, last, left, right]
            children.append(left)
            node = right
        self.level |= dict.fromkeys((*children, node), level)
        return [*children, node]

    def guessed(self, node: int, one: Guess, numbers: dict[int, int]) -> None:
        """Make the guessed cuts of a part, and say in `numbers` where each piece is counted."""
        waiting = [(node, one)]
        while waiting:
            node, one = waiting.pop()
            if one.children:
                waiting += zip(self.split(node, one.attribute, one.runs), one.children, strict=True)
            else:
                numbers[node] = one.places[0]

    def flat(self, numbers: dict[int, int]) -> Tree:
        """For compiled loops; leaves have these numbers, others -1."""
        from shoal.kernels.corners import Tree

        nodes = np.array(self.nodes, dtype=np.int32)
        left = nodes[:, 3].copy()
        for node in np.flatnonzero(nodes[:, 0] < 0).tolist():
            left[node] = numbers.get(node, -1)
        attribute, first, last, _, right = (np.ascontiguousarray(column) for column in nodes.T)
        return Tree(attribute, first, last, left, right)

    @property
    def numbers(self) -> dict[int, int]:
        """The number of each leaf, from left to right: in which order the cuts were found makes no difference."""
        found: dict[int, int] = {}
        waiting = [0]
        while waiting:
            node = waiting.pop()
            attribute, _, _, left, right = self.nodes[node]
            if attribute < 0:
                found[node] = len(found)
            else:
                waiting += [right, left]
        return found

    @property
    def parts(self) -> list[Leaf]:
        """The leaves by their numbers."""
        return [self.leaves[node] for node in self.numbers]


@dataclass(frozen=True, eq=False)
class Cutting:
    """How a table is cut: its space, its rules (bound to the counts of the whole table) and Mondrian's settings.

    `size` is how many records a block holds at most. With `even`, blocks are kept from getting much smaller than that, as the
    blocks of other algorithms are; without, every cut is Mondrian's own.
    """

    space: Space
    rules: Rules
    size: int
    even: bool = False
    split: int = 2
    categories: str = "auto"
    seen: tuple[tuple[str, NDArray[np.int32]], ...] = ()
    """As for `Shape`."""
    room: int = 512 << 20
    """Bytes of counts that are kept at a time; parts beyond take another walk."""
    sample: Sample | None = None
    """Some records, from which the cuts of several levels are guessed; without, each level takes a walk."""

    def run(self, weigh: Weigh, whole: Part, progress: Progress) -> CutTree:
        """All cuts. `weigh` counts the corners of some parts in one walk over the records."""
        tree = CutTree()
        numbered = {0: whole}
        if whole.weight <= self.size:
            tree.leaves[0] = Leaf(whole)
            return tree
        while numbered:
            fresh: dict[int, Part] = {}
            with progress.stage(weight=0.2) as walk:
                for node, corners, guessed in self._weighed(tree, numbered, weigh):
                    fresh |= self._cut(tree, node, corners, guessed, walk)
            numbered = fresh
        return tree

    @cached_property
    def _plans(self) -> tuple[list[Cuts], NDArray[np.float64]]:
        """What is tried, in turn, and what attributes cost."""
        plan, prices = flat_plan(self.space, self.rules, "strict", self.categories)
        # A block has no fewer than an eighth of what it may hold, as long as such cuts can be found.
        even = [plan._replace(k=max(self.rules.k, self.size // SMALLEST_BLOCK))] if self.even else []
        return [*even, plan], prices

    def _weighed(self, tree: CutTree, parts: dict[int, Part], weigh: Weigh) -> Iterator[tuple[int, Corners, Guess]]:
        """Every part with the corners of its pieces, as many parts a walk as there is room for."""
        shape = Shape(tuple(parts.values()), self._sets(), self.rules.view_starts, self.seen)
        self._require_room(shape)
        guesses = self._guesses(tree, parts, shape)
        nodes = {id(one): node for node, one in guesses.items()}
        for heap in heaps(list(guesses.values()), self.room // shape.cell_bytes):
            asked, first = CutTree([list(one) for one in tree.nodes], level=dict(tree.level)), 0
            numbers: dict[int, int] = {}
            for one in heap:
                first = one.placed(first)
                asked.guessed(nodes[id(one)], one, numbers)
            counted = replace(shape, parts=tuple(piece.part for one in heap for piece in one.pieces))
            corners = weigh(asked.flat(numbers), counted)
            tree.jobs += 1
            for one in heap:
                yield nodes[id(one)], corners, one

    def _guesses(self, tree: CutTree, parts: dict[int, Part], shape: Shape) -> dict[int, Guess]:
        """Which cuts the parts will get; all of them share the room of one walk."""
        if self.sample is None:
            return {node: Guess(part) for node, part in parts.items()}
        from shoal.kernels.corners import route

        most = self.room // shape.cell_bytes // len(parts)
        places = {node: place for place, node in enumerate(parts)}
        own = np.empty(self.sample.codes.shape[1], dtype=np.int32)
        route(tree.flat(places), self.sample.codes, own)

        def counted(part: Part, some: Sample) -> Corners:
            found = Corners(replace(shape, parts=(part,)))
            found.add(CutTree().flat({0: 0}), some.codes, some.seen)
            found.counts *= some.weight
            found.histograms *= some.weight
            return found

        return {
            node: guess(part, self.sample.take(own == places[node]), self._best, counted, self.size, most)
            for node, part in parts.items()
        }

    def _sets(self) -> tuple[int, ...]:
        """The attributes whose members matter, with how many they may be."""
        from shoal.kernels.mondrian_parts import KIND, SET, SETS, STATE

        plan, _ = flat_plan(self.space, self.rules, "strict", self.categories)
        counted = (plan.attribute[:, KIND] == SETS) | (plan.attribute[:, STATE] == SET)
        return tuple(d.size if counted[a] else 0 for a, d in enumerate(self.space.domains))

    def _require_room(self, shape: Shape) -> None:
        """One part must fit; where it does not, the counts of two columns together are too many."""
        needed = max(part.cells for part in shape.parts) * shape.cell_bytes
        if needed > 4 * self.room:
            raise UnsupportedError(
                f"The counts from which this table is cut would take {needed / 1e9:,.1f} GB, because a quasi-identifier and a "
                "sensitive attribute both have very many values; round or group one of them, or give it more with --memory."
            )

    def _cut(self, tree: CutTree, node: int, corners: Corners, counted: Guess, told: Progress) -> dict[int, Part]:
        """Cut a part, and its children as far as they are counted: those that are still too large, by node; others are leaves."""
        larger: dict[int, Part] = {}
        waiting = [(node, counted)]
        while waiting:
            told.check()
            node, one = waiting.pop()
            tree.levels = max(tree.levels, tree.level[node])
            whole = corners.together(one.places, one.part)
            groups = tuple(whole.of(0, a) for a in range(len(self.space.domains)))
            found = self._best(groups)
            if found is None:
                tree.leaves[node] = self._class(groups, node == 0)
                continue
            attribute, runs, children = found
            known = one.children if (one.attribute, one.runs) == (attribute, runs) else []
            for i, (child, part) in enumerate(zip(tree.split(node, attribute, runs), children, strict=True)):
                if part.weight <= self.size:
                    tree.leaves[child] = Leaf(part)
                elif known:
                    waiting.append((child, known[i]))
                else:
                    larger[child] = part
        return larger

    def _class(self, groups: tuple[Groups, ...], everything: bool) -> Leaf:
        """A part that nothing may cut."""
        part = groups[0].part_of(np.ones(len(groups[0].codes), dtype=np.bool_))
        if everything and not self.rules.union_closed and not self.good(part.weight, groups[0].before[1][-1]):
            raise UnsupportedError(
                "mondrian: neither the whole table nor the parts of any cut satisfy the policy; "
                "weaken it or take another algorithm."
            )
        return Leaf(part, groups)

    def _best(self, groups: tuple[Groups, ...]) -> tuple[int, Runs, list[Part]] | None:
        """The best allowed cut of a part, by the first plan that has one."""
        plans, prices = self._plans
        weight = int(groups[0].counts.sum())
        tried = (self._best_of(groups, plan, prices) for plan in plans if weight >= 2 * plan.k)
        return next((found for found in tried if found is not None), None)

    def _best_of(
        self, groups: tuple[Groups, ...], plan: Cuts, prices: NDArray[np.float64]
    ) -> tuple[int, Runs, list[Part]] | None:
        """The attribute of the best allowed cut, the runs of codes that its children have, and the children."""
        from shoal.kernels.corners import candidates_of
        from shoal.kernels.mondrian import next_best
        from shoal.kernels.mondrian_loss import Candidates
        from shoal.kernels.mondrian_parts import EXTENT, measure_part, new_work

        work, dtype = new_work(plan), code_type(self.space)
        tables = {0: groups[0].corners(dtype)}
        measure_part(tables[0].columns, plan, work, 0, len(tables[0].begins))
        extents, listed = work.part[EXTENT].copy(), []
        a = next_best(extents, -1)
        while a >= 0:
            if a not in tables:
                tables[a] = groups[a].corners(dtype)
            listed.append(candidates_of(tables[a], plan, prices, work, self.split, a))
            a = next_best(extents, a)
        if not listed:
            return None
        tried = Candidates(*(np.concatenate(parts) for parts in zip(*listed, strict=True)))
        chosen = next_best(tried.key, -1)
        while chosen >= 0:
            a, first, last = (int(column[chosen]) for column in (tried.attribute, tried.first, tried.last))
            runs = self._runs(tables[a], plan, work, a, first, last, groups[a])
            masks = _masks(groups[a].codes, runs) if runs else []
            if masks and self._allowed(groups[a], masks):
                return a, runs, [groups[a].part_of(mask) for mask in masks]
            chosen = next_best(tried.key, chosen)
        return None

    def _runs(self, table: Any, plan: Cuts, work: Any, a: int, first: int, last: int, groups: Groups) -> Runs:
        """The codes of all children but the last; none where a child would be too small."""
        from shoal.kernels.mondrian_parts import HIERARCHY, KIND, median_cut

        if first >= 0:
            return [(first, last)]
        children, last, _ = median_cut(table, plan, work, a, 0, len(table.begins))
        if not children:
            return []
        if plan.attribute[a, KIND] != HIERARCHY:
            return [(0, int(last))]
        rank = _branches(plan, a, int(groups.codes[0]), int(groups.codes[-1]))
        there = np.unique(rank[groups.codes])
        ends = [np.flatnonzero(rank == branch)[[0, -1]].tolist() for branch in there[:-1]]
        return [(begin, end) for begin, end in ends]

    def _allowed(self, groups: Groups, masks: list[NDArray[np.bool_]]) -> bool:
        """Whether every child satisfies the policy; that none is too small is known."""
        if self.rules.only_size:
            return True
        sizes, histograms = groups.before
        for mask in masks:
            ends = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
            size = sum(int(sizes[j] - sizes[i]) for i, j in zip(ends[::2], ends[1::2], strict=True))
            counts = sum(histograms[j] - histograms[i] for i, j in zip(ends[::2], ends[1::2], strict=True))
            if not self.good(size, np.asarray(counts)):
                return False
        return True

    def good(self, size: int, counts: Ints) -> bool:
        """Whether a class of so many records with these histograms, side by side, satisfies the policy."""
        if self.rules.only_size:
            return size >= self.rules.k
        flat = self._flat_rules
        if flat is not None:
            from shoal.kernels.rules import class_ok

            # Compiled for short counts already, where nothing is lost by them.
            short = counts.astype(np.int32) if size < 2**31 else counts
            return bool(class_ok(flat, size, np.ascontiguousarray(short)))
        starts = self.rules.view_starts
        views = tuple(counts[None, low:high] for low, high in pairwise(starts))
        return bool(self.rules.deficit(Stats(np.array([size], dtype=np.int64), views))[0] <= 0)

    @cached_property
    def _flat_rules(self) -> Any:
        return self.rules.flat()


def _masks(codes: Ints, runs: Runs) -> list[NDArray[np.bool_]]:
    """Which groups each child has; the last one has what is left."""
    masks = [(codes >= first) & (codes <= last) for first, last in runs]
    rest = ~np.logical_or.reduce(masks)
    return [*masks, rest]


def _branches(plan: Cuts, a: int, low: int, high: int) -> NDArray[np.int32]:
    """For each code of a taxonomy its branch below the lowest common ancestor of two codes."""
    from shoal.kernels.mondrian_parts import LEVELS, SIZE, START

    start, size, levels = (int(plan.attribute[a, which]) for which in (START, SIZE, LEVELS))
    ranks = plan.rank[start : start + levels * size].reshape(levels, size)
    apart = np.flatnonzero(ranks[:, low] != ranks[:, high])
    return np.asarray(ranks[int(apart[0])])
