"""Necessary conditions for p-sensitivity and what they imply (Truta et al. 2007, §2.2; docs/models.md#condition-2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.models import CompiledKind
from shoal.policy import Rules

Ints = NDArray[np.int64]


def condition_1(frequencies: Sequence[Ints]) -> int:
    """The largest p that any partition can have: the least number of distinct values of a sensitive attribute."""
    return min(int(np.count_nonzero(own)) for own in frequencies)


def max_classes_printed(frequencies: Sequence[Ints], n: int, p: int) -> tuple[int, int]:
    """Condition 2 as printed: min over i of ⌊(n − cf_{p−i}) / i⌋ with cf the largest cumulative frequency; and iValue.

    iValue is the smallest i that attains the minimum.
    """
    cumulative = np.zeros(p + 1, dtype=np.int64)
    for own in frequencies:
        falling = np.sort(own)[::-1][:p]
        padded = np.concatenate([[0], np.cumsum(falling), np.full(max(0, p - len(falling)), int(own.sum()))])
        cumulative = np.maximum(cumulative, padded[: p + 1])
    candidates = [(n - int(cumulative[p - i])) // i for i in range(1, p + 1)]
    best = min(candidates)
    return best, candidates.index(best) + 1


def hardest_first(frequencies: Sequence[Ints], n: int, p: int) -> list[int]:
    """Attributes by their own bound, ties by their own iValue, then by column (docs/papers.md#truta-et-al-2007)."""
    bounds = [max_classes_printed([own], n, p) for own in frequencies]
    return sorted(range(len(frequencies)), key=lambda a: (*bounds[a], a))


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
    found = []
    for rule in rules.rules:
        form = rule.compiled()
        if form is not None and form.kind is CompiledKind.DISTINCT and rule.view is not None:
            found.append((rule.view.codes, rule.view.width, int(form.ints[0])))
    return found
