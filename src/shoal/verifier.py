"""The verifier. It trusts nobody: classes are what the masked table itself says they are.

It shares no code with algorithms, kernels, partitions or recoding, and it is what `shoal verify` runs on files that
somebody else made. Suppressed records that stay in the table are a class like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.columns import declared_taxonomy, texts, typed
from shoal.errors import InputError, VerificationError, did_you_mean
from shoal.policy import Policy
from shoal.schema import Schema
from shoal.taxonomy import Taxonomy

SHOWN = 5


@dataclass(frozen=True, eq=False)
class AuditedColumn:
    """A sensitive attribute as the masked table shows it."""

    name: str
    codes: NDArray[np.int32]
    labels: tuple[str, ...]
    numbers: NDArray[np.float64] | None
    ordered: bool
    taxonomy: Taxonomy | None
    protect: tuple[str, ...]
    categories: tuple[tuple[str, tuple[str, ...]], ...]
    guards: NDArray[np.object_] | None = None


@dataclass(frozen=True)
class Violation:
    """One class that fails one rule."""

    rule: str
    published: dict[str, Any]
    size: int
    deficit: float

    def __str__(self) -> str:
        values = ", ".join(
            f"{name} = {'missing' if value is None else value}" for name, value in self.published.items()
        )
        records = "record" if self.size == 1 else "records"
        return f"class ({values}) with {self.size} {records} fails {self.rule} by {self.deficit:.6g}"


@dataclass(frozen=True)
class Check:
    """One rule on the whole table: does it hold, the strongest parameter that does, and who fails."""

    rule: str
    model: str
    attribute: str | None
    parameter: str
    required: float
    strongest: float
    failing: int

    @property
    def holds(self) -> bool:
        """Whether every class satisfies the rule."""
        return self.failing == 0


@dataclass(frozen=True)
class Evidence:
    """What the verifier found."""

    records: int
    classes: int
    smallest: int
    largest: int
    checks: tuple[Check, ...]
    violations: tuple[Violation, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether the table satisfies the policy."""
        return all(check.holds for check in self.checks)

    def require(self) -> Evidence:
        """Itself, or an error that names the classes that fail."""
        if self.passed:
            return self
        failing = sum(check.failing for check in self.checks)
        first = "; ".join(str(violation) for violation in self.violations[:SHOWN])
        raise VerificationError(
            f"The table does not satisfy its policy: {failing} failing classes, among them {first}."
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "passed": self.passed,
            "records": self.records,
            "classes": self.classes,
            "smallest": self.smallest,
            "largest": self.largest,
            "checks": [{**vars(check), "holds": check.holds} for check in self.checks],
            "violations": [vars(violation) for violation in self.violations],
        }


def verify(masked: pl.DataFrame, policy: Policy, schema: Schema) -> Evidence:
    """Group the masked table by its published quasi-identifiers and test every class."""
    quasi = published_quasi(masked, schema)
    if masked.height == 0:
        raise InputError("The masked table has no records.")
    labels, groups = derive_classes(masked, quasi)
    rules = policy.bind([audited_column(masked, name, schema) for name in schema.named("sensitive")], masked.height)
    stats = rules.stats(labels, groups.height)
    deficits = rules.rule_deficits(stats)
    checks, violations = [], []
    for rule, row, counts in zip(rules.rules, deficits, rules.counts_by_rule(stats), strict=True):
        failing = np.flatnonzero(row > 0)
        main = rule.model.main
        checks.append(
            Check(
                str(rule),
                rule.model.name,
                rule.attribute,
                main,
                float(getattr(rule.model, main)),
                rule.strongest(stats.sizes, counts),
                len(failing),
            )
        )
        worst = failing[np.argsort(-row[failing], kind="stable")][: 10 * SHOWN]
        violations += [
            Violation(str(rule), groups.row(int(c), named=True), int(stats.sizes[c]), float(row[c])) for c in worst
        ]
    return Evidence(
        records=masked.height,
        classes=groups.height,
        smallest=int(stats.sizes.min()),
        largest=int(stats.sizes.max()),
        checks=tuple(checks),
        violations=tuple(violations),
    )


