"""A made-up table of visits: people with several rows, some of whose quasi-identifiers vary, and several diagnoses each."""

from __future__ import annotations

import numpy as np
import polars as pl

ILLNESSES = [
    ["flu", "lung", "*"],
    ["asthma", "lung", "*"],
    ["ulcer", "stomach", "*"],
    ["gastritis", "stomach", "*"],
    ["HIV", "blood", "*"],
    ["anaemia", "blood", "*"],
    ["fatigue", "mind", "*"],
    ["anxiety", "mind", "*"],
]
NAMES = [row[0] for row in ILLNESSES]
SCHEMA = {
    "pid": {"role": "person"},
    "age": {"role": "quasi", "within": "max", "taxonomy": {"intervals": [5, 20, 60]}},
    "zip": {"role": "quasi", "within": "most", "taxonomy": {"prefix": [3, 2, 0]}},
    "sex": {"role": "quasi", "taxonomy": {"rows": [["f", "*"], ["m", "*"]]}},
    "illness": {
        "role": "sensitive",
        "taxonomy": {"rows": ILLNESSES},
        "protect": ["lung"],
        "categories": {
            "secret": ["HIV", "anxiety"],
            "delicate": ["ulcer", "gastritis", "anaemia"],
            "plain": ["flu", "asthma", "fatigue"],
        },
    },
    "days": {"role": "sensitive", "kind": "number"},
}


def visits(persons: int, rows: int, seed: int = 0) -> pl.DataFrame:
    """`rows` visits of `persons` people, everybody with at least one; the age of who comes again may be one more."""
    rng = np.random.default_rng(seed)
    owner = np.concatenate([np.arange(persons), rng.integers(0, persons, rows - persons)])
    owner = owner[rng.permutation(rows)]
    age, sex = rng.integers(18, 90, persons), rng.choice(["f", "m"], persons)
    zips = np.array(
        [f"4{a}{b}" for a, b in zip(rng.integers(0, 5, persons), rng.integers(10, 30, persons), strict=True)]
    )
    usual = rng.integers(0, len(NAMES), persons)
    ill = np.where(rng.random(rows) < 0.6, usual[owner], rng.integers(0, len(NAMES), rows))
    moved = rng.random(rows) < 0.02
    return pl.DataFrame(
        {
            "pid": [f"P{i:05d}" for i in owner],
            "age": age[owner] + (rng.random(rows) < 0.2),
            "zip": np.where(moved, zips[rng.integers(0, persons, rows)], zips[owner]),
            "sex": sex[owner],
            "illness": [None if rng.random() < 0.01 else NAMES[i] for i in ill],
            "days": rng.integers(1, 12, rows),
        }
    )
