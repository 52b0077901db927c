"""Which rule suits a sensitive attribute: different values in each class, a range of numbers, or none that is worth its price."""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal.models import Model, Sensitive
from shoal.models.k_e import KE
from shoal.models.p_sensitive import PSensitive
from shoal.models.persons import Crowd, bound
from shoal.persons import Persons
from shoal.profiling import FEW_VALUES, Facts, percent
from shoal.suggesting.found import Diversity

K, P = 5, 3  # what is suggested: nobody among fewer than five, with three different secrets
SLACK = 2
"""A rule may make the average class this many times k, at best, before it is no longer suggested: about twice the loss."""


def diversity(facts: Facts, k: int, people: Persons | None) -> Diversity:
    """The largest p up to 3 that leaves classes of a bearable size (docs/models.md#condition-2, docs/persons.md); of numbers
    with many values the range that the classes span.
    """
    records, name = len(facts.series) if people is None else people.count, facts.series.name
    if facts.kind == "number" and facts.distinct > FEW_VALUES and "code" not in facts.words:
        return _range(facts, k, people, records)
    column, classes = _column(facts), 0
    for p in range(min(P, k), 1, -1):
        classes = _classes(PSensitive(p), column, people, records)
        if classes * SLACK * k >= records:
            return Diversity(name, p, f"Its values allow up to {classes:,} classes with {p} different ones each.")
    if not classes:
        return Diversity(name, 1, "No rule on its classes: its values do not differ.")
    rare = percent(1 - int(facts.counts.max(initial=0)) / max(1, int(facts.counts.sum())))
    why = (
        f"No rule on its classes: only {rare} have another than its most frequent value, and p = 2 would leave no more than "
        f"{classes:,} classes, of {records // classes:,} {'records' if people is None else 'persons'} instead of {k}."
    )
    return Diversity(name, 1, why)


def _range(facts: Facts, k: int, people: Persons | None, records: int) -> Diversity:
    """Half of what lies between the quarters of the table, rounded down: amounts nearer than that say the same of everybody."""
    name = facts.series.name
    numbers = np.sort(facts.series.drop_nulls().cast(pl.Float64).to_numpy())
    low, high = (float(numbers[len(numbers) * quarter // 4]) for quarter in (1, 3))
    e = _plain((high - low) / 2)
    if e <= 0:
        return Diversity(name, 1, "No rule on its classes: half of its values are one and the same.")
    classes = _classes(KE(e), _column(facts), people, records)
    if classes * SLACK * k < records:
        return Diversity(
            name, 1, f"No rule on its classes: a range of {e:g} would leave no more than {classes:,} of them."
        )
    why = (
        f"Amounts are hardly ever equal, so that different ones hide nothing: in every class they span at least {e:g}, half of "
        "what lies between the lower and the upper quarter of the table."
    )
    return Diversity(name, 1, why, e)


def _plain(number: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is not above it."""
    if number <= 0:
        return 0.0
    digits = f"{number:e}"
    first, power = float(digits[: digits.index("e")]), int(digits[digits.index("e") + 1 :])
    return float(f"{5 if first >= 5 else 2 if first >= 2 else 1}e{power}")


def _column(facts: Facts) -> Sensitive:
    series = facts.series.cast(pl.Float64) if facts.kind == "number" else facts.series
    codes = (series.rank("dense").cast(pl.Int64) - 1).fill_null(-1).to_numpy().astype(np.int32)
    values = series.drop_nulls().unique().sort()
    numbers = values.to_numpy().astype(np.float64) if facts.kind == "number" else None
    return Sensitive(facts.series.name, codes, tuple(str(i) for i in range(len(values))), numbers)


def _classes(model: Model, column: Sensitive, people: Persons | None, records: int) -> int:
    """How many classes satisfy it at most."""
    rule = (
        model.bind(column, records)
        if people is None
        else bound(model, Crowd(column, people.of_row, people.count), people.count)
    )
    return 0 if rule.infeasible() else rule.max_classes()
