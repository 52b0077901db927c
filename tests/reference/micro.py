"""Microaggregation with sensitive values straight from docs/algorithms.md: every step looks at every free record.

Points are rows of X; distances and ties are those of `tests.reference.mdav`. `lacks(members)` is what a group of records
is short of, 0 for a good one. Labels are -1 for records that found no group.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.reference.mdav import farthest, mean, nearest

Points = NDArray[np.float64]
Lacks = Callable[[Sequence[int]], float]
TOLERANCE = 1e-12


def mdav_grown(X: Points, k: int, form: str, lacks: Lacks, rows: Sequence[int] | None = None) -> list[list[int]]:
    """MDAV whose groups go on with the nearest record that lowers what they lack; groups that cannot are dissolved."""
    free = list(range(len(X)) if rows is None else rows)
    groups: list[list[int]] = []
    second = -1
    while len(free) >= 2 * k:
        pair = form == "generic" and second < 0 and len(free) >= 3 * k
        seed = second if second >= 0 else farthest(X, free, mean(X, free, True))
        group = grow(X, seed, [], free, k, lacks)
        if lacks(group) <= 0:
            groups.append(group)
        second = farthest(X, free, X[seed]) if pair and free else -1
    if len(free) >= k and lacks(free) <= 0:
        groups.append(free)
    return groups


def p_mdav(
    X: Points, k: int, wanted: list[tuple[list[Any], int]], lacks: Lacks, order: list[int] | None
) -> list[list[int]]:
    """p_mdav; `wanted` has the values of an attribute and how many of them a group needs."""
    free, groups = list(range(len(X))), []
    while len(free) >= k and all(distinct(values, free) >= p for values, p in wanted):
        seed = farthest(X, free, mean(X, free, True)) if order is None else next(i for i in order if i in free)
        free.remove(seed)
        group = [seed]
        while short := [values for values, p in wanted if distinct(values, group) < p]:
            new = [i for i in free if any(distinct(values, [*group, i]) > distinct(values, group) for values in short)]
            if not new:
                break
            group += nearest(X, new, X[seed], 1)
            free.remove(group[-1])
        group = grow(X, seed, group, free, k, lacks)
        if lacks(group) <= 0:
            groups.append(group)
    return groups


def grow(X: Points, seed: int, group: list[int], free: list[int], k: int, lacks: Lacks) -> list[int]:
    """Up to k records, then on while something helps; `free` loses what the group takes."""
    if not group:
        free.remove(seed)
        group = [seed]
    candidates = free
    while candidates and (len(group) < k or lacks(group) > 0):
        group += nearest(X, candidates, X[seed], 1)
        free.remove(group[-1])
        candidates = free
        if len(group) >= k and lacks(group) > 0:
            candidates = [i for i in free if round((lacks(group) - lacks([*group, i])) * 2**40) >= 1]
    return group


@dataclass
class Attribute:
    """A (k, p, q, r) rule: values (None: missing), the squared distance of two values, and how far a group is from t."""

    values: list[Any]
    squared: Callable[[Any, Any], float]
    p: int
    q: float
    r: float
    reference: str = "all"
    excess: Callable[[Sequence[int]], float] | None = None

    def __post_init__(self) -> None:
        known = [v for v in self.values if v is not None]
        self.rare = {v for v, count in Counter(known).items() if count < self.q * len(self.values) - 1e-9}
        self.whole = self.variance([v for v in known if self.reference == "all" or v in self.rare])

    def variance(self, values: Sequence[Any]) -> float:
        """Half the mean squared distance of pairs (docs/models.md#variance)."""
        counts = Counter(values)
        pairs = (counts[a] * counts[b] * self.squared(a, b) for a in counts for b in counts)
        return math.fsum(pairs) / (2 * len(values) ** 2) if values else 0.0

    def known(self, group: Sequence[int]) -> list[Any]:
        return [self.values[i] for i in group if self.values[i] is not None]

    def obliges(self, group: Sequence[int]) -> bool:
        return any(v in self.rare for v in self.known(group))

    def few(self, group: Sequence[int]) -> bool:
        return len(set(self.known(group))) < self.p

    def share(self, group: Sequence[int]) -> float:
        return self.variance(self.known(group)) / self.whole if self.whole > 0 else math.inf

    def flat(self, group: Sequence[int]) -> bool:
        return self.r - self.share(group) > TOLERANCE

    def lacks(self, group: Sequence[int]) -> float:
        if not self.obliges(group):
            return 0.0
        short = self.r - self.share(group)
        return max(0, self.p - len(set(self.known(group)))) + (short if short > TOLERANCE else 0.0)


def kpqr(
    X: Points,
    k: int,
    attributes: list[Attribute],
    lacks: Lacks,
    order: list[int],
    prefer_variance: bool = False,
    tail: str = "X",
    more: bool = False,
) -> list[list[int]]:
    """kpqr, steps 1 to 3; `more`: the policy has other rules, which `lacks` counts too."""
    free, groups = list(range(len(X))), []

    def sensitive(records: Sequence[int]) -> list[int]:
        return [i for i in records if any(a.obliges([i]) for a in attributes)]

    def take(group: list[int], seed: int, candidates: list[int]) -> None:
        group += nearest(X, candidates, X[seed], 1)
        free.remove(group[-1])

    while sensitive(free):
        seed = next(i for i in order if i in free and any(a.obliges([i]) for a in attributes))
        free.remove(seed)
        group = [seed]
        reachable = True
        while short := [a for a in attributes if a.obliges(group) and a.few(group)]:
            help_of = {i: sum(new_value(a, group, i) for a in short) for i in free}
            most = max(help_of.values(), default=0)
            reachable = most > 0
            if not reachable:
                break
            new = [i for i in free if help_of[i] == most]
            rising = [i for i in new if merit(attributes, [*group, i]) > merit(attributes, group) + TOLERANCE]
            take(group, seed, rising if prefer_variance and rising else new)
        while reachable and any(a.obliges(group) and a.flat(group) for a in attributes):
            rising = [i for i in free if merit(attributes, [*group, i]) > merit(attributes, group) + TOLERANCE]
            if not rising:
                break
            take(group, seed, rising)
        while len(group) < k and free:
            take(group, seed, [i for i in free if keeps(attributes, group, i)] or free)
        while (far := excess(attributes, group, group)) > 0:
            closer = [i for i in free if excess(attributes, group, [*group, i]) < far - TOLERANCE]
            if not closer:
                break
            take(group, seed, [i for i in closer if keeps(attributes, group, i)] or closer)
        while more and lacks(group) > 0:
            helpful = [i for i in free if round((lacks(group) - lacks([*group, i])) * 2**40) >= 1]
            if not helpful:
                break
            take(group, seed, helpful)
        rest = sensitive(free)
        if rest and give_up(attributes, rest, free, k, tail):
            group += rest
            free = [i for i in free if i not in rest]
            if tail == "Y" and any(a.obliges(group) and a.flat(group) for a in attributes):
                free = sorted(free + [i for i in group if i not in sensitive(group)])
                group = sensitive(group)
        groups.append(group)
    if len(free) >= k:
        groups += mdav_grown(X, k, "single", lacks, free)
    return groups


def new_value(attribute: Attribute, group: Sequence[int], record: int) -> bool:
    return attribute.values[record] is not None and attribute.values[record] not in attribute.known(group)


def merit(attributes: list[Attribute], group: Sequence[int]) -> float:
    """The smallest Var/MinVar of an obliged attribute; where no variance is asked for, the smallest Var over all."""
    obliged = [a for a in attributes if a.obliges(group) and a.whole > 0]
    asked = [a.share(group) / a.r for a in obliged if a.r > 0]
    return min(asked or [a.share(group) for a in obliged], default=math.inf)


def keeps(attributes: list[Attribute], group: list[int], record: int) -> bool:
    after = [*group, record]
    obliged = [a for a in attributes if a.obliges(after)]
    return not any(a.flat(after) or (not a.obliges(group) and a.few(after)) for a in obliged)


def excess(attributes: list[Attribute], group: Sequence[int], after: Sequence[int]) -> float:
    """How far the farthest attribute that obliges the group is beyond t, once it has the records `after`."""
    over = [a.excess(after) for a in attributes if a.excess and a.obliges(group)]
    return max((x for x in over if x > TOLERANCE), default=0.0)


def give_up(attributes: list[Attribute], rest: list[int], free: list[int], k: int, tail: str) -> bool:
    obliging = [a for a in attributes if a.obliges(rest)]
    if tail == "X":
        return len(free) < k or any(a.few(free) for a in obliging)
    return any(a.few(rest) or a.flat(rest) for a in obliging)


def finish(
    X: Points,
    groups: list[list[int]],
    lacks: Lacks,
    superset_closed: bool,
    shown: Callable[[Sequence[int]], Any] | None,
) -> list[list[int]] | None:
    """Left-over records join the nearest mean, groups that lack something the nearest group; None if that fails.

    `shown`, for rules that a union may break: what a group publishes; equal ones are one group.
    """
    groups = [list(group) for group in groups]
    means = [mean(X, sorted(group), True) for group in groups]
    for record in sorted(set(range(len(X))) - {i for group in groups for i in group}):
        near = by_distance(X[record], means, range(len(groups)))
        good = [] if superset_closed else [c for c in near if lacks([*groups[c], record]) <= 0]
        groups[(good or near)[0]].append(record)
    while True:
        if not merge_failing(X, groups, lacks):
            return None
        alike = Counter(shown(group) for group in groups if group) if shown else Counter()
        if not any(count > 1 for count in alike.values()):
            return [group for group in groups if group]
        first: dict[Any, int] = {}
        for c, group in enumerate(groups):
            if group and first.setdefault(shown(group), c) != c:
                groups[first[shown(groups[c])]] += group
                groups[c] = []


def merge_failing(X: Points, groups: list[list[int]], lacks: Lacks) -> bool:
    while failing := [c for c, group in enumerate(groups) if group and lacks(group) > 0]:
        c = failing[0]
        others = [o for o, group in enumerate(groups) if group and o != c]
        if not others:
            return False
        means = [mean(X, sorted(group), True) if group else X[0] for group in groups]
        near = by_distance(means[c], means, others)
        good = [o for o in near if lacks(groups[o] + groups[c]) <= 0]
        groups[(good or near)[0]] += groups[c]
        groups[c] = []
    return True


def by_distance(point: Points, means: list[Points], among: Sequence[int]) -> list[int]:
    return sorted(among, key=lambda c: (round(float(((means[c] - point) ** 2).sum()) * 2**40), c))


def distinct(values: Sequence[Any], group: Sequence[int]) -> int:
    return len({values[i] for i in group} - {None})
