"""X-means (Pelleg & Moore 2000) on scikit-learn's k-means, with the corrected BIC of SPEC §4.15.

Rows carry weights, so that equal rows are clustered once.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Criterion = Literal["bic", "aic"]

SMALLEST_VARIANCE = 1e-9
SMALLEST_SPLIT = 4


def xmeans(
    points: Floats,
    weights: Floats,
    *,
    least: int,
    most: int,
    seed: int,
    criterion: Criterion = "bic",
    iterations: int = 100,
) -> Labels:
    """A cluster per row: start with `least`, split where the criterion rises, stop at `most`; the best model seen wins."""
    distinct = len(points)
    least, most = max(1, min(least, distinct)), max(1, min(most, distinct))
    centres = None
    labels = _kmeans(points, weights, least, seed, iterations)
    best, best_score = labels, score(points, weights, labels, criterion)
    while True:
        centres = _split(points, weights, labels, most, seed, criterion, iterations)
        if centres is None:
            return best
        labels = _kmeans(points, weights, len(centres), seed, iterations, centres)
        found = score(points, weights, labels, criterion)
        if found > best_score:
            best, best_score = labels, found
        if int(labels.max()) + 1 >= most:
            return best


def score(points: Floats, weights: Floats, labels: Labels, criterion: Criterion = "bic") -> float:
    """BIC (or AIC) of spherical clusters with one pooled variance; larger is better, -inf when it is not defined."""
    clusters = int(labels.max()) + 1
    size, dimensions = float(weights.sum()), points.shape[1]
    if size <= clusters:
        return -np.inf
    sizes = np.bincount(labels, weights, clusters)
    means = np.stack([np.bincount(labels, weights * column, clusters) for column in points.T], axis=1) / sizes[:, None]
    squares = float((weights[:, None] * (points - means[labels]) ** 2).sum())
    variance = max(SMALLEST_VARIANCE, squares / (dimensions * (size - clusters)))
    likelihood = (
        float((sizes * np.log(sizes / size)).sum())
        - size * dimensions / 2 * np.log(2 * np.pi * variance)
        - dimensions * (size - clusters) / 2
    )
    free = (clusters - 1) + dimensions * clusters + 1
    return float(likelihood - (free if criterion == "aic" else free / 2 * np.log(size)))


def _split(
    points: Floats, weights: Floats, labels: Labels, most: int, seed: int, criterion: Criterion, iterations: int
) -> Floats | None:
    """Centres after splitting every cluster that gains by it, largest gain first; None when none does."""
    clusters = int(labels.max()) + 1
    gains: list[tuple[float, int, Floats]] = []
    kept = np.zeros((clusters, points.shape[1]))
    for c in range(clusters):
        inside = labels == c
        own, heavy = points[inside], weights[inside]
        kept[c] = np.average(own, axis=0, weights=heavy)
        if heavy.sum() < SMALLEST_SPLIT or len(own) < 2:
            continue
        halves = _kmeans(own, heavy, 2, seed + c + 1, iterations)
        if halves.max() < 1:
            continue
        gain = score(own, heavy, halves, criterion) - score(own, heavy, np.zeros(len(own), dtype=np.int64), criterion)
        if gain > 0:
            children = np.stack([np.average(own[halves == h], axis=0, weights=heavy[halves == h]) for h in (0, 1)])
            gains.append((gain, c, children))
    gains.sort(key=lambda entry: (-entry[0], entry[1]))
    chosen = {c: children for _, c, children in gains[: max(0, most - clusters)]}
    if not chosen:
        return None
    return np.concatenate([chosen.get(c, kept[c][None, :]) for c in range(clusters)])


def _kmeans(
    points: Floats, weights: Floats, clusters: int, seed: int, iterations: int, start: Floats | None = None
) -> Labels:
    """k-means; clusters are numbered without gaps."""
    if clusters <= 1 or len(points) <= 1:
        return np.zeros(len(points), dtype=np.int64)
    from sklearn.cluster import KMeans

    model = KMeans(
        n_clusters=min(clusters, len(points)),
        init="k-means++" if start is None else start,
        n_init=1,
        max_iter=iterations,
        random_state=seed % 2**32,
        algorithm="lloyd",
    )
    found = model.fit_predict(points, sample_weight=weights)
    return np.unique(found, return_inverse=True)[1].astype(np.int64)
