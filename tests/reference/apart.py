"""How far records are apart, pair by pair, from the joins of a space alone; nothing shared with the bound that is compared."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from shoal.space import Interval, Set, Space


def number_of(record: int, codes: NDArray[np.int32], space: Space, k: int, way: str) -> float:
    """The number of one record by the farthest or by pairs, as docs/algorithms.md says."""
    shares = [1 / pairs(codes[:, a], space, a, k) if way == "pairs" else 1.0 for a in range(codes.shape[1])]
    far = sorted(
        sum(share * distance(int(codes[record, a]), int(codes[other, a]), space, a) for a, share in enumerate(shares))
        for other in range(len(codes))
        if other != record
    )[: k - 1]
    return k / 2 * sum(far) if way == "pairs" else far[-1]


def distance(one: int, other: int, space: Space, a: int) -> float:
    """What an attribute loses on two codes; numbers on a line, missing at its end."""
    domain, weight = space.domains[a], float(space.weights[a])
    if not isinstance(domain, Interval):
        return weight * joined((one, other), space, a)
    known = domain.values
    reach = max(domain.width, float(known[-1] - known[0])) if len(known) else 0.0
    places = [
        1.0 if code == domain.missing_code else (known[code] - known[0]) / reach if reach else 0.0
        for code in (one, other)
    ]
    return weight * float(abs(places[0] - places[1]))


def joined(some: tuple[int, ...], space: Space, a: int) -> float:
    """The loss of a set of codes."""
    domain = space.domains[a]
    if isinstance(domain, Set):
        return float(domain.size_losses(space.measure)[len(set(some))])
    return float(domain.loss(np.array([min(some)]), np.array([max(some)]), space.measure)[0])


def pairs(column: NDArray[np.int32], space: Space, a: int, k: int) -> float:
    """How often k records can be in different places at most, by trying all ways to share so many places."""
    domain = space.domains[a]
    places = 2 if isinstance(domain, Interval) else min(k, len(np.unique(column)))
    most = 1.0
    for chosen in combinations_with_replacement(range(places), k):
        held = len(set(chosen))
        differ = sum(chosen[i] != chosen[j] for i in range(k) for j in range(i)) * 1.0
        if isinstance(domain, Set) and held > 1:
            sizes = domain.size_losses(space.measure)
            differ *= float(sizes[2] / sizes[held])
        most = max(most, differ)
    return most
