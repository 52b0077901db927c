"""The three layers of docs/algorithms.md#three_layer in plain Python, x-means and merging included.

Points are whole numbers, steps of 2⁻²⁰, and so are centres; distances are then whole ticks of 2⁻⁴⁰ and nothing is rounded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

Point = list[int]
STEP = 2.0**-20


def chi_squared(rows: Sequence[Any], columns: Sequence[Any]) -> float:
    observed = Counter(zip(rows, columns, strict=True))
    by_row, by_column, n = Counter(rows), Counter(columns), len(rows)
    if len(by_row) < 2 or len(by_column) < 2:
        return 0.0
    cells = []
    for r in by_row:
        for c in by_column:
            expected = by_row[r] * by_column[c] / n
            cells.append((observed[r, c] - expected) ** 2 / expected)
    return math.fsum(cells)


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
            same or others,
            key=lambda i: round(sum((a - b) ** 2 for a, b in zip(centre(clusters[i]), own, strict=True)) * 2**40),
        )
        clusters[nearest] += clusters[worst]
        clusters[worst] = []


def three_layer(
    table: Table,
    k: int,
    ok: Callable[[list[int]], bool],
    *,
    least: int,
    most: int,
    seed: int,
    uniform: bool = False,
    by_spread: bool = False,
) -> tuple[list[list[int]], list[int]]:
    """All of it: the released classes and the suppressed records, for policies closed under supersets."""
    raw = [1.0 if uniform else chi_squared(*_known(table.bins(a), table.label)) for a in range(table.width)]
    weights = _scaled(raw, 1.0)
    variety = _scaled([float(len(set(column))) for column in table.columns], 0.0)
    order = sorted(range(table.width), key=lambda a: (-round((weights[a] + 1 - variety[a]) * 2**40), a))
    first = order[: math.ceil(table.width / 2)]
    scale = [math.sqrt(max(w, 0.1)) / (table.apart(a) if by_spread else 1) for a, w in enumerate(weights)]
    everyone = list(range(table.n))
    clusters: list[list[int]] = []
    groups: list[int] = []
    outside: list[int] = []
    for number, cluster in enumerate(_clustered(table, everyone, first, scale, least, most, seed)):
        if len(cluster) < k:
            outside += cluster
            continue
        parts, room = [cluster], min(10, len(cluster) // (2 * k))
        if len(cluster) >= 4 and room >= 2:
            parts = _clustered(table, cluster, order[: len(first) + 1], scale, 2, room, seed)
        clusters += parts
        groups += [number] * len(parts)
    outside.sort()
    attributes, second = list(first), []
    while len(attributes) > 1 and len(outside) >= k:
        attributes.pop()
        found = _clustered(table, outside, attributes, scale, least, most, seed)
        second += [cluster for cluster in found if len(cluster) >= k]
        outside = sorted(record for cluster in found if len(cluster) < k for record in cluster)
    features = [[x * STEP for x in table.point(record, range(table.width), scale)] for record in everyone]
    released = merge(clusters, groups, features, ok, True) + merge(second, [0] * len(second), features, ok, False)
    released = merge([c for c in released if c], [0] * table.n, features, ok, False)
    released = [cluster for cluster in released if cluster]
    return ([*released, outside], []) if outside and ok(outside) else (released, outside)


class Table:
    """Codes of the quasi-identifiers and of the sensitive attribute; numbers of an attribute, or None for categories."""

    def __init__(
        self, columns: list[list[int]], numbers: list[list[float] | None], sizes: list[int], label: list[int]
    ) -> None:
        self.columns, self.numbers, self.sizes, self.label = columns, numbers, sizes, label
        self.n, self.width = len(label), len(columns)

    def bins(self, a: int) -> list[int]:
        """Ten bins of equal width for numbers, missing in one of its own; categories as they are."""
        values = self.numbers[a]
        if values is None:
            return self.columns[a]
        spread = values[-1] - values[0]
        return [
            10 if code == len(values) else min(9, int((values[code] - values[0]) / spread * 10)) if spread else 0
            for code in self.columns[a]
        ]

    def apart(self, a: int) -> float:
        """The root mean square of the distance of two records in one attribute, over all pairs; an eighth at least."""
        ones, squares = [1.0] * self.width, []
        for i in range(self.n):
            mine = self.place(i, [a], ones)
            for j in range(self.n):
                squares.append(sum((x - y) ** 2 for x, y in zip(mine, self.place(j, [a], ones), strict=True)))
        return max(1 / 8, math.sqrt(math.fsum(squares) / len(squares)))

    def point(self, record: int, attributes: Sequence[int], scales: list[float]) -> Point:
        """Numbers on [0, 1] (and whether they are missing), categories one-hot over √2, each times the attribute's scale."""
        return [round(x / STEP) for x in self.place(record, attributes, scales)]

    def place(self, record: int, attributes: Sequence[int], scales: list[float]) -> list[float]:
        found: list[float] = []
        for a in attributes:
            scale, code, values = scales[a], self.columns[a][record], self.numbers[a]
            if values is None:
                found += [scale / math.sqrt(2) if code == c else 0.0 for c in range(self.sizes[a])]
                continue
            spread = values[-1] - values[0]
            places = [(value - values[0]) / spread if spread else 0.0 for value in values]
            missing = code == len(values)
            found.append(scale * (math.fsum(places) / len(places) if missing else places[code]))
            if self.sizes[a] > len(values):
                found.append(scale * missing)
        return found


