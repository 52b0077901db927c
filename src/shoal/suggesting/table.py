"""Look at a table's columns and suggest for each; the choice among candidates and the policy are in files of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.configuration import read_schema
from shoal.dialects import Dialect, detected
from shoal.errors import InputError
from shoal.io.frames import apply_missing, to_polars
from shoal.io.numbers import infer_numbers
from shoal.looks import ENOUGH, FREE_TEXT, FREE_TEXT_LEAST, KEY_LEAST, MOSTLY, PATTERNS, direct_identifier, words_of
from shoal.naming import (
    AGE,
    BIRTH,
    CONTACT,
    KEYS,
    NUMBERS,
    ORIGIN,
    OWN_KEYS,
    PERSON_KEYS,
    PERSONAL_NAME,
    PERSONAL_NUMBER,
    SEX,
    Hint,
    hint_of,
)
from shoal.persons import REPEATED, Persons, settled
from shoal.profiling import FEW_VALUES, ISO_TIME, Facts, longest, look, missing_texts, percent, width_of
from shoal.reading import as_declared
from shoal.schema import Role
from shoal.suggesting.choice import chosen
from shoal.suggesting.found import SHOWN, ColumnProfile, Known, Profile, TaxonomyRule
from shoal.suggesting.policy import K, diversity
from shoal.whose import agree, comparable, differ, differing, persons_in, quasi_schema, rows_each, settling, together

SHAPES = {
    ISO_TIME: ([10, 7, 4, 0], "Points in time, then days, months and years."),
    r"^(19|20)[0-9]{2}[-/ ]?[A-Za-z][0-9]{1,2}$": ([4, 0], "Weeks or quarters, then years."),
    r"^[0-2][0-9]:[0-5][0-9](:[0-5][0-9])?$": ([2, 0], "Times of day, then hours."),
    r"^[A-Z][0-9]{2}(\.?[0-9A-Z]{1,4})?$": (
        [3, 1, 0],
        "Codes such as those of illnesses, then their first three signs, then chapters.",
    ),
}
"""Texts of many values whose beginnings say more than what they occur with."""
CLUSTERED_AT_MOST = 2000  # an automatic taxonomy compares all pairs of this many values


def profile(table: Any) -> Profile:
    """Look at every column and suggest roles, kinds, taxonomies and a policy, each with its reason.

    `table` is a pandas, polars or pyarrow frame, or a file. Returns the suggestions.

    >>> import polars as pl, shoal
    >>> found = shoal.profile(pl.DataFrame({"surname": ["Ash", "Birch", "Cole"], "age": [21, 34, 34]}))
    >>> found.named("quasi"), found.frame["role"].to_list()
    (['age'], ['identifier', 'quasi'])
    """
    if isinstance(table, str | Path):
        from shoal.io.files import read_table
        from shoal.io.titles import around

        beside = around(table)
        table = read_table(
            table,
            missing=["", "?"],
            skip_rows=beside.above,
            skip_last=beside.below,
            sheet=beside.sheet,
            delimiter=beside.delimiter,
            as_text=True,
        )
    table, backend = to_polars(table)
    if table.height < 2:
        raise InputError(
            f"The table has {table.height} records; at least two are needed for one to hide behind another."
        )
    missing, doubts = missing_texts(table)
    table, written, asked = detected(apply_missing(table, missing))
    # Among dates and numbers, which only now are some, they are no doubt missing.
    notes = [told for name, told in doubts if table[name].dtype == pl.String]
    seen = [look(column) for column in table.iter_columns()]
    suggested = tuple(_suggest(facts, written.get(facts.series.name, Dialect()).about) for facts in seen)
    columns, people = _of_persons(table, seen, suggested)
    columns = tuple(_as_written(column, written.get(column.name)) for column in chosen(table, columns))
    left = {column.name for column in columns if column.role in ("identifier", "person") or column.left_out}
    k = min(K, max(2, (table.height if people is None else people.count) // 10))
    return Profile(
        records=table.height,
        columns=columns,
        unique=_unique_share(_quasi(table, columns, people)),
        k=k,
        diversity=tuple(
            diversity(facts, k, people)
            for facts, column in zip(seen, columns, strict=True)
            if column.role == "sensitive"
        ),
        missing=tuple(missing),
        notes=(*notes, *(told for name, told in asked if name not in left), *_notes(table, seen, columns)),
        persons=None if people is None else people.count,
        backend=backend,
    )


def read_as_found(table: pl.DataFrame, found: Profile) -> pl.DataFrame:
    """The table, all of it text perhaps, as the suggestions for it say."""
    table = apply_missing(table, found.missing)
    spelled = read_schema({column.name: {"role": "other", **column.read_as} for column in found.columns})
    keys = [column.name for column in found.columns if column.role in ("identifier", "person")]
    return infer_numbers(as_declared(table, spelled, strict=False), lambda row: f"record {row + 1}", as_text=keys)


def _as_written(column: ColumnProfile, dialect: Dialect | None) -> ColumnProfile:
    """The suggestion with how the column is written; what is written as a number or a date is one."""
    if dialect is None:
        return column
    kind = column.kind
    if dialect.format or dialect.decimal:
        kind = "number" if dialect.decimal or "#" in str(dialect.format) else "date"
    return replace(column, kind=kind, reading=dialect.keys, reading_why=dialect.why)


def as_quasi(table: pl.DataFrame, column: ColumnProfile, person: str | None = None) -> ColumnProfile:
    """What would be suggested for a column if it were a quasi-identifier; `person` says whose the rows are."""
    taxonomy, why = _taxonomy(look(table[column.name]))
    apart = person is not None and differing(table[column.name], persons_in(table, person)) > 0
    within = settling(column.kind) if apart else None
    more = {key: value for key, value in column.more.items() if key != "drop"}
    return replace(column, role="quasi", taxonomy=taxonomy, taxonomy_why=why, within=within, repeats=None, more=more)


def _suggest(facts: Facts, about: str | None = None) -> ColumnProfile:
    """What is suggested for one column by itself; `about` is what the unit of its numbers speaks of."""
    role, why, known = _role(facts, about)
    taxonomy, taxonomy_why = _taxonomy(facts) if role == "quasi" else (None, "")
    records = len(facts.series)
    return ColumnProfile(
        name=facts.series.name,
        kind=facts.kind,
        distinct=facts.distinct,
        missing=facts.missing / records,
        distinction=facts.distinct / records,
        separation=facts.separation,
        role=role,
        why=why,
        taxonomy=taxonomy,
        taxonomy_why=taxonomy_why,
        known=known,
    )


def _role(facts: Facts, about: str | None) -> tuple[Role, str, Known | None]:
    """Role, reason and, of candidates for quasi-identifiers, whether others know it."""
    hint = facts.hint
    if hint is not None and hint.role == "identifier" and not _names_people(facts, hint):
        hint = hint_of(words_of(facts.series.name), names_nobody=True)
    if facts.distinct == 0:
        return "other", "It has no values at all, so there is nothing to protect.", None
    if facts.distinct == 1 and not facts.missing:
        return "other", "It says the same of every record, so it tells nobody apart.", None
    for what, pattern, least in PATTERNS:
        if least == 0 and facts.looks_like(pattern):
            return "identifier", f"Its values look like {what}.", None
    apart = f"it tells {percent(facts.separation)} of the pairs of records apart"
    if len(facts.series) >= ENOUGH and facts.share >= FREE_TEXT_LEAST and facts.looks_like(FREE_TEXT):
        return "identifier", "It is free text, in which anybody may be named.", None
    if hint is not None and hint.role == "identifier":
        return "identifier", f"Its name speaks of {hint.about}.", None
    if hint is not None and hint.role == "sensitive" and facts.kind != "date":
        looks = direct_identifier(facts.series)
        if looks is not None:
            return "identifier", f"Its values look like {looks}, whatever its name says.", None
        return "sensitive", f"Its name speaks of {hint.about}, which nobody must learn about a person.", None
    if hint is not None and hint.role == "quasi":
        return "quasi", f"Its name speaks of {hint.about}, which others may know; {apart}.", "likely"
    if facts.kind == "date":
        return "quasi", f"Others may know on which day something happened to a person; {apart}.", "likely"
    looks = _looks_like_key(facts)
    if looks:
        return "identifier", looks, None
    if hint is not None and hint.role == "other":
        return "quasi", f"Its name speaks of {hint.about}, which others hardly know.", "hardly"
    if about is not None:
        return "sensitive", f"Its unit speaks of {about}, which nobody must learn about a person.", None
    return "quasi", f"Nothing is known about it and {apart}: quasi, to be on the safe side.", "perhaps"


def _of_persons(
    table: pl.DataFrame, seen: Sequence[Facts], columns: tuple[ColumnProfile, ...]
) -> tuple[tuple[ColumnProfile, ...], Persons | None]:
    """The suggestions for people with several rows, where a column says whose each row is."""
    found = _person_column(table, seen, columns)
    if found is None:
        lasting = [facts.series for facts in seen if facts.hint in (SEX, BIRTH, ORIGIN) and facts.distinct > 1]
        return tuple(_repeating(facts, column, lasting) for facts, column in zip(seen, columns, strict=True)), None
    key, why = found
    people = persons_in(table, key)
    several = int((np.bincount(people.of_row) > 1).sum())
    suggested = []
    for facts, column in zip(seen, columns, strict=True):
        if column.name == key:
            told = f"{why}, and its values repeat: {rows_each(table[key])}. What is protected is a person, not a row."
            column = replace(column, role="person", why=told, taxonomy=None, taxonomy_why="")
        elif column.role in ("quasi", "identifier") and _stands_for(table[column.name], facts, people):
            told = "Each of its values belongs to one person, and nearly each person has one: it stands for the person."
            column = replace(column, role="identifier", why=told, taxonomy=None, taxonomy_why="", repeats="allowed")
        elif column.role == "quasi" and (apart := differing(table[column.name], people)):
            if column.known == "perhaps" and 2 * apart > several:
                told = "It differs from row to row of a person, as what happens does, and others hardly know it."
                column = replace(column, known="hardly", why=told)
            told = f"It differs between the rows of {apart:,} persons; this says which value counts, and is published."
            column = replace(column, within=settling(column.kind), within_why=told)
        suggested.append(column)
    return tuple(suggested), people


def _person_column(
    table: pl.DataFrame, seen: Sequence[Facts], columns: Sequence[ColumnProfile]
) -> tuple[str, str] | None:
    """The column whose values are people's keys, and why; none where no such key repeats.

    A column called a person's key needs nothing else, nor do e-mail addresses and the like. Whatever else repeats is a
    person's key only if its rows agree in other columns.
    """
    others = comparable(table.select([column.name for column in columns if column.role == "quasi"][:SHOWN]))
    births = [facts.series for facts in seen if facts.hint in (BIRTH, AGE) and facts.distinct > FEW_VALUES]
    found = []
    for facts, column in zip(seen, columns, strict=True):
        repeated = len(facts.series) - facts.missing - facts.distinct
        name = column.name
        if not repeated or facts.distinct <= min(FEW_VALUES, len(facts.series) // 4) or _is_quantity(facts):
            continue
        if _named_key(facts):
            # A customer may have two telephones: the customer's number comes before those of what is theirs.
            rank = 0 if "".join(words_of(name)) in OWN_KEYS else 1
            found.append((rank, -facts.distinct, name, f"Its name speaks of {PERSONAL_NUMBER.about}"))
        elif any(least == 0 and facts.looks_like(form) for _, form, least in PATTERNS):
            found.append((2, -facts.distinct, name, column.why.rstrip(".")))
        elif (
            (column.role == "identifier" or facts.hint is None)
            and repeated > REPEATED * len(facts.series)
            and together(facts.series, others)
        ):
            why = "Rows with the same value of it agree in most other columns, as those of one person do"
            found.append((3, -facts.distinct, name, why))
        elif (
            (column.role == "identifier" or (facts.hint is None and facts.words & (KEYS | NUMBERS)))
            and repeated > REPEATED * len(facts.series)
            and any(agree(facts.series, born) for born in births)
        ):
            found.append((4, -facts.distinct, name, "Rows with the same value of it agree in birth or age"))
    return (found[0][2], found[0][3]) if (found := sorted(found)) else None


def _stands_for(series: pl.Series, facts: Facts, people: Persons) -> bool:
    """Whether a column is another key of the persons: one value each, hardly ever shared, and not known to others as such."""
    if (
        facts.kind == "date"
        or facts.series.dtype.is_float()
        or (facts.hint is not None and facts.hint.role != "identifier")
    ):
        return False
    if facts.kind == "number" and not facts.words & (KEYS | NUMBERS):
        return False
    return facts.distinct >= MOSTLY * people.count and differing(series, people) <= (1 - MOSTLY) * people.count


def _named_key(facts: Facts) -> bool:
    joined = "".join(words_of(facts.series.name))
    return joined in OWN_KEYS or (facts.hint is PERSONAL_NUMBER and joined not in PERSON_KEYS)


def _is_quantity(facts: Facts) -> bool:
    """Numbers with fractions and dates are nobody's key."""
    return facts.series.dtype.is_float() or facts.kind == "date" or facts.series.dtype == pl.Boolean


