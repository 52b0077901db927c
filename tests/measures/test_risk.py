"""Risks, estimators of uniqueness against independent formulas and simulated populations, separating columns."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import measures as naive

from shoal.configuration import read_schema
from shoal.errors import ConfigError, InputError
from shoal.measures.risk import (
    dankar,
    pitman,
    population_sizes,
    reidentification_risk,
    sample_uniques,
    separating_sets,
    slide_negative_binomial,
    zayatz,
)
from shoal.measures.seen import MaskedTable

SCHEMA = read_schema(
    {
        "age": {"role": "quasi"},
        "zip": {"role": "quasi", "taxonomy": {"prefix": [3, 2, 0]}},
        "ill": {"role": "sensitive"},
    }
)
MASKED = pl.DataFrame(
    {
        "age": ["[20, 29]"] * 2 + ["[30, 39]"] * 3,
        "zip": ["41***"] * 2 + ["410**"] * 3,
        "ill": ["flu", "cold", "flu", "flu", "cold"],
    }
)


def test_g38() -> None:
    found = reidentification_risk([2, 3, 5], [4, 6, 5], thresholds=[0.25])
    assert found.prosecutor.highest == 0.5
    assert found.prosecutor.average == pytest.approx(0.3)
    assert found.prosecutor.above == {0.25: 5}
    assert found.journalist is not None
    assert found.journalist.highest == 0.25
    assert found.marketer.average == pytest.approx(0.2)
    assert "0.500" in found.sentence()


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=9))
def test_equal_to_the_naive_twin(classes: list[tuple[int, int]]) -> None:
    f, F = [size for size, _ in classes], [size + more for size, more in classes]
    found = reidentification_risk(f, F)
    expected = naive.risks(f, F)
    assert found.journalist is not None
    values = (found.prosecutor.highest, found.prosecutor.average, found.journalist.highest, found.marketer.average)
    assert values == pytest.approx([float(x) for x in expected])
    assert found.prosecutor.average == pytest.approx(len(f) / sum(f))


def test_suppressed_records() -> None:
    """Starred records are a class of their own; those left out have no risk."""
    assert reidentification_risk([4, 2]).prosecutor.highest == 0.5
    assert reidentification_risk([4], dropped=2).prosecutor.average == pytest.approx(1 / 6)


def test_records_above_thresholds_and_what_is_said_of_them() -> None:
    found = reidentification_risk([1, 2, 4, 5], [10, 2, 8, 20], dropped=3)
    assert found.prosecutor.above == {0.05: 12, 0.1: 12, 0.2: 7, 0.33: 3, 0.5: 1}
    assert found.journalist is not None and found.journalist.above == {0.05: 7, 0.1: 6, 0.2: 2, 0.33: 2, 0.5: 0}
    assert found.marketer.above == found.journalist.above
    assert found.journalist.average == pytest.approx((1 / 10 + 1 + 1 / 2 + 1 / 4) / 15)
    told = found.to_dict()
    assert told["prosecutor"]["intruder"] == "prosecutor" and told["marketer"]["intruder"] == "marketer"
    assert told["journalist"]["above"] == {"0.05": 7, "0.1": 6, "0.2": 2, "0.33": 2, "0.5": 0}
    assert found.sentence() == (
        "Who knows that somebody is in the table finds them with a probability of at most 1.000, 0.267 on average; who knows only "
        "the population, with at most 0.500; guessing everybody at once finds 12.33% of all."
    )
    alone = reidentification_risk([2, 2])
    assert alone.journalist is None and alone.to_dict()["journalist"] is None and "population" not in alone.sentence()
    assert alone.marketer.average == 0.5 and alone.marketer.intruder == "marketer"
    for sizes in ([], [2, 0]):
        with pytest.raises(InputError, match="Risks need at least one class, and classes have records"):
            reidentification_risk(sizes)
    assert reidentification_risk([2, 3], [2, 3]).prosecutor.highest == 0.5  # the table may be the population


def test_a_population_that_cannot_be_one() -> None:
    with pytest.raises(InputError, match="Class 2 has 3 records and fits only 2"):
        reidentification_risk([2, 3], [4, 2])
    with pytest.raises(InputError, match="1 classes and the table 2"):
        reidentification_risk([2, 3], [4])


def test_population_with_the_same_generalized_values() -> None:
    table = MaskedTable.of(MASKED, SCHEMA)
    population = pl.concat([MASKED, MASKED[:2], MASKED[2:3]]).select("age", "zip")
    assert population_sizes(table, population).tolist() == [4, 4]


def test_population_with_original_values_is_matched_by_what_covers_it() -> None:
    table = MaskedTable.of(MASKED, SCHEMA)
    population = pl.DataFrame(
        {"age": [20, 29, 25, 30, 35, 39, 31], "zip": ["41076", "41999", "42000", "41011", "41099", "41076", "41111"]}
    )
    assert population_sizes(table, population).tolist() == [2, 3]


def test_missing_values_of_a_population_are_values() -> None:
    masked = pl.DataFrame({"age": [None, None, "30"], "zip": ["41076"] * 3, "ill": ["flu", "cold", "flu"]})
    population = pl.DataFrame({"age": [None, None, None, 30], "zip": ["41076"] * 4})
    assert population_sizes(MaskedTable.of(masked, SCHEMA), population).tolist() == [3, 1]


def test_a_population_in_which_a_class_does_not_occur_as_written_is_matched_by_its_values() -> None:
    table = MaskedTable.of(MASKED, SCHEMA)
    mixed = pl.DataFrame({"age": ["[20, 29]", "33"], "zip": ["41***", "41076"]})
    assert population_sizes(table, mixed).tolist() == [1, 1]
    ends = MaskedTable.of(
        pl.DataFrame({"age_min": [20, 20, 30], "age_max": [29, 29, 39], "zip": ["41***"] * 3, "ill": ["flu"] * 3}),
        SCHEMA,
    )
    raw = pl.DataFrame({"age": [20, 21, 21, 30, 31], "zip": ["41076"] * 4 + ["51076"]})
    assert population_sizes(ends, raw).tolist() == [3, 1]
    with pytest.raises(InputError, match="none of the quasi-identifiers age, zip"):
        population_sizes(table, pl.DataFrame({"sex": ["f"]}))


def test_zayatz_equals_binomial_coefficients() -> None:
    f = [1] * 7 + [2] * 4 + [3, 5, 9]
    for N in (64, 100, 400):
        assert zayatz(f, sum(f) / N) == pytest.approx(naive.zayatz(f, N))


def test_pitman_is_where_the_likelihood_is_largest() -> None:
    """No neighbour on a grid is more likely; with the estimate of the model at that point."""
    f = [1] * 30 + [2] * 9 + [3] * 5 + [4, 6, 11]
    n, N = sum(f), 4 * sum(f)
    grid = [(theta, alpha) for theta in np.arange(1, 60, 0.5) for alpha in np.arange(0.02, 0.99, 0.02)]
    theta, alpha = max(grid, key=lambda point: naive.pitman_log_likelihood(f, *point))
    ratio = (
        math.lgamma(theta + alpha + N - 1)
        + math.lgamma(theta + 1)
        - math.lgamma(theta + alpha)
        - math.lgamma(theta + N)
    )
    assert pitman(f, n / N) == pytest.approx(N * math.exp(ratio), rel=0.03)


SAMPLES = [
    [1] * 30 + [2] * 9 + [3] * 5 + [4, 6, 11],
    [1] * 12 + [2] * 10 + [3] * 8 + [5] * 4,
    [1] * 30 + [2] * 4 + [3] * 3 + [5, 9, 14],
]


@pytest.mark.parametrize("f", SAMPLES)
def test_pitman_equals_a_search_on_grids(f: list[int]) -> None:
    n = sum(f)
    for N in (4 * n, 20 * n):
        assert pitman(f, n / N) == pytest.approx(naive.pitman(f, N), rel=2e-3)


@pytest.mark.parametrize("f", SAMPLES)
@pytest.mark.parametrize("fraction", [0.15, 0.4, 0.8])
def test_slide_negative_binomial_solves_its_two_equations(f: list[int], fraction: float) -> None:
    found, wanted = slide_negative_binomial(f, fraction), naive.slide_negative_binomial(f, fraction)
    if wanted is None:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(wanted, rel=1e-4)


def test_what_a_model_cannot_tell() -> None:
    for f in ([2, 3], [2]):
        assert pitman(f, 0.1) == zayatz(f, 0.1) == slide_negative_binomial(f, 0.1) == 0
    assert math.isnan(pitman([1, 1, 1], 0.1)) and math.isnan(pitman([1], 0.1))
    assert math.isnan(slide_negative_binomial([1, 1, 3], 0.5))  # no class of two
    assert slide_negative_binomial([1, 1, 3], 1.0) == 2
    assert 0 < pitman([1, 2], 0.1) < 30  # two classes are enough
    assert pitman([1] * 500 + [2], 0.5) <= 1004  # never more than there are
    with pytest.raises(InputError, match="Uniqueness needs at least one class"):
        zayatz([], 0.5)
    with pytest.raises(InputError, match="Uniqueness needs at least one class"):
        dankar([1, 0], 0.5)


def restaurant(persons: int, theta: float, alpha: float, seed: int) -> np.ndarray:
    """A population that follows Pitman's model exactly."""
    random = np.random.default_rng(seed)
    label, sizes = np.zeros(persons, dtype=np.int64), [1]
    for i in range(1, persons):
        if random.random() * (theta + i) < theta + alpha * len(sizes):
            label[i] = len(sizes)
            sizes.append(1)
            continue
        while True:
            j = label[random.integers(i)]
            if random.random() < (sizes[j] - alpha) / sizes[j]:
                break
        label[i] = j
        sizes[j] += 1
    return label


