"""A sensitive attribute as models see it: its values, how many records have each, and what is counted of them.

Models are bound to counts, not to records: whoever has the counts of a table's values can ask its rules, wherever the
records are. `Sensitive` is the attribute of a table whose records are at hand, or of one of which only the distinct values
are, each with the number of records that have it (`weights`).

>>> illness = Sensitive("illness", np.array([0, 1, 1, -1], dtype=np.int32), ("flu", "HIV"))
>>> illness.counts.tolist()
[1, 2]
>>> grouped = regrouped(illness, "secrecy", np.array([0, 0]), 1)
>>> grouped.counted(illness).tolist(), grouped.of_records(illness).tolist()
([3], [0, 0, 0, -1])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from shoal.taxonomy import Taxonomy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


class Column(Protocol):
    """A sensitive attribute of a table. A missing value has no code: it counts in the size of a class only."""

    @property
    def name(self) -> str:
        """The column's name."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The value behind each code."""

    @property
    def counts(self) -> Ints:
        """How many records have each code."""

    @property
    def numbers(self) -> Floats | None:
        """The number behind each code, ascending, when the attribute is a number."""

    @property
    def ordered(self) -> bool:
        """Whether the codes are in a meaningful order."""

    @property
    def taxonomy(self) -> Taxonomy | None:
        """The attribute's taxonomy, if it has one."""

    @property
    def protect(self) -> tuple[str, ...]:
        """Protected inner nodes, for extended p-sensitivity."""

    @property
    def categories(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Categories with their values, most secret first, for p+ and (p, α)."""

    def pairs(self, beside: str) -> Pairs | None:
        """The pairs with the labels of another column, where a model has asked for that column (`Model.beside`)."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs that occur of a code and a label of another column, in ascending order of both; no label is the empty text."""

    codes: Ints
    labels: tuple[str, ...]
    counts: Ints


@dataclass(frozen=True, eq=False)
class Sensitive:
    """A sensitive attribute of a table.

    `name` is the column; `codes` has one number a record, -1 for missing, and `labels` the text of each; `numbers` the
    value behind each code where they are numbers; `ordered` says whether the codes are in a meaningful order.
    `taxonomy`, `protect` and `categories` are the schema's; `beside` has one label a record, by column, for models that
    want them. `weights` says for how many records each entry of `codes` stands; one by default.
    """

    name: str
    codes: Codes
    labels: tuple[str, ...]
    numbers: Floats | None = None
    ordered: bool = False
    taxonomy: Taxonomy | None = None
    protect: tuple[str, ...] = ()
    categories: tuple[tuple[str, tuple[str, ...]], ...] = ()
    beside: Mapping[str, NDArray[np.object_]] = field(default_factory=dict)
    weights: Ints | None = None

    @cached_property
    def counts(self) -> Ints:
        """How many records have each code."""
        known = self.codes >= 0
        weights = None if self.weights is None else self.weights[known]
        return np.bincount(self.codes[known], weights, minlength=len(self.labels)).astype(np.int64)

    def pairs(self, beside: str) -> Pairs | None:
        """The pairs with the labels of another column."""
        return self._paired[beside][0] if beside in self.beside else None

    def paired(self, beside: str) -> Codes:
        """The pair of each record, -1 where the code is missing."""
        return self._paired[beside][1]

    def take(self, records: NDArray[Any]) -> Sensitive:
        """Some of the records."""
        codes = np.ascontiguousarray(self.codes[records])
        weights = None if self.weights is None else self.weights[records]
        beside = {name: labels[records] for name, labels in self.beside.items()}
        return replace(self, codes=codes, beside=beside, weights=weights)

    def labelled(self, beside: Mapping[str, NDArray[np.object_]]) -> Self:
        """With the labels of other columns, record by record."""
        return replace(self, beside=beside)

    @cached_property
    def _paired(self) -> dict[str, tuple[Pairs, Codes]]:
        return {name: _paired(self.codes, labels, self.weights) for name, labels in self.beside.items()}


def _paired(codes: Codes, beside: NDArray[np.object_], weights: Ints | None) -> tuple[Pairs, Codes]:
    texts = np.asarray(beside, dtype=object).copy()
    texts[texts == np.array(None)] = ""
    labels, which = np.unique(texts.astype(str), return_inverse=True)
    known = codes >= 0
    keys = codes.astype(np.int64) * len(labels) + which
    found, pair = np.unique(keys[known], return_inverse=True)
    counts = np.bincount(pair, None if weights is None else weights[known], minlength=len(found))
    of_record = np.full(len(codes), -1, dtype=np.int32)
    of_record[known] = pair
    pairs = Pairs(found // len(labels), tuple(str(labels[key % len(labels)]) for key in found), counts.astype(np.int64))
    return pairs, of_record


@dataclass(frozen=True, eq=False)
class View:
    """What a rule counts: the codes of an attribute, groups of them, or its pairs with the labels of another column."""

    key: tuple[Any, ...]
    width: int
    group: Codes | None = None
    """The group of each code, -1 for none; without it every code (or pair) is counted by itself."""
    beside: str | None = None
    groups: int = 0
    """Where codes are sets of groups, of which there are very many and in a class a few: how many groups there are."""

    def grouped(self) -> Ints:
        """The group of each code, -1 for none."""
        return np.arange(self.width) if self.group is None else self.group.astype(np.int64)

    def counted(self, column: Column) -> Ints:
        """How many records of the table fall into each group."""
        pairs = column.pairs(self.beside) if self.beside is not None else None
        counts = column.counts if pairs is None else pairs.counts
        group = np.arange(len(counts)) if self.group is None else self.group
        inside = group >= 0
        return np.bincount(group[inside], counts[inside], minlength=self.width).astype(np.int64)

    def of_records(self, column: Sensitive) -> Codes:
        """The group of each record, -1 for none."""
        codes = column.codes if self.beside is None else column.paired(self.beside)
        # Code -1 picks the last entry, so that missing stays missing.
        return codes if self.group is None else np.append(self.group, np.int32(-1))[codes]


def own_values(column: Column) -> View:
    """The attribute's own codes; the view that most models share."""
    return View((column.name,), max(1, len(column.labels)))


def regrouped(column: Column, key: str, group_of: Ints, groups: int) -> View:
    """Groups of the attribute's values (`group_of` says which group each code is in)."""
    return View((column.name, key), max(1, groups), group_of.astype(np.int32))


def occurring(column: Column) -> Ints:
    """The codes that occur in the table, ascending."""
    return np.flatnonzero(column.counts).astype(np.int64)
