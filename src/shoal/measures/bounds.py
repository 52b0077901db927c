"""A proven lower bound on the loss of every partition that satisfies a policy.

**Theorem.** Let F be a family of boxes such that every class C that satisfies the policy lies in some box B of F with
loss(B) ≤ loss(C). Let u ≥ 0 be a number per record such that for every B in F that could hold a good class (at least k
records, and p different values where the policy asks for them) the k largest u in B sum to at most k·loss(B). Then Σ u is at
most the total loss of any partition into good classes.

*Proof.* A good class C has at least k records, so its u sum to at most |C|/k times its k largest u, hence at most |C|/k times
the k largest u in its box B, hence at most |C|·loss(B) ≤ |C|·loss(C). Add over the classes. ∎

The family: for a taxonomy every node, for the *window* attribute (the number with most values) every range of values, for other
numbers every range of a few bins, its loss measured between the bins' inner ends, and for categories without a taxonomy one
value at no loss or any number of values at the loss of two: each of these is at most the loss of the class, as F demands.

The *cell bound* gives each record the loss of the cheapest box that holds it and a good class. *Dual ascent* starts there and
moves each u towards the largest value its boxes allow. What comes out is scaled back where a box is broken, so that it is
feasible whatever the ascent did; `check_certificate` tests every box again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import UnsupportedError
from shoal.measures.conditions import distinct_demands
from shoal.policy import Rules
from shoal.progress import SLICE, Progress, Told
from shoal.space import Interval, Set, Space, Tree

if TYPE_CHECKING:
    from shoal.kernels.bound_cells import Cells, Demand
    from shoal.kernels.bounds import Axis

__all__ = ["check_certificate", "loss_bound"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Ranges of so many bins stand for the ranges of a number that is not the window attribute.
BINS = 5
# How much of the slack is given away in each sweep: a little at first, so that no record takes what another needs more.
STEPS = (0.3, 0.3, 0.3, 0.3, 1.0)
# A record of a large class may look at very many boxes; beyond so many steps it moves by what is certain already.
PATIENCE = 2_000
# Up to this k there are few enough of them to look at all.
PATIENT_UP_TO = 10
# Places of records in boxes: some gigabytes.
MOST_PLACES = 80_000_000


@dataclass(frozen=True, eq=False)
class Bound:
    """A lower bound: `total` over all records, `mean` per cell of the table, `u` per record (the certificate)."""

    total: float
    mean: float
    u: Floats


def loss_bound(
    codes: NDArray[np.int32],
    space: Space,
    rules: Rules,
    *,
    effort: Literal["quick", "full"] = "quick",
    progress: Told | None = None,
) -> Bound:
    """No partition that satisfies the rules loses less than this (docs/algorithms.md#a-lower-bound-with-its-proof).

    - `codes`, `space`, `rules`: of a table: `data.codes`, `data.space("ncp")`, `data.rules(policy)`.
    - `effort`: "quick" (the default) is the cell bound, "full" adds the dual ascent.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    Returns the bound in total and per cell of the table, and the number a record that proves it.

    >>> import polars as pl, shoal
    >>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": [20, 30, 40, 60]}), {"age": {"role": "quasi"}})
    >>> rules = data.rules(shoal.Policy((shoal.KAnonymity(2),)))
    >>> bound = loss_bound(data.codes, data.space("ncp"), rules)
    >>> round(bound.mean, 4)
    0.3125
    >>> check_certificate(data.codes, data.space("ncp"), rules, bound.u)
    True
    """
    from shoal.kernels import bounds as kernel

    told = Progress.of(progress)
    with told.stage("listing boxes", 0.1 if effort == "full" else 0.4) as part:
        family = _family(codes, space, rules, part)
    u = np.full(len(family.size), np.inf)
    with told.stage("bounding cells", 0.1) as part:
        for begin, stop in _stretches(family.cells, 1, part):
            kernel.cell_bound(family.cells, family.axis, u, begin, stop)
    u[~np.isfinite(u)] = 0.0
    if effort == "full":
        with told.stage("ascending", 0.7) as part:
            u = _ascended(family, u, part)
    with told.stage("mending") as part:
        u = _mended(family, u, part)
    per_record = u[family.of_record]
    total, weight = exact.total(per_record), exact.total(space.weights)
    return Bound(total, total / (len(codes) * weight) if weight else 0.0, per_record)


def check_certificate(
    codes: NDArray[np.int32], space: Space, rules: Rules, u: Floats, *, progress: Told | None = None
) -> bool:
    """Whether `u`, a number a record, obeys every box of the family: a separate walk over all boxes, without any of the
    ascent's shortcuts.

    `codes`, `space`, `rules` and `progress` are as for `loss_bound`. Returns whether Σ u is proven to be a lower bound.

    >>> import numpy as np, polars as pl, shoal
    >>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": [20, 30]}), {"age": {"role": "quasi"}})
    >>> rules = data.rules(shoal.Policy((shoal.KAnonymity(2),)))
    >>> check_certificate(data.codes, data.space("ncp"), rules, np.array([1.5, 1.5]))
    False
    """
    told = Progress.of(progress)
    with told.stage("listing boxes", 0.5) as part:
        family = _family(codes, space, rules, part)
    highest = np.full(len(family.size), -np.inf)
    np.maximum.at(highest, family.of_record, u)
    if (u < -1e-12).any():
        return False
    with told.stage("testing boxes") as part:
        factor = _factors(family, highest, part)
    return bool((factor >= 1 - 1e-9).all())


@dataclass(frozen=True, eq=False)
class _Family:
    cells: Cells
    axis: Axis
    size: Ints
    k: int
    of_record: Ints


def _family(codes: NDArray[np.int32], space: Space, rules: Rules, progress: Progress) -> _Family:
    """Distinct tuples along the window attribute, and the cells that the other attributes' states make of them."""
    from shoal.kernels import bound_cells as kernel

    k = rules.k
    points, of_record = np.unique(codes, axis=0, return_inverse=True)
    of_record = of_record.ravel().astype(np.int64)
    size = np.bincount(of_record, minlength=len(points)).astype(np.int64)
    window = _window(space, points)
    slots = points[:, window].astype(np.int32) if window >= 0 else np.zeros(len(points), dtype=np.int32)
    axis = _axis(space, window, slots)
    start = np.array([0, len(points)], dtype=np.int64)
    members = np.argsort(slots, kind="stable").astype(np.int32)
    loss = np.zeros(1)
    random = np.random.default_rng(0).integers(0, 2**63, len(points), dtype=np.uint64)
    others = [a for a in range(len(space.domains)) if a != window]
    for a in sorted(others, key=lambda a: len(np.unique(points[:, a]))):
        progress.check()
        first, states, losses = _states(space, a, points[:, a])
        code = np.ascontiguousarray(points[:, a], dtype=np.int32)
        cells, places = kernel.count_refined(start, members, size, code, first, states, len(losses), k)
        if places > MOST_PLACES:
            raise UnsupportedError(
                "The lower bound looks at every box of the table, and this one has too many; "
                "ask for it on fewer quasi-identifiers or on a sample."
            )
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
    return _Family(kernel.Cells(start, members, loss, reach), axis, size, k, of_record)


def _window(space: Space, points: NDArray[np.int32]) -> int:
    numbers = [a for a, domain in enumerate(space.domains) if isinstance(domain, Interval)]
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


def _ascended(family: _Family, u: Floats, progress: Progress) -> Floats:
    from shoal.kernels import bounds as kernel

    cells, size, k = family.cells, family.size, family.k
    begin_of, cell_of, place_of = kernel.invert(cells, len(size))
    sums, least = np.zeros(len(cells.loss)), np.zeros(len(cells.loss))
    binding = begin_of[:-1].copy()
    ceiling = k * u / np.minimum(size, k)
    u = u.copy()
    patience = 10**9 if k <= PATIENT_UP_TO else PATIENCE
    for fraction in STEPS:
        for begin, stop in _stretches(cells, k, progress):
            kernel.top_sums(cells, size, u, k, sums, least, begin, stop)
        order = np.lexsort((np.arange(len(u)), u))
        order, at = order[ceiling[order] > u[order] + 1e-12].astype(np.int64), np.zeros(2, dtype=np.int64)
        with progress.stage(weight=1 / len(STEPS)) as part:
            while at[kernel.NEXT] < len(order):
                kernel.ascend(
                    cells, family.axis, size, k, begin_of, cell_of, place_of, ceiling, binding, order, fraction, patience,
                    u, sums, least, at, int(at[kernel.STEPS]) + SLICE,
                )  # fmt: skip
                part(at[kernel.NEXT] / len(order))
    return u


def _mended(family: _Family, u: Floats, progress: Progress) -> Floats:
    """u scaled back until no box is broken; a hair below, so that rounding breaks none either."""
    for _ in range(20):
        factor = _factors(family, u, progress)
        if (factor >= 1).all():
            break
        u = u * factor
    return np.asarray(u * (1 - 1e-12))


def _factors(family: _Family, u: Floats, progress: Progress) -> Floats:
    from shoal.kernels import bounds as kernel

    cells, size, k, factor = family.cells, family.size, family.k, np.ones(len(u))
    sums, least = np.zeros(len(cells.loss)), np.zeros(len(cells.loss))
    for begin, stop in _stretches(cells, k, progress):
        kernel.top_sums(cells, size, u, k, sums, least, begin, stop)
    for part in _stretches(cells, k, progress):
        kernel.mend(cells, family.axis, size, k, u, sums, factor, part)
    return factor


def _stretches(cells: Cells, cost: int, progress: Progress) -> Iterator[tuple[int, int]]:
    """Stretches of cells with about the work of a slice each, where a place costs so many steps."""
    marks = np.arange(0, int(cells.start[-1]), max(1, SLICE // (8 * cost)))
    edges = np.unique(np.append(np.searchsorted(cells.start, marks), len(cells.loss)))
    for begin, stop in pairwise(edges.tolist()):
        progress.check()
        yield begin, stop
