"""The walk over all boxes behind `shoal.measures.certificate`; shares nothing with the loops that make what it tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import bare, entry, loop

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Walk(NamedTuple):
    """What is walked over: records in falling order of worth, and the states first[a] … first[a+1] - 1 of each attribute a.

    A state is a range from `low` to `high`, or the codes of its row in `holds` (`low` is -1). Ranges are in the order of their
    low ends, and `left` is how many with the same one are left, itself included; only the last attribute has any, after its sets.
    `values` has a row a demand: of each record its value (-1: none), of which a class needs `least` different ones.
    """

    codes: Ints
    worth: Ints
    holds: NDArray[np.bool_]
    low: Ints
    high: Ints
    left: Ints
    first: Ints
    losses: Floats
    values: Ints
    least: Ints
    widths: Ints


class Way(NamedTuple):
    """Where the walk is: at each depth the state chosen, the records of the box (a row, and how many), and its loss so far.

    `there` are the codes of the last attribute that these records have.
    """

    at: Ints
    lists: Ints
    lengths: Ints
    spent: Floats
    depth: Ints
    there: NDArray[np.bool_]


@entry
def walk(
    it: Walk,
    way: Way,
    k: int,
    ticks: float,
    safe: float,
    most: int,
) -> int:
    """Go on with the walk for about `most` steps: 1 when every box obeys, 0 when one does not, -1 when there is more to do.

    A range without a record at one of its ends holds nobody whom a shorter one does not hold, which loses no more: if that obeys,
    so does this, and it is passed over.
    """
    at, lists, lengths, spent, depth, there = way
    attributes, steps = len(at), 0
    while steps < most:
        d = depth[0]
        if d < 0:
            return 1
        if d == attributes:
            # A whole box, more than k times its loss in it: it breaks the certificate if it can hold a good class.
            if _can_hold(it, lists[d], lengths[d]):
                return 0
            depth[0] = d - 1
            continue
        at[d] += 1
        state = it.first[d] + at[d]
        if state == it.first[d + 1]:
            at[d] = -1
            depth[0] = d - 1
            continue
        if it.low[state] >= 0:
            if state == 0 or it.low[state - 1] < 0:
                there[:] = False
                for i in range(lengths[d]):
                    there[it.codes[d, lists[d, i]]] = True
                steps += lengths[d] + (len(there) >> 3)
            steps += 1
            if not there[it.low[state]]:
                at[d] += it.left[state] - 1
                continue
            if not there[it.high[state]]:
                continue
        loss = spent[d] + it.losses[state]
        cost = np.int64(np.floor(k * loss * safe * ticks))
        # The k largest of what the state takes in, and no further when they obey.
        records, total, length, i = 0, np.int64(0), 0, 0
        for i in range(lengths[d]):
            r = lists[d, i]
            if _takes(it, state, it.codes[d, r]):
                lists[d + 1, length] = r
                length += 1
                if records < k:
                    records += 1
                    total += it.worth[r]
                    if records == k and total <= cost:
                        break
        steps += i + 1
        if records == k and total > cost:
            lengths[d + 1] = length
            spent[d + 1] = loss
            depth[0] = d + 1
    return -1


@bare
def _takes(it: Walk, state: int, code: int) -> bool:
    """Whether a state takes in a code."""
    if it.low[state] >= 0:
        return bool(it.low[state] <= code <= it.high[state])
    return bool(it.holds[state, code])


@loop
def _can_hold(it: Walk, records: Ints, length: int) -> bool:
    """Whether the records of a box have as many different values as every demand asks for."""
    for i in range(len(it.least)):
        seen = np.zeros(it.widths[i], dtype=np.bool_)
        different = 0
        for j in range(length):
            value = it.values[i, records[j]]
            if value >= 0 and not seen[value]:
                seen[value] = True
                different += 1
        if different < it.least[i]:
            return False
    return True
