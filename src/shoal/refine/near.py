"""The tuples nearest to each: all of them where that can be afforded, most of them where not.

Near tuples are exact where a tree of bounding states rules most others out: few attributes, or few tuples. How much that would
take is tried on a few of them first. Where it would take more than its share of the search, random trees and the neighbours of
neighbours (`kernels.box_grove`) find most of the nearest at a price that is known beforehand.
"""

from __future__ import annotations

import os
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal.progress import SLICE, Progress, side_by_side
from shoal.refine.effort import breadth, remoteness
from shoal.space import Space

if TYPE_CHECKING:
    from shoal.kernels.box_grove import Tree
    from shoal.kernels.box_types import Gauge

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

# So many near tuples are known of each; with half of them a fast search of Adult with k = 5 loses 0.4 % more.
NEAR = 32
# Where a class has so many records, and a search so many operations for each record, so many times as many: with k = 25 and 50 a
# thorough search of Adult loses 0.3 to 0.5 % less, and with k = 100 one of two minutes 0.7 %; a fast one would lose 1.4 % more.
MANY = ((75, 50_000, 4), (25, 0, 2))
# Near tuples are looked for in stretches of so many, on all cores; the first of a stretch has no neighbour to start from.
CHUNK = 2_000
# So many tuples below the last nodes of the tree: to look at a few costs less than to go a level deeper.
LEAF = 8
# Operations of the search (`refine.effort`) that a step down the tree of bounding states takes, and one tuple that meets another.
STEP_WORK, MEETING_WORK = 0.5, 3
# Tuples that the exact search is tried on, in stretches of so many: to know its price to a tenth or so is enough.
TRIED, TOGETHER = 128, 8
# Steps that nobody runs out of, and tuples of which all can always meet.
ENDLESS, FEW = 2**62, 1_000
# The share of the search that near tuples may take: the better they are, the less there is left to use them.
SHARE = 0.35
# Tuples in a leaf of a random tree; trees, and how often neighbours are asked for theirs, from what can be afforded at
# least to what is worth it: on 30,000 answers to 24 questions, four and one find 0.84 of the eight nearest, eight and two 0.98.
CROWD = 48
GROVES = ((2, 1), (4, 1), (8, 2))
# Of so many near tuples of each of so many near tuples one is likely to be nearer than those that a tree has found.
ASKED = 10


def near_count(k: int, operations: int) -> int:
    """How many near tuples of each a search should know that has so many operations for each record.

    >>> near_count(5, 200_000), near_count(25, 200_000), near_count(100, 200_000), near_count(100, 40_000)
    (32, 64, 128, 64)
    """
    return NEAR * next((times for least, enough, times in MANY if k >= least and operations >= enough), 1)


def near_tuples(
    gauge: Gauge, tuples: Codes, nodes: Ints, budget: int, seed: int, progress: Progress, *, width: int = NEAR
) -> tuple[Codes, int]:
    """The `width` tuples nearest to each, nearest first, and the operations that it took to find them.

    `nodes` is the tree above the tuples (`tree_order`), and `budget` what the whole search may take.
    """
    m = len(tuples)
    width = min(width, max(1, m - 1))
    far = remoteness(m, tuples.shape[1])
    price = far * _exact_price(gauge, tuples, nodes, width)
    if price <= SHARE * budget:
        return _exact(gauge, tuples, nodes, width, progress), int(price)
    for trees, rounds in reversed(GROVES):
        price = far * MEETING_WORK * m * (trees * (2 * _levels(m, CROWD) + CROWD) + rounds * ASKED**2)
        if price <= SHARE * budget:
            break
    return _grove(gauge, tuples, (trees, rounds), width, seed, progress), int(price)


