"""Domains, states and losses, and the compiled twins of them."""

from __future__ import annotations

import numpy as np
import pytest

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
