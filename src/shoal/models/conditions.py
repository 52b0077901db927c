"""Condition 2 of Truta et al. 2007: how many classes can have p different values (docs/models.md#condition-2)."""

from __future__ import annotations

import numpy as np

from shoal.models.column import Ints


def condition_2(frequencies: Ints, p: int) -> tuple[int, int]:
    """The most classes with p different values each, and the iValue: the smallest i that attains the bound.

    The bound is the least ⌊(n − cf_{p−i}) / i⌋ over i = 1…p, where cf_j records have the j most frequent values and n any. It
    is also the largest m with Σ min(f_v, m) ≥ m·p, since m classes need m·p records of which no value gives more
    than m. Records with a missing value are no help and have no frequency.

    >>> condition_2(np.array([5, 3, 2, 2]), 3)
    (3, 2)
    """
    falling = np.sort(frequencies[frequencies > 0])[::-1]
    if p > len(falling):
        return 0, 1
    before = np.concatenate([[0], np.cumsum(falling)])
    i = np.arange(1, p + 1)
    bounds = (before[-1] - before[p - i]) // i
    return int(bounds.min()), int(bounds.argmin()) + 1


def max_classes(frequencies: Ints, p: int) -> int:
    """The most classes with p different values each."""
    return condition_2(frequencies, p)[0]
