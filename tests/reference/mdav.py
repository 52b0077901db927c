"""MDAV straight from the definition (Domingo-Ferrer & Torra 2005): every step looks at every remaining record.

The order of distances: squared Euclidean distances summed column by column, rounded to a multiple of 2⁻⁴⁰, ties
to the smaller record index. The centroid is the correctly rounded sum of the remaining records over their number;
`exact_mean=False` takes NumPy's mean instead, to show that a result does not hang on its last bit.
"""

from __future__ import annotations

from math import fsum

import numpy as np
from numpy.typing import NDArray

STEP = 2.0**-40


def mdav(X: NDArray[np.float64], k: int, exact_mean: bool = True) -> NDArray[np.int32]:
    """Two groups in each round while at least 3k records remain."""
    remaining, labels = list(range(len(X))), np.full(len(X), -1, dtype=np.int32)
    group = 0
    while len(remaining) >= 3 * k:
        centroid = mean(X, remaining, exact_mean)
        r = farthest(X, remaining, centroid)
        s = farthest(X, remaining, X[r])
        first = [r, *nearest(X, [i for i in remaining if i != r], X[r], k - 1)]
        remaining = [i for i in remaining if i not in first]
        if s in first:
            s = farthest(X, remaining, X[r])
        second = [s, *nearest(X, [i for i in remaining if i != s], X[s], k - 1)]
        remaining = [i for i in remaining if i not in second]
        labels[first], labels[second] = group, group + 1
        group += 2
    if len(remaining) >= 2 * k:
        r = farthest(X, remaining, mean(X, remaining, exact_mean))
        members = [r, *nearest(X, [i for i in remaining if i != r], X[r], k - 1)]
        remaining = [i for i in remaining if i not in members]
        labels[members] = group
        group += 1
    labels[remaining] = group
    return labels


def mdav_single(X: NDArray[np.float64], k: int, exact_mean: bool = True) -> NDArray[np.int32]:
    """One group in each round while at least 2k records remain."""
    remaining, labels = list(range(len(X))), np.full(len(X), -1, dtype=np.int32)
    group = 0
    while len(remaining) >= 2 * k:
        r = farthest(X, remaining, mean(X, remaining, exact_mean))
        members = [r, *nearest(X, [i for i in remaining if i != r], X[r], k - 1)]
        remaining = [i for i in remaining if i not in members]
        labels[members] = group
        group += 1
    labels[remaining] = group
    return labels


def mean(X: NDArray[np.float64], rows: list[int], exact: bool) -> NDArray[np.float64]:
    if not exact:
        return np.asarray(X[rows].mean(axis=0))
    return np.array([fsum(X[rows, column]) / len(rows) for column in range(X.shape[1])])


def farthest(X: NDArray[np.float64], rows: list[int], query: NDArray[np.float64]) -> int:
    distance = distances(X, rows, query)
    return min(zip(-distance, rows, strict=True))[1]


def nearest(X: NDArray[np.float64], rows: list[int], query: NDArray[np.float64], m: int) -> list[int]:
    return [row for _, row in sorted(zip(distances(X, rows, query), rows, strict=True))[:m]]


def distances(X: NDArray[np.float64], rows: list[int], query: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.zeros(len(rows))
    for column in range(X.shape[1]):
        total += (X[rows, column] - query[column]) ** 2
    # A number of 2048 or more has no digits worth rounding at 2⁻⁴⁰: there the rule rounds to its own precision.
    return np.where(total < 2048, np.rint(total / STEP) * STEP, (total + 6144.0) - 6144.0)
