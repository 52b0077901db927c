"""Mondrian: the golden example, the naive twin record for record, any policy, any number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.reference.mondrian import mondrian as naive
from tests.tables import adult, random_table

from shoal.algorithms import mondrian as module
from shoal.algorithms import run
from shoal.errors import ConfigError, InfeasibleError, UnsupportedError
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.models.k_anonymity import KAnonymity
from shoal.models.kpqr import KPQR
from shoal.models.p_sensitive import PSensitive
from shoal.policy import Policy, Rules
from shoal.progress import Moment, Progress
from shoal.space import Interval, Space

MEASURES = ("ncp", "il", "granularity")
SETTINGS = [
    {"mode": mode, "categories": categories, "split": split, "cuts": cuts}
    for mode in ("strict", "relaxed")
    for categories in ("auto", "hierarchy", "sets", "codes")
    for split, cuts in (("median", "median"), ("loss", "median"), ("loss", "all"))
    if mode == "strict" or cuts == "median"
]


def running_example() -> Microdata:
    """The running example with Female before Male."""
    frame = pl.DataFrame(
        {
            "age": [25, 40, 35, 55, 33, 42, 38],
            "zip": ["41076", "41935", "12345", "33333", "41733", "41076", "41933"],
            "gender": ["Male", "Female", "Male", "Male", "Female", "Male", "Male"],
        }
    )
    schema = {
        "age": {"role": "quasi"},
        "zip": {"role": "quasi", "taxonomy": {"prefix": [4, 3, 2, 1, 0]}},
        "gender": {"role": "quasi", "taxonomy": {"rows": [["Female", "*"], ["Male", "*"]]}},
    }
    return Microdata.from_frame(frame, schema)


def policy(k: int, p: int = 0) -> Policy:
    return Policy((KAnonymity(k), PSensitive(p))) if p else Policy((KAnonymity(k),))


def good(data: Microdata, k: int, p: int) -> Any:
    def check(members: Sequence[int]) -> bool:
        secrets = [{int(column.codes[r]) for r in members} - {-1} for column in data.sensitive]
        return len(members) >= k and all(len(values) >= p for values in secrets)

    return check


def labels_of(classes: list[list[int]], n: int) -> list[int]:
    labels = [-1] * n
    for index, members in enumerate(classes):
        for record in members:
            labels[record] = index
    return labels


@pytest.mark.parametrize(
    ("mode", "classes", "loss"),
    [("strict", [[0, 2], [4, 6], [1, 3, 5]], 31 / 63), ("relaxed", [[0, 2, 4], [1, 3], [5, 6]], 101 / 210)],
)
def test_golden_example(mode: str, classes: list[list[int]], loss: float) -> None:
    data = running_example()
    options = {"mode": mode, "categories": "codes", "split": "median"}
    partition = run("mondrian", data, data.rules(policy(2)), options=options)
    assert [members.tolist() for members in partition.members()] == classes
    assert measure(data, partition, 2).ncp_distinct == pytest.approx(loss, abs=1e-12)


def test_taxonomy_is_cut_along_its_branches() -> None:
    rows = [["nurse", "care", "*"], ["midwife", "care", "*"], ["clerk", "office", "*"], ["judge", "office", "*"]]
    frame = pl.DataFrame({"job": ["clerk", "nurse", "farmer", "judge", "nurse", "farmer", "midwife"]})
    schema = {"job": {"role": "quasi", "taxonomy": {"rows": [*rows, ["farmer", "*"]]}}}
    data = Microdata.from_frame(frame, schema)
    # All three branches of the root have two records, but below them someone would be alone.
    along = run("mondrian", data, data.rules(policy(2)), options={"categories": "hierarchy"})
    assert [members.tolist() for members in along.members()] == [[1, 4, 6], [0, 3], [2, 5]]
    # Three farmers would be needed; one node against the rest still works.
    alone = run("mondrian", data, data.rules(policy(3)), options={"categories": "hierarchy"})
    apart = run("mondrian", data, data.rules(policy(3)), options={"categories": "auto"})
    assert alone.classes == 1
    assert [members.tolist() for members in apart.members()] == [[1, 4, 6], [0, 2, 3, 5]]


@pytest.mark.parametrize("seed", range(60))
def test_naive_twin(seed: int) -> None:
    data = random_table(seed, (13, 30, 47, 80)[seed % 4], sensitive=1 + seed % 2)
    k, p = 2 + seed % 5, (0, 2, 3)[seed % 3]
    rules = data.rules(policy(k, p))
    for i in range(3):
        options, objective = SETTINGS[(3 * seed + i) % len(SETTINGS)], MEASURES[(seed + i) % 3]
        partition = run("mondrian", data, rules, objective=objective, options=options)
        expected = naive(data, good(data, k, p), measure=objective, **options)
        assert partition.labels.tolist() == labels_of(expected, data.n), (options, objective)


@pytest.mark.parametrize(("k", "p"), [(5, 0), (4, 3)])
def test_naive_twin_on_adult(k: int, p: int) -> None:
    data = adult(500, ("age", "workclass", "education", "marital-status", "race", "sex"), ("occupation",))
    if data is None:
        pytest.skip("Adult is not here; set SHOAL_DATA to the folder that holds adult/")
    rules = data.rules(policy(k, p))
    for options in SETTINGS[:3] + SETTINGS[-2:]:
        partition = run("mondrian", data, rules, options=options)
        expected = naive(data, good(data, k, p), **options)
        assert partition.labels.tolist() == labels_of(expected, data.n), options


def test_default_loses_least_on_adult() -> None:
    data = adult(2000)
    if data is None:
        pytest.skip("Adult is not here; set SHOAL_DATA to the folder that holds adult/")
    rules = data.rules(policy(5))
    losses = [measure(data, run("mondrian", data, rules, options=options), 5).ncp for options in [{}, *SETTINGS]]
    assert losses[0] == min(losses)


@pytest.mark.parametrize("options", SETTINGS)
def test_rules_without_a_compiled_form(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(5, 120, sensitive=2)
    for p in (0, 2):
        rules = data.rules(policy(4, p))
        compiled = run("mondrian", data, rules, options=options).labels
        monkeypatch.setattr(Rules, "entries", None)
        # Without this a policy of k alone would not ask for the compiled rules at all.
        monkeypatch.setattr(Rules, "only_size", False)
        assert np.array_equal(run("mondrian", data, data.rules(policy(4, p)), options=options).labels, compiled)
        monkeypatch.undo()


@pytest.mark.parametrize("p", [0, 2])
def test_threads_do_not_change_the_result(p: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(11, 600)
    rules = data.rules(policy(3, p))
    seen: list[Moment] = []
    alone = run("mondrian", data, rules, options={"threads": 1})
    monkeypatch.setattr(module, "SMALL", 20)
    together = run("mondrian", data, rules, options={"threads": 3}, progress=Progress(seen.append, every=0))
    assert np.array_equal(alone.labels, together.labels)
    assert len(seen) > 3
    assert seen[-1].share == 1.0


def test_large_domains() -> None:
    random = np.random.default_rng(4)
    codes = random.integers(0, 3000, (90, 3)).astype(np.int32)
    domains = tuple(Interval(np.sort(random.random(3000)), 1.0, has_missing=a == 1) for a in range(3))
    codes[::7, 1] = 3000
    rules = policy(4).bind((), 90)
    space = Space(domains, np.ones(3), "ncp")
    names = ["a", "b", "c"]
    attributes = {name: SimpleNamespace(weight=1.0) for name in names}
    table = SimpleNamespace(codes=codes, domains=domains, quasi=names, schema=SimpleNamespace(attributes=attributes))
    expected = naive(table, lambda members: len(members) >= 4, split="median", cuts="median")
    found = module.cut_columns(list(codes.T), space, rules, split="median")
    assert found.tolist() == labels_of(expected, 90)


def test_repeated_rows_are_weights() -> None:
    data = random_table(3, 200, duplicates=0.8)
    rules = data.rules(policy(4))
    for options in SETTINGS:
        if options["mode"] == "strict":
            labels = module.cut_columns(list(data.codes.T), data.space("ncp"), rules, **options)
            assert run("mondrian", data, rules, options=options).labels.tolist() == labels.tolist()


def test_constant_table_is_one_class() -> None:
    frame = pl.DataFrame({"age": [30] * 9})
    data = Microdata.from_frame(frame, {"age": {"role": "quasi"}})
    for mode in ("strict", "relaxed"):
        assert run("mondrian", data, data.rules(policy(2)), options={"mode": mode}).classes == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "strickt"}, "did you mean 'strict'"),
        ({"categories": "tree"}, "categories = 'tree'"),
        ({"split": "median", "cuts": "all"}, "needs split"),
        ({"mode": "relaxed", "cuts": "all"}, "needs split"),
        ({"threads": -1}, "threads = -1"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    data = running_example()
    with pytest.raises(ConfigError, match=message):
        run("mondrian", data, data.rules(policy(2)), options=options)


def test_refusals() -> None:
    data = random_table(2, 40)
    with pytest.raises(InfeasibleError, match="41"):
        module.mondrian(data, data.rules(policy(41)))
    rules = data.rules(Policy((KPQR(2, 0.5, 0.1),)))
    assert not rules.union_closed
    with pytest.raises(UnsupportedError, match="the same published values"):
        run("mondrian", data, rules, options={"mode": "relaxed"})
    with pytest.raises(UnsupportedError, match="the same published values"):
        run("mondrian", data, rules, options={"categories": "codes"})
