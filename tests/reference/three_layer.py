"""001's three layers in plain Python: weights, BIC, and merging of clusters; nothing shared with the package."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any


def chi_squared(rows: Sequence[Any], columns: Sequence[Any]) -> float:
    observed = Counter(zip(rows, columns, strict=True))
    by_row, by_column, n = Counter(rows), Counter(columns), len(rows)
    if len(by_row) < 2 or len(by_column) < 2:
        return 0.0
    total = 0.0
    for r in by_row:
        for c in by_column:
            expected = by_row[r] * by_column[c] / n
            total += (observed[r, c] - expected) ** 2 / expected
    return total


def bic(clusters: Sequence[Sequence[Sequence[float]]]) -> float:
    points = [point for cluster in clusters for point in cluster]
    size, dimensions, k = len(points), len(points[0]), len(clusters)
    squares = 0.0
    for cluster in clusters:
        centre = [sum(p[j] for p in cluster) / len(cluster) for j in range(dimensions)]
        squares += sum((p[j] - centre[j]) ** 2 for p in cluster for j in range(dimensions))
    variance = max(1e-9, squares / (dimensions * (size - k)))
    likelihood = sum(len(c) * math.log(len(c) / size) for c in clusters)
    likelihood -= size * dimensions / 2 * math.log(2 * math.pi * variance) + dimensions * (size - k) / 2
    return likelihood - ((k - 1) + dimensions * k + 1) / 2 * math.log(size)


def merge(
    clusters: list[list[int]],
    groups: list[int],
    features: Sequence[Sequence[float]],
    ok: Callable[[list[int]], bool],
    by_group: bool,
) -> list[list[int]]:
    """Layer 3 A: failing clusters, smallest first, join the nearest of their group; emptied ones stay as []."""
    clusters = [list(cluster) for cluster in clusters]

    def centre(cluster: list[int]) -> list[float]:
        return [sum(features[r][j] for r in cluster) / len(cluster) for j in range(len(features[0]))]

    while True:
        standing = [i for i, cluster in enumerate(clusters) if cluster]
        failing = [i for i in standing if not ok(clusters[i])]
        if not failing or len(standing) == 1:
            return clusters
        worst = min(failing, key=lambda i: (len(clusters[i]), i))
        others = [i for i in standing if i != worst]
        same = [i for i in others if groups[i] == groups[worst]] if by_group else others
        own = centre(clusters[worst])
        nearest = min(
            same or others, key=lambda i: sum((a - b) ** 2 for a, b in zip(centre(clusters[i]), own, strict=True))
        )
        clusters[nearest] += clusters[worst]
        clusters[worst] = []
