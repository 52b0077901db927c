"""The certificate of a lower bound by distances, tested record by record, in whole numbers.

Shares nothing with `shoal.measures.apart`, which makes it, but the two theorems that its docstring states. What is claimed is
taken up, and distances down, to whole ticks of 2⁻⁴⁰.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shoal.measures.certificate import SAFE, TICKS
from shoal.policy import Rules
from shoal.progress import Progress
from shoal.space import Interval, Set, Space, Tree

# Records that are tested before the caller can interrupt.
STRETCH = 200

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def obeys_distances(
    codes: NDArray[np.int32],
    space: Space,
    rules: Rules,
    attributes: tuple[int, ...],
    u: Floats,
    by: str,
    told: Progress,
) -> bool:
    """Whether a number a record is no more than the theorem of this name gives for some attributes."""
    from shoal.kernels.certificate_apart import Told, obeys

    k = rules.k
    if by not in ("farthest", "pairs") or k < 2 or not attributes:
        return not u.any()
    # Equal records with the largest number that is claimed of any: what holds for that holds for all.
    own, kind, copies = np.unique(codes[:, attributes], axis=0, return_inverse=True, return_counts=True)
    claimed = np.zeros(len(own))
    np.maximum.at(claimed, kind.ravel(), u)
    lines, names, kinds = [], [], []
    circles: list[list[tuple[int, int, int]]] = []
    for column, a in zip(own.T, attributes, strict=True):
        domain, worth = space.domains[a], float(space.weights[a]) * TICKS * SAFE
        shares = k / 2 / _pairs(domain, space, len(np.unique(column)), k) if by == "pairs" else 1.0
        if isinstance(domain, Interval):
            lines.append(np.floor(_positions(domain)[column] * (worth * shares)))
            continue
        names.append(column)
        kinds.append(column + len(circles))
        circles += [
            [(low, high, int(loss * worth * shares)) for low, high, loss in found] for found in _circles(domain, space)
        ]
    flat = np.array([circle for found in circles for circle in found], dtype=np.int64).reshape(-1, 3)
    it = Told(
        copies.astype(np.int64),
        np.ceil(claimed * TICKS).astype(np.int64),
        np.array(lines, dtype=np.int64).reshape(len(lines), len(own)),
        np.array(names, dtype=np.int64).reshape(len(names), len(own)),
        np.array(kinds, dtype=np.int64).reshape(len(names), len(own)),
        np.cumsum([0, *map(len, circles)]).astype(np.int64),
        flat[:, 0].copy(),
        flat[:, 1].copy(),
        flat[:, 2].copy(),
    )
    nearest = np.zeros(k - 1, dtype=np.int64)
    edges = [*range(0, len(own), STRETCH), len(own)]
    for edge in pairwise(edges):
        told.check()
        if not obeys(it, k, by == "farthest", nearest, edge):
            return False
    return True


def _positions(domain: Interval) -> Floats:
    """Numbers on a line no longer than 1, on which no two are further apart than they lose; missing at its far end."""
    values = domain.values
    if len(values) == 0 or domain.width <= 0:
        return np.append(np.zeros(len(values)), [1.0] * domain.has_missing)
    reach = max(domain.width, float(values.max() - values.min()))
    return np.append((values - values.min()) / reach, [1.0] * domain.has_missing)


def _circles(domain: Tree | Set, space: Space) -> list[list[tuple[int, int, float]]]:
    """Around each code ever larger ranges of codes, and what whoever is in one loses together with it."""
    last = domain.size - 1
    if isinstance(domain, Set):
        # One value loses nothing; two are the cheapest set of several.
        any_two = float(domain.size_losses(space.measure)[min(2, domain.size)])
        return [[(code, code, 0.0), (0, last, any_two)] for code in range(domain.size)]
    tree, losses = domain.taxonomy, domain.node_losses(space.measure)
    found = []
    for code in range(tree.leaves):
        around, node = [(code, code, 0.0)], int(tree.parent[code])
        while node >= 0:
            around.append((int(tree.first[node]), int(tree.last[node]), float(losses[node])))
            node = int(tree.parent[node])
        found.append(around)
    return found


def _pairs(domain: Interval | Tree | Set, space: Space, values: int, k: int) -> float:
    """The most that all pairs of k records can lose together, over what the k lose, and 1 at least."""
    if isinstance(domain, Interval):
        return float(max(1, (k // 2) * (k - k // 2)))
    most = 1.0
    for held in range(2, min(k, values) + 1):
        # k records on so many values, one after the other in turn.
        times = Counter(record % held for record in range(k))
        differ = (k * k - sum(count * count for count in times.values())) / 2
        if isinstance(domain, Set):
            sizes = domain.size_losses(space.measure)
            differ *= float(sizes[2] / sizes[held])
        most = max(most, differ)
    return most
