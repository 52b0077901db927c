"""Taxonomies that nobody has to write down: from prefixes, intervals, dates, or from the data itself."""

from __future__ import annotations

import datetime
import math
from bisect import bisect_right
from collections.abc import Sequence, Sized
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ConfigError, InternalError, raw
from shoal.taxonomy import Taxonomy

Numbers = Sequence[float] | NDArray[np.float64]
Counts = Sequence[int] | NDArray[np.integer]

UNITS = ("day", "month", "quarter", "year", "decade")

_FINEST_DEPTH = 4  # halving four times: at most 16 groups of numbers
_CLUSTERED_AT_MOST = 2000  # linkage needs all pairs; further labels join the nearest of these
_PRIOR_RECORDS = 10.0  # so many records of an average label are added to each: fewer than that say little by themselves
_LABEL_WIDTH = 40  # characters of a group's name; longer ones are shortened, for nobody reads them


def from_prefixes(values: Sequence[str], keep: Sequence[int], name: str = "taxonomy") -> Taxonomy:
    """Strings that lose their end: `keep` tells how many characters stay at each level above the leaves.

    >>> from_prefixes(["41076", "41099", "48201"], keep=[3, 2, 0]).path(0)
    ('41076', '410**', '41***', '*****')
    """
    distinct = sorted(set(values))
    _require_some(distinct, name)
    if not keep or min(keep) < 0 or any(coarser >= finer for finer, coarser in pairwise(keep)):
        raise ConfigError(
            f"Taxonomy '{name}': prefix = {list(keep)} must fall from level to level, for example [3, 2, 0]."
        )
    # Padding to one width gives values of different length a common root.
    width = max(1, max(map(len, distinct)))
    # A level that keeps everything is the leaf again, and one that keeps nothing is the root, added below.
    inner = [count for count in keep if 0 < count < width]
    return Taxonomy.from_rows(
        ([value, *(value[:count].ljust(width, "*") for count in inner), "*" * width] for value in distinct),
        name,
    )


def from_intervals(
    values: Numbers,
    widths: Sequence[float] | None = None,
    *,
    edges: Sequence[Sequence[float]] | None = None,
    origin: float = 0.0,
    name: str = "taxonomy",
) -> Taxonomy:
    """Numbers in nested intervals, finest first: of fixed `widths` counted from `origin`, or between `edges`.

    The interval up to the last edge includes it; all others stop short of their upper edge.

    >>> from_intervals([21, 24, 25, 40], widths=[5, 20]).path(0)
    ('21', '[20, 24]', '[20, 39]', '*')
    >>> from_intervals([0.5, 2.25, 9], edges=[[0, 1, 5, 10], [0, 5, 10]]).path(1)
    ('2.25', '[1, 5)', '[0, 5)', '*')
    """
    numbers = _distinct(values, name)
    if (widths is None) == (edges is None):
        raise ConfigError(f"Taxonomy '{name}': give intervals either widths or edges.")
    if widths is not None:
        levels = _labels_by_width(numbers, widths, origin, name)
    else:
        levels = [_labels_by_edges(numbers, level, name) for level in _nested(edges or (), name)]
    leaves = [number_label(number) for number in numbers]
    return Taxonomy.from_rows(zip(leaves, *levels, ["*"] * len(leaves), strict=True), name)


def from_dates(values: Sequence[str], units: Sequence[str], name: str = "taxonomy") -> Taxonomy:
    """Dates 'YYYY-MM-DD' by calendar units, finest first, of day, month, quarter, year, decade.

    >>> from_dates(["2021-03-09", "2021-05-01"], units=["month", "quarter", "decade"]).path(0)
    ('2021-03-09', '2021-03', '2021-Q1', '2020s', '*')
    """
    if not units or [unit for unit in UNITS if unit in units] != list(units):
        raise ConfigError(
            f"Taxonomy '{name}': dates = {list(units)} must be taken in this order from {', '.join(UNITS)}."
        )
    distinct = sorted(set(values))
    _require_some(distinct, name)
    # A day is the leaf itself.
    inner = [unit for unit in units if unit != "day"]
    return Taxonomy.from_rows((_date_row(value, inner, name) for value in distinct), name)


