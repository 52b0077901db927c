"""Worst-case knowledge, against every implication over every world of tiny tables."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.measures.attacks import background_knowledge, posteriors
from shoal.measures.seen import MaskedTable
from shoal.measures.worst_case import worst_case


def facts(classes: Sequence[Sequence[int]]) -> np.ndarray:
    """A row for every way in which the values can lie among the persons, a column for every fact about one of them."""
    values = max(map(len, classes))
    worlds = [
        sorted(set(permutations([value for value, count in enumerate(counts) for _ in range(count)])))
        for counts in classes
    ]
    # Every order of the same values is as likely as any other, so sets of them may be counted once.
    return np.array(
        [[has == value for one in world for has in one for value in range(values)] for world in product(*worlds)]
    )


def naive(classes: Sequence[Sequence[int]], knowledge: int, longest: int = 1) -> Fraction:
    """The largest probability of a fact, over all sets of implications with up to `longest` facts on either side."""
    true = facts(classes)
    sides = [some for n in range(1, longest + 1) for some in combinations(range(true.shape[1]), n)]
    implications = [
        ~true[:, list(premise)].all(axis=1) | true[:, list(conclusion)].any(axis=1)
        for premise in sides
        for conclusion in sides
    ]
    best = Fraction(0)
    for known in combinations(implications, knowledge):
        left = true[np.logical_and.reduce(known)] if known else true
        if len(left):
            best = max(best, Fraction(int(left.sum(axis=0).max()), len(left)))
    return best


@pytest.mark.parametrize(
    ("classes", "knowledge"),
    [
        ([[2, 1, 1], [2, 2]], 1),
        ([[1, 1, 1], [2, 1]], 1),
        ([[3, 1], [2, 1, 1]], 1),
        ([[2, 2, 1]], 1),
        ([[1, 1, 1], [1, 1]], 2),
        ([[2, 1], [1, 1]], 2),
        ([[1, 1, 1, 1]], 2),
        ([[2, 1, 1]], 0),
    ],
)
def test_no_implications_do_more(classes: list[list[int]], knowledge: int) -> None:
    assert worst_case(classes, knowledge)[knowledge] == pytest.approx(float(naive(classes, knowledge)), abs=1e-12)


@pytest.mark.parametrize("classes", [[[2, 1], [1, 1]], [[2, 1, 1]]])
def test_premises_and_conclusions_of_several_facts_do_no_more(classes: list[list[int]]) -> None:
    assert worst_case(classes, 1)[1] == pytest.approx(float(naive(classes, 1, longest=2)), abs=1e-12)


def test_one_implication_across_classes() -> None:
    """Two of five have flu in either class: "if she has it, so has he" makes 2/5 into 10/19; ruling out a value of his own does more."""
    across = (3 / 5) * (3 / 5) / (2 / 5)
    assert pytest.approx(10 / 19) == 1 / (1 + across)
    assert worst_case([[2, 2, 1], [2, 1, 1, 1]], 1) == pytest.approx([2 / 5, 2 / 3])
    # Where nobody's class has a second frequent value, the other class is what helps.
    assert worst_case([[4, 1, 1, 1, 1, 1, 1], [9, 1]], 1)[1] > 0.9


def test_more_knowledge_never_says_less_and_ruling_out_values_is_some() -> None:
    random = np.random.default_rng(5)
    for _ in range(50):
        classes = [sorted(random.integers(1, 6, random.integers(1, 6)).tolist(), reverse=True) for _ in range(4)]
        found = worst_case(classes, 4)
        assert found == sorted(found)
        ruled_out = [max(one[0] / (sum(one) - sum(one[1 : b + 1])) for one in classes) for b in range(5)]
        assert all(much >= less - 1e-12 for much, less in zip(found, ruled_out, strict=True))
        assert found[0] == pytest.approx(ruled_out[0])


def test_a_release_says_how_safe_it_is() -> None:
    masked = pl.DataFrame({"age": ["20s"] * 5 + ["30s"] * 5, "ill": list("ffccm") + list("ffobh")})
    schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "ill": shoal.Attribute(role="sensitive")})
    table = MaskedTable.of(masked, schema)
    histogram = table.histograms[0]
    found = background_knowledge(table, histogram, 1)
    assert found.details["worst_case"] == pytest.approx({"0": 0.4, "1": 2 / 3, "2": 1.0})
    assert all(found.details["worst_case"][str(b)] >= posteriors(histogram, b).max() - 1e-12 for b in range(3))
