"""Incognito and Datafly: golden values, agreement with exhaustive search, refusals, verified releases."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.reference import full_domain as naive
from tests.reference import models as naive_models
from tests.tables import UNBALANCED, random_table, rt7

import shoal
from shoal import KPQR, AlphaK, KAnonymity, LDiversity, Personalized, PSensitive, TCloseness
from shoal.algorithms import incognito as incognito_module
from shoal.algorithms import names, run
from shoal.algorithms.datafly import datafly
from shoal.algorithms.incognito import incognito
from shoal.algorithms.levels import full_domain
from shoal.errors import ConfigError, InfeasibleError, UnsupportedError
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.models import Model
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.space import Tree

CHOICES = ("avg", "dm", "precision", "height", "classes")


def rt7_with_decades() -> Microdata:
    zips = {"role": "quasi", "taxonomy": {"prefix": [4, 3, 2, 1, 0]}}
    gender = {"role": "quasi", "taxonomy": {"rows": [["Male", "*"], ["Female", "*"]]}}
    age = {"role": "quasi", "taxonomy": {"intervals": [10]}}
    return Microdata.from_frame(rt7().frame, {"age": age, "zip": zips, "gender": gender})


def small_table(seed: int, n: int) -> Microdata:
    """Four attributes: numbers, an unbalanced tree, a prefix tree and categories; holes in three of them."""
    frame = random_table(seed, n, missing=0.05, values=4).frame.select("age", "job", "zip", "colour", "illness")
    return Microdata.from_frame(
        frame,
        {
            "age": {"role": "quasi"},
            "job": {"role": "quasi", "taxonomy": {"rows": UNBALANCED}},
            "zip": {"role": "quasi", "taxonomy": {"prefix": [2, 1, 0]}},
            "colour": {"role": "quasi"},
            "illness": {"role": "sensitive"},
        },
    )


def policy_of(*models: Model) -> Policy:
    return Policy(models)


def twin_levels(data: Microdata) -> list[list[list[object]]]:
    """Trees by their paths; numbers and categories as they are (their levels have a test of their own)."""
    groups = full_domain(data).groups
    return [
        naive.padded(list(domain.taxonomy.rows())) if isinstance(domain, Tree) else [x.tolist() for x in groups[a]]
        for a, domain in enumerate(data.domains)
    ]


def twin_ok(data: Microdata, models: tuple[Model, ...]) -> naive.Ok:
    """The models' definitions, asked once a class."""
    values = data.frame["illness"].to_list()
    known: dict[tuple[int, ...], bool] = {}

    def ok(members: list[int]) -> bool:
        key = tuple(sorted(members))
        if key not in known:
            mine = [values[record] for record in key]
            about = naive_models.About()
            known[key] = all(getattr(naive_models, m.name)(mine, values, about, **m.parameters()) for m in models)
        return known[key]

    return ok


def split_of(partition: Partition) -> naive.Split:
    classes = [np.flatnonzero(partition.labels == label).tolist() for label in range(partition.classes)]
    return classes, np.flatnonzero(partition.labels < 0).tolist()


def same(partition: Partition, expected: naive.Split) -> bool:
    classes, lost = split_of(partition)
    return sorted(classes) == sorted(expected[0]) and lost == expected[1]


def test_golden_incognito() -> None:
    data = rt7_with_decades()
    assert [len(np.unique(level)) for level in full_domain(data).groups[0]] == [7, 4, 1]
    made = incognito(data, data.rules(policy_of(KAnonymity(2))))
    assert made.levels == (2, 5, 0)
    assert (made.notes["minimal_nodes"], made.notes["satisfying"], made.notes["checked"]) == ([[2, 5, 0]], 2, 14)
    found = measure(data, made, 2)
    assert sorted(made.sizes.tolist()) == [2, 5]
    assert (found.dm, found.avg) == (29, 1.75)


@pytest.mark.parametrize("suppress", [2 / 7, 0.3])
def test_golden_incognito_with_suppression(suppress: float) -> None:
    data = rt7_with_decades()
    made = run("incognito", data, data.rules(policy_of(KAnonymity(2))), suppress=suppress)
    assert sorted(made.notes["minimal_nodes"]) == [[1, 5, 1], [2, 3, 0]]
    assert (made.notes["satisfying"], made.notes["checked"]) == (7, 17)
    assert made.levels == (2, 3, 0)
    assert split_of(made) == ([[0, 5, 6], [1, 4]], [2, 3])


