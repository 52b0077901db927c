"""What the masked table tells by itself: all that a report for the public has (the rule of `shoal.manifest`).

Everything here is a function of the masked table, of its policy and of what was declared about its columns. The original is
never looked at, so nothing of it can get in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.declaration import Examination, alone, examine
from shoal.errors import ConfigError, ShoalError
from shoal.measures.attacks import run_attacks
from shoal.measures.exposure import Exposure
from shoal.measures.risk import Risks, reidentification_risk
from shoal.measures.seen import MaskedTable
from shoal.models import Model
from shoal.persons import Persons, number_persons
from shoal.policy import Policy
from shoal.report.levels import Shown, levels
from shoal.report.sizes import Sizes
from shoal.report.words import model_of
from shoal.schema import Schema
from shoal.space import SUPPRESSED
from shoal.verifier import Check, Evidence, Strength, Violation, audit, masked_schema, verify

HAIR = 1e-6
"""So much more than what was found is asked of a class, to see which classes are the tightest."""


@dataclass(frozen=True)
class Tightest:
    """The classes that would be the first to fail: how many, and some of them."""

    classes: int
    some: tuple[Violation, ...]


@dataclass(frozen=True, eq=False)
class Published:
    """A masked table with its promises. `name` is its file's, `settings` how it was published, as the manifest tells."""

    name: str
    masked: pl.DataFrame
    schema: Schema
    policy: Policy
    evidence: Evidence
    cells: pl.DataFrame | None = None
    persons: Persons | None = None
    """Whose each row is, where that was known and is not in the table; for the owner only."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    digest: str | None = None
    strength: int = 1
    """How many values an intruder can rule out."""

    @classmethod
    def of(
        cls, name: str, masked: pl.DataFrame, schema: Schema, policy: Policy, evidence: Evidence, **more: Any
    ) -> Published:
        """`schema` is that of the original or of the masked table."""
        return cls(name, masked, masked_schema(schema, masked), policy, evidence, **more)

    @cached_property
    def table(self) -> MaskedTable:
        """Its classes, as an intruder sees them."""
        return MaskedTable.of(self._seen, self.schema)

    @property
    def _seen(self) -> pl.DataFrame:
        """With whose each row is, where that is known."""
        person = self.schema.person
        if self.persons is None or person is None or person in self.masked.columns:
            return self.masked
        return self.masked.with_columns(pl.Series(person, self.persons.of_row))

    @cached_property
    def owners(self) -> Persons | None:
        """Whose each row is, where it is known or the table has a token for it."""
        person = self.schema.person
        return number_persons(self._seen[person]) if person in self._seen.columns else None

    @cached_property
    def by_persons(self) -> pl.DataFrame:
        """One row a person, where it is known whose each is: all rows of a person publish the same."""
        return self.masked if self.owners is None else self.masked[self.owners.first]

    @property
    def by_person(self) -> bool:
        """Whether what is counted are persons."""
        return self.schema.person in self._seen.columns

    @property
    def one(self) -> str:
        """What is counted, in a word."""
        return "person" if self.by_person else "record"

    @property
    def many(self) -> str:
        """The same of several."""
        return f"{self.one}s"

    @property
    def columns(self) -> list[str]:
        """Of the masked table."""
        return self.masked.columns

    @cached_property
    def sizes(self) -> Sizes:
        """Of the classes."""
        return Sizes.of(self.table.sizes)

    def left_to(self, names: Sequence[str]) -> Sizes:
        """Who knows only these columns is left with so many records: the sizes of classes by what they publish."""
        groups = self.table.groups
        counts = groups.select(columns_of(groups.columns, names)).with_columns(records=pl.Series(self.table.sizes))
        alike = counts.group_by(counts.columns[:-1]).agg(pl.col("records").sum())["records"]
        return Sizes.of(alike.to_numpy())

    def alone_in(self, name: str) -> tuple[int, int]:
        """Rows with a value of a column that no other row has, and how many different values there are."""
        return alone(self.masked[name]), self.masked[name].n_unique()

    @cached_property
    def risks(self) -> Risks:
        """Of being found, by class sizes alone."""
        return reidentification_risk(self.table.sizes)

    @cached_property
    def attacks(self) -> list[Exposure]:
        """What needs nothing but the table."""
        return run_attacks(self.table, strength=self.strength)

    @cached_property
    def asis(self) -> Examination:
        """The columns that are published as they are."""
        return examine(self.masked, self.schema)

    @cached_property
    def strengths(self) -> list[Strength]:
        """The table by every model."""
        return audit(self.masked, self.schema, self.policy if self.policy.models else None, cells=self.cells)

    @cached_property
    def shown(self) -> list[Shown]:
        """How exact each masked column is, and why it cannot be told where it cannot."""
        rows = np.bincount(self._rows, minlength=len(self.table.sizes)).astype(np.int64)
        return levels(self.table.groups, rows, self.schema, str(self.settings.get("recode", "generalize")))

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        from shoal.verifier import derive_classes

        return derive_classes(self.masked, self.table.groups.columns)[0]

    @cached_property
    def starred(self) -> int:
        """Rows of which every masked column is hidden."""
        quasi = self.table.groups.columns
        stars = self.masked.select(pl.all_horizontal(pl.col(quasi).cast(pl.String) == SUPPRESSED)).to_series()
        return int(stars.sum())

    @property
    def models(self) -> tuple[Model, ...]:
        """Of the policy."""
        return self.policy.models

    @cached_property
    def tightest(self) -> Mapping[str, Tightest]:
        """By rule, the classes that fail when a hair more is asked than what was found."""
        found = {}
        for check in self.evidence.checks:
            one = self._asked_more(check)
            if one is not None:
                found[check.rule] = one
        return found

    def _asked_more(self, check: Check) -> Tightest | None:
        stronger = a_hair_more(check, self.models)
        if stronger is None:
            return None
        try:
            again = verify(self.masked, Policy((stronger,)), self.schema, cells=self.cells, persons=self.persons)
        except (ShoalError, ConfigError, ValueError):
            return None
        return Tightest(again.checks[0].failing, again.violations[:3]) if again.checks else None


def a_hair_more(check: Check, models: Sequence[Model]) -> Model | None:
    """The model of a check with a hair more asked than what was found, where that can be asked."""
    model = model_of(check, models)
    if model is None or check.strongest != check.strongest:
        return None
    asked = getattr(model, model.main)
    hair = 1 if isinstance(asked, int) else HAIR * max(1.0, abs(check.strongest))
    more = check.strongest - hair if model.smaller_is_stronger else check.strongest + hair
    wanted: dict[str, Any] = {model.main: int(more) if isinstance(asked, int) else more}
    if check.attribute is not None:
        wanted["attribute"] = check.attribute
    try:
        return replace(model, **wanted)
    except (ShoalError, ValueError):
        return None


def columns_of(published: Sequence[str], names: Sequence[str]) -> list[str]:
    """The published columns of some quasi-identifiers, ends of ranges included."""
    return [c for c in published if c in names or c.removesuffix("_min").removesuffix("_max") in names]
