"""Top-down local recoding: the golden examples, the naive twins record for record, any policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.reference.top_down import Xu, wong
from tests.tables import adult, random_table, rt7

from shoal.algorithms import run
from shoal.algorithms.top_down import _Specialization
from shoal.errors import ConfigError, InfeasibleError
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.models.alpha_k import AlphaK
from shoal.models.k_anonymity import KAnonymity
from shoal.models.kpqr import KPQR
from shoal.models.l_diversity import LDiversity
from shoal.models.p_sensitive import PSensitive
from shoal.models.t_closeness import TCloseness
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.road import anonymize


def policy(k: int, p: int = 0) -> Policy:
    return Policy((KAnonymity(k), PSensitive(p))) if p else Policy((KAnonymity(k),))


def lacks(data: Microdata, k: int, p: int) -> Any:
    columns = [[int(code) for code in column.codes] for column in data.sensitive]

    def deficit(members: Sequence[int]) -> float:
        distinct = [len({column[r] for r in members} - {-1}) for column in columns]
        return max(0, k - len(members)) + sum(max(0, p - count) for count in distinct)

    return deficit


def same(partition: Partition, classes: list[list[int]]) -> bool:
    return [members.tolist() for members in partition.members()] == [sorted(members) for members in classes]


def test_golden_wong() -> None:
    """Zip alone."""
    schema = {"zip": {"role": "quasi", "taxonomy": {"prefix": [4, 3, 2, 1, 0]}}}
    data = Microdata.from_frame(rt7().frame.select("zip"), schema)
    partition = run("top_down", data, data.rules(policy(2)), options={"variant": "wong"})
    assert same(partition, [[2, 3], [0, 4, 5], [1, 6]])
    assert measure(data, partition, 2).distortion == pytest.approx(21 / 35, abs=1e-12)


def test_golden_xu() -> None:
    """Seeds and records in their order."""
    data = rt7()
    partition = run("top_down", data, data.rules(policy(2)), options={"variant": "xu", "visit": "record"})
    assert {frozenset(members.tolist()) for members in partition.members()} == {
        frozenset({0, 3}),
        frozenset({1, 4}),
        frozenset({2, 5, 6}),
    }
    assert measure(data, partition, 2).ncp == pytest.approx(19 / 42, abs=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_naive_twins(seed: int) -> None:
    data = random_table(seed, (13, 30, 40)[seed % 3], sensitive=1 + seed % 2)
    k, p, objective = 2 + seed % 4, (0, 0, 2, 3)[seed % 4], ("ncp", "il", "granularity")[seed % 3]
    rules, deficit = data.rules(policy(k, p)), lacks(data, k, p)
    assert same(run("top_down", data, rules), wong(data, max(k, p), deficit))
    xu = Xu(data, max(k, p), deficit, objective)
    found = run("top_down", data, rules, objective=objective, seed=seed, options={"variant": "xu"})
    assert same(found, xu.top_down(np.random.default_rng(seed), only_size=p == 0))
    if seed % 4 == 0:
        found = run("top_down", data, rules, objective=objective, options={"variant": "xu", "direction": "up"})
        assert same(found, xu.bottom_up())


@pytest.mark.parametrize(("k", "p"), [(5, 0), (4, 3)])
def test_naive_twins_on_adult(k: int, p: int) -> None:
    data = adult(250, ("age", "workclass", "education", "marital-status", "race", "sex"), ("occupation",))
    if data is None:
        pytest.skip("Adult is not here; set SHOAL_DATA to the folder that holds adult/")
    rules, deficit = data.rules(policy(k, p)), lacks(data, k, p)
    assert same(run("top_down", data, rules), wong(data, k, deficit))
    found = run("top_down", data, rules, seed=1, options={"variant": "xu"})
    assert same(found, Xu(data, k, deficit).top_down(np.random.default_rng(1), only_size=p == 0))


MODELS = [
    TCloseness(0.3, "illness"),
    KPQR(2, 0.3, 0.2, "illness"),
    PSensitive(3, "illness"),
    AlphaK(0.5, "illness"),
    LDiversity(2, "illness", "entropy"),
]


@pytest.mark.parametrize("seed", range(40))
def test_the_compiled_loop_is_the_other_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record for record, under rules that count and rules that weigh."""
    data = random_table(seed, (40, 90, 200)[seed % 3])
    rules = data.rules(KAnonymity(2 + seed % 5) & MODELS[seed % len(MODELS)])
    if rules.deficits(np.zeros(data.n, dtype=np.int64), 1).max() > 0:
        rules = data.rules(policy(2 + seed % 5))
    found = run("top_down", data, rules)
    monkeypatch.setattr(_Specialization, "loop", lambda self: None)
    assert np.array_equal(run("top_down", data, rules).labels, found.labels)


@pytest.mark.parametrize("options", [{"variant": "wong"}, {"variant": "xu"}, {"variant": "xu", "direction": "up"}])
@pytest.mark.parametrize("model", MODELS[:3])
def test_other_policies_are_verified(options: dict[str, Any], model: Any) -> None:
    data = random_table(8, 120)
    release = anonymize(data, KAnonymity(3) & model, algorithm="top_down", refine=False, **options)
    assert release.evidence.passed
    assert release.partition.classes > 1


def test_seeds() -> None:
    data = random_table(1, 200)
    rules = data.rules(policy(3))
    labels = [run("top_down", data, rules, seed=s, options={"variant": "xu"}).labels.tolist() for s in (0, 0, 1)]
    assert labels[0] == labels[1] != labels[2]


@pytest.mark.parametrize("option", ["variant", "direction", "visit"])
def test_options_are_checked(option: str) -> None:
    data = rt7()
    with pytest.raises(ConfigError, match=f"top_down: {option} = 'wang' is not allowed"):
        run("top_down", data, data.rules(policy(2)), options={option: "wang"})


def test_infeasible_is_refused() -> None:
    data = rt7()
    with pytest.raises(InfeasibleError, match="8"):
        run("top_down", data, data.rules(policy(8)))