def test_golden_datafly() -> None:
    data = rt7_with_decades()
    made = datafly(data, data.rules(policy_of(KAnonymity(2))))
    assert made.levels == (2, 3, 0)
    assert made.notes["steps"] == ["age", "zip", "zip", "zip", "age"]
    assert split_of(made) == ([[0, 5, 6], [1, 4]], [2, 3])
    release = shoal.anonymize(data, KAnonymity(2), algorithm="datafly", order="keep")
    shown = [("*", "41***", "Male"), ("*", "41***", "Female"), ("*", "*", "*")]
    assert release.masked.rows() == [shown[i] for i in (0, 1, 2, 2, 1, 0, 0)]


POLICIES: dict[str, tuple[Model, ...]] = {
    "k": (KAnonymity(3),),
    "p": (KAnonymity(2), PSensitive(2)),
    "entropy": (LDiversity(2, variant="entropy"),),
    "recursive": (LDiversity(2, variant="recursive", c=3.0),),
    "alpha": (KAnonymity(2), AlphaK(0.7)),
    "t": (TCloseness(0.35, distance="equal"),),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [1, 2])
def test_incognito_equals_exhaustive_search(policy: str, seed: int) -> None:
    data = small_table(seed, 40)
    models = POLICIES[policy]
    table, levels, ok = data.codes.tolist(), twin_levels(data), twin_ok(data, models)
    nodes = naive.satisfying_nodes(table, levels, ok)
    minimal = naive.minimal_nodes(nodes)
    assert 0 < len(nodes) < len(naive.all_nodes(levels)) / 2
    rules = data.rules(Policy(models))
    for choose in CHOICES:
        made = incognito(data, rules, choose=choose)  # type: ignore[arg-type]
        assert made.notes["minimal_nodes"] == [list(node) for node in minimal]
        assert made.notes["satisfying"] == len(nodes)
        node, expected = naive.incognito(table, levels, ok, choose)
        assert made.levels == node
        assert same(made, expected)
    assert made.notes["checked"] == naive.checks(table, levels, ok)


@pytest.mark.parametrize("policy", ["k", "p"])
@pytest.mark.parametrize("masked", ["absorb", "drop"])
def test_incognito_with_suppression_equals_exhaustive_search(policy: str, masked: Any) -> None:
    for seed, budget in [(3, 4), (4, 12), (5, 1), (6, 6)]:
        data = small_table(seed, 40)
        models = POLICIES[policy]
        table, levels, ok = data.codes.tolist(), twin_levels(data), twin_ok(data, models)
        nodes = naive.satisfying_nodes(table, levels, ok, budget)
        for choose in CHOICES:
            made = incognito(data, data.rules(Policy(models)), choose=choose, allowed=budget, masked=masked)  # type: ignore[arg-type]
            assert made.notes["satisfying"] == len(nodes)
            assert made.notes["minimal_nodes"] == [list(node) for node in naive.minimal_nodes(nodes)]
            node, expected = naive.incognito(table, levels, ok, choose, budget, masked)
            assert made.levels == node
            assert same(made, expected)
            assert made.suppressed <= budget
        assert made.notes["checked"] == naive.checks(table, levels, ok, budget)


def test_choosing_by_loss_takes_the_minimal_node_that_loses_least() -> None:
    data = small_table(1, 40)
    rules = data.rules(policy_of(KAnonymity(3)))
    made = incognito(data, rules, choose="loss", objective="granularity")
    levels = full_domain(data)
    losses = {}
    for node in made.notes["minimal_nodes"]:
        classes = naive.classes_at(data.codes.tolist(), levels.groups, range(4), tuple(node))
        losses[tuple(node)] = measure(data, Partition.of_classes(classes, data.n, levels=tuple(node))).granularity
    assert len(losses) > 1
    assert losses[made.levels] == min(losses.values())  # type: ignore[index]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_datafly_equals_its_twin(policy: str, seed: int) -> None:
    data = small_table(seed, 40)
    models = POLICIES[policy]
    table, levels, ok = data.codes.tolist(), twin_levels(data), twin_ok(data, models)
    rules = data.rules(Policy(models))
    for threshold in (None, 0, 6, 20):
        wanted = rules.k if threshold is None else threshold
        node, steps, expected = naive.datafly(table, levels, ok, wanted)
        made = datafly(data, rules, threshold=threshold)
        assert made.levels == node
        assert made.notes["steps"] == [data.quasi[a] for a in steps]
        assert same(made, expected)


def ages(sizes: list[int]) -> Microdata:
    """One class a decade, so many records each."""
    values = [10 * decade + i for decade, size in enumerate(sizes, 1) for i in range(size)]
    return Microdata.from_frame(
        pl.DataFrame({"age": values}), {"age": {"role": "quasi", "taxonomy": {"intervals": [10]}}}
    )


