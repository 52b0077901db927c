"""Contract checks: what every algorithm promises with every policy, on tables that are easy to get wrong.

Whoever adds a model or an algorithm can run them; the tests run them on every combination there is.

>>> check("mondrian", Policy((KAnonymity(2),)), tables()["mixed"])
'released'
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from shoal.algorithms import names
from shoal.errors import ConfigError, InfeasibleError, InternalError, UnsupportedError
from shoal.microdata import Microdata
from shoal.models import MODELS, Model
from shoal.models.k_anonymity import KAnonymity
from shoal.models.persons import bound
from shoal.policy import Policy
from shoal.road import anonymize
from shoal.verifier import verify

ILLNESSES = [["flu", "lung", "*"], ["asthma", "lung", "*"], ["ulcer", "stomach", "*"], ["gastritis", "stomach", "*"]]


def check(algorithm: str, policy: Policy, data: Microdata) -> str:
    """`released`, or the sentence with which the combination was refused; a broken promise raises InternalError."""
    frame, codes = data.frame.clone(), data.codes.copy()
    try:
        release = anonymize(data, policy, algorithm=algorithm, refine=False, seed=5, order="keep")
    except (InfeasibleError, UnsupportedError) as refusal:
        return str(refusal)
    finally:
        _promise(data.frame.equals(frame) and np.array_equal(data.codes, codes), algorithm, "changed its input")
    labels = release.partition.labels
    _promise(len(labels) == data.n, algorithm, "lost records")
    _promise(len(np.unique(labels[labels >= 0])) == release.partition.classes, algorithm, "left empty classes")
    _promise(release.masked.height == data.frame.height, algorithm, "published another number of records")
    _promise(verify(release.masked, policy, data.schema).passed, algorithm, "released what fails verification")
    again = anonymize(data, policy, algorithm=algorithm, refine=False, seed=5, order="keep")
    _promise(again.masked.equals(release.masked), algorithm, "gave other bytes for the same seed")
    return "released"


def combinations() -> list[tuple[str, Model]]:
    """Every algorithm with one example of every model."""
    return [(name, model.examples()[0]) for name in names() for model in MODELS.values()]


def fitting(model: Model, data: Microdata) -> Policy:
    """2-anonymity and the model, on the first sensitive attribute that is of a kind it can be asked of."""
    if not model.per_attribute:
        return Policy((model,))
    for column in data.sensitive:
        try:
            bound(model, column, data.n)
        except ConfigError:
            continue
        on: dict[str, Any] = {"attribute": column.name}
        return Policy((KAnonymity(2), replace(model, **on)))
    raise ConfigError(f"no sensitive attribute suits {model}.")


@cache
def tables() -> dict[str, Microdata]:
    """Small tables: mixed attributes with ties and missing values, constant and single columns, one record, all equal."""
    random = np.random.default_rng(4)
    n = 36
    mixed = pl.DataFrame(
        {
            "age": [None if i % 11 == 0 else int(x) for i, x in enumerate(random.integers(20, 30, n))],
            "zip": [f"41{a}{b}" for a, b in random.integers(0, 3, (n, 2))],
            "job": [
                None if i % 13 == 0 else ("nurse", "clerk", "judge")[x] for i, x in enumerate(random.integers(0, 3, n))
            ],
            "illness": [ILLNESSES[x][0] for x in random.integers(0, 4, n)],
            "income": random.integers(1, 7, n) * 10,
        }
    )
    return {
        "mixed": _encode(mixed),
        "constant": _encode(mixed.with_columns(age=pl.lit(30), zip=pl.lit("4100"), job=pl.lit("nurse"))),
        "one column": _encode(mixed.drop("zip", "job")),
        "one record": _encode(mixed[1:2]),
        "all equal": _encode(pl.concat([mixed[1:2]] * 9)),
    }


def _encode(frame: pl.DataFrame) -> Microdata:
    schema = {
        "age": {"role": "quasi", "kind": "number"},
        "zip": {"role": "quasi", "taxonomy": {"prefix": [3, 0]}},
        "job": {"role": "quasi"},
        "illness": {
            "role": "sensitive",
            "taxonomy": {"rows": ILLNESSES},
            "protect": ["lung"],
            "categories": {"secret": ["ulcer", "gastritis"], "plain": ["flu", "asthma"]},
        },
        "income": {"role": "sensitive"},
    }
    return Microdata.from_frame(frame, {name: schema[name] for name in frame.columns})


def _promise(kept: bool, algorithm: str, what: str) -> None:
    if not kept:
        raise InternalError(f"{algorithm} {what}")
