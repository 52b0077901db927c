"""What an intruder sees of a table that nobody holds at once: attacks on some classes, which add up to attacks on all.

Every attack of `shoal.measures.attacks` asks a question of each class, beside figures of the whole table that follow from counts
of values. So whole classes are attacked some at a time, and who is exposed adds up (docs/scale.md#verdicts).

>>> import polars as pl, shoal
>>> from shoal.verifier import audited_column
>>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "ill": shoal.Attribute(role="sensitive")})
>>> column = audited_column(pl.DataFrame({"ill": ["flu", "cold"]}), "ill", schema, np.array([4, 2]))
>>> looking = Looking(schema, (column,), 1)
>>> one = looking.glimpse(pl.DataFrame({"c0": [0], "s0": [0], "records": [3]}))
>>> other = looking.glimpse(pl.DataFrame({"c0": [1, 1], "s0": [0, 1], "records": [1, 2]}))
>>> seen = one.merge(other)
>>> seen.sizes, [(found.attack, found.exposed, found.total) for found in seen.exposures][:2]
({3: 2}, [('homogeneity', 3, 6), ('background_knowledge', 3, 6)])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.measures.attacks import run_attacks
from shoal.measures.exposure import Exposure
from shoal.measures.seen import Histogram, MaskedTable, counted_cells
from shoal.models import Sensitive
from shoal.schema import Schema

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Glimpse:
    """What was seen of some classes."""

    sizes: Mapping[int, int]
    """How many classes there are of each size."""
    starred: int
    """Records that show nothing."""
    found: tuple[tuple[Exposure, int], ...]
    """What each attack found, and in how many classes: which they are is not kept."""

    def merge(self, other: Glimpse) -> Glimpse:
        """The same of these classes and of others."""
        both = zip(self.found, other.found, strict=True)
        return Glimpse(
            dict(Counter(self.sizes) + Counter(other.sizes)),
            self.starred + other.starred,
            tuple((_merged(one, more), hit + hits) for (one, hit), (more, hits) in both),
        )

    @property
    def exposures(self) -> list[Exposure]:
        """What each attack found in all; classes are numbered, not named."""
        return [replace(one, classes=tuple(range(hit))) for one, hit in self.found]


def _merged(one: Exposure, other: Exposure) -> Exposure:
    details = {**other.details, **one.details}
    if "own" in details:
        details["own"] = one.details.get("own", 0) + other.details.get("own", 0)
    return replace(
        one,
        exposed=one.exposed + other.exposed,
        total=one.total + other.total,
        of_classes=one.of_classes + other.of_classes,
        worst=max(one.worst, other.worst),
        sentence="",
        details=details,
        way_out=one.way_out or other.way_out,
    )


@dataclass(frozen=True, eq=False)
class Looking:
    """What has to be known of the whole table to attack some of its classes.

    - `schema`: of the masked table; `columns`: its sensitive attributes, a row a distinct value, with how many records have each.
    - `quasi`: how many published quasi-identifiers there are; `stars`: for each the number of the value that shows nothing, where
      they all have one; `strength`: how many values the intruder can rule out.
    """

    schema: Schema
    columns: Sequence[Sensitive]
    quasi: int
    stars: tuple[int, ...] | None = None
    strength: int = 1

    def glimpse(self, counted: pl.DataFrame) -> Glimpse:
        """Look at some whole classes: rows as for `shoal.verifier.folding.Folding.verdict`."""
        numbers = counted.select(f"c{i}" for i in range(self.quasi)).to_numpy().astype(np.int64)
        weights = counted["records"].to_numpy().astype(np.int64)
        begins = np.ones(len(numbers), dtype=np.bool_)
        begins[1:] = (numbers[1:] != numbers[:-1]).any(axis=1)
        first, labels = np.flatnonzero(begins), np.cumsum(begins) - 1
        sizes = np.add.reduceat(weights, first)
        starred = 0
        if self.stars is not None:
            starred = int(sizes[(numbers[first] == np.array(self.stars)).all(axis=1)].sum())
        histograms = tuple(
            _histogram(column, counted[f"s{s}"].to_numpy(), labels, weights, len(sizes))
            for s, column in enumerate(self.columns)
        )
        groups = counted.select(f"c{i}" for i in range(self.quasi))[first]
        table = MaskedTable(groups, self.schema, groups, labels[first], sizes, histograms)
        found = run_attacks(table, strength=self.strength)
        each, many = np.unique(sizes, return_counts=True)
        return Glimpse(
            dict(zip(each.tolist(), many.tolist(), strict=True)),
            starred,
            tuple((replace(one, classes=(), details=_kept(one)), len(one.classes)) for one in found),
        )


def _kept(found: Exposure) -> dict[str, Any]:
    """The details that add up, or are the same everywhere."""
    return {name: found.details[name] for name in ("values", "own") if name in found.details}


def _histogram(column: Sensitive, places: Ints, labels: Ints, weights: Ints, classes: int) -> Histogram:
    """The values of one attribute in some classes; `places` are those of values among the distinct ones."""
    width = max(1, len(column.labels))
    every = column.codes.astype(np.int64)
    codes = every[places]
    known = codes >= 0
    cells, of_row = np.unique(labels[known] * width + codes[known], return_inverse=True)
    counts = np.bincount(of_row.ravel(), weights[known], len(cells)).astype(np.int64)
    own = np.bincount(cells // width, counts, classes).astype(np.int64)
    records = np.ones(len(every), dtype=np.int64) if column.weights is None else np.asarray(column.weights)
    there = every >= 0
    whole = np.bincount(every[there], records[there], len(column.labels)).astype(np.int64)
    return replace(counted_cells(column, cells, counts, own)[0], whole=whole)
