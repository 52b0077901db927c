"""Loss measures: golden values, the running example, the naive twin on random tables, and what must hold of any loss."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import measures as naive
from tests.tables import UNBALANCED, random_table, rt7

import shoal
from shoal.errors import ConfigError
from shoal.measures.loss import discernibility, distortion_ratio, measure, per_class
from shoal.microdata import Microdata
from shoal.models.p_sensitive import PSensitive
from shoal.models.t_closeness import TCloseness
from shoal.policy import Policy

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


def test_suppressed_records_are_a_class_when_starred_and_none_when_dropped() -> None:
    data = rt7()
    found = shoal.Partition(np.array([0, 0, -1, -1, 1, 1, 1]))
    assert measure(data, found, k=2).avg == pytest.approx(7 / (3 * 2))
    assert measure(data, found, k=2, suppressed="drop").avg == pytest.approx(5 / (2 * 2))


@settings(max_examples=15, deadline=None)
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
