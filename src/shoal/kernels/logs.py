"""Logarithms and powers for compiled loops: the very bits of `shoal.exact`, not those of the machine's mathematical library."""

from __future__ import annotations

import math

from shoal.exact import EVEN, EXP, LN2_HIGH, LN2_LOW, ODD, PER_LN2, ROOT_HALF
from shoal.kernels.jit import bare


@bare
def log(x: float) -> float:
    """The natural logarithm of a positive number."""
    fraction, power = math.frexp(x)
    if fraction < ROOT_HALF:
        fraction, power = 2 * fraction, power - 1
    f, k = fraction - 1, float(power)
    s = f / (2 + f)
    z = s * s
    w = z * z
    even = w * (EVEN[0] + w * (EVEN[1] + w * EVEN[2]))
    odd = z * (ODD[0] + w * (ODD[1] + w * (ODD[2] + w * ODD[3])))
    half = 0.5 * f * f
    return k * LN2_HIGH - ((half - (s * (half + (odd + even)) + k * LN2_LOW)) - f)


@bare
def exp(x: float) -> float:
    """e to the power of x."""
    k = math.floor(x * PER_LN2 + 0.5)
    high, low = x - k * LN2_HIGH, k * LN2_LOW
    r = high - low
    t = r * r
    c = r - t * (EXP[0] + t * (EXP[1] + t * (EXP[2] + t * (EXP[3] + t * EXP[4]))))
    return math.ldexp(1 - ((low - r * c / (2 - c)) - high), int(k))


@bare
def power(x: float, exponent: float) -> float:
    """A positive number to any power; 0 to a positive one."""
    return exp(exponent * log(x)) if x > 0 else 0.0
