"""What a store was made with: columns, policy, method and guard; written into the store, so that it needs no other file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import polars as pl

from shoal.configuration import Source
from shoal.errors import ConfigError, UnsupportedError, require_a, require_seed, require_word, shown
from shoal.evolve.releases.guards import GUARDS, Guard
from shoal.policy import Policy
from shoal.refine import Effort
from shoal.schema import Attribute, Order, Schema, TaxonomySource
from shoal.space import Measure
from shoal.taxonomy import Taxonomy

OfMissing = Literal["category", "error"]
"""Dropping records is not possible: the store promises to keep all of them."""
Shape = Literal["text", "columns"]
# As a `shoal.toml` has them that says nothing of it.
MISSING_TEXTS: tuple[str, ...] = tuple(Source.model_fields["missing"].default)


@dataclass(frozen=True)
class Settings:
    """`schema` has the columns that are kept; `ignored` are identifiers, which batches may bring and the store forgets."""

    key: str
    schema: Schema
    policy: Policy
    ignored: tuple[str, ...] = ()
    algorithm: str = "auto"
    objective: Measure = "ncp"
    refine: Effort = True
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    guard: Guard = "batching"
    m: int | None = None
    missing: OfMissing = "category"
    missing_texts: tuple[str, ...] = MISSING_TEXTS
    order: Order = "shuffle"
    intervals: Shape = "text"
    retention: int | None = None
    rows: Schema | None = None
    """Where people have several rows: the columns of these rows, one of which says whose each is. `schema` is then that of a
    table with one line a person (`evolve/releases/people.py`)."""
    row_types: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_a("key", self.key, str, "the name of a column")
        require_a("options", self.options, Mapping, "a dictionary of the algorithm's options")
        require_a("m", self.m, (int, type(None)), "a whole number")
        require_seed(self.seed)
        require_word("guard", self.guard, GUARDS)
        require_word("objective", self.objective, get_args(Measure))
        if self.m is not None and self.guard != "m-invariance":
            raise ConfigError(
                f'm = {self.m!r} belongs to guard = "m-invariance" and this is "{self.guard}"; leave it out.'
            )
        if self.guard == "m-invariance":
            from shoal.evolve.releases.invariance import require_sensitive

            require_sensitive(self.schema)
        if self.rows is not None:
            require_for_people(self.guard, self.policy)
        if self.retention is not None and (type(self.retention) is not int or self.retention < 1):
            raise ConfigError(
                f"retention = {shown(self.retention)} is not possible in a store; it is how many releases are kept in full, at "
                "least 1, or none for all of them."
            )
        for name, value, allowed in (
            ("missing", self.missing, get_args(OfMissing)),
            ("order", self.order, get_args(Order)),
            ("intervals", self.intervals, get_args(Shape)),
        ):
            if not isinstance(value, str) or value not in allowed:
                raise ConfigError(
                    f"{name} = {shown(value)} is not possible in a store; it can be {' or '.join(allowed)}."
                )

    @property
    def given(self) -> Schema:
        """The columns of a batch and of a release."""
        return self.rows or self.schema

    @property
    def person(self) -> str | None:
        """The column that says whose each row is, where people have several."""
        return None if self.rows is None else self.rows.person

    @property
    def columns(self) -> list[str]:
        """The columns that are kept of every row."""
        return list(self.given.attributes)

    def to_json(self) -> str:
        """For the store."""
        told = {name: value for name, value in vars(self).items() if name not in ("schema", "policy", "rows")}
        for name, schema in (("schema", self.schema), ("rows", self.rows)):
            told[name] = schema and {column: _written(one) for column, one in schema.attributes.items()}
        told["policy"] = self.policy.to_config()
        return json.dumps(told, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """From the store."""
        told = json.loads(text)
        for name in ("ignored", "missing_texts"):
            told[name] = tuple(told[name])
        for schema in ("schema", "rows"):
            if told.get(schema) is not None:
                columns = {name: _read(entry, name) for name, entry in told[schema].items()}
                told[schema] = Schema(columns, missing=told["missing_texts"])
        told["policy"] = Policy.from_config(told["policy"])
        return cls(**told)


def require_for_people(guard: Guard, policy: Policy) -> None:
    """What is proved for people with several rows: batching, and models of sizes and distinct values."""
    if guard != "batching":
        raise UnsupportedError(
            f'guard = "{guard}" is not proved safe for people with several rows; use guard = "batching", publish single tables '
            "with shoal anonymize, or bring the table to one row a person."
        )
    for model in policy.models:
        distinct = model.name == "p_sensitive" or (model.name == "l_diversity" and model.persons == "distinct")
        if not distinct and model.name != "k_anonymity":
            raise UnsupportedError(
                f"{model} is not proved safe across releases for people with several rows, only k_anonymity, p_sensitive and "
                "distinct l_diversity are; use these, publish single tables with shoal anonymize, or bring the table to one row "
                "a person."
            )


def _written(attribute: Attribute) -> dict[str, Any]:
    entry = attribute.model_dump(mode="json", exclude={"taxonomy"}, exclude_defaults=True) | {"role": attribute.role}
    if isinstance(attribute.taxonomy, Taxonomy):
        entry["taxonomy"] = {"rows": [list(row) for row in attribute.taxonomy.rows()]}
    elif isinstance(attribute.taxonomy, TaxonomySource):
        entry["taxonomy"] = attribute.taxonomy.model_dump(mode="json", exclude_none=True)
    return entry


def _read(entry: dict[str, Any], name: str) -> Attribute:
    taxonomy = entry.pop("taxonomy", None)
    attribute = Attribute.model_validate(entry)
    if taxonomy is None:
        return attribute
    if "rows" in taxonomy:
        return attribute.model_copy(update={"taxonomy": Taxonomy.from_rows(taxonomy["rows"], name)})
    return attribute.model_copy(update={"taxonomy": TaxonomySource.model_validate(taxonomy)})


TYPES: dict[str, Any] = {
    "integer": pl.Int64,
    "number": pl.Float64,
    "text": pl.String,
    "date": pl.Date,
    "moment": pl.Datetime("us"),
}


def type_names(frame: pl.DataFrame) -> dict[str, str]:
    """The types of a normalised frame's columns by name."""
    names = {dtype: name for name, dtype in TYPES.items()}
    return {column: names[dtype] for column, dtype in frame.schema.items()}


def encode_rows(frame: pl.DataFrame) -> list[str]:
    """Each record as one line of JSON."""
    if frame.height == 0:
        return []
    moments = [name for name, dtype in frame.schema.items() if dtype.is_temporal()]
    written = frame.with_columns(pl.col(moments).cast(pl.String)) if moments else frame
    return written.select(pl.struct(pl.all()).struct.json_encode()).to_series().to_list()


def decode_rows(rows: list[str], types: Mapping[str, str]) -> pl.DataFrame:
    """The records of lines that `encode_rows` wrote."""
    dtypes = {name: TYPES[kind] for name, kind in types.items()}
    read = {name: pl.String if dtype in (pl.Date, pl.Datetime) else dtype for name, dtype in dtypes.items()}
    if not rows:
        return pl.DataFrame(schema=dtypes)
    frame = pl.Series(rows, dtype=pl.String).str.json_decode(pl.Struct(read)).struct.unnest()
    return frame.with_columns(
        *(pl.col(name).str.to_date("%Y-%m-%d") for name, dtype in dtypes.items() if dtype == pl.Date),
        *(
            pl.col(n).str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us")
            for n, d in dtypes.items()
            if d == pl.Datetime
        ),
    )