def _repeating(facts: Facts, column: ColumnProfile, lasting: Sequence[pl.Series]) -> ColumnProfile:
    """Names and addresses may repeat without being one person's, and so may keys whose rows no one person has; of anything
    else the owner is asked.
    """
    repeated = len(facts.series) - facts.missing - facts.distinct
    if column.role != "identifier" or repeated <= REPEATED * len(facts.series):
        return column
    several = any(differ(facts.series, fixed) for fixed in lasting)
    if facts.hint not in (PERSONAL_NAME, CONTACT) and not facts.looks_like(FREE_TEXT) and not several:
        return column
    why = f"{column.why} It repeats in {repeated:,} rows that do not look like one person's."
    return replace(column, repeats="allowed", why=why)


def _quasi(table: pl.DataFrame, columns: Sequence[ColumnProfile], people: Persons | None) -> pl.DataFrame:
    """The quasi-identifiers, one row a person."""
    quasi = {column.name: (column.kind, column.within) for column in columns if column.role == "quasi"}
    if people is None or not quasi:
        return table.select(list(quasi))
    return settled(table, quasi_schema(quasi), people)


def _names_people(facts: Facts, hint: Hint) -> bool:
    """A name alone is not enough: 'phone' may be yes or no, and 'street' one of three."""
    enough = facts.share >= 0.05 or facts.distinct > FEW_VALUES or hint is PERSONAL_NAME
    is_quantity = facts.series.dtype.is_float() or facts.kind == "date"
    return facts.distinct > min(2, len(facts.series) - 1) and enough and not is_quantity


