"""Domains, states and losses, and the compiled twins of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reference import measures as reference

from shoal.errors import ConfigError
from shoal.kernels import space as kernel
from shoal.space import MEASURES, Interval, Set, Space, Tree, members_of
from shoal.taxonomy import Taxonomy

TREE = Taxonomy.from_rows([("a", "ab", "*"), ("b", "ab", "*"), ("c", "*")])


def mixed(measure: str, codes_of_set: int = 70) -> Space:
    domains = (
        Interval(np.array([1.0, 2.0, 5.0, 11.0]), 20.0, has_missing=True),
        Tree(TREE.with_missing(), has_missing=True),
        Set(tuple(f"v{i:03d}" for i in range(codes_of_set))),
        Interval(np.arange(1000.0), 999.0),
        Tree(TREE),
    )
    return Space(domains, np.array([1.0, 2.0, 0.5, 1.0, 1.0]), measure)  # type: ignore[arg-type]


def random_codes(space: Space, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, domain.size, n) for domain in space.domains], axis=1).astype(np.int32)


def test_missing_joins_to_any() -> None:
    domain = Interval(np.array([1.0, 2.0]), 1.0, has_missing=True)
    assert domain.publish(2, 2) is None
    assert domain.publish(0, 2) == "*"
    assert domain.publish(0, 1) == "[1, 2]"
    assert domain.loss(np.array([0, 2, 0]), np.array([2, 2, 0]), "ncp").tolist() == [1.0, 0.0, 0.0]


def test_tree_losses_by_measure() -> None:
    tree = Tree(TREE)
    lo, hi = np.array([0, 0, 0]), np.array([0, 1, 2])
    assert tree.loss(lo, hi, "il").tolist() == [0.0, 0.5, 1.0]
    assert tree.loss(lo, hi, "ncp").tolist() == [0.0, pytest.approx(2 / 3), 1.0]
    assert tree.loss(lo, hi, "granularity").tolist() == [0.0, 0.5, 1.0]


def test_sets_are_published_sorted() -> None:
    domain = Set(("pear", "apple", "fig"), has_missing=True)
    assert domain.publish([0, 1]) == "{apple, pear}"
    assert domain.publish([2]) == "fig"
    assert domain.publish([3]) is None
    assert domain.publish([0, 3]) == "{pear, ∅}"


def test_members_of_words_beyond_the_first() -> None:
    space = mixed("ncp")
    codes = np.array([[0, 0, 1, 0, 0], [0, 0, 69, 0, 0]], dtype=np.int32)
    state = space.states(codes, np.array([0, 1]), np.array([0]))
    assert members_of(state[0, space.slots[2] : space.slots[3]]) == [1, 69]


def test_unknown_measure_is_named() -> None:
    with pytest.raises(ConfigError, match="'nocp' is not a loss measure; did you mean 'ncp'"):
        mixed("nocp")


def one_loss(domain: Interval | Tree | Set, codes: list[int], measure: str) -> float:
    """The loss of one class of these codes in one attribute."""
    space = Space((domain,), np.ones(1), measure)  # type: ignore[arg-type]
    column = np.array(codes, dtype=np.int32)[:, None]
    return float(space.losses(space.states(column, np.arange(len(codes)), np.array([0])))[0, 0])


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("seed", range(3))
def test_losses_equal_the_naive_ones(measure: str, seed: int) -> None:
    """Width, height, leaves or members over what there is, for every attribute of every class."""
    random = np.random.default_rng(seed)
    numbers, names = [1.0, 2.0, 5.0, 11.0, 11.5], [f"v{i}" for i in range(67)]
    paths = {"a": ("a", "ab", "*"), "b": ("b", "ab", "*"), "c": ("c", "*")}
    # Every value occurs, so that the naive ones, which know only the values, know the domains.
    raw: list[list[Any]] = [
        [*numbers, None, *random.choice([*numbers, None], 90)],
        [*"abc", None, *random.choice([*"abc", None], 92)],
        [*names, None, *random.choice([*names[:5], None], 28)],
        [*names, *random.choice(names[:3], 29)],
    ]
    domains = (
        Interval(np.array(numbers), 10.5, has_missing=True),
        Tree(TREE.with_missing(), has_missing=True),
        Set(tuple(names), has_missing=True),
        Set(tuple(names)),
    )
    naive = [reference.Number(raw[0]), reference.Tree(raw[1], paths), reference.Bag(raw[2]), reference.Bag(raw[3])]
    weights = np.array([1.0, 2.0, 0.5, 3.0])
    space = Space(domains, weights, measure)  # type: ignore[arg-type]
    orders: list[list[Any]] = [numbers, list("abc"), names, names]
    codes = np.array(
        [[len(o) if v is None else o.index(v) for v in column] for o, column in zip(orders, raw, strict=True)]
    ).T.astype(np.int32)
    starts = np.concatenate([[0], np.sort(random.choice(np.arange(1, 96), 60, replace=False))])
    states = space.states(codes, np.arange(96), starts)
    found, unit = space.losses(states), space.unit(states)
    for c, members in enumerate(np.split(np.arange(96), starts[1:])):
        wanted = [column.losses(members.tolist())[0][measure] for column in naive]
        assert found[c].tolist() == pytest.approx(wanted)
        assert unit[c] == pytest.approx(float(np.dot(weights, wanted)))
    other = MEASURES[(MEASURES.index(measure) + 1) % 3]  # type: ignore[arg-type]
    assert np.array_equal(space.losses(states, other), Space(domains, weights, other).losses(states))


@pytest.mark.parametrize("measure", MEASURES)
def test_what_has_one_value_loses_nothing(measure: str) -> None:
    single = Taxonomy.from_rows([("a", "*")])
    assert one_loss(Interval(np.array([7.0]), 0.0), [0, 0], measure) == 0
    assert one_loss(Interval(np.array([7.0]), 0.0, has_missing=True), [0, 1], measure) == 1
    assert one_loss(Interval(np.array([7.0]), 0.0, has_missing=True), [1, 1], measure) == 0
    assert one_loss(Interval(np.array([]), 0.0, has_missing=True), [0, 0], measure) == 0
    assert one_loss(Tree(single), [0, 0], measure) == 0
    assert one_loss(Set(("a",)), [0, 0], measure) == 0
    assert Set(()).size_losses(measure).tolist() == [0]  # type: ignore[arg-type]
    # The smallest domains in which something can be lost: all of it.
    assert one_loss(Tree(Taxonomy.from_rows([("a", "*"), ("b", "*")])), [0, 1], measure) == 1
    assert one_loss(Set(("a", "b")), [0, 1], measure) == one_loss(Set(("a",), has_missing=True), [0, 1], measure) == 1


def test_widths_below_one_and_declared_ones() -> None:
    values = np.array([0.0, 0.1, 0.4])
    assert one_loss(Interval(values, 0.4), [0, 1], "ncp") == pytest.approx(0.25)
    assert one_loss(Interval(values, 0.8), [0, 2], "il") == pytest.approx(0.5)
    # A width that does not hold the values (a declared one may come from another table) never gives more than all.
    assert one_loss(Interval(values, 0.1), [0, 2], "ncp") == 1


def test_the_code_of_missing_is_the_last() -> None:
    for domain, size in [(Interval(np.array([1.0, 2.0]), 1.0), 2), (Set(("a", "b")), 2), (Tree(TREE), 3)]:
        assert (domain.has_missing, domain.size, domain.missing_code) == (False, size, size)
    for domain, size in [
        (Interval(np.array([1.0, 2.0]), 1.0, has_missing=True), 2),
        (Set(("a", "b"), has_missing=True), 2),
        (Tree(TREE.with_missing(), has_missing=True), 3),
    ]:
        assert (domain.size, domain.missing_code) == (size + 1, size)


def test_sets_take_a_word_for_each_64_values() -> None:
    names = tuple(f"v{i}" for i in range(129))
    assert [Set(names[:size]).words for size in (0, 1, 64, 65, 128, 129)] == [1, 1, 1, 2, 2, 3]
    assert Set(names[:64], has_missing=True).words == 2
    assert Space((Set(names), Interval(np.array([1.0]), 0.0), Tree(TREE)), np.ones(3), "il").slots.tolist() == [
        0,
        3,
        5,
        7,
    ]


def test_dates_and_labels_are_published_as_such() -> None:
    days = Interval(np.array([-1.0, 0.0, 19813.0]), 1.0, is_date=True)
    assert [days.text(code) for code in range(3)] == ["1969-12-31", "1970-01-01", "2024-03-31"]
    assert days.publish(0, 2) == "[1969-12-31, 2024-03-31]"
    assert Interval(np.arange(2.0), 1.0, labels=("low", "high")).publish(0, 1) == "[low, high]"
    assert Interval(np.array([0.5, 7.0]), 1.0).publish(0, 1) == "[0.5, 7]"


def test_missing_in_a_taxonomy_is_a_leaf_under_the_root() -> None:
    tree = Tree(TREE.with_missing(), has_missing=True)
    assert [tree.publish(3, 3), tree.publish(0, 3), tree.publish(0, 1), tree.publish(2, 2)] == [None, "*", "ab", "c"]
    assert Tree(TREE).publish(2, 2) == "c"


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("seed", range(5))
def test_compiled_losses_equal_the_domains(measure: str, seed: int) -> None:
    space = mixed(measure)
    codes = random_codes(space, 40, seed)
    order, starts = np.arange(40), np.arange(0, 40, 4)
    states = space.states(codes, order, starts)
    expected = space.unit(states)
    flat = kernel.flatten(space)
    for c, begin in enumerate(starts):
        state = np.zeros(space.width, dtype=np.int64)
        kernel.begin(flat, state, codes[begin])
        for r in range(begin + 1, begin + 4):
            foreseen = kernel.joined_loss(flat, state, codes[r])
            kernel.join(flat, state, codes[r])
            assert kernel.loss(flat, state) == pytest.approx(foreseen, abs=1e-12)
            assert kernel.covers(flat, state, codes[r])
        assert np.array_equal(state, states[c])
        assert kernel.loss(flat, state) == pytest.approx(expected[c], abs=1e-12)
        other = states[(c + 1) % len(starts)]
        foreseen = kernel.merged_loss(flat, state, other)
        kernel.merge(flat, state, other)
        assert kernel.loss(flat, state) == pytest.approx(foreseen, abs=1e-12)


def test_covered_means_the_published_value_stays() -> None:
    space = mixed("il")
    flat = kernel.flatten(space)
    codes = random_codes(space, 60, 3)
    for r in range(0, 58, 2):
        state = np.zeros(space.width, dtype=np.int64)
        kernel.begin(flat, state, codes[r])
        kernel.join(flat, state, codes[r + 1])
        before = space.publish(state[None, :])
        for t in range(60):
            grown = state.copy()
            kernel.join(flat, grown, codes[t])
            assert kernel.covers(flat, state, codes[t]) == (space.publish(grown[None, :]) == before)
