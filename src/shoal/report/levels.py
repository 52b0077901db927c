"""How exact the published values of a column are, read from the masked table alone.

A value is exact, less and less so, hidden, or missing. What "less" means depends on the column: digits that are kept, a month or
a year, so many steps up a taxonomy, a range of some width, a set of so many values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.columns import declared_taxonomy, is_named
from shoal.errors import ShoalError
from shoal.measures.regions import CALENDAR, INTERVAL, Cells, published_cells, suppressed_rows
from shoal.schema import Attribute, Schema, TaxonomySource
from shoal.space import SUPPRESSED
from shoal.taxonomy import Taxonomy

EXACT, HIDDEN, MISSING = "exact", "hidden", "missing"
EXAMPLES = 3  # what stands in one line of the table
_UNITS = ("month", "quarter", "year", "decade")
_STEPS = ("one step up", "two steps up", "three steps up", "four steps up")

Read = Callable[[str], tuple[int, str]]
"""From a published text to the rank of its level (0 is exact) and the level's name."""


@dataclass(frozen=True)
class Level:
    """One level of exactness: the share of the records that it has, and the value most often published at it."""

    name: str
    records: int
    example: str | None


@dataclass(frozen=True)
class Shown:
    """A masked column: its levels, the most exact first, and how many different values are published."""

    column: str
    levels: tuple[Level, ...]
    values: int
    records: int

    def share(self, name: str) -> float:
        """Of the records, those at a level."""
        return sum(level.records for level in self.levels if level.name == name) / max(1, self.records)

    @property
    def examples(self) -> list[str]:
        """Published values, one of each of the most frequent levels."""
        usual = sorted((one for one in self.levels if one.example), key=lambda one: -one.records)[:EXAMPLES]
        return [one.example for one in self.levels if one.example and one in usual]


def levels(groups: pl.DataFrame, sizes: NDArray[np.int64], schema: Schema, recode: str = "generalize") -> list[Shown]:
    """The levels of every quasi-identifier; `groups` is what each class publishes and `sizes` its records."""
    columns = [published_cells(groups, name) for name in schema.named("quasi")]
    hidden = suppressed_rows(columns)
    return [column_levels(cells, sizes, hidden, schema, recode) for cells in columns]


def column_levels(
    cells: Cells, sizes: NDArray[np.int64], hidden: NDArray[np.bool_], schema: Schema, recode: str = "generalize"
) -> Shown:
    """The levels of one quasi-identifier: `sizes` are the records of each of its cells, `hidden` those that show nothing."""
    return _column(cells, sizes, hidden, _reader(cells.texts, cells.name, schema, recode))


def _column(cells: Cells, sizes: NDArray[np.int64], hidden: NDArray[np.bool_], read: Read) -> Shown:
    records = np.zeros((2, len(cells.texts)), dtype=np.int64)
    np.add.at(records, (hidden.astype(np.int64), cells.of_row), sizes)
    found: dict[tuple[int, str], list[tuple[int, str | None]]] = {}
    for text, count, starred in zip(cells.texts, *records.tolist(), strict=True):
        if starred:
            found.setdefault((101, HIDDEN), []).append((starred, None))
        if count:
            level = (102, MISSING) if text is None else (101, HIDDEN) if text == SUPPRESSED else read(text)
            found.setdefault(level, []).append((count, None if text == SUPPRESSED else text))
    told = []
    for (_, label), members in sorted(found.items()):
        common = min(members, key=lambda one: (-one[0], one[1] or ""))
        told.append(Level(label, sum(count for count, _ in members), common[1]))
    return Shown(cells.name, tuple(told), len(cells.texts), int(sizes.sum()))


def _reader(texts: Sequence[str | None], name: str, schema: Schema, recode: str) -> Read:
    attribute = schema.attributes[name]
    if recode == "microaggregate":
        return lambda text: (1, "average or most frequent value of its class")
    source = attribute.taxonomy
    if isinstance(source, TaxonomySource) and source.prefix is not None:
        return _prefix
    if is_named(source):
        tree = _tree(name, schema)
        if tree is not None:
            return lambda text: _node(tree, text)
    if attribute.kind == "date" or (isinstance(source, TaxonomySource) and source.dates is not None):
        return _date
    if source == "auto":
        return lambda text: (50, "a group of values") if text[:1] == "{" else (0, EXACT)
    return _ranges(texts, attribute)


def _prefix(text: str) -> tuple[int, str]:
    kept = len(text.rstrip("*"))
    if kept == len(text):
        return 0, EXACT
    if kept == 0:
        return 101, HIDDEN
    return len(text) - kept, f"first {kept} characters" if kept > 1 else "first character"


def _tree(name: str, schema: Schema) -> Taxonomy | None:
    empty = pl.DataFrame({name: pl.Series([], dtype=pl.String)})
    try:
        return declared_taxonomy(empty, empty[name], "category", name, schema)
    except ShoalError:
        return None


def _node(tree: Taxonomy, text: str) -> tuple[int, str]:
    if text in tree.leaf_codes:
        return 0, EXACT
    try:
        node = tree.node(text)
    except (ShoalError, KeyError):
        return 100, "not in the taxonomy"
    if node == tree.root:
        return 101, HIDDEN
    height = int(tree.height[node])
    return height, _STEPS[height - 1] if height <= len(_STEPS) else f"{height} steps up"


def _date(text: str) -> tuple[int, str]:
    found = CALENDAR.fullmatch(text)
    if found is not None:
        _, quarter, decade, _, month, _ = found.groups()
        unit = "decade" if decade else "quarter" if quarter else "month" if month else "year"
        return 1 + _UNITS.index(unit), unit
    return (60, "range of dates") if INTERVAL.fullmatch(text) else (0, EXACT)


def _ranges(texts: Sequence[str | None], attribute: Attribute) -> Read:
    """Numbers by the width of their ranges, sets by their members; anything else is exact."""
    widths: Mapping[str, float] = {text: width for text in texts if text and (width := _width(text, attribute)) > 0}
    steps = _steps(max(widths.values(), default=0.0)) if attribute.order is None else (1.0, 2.0, 4.0)

    def read(text: str) -> tuple[int, str]:
        if text in widths:
            rank = next((i for i, step in enumerate(steps) if widths[text] <= step), len(steps))
            what = "within " if attribute.order is None else "labels apart: "
            return 1 + rank, f"{what}{steps[rank]:,g}" if rank < len(steps) else f"wider than {steps[-1]:,g}"
        if text[:1] == "{" and text[-1:] == "}":
            members = text.count(", ") + 1
            return 10 + min(members, 6), f"one of {members} values" if members <= 4 else "one of 5 or more values"
        return 0, EXACT

    return read


def _width(text: str, attribute: Attribute) -> float:
    found = INTERVAL.fullmatch(text)
    if found is None:
        return 0.0
    if attribute.order is not None:
        place = {label: i for i, label in enumerate(attribute.order)}
        return float(abs(place.get(found[2], 0) - place.get(found[1], 0)))
    try:
        return float(found[2]) - float(found[1])
    except ValueError:
        return 0.0


def _steps(widest: float) -> tuple[float, ...]:
    """Three round widths, the largest near the widest range there is: 10, 20 and 50 of 60."""
    round_ones = [float(f"{base}e{power}") for power in range(-9, 16) for base in (1, 2, 5)]
    below = [one for one in round_ones if one < widest]
    return tuple(below[-3:]) if below else (widest or 1.0,)
