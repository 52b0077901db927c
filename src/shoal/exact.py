"""Sums, logarithms and exponentials that come out the same, to the last bit, on any machine.

Additions, multiplications, divisions and roots of single numbers are rounded correctly everywhere. What differs between
processors, BLAS libraries and numbers of threads is the order in which a library adds, and the last digit of its logarithms
and powers. Whatever decides something or is published goes through here, or is a whole number below 2⁵³, which adds up to
the same in any order.

>>> total([0.1] * 10), float(log(2.0)), float(exp(-1.0))
(1.0, 0.6931471805599453, 0.36787944117144233)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

TICKS = 2.0**40
"""Costs are compared in steps of 2⁻⁴⁰: sums of the same numbers in another order then tie, as they should."""

# The constants of fdlibm (Sun Microsystems 1993), whose functions err by less than one unit of the last place.
LN2_HIGH, LN2_LOW, PER_LN2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10, 1.44269504088896338700e00
ROOT_HALF = 7.07106781186547524401e-01
ODD = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
EVEN = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)
EXP = (
    1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05, -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)  # fmt: skip
# Stirling's series of ln Γ: B₂ⱼ / (2j·(2j − 1)), for numbers from FAR on, where the next term is below 2⁻⁵³.
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
FAR = 16
HALF_LN_2PI = 9.18938533204672741780e-01


def total(values: ArrayLike) -> float:
    """The sum, rounded once."""
    return math.fsum(np.asarray(values, dtype=np.float64).ravel().tolist())


def weighed(weights: ArrayLike, values: ArrayLike) -> float:
    """Σ weight · value: every product is rounded, and their sum once."""
    return total(np.asarray(weights, dtype=np.float64) * np.asarray(values, dtype=np.float64))


def mean(values: ArrayLike) -> float:
    """The average; NaN of nothing."""
    numbers = np.asarray(values, dtype=np.float64)
    return total(numbers) / numbers.size if numbers.size else math.nan


def log(values: ArrayLike) -> Floats:
    """Natural logarithms of positive numbers."""
    fraction, power = np.frexp(np.asarray(values, dtype=np.float64))
    small = fraction < ROOT_HALF
    f = np.where(small, 2 * fraction, fraction) - 1
    k = (power - small).astype(np.float64)
    s = f / (2 + f)
    z = s * s
    w = z * z
    even = w * (EVEN[0] + w * (EVEN[1] + w * EVEN[2]))
    odd = z * (ODD[0] + w * (ODD[1] + w * (ODD[2] + w * ODD[3])))
    half = 0.5 * f * f
    return np.asarray(k * LN2_HIGH - ((half - (s * (half + (odd + even)) + k * LN2_LOW)) - f))


def exp(values: ArrayLike) -> Floats:
    """e to the power of each number."""
    x = np.asarray(values, dtype=np.float64)
    k = np.floor(x * PER_LN2 + 0.5)
    high, low = x - k * LN2_HIGH, k * LN2_LOW
    r = high - low
    t = r * r
    c = r - t * (EXP[0] + t * (EXP[1] + t * (EXP[2] + t * (EXP[3] + t * EXP[4]))))
    return np.asarray(np.ldexp(1 - ((low - r * c / (2 - c)) - high), k.astype(np.int64)))


def power(values: ArrayLike, exponent: ArrayLike) -> Floats:
    """Positive numbers to any power, 0 to a positive one: a few digits less certain, the same everywhere."""
    numbers = np.asarray(values, dtype=np.float64)
    positive = numbers > 0
    return np.where(positive, exp(np.asarray(exponent) * log(np.where(positive, numbers, 1.0))), 0.0)


def log_gamma(values: ArrayLike) -> Floats:
    """ln Γ of positive numbers."""
    x = np.asarray(values, dtype=np.float64)
    # Γ(x) = Γ(x + m) / (x·(x + 1) … (x + m − 1))
    product, far = np.ones_like(x), x
    for _ in range(FAR):
        near = far < FAR
        product, far = np.where(near, product * far, product), np.where(near, far + 1, far)
    series, square = np.zeros_like(x), far * far
    for term in reversed(STIRLING):
        series = series / square + term
    return np.asarray((far - 0.5) * log(far) - far + HALF_LN_2PI + series / far - log(product))


def along(matrix: ArrayLike, weights: ArrayLike) -> Floats:
    """Σ value · weight of every row, added from the left to the right as a loop would."""
    values = np.asarray(matrix)
    found = np.zeros(len(values))
    for column, weight in zip(values.T, np.asarray(weights, dtype=np.float64).tolist(), strict=True):
        found += column * weight
    return found


def ticks(values: Any) -> Any:
    """Costs in whole ticks."""
    return np.rint(values * TICKS)
