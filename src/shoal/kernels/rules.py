"""Privacy rules for compiled loops: the deficit of one class from its size and histograms.

A policy bound to a table is a list of forms (`shoal.models.forms`), one or several a rule; each looks at one column of codes
(a sensitive attribute, or a view of one). The histograms of all columns lie side by side in one row per class. A form's
numbers are its `ints` and `floats`; what they mean is said at its kind. Tests hold these equal to what the models define.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.hitting import BLOCK, following, hitting_deficit
from shoal.kernels.jit import bare, entry, inner, pasted
from shoal.kernels.logs import log
from shoal.models import base
from shoal.models.forms import Kind
from shoal.policy import FlatRules

SIZE = int(Kind.SIZE)
DISTINCT = int(Kind.DISTINCT)
WEIGHT = int(Kind.WEIGHT)
ENTROPY = int(Kind.ENTROPY)
RECURSIVE = int(Kind.RECURSIVE)
SHARES = int(Kind.SHARES)
RANGE = int(Kind.RANGE)
DISTANCE = int(Kind.DISTANCE)
VARIANCE = int(Kind.VARIANCE)
BREACH = int(Kind.BREACH)
HITTING = int(Kind.HITTING)
TOLERANCE = float(base.TOLERANCE)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Counts = NDArray[np.int32]


@entry
def class_deficit(rules: FlatRules, size: int, counts: Counts) -> float:
    """Zero exactly when a class of this size and these histograms satisfies every form."""
    total = 0.0
    for i in range(len(rules.kind)):
        # The two kinds that most policies have are done here: a call costs more than they do.
        if rules.kind[i] == SIZE:
            total += max(0, rules.ints[rules.int_start[i]] - size)
        elif rules.kind[i] == DISTINCT:
            missing = rules.ints[rules.int_start[i]]
            for v in range(rules.offset[i], rules.offset[i] + rules.width[i]):
                if counts[v] > 0:
                    missing -= 1
            total += max(0, missing)
        elif rules.kind[i] >= HITTING:
            total += set_deficit(rules, rules.sets, i, size, counts)
        else:
            total += other_deficit(rules, rules.others, i, size, counts)
    return total


@entry
def class_ok(rules: FlatRules, size: int, counts: Counts) -> bool:
    """Whether a class satisfies every form; stops at the first that it does not."""
    for i in range(len(rules.kind)):
        if rules.kind[i] == SIZE:
            if size < rules.ints[rules.int_start[i]]:
                return False
        elif rules.kind[i] == DISTINCT:
            missing = rules.ints[rules.int_start[i]]
            for v in range(rules.offset[i], rules.offset[i] + rules.width[i]):
                if counts[v] > 0:
                    missing -= 1
                    if missing <= 0:
                        break
            if missing > 0:
                return False
        elif rules.kind[i] >= HITTING:
            if set_deficit(rules, rules.sets, i, size, counts) > 0:
                return False
        elif other_deficit(rules, rules.others, i, size, counts) > 0:
            return False
    return True


# Numba drops the branch of an argument that is None before it compiles, but not that of a field.
@pasted
def other_deficit(rules: FlatRules, others: int | None, i: int, size: int, counts: Counts) -> float:
    """The deficit of a form about more than sizes and distinct values; a policy without any compiles nothing of it."""
    if others is None:
        return np.inf
    return form_deficit(rules, i, size, counts)


@pasted
def set_deficit(rules: FlatRules, sets: Ints | None, i: int, size: int, counts: Counts) -> float:
    """The deficit of a form about people with several values; a policy without any compiles nothing of it."""
    if sets is None:
        return np.inf
    return set_form_deficit(rules, sets, rules.others, i, size, counts)


@bare
def set_form_deficit(rules: FlatRules, sets: Ints, others: int | None, i: int, size: int, counts: Counts) -> float:
    """Hitting numbers, or another form on what persons have together."""
    ints = rules.ints[rules.int_start[i] : rules.int_start[i + 1]]
    width = rules.width[i]
    own = counts[rules.offset[i] : rules.offset[i] + width]
    blocks = counts[sets[i] : sets[i] + (width + BLOCK - 1) // BLOCK] if sets[i] >= 0 else counts[:0]
    if rules.kind[i] == HITTING:
        return hitting_deficit(ints, own, blocks)
    if others is None:
        return np.inf
    floats = rules.floats[rules.float_start[i] : rules.float_start[i + 1]]
    return summed_deficit(ints, floats, size, own, blocks)


@inner
def summed_deficit(ints: Ints, floats: Floats, size: int, counts: Counts, blocks: Counts) -> float:
    """ints: kind of the form, groups, a person's weight, where each set begins, the sets, the parts; the form's own."""
    width = len(counts)
    starts = ints[3 : 4 + width]
    members, parts = ints[4 + width : 4 + width + starts[width]], ints[4 + width + starts[width] :]
    together = np.zeros(ints[1], dtype=np.int64)
    s = following(counts, blocks, 0)
    while s < width:
        for j in range(starts[s], starts[s + 1]):
            together[members[j]] += counts[s] * parts[j]
        s = following(counts, blocks, s + 1)
    return kind_deficit(ints[0], parts[starts[width] :], floats, size * ints[2], together)


@entry
def form_deficit(rules: FlatRules, i: int, size: int, counts: Counts) -> float:
    """The deficit of one form."""
    if rules.kind[i] >= HITTING:
        return set_deficit(rules, rules.sets, i, size, counts)
    ints = rules.ints[rules.int_start[i] : rules.int_start[i + 1]]
    floats = rules.floats[rules.float_start[i] : rules.float_start[i + 1]]
    own = counts[rules.offset[i] : rules.offset[i] + rules.width[i]]
    return kind_deficit(rules.kind[i], ints, floats, size, own)


@bare
def kind_deficit(kind: int, ints: Ints, floats: Floats, size: int, own: Counts) -> float:
    """The deficit of a form of this kind."""
    if kind == SIZE:
        return size_deficit(ints, size)
    if kind == DISTINCT:
        return distinct_deficit(ints, own)
    if kind == WEIGHT:
        return weight_deficit(ints, floats, own)
    if kind == ENTROPY:
        return entropy_deficit(floats, own)
    if kind == RECURSIVE:
        return recursive_deficit(ints, floats, own)
    if kind == SHARES:
        return shares_deficit(ints, floats, size, own)
    if kind == RANGE:
        return range_deficit(floats, own)
    if kind == DISTANCE:
        return distance_deficit(ints, floats, own)
    if kind == VARIANCE:
        return variance_deficit(ints, floats, own)
    if kind == BREACH:
        return breach_deficit(ints, floats, size, own)
    return np.inf


@bare
def size_deficit(ints: Ints, size: int) -> float:
    """ints: k."""
    return float(max(0, ints[0] - size))


@bare
def distinct_deficit(ints: Ints, counts: Counts) -> float:
    """ints: p."""
    missing = ints[0]
    for v in range(len(counts)):
        if counts[v] > 0:
            missing -= 1
    return float(max(0, missing))


@bare
def settled(deficit: float) -> float:
    """Rounding noise is no deficit."""
    return 0.0 if deficit <= TOLERANCE else deficit


@bare
def weight_deficit(ints: Ints, floats: Floats, counts: Counts) -> float:
    """ints: whether codes count once, steps, rank of each code; floats: α."""
    total = 0
    for v in range(len(counts)):
        if counts[v] > 0:
            total += ints[2 + v] * (1 if ints[0] == 1 else counts[v])
    return settled(floats[0] - total / ints[1])


@bare
def entropy_deficit(floats: Floats, counts: Counts) -> float:
    """floats: ln l."""
    known, total = 0, 0.0
    for v in range(len(counts)):
        if counts[v] > 0:
            known += counts[v]
            total += counts[v] * log(float(counts[v]))
    if known == 0:
        return floats[0] + 1.0
    return settled(floats[0] - (log(float(known)) - total / known))


@inner
def recursive_deficit(ints: Ints, floats: Floats, counts: Counts) -> float:
    """ints: l; floats: c. `largest` keeps the l largest counts, descending."""
    length = ints[0]
    largest = np.zeros(length, dtype=np.int64)
    found, known = 0, 0
    for v in range(len(counts)):
        count = counts[v]
        if count > 0:
            found += 1
            known += count
            if count > largest[length - 1]:
                at = length - 1
                while at > 0 and largest[at - 1] < count:
                    largest[at] = largest[at - 1]
                    at -= 1
                largest[at] = count
    tail = known
    for i in range(length - 1):
        tail -= largest[i]
    gap = largest[0] - floats[0] * tail
    if gap < -TOLERANCE * known:
        return 0.0
    return max(0, length - found) + max(gap, 0.0) + 1.0


@bare
def shares_deficit(ints: Ints, floats: Floats, size: int, counts: Counts) -> float:
    """ints: whether shares are of known codes, whether codes have to occur; floats: lower and upper bound of each code."""
    width, whole = len(counts), size
    if ints[0] == 1:
        whole = 0
        for v in range(width):
            whole += counts[v]
    if whole == 0:
        return float(ints[0])
    total = 0.0
    for v in range(width):
        excess = 0.0
        if counts[v] > 0:
            share = counts[v] / whole
            excess = max(share - floats[width + v], floats[v] - share)
        elif ints[1] == 1 and floats[v] > 0:
            excess = max(floats[v], 1.0 / whole)
        if excess > TOLERANCE:
            total += excess
    return total * whole


@bare
def range_deficit(floats: Floats, counts: Counts) -> float:
    """floats: e, number of each code in ascending order."""
    first, last = -1, -1
    for v in range(len(counts)):
        if counts[v] > 0:
            first = v if first < 0 else first
            last = v
    if first < 0:
        return 1.0
    if floats[0] == 0:
        return 0.0
    return settled(1.0 - (floats[1 + last] - floats[1 + first]) / floats[0])


@inner
def prefix_sums(order: Ints, counts: Counts) -> Ints:
    """Counts in the given order, summed up to each place."""
    prefix = np.zeros(len(order) + 1, dtype=np.int64)
    for i in range(len(order)):
        prefix[i + 1] = prefix[i] + counts[order[i]]
    return prefix


@inner
def distance_deficit(ints: Ints, floats: Floats, counts: Counts) -> float:
    """ints: ranges as in models/ranges.py; floats: t, share of each range in the table, weight of each range."""
    codes, ranges = ints[0], ints[1]
    prefix = prefix_sums(ints[2 : 2 + codes], counts)
    known = prefix[codes]
    if known == 0:
        return settled(1.0 - floats[0])
    total = 0.0
    for i in range(ranges):
        begin, end = ints[2 + codes + i], ints[2 + codes + ranges + i]
        total += floats[1 + ranges + i] * abs((prefix[end] - prefix[begin]) / known - floats[1 + i])
    return settled(total - floats[0])


@bare
def variance_deficit(ints: Ints, floats: Floats, counts: Counts) -> float:
    """ints: p, whether literal, whether each code is rare, form of variance; floats: r, reference, the form's."""
    width, found, rare = len(counts), 0, False
    for v in range(width):
        if counts[v] > 0:
            found += 1
            rare = rare or ints[2 + v] == 1
    missing = float(max(0, ints[0] - found)) if rare else 0.0
    tested = found >= ints[0] if ints[1] == 1 else rare
    if not tested or floats[1] <= 0:
        return missing
    if ints[2 + width] == 0:
        variance = number_variance(floats[2:], counts)
    else:
        variance = tree_variance(ints[3 + width :], floats[2:], counts)
    return missing + settled(floats[0] - variance / floats[1])


