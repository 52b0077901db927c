"""The verifier. It trusts nobody: classes are what the masked table itself says they are.

It shares no code with algorithms, kernels, partitions or recoding, and it is what `shoal verify` runs on files that
somebody else made. Suppressed records that stay in the table are a class like any other.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.columns import declared_taxonomy, texts, typed
from shoal.errors import ConfigError, InputError, VerificationError, did_you_mean
from shoal.models import MODELS, Model, Rule, View
from shoal.policy import Policy
from shoal.schema import Schema
from shoal.taxonomy import Taxonomy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SHOWN = 5
STARS = "*"

# Histograms are classes × values; they are counted in pieces of about this many cells.
CELLS = 4_000_000


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
        starred = all(value == STARS for value in self.published.values())
        what = "the class of suppressed records" if starred else "class"
        return f"{what} ({values}) with {self.size} {records} fails {self.rule} by {self.deficit:.6g}"


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
            "checks": [
                {**vars(check), "strongest": _or_none(check.strongest), "holds": check.holds} for check in self.checks
            ],
            "violations": [vars(violation) for violation in self.violations],
        }


@dataclass(frozen=True)
class Strength:
    """The strongest value of a model's main parameter that a table satisfies, with the model's other parameters."""

    model: str
    attribute: str | None
    parameter: str
    strongest: float
    settings: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; None where no value of the parameter holds or can be told."""
        return {**vars(self), "strongest": _or_none(self.strongest), "settings": dict(self.settings)}


def verify(masked: pl.DataFrame, policy: Policy, schema: Schema) -> Evidence:
    """Group the masked table by its published quasi-identifiers and test every class."""
    labels, groups, columns = _opened(masked, schema, policy)
    rules = policy.bind(columns, masked.height).rules
    sizes = np.bincount(labels, minlength=groups.height).astype(np.int64)
    strongest, deficits = judge(rules, labels, sizes, columns)
    checks, violations = [], []
    for rule, best, row in zip(rules, strongest, deficits, strict=True):
        failing = np.flatnonzero(row > 0)
        main = rule.model.main
        required = float(getattr(rule.model, main))
        checks.append(Check(str(rule), rule.model.name, rule.attribute, main, required, best, len(failing)))
        worst = failing[np.argsort(-row[failing], kind="stable")][: 10 * SHOWN]
        violations += [
            Violation(str(rule), groups.row(int(c), named=True), int(sizes[c]), float(row[c])) for c in worst
        ]
    return Evidence(
        records=masked.height,
        classes=groups.height,
        smallest=int(sizes.min()),
        largest=int(sizes.max()),
        checks=tuple(checks),
        violations=tuple(violations),
    )


def audit(masked: pl.DataFrame, schema: Schema, policy: Policy | None = None) -> list[Strength]:
    """Judge a masked table by every model there is, for every sensitive attribute that the model applies to.

    A model with several forms is tried in each; further parameters are the policy's where it names the model, else
    those of the model's own examples. Models that need what the schema does not declare (an order, a taxonomy,
    categories, protected nodes) are left out.
    """
    labels, groups, columns = _opened(masked, schema, policy)
    sizes = np.bincount(labels, minlength=groups.height).astype(np.int64)
    rules: list[Rule] = []
    for model in _probes(policy):
        for column in columns if model.per_attribute else [None]:
            # Without protected nodes this is p-sensitivity again.
            if column is not None and model.name == "extended_p_sensitive" and not column.protect:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    rules.append(model.bind(column, masked.height))
                except ConfigError:
                    continue
    strongest, _ = judge(rules, labels, sizes, columns)
    found = []
    for rule, best in zip(rules, strongest, strict=True):
        settings = {key: value for key, value in rule.model.parameters().items() if key not in _unfixed(rule.model)}
        found.append(Strength(rule.model.name, rule.attribute, rule.model.main, best, settings))
    return found


def judge(
    rules: Sequence[Rule], labels: Ints, sizes: Ints, columns: Sequence[AuditedColumn] = ()
) -> tuple[list[float], Floats]:
    """The strongest parameter of each rule, and deficits per rule and class.

    Classes × values may not fit into memory, so classes are taken some at a time. What holds in all pieces is the
    weakest of what holds in each.
    """
    deficits = np.zeros((len(rules), len(sizes)))
    found: list[list[float]] = [[] for _ in rules]
    by_view: dict[Any, list[int]] = {}
    for i, rule in enumerate(rules):
        by_view.setdefault(rule.view.key if rule.view is not None else None, []).append(i)
    for members in by_view.values():
        for piece, counts in _pieces(rules[members[0]].view, labels, sizes):
            for i in members:
                found[i].append(rules[i].strongest(sizes[piece], counts))
                deficits[i, piece] = rules[i].deficit(sizes[piece], counts)
    strongest = []
    for rule, parts in zip(rules, found, strict=True):
        best = max(parts) if rule.model.smaller_is_stronger else min(parts)
        certain = len(parts) == 1 or _holds(rule, best, labels, sizes, columns)
        strongest.append(best if certain else float("nan"))
    return strongest, deficits


