r"""What stands in a `shoal.toml`: the columns, where they come from, how they are treated; reading it, and saying what is wrong.

>>> config = parse_config('[attributes.age]\nrole = "quasi"')
>>> Configuration(config).schema.named("quasi")
['age']
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from shoal.errors import ConfigError, InputError, require_a
from shoal.explaining import explain
from shoal.schema import (
    Attribute,
    Intervals,
    Order,
    Recode,
    Schema,
    Strict,
    Suppressed,
    attribute_table,
    toml_key,
)
from shoal.taxonomy import Taxonomy


class Source(Strict):
    """Where the table comes from: a file, or a database."""

    path: str | None = Field(None, description="csv, tsv, parquet, arrow, json lines, xlsx, SPSS, Stata or SAS.")
    url: str | None = Field(None, description="A database, as SQLAlchemy writes it.")
    table: str | None = None
    query: str | None = None
    delimiter: str | None = Field(None, description="Detected when absent.")
    encoding: str | None = Field(None, description="Detected when absent.")
    sheet: str | int | None = Field(None, description="A sheet of an Excel file, by name or counted from 1.")
    skip_rows: int = Field(0, ge=0, description="Lines above the names of the columns, such as a title.")
    skip_last: int = Field(0, ge=0, description="Lines below the last record, such as totals.")
    header: list[str] | None = Field(None, description="Column names of a file that has none.")
    missing: list[str] = Field(["", "?"], description="Texts that mean missing.")

    @property
    def reading(self) -> dict[str, Any]:
        """How to read the file, as `shoal.io.read_table` takes it."""
        names = ("delimiter", "encoding", "header", "sheet", "missing", "skip_rows", "skip_last")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value not in (None, 0)}


class Method(Strict):
    """How the classes are made."""

    engine: Literal["auto", "memory", "duckdb", "spark"] = Field(
        "auto", description="Where records are kept: memory while the table fits, duckdb beyond it, spark on a cluster."
    )
    algorithm: str = "auto"
    objective: Literal["il", "ncp", "granularity"] = Field("ncp", description="The loss that the search minimises.")
    refine: bool | Literal["fast", "thorough"] | float = Field(
        True, description="true, fast, thorough, seconds or false."
    )
    missing: Literal["category", "drop", "error"] = "category"
    suppress: float | None = Field(
        None, ge=0, le=1, description="Largest share of records that may be suppressed; none when absent."
    )
    seed: int = Field(0, ge=0)
    options: dict[str, Any] = Field({}, description="Options of the algorithm itself.")


class Publication(Strict):
    """How the release looks."""

    order: Order = "shuffle"
    recode: Recode = Field(
        "generalize", description="Intervals and nodes; means and modes; or single cells blanked, as few as possible."
    )
    intervals: Intervals = "text"
    suppressed: Suppressed = Field("mask", description="Suppressed records: starred, or left out.")


class Config(Strict):
    """A whole `shoal.toml`."""

    source: Source = Source()  # type: ignore[call-arg]
    attributes: dict[str, Attribute] = Field(default_factory=dict)
    policy: dict[str, Any] = Field(default_factory=dict)
    method: Method = Method()  # type: ignore[call-arg]
    release: Publication = Publication()  # type: ignore[call-arg]


@dataclass(frozen=True)
class Configuration:
    """A parsed `shoal.toml` and where it was found."""

    config: Config
    path: Path | None = None

    @property
    def folder(self) -> Path:
        """Relative paths in the file start here."""
        return self.path.parent if self.path else Path()

    @property
    def schema(self) -> Schema:
        """The columns."""
        return Schema(self.config.attributes, self.folder, tuple(self.config.source.missing))

    @property
    def reading(self) -> dict[str, Any]:
        """How to read the file, as `shoal.io.read_table` takes it, with what the columns say of themselves."""
        return {**self.config.source.reading, "as_text": self.schema.as_text}

    def with_person(self, column: str | None, *, published: bool = False) -> Configuration:
        """The configuration with `column` in the role `person`; the same for None."""
        attributes = dict(self.schema.with_person(column, published=published).attributes)
        return replace(self, config=self.config.model_copy(update={"attributes": attributes}))


def read_config(path: str | Path) -> Configuration:
    """Read a `shoal.toml`; every error names the key, its line and what is allowed."""
    require_a("the configuration", path, (str, Path), "the path of a shoal.toml")
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration '{path}'; make one with: shoal init FILE.") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"The configuration '{path}' cannot be read: {problem}.") from None
    return Configuration(parse_config(text, str(path)), path)


def parse_config(text: str, name: str = "shoal.toml") -> Config:
    """Parse the text of a `shoal.toml`."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"{name} is not valid TOML: {problem}.") from None
    try:
        return Config.model_validate(raw)
    except ValidationError as problem:
        raise ConfigError(explain(problem, _table_at, name=name, text=text)) from None


def read_schema(source: str | Path | Mapping[str, Any] | Schema | Configuration) -> Schema:
    """A schema from a `shoal.toml`, a mapping of columns to attributes or just their roles, or itself."""
    if isinstance(source, Schema):
        return source
    if isinstance(source, Configuration):
        return source.schema
    if isinstance(source, Mapping):
        return Schema({name: _attribute(name, value) for name, value in source.items()})
    require_a("schema", source, (str, Path), 'a mapping such as {"age": "quasi"}, a Schema or a shoal.toml')
    return read_config(source).schema


def _attribute(name: Any, value: Any) -> Attribute:
    if not isinstance(name, str):
        raise ConfigError(f"A schema names columns by text; {type(name).__name__} is no name.")
    try:
        # A role by itself will do where nothing else is to be said.
        return Attribute.model_validate({"role": value} if isinstance(value, str) else value)
    except ValidationError as problem:
        raise ConfigError(explain(problem, attribute_table, name=f"schema of column '{name}'")) from None


def write_config(config: Config) -> str:
    """The text of a `shoal.toml`."""
    import tomlkit

    for name, column in config.attributes.items():
        if isinstance(column.taxonomy, Taxonomy):
            raise InputError(
                f"[attributes.{toml_key(name)}] taxonomy: one made in Python has no place in a TOML file; "
                "write it to a file first."
            )
    return tomlkit.dumps(config.model_dump(exclude_defaults=True))


def _table_at(path: list[str]) -> type[BaseModel]:
    tables: dict[str, type[BaseModel]] = {"source": Source, "method": Method, "release": Publication}
    return tables.get(path[0], attribute_table(path)) if path else Config
