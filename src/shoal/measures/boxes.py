"""The boxes of a table that `shoal.measures.bounds` looks at: distinct tuples, states of attributes, and the cells they make.

The family: for a taxonomy every node, for the *window* attribute (the number with most values) every range of values, for other
numbers every range of a few bins, its loss measured between the bins' inner ends, and for categories without a taxonomy one
value at no loss or any number of values at the loss of two. Each of these is at most the loss of a class that it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import UnsupportedError
from shoal.measures.conditions import distinct_demands
from shoal.policy import Rules
from shoal.progress import SLICE, Progress
from shoal.space import Interval, Set, Space, Tree

if TYPE_CHECKING:
    from shoal.kernels.bound_cells import Cells, Demand
    from shoal.kernels.bounds import Axis

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Ranges of so many bins stand for the ranges of a number that is not the window attribute.
BINS = 5


@dataclass(frozen=True, eq=False)
class Family:
    """The cells of a table's distinct tuples (*points*), each of which stands for `size` records."""

    cells: Cells
    axis: Axis
    size: Ints
    k: int
    of_record: Ints

    def stretches(self, cost: int, progress: Progress, *, below: float = np.inf) -> Iterator[tuple[int, int]]:
        """Stretches of cells with about the work of a slice each, where a place costs so many steps.

        Only cells with a loss below the one given; they are in that order.
        """
        cells = int(np.searchsorted(self.cells.loss, below))
        start = self.cells.start[: cells + 1]
        marks = np.arange(0, int(start[-1]), max(1, SLICE // (8 * cost)))
        edges = np.unique(np.append(np.searchsorted(start, marks), cells))
        for begin, stop in pairwise(edges.tolist()):
            progress.check()
            yield begin, stop

    def highest(self, u: Floats) -> float:
        """The mean of the k largest u: a box that loses more cannot be broken."""
        order = np.argsort(-u, kind="stable")
        before = np.cumsum(self.size[order]) - self.size[order]
        taken = np.clip(self.k - before, 0, self.size[order])
        return float(exact.weighed(u[order], taken.astype(np.float64))) / self.k * (1 + 1e-9)


def family(
    codes: NDArray[np.int32], space: Space, rules: Rules, attributes: Sequence[int], most: int, progress: Progress
) -> tuple[tuple[int, ...], Family]:
    """The cells of as many of these attributes as make at most `most` places of points in cells, and which these are.

    The window attribute is among them, and of the others those with fewest values.
    """
    taken = list(attributes)
    found = None
    while found is None:
        taken, found = _cells(codes, space, rules, taken, most, progress)
    return tuple(sorted(taken)), found


def _cells(
    codes: NDArray[np.int32], space: Space, rules: Rules, attributes: list[int], most: int, progress: Progress
) -> tuple[list[int], Family | None]:
    """Distinct tuples along the window attribute, and the cells that the other attributes' states make of them.

    Where points would have too many places in cells, the attributes with which they have not, and no cells.
    """
    from shoal.kernels import bound_cells as kernel

    k = rules.k
    points, of_record = _points(codes, attributes)
    size = np.bincount(of_record, minlength=len(points)).astype(np.int64)
    window = _window(space, points, attributes)
    slots = points[:, window].astype(np.int32) if window >= 0 else np.zeros(len(points), dtype=np.int32)
    axis = _axis(space, window, slots)
    start = np.array([0, len(points)], dtype=np.int64)
    members = np.argsort(slots, kind="stable").astype(np.int32)
    loss = np.zeros(1)
    random = np.random.default_rng(0).integers(0, 2**63, len(points), dtype=np.uint64)
    taken = [window] if window >= 0 else []
    others = [a for a in attributes if a != window]
    for a in sorted(others, key=lambda a: (len(np.unique(points[:, a])), a)):
        progress.check()
        first, states, losses = _states(space, a, points[:, a])
        code = np.ascontiguousarray(points[:, a], dtype=np.int32)
        cells, places = kernel.count_refined(start, members, size, code, first, states, len(losses), k)
        if places > most:
            if not taken:
                raise UnsupportedError(
                    "The lower bound looks at every box of the table, and this one has too many; "
                    "ask for it on a sample."
                )
            return taken, None
        taken.append(a)
        progress.check()
        start, members, loss = kernel.refine(start, members, loss, size, code, first, states, losses, k, cells, places)
        progress.check()
        prints = kernel.fingerprints(start, members, random)
        kept = np.flatnonzero(kernel.keep_cheapest(start, members, prints, np.lexsort((loss, prints))))
        kept = kept[np.argsort(loss[kept], kind="stable")]
        progress.check()
        start, members = kernel.select_cells(start, members, kept)
        loss = loss[kept]
    reach = kernel.find_reach(start, members, size, _demand(rules, of_record, len(points), k))
    return taken, Family(kernel.Cells(start, members, loss, reach), axis, size, k, of_record)


def _points(codes: NDArray[np.int32], attributes: Sequence[int]) -> tuple[NDArray[np.int32], Ints]:
    """The distinct tuples of some attributes, with the first record's codes of the others, and the tuple of each record."""
    key = np.zeros(len(codes), dtype=np.int64)
    for a in attributes:
        key = np.unique(key * (int(codes[:, a].max(initial=0)) + 1) + codes[:, a], return_inverse=True)[1].ravel()
    _, first = np.unique(key, return_index=True)
    return codes[first], key.astype(np.int64)


def _window(space: Space, points: NDArray[np.int32], attributes: Sequence[int]) -> int:
    numbers = [a for a in attributes if isinstance(space.domains[a], Interval)]
    return max(numbers, key=lambda a: (len(np.unique(points[:, a])), -a), default=-1)


def _axis(space: Space, window: int, slots: NDArray[np.int32]) -> Axis:
    """Positions on the window attribute; missing lies where no number is further from it than the whole range."""
    from shoal.kernels.bounds import Axis

    if window < 0 or space.domains[window].size == space.domains[window].has_missing:
        return Axis(slots, np.zeros(1), np.zeros(1), 0.0)
    domain = space.domains[window]
    if not isinstance(domain, Interval):
        raise UnsupportedError("the window attribute has to be a number.")
    places = (domain.values - domain.values[0]) / domain.width if domain.width > 0 else np.zeros(len(domain.values))
    if domain.has_missing:
        places = np.append(places, 1.0)
    return Axis(slots, places, places, float(space.weights[window]))


def _states(space: Space, a: int, column: NDArray[np.int32]) -> tuple[Ints, NDArray[np.int32], Floats]:
    """Per code the states that hold it, and each state's loss; states that add no occurring value are left out."""
    domain, weight = space.domains[a], float(space.weights[a])
    occurring = np.unique(column)
    holding: list[list[int]] = [[] for _ in range(domain.size)]
    losses: list[float] = []

    def state(codes: NDArray[Any], loss: float) -> None:
        for code in codes.tolist():
            holding[code].append(len(losses))
        losses.append(weight * loss)

    if isinstance(domain, Tree):
        node_losses = domain.node_losses(space.measure)
        ends = zip(domain.taxonomy.first, domain.taxonomy.last, strict=True)
        below = [occurring[(occurring >= first) & (occurring <= last)] for first, last in ends]
        children: dict[int, int] = {}
        for node in range(domain.taxonomy.nodes):
            parent = int(domain.taxonomy.parent[node])
            children[parent] = max(children.get(parent, 0), len(below[node]))
        for node in range(domain.taxonomy.nodes):
            # A node with no more values than its largest child is never cheaper than that child.
            if len(below[node]) and len(below[node]) > children.get(node, 0):
                state(below[node], float(node_losses[node]))
    elif isinstance(domain, Set):
        for code in occurring:
            state(np.array([code]), 0.0)
        if len(occurring) > 1:
            state(occurring, float(domain.size_losses(space.measure)[2]))
    else:
        _range_states(domain, occurring, state)
    first = np.concatenate([[0], np.cumsum([len(states) for states in holding])]).astype(np.int64)
    return first, np.array([s for states in holding for s in states], dtype=np.int32), np.array(losses)


def _range_states(domain: Interval, occurring: NDArray[np.int32], state: Callable[[NDArray[Any], float], None]) -> None:
    known = occurring[occurring < domain.missing_code]
    bins = np.array_split(known, min(BINS, max(1, len(known)))) if len(known) else []
    for i in range(len(bins)):
        for j in range(i, len(bins)):
            gap = float(domain.values[bins[j][0]] - domain.values[bins[i][-1]])  # of a bin with itself at most 0
            state(np.concatenate(bins[i : j + 1]), min(1.0, max(0.0, gap) / domain.width) if domain.width > 0 else 0.0)
    if len(known) < len(occurring):
        state(np.array([domain.missing_code]), 0.0)
        if len(known):
            state(occurring, 1.0)


def _demand(rules: Rules, of_record: Ints, points: int, k: int) -> Demand:
    """What a box must hold besides k records: p different values of each column the policy asks it of."""
    from shoal.kernels.bound_cells import Demand

    wanted = distinct_demands(rules)
    values: list[list[int]] = [[] for _ in range(points)]
    owner: list[int] = []
    for rule, (codes, width, _) in enumerate(wanted):
        base = len(owner)
        owner += [rule] * width
        known = codes >= 0
        pairs = np.unique(of_record[known] * width + codes[known])
        for pair in pairs.tolist():
            values[pair // width].append(base + pair % width)
    first = np.concatenate([[0], np.cumsum([len(v) for v in values])]).astype(np.int64)
    return Demand(
        k,
        first,
        np.array([v for own in values for v in own], dtype=np.int32),
        np.array(owner, dtype=np.int32),
        np.array([p for _, _, p in wanted], dtype=np.int64),
    )
