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


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_rounded_once(seed: int) -> None:
    random = np.random.default_rng(seed)
    values, weights = random.normal(size=200) * 10.0 ** random.integers(-8, 9, 200), random.integers(1, 99, 200)
    assert exact.total(values) == float(sum(map(Fraction, values.tolist()), Fraction(0)))
    assert exact.weighed(weights, values) == float(sum(map(Fraction, (weights * values).tolist()), Fraction(0)))
    shuffled = random.permutation(200)
    assert exact.mean(values[shuffled]) == exact.mean(values)
    assert exact.weighed(weights[shuffled], values[shuffled]) == exact.weighed(weights, values)
