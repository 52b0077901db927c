"""IL_Optimization: the paper's example, its twin on random tables, and that it never loses, keeps k and ends in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.reference import i3m as reference
from tests.reference.k_member import Table
from tests.tables import random_table, rt7

import shoal
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.refine.il_optimization import il_optimization

MEASURES = ("il", "ncp", "granularity")
POLICIES = (
    Policy((shoal.KAnonymity(2),)),
    Policy((shoal.KAnonymity(3), shoal.PSensitive(p=2))),
    Policy((shoal.KAnonymity(2), shoal.AlphaK(alpha=0.6))),
)


def test_the_paper_s_example() -> None:
    data, start = rt7(), Partition(np.array([0, 0, 1, 1, 2, 2, 2]))
    table = Table(data, "il")
    result = il_optimization(data.codes, data.space("il"), k_only(data, 2), start)
    assert result.labels.tolist() == [0, 0, 1, 1, 0, 1, 1]
    assert table.total(lists(start)) == pytest.approx(397 / 30)
    assert table.total(lists(result)) == pytest.approx(389 / 30)


def test_coverage_of_the_paper_s_example() -> None:
    from shoal.kernels.space import covers, flatten

    data, start = rt7(), Partition(np.array([0, 0, 1, 1, 2, 2, 2]))
    space = data.space("il")
    states = space.states(data.codes, start.order, start.starts)
    covered = [
        {c for c in range(3) if c != start.labels[r] and covers(flatten(space), states[c], data.codes[r])}
        for r in range(7)
    ]
    assert covered == [set(), {2}, set(), set(), {0}, {1}, {0, 1}]


def test_a_cover_that_was_broken_is_no_cover() -> None:
    # {28, 40} goes first, to its two near classes; then nobody covers 30 any more, though 20 is still covered.
    ages = [20, 30, 19, 21, 28, 40, 27, 29, 39, 41, 0, 100]
    data = Microdata.from_frame(pl.DataFrame({"age": ages}), {"age": {"role": "quasi"}})
    start = Partition(np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]))
    result = il_optimization(data.codes, data.space("il"), k_only(data, 2), start)
    assert result.labels.tolist() == [0, 0, 1, 1, 2, 3, 2, 2, 3, 3, 4, 4]
    without = il_optimization(data.codes[:10], data.space("il"), k_only(data, 2), Partition(start.labels[:10]))
    assert without.labels.tolist() == [0, 0, 1, 1, 2, 3, 2, 2, 3, 3]


@pytest.mark.parametrize("seed", range(9))
def test_twin(seed: int) -> None:
    data, measure = random_table(seed, 60, duplicates=0.5), MEASURES[seed % 3]
    rules = data.rules(POLICIES[(seed // 3) % 3])
    start = good_start(data, rules, seed)
    good = None if rules.superset_closed else lambda members: rules.ok(np.array(members))
    wanted = reference.il_optimization(data, Table(data, measure), lists(start), good)
    found = il_optimization(data.codes, data.space(measure), rules, start)
    assert lists(found) == wanted


@pytest.mark.parametrize("seed", range(6))
def test_never_dearer_never_bad_and_done_at_once(seed: int) -> None:
    data, measure = random_table(100 + seed, 200, duplicates=0.6), MEASURES[seed % 3]
    rules, table = data.rules(POLICIES[seed % 3]), Table(data, measure)
    start = good_start(data, rules, seed)
    once = il_optimization(data.codes, data.space(measure), rules, start)
    again = il_optimization(data.codes, data.space(measure), rules, once)
    more = il_optimization(data.codes, data.space(measure), rules, start, iterate=True)
    assert again.labels.tolist() == once.labels.tolist()
    assert table.total(lists(more)) <= table.total(lists(once)) <= table.total(lists(start))
    for result in (once, more):
        assert (rules.deficits(result.labels, result.classes) <= 0).all()


def test_breaks_and_splits_in_turn() -> None:
    data = random_table(3, 200, duplicates=0.6)
    rules, space, table = k_only(data, 2), data.space("ncp"), Table(data, "ncp")
    start = Partition((np.arange(200) // 20).astype(np.int32))
    broken = il_optimization(data.codes, space, rules, start)
    both = il_optimization(data.codes, space, rules, start, iterate=True)
    assert table.total(lists(both)) < 0.7 * table.total(lists(broken))
    assert both.sizes.min() >= 2


def test_suppressed_records_and_single_classes_stay() -> None:
    data = rt7()
    start = Partition(np.array([0, 0, 1, 1, 2, 2, -1]))
    result = il_optimization(data.codes, data.space("il"), k_only(data, 2), start)
    assert result.labels[6] == -1
    whole = Partition(np.zeros(7, dtype=np.int32))
    assert il_optimization(data.codes, data.space("il"), k_only(data, 2), whole).classes == 1


def k_only(data: Microdata, k: int) -> Any:
    return data.rules(Policy((shoal.KAnonymity(k),)))


def lists(partition: Partition) -> list[list[int]]:
    return [members.tolist() for members in partition.members()]


def good_start(data: Microdata, rules: Any, seed: int) -> Partition:
    """Classes of neighbours in some order of the table, merged until they are good."""
    order = np.lexsort(data.codes.T[np.random.default_rng(seed).permutation(data.codes.shape[1])])
    labels = np.empty(data.n, dtype=np.int64)
    labels[order] = np.arange(data.n) // rules.k
    for c in range(labels.max(), 0, -1):
        if not rules.ok(np.flatnonzero(labels == c)):
            labels[labels == c] = c - 1
    while not rules.ok(np.flatnonzero(labels == 0)):
        labels[labels == labels[labels > 0].min()] = 0
    return Partition.compact(labels)
