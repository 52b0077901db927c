"""What is suggested, as it is handed out: columns, the policy, and what it would cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import polars as pl

from shoal.configuration import read_schema
from shoal.io.frames import from_polars
from shoal.profiling import percent
from shoal.schema import Kind, Role, Schema, Within
from shoal.shown import Shown

SHOWN = 30  # columns that are listed, and compared with each other

TaxonomyRule = str | dict[str, list[int]] | dict[str, list[str]]
Known = Literal["likely", "perhaps", "hardly"]


@dataclass(frozen=True)
class ColumnProfile:
    """One column: facts, and what is suggested for it."""

    name: str
    kind: Kind
    distinct: int
    """Distinct values; missing is not counted."""
    missing: float
    """Share of records without a value."""
    distinction: float
    """Distinct values per record."""
    separation: float
    """Share of the pairs of records that it tells apart, missing being a value of its own."""
    role: Role
    why: str
    taxonomy: TaxonomyRule | None = None
    taxonomy_why: str = ""
    within: Within | None = None
    """Which value counts where the rows of a person differ."""
    within_why: str = ""
    repeats: Literal["allowed"] | None = None
    """For an identifier that repeats and is no person's."""
    reading: Mapping[str, Any] = field(default_factory=dict)
    """How it is written in its source: format = "DD.MM.YYYY", missing = [-99] …"""
    reading_why: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else is suggested for it: top = 90, truncate = "year" …"""
    known: Known | None = None
    """Whether others know it, of columns that are neither identifiers nor sensitive."""
    consider: bool = False
    """Whether it is no quasi-identifier and could be one, if somebody knows it."""

    @property
    def read_as(self) -> Mapping[str, Any]:
        """How it is read, where it is published; keys of people are compared as they are written."""
        return self.reading if self.role not in ("identifier", "person") and not self.left_out else {}

    @property
    def left_out(self) -> bool:
        """Whether it names nobody and is left out all the same."""
        return bool(self.more.get("drop"))

    @property
    def declared(self) -> dict[str, Any]:
        """What a configuration says about it."""
        found: dict[str, Any] = {"role": self.role}
        if self.role in ("quasi", "sensitive"):
            found["kind"] = self.kind
        keys = {"taxonomy": self.taxonomy, "within": self.within, "repeats": self.repeats, **self.read_as, **self.more}
        return {**found, **{key: value for key, value in keys.items() if value is not None}}


def schema_of(columns: Iterable[ColumnProfile]) -> Schema:
    """The schema that is suggested."""
    return read_schema({column.name: column.declared for column in columns})


@dataclass(frozen=True)
class Diversity:
    """The rule suggested for a sensitive attribute: p different values in each class, or a range of at least e; or none."""

    attribute: str
    p: int
    why: str
    e: float | None = None

    @property
    def rule(self) -> tuple[str, dict[str, Any]] | None:
        """The model and its settings, as they stand in a policy."""
        if self.e is not None:
            return "k_e", {"e": self.e, "attribute": self.attribute}
        return ("p_sensitive", {"p": self.p, "attribute": self.attribute}) if self.p > 1 else None


@dataclass(frozen=True)
class Costs:
    """What the suggestions would cost, tried on some of the records (`shoal.pricing`): shares of what the columns tell."""

    records: int
    """How many records, or persons, it was tried on."""
    alone: float
    """The loss under k alone."""
    policy: float
    """The loss under the whole policy."""
    rules: Mapping[str, float]
    """The loss under k and the rule of one sensitive attribute, for each."""
    columns: tuple[float, ...]
    """The loss under k with the one, two, three … quasi-identifiers that tell most."""
    consider: Mapping[str, float]
    """What the quasi-identifiers lose under k with one more beside them, for each of the columns to consider that were tried."""


@dataclass(frozen=True)
class Profile(Shown):
    """A table's columns, and what is suggested for all of them together."""

    records: int
    columns: tuple[ColumnProfile, ...]
    unique: float
    """Share of the records, or of the persons, that no other equals on the suggested quasi-identifiers."""
    k: int
    diversity: tuple[Diversity, ...]
    missing: tuple[str, ...]
    """Texts found among the values that mean missing."""
    notes: tuple[str, ...]
    persons: int | None = None
    """How many persons the rows belong to, where a column says whose each row is."""
    costs: Costs | None = None
    """What it would cost, where that was tried."""
    backend: str = field(default="polars", repr=False, compare=False)
    """The frame library that `frame` is in."""

    def named(self, role: Role) -> list[str]:
        """Columns with a suggested role."""
        return [column.name for column in self.columns if column.role == role]

    @property
    def consider(self) -> list[ColumnProfile]:
        """Columns that could be quasi-identifiers too, those that tell most first."""
        found = [column for column in self.columns if column.consider]
        return sorted(found, key=lambda column: -column.separation)

    @property
    def policy(self) -> dict[str, Any]:
        """The suggested policy, as it stands in a configuration."""
        by_model: dict[str, list[dict[str, Any]]] = {}
        for one in self.diversity:
            if one.rule is not None:
                by_model.setdefault(one.rule[0], []).append(one.rule[1])
        return {"k": self.k, **by_model}

    @property
    def reason(self) -> str:
        """Why anonymize at all: how many records the quasi-identifiers single out."""
        return (
            f"{percent(self.unique)} of the {'records' if self.persons is None else 'persons'} are the only ones with their "
            f"values of {', '.join(self.named('quasi'))}; whoever knows these about a person finds the record."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "backend"}

    @property
    def frame(self) -> Any:
        """The columns with facts and suggestions, one row each, in the frame library that came in."""
        names = ("name", "role", "why", "kind", "distinct", "missing", "separation")
        rows = [{name: getattr(column, name) for name in names} for column in self.columns]
        return from_polars(pl.DataFrame(rows), self.backend)
