"""The hitting number of a class of persons: how many groups it takes to meet everybody, as `shoal.models.sets` defines it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import inner

Ints = NDArray[np.int64]
Counts = NDArray[np.int32]


@inner
def hitting_deficit(ints: Ints, counts: Counts) -> float:
    """ints: p, groups, where each set begins, the sets. How many groups fewer than p meet everybody, 0 where none do."""
    p, groups, width = ints[0], ints[1], len(counts)
    starts, members = ints[2 : 3 + width], ints[3 + width :]
    having = np.zeros(groups, dtype=np.int64)
    present = np.empty(width, dtype=np.int64)
    known, sets = 0, 0
    for s in range(width):
        if counts[s] > 0:
            known += counts[s]
            present[sets] = s
            sets += 1
            for j in range(starts[s], starts[s + 1]):
                having[members[j]] += counts[s]
    if known == 0:
        return float(p)
    # p − 1 groups meet at most as many as have them one by one: if that is not everybody, nothing has to be searched.
    if sum_of_largest(having, p - 1) < known:
        return 0.0
    for depth in range(1, p):
        if can_hit(depth, present[:sets], starts, members):
            return float(p - depth)
    return 0.0


@inner
def sum_of_largest(values: Ints, count: int) -> int:
    """The sum of the `count` largest numbers."""
    largest = np.zeros(count, dtype=np.int64)
    total = 0
    for value in values:
        if count > 0 and value > largest[count - 1]:
            total += value - largest[count - 1]
            at = count - 1
            while at > 0 and largest[at - 1] < value:
                largest[at] = largest[at - 1]
                at -= 1
            largest[at] = value
    return total


@inner
def can_hit(depth: int, present: Ints, starts: Ints, members: Ints) -> bool:
    """Whether `depth` groups meet all these sets: the smallest set not yet met has to be met by one of its own."""
    met = np.zeros(len(present), dtype=np.int64)
    branch, choice = np.zeros(depth, dtype=np.int64), np.full(depth, -1, dtype=np.int64)
    branch[0] = smallest_unmet(met, present, starts)
    level = 0
    while level >= 0:
        begin, end = starts[present[branch[level]]], starts[present[branch[level]] + 1]
        if choice[level] >= 0:
            mark(members[begin + choice[level]], -1, met, present, starts, members)
        choice[level] += 1
        if begin + choice[level] >= end:
            choice[level] = -1
            level -= 1
            continue
        mark(members[begin + choice[level]], 1, met, present, starts, members)
        following = smallest_unmet(met, present, starts)
        if following < 0:
            return True
        if level + 1 < depth:
            level += 1
            branch[level] = following
            choice[level] = -1
    return False


@inner
def mark(group: int, by: int, met: Ints, present: Ints, starts: Ints, members: Ints) -> None:
    """Count a group as chosen, or no longer, in all sets that have it."""
    for i in range(len(present)):
        for j in range(starts[present[i]], starts[present[i] + 1]):
            if members[j] == group:
                met[i] += by


@inner
def smallest_unmet(met: Ints, present: Ints, starts: Ints) -> int:
    """The place of the smallest set that no chosen group is in; -1 when there is none."""
    best, length = -1, 0
    for i in range(len(present)):
        own = starts[present[i] + 1] - starts[present[i]]
        if met[i] == 0 and (best < 0 or own < length):
            best, length = i, own
    return best
