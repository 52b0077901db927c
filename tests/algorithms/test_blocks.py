"""Blocks: every policy holds over all seams, one block is the algorithm itself, threads change nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.algorithms import BLOCKED, blocks, run
from shoal.algorithms.blocks import in_blocks
from shoal.algorithms.mondrian import cut_blocks
from shoal.algorithms.options import options_of
from shoal.errors import ConfigError
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.models import MODELS, Model
from shoal.models.k_anonymity import KAnonymity
from shoal.models.p_sensitive import PSensitive
from shoal.models.t_closeness import TCloseness
from shoal.policy import Policy, Rules
from shoal.progress import Progress

ILLNESSES = [["flu", "lung", "*"], ["asthma", "lung", "*"], ["ulcer", "stomach", "*"], ["gastritis", "stomach", "*"]]
EXAMPLES = [model for kind in MODELS.values() for model in kind.examples()]


@cache
def table(n: int = 500) -> Microdata:
    """The sensitive attributes depend on the quasi-identifiers, so that a block's distribution is not the table's."""
    random = np.random.default_rng(3)
    age = random.integers(20, 80, n)
    zone = random.integers(0, 40, n)
    shift = (age > 50).astype(int) + random.integers(0, 3, n)
    frame = pl.DataFrame(
        {
            "age": [None if i % 37 == 0 else int(x) for i, x in enumerate(age)],
            "zip": [f"4{z:02d}" for z in zone],
            "job": [("nurse", "clerk", "judge", None)[x] for x in random.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])],
            "illness": [ILLNESSES[x][0] for x in shift],
            "income": np.minimum(6, 1 + shift + random.integers(0, 3, n)) * 10,
        }
    )
    schema: dict[str, Any] = {
        "age": {"role": "quasi"},
        "zip": {"role": "quasi", "taxonomy": {"prefix": [2, 1, 0]}},
        "job": {"role": "quasi"},
        "illness": {
            "role": "sensitive",
            "taxonomy": {"rows": ILLNESSES},
            "protect": ["lung"],
            "categories": {"secret": ["ulcer", "gastritis"], "plain": ["flu", "asthma"]},
        },
        "income": {"role": "sensitive"},
    }
    return Microdata.from_frame(frame, schema)


def bound(data: Microdata, *models: Model) -> Rules:
    return data.rules(Policy(models))


def rules_of(model: Model) -> Rules:
    """The model on the first attribute that it can be asked of, and 3-anonymity."""
    data = table()
    for attribute in ("illness", "income"):
        asked = replace(model, attribute=attribute) if model.per_attribute else model  # type: ignore[call-arg]
        try:
            return bound(data, KAnonymity(3), asked)
        except ConfigError:
            continue
    raise AssertionError(f"{model} suits no attribute")


@pytest.mark.parametrize("model", EXAMPLES, ids=str)
def test_every_policy_holds_over_all_seams(model: Model) -> None:
    data, rules = table(), rules_of(model)
    try:
        found = run("k_member", data, rules, options={"blocks": 90})
    except (shoal.InfeasibleError, shoal.UnsupportedError) as refusal:
        with pytest.raises(type(refusal)):
            run("k_member", data, rules, options={"blocks": 0})
        return
    assert found.suppressed == 0
    # Class by class from its members, by the rules of the whole table.
    assert all(rules.ok(members) for members in found.members())


def test_most_policies_are_really_cut() -> None:
    counts = []
    for model in EXAMPLES:
        try:
            found = run("k_member", table(), rules_of(model), options={"blocks": 90})
        except (shoal.InfeasibleError, shoal.UnsupportedError):
            continue
        counts.append(found.notes.get("blocks", {}).get("count", 1))
    assert np.mean(np.array(counts) > 2) > 0.7


@pytest.mark.parametrize("algorithm", BLOCKED)
def test_released_and_verified_with_every_algorithm(algorithm: str) -> None:
    policy = Policy((KAnonymity(4), PSensitive(2, "illness"), TCloseness(0.4, "illness", distance="equal")))
    release = shoal.anonymize(table(), policy, algorithm=algorithm, refine=False, blocks=120)
    assert release.partition.notes["blocks"]["count"] > 1
    assert release.verify().passed


@pytest.mark.parametrize("algorithm", BLOCKED)
def test_one_block_is_the_algorithm_itself(algorithm: str) -> None:
    data = table()
    rules = bound(data, KAnonymity(4), PSensitive(2, "illness"))
    whole = run(algorithm, data, rules, seed=5, options={"blocks": 0})
    assert np.array_equal(run(algorithm, data, rules, seed=5, options={"blocks": data.n}).labels, whole.labels)
    assert np.array_equal(run(algorithm, data, rules, seed=5).labels, whole.labels)


def test_threads_change_nothing() -> None:
    data = table()
    rules = bound(data, KAnonymity(3), TCloseness(0.4, "illness", distance="equal"))
    given: dict[str, Any] = {"objective": "ncp", "seed": 2, "progress": Progress(), "blocks": 60}
    one = in_blocks("k_member", data, rules, threads=1, **given)
    four = in_blocks("k_member", data, rules, threads=4, **given)
    assert one.notes["blocks"]["count"] > 3
    assert np.array_equal(one.labels, four.labels)
    assert not np.array_equal(one.labels, in_blocks("k_member", data, rules, threads=1, **{**given, "seed": 3}).labels)


@pytest.mark.parametrize("model", EXAMPLES, ids=str)
def test_restricted_rules_judge_as_the_whole_tables(model: Model) -> None:
    rules = rules_of(model)
    random = np.random.default_rng(1)
    records = np.sort(random.choice(rules.n, 150, replace=False))
    few = rules.restrict(records)
    assert few.n == 150
    for size in (2, 3, 5, 20, 150):
        members = random.choice(150, size, replace=False)
        mine, whole = few.deficit(few.stats_of(members)), rules.deficit(rules.stats_of(records[members]))
        assert mine == whole
    flat, there = few.flat(), rules.flat()
    if there is not None:
        assert flat is not None
        assert all(np.array_equal(a, b) for a, b in zip(flat, there, strict=True))


def test_a_blocks_own_distribution_would_not_do() -> None:
    """Bound to a block alone, t-closeness compares with the wrong table; restricted, with the right one."""
    data = table()
    rules = bound(data, KAnonymity(3), TCloseness(0.1, "illness", distance="equal"))
    old = np.flatnonzero((data.codes[:, 0] > 30) & (data.codes[:, 0] < data.domains[0].missing_code))
    alone = data.take(old).rules(rules.policy)
    everyone = np.arange(len(old))
    assert alone.ok(everyone)
    assert not rules.restrict(old).ok(everyone)
    assert not rules.ok(old)


def test_blocks_are_good_classes_of_the_size_asked_for() -> None:
    data = table(2000)
    rules = bound(data, KAnonymity(5), PSensitive(3, "illness"))
    labels = cut_blocks(data, rules, data.space("ncp"), 250, Progress())
    sizes = np.bincount(labels)
    assert sizes.max() <= 250
    assert sizes.min() >= 250 // 8
    assert (rules.deficits(labels, len(sizes)) <= 0).all()
    only_size = bound(data, KAnonymity(5))
    labels = cut_blocks(data, only_size, data.space("ncp"), 250, Progress())
    assert np.bincount(labels).max() <= 250
    first = np.full(len(data.points.weights), -1)
    first[data.points.of_record] = labels
    assert np.array_equal(first[data.points.of_record], labels)  # equal records stay together


def test_seams_are_only_mended_for_the_better(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(2000)
    rules = bound(data, KAnonymity(5))
    mended = run("k_member", data, rules, options={"blocks": 200})
    monkeypatch.setattr(blocks, "POOLED", ())
    rough = run("k_member", data, rules, options={"blocks": 200})
    assert mended.notes["blocks"]["pooled"]
    assert measure(data, mended).ncp < measure(data, rough).ncp
    whole = run("k_member", data, rules, options={"blocks": 0})
    assert measure(data, mended).ncp < 1.1 * measure(data, whole).ncp


def test_large_tables_are_cut_without_being_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table()
    rules = bound(data, KAnonymity(3))
    monkeypatch.setattr(blocks, "WHOLE", 400)
    monkeypatch.setattr(blocks, "RECORDS", 100)
    assert run("k_member", data, rules).notes["blocks"]["count"] > 3
    assert "blocks" not in run("mdav", data, rules).notes
    # A record to begin with is one of the whole table.
    assert "blocks" not in run("k_member", data, rules, options={"first": 7}).notes


def test_progress_ends_at_one_and_never_falls() -> None:
    told: list[float] = []
    run("k_member", table(), bound(table(), KAnonymity(3)), progress=told.append, options={"blocks": 90})
    assert told[-1] == 1.0
    assert max(told) == 1.0


def test_what_cannot_be_a_block_is_told() -> None:
    data = table()
    rules = bound(data, KAnonymity(3))
    with pytest.raises(ConfigError, match="0 \\(no blocks\\) or a number of records"):
        run("k_member", data, rules, options={"blocks": -1})
    with pytest.raises(ConfigError, match="whole table"):
        run("k_member", data, rules, options={"blocks": 50, "first": 3})
    with pytest.raises(ConfigError, match="no option 'blocks'"):
        run("mondrian", data, rules, options={"blocks": 50})
    assert "blocks" in options_of("k_member")
    assert "blocks" not in options_of("mondrian")
