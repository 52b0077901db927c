"""What models are made of, against plain loops: conditions, sets of values, ranges, forms, and classes of which nothing is known."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.models.stand_in import RICH, VALUES, column, rich
from tests.models.test_model_contract import bound, examples

from shoal.errors import ConfigError
from shoal.models import MODELS, Model, Sensitive
from shoal.models.conditions import condition_2, max_classes
from shoal.models.forms import Distance, Distinct, Entropy, Form, Recursive, Shares, Size, Summed
from shoal.models.parameters import require_word
from shoal.models.personalized import _guarded_pairs
from shoal.models.persons import Crowd
from shoal.models.persons import bound as bound_to_persons
from shoal.models.ranges import prefixes, singles, subtrees
from shoal.models.sets import PARTS, Sets, cannot_be_hit, class_hitting_numbers, hitting_number, means, number_sets
from shoal.policy import Policy
from shoal.taxonomy import Taxonomy

pytestmark = pytest.mark.filterwarnings("ignore:.*do not vary")


@pytest.mark.parametrize("seed", range(20))
def test_condition_2_of_any_frequencies(seed: int) -> None:
    random = np.random.default_rng(seed)
    frequencies = random.integers(0, 7, int(random.integers(1, 7)))
    for p in range(1, 8):
        falling = sorted((int(f) for f in frequencies if f), reverse=True)
        most, at = condition_2(frequencies, p)
        if p > len(falling):
            assert (most, at) == (0, 1)
        else:
            bounds = [(sum(falling) - sum(falling[: p - i])) // i for i in range(1, p + 1)]
            assert (most, at) == (min(bounds), bounds.index(min(bounds)) + 1)
        # The largest m with Σ min(f, m) ≥ m·p.
        assert (
            most == max(m for m in range(50) if sum(min(f, m) for f in falling) >= m * p) == max_classes(frequencies, p)
        )


def random_sets(
    random: np.random.Generator, persons: int, values: int
) -> tuple[np.ndarray, np.ndarray, list[set[int]]]:
    owner = random.integers(0, persons, 3 * persons)
    codes = random.integers(-1, values, 3 * persons)
    return (
        owner,
        codes,
        [{int(c) for o, c in zip(owner, codes, strict=True) if o == i and c >= 0} for i in range(persons)],
    )


@pytest.mark.parametrize("seed", range(12))
def test_sets_of_values(seed: int) -> None:
    random = np.random.default_rng(seed)
    owner, codes, own = random_sets(random, 7, 5)
    of, sets = number_sets(owner, codes, 7)
    distinct = sorted({tuple(sorted(one)) for one in own if one})
    assert [sets.values(i) for i in range(len(sets))] == distinct
    assert of.tolist() == [distinct.index(tuple(sorted(one))) if one else -1 for one in own]
    assert sets.lengths.tolist() == [len(one) for one in distinct]
    plain, spread = (sets.incidence(5, spread=some).toarray() for some in (False, True))
    assert plain.tolist() == [[int(code in one) for code in range(5)] for one in distinct]
    assert (spread.sum(axis=1) == PARTS).all() and ((spread > 0) == plain).all()
    assert (spread * sets.lengths[:, None] - PARTS * plain == 0).all()  # up to 16 values have even parts
    many = Sets.of([list(range(17))])
    assert many.parts.sum() == PARTS and many.parts.max() - many.parts.min() == 1 and many.parts[0] >= many.parts[-1]
    # The least number of codes that meets everybody, tried one by one.
    known = [one for one in own if one]
    least = next(
        d for d in range(6) if any(all(one & set(some) for one in known) for some in combinations(range(5), d))
    )
    assert hitting_number([tuple(sorted(one)) for one in known], 6) == least
    assert hitting_number([tuple(sorted(one)) for one in known], 1) == min(1, least)
    counts = np.zeros((3, len(sets)), dtype=np.int64)
    for row in range(3):
        for person in random.choice(7, 4, replace=False):
            if of[person] >= 0:
                counts[row, of[person]] += 1
    found = class_hitting_numbers(counts, sets, sets.incidence(5), 3)
    for row in range(3):
        there = [set(distinct[i]) for i in np.flatnonzero(counts[row])]
        least = next(
            d for d in range(6) if any(all(one & set(some) for one in there) for some in combinations(range(5), d))
        )
        assert found[row] == min(3, least)
        for depth in range(4):
            sure = cannot_be_hit(counts[row : row + 1].sum(axis=1), counts[row : row + 1] @ plain, depth)[0]
            assert not (sure and least <= depth)
            assert sure == (sum(sorted((counts[row] @ plain).tolist(), reverse=True)[:depth]) < counts[row].sum())


def test_means_of_what_is_known() -> None:
    owner = np.array([2, 0, 2, 1, 2, 4, 0])
    numbers = np.array([1.0, 5.0, 2.0, np.nan, 6.0, -3.0, np.nan])
    found = means(owner, numbers, 6)
    assert found[[0, 2, 4]].tolist() == [5.0, 3.0, -3.0]
    assert np.isnan(found[[1, 3, 5]]).all()


def test_ranges_of_codes() -> None:
    random = np.random.default_rng(4)
    counts = random.integers(0, 5, (3, 6))
    codes = np.array([4, 0, 5, 2])
    assert singles(codes, 0.5).sums(counts).tolist() == counts[:, codes].tolist()
    upto = prefixes(codes, 1.0).sums(counts)
    assert upto.tolist() == [[sum(row[codes[: i + 1]]) for i in range(3)] for row in counts]
    assert prefixes(codes, 0.25).weight.tolist() == [0.25] * 3 and singles(codes, 0.5).weight.tolist() == [0.5] * 4
    tree = Taxonomy.from_parents(RICH.parent)
    leaves = np.array([tree.leaf_codes[value] for value in VALUES])
    found = subtrees(np.arange(6), leaves, tree, tree.height.astype(float))
    below = {frozenset(i for i, leaf in enumerate(leaves) if tree.first[node] <= leaf <= tree.last[node]): 0.0 for node in range(tree.nodes) if node != tree.root}  # fmt: skip
    for node in range(tree.nodes):
        if node != tree.root:
            own = frozenset(i for i, leaf in enumerate(leaves) if tree.first[node] <= leaf <= tree.last[node])
            below[own] += float(tree.height[tree.parent[node]] - tree.height[node])
    ranges = {
        frozenset(found.order[a:b].tolist()): w for a, b, w in zip(found.begin, found.end, found.weight, strict=True)
    }
    assert ranges == below
    assert found.flat().tolist() == [6, len(found.begin), *found.order, *found.begin, *found.end]


@pytest.mark.parametrize(
    ("form", "by_shares", "like_table"),
    [
        (Size(3), True, False),
        (Distinct(3), True, False),
        (Entropy(1.0), True, False),
        (Recursive(2, 1.0), True, False),
        (Shares.at_most(np.array([0.5, 0.5])), True, False),
        (Shares.at_most(np.array([0.5, 0.6])), True, True),
        (Shares.at_most(np.array([np.inf, np.inf])), True, False),
        (Shares(np.array([0.1, 0.2]), np.array([np.inf, np.inf])), True, None),
        (Distance(0.2, singles(np.arange(2), 0.5), np.array([0.5, 0.5])), True, True),
        (Summed(Distance(0.2, singles(np.arange(2), 0.5), np.array([0.5, 0.5])), Sets.of([[0], [0, 1]]), 2, True), False, True),
        (Summed(Size(2), Sets.of([[0]]), 1, False), False, False),
    ],
)  # fmt: skip
def test_what_forms_say_of_themselves(form: Form, by_shares: bool, like_table: bool | None) -> None:
    assert form.by_shares is by_shares
    if like_table is not None:
        assert form.like_table is like_table


def test_a_sum_moves_towards_what_the_table_has_together() -> None:
    sets = Sets.of([[0], [0, 1], [1]])
    table, n = np.array([2, 1, 1]), 4
    inner = Shares.at_most(np.array([0.9, 0.8]))
    # Three of four have the first value, two the second; spread, two and a half have the first.
    for spread, shares in ((False, [3 / 4, 2 / 4]), (True, [2.5 / 4, 1.5 / 4])):
        found = Summed(inner, sets, 2, spread).nearer(table, n, 0.5)
        assert isinstance(found, Summed) and isinstance(found.form, Shares)
        assert found.form.upper.tolist() == pytest.approx([(0.9 + shares[0]) / 2, (0.8 + shares[1]) / 2])
        assert found.sets is sets and found.spread is spread


def test_limits_move_half_way_to_what_a_table_has() -> None:
    for table in ([1], [1, 1], [4, 3, 0, 1], [0, 5]):
        shares = [count / sum(table) for count in table if count]
        reached = -sum(share * math.log(share) for share in shares)
        found = Entropy(1.0).nearer(np.array(table), sum(table), 0.5)
        assert isinstance(found, Entropy) and found.least == pytest.approx((1.0 + reached) / 2)
        falling = sorted(table, reverse=True)
        moved = Recursive(1, 3.0).nearer(np.array(table), sum(table), 0.25)
        first = falling[0] / sum(falling)
        assert isinstance(moved, Recursive) and moved.c == pytest.approx(first + 0.25 * (3.0 - first))
    open_ended = Shares(np.array([0.0, 0.1]), np.array([0.5, np.inf])).nearer(np.array([1, 3]), 4, 0.5)
    assert isinstance(open_ended, Shares)
    assert open_ended.upper.tolist() == [pytest.approx(0.375), np.inf]
    assert open_ended.lower.tolist() == [0.0, pytest.approx((0.1 + 0.75) / 2)]


# The strongest parameter where one class of two has no known value; None: there is none.
UNKNOWN: dict[str, float | None] = {
    "alpha_k": 0.5, "beta_likeness": None, "delta_disclosure": None, "extended_p_sensitive": 0.0, "k_anonymity": 3.0, "k_e": None,
    "p_plus_sensitive": 0.0, "p_sensitive": 0.0, "t_closeness": 1.0,
}  # fmt: skip


@pytest.mark.parametrize("model", [kind.examples()[0] for kind in MODELS.values() if kind.name in UNKNOWN], ids=str)
def test_a_class_of_which_nothing_is_known(model: Model) -> None:
    codes = np.array([0, 1, 0, 2, -1, -1, -1])
    rules, rule = bound(model, codes)
    stats = rules.stats(np.array([0, 0, 0, 0, 1, 1, 1]), 2)
    counts = rules.counts_by_rule(stats)[0]
    found, expected = rule.strongest(stats.sizes, counts), UNKNOWN[model.name]
    if expected is None:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(expected)
    alone = rule.strongest(stats.sizes[1:], counts[1:])
    assert np.isnan(alone) or alone in (0.0, 1.0, 3.0)


@pytest.mark.parametrize("scope", ["rows", "distinct"])
def test_values_that_weigh_nothing_bound_nothing(scope: str) -> None:
    """Of the last category no number of records reaches a weight; p values are all that can be said."""
    for code in range(6):
        rule = MODELS["p_alpha_sensitive"](2, 1.5, scope=scope).bind(rich([code] * 4), 4)
        heaviest = rule.rank[code] / rule.steps  # type: ignore[attr-defined]
        enough = 2 if not heaviest or scope == "distinct" else max(2, math.ceil(1.5 / heaviest))
        assert rule.min_size() == enough
    assert {rule.rank[code] for code in range(6)} == {0, 1, 2}  # type: ignore[attr-defined]


def test_what_there_is_too_little_of_is_named() -> None:
    for name, counted in (("p_sensitive", "values"), ("p_plus_sensitive", "categories"), ("extended_p_sensitive", "")):
        reason = MODELS[name](3).bind(rich([0, 0]), 2).infeasible()
        assert f"needs 3 distinct {counted}" in str(reason) and str(reason).endswith("has 1; ask for p ≤ 1")


def test_searches_for_a_least_size_end() -> None:
    """One record in five thousand has a value: no class of whole numbers is quite like that, and the search gives up at 4096."""
    codes = np.zeros(5000, dtype=int)
    codes[0] = 1
    held: Any = column([VALUES[c] for c in codes], VALUES)
    assert MODELS["t_closeness"](0.0, distance="equal").bind(held, 5000).min_size() == 4096
    assert MODELS["delta_disclosure"](1e-9, absent="refused").bind(held, 5000).min_size() == 4096
    small: Any = column([VALUES[c] for c in codes[:9]], VALUES)
    assert MODELS["t_closeness"](0.0, distance="equal").bind(small, 9).min_size() == 9
    assert MODELS["t_closeness"](1.0, distance="equal").bind(small, 9).min_size() == 1


@examples
def test_rules_know_their_attribute_and_their_table(model: Model) -> None:
    codes = np.array([0, 1, 0, 2, -1, 5])
    rules, rule = bound(model, codes)
    assert rule.attribute == ("illness" if model.per_attribute else None)
    assert str(rule) == str(model) + (" on illness" if model.per_attribute else "")
    if rule.view is None:
        assert len(rule.table_counts) == 0
    else:
        seen = rules.views[0].codes
        assert rule.table_counts.tolist() == [int((seen == code).sum()) for code in range(rule.view.width)]
    assert rule.n == rules.n == 6


def test_policies_in_pieces_and_in_parts() -> None:
    """Labels −1 are nobody's; codes −1 are no value; pieces are the whole; parts of a table are counted by themselves."""
    random = np.random.default_rng(8)
    codes = random.integers(-1, 6, 50)
    policy = Policy((MODELS["k_anonymity"](3), MODELS["p_sensitive"](2), MODELS["t_closeness"](0.4)))
    rules = policy.bind([rich(codes)], 50)
    labels = random.integers(-1, 7, 50)
    stats = rules.stats(labels, 8)
    assert stats.sizes.tolist() == [int((labels == c).sum()) for c in range(8)]
    for c in range(8):
        members = np.flatnonzero(labels == c)
        row = [int((codes[members] == v).sum()) for v in range(6)]
        assert all(counts[c].tolist() == row for counts in stats.counts)
        one = rules.stats_of(members)
        assert one.sizes.tolist() == [len(members)] and all(counts[0].tolist() == row for counts in one.counts)
        assert rules.ok(members) == (len(members) > 0 and bool(rules.deficit(stats)[c] <= 0))
    with pytest.MonkeyPatch.context() as patch:
        whole = rules.deficits(labels, 8)
        patch.setattr("shoal.pieces.CELLS", 12)
        assert rules.deficits(labels, 8).tolist() == pytest.approx(whole.tolist())
    part = rules.restrict(np.arange(10, 30))
    assert part.n == 20 and part.rules[1].table_counts.tolist() == [int((codes[10:30] == v).sum()) for v in range(6)]
    assert rules.rules[1].table_counts.sum() == (codes >= 0).sum()  # the whole is as it was
    assert rules.only(rules.rules[:1]).only_size and not rules.only_size
    assert rules.codes().shape == (50, len(rules.views)) and rules.only(rules.rules[:1]).codes().shape == (50, 0)
    assert rules.cells(np.array([[2], [-1]], dtype=np.int32)).tolist() == [[2], [-1]]
    assert rules.view_starts.tolist() == [0, *np.cumsum([view.width for view in rules.views])] and rules.widest == 6
    assert rules.distinct == {1: 2}
    two = Policy((MODELS["p_sensitive"](2), MODELS["k_e"](5.0, k=2))).bind(
        [rich(codes), rich(codes[::-1], name="b")], 50
    )
    assert set(two.distinct) == {0, 1}  # one for each attribute; a range asks for more than distinct values
    assert two.cells(np.array([[1, 2], [-1, 0]], dtype=np.int32)).tolist() == [[1, 8], [-1, 6]]


