"""What a column is: its kind, its values and their counts, and which texts among them mean missing.

>>> import polars as pl
>>> facts = look(pl.Series("age", ["21", "34", "34"]))
>>> facts.kind, facts.distinct, facts.is_text
('number', 2, False)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.columns import EXACT_INTEGER
from shoal.looks import shows, words_of
from shoal.naming import CODED, PLACE, QUANTITIES, TIME, ZIP, Hint, hint_of, hint_of_values
from shoal.schema import Kind

LENGTH = Hint("other", "lengths of time")
FEW_VALUES = 20  # categories with no more values than this do well as sets
CODED_AT_MOST = 50  # integers with more distinct values than this are quantities, whatever their name

_ISO_DATE = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}$"
ISO_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}"
_CODE = r"^[+-]?0[0-9]"
# Under such names numbers of one length are codes: of illnesses, occupations, industries, areas, treatments.
_CODES = {
    *(
        "code",
        "cd",
        "codes",
        "icd",
        "isco",
        "soc",
        "kldb",
        "naics",
        "nace",
        "sic",
        "wz",
        "fips",
        "ags",
        "nuts",
        "drg",
        "ops",
        "cpt",
    ),
    *("atc", "loinc", "snomed", "schluessel", "schlussel", "cod", "codigo", "codice"),
}
# What is called a kind or a class is numbered, not counted.
_KINDS = ("type", "typ", "tipo", "category", "kategorie", "categoria", "categorie", "klasse", "art")
_ALWAYS_MISSING = ["N/A", "n/a", "#N/A", "NULL", "null", "Null", "NaN", "nan", "NAN", "<NA>", "NaT", "-", "--", "\\N"]
_MISSING_AMONG_NUMBERS = ["NA", "na", "None", "none", ".", "unknown", "Unknown", "missing", "Missing", "0000-00-00"]


class Facts(NamedTuple):
    """What is known about a column before anything is suggested."""

    series: pl.Series
    values: pl.Series  # distinct, in no order
    counts: NDArray[np.int64]
    kind: Kind
    words: frozenset[str]
    hint: Hint | None
    is_zip: bool

    @property
    def distinct(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> int:
        return self.series.null_count()

    @property
    def share(self) -> float:
        """Distinct values per value."""
        return self.distinct / max(1, len(self.series) - self.missing)

    @property
    def separation(self) -> float:
        records = len(self.series)
        alike = int((self.counts * (self.counts - 1)).sum()) + self.missing * (self.missing - 1)
        return 1 - alike / (records * (records - 1))

    @property
    def is_text(self) -> bool:
        return self.series.dtype == pl.String and self.kind == "category"

    def looks_like(self, pattern: str) -> bool:
        return self.is_text and shows(self.series, pattern)


def missing_texts(table: pl.DataFrame) -> tuple[list[str], list[tuple[str, str]]]:
    """Texts such as NA that stand for missing, and columns where they may be values, each with a note."""
    candidates = [*_ALWAYS_MISSING, *_MISSING_AMONG_NUMBERS]
    found: dict[str, str] = {}
    doubtful: list[tuple[str, str]] = []
    for column in table.iter_columns():
        if column.dtype != pl.String or not column.is_in(candidates).any():
            continue
        values = column.drop_nulls().unique()
        rest = values.filter(~values.is_in(candidates))
        gap = len(rest) == 0 or _kind_of_text(rest) != "category"
        # Among codes of two or three letters, NA is Namibia.
        spelled_out = longest(rest) > 3
        for text in values.filter(values.is_in(candidates)).sort():
            if gap or text in _ALWAYS_MISSING or (spelled_out and text in ("NA", "na")):
                found.setdefault(text, column.name)
            else:
                doubtful.append((text, column.name))
    notes = [
        (
            name,
            f"'{text}' means missing in '{found[text]}' and so in '{name}' too; if it is a value there, spell it otherwise.",
        )
        for text, name in doubtful
        if text in found
    ]
    return [text for text in candidates if text in found], notes


def look(series: pl.Series) -> Facts:
    counted = series.drop_nulls().alias("value").value_counts(name="records")
    values, counts = counted["value"], counted["records"].to_numpy().astype(np.int64)
    words = words_of(series.name)
    hint = hint_of(words)
    if hint is None and series.dtype == pl.String and 2 <= len(values) <= FEW_VALUES:
        hint = hint_of_values(values)
    is_zip = hint is PLACE and any(part in "".join(words) for part in ZIP)
    kind: Kind = "category"
    if series.dtype == pl.String:
        kind = _kind_of_text(values)
    elif series.dtype.is_temporal():
        kind = "date"
    elif series.dtype.is_float() or np.abs(values.cast(pl.Float64).to_numpy()).max(initial=0) <= EXACT_INTEGER:
        kind = "number"
    if kind == "number" and is_zip:
        # Zip codes of different length have lost their zeros; as numbers, neighbours are still near each other.
        kind = "category" if width_of(values) else "number"
    elif kind == "number" and hint is not None and hint in CODED and series.dtype.is_integer():
        kind = "category" if len(values) <= CODED_AT_MOST and not QUANTITIES & {*words} else "number"
    if (
        kind == "number"
        and series.dtype.is_integer()
        and (
            _is_flag(values)
            or (_CODES & {*words} and width_of(values))
            or (len(values) <= FEW_VALUES and any(word.endswith(_KINDS) for word in words))
        )
    ):
        kind = "category"
    if hint is TIME and kind == "number" and (QUANTITIES & {*words} or not _is_calendar(values)):
        hint = LENGTH
    return Facts(series, values, counts, kind, frozenset(words), hint, is_zip)


def _is_calendar(values: pl.Series) -> bool:
    """Years, or days and months by their number; 60 months are a length of time."""
    numbers = values.cast(pl.Float64)
    return bool(numbers.is_between(1800, 2200).all() or numbers.is_between(1, 31).all())


def _is_flag(values: pl.Series) -> bool:
    """0 and 1, which say no and yes."""
    return len(values) == 2 and bool(values.is_in([0, 1]).all())


def _kind_of_text(values: pl.Series) -> Kind:
    """What text is, when all of it is: numbers, ISO dates, or just text."""
    # The first values tell most columns apart, so that long ones are parsed once at most.
    for part in (values.head(100), values):
        numbers = part.cast(pl.Float64, strict=False)
        exact = numbers.is_finite() & (numbers.abs() <= EXACT_INTEGER) & ~part.str.contains(_CODE)
        is_number = len(part) > 0 and exact.fill_null(False).all()
        is_date = len(part) > 0 and part.str.contains(_ISO_DATE).all()
        is_date = is_date and part.str.to_date("%Y-%m-%d", strict=False).null_count() == 0
        if not is_number and not is_date:
            return "category"
    return "number" if is_number else "date"


def width_of(values: pl.Series) -> int | None:
    """The number of digits, when all values are that many digits."""
    if values.dtype.is_float() or len(values) == 0:
        return None
    texts = values.cast(pl.String)
    lengths = texts.str.len_chars()
    same = lengths.min() == lengths.max() and texts.str.contains(r"^[0-9]+$").all()
    return int(lengths[0]) if same else None


def longest(texts: pl.Series) -> int:
    return int(texts.str.len_chars().to_numpy().max(initial=0))


def percent(share: float) -> str:
    """A share as people read it, never rounded to none or all.

    >>> percent(0.1234), percent(0.00001), percent(0.99999), percent(1.0)
    ('12.3 %', '0.001 %', '99.999 %', '100 %')
    """
    for digits in (1, 2, 3):
        text = f"{100 * share:.{digits}f}"
        if share in (0.0, 1.0) or 0 < float(text) < 100:
            break
    return f"{text.rstrip('0').rstrip('.')} %"
