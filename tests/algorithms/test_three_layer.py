"""The three layers of Rahimi et al. 2015: weights, x-means, merging, outliers, and one preparation for a whole sweep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from tests.reference import three_layer as naive
from tests.reference.top_down import wong
from tests.tables import adult, random_table

import shoal
from shoal.algorithms import run
from shoal.algorithms.three_layer import Bags, everything, prepare, scales
from shoal.algorithms.weighting import chi_squared, contingency, cramers_v, information_gain, weigh
from shoal.algorithms.xmeans import kmeans, on_grid, score, xmeans
from shoal.errors import ConfigError
from shoal.microdata import Microdata
from shoal.policy import Policy, Rules
from shoal.progress import Progress
from shoal.space import Interval


@pytest.mark.parametrize(
    ("table", "expected"), [([[10, 20], [20, 10]], 20 / 3), ([[10, 0], [0, 10]], 20), ([[5, 5], [5, 5]], 0)]
)
def test_g35_chi_squared(table: list[list[int]], expected: float) -> None:
    assert chi_squared(np.array(table, dtype=float)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("points", "one", "two"),
    [([0, 1, 10, 11], -13.5951, -8.8346), ([0, 1, 2, 3], -7.5837, -8.8346), (np.arange(10) / 10, -4.0440, -6.2816)],
)
def test_g34_bic(points: list[float], one: float, two: float) -> None:
    column, ones = np.array(points, dtype=float)[:, None], np.ones(len(points))
    halves = (np.arange(len(points)) >= len(points) / 2).astype(np.int64)
    whole = np.zeros(len(points), dtype=np.int64)
    assert score(column, ones, whole) == pytest.approx(one, abs=5e-5)
    assert score(column, ones, halves) == pytest.approx(two, abs=5e-5)
    assert naive.bic([column[halves == 0].tolist(), column[halves == 1].tolist()]) == pytest.approx(two, abs=5e-5)
    assert (xmeans(column, ones, least=1, most=2, seed=0).max() == 1) == (two > one)


@pytest.mark.parametrize("seed", range(5))
def test_weights_equal_the_naive_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, 6, 80), rng.integers(0, 4, 80)
    table = contingency(rows, columns)
    assert chi_squared(table) == pytest.approx(naive.chi_squared(rows.tolist(), columns.tolist()))
    assert 0 <= cramers_v(table) <= 1
    assert 0 <= information_gain(table) <= 1


@pytest.mark.parametrize("seed", range(12))
def test_k_means_equals_the_naive_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    points = on_grid(random.integers(0, 7, (60, 3)) / (6.0 if seed % 2 else 8.0))
    sizes, count = random.integers(1, 5, 60), 2 + seed % 6
    labels = kmeans(points, sizes.astype(float), count, seed, 100, Progress())
    members = [[0] * size for size in sizes.tolist()]
    whole = (points * 2**20).astype(int).tolist()
    expected = naive.kmeans(whole, members, list(range(60)), count, seed, None)
    assert [np.flatnonzero(labels == c).tolist() for c in range(labels.max() + 1)] == expected


def test_k_means_of_equal_points_is_one_cluster() -> None:
    assert kmeans(np.ones((5, 2)), np.ones(5), 3, 0, 100, Progress()).tolist() == [0] * 5


def test_equal_rows_are_clustered_once() -> None:
    rng = np.random.default_rng(3)
    points = 0.1 * rng.uniform(size=(30, 2)) + np.repeat([[0, 0], [9, 9], [0, 9]], 10, axis=0)
    copies = rng.integers(1, 4, 30)
    light = xmeans(points, copies.astype(float), least=1, most=10, seed=0)
    assert light.max() + 1 == 3
    assert score(points, copies.astype(float), light) == pytest.approx(
        score(np.repeat(points, copies, axis=0), np.ones(copies.sum()), np.repeat(light, copies))
    )


def test_clusters_stay_between_least_and_most() -> None:
    points = np.random.default_rng(1).uniform(size=(200, 2))
    for least, most in [(2, 5), (3, 3), (1, 60)]:
        found = xmeans(points, np.ones(200), least=least, most=most, seed=2)
        assert least <= found.max() + 1 <= most
        first = xmeans(points, np.ones(200), least=least, most=least, seed=2)
        assert score(points, np.ones(200), found) >= score(points, np.ones(200), first) - 1e-9


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("part", [1, 21])
def test_merging_equals_the_naive_twin(seed: int, part: int) -> None:
    data = random_table(seed, n=120)
    policy = shoal.KAnonymity(4) & shoal.PSensitive(3)
    rules = data.rules(policy)
    ready = prepare(data, k=4, seed=seed, kmax=12)
    bags = Bags(data, rules, ready, data.space("ncp"), "nearest", Progress())
    mine = bags.of_part(part)
    before = [np.flatnonzero(bags.records == bag).tolist() for bag in mine]
    groups = bags.group[mine].tolist()
    bags.settle(mine, Progress(), by_group=part == 1)
    expected = naive.merge(before, groups, ready.features.tolist(), lambda m: rules.ok(np.array(m)), part == 1)
    labels = bags.labels()
    found = {frozenset(np.flatnonzero(labels == bag).tolist()) for bag in bags.of_part(part)}
    assert found == {frozenset(cluster) for cluster in expected if cluster}


def plain(data: Microdata) -> naive.Table:
    numbers = [d.values.tolist() if isinstance(d, Interval) else None for d in data.domains]
    return naive.Table(data.codes.T.tolist(), numbers, [d.size for d in data.domains], data.sensitive[0].codes.tolist())


def recoded(data: Microdata, rules: Rules, members: list[int], k: int) -> list[list[int]]:
    """A cluster recoded from above by the naive twin of top-down."""
    rows = np.array(sorted(members))
    inner = rules.restrict(rows)

    def deficit(some: Sequence[int]) -> float:
        labels = np.full(len(rows), -1)
        labels[list(some)] = 0
        return float(inner.deficits(labels, 1)[0])

    return [rows[found].tolist() for found in wong(data.take(rows), k, deficit)]


def same_as_the_twin(
    data: Microdata, k: int, p: int, seed: int, weighting: str, reading: str, scaling: str = "range"
) -> None:
    """All three layers, record for record."""
    rules = data.rules(shoal.KAnonymity(k) & shoal.PSensitive(p, data.sensitive[0].name))
    options = {"outliers": "suppress", "kmax": 20, "weighting": weighting, "reading": reading, "scaling": scaling}
    found = run("three_layer", data, rules, seed=seed, options=options)
    classes, suppressed = naive.three_layer(
        plain(data),
        k,
        lambda members: rules.ok(np.array(members)),
        least=3,
        most=20,
        seed=seed,
        uniform=weighting == "uniform",
        by_spread=scaling == "spread",
    )
    if reading == "inside":
        classes = [inner for members in classes for inner in recoded(data, rules, members, k)]
    labels = found.labels
    assert {frozenset(np.flatnonzero(labels == c).tolist()) for c in range(found.classes)} == set(
        map(frozenset, classes)
    )
    assert np.flatnonzero(labels < 0).tolist() == sorted(suppressed)


@pytest.mark.parametrize("reading", ["class", "inside"])
@pytest.mark.parametrize("seed", range(8))
def test_equals_the_naive_twin(seed: int, reading: str) -> None:
    # Such tables are full of ties, with equal weights most of all.
    weighting = ("uniform", "chi_squared")[seed % 2]
    same_as_the_twin(random_table(seed, 120, weights=False), 2 + seed % 4, 2, seed, weighting, reading)


@pytest.mark.parametrize("seed", range(6))
def test_equals_the_naive_twin_when_scaled_by_spread(seed: int) -> None:
    weighting = ("uniform", "chi_squared")[seed % 2]
    same_as_the_twin(random_table(seed, 80, weights=False), 2 + seed % 3, 2, seed, weighting, "class", "spread")


def test_scaled_by_spread_two_records_are_as_far_apart_in_every_attribute() -> None:
    rare = ["x"] * 999 + ["y"]
    frame = pl.DataFrame({"age": [i % 80 for i in range(1000)], "half": ["a", "b"] * 500, "rare": rare})
    data = Microdata.from_frame(frame, {name: {"role": "quasi"} for name in frame.columns})
    lengths = scales(data, np.ones(3), "spread")
    found = everything(data, lengths, Progress())
    apart = [2 * block.var(axis=0).sum() for block in np.split(found, [1, 3], axis=1)]
    assert apart[:2] == pytest.approx([1, 1], abs=1e-4)
    # Where hardly anybody differs, no more than eight times as far as by range: squares have to stay exact.
    assert lengths[2] == 8
    assert scales(data, np.ones(3), "range").tolist() == [1, 1, 1]


@pytest.mark.parametrize("reading", ["class", "inside"])
def test_equals_the_naive_twin_on_adult(reading: str) -> None:
    data = adult(400, ("age", "workclass", "education", "marital-status", "race", "sex"), ("occupation",))
    if data is None:
        pytest.skip("Adult is not here; set SHOAL_DATA to the folder that holds adult/")
    same_as_the_twin(data, 4, 3, 1, "chi_squared", reading)


@pytest.mark.parametrize("merging", ["nearest", "loss"])
@pytest.mark.parametrize("weighting", ["chi_squared", "cramers_v", "information_gain", "uniform"])
def test_policies_hold(merging: str, weighting: str) -> None:
    data = random_table(11, n=150)
    rules = data.rules(shoal.KAnonymity(3) & shoal.PPlusSensitive(2) & shoal.TCloseness(0.4))
    found = run("three_layer", data, rules, options={"merging": merging, "weighting": weighting, "kmax": 15})
    assert found.suppressed == 0
    assert rules.deficits(found.labels, found.classes).max() == 0


def test_suppressed_outliers_leave_a_table_that_holds_by_itself() -> None:
    data = random_table(5, n=200)
    policy = shoal.KAnonymity(6) & shoal.TCloseness(0.3)
    found = run("three_layer", data, data.rules(policy), options={"outliers": "suppress", "kmax": 30})
    kept = np.flatnonzero(found.labels >= 0)
    again = data.take(kept).rules(policy)
    assert again.deficits(found.labels[kept], found.classes).max() == 0
    release = shoal.anonymize(data, policy, algorithm="three_layer", outliers="suppress", kmax=30, suppressed="drop")
    assert release.masked.height == len(kept)


@pytest.mark.parametrize("outliers", ["rescue", "suppress"])
def test_recoding_inside_only_ever_cuts_classes_and_leaves_good_ones(outliers: str) -> None:
    data = random_table(5, n=400)
    policy = shoal.KAnonymity(3) & shoal.PPlusSensitive(2) & shoal.TCloseness(0.5)
    rules = data.rules(policy)
    options = {"outliers": outliers, "kmax": 4}
    whole = run("three_layer", data, rules, options=options)
    cut = run("three_layer", data, rules, options={**options, "reading": "inside"})
    kept = np.flatnonzero(cut.labels >= 0)
    assert np.array_equal(kept, np.flatnonzero(whole.labels >= 0))
    assert cut.classes > whole.classes
    pairs = {(c, int(whole.labels[r])) for r, c in enumerate(cut.labels.tolist())}
    assert len(pairs) == cut.classes + (len(kept) < data.n)
    again = data.take(kept).rules(policy)
    assert again.deficits(cut.labels[kept], cut.classes).max() == 0


def test_whoever_asks_for_splits_is_told_of_readings() -> None:
    data = random_table(2, n=30)
    with pytest.raises(ConfigError, match='any more; write reading = "inside"'):
        run("three_layer", data, data.rules(Policy((shoal.KAnonymity(2),))), options={"split": True})


def test_one_preparation_serves_a_sweep() -> None:
    data = random_table(7, n=200)
    ready = prepare(data, k=8, seed=1)
    for k in (2, 4, 8):
        rules = data.rules(Policy((shoal.KAnonymity(k),)))
        cached = run("three_layer", data, rules, options={"preparation": ready})
        alone = run("three_layer", data, rules, seed=1, options={"k_pre": 8})
        assert np.array_equal(cached.labels, alone.labels)


def test_without_a_sensitive_attribute_all_weigh_alike() -> None:
    data = random_table(2, n=30, sensitive=0)
    assert weigh(data, None).tolist() == [1.0] * len(data.domains)


def test_unknown_options_are_named() -> None:
    data = random_table(2, n=30)
    with pytest.raises(ConfigError, match="did you mean 'nearest'"):
        run("three_layer", data, data.rules(Policy((shoal.KAnonymity(2),))), options={"merging": "neerest"})
