"""How a table is written, found out from its values: dates and numbers in other spellings, and codes that mean "no value".

What is found is proposed, with the reason, as the keys of `shoal.toml` that say it: `format`, `decimal` and `missing`. Where
values could be read in two ways (03/04/2024; 1,234) the other columns decide, and where they say nothing it is asked.

>>> import polars as pl
>>> table = pl.DataFrame({"seen": ["31.03.1994", "1.4.1994"] * 9, "pay": ["1.200,50 €", "900 €"] * 9, "age": [34, -99] * 9})
>>> read, found, notes = detected(table)
>>> found["seen"].keys, found["pay"].keys
({'format': 'DD.MM.YYYY'}, {'format': '# €', 'decimal': ','})
>>> read.row(0)
(datetime.date(1994, 3, 31), 1200.5, 34)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from shoal import formats
from shoal.dialects.codes import RARE, day_codes, number_codes
from shoal.dialects.guesses import NO_DAY, Guess, Spelled, date_guess, measured, number_guess, speaks_of_time
from shoal.errors import InputError
from shoal.formats import Pattern
from shoal.io.frames import normalise
from shoal.io.numbers import infer_numbers
from shoal.spelling import says_nothing

_FIRST_DAY, _LAST_DAY = 18_000_101, 22_001_231  # days of our times as whole numbers
FEW = 3  # different texts among dates or numbers, each of them repeated, that are taken for codes


@dataclass(frozen=True)
class Dialect:
    """How one column is written, and why that is thought."""

    format: str | list[str] | None = None
    decimal: str | None = None
    missing: tuple[str | float, ...] = ()
    why: str = ""

    @property
    def about(self) -> str | None:
        """What the unit of its numbers speaks of: "money" or "health"."""
        written = [self.format] if isinstance(self.format, str) else self.format or []
        return measured(one for one in written if "#" in one)

    @property
    def keys(self) -> dict[str, Any]:
        """As a configuration says it."""
        found = {"format": self.format, "decimal": self.decimal, "missing": list(self.missing)}
        return {key: value for key, value in found.items() if value}


Asked = list[tuple[str, str]]
"""Columns, and what has to be asked about them."""


def detected(table: pl.DataFrame, *, year: int | None = None) -> tuple[pl.DataFrame, dict[str, Dialect], Asked]:
    """The table read as it seems to be written, what was found for which column, and what has to be asked about which.

    `year` is the last one that two digits may mean; this year by default.
    """
    texts = {name: Spelled.of(written) for name in table.columns if (written := _written(table[name])) is not None}
    guesses = {name: guess for name, one in texts.items() if (guess := date_guess(one, year) or number_guess(one))}
    votes = _votes([guess for guess in guesses.values() if guess.other is None and guess.patterns and not guess.plain])
    notes = [(name, guess.why) for name, guess in guesses.items() if not guess.patterns]
    found: dict[str, Dialect] = {}
    columns = []
    for name in table.columns:
        series, dialect = table[name], Dialect()
        guess = guesses.get(name)
        if guess is not None and guess.is_doubtful and not ("," in votes and "." not in votes):
            guess = replace(guess, other=None)
        if guess is not None and guess.patterns:
            guess, asked = guess.settled(votes)
            series, dialect, more = _read(table[name].cast(pl.String), guess)
            notes += [(name, told) for told in (*asked, *more)]
        if series.dtype == pl.String:
            series, dialect = _without_words(series, texts[name])
        series, dialect = _without_codes(table[name], series, dialect)
        if dialect.keys:
            found[name] = dialect
        columns.append(series)
    return normalise(pl.DataFrame(columns)) if columns else table, found, notes


def _written(column: pl.Series) -> pl.Series | None:
    """The texts of a column that can be written in some way; whole numbers such as 20240331 may be dates, or count seconds."""
    if column.dtype == pl.String:
        return column
    if not column.dtype.is_integer() or column.null_count() == len(column):
        return None
    as_days = column.is_between(_FIRST_DAY, _LAST_DAY).all()
    as_moments = speaks_of_time(column.name) and (column > _LAST_DAY).all()
    return column.cast(pl.String) if as_days or as_moments else None


def _votes(guesses: Sequence[Guess]) -> set[str]:
    """What columns that can be read in one way only say about the others: "," and "." for decimals, "DD" and "MM" first."""
    return {vote for guess in guesses for vote in guess.votes}


def _read(column: pl.Series, guess: Guess) -> tuple[pl.Series, Dialect, list[str]]:
    """A column by its patterns: what they do not fit says that there is no value, or is told.

    Plain numbers with anything else among them stay text, as they would without a guess.
    """
    name = column.name
    if guess.plain and guess.patterns[0].kind == "number":
        read = _numbers(column)
        if read.dtype != pl.String:
            return read, Dialect(), []
    read = formats.read(column, guess.patterns)
    counted = column.filter(read.is_null() & column.is_not_null()).value_counts(name="records").sort(name)
    says = pl.Series(says_nothing(counted[name].to_list()), dtype=pl.Boolean)
    if guess.patterns[0].kind == "date":
        says |= counted[name].str.contains(NO_DAY)
    nothing = counted.filter(says)
    rest = counted.filter(~pl.col(name).is_in(nothing[name].implode()))
    # Few texts without a digit that stand there again and again are codes, whatever language they are in.
    wordy = not rest[name].str.contains(r"[0-9]").any()
    least = int(rest["records"].to_numpy().min(initial=len(column)))
    codes = rest.height <= FEW and wordy and least >= max(FEW, RARE * len(column))
    missing = sorted([*nothing[name], *(rest[name] if codes else [])])
    if rest.height and not codes and guess.plain:
        return column, Dialect(), []
    notes = []
    if rest.height and not codes:
        rows = column.is_in(rest[name].implode()).fill_null(False).arg_true() + 1
        listed = ", ".join(map(str, rows[:FEW])) + (" …" if len(rows) > FEW else "")
        notes.append(
            f"'{name}' holds {len(rows):,} values that are no {guess.patterns[0].kind}s written as the others (records {listed})"
            f": correct them, or list them under missing of [attributes.{name}], or the table is refused."
        )
    why = guess.why
    if missing:
        why = f"{why} {_quoted(missing)} {'says' if len(missing) == 1 else 'say'} that there is no value.".strip()
    if guess.plain:
        if guess.patterns[0].kind == "number":
            read = _numbers(pl.select(pl.when(read.is_not_null()).then(column).alias(name)).to_series())
        return read, Dialect(missing=tuple(missing), why=why if missing else ""), notes
    said = _said(guess.patterns)
    return read, Dialect(said.get("format"), said.get("decimal"), tuple(missing), why), notes


def _numbers(column: pl.Series) -> pl.Series:
    """As every reader has them, which knows what a float cannot hold; text where infinite ones are among them."""
    try:
        return infer_numbers(column.to_frame(), lambda row: f"record {row + 1}").to_series()
    except InputError:
        return column


def _said(patterns: list[Pattern]) -> dict[str, Any]:
    """The keys of patterns; none for those that are read anyway."""
    written = [one.text for one in patterns]
    decimal = patterns[0].decimal if patterns[0].kind == "number" else None
    if written == ["#"]:
        return {"decimal": decimal}
    return {
        "format": written[0] if len(written) == 1 else written,
        "decimal": decimal if decimal == "," else None,
    }


def _without_words(series: pl.Series, spelled: Spelled) -> tuple[pl.Series, Dialect]:
    """A column of texts without those that say "unknown" in one of several languages."""
    words = spelled.nothing
    if not words or len(words) == len(spelled.values):
        return series, Dialect()
    cleared = pl.select(pl.when(~series.is_in(words)).then(series).alias(series.name)).to_series()
    why = f"{_quoted(words)} {'says' if len(words) == 1 else 'say'} that there is no value."
    return cleared, Dialect(missing=tuple(words), why=why)


def _without_codes(original: pl.Series, series: pl.Series, dialect: Dialect) -> tuple[pl.Series, Dialect]:
    """Numbers without -99, and dates without the year 9999, where these lie far from all others."""
    if series.dtype.is_numeric():
        numbers, why = number_codes(series)
        if not numbers:
            return series, dialect
        gone = series.cast(pl.Float64).is_in(numbers)
        codes: list[str | float] = [int(one) if float(one).is_integer() else one for one in numbers]
    elif series.dtype.is_temporal():
        gone, why = day_codes(series)
        if not gone.any():
            return series, dialect
        codes = sorted(original.filter(gone.fill_null(False)).cast(pl.String).str.strip_chars().unique())
    else:
        return series, dialect
    cleared = pl.select(pl.when(~gone).then(series).alias(series.name)).to_series()
    return cleared, replace(dialect, missing=(*dialect.missing, *codes), why=f"{dialect.why} {why}".strip())


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


__all__ = ["Dialect", "detected"]