def test_too_few_suppressed_records_take_the_smallest_class_along() -> None:
    data = ages([5, 3, 4, 1])
    rules = data.rules(policy_of(KAnonymity(3)))
    fly, best = datafly(data, rules), incognito(data, rules, allowed=4)
    for made in (fly, best):
        assert made.levels == (1,)
        assert sorted(made.sizes.tolist()) == [4, 5]
        assert made.suppressed == 4
    assert datafly(data, rules, masked="drop").suppressed == 1
    assert incognito(data, rules, allowed=4, masked="drop").suppressed == 1
    # Three more records are not allowed to go: only one class with everybody is left.
    assert incognito(data, rules, allowed=3).levels == (2,)
    assert incognito(data, rules, allowed=3).suppressed == 0


def test_a_class_has_to_stay() -> None:
    data = ages([4, 1])
    rules = data.rules(policy_of(KAnonymity(3)))
    for made in (datafly(data, rules), incognito(data, rules, allowed=data.n)):
        assert (made.levels, made.classes, made.suppressed) == ((2,), 1, 0)


def test_dropped_records_leave_a_verified_release() -> None:
    data = ages([5, 3, 4, 1])
    for algorithm, more in (("datafly", {}), ("incognito", {"suppress": 0.1})):
        made = shoal.anonymize(
            data, KAnonymity(3), algorithm=algorithm, masked="drop", suppressed="drop", order="keep", **more
        )
        assert made.masked["age"].to_list() == ["[10, 19]"] * 5 + ["[20, 29]"] * 3 + ["[30, 39]"] * 4


@pytest.mark.parametrize("seed", [1, 2])
def test_releases_are_verified(seed: int) -> None:
    data = random_table(seed, 120)
    k, p = KAnonymity(4), PSensitive(2, attribute="illness")
    for policy in (
        policy_of(k),
        k & p,
        policy_of(TCloseness(0.4, attribute="illness", distance="equal")),
        k & AlphaK(0.8, attribute="illness"),
    ):
        made = shoal.anonymize(data, policy, algorithm="incognito", order="keep")
        assert made.verify().passed
        assert made.partition.suppressed == 0
        assert made.secret["notes"]["satisfying"] >= len(made.secret["notes"]["minimal_nodes"]) >= 1
        assert_full_domain(data, made)
    for policy in (
        policy_of(k),
        k & p,
        policy_of(TCloseness(0.4, attribute="illness", distance="equal")),
        policy_of(Personalized(0.9, guard=0)),
    ):
        made = shoal.anonymize(data, policy, algorithm="datafly", order="keep", threshold=15)
        assert made.verify().passed
        assert_full_domain(data, made)
    for policy in (policy_of(k), k & p):
        for suppress in (0.02, 0.2):
            made = shoal.anonymize(data, policy, algorithm="incognito", order="keep", suppress=suppress, choose="loss")
            assert made.verify().passed
            assert made.partition.suppressed <= suppress * data.n
            assert_full_domain(data, made)
    for algorithm in ("incognito", "datafly"):
        assert shoal.anonymize(rt7(), KAnonymity(2), algorithm=algorithm).evidence.smallest >= 2


def assert_full_domain(data: Microdata, made: shoal.Release) -> None:
    """Every record shows its own ancestor at the chosen level, and stars where it is suppressed."""
    levels = made.partition.levels
    assert levels is not None
    inside = made.partition.labels >= 0
    for a, (name, domain) in enumerate(zip(data.quasi, data.domains, strict=True)):
        shown = np.array(made.masked[name].to_list(), dtype=object)
        assert set(shown[~inside]) <= {"*"}
        if isinstance(domain, Tree):
            groups = naive.padded(list(domain.taxonomy.rows()))[levels[a]]
            expected = [groups[code][0] or None for code in data.codes[inside, a]]  # type: ignore[index]
            assert shown[inside].tolist() == expected


def test_levels_are_nested_and_missing_is_alone_until_the_top() -> None:
    for seed in (1, 2):
        data = random_table(seed, 80)
        for domain, levels in zip(data.domains, full_domain(data).groups, strict=True):
            assert levels[0].tolist() == list(range(domain.size))
            assert len(set(levels[-1].tolist())) == 1
            for fine, coarse in pairwise(levels):
                assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == len(set(fine.tolist()))
                assert isinstance(domain, Tree) or len(set(coarse.tolist())) < len(set(fine.tolist()))
            if domain.has_missing:
                for level in levels[:-1]:
                    assert np.count_nonzero(level == level[domain.missing_code]) == 1


