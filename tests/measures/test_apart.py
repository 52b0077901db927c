"""The bound by distances: as a naive twin says, never above the optimum, and certified record by record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from tests.measures.test_bounds import MEASURES, best_of
from tests.reference.apart import number_of
from tests.reference.bounds import optimum
from tests.tables import random_table

import shoal
from shoal.algorithms import run
from shoal.measures.apart import LARGEST, WAYS, Prospect, Way, prospect
from shoal.measures.bounds import Bound, Part, check_certificate, loss_bound
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.progress import Progress
from shoal.space import Interval, Measure, Space

ENOUGH = 10**12


def by_distances(data: Microdata, name: Measure, k: int, way: Way) -> np.ndarray:
    found = prospect(data.codes, data.space(name), k, Progress.of(None))
    return replace(found, way=way).numbers(ENOUGH, Progress.of(None))


def as_bound(u: np.ndarray, data: Microdata, way: Way) -> Bound:
    ticks = np.floor(u * 2.0**40 * (1 - 1e-9)) / 2.0**40
    return Bound(float(ticks.sum()), 0.0, (Part(tuple(range(len(data.quasi))), ticks, way),))


@pytest.mark.parametrize("block", range(8))
def test_as_the_naive_twin_and_never_above_the_optimum(block: int) -> None:
    """Mixed domains with missing values, all losses, both ways; what is proven is certified, and a little more is not."""
    refused = asked = 0
    for seed in range(25 * block, 25 * block + 25):
        data = random_table(seed, n=5 + seed % 4, missing=0.0 if seed % 3 else 0.15)
        k, name = 2 + seed % 3, MEASURES[seed % 3]
        policy = Policy((shoal.KAnonymity(k),))
        space, rules = data.space(name), data.rules(policy)  # type: ignore[arg-type]
        best = best_of(data, policy, name)
        for way in WAYS:
            u = by_distances(data, name, k, way)  # type: ignore[arg-type]
            twin = [number_of(record, data.codes, space, k, way) for record in range(data.n)]
            # Rounded down by a few ticks a column, of each of k distances.
            close = k * k * (4 * len(data.quasi) * float(space.weights.sum()) / LARGEST)
            assert (u <= np.array(twin) + 1e-12).all()
            np.testing.assert_allclose(u, twin, atol=close, rtol=1e-8)
            assert u.sum() <= best + 1e-9
            assert check_certificate(data.codes, space, rules, as_bound(u, data, way))
            for record in np.flatnonzero(u > 0):
                more = u.copy()
                more[record] *= 1.0001
                refused += not check_certificate(data.codes, space, rules, as_bound(more, data, way))
                asked += 1
    # Equal records are claimed for together, so that more for one is more for all.
    assert asked > 100
    assert refused == asked


def test_weighed_columns_and_values_beyond_the_reference_range() -> None:
    """A range of 40 and values from 1 to 90: a loss ends at 1, and places on the line are moved together for that."""
    frame = pl.DataFrame({"age": [1, 5, 40, 41, 80, 90, None], "town": list("aabbccc")})
    roles = {"age": {"role": "quasi", "kind": "number"}, "town": {"role": "quasi"}}
    data = Microdata.from_frame(frame, roles)
    number, names = data.domains
    assert isinstance(number, Interval)
    space = Space((replace(number, width=40.0), names), np.array([0.5, 3.0]), "ncp")
    rules = data.rules(Policy((shoal.KAnonymity(3),)))

    def cost(classes: list[list[int]]) -> list[float]:
        sizes = np.array([len(members) for members in classes])
        order = np.array([record for members in classes for record in members])
        return (space.unit(space.states(data.codes, order, np.cumsum(sizes) - sizes)) * sizes).tolist()

    best = optimum(data.n, cost, lambda members: len(members) >= 3)
    for way in WAYS:
        twin = [number_of(record, data.codes, space, 3, way) for record in range(data.n)]
        u = replace(prospect(data.codes, space, 3, Progress.of(None)), way=way).numbers(ENOUGH, Progress.of(None))
        np.testing.assert_allclose(u, twin, atol=1e-6)
        assert u.sum() <= best
        assert check_certificate(data.codes, space, rules, as_bound(u, data, way))


@pytest.mark.parametrize("effort", ["fast", 0.05, 10.0])
def test_wide_tables_are_bounded_by_distances(effort: float | str) -> None:
    """Twenty questions: the boxes of seven of them say nearly nothing; how far people are apart does."""
    data = shoal.Microdata.from_frame(*survey(400))
    rules, space = data.rules(Policy((shoal.KAnonymity(5),))), data.space("ncp")
    found = loss_bound(data.codes, space, rules, effort=effort)  # type: ignore[arg-type]
    assert 0 < found.mean < measure(data, run("k_member", data, rules)).ncp
    assert check_certificate(data.codes, space, rules, found)
    if effort != 0.05:
        assert [part.by for part in found.parts] == ["pairs"]
        assert found.mean > 5 * loss_bound(data.codes, space, rules, effort="quick").mean


def survey(n: int) -> tuple[pl.DataFrame, dict[str, dict[str, str]]]:
    random = np.random.default_rng(0)
    mood = random.normal(size=n)
    columns = {
        f"q{i}": np.round(3 + mood * (i % 3) / 2 + random.normal(size=n)).astype(int).tolist() for i in range(20)
    }
    return pl.DataFrame(columns), {name: {"role": "quasi"} for name in columns}


def test_little_time_proves_less_and_no_more_than_is_true() -> None:
    data = shoal.Microdata.from_frame(*survey(300))
    space, rules = data.space("ncp"), data.rules(Policy((shoal.KAnonymity(4),)))
    found = prospect(data.codes, space, 4, Progress.of(None))
    whole = found.numbers(ENOUGH, Progress.of(None))
    part = found.numbers(found.price // 3, Progress.of(None))
    assert 0 < np.count_nonzero(part) < np.count_nonzero(whole)
    assert (part[part > 0] == whole[part > 0]).all()
    assert abs(found.total / whole.sum() - 1) < 0.2
    assert check_certificate(data.codes, space, rules, as_bound(part, data, found.way))


def test_a_certificate_under_another_name_is_refused() -> None:
    frame, roles = survey(60)
    some = frame.columns[:4]
    data = shoal.Microdata.from_frame(frame.select(some), {name: roles[name] for name in some})
    space, rules = data.space("ncp"), data.rules(Policy((shoal.KAnonymity(6),)))
    pairs = as_bound(by_distances(data, "ncp", 6, "pairs"), data, "pairs")
    assert check_certificate(data.codes, space, rules, pairs)
    for name in ("farthest", "boxes", "nearest"):
        claimed = replace(pairs, parts=(replace(pairs.parts[0], by=name),))  # type: ignore[arg-type]
        assert not check_certificate(data.codes, space, rules, claimed), name


def test_equal_records_and_classes_of_one_lose_nothing() -> None:
    data = random_table(1, n=6, missing=0.0).take(np.zeros(6, dtype=np.int64))
    nothing = prospect(data.codes, data.space("ncp"), 3, Progress.of(None))
    assert isinstance(nothing, Prospect)
    assert nothing.total == 0
    assert not nothing.numbers(ENOUGH, Progress.of(None)).any()
    other = random_table(3, n=9)
    assert not prospect(other.codes, other.space("ncp"), 1, Progress.of(None)).numbers(ENOUGH, Progress.of(None)).any()
