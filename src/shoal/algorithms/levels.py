"""Full-domain generalization: every attribute at one level of its hierarchy, the same for all records.

A *node* is one level per attribute. Its classes are counted as a frequency set: groups of equal generalized values,
with sizes and histograms, and the frequency set of a coarser node comes from that of a finer one, not from the records.

Attributes with a taxonomy have its levels, unbalanced trees padded at the leaf. Numbers without one have the levels of
the automatic taxonomy, dates those of months and years; categories without one are published exactly or not at all.
Missing is a group of its own until the top level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal import taxonomy_build as build
from shoal.errors import UnsupportedError
from shoal.microdata import Microdata, distinct_rows
from shoal.partition import Partition
from shoal.pieces import pieces
from shoal.policy import Rules, Stats
from shoal.space import Domain, Interval, Set, Tree

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Bools = NDArray[np.bool_]
Node = tuple[int, ...]
Masked = Literal["absorb", "drop"]


@dataclass(frozen=True, eq=False)
class Levels:
    """The hierarchies of all attributes: `groups[a][level]` has the group of each code. Level 0 is the code itself."""

    groups: tuple[tuple[Codes, ...], ...]

    @cached_property
    def heights(self) -> Node:
        """The top level of each attribute."""
        return tuple(len(levels) - 1 for levels in self.groups)

    @cached_property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """How many groups each attribute has at each level."""
        return tuple(tuple(int(level.max()) + 1 for level in levels) for levels in self.groups)

    def lift(self, codes: Codes, attributes: Sequence[int], low: Node, high: Node) -> Codes:
        """Groups of these attributes at levels `low`, as groups at the levels `high`."""
        lifted = np.empty_like(codes)
        for column, a in enumerate(attributes):
            above = np.zeros(self.sizes[a][low[column]], dtype=np.int32)
            above[self.groups[a][low[column]]] = self.groups[a][high[column]]
            lifted[:, column] = above[codes[:, column]]
        return lifted

    def spans(self, attributes: Sequence[int], node: Node) -> list[int]:
        """How many groups each of these attributes has at a node."""
        return [self.sizes[a][level] for a, level in zip(attributes, node, strict=True)]


class Cells(NamedTuple):
    """The cells of a histogram that are not empty: group, code of the view and number of records."""

    group: Ints
    code: Ints
    records: Ints


class Frequencies(NamedTuple):
    """A frequency set: the distinct generalized values, their records, and a histogram per view of the rules."""

    codes: Codes
    sizes: Ints
    cells: tuple[Cells, ...]


def full_domain(data: Microdata) -> Levels:
    """The level maps of all quasi-identifiers."""
    return Levels(tuple(tuple(_levels(data.codes[:, a], domain)) for a, domain in enumerate(data.domains)))


def _levels(column: Codes, domain: Domain) -> Iterator[Codes]:
    if isinstance(domain, Tree):
        # All of them, also equal ones: publication counts levels as the taxonomy does.
        for level in range(domain.taxonomy.levels):
            yield _numbered(domain.taxonomy.ancestors_at(level))
        return
    last = np.arange(domain.size, dtype=np.int32)
    yield last
    for groups in _inner_levels(column, domain):
        if not np.array_equal(groups, last):
            yield groups
            last = groups
    if domain.size > 1:
        yield np.zeros(domain.size, dtype=np.int32)


def _inner_levels(column: Codes, domain: Interval | Set) -> Iterator[Codes]:
    """The levels between "exactly" and "everything"."""
    if isinstance(domain, Set) or len(domain.values) == 0:
        return
    if domain.is_date:
        tree = build.from_dates([domain.text(code) for code in range(len(domain.values))], ["month", "year"])
    else:
        tree = build.auto_numbers(domain.values, np.bincount(column, minlength=domain.size)[: len(domain.values)])
    for level in range(1, tree.levels - 1):
        groups = _numbered(tree.ancestors_at(level))
        yield np.append(groups, groups.max() + 1).astype(np.int32)[: domain.size]


def _numbered(nodes: NDArray[Any]) -> Codes:
    return np.unique(nodes, return_inverse=True)[1].ravel().astype(np.int32)


def table_frequencies(data: Microdata, rules: Rules) -> Frequencies:
    """The frequency set of the table itself: all attributes at level 0."""
    points = data.points
    cells = []
    for view in rules.views:
        known = view.codes >= 0
        owner = points.of_record[known].astype(np.int64)
        cells.append(_summed(owner, view.codes[known].astype(np.int64), np.ones(len(owner)), view.width))
    return Frequencies(points.codes, points.weights, tuple(cells))


def rolled_up(
    frequencies: Frequencies, levels: Levels, rules: Rules, attributes: Sequence[int], low: Node, high: Node
) -> Frequencies:
    """The frequency set of the node `high` from that of a finer node `low` over the same attributes."""
    codes = levels.lift(frequencies.codes, attributes, low, high)
    found = distinct_rows(codes, levels.spans(attributes, high))
    group = found.of_record.astype(np.int64)
    cells = tuple(
        _summed(group[part.group], part.code, part.records, view.width)
        for part, view in zip(frequencies.cells, rules.views, strict=True)
    )
    return Frequencies(found.codes, np.bincount(group, frequencies.sizes).astype(np.int64), cells)


def _summed(group: Ints, code: Ints, records: NDArray[Any], width: int) -> Cells:
    keys, inverse = np.unique(group * width + code, return_inverse=True)
    totals = np.bincount(inverse.ravel(), records, len(keys)).astype(np.int64)
    return Cells(keys // width, keys % width, totals)


def good_groups(frequencies: Frequencies, rules: Rules, allowed: int) -> Bools | None:
    """Which groups are good classes; None when more than `allowed` records are in groups that are not."""
    sizes = frequencies.sizes
    good = sizes >= rules.k
    if int(sizes[~good].sum()) > allowed:
        return None
    large = np.flatnonzero(good)
    for chosen in _blocks(large, rules):
        good[chosen] = rules.deficit(_stats(frequencies, rules, chosen)) <= 0
        if int(sizes[~good].sum()) > allowed:
            return None
    return good


def _blocks(chosen: Ints, rules: Rules) -> Iterator[Ints]:
    """Groups in pieces whose histograms fit into memory."""
    return (chosen[some] for some in pieces(len(chosen), rules.widest))


def _stats(frequencies: Frequencies, rules: Rules, chosen: Ints) -> Stats:
    """Sizes and full histograms of some groups."""
    position = np.full(len(frequencies.sizes), -1, dtype=np.int64)
    position[chosen] = np.arange(len(chosen))
    counts = []
    for part, view in zip(frequencies.cells, rules.views, strict=True):
        row = position[part.group]
        inside = row >= 0
        matrix = np.zeros((len(chosen), view.width), dtype=np.int64)
        matrix[row[inside], part.code[inside]] = part.records[inside]
        counts.append(matrix)
    return Stats(frequencies.sizes[chosen], tuple(counts))


def kept_groups(frequencies: Frequencies, rules: Rules, good: Bools, masked: Masked, allowed: int) -> Bools | None:
    """Which groups stay when the records of the others are suppressed; None when they cannot be.

    Suppressed records that are published masked are a class and have to be a good one. With `absorb`, where they are
    not, the smallest good class that makes them one is suppressed too (docs/algorithms.md#datafly). At least one class has to
    stay, and at most `allowed` records may go.
    """
    if good.all():
        return good
    if not good.any():
        return None
    if masked == "drop":
        return good
    lost = _total(frequencies, rules, ~good)
    if rules.deficit(lost)[0] <= 0:
        return good
    if np.count_nonzero(good) == 1:
        return None
    candidates = np.flatnonzero(good & (frequencies.sizes <= allowed - lost.sizes[0]))
    candidates = candidates[np.argsort(frequencies.sizes[candidates], kind="stable")]
    for chosen in _blocks(candidates, rules):
        stats = _stats(frequencies, rules, chosen)
        counts = tuple(one + other for one, other in zip(stats.counts, lost.counts, strict=True))
        helpful = np.flatnonzero(rules.deficit(Stats(stats.sizes + lost.sizes, counts)) <= 0)
        if len(helpful):
            kept = good.copy()
            kept[chosen[helpful[0]]] = False
            return kept
    return None


def _total(frequencies: Frequencies, rules: Rules, groups: Bools) -> Stats:
    """Size and histograms of some groups taken together."""
    counts = []
    for part, view in zip(frequencies.cells, rules.views, strict=True):
        inside = groups[part.group]
        total = np.bincount(part.code[inside], part.records[inside], view.width).astype(np.int64)
        counts.append(total[None, :])
    return Stats(np.array([frequencies.sizes[groups].sum()], dtype=np.int64), tuple(counts))


def partition_at(data: Microdata, levels: Levels, node: Node, kept: Bools, notes: Mapping[str, Any]) -> Partition:
    """The partition of a node; the records of groups that do not stay are suppressed."""
    every = range(len(node))
    codes = levels.lift(data.points.codes, every, (0,) * len(node), node)
    group = distinct_rows(codes, levels.spans(every, node)).of_record
    label = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    return Partition(label[group][data.points.of_record], node, notes)


def require_masked(name: str, masked: str, rules: Rules) -> None:
    """Refuse what the option `masked` cannot mean, before any work is done."""
    if masked == "drop" and not rules.superset_closed:
        model = next(rule.model for rule in rules.rules if not rule.model.superset_closed)
        raise UnsupportedError(
            f'{name}: masked = "drop" takes records out of the table, against which {model.name} measures the others; '
            'use masked = "absorb".'
        )
