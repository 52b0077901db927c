"""Suppression: never more than allowed, never a loss without a gain, good classes throughout, and the same as the naive twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.reference.k_member import Table
from tests.reference.outliers import Outliers
from tests.tables import random_table

import shoal
from shoal.algorithms import names, run, suppresses
from shoal.errors import ConfigError, UnsupportedError
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.refine import outliers as module
from shoal.refine.outliers import without_outliers

POLICIES = {
    "k": Policy((shoal.KAnonymity(3),)),
    "p": shoal.KAnonymity(4) & shoal.PSensitive(2, "illness"),
    "t": shoal.KAnonymity(3) & shoal.TCloseness(0.45, "illness"),
}


def with_outliers(seed: int, n: int, far: int) -> Microdata:
    """Most people are alike, a few are far from everybody, in both numbers or in one of them."""
    random = np.random.default_rng(seed)
    age, pay = random.integers(20, 30, n), random.integers(100, 120, n)
    age[:far] = random.integers(60, 100, far)
    pay[: far // 2 + 1] = random.integers(300, 500, far // 2 + 1)
    frame = pl.DataFrame({"age": age, "pay": pay, "job": [f"j{i}" for i in random.integers(0, 4, n)]})
    frame = frame.with_columns(illness=pl.Series([f"i{i}" for i in random.integers(0, 4, n)]))
    roles = {name: {"role": "quasi"} for name in ("age", "pay", "job")}
    return Microdata.from_frame(frame, {**roles, "illness": {"role": "sensitive"}})


def loss(data: Microdata, found: shoal.Partition, objective: Any = "ncp") -> float:
    return float(getattr(measure(data, found, 2), objective))


@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize("policy", ["k", "p"])
@pytest.mark.parametrize("seed", range(6))
def test_equals_the_naive_twin(seed: int, policy: str, drop: bool) -> None:
    data = random_table(seed, 40) if seed % 2 else with_outliers(seed, 40, 6)
    rules = data.rules(POLICIES[policy])
    start = run(("mondrian", "k_member")[seed // 2 % 2], data, rules, seed=seed)
    allowed = (3, 8, 15)[seed % 3]
    found = without_outliers(data, rules, start, objective="ncp", allowed=allowed, drop=drop)
    twin = Outliers(
        Table(data, "ncp"), [m.tolist() for m in start.members()], rules.k, lambda m: rules.ok(np.array(m)), allowed
    )
    classes, gone = twin.run(drop)
    assert np.flatnonzero(found.labels < 0).tolist() == gone
    assert sorted(m.tolist() for m in found.members()) == sorted(sorted(m) for m in classes)


@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(4))
def test_promises(seed: int, policy: str, drop: bool) -> None:
    data = with_outliers(seed, 150, 12)
    rules = data.rules(POLICIES[policy])
    if drop and not rules.superset_closed:
        return
    start = run("mondrian", data, rules, seed=seed)
    for allowed in (0, 1, 5, 12, 40):
        found = without_outliers(data, rules, start, objective="ncp", allowed=allowed, drop=drop)
        assert found.suppressed <= allowed
        assert (rules.deficits(found.labels, found.classes) <= 0).all()
        away = np.flatnonzero(found.labels < 0)
        assert drop or len(away) == 0 or rules.ok(away)
        assert loss(data, found) <= loss(data, start)


def test_those_who_go_are_those_who_are_far_from_everybody() -> None:
    data = with_outliers(3, 200, 5)
    rules = data.rules(Policy((shoal.KAnonymity(8),)))
    found = without_outliers(data, rules, run("mondrian", data, rules), objective="ncp", allowed=20, drop=True)
    assert {0, 1, 2, 3, 4} <= set(np.flatnonzero(found.labels < 0).tolist())
    assert loss(data, found) < 0.8 * loss(data, run("mondrian", data, rules))


def test_sensitive_values_do_not_decide_who_goes() -> None:
    """Another illness for everybody, and the same records are suppressed: who is missing tells nothing of it."""
    data = with_outliers(5, 120, 8)
    rules, start = data.rules(POLICIES["k"]), run("mondrian", data, data.rules(POLICIES["k"]))
    found = without_outliers(data, rules, start, objective="ncp", allowed=8, drop=True)
    shuffled = data.frame.with_columns(pl.col("illness").shuffle(seed=1))
    other = Microdata.from_frame(shuffled, data.schema)
    again = without_outliers(other, other.rules(POLICIES["k"]), start, objective="ncp", allowed=8, drop=True)
    assert found.suppressed > 0
    assert found.labels.tolist() == again.labels.tolist()


def test_working_in_pieces_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = with_outliers(8, 120, 7)
    rules = data.rules(Policy((shoal.KAnonymity(9),)))
    start = run("k_member", data, rules)
    whole = without_outliers(data, rules, start, objective="ncp", allowed=30, drop=True)
    monkeypatch.setattr(module, "ROWS", 7)
    assert (
        without_outliers(data, rules, start, objective="ncp", allowed=30, drop=True).labels.tolist()
        == whole.labels.tolist()
    )
    assert whole.suppressed > 0


@pytest.mark.parametrize("algorithm", names())
@pytest.mark.parametrize("suppressed", ["mask", "drop"])
def test_every_algorithm_keeps_to_the_limit(algorithm: str, suppressed: Any) -> None:
    data = with_outliers(1, 90, 7)
    # Masked, three_layer's outliers are too few to be a class of their own, and it says so.
    more: dict[str, Any] = {"outliers": "suppress"} if algorithm == "three_layer" and suppressed == "drop" else {}
    policy, settings = shoal.KAnonymity(3), {"algorithm": algorithm, "suppressed": suppressed, "refine": False, **more}
    for share in (0.0, 0.05, 0.3):
        release = shoal.anonymize(data, policy, suppress=share, **settings)
        assert release.partition.suppressed <= share * data.n
        assert release.secret["settings"]["suppress"] == share
        if not suppresses(algorithm):
            without = shoal.anonymize(data, policy, **settings)
            assert release.measures.ncp <= without.measures.ncp
            assert share > 0 or release.masked.equals(without.masked)


def test_refined_releases_lose_no_more_with_suppression_than_without() -> None:
    data = with_outliers(2, 150, 2)
    policy = shoal.KAnonymity(12)
    before = shoal.anonymize(data, policy, refine=0.05)
    after = shoal.anonymize(data, policy, refine=0.05, suppress=0.1, suppressed="drop")
    assert after.measures.ncp < before.measures.ncp
    assert 0 < after.partition.suppressed <= 15
    assert after.masked.height == data.n - after.partition.suppressed
    assert after.secret["notes"]["outliers_suppressed"] == after.partition.suppressed


def test_leaving_out_records_is_refused_where_it_would_move_what_classes_are_compared_with() -> None:
    data = with_outliers(2, 60, 4)
    with pytest.raises(UnsupportedError, match='suppressed = "mask"'):
        shoal.anonymize(data, POLICIES["t"], suppress=0.1, suppressed="drop")
    assert shoal.anonymize(data, POLICIES["t"], suppress=0.1, refine=False).evidence.passed


@pytest.mark.parametrize("share", [-0.1, 1.5, True, "a tenth", float("nan")])
def test_a_share_is_between_none_and_all(share: Any) -> None:
    with pytest.raises(ConfigError, match=r"suppress = .* from 0 to 1"):
        shoal.anonymize(with_outliers(2, 20, 1), shoal.KAnonymity(2), suppress=share)


def test_full_domain_partitions_are_left_alone() -> None:
    data = with_outliers(3, 40, 4)
    rules = data.rules(POLICIES["k"])
    chosen = shoal.Partition(np.zeros(40, dtype=np.int32), levels=(1, 1, 1))
    assert without_outliers(data, rules, chosen, objective="ncp", allowed=9, drop=True) is chosen


def test_datafly_keeps_its_habit_unless_told() -> None:
    data = random_table(5, 200)
    own = shoal.anonymize(data, shoal.KAnonymity(3), algorithm="datafly", suppressed="drop", masked="drop").partition
    none = shoal.anonymize(data, shoal.KAnonymity(3), algorithm="datafly", suppress=0.0).partition
    assert 0 < own.suppressed <= 3
    assert none.suppressed == 0


def test_three_layer_rescues_those_that_cost_least() -> None:
    data = random_table(3, 120)
    options = {"outliers": "suppress"}
    rules = data.rules(Policy((shoal.KAnonymity(6),)))
    every = run("three_layer", data, rules, options=options)
    assert every.suppressed > 3
    some = run("three_layer", data, rules, suppress=3 / data.n, options=options)
    assert some.suppressed == 3
    assert set(np.flatnonzero(some.labels < 0)) <= set(np.flatnonzero(every.labels < 0))
    assert run("three_layer", data, rules, suppress=0.0, options=options).suppressed == 0
