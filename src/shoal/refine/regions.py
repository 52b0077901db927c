"""Disjoint regions of a table, each of whole classes: searches in different regions cannot meet, so they may run side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def regions(codes: NDArray[np.int32], labels: Ints, count: int, random: np.random.Generator) -> list[Ints]:
    """The records of each of `count` regions of about the same size; classes are labelled 0, 1, 2 … without gaps.

    Cut in two and again in two, each time along an attribute drawn by how much it varies, so that another draw puts
    the seams elsewhere.
    """
    sizes = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    middle = order[np.cumsum(sizes) - sizes + sizes // 2]
    region = np.zeros(len(sizes), dtype=np.int64)
    parts = [(np.arange(len(sizes)), 0, count)]
    while parts:
        classes, first, wanted = parts.pop()
        region[classes] = first
        if wanted > 1 and len(classes) > 1:
            ranked = classes[_ranks(codes[middle[classes]], random)]
            ends = np.cumsum(sizes[ranked])
            left = wanted // 2
            cut = int(np.searchsorted(ends, ends[-1] * left / wanted))
            parts += [(ranked[:cut], first, left), (ranked[cut:], first + left, wanted - left)]
    of_record = region[labels]
    found = [np.flatnonzero(of_record == number) for number in range(count)]
    return [records for records in found if len(records)]


def _ranks(codes: NDArray[np.int32], random: np.random.Generator) -> Ints:
    """The rows along one attribute, equal ones along the others in a random order."""
    columns = codes.shape[1]
    varied = np.array([_variety(codes[:, a]) for a in range(columns)]) + 1e-9
    first = int(random.choice(columns, p=varied / varied.sum()))
    others = [a for a in random.permutation(columns) if a != first]
    return np.lexsort([codes[:, a] for a in [*others, first]])


def _variety(column: NDArray[np.int32]) -> float:
    """The chance that two rows differ."""
    shares = np.bincount(column) / len(column)
    return float(1.0 - (shares**2).sum())