def auto_numbers(values: Numbers, counts: Counts, name: str = "taxonomy") -> Taxonomy:
    """Numbers halved at the weighted median, and the halves again, to at most 16 groups.

    Labels are the smallest and largest value of the group.
    """
    numbers = [float(value) for value in values]
    _require_some(numbers, name)
    if len(numbers) != len(counts) or any(high <= low for low, high in pairwise(numbers)):
        raise InternalError(f"taxonomy '{name}': numbers must rise and come with one count each")
    leaves = [number_label(number) for number in numbers]
    paths: list[list[str]] = [["*"] for _ in numbers]
    cumulated = np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))])
    parts = [(0, len(numbers))]
    for _ in range(_FINEST_DEPTH):
        halves = []
        for start, stop in parts:
            # Three values side by side need no level between them.
            if stop - start <= 3:
                continue
            middle = (cumulated[start] + cumulated[stop]) / 2
            cut = start + 1 + int(np.argmin(np.abs(cumulated[start + 1 : stop] - middle)))
            halves += [(start, cut), (cut, stop)]
        for start, stop in halves:
            if stop - start > 1:
                label = f"[{leaves[start]}, {leaves[stop - 1]}]"
                for position in range(start, stop):
                    paths[position].append(label)
        parts = halves
    return Taxonomy.from_rows(([leaf, *reversed(path)] for leaf, path in zip(leaves, paths, strict=True)), name)


def auto_categories(
    labels: Sequence[str], profile: NDArray[np.float64], counts: Counts, name: str = "taxonomy"
) -> Taxonomy:
    """Categories with similar profiles together: average linkage, cut into a few nested levels.

    `profile` has one row of features per label, for example how often each value of other attributes occurs
    with it. The profile of a rare label is mostly chance, so it is drawn towards the average profile.
    """
    profile = np.asarray(profile, dtype=np.float64)
    _require_some(labels, name)
    if profile.ndim != 2 or len(profile) != len(labels) or len(counts) != len(labels):
        raise InternalError(f"taxonomy '{name}': one profile row and one count per label are needed")
    if len(set(labels)) != len(labels) or not np.isfinite(profile).all():
        raise InternalError(f"taxonomy '{name}': labels must be distinct and profiles finite")
    # Sorted, so that the order the labels came in does not matter.
    order = sorted(range(len(labels)), key=labels.__getitem__)
    names = [labels[position] for position in order]
    weights = np.asarray(counts, dtype=np.float64)[order, None]
    shares = profile[order]
    average = (weights * shares).sum(axis=0) / max(weights.sum(), 1.0)
    shares = (weights * shares + _PRIOR_RECORDS * average) / (weights + _PRIOR_RECORDS)

    group_labels = _GroupLabels(names)
    paths: list[list[str]] = [[label] for label in names]
    below = np.arange(len(names))
    for groups in _nested_groups(shares, weights[:, 0]):
        members: dict[int, list[int]] = {}
        for position, group in enumerate(groups):
            members.setdefault(int(group), []).append(position)
        for inside in members.values():
            # A group no larger than one of the level below is the same node again.
            if len({int(below[position]) for position in inside}) > 1 and len(inside) < len(names):
                label = group_labels.of([names[position] for position in inside])
                for position in inside:
                    paths[position].append(label)
        below = groups
    return Taxonomy.from_rows(([*path, "*"] for path in paths), name)


def number_label(number: float) -> str:
    """A number as text: integers without a point, others in the shortest form that reads back equal.

    >>> number_label(41.0), number_label(0.1), number_label(-0.0)
    ('41', '0.1', '0')
    """
    number = float(number)
    if number.is_integer() and abs(number) < 2**53:
        return str(int(number))
    return repr(number)


