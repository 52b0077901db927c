"""Loops behind `shoal.measures.bounds` over the cells of `bound_cells`: the cell bound, worst boxes, mending."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.bound_cells import Cells
from shoal.kernels.jit import bare, loop

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


@bare
def _span(axis: Axis, left: int, right: int) -> float:
    return axis.weight * min(max(axis.far[right] - axis.near[left], 0.0), 1.0)


@loop
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


class Top(NamedTuple):
    """The k largest u of some points: values in falling order with their numbers of records, and how many entries and records.

    The last entry may hold more records than are left of k.
    """

    value: Floats
    copies: Ints
    held: Ints


# Entries that make room in the time that a point is looked at.
MOVES = 8
ENTRIES, RECORDS, MOVED = 0, 1, 2
"""What `held` counts: entries, records, and how many entries made room for others until now."""


@bare
def _clear(top: Top) -> None:
    top.held[ENTRIES] = 0
    top.held[RECORDS] = 0


@bare
def _put(top: Top, k: int, value: float, copies: int) -> float:
    """Take a point in; what the sum of all entries changes by."""
    entries, records = top.held[ENTRIES], top.held[RECORDS]
    if records >= k and value <= top.value[entries - 1]:
        return 0.0
    place = entries
    while place > 0 and top.value[place - 1] < value:
        top.value[place] = top.value[place - 1]
        top.copies[place] = top.copies[place - 1]
        place -= 1
    top.value[place] = value
    top.copies[place] = copies
    top.held[MOVED] += entries - place
    entries += 1
    records += copies
    change = value * copies
    while entries > 1 and records - top.copies[entries - 1] >= k:
        entries -= 1
        records -= top.copies[entries]
        change -= top.value[entries] * top.copies[entries]
    top.held[ENTRIES] = entries
    top.held[RECORDS] = records
    return change


@bare
def _over(top: Top, k: int) -> float:
    """What the records beyond k add to the sum of all entries."""
    return max(0, top.held[RECORDS] - k) * top.value[top.held[ENTRIES] - 1]


class Ends(NamedTuple):
    """Per slot of a cell its first place (-1: none), and the sum of the k largest u from there to the end of the cell."""

    place: Ints
    suffix: Floats


@bare
def _suffixes(cells: Cells, axis: Axis, size: Ints, k: int, u: Floats, c: int, top: Top, ends: Ends) -> None:
    """Fill in the ends of a cell."""
    place, suffix = ends
    first, end = cells.start[c], cells.start[c + 1]
    last = axis.slot[cells.points[end - 1]]
    place[axis.slot[cells.points[first]] : last + 1] = -1
    _clear(top)
    total, here = 0.0, last
    for i in range(end - 1, first - 1, -1):
        point = cells.points[i]
        slot = axis.slot[point]
        if slot != here:
            suffix[here] = total - _over(top, k)
            here = slot
        total += _put(top, k, u[point], size[point])
        place[slot] = i
    suffix[here] = total - _over(top, k)


@loop
def worst_boxes(
    cells: Cells, axis: Axis, size: Ints, k: int, u: Floats, least: float, part: tuple[int, int], found: Ints
) -> int:
    """The box of each cell of a part whose k largest u exceed k times its loss by most, and by more than `least`.

    `found` has a row a cell: the first place of the box and the one after its last, or -1. Returns the work, in points.

    The k largest u from some slot to the end of the cell bound what its boxes from there can hold: most are dismissed.
    """
    slots = len(axis.near)
    top = Top(np.empty(k + 1), np.empty(k + 1, dtype=np.int64), np.zeros(3, dtype=np.int64))
    suffix, place = np.zeros(slots), np.empty(slots, dtype=np.int64)
    begin, stop = part
    work = 0
    for c in range(begin, stop):
        found[c - begin, 0] = -1
        price = k * cells.loss[c]
        end = cells.start[c + 1]
        _suffixes(cells, axis, size, k, u, c, top, Ends(place, suffix))
        work += end - cells.start[c]
        first = axis.slot[cells.points[cells.start[c]]]
        last = axis.slot[cells.points[end - 1]]
        worst = least
        for left in range(first, last + 1):
            if suffix[first] - price <= worst:
                break
            if place[left] < 0:
                continue
            reach = cells.reach[place[left]]
            if reach >= end:
                break
            if suffix[left] - price - k * _span(axis, left, axis.slot[cells.points[reach]]) <= worst:
                continue
            _clear(top)
            total, i = 0.0, place[left]
            while i < end:
                right = axis.slot[cells.points[i]]
                cost = price + k * _span(axis, left, right)
                if suffix[left] - cost <= worst:
                    break
                while i < end and axis.slot[cells.points[i]] == right:
                    total += _put(top, k, u[cells.points[i]], size[cells.points[i]])
                    i += 1
                if i > reach and total - _over(top, k) - cost > worst:
                    worst = total - _over(top, k) - cost
                    found[c - begin, 0] = place[left]
                    found[c - begin, 1] = i
            work += i - place[left]
    return work + top.held[MOVED] // MOVES


@loop
def mend(cells: Cells, axis: Axis, size: Ints, k: int, u: Floats, factor: Floats, begin: int, stop: int) -> int:
    """Lower the factor of every point to what the boxes of the cells begin … stop - 1 allow; the work, in points looked at.

    Multiplied by its factor, no point keeps more than the fraction of u that any of its boxes allows.
    """
    slots = len(axis.near)
    top = Top(np.empty(k + 1), np.empty(k + 1, dtype=np.int64), np.zeros(3, dtype=np.int64))
    suffix, place = np.zeros(slots), np.empty(slots, dtype=np.int64)
    ratio, allowed = np.ones(slots), np.ones(slots)
    work = 0
    for c in range(begin, stop):
        price = k * cells.loss[c]
        end = cells.start[c + 1]
        _suffixes(cells, axis, size, k, u, c, top, Ends(place, suffix))
        work += end - cells.start[c]
        first = axis.slot[cells.points[cells.start[c]]]
        last = axis.slot[cells.points[end - 1]]
        if suffix[first] <= price:
            continue
        allowed[first : last + 1] = 1.0
        broken = False
        for left in range(first, last + 1):
            if place[left] < 0:
                continue
            reach = cells.reach[place[left]]
            if reach >= end:
                break
            if suffix[left] <= price + k * _span(axis, left, axis.slot[cells.points[reach]]):
                continue
            _clear(top)
            ratio[left : last + 1] = 1.0
            total, i, right = 0.0, place[left], left
            while i < end:
                right = axis.slot[cells.points[i]]
                cost = price + k * _span(axis, left, right)
                if suffix[left] <= cost:
                    break
                while i < end and axis.slot[cells.points[i]] == right:
                    total += _put(top, k, u[cells.points[i]], size[cells.points[i]])
                    i += 1
                if i > reach and total - _over(top, k) > cost:
                    ratio[right] = cost / (total - _over(top, k))
                    broken = True
            work += i - place[left]
            lowest = 1.0
            for slot in range(right, left - 1, -1):
                lowest = min(lowest, ratio[slot])
                allowed[slot] = min(allowed[slot], lowest)
        if broken:
            for i in range(cells.start[c], end):
                point = cells.points[i]
                factor[point] = min(factor[point], allowed[axis.slot[point]])
    return work + top.held[MOVED] // MOVES
