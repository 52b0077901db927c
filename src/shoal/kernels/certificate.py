"""The walk over all boxes behind `shoal.measures.certificate`; shares nothing with the loops that make what it tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import entry, loop

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Walk(NamedTuple):
    """What is walked over: records in falling order of worth, and the states first[a] … first[a+1] - 1 of each attribute a.

    `values` has a row a demand: of each record its value (-1: none), of which a class needs `least` different ones.
    """

    codes: Ints
    worth: Ints
    holds: NDArray[np.bool_]
    first: Ints
    losses: Floats
    values: Ints
    least: Ints
    widths: Ints


class Way(NamedTuple):
    """Where the walk is: at each depth the state chosen, the records of the box (a row, and how many), and its loss so far."""

    at: Ints
    lists: Ints
    lengths: Ints
    spent: Floats
    depth: Ints


@entry
def walk(
    it: Walk,
    way: Way,
    k: int,
    ticks: float,
    safe: float,
    most: int,
) -> int:
    """Go on with the walk for about `most` steps: 1 when every box obeys, 0 when one does not, -1 when there is more to do."""
    at, lists, lengths, spent, depth = way
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
        loss = spent[d] + it.losses[state]
        cost = np.int64(np.floor(k * loss * safe * ticks))
        # The k largest of what the state takes in, and no further when they obey.
        records, total, length, i = 0, np.int64(0), 0, 0
        for i in range(lengths[d]):
            r = lists[d, i]
            if it.holds[state, it.codes[d, r]]:
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
