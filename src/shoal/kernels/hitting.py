"""The hitting number of a class of persons: how many groups it takes to meet everybody, as `shoal.models.sets` defines it.

A set of groups is a word of bits as well. With more groups than a word has bits, some share one, and sets may seem to meet that
do not: where so many bits do not meet all words, so many groups do not meet all sets; where they do, the sets are asked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import bare, inner
from shoal.models import forms

Ints = NDArray[np.int64]
Counts = NDArray[np.int32]
Floats = NDArray[np.float64]

BITS = int(forms.BITS)
BLOCK = 16
"""Codes that are looked at together: a vector register or two, so that passing them by takes a step and not sixteen."""


@bare
def passing(counts: Counts, s: int) -> int:
    """The first place from `s` on that is not zero, or their number. Most are zero, so they are passed by in blocks."""
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


@bare
def following(counts: Counts, blocks: Counts, s: int) -> int:
    """The first code from `s` on that occurs, or their number; `blocks` are the sums of blocks of counts, if they are kept."""
    width = len(counts)
    if len(blocks) == 0:
        return passing(counts, s)
    while s < width and s % BLOCK != 0:
        if counts[s] != 0:
            return s
        s += 1
    if s < width:
        s = min(width, BLOCK * passing(blocks, s // BLOCK))
    while s < width and counts[s] == 0:
        s += 1
    return s


@inner
def hitting_deficit(ints: Ints, counts: Counts, blocks: Counts) -> float:
    """ints: p, groups, where each set begins, the sets in bits, the sets. How many groups fewer than p meet everybody."""
    p, width = ints[0], len(counts)
    words = ints[3 + width : 3 + 2 * width]
    # It takes a group for each of some sets that are pairwise apart: p of them, and nothing has to be searched.
    taken, apart, many = np.int64(0), 0, 0
    s = following(counts, blocks, 0)
    while s < width:
        many += 1
        if taken & words[s] == 0:
            taken |= words[s]
            apart += 1
            if apart == p:
                return 0.0
        s = following(counts, blocks, s + 1)
    if many == 0:
        return float(p)
    present, paper = np.empty(many, dtype=np.int64), np.empty(2 * p, dtype=np.int64)
    listed(counts, blocks, present)
    for depth in range(apart, p):
        if can_hit(depth, ints, width, present, paper):
            return float(p - depth)
    return 0.0


@bare
def listed(counts: Counts, blocks: Counts, present: Ints) -> int:
    """List the sets that occur; how many they are."""
    many = 0
    s = following(counts, blocks, 0)
    while s < len(counts):
        present[many] = s
        many += 1
        s = following(counts, blocks, s + 1)
    return many


@inner
def deficits_after(ints: Ints, counts: Counts, asked: NDArray[np.bool_], after: Floats) -> float:
    """The deficit now, and in `after` the one with a person more of each set that is asked about.

    What occurs is listed once, and not for every set that could come. A set more takes at most a group more.
    """
    p, width = ints[0], len(counts)
    none = counts[:0]
    before = hitting_deficit(ints, counts, none)
    present, paper = np.empty(width + 1, dtype=np.int64), np.empty(2 * p, dtype=np.int64)
    many, depth = listed(counts, none, present), p - np.int64(before)
    for s in range(width):
        if asked[s]:
            after[s] = before
            if counts[s] == 0 and before > 0:
                present[many] = s
                if depth == 0 or not can_hit(depth, ints, width, present[: many + 1], paper):
                    after[s] = before - 1.0
    return before


@bare
def can_hit(depth: int, ints: Ints, width: int, present: Ints, paper: Ints) -> bool:
    """Whether `depth` groups, one or more, meet all these sets; `paper` is for writing on."""
    starts, words = ints[2 : 3 + width], ints[3 + width : 3 + 2 * width]
    if not bits_meet(depth, starts, words, present, paper):
        return False
    return ints[1] <= BITS or groups_meet(depth, present, starts, ints[3 + 2 * width :])


@bare
def bits_meet(depth: int, starts: Ints, words: Ints, present: Ints, paper: Ints) -> bool:
    """Whether `depth` bits meet all these words: the smallest set not yet met has to be met by one of its own.

    Of the last bit it is enough that all who are not met yet have one in common.
    """
    if depth == 1:
        return in_common(np.int64(0), words, present) != 0
    chosen, left = paper[:depth], paper[depth:]
    chosen[0], left[0] = 0, smallest(np.int64(0), starts, words, present)
    level = 0
    while level >= 0:
        bit = left[level] & -left[level]
        if bit == 0:
            level -= 1
            continue
        left[level] ^= bit
        met = chosen[level] | bit
        if level + 2 == depth:
            if in_common(met, words, present) != 0:
                return True
        else:
            level += 1
            chosen[level], left[level] = met, smallest(met, starts, words, present)
            if left[level] == 0:
                return True
    return False


@bare
def in_common(met: int, words: Ints, present: Ints) -> int:
    """The bits that all words have which `met` does not meet; every bit where it meets them all."""
    common = np.int64(-1)
    for s in present:
        if words[s] & met == 0:
            common &= words[s]
            if common == 0:
                break
    return common


@bare
def smallest(met: int, starts: Ints, words: Ints, present: Ints) -> int:
    """The word of the smallest set that `met` does not meet; 0 when there is none."""
    best, length = np.int64(0), np.int64(0)
    for s in present:
        own = starts[s + 1] - starts[s]
        if words[s] & met == 0 and (best == 0 or own < length):
            best, length = words[s], own
    return best


@inner
def groups_meet(depth: int, present: Ints, starts: Ints, members: Ints) -> bool:
    """The same of the sets themselves, however many groups there are."""
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


@bare
def mark(group: int, by: int, met: Ints, present: Ints, starts: Ints, members: Ints) -> None:
    """Count a group as chosen, or no longer, in all sets that have it."""
    for i in range(len(present)):
        for j in range(starts[present[i]], starts[present[i] + 1]):
            if members[j] == group:
                met[i] += by


@bare
def smallest_unmet(met: Ints, present: Ints, starts: Ints) -> int:
    """The place of the smallest set that no chosen group is in; -1 when there is none."""
    best, length = -1, 0
    for i in range(len(present)):
        own = starts[present[i] + 1] - starts[present[i]]
        if met[i] == 0 and (best < 0 or own < length):
            best, length = i, own
    return best
