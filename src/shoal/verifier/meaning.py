"""What the cells of a quasi-identifier mean: `34`, `34.0` and `[34, 34]`, `{a, b}` and `{b,a}`, `*` and `**` are the same.

Also where declared values are checked: a cell that its taxonomy, its order, its kind or its domain does not know is a
problem. Reading is generous (other tools write `20-29` and `>=65`); whatever cannot be read is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.columns import declared_taxonomy, is_named
from shoal.schema import Attribute, Schema, TaxonomySource
from shoal.spelling import trimmed
from shoal.verifier import levels

ANYTHING = "*"
STRANGE = object()
# A comma is part of a number only before digits: `[-34, -20]` are two.
NUMBER = r"[+-]?(?:\d+(?:\.\d*|,\d+)?|[.,]\d+)(?:[eE][+-]?\d+)?"
DAY = r"\d{4}(?:-\d{2}(?:-\d{2})?|-Q[1-4]|0?s)?"
# A table is read several times (in memory, from its file, by every model): so many published intervals are understood once.
REMEMBERED = 1 << 14
BETWEEN = r"\s*(?:,|;|\.\.|:|to|–|—|-)\s*"

_SET = re.compile(r"\{(.*)\}", re.DOTALL)
_STARS = re.compile(r"\*+")
_MEMBER = re.compile(r'\s*("(?:[^"]|"")*"|[^,]*?)\s*(?:,|$)')


@dataclass(frozen=True)
class Problem:
    """Cells that nobody can vouch for."""

    what: str
    texts: frozenset[int]

    def told(self, column: str, which: NDArray[np.int64]) -> str:
        """Where they are; the values themselves are not repeated."""
        rows = np.flatnonzero(np.isin(which, sorted(self.texts)))
        records = "record" if len(rows) == 1 else "records"
        return f"Column '{column}': {self.what} in {len(rows)} {records}, the first is record {int(rows[0]) + 1}."


@dataclass(frozen=True)
class Reading:
    """A key for each text (equal keys mean the same), the texts that share one, and those that cannot stand."""

    keys: list[Any]
    spellings: list[list[str | None]]
    problems: list[Problem]


def read_cells(texts: Sequence[str | None], column: str, schema: Schema) -> Reading:
    """What the distinct texts of one published column mean."""
    attribute = attribute_of(column, schema)
    plain = _plain(texts, schema)
    reader, wanted = _reader(plain, column, attribute, schema)
    keys: list[Any] = []
    strange, outside = set(), set()
    for row, text in enumerate(plain):
        key = _key(text, reader)
        if key is STRANGE:
            strange.add(row)
            key = ("text", text)
        elif key is not None and key != ANYTHING and _outside(key, attribute):
            outside.add(row)
        keys.append(key)
    problems = [Problem(f"it holds what is no {wanted}", frozenset(strange))] if strange else []
    if outside:
        problems.append(Problem("it holds what lies outside its declared domain", frozenset(outside)))
    groups: dict[Any, list[str | None]] = {}
    for key, text in zip(keys, texts, strict=True):
        groups.setdefault(key, []).append(text)
    return Reading(keys, [found for found in groups.values() if len(found) > 1], problems)


def reader_of(texts: Sequence[str | None], column: str, schema: Schema) -> Callable[[Sequence[str | None]], list[Any]]:
    """What gives the keys of any texts of a column that holds texts like these; equal keys mean the same."""
    reader, _ = _reader(_plain(texts, schema), column, attribute_of(column, schema), schema)

    def read(more: Sequence[str | None]) -> list[Any]:
        found = [(text, _key(text, reader)) for text in _plain(more, schema)]
        return [("text", text) if key is STRANGE else key for text, key in found]

    return read


def attribute_of(column: str, schema: Schema) -> Attribute:
    """The declaration of a published column, which may be one of two ends."""
    name = column if column in schema.attributes else column.removesuffix("_min").removesuffix("_max")
    return schema.attributes[name]


def _plain(texts: Sequence[str | None], schema: Schema) -> list[str | None]:
    plain = pl.select(trimmed(pl.lit(pl.Series(texts, dtype=pl.String)))).to_series().to_list()
    return [None if text is None or text in schema.missing else text for text in plain]


def _key(text: str | None, reader: Callable[[str], Any]) -> Any:
    if text is None:
        return None
    if _STARS.fullmatch(text):
        return ANYTHING
    key = reader(text)
    return STRANGE if key is None else key


def _reader(
    texts: Sequence[str | None], column: str, attribute: Attribute, schema: Schema
) -> tuple[Callable[[str], Any], str]:
    """How to read a cell (None for what is not to be read), and what it should be."""
    source = attribute.taxonomy
    if attribute.order is not None:
        labels = {label: i for i, label in enumerate(attribute.order)}
        return lambda text: _ordered(text, labels), "value of its order"
    if is_named(source):
        empty = pl.Series(column, [], dtype=pl.String)
        tree = declared_taxonomy(empty.to_frame(), empty, "category", column, schema)
        nodes = {label.strip(): label for label in tree.labels}
        return lambda text: ("node", nodes[text]) if text in nodes else None, "node of its taxonomy"
    kind = attribute.kind
    if isinstance(source, TaxonomySource):
        return _leveled(texts, source), "node of its taxonomy"
    if kind is None:
        known = [text for text in texts if text is not None and not _STARS.fullmatch(text)]
        if all(_number(text) is not None for text in known):
            kind = "number"
        elif all(_date(text) is not None for text in known):
            kind = "date"
        else:
            kind = "category"
    if kind == "number":
        return _number, "number and no interval of numbers"
    if kind == "date":
        return _date, "date and no interval of dates"
    return _category, "value"


def _leveled(texts: Sequence[str | None], source: TaxonomySource) -> Callable[[str], Any]:
    """How to read nodes of a taxonomy that is made by rule."""
    if source.prefix is not None:
        return levels.prefixes(source, texts)
    return levels.units(source, _date) if source.dates is not None else levels.intervals(source, _number)


@lru_cache(maxsize=REMEMBERED)
def _number(text: str) -> Any:
    """`34`, `[20, 29]`, `[20, 30)`, `20-29`, `>=65`, `65+`, `{1, 2}`; None for anything else."""
    inner = _SET.fullmatch(text)
    if inner:
        read = [_exact(member) for member in _members(inner[1])]
        members = sorted({member for member in read if member is not None})
        if None in read or not members:
            return None
        return _range(members) if len(members) == 1 else ("set", tuple(members))
    single = _exact(text)
    if single is not None:
        return _range([single])
    found = re.fullmatch(rf"([\[(\]]?)\s*({NUMBER}){BETWEEN}({NUMBER})\s*([\])\[]?)", text)
    if found:
        low, high = _exact(found[2]), _exact(found[3])
        if low is None or high is None or low > high:
            return None
        open_low, open_high = found[1] in ("(", "]") and found[1] != "", found[4] in (")", "[") and found[4] != ""
        return _range([low, high]) if not (open_low or open_high) else ("between", low, high, open_low, open_high)
    found = re.fullmatch(rf"([<>≤≥]=?)\s*({NUMBER})|({NUMBER})\s*\+", text)
    if found:
        end = _exact(found[2] or found[3])
        return None if end is None else ("beyond", found[1] or ">=", end)
    return None


def _range(ends: Sequence[Any]) -> tuple[Any, ...]:
    return ("between", ends[0], ends[-1], False, False)


def _exact(text: str) -> Decimal | None:
    if not re.fullmatch(NUMBER, text.strip()):
        return None
    try:
        return Decimal(text.strip().replace(",", ".")).normalize() + 0
    except InvalidOperation:
        return None


def _date(text: str) -> Any:
    """`2024-03-31`, `2024-03`, `2024-Q1`, `2024`, `2020s` and intervals between them; None for anything else."""
    if re.fullmatch(DAY, text):
        return ("between", text, text) if levels.is_day(text) else None
    found = re.fullmatch(rf"[\[(]?\s*({DAY})\s*(?:,|;|\.\.|to|–|—)\s*({DAY})\s*[\])]?", text)
    if not found or found[1] > found[2] or not (levels.is_day(found[1]) and levels.is_day(found[2])):
        return None
    return ("between", found[1], found[2])


def _category(text: str) -> Any:
    """Any text is a value; `{a, b}` is a set, in whatever order."""
    inner = _SET.fullmatch(text)
    if not inner:
        return ("text", text)
    members = sorted(set(_members(inner[1])))
    return ("text", members[0]) if len(members) == 1 else ("set", tuple(members))


def _ordered(text: str, labels: dict[str, int]) -> Any:
    if text in labels:
        return ("between", labels[text], labels[text])
    inner = re.fullmatch(r"[\[{](.*)[\]}]", text, re.DOTALL)
    members = _members(inner[1]) if inner else []
    # Labels may hold commas themselves, so every comma is tried.
    for cut in range(1, len(members)):
        low, high = (", ".join(part) for part in (members[:cut], members[cut:]))
        if low in labels and high in labels and labels[low] <= labels[high]:
            return ("between", labels[low], labels[high])
    return None


def _members(text: str) -> list[str]:
    """The members of a set; one in quotes may hold commas."""
    found = []
    at = 0
    while at < len(text):
        part = _MEMBER.match(text, at)
        if part is None or part.end() == at:
            break
        member = part[1]
        found.append(member[1:-1].replace('""', '"') if member.startswith('"') and len(member) > 1 else member)
        at = part.end()
    return found


def _outside(key: tuple[Any, ...], attribute: Attribute) -> bool:
    if attribute.domain is None or attribute.taxonomy is not None or key[0] not in ("between", "set"):
        return False
    low, high = attribute.domain
    ends = key[1] if key[0] == "set" else key[1:3]
    try:
        if isinstance(low, str) or isinstance(high, str):
            return any(str(end) < str(low)[: len(str(end))] or str(end) > str(high) for end in ends)
        return any(not low <= float(end) <= high for end in ends)
    except (TypeError, ValueError):
        return False
