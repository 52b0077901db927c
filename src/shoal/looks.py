"""What values look like: e-mail addresses, record numbers, free text, coordinates. Knows nothing of roles or tables.

Both the suggestions of `shoal init` and the examination of columns that are published as they are ask here.

>>> import polars as pl
>>> direct_identifier(pl.Series("contact", ["ash@example.org", "birch@example.org"]))
'e-mail addresses'
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

import numpy as np
import polars as pl

SAMPLE = 2000  # values looked at for a pattern
MOSTLY = 0.9  # so many of them must show it
ENOUGH = 20  # in fewer records, that all values differ means little


class Pattern(NamedTuple):
    """What the values are, how they look, and the least share of distinct values for which that names people."""

    what: str
    form: str
    least: float


PATTERNS = (
    Pattern("e-mail addresses", r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$", 0.0),
    Pattern("UUIDs", r"(?i)^\{?[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}\}?$", 0.0),
    Pattern("social security numbers", r"^[0-9]{3}-[0-9]{2}-[0-9]{4}$", 0.0),
    Pattern("bank accounts", r"^[A-Z]{2}[0-9]{2}( ?[A-Z0-9]{4}){3,7}( ?[A-Z0-9]{1,4})?$", 0.0),
    Pattern("internet addresses", r"^(https?://\S+|www\.\S+|([0-9]{1,3}\.){3}[0-9]{1,3})$", 0.0),
    Pattern("addresses of devices", r"(?i)^([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$", 0.0),
    Pattern(
        "internet addresses",
        r"(?i)^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$|^([0-9a-f]{1,4}:)*[0-9a-f]{1,4}::([0-9a-f]{1,4}(:[0-9a-f]{1,4})*)?$",
        0.0,
    ),
    Pattern("names of accounts", r"^@[A-Za-z0-9_.]{2,}$", 0.0),
    Pattern("card numbers", r"^[2-6][0-9]{3}([ -]?[0-9]{4}){2}[ -]?[0-9]{1,7}$", 0.2),
    Pattern("digests, which a list of guesses undoes", r"(?i)^[0-9a-f]{32,128}$", 0.2),
    Pattern("number plates", r"^[A-Z]{1,3}[- ][A-Z]{1,2}[- ]?[0-9]{1,4}$", 0.2),
    Pattern("files about people", r"(?i)^\S+\.(jpe?g|png|tiff?|dcm|pdf|docx?|wav|mp[34])$", 0.2),
    Pattern("phone numbers", r"^(\+|00?|\()[0-9 ()./-]{7,19}$|^[0-9]{3,4}[-. /][0-9]{3,4}[-. ]?[0-9]{3,4}$", 0.2),
    Pattern("record numbers", r"^[A-Za-z]{1,5}[-_/ .]?[0-9]{4,}$", 0.5),
    Pattern(
        "personal names",
        r"^((Mr|Mrs|Ms|Dr|Herr|Frau)\.? )?\p{Lu}[\p{L}'’.-]*,?"
        r"( (de|da|di|du|van|von|der|den|la|le|el|al|\p{Lu}[\p{L}'’.-]*)){1,3}$",
        0.5,
    ),
)
COORDINATE_PAIR = r"^[(\[]?\s*-?[0-9]{1,3}\.[0-9]{3,}\s*[,; ]\s*-?[0-9]{1,3}\.[0-9]{3,}\s*[)\]]?$"
FREE_TEXT = r"^\S+(\s+\S+){4}"
FREE_TEXT_LEAST = 0.3  # an answer of five words that many give is a category

_COORDINATE_WORDS = frozenset(
    {"lat", "lon", "lng", "long", "latitude", "longitude", "coordinate", "coordinates", "gps", "geo"}
)
_KEY_WORDS = frozenset(
    ("id ids uid uuid guid pid key pk mrn nr no number nummer numero ref barcode token patno patnr caseno").split()  # noqa: SIM905
)
KEY_LEAST = 0.2  # a column called a number that has so many values per record numbers people or their cases
# Three decimals of a degree are a hundred metres.
_FINE = 1000


def direct_identifier(series: pl.Series) -> str | None:
    """What directly identifying thing a column's values are, or None. `series` may be of any type.

    Looks at a sample of at most `SAMPLE` values, evenly spaced, so that the answer does not depend on chance.
    """
    if series.null_count() == len(series):
        return None
    if _is_key(series):
        return "the key of a person or a case"
    if series.dtype == pl.String:
        return _text_identifier(series)
    if series.dtype.is_float() and _COORDINATE_WORDS.intersection(words_of(series.name)) and _fine_degrees(series):
        return "coordinates"
    return None


def _is_key(series: pl.Series) -> bool:
    """Whether a column is called a key and has the values of one; a key may repeat, once a visit."""
    named = _KEY_WORDS.intersection(words_of(series.name))
    if not named or not (series.dtype.is_integer() or series.dtype == pl.String) or len(series) < ENOUGH:
        return False
    return distinct_share(series) >= KEY_LEAST


def _text_identifier(series: pl.Series) -> str | None:
    share: float | None = None
    for what, form, least in PATTERNS:
        if shows(series, form):
            if least == 0.0:
                return what
            share = distinct_share(series) if share is None else share
            if share >= least and len(series) >= ENOUGH:
                return what
    if shows(series, COORDINATE_PAIR):
        return "coordinates"
    if len(series) >= ENOUGH and shows(series, FREE_TEXT) and distinct_share(series) >= FREE_TEXT_LEAST:
        return "free text, in which anybody may be named"
    return None


def shows(series: pl.Series, form: str) -> bool:
    """Whether nearly all known texts of a column match a pattern."""
    known = series.drop_nulls()
    if series.dtype != pl.String or len(known) == 0:
        return False
    sample = known.gather_every(max(1, len(known) // SAMPLE))
    return int(sample.str.contains(form).sum()) >= MOSTLY * len(sample)


def distinct_share(series: pl.Series) -> float:
    """Distinct values per known value."""
    known = series.drop_nulls()
    return known.n_unique() / max(1, len(known))


def words_of(name: str) -> list[str]:
    """The words of a column's name, in lower case and without accents."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    plain = "".join(c for c in unicodedata.normalize("NFKD", spaced) if not unicodedata.combining(c))
    return re.findall(r"[^\W\d_]+", plain.casefold())


def _fine_degrees(series: pl.Series) -> bool:
    """Whether numbers could be degrees, given to a hundred metres or finer."""
    values = series.drop_nulls().cast(pl.Float64).to_numpy()
    values = values[:: max(1, len(values) // SAMPLE)]
    thousandths = np.abs(values * _FINE / 10)
    fine = np.abs(thousandths - np.rint(thousandths)) > 1e-6
    return bool(np.abs(values).max() <= 180 and np.count_nonzero(fine) > 0.5 * len(values))
