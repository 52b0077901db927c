"""Draws the synthetic hospital, column after column, from the tables of `profiles`.

Every kind of choice has a random stream of its own that is read in the order of the records. That is why the
table does not depend on how many records are drawn at a time, and why memory stays at the size of the result:
while drawing, a record is a few small numbers, and its texts are looked up at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import exact
from shoal.datasets import profiles
from shoal.datasets.profiles import AGES, DAYS, FIRST_DAY, ILLNESSES, OCCUPATIONS, PRICES, SEXES, Floats

CHUNK = 1 << 17

MISSING_ZIP = 0.015
MISSING_DIAGNOSIS = 0.005
MISSING_OCCUPATION = 0.03
MISSING_OCCUPATION_OLD = 0.08
OLD = 80
MISSING_COST = 0.01
MISSING_COST_UNBILLED = 0.26
UNBILLED_DAYS = 30

LONGEST_STAY = 365
LONG_STAYS = 0.004  # share of stays that drag on for reasons no column shows
DEAR_CASES = 0.012  # share of bills with a heavy-tailed surcharge
DEAREST = 60.0

FEMALE = 0.52

STREAMS = (
    *(
        "sex",
        "zip",
        "age",
        "admitted",
        "occupation",
        "diagnosis",
        "first",
        "last",
        "stay",
        "long",
        "cost",
        "dear",
    ),
    *("missing_zip", "missing_occupation", "missing_diagnosis", "missing_cost"),
)


def generate(n: int, seed: int, chunk: int = CHUNK) -> pl.DataFrame:
    """`n` records, drawn `chunk` at a time; the result does not depend on `chunk`."""
    drawing = _Drawing(seed)
    columns: dict[str, NDArray[Any]] = {
        "name": np.empty(n, np.uint32),
        "age": np.empty(n, np.int64),
        "sex": np.empty(n, np.uint8),
        "zip": np.empty(n, np.uint16),
        "admitted": np.empty(n, np.int32),
        "occupation": np.empty(n, np.uint8),
        "diagnosis": np.empty(n, np.uint8),
        "stay": np.empty(n, np.int64),
        "cost": np.empty(n, np.float64),
    }
    for start in range(0, n, chunk):
        stop = min(start + chunk, n)
        for label, values in drawing.next(stop - start).items():
            columns[label][start:stop] = values

    def texts(label: str, table: list[str]) -> pl.Series:
        # The code after the last stands for missing. Popping frees each array as soon as its column stands.
        return pl.Series([*table, None], dtype=pl.String).gather(columns.pop(label)).alias(label)

    days = columns.pop("admitted") + FIRST_DAY.astype("datetime64[D]").astype(np.int32)
    return pl.DataFrame(
        [
            texts("name", drawing.names),
            _record_numbers(n),
            pl.Series("age", columns.pop("age")),
            texts("sex", list(SEXES)),
            texts("zip", drawing.places.codes),
            pl.Series("admitted", days).cast(pl.Date),
            texts("occupation", list(OCCUPATIONS)),
            texts("diagnosis", [ill.name for ill in ILLNESSES]),
            pl.Series("stay", columns.pop("stay")),
            pl.Series("cost", columns.pop("cost")).fill_nan(None),
        ]
    )


class _Choice:
    """Draws from one of many discrete distributions, given by a row of weights each.

    The distribution functions are laid end to end, that of context c reaching from c to c + 1, so that one
    binary search answers for every context at once.
    """

    def __init__(self, weights: Floats) -> None:
        cumulative = np.cumsum(weights, axis=1)
        cumulative /= cumulative[:, -1:]
        self.width = weights.shape[1]
        self.flat = (cumulative + np.arange(len(weights))[:, None]).ravel()

    def draw(self, uniform: Floats, context: NDArray[np.integer] | int = 0) -> NDArray[np.int64]:
        # Just below one, so that adding the context cannot round into the next context's stretch.
        point = np.minimum(uniform, 1 - 2.0**-36) + context
        # On the right: what has weight zero covers no stretch and is never drawn.
        found = np.searchsorted(self.flat, point, side="right")
        position: NDArray[np.int64] = found - np.asarray(context, dtype=np.int64) * self.width
        return position


class _Drawing:
    """The tables and the random streams, and the next records out of them."""

    def __init__(self, seed: int) -> None:
        children = np.random.SeedSequence(seed).spawn(len(STREAMS))
        self.streams = {
            label: np.random.Generator(np.random.PCG64(s)) for label, s in zip(STREAMS, children, strict=True)
        }
        self.places = profiles.places()
        self.months = profiles.months()
        first, last = profiles.names()
        self.first_names, self.last_names = len(first[0]), len(last)
        self.names = [f"{given} {family}" for given_names in first for given in given_names for family in last]
        self.zip = _Choice(self.places.weights[None, :])
        self.age = _Choice(profiles.ages())
        self.day = _Choice(profiles.days())
        self.occupation = _Choice(profiles.occupations())
        self.diagnosis = _Choice(profiles.diagnoses())
        self.first = _Choice(_zipf(self.first_names, 0.6))
        self.last = _Choice(_zipf(self.last_names, 0.7))
        self.log_days = exact.log([ill.days for ill in ILLNESSES])
        self.spread = np.array([ill.spread for ill in ILLNESSES])
        self.fixed = np.array([ill.fixed for ill in ILLNESSES])
        self.daily = np.array([ill.daily for ill in ILLNESSES])

    def next(self, m: int) -> dict[str, NDArray[Any]]:
        """Codes and numbers of the next `m` records, missing ones among them."""
        sex = (self._uniform("sex", m) >= FEMALE).astype(np.int64)
        place = self.zip.draw(self._uniform("zip", m))
        area = self.places.areas[place].astype(np.int64)
        age = self.age.draw(self._uniform("age", m), area * len(SEXES) + sex)
        day = self.day.draw(self._uniform("admitted", m))
        occupation = self.occupation.draw(self._uniform("occupation", m), (area * len(SEXES) + sex) * len(AGES) + age)
        diagnosis = self.diagnosis.draw(self._uniform("diagnosis", m), (age * len(SEXES) + sex) * 12 + self.months[day])
        given = self.first.draw(self._uniform("first", m)) + sex * self.first_names
        family = self.last.draw(self._uniform("last", m))
        stay = self._stay(diagnosis, age)
        cost = self._cost(diagnosis, stay, area)

        unknown_job = np.where(age >= OLD, MISSING_OCCUPATION_OLD, MISSING_OCCUPATION)
        unbilled = np.where(day >= DAYS - UNBILLED_DAYS, MISSING_COST_UNBILLED, MISSING_COST)
        place[self._uniform("missing_zip", m) < MISSING_ZIP] = len(self.places.codes)
        occupation[self._uniform("missing_occupation", m) < unknown_job] = len(OCCUPATIONS)
        diagnosis[self._uniform("missing_diagnosis", m) < MISSING_DIAGNOSIS] = len(ILLNESSES)
        cost[self._uniform("missing_cost", m) < unbilled] = np.nan
        return {
            "name": given * self.last_names + family,
            "age": age,
            "sex": sex,
            "zip": place,
            "admitted": day,
            "occupation": occupation,
            "diagnosis": diagnosis,
            "stay": stay,
            "cost": cost,
        }

    def _stay(self, diagnosis: NDArray[np.int64], age: NDArray[np.int64]) -> NDArray[np.int64]:
        """Days in hospital: log-normal around the diagnosis, longer with age; zero is home the same day."""
        noise = self.streams["stay"].standard_normal(len(diagnosis))
        logarithm = self.log_days[diagnosis] + self.spread[diagnosis] * noise + 0.006 * np.maximum(age - 50, 0)
        stay = exact.exp(logarithm)
        long = self._uniform("long", len(diagnosis))
        # What is left of the uniform value below the threshold is uniform again, and says how long.
        stay *= np.where(long < LONG_STAYS, 4 + 8 * long / LONG_STAYS, 1.0)
        return np.minimum(np.floor(stay), LONGEST_STAY).astype(np.int64)

    def _cost(self, diagnosis: NDArray[np.int64], stay: NDArray[np.int64], area: NDArray[np.int64]) -> Floats:
        """The bill: treatment and days at the area's prices, some noise, and a Pareto tail of dear cases."""
        noise = exact.exp(0.25 * self.streams["cost"].standard_normal(len(diagnosis)))
        dear = self._uniform("dear", len(diagnosis))
        tail = np.minimum(exact.power(np.maximum(dear / DEAR_CASES, 1e-9), -1 / 1.6), DEAREST)
        surcharge = np.where(dear < DEAR_CASES, 1 + tail, 1.0)
        bill = (self.fixed[diagnosis] + self.daily[diagnosis] * (stay + 0.5)) * np.array(PRICES)[area]
        rounded: Floats = np.round(bill * noise * surcharge, 2)
        return rounded

    def _uniform(self, stream: str, m: int) -> Floats:
        return self.streams[stream].random(m)


def _zipf(count: int, exponent: float) -> Floats:
    return exact.power(np.arange(1, count + 1)[None, :], -exponent)


def _record_numbers(n: int) -> pl.Series:
    """R0000001 and so on, all of one length."""
    width = max(7, len(str(n)))
    numbers = pl.DataFrame({"number": pl.int_range(1, n + 1, eager=True)})
    padded = pl.col("number").cast(pl.String).str.zfill(width)
    return numbers.select(record=pl.concat_str(pl.lit("R"), padded)).to_series()
