"""Rules bound to value counts are the rules of the records, and verdicts in pieces are the verdict of the whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.tables import ILLNESSES, random_table

import shoal
from shoal.errors import ConfigError
from shoal.measures.folding import Sum, Tally, Whole, tally
from shoal.measures.loss import measure
from shoal.microdata import Microdata, encode_sensitive
from shoal.models import MODELS, Model
from shoal.partition import Partition
from shoal.policy import Policy, Rules, Stats, labelled
from shoal.states import class_states
from shoal.verifier import verify
from shoal.verifier.folding import Folding, Verdict

EVERY = [(name, i) for name in sorted(MODELS) for i in range(len(MODELS[name].examples()))]


def counted_rules(data: Microdata, policy: Policy) -> Rules:
    """The policy bound to distinct values with weights."""
    columns: list[Any] = []
    for name in data.schema.named("sensitive"):
        names = list(dict.fromkeys([name, *policy.beside([name]).get(name, ())]))
        distinct = data.frame.group_by(names).len().sort(names)
        column = encode_sensitive(
            distinct.select(names), name, data.schema, distinct["len"].to_numpy().astype(np.int64)
        )
        columns += labelled([column], policy, distinct)
    return policy.bind(columns, data.n)


@pytest.mark.parametrize(("name", "which"), EVERY)
def test_rules_from_value_counts_are_those_of_the_records(name: str, which: int) -> None:
    """On categories and on numbers; each model fits one of them at least, and what does not fit is refused from both."""
    data = random_table(9, 120, sensitive=2)
    example = MODELS[name].examples()[which]
    fits = []
    for column in ("illness", "income"):
        policy = Policy((replace(example, attribute=column) if example.per_attribute else example,))
        try:
            wanted = data.rules(policy)
        except ConfigError:
            with pytest.raises(ConfigError):
                counted_rules(data, policy)
            continue
        fits.append(column)
        found = counted_rules(data, policy)
        assert (found.k, found.max_classes, found.n) == (wanted.k, wanted.max_classes, wanted.n)
        assert [rule.infeasible() for rule in found.rules] == [rule.infeasible() for rule in wanted.rules]
        assert [rule.table_counts.tolist() for rule in found.rules] == [
            rule.table_counts.tolist() for rule in wanted.rules
        ]
        labels = np.random.default_rng(0).integers(0, 12, data.n)
        stats: Stats = wanted.stats(labels, 12)
        assert found.rule_deficits(stats).tolist() == wanted.rule_deficits(stats).tolist()
    assert fits


def test_guards_are_counted_with_their_values() -> None:
    data = random_table(9, 120)
    above = {row[0]: row[1] for row in ILLNESSES}
    wishes = [(None, "*", above.get(ill, "*"))[i % 3] for i, ill in enumerate(data.frame["illness"].to_list())]
    frame = data.frame.with_columns(wish=pl.Series(wishes))
    schema = replace(
        data.schema,
        attributes={**data.schema.attributes, "wish": shoal.Attribute(role="identifier", repeats="allowed")},
    )
    data = Microdata.from_frame(frame, schema)
    policy = Policy((shoal.Personalized(0.4, guard="wish"),))
    found, wanted = counted_rules(data, policy), data.rules(policy)
    assert found.rules[0].table_counts.tolist() == wanted.rules[0].table_counts.tolist()
    stats = wanted.stats(np.arange(data.n) % 7, 7)
    assert found.rule_deficits(stats).tolist() == wanted.rule_deficits(stats).tolist()


def masked_table(seed: int, n: int = 150) -> tuple[pl.DataFrame, Any]:
    data = random_table(seed, n, sensitive=2)
    return shoal.anonymize(data, shoal.KAnonymity(4), algorithm="mondrian", refine=False, seed=seed).masked, data.schema


def folded(masked: pl.DataFrame, policy: Policy, schema: Any, pieces: int) -> Any:
    """The evidence from so many pieces, made from counts alone."""
    quasi = list(schema.named("quasi"))
    values = {name: masked[name].unique(maintain_order=True) for name in quasi}
    counted = {name: (one, np.array([(masked[name].eq_missing(v)).sum() for v in one])) for name, one in values.items()}
    secret = {}
    for name in schema.named("sensitive"):
        names = list(dict.fromkeys([name, *(c for c in policy.beside([name]).get(name, ()) if c in masked.columns)]))
        distinct = masked.group_by(names).len().sort(names, nulls_last=True)
        secret[name] = (distinct.select(names), distinct["len"].to_numpy().astype(np.int64))
    folding = Folding(counted, secret, policy, schema)
    verdicts = []
    for way in folding.ways:
        columns = {}
        for i, name in enumerate(quasi):
            place = {v: int(way[name][j]) for j, v in enumerate(values[name].to_list())}
            columns[f"c{i}"] = [place[v] for v in masked[name].to_list()]
        for s, (distinct, _) in enumerate(secret.values()):
            kinds = {row: j for j, row in enumerate(distinct.rows())}
            columns[f"s{s}"] = [kinds[row] for row in masked.select(distinct.columns).rows()]
        rows = pl.DataFrame(columns)
        rows = rows.group_by(rows.columns).len(name="records").sort(rows.columns)
        classes = (
            rows.select(pl.struct(f"c{i}" for i in range(len(quasi))).rank("dense").alias("c")).to_series().to_numpy()
        )
        parts = [rows.filter(pl.Series(classes % pieces == piece)) for piece in range(pieces)]
        parts = [part for part in parts if part.height]
        found = folding.verdict(parts[-1])
        for part in parts[:-1]:
            found = found.merge(folding.verdict(part))
        again = folding.uncertain(found)
        held = [all(folding.holds(part, again)[i] for part in parts) for i in range(len(again))]
        verdicts.append(folding.settled(found, again, held))
    return folding.evidence(verdicts)


def fitting(model: Model, masked: pl.DataFrame, schema: Any) -> tuple[Policy, Any]:
    """The model on all sensitive columns, or on the one that has numbers, or the taxonomy, that it wants."""
    single = [replace(model, attribute=name) for name in ("income", "illness")] if model.per_attribute else []
    for one in (model, *single):
        policy = Policy((shoal.KAnonymity(3), one))
        try:
            return policy, verify(masked, policy, schema)
        except ConfigError:
            continue
    raise AssertionError(f"{model} fits no column")


@pytest.mark.parametrize(("name", "which"), EVERY)
def test_pieces_of_verdicts_make_the_whole_verdict(name: str, which: int) -> None:
    model: Model = MODELS[name].examples()[which]
    for seed in range(3):
        masked, schema = masked_table(seed)
        policy, wanted = fitting(model, masked, schema)
        for pieces in (1, 2, 5):
            found = folded(masked, policy, schema, pieces)
            assert (found.records, found.classes, found.smallest, found.largest) == (
                wanted.records,
                wanted.classes,
                wanted.smallest,
                wanted.largest,
            )
            assert repr(found.checks) == repr(wanted.checks), "not a number is one, too"
            assert found.notes == wanted.notes and found.problems == wanted.problems
            told = [sorted(map(str, one.violations)) for one in (found, wanted)]
            assert told[0] == told[1]


def test_two_spellings_of_a_value_are_looked_at_both_ways() -> None:
    schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "ill": shoal.Attribute(role="sensitive")})
    masked = pl.DataFrame({"age": ["34", "34.0", "34", "[20, 29]"], "ill": ["a", "b", "a", "b"]})
    policy = shoal.KAnonymity(2) & shoal.PSensitive(2)
    wanted, found = verify(masked, policy, schema), folded(masked, policy, schema, 3)
    assert found.checks == wanted.checks and found.notes == wanted.notes
    assert not found.passed


def test_a_cell_nobody_can_vouch_for_is_a_problem() -> None:
    schema = shoal.Schema({"age": shoal.Attribute(role="quasi", kind="number")})
    masked = pl.DataFrame({"age": ["34", "34", "old", "old"]})
    found = folded(masked, Policy((shoal.KAnonymity(2),)), schema, 2)
    assert not found.passed and "in 2 records" in found.problems[0]


def test_a_class_that_fails_is_found_wherever_it_is() -> None:
    masked, schema = masked_table(0)
    policy = Policy((shoal.KAnonymity(4),))
    assert folded(masked, policy, schema, 4).passed
    for row in range(0, masked.height, 29):
        assert not folded(
            masked.with_row_index()
            .filter(pl.col("index") != row)
            .drop("index")
            .with_columns(
                pl.when(pl.int_range(pl.len()) == row)
                .then(pl.lit("[0, 1]"))
                .otherwise(pl.col("height"))
                .alias("height")
            ),
            policy,
            schema,
            4,
        ).passed


def test_verdicts_merge_in_any_order() -> None:
    one = Verdict(5, 2, 2, 3, (2.0, 0.3), (1, 0), ((), ()), (False, True))
    other = Verdict(9, 1, 9, 9, (9.0, 0.5), (0, 2), ((), ()), (False, True))
    strange = replace(other, strongest=(9.0, float("nan")))
    assert one.merge(other).strongest == other.merge(one).strongest == (2.0, 0.5)
    assert np.isnan(one.merge(strange).strongest[1]) and np.isnan(strange.merge(one).strongest[1])


def test_sums_are_exact_whatever_their_order() -> None:
    import math

    random = np.random.default_rng(0)
    values = random.normal(size=1000) * 10.0 ** random.integers(-300, 300, 1000)
    values[:3] = 5e-324, -5e-324, 0.0
    sums = [Sum(), Sum(), Sum()]
    for i, one in enumerate(sums):
        one.add(values[i::3])
    sums[2].merge(sums[0])
    sums[2].merge(sums[1])
    assert sums[2].value == math.fsum(values.tolist())


@pytest.mark.parametrize("seed", range(3))
def test_losses_of_pieces_make_the_losses_of_the_whole(seed: int) -> None:
    data = random_table(seed, 200)
    labels = np.random.default_rng(seed).integers(0, 20, data.n)
    partition = Partition.compact(labels)
    wanted = measure(data, partition, k=3)
    counts = [np.bincount(data.codes[:, a], minlength=domain.size) for a, domain in enumerate(data.domains)]
    whole = Whole.of_counts(data.space("il"), 3, counts)
    total = Tally()
    for piece in range(4):
        records = np.flatnonzero(partition.labels % 4 == piece)
        part, own = data.take(records), Partition.compact(partition.labels[records])
        total.merge(tally(part, own, class_states(part, own, part.space("il")), whole))
    assert total.measures(data.quasi, whole) == wanted