def _looks_like_key(facts: Facts) -> str | None:
    for what, pattern, least in PATTERNS:
        if least > 0 and facts.share >= least and facts.looks_like(pattern):
            return f"Its values look like {what} and {percent(facts.share)} of them are distinct."
    if facts.series.dtype.is_float() or facts.looks_like(ISO_TIME):
        return None
    distinct = f"{percent(facts.share)} of its values are distinct"
    enough = len(facts.series) >= ENOUGH
    is_number = facts.words & NUMBERS and "of" not in facts.words and enough and facts.share >= MOSTLY
    # A household's number repeats, once for each of its people.
    is_number = is_number or ("serial" in facts.words and enough and facts.share >= KEY_LEAST)
    if is_number or (facts.words & KEYS and facts.share >= 0.5):
        return f"Its name speaks of a number or key of a record, and {distinct}."
    if facts.is_text and enough and facts.share >= 0.95:
        return f"It is text and {distinct}: nearly every record has its own."
    if facts.series.dtype.is_integer() and enough and facts.share == 1.0:
        span = float(np.ptp(facts.values.cast(pl.Float64).to_numpy()))
        if span < 2 * len(facts.series) or (width_of(facts.values) or 0) >= 7:
            return "Its whole numbers are all different and look counted or issued, like record numbers."
    return None


