"""Necessary conditions for p-sensitivity and what they imply (Truta et al. 2007, §2.2; docs/models.md#condition-2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.policy import Rules


@dataclass(frozen=True)
class Caps:
    """The most classes there can be, and what that means for the average class size and discernibility."""

    classes: int
    avg: float
    dm: float


def caps(rules: Rules, k: int) -> Caps:
    """v ≤ min(max classes, ⌊n/k⌋), hence AVG ≥ n/(k·v) and DM ≥ that of v balanced classes."""
    most = max(1, min(rules.max_classes, rules.n // max(1, k)))
    larger = rules.n % most
    small = rules.n // most
    return Caps(most, rules.n / (k * most), float(larger * (small + 1) ** 2 + (most - larger) * small**2))


def distinct_demands(rules: Rules) -> list[tuple[NDArray[np.int32], int, int]]:
    """The columns of which every class needs so many different values: codes, number of values, p."""
    seen = [(rules.views[rules.view_of[i]], p) for i, p in rules.distinct.items()]
    return [(view.codes, view.width, p) for view, p in seen]
