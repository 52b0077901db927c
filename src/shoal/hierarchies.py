"""The taxonomies of a table as they are used: every column's tree, how many records lie below a node, what it does not know.

>>> import polars as pl
>>> from shoal.configuration import read_schema
>>> rows = [["flu", "lungs", "any"], ["asthma", "lungs", "any"], ["ulcer", "any"]]
>>> schema = read_schema({"illness": {"role": "quasi", "taxonomy": {"rows": rows}}})
>>> found = hierarchies(pl.DataFrame({"illness": ["flu", "flu", "gout", "ulcer"]}), schema)[0]
>>> [(label, records) for label, records, _ in found.outline()]
[('any', 3), ('lungs', 2), ('flu', 2), ('asthma', 0), ('ulcer', 1)]
>>> [(gap.records, gap.first) for gap in found.gaps]
[(1, 3)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.columns import declared_taxonomy, is_named, sensitive_taxonomy, texts, typed
from shoal.errors import ConfigError, did_you_mean
from shoal.microdata import Missing, prepared
from shoal.persons import persons_of, settled
from shoal.schema import Schema, TaxonomySource
from shoal.spelling import means_missing
from shoal.taxonomy import Taxonomy


@dataclass(frozen=True)
class Gap:
    """A value that a taxonomy does not know: how many records (or persons) have it, and the first of them, counted from 1."""

    value: str
    records: int
    first: int


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The taxonomy of a column: where it comes from, the tree, the records at each leaf, and the values that it does not know."""

    column: str
    source: str
    tree: Taxonomy
    counts: NDArray[np.int64]
    gaps: tuple[Gap, ...]
    made: bool
    """Whether it is made from the values of the table, and not declared."""

    def below(self, node: int) -> int:
        """The records below a node."""
        return int(self.counts[self.tree.first[node] : self.tree.last[node] + 1].sum())

    def outline(self) -> Iterator[tuple[str, int, int]]:
        """Every node with the records below it and its depth, parents before children."""
        children: dict[int, list[int]] = {}
        for node, above in enumerate(self.tree.parent.tolist()):
            children.setdefault(above, []).append(node)
        stack = [self.tree.root]
        while stack:
            node = stack.pop()
            yield self.tree.labels[node], self.below(node), int(self.tree.depth[node])
            below = sorted(children.get(node, []), key=lambda child: int(self.tree.first[child]))
            stack.extend(reversed(below))


def hierarchies(
    table: pl.DataFrame, schema: Schema, *, columns: Sequence[str] = (), missing: Missing = "category"
) -> list[Hierarchy]:
    """The taxonomies of a table, of all columns that have one or of some; exactly those that `anonymize` uses."""
    resolved = schema.resolve(table.columns)
    quasi, secret = resolved.named("quasi"), resolved.named("sensitive")
    table, _ = prepared(table, resolved, missing)
    persons = persons_of(table, resolved)
    people = table if persons is None else settled(table, resolved, persons)
    there = [name for name in (*quasi, *secret) if resolved.attributes[name].taxonomy is not None]
    for name in columns:
        if name not in there:
            raise ConfigError(f"Column '{name}' has no taxonomy; {did_you_mean(name, there)}")
    return [
        _hierarchy(people if name in quasi else table, name, resolved, name in quasi)
        for name in there
        if not columns or name in columns
    ]


def made_by(
    rule: str | TaxonomySource, table: pl.DataFrame, column: str, schema: Schema, missing: Missing
) -> Hierarchy:
    """The taxonomy that a rule makes of a column's values."""
    if column not in schema.attributes:
        raise ConfigError(f"There is no column '{column}'; {did_you_mean(column, schema.attributes)}")
    own = schema.attributes[column].model_copy(update={"taxonomy": rule})
    changed = Schema({**schema.attributes, column: own}, schema.folder, schema.missing)
    return hierarchies(table, changed, columns=[column], missing=missing)[0]


def _hierarchy(table: pl.DataFrame, name: str, schema: Schema, quasi: bool) -> Hierarchy:
    source = schema.attributes[name].taxonomy
    series, kind = typed(table[name], schema.attributes[name])
    labels = texts(series, kind)
    if quasi:
        tree = declared_taxonomy(table, series, kind, name, schema)
    else:
        found = sensitive_taxonomy(labels.drop_nulls().unique().sort().to_list(), kind, name, schema)
        if found is None:
            raise ConfigError(f"Column '{name}' has no value to make a taxonomy of.")
        tree = found
    rows = labels.to_frame("value").with_row_index("row", offset=1).drop_nulls()
    each = rows.group_by("value").agg(pl.len().alias("records"), pl.col("row").min().alias("first"))
    counted = each.sort("records", "value", descending=[True, False])
    counts = np.zeros(tree.leaves, dtype=np.int64)
    strange = []
    for value, records, first in counted.iter_rows():
        place = tree.leaf_codes.get(value)
        if place is None:
            strange.append(Gap(value, records, first))
        else:
            counts[place] = records
    blank = means_missing([gap.value for gap in strange]) if strange and not quasi else [False] * len(strange)
    gaps = tuple(gap for gap, none in zip(strange, blank, strict=True) if not none)
    return Hierarchy(name, _words(source), tree, counts, gaps, made=not is_named(source))


def _words(source: Taxonomy | TaxonomySource | str | None) -> str:
    """Where a taxonomy comes from."""
    if isinstance(source, TaxonomySource):
        return next(iter(source.model_fields_set))
    if isinstance(source, Taxonomy):
        return source.name
    return "automatic" if source == "auto" else str(source)
