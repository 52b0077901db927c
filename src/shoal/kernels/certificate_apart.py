"""A certificate by distances, tested record by record (`shoal.measures.certificate_apart`); nothing of what made it is used."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import entry

Ints = NDArray[np.int64]


class Told(NamedTuple):
    """Distinct records, how many there are of each, what is claimed of it, and how records are told apart, in ticks.

    Number a of record i lies at lines[a, i]. Name a of record i is of kind kinds[a, i]; others are found in ever larger circles
    around a kind c: those with own[a, ·] from low[s] to high[s] lose loss[s] with it, for the first s from first[c] on that does.
    """

    copies: Ints
    claimed: Ints
    lines: Ints
    own: Ints
    kinds: Ints
    first: Ints
    low: Ints
    high: Ints
    loss: Ints


@entry
def obeys(told: Told, k: int, farthest: bool, nearest: Ints, stretch: tuple[int, int]) -> bool:
    """Whether what is claimed of a stretch of records is no more than the theorem gives; `nearest` has room for k − 1."""
    for i in range(stretch[0], stretch[1]):
        if told.claimed[i] == 0:
            continue
        held = 0
        for j in range(len(told.copies)):
            others = told.copies[j] - (1 if i == j else 0)
            if others == 0:
                continue
            far = np.int64(0)
            for a in range(len(told.lines)):
                # Two places that were rounded may be a tick further apart than they were.
                far += max(abs(told.lines[a, i] - told.lines[a, j]) - 1, 0)
            for a in range(len(told.own)):
                s = told.first[told.kinds[a, i]]
                while told.own[a, j] < told.low[s] or told.own[a, j] > told.high[s]:
                    s += 1
                far += told.loss[s]
            # Insertion, smallest first: k − 1 at most are kept.
            while others > 0 and (held < k - 1 or far < nearest[held - 1]):
                at = min(held, k - 2)
                while at > 0 and nearest[at - 1] > far:
                    nearest[at] = nearest[at - 1]
                    at -= 1
                nearest[at] = far
                held = min(held + 1, k - 1)
                others -= 1
        if held < k - 1:
            return False
        total = np.int64(0)
        for at in range(held):
            total = nearest[at] if farthest else total + nearest[at]
        if told.claimed[i] > total:
            return False
    return True