def _pieces(view: View | None, labels: Ints, sizes: Ints) -> Iterator[tuple[slice, Ints]]:
    """Some classes at a time, with their histograms over the view's codes."""
    if view is None:
        yield slice(0, len(sizes)), np.zeros((len(sizes), 0), dtype=np.int64)
        return
    order = np.argsort(labels, kind="stable")
    ends = np.concatenate([[0], np.cumsum(sizes)])
    step = max(1, CELLS // view.width)
    for begin in range(0, len(sizes), step):
        end = min(begin + step, len(sizes))
        records = order[ends[begin] : ends[end]]
        codes, owner = view.codes[records].astype(np.int64), labels[records] - begin
        cells = (owner * view.width + codes)[codes >= 0]
        counts = np.bincount(cells, minlength=(end - begin) * view.width).astype(np.int64, copy=False)
        yield slice(begin, end), counts.reshape(end - begin, view.width)


def _holds(rule: Rule, value: float, labels: Ints, sizes: Ints, columns: Sequence[AuditedColumn]) -> bool:
    """Whether the rule holds everywhere with this main parameter: a piece may oblige other classes than the whole."""
    main = rule.model.main
    column = next((column for column in columns if column.name == rule.attribute), None)
    try:
        model = replace(rule.model, **{main: int(value) if isinstance(getattr(rule.model, main), int) else value})
    except ConfigError:
        return True  # 0 and the like: no value of the parameter holds, and that is what it says
    again = model.bind(column, rule.n)
    # The value is a result of floating point itself, so equality is not to be had.
    return not any(
        (again.deficit(sizes[piece], counts) > 1e-9).any() for piece, counts in _pieces(again.view, labels, sizes)
    )


def _probes(policy: Policy | None) -> list[Model]:
    """The policy's models, and one example of every form of every model."""
    chosen: dict[tuple[Any, ...], Model] = {}
    for model in policy.models if policy is not None else ():
        shown = {key: value for key, value in model.parameters().items() if key not in _unfixed(model)}
        chosen.setdefault((model.name, repr(sorted(shown.items(), key=lambda item: item[0]))), model)
    named = {(model.name, _form(model)) for model in chosen.values()}
    for kind in MODELS.values():
        for model in kind.examples():
            form = (model.name, _form(model))
            if form not in named:
                named.add(form)
                chosen[form] = model
    return sorted(chosen.values(), key=lambda model: model.name)


def _form(model: Model) -> tuple[tuple[str, str], ...]:
    """The words among a model's parameters: which of its forms this is."""
    words = {name: value for name, value in model.parameters().items() if isinstance(value, str)}
    return tuple((name, value) for name, value in sorted(words.items()) if name != "attribute")


def _unfixed(model: Model) -> tuple[str, str]:
    return model.main, "attribute"


def _opened(
    masked: pl.DataFrame, schema: Schema, policy: Policy | None
) -> tuple[Ints, pl.DataFrame, list[AuditedColumn]]:
    quasi = published_quasi(masked, schema)
    if masked.height == 0:
        raise InputError("The masked table has no records.")
    labels, groups = derive_classes(masked, quasi)
    columns = [audited_column(masked, name, schema) for name in schema.named("sensitive")]
    for model in policy.models if policy is not None else ():
        guard, wanted = getattr(model, "guard", None), getattr(model, "attribute", None)
        if isinstance(guard, str) and guard in masked.columns:
            nodes = np.array(masked[guard].cast(pl.String).to_list(), dtype=object)
            columns = [replace(c, guards=nodes) if wanted in (None, c.name) else c for c in columns]
    return labels, groups, columns


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
    # A number for each text first: to compare numbers column by column is much faster than to compare texts.
    numbers = keys.with_columns(pl.col(pl.String).cast(pl.Categorical).to_physical()).with_row_index("__row")
    first = numbers.select(pl.col("__row").first().over(quasi)).to_series().to_numpy()
    begins = first == np.arange(len(first))
    labels = np.cumsum(begins)[first] - 1
    return labels.astype(np.int64, copy=False), keys.filter(pl.Series(begins))


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


def _or_none(number: float) -> float | None:
    return None if np.isnan(number) else number