def _taxonomy(facts: Facts) -> tuple[TaxonomyRule | None, str]:
    if facts.kind == "number":
        return None, "Numbers need no taxonomy: classes get the intervals that fit them."
    if facts.kind == "date":
        days = facts.values.cast(pl.String).str.head(10).str.to_date("%Y-%m-%d").to_physical().to_numpy()
        years = float(np.ptp(days)) / 365
        if years < 0.2:
            return None, "A few weeks need no taxonomy: classes get the intervals of days that fit them."
        if years > 20:
            return {"dates": ["month", "year", "decade"]}, "Days, then months, years and decades."
        return {"dates": ["month", "year"]}, "Days, then months and years."
    texts = facts.values.cast(pl.String)
    width = width_of(facts.values)
    if texts.str.contains("*", literal=True).any():
        return None, "Some values hold a star, which is how taxonomies hide characters: classes get sets of values."
    for form, (steps, told) in SHAPES.items():
        if facts.looks_like(form) and facts.distinct > FEW_VALUES:
            return {"prefix": steps}, told
    if width and width > 2 and (facts.is_zip or facts.distinct > FEW_VALUES):
        return {"prefix": _prefixes(width)}, "Codes of one length: their last digits are hidden first."
    if facts.is_zip and facts.distinct > 1:
        return {"prefix": _prefixes(longest(texts))}, "Postal codes: their last characters are hidden first."
    if facts.distinct <= FEW_VALUES:
        return None, "Few values need no taxonomy: classes get sets of values."
    if facts.distinct <= CLUSTERED_AT_MOST:
        return "auto", "Many values: grouped by what they occur with. A taxonomy file of your own is better."
    return {"prefix": [3, 2, 1, 0]}, "Very many values: grouped by how they begin. A file of your own is better."


