"""Necessary conditions for p-sensitivity and what they imply (Truta et al. 2007, §2.2; docs/models.md#condition-2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.models.forms import Distance, Distinct, Entropy, Form, Hitting, Recursive, Shares
from shoal.policy import Rules

# Limits are compared with this much to spare (docs/models.md#deficit), so that no class that passes is missed.
SLACK = 1e-9


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
    """The columns of which every class needs so many different values: codes, number of values, p.

    Besides the rules that ask for just that, whatever the forms of a policy imply
    (docs/algorithms.md#a-lower-bound-with-its-proof).
    """
    asked = {(rules.view_of[i], p) for i, p in rules.distinct.items()}
    for entry in rules.entries or ():
        if entry.view >= 0:
            asked.add((entry.view, least_values(entry.form, rules.views[entry.view].codes)))
    most: dict[int, int] = {}
    for view, p in sorted(asked):
        most[view] = max(p, most.get(view, 0))
    return [(rules.views[view].codes, rules.views[view].width, p) for view, p in most.items() if p > 1]


def least_values(form: Form, codes: NDArray[np.int32]) -> int:
    """How many different codes a class needs at least, whatever its size, to satisfy a form; 1 where nothing better is known.

    - *Distinct*, *Hitting*: p by definition (a set that occurs is met by one of its members, so fewer than p different sets
      are met by fewer than p groups).
    - *Entropy* of at least H: m values have an entropy of at most log m, so m ≥ exp H.
    - *Recursive* (c, l): the l-th most frequent value has to occur.
    - *Shares* at most α_v: the values that occur have shares that sum to 1, so the m largest α sum to 1 or more. Where shares are
      of all records, those without a value may take up the rest, and nothing follows. Values that have to occur have to.
    - *Distance* at most t: a value v that does not occur contributes w_v·Q_v, where w_v is what ranges with v alone weigh; and
      the values that do occur have together Σ Q_v more than in the table, each unit of which weighs w or more, the least
      w_v. So the values that are missing satisfy Σ (w_v + w)·Q_v ≤ t; for equal distances Σ Q_v ≤ t.
    """
    if isinstance(form, Distinct | Hitting):
        return form.p
    if isinstance(form, Entropy):
        return next(m for m in range(1, 1 + len(codes)) if m >= len(codes) or exact.log(float(m)) >= form.least - SLACK)
    if isinstance(form, Recursive):
        return form.length
    if isinstance(form, Shares):
        must = int(np.count_nonzero(form.lower > 0)) if form.everywhere else 1
        if not form.of_known and (codes < 0).any():
            return max(1, must)
        largest = np.sort(np.minimum(form.upper, 1.0))[::-1]
        return max(1, must, 1 + int(np.count_nonzero(np.cumsum(largest) < 1 - SLACK)))
    if isinstance(form, Distance):
        return _not_far(form)
    return 1


def _not_far(form: Distance) -> int:
    ranges = form.ranges
    alone = np.flatnonzero(ranges.end - ranges.begin == 1)
    weight = np.zeros(len(ranges.order))
    np.add.at(weight, ranges.begin[alone], ranges.weight[alone])
    share = np.zeros(len(ranges.order))
    share[ranges.begin[alone]] = form.target[alone]
    if not len(weight) or weight.min() <= 0:
        return 1
    missing = np.sort((weight + weight.min()) * share)
    return max(1, len(missing) - int(np.count_nonzero(np.cumsum(missing) <= form.t + SLACK)))
