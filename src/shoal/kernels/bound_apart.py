"""How far tuples are from their nearest, behind `shoal.measures.apart`: all pairs, column after column, in whole ticks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import bare, loop

Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]

# Further than any two tuples are.
FAR = np.int32(2**30)
# Tuples whose distances are added up together: their sums stay in the nearest cache.
TOGETHER = 1024


class Columns(NamedTuple):
    """What tuples are compared by, a row a column: where they are on a number's line, or which code they have.

    A tuple that lies outside the range of codes low[s] … high[s] is farther by more[s], for each step s of a code c of names n:
    first[base[n] + c] … first[base[n] + c + 1].
    """

    places: Ints32
    codes: Ints32
    base: Ints
    first: Ints
    low: Ints32
    high: Ints32
    more: Ints32


@loop
def nearest_sums(columns: Columns, size: Ints, need: int, farthest: bool, chosen: Ints, found: Ints) -> None:
    """Of each chosen tuple the distance of the `need`-th nearest other record, or the sum of the distances up to it.

    Zero where there are not so many others.
    """
    tuples = columns.places.shape[1]
    best = np.empty(need, dtype=np.int32)
    sums = np.empty(TOGETHER, dtype=np.int32)
    for r in range(len(chosen)):
        i = chosen[r]
        for place in range(need):
            best[place] = 0 if place < size[i] - 1 else FAR
        # The tuples beside it first, which are the most like it.
        home = i // TOGETHER * TOGETHER
        add_nearest(columns, size, i, home, sums, best)
        for begin in range(0, tuples, TOGETHER):
            if begin != home:
                add_nearest(columns, size, i, begin, sums, best)
        found[r] = 0
        if best[need - 1] < FAR:
            for place in range(need - 1 if farthest else 0, need):
                found[r] += best[place]


@bare
def add_nearest(columns: Columns, size: Ints, i: int, begin: int, sums: Ints32, best: Ints32) -> None:
    """Put the nearest of a stretch of tuples among the nearest so far."""
    numbers, tuples = columns.places.shape
    count = min(TOGETHER, tuples - begin)
    for j in range(count):
        sums[j] = 0
    for a in range(numbers):
        own, row = columns.places[a, i], columns.places[a, begin : begin + count]
        for j in range(count):
            sums[j] += abs(row[j] - own)
    for a in range(len(columns.codes)):
        at = columns.base[a] + columns.codes[a, i]
        for s in range(columns.first[at], columns.first[at + 1]):
            low, high, more = columns.low[s], columns.high[s], columns.more[s]
            line = columns.codes[a, begin : begin + count]
            for j in range(count):
                sums[j] += more if (line[j] < low) | (line[j] > high) else np.int32(0)
    # Places are rounded, so two of them may be a tick further apart than they are; another tick is room for a test that rounds.
    last, less = len(best) - 1, 2 * numbers
    for j in range(count):
        if sums[j] < best[last] + less and begin + j != i:
            insert(best, max(sums[j] - less, 0), size[begin + j])


@bare
def insert(best: Ints32, total: int, copies: int) -> None:
    """Put a distance into the ascending list, as often as there are records with it, while it is less than the last."""
    for _ in range(copies):
        place = len(best) - 1
        if total >= best[place]:
            return
        while place > 0 and best[place - 1] > total:
            best[place] = best[place - 1]
            place -= 1
        best[place] = total
