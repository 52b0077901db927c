"""A proven lower bound on the loss of every partition that satisfies a policy.

**Theorem.** Let F be a family of boxes such that every class C that satisfies the policy lies in some box B of F with
loss(B) ≤ loss(C). Let u ≥ 0 be a number per record such that for every B in F that could hold a good class (at least k
records, and p different values where the policy asks for them) the k largest u in B sum to at most k·loss(B). Then Σ u is at
most the total loss of any partition into good classes.

*Proof.* A good class C has at least k records, so its u sum to at most |C|/k times its k largest u, hence at most |C|/k times
the k largest u in its box B, hence at most |C|·loss(B) ≤ |C|·loss(C). Add over the classes. ∎

The family is that of `shoal.measures.boxes`. Where it has too many boxes the attributes are taken in groups: a partition
loses at least what it loses on each, so the bounds of the groups add up to one. Such tables are wide, and then how far records
are apart often proves more (`shoal.measures.apart`): the better of both counts. k and p are what the policy implies,
whichever models it is made of (`shoal.measures.conditions`).

The *cell bound* gives each record the loss of the cheapest box that holds it and a good class. *Raise and project* starts
there: in each round all u are raised, and pushed back onto the boxes that they break, which a search finds, the worst of each
cell. Boxes remember how far they pushed (Hildreth 1957), so that a push that turns out too far is taken back: the u approach
the best there are, and what the boxes push together, divided by the raise, is the best fractional partition. What comes out
is scaled back where a box is still broken, so that it is feasible whatever the rounds did, and rounded down to whole ticks of
2⁻⁴⁰; `shoal.measures.certificate` tests every box in whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import ConfigError, InternalError, shown
from shoal.measures.apart import Way, prospect
from shoal.measures.boxes import Family, Floats, family
from shoal.measures.certificate import TICKS, check_certificate
from shoal.policy import Rules
from shoal.progress import Progress, Told
from shoal.space import Space

if TYPE_CHECKING:
    from shoal.kernels.bound_rows import Rows

__all__ = ["check_certificate", "loss_bound"]

Effort = Literal["quick", "fast", "thorough"] | float

# Points that a second can look at, on one core of an ordinary machine; finding the cells costs so much a place.
SECOND, PLACE_WORK = 90_000_000, 6
# … and a round costs this much whatever it looks at.
ROUND_WORK = 100_000
SECONDS = {"quick": 0.0, "fast": 2.0, "thorough": 60.0}
# Places of points in cells: as many as the time allows, but no more than fit some gigabytes.
LEAST_PLACES, MOST_PLACES, PLACES_A_SECOND = 8_000_000, 120_000_000, 4_000_000
# By how much a round raises u, in units of itself, where nothing pushes back; and what counts as no u at all.
RAISE, FLOOR = 0.3, 0.02
# Sweeps over all boxes known in a round, before and after new ones are looked for.
BEFORE, AFTER = 10, 2
# A box that does not push any more is forgotten after at most so many rounds.
FORGET = 5
# A box may be broken by this much a record before it is listed; rounds end when u has grown by less than this share in so
# many.
LISTED, SETTLED, PATIENCE = 1e-6, 1e-5, 5
# Where boxes leave attributes out, distances are all that is looked at if they promise so many times the cell bound; if they
# promise more at all they may take this share of the time.
CLEARLY, SHARE = 1.4, 0.2
# Rounding cannot break a box that keeps so much room.
MARGIN = 1e-9


@dataclass(frozen=True, eq=False)
class Part:
    """A bound on what some attributes lose: which, the number a record that proves it, and by which theorem."""

    attributes: tuple[int, ...]
    u: Floats
    by: Literal["boxes"] | Way = "boxes"


@dataclass(frozen=True, eq=False)
class Bound:
    """A lower bound: `total` over all records, `mean` per cell of the table, and what proves it, a part a group of attributes."""

    total: float
    mean: float
    parts: tuple[Part, ...]

    @property
    def u(self) -> Floats:
        """The number a record, all parts together."""
        return np.asarray(np.sum([part.u for part in self.parts], axis=0))


def loss_bound(
    codes: NDArray[np.int32],
    space: Space,
    rules: Rules,
    *,
    effort: Effort = "fast",
    progress: Told | None = None,
) -> Bound:
    """No partition that satisfies the rules loses less than this (docs/algorithms.md#a-lower-bound-with-its-proof).

    - `codes`, `space`, `rules`: of a table: `data.codes`, `data.space("ncp")`, `data.rules(policy)`.
    - `effort`: "fast" (the default, about two seconds), "thorough" (a minute), a number of nominal seconds, or "quick", the cell
      bound alone. Seconds are counted in operations: the same table gives the same bound on every machine.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    Returns the bound in total and per cell of the table, and the number a record that proves it.

    >>> import polars as pl, shoal
    >>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": [20, 30, 40, 60]}), {"age": {"role": "quasi"}})
    >>> rules = data.rules(shoal.Policy((shoal.KAnonymity(2),)))
    >>> bound = loss_bound(data.codes, data.space("ncp"), rules)
    >>> round(bound.mean, 4)
    0.375
    >>> check_certificate(data.codes, data.space("ncp"), rules, bound)
    True
    """
    told, seconds = Progress.of(progress), _seconds(effort)
    most = int(min(MOST_PLACES, max(LEAST_PLACES, PLACES_A_SECOND * seconds)))
    everything, work = tuple(range(len(space.domains))), int(SECOND * seconds)
    with told.stage("listing boxes", 0.2) as part:
        groups = [family(codes, space, rules, everything, most, part)] if everything else []
        work -= _listing_work(groups)
        whole = not groups or groups[0][0] == everything
        apart = None if whole or work <= 0 else prospect(codes, space, rules.k, part)
        work -= apart.spent if apart else 0
        cells = _cell_bound(groups[0][1], part) if apart else 0.0
        promised = min(1.0, max(0, work) / max(1, apart.price)) * apart.total if apart else 0.0
        clear = promised > CLEARLY * cells
        if not clear:
            others = _other_groups(codes, space, rules, groups, most, part)
            groups += others
            work -= _listing_work(others)
    found: list[tuple[Part, ...]] = []
    with told.stage("raising the bound") as part:
        if apart and (clear or (promised > cells and apart.price <= SHARE * work)):
            found.append((Part(everything, _in_ticks(apart.numbers(work, part)), apart.way),))
            work -= apart.price
        if not clear:
            found.append(tuple(_raised(groups, work, part)))
    parts = max(found, key=_total)
    total = _total(parts)
    weight = exact.total(space.weights)
    mean = total / (len(codes) * weight) if weight and len(codes) else 0.0
    return Bound(total, float(np.nextafter(mean, 0.0)), parts)


Group = tuple[tuple[int, ...], Family]


def _listing_work(groups: Sequence[Group]) -> int:
    """Operations that it took to find the cells of some groups."""
    return PLACE_WORK * sum(len(found.cells.points) for _, found in groups)


def _total(parts: Sequence[Part]) -> float:
    """The sum of all numbers, rounded down: beyond 2⁵³ ticks the nearest float may be more than they come to."""
    ticks = sum(int(one) for own in parts for one in (own.u * TICKS).astype(np.int64))
    total = ticks / int(TICKS)
    return total if int(total * TICKS) <= ticks else math.nextafter(total, 0.0)


def _cell_bound(found: Family, progress: Progress) -> float:
    u = _Search(found, progress).cheapest()
    return float(exact.weighed(u, found.size.astype(np.float64)))


def _other_groups(
    codes: NDArray[np.int32], space: Space, rules: Rules, groups: Sequence[Group], most: int, progress: Progress
) -> list[Group]:
    """Groups of the attributes that are in none yet."""
    found: list[Group] = []
    left = [a for a in range(len(space.domains)) if not any(a in taken for taken, _ in groups)]
    while left:
        found.append(family(codes, space, rules, left, most, progress))
        left = [a for a in left if a not in found[-1][0]]
    return found


def _raised(groups: Sequence[Group], work: int, progress: Progress) -> Iterator[Part]:
    """The bound of each group, which get their share of the operations."""
    places = [len(found.cells.points) for _, found in groups]
    for (attributes, found), own in zip(groups, places, strict=True):
        with progress.stage(weight=1 / len(groups)) as share:
            u = _Search(found, share).run(work * own // max(1, sum(places)))
        yield Part(attributes, u[found.of_record])


def _seconds(effort: Effort) -> float:
    if isinstance(effort, str):
        if effort not in SECONDS:
            raise ConfigError(
                f'effort = {shown(effort)} is not allowed; it must be "quick", "fast", "thorough" or seconds.'
            )
        return SECONDS[effort]
    return max(0.0, float(effort))


@dataclass(frozen=True, eq=False)
class _Search:
    """The rounds over one family."""

    family: Family
    progress: Progress

    def run(self, budget: int) -> Floats:
        """u per point, feasible, after about so many points were looked at."""
        u = self.cheapest()
        # k records of a box each have at most its loss: nothing to mend.
        found = [_in_ticks(u)]
        if budget > 0 and (u > 0).any():
            # Rounds that had to end early may leave u that are scaled back to less than they began with.
            found.append(_in_ticks(self.mended(self.rounds(u, budget))))
        return max(found, key=lambda one: float(exact.weighed(one, self.family.size.astype(np.float64))))

    def cheapest(self) -> Floats:
        """The cell bound."""
        from shoal.kernels import bounds as kernel

        u = np.full(len(self.family.size), np.inf)
        for begin, stop in self.family.stretches(1, self.progress):
            kernel.cell_bound(self.family.cells, self.family.axis, u, begin, stop)
        u[~np.isfinite(u)] = 0.0
        return u

    def rounds(self, u: Floats, budget: int) -> Floats:
        """Raise and project until the budget is used up or nothing moves any more."""
        from shoal.kernels import bound_rows as kernel

        size, k = self.family.size, self.family.k
        highest = k * u / np.minimum(size, k)
        weights = size.astype(np.float64)
        give = np.where(size < k, np.maximum(u, FLOOR) / weights, 0.0)
        pool, back = _no_rows(), np.zeros(len(u))
        work, reached, since, number = 0, 0.0, 0, 0
        looked = 0
        # Mending looks at about as much as two rounds do.
        while work + 2 * looked < budget and since < PATIENCE:
            kernel.covered(pool, back)
            u = np.clip(u + give * (RAISE * weights - back), 0.0, highest)
            for _ in range(BEFORE):
                kernel.project(pool, give, highest, u)
                self.progress.check()
            fresh, looked = self.broken(u)
            pool = _joined(pool, fresh)
            for _ in range(AFTER):
                kernel.project(pool, give, highest, u)
                self.progress.check()
            work += ROUND_WORK + looked + (BEFORE + AFTER) * len(pool.points)
            number += 1
            if number % FORGET == 0:
                pool = _pushing(pool)
            total = float(exact.weighed(u, weights))
            since = since + 1 if total < reached * (1 + SETTLED) and len(fresh.cost) <= len(pool.cost) // 20 else 0
            reached = max(reached, total)
            self.progress(min(1.0, work / budget))
        return u

    def broken(self, u: Floats) -> tuple[Rows, int]:
        """The worst broken box of each cell as rows, and how many points were looked at."""
        from shoal.kernels import bound_rows, bounds

        found, size, k, looked = self.family, self.family.size, self.family.k, 0
        boxes = [np.zeros((0, 2), dtype=np.int64)]
        for begin, stop in found.stretches(8, self.progress, below=found.highest(u)):
            places = np.empty((stop - begin, 2), dtype=np.int64)
            looked += bounds.worst_boxes(found.cells, found.axis, size, k, u, LISTED * k, (begin, stop), places)
            boxes.append(places)
        places = np.concatenate(boxes)
        at = np.flatnonzero(places[:, 0] >= 0)
        chosen = places[at]
        start = np.zeros(len(chosen) + 1, dtype=np.int64)
        room = len(chosen) * min(k, len(size)) + 1
        points, share = np.empty(room, dtype=np.int32), np.empty(room)
        bound_rows.fill_rows(found.cells, chosen, size, k, u, start, points, share)
        used = int(start[-1])
        slots = found.axis.slot[found.cells.points[chosen - [0, 1]]].astype(np.int64)
        spans = np.clip(found.axis.far[slots[:, 1]] - found.axis.near[slots[:, 0]], 0.0, 1.0)
        cost = k * (found.cells.loss[at] + found.axis.weight * spans)
        return bound_rows.Rows(start, points[:used].copy(), share[:used].copy(), cost, np.zeros(len(at))), looked

    def mended(self, u: Floats) -> Floats:
        """u scaled back until no box is broken."""
        from shoal.kernels import bounds as kernel

        found = self.family
        for _ in range(30):
            factor = np.ones(len(u))
            for begin, stop in found.stretches(8, self.progress, below=found.highest(u)):
                kernel.mend(found.cells, found.axis, found.size, found.k, u, factor, begin, stop)
            if (factor >= 1).all():
                return u
            u = u * factor
        raise InternalError("boxes stay broken however often u is scaled back")


def _in_ticks(u: Floats) -> Floats:
    """Rounded down to whole ticks, with room for what rounding did before."""
    return np.asarray(np.floor(u * (1 - MARGIN) * TICKS) / TICKS)


def _no_rows() -> Rows:
    from shoal.kernels.bound_rows import Rows

    return Rows(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0), np.zeros(0), np.zeros(0))


def _joined(pool: Rows, fresh: Rows) -> Rows:
    from shoal.kernels.bound_rows import Rows

    start = np.concatenate([pool.start, pool.start[-1] + fresh.start[1:]])
    rest = zip(pool[1:], fresh[1:], strict=True)
    return Rows(start, *(np.concatenate([np.asarray(old), np.asarray(new)]) for old, new in rest))


def _pushing(pool: Rows) -> Rows:
    """The rows that push."""
    from shoal.kernels.bound_rows import Rows

    keep, lengths = pool.push > 0, np.diff(pool.start)
    inside = np.repeat(keep, lengths)
    start = np.concatenate([[0], np.cumsum(lengths[keep])]).astype(np.int64)
    return Rows(start, pool.points[inside], pool.share[inside], pool.cost[keep], pool.push[keep])
