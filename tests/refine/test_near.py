"""Near tuples: exact where that can be afforded, else most of them, for the same seed the same, whatever the threads."""

from __future__ import annotations

import os

import numpy as np
import pytest
from tests.tables import random_table

import shoal
from shoal.algorithms import run
from shoal.datasets import survey, survey_schema
from shoal.kernels.box_gauge import gauge as packed
from shoal.kernels.space import flatten
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.progress import Progress
from shoal.refine import box_tables, near
from shoal.refine.box_search import box_search
from shoal.refine.effort import APART, SECOND, box_budget, breadth, nominal, remoteness
from shoal.space import Space
from shoal.states import class_states


def wide(n: int, questions: int = 20) -> Microdata:
    return Microdata.from_frame(survey(n, questions, seed=3), survey_schema(questions))


def tuples_of(data: Microdata, space: Space) -> tuple[np.ndarray, np.ndarray]:
    codes = np.unique(data.codes, axis=0)
    order, nodes = near.tree_order(space, codes, Progress())
    return np.ascontiguousarray(codes[order]), nodes


def naive(space: Space, codes: np.ndarray, t: int) -> np.ndarray:
    """What every tuple loses in a class with tuple `t`."""
    pairs = np.column_stack([np.full(len(codes), t), np.arange(len(codes))]).ravel()
    return space.unit(space.states(codes, pairs, np.arange(0, len(pairs), 2)))


def test_small_budgets_get_trees_large_ones_all_that_is_near() -> None:
    data = wide(1_500)
    space = data.space("ncp")
    codes, nodes = tuples_of(data, space)
    gauge = packed(flatten(space))
    exact, price = near.near_tuples(gauge, codes, nodes, 10**10, 0, Progress())
    most, paid = near.near_tuples(gauge, codes, nodes, price, 0, Progress())
    assert 0 < paid < price
    shares = []
    for t in range(0, len(codes), 50):
        costs = naive(space, codes, t)
        others = np.sort(np.delete(costs, t))[: near.NEAR]
        assert costs[exact[t]] == pytest.approx(others)
        # The trees find others that are near, each once and nearest first, never the tuple itself.
        found = costs[most[t]]
        assert t not in most[t] and len(set(most[t].tolist())) == near.NEAR
        assert (np.diff(found) >= -1e-6).all() and (found >= others - 1e-9).all()
        shares.append(np.mean(found[:8] <= others[7] + 1e-6))
    assert np.mean(shares) > 0.7


def test_trees_are_the_seeds_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    data = wide(1_200, 12)
    space = data.space("ncp")
    codes, nodes = tuples_of(data, space)
    gauge = packed(flatten(space))
    monkeypatch.setattr(near, "CHUNK", 100)
    found = []
    for threads, seed in ((1, 5), (4, 5), (2, 6)):
        monkeypatch.setattr(os, "cpu_count", lambda threads=threads: threads)
        found.append(near.near_tuples(gauge, codes, nodes, 1, seed, Progress())[0])
    assert np.array_equal(found[0], found[1]) and not np.array_equal(found[0], found[2])


def test_a_second_is_a_second_however_wide_the_table() -> None:
    assert breadth(5) == breadth(8) == 1 and breadth(24) == 3
    assert nominal(7.0, 10**6, 40) == 7.0 and box_budget(7.0, 10**6, 40) == 7 * SECOND // 5
    assert remoteness(37_500, 8) == 1 and remoteness(50_000, 8) == APART
    assert remoteness(50_001, 8) == 1.5 * APART and remoteness(50_001, 16) == 1.25 * APART
    assert nominal("thorough", 30_000, 8) == 15.0 and nominal("fast", 1_000_000, 16) == 45.6


def loss_of(data: Microdata, partition: shoal.Partition) -> float:
    space = data.space("ncp")
    return float((space.unit(class_states(data, partition, space)) * partition.sizes).sum())


@pytest.mark.parametrize(
    "policy", [shoal.KAnonymity(3) & shoal.PSensitive(2), shoal.KAnonymity(2) & shoal.TCloseness(0.5)]
)
def test_steps_that_see_near_tuples_alone_keep_the_policy(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_tables, "SETS", 0)
    data = random_table(5, n=150)
    rules = data.rules(policy)
    start = run("mondrian", data, rules)
    found = box_search(data.codes, data.space("ncp"), rules, start, effort=0.05, seed=3)
    assert rules.deficits(found.labels, found.classes).max() == 0 and found.suppressed == 0
    assert loss_of(data, found) < loss_of(data, start)


MANY = int(os.environ.get("SHOAL_RANDOM_TABLES", "60"))


@pytest.mark.parametrize("sets", [0, 10**9], ids=["near tuples", "all tuples"])
def test_no_table_ends_worse_than_it_began(sets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """SHOAL_RANDOM_TABLES=10000 for the long form."""
    monkeypatch.setattr(box_tables, "SETS", sets)
    better = 0
    for seed in range(MANY):
        data = random_table(seed, n=12 + seed % 50)
        rules = data.rules(Policy((shoal.KAnonymity(2 + seed % 3),)))
        start = run(("mondrian", "k_member")[seed % 2], data, rules)
        found = box_search(data.codes, data.space("ncp"), rules, start, effort=0.002, seed=seed)
        assert rules.deficits(found.labels, found.classes).max() == 0
        before, after = loss_of(data, start), loss_of(data, found)
        assert after <= before + 1e-9, seed
        better += after < before - 1e-9
    assert better > MANY // 2


def test_a_wide_table_ends_below_what_single_algorithms_reach() -> None:
    """The whole point: few records, many questions, a moment's search."""
    data = wide(6_000)
    rules = data.rules(Policy((shoal.KAnonymity(5),)))
    start = run("auto", data, rules, options={"refined": True})
    assert start.notes["auto"]["algorithm"] == "mondrian"
    found = box_search(data.codes, data.space("ncp"), rules, start, effort="fast")
    assert loss_of(data, found) < 0.97 * loss_of(data, run("k_member", data, rules))
