"""For the page *Data*: opening tables, looking at their columns, and what the declared roles mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from shoal.errors import InputError
from shoal.progress import Progress
from shoal.studio.project import Project, edited
from shoal.studio.tasks import configured, suggested

if TYPE_CHECKING:
    from shoal.profiling import Facts
    from shoal.schema import Attribute
    from shoal.suggesting import ColumnProfile, Profile

BARS = 24  # as many as fit beside a name
EXAMPLES = 3  # values that say what a column holds
WIDEST = 2_000
"""Columns of a table: each is looked at beside others, and a person has to say what it is."""
MADE_UP = (5_000, 7)  # records, and the seed of `shoal demo`


def opened(folder: Path, progress: Progress, path: str | None = None, url: str = "", table: str = "") -> dict[str, Any]:
    """Open a file of the project's folder, or a table of a database: look at it and write a first `shoal.toml`."""
    from shoal.commented import config_text
    from shoal.configured import MISSING, as_written
    from shoal.io.sql import read_sql
    from shoal.suggesting import profile

    with progress.stage("reading", 0.5):
        if path is None:
            frame, source = read_sql(url, table=table), {"url": url, "table": table, "missing": MISSING}
        else:
            frame, source = as_written(folder / path, folder)
        if frame.width > WIDEST:
            raise InputError(
                f"The table has {frame.width:,} columns, and the studio takes {WIDEST:,} at most; leave out those that nobody "
                "needs, or use shoal init and shoal anonymize."
            )
    with progress.stage("looking at the columns", 0.3):
        found = profile(frame)
        label = Path(path).name if path is not None else table
        Project(folder).write(config_text(found, source, label))
    with progress.stage("looking at the columns") as part:
        return described(frame, found, part)


def made_up(folder: Path, progress: Progress) -> dict[str, Any]:
    """The made-up hospital of `shoal demo`, every row another patient."""
    from shoal.datasets import TAXONOMIES, hospital, hospital_config, taxonomy_path
    from shoal.io.atomic import atomic_write_bytes
    from shoal.io.files import write_table

    project = Project(folder)
    with progress.stage("reading"):
        for place in (project.data, project.taxonomies):
            place.mkdir(exist_ok=True, mode=0o700)
        patients = project.data / "patients.csv"
        write_table(hospital(*MADE_UP), patients, force=True)
        patients.chmod(0o600)
        text = hospital_config("data/patients.csv")
        for name in TAXONOMIES:
            atomic_write_bytes(project.taxonomies / f"{name}.csv", taxonomy_path(name).read_bytes(), force=True)
            text = text.replace(f'"{name}.csv"', f'"taxonomies/{name}.csv"')
        project.write(text)
    return {"records": MADE_UP[0]}


def looked(folder: Path, progress: Progress, **_: Any) -> dict[str, Any]:
    """Every column: facts, what is suggested and why, how its values are distributed, and a few of them."""
    with progress.stage("reading", 0.3):
        frame, found = suggested(folder)
    with progress.stage("looking at the columns") as part:
        return described(frame, found, part)


def described(frame: pl.DataFrame, found: Profile, progress: Progress) -> dict[str, Any]:
    """The suggestions for a table as plain values, with how each column is distributed."""
    from shoal.profiling import look
    from shoal.suggesting import read_as_found

    read, columns = read_as_found(frame, found), []
    for column in progress.each(found.columns):
        told = {name: getattr(column, name) for name in ("name", "kind", "distinct", "missing", "role", "why")}
        told["reading"], told["reading_why"] = dict(column.reading), column.reading_why
        told["distribution"] = distribution(look(read[column.name]), column.kind)
        columns.append(told)
    return {
        "records": found.records,
        "persons": found.persons,
        "columns": columns,
        "missing": list(found.missing),
        "notes": list(found.notes),
        "consider": [column.name for column in found.consider],
    }