def test_levels_of_every_kind_of_attribute() -> None:
    frame = pl.DataFrame(
        {
            "day": [date(2020, 1, 3), date(2020, 1, 9), date(2020, 5, 2), date(2021, 5, 2), None],
            "size": ["S", "L", "M", "XL", "XS"],
            "colour": ["red", "blue", "red", "green", None],
            "country": ["here"] * 5,
            "number": [1.5, 1.5, 1.5, 1.5, 1.5],
            "hole": [7, 7, None, 7, 7],
        }
    )
    order = ["XS", "S", "M", "L", "XL"]
    schema: dict[str, Any] = {name: {"role": "quasi"} for name in frame.columns}
    schema["size"]["order"] = order
    found = [[level.tolist() for level in levels] for levels in full_domain(Microdata.from_frame(frame, schema)).groups]
    assert found[0] == [[0, 1, 2, 3, 4], [0, 0, 1, 2, 3], [0, 0, 0, 1, 2], [0, 0, 0, 0, 0]]
    assert found[1] == [[0, 1, 2, 3, 4], [0, 0, 1, 1, 1], [0, 0, 0, 0, 0]]
    assert found[2] == [[0, 1, 2, 3], [0, 0, 0, 0]]
    assert found[3] == [[0]]
    assert found[4] == [[0]]
    assert found[5] == [[0, 1], [0, 0]]


def test_counting_in_pieces_and_anew_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = small_table(1, 60)
    rules = data.rules(KAnonymity(2) & PSensitive(2))
    whole, fly = incognito(data, rules, allowed=5), datafly(data, rules)
    monkeypatch.setattr("shoal.pieces.CELLS", 8)
    monkeypatch.setattr(incognito_module, "WAITING_GROUPS", 0)
    pieces = incognito(data, rules, allowed=5)
    assert pieces.labels.tolist() == whole.labels.tolist()
    assert pieces.notes == whole.notes
    assert datafly(data, rules).labels.tolist() == fly.labels.tolist()


def test_policies_without_union_are_refused_before_working() -> None:
    data = small_table(1, 30)
    for model in (KPQR(2, 0.2, 0.1), Personalized(0.9, guard={"flu": "flu"})):
        bound = random_table(1, 30).rules(policy_of(model)) if model.name == "personalized" else None
        rules = bound or data.rules(policy_of(model))
        with pytest.raises(UnsupportedError, match=rf"{model.name} does not promise; use datafly or mondrian"):
            incognito(data, rules)


@pytest.mark.parametrize("model", [TCloseness(0.4, distance="equal"), LDiversity(2, variant="entropy"), AlphaK(0.9)])
def test_suppression_needs_classes_that_stay_good(model: Model) -> None:
    data = small_table(1, 30)
    rules = data.rules(policy_of(model))
    with pytest.raises(UnsupportedError, match=rf"{model.name} does not promise; set suppress = 0"):
        incognito(data, rules, allowed=1)
    with pytest.raises(UnsupportedError, match=rf"against which {model.name} measures.*absorb"):
        datafly(data, rules, masked="drop")


def test_wrong_options_and_impossible_policies() -> None:
    data = small_table(1, 30)
    rules = data.rules(policy_of(KAnonymity(2)))
    for suppress in (-1, 1.5, True, "2", float("nan")):
        with pytest.raises(ConfigError, match=r"suppress = .* is not allowed"):
            run("incognito", data, rules, suppress=suppress)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="did you mean 'precision'"):
        run("incognito", data, rules, options={"choose": "precison"})
    for threshold in (-1, 2.5, True):
        with pytest.raises(ConfigError, match=r"threshold = .* is not allowed"):
            run("datafly", data, rules, options={"threshold": threshold})
    with pytest.raises(ConfigError, match="masked = 'dropp' is not allowed; did you mean 'drop'"):
        run("datafly", data, rules, options={"masked": "dropp"})
    for algorithm in ("incognito", "datafly"):
        with pytest.raises(InfeasibleError):
            run(algorithm, data, data.rules(policy_of(KAnonymity(31))))
        with pytest.raises(InfeasibleError):
            run(algorithm, data, data.rules(policy_of(LDiversity(4, variant="entropy"))))


def test_too_large_a_lattice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = rt7_with_decades()
    rules = data.rules(policy_of(KAnonymity(2)))
    monkeypatch.setattr(incognito_module, "LARGEST_LATTICE", 35)
    with pytest.raises(UnsupportedError, match="would search 36 combinations"):
        incognito(data, rules)


def test_the_shared_room_is_no_algorithm() -> None:
    assert {"incognito", "datafly"} <= set(names())
    assert "levels" not in names()