def _levels(m: int, leaf: int) -> int:
    """How often so many tuples are halved until a leaf has at most so many."""
    return (-(-m // leaf) - 1).bit_length()


def _exact_price(gauge: Gauge, tuples: Codes, nodes: Ints, width: int) -> float:
    """The operations that the exact search takes, from a few stretches of tuples."""
    from shoal.kernels.box_near import nearest

    m, attributes = tuples.shape
    if m <= FEW:
        return 0.0
    near = np.zeros((m, width), dtype=np.int32)
    left = np.array([ENDLESS])
    for begin in np.linspace(0, m - TOGETHER - 1, TRIED // TOGETHER).astype(np.int64).tolist():
        # The first of a stretch has no neighbour before it, takes longer, and is not counted.
        before = int(left[0])
        nearest(gauge, tuples, nodes, near, (begin, begin, begin + 1), left)
        left[0] = before
        nearest(gauge, tuples, nodes, near, (begin, begin + 1, begin + 1 + TOGETHER), left)
    return float(STEP_WORK * (ENDLESS - int(left[0])) / TRIED * m / breadth(attributes))


def _exact(gauge: Gauge, tuples: Codes, nodes: Ints, width: int, progress: Progress) -> Codes:
    """The tuples nearest to each, a stretch of tuples after the other, on all cores."""
    from shoal.kernels.box_near import nearest

    near = np.zeros((len(tuples), width), dtype=np.int32)

    def stretch(edge: tuple[int, int], part: Progress) -> None:
        at, end = edge
        while at < end:
            at = nearest(gauge, tuples, nodes, near, (edge[0], at, end), np.array([SLICE]))
            part((at - edge[0]) / (end - edge[0]))

    side_by_side(stretch, _stretches(len(tuples)), progress, threads=os.cpu_count() or 1)
    return near


def _stretches(m: int) -> list[tuple[int, int]]:
    return list(pairwise([*range(0, m, CHUNK), m]))


def _grove(gauge: Gauge, tuples: Codes, size: tuple[int, int], width: int, seed: int, progress: Progress) -> Codes:
    """Most of the tuples nearest to each, from so many random trees and rounds of asking, on all cores."""
    from shoal.kernels.box_grove import ask, meet

    m, (count, rounds) = len(tuples), size
    near = np.repeat(np.arange(m, dtype=np.int32)[:, None], width, axis=1)
    cost = np.full((m, width), np.inf, dtype=np.float32)
    together = partial(side_by_side, threads=os.cpu_count() or 1)
    with progress.stage(weight=0.4) as part:
        trees = together(lambda number, told: _random_tree(gauge, tuples, [seed, number], told), range(count), part)

    def met(edge: tuple[int, int], part: Progress) -> None:
        for tree in trees:
            meet(gauge, tuples, tree, near, cost, edge)
            part.check()

    with progress.stage(weight=0.5) as part:
        together(met, _stretches(m), part)
    for _ in range(rounds):
        known = near[:, :ASKED].copy()

        def asked(edge: tuple[int, int], part: Progress, known: Codes = known) -> None:
            ask(gauge, tuples, known, near, cost, edge)

        with progress.stage(weight=0.5) as part:
            together(asked, _stretches(m), part)
    return near


def _random_tree(gauge: Gauge, tuples: Codes, seed: list[int], progress: Progress) -> Tree:
    """The tuples halved again and again, each time by which of two of them is nearer."""
    from shoal.kernels.box_grove import Tree, halve

    m = len(tuples)
    random = np.random.default_rng(seed)
    order, sides, levels = random.permutation(m).astype(np.int32), np.empty(m), _levels(m, CROWD)
    for level in range(levels):
        edges = (np.arange(2**level + 1) * m) >> level
        halve(gauge, tuples, order, sides, edges, random.integers(0, 2**62, (2**level, 2)))
        progress.check()
    place = np.empty(m, dtype=np.int32)
    place[order] = np.arange(m, dtype=np.int32)
    return Tree(order, place, (np.arange(2**levels + 1) * m) >> levels)


def tree_order(space: Space, codes: NDArray[np.int32], progress: Progress) -> tuple[Ints, Ints]:
    """An order of the tuples in which near ones are near, and the nodes of the tree above it (see `nearest`)."""
    m = len(codes)
    levels = _levels(m, LEAF)
    order = np.arange(m)
    nodes = []
    for level in range(levels + 1):
        progress.check()
        edges = (np.arange(2**level + 1) * m) >> level
        states = space.states(codes, order, edges[:-1])
        nodes.append(np.concatenate([states, edges[:-1, None], edges[1:, None]], axis=1))
        if level < levels:
            widest = np.argmax(space.losses(states) * space.weights, axis=1)
            node = np.repeat(np.arange(2**level), np.diff(edges))
            order = order[np.lexsort((codes[order, widest[node]], node))]
    return order, np.concatenate(nodes).astype(np.int64)