def _require_some(values: Sized, name: str) -> None:
    if len(values) == 0:
        raise ConfigError(f"Taxonomy '{name}' cannot be built from no values at all.")


def _distinct(values: Numbers, name: str) -> list[float]:
    numbers = sorted({float(value) + 0.0 for value in values})
    _require_some(numbers, name)
    for number in numbers:
        if not math.isfinite(number):
            raise ConfigError(
                f"Taxonomy '{name}' cannot place {raw(number, 'a value that is not finite', 'the value')} in an interval."
            )
    return numbers


def _labels_by_width(numbers: list[float], widths: Sequence[float], origin: float, name: str) -> list[list[str]]:
    if not widths or any(not (math.isfinite(width) and width > 0) for width in widths):
        raise ConfigError(f"Taxonomy '{name}': interval widths {list(widths)} must be positive numbers.")
    # Fractions of the decimal text: 0.3 belongs to [0.3, 0.4), which floating point division gets wrong.
    exact = [_exact(width) for width in widths]
    for finer, coarser, shown in zip(exact, exact[1:], widths[1:], strict=False):
        if coarser <= finer or (coarser / finer).denominator != 1:
            raise ConfigError(
                f"Taxonomy '{name}': interval width {number_label(shown)} must be a multiple of the last one."
            )
    whole = all(float(number).is_integer() for number in [*numbers, *widths, origin])
    start = _exact(origin)
    offsets = [_exact(number) - start for number in numbers]
    levels = []
    for width in exact:
        # Integers in intervals of width one are the leaves themselves.
        if whole and width == 1:
            continue
        known: dict[int, str] = {}
        level = []
        for offset in offsets:
            index = offset // width
            if index not in known:
                low = start + index * width
                known[index] = _interval(float(low), float(low + width), whole, closed=False)
            level.append(known[index])
        levels.append(level)
    return levels


def _exact(number: float) -> Fraction:
    return Fraction(int(number)) if float(number).is_integer() else Fraction(repr(float(number)))


def _nested(edges: Sequence[Sequence[float]], name: str) -> list[list[float]]:
    levels = [[float(edge) for edge in level] for level in edges]
    if not levels:
        raise ConfigError(f"Taxonomy '{name}' needs at least one list of edges.")
    for level in levels:
        if len(level) < 2 or not all(map(math.isfinite, level)) or any(b <= a for a, b in pairwise(level)):
            raise ConfigError(f"Taxonomy '{name}': edges {level} must be two or more rising numbers.")
    for finer, coarser in pairwise(levels):
        if not set(coarser) <= set(finer) or (coarser[0], coarser[-1]) != (finer[0], finer[-1]):
            raise ConfigError(
                f"Taxonomy '{name}': edges {coarser} must be some of the finer edges {finer}, with both ends."
            )
    return levels


def _labels_by_edges(numbers: list[float], edges: list[float], name: str) -> list[str]:
    whole = all(number.is_integer() for number in [*numbers, *edges])
    labels = []
    for number in numbers:
        if not edges[0] <= number <= edges[-1]:
            raise ConfigError(
                f"Taxonomy '{name}': {raw(number, 'a value', 'the value')} lies outside the edges "
                f"{number_label(edges[0])} to {number_label(edges[-1])}; widen them."
            )
        place = min(bisect_right(edges, number), len(edges) - 1)
        labels.append(_interval(edges[place - 1], edges[place], whole, closed=place == len(edges) - 1))
    return labels


def _interval(low: float, high: float, whole: bool, closed: bool) -> str:
    if whole and not closed:
        high, closed = high - 1, True
    if low == high:
        return number_label(low)
    return f"[{number_label(low)}, {number_label(high)}{']' if closed else ')'}"