@bare
def number_variance(values: Floats, counts: Counts) -> float:
    """Population variance of the values."""
    known, total = 0, 0.0
    for v in range(len(counts)):
        known += counts[v]
        total += counts[v] * values[v]
    if known == 0:
        return 0.0
    mean, squares = total / known, 0.0
    for v in range(len(counts)):
        squares += counts[v] * (values[v] - mean) ** 2
    return squares / known


@inner
def tree_variance(ints: Ints, floats: Floats, counts: Counts) -> float:
    """ints: ranges as in models/ranges.py; floats: value of the root, weight of each range."""
    codes, ranges = ints[0], ints[1]
    prefix = prefix_sums(ints[2 : 2 + codes], counts)
    known = prefix[codes]
    if known == 0:
        return 0.0
    rest = floats[0]
    for i in range(ranges):
        share = (prefix[ints[2 + codes + ranges + i]] - prefix[ints[2 + codes + i]]) / known
        rest -= floats[1 + i] * share * share
    return max(0.0, 0.5 * rest)


@bare
def breach_deficit(ints: Ints, floats: Floats, size: int, counts: Counts) -> float:
    """ints: pairs, guards, guard of each pair, starts, pairs below each guard; floats: breach, part of each."""
    pairs, guards = ints[0], ints[1]
    starts = ints[2 + pairs : 3 + pairs + guards]
    below = ints[3 + pairs + guards :]
    total = 0.0
    for guard in range(guards):
        guarded, inside = False, 0.0
        for i in range(starts[guard], starts[guard + 1]):
            pair = below[i]
            if counts[pair] > 0:
                inside += counts[pair] * floats[1 + i]
                guarded = guarded or ints[2 + pair] == guard
        if guarded:
            excess = inside / size - floats[0]
            if excess > TOLERANCE:
                total += excess
    return total * size
