"""Every way to publish has a report, for both readers: what cannot be told is called not known, with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.report.test_canaries import Reader
from tests.report.test_report import words

import shoal
from shoal.report import findings_of, page

QUICK: dict[str, Any] = {"algorithm": "mondrian", "refine": False}


def a_frame(rows: int = 60) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "town": rng.choice(["Ash", "Birch", "Cole", "Dale + Elm"], rows),
            "grade": rng.choice(["low", "mid", "high"], rows),
            "day": pl.Series([f"2024-0{1 + i % 9}-1{i % 7}" for i in range(rows)]).str.to_date(),
            "illness": rng.choice(["flu", "cold", "ulcer"], rows),
            "wage": rng.integers(10, 99, rows) * 100,
        }
    ).with_columns(age=pl.when(pl.arange(0, rows) % 17 == 0).then(None).otherwise(pl.col("age")))


PLAIN: dict[str, Any] = {"age": "quasi", "town": "quasi", "grade": "other"}
SECRET: dict[str, Any] = {"age": "quasi", "town": "quasi", "illness": "sensitive"}
WAYS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "no secret": (PLAIN, {"k": 3}, QUICK),
    "ordered labels": ({"grade": {"role": "quasi", "order": ["low", "mid", "high"]}, "age": "quasi"}, {"k": 4}, QUICK),
    "dates as ranges": ({"day": {"role": "quasi", "kind": "date"}, "age": "quasi"}, {"k": 4}, QUICK),
    "a taxonomy made by itself": ({"town": {"role": "quasi", "taxonomy": "auto"}, "age": "quasi"}, {"k": 4}, QUICK),
    "nested intervals": (
        {"age": {"role": "quasi", "taxonomy": {"intervals": [5, 20, 60]}}, "town": "quasi"},
        {"k": 4},
        QUICK,
    ),
    "two columns": (SECRET, {"k": 4}, {**QUICK, "intervals": "columns"}),
    "midpoints": (SECRET, {"k": 4}, {**QUICK, "intervals": "midpoint"}),
    "averages": (
        {"age": "quasi", "wage": "quasi", "illness": "sensitive"},
        {"k": 4},
        {"algorithm": "mdav", "recode": "microaggregate"},
    ),
    "blanked cells": (SECRET, {"k": 4}, {**QUICK, "recode": "suppress"}),
    "left out": (SECRET, {"k": 5}, {**QUICK, "suppress": 0.2, "suppressed": "drop"}),
    "one class": (SECRET, {"k": 60}, QUICK),
    "close to the table": (SECRET, {"k": 3, "t_closeness": {"t": 0.5}, "l_diversity": {"l": 2}}, QUICK),
    "weights": ({**SECRET, "age": {"role": "quasi", "weight": 3.0}}, {"k": 4}, QUICK),
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_every_way_to_publish_has_a_report(way: str) -> None:
    schema, policy, options = WAYS[way]
    frame = a_frame().select(sorted(schema))
    release = shoal.anonymize(frame, policy, schema=schema, **options)
    assert (release.measures.suppressed > 0) == (way == "left out")
    for who in ("owner", "public"):
        text = page(findings_of(release, who, bounds=way in ("weights", "left out", "averages")))
        told = words(text)
        assert "keeps its promises" in told and "nan" not in told and "None" not in told.replace("None was", "")
        assert {"script", "img"} & Reader(text).tags == set()
        if way == "averages":
            assert "average or most frequent value of its class 100 %" in told
        if who == "owner" and way in ("left out", "averages"):
            assert "The proven least is not known" in told or "cannot be measured" in told
        if who == "owner" and way == "weights":
            assert "can lose less than" in told


def test_tokens_count_persons_in_both() -> None:
    from tests.visits import SCHEMA, visits

    schema = {**SCHEMA, "pid": {"role": "person", "publish": "token"}}
    release = shoal.anonymize(visits(40, 90), {"k": 3}, schema=schema, **QUICK)
    for who in ("owner", "public"):
        told = words(page(findings_of(release, who, bounds=False)))
        assert "90 rows of 40 persons" in told and "persons look the same, at least" in told


def test_where_persons_are_not_told_the_public_counts_rows() -> None:
    from tests.visits import SCHEMA, visits

    release = shoal.anonymize(visits(40, 90), {"k": 3}, schema=SCHEMA, **QUICK)
    smallest = int(release.masked.group_by("age", "zip", "sex").len()["len"].min())  # type: ignore[arg-type]
    assert f"records look the same, at least {smallest}" in words(page(findings_of(release, "public")))


def test_persons_with_several_values_are_counted_once_by_attacks() -> None:
    """Who has three of the values that a class makes probable is one person, and no guess is more than certain."""
    from tests.visits import SCHEMA, visits

    schema = {**SCHEMA, "pid": {"role": "person", "publish": "token"}}
    release = shoal.anonymize(visits(60, 240), {"k": 3}, schema=schema, **QUICK)
    found = findings_of(release, "owner", bounds=False)
    table = found.published.table
    for exposure in found.published.attacks:
        assert 0 <= exposure.exposed <= exposure.total == 60
        assert exposure.attack == "skewness" or exposure.worst <= 1
    masked, of = release.masked, [one for one in found.published.attacks if one.attack == "skewness"]
    for exposure in of:
        name = str(exposure.attribute)
        pairs = masked.select("pid", "age", "zip", "sex", name).drop_nulls(name).unique()
        sizes = masked.select("pid", "age", "zip", "sex", name).drop_nulls(name)
        inside = sizes.group_by("age", "zip", "sex").agg(knowing=pl.col("pid").n_unique())
        whole, all_knowing = pairs.group_by(name).agg(everywhere=pl.col("pid").n_unique()), sizes["pid"].n_unique()
        cells = pairs.group_by("age", "zip", "sex", name).agg(here=pl.col("pid").n_unique(), who=pl.col("pid"))
        cells = cells.join(inside, on=["age", "zip", "sex"], nulls_equal=True).join(whole, on=name)
        hit = cells.filter(pl.col("here") / pl.col("knowing") > 2 * pl.col("everywhere") / all_knowing * (1 + 1e-9))
        assert exposure.exposed == hit.explode("who")["who"].n_unique()
    assert table.n == 60
    intruders = found.intruders
    assert intruders and all(one.persons == 60 and one.fewest >= 3 for one in intruders)
    assert not isinstance(found.queries, str) and found.queries is not None
