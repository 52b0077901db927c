"""Which columns are proposed as quasi-identifiers, and what becomes of the others.

Every quasi-identifier is paid for: with twenty of them hardly anything is left of any. So about ten are proposed, never more than
twelve. What others are likely to know comes first, then, while there are fewer than eight, columns of which nothing is known,
fine measurements last; of each kind those that tell most records apart. The rest stays to be considered:

- answers, amounts of use and the like, which others hardly know, are published as they are;
- one of these that must not leave like this (`shoal.declaration` says why) is rounded where that helps, and else left out;
- what others are likely to know, and is one too many, is left out: published as it is it would undo the classes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from shoal.declaration import ALONE, Finding, alone, examine
from shoal.persons import REPEATED
from shoal.profiling import FEW_VALUES, percent
from shoal.suggesting.found import ColumnProfile, Known, schema_of

ABOUT = 8  # proposed, columns of which nothing is known included: with more, hardly anything is left of each
MOST = 12  # proposed at most, where others are likely to know that many
YEARS = 120  # different whole numbers that ages and years of birth may be; more are amounts
BATTERY = 5  # columns whose names differ by a number alone: from here on a list of questions, not an address in parts
STEPS = tuple(one * 10.0**power for power in range(-3, 10) for one in (1, 2, 5))
"""What numbers are rounded to."""


def chosen(table: pl.DataFrame, columns: Sequence[ColumnProfile]) -> tuple[ColumnProfile, ...]:
    """The suggestions with about ten quasi-identifiers, and the other candidates to be considered."""
    candidates = [column for column in columns if column.role == "quasi"]
    battery = _batteries(candidates)
    known = {column.name: _known(column, battery) for column in candidates}
    if "likely" not in known.values():
        # Nothing that others surely know: then it is one of these that finds somebody.
        known = {name: "perhaps" if one == "hardly" else one for name, one in known.items()}
    ranked = sorted(candidates, key=lambda column: (_is_fine(table[column.name], column), -column.separation))
    proposed = [column.name for column in ranked if known[column.name] == "likely"][:MOST]
    room = max(0, ABOUT - len(proposed))
    proposed += [column.name for column in ranked if known[column.name] == "perhaps"][:room]
    found = []
    for column in columns:
        if column.role != "quasi":
            found.append(column)
        elif column.name in proposed:
            found.append(replace(column, known=known[column.name]))
        elif known[column.name] == "likely":
            why = f"{column.why} {MOST} columns that tell more are quasi-identifiers already: it is left out."
            found.append(_left_out(replace(column, known="likely"), table[column.name], why))
        else:
            found.append(_other(replace(column, known=known[column.name]), battery.get(column.name, 0), len(proposed)))
    return _leaving(table, found)


def _is_fine(series: pl.Series, column: ColumnProfile) -> bool:
    """Numbers as fine as measurements and amounts are, which others know less than what few values can say."""
    if column.known == "likely" or column.kind != "number":
        return False
    fractions = series.dtype.is_float() and bool((series.drop_nulls() != series.drop_nulls().floor()).any())
    return column.distinct > (FEW_VALUES if fractions else YEARS)


def _known(column: ColumnProfile, battery: Mapping[str, int]) -> Known:
    if column.known == "perhaps" and column.name in battery:
        return "hardly"
    return column.known or "likely"


def _batteries(candidates: Sequence[ColumnProfile]) -> dict[str, int]:
    """Columns whose names differ by a number alone, with how many there are: q1, q2, q3 … are answers, not facts about people."""
    stems = {column.name: re.sub(r"\d+", "#", column.name.casefold()) for column in candidates}
    sizes = Counter(stem for stem in stems.values() if "#" in stem)
    return {name: sizes[stem] for name, stem in stems.items() if sizes[stem] >= BATTERY}


def _other(column: ColumnProfile, battery: int, proposed: int) -> ColumnProfile:
    """A candidate that is published as it is unless its owner knows better."""
    why = column.why
    if column.known == "hardly" and battery:
        why = f"One of {battery} columns whose names differ by a number, as answers to questions do; others hardly know it."
    elif column.known == "perhaps":
        why = f"Nothing is known about it, and {proposed} columns that tell more or are better known are quasi-identifiers."
    return replace(
        column, role="other", why=why, taxonomy=None, taxonomy_why="", within=None, within_why="", consider=True
    )


def _left_out(column: ColumnProfile, series: pl.Series, why: str) -> ColumnProfile:
    repeated = len(series) - series.null_count() - column.distinct
    return replace(
        column,
        role="other",
        why=why,
        taxonomy=None,
        taxonomy_why="",
        within=None,
        within_why="",
        more={"drop": True},
        repeats="allowed" if repeated > REPEATED * len(series) else None,
        consider=True,
    )


def _leaving(table: pl.DataFrame, columns: list[ColumnProfile]) -> tuple[ColumnProfile, ...]:
    """Candidates that must not be published as they are, rounded or left out: what init writes can be used as it is."""
    refused = _refused(table, columns)
    if refused:
        person = next((column.name for column in columns if column.role == "person"), None)
        owner = None if person is None else table[person].rank("dense")
        columns = [_rounded(c, table[c.name], refused[c.name], owner) if c.name in refused else c for c in columns]
        still = _refused(table, columns)
        columns = [
            _left_out(c, table[c.name], f"{c.why} It {still[c.name].detail}: it is left out.") if c.name in still else c
            for c in columns
        ]
    return tuple(columns)


def _refused(table: pl.DataFrame, columns: Sequence[ColumnProfile]) -> dict[str, Finding]:
    from shoal.transform import transformed

    mine = [column for column in columns if not (column.role == "sensitive" or column.left_out)]
    if not any(column.consider and column.role == "other" for column in mine):
        return {}
    schema = schema_of(mine)
    found = examine(transformed(table.select(column.name for column in mine), schema), schema)
    asked = {column.name for column in mine if column.consider}
    return {finding.column: finding for finding in found.refused if finding.column in asked}


def _rounded(column: ColumnProfile, series: pl.Series, finding: Finding, owner: pl.Series | None) -> ColumnProfile:
    """Rounded as finely as will do, where it is numbers that nearly everybody has of their own."""
    if finding.problem != "separates" or not series.dtype.is_numeric():
        return column
    people = len(series) if owner is None else owner.n_unique()
    for step in STEPS:
        values = (series.cast(pl.Float64) / step).round()
        if alone(values, owner) < ALONE * people:
            if values.n_unique() < 3:  # nothing is left of it
                return column
            why = f"{column.why} As it is, {percent(finding.records / finding.of)} are the only ones with their value: rounded."
            return replace(column, why=why, more={**column.more, "round": int(step) if step >= 1 else step})
    return column