def _date_row(value: str, units: Sequence[str], name: str) -> list[str]:
    try:
        date = datetime.date.fromisoformat(value)
    except ValueError:
        date = None
    if date is None or date.isoformat() != value:
        raise ConfigError(f"Taxonomy '{name}': {raw(value, 'a value')} is not a date like 2021-03-09.")
    year = value[:4]
    label = {
        "month": value[:7],
        "quarter": f"{year}-Q{(date.month + 2) // 3}",
        "year": year,
        "decade": f"{year[:3]}0s",
    }
    return [value, *(label[unit] for unit in units), "*"]


def _nested_groups(shares: NDArray[np.float64], weights: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Group number of every row per level, finest first; every level joins groups of the one before."""
    if len(shares) <= 3:
        return []
    from scipy.cluster.hierarchy import linkage

    frequent = np.sort(np.argsort(-weights, kind="stable")[:_CLUSTERED_AT_MOST])
    nearest = _nearest(shares, shares[frequent])
    nearest[frequent] = np.arange(len(frequent))
    merges = linkage(shares[frequent], method="average")
    wanted = _group_counts(merges[:, 2], max(3.0, math.sqrt(math.sqrt(len(shares)))))

    group_of = np.arange(len(frequent))
    made: dict[int, NDArray[np.int64]] = {row: np.array([row]) for row in range(len(frequent))}
    levels = []
    for number, (one, other) in enumerate(merges[:, :2].astype(np.int64)):
        joined = np.concatenate([made.pop(int(one)), made.pop(int(other))])
        made[len(frequent) + number] = joined
        group_of[joined] = joined.min()
        # Merges are counted, not measured: ties in height must not join more groups than wanted.
        if len(made) in wanted:
            levels.append(group_of[nearest])
    return levels


def _group_counts(heights: NDArray[np.float64], fanout: float) -> list[int]:
    """How many groups each level has: about `fanout` times fewer than the last, where the gap is widest."""
    items = len(heights) + 1
    small = 1e-9 * float(heights[-1]) or 1.0  # joins at distance zero have no ratio

    def gap(count: int) -> float:
        """How much farther apart the groups to be joined next are than the ones joined last."""
        return float((heights[items - count] + small) / (heights[items - count - 1] + small))

    counts: list[int] = []
    left = items
    while left > fanout:
        target = max(2, math.ceil(left / fanout))
        near = range(max(2, math.ceil(target * 2 / 3)), min(left - 1, target * 4 // 3) + 1)
        left = max(sorted(near, key=lambda count: abs(count - target)), key=gap)
        counts.append(left)
    return counts


def _nearest(shares: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.int64]:
    if len(shares) == len(centres):
        return np.arange(len(shares))
    nearest = np.empty(len(shares), dtype=np.int64)
    # Shares add up to one: on a grid of 2⁻²⁶ all products and their sums are exact, in whatever order a BLAS adds.
    shares, centres = np.rint(shares * 2.0**26) / 2.0**26, np.rint(centres * 2.0**26) / 2.0**26
    squares = (centres**2).sum(axis=1)
    for start in range(0, len(shares), 1024):
        block = shares[start : start + 1024]
        nearest[start : start + 1024] = np.argmin(squares - 2 * block @ centres.T, axis=1)
    return nearest


class _GroupLabels:
    """Set labels like '{a, b, +5}', never the same twice and never that of a leaf."""

    def __init__(self, leaves: Sequence[str]) -> None:
        self.used = set(leaves)

    def of(self, members: Sequence[str]) -> str:
        for shown in range(self._fitting(members), len(members) + 1):
            rest = len(members) - shown
            label = "{" + ", ".join([*members[:shown], *([f"+{rest}"] if rest else [])]) + "}"
            if label not in self.used:
                break
        while label in self.used:
            label += "'"
        self.used.add(label)
        return label

    def _fitting(self, members: Sequence[str]) -> int:
        width = 0
        for shown, member in enumerate(members):
            width += len(member) + 2
            if width > _LABEL_WIDTH:
                return max(1, shown)
        return len(members)
