"""What values look like: e-mail addresses, record numbers, free text, coordinates. Knows nothing of roles or tables.

Both the suggestions of `shoal init` and the examination of columns that are published as they are ask here.

>>> import polars as pl
>>> direct_identifier(pl.Series("contact", ["ash@example.org", "birch@example.org"]))
'e-mail addresses'
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

Counts = NDArray[np.int64] | None

SAMPLE = 2000  # values looked at for a pattern
MOSTLY = 0.9  # so many of them must show it
ENOUGH = 20  # in fewer records, that all values differ means little


class Pattern(NamedTuple):
    """What the values are, how they look, and the least share of distinct values for which that names people."""

    what: str
    form: str
    least: float


PATTERNS = (
    Pattern("e-mail addresses", r"[^@\s<>,;]+@[^@\s<>,;]+\.[A-Za-z]{2,}", 0.0),
    Pattern("UUIDs", r"(?i)^\{?[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}\}?$", 0.0),
    Pattern("social security numbers", r"^[0-9]{3}-[0-9]{2}-[0-9]{4}$", 0.0),
    Pattern("bank accounts", r"(?i)^[A-Z]{2}[0-9]{2}( ?[A-Z0-9]{4}){3,7}( ?[A-Z0-9]{1,4})?$", 0.0),
    Pattern("internet addresses", r"(?i)^((https?|ftp)://\S+|www\.\S+|([a-z0-9-]+\.)+[a-z]{2,}/\S+)$", 0.0),
    Pattern("internet addresses", r"^([0-9]{1,3}\.){3}[0-9]{1,3}([:/][0-9]{1,5})?$", 0.0),
    Pattern("addresses of devices", r"(?i)^([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$|^([0-9a-f]{4}\.){2}[0-9a-f]{4}$", 0.0),
    Pattern(
        "internet addresses",
        r"(?i)^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$|^([0-9a-f]{1,4}:)*[0-9a-f]{1,4}::([0-9a-f]{1,4}(:[0-9a-f]{1,4})*)?$",
        0.0,
    ),
    Pattern("names of accounts", r"^@[A-Za-z0-9_.]{2,}$", 0.0),
    Pattern("coordinates", r"(?i)^(SRID=[0-9]+; ?)?POINT ?[ZM]{0,2} ?\(|\"coordinates\"|^[NSEW]? ?[0-9]{1,3} ?°", 0.0),
    Pattern("coordinates", r"^[2-9CFGHJMPQRVWX]{4,8}\+[2-9CFGHJMPQRVWX]{2,7}$", 0.2),
    Pattern("card numbers", r"^[2-6][0-9]{3}([ -]?[0-9]{4}){2}[ -]?[0-9]{1,7}$", 0.2),
    Pattern("digests, which a list of guesses undoes", r"(?i)^[0-9a-f]{32,128}$", 0.2),
    Pattern("number plates", r"^[A-Z]{1,3}[- ][A-Z]{1,2}[- ]?[0-9]{1,4}[EH]?$|^[A-Z]{2}[0-9]{2} ?[A-Z]{3}$", 0.2),
    # Denmark and Sweden, Brazil, Italy, Spain, Switzerland, the United Kingdom, France.
    Pattern(
        "national identity numbers",
        r"^([0-9]{6}|[0-9]{8})[-+][0-9]{4}$|^[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}$|^[A-Z]{6}[0-9]{2}[A-Z][0-9]{2}[A-Z][0-9]{3}[A-Z]$"
        r"|^([XYZ][0-9]{7}|[0-9]{8})-?[A-Z]$|^756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}$|^[A-Z]{2} ?([0-9]{2} ?){3}[A-D]$"
        r"|^[12] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{3} ?[0-9]{3}( ?[0-9]{2})?$",
        0.2,
    ),
    Pattern(
        "postal addresses",
        r"(?i)^\p{L}[\p{L} .'-]*(straße|strasse|str\.|street|road|avenue|lane|weg|platz|allee|gasse|ring)\.? [0-9]+ ?[a-z]?$"
        r"|^[0-9]+ ?[a-z]?,? (rue|via|calle) |^(via|calle) .* [0-9]+$"
        r"|^[0-9]+[a-z]? .*\b(street|st|road|rd|avenue|ave|lane|ln|drive|dr|boulevard|blvd|way|court|ct)\b",
        0.1,
    ),
    Pattern("files about people", r"(?i)^\S+\.(jpe?g|png|tiff?|dcm|pdf|docx?|wav|mp[34])$", 0.2),
    Pattern(
        "phone numbers",
        r"^(tel:)?(\+|00?|\()[0-9 ()./-]{7,19}$|^(1[-. ])?[0-9]{3,4}[-. /][0-9]{3,4}[-. ]?[0-9]{3,4}$",
        0.2,
    ),
    Pattern("record numbers", r"^[A-Za-z]{1,5}[-_/ .]?[0-9]{4,}$|^[0-9]{9,20}$", 0.5),
    Pattern(
        "personal names",
        r"^((Mr|Mrs|Ms|Dr|Herr|Frau)\.? )?\p{Lu}[\p{L}'’.-]*,?"
        r"( (de|da|di|du|van|von|der|den|la|le|el|al|\p{Lu}[\p{L}'’.-]*)){1,3}$",
        0.5,
    ),
    Pattern("personal names", r"^\p{Ll}[\p{Ll}'’-]+,? \p{Ll}[\p{Ll}'’-]+$", 0.5),
)
# Letters and digits in one word of some length: a code that somebody or something was given.
CODE = (r"^[A-Za-z0-9_=+/-]{6,64}$", r"[A-Za-z][A-Za-z0-9_=+/-]*[0-9]|[0-9][A-Za-z0-9_=+/-]*[A-Za-z]")
CODE_LEAST = 0.5
LONG = 10**8  # whole numbers of nine digits and more, hardly any twice, are nobody's amounts
COORDINATE_PAIR = r"^[(\[]?\s*-?[0-9]{1,3}\.[0-9]{3,}\s*[,; ]\s*-?[0-9]{1,3}\.[0-9]{3,}\s*[)\]]?$"
FREE_TEXT = r"^\S+(\s+\S+){4}"
FREE_TEXT_LEAST = 0.3  # an answer of five words that many give is a category
SHORT_TEXT = r"^\S+(\s+\S+){2}"
SHORT_TEXT_LEAST = 0.7  # and one of three words that hardly anybody else gives is none
NAMES_LEAST = (0.03, 100)  # names that come back, visit after visit; a list of departments is shorter

_COORDINATE_WORDS = frozenset(
    {"lat", "lon", "lng", "long", "latitude", "longitude", "coordinate", "coordinates", "gps", "geo"}
)
_KEY_WORDS = frozenset(
    ("id ids uid uuid guid pid key pk mrn nr no number nummer numero ref barcode token patno patnr caseno").split()  # noqa: SIM905
)
KEY_LEAST = 0.2  # a column called a number that has so many values per record numbers people or their cases
# Three decimals of a degree are a hundred metres.
_FINE = 1000


def direct_identifier(series: pl.Series, counts: Counts = None) -> str | None:
    """What directly identifying thing a column's values are, or None. `series` may be of any type.

    Looks at a sample of at most `SAMPLE` values, evenly spaced, so that the answer does not depend on chance. Entries may be the
    distinct values of a column that stand for `counts` records each; one by default.
    """
    if series.null_count() == len(series):
        return None
    if _is_key(series, counts):
        return "the key of a person or a case"
    if _COORDINATE_WORDS.intersection(words_of(series.name)) and _fine_degrees(series):
        return "coordinates"
    if series.dtype == pl.String:
        return _text_identifier(series, counts)
    if series.dtype.is_integer() and (series.min() or 0) >= LONG and _records(series, counts) >= ENOUGH:  # type: ignore[operator]
        return "record numbers" if distinct_share(series, counts) >= CODE_LEAST else None
    return None


def _is_key(series: pl.Series, counts: Counts) -> bool:
    """Whether a column is called a key and has the values of one; a key may repeat, once a visit."""
    words = words_of(series.name)
    named = _KEY_WORDS.intersection(words)
    if (
        not named
        or "of" in words[1:2]
        or not (series.dtype.is_integer() or series.dtype == pl.String)
        or _records(series, counts) < ENOUGH
    ):
        return False
    return distinct_share(series, counts) >= KEY_LEAST


def _records(series: pl.Series, counts: Counts) -> int:
    return len(series) if counts is None else int(counts.sum())


def _text_identifier(series: pl.Series, counts: Counts) -> str | None:
    forms = [*(pattern.form for pattern in PATTERNS), COORDINATE_PAIR, FREE_TEXT, SHORT_TEXT, *CODE]
    *patterns, pair, free, short, code, mixed = shown(series, forms, counts)
    if not any((*patterns, pair, free, short, code)):
        return None
    share, enough = distinct_share(series, counts), _records(series, counts) >= ENOUGH
    for (what, _, least), here in zip(PATTERNS, patterns, strict=True):
        if here and least == 0.0:
            return what
        if here and what == "personal names" and series.n_unique() >= NAMES_LEAST[1]:
            least = NAMES_LEAST[0]
        if here and share >= least and enough:
            return what
    if pair:
        return "coordinates"
    if enough and ((free and share >= FREE_TEXT_LEAST) or (short and share >= SHORT_TEXT_LEAST)):
        return "free text, in which anybody may be named"
    return "record numbers" if enough and share >= CODE_LEAST and code and mixed else None


def shows(series: pl.Series, form: str, counts: Counts = None) -> bool:
    """Whether nearly all known texts of a column match a pattern; entries stand for `counts` records, one by default."""
    return shown(series, [form], counts)[0]


def shown(series: pl.Series, forms: Sequence[str], counts: Counts = None) -> list[bool]:
    """`shows` for several patterns at a time: to ask polars costs more than most answers."""
    if series.dtype != pl.String or series.null_count() == len(series):
        return [False] * len(forms)
    known = pl.DataFrame({"text": series, "records": 1 if counts is None else counts}).drop_nulls()
    if counts is None:
        known = known.gather_every(max(1, known.height // SAMPLE))
    fitting = [_fitting(form).alias(str(place)) for place, form in enumerate(forms)]
    *found, everybody = known.select(*fitting, pl.col("records").sum()).row(0)
    return [number >= MOSTLY * everybody for number in found]


@cache
def _fitting(form: str) -> pl.Expr:
    """How many records the texts that match a pattern stand for."""
    return (pl.col("records") * pl.col("text").str.contains(form)).sum()


def distinct_share(series: pl.Series, counts: Counts = None) -> float:
    """Distinct values per known value; entries stand for `counts` records, one by default."""
    known = series.drop_nulls()
    records = len(known) if counts is None else int(counts[series.is_not_null().to_numpy()].sum())
    return known.n_unique() / max(1, records)


def words_of(name: str) -> list[str]:
    """The words of a column's name, in lower case and without accents."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    plain = "".join(c for c in unicodedata.normalize("NFKD", spaced) if not unicodedata.combining(c)).casefold()
    # German joins its words: Mitgliedsnummer is a number.
    return re.findall(r"[^\W\d_]+", re.sub(r"(?<=[^\W\d_]{3})(nummer|nr|number)(?![^\W\d_])", r" \1", plain))


def _fine_degrees(series: pl.Series) -> bool:
    """Whether numbers could be degrees, given to a hundred metres or finer."""
    if not (series.dtype.is_float() or series.dtype == pl.String):
        return False
    known = series.drop_nulls()
    values = known.cast(pl.Float64, strict=False).drop_nulls().to_numpy()
    if len(values) < MOSTLY * len(known) or len(values) == 0:
        return False
    values = values[:: max(1, len(values) // SAMPLE)]
    thousandths = np.abs(values * _FINE / 10)
    fine = np.abs(thousandths - np.rint(thousandths)) > 1e-6
    return bool(np.abs(values).max() <= 180 and np.count_nonzero(fine) > 0.5 * len(values))
