"""SpatialDistance: the paper's own examples, the running example, and the naive twin."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from tests.reference.spatial import category_distances
from tests.reference.spatial import spatial_distance as naive
from tests.tables import random_table, rt7

import shoal
from shoal.algorithms import run
from shoal.algorithms.spatial_distance import distances
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.space import Interval


def groups_of(partition: shoal.Partition) -> set[frozenset[int]]:
    return {frozenset(members.tolist()) for members in partition.members()}


FIGURE_1 = {
    ("Male", "Japan"): 5,
    ("Male", "Korea"): 5,
    ("Male", "China"): 1,
    ("Female", "Japan"): 3,
    ("Female", "China"): 6,
}
"""The contingency table of the paper's Fig. 1; no woman is from Korea."""


def test_g29_distances_of_the_first_figure() -> None:
    rows = [pair for pair, count in FIGURE_1.items() for _ in range(count)]
    frame = pl.DataFrame({"gender": [gender for gender, _ in rows], "nationality": [nation for _, nation in rows]})
    data = Microdata.from_frame(frame, {"gender": {"role": "quasi"}, "nationality": {"role": "quasi"}})
    found = distances(data, rows.index(("Male", "Japan")), k=3)
    expected = {
        ("Male", "Japan"): 0.0,
        ("Male", "Korea"): 1 / 4,
        ("Male", "China"): 1 / 2,
        ("Female", "Japan"): 1.0,
        ("Female", "China"): 3 / 2,
    }
    assert dict(zip(rows, found.tolist(), strict=True)) == expected
    # From a woman from Japan Korea (0 of 9) and China (6 of 9) are equally far from 3 of 9: a tie.
    found = distances(data, rows.index(("Female", "Japan")), k=3)
    assert found[rows.index(("Female", "China"))] == 1 / 2
    assert found[rows.index(("Male", "Korea"))] == 3 / 2


def test_the_first_class_of_the_first_figure_is_the_nearest_records() -> None:
    rows = sorted((pair for pair, count in FIGURE_1.items() for _ in range(count)), key=lambda pair: pair[0] != "Male")
    frame = pl.DataFrame({"gender": [gender for gender, _ in rows], "nationality": [nation for _, nation in rows]})
    schema = {"gender": {"role": "quasi"}, "nationality": {"role": "quasi"}}
    data = Microdata.from_frame(frame, schema)
    release = shoal.anonymize(data, {"k": 3}, algorithm="spatial_distance", refine=False, order="keep")
    found = run("spatial_distance", data, data.rules(Policy((shoal.KAnonymity(3),))))
    assert groups_of(found) == {frozenset(group) for group in naive(data.codes.tolist(), {}, 3)}
    assert release.masked.height == 20


def test_g30_education_is_scaled_by_what_came_before() -> None:
    rows = [["x", v] for v, count in (("HS", 9), ("Bachelor", 4), ("Master", 8), ("PhD", 2)) for _ in range(count)]
    rows = [[a, n, v] for (a, v) in rows for n in ("J",)]
    rows += [["x", "K", "HS"]] * 15 + [["x", "C", "HS"]] * 10 + [["x", "J", "HS"]] * 2
    found = category_distances(rows, [1, 2], {1: {"J"}, 2: {"HS"}}, 2, "dense")
    least = min(distance for distance in found[1].values() if distance)
    assert found[2]["PhD"] == pytest.approx(least / 3)
    assert found[2]["Bachelor"] == pytest.approx(least / 9)
    assert found[2]["Master"] == pytest.approx(least / 27)


@pytest.mark.parametrize(
    ("k", "groups", "ncp"),
    [(2, [{0, 2}, {4, 1}, {6, 5, 3}], 0.2698), (3, [{0, 2, 6, 3}, {4, 1, 5}], 0.5746)],
)
def test_g16_running_example(k: int, groups: list[set[int]], ncp: float) -> None:
    data = rt7()
    found = run("spatial_distance", data, data.rules(Policy((shoal.KAnonymity(k),))))
    assert groups_of(found) == {frozenset(group) for group in groups}
    assert measure(data, found).ncp_distinct == pytest.approx(ncp, abs=5e-5)


def scaled(data: Microdata) -> dict[int, list[float | None]]:
    numbers: dict[int, list[float | None]] = {}
    for a, domain in enumerate(data.domains):
        if isinstance(domain, Interval) and domain.labels is None:
            spread = float(domain.values[-1] - domain.values[0]) if len(domain.values) > 1 else 0.0
            values = domain.values / spread if spread else np.zeros(len(domain.values))
            numbers[a] = [None if c == domain.missing_code else float(values[c]) for c in data.codes[:, a]]
    return numbers


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("ties", "centre"), [("dense", "set"), ("sequential", "seed")])
def test_equals_the_naive_twin(seed: int, ties: str, centre: str) -> None:
    data = random_table(seed, n=23 + seed)
    k = 2 + seed % 4
    found = run(
        "spatial_distance", data, data.rules(Policy((shoal.KAnonymity(k),))), options={"ties": ties, "centre": centre}
    )
    expected = naive(data.codes.tolist(), scaled(data), k, ties, centre)
    assert groups_of(found) == {frozenset(group) for group in expected}


@pytest.mark.parametrize("seed", range(6))
def test_other_policies_hold(seed: int) -> None:
    data = random_table(seed, n=60, sensitive=2)
    policy = shoal.KAnonymity(3) & shoal.PSensitive(2) & shoal.TCloseness(0.6, "illness")
    rules = data.rules(policy)
    found = run("spatial_distance", data, rules)
    assert rules.deficits(found.labels, found.classes).max() == 0