def sampled(population: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    chosen = np.random.default_rng(seed).permutation(population)[: int(len(population) * fraction)]
    sizes = np.bincount(chosen)
    return sizes[sizes > 0]


def test_pitman_finds_the_uniques_of_its_own_population() -> None:
    population = restaurant(6000, 100, 0.5, seed=2)
    unique = int((np.bincount(population) == 1).sum())
    assert pitman(sampled(population, 0.1, 0), 0.1) == pytest.approx(unique, rel=0.2)


def test_slide_negative_binomial_finds_the_uniques_of_its_own_population() -> None:
    random = np.random.default_rng(1)
    sizes = 1 + random.negative_binomial(0.8, 0.3, 8000)
    population = np.repeat(np.arange(len(sizes)), sizes)
    unique = int((sizes == 1).sum())
    found = slide_negative_binomial(sampled(population, 0.6, 0), 0.6)
    assert found == pytest.approx(unique, rel=0.15)


def test_the_whole_population_is_known() -> None:
    f = [1, 1, 1, 2, 2, 5]
    assert zayatz(f, 1.0) == pytest.approx(3)
    assert slide_negative_binomial(f, 1.0) == 3


def test_dankars_rule_chooses_by_fraction_and_size() -> None:
    f = sampled(restaurant(3000, 60, 0.4, seed=3), 0.5, 0)
    small, large = dankar(f, 0.05), dankar(f, 0.5)
    assert (small.model, small.estimate) == ("pitman", small.pitman)
    assert large.estimate == min(large.zayatz, large.slide_negative_binomial)
    assert large.model == ("zayatz" if large.zayatz < large.slide_negative_binomial else "slide_negative_binomial")
    nobody = dankar([2, 3, 4], 0.2)
    assert (nobody.estimate, nobody.sample) == (0, 0)
    assert sample_uniques([1, 2, 1]) == 2
    # Only uniques: Pitman's model has no such table, Zayatz stands in.
    alone = dankar([1, 1, 1], 0.05)
    assert (alone.model, alone.estimate, alone.population) == ("zayatz", alone.zayatz, 60)
    assert alone.to_dict()["pitman"] is None and alone.to_dict()["zayatz"] == alone.zayatz
    assert alone.share == alone.to_dict()["share"] == alone.estimate / 60
    # A tenth is still Pitman's; more is not.
    assert dankar(SAMPLES[0], 0.1).model == "pitman" and dankar(SAMPLES[0], 0.11).model != "pitman"
    assert dankar([1, 1, 2], 0.9).population == 4
    assert dankar([1, 1, 3], 0.5).model == "zayatz"  # the other one has no answer


@pytest.mark.parametrize("fraction", [0, -0.1, 1.5])
def test_a_fraction_is_a_share(fraction: float) -> None:
    with pytest.raises(ConfigError, match="above 0 and at most 1"):
        dankar([1, 2], fraction)


def test_separating_sets_equal_all_pairs() -> None:
    random = np.random.default_rng(4)
    frame = pl.DataFrame(
        {
            "a": random.integers(0, 3, 25),
            "b": [None if x == 0 else f"v{x}" for x in random.integers(0, 4, 25)],
            "c": random.integers(0, 2, 25).astype(bool),
        }
    )
    found = separating_sets(frame, ["a", "b", "c"])
    assert len(found) == 7
    assert found[0].columns == ("a", "b", "c")
    for item in found:
        distinction, separation = naive.separation(frame.select(item.columns).rows())
        assert item.distinction == pytest.approx(float(distinction))
        assert item.separation == pytest.approx(float(separation))
    assert {len(item.columns) for item in separating_sets(frame, ["a", "b", "c"], largest=1)} == {1}


def test_separating_sets_in_their_order() -> None:
    frame = pl.DataFrame({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2], "c": [1, 1, 1, 1], "d": [1, 2, 3, 4]})
    found = [item.columns for item in separating_sets(frame, ["a", "b", "c", "d"], largest=2)]
    # What tells all apart first, and of those the smallest; then what tells pairs apart.
    assert found[:2] == [("d",), ("a", "b")] and found[-1] == ("c",)
    assert len(found) == 4 + 6
    assert len(separating_sets(frame, ["a", "b"], largest=5)) == 3
    assert {len(item.columns) for item in separating_sets(frame, ["a", "b", "c", "d"])} == {1, 2, 3}
    with pytest.raises(ConfigError, match="largest = 0 is not allowed"):
        separating_sets(frame, ["a"], largest=0)
    with pytest.raises(InputError, match="needs two records or more"):
        separating_sets(frame[:1], ["a"])
    assert separating_sets(frame[:2], ["a"])[0].separation == 0


def test_a_key_separates_everything() -> None:
    frame = pl.DataFrame({"id": [3, 1, 2], "sex": ["f", "m", "f"]})
    key, *_ = separating_sets(frame, ["id", "sex"])
    assert (key.columns, key.distinction, key.separation) == (("id",), 1.0, 1.0)
    assert Fraction(2, 3) == pytest.approx(naive.separation(frame["sex"].to_list())[1])
