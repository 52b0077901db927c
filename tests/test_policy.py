"""Policy and rules: what is written is what is asked, and what algorithms are told about classes is what a count by hand gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.models.stand_in import column, rich
from tests.tables import random_table

from shoal.errors import ConfigError, InfeasibleError
from shoal.models import MODELS, Kind
from shoal.models.alpha_k import AlphaK
from shoal.models.k_anonymity import KAnonymity
from shoal.models.k_e import KE
from shoal.models.l_diversity import LDiversity
from shoal.models.p_sensitive import PSensitive
from shoal.models.personalized import Personalized
from shoal.models.t_closeness import TCloseness
from shoal.policy import Policy, Rules, json_schema, labelled

# -- what is written


@pytest.mark.parametrize(
    ("section", "models"),
    [
        ({"k": 5}, (KAnonymity(5),)),
        ({"k_anonymity": {"k": 5}}, (KAnonymity(5),)),
        ({"p_sensitive": {"p": 3, "attribute": "a"}, "k": 2}, (PSensitive(3, "a"), KAnonymity(2))),
        ({"p_sensitive": [{"p": 3, "attribute": "a"}, {"p": 2}]}, (PSensitive(3, "a"), PSensitive(2))),
    ],
)
def test_a_section_is_its_models_in_order(section: dict[str, Any], models: tuple[Any, ...]) -> None:
    assert Policy.from_config(section) == Policy(models)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"p_sensitivity": {"p": 3}}, r"\[policy\] p_sensitivity: no such model; did you mean 'p_sensitive'"),
        ({"K": 3}, r"\[policy\] K: no such model"),
        ({"p_sensitive": [{"p": 3}, 4]}, r"\[policy\] p_sensitive = 4 is not allowed; write a table such as"),
        (
            {"p_sensitive": {"p": 3, "atribute": "a"}},
            r"p_sensitive.atribute: no such parameter; did you mean 'attribute'",
        ),
        ({"t_closeness": {}}, r"\[policy\] t_closeness: .*; parameters are t, attribute"),
        ({"p_sensitive": []}, r"\[policy\] is empty; write for example k = 5"),
    ],
)
def test_a_section_that_says_nothing_possible(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Policy.from_config(section)


def test_written_down_a_policy_asks_for_no_less() -> None:
    """A manifest that named the smaller of two k would promise less than was done, and one that named it alone would lie."""
    for policy in (
        KAnonymity(5) & KAnonymity(3) & PSensitive(2, "a"),
        KAnonymity(3) & KAnonymity(5) & PSensitive(2, "a"),
    ):
        assert policy.to_config() == {"k": 5, "p_sensitive": {"p": 2, "attribute": "a"}}
    twice = PSensitive(2, "a") & PSensitive(3, "b") & TCloseness(0.3)
    assert twice.to_config() == {
        "p_sensitive": [{"p": 2, "attribute": "a"}, {"p": 3, "attribute": "b"}],
        "t_closeness": {"t": 0.3},
    }
    assert Policy.from_config(twice.to_config()) == twice


def test_joined_policies_keep_their_order() -> None:
    first, second, third = KAnonymity(2), PSensitive(3, "a"), TCloseness(0.2)
    assert ((first & second) & third).models == (first & (second & third)).models == (first, second, third)
    assert ((first & second) & (third & first)).models == (first, second, third, first)
    assert str(first & second & third) == "k_anonymity(k = 2) & p_sensitive(p = 3) on a & t_closeness(t = 0.2)"


def test_the_schema_for_editors_names_every_model() -> None:
    found = json_schema()
    models = found["properties"]["policy"]["properties"]
    assert found["title"] == "shoal.toml" and found["properties"]["policy"]["additionalProperties"] is False
    assert set(models) == {"k", *MODELS} - {"k_anonymity"}
    assert models["k"]["minimum"] == 1 and models["k"]["description"] == KAnonymity.summary()
    one, several = models["p_sensitive"]["anyOf"]
    assert several == {"type": "array", "items": one} and set(one["properties"]) == {"p", "attribute"}
    taxonomy = found["$defs"]["Attribute"]["properties"]["taxonomy"]["anyOf"]
    assert {"not": {}} in taxonomy  # one made in Python cannot stand in a file


# -- on a table


def two_columns() -> list[Any]:
    return [rich(np.arange(12) % 6, name="a"), rich(np.arange(12) // 4, name="b")]


def test_a_model_without_an_attribute_is_about_all_of_them() -> None:
    rules = Policy((KAnonymity(2), PSensitive(2), PSensitive(3, "b"))).bind(two_columns(), 12)
    assert [(rule.model.name, rule.attribute) for rule in rules.rules] == [
        ("k_anonymity", None),
        ("p_sensitive", "a"),
        ("p_sensitive", "b"),
        ("p_sensitive", "b"),
    ]
    # Rules about one attribute share what is counted of it.
    assert (rules.view_of, len(rules.views), rules.only_size) == ([-1, 0, 1, 1], 2, False)
    assert Policy((KAnonymity(2),)).bind(two_columns(), 12).only_size


def test_an_attribute_that_is_not_there_is_named() -> None:
    with pytest.raises(
        ConfigError, match=r"p_sensitive: 'aa' is not a sensitive attribute; did you mean|allowed: a, b"
    ):
        Policy((PSensitive(2, "aa"),)).bind(two_columns(), 12)
    with pytest.raises(
        ConfigError, match="p_sensitive: 'a' is not a sensitive attribute; no column has the role sensitive"
    ):
        Policy((PSensitive(2, "a"),)).bind([], 12)
    with pytest.raises(
        ConfigError, match='p_sensitive needs a sensitive attribute; give a column the role "sensitive"'
    ):
        Policy((PSensitive(2),)).bind([], 12)
    assert Policy((KAnonymity(2),)).bind([], 12).n == 12


def test_what_no_release_can_satisfy_is_refused_with_the_column() -> None:
    attribute = column(["x", "x", "y", None])
    rules = Policy((KAnonymity(2), PSensitive(3))).bind([attribute], 4)
    with pytest.raises(
        InfeasibleError, match=r"3 distinct values of .illness. and the table has 2; ask for p ≤ 2\.$"
    ) as problem:
        rules.require_feasible()
    assert problem.value.witness == "illness"
    Policy((KAnonymity(4), PSensitive(2))).bind([attribute], 4).require_feasible()


def by_hand(rules: Rules, labels: Sequence[int], classes: int) -> list[tuple[int, list[list[int]]]]:
    """Size and histograms of each class, counted one record at a time."""
    found = []
    for c in range(classes):
        members = [i for i, label in enumerate(labels) if label == c]
        histograms = []
        for view in rules.views:
            counts = [0] * view.width
            for i in members:
                if view.codes[i] >= 0:
                    counts[view.codes[i]] += 1
            histograms.append(counts)
        found.append((len(members), histograms))
    return found


POLICY = Policy((KAnonymity(3), LDiversity(2, "illness"), KE(2000.0, "income"), TCloseness(0.4, "illness")))


@pytest.mark.parametrize("seed", range(4))
def test_counts_and_deficits_equal_those_by_hand(seed: int) -> None:
    data = random_table(seed, 50, sensitive=2)
    rules = data.rules(POLICY)
    labels = np.random.default_rng(seed).integers(-1, 9, 50)
    classes = 10  # the last one is empty
    wanted = by_hand(rules, labels.tolist(), classes)
    stats = rules.stats(labels, classes)
    assert stats.sizes.tolist() == [size for size, _ in wanted]
    for v in range(len(rules.views)):
        assert stats.counts[v].tolist() == [histograms[v] for _, histograms in wanted]
    total = rules.deficits(labels, classes)
    each = rules.rule_deficits(stats)
    assert each.shape == (4, classes)
    for c in range(classes - 1):
        members = np.flatnonzero(labels == c)
        alone = [
            float(rule.deficit(stats.sizes[c : c + 1], counts[c : c + 1])[0])
            for rule, counts in zip(rules.rules, rules.counts_by_rule(stats), strict=True)
        ]
        assert each[:, c].tolist() == alone
        assert total[c] == pytest.approx(sum(alone))
        assert rules.ok(members) == (sum(alone) == 0)
        one = rules.stats_of(members)
        assert one.sizes.tolist() == [len(members)]
        assert [counts[0].tolist() for counts in one.counts] == wanted[c][1]
    assert not rules.ok(np.array([], dtype=np.int64))  # nobody is no class


@pytest.mark.parametrize("cells", [1, 7, 20, 63, 64, 10_000])
def test_large_histograms_are_counted_in_pieces(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(3, 60, sensitive=2)
    rules = data.rules(POLICY)
    labels = np.random.default_rng(1).integers(-1, 16, 60)
    whole = rules.deficits(labels, 16)
    largest: list[int] = []
    counted = Rules.stats
    monkeypatch.setattr(
        Rules,
        "stats",
        lambda self, part, classes, **how: largest.append(classes) or counted(self, part, classes, **how),
    )
    monkeypatch.setattr("shoal.pieces.CELLS", cells)
    assert np.array_equal(rules.deficits(labels, 16), whole)
    widest = max(view.width for view in rules.views)
    assert max(largest) <= max(1, cells // widest) and sum(largest) == 16
    assert Policy((KAnonymity(2),)).bind([], 60).deficits(labels, 16).tolist() == [
        max(0, 2 - int((labels == c).sum())) for c in range(16)
    ]


def test_some_of_the_records_are_still_measured_by_the_whole_table() -> None:
    """A part that lacks a value is not closer to the table because it was looked at by itself."""
    attribute = column(["x"] * 6 + ["y"] * 6)
    rules = Policy((KAnonymity(2), PSensitive(2), TCloseness(0.2))).bind([attribute], 12)
    part = rules.restrict(np.arange(4, 12))
    assert (part.n, part.views[0].codes.tolist()) == (8, [0, 0, 1, 1, 1, 1, 1, 1])
    assert [rule.n for rule in part.rules] == [8, 8, 8]
    assert part.rules[1].table_counts.tolist() == [2, 6]
    assert part.max_classes == 2 < rules.max_classes
    halves, all_of_it = part.stats_of(np.array([0, 2])), part.stats_of(np.arange(8))
    assert part.deficit(halves).tolist() == [0.0]  # as the whole table is
    assert part.deficit(all_of_it)[0] > 0  # though it is exactly like the part
    assert rules.n == 12 and rules.rules[1].table_counts.tolist() == [6, 6]


def test_some_of_the_rules() -> None:
    rules = Policy((KAnonymity(5), PSensitive(2, "b"), PSensitive(2, "a"))).bind(two_columns(), 12)
    some = rules.only(rules.rules[2:])
    assert (some.k, some.n, some.view_of, len(some.views)) == (2, 12, [0], 1)
    assert np.array_equal(some.views[0].codes, rules.views[1].codes)


def test_codes_lie_side_by_side() -> None:
    rules = Policy((PSensitive(2), KAnonymity(2))).bind(two_columns(), 12)
    assert rules.codes().tolist() == [[i % 6, i // 4] for i in range(12)]
    assert rules.codes().dtype == np.int32
    assert Policy((KAnonymity(2),)).bind([], 12).codes().shape == (12, 0)


# -- for compiled loops


def test_forms_are_laid_out_as_the_loops_read_them() -> None:
    rules = Policy((KAnonymity(4), TCloseness(0.25, "b"), PSensitive(3, "a"), PSensitive(2, "b"))).bind(
        two_columns(), 12
    )
    entries, flat = rules.entries, rules.flat()
    assert entries is not None and flat is not None
    assert (entries[0].rule, entries[0].view) == (0, -1)
    for i, entry in enumerate(entries):
        assert flat.kind[i] == entry.form.kind
        view = None if entry.view < 0 else rules.views[entry.view]
        assert entry.view in (-1, rules.view_of[entry.rule])
        assert flat.width[i] == (0 if view is None else view.width)
        assert flat.offset[i] == (0 if view is None else sum(v.width for v in rules.views[: entry.view]))
        assert flat.ints[flat.int_start[i] : flat.int_start[i + 1]].tolist() == list(entry.form.ints())
        assert flat.floats[flat.float_start[i] : flat.float_start[i + 1]].tolist() == list(entry.form.floats())
    assert flat.others == sum(entry.form.kind not in (Kind.SIZE, Kind.DISTINCT) for entry in entries) > 0
    assert Policy((KAnonymity(4), PSensitive(3, "a"))).bind(two_columns(), 12).flat().others is None  # type: ignore[union-attr]
    part = rules.flat(entries[:1])
    assert part is not None and part.kind.tolist() == [Kind.SIZE] and part.ints.tolist() == [4]


def test_one_rule_without_forms_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = Policy((KAnonymity(4), PSensitive(3, "a"))).bind(two_columns(), 12)
    monkeypatch.setattr(type(rules.rules[1]), "forms", lambda self: None)
    assert rules.entries is None and rules.flat() is None and rules.distinct == {}


def test_rules_that_ask_for_distinct_values_alone_are_known() -> None:
    rules = Policy((KAnonymity(4), PSensitive(3, "a"), AlphaK(0.5, "a"), PSensitive(2, "b"))).bind(two_columns(), 12)
    assert rules.distinct == {1: 3, 3: 2}


# -- labels beside an attribute


def test_guards_are_taken_from_the_columns_that_models_name() -> None:
    policy = Policy((Personalized(0.5, "a", guard="wish"), Personalized(0.4, guard="other"), KAnonymity(2)))
    assert policy.beside(["a", "b"]) == {"a": ("wish", "other"), "b": ("other",)}
    assert Policy((Personalized(0.5, "a", guard="wish"),)).beside(["b"]) == {}
    assert Policy((KAnonymity(2),)).beside(["a"]) == {}
    frame = pl.DataFrame({"wish": ["x", None], "else": [1, 2]})
    a, b = labelled([rich([0, 1], name="a"), rich([0, 1], name="b")], policy, frame)
    assert list(a.beside) == ["wish"] and a.beside["wish"].tolist() == ["x", None]
    assert b.beside == {}  # the other column is not in the table
