"""Codes that mean "no value" among numbers and dates, told by where they lie and how often they occur.

-99 among ages and 9999 among years are codes by habit; whether they are here is told by the gap between them and all other
values, or by their standing out where the others thin out. A number that merely happens to be 99 has neighbours.

>>> import polars as pl
>>> number_codes(pl.Series([18, 35, 61, 999, 44, 999, 27, 52]))[0]
[999.0]
>>> number_codes(pl.Series([97, 98, 99, 96, 95]))[0]
[]
>>> number_codes(pl.Series([1, 2, 3, 4] * 20 + [9] * 5))[0], number_codes(pl.Series([1, 2, 3, 4] * 20 + [7] * 5))[0]
([9.0], [])
"""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl

# What surveys, hospitals and programs write where they have nothing to write.
NEGATIVE = (-7, -8, -9, -77, -88, -97, -98, -99, -777, -888, -997, -998, -999, -9997, -9998, -9999)
POSITIVE = (7, 8, 9, 77, 88, 97, 98, 99, 777, 888, 997, 998, 999, 7777, 8888, 9997, 9998, 9999, 99.9, 999.9, 9999.9)
DAYS = (
    date(1111, 11, 11),
    date(1753, 1, 1),
    date(1800, 1, 1),
    date(1899, 12, 30),
    date(1899, 12, 31),
    date(1900, 1, 1),
    date(1970, 1, 1),
    date(2099, 12, 31),
    date(2100, 12, 31),
)
NEVER = (2500, 3000, 9999)  # years that no table means
GAP = 0.5  # of the width of all other values: a code lies farther away than this
NEAR = 2  # and farther than this, however narrow the others are
SPIKE = 5  # times as frequent as any of its neighbours: 99 where ages go up to 97
RARE = 0.002  # codes that stand alone occur in this share of the records at least
SCALE = 6  # answers from 0 to this one leave 7, 8 and 9 for "none"
SCALE_SHARE = 0.01  # which then occur in this share at least
YEARS = 3 * 365  # days between a code and the nearest other date


def number_codes(series: pl.Series) -> tuple[list[float], str]:
    """The codes among a column's numbers, and why they are thought to be some."""
    counted = series.drop_nulls().cast(pl.Float64).alias("value").value_counts(name="records").sort("value")
    values, counts = counted["value"].to_numpy(), counted["records"].to_numpy()
    known = np.isin(values, [*NEGATIVE, *POSITIVE])
    others, often = values[~known], counts[~known]
    if len(others) < 2 or not known.any():
        return [], ""
    low, high, total = float(others.min()), float(others.max()), int(counts.sum())
    far = max(float(NEAR), GAP * (high - low))
    edge = often[others >= np.quantile(others, 0.9)]
    found = []
    for value, count in zip(values[known].tolist(), counts[known].tolist(), strict=True):
        if value < 0:
            apart = low >= 0 and (count > 1 or value <= -99)
            if apart or (low - value > far and count >= max(2, RARE * total)):
                found.append(value)
        elif value <= 9:
            ends = 9 in values  # a lone 7 or 8 is as likely one more answer, or seven days
            if ends and high <= SCALE and low >= 0 and value - high > NEAR and count >= max(3, SCALE_SHARE * total):
                found.append(value)
            else:
                high = max(high, value)  # an answer like the others
        elif value > high:
            alone = value - high > far and count >= max(2, RARE * total)
            if alone or (count >= SPIKE and count >= SPIKE * int(edge.max())):
                found.append(value)
            else:
                high = value
    return found, _why([f"{value:g}" for value in found])


def day_codes(series: pl.Series) -> tuple[pl.Series, str]:
    """Which records hold a date that stands for none, and why that is thought."""
    days = series.cast(pl.Date)
    counted = days.drop_nulls().alias("day").value_counts(name="records").sort("day")
    never = counted["day"].dt.year().is_in(NEVER) | (counted["day"].dt.year() == DAYS[0].year)
    known = counted["day"].is_in(list(DAYS))
    others = counted.filter(~never & ~known)
    if others.height < 2:
        return pl.Series(series.name, [False] * len(series)), ""
    low, high, most = others["day"][0], others["day"][-1], int(others["records"].to_numpy().max())
    found = []
    for day, count, certain in zip(counted["day"], counted["records"], never, strict=True):
        outside = day < low or day > high
        away = min(abs((day - low).days), abs((day - high).days)) > YEARS
        if certain or (day in DAYS and outside and count > 2 and (away or count >= SPIKE * most)):
            found.append(day)
    return days.is_in(found).fill_null(False), _why([day.isoformat() for day in found])


def _why(codes: list[str]) -> str:
    if not codes:
        return ""
    which, one = ", ".join(codes), len(codes) == 1
    return (
        f"{which} {'lies' if one else 'lie'} far from all other values and {'is' if one else 'are'} taken for no value."
    )
