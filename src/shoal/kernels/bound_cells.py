"""The boxes of a table for `shoal.measures.bounds`, cell by cell.

A *point* is a distinct tuple of codes with its number of records. A *cell* is a list of points that share one
state of every attribute but the *window* attribute; its points are ordered by their position on that axis, so the
boxes of the cell are its runs of points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import bare, loop

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Floats = NDArray[np.float64]


class Demand(NamedTuple):
    """What a box must hold: k records, and p[i] different values of rule i, coded value_offset[i] … onwards."""

    k: int
    value_start: Ints
    values: Ints32
    value_rule: Ints32
    p: Ints


class Cells(NamedTuple):
    """Cells by ascending loss; cell c has points[start[c]:start[c+1]].

    `reach` of a place in `points` is the first place whose run from there meets the demand (start[c+1] if none does).
    """

    start: Ints
    points: Ints32
    loss: Floats
    reach: Ints32


@loop
def count_refined(
    start: Ints, points: Ints32, size: Ints, code: Ints32, state_start: Ints, states: Ints32, width: int, k: int
) -> tuple[int, int]:
    """How many cells and places `refine` would give."""
    records = np.zeros(width, dtype=np.int64)
    members = np.zeros(width, dtype=np.int64)
    cells, places = 0, 0
    for c in range(len(start) - 1):
        for i in range(start[c], start[c + 1]):
            point = points[i]
            for j in range(state_start[code[point]], state_start[code[point] + 1]):
                records[states[j]] += size[point]
                members[states[j]] += 1
        for i in range(start[c], start[c + 1]):
            point = points[i]
            for j in range(state_start[code[point]], state_start[code[point] + 1]):
                state = states[j]
                if records[state] >= k:
                    cells += 1
                    places += members[state]
                records[state] = 0
                members[state] = 0
    return cells, places


@loop
def refine(
    start: Ints,
    points: Ints32,
    loss: Floats,
    size: Ints,
    code: Ints32,
    state_start: Ints,
    states: Ints32,
    state_loss: Floats,
    k: int,
    cells: int,
    places: int,
) -> tuple[Ints, Ints32, Floats]:
    """Split every cell by the states of one more attribute; parts with fewer than k records are left out."""
    width = len(state_loss)
    records = np.zeros(width, dtype=np.int64)
    members = np.zeros(width, dtype=np.int64)
    place = np.zeros(width, dtype=np.int64)
    new_start = np.zeros(cells + 1, dtype=np.int64)
    new_points = np.empty(places, dtype=np.int32)
    new_loss = np.empty(cells)
    cell, used = 0, 0
    for c in range(len(start) - 1):
        for i in range(start[c], start[c + 1]):
            point = points[i]
            for j in range(state_start[code[point]], state_start[code[point] + 1]):
                records[states[j]] += size[point]
                members[states[j]] += 1
                place[states[j]] = -1
        for i in range(start[c], start[c + 1]):
            point = points[i]
            for j in range(state_start[code[point]], state_start[code[point] + 1]):
                state = states[j]
                if records[state] < k:
                    continue
                if place[state] < 0:
                    place[state] = used
                    used += members[state]
                    new_start[cell + 1] = used
                    new_loss[cell] = loss[c] + state_loss[state]
                    cell += 1
                new_points[place[state]] = point
                place[state] += 1
        for i in range(start[c], start[c + 1]):
            point = points[i]
            for j in range(state_start[code[point]], state_start[code[point] + 1]):
                records[states[j]] = 0
                members[states[j]] = 0
    return new_start, new_points, new_loss


@loop
def fingerprints(start: Ints, points: Ints32, random: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A number per cell that is equal for equal lists of points."""
    result = np.zeros(len(start) - 1, dtype=np.uint64)
    for c in range(len(start) - 1):
        total = np.uint64(0)
        for i in range(start[c], start[c + 1]):
            total += random[points[i]]
        result[c] = total
    return result


@loop
def keep_cheapest(start: Ints, points: Ints32, prints: NDArray[np.uint64], order: Ints) -> NDArray[np.bool_]:
    """Which cells to keep so that equal lists occur once; `order` sorts by fingerprint, then loss."""
    keep = np.ones(len(order), dtype=np.bool_)
    leader = -1
    for c in order:
        if leader >= 0 and prints[c] == prints[leader] and _same(start, points, c, leader):
            keep[c] = False
        else:
            leader = c
    return keep


@bare
def _same(start: Ints, points: Ints32, c: int, other: int) -> bool:
    length = start[c + 1] - start[c]
    if start[other + 1] - start[other] != length:
        return False
    for i in range(length):  # noqa: SIM110 - compiled
        if points[start[c] + i] != points[start[other] + i]:
            return False
    return True


@loop
def select_cells(start: Ints, points: Ints32, chosen: Ints) -> tuple[Ints, Ints32]:
    """The chosen cells in the given order."""
    new_start = np.zeros(len(chosen) + 1, dtype=np.int64)
    for i in range(len(chosen)):
        new_start[i + 1] = new_start[i] + start[chosen[i] + 1] - start[chosen[i]]
    new_points = np.empty(new_start[-1], dtype=np.int32)
    for i in range(len(chosen)):
        for j in range(start[chosen[i] + 1] - start[chosen[i]]):
            new_points[new_start[i] + j] = points[start[chosen[i]] + j]
    return new_start, new_points


@loop
def find_reach(start: Ints, points: Ints32, size: Ints, demand: Demand) -> Ints32:
    """For each place the first place such that the run between them meets the demand."""
    reach = np.empty(len(points), dtype=np.int32)
    counts = np.zeros(len(demand.value_rule), dtype=np.int64)
    lacking = demand.p.copy()
    for c in range(len(start) - 1):
        end = start[c + 1]
        records, unmet, right = 0, 0, start[c]
        for rule in range(len(lacking)):
            unmet += lacking[rule] > 0
        for left in range(start[c], end):
            while right < end and (records < demand.k or unmet > 0):
                point = points[right]
                records += size[point]
                for j in range(demand.value_start[point], demand.value_start[point + 1]):
                    value = demand.values[j]
                    counts[value] += 1
                    if counts[value] == 1:
                        rule = demand.value_rule[value]
                        lacking[rule] -= 1
                        unmet -= lacking[rule] == 0
                right += 1
            good = records >= demand.k and unmet == 0
            reach[left] = right - 1 if good else end
            point = points[left]
            records -= size[point]
            for j in range(demand.value_start[point], demand.value_start[point + 1]):
                value = demand.values[j]
                counts[value] -= 1
                if counts[value] == 0:
                    rule = demand.value_rule[value]
                    lacking[rule] += 1
                    unmet += lacking[rule] == 1
    return reach
