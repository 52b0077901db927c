"""Growing classes one after the other (k-member, GreedyPK), and sending left-over records to the best class.

A step of growth takes the cheapest record, or the cheapest among those that lower most what the class still lacks. What a
record does for a class depends on its sensitive values alone, so records with the same ones form a *group* and a step
asks each group once. The searches of `shoal.kernels.pool` make every step exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.hitting import deficits_after
from shoal.kernels.jit import bare, entry, inner, loop
from shoal.kernels.pool import (
    GONE,
    ZERO,
    Frontier,
    Pool,
    absorb,
    cheapest,
    furthest,
    point_cost,
    point_loss,
    pop,
    push,
    start_search,
    take,
)
from shoal.kernels.rules import HITTING, class_deficit, form_deficit
from shoal.kernels.space import TICKS, FlatSpace, begin, loss, merged_loss
from shoal.policy import FlatRules

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

SET_ASIDE = -2
"""Label of records whose class could not be finished."""

WIDE = 1024
ASKED = 128


class Needs(NamedTuple):
    """What a class must have besides its size: distinct values, and whatever `Others` say.

    `cell` is where a record of a group is counted, one column a view (-1: missing). Rule i wants `p` filled cells among
    first … last-1 and looks at `column` of `cell`; its gain is weighted as Div is (docs/models.md#hom-and-div) if `weight` is
    positive, and counts as it is if `weight` is zero.
    """

    cell: Ints
    p: Ints
    column: Ints
    first: Ints
    last: Ints
    weight: Floats
    width: int


class Others(NamedTuple):
    """Rules of any other kind, and the cell of each group under each of them (-1: none)."""

    rules: FlatRules
    cell: Ints


class Groups(NamedTuple):
    """The points of each group; the first `live` of them still have free records."""

    start: Ints
    points: Ints
    place: Ints
    live: Ints


class Open(NamedTuple):
    """The class that is being grown, between two slices of the work, and working memory; `at` is numbered SIZE … FREE."""

    state: Ints
    counts: NDArray[np.int32]
    members: Ints
    gain: Floats
    allowed: NDArray[np.bool_]
    aside: Ints
    at: Ints


SIZE, VERSION, POINT, LABEL, FREE = range(5)
"""Members of the open class, how often its state has moved, its next point (-1: to be found), its label; free records."""


def make_open(flat: FlatSpace, pool: Pool, groups: Groups, width: int, at: Ints) -> Open:
    """No class is open; `width` cells count its values."""
    return Open(
        state=np.empty(int(flat.slot[-1]), dtype=np.int64),
        counts=np.zeros(width, dtype=np.int32),
        members=np.empty(int(at[FREE]), dtype=np.int64),
        gain=np.zeros(len(groups.live)),
        allowed=np.zeros(len(groups.live), dtype=np.bool_),
        aside=np.empty((len(pool.codes), 3), dtype=np.int64),
        at=at,
    )


def make_groups(pool: Pool, count: int) -> Groups:
    """Points listed by group."""
    points = np.argsort(pool.group, kind="stable").astype(np.int64)
    live = np.bincount(pool.group, minlength=count).astype(np.int64)
    place = np.empty(len(points), dtype=np.int64)
    place[points] = np.arange(len(points))
    return Groups(np.concatenate([[0], np.cumsum(live)]).astype(np.int64), points, place, live)


@entry
def grow(
    flat: FlatSpace,
    pool: Pool,
    front: Frontier,
    groups: Groups,
    needs: Needs,
    others: Others | None,
    opened: Open,
    k: int,
    diverse_first: bool,
    from_seed: bool,
    reference: Codes,
    labels: Ints,
    enough: int,
    steps: int,
) -> None:
    """Make classes until at most `enough` records, or less than k, are free; return after about so many steps, to go on later.

    Each class starts with the record furthest from the `reference`, which becomes the last record added, or the seed.
    No records are left free when no class can be finished.
    """
    at = opened.at
    size, version, point, free = at[SIZE], at[VERSION], at[POINT], at[FREE]
    until = front.size[1] + steps
    while (size > 0 or (free >= k and free > enough)) and front.size[1] < until:
        if size == 0:
            opened.counts[:] = 0
            version = ZERO
            if point < 0:
                point = furthest(flat, pool, front, reference)
            copy_codes(reference, pool.codes[point])
            begin(flat, opened.state, pool.codes[point])
            start_search(front)
        opened.members[size] = take_from(pool, groups, point)
        labels[opened.members[size]] = at[LABEL]
        size += 1
        free -= 1
        count_in(needs, opened.counts, pool.group[point])
        if absorb(flat, opened.state, pool.codes[point]):
            version += 1
        lacks = (diverse_first or size >= k) and lacking(needs, others, size, opened.counts)
        front.size[1] += needs.width
        finished = size >= k and not lacks
        goes_on = not finished and free > 0
        if goes_on and lacks:
            helps = most_helpful(needs, others, groups.live, size, opened.counts, opened.gain, opened.allowed)
            front.size[1] += len(opened.gain)
            # A share, say, cannot fall before there are a few records; a value that is not there will not come.
            goes_on = helps > 0 or (others is not None and size < k)
        if goes_on and lacks:
            point = cheapest_among(flat, pool, front, groups, opened.state, version, opened.allowed, opened.aside)
        elif goes_on:
            point = cheapest(flat, pool, front, opened.state, version)
        else:
            if not from_seed:
                copy_codes(reference, pool.codes[point])
            if finished:
                at[LABEL] += 1
            else:
                for i in range(size):
                    labels[opened.members[i]] = SET_ASIDE
                # The free records bring no value that this class lacks, so classes of them alone have even fewer.
                if others is None:
                    free = ZERO
            size, point = ZERO, np.int64(-1)
    at[SIZE], at[VERSION], at[POINT], at[FREE] = size, version, point, free


@bare
def copy_codes(target: Codes, codes: Codes) -> None:
    """A loop, because slice assignment takes long to compile."""
    for a in range(len(codes)):
        target[a] = codes[a]


@entry
def take_from(pool: Pool, groups: Groups, point: int) -> int:
    """Take the point's next record; a point without any leaves its group."""
    record = take(pool, point)
    if pool.next[point] == pool.start[point + 1]:
        group = pool.group[point]
        groups.live[group] -= 1
        at, last = groups.place[point], groups.start[group] + groups.live[group]
        other = groups.points[last]
        groups.points[at], groups.points[last] = other, point
        groups.place[other], groups.place[point] = at, last
    return record


@bare
def count_in(needs: Needs, counts: NDArray[np.int32], group: int) -> None:
    """Count one record of the group."""
    for view in range(needs.cell.shape[1]):
        if needs.cell[group, view] >= 0:
            counts[needs.cell[group, view]] += 1


@bare
def missing_values(needs: Needs, i: int, counts: NDArray[np.int32]) -> int:
    """How many distinct values rule i still wants."""
    missing = needs.p[i]
    for cell in range(needs.first[i], needs.last[i]):
        if counts[cell] > 0:
            missing -= 1
            if missing == 0:
                break
    return missing


@entry
def lacking(needs: Needs, others: Others | None, size: int, counts: NDArray[np.int32]) -> bool:
    """Whether some rule beyond the size is not satisfied yet."""
    for i in range(len(needs.p)):
        if missing_values(needs, i, counts) > 0:
            return True
    if others is not None:
        return class_deficit(others.rules, size, counts) > 0
    return False


@entry
def most_helpful(
    needs: Needs,
    others: Others | None,
    live: Ints,
    size: int,
    counts: NDArray[np.int32],
    gain: Floats,
    allowed: NDArray[np.bool_],
) -> float:
    """Mark the groups one of whose records lowers the deficits most, and return by how much, in ticks."""
    gain[:] = 0.0
    for i in range(len(needs.p)):
        missing = missing_values(needs, i, counts)
        if missing > 0:
            worth = missing * needs.weight[i] if needs.weight[i] > 0 else 1.0
            for group in range(len(gain)):
                cell = needs.cell[group, needs.column[i]]
                if cell >= 0 and counts[cell] == 0:
                    gain[group] += worth
    if others is not None:
        gain_of_others(others, live, size, counts, gain)
    best = -np.inf
    for group in range(len(gain)):
        if live[group] > 0:
            best = max(best, np.rint(gain[group] * TICKS))
    for group in range(len(gain)):
        allowed[group] = live[group] > 0 and np.rint(gain[group] * TICKS) == best
    return best


@inner
def gain_of_others(others: Others, live: Ints, size: int, counts: NDArray[np.int32], gain: Floats) -> None:
    """By how much a record of each group lowers the other deficits; asked once a cell, not once a group.

    Where columns have very many values only some groups are asked, others at every step.
    """
    after = np.empty(len(counts) + 1)
    every = 1 if len(counts) <= WIDE else max(1, len(gain) // ASKED)
    for i in range(len(others.rules.kind)):
        if others.rules.kind[i] == HITTING:
            gain_of_sets(others, others.rules.sets, i, live, size, every, counts, gain)
            continue
        before = form_deficit(others.rules, i, size, counts)
        after[:] = -1.0
        for group in range(len(gain)):
            if live[group] > 0:
                if (group + size) % every != 0:
                    gain[group] = -np.inf
                    continue
                cell = others.cell[group, i]
                if after[cell] < 0:
                    if cell >= 0:
                        counts[cell] += 1
                    after[cell] = form_deficit(others.rules, i, size + 1, counts)
                    if cell >= 0:
                        counts[cell] -= 1
                gain[group] += before - after[cell]


@inner
def gain_of_sets(
    others: Others,
    sets: Ints | None,
    i: int,
    live: Ints,
    size: int,
    every: int,
    counts: NDArray[np.int32],
    gain: Floats,
) -> None:
    """The same of people with several values: each asks for the sets that occur, which are listed once for all of them."""
    if sets is not None:
        rules = others.rules
        first, width = rules.offset[i], rules.width[i]
        asked, after = np.zeros(width, dtype=np.bool_), np.empty(width)
        for group in range(len(gain)):
            if live[group] > 0 and (group + size) % every == 0 and others.cell[group, i] >= 0:
                asked[others.cell[group, i] - first] = True
        ints = rules.ints[rules.int_start[i] : rules.int_start[i + 1]]
        before = deficits_after(ints, counts[first : first + width], asked, after)
        for group in range(len(gain)):
            if live[group] > 0:
                if (group + size) % every != 0:
                    gain[group] = -np.inf
                elif others.cell[group, i] >= 0:
                    gain[group] += before - after[others.cell[group, i] - first]


@entry
def cheapest_among(
    flat: FlatSpace,
    pool: Pool,
    front: Frontier,
    groups: Groups,
    state: Ints,
    version: int,
    allowed: NDArray[np.bool_],
    aside: Ints,
) -> int:
    """The cheapest point of the allowed groups, ties to the smallest record."""
    candidates = 0
    for group in range(len(allowed)):
        if allowed[group]:
            candidates += groups.live[group]
    # The tree meets an allowed point after about points / candidates others, the list prices every candidate.
    if candidates * candidates <= 16 * len(pool.codes):
        front.size[1] += candidates
        best, first, chosen = GONE, GONE, np.int64(-1)
        for group in range(len(allowed)):
            if allowed[group]:
                for at in range(groups.start[group], groups.start[group] + groups.live[group]):
                    point = groups.points[at]
                    cost, record = point_cost(flat, pool.codes[point], state), pool.records[pool.next[point]]
                    if cost < best or (cost == best and record < first):
                        best, first, chosen = cost, record, point
        return chosen
    passed = 0
    while True:
        point = cheapest(flat, pool, front, state, version)
        if point < 0 or allowed[pool.group[point]]:
            break
        aside[passed, 0], aside[passed, 1], aside[passed, 2] = front.ticks[0], front.record[0], front.item[0]
        passed += 1
        pop(front)
    for i in range(passed):
        push(front, aside[i, 0], aside[i, 1], aside[i, 2], version)
    return point


@entry
def spread(
    flat: FlatSpace, codes: Codes, records: Ints, states: Ints, sizes: Ints, losses: Floats, labels: Ints
) -> None:
    """Each record in turn joins the class with the least added loss (FindBestCluster of Truta & Campan 2007)."""
    for record in records:
        best, chosen = GONE, ZERO
        for c in range(len(sizes)):
            # A record adds at least what every member of the class pays; one tick covers the rounding.
            if losses[c] * TICKS - 2.0 > best:
                continue
            cost = added(flat, states[c], sizes[c], losses[c], codes[record])
            if cost < best:
                best, chosen = cost, c
        labels[record] = chosen
        enlarge(flat, states, sizes, losses, chosen, codes[record])


@entry
def added(flat: FlatSpace, state: Ints, size: int, lost: float, codes: Codes) -> int:
    """Ticks of IL(cl ∪ {t}) − IL(cl)."""
    return np.int64(np.rint(((size + 1) * point_loss(flat, codes, state) - size * lost) * TICKS))


@entry
def enlarge(flat: FlatSpace, states: Ints, sizes: Ints, losses: Floats, c: int, codes: Codes) -> None:
    """One more record in class c."""
    if absorb(flat, states[c], codes):
        losses[c] = loss(flat, states[c])
    sizes[c] += 1


@loop
def added_by_class(flat: FlatSpace, states: Ints, sizes: Ints, losses: Floats, codes: Codes) -> Ints:
    """What one record would add to the loss of each class, in ticks."""
    result = np.empty(len(sizes), dtype=np.int64)
    for c in range(len(sizes)):
        result[c] = added(flat, states[c], sizes[c], losses[c], codes)
    return result


@loop
def added_by_merging(flat: FlatSpace, states: Ints, sizes: Ints, losses: Floats, c: int) -> Ints:
    """What merging class c with each other one would add to the loss, in ticks; GONE for itself and empty classes."""
    result = np.empty(len(sizes), dtype=np.int64)
    for other in range(len(sizes)):
        if other == c or sizes[other] == 0:
            result[other] = GONE
            continue
        together = (sizes[c] + sizes[other]) * merged_loss(flat, states[c], states[other])
        result[other] = np.int64(np.rint((together - sizes[c] * losses[c] - sizes[other] * losses[other]) * TICKS))
    return result


@loop
def class_losses(flat: FlatSpace, states: Ints) -> Floats:
    """Loss of one record in each class, summed as everywhere in the kernels."""
    result = np.empty(len(states))
    for c in range(len(states)):
        result[c] = loss(flat, states[c])
    return result
