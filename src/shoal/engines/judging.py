"""The staged table judged where it lies: its values counted, its classes given to functions whole, nothing of it held."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.declaration import Examination, examine_counted
from shoal.engines.base import COUNT, Book, Engine
from shoal.engines.learning import MOST, Values, in_order, read_values
from shoal.errors import InputError, VerificationError
from shoal.io.frames import to_polars
from shoal.policy import Policy
from shoal.schema import Schema
from shoal.verifier import Evidence, masked_schema, published_quasi
from shoal.verifier.folding import Folding, Verdict

Ints = NDArray[np.int64]
T = TypeVar("T")

# A masked table has the spelling of the house and is not read, or transformed, again.
_AS_PUBLISHED = dict.fromkeys(("format", "decimal", "missing", "round", "top", "bottom", "truncate", "pseudonym"))


@dataclass(frozen=True, eq=False)
class Opened:
    """A staged table as the verifier sees it: the distinct values of its columns with their counts, and who holds its rows."""

    engine: Engine
    schema: Schema
    """Of the masked table."""
    columns: pl.DataFrame
    """The table without its rows."""
    folding: Folding
    raw: Mapping[str, Any]
    """The distinct values of each published quasi-identifier as the engine writes them."""
    published: Mapping[str, Values]
    """The other columns."""

    @classmethod
    def of(cls, engine: Engine, policy: Policy, schema: Schema) -> Opened:
        """`schema` is that of the original or of the masked table."""
        empty = engine.staged_columns()
        declared = masked_schema(schema, empty)
        counted: dict[str, tuple[pl.Series, Ints]] = {}
        raw: dict[str, Any] = {}
        quasi = published_quasi(empty, declared)
        beside = policy.beside(declared.named("sensitive"))
        others = {
            name: [name, *(one for one in beside.get(name, ()) if one in empty.columns and one != name)]
            for role in ("sensitive", "other", "identifier")
            for name in declared.named(role)
            if name in empty.columns
        }
        tables = engine.value_counts([*([name] for name in quasi), *others.values()], most=MOST, staged=True)
        for name, table in zip(quasi, tables, strict=False):
            table = table.take(in_order(table, [name]))
            _require_few(table, name)
            raw[name] = table.select([name])
            counted[name] = (to_polars(raw[name])[0][name], table.column(COUNT).to_numpy().astype(np.int64))
        secret: dict[str, tuple[pl.DataFrame, Ints]] = {}
        published: dict[str, Values] = {}
        for (name, together), table in zip(others.items(), tables[len(quasi) :], strict=True):
            _require_few(table, name)
            plain = replace(declared, attributes={name: declared.attributes[name].model_copy(update=_AS_PUBLISHED)})
            published[name] = read_values(table, together, plain, False)
            if name in declared.named("sensitive"):
                secret[name] = (published[name].frame, published[name].counts)
        return cls(engine, declared, empty, Folding(counted, secret, policy, declared), raw, published)

    def books(self, way: Mapping[str, Ints], names: Sequence[str] | None = None, secrets: bool = True) -> list[Book]:
        """What the engine looks classes up in: all published quasi-identifiers or those of these `names`, and the secrets."""
        chosen = [name for name in self.folding.quasi if names is None or name in names]
        books = [
            Book((name,), self.raw[name], pl.DataFrame({f"c{i}": way[name].astype(np.int32)}))
            for i, name in enumerate(chosen)
        ]
        for s, column in enumerate(self.folding.columns if secrets else ()):
            one = self.published[column.name]
            places = pl.DataFrame({f"s{s}": np.arange(len(one.counts), dtype=np.int32)})
            books.append(Book(tuple(one.raw.column_names), one.raw, places))
        return books

    def folded(self, judged: Callable[[pl.DataFrame], T], merge: Callable[[T, T], T]) -> T:
        """What a function finds in the classes as they are written, all of them merged."""
        return self.engine.judge(self.books(self.folding.ways[0]), judged, merge)

    def verdict(self, way: Mapping[str, Ints], folding: Folding | None = None) -> Verdict:
        """On all classes of one way to look at the table, by the policy or by what another `folding` asks."""
        asked = folding or self.folding
        books = self.books(way)
        found = self.engine.judge(books, asked.verdict, Verdict.merge)
        again = asked.uncertain(found)
        if not again:
            return found
        held = self.engine.judge(books, lambda rows: asked.holds(rows, again), _both)
        return asked.settled(found, again, held)

    def examined(self) -> Examination:
        """What is found about the columns that are published as they are."""
        schema = self.schema
        others = [name for name in schema.named("other") if schema.attributes[name].pseudonym is None]
        alone = self.engine.repeats(others, staged=True).alone if others else 0
        columns = {name: (one.frame[name], one.counts) for name, one in self.published.items()}
        return examine_counted(columns, schema, self.folding.records, alone)


def verify_staged(engine: Engine, policy: Policy, schema: Schema, records: int) -> tuple[Evidence, Examination]:
    """What the verifier finds in the staged table, from its published values alone, and what it shows as it is."""
    opened = Opened.of(engine, policy, schema)
    folding = opened.folding
    if folding.records != records:
        raise VerificationError(f"{records} records were masked and the staged table has {folding.records}.")
    return folding.evidence([opened.verdict(way) for way in folding.ways]), opened.examined()


def _both(one: Sequence[bool], other: Sequence[bool]) -> list[bool]:
    return [a and b for a, b in zip(one, other, strict=True)]


def _require_few(table: Any, name: str) -> None:
    if len(table) > MOST:
        raise InputError(
            f"Column '{name}' would be published with more than {MOST:,} different values, too many to be verified; give it a "
            "taxonomy or coarser values."
        )
