"""Loss measures: golden values, the running example, the naive twin on random tables, and what must hold of any loss."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import measures as naive
from tests.tables import UNBALANCED, random_table, rt7

import shoal
from shoal.errors import ConfigError
from shoal.measures.loss import discernibility, distortion_ratio, measure, per_class, sse
from shoal.microdata import Microdata
from shoal.models.p_sensitive import PSensitive
from shoal.models.t_closeness import TCloseness
from shoal.policy import Policy
from shoal.states import class_states

RATIOS = ("nil", "ncp", "ncp_distinct", "ncp_published", "granularity", "distortion")


def twin(data: Microdata) -> list[naive.Number | naive.Tree | naive.Bag]:
    """The columns of `random_table`, described to the twin."""
    columns = {name: data.frame[name].to_list() for name in data.quasi}
    zips = {v: [v, v[:2] + "*", v[:1] + "**", "***"] for v in set(columns["zip"])}
    domain = data.schema.attributes["age"].domain
    return [
        naive.Number(columns["age"], 120 if domain else None),
        naive.Number(columns["height"]),
        naive.Tree(columns["job"], {row[0]: row for row in UNBALANCED}),
        naive.Tree(columns["zip"], zips),
        naive.Bag(columns["colour"]),
        naive.Bag(columns["country"]),
    ]


def random_partition(seed: int, n: int, classes: int, suppressed: int) -> shoal.Partition:
    labels = np.random.default_rng(seed).integers(0, classes, n)
    labels[:suppressed] = -1
    return shoal.Partition.compact(labels)


@pytest.mark.parametrize("seed", range(6))
def test_equal_to_the_naive_twin(seed: int) -> None:
    data = random_table(seed, 40)
    found = random_partition(seed, 40, 9, suppressed=3 * (seed % 2))
    members = [part.tolist() for part in found.members()]
    hidden = np.flatnonzero(found.labels < 0).tolist()
    expected = naive.measures(twin(data), data.space("il").weights.tolist(), members, hidden, k=3)
    total = measure(data, found, k=3)
    for name, value in expected.items():
        assert getattr(total, name) == pytest.approx(value, abs=1e-9), name


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("suppressed", [0, 5])
def test_lost_variance_equals_the_naive_twin(seed: int, suppressed: int) -> None:
    """Suppressed records lose all they had: they count with their distance from the mean of the table."""
    data = random_table(seed, 40, duplicates=0.3 if seed % 2 else 0.0, missing=0.0 if seed == 4 else 0.1)
    apart = random_partition(seed, 40, 9, suppressed=suppressed)
    # Equal records together, so that the classes are made of tuples.
    together = shoal.Partition.compact(np.where(data.points.of_record < suppressed, -1, data.points.of_record % 7))
    for found in (apart, together):
        members = [part.tolist() for part in found.members()]
        hidden = np.flatnonzero(found.labels < 0).tolist()
        columns = [data.frame[name].to_list() for name in ("age", "height")]
        assert sse(data, found) == pytest.approx(naive.sse(columns, members, hidden), rel=1e-12)
        assert measure(data, found).sse == sse(data, found)
    everything = shoal.Partition(np.full(40, -1))
    assert sse(data, everything) == pytest.approx(100)
    assert sse(data, shoal.Partition(np.zeros(40))) == pytest.approx(100)


def test_without_numbers_there_is_no_variance_to_lose() -> None:
    frame = pl.DataFrame({"a": ["x", "y"], "b": [3, 3], "c": ["low", "high"]})
    schema = {"a": {"role": "quasi"}, "b": {"role": "quasi"}, "c": {"role": "quasi", "order": ["low", "high"]}}
    data = Microdata.from_frame(frame, schema)
    found = measure(data, shoal.Partition(np.array([0, 0])))
    assert np.isnan(found.sse) and found.to_dict()["sse"] is None and found.to_dict()["ncp"] == found.ncp
    one = Microdata.from_frame(frame.with_columns(b=pl.Series([3.0, 5.0])), schema)
    assert measure(one, shoal.Partition(np.array([0, 0]))).sse == 100


def test_per_class_adds_up_to_the_totals() -> None:
    data = random_table(2, 50)
    found = random_partition(2, 50, 8, suppressed=0)
    losses = per_class(data, found)
    total = measure(data, found)
    frame = losses.frame()
    assert frame["size"].sum() == 50
    assert frame["il"].sum() == pytest.approx(total.il)
    for name in ("ncp", "ncp_distinct", "ncp_published", "granularity"):
        assert float((frame["size"] * frame[name]).sum()) / 50 == pytest.approx(getattr(total, name))
    by_attribute = losses.shares()["ncp"]
    assert [total.attributes[name]["ncp"] for name in data.quasi] == pytest.approx(by_attribute.tolist())


def test_g18_masked_table_of_000() -> None:
    frame = pl.DataFrame({"age": [20] * 3 + [30] * 4, "zip": ["41099"] * 7})
    data = Microdata.from_frame(frame, {"age": {"role": "quasi"}, "zip": {"role": "quasi"}})
    found = measure(data, shoal.Partition(np.array([0, 0, 0, 1, 1, 1, 1])), k=3)
    assert (found.dm, found.smallest_class) == (25, 3)
    assert found.avg == pytest.approx(float(Fraction(7, 6)))


def test_g36_distortion_ratio() -> None:
    printed = (5, 3, 4, 3, 3, 3, 2)
    levels = (1, 0, 2, 0, 1, 0, 0)
    edges = distortion_ratio([levels], printed, [2], suppressed=2, height_reading="edges")
    assert edges == pytest.approx(float(Fraction(27, 46)), abs=1e-15)
    assert edges == pytest.approx(float(naive.distortion_ratio([levels, levels, None, None], printed)))
    # Read as numbers of levels, every height is one less.
    assert distortion_ratio([levels], printed, [2], suppressed=2) == pytest.approx((8 + 32) / 64)
    assert np.isnan(distortion_ratio(np.zeros((0, 2)), [2, 3], []))
    assert distortion_ratio([[0, 0]], [1, 1]) == 0  # hierarchies of leaves alone: nowhere to go
    assert distortion_ratio([[1, 1], [0, 0]], [2, 2]) == 0.5
    assert distortion_ratio([[1, 1], [0, 0]], [2, 2], [3, 1]) == 0.75
    assert distortion_ratio([1, 0], [2, 2]) == 0.5
    with pytest.raises(ConfigError, match="did you mean 'edges'"):
        distortion_ratio([levels], printed, height_reading="edge")  # type: ignore[arg-type]


def test_g37_and_small_classes_cost_like_suppressed_ones() -> None:
    assert discernibility(np.array([4, 4]), 2, 10) == 52
    assert discernibility(np.array([4, 4, 2]), 0, 10, k=3) == 52


def test_the_ways_to_count_labels_of_an_order() -> None:
    frame = pl.DataFrame({"grade": ["a", "b", "d", "e"]})
    data = Microdata.from_frame(frame, {"grade": {"role": "quasi", "order": ["a", "b", "c", "d", "e"]}})
    found = measure(data, shoal.Partition(np.array([0, 0, 1, 1])))
    # [a, b] is a quarter of the way, and two of five labels.
    assert found.ncp == pytest.approx(1 / 4)
    assert found.ncp_published == pytest.approx(2 / 5)
    one = per_class(data, shoal.Partition(np.array([0, 1, 2, 2])))
    assert one.cells["ncp_published"][:, 0].tolist() == pytest.approx([0, 0, 2 / 5])
    holes = Microdata.from_frame(
        pl.DataFrame({"grade": ["e", None, "a", None, None, "d", "e"]}),
        {"grade": {"role": "quasi", "order": ["a", "b", "c", "d", "e"]}},
    )
    # Missing with a label says nothing; missing alone is what it was; the domain has missing as a sixth value.
    mixed = per_class(holes, shoal.Partition(np.array([0, 0, 3, 1, 1, 2, 2])))
    assert mixed.cells["ncp_published"][:, 0].tolist() == pytest.approx([1, 0, 2 / 6, 0])


def test_classes_and_attributes_in_figures() -> None:
    frame = pl.DataFrame({"age": [20, 30, 40, 60, 20], "job": ["a", "a", "b", "c", "c"]})
    data = Microdata.from_frame(frame, {"age": {"role": "quasi", "weight": 2}, "job": {"role": "quasi"}})
    found = measure(data, shoal.Partition(np.array([0, 0, 1, 1, -1])), k=2)
    assert (found.classes, found.smallest_class, found.largest_class, found.suppressed) == (2, 2, 2, 1)
    assert measure(data, shoal.Partition(np.array([0, 0, 0, 1, -1]))).smallest_class == 1
    assert found.il == pytest.approx(2 * (2 * 0.25 + 0) + 2 * (2 * 0.5 + 2 / 3) + 3)
    assert found.changed == 2 * 1 + 2 * 2 + 2
    assert found.attributes["age"]["ncp"] == pytest.approx((2 * 0.25 + 2 * 0.5 + 1) / 5)
    assert found.attributes["job"]["distortion"] == pytest.approx((0 + 2 * 1 + 1) / 5)
    assert set(found.to_dict()["attributes"]) == {"age", "job"}
    frames = per_class(data, shoal.Partition(np.array([0, 0, 1, 1, -1]))).frame()
    assert frames.columns[:3] == ["class", "size", "il"] and frames["class"].to_list() == [0, 1]
    assert frames["il"].to_list() == pytest.approx([2 * 2 * 0.25, 2 * (2 * 0.5 + 2 / 3)])
    assert frames["ncp"].to_list() == pytest.approx([0.25 / 2, (0.5 + 2 / 3) / 2])


def test_nothing_but_suppressed_records() -> None:
    lost = measure(rt7(), shoal.Partition(np.full(7, -1)), k=2)
    assert (lost.classes, lost.smallest_class, lost.largest_class, lost.avg) == (0, 0, 0, 7 / 2)
    assert np.isnan(measure(rt7(), shoal.Partition(np.full(7, -1)), suppressed="drop").avg)


def test_what_was_published_decides_where_it_is_told() -> None:
    """Full-domain recoding publishes more than the tight classes need; the losses are those of what is published."""
    data = rt7()
    partition = shoal.Partition(np.array([0, 1, 0, 0, 0, 0, 1]))
    wide = class_states(data, partition, data.space("il"))
    wide[:, 2], wide[:, 3] = 0, data.domains[1].size - 1
    assert measure(data, partition, states=wide).ncp > measure(data, partition).ncp
    assert measure(data, partition, states=wide).attributes["zip"]["ncp"] == 1
    assert measure(data, partition, states=wide).ncp_distinct == measure(data, partition).ncp_distinct


def test_suppressed_records_are_a_class_when_starred_and_none_when_dropped() -> None:
    data = rt7()
    found = shoal.Partition(np.array([0, 0, -1, -1, 1, 1, 1]))
    assert measure(data, found, k=2).avg == pytest.approx(7 / (3 * 2))
    assert measure(data, found, k=2, suppressed="drop").avg == pytest.approx(5 / (2 * 2))


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_measures_stay_in_their_range_and_grow_when_classes_merge(seed: int) -> None:
    """Merging never lowers a loss or a distinct count, nor raises the largest distance."""
    data = random_table(seed, 20, sensitive=1)
    before = random_partition(seed, 20, 5, suppressed=0)
    labels = before.labels.copy()
    if before.classes > 1:
        labels[labels == 1] = 0
    after = shoal.Partition.compact(labels)
    one, other = measure(data, before), measure(data, after)
    for name in RATIOS:
        assert 0 <= getattr(one, name) <= getattr(other, name) + 1e-12 <= 1 + 1e-9, name
    assert one.il <= other.il + 1e-9
    rules = data.rules(Policy((PSensitive(1), TCloseness(1.0, distance="equal"))))

    def strongest(partition: shoal.Partition) -> list[float]:
        stats = rules.stats(partition.labels, partition.classes)
        pairs = zip(rules.rules, rules.counts_by_rule(stats), strict=True)
        return [rule.strongest(stats.sizes, counts) for rule, counts in pairs]

    (p_before, t_before), (p_after, t_after) = strongest(before), strongest(after)
    assert p_after >= p_before
    assert t_after <= t_before + 1e-12


def test_no_loss_without_differences_and_all_of_it_when_suppressed() -> None:
    frame = pl.DataFrame({"age": [30] * 4, "zip": ["41076"] * 4})
    data = Microdata.from_frame(frame, {"age": {"role": "quasi"}, "zip": {"role": "quasi"}})
    same = measure(data, shoal.Partition(np.zeros(4, dtype=np.int32)), k=2)
    assert all(getattr(same, name) == 0 for name in RATIOS)
    assert (same.dm, same.avg) == (16, 2)
    lost = measure(rt7(), shoal.Partition(np.full(7, -1, dtype=np.int32)))
    assert all(getattr(lost, name) == pytest.approx(1) for name in RATIOS)
    assert (lost.dm, lost.precision) == (49, pytest.approx(0))


@pytest.mark.parametrize("reading", ["levels", "edges"])
@pytest.mark.parametrize("seed", range(4))
def test_distortion_record_by_record(seed: int, reading: Any) -> None:
    random = np.random.default_rng(seed)
    height = random.integers(1, 3, 3) if seed else np.array([1, 1, 1])
    edges = height - (reading == "levels")
    levels = np.array([[random.integers(0, max(1, e) + 1) for e in edges] for _ in range(4)])
    records, suppressed = random.integers(1, 5, 4), seed
    climbed = sum(int(n) * int(row.sum()) for n, row in zip(records, levels, strict=True)) + suppressed * int(
        edges.sum()
    )
    whole = (int(records.sum()) + suppressed) * int(edges.sum())
    found = distortion_ratio(levels, height, records, suppressed, height_reading=reading)
    assert found == pytest.approx(climbed / whole if whole else 0.0)
    single = distortion_ratio(levels, height, suppressed=suppressed, height_reading=reading)
    one_each = int(levels.sum()) + suppressed * int(edges.sum())
    assert single == pytest.approx(one_each / ((4 + suppressed) * int(edges.sum())) if edges.sum() else 0.0)