def published_quasi(masked: pl.DataFrame, schema: Schema) -> list[str]:
    """The columns that carry the quasi-identifiers: `age`, or `age_min` and `age_max`."""
    found: list[str] = []
    for name in schema.named("quasi"):
        if name in masked.columns:
            found.append(name)
        elif f"{name}_min" in masked.columns and f"{name}_max" in masked.columns:
            found += [f"{name}_min", f"{name}_max"]
        else:
            raise InputError(
                f"The masked table has no column '{name}', which is a quasi-identifier; "
                f"{did_you_mean(name, masked.columns)}"
            )
    for name in schema.named("sensitive"):
        if name not in masked.columns:
            raise InputError(f"The masked table has no column '{name}', which is a sensitive attribute.")
    for name in schema.named("identifier"):
        if name in masked.columns:
            raise VerificationError(f"The masked table still has the identifier '{name}'; identifiers never leave.")
    return found


def masked_schema(schema: Schema, masked: pl.DataFrame) -> Schema:
    """The schema as far as it concerns a masked table: identifiers are gone, undeclared columns are named by "*"."""
    rest = schema.attributes.get("*")
    found = {name: attribute for name, attribute in schema.attributes.items() if name != "*"}
    for name in masked.columns:
        owner = name.removesuffix("_min").removesuffix("_max")
        if name not in found and owner not in found and rest is not None:
            found[name] = rest
    return Schema(found, schema.folder)


def derive_classes(masked: pl.DataFrame, quasi: list[str]) -> tuple[NDArray[np.int64], pl.DataFrame]:
    """A label per row and the distinct published values, in order of first appearance. Missing is a value."""
    keys = masked.select(quasi)
    groups = keys.unique(maintain_order=True)
    numbered = groups.with_row_index("__class")
    labels = keys.join(numbered, on=quasi, how="left", nulls_equal=True, maintain_order="left")["__class"]
    return labels.to_numpy().astype(np.int64), groups


def audited_column(masked: pl.DataFrame, name: str, schema: Schema) -> AuditedColumn:
    """Codes of a sensitive attribute, from the masked table alone."""
    attribute = schema.attributes[name]
    series, kind = typed(masked[name], attribute)
    numbers = None
    if attribute.order is not None:
        labels = list(attribute.order)
    elif kind == "category":
        labels = sorted(str(value) for value in series.drop_nulls().unique())
    else:
        distinct = series.drop_nulls().unique().sort()
        numbers = distinct.cast(pl.Int32).cast(pl.Float64).to_numpy() if kind == "date" else distinct.to_numpy()
        labels = texts(distinct, kind).to_list()
    position = pl.DataFrame(
        {"label": labels, "code": np.arange(len(labels), dtype=np.int32)}, schema={"label": pl.String, "code": pl.Int32}
    )
    shown = texts(series, kind).alias("label").to_frame()
    codes = shown.join(position, on="label", how="left", maintain_order="left")["code"]
    strange = shown["label"].filter(codes.is_null() & shown["label"].is_not_null())
    if len(strange):
        raise InputError(f"Column '{name}': '{strange[0]}' is not among the declared values.")
    taxonomy = declared_taxonomy(masked, series, kind, name, schema) if attribute.taxonomy is not None else None
    return AuditedColumn(
        name=name,
        codes=codes.fill_null(-1).to_numpy().astype(np.int32),
        labels=tuple(labels),
        numbers=numbers,
        ordered=numbers is not None or attribute.order is not None,
        taxonomy=taxonomy,
        protect=tuple(attribute.protect),
        categories=tuple((key, tuple(values)) for key, values in (attribute.categories or {}).items()),
    )
