"""Taxonomies that are made by rule (prefixes, intervals, units of dates), and the texts that are no node of theirs.

Nobody needs the original values to know that `4107*` keeps more characters than `prefix = [3, 2, 0]` does, that `[31, 38]` is no
interval of ten, and that `2024-Q1` is neither a month nor a year.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from shoal.errors import ConfigError
from shoal.schema import TaxonomySource
from shoal.taxonomy_build import from_intervals

Reader = Callable[[str], Any]

_PARTS = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?|-Q[1-4]|0?s)?")
_FORMS = {"month": r"\d{4}-\d{2}", "quarter": r"\d{4}-Q[1-4]", "year": r"\d{4}", "decade": r"\d{3}0s"}
DAY = r"\d{4}-\d{2}-\d{2}"


def is_day(text: str) -> bool:
    """Whether a day, a month, a quarter, a year or a decade is one that the calendar has."""
    found = _PARTS.fullmatch(text)
    if found is None:
        return False
    year, month, day = (int(part) if part else 1 for part in found.groups())
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def prefixes(source: TaxonomySource, texts: Sequence[str | None]) -> Reader:
    """Whole values without stars, and no more characters than the finest level keeps, with stars up to one width.

    A short value keeps fewer characters than its level says; stars before other characters are no level of anything.
    """
    finest = max(source.prefix or [0])
    starred = {len(text) for text in texts if text is not None and text.endswith("*") and text.strip("*")}
    width = max(starred, default=None)

    def read(text: str) -> Any:
        plain = text.rstrip("*")
        if "*" in plain or (width is not None and len(text) > width):
            return None
        return ("text", text) if plain == text or (len(text) == width and len(plain) <= finest) else None

    return read


def intervals(source: TaxonomySource, number: Reader) -> Reader:
    """Single numbers, and the intervals that lie where the declared widths or edges put them."""

    def read(text: str) -> Any:
        key = number(text)
        if key is None or key[0] != "between" or key[1] == key[2]:
            return key
        return key if key in {number(label) for label in _around(source, key[1], key[2])} else None

    return read


def _around(source: TaxonomySource, low: Decimal, high: Decimal) -> Iterator[str]:
    """The intervals that a number can be in; whole numbers end theirs before the next begins, others at it."""
    inside = float(low) + 0.37 * float(high - low)
    for values in ([float(low)], sorted({float(low), inside})):
        try:
            tree = from_intervals(values, widths=source.intervals, edges=source.edges)
        except ConfigError:
            continue
        yield from tree.path(0)


def units(source: TaxonomySource, day: Reader) -> Reader:
    """Days, and the declared units."""
    form = re.compile("|".join([DAY, *(_FORMS[unit] for unit in source.dates or () if unit in _FORMS)]))

    def read(text: str) -> Any:
        key = day(text)
        return key if key is not None and key[1] == key[2] and form.fullmatch(key[1]) else None

    return read
