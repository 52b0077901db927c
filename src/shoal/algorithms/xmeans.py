"""X-means (Pelleg & Moore 2000) with a corrected BIC, on a k-means that comes out the same on any machine.

Points and centres lie on a grid of 2⁻²⁰, so that a squared distance is a whole number of ticks of 2⁻⁴⁰ and every sum of them
below 2¹³ is exact: in whatever order a BLAS multiplies, with or without fused operations, on one thread or many. A point that
is as near to two centres belongs to the first. Rows carry weights, so that equal rows are clustered once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.pieces import CELLS, pieces
from shoal.progress import Progress

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Criterion = Literal["bic", "aic"]

# Points on top of each other have none, and its logarithm would decide everything.
SMALLEST_VARIANCE = 1e-9
# Halves of fewer records have no spread to tell from chance.
SMALLEST_SPLIT = 4
# Features are rounded to this grid, on which sums of squares are exact (see the top of this file).
GRID = 2.0**20
# Numbers that are added exactly between two checks of the progress: one takes as long as ten that a BLAS multiplies.
ADDED = CELLS // 10
# Criteria grow with the records, up to 2³⁰ or so: smaller steps than these say nothing and would not be exact.
STEPS = 2.0**10


def xmeans(
    points: Floats,
    weights: Floats,
    *,
    least: int,
    most: int,
    seed: int,
    criterion: Criterion = "bic",
    iterations: int = 100,
    progress: Progress | None = None,
) -> Labels:
    """A cluster per row: start with `least`, split where the criterion rises, stop at `most`; the best model seen wins."""
    points, distinct = on_grid(points), len(points)
    least, most = max(1, min(least, distinct)), max(1, min(most, distinct))
    told = Progress.of(progress)
    labels = kmeans(points, weights, least, seed, iterations, told)
    best, best_score = labels, _steps(score(points, weights, labels, criterion, told))
    while True:
        centres = _split(points, weights, labels, most, seed, criterion, iterations, told)
        if centres is None:
            return best
        labels = kmeans(points, weights, centres, seed, iterations, told)
        found = _steps(score(points, weights, labels, criterion, told))
        if found > best_score:
            best, best_score = labels, found
        if int(labels.max()) + 1 >= most:
            return best


def score(
    points: Floats, weights: Floats, labels: Labels, criterion: Criterion = "bic", progress: Progress | None = None
) -> float:
    """BIC (or AIC) of spherical clusters with one pooled variance; larger is better, -inf when it is not defined."""
    clusters = int(labels.max()) + 1
    size, dimensions = exact.total(weights), points.shape[1]
    if size <= clusters:
        return -np.inf
    sizes, sums = _sums(points, weights, labels, clusters)
    squares = _within(points, weights, labels, sums / sizes[:, None], Progress.of(progress))
    variance = max(SMALLEST_VARIANCE, squares / (dimensions * (size - clusters)))
    likelihood = (
        exact.weighed(sizes, exact.log(sizes / size))
        - size * dimensions / 2 * float(exact.log(2 * math.pi * variance))
        - dimensions * (size - clusters) / 2
    )
    free = (clusters - 1) + dimensions * clusters + 1
    return float(likelihood - (free if criterion == "aic" else free / 2 * float(exact.log(size))))


def kmeans(
    points: Floats, weights: Floats, start: int | Floats, seed: int, iterations: int, progress: Progress
) -> Labels:
    """Lloyd's k-means of points on the grid, from given centres or from so many drawn; clusters are numbered without gaps."""
    if len(points) <= 1 or (isinstance(start, int) and start <= 1):
        return np.zeros(len(points), dtype=np.int64)
    centres = _drawn(points, weights, start, seed, progress) if isinstance(start, int) else on_grid(start)
    labels = _nearest(points, centres, progress)
    for _ in range(iterations - 1):
        sizes, sums = _sums(points, weights, labels, len(centres))
        # A centre that lost all its points stays where it is.
        centres = np.where(sizes[:, None] > 0, on_grid(sums / np.maximum(1, sizes)[:, None]), centres)
        before, labels = labels, _nearest(points, centres, progress)
        if np.array_equal(before, labels):
            break
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def on_grid(values: Floats) -> Floats:
    """The nearest points of the grid."""
    return np.asarray(np.rint(values * GRID) / GRID)