def _prefixes(width: int) -> list[int]:
    return sorted({round(0.6 * width), round(0.35 * width), 0} - {width}, reverse=True)


def _unique_share(table: pl.DataFrame) -> float:
    return _mean(table.is_unique()) if table.width else 0.0


def _mean(flags: pl.Series) -> float:
    return int(flags.sum()) / len(flags)


def _notes(table: pl.DataFrame, seen: Sequence[Facts], columns: Sequence[ColumnProfile]) -> list[str]:
    notes = []
    exact = [facts for facts in seen if not facts.series.dtype.is_float()]
    own = sum(facts.series.name in facts.values.cast(pl.String) for facts in exact)
    if own > 1 and 2 * own >= len(columns):
        notes.append(
            "The column names also occur as values: if the file begins with its first record, name its columns with "
            "--header."
        )
    quasi = [facts for facts, column in zip(seen, columns, strict=True) if column.role == "quasi"]
    if not quasi:
        notes.append("No column is left to mask: without a quasi-identifier there is nothing to anonymize.")
    if not any(column.role == "sensitive" for column in columns):
        notes.append(
            'No column looks sensitive by its name: if one is, give it the role "sensitive" and add p_sensitive '
            "to [policy]."
        )
    for facts in seen:
        numbers = facts.values.cast(pl.Float64, strict=False) if facts.is_text else facts.values
        strange = numbers.null_count()
        if facts.is_text and 0 < strange <= 0.1 * facts.distinct:
            example = facts.values.filter(numbers.is_null()).sort()[0]
            notes.append(
                f"'{facts.series.name}' would be numbers without '{example}'"
                + (f" and {strange - 1} more values" if strange > 1 else "")
                + ': correct them or list them under missing, then declare kind = "number".'
            )
    # Two columns of nearly unique values, or two of hundreds of columns, match by chance.
    repeated = [facts for facts in quasi if 2 < facts.distinct <= table.height / 2][:SHOWN]
    for one, other in combinations(repeated, 2):
        if one.distinct == other.distinct == pl.DataFrame([one.series, other.series]).drop_nulls().n_unique():
            notes.append(
                f"'{one.series.name}' and '{other.series.name}' say the same: less is lost when one of them is dropped "
                '(role = "identifier").'
            )
    return notes