def distribution(facts: Facts, kind: str) -> dict[str, Any]:
    """The bars of a small chart, what they stand for, and some values."""
    counted = pl.DataFrame({"value": facts.values, "n": facts.counts}).sort(
        ["n", pl.col("value").cast(pl.String)], descending=[True, False], maintain_order=True
    )
    examples = [_short(value) for value in counted["value"].head(EXAMPLES)]
    found: dict[str, Any] = {"examples": examples, "bars": [], "says": "nothing"}
    if facts.distinct == 0:
        return found
    if kind in ("number", "date"):
        ranged = _ranged(counted, kind)
        if ranged is not None:
            return found | ranged
    if facts.share > 0.9 and facts.distinct > BARS:
        return found | {"says": "different"}
    return found | {"bars": counted["n"].head(BARS).to_list(), "says": "most" if facts.distinct > BARS else "values"}


def _ranged(counted: pl.DataFrame, kind: str) -> dict[str, Any] | None:
    """Bars over a range of numbers or days."""
    values = counted["value"]
    if kind == "date" and values.dtype == pl.String:
        values = values.str.to_date("%Y-%m-%d", strict=False)
    numbers = (values.cast(pl.Date) if kind == "date" and values.dtype.is_temporal() else values).cast(
        pl.Float64, strict=False
    )
    known = np.asarray(numbers.fill_null(np.nan).to_numpy(), dtype=np.float64)
    keep = np.isfinite(known)
    if not keep.any():
        return None
    known, counts = known[keep], counted["n"].to_numpy()[keep]
    low, high = float(known.min()), float(known.max())
    usual = _usual(known, counts)
    # A few that are far away would press all others into one bar; they stand in the last one.
    tail = high > low + 2 * (usual - low) and usual > low
    high = usual if tail else high
    bins = max(1, min(BARS, len(np.unique(known))))
    bars, _ = np.histogram(np.minimum(known, high), bins=bins, range=(low, high), weights=counts)
    ends = [str(np.datetime64(int(end), "D")) if kind == "date" else f"{end:,.6g}" for end in (low, high)]
    says = "range_or_more" if tail else "range"
    return {"bars": [int(one) for one in bars], "says": says, "low": ends[0], "high": ends[1]}


def _usual(known: Any, counts: Any) -> float:
    """What all but two in a hundred do not exceed."""
    order = np.argsort(known, kind="stable")
    passed = np.cumsum(counts[order])
    return float(known[order][np.searchsorted(passed, 0.98 * passed[-1])])


def _short(value: Any) -> str:
    from shoal.report.markup import plain

    return plain(value, 24)


def consequences(folder: Path, progress: Progress, **_: Any) -> dict[str, Any]:
    """What the declared roles mean: who stands out by what others may know, and columns that must not leave like this."""
    from shoal.declaration import examine

    with progress.stage("reading", 0.6):
        _configuration, data = configured(folder)
    with progress.stage("examining the columns"):
        found = examine(data.frame, data.schema)
        alone = int((data.points.weights == 1).sum()) if data.quasi else 0
    return {
        "records": data.n,
        "rows": data.frame.height,
        "persons": data.persons is not None,
        "alone": alone,
        "findings": [
            {"column": one.column, "detail": one.detail, "refused": one.refused, "accepted": one.accepted}
            for one in found.findings
        ],
    }


