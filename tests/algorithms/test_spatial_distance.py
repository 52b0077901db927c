"""SpatialDistance: the paper's own examples, the running example, and the naive twin."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference.spatial import category_distances
from tests.reference.spatial import spatial_distance as naive
from tests.tables import random_table, rt7

import shoal
from shoal.algorithms import run
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.space import Interval


def groups_of(partition: shoal.Partition) -> set[frozenset[int]]:
    return {frozenset(members.tolist()) for members in partition.members()}


def fig1(sex: str, row: tuple[int, int, int]) -> list[list[str]]:
    japan, korea, china = row
    own = [[sex, "Japan"]] * japan + [[sex, "Korea"]] * korea + [[sex, "China"]] * china
    other = "Female" if sex == "Male" else "Male"
    return own + [[other, "Japan"], [other, "Korea"], [other, "China"]] * 3


def test_g29_distances_of_the_first_figure() -> None:
    rows = fig1("Male", (5, 1, 5))
    found = category_distances(rows, [0, 1], {0: {"Male"}, 1: {"Japan"}}, 2, "dense")
    assert found[0]["Female"] == 1.0
    assert found[1]["Korea"] == pytest.approx(1 / 2)
    assert found[1]["China"] == pytest.approx(1 / 4)


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