def test_a_rule_about_sizes_counts_no_values_of_the_column_it_is_given() -> None:
    rule = MODELS["k_anonymity"](2).bind(None, 3)
    given = type(rule)(rule.model, column(["10", "20"]), None, 3)
    assert given.attribute == column(["10", "20"]).name
    assert given.table_counts.tolist() == []


def test_some_persons_of_a_crowd_keep_their_rows_in_the_order_asked_for() -> None:
    rows = Sensitive("x", np.array([0, 1, 2, 1, 0], dtype=np.int32), ("a", "b", "c"))
    some = Crowd(rows, np.array([0, 1, 2, 0, 1], dtype=np.int32), 3).take(np.array([2, 0]))
    assert some.count == 2
    assert sorted(zip(some.owner.tolist(), some.rows.codes.tolist(), strict=True)) == [(0, 2), (1, 0), (1, 1)]


def test_the_hitting_number_of_persons_counts_where_they_weigh_enough() -> None:
    categories = (("secret", ("a",)), ("plain", ("b", "c")))
    rows = Sensitive("x", np.array([0, 1, 2, 1], dtype=np.int32), ("a", "b", "c"), categories=categories)
    owner = np.array([0, 1, 2, 2], dtype=np.int32)
    for alpha in (0.5, 3.0):
        rule = bound_to_persons(MODELS["p_alpha_sensitive"](2, alpha), Crowd(rows, owner, 3), 3)
        counts = np.bincount(rule.view.of_person, minlength=rule.view.width)[None, :].astype(np.int64)
        light = rule.missing(counts).max() > 0
        assert light == (alpha == 3.0)
        # {a}, {b}, {b, c}: two values, a and b, meet everybody.
        assert rule.strongest(np.array([3]), counts) == (0.0 if light else 2.0)


def test_guards_of_nobody_are_one_pair_that_guards_nothing() -> None:
    tree = Taxonomy.from_rows([["flu", "lung", "*"], ["ulcer", "stomach", "*"]])
    nobody = Sensitive(
        "x",
        np.full(3, -1, dtype=np.int32),
        ("flu", "ulcer"),
        taxonomy=tree,
        beside={"wish": np.array([None] * 3, dtype=object)},
    )
    view, values, guards = _guarded_pairs("wish", nobody, tree, np.arange(2))
    assert (view.width, len(values), guards.tolist()) == (1, 1, [-1])


@pytest.mark.parametrize("value", [None, 3, ["a"], np.array(["a", "b"])], ids=str)
def test_a_word_is_a_text(value: object) -> None:
    with pytest.raises(ConfigError, match="is not allowed"):
        require_word("model", "form", value, ("a", "b"))