def _known(rows: list[int], label: list[int]) -> tuple[list[int], list[int]]:
    pairs = [(row, value) for row, value in zip(rows, label, strict=True) if value >= 0]
    return [row for row, _ in pairs], [value for _, value in pairs]


def _scaled(values: list[float], when_equal: float) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else when_equal for value in values]


def _clustered(
    table: Table, records: list[int], attributes: Sequence[int], scales: list[float], least: int, most: int, seed: int
) -> list[list[int]]:
    """X-means of the distinct rows, in the order of their codes, each with its weight."""
    rows: dict[tuple[int, ...], list[int]] = {}
    for record in records:
        rows.setdefault(tuple(table.columns[a][record] for a in attributes), []).append(record)
    members = [rows[key] for key in sorted(rows)]
    points = [table.point(of[0], attributes, scales) for of in members]
    most = max(1, min(most, len(points)))
    clusters = kmeans(points, members, list(range(len(points))), max(1, min(least, len(points))), seed, None)
    best = clusters
    while True:
        gains = []
        for c, cluster in enumerate(clusters):
            if sum(len(members[i]) for i in cluster) < 4 or len(cluster) < 2:
                continue
            halves = kmeans(points, members, cluster, 2, seed + c + 1, None)
            if len(halves) == 2:
                gain = _bic(points, members, halves) - _bic(points, members, [cluster])
                if _steps(gain) > 0:
                    gains.append((-_steps(gain), c, [_centre(points, members, half) for half in halves]))
        chosen = {c: pair for _, c, pair in sorted(gains)[: max(0, most - len(clusters))]}
        if not chosen:
            break
        starts = [s for c, own in enumerate(clusters) for s in chosen.get(c, [_centre(points, members, own)])]
        clusters = kmeans(points, members, list(range(len(points))), len(starts), seed, starts)
        if _steps(_bic(points, members, clusters)) > _steps(_bic(points, members, best)):
            best = clusters
        if len(clusters) >= most:
            break
    return [sorted(record for i in cluster for record in members[i]) for cluster in best]


def _bic(points: list[Point], members: list[list[int]], clusters: list[list[int]]) -> float:
    copies = [[[x * STEP for x in points[i]] for i in cluster for _ in members[i]] for cluster in clusters]
    return bic(copies) if sum(map(len, copies)) > len(copies) else -math.inf


def _steps(criterion: float) -> float:
    return criterion if math.isinf(criterion) else round(criterion * 2**10)


def _centre(points: list[Point], members: list[list[int]], cluster: list[int]) -> Point:
    size = sum(len(members[i]) for i in cluster)
    return [round(Fraction(sum(points[i][j] * len(members[i]) for i in cluster), size)) for j in range(len(points[0]))]


def _squared(one: Point, other: Point) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _drawn(points: list[Point], sizes: list[int], count: int, seed: int) -> list[Point]:
    """k-means++ that draws a few points each time and takes the one that leaves the others nearest to a centre."""
    random = np.random.default_rng(seed)

    def draw(odds: list[int], u: float) -> int:
        upto = 0
        for i, each in enumerate(odds):
            upto += each
            if upto > Fraction(u) * sum(odds):
                return i
        raise AssertionError("u is below 1")

    centres = [points[draw(sizes, random.random())]]
    while len(centres) < count:
        near = [min(_squared(point, centre) for centre in centres) for point in points]
        if not any(near):
            break
        drawn = [
            points[draw([size * away for size, away in zip(sizes, near, strict=True)], u)]
            for u in random.random(len(f"{count:b}") + 1)
        ]

        def left(centre: Point, near: list[int] = near) -> int:
            return sum(
                size * min(away, _squared(point, centre)) for size, away, point in zip(sizes, near, points, strict=True)
            )

        centres.append(min(drawn, key=left))
    return centres


def kmeans(
    points: list[Point],
    members: list[list[int]],
    inside: list[int],
    count: int,
    seed: int,
    centres: list[Point] | None,
) -> list[list[int]]:
    """Every point to its nearest centre, every centre to the mean of its points, a hundred times or until nothing moves."""
    if count <= 1 or len(inside) <= 1:
        return [list(inside)]
    if centres is None:
        centres = _drawn([points[i] for i in inside], [len(members[i]) for i in inside], min(count, len(inside)), seed)
    clusters: list[list[int]] = []
    for _ in range(100):
        before, clusters = clusters, [[] for _ in centres]
        for i in inside:
            clusters[min(range(len(centres)), key=lambda c: _squared(points[i], centres[c]))].append(i)
        if clusters == before:
            break
        centres = [
            _centre(points, members, own) if own else centre for own, centre in zip(clusters, centres, strict=True)
        ]
    return [cluster for cluster in clusters if cluster]
