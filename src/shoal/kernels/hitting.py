"""The hitting number of a class of persons: how many groups it takes to meet everybody, as `shoal.models.sets` defines it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import inner

Ints = NDArray[np.int64]
Counts = NDArray[np.int32]
Floats = NDArray[np.float64]

BLOCK = 16
"""Codes that are looked at together: a vector register or two, so that passing them by takes a step and not sixteen."""


@inner
def following(counts: Counts, s: int) -> int:
    """The first code from `s` on that occurs, or their number. Most of many codes do not, so they are passed by in blocks."""
    width = len(counts)
    while s + BLOCK <= width:
        seen = np.int64(0)
        for j in range(BLOCK):
            seen |= counts[s + j]
        if seen != 0:
            break
        s += BLOCK
    while s < width and counts[s] == 0:
        s += 1
    return s


@inner
def hitting_deficit(ints: Ints, counts: Counts) -> float:
    """ints: p, groups, where each set begins, the sets. How many groups fewer than p meet everybody, 0 where none do."""
    p, groups, width = ints[0], ints[1], len(counts)
    starts, members = ints[2 : 3 + width], ints[3 + width :]
    having = np.zeros(groups, dtype=np.int64)
    present = np.empty(width, dtype=np.int64)
    known, sets = gathered(starts, members, counts, having, present)
    return deficit_of(p, known, having, present[:sets], starts, members)


@inner
def gathered(starts: Ints, members: Ints, counts: Counts, having: Ints, present: Ints) -> tuple[int, int]:
    """List the sets that occur, and how many persons have each group; how many persons and how many sets there are."""
    known, sets = 0, 0
    s = following(counts, 0)
    while s < len(counts):
        known += counts[s]
        present[sets] = s
        sets += 1
        for j in range(starts[s], starts[s + 1]):
            having[members[j]] += counts[s]
        s = following(counts, s + 1)
    return known, sets


@inner
def deficit_of(p: int, known: int, having: Ints, present: Ints, starts: Ints, members: Ints) -> float:
    """How many groups fewer than p meet all these sets, which so many persons have."""
    if known == 0:
        return float(p)
    # p − 1 groups meet at most as many as have them one by one: if that is not everybody, nothing has to be searched.
    if sum_of_largest(having, p - 1) < known:
        return 0.0
    for depth in range(1, p):
        if can_hit(depth, present, starts, members):
            return float(p - depth)
    return 0.0


@inner
def deficits_after(ints: Ints, counts: Counts, asked: NDArray[np.bool_], after: Floats) -> float:
    """The deficit now, and in `after` the one with a person more of each set that is asked about.

    What occurs is listed once, and not for every set that could come.
    """
    p, groups, width = ints[0], ints[1], len(counts)
    starts, members = ints[2 : 3 + width], ints[3 + width :]
    having = np.zeros(groups, dtype=np.int64)
    present = np.empty(width + 1, dtype=np.int64)
    known, sets = gathered(starts, members, counts, having, present)
    before = deficit_of(p, known, having, present[:sets], starts, members)
    for s in range(width):
        if asked[s]:
            after[s] = before
            if counts[s] == 0 and before > 0:
                present[sets] = s
                for j in range(starts[s], starts[s + 1]):
                    having[members[j]] += 1
                after[s] = deficit_of(p, known + 1, having, present[: sets + 1], starts, members)
                for j in range(starts[s], starts[s + 1]):
                    having[members[j]] -= 1
    return before


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
