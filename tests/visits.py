"""A made-up table of visits: people with several rows, some of whose quasi-identifiers vary, and several diagnoses each.

`accepted` judges a release of it by the definitions of docs/persons.md alone, through `tests.reference.persons`.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
from tests.reference import persons as reference
from tests.reference.models import About

import shoal
from shoal.models import MODELS
from shoal.policy import Policy

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


def abouts(frame: pl.DataFrame) -> dict[str, About]:
    """What the naive models know of the two sensitive columns."""
    parent = {a: b for row in ILLNESSES for a, b in pairwise(row)}
    categories = tuple((name, tuple(values)) for name, values in SCHEMA["illness"]["categories"].items())
    days = sorted(frame["days"].unique().to_list())
    return {
        "illness": About(parent=parent, protect=("lung",), categories=categories),
        "days": About(number={day: float(day) for day in days}, rank={day: i for i, day in enumerate(days)}),
    }


def accepted(
    frame: pl.DataFrame, masked: pl.DataFrame, policy: Policy, masks: tuple[str, ...] = ("age", "zip", "sex")
) -> None:
    """Judge a masked table in the order of its original (`order="keep"`), by the definitions alone."""
    assert masked.height == frame.height
    assert "pid" not in masked.columns
    quasi = [name for name in masked.columns if name in masks]
    owner = frame["pid"].to_list()
    by_class: dict[tuple, dict[str, None]] = {}
    home: dict[str, tuple] = {}
    for row, values in enumerate(masked.select(quasi).rows()):
        assert home.setdefault(owner[row], values) == values, "the rows of a person differ"
        by_class.setdefault(values, {})[owner[row]] = None
    about = abouts(frame)
    for model in policy.models:
        if not model.per_attribute:
            assert all(len(members) >= model.k for members in by_class.values())
            continue
        column = masked[model.attribute].to_list()
        assert column == frame[model.attribute].to_list()
        people: dict[str, list] = {}
        for row, person in enumerate(owner):
            people.setdefault(person, []).append(column[row])
        parameters = {key: value for key, value in model.parameters().items() if key != "attribute"}
        judge = getattr(reference, model.name)
        table = list(people.values())
        for members in by_class.values():
            own = [people[person] for person in members]
            assert judge(own, table, about[model.attribute], **parameters), (model, own)


# What the example asks for is more than these visits have: means span nine days, and half of all people have had their lungs.
POSSIBLE = {"k_e": {"e": 3.0}, "personalized": {"breach": 0.8}}


def policies() -> list[Policy]:
    """One example of every model, on the attribute it can be asked of."""
    found = [Policy((shoal.KAnonymity(3),))]
    for kind in MODELS.values():
        if kind.name == "k_anonymity":
            continue
        model = kind.examples()[0]
        attribute = "days" if model.persons == "mean" else "illness"
        asked = {**model.parameters(), **POSSIBLE.get(kind.name, {}), "attribute": attribute}
        found.append(Policy((shoal.KAnonymity(3), kind(**asked))))
    return found
