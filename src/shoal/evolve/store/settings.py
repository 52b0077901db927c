"""What a store was made with: columns, policy, method and guard; written into the store, so that it needs no other file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import polars as pl

from shoal.errors import ConfigError, require_word
from shoal.evolve.releases.guards import GUARDS, Guard
from shoal.policy import Policy
from shoal.refine import Effort
from shoal.schema import Attribute, Order, Schema, Source, TaxonomySource
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

    def __post_init__(self) -> None:
        require_word("guard", self.guard, GUARDS)
        require_word("objective", self.objective, get_args(Measure))
        if self.m is not None and self.guard != "m-invariance":
            raise ConfigError(
                f'm = {self.m!r} belongs to guard = "m-invariance" and this is "{self.guard}"; leave it out.'
            )
        if self.guard == "m-invariance":
            from shoal.evolve.releases.invariance import only_sensitive

            only_sensitive(self.schema)
        for name, value, allowed in (
            ("missing", self.missing, get_args(OfMissing)),
            ("order", self.order, get_args(Order)),
            ("intervals", self.intervals, get_args(Shape)),
        ):
            if value not in allowed:
                raise ConfigError(f"{name} = {value!r} is not possible in a store; it can be {' or '.join(allowed)}.")

    @property
    def columns(self) -> list[str]:
        """The columns that are kept of every record."""
        return list(self.schema.attributes)

    def to_json(self) -> str:
        """For the store."""
        told = {name: value for name, value in vars(self).items() if name not in ("schema", "policy")}
        told["schema"] = {name: _written(attribute) for name, attribute in self.schema.attributes.items()}
        told["policy"] = self.policy.to_config()
        return json.dumps(told, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """From the store."""
        told = json.loads(text)
        for name in ("ignored", "missing_texts"):
            told[name] = tuple(told[name])
        columns = {name: _read(entry, name) for name, entry in told["schema"].items()}
        told["schema"] = Schema(columns, missing=told["missing_texts"])
        told["policy"] = Policy.from_config(told["policy"])
        return cls(**told)


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
