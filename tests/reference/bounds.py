"""The best partition of a tiny table, by looking at all of them; nothing shared with the bound it judges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


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
