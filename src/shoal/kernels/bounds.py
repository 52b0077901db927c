"""Loops behind `shoal.measures.bounds`: the cell bound, the dual ascent and its certificate, over the cells of `bound_cells`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.kernels.bound_cells import Cells
from shoal.kernels.jit import inner

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Floats = NDArray[np.float64]


class Axis(NamedTuple):
    """The window attribute: the slot of each point, and where the values of a slot end (near) and begin (far).

    The loss of a run from slot a to slot b is `weight` times far[b] - near[a], never below 0 or above 1.
    """

    slot: Ints32
    near: Floats
    far: Floats
    weight: float


class Scratch(NamedTuple):
    """Working memory of the ascent: two lists of the largest u, and per slot its list and first and last place."""

    base: Floats
    work: Floats
    top: NDArray[np.float64]
    held: Ints
    place: NDArray[np.int64]


@inner
def _span(axis: Axis, left: int, right: int) -> float:
    return axis.weight * min(max(axis.far[right] - axis.near[left], 0.0), 1.0)


@njit(cache=True, nogil=True)
def cell_bound(cells: Cells, axis: Axis, bound: Floats, begin: int, stop: int) -> None:
    """Per point the loss of the cheapest box that holds it and meets the demand, if `bound` is more: cells begin … stop - 1."""
    longest = 0
    for c in range(begin, stop):
        longest = max(longest, cells.start[c + 1] - cells.start[c])
    queue = np.empty(longest, dtype=np.int64)
    price = np.empty(longest)
    for c in range(begin, stop):
        first, end = cells.start[c], cells.start[c + 1]
        head, tail, closed = 0, 0, -1
        for i in range(first, end):
            here = axis.slot[cells.points[i]]
            # Runs [j, reach[j]] have both ends ascending: those that hold i are a queue, cheapest in front.
            if cells.reach[i] < end:
                cost = _span(axis, here, axis.slot[cells.points[cells.reach[i]]])
                while tail > head and price[tail - 1] >= cost:
                    tail -= 1
                queue[tail] = i
                price[tail] = cost
                tail += 1
            while head < tail and cells.reach[queue[head]] < i:
                head += 1
            best = price[head] if head < tail else np.inf
            # … and the shortest good run that ends with i.
            while closed + 1 <= i - first and cells.reach[first + closed + 1] <= i:
                closed += 1
            if closed >= 0:
                best = min(best, _span(axis, axis.slot[cells.points[first + closed]], here))
            best += cells.loss[c]
            if best < bound[cells.points[i]]:
                bound[cells.points[i]] = best


@njit(cache=True, nogil=True)
def invert(cells: Cells, points: int) -> tuple[Ints, Ints32, Ints32]:
    """The cells of each point by ascending loss, and its place in them."""
    begin_of = np.zeros(points + 1, dtype=np.int64)
    for i in range(len(cells.points)):
        begin_of[cells.points[i] + 1] += 1
    for point in range(points):
        begin_of[point + 1] += begin_of[point]
    used = begin_of[:-1].copy()
    cell_of = np.empty(len(cells.points), dtype=np.int32)
    place_of = np.empty(len(cells.points), dtype=np.int32)
    for c in range(len(cells.start) - 1):
        for i in range(cells.start[c], cells.start[c + 1]):
            point = cells.points[i]
            cell_of[used[point]] = c
            place_of[used[point]] = i
            used[point] += 1
    return begin_of, cell_of, place_of


@njit(cache=True, nogil=True)
def top_sums(cells: Cells, size: Ints, u: Floats, k: int, sums: Floats, least: Floats, begin: int, stop: int) -> None:
    """For each of the cells begin … stop - 1 the sum of its k largest u (records, not points) and the smallest of them."""
    top = np.empty(k)
    for c in range(begin, stop):
        used = 0
        for i in range(cells.start[c], cells.start[c + 1]):
            point = cells.points[i]
            used = insert(top, used, k, u[point], size[point])
        total = 0.0
        for j in range(used):
            total += top[j]
        sums[c] = total
        least[c] = top[used - 1] if used == k else 0.0


@inner
def insert(top: Floats, used: int, most: int, value: float, copies: int) -> int:
    """Put copies of a value into a descending list of at most `most` numbers; returns how many it holds now."""
    if used == most and (most == 0 or value <= top[used - 1]):
        return used
    place = used
    while place > 0 and top[place - 1] < value:
        place -= 1
    added = min(copies, most - place)
    moved_to = min(most, used + added)
    for j in range(moved_to - 1, place + added - 1, -1):
        top[j] = top[j - added]
    for j in range(place, place + added):
        top[j] = value
    return moved_to


NEXT, STEPS = 0, 1
"""Where `ascend` is."""


@njit(cache=True, nogil=True)
def ascend(
    cells: Cells,
    axis: Axis,
    size: Ints,
    k: int,
    begin_of: Ints,
    cell_of: Ints32,
    place_of: Ints32,
    ceiling: Floats,
    binding: Ints,
    order: Ints,
    fraction: float,
    effort: int,
    u: Floats,
    sums: Floats,
    least: Floats,
    at: Ints,
    until: int,
) -> None:
    """One pass of the dual ascent: each point in `order` moves by `fraction` towards the largest u it may have.

    A point that would need more than `effort` steps is moved by what is certain without looking further. `at` holds the
    place of the next point and the steps so far; the pass pauses when these are `until`.
    """
    slots = len(axis.near)
    scratch = Scratch(
        np.empty(k),
        np.empty(k),
        np.empty((slots, max(k - 1, 1))),
        np.empty(slots, dtype=np.int64),
        np.empty((slots, 2), dtype=np.int64),
    )
    while at[NEXT] < len(order) and at[STEPS] < until:
        point = order[at[NEXT]]
        at[NEXT] += 1
        copies = min(size[point], k)
        best = ceiling[point]
        steps = effort
        # The cell that bound the point last time most likely does so again: then the others are quickly dismissed.
        for visit in range(begin_of[point] - 1, begin_of[point + 1]):
            if best <= u[point]:
                break
            e = visit if visit >= begin_of[point] else binding[point]
            if visit == binding[point]:
                continue
            c = cell_of[e]
            at[STEPS] += 1
            if k * cells.loss[c] >= sums[c] + copies * max(0.0, best - max(u[point], least[c])):
                continue
            room, steps = _room(cells, axis, size, k, c, place_of[e], best, u, sums, least, scratch, steps, at)
            if room < best:
                best = room
                binding[point] = e
        ceiling[point] = best
        if best <= u[point]:
            continue
        new = u[point] + fraction * (best - u[point])
        for e in range(begin_of[point], begin_of[point + 1]):
            c = cell_of[e]
            if new > least[c]:
                sums[c] += copies * (new - max(u[point], least[c]))
        u[point] = new


@inner
def _room(
    cells: Cells,
    axis: Axis,
    size: Ints,
    k: int,
    c: int,
    place: int,
    best: float,
    u: Floats,
    sums: Floats,
    least: Floats,
    scratch: Scratch,
    steps: int,
    at: Ints,
) -> tuple[float, int]:
    """The largest u the point at `place` may have under the boxes of one cell, or `best` if that is smaller."""
    point = cells.points[place]
    copies = min(size[point], k)
    here = axis.slot[point]
    price = cells.loss[c]
    # A box matters only while k times its loss is below this.
    low_u = max(u[point], least[c])
    limit = sums[c] + copies * max(0.0, best - low_u)
    low, high = place, place
    while low > cells.start[c] and k * (price + _span(axis, axis.slot[cells.points[low - 1]], here)) < limit:
        low -= 1
    while high + 1 < cells.start[c + 1] and k * (price + _span(axis, here, axis.slot[cells.points[high + 1]])) < limit:
        high += 1

    # A box is at least as wide as its members' mean distance from here, so each may be charged its own distance
    # instead of all of them the box's: what then remains is certain.
    charge = k / max(k - 1, 1)
    held = 0
    for i in range(low, high + 1):
        other = cells.points[i]
        if i != place:
            slot = axis.slot[other]
            value = u[other] - charge * (_span(axis, slot, here) if i < place else _span(axis, here, slot))
            if value > 0.0:
                held = insert(scratch.work, held, k - 1, value, size[other])
    steps -= high - low + 1
    at[STEPS] += 2 * (high - low + 1)
    certain = _highest(scratch.work, held, k, copies, k * price, best)
    if certain >= best or steps <= 0:
        return max(certain, u[point]), steps

    first = axis.slot[cells.points[low]]
    last = axis.slot[cells.points[high]]
    for slot in range(first, last + 1):
        scratch.held[slot] = 0
        scratch.place[slot, 0] = -1
        scratch.place[slot, 1] = -1
    held = 0
    for i in range(low, high + 1):
        other = cells.points[i]
        slot = axis.slot[other]
        if scratch.place[slot, 0] < 0:
            scratch.place[slot, 0] = i
        scratch.place[slot, 1] = i
        if i != place:
            scratch.held[slot] = insert(scratch.top[slot], scratch.held[slot], k - 1, u[other], size[other])
        held = insert(scratch.work, held, k, u[other], size[other])
    at[STEPS] += 2 * (high - low + 1)
    nearby = 0.0
    for j in range(held):
        nearby += scratch.work[j]
    if low == cells.start[c] and high == cells.start[c + 1] - 1:
        sums[c] = nearby
        least[c] = scratch.work[k - 1] if held == k else 0.0
    if nearby < sums[c]:
        low_u = max(u[point], scratch.work[k - 1] if held == k else 0.0)
    most = min(sums[c], nearby)
    limit = most + copies * max(0.0, best - low_u)
    used = 0
    for left in range(here, first - 1, -1):
        used = _merge(scratch.base, used, k - 1, scratch.top[left], scratch.held[left])
        if scratch.place[left, 0] < 0:
            continue
        if k * (price + _span(axis, left, here)) >= limit:
            break
        reach = cells.reach[scratch.place[left, 0]]
        if reach > high:
            continue
        held = used
        scratch.work[:used] = scratch.base[:used]
        for right in range(here, last + 1):
            steps -= 1
            at[STEPS] += k
            if right != here:
                held = _merge(scratch.work, held, k - 1, scratch.top[right], scratch.held[right])
            if scratch.place[right, 1] < reach:
                continue
            cost = k * (price + _span(axis, left, right))
            if cost >= limit:
                break
            best = _highest(scratch.work, held, k, copies, cost, best)
            limit = most + copies * max(0.0, best - low_u)
        if steps <= 0:
            return min(best, max(u[point], certain)), 0
    return best, steps


@inner
def _merge(top: Floats, used: int, most: int, others: Floats, count: int) -> int:
    for j in range(count):
        if used == most and others[j] <= top[used - 1]:
            break
        used = insert(top, used, most, others[j], 1)
    return used


@inner
def _highest(others: Floats, held: int, k: int, copies: int, cost: float, best: float) -> float:
    """The largest x ≤ best such that `copies` records at x and the k - 1 largest others obey the box.

    With j of the copies among the k largest, the rest there are the k - j largest others.
    """
    rest, taken = cost, 0
    for own in range(copies, 0, -1):
        while taken < held and taken < k - own:
            rest -= others[taken]
            taken += 1
        if rest < best * own:
            best = rest / own
    return best


@njit(cache=True, nogil=True)
def mend(
    cells: Cells, axis: Axis, size: Ints, k: int, u: Floats, sums: Floats, factor: Floats, part: tuple[int, int]
) -> None:
    """Lower the factor of every point to what the boxes of a part of the cells allow, from the first to before the second.

    Multiplied by its factor, no point keeps more than the fraction of u that any of its boxes allows.
    """
    slots = len(axis.near)
    top = np.empty((slots, k))
    held = np.zeros(slots, dtype=np.int64)
    place = np.empty((slots, 2), dtype=np.int64)
    work = np.empty(k)
    ratio = np.empty(slots)
    allowed = np.empty(slots)
    for c in range(part[0], part[1]):
        if sums[c] <= k * cells.loss[c]:
            continue
        first = axis.slot[cells.points[cells.start[c]]]
        last = axis.slot[cells.points[cells.start[c + 1] - 1]]
        held[first : last + 1] = 0
        place[first : last + 1, :] = -1
        allowed[first : last + 1] = 1.0
        for i in range(cells.start[c], cells.start[c + 1]):
            point = cells.points[i]
            slot = axis.slot[point]
            held[slot] = insert(top[slot], held[slot], k, u[point], size[point])
            if place[slot, 0] < 0:
                place[slot, 0] = i
            place[slot, 1] = i
        broken = False
        for left in range(first, last + 1):
            if place[left, 0] < 0:
                continue
            reach = cells.reach[place[left, 0]]
            if reach >= cells.start[c + 1]:
                break
            used, end = 0, left
            for right in range(left, last + 1):
                end = right
                ratio[right] = 1.0
                if place[right, 0] < 0:
                    continue
                cost = k * (cells.loss[c] + _span(axis, left, right))
                if cost >= sums[c]:
                    break
                used = _merge(work, used, k, top[right], held[right])
                if place[right, 1] < reach:
                    continue
                total = 0.0
                for j in range(used):
                    total += work[j]
                if total > cost:
                    ratio[right] = cost / total
                    broken = True
            lowest = 1.0
            for slot in range(end, left - 1, -1):
                lowest = min(lowest, ratio[slot])
                allowed[slot] = min(allowed[slot], lowest)
        if broken:
            for i in range(cells.start[c], cells.start[c + 1]):
                point = cells.points[i]
                factor[point] = min(factor[point], allowed[axis.slot[point]])
