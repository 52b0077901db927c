"""The best partition of a tiny table, by looking at all of them, and the best fractional one; nothing shared with the bound they judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

import numpy as np
from scipy.optimize import linprog


def optimum(n: int, cost: Callable[[list[list[int]]], list[float]], good: Callable[[list[int]], bool]) -> float:
    """Least total cost over all partitions into good classes; inf when there is none. `cost` prices many classes at once."""
    masks = list(range(1, 1 << n))
    members = {mask: [r for r in range(n) if mask >> r & 1] for mask in masks}
    usable = [mask for mask in masks if good(members[mask])]
    prices = dict(zip(usable, cost([members[mask] for mask in usable]), strict=True))
    best = np.full(1 << n, np.inf)
    best[0] = 0.0
    for mask in masks:
        lowest = mask & -mask
        # The class of the first record decides the rest.
        for part, price in prices.items():
            if part & lowest and part & mask == part:
                best[mask] = min(best[mask], price + best[mask ^ part])
    return float(best[-1])


def best_certificate(n: int, k: int, boxes: Iterable[tuple[list[int], float]]) -> float:
    """The largest Σ u that the theorem allows: no k records of a box (its records, its loss) have more than k times its loss."""
    limits: dict[tuple[int, ...], float] = {}
    for inside, loss in boxes:
        for some in combinations(inside, k):
            limits[some] = min(limits.get(some, np.inf), k * loss)
    rows = np.zeros((len(limits), n))
    for row, some in zip(rows, limits, strict=True):
        row[list(some)] = 1
    found = linprog(-np.ones(n), A_ub=rows, b_ub=list(limits.values()), bounds=(0, None))
    return float(-found.fun)
