"""What a class publishes, written straight from docs/algorithms.md#recoding: one class at a time, from its raw values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

EPOCH = date(1970, 1, 1)


def number(value: Any) -> str:
    """7, not 7.0."""
    if isinstance(value, date):
        return value.isoformat()
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def interval(values: Sequence[Any]) -> str | None:
    """A range, one value, missing, or a star where missing meets a number."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    if len(known) < len(values):
        return "*"
    low, high = min(known), max(known)
    return number(low) if low == high else f"[{number(low)}, {number(high)}]"


def ranked(values: Sequence[Any], order: Sequence[str]) -> str | None:
    """The same for labels in an order."""
    if None in values:
        return None if set(values) == {None} else "*"
    places = sorted(order.index(value) for value in values)
    low, high = order[places[0]], order[places[-1]]
    return low if low == high else f"[{low}, {high}]"


def node(values: Sequence[Any], parents: Mapping[str, str], root: str) -> str | None:
    """The lowest label above all values; missing hangs under the root."""
    if set(values) == {None}:
        return None
    if None in values:
        return root
    chains = []
    for value in values:
        chain = [value]
        while chain[-1] in parents:
            chain.append(parents[chain[-1]])
        chains.append(chain)
    return next(label for label in chains[0] if all(label in chain for chain in chains))


def collection(values: Sequence[Any]) -> str | None:
    """The set of values, missing last."""
    names = sorted({value for value in values if value is not None})
    if not names:
        return None
    if None in values:
        names.append("∅")
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def ends(values: Sequence[Any], column: Sequence[Any]) -> tuple[Any, Any]:
    """Both ends of a range; missing among numbers says nothing, so the range is that of the whole column."""
    if set(values) == {None}:
        return None, None
    known = [value for value in (column if None in values else values) if value is not None]
    return min(known), max(known)


def middle(values: Sequence[Any], column: Sequence[Any]) -> Any:
    """Half way between the ends."""
    low, high = ends(values, column)
    return None if low is None else mean([low, high])


def mean(values: Sequence[Any]) -> Any:
    """The mean of what is known."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    if isinstance(known[0], date):
        days = sum((value - EPOCH).days for value in known)
        return EPOCH + timedelta(days=round(days / len(known)))  # half a day goes to the even one
    return math.fsum(known) / len(known)


def median(values: Sequence[Any], order: Sequence[str]) -> str | None:
    """The lower median of what is known."""
    places = sorted(order.index(value) for value in values if value is not None)
    return order[places[(len(places) - 1) // 2]] if places else None


def mode(values: Sequence[Any], codes: Sequence[str]) -> str | None:
    """The most frequent value; of several, the one with the smallest code."""
    counted = Counter(value for value in values if value is not None)
    return min(counted, key=lambda value: (-counted[value], codes.index(value))) if counted else None
