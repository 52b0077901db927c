"""A masked table against a policy, and against every model there is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import ConfigError, InputError, require_a
from shoal.io.lean import spelled_out
from shoal.io.repeated import Alike
from shoal.io.written import read_written
from shoal.models import MODELS, Model, Rule, Sensitive
from shoal.models.persons import Crowd
from shoal.persons import Persons, number_persons, token_problem
from shoal.policy import Policy, labelled
from shoal.progress import Progress, Told
from shoal.schema import Schema
from shoal.transform import declared, require_transformed
from shoal.verifier.classes import Classes, Published, published_classes
from shoal.verifier.evidence import SHOWN, Check, Evidence, Strength, Violation
from shoal.verifier.judging import judge
from shoal.verifier.roles import masked_schema, published_quasi
from shoal.verifier.sensitive import AuditedColumn, audited_column


def verify(
    masked: pl.DataFrame,
    policy: Policy,
    schema: Schema,
    *,
    cells: pl.DataFrame | None = None,
    alike: Alike | None = None,
    persons: Persons | None = None,
    progress: Told | None = None,
) -> Evidence:
    """Group a masked table by its published quasi-identifiers and test every class. It trusts nothing but the table.

    - `masked`: the table as it is published, whoever made it.
    - `policy`: what every class has to satisfy.
    - `schema`: who each column is, as for the original; columns that it does not know are refused.
    - `cells`: the same table as it is written in its file (`shoal.io.written`); by default the frame is what a reader sees.
    - `alike`: which records are written alike, where reading the file has told; by default each is looked at. Then `cells` may
      have one row for each kind, and `masked` may be without quasi-identifiers.
    - `persons`: whose each row is, for whoever knows; by default the published token says it, where the schema has a column
      of the role "person" and it is there. Without either, rows are counted, and the notes say so.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    Where two spellings mean the same, the policy has to hold both for what is written and for what it means. Returns the
    evidence, whether or not the policy holds; `evidence.require()` raises where it does not.

    >>> import polars as pl, shoal
    >>> masked = pl.DataFrame({"age": ["[20, 29]", "[20, 29]", "[30, 39]"], "illness": ["flu", "cold", "flu"]})
    >>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "illness": shoal.Attribute(role="sensitive")})
    >>> evidence = shoal.verify(masked, shoal.KAnonymity(2) & shoal.PSensitive(2), schema)
    >>> evidence.passed, [check.strongest for check in evidence.checks]
    (False, [1.0, 1.0])
    >>> print(evidence.violations[0])
    class (age = [30, 39]) with 1 record fails k_anonymity(k = 2) by 1
    """
    _require_frames(masked, policy, schema, cells, alike)
    told = Progress.of(progress)
    masked = spelled_out(masked, _by_record(masked, policy, schema))
    require_transformed(masked, schema)
    with told.stage(weight=0.5) as part:
        opened = _opened(masked, schema, policy, cells, alike, part)
    if persons is None and schema.person in masked.columns:
        persons = number_persons(masked[str(schema.person)])
    crowd = Crowded.of(opened, policy, masked.height, persons, uncounted=persons is None and schema.person is not None)
    rules = crowd.policy.bind(crowd.columns, crowd.count).rules
    found = []
    for way in crowd.ways:
        with told.stage(weight=0.5 / len(crowd.ways)) as part:
            found.append(_judged(rules, way, crowd.columns, part))
    checks = tuple(weaker(same) for same in zip(*(checks for checks, _ in found), strict=True))
    written = crowd.ways[0]
    return Evidence(
        records=masked.height,
        classes=written.groups.height,
        smallest=int(written.sizes.min()),
        largest=int(written.sizes.max()),
        checks=checks,
        violations=tuple(violation for _, violations in found for violation in violations),
        notes=opened.classes.notes
        + crowd.notes
        + tuple(note for column in opened.columns for note in told_notes(column)),
        problems=opened.classes.problems + crowd.problems + _token_problems(masked if cells is None else cells, schema),
        persons=None if persons is None else persons.count,
    )


def _by_record(masked: pl.DataFrame, policy: Policy, schema: Schema) -> list[str]:
    """Columns of which more is asked than their texts: they were changed, stand beside others, or say whose a row is."""
    asked = {name for beside in policy.beside(schema.named("sensitive")).values() for name in beside}
    asked |= {name for name, one in schema.attributes.items() if one.patterns or one.missing or declared(one)}
    asked |= {schema.person} if schema.person is not None else set()
    return [name for name in masked.columns if name in asked or name.removesuffix("_min").removesuffix("_max") in asked]


def _token_problems(cells: pl.DataFrame, schema: Schema) -> tuple[str, ...]:
    """A person column that holds something else than the tokens it was declared to hold."""
    name = schema.person
    if name is None or name not in cells.columns or not schema.attributes[name].only_tokens:
        return ()
    problem = token_problem(cells[name])
    return () if problem is None else (problem,)


def verify_file(
    path: str | Path, policy: Policy, schema: Schema, *, format: str | None = None, progress: Told | None = None
) -> Evidence:
    r"""Verify a file as it lies there: what `shoal verify` does, and what every release passes before it gets its name.

    - `path`: a masked file of any format that `shoal.io.read_table` reads; `format` (an extension) overrides the path's.
    - `policy`, `schema`, `progress`: as for `verify`.

    Returns the evidence. Raises `VerificationError` for a file that holds more than its table, or that programs read
    differently.

    >>> import shoal, tempfile
    >>> from pathlib import Path
    >>> from shoal.verifier import verify_file
    >>> path = Path(tempfile.mkdtemp()) / "masked.csv"
    >>> _ = path.write_text("age\n34\n34\n34.0\n")
    >>> policy, schema = shoal.Policy((shoal.KAnonymity(2),)), shoal.Schema({"age": shoal.Attribute(role="quasi")})
    >>> verify_file(path, policy, schema).notes
    ("Column 'age' writes one value in several ways ('34' and '34.0'): whoever looks at the file tells them apart.",)
    """
    told = Progress.of(progress)
    with told.stage(weight=0.3):
        written = read_written(path, missing=schema.missing, format=format)
    with told.stage() as part:
        declared = masked_schema(schema, written.table)
        return verify(written.table, policy, declared, cells=written.cells, alike=written.alike, progress=part)


def _require_frames(masked: Any, policy: Any, schema: Any, cells: Any, alike: Any) -> None:
    require_a("alike", alike, (Alike, type(None)), "what reading the file has told")
    require_a("masked", masked, pl.DataFrame, "a polars frame")
    require_a("policy", policy, (Policy, type(None)), "a Policy")
    require_a("schema", schema, Schema, "a Schema")
    require_a("cells", cells, (pl.DataFrame, type(None)), "a polars frame")


def _judged(
    rules: Sequence[Rule], way: Classes, columns: Sequence[Sensitive | Crowd], progress: Progress
) -> tuple[list[Check], list[Violation]]:
    """Every rule on the classes of one way to look at the table."""
    sizes = way.sizes
    strongest, deficits = judge(rules, way.labels, sizes, columns, progress=progress)
    checks: list[Check] = []
    violations: list[Violation] = []
    for rule, best, row in zip(rules, strongest, deficits, strict=True):
        failing = np.flatnonzero(row > 0)
        main = rule.model.main
        required = float(getattr(rule.model, main))
        checks.append(Check(str(rule), rule.model.name, rule.attribute, main, required, best, len(failing)))
        worst = failing[np.argsort(-row[failing], kind="stable")][: 10 * SHOWN]
        violations += [
            Violation(str(rule), way.groups.row(int(c), named=True), int(sizes[c]), float(row[c]), way.way)
            for c in worst
        ]
    return checks, violations


def weaker(checks: Sequence[Check]) -> Check:
    """What holds in both ways to look at a table: the weaker parameter, and all classes that fail in either."""
    smaller = MODELS[checks[0].model].smaller_is_stronger
    strongest = [check.strongest for check in checks]
    best = float("nan") if np.isnan(strongest).any() else max(strongest) if smaller else min(strongest)
    return replace(checks[0], strongest=best, failing=max(check.failing for check in checks))


def told_notes(column: AuditedColumn) -> Iterator[str]:
    """What was counted as one value, and what as none."""
    for spellings in column.joined[:SHOWN]:
        shown = ", ".join(repr(text) for text in spellings[:SHOWN])
        yield f"Column '{column.name}': {shown} are counted as one value; a reader takes them for the same."
    if len(column.joined) > SHOWN:
        yield f"Column '{column.name}': {len(column.joined) - SHOWN} more values have several spellings."
    if column.blank:
        shown = ", ".join(repr(text) for text in column.blank[:SHOWN])
        yield f"Column '{column.name}': {shown} say that there is no value, and are not counted as one."


def audit(
    masked: pl.DataFrame,
    schema: Schema,
    policy: Policy | None = None,
    *,
    cells: pl.DataFrame | None = None,
    alike: Alike | None = None,
    progress: Told | None = None,
) -> list[Strength]:
    """Judge a masked table by every model there is, for every sensitive attribute that the model applies to.

    - `masked`, `schema`, `cells`, `alike`: the table as it is published, who each column is, and how it is written, as for
      `verify`.
    - `policy`: where further parameters come from, for the models it names; a model's own examples serve for the others.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    A model with several forms is tried in each. Models that need what the schema does not declare (an order, a
    taxonomy, categories, protected nodes) are left out. Returns one `Strength` a model, form and attribute.

    >>> import polars as pl, shoal
    >>> masked = pl.DataFrame({"age": ["[20, 29]"] * 4, "illness": ["flu", "cold", "flu", "ulcer"]})
    >>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "illness": shoal.Attribute(role="sensitive")})
    >>> {found.model: found.strongest for found in shoal.audit(masked, schema)}["alpha_k"]
    0.5
    """
    _require_frames(masked, policy, schema, cells, alike)
    told = Progress.of(progress)
    with told.stage(weight=0.2) as part:
        opened = _opened(masked, schema, policy, cells, alike, part)
    columns, written = opened.columns, opened.classes.ways[0]
    rules = audit_rules(columns, masked.height, policy)
    with told.stage() as part:
        strongest, _ = judge(rules, written.labels, written.sizes, columns, progress=part)
    return [strength_of(rule, best) for rule, best in zip(rules, strongest, strict=True)]


def audit_rules(columns: Sequence[Sensitive], records: int, policy: Policy | None) -> list[Rule]:
    """The rules by which `audit` judges a table with these sensitive attributes."""
    rules: list[Rule] = []
    for model in _probes(policy):
        for column in columns if model.per_attribute else [None]:
            if column is not None and not model.says_more(column):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    rules.append(model.bind(column, records))
                except ConfigError:
                    continue
    return rules


def strength_of(rule: Rule, best: float) -> Strength:
    """What was found by a rule of `audit_rules`."""
    settings = {key: value for key, value in rule.model.parameters().items() if key not in _unfixed(rule.model)}
    return Strength(rule.model.name, rule.attribute, rule.model.main, best, settings)


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


@dataclass(frozen=True, eq=False)
class Crowded:
    """What is judged: rows, or the persons they belong to."""

    policy: Policy
    ways: tuple[Classes, ...]
    columns: Sequence[Sensitive | Crowd]
    count: int
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, opened: _Opened, policy: Policy, rows: int, persons: Persons | None, *, uncounted: bool) -> Crowded:
        """Rows where nobody says whose they are; `uncounted`: although they are people's, of whom the file does not tell."""
        ways = opened.classes.ways
        if uncounted:
            # Too few rows or values are too few persons; shares and distributions of rows are not those of persons.
            kept = tuple(one for one in policy.models if not one.per_attribute or one.persons == "distinct")
            left = ", ".join(str(one) for one in policy.models if one not in kept)
            note = "The file does not say whose each row is: rows were counted, not persons"
            return cls(
                Policy(kept), ways, opened.columns, rows, (note + (f", and {left} cannot be judged." if left else "."),)
            )
        if persons is None:
            return cls(policy, ways, opened.columns, rows)
        problems = []
        for way in ways:
            apart = np.unique(persons.of_row[way.labels != way.labels[persons.first][persons.of_row]])
            if len(apart):
                problems.append(f"The rows of {len(apart):,} of {persons.count:,} persons are in different classes.")
        by_person = tuple(replace(way, labels=way.labels[persons.first]) for way in ways)
        columns = [Crowd(column, persons.of_row, persons.count) for column in opened.columns]
        note = f"Persons were counted: {rows:,} rows of {persons.count:,}."
        return cls(policy, by_person, columns, persons.count, (note,), tuple(dict.fromkeys(problems)))


@dataclass(frozen=True, eq=False)
class _Opened:
    classes: Published
    columns: list[AuditedColumn]


def _opened(
    masked: pl.DataFrame,
    schema: Schema,
    policy: Policy | None,
    cells: pl.DataFrame | None,
    alike: Alike | None,
    progress: Progress,
) -> _Opened:
    shown = masked if cells is None else cells
    schema = masked_schema(schema, shown)
    quasi = published_quasi(shown, schema)
    if masked.height == 0:
        raise InputError("The masked table has no records.")
    classes = published_classes(shown, quasi, schema, alike)
    progress(0.5)
    columns = [audited_column(masked, name, schema) for name in progress.each(schema.named("sensitive"))]
    return _Opened(classes, labelled(columns, policy, masked) if policy is not None else columns)