def declared(folder: Path, progress: Progress, roles: Mapping[str, str], alone: bool = False, **_: Any) -> str:
    """The text of the configuration with other roles, and what they bring with them; it is for the server to write.

    `alone`: the owner says that every row is another person, so that a key may repeat.
    """
    from shoal.suggesting import read_as_found

    project = Project(folder)
    with progress.stage("reading"):
        frame, found = suggested(folder)
        read = read_as_found(frame, found)
    columns = {column.name: column for column in found.columns}
    if not set(roles) <= set(columns):
        raise InputError("There is no such column in the table; open the page again.")
    config = project.configuration.config
    now = {name: config.attributes[name].role if name in config.attributes else "other" for name in columns}
    after = _settled({**now, **roles}, roles)
    person, before = _person(after), _person(now)
    changes: dict[Any, Any] = {}
    for name, role in after.items():
        if role != now[name]:
            given = config.attributes.get(name)
            changes["attributes", name] = _attribute(read, columns[name], role, person) | _kept(given)
            if alone and role == "identifier":
                changes["attributes", name]["repeats"] = "allowed"
        elif role == "quasi" and person != before:
            within = None if person is None else as_quasi_within(read, columns[name], person)
            changes["attributes", name, "within"] = within
    changes |= _policy(read, config.policy, now, after)
    return edited(project.text, changes)


def _kept(attribute: Attribute | None) -> dict[str, Any]:
    """What somebody said about a column that holds in any role: how it is written, and how it is made coarser."""
    if attribute is None:
        return {}
    names = ("format", "decimal", "missing", "round", "top", "bottom", "truncate")
    return {name: value for name, value in attribute.model_dump(include=set(names)).items() if value is not None}


def _settled(after: dict[str, str], roles: Mapping[str, str]) -> dict[str, str]:
    """One column says whose a row is: the one that was chosen last."""
    if sum(role == "person" for role in after.values()) > 1:
        return {name: "identifier" if role == "person" and name not in roles else role for name, role in after.items()}
    return after


def _person(roles: Mapping[str, str]) -> str | None:
    return next((name for name, role in roles.items() if role == "person"), None)


def _attribute(read: pl.DataFrame, column: ColumnProfile, role: str, person: str | None) -> dict[str, Any]:
    """What the configuration says about a column in a role: what is suggested for it there."""
    from shoal.suggesting import as_quasi

    if role == "quasi":
        return as_quasi(read, column, person).declared
    if role == column.role:
        return column.declared
    changed = replace(column, role=role, taxonomy=None, within=None, repeats=None, more={})  # type: ignore[arg-type]
    if role == "identifier" and column.role != "person":
        # No key of anybody's: nobody need be asked whose its rows are.
        changed = replace(changed, repeats="allowed")
    return changed.declared


def as_quasi_within(read: pl.DataFrame, column: ColumnProfile, person: str) -> str | None:
    """Which value counts where the rows of a person differ."""
    from shoal.suggesting import as_quasi

    return as_quasi(read, column, person).within


def _policy(
    read: pl.DataFrame, policy: Mapping[str, Any], now: Mapping[str, str], after: Mapping[str, str]
) -> dict[Any, Any]:
    """Rules on columns that are secret no longer go; a new secret gets the rule that suits it."""
    from shoal.profiling import look
    from shoal.suggesting.policy import diversity
    from shoal.whose import persons_in

    secret, before = ([name for name, role in roles.items() if role == "sensitive"] for roles in (after, now))
    if secret == before:
        return {}
    rules: dict[str, list[Any]] = {}
    for model, given in policy.items():
        if model not in ("k", "k_anonymity"):
            listed = given if isinstance(given, list) else [given]
            rules[model] = [rule for rule in listed if _speaks_of(rule, secret)]
    everywhere = any(not isinstance(rule, Mapping) or "attribute" not in rule for one in rules.values() for rule in one)
    person = _person(after)
    people = persons_in(read, person) if person is not None else None
    for name in secret if not everywhere else ():
        suits = diversity(look(read[name]), int(policy.get("k", 2)), people).rule if name not in before else None
        if suits is not None:
            rules.setdefault(suits[0], []).append(suits[1])
    return {
        ("policy", model): None if not listed else listed[0] if len(listed) == 1 else listed
        for model, listed in rules.items()
    }


def _speaks_of(rule: Any, secret: list[str]) -> bool:
    attribute = rule.get("attribute") if isinstance(rule, Mapping) else None
    return bool(secret) if attribute is None else attribute in secret