def _drawn(points: Floats, weights: Floats, count: int, seed: int, progress: Progress) -> Floats:
    """k-means++ (Arthur & Vassilvitskii 2007): points drawn with odds of weight times squared distance to those before.

    Each time a few are drawn, and the one is taken that leaves the points nearest to their centres.
    """
    random = np.random.default_rng(seed)
    trials, chosen = 1 + count.bit_length(), [_draw(weights, random.random())]
    nearest = _squares(points, points[chosen])[:, 0]
    while len(chosen) < min(count, len(points)):
        progress.check()
        odds = weights * nearest
        if odds.max() <= 0:
            break
        drawn = [_draw(odds, u) for u in random.random(trials)]
        squares = np.minimum(nearest[:, None], _squares(points, points[drawn]))
        best = min(range(trials), key=lambda t: (exact.weighed(weights, squares[:, t]), t))
        chosen.append(drawn[best])
        nearest = squares[:, best]
    return points[chosen]


def _draw(odds: Floats, u: float) -> int:
    """The row where a share u of all odds is passed."""
    upto = np.cumsum(odds)
    return min(int(np.searchsorted(upto, u * upto[-1], side="right")), int(np.flatnonzero(odds)[-1]))


def _nearest(points: Floats, centres: Floats, progress: Progress) -> Labels:
    """The nearest centre of each point, the first of several."""
    parts = []
    for some in pieces(len(points), len(centres)):
        progress.check()
        parts.append(np.argmin(_squares(points[some], centres), axis=1))
    return np.concatenate(parts).astype(np.int64, copy=False)


def _squares(points: Floats, centres: Floats) -> Floats:
    """Squared distances of points (rows) and centres (columns): exact, see the top of this file."""
    own, other = np.square(points).sum(axis=1), np.square(centres).sum(axis=1)
    return np.asarray(own[:, None] - 2 * (points @ centres.T) + other)


def _sums(points: Floats, weights: Floats, labels: Labels, clusters: int) -> tuple[Floats, Floats]:
    """Weight and weighed sum of the points of every cluster; both exact for points on the grid."""
    columns = [np.bincount(labels, weights * column, clusters) for column in points.T]
    return np.asarray(np.bincount(labels, weights, clusters), dtype=np.float64), np.stack(columns, axis=1)


def _within(points: Floats, weights: Floats, labels: Labels, centres: Floats, progress: Progress) -> float:
    """Squared distances of all points to the centres of their clusters, added up and rounded once."""

    def terms() -> Iterator[list[float]]:
        for some in pieces(len(points), points.shape[1] * (CELLS // ADDED)):
            progress.check()
            away = points[some] - centres[labels[some]]
            yield (weights[some, None] * away**2).ravel().tolist()

    return math.fsum(chain.from_iterable(terms()))


def _split(
    points: Floats,
    weights: Floats,
    labels: Labels,
    most: int,
    seed: int,
    criterion: Criterion,
    iterations: int,
    progress: Progress,
) -> Floats | None:
    """Centres after splitting every cluster that gains by it, largest gain first; None when none does."""
    clusters = int(labels.max()) + 1
    gains: list[tuple[float, int, Floats]] = []
    sizes, sums = _sums(points, weights, labels, clusters)
    for c in range(clusters):
        inside = labels == c
        own, heavy = points[inside], weights[inside]
        if sizes[c] < SMALLEST_SPLIT or len(own) < 2:
            continue
        halves = kmeans(own, heavy, 2, seed + c + 1, iterations, progress)
        if halves.max() < 1:
            continue
        whole = np.zeros(len(own), dtype=np.int64)
        gain = _steps(score(own, heavy, halves, criterion, progress) - score(own, heavy, whole, criterion, progress))
        if gain > 0:
            children, places = _sums(own, heavy, halves, 2)
            gains.append((gain, c, places / children[:, None]))
    gains.sort(key=lambda entry: (-entry[0], entry[1]))
    chosen = {c: children for _, c, children in gains[: max(0, most - clusters)]}
    if not chosen:
        return None
    kept = sums / sizes[:, None]
    return np.concatenate([chosen.get(c, kept[c][None, :]) for c in range(clusters)])


def _steps(value: float) -> float:
    """A criterion in steps, so that its last digits decide nothing."""
    return float(np.rint(value * STEPS))
