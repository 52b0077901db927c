"""Sums rounded once, and logarithms and exponentials whose every bit is ours."""

from __future__ import annotations

import hashlib
import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from shoal import exact


def numbers() -> np.ndarray:
    random = np.random.default_rng(5)
    return np.concatenate([random.random(2000), np.arange(1.0, 500.0), np.ldexp(1.0, random.integers(-1000, 1000, 50))])


def test_logarithms_err_by_less_than_a_unit_of_the_last_place() -> None:
    for x, found in zip(numbers().tolist(), exact.log(numbers()).tolist(), strict=True):
        true = Decimal(x).ln(Context(prec=40))
        assert abs(Decimal(found) - true) <= Decimal(math.ulp(float(true)))


def test_exponentials_err_by_less_than_a_unit_of_the_last_place() -> None:
    powers = np.concatenate([[0.0, 1.0, -1.0, 700.0, -700.0], np.random.default_rng(6).normal(0, 20, 2000)])
    for x, found in zip(powers.tolist(), exact.exp(powers).tolist(), strict=True):
        true = Decimal(x).exp(Context(prec=40))
        assert abs(Decimal(found) - true) <= Decimal(math.ulp(float(true)))


def test_every_bit_is_known() -> None:
    """A machine on which these bits differ would decide otherwise."""
    bits = exact.log(numbers()).tobytes() + exact.exp(numbers()[:2499] / 9).tobytes()
    assert hashlib.sha256(bits).hexdigest() == "35ef17f29aad8193c86f1b8e89329da134ac4ab76867574d97a3128222bfe69c"


def test_compiled_loops_have_the_same_bits() -> None:
    from numba import njit

    from shoal.kernels import logs

    @njit
    def each(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = np.empty((3, len(values)))
        for i in range(len(values)):
            found[0, i] = logs.log(values[i])
            found[1, i] = logs.exp(values[i] / 9)
            found[2, i] = logs.power(values[i], 0.7)
        return found

    values = numbers()[:2499]
    expected = np.stack([exact.log(values), exact.exp(values / 9), exact.power(values, 0.7)])
    assert np.array_equal(each(values), expected)


def test_gamma_and_powers() -> None:
    random = np.random.default_rng(7)
    for x in [*random.uniform(0.01, 40, 300).tolist(), 1.0, 2.0, 1e6]:
        assert float(exact.log_gamma(x)) == pytest.approx(math.lgamma(x), rel=1e-13, abs=1e-13)
        assert float(exact.power(x, 0.3)) == pytest.approx(x**0.3, rel=1e-14)
    assert exact.power([0.0, 1.0], 0.7).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_added_from_the_left(seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix, weights = random.normal(size=(30, 17)), random.normal(size=17)
    expected = np.zeros(30)
    for i in range(30):
        for j in range(17):
            expected[i] += matrix[i, j] * weights[j]
    assert np.array_equal(exact.along(matrix, weights), expected)


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_rounded_once(seed: int) -> None:
    random = np.random.default_rng(seed)
    values, weights = random.normal(size=200) * 10.0 ** random.integers(-8, 9, 200), random.integers(1, 99, 200)
    assert exact.total(values) == float(sum(map(Fraction, values.tolist()), Fraction(0)))
    assert exact.weighed(weights, values) == float(sum(map(Fraction, (weights * values).tolist()), Fraction(0)))
    shuffled = random.permutation(200)
    assert exact.mean(values[shuffled]) == exact.mean(values)
    assert exact.weighed(weights[shuffled], values[shuffled]) == exact.weighed(weights, values)
