"""Tables that many tests share, made through the public interface alone."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import InputError
from shoal.microdata import Microdata

ADULT_TAXONOMIES = ("education", "marital-status", "native-country", "occupation", "race", "sex", "workclass")
ADULT_QUASI = ("age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country")
"""The eight quasi-identifiers of the experiments of Truta & Campan 2007."""

UNBALANCED = [
    ["nurse", "care", "service", "*"],
    ["midwife", "care", "service", "*"],
    ["waiter", "service", "*"],
    ["clerk", "office", "*"],
    ["judge", "office", "*"],
    ["farmer", "*"],
]
ILLNESSES = [
    ["flu", "lung", "body", "*"],
    ["asthma", "lung", "body", "*"],
    ["ulcer", "stomach", "body", "*"],
    ["gastritis", "stomach", "body", "*"],
    ["HIV", "blood", "body", "*"],
    ["anxiety", "mind", "*"],
    ["fatigue", "mind", "*"],
]


def rt7() -> Microdata:
    """The running example (docs/papers.md#the-running-example): zip with five mask levels, gender with one, age a number."""
    frame = pl.DataFrame(
        {
            "age": [25, 40, 35, 55, 33, 42, 38],
            "zip": ["41076", "41935", "12345", "33333", "41733", "41076", "41933"],
            "gender": ["Male", "Female", "Male", "Male", "Female", "Male", "Male"],
        }
    )
    schema = {
        "age": {"role": "quasi"},
        "zip": {"role": "quasi", "taxonomy": {"prefix": [4, 3, 2, 1, 0]}},
        "gender": {"role": "quasi", "taxonomy": {"rows": [["Male", "*"], ["Female", "*"]]}},
    }
    return Microdata.from_frame(frame, schema)


def random_table(
    seed: int,
    n: int,
    *,
    sensitive: int = 1,
    missing: float = 0.1,
    duplicates: float = 0.3,
    values: int = 7,
    weights: bool = True,
) -> Microdata:
    """Numbers with ties, an unbalanced and a prefix taxonomy, a hierarchy-free category, a constant column.

    `duplicates` is the share of records that copy the quasi-identifiers of another one, `missing` the share of empty
    cells. The first sensitive attribute (`illness`) has a taxonomy, protected nodes and categories and at most
    `values` different values with skewed frequencies; the second (`income`) is a number.
    """
    random = np.random.default_rng(seed)
    jobs = [row[0] for row in UNBALANCED]
    columns: dict[str, list[Any]] = {
        "age": (17 + random.integers(0, 12, n) * 3).tolist(),
        "height": (random.integers(0, 40, n) / 8 + 1.0).tolist(),
        "job": [jobs[i] for i in random.integers(0, len(jobs), n)],
        "zip": [f"{a}{b}{c}" for a, b, c in random.integers(0, 4, (n, 3))],
        "colour": [f"c{i}" for i in np.minimum(random.geometric(0.35, n), 9)],
        "country": ["here"] * n,
    }
    for i in np.flatnonzero(random.random(n) < duplicates):
        source = int(random.integers(0, n))
        for column in columns.values():
            column[i] = column[source]
    for name in ("age", "job", "colour"):
        _punch_holes(columns[name], random, missing)
    secrets = [row[0] for row in ILLNESSES[: max(2, values)]]
    odds = 1.0 / np.arange(1, len(secrets) + 1)
    columns["illness"] = [secrets[i] for i in random.choice(len(secrets), n, p=odds / odds.sum())]
    columns["income"] = (1000 * random.integers(1, max(2, values) + 1, n)).tolist()
    for name in ("illness", "income")[:sensitive]:
        _punch_holes(columns[name], random, missing / 2)
    schema: dict[str, Any] = {
        "age": {"role": "quasi", "domain": [0, 120] if seed % 2 else None},
        "height": {"role": "quasi"},
        "job": {"role": "quasi", "taxonomy": {"rows": UNBALANCED}},
        "zip": {
            "role": "quasi",
            "taxonomy": {"prefix": [2, 1, 0]},
            "weight": 2.0 if weights and seed % 3 == 0 else 1.0,
        },
        "colour": {"role": "quasi"},
        "country": {"role": "quasi"},
        "illness": {
            "role": "sensitive" if sensitive >= 1 else "other",
            "taxonomy": {"rows": ILLNESSES},
            "protect": ["lung", "mind"],
            "categories": {
                "secret": ["HIV", "anxiety"],
                "delicate": ["ulcer", "gastritis", "fatigue"],
                "plain": ["flu", "asthma"],
            },
        },
        "income": {"role": "sensitive" if sensitive >= 2 else "other", "accept": "drawn by chance"},
    }
    return Microdata.from_frame(pl.DataFrame(columns, strict=False), schema)


def _punch_holes(column: list[Any], random: np.random.Generator, share: float) -> None:
    # The first record keeps its values: a column of nothing but holes is refused.
    for i in np.flatnonzero(random.random(len(column)) < share):
        if i > 0:
            column[i] = None


@cache
def adult(
    n: int | None = None,
    quasi: tuple[str, ...] = ADULT_QUASI,
    sensitive: tuple[str, ...] = (),
    seed: int = 0,
) -> Microdata | None:
    """A random sample of the complete Adult records (all of them without `n`), or None where the file is absent."""
    from shoal import datasets
    from shoal.datasets.public import adult_taxonomy_path

    try:
        table = datasets.adult("train")
        schema: dict[str, Any] = {name: {"role": "quasi"} for name in quasi}
        for name in ADULT_TAXONOMIES:
            if name in quasi:
                schema[name]["taxonomy"] = str(adult_taxonomy_path(name))
    except InputError as reason:
        print(f"Adult is not here: {reason}")
        return None
    schema |= {name: {"role": "sensitive"} for name in sensitive}
    if n is not None:
        table = table[np.sort(np.random.default_rng(seed).permutation(table.height)[:n])]
    return Microdata.from_frame(table.select([*quasi, *sensitive]), schema)
