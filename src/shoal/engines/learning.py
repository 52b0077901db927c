"""A table learned from its value counts: domains, rules and the books by which every record is encoded.

Everything that is decided about a column (its kind, its codes, whether a taxonomy knows its values, what is missing) depends on
its distinct values and how many records have each, so it is decided on these, by the same functions as in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.columns import Beside, auto_taxonomy, features, typed
from shoal.engines.base import COUNT, Book, Engine
from shoal.engines.looking_up import found_at
from shoal.errors import ConfigError, InputError, UnsupportedError, require_word
from shoal.io.frames import apply_missing, kept_types, restored, to_polars
from shoal.io.numbers import infer_numbers
from shoal.microdata import Microdata, Missing, encode_quasi, encode_sensitive, untouched
from shoal.models import Sensitive
from shoal.persons import may_repeat, refuse_repeats
from shoal.policy import Policy, Rules, labelled
from shoal.readable import require_characters, require_readable
from shoal.reading import as_declared
from shoal.schema import Schema
from shoal.space import Domain
from shoal.transform import transformed

Ints = NDArray[np.int64]

MOST = 5_000_000
"""Distinct values of a column that are looked at: a look-up table of half a gigabyte."""


@dataclass(frozen=True, eq=False)
class Values:
    """The distinct values of some columns as the engine has them and as the schema reads them, with their counts."""

    raw: Any
    frame: pl.DataFrame
    counts: Ints
    shown: pl.Series
    """The first column as it is published: booleans and short numbers as they came, where nothing was done to them."""

    @property
    def records(self) -> int:
        """How many records there are."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class Learned:
    """What is known of a table without any of its records."""

    data: Microdata
    """A table without records: schema, domains, and the types of the columns that are published as they are."""
    sensitive: tuple[Sensitive, ...]
    """The sensitive attributes, each with its distinct values and how many records have each."""
    rules: Rules
    counts: tuple[Ints, ...]
    """How many records have each code, one array a quasi-identifier."""
    published: dict[str, Values]
    """The columns that are published as they are."""
    books: tuple[Book, ...]
    n: int

    @property
    def coded(self) -> list[str]:
        """The columns of the coded table, whole numbers all of them."""
        return [name for book in self.books for name in book.columns.columns]

    def shown(self, rows: pl.DataFrame) -> pl.DataFrame:
        """What coded records publish as it is."""
        places = [name for name in self.coded if name[0] != "q"]
        pairs = zip(self.published.items(), places, strict=True)
        return pl.DataFrame([one.shown.gather(rows[place].cast(pl.UInt32)).alias(name) for (name, one), place in pairs])

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Those of the quasi-identifiers."""
        return self.data.domains


def learn(
    engine: Engine, schema: Schema, policy: Policy, *, missing: Missing = "category", as_text: bool = False
) -> Learned:
    """Count the values of every column that is published, and decide what each means.

    `as_text`: the source has texts only, of which whole columns may be numbers. What a record has to be looked at for is refused.
    """
    schema = schema.resolve(engine.columns)
    _require_possible(schema, missing)
    quasi, secret = schema.named("quasi"), schema.named("sensitive")
    beside = policy.beside(secret)
    books: list[Book] = []
    columns: list[Sensitive] = []
    domains: list[Domain] = []
    counts: list[Ints] = []
    published: dict[str, Values] = {}
    others = [name for name, one in schema.attributes.items() if one.stays and name not in (*quasi, *secret)]
    together = {
        name: (name, *(one for one in beside.get(name, ()) if one in engine.columns and one != name)) for name in secret
    }
    together |= {name: (name,) for name in (*quasi, *others)}
    values = _values(engine, {name: together[name] for name in (*quasi, *secret, *others)}, schema, as_text)
    for name in (*quasi, *secret):
        _require_values(values[name], name, missing)
    dropped = 0
    if missing == "drop":
        values, dropped = _without_missing(engine, values, together, (*quasi, *secret))
    for a, name in enumerate(quasi):
        found = values[name]
        codes, domain = encode_quasi(found.frame, name, _grouped(engine, values, name, schema), found.counts)
        domains.append(domain)
        counts.append(np.bincount(codes, found.counts, minlength=domain.size).astype(np.int64))
        books.append(Book((name,), found.raw, pl.DataFrame({f"q{a}": codes.astype(np.int32)})))
    for s, name in enumerate(secret):
        found = published[name] = values[name]
        column = encode_sensitive(found.frame, name, schema, found.counts)
        columns += labelled([column], policy, found.frame)
        books.append(Book(together[name], found.raw, _places(f"s{s}", found)))
    for o, name in enumerate(others):
        found = published[name] = values[name]
        books.append(Book((name,), found.raw, _places(f"o{o}", found)))
    n = int(counts[0].sum())
    for name in schema.named("identifier"):
        if not may_repeat(schema.attributes[name]):
            keys = engine.repeats([name], missing=schema.missing)
            refuse_repeats(name, schema.attributes[name], n, keys.known, keys.distinct)
    empty = pl.DataFrame([published[name].shown.clear() for name in published])
    nobody = np.zeros((0, len(quasi)), dtype=np.int32)
    data = Microdata(empty, schema, nobody, tuple(domains), tuple(columns), dropped=dropped)
    for name, one in published.items():
        require_characters(one.frame[name])
    require_readable(data)
    return Learned(data, tuple(columns), policy.bind(columns, n), tuple(counts), published, tuple(books), n)


def _without_missing(
    engine: Engine, values: Mapping[str, Values], together: Mapping[str, tuple[str, ...]], judged: Sequence[str]
) -> tuple[dict[str, Values], int]:
    """Leave out the records that lack one of the judged values; what is left, counted again, and how many went.

    What a value means was decided with all of them, as in memory: only the counts are new.
    """
    before = values[judged[0]].records
    holes = {name: values[name].frame[name].is_null().to_numpy() for name in judged}
    if not any(gone.any() for gone in holes.values()):
        return dict(values), 0
    for name, gone in holes.items():
        if gone.any():
            engine.leave_out(together[name], values[name].raw.filter(gone))
    again = engine.value_counts([together[name] for name in values], most=MOST)
    left = {
        name: _counted_again(one, table, together[name])
        for (name, one), table in zip(values.items(), again, strict=True)
    }
    after = left[judged[0]].records
    if not after:
        raise InputError('Every record has a missing value, so missing = "drop" leaves none.')
    return left, before - after


def _counted_again(found: Values, again: Any, names: tuple[str, ...]) -> Values:
    counts = np.zeros(len(found.counts), dtype=np.int64)
    counts[_found_at(again, found.raw, names)] = again.column(COUNT).to_numpy()
    there = counts > 0
    kept = pl.Series(there)
    return Values(found.raw.filter(there), found.frame.filter(kept), counts[there], found.shown.filter(kept))


def _found_at(table: Any, values: Any, names: Sequence[str]) -> Ints:
    """The place of each row of a table among distinct values, both as the engine writes them."""
    rows, distinct = (pl.DataFrame(pl.from_arrow(one.select(list(names)))) for one in (table, values))
    return found_at(rows, distinct).to_numpy().astype(np.int64)


def _grouped(engine: Engine, values: Mapping[str, Values], name: str, schema: Schema) -> Schema:
    """The schema with the taxonomy of a column that is made of what its values occur with, where it asks for one."""
    attribute = schema.attributes[name]
    series, kind = typed(values[name].frame[name], attribute)
    if attribute.taxonomy != "auto" or attribute.order is not None or kind != "category":
        return schema

    def beside(other: str) -> Beside:
        (pairs,) = engine.value_counts([[name, other]], most=MOST)
        if len(pairs) > MOST:
            raise UnsupportedError(
                f"[attributes.{name}] taxonomy: an automatic one is made from what values occur with, and '{name}' and '{other}' "
                f"have more than {MOST:,} pairs of values; make it once from some of the records with: shoal taxonomy build."
            )
        codes, width = features(*typed(values[other].frame[other], schema.attributes[other]), values[other].counts)
        own, at = (_found_at(pairs, values[one].raw, [one]) for one in (name, other))
        return Beside(series.gather(own), codes[at], width, pairs.column(COUNT).to_numpy().astype(np.int64))

    others = [other for other in schema.named("quasi") if other != name]
    made = auto_taxonomy(series, values[name].counts, map(beside, others), name)
    own = attribute.model_copy(update={"taxonomy": made})
    return replace(schema, attributes={**schema.attributes, name: own})


def _places(column: str, found: Values) -> pl.DataFrame:
    """The place of each value among the distinct ones."""
    return pl.DataFrame({column: np.arange(len(found.counts), dtype=np.int32)})


def _require_possible(schema: Schema, missing: str) -> None:
    if not schema.named("quasi"):
        raise ConfigError('No column has the role "quasi"; without a quasi-identifier there is nothing to mask.')
    if schema.person is not None:
        raise UnsupportedError(
            f"Column '{schema.person}' says whose each row is, and people with several rows are masked in memory only so far; "
            'use engine = "memory", or make a table with one row a person first.'
        )
    require_word("missing", missing, get_args(Missing))
    for name, attribute in schema.attributes.items():
        if attribute.shift is not None:
            raise UnsupportedError(
                f'[attributes.{name}] shift moves dates person by person, which this engine does not; use engine = "memory".'
            )


def _values(
    engine: Engine, together: Mapping[str, tuple[str, ...]], schema: Schema, as_text: bool
) -> dict[str, Values]:
    """The distinct values of columns, each with those it is read with, as the schema of its own says."""
    found = {}
    for (name, names), counted in zip(
        together.items(), engine.value_counts(list(together.values()), most=MOST), strict=True
    ):
        if len(counted) == 0:
            raise InputError("The table has no records.")
        if len(counted) > MOST:
            raise UnsupportedError(
                f"Column '{name}' has more than {MOST:,} distinct values, too many to be looked up; round or truncate it, or "
                'give it the role "identifier", which leaves it out.'
            )
        found[name] = read_values(counted, names, schema, as_text)
    return found


def read_values(counted: Any, names: Sequence[str], schema: Schema, as_text: bool) -> Values:
    """What `value_counts` gave, in the types of the house and as the schema reads it; always in the same order."""
    order = in_order(counted, names)
    counted = counted.take(order)
    raw = counted.select(list(names))
    frame, _ = to_polars(raw)
    frame = apply_missing(frame, schema.missing)
    if as_text:
        frame = infer_numbers(frame, lambda row: f"value {row + 1}", schema.as_text)
    own = replace(schema, attributes={names[0]: schema.attributes[names[0]]})
    frame = transformed(as_declared(frame, own), own)
    attribute = own.attributes[names[0]]
    types = kept_types(pl.DataFrame(pl.from_arrow(raw.slice(0, 0))).schema) if untouched(attribute) else {}
    shown = restored(frame.select(names[0]), types).to_series()
    return Values(raw, frame, counted.column(COUNT).to_numpy().astype(np.int64), shown)


def in_order(counted: Any, names: Sequence[str]) -> NDArray[np.int64]:
    """Rows in the order of their values, so that no engine's own order decides anything."""
    plain = pl.DataFrame([pl.Series(str(i), counted.column(name)) for i, name in enumerate(names)])
    places = plain.select(pl.arg_sort_by(plain.columns, nulls_last=True, maintain_order=True)).to_series()
    return np.asarray(places.to_numpy(), dtype=np.int64)


def _require_values(found: Values, name: str, missing: str) -> None:
    series = found.frame[name]
    holes = int(found.counts[series.is_null().to_numpy()].sum())
    if holes == found.records:
        raise InputError(f"Column '{name}' has no values at all; leave it out or give it the role \"other\".")
    if missing == "error" and holes:
        raise InputError(f"Column '{name}' has {holes} missing values; fill them, or set missing = \"category\".")
