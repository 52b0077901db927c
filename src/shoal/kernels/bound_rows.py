"""The pool of boxes behind `shoal.measures.bounds`: which u each of them binds, and projections onto them.

A *row* is a box as it was when it was broken worst: `share` records of each of some points, k together, whose u may sum to
`cost`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.bound_cells import Cells
from shoal.kernels.jit import entry, loop

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Floats = NDArray[np.float64]


class Rows(NamedTuple):
    """Row r has points[start[r]:start[r+1]] with their shares, and was pushed back by `push` so far."""

    start: Ints
    points: Ints32
    share: Floats
    cost: Floats
    push: Floats


@loop
def fill_rows(
    cells: Cells, boxes: Ints, size: Ints, k: int, u: Floats, start: Ints, points: Ints32, share: Floats
) -> None:
    """The k largest u of each box (the first place, the one after the last) as rows; there has to be room for k points each."""
    chosen = np.empty(k + 1, dtype=np.int64)
    start[0] = 0
    for r in range(len(boxes)):
        held, records = 0, 0
        for i in range(boxes[r, 0], boxes[r, 1]):
            point = cells.points[i]
            if records >= k and u[point] <= u[chosen[held - 1]]:
                continue
            place = held
            while place > 0 and u[chosen[place - 1]] < u[point]:
                chosen[place] = chosen[place - 1]
                place -= 1
            chosen[place] = point
            held += 1
            records += size[point]
            while held > 1 and records - size[chosen[held - 1]] >= k:
                held -= 1
                records -= size[chosen[held]]
        for j in range(held):
            points[start[r] + j] = chosen[j]
            share[start[r] + j] = size[chosen[j]]
        share[start[r] + held - 1] -= max(0, records - k)
        start[r + 1] = start[r] + held


@entry
def covered(rows: Rows, total: Floats) -> None:
    """Per point how much all rows push it back, a record of it in each."""
    total[:] = 0.0
    for r in range(len(rows.cost)):
        if rows.push[r] > 0.0:
            for j in range(rows.start[r], rows.start[r + 1]):
                total[rows.points[j]] += rows.push[r] * rows.share[j]


@entry
def project(rows: Rows, give: Floats, highest: Floats, u: Floats) -> None:
    """One sweep: push u back onto each row that it breaks, and let go of what was pushed too far.

    `give` is how much a point moves for a push by one record; u stays between 0 and `highest`.
    """
    for r in range(len(rows.cost)):
        over, norm = -rows.cost[r], 0.0
        for j in range(rows.start[r], rows.start[r + 1]):
            point = rows.points[j]
            over += rows.share[j] * u[point]
            norm += rows.share[j] * rows.share[j] * give[point]
        if norm <= 0.0 or (over <= 0.0 and rows.push[r] == 0.0):
            continue
        push = max(0.0, rows.push[r] + over / norm)
        change = push - rows.push[r]
        rows.push[r] = push
        for j in range(rows.start[r], rows.start[r + 1]):
            point = rows.points[j]
            u[point] = min(highest[point], max(0.0, u[point] - change * rows.share[j] * give[point]))
