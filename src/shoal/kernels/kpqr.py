"""Groups round rare sensitive values: enough distinct values, enough variance, enough records (docs/algorithms.md#kpqr).

An *obligation* is a (k, p, q, r) rule on one attribute. A group is obliged by it as soon as it holds a rare value of the
attribute. How the variance changes when a record joins follows from its value alone, by an update in constant time
for numbers and in the depth of the taxonomy for the rest, so a step judges all labels and searches once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.jit import bare, entry, inner
from shoal.kernels.kdtree import Floats, Ints, live_count
from shoal.kernels.mdav import steps_taken
from shoal.kernels.micro import Flags, Free, Longs, Seeds, _distinct, _join, _nearest, _next_seed, allow_lowering
from shoal.kernels.rules import TOLERANCE, class_deficit, distance_deficit
from shoal.policy import FlatRules

TAIL_X, TAIL_Y = 0, 1
# What an open group looks for, one after the other; any record is the way out when none keeps the variance.
VALUES, VARIANCE, RECORDS, ANY_RECORD, CLOSENESS, WHATEVER = range(6)


class Obligations(NamedTuple):
    """The rules; code c of rule j has the slot `slot[j] + c`, in `counts` it is cell `first[j] + c` of its view.

    Numbers have `top` -1 and a `value` a slot. Else the variance is ½ (top - Σ weight·share²) over ranges of codes, and
    chain[chain_start[s]:chain_start[s + 1]] are the ranges that hold the code of slot s.
    """

    p: Longs
    r: Floats
    reference: Floats  # the variance that r is a share of; not positive: no test
    column: Longs
    first: Longs
    slot: Longs
    rare: Flags
    value: Floats
    top: Floats
    chain_start: Longs
    chain: Longs
    weight: Floats
    has_rare: Flags  # [label]: whether a record with it obliges its group at all


class Group(NamedTuple):
    """What is known of the open group, one entry an obligation; `held` counts its records in each range.

    `members` and `at`, which holds what SIZE … GROUPS name, let the work go on where it was.
    """

    counts: Ints
    obliged: Flags
    known: Longs
    mean: Floats
    squares: Floats
    held: Longs
    members: Ints
    at: Longs


SIZE, SEED, NEXT, STAGE, GROUPS = range(5)
"""Members of the open group, its seed, the record to join next (-1: none), its stage, and groups so far."""


def make_group(obligations: Obligations, cells: int, rows: int, groups: int) -> Group:
    """An empty group."""
    rules = len(obligations.p)
    return Group(
        counts=np.zeros(cells, dtype=np.int32),
        obliged=np.zeros(rules, dtype=np.bool_),
        known=np.zeros(rules, dtype=np.int64),
        mean=np.zeros(rules),
        squares=np.zeros(rules),
        held=np.zeros(len(obligations.weight), dtype=np.int64),
        members=np.empty(rows, dtype=np.int32),
        at=np.array([0, -1, -1, 0, groups], dtype=np.int64),
    )


@entry
def rare_groups(
    free: Free,
    seeds: Seeds,
    duties: Obligations,
    group: Group,
    close: FlatRules,
    rules: FlatRules,
    more: bool,
    k: int,
    prefer_variance: bool,
    tail: int,
    labels: Ints,
    steps: int,
) -> bool:
    """Form groups round the rare records until less than half are free; False after about so many steps, to go on later.

    `close` holds a distance rule for each obligation, or nothing; `more` says whether `rules` has others than k and obligations.
    """
    at, members = group.at, group.members
    until = steps_taken(free.tree, seeds.queue) + steps
    while steps_taken(free.tree, seeds.queue) < until:
        if at[SIZE] == 0:
            if _rare_left(free, duties) == 0 or 2 * live_count(free.tree) < free.X.shape[0]:
                return True
            _clear(group)
            at[SEED] = _next_seed(free, seeds)
            at[NEXT], at[STAGE] = at[SEED], VALUES
        if at[NEXT] >= 0:
            at[SIZE] = _take(free, seeds, duties, group, at[NEXT], members, at[SIZE])
            at[STAGE] = RECORDS if at[STAGE] == ANY_RECORD else at[STAGE]
        wanted = _allow(free, duties, group, close, rules, k, at[SIZE], prefer_variance, at[STAGE])
        free.tree.sizes[2] += free.live.size * duties.p.size
        at[NEXT] = _nearest(free, free.X[at[SEED]]) if wanted else np.int64(-1)
        if at[NEXT] < 0:
            at[STAGE] = _after(at[STAGE], wanted, more)
        if at[STAGE] <= WHATEVER:
            continue
        if _rare_left(free, duties) > 0 and _tail(free, duties, k, tail):
            at[SIZE] = _take_all_rare(free, seeds, duties, group, members, at[SIZE])
            if tail == TAIL_Y and _lacks_variance(duties, group):
                at[SIZE] = _give_back(free, duties, members, at[SIZE])
        for i in range(at[SIZE]):
            labels[members[i]] = at[GROUPS]
        at[GROUPS] += 1
        at[SIZE] = 0
    return False


@bare
def _allow(
    free: Free,
    duties: Obligations,
    group: Group,
    close: FlatRules,
    rules: FlatRules,
    k: int,
    size: int,
    prefer_variance: bool,
    stage: int,
) -> bool:
    """Allow the labels that serve the stage's purpose; whether the group still wants a record for it."""
    if stage == VALUES:
        return _lacks_values(free, duties, group, prefer_variance)
    if stage == VARIANCE:
        return _lacks_variance(duties, group) and _allow_rising(free, duties, group)
    if stage == RECORDS:
        return size < k and _allow_keeping(free, duties, group)
    if stage == ANY_RECORD:
        free.allowed[:] = True
        return size < k
    if stage == CLOSENESS:
        return _allow_closer(free, duties, group, close)
    deficit = class_deficit(rules, size, group.counts)
    if deficit > 0:
        allow_lowering(free, rules, size, group.counts, deficit)
    return deficit > 0


@bare
def _after(stage: int, wanted: bool, more: bool) -> int:
    """The stage that follows when the group has what it wants, or no record can give it."""
    if stage == VALUES:
        # Values that cannot be reached are a matter of repair, and variance would only cost more.
        return RECORDS if wanted else VARIANCE
    if stage == VARIANCE:
        return RECORDS
    if stage == RECORDS and wanted:
        return ANY_RECORD
    if stage == CLOSENESS:
        return WHATEVER if more else WHATEVER + 1
    return CLOSENESS if stage < CLOSENESS else WHATEVER + 1


@bare
def _clear(group: Group) -> None:
    group.counts[:] = 0
    group.obliged[:] = False
    group.known[:] = 0
    group.mean[:] = 0.0
    group.squares[:] = 0.0
    group.held[:] = 0


@bare
def _take(free: Free, seeds: Seeds, duties: Obligations, group: Group, record: int, members: Ints, size: int) -> int:
    """Take a record into the group; the new size."""
    size = _join(free, seeds, record, members, size, group.counts)
    label = free.label[record]
    for j in range(duties.p.size):
        cell = free.cell[label, duties.column[j]]
        if cell < 0:
            continue
        slot = duties.slot[j] + cell - duties.first[j]
        group.obliged[j] |= duties.rare[slot]
        group.squares[j] += _rise(duties, group, j, slot)
        group.known[j] += 1
        group.mean[j] += (duties.value[slot] - group.mean[j]) / group.known[j]
        for i in range(duties.chain_start[slot], duties.chain_start[slot + 1]):
            group.held[duties.chain[i]] += 1
    return size


@bare
def _rise(duties: Obligations, group: Group, j: int, slot: int) -> float:
    """What one more record adds to the sum of squares: about the mean for numbers, of the ranges' counts for the rest."""
    if duties.top[j] < 0:
        gap = duties.value[slot] - group.mean[j]
        return gap * gap * group.known[j] / (group.known[j] + 1)
    total = 0.0
    for i in range(duties.chain_start[slot], duties.chain_start[slot + 1]):
        total += duties.weight[duties.chain[i]] * (2 * group.held[duties.chain[i]] + 1)
    return total


@bare
def _variance(top: float, squares: float, known: int) -> float:
    if known == 0:
        return 0.0
    if top < 0:
        return squares / known
    return max(0.0, 0.5 * (top - squares / (float(known) * known)))


@bare
def _share(duties: Obligations, group: Group, j: int, slot: int) -> float:
    """Variance over the reference, after a record of the slot joins (-1: as it is)."""
    squares, known = group.squares[j], group.known[j]
    if slot >= 0:
        squares += _rise(duties, group, j, slot)
        known += 1
    return _variance(duties.top[j], squares, known) / duties.reference[j]


@bare
def _slot(free: Free, duties: Obligations, j: int, label: int) -> int:
    """The slot of a label's value; -1 for no label and for missing, which change no variance."""
    if label < 0 or free.cell[label, duties.column[j]] < 0:
        return np.int64(-1)
    return duties.slot[j] + free.cell[label, duties.column[j]] - duties.first[j]


@bare
def _merit(free: Free, duties: Obligations, group: Group, label: int) -> float:
    """The smallest variance of an obliged attribute as a share of what it must be, after a record joins (-1: now).

    Where no variance is asked for it is the smallest share of the reference.
    """
    asked, any_share = np.inf, np.inf
    for j in range(duties.p.size):
        slot = _slot(free, duties, j, label)
        if duties.reference[j] <= 0 or not (group.obliged[j] or (slot >= 0 and duties.rare[slot])):
            continue
        share = _share(duties, group, j, slot)
        any_share = min(any_share, share)
        if duties.r[j] > 0:
            asked = min(asked, share / duties.r[j])
    return asked if asked < np.inf else any_share


@bare
def _lacks_values(free: Free, duties: Obligations, group: Group, prefer_variance: bool) -> bool:
    """Allow the labels that help most attributes to p values, with `prefer_variance` those that raise the variance too."""
    lacking = False
    free.verdict[:] = 0
    for j in range(duties.p.size):
        width = duties.slot[j + 1] - duties.slot[j]
        if not group.obliged[j] or _distinct(group.counts, duties.first[j], duties.first[j] + width) >= duties.p[j]:
            continue
        lacking = True
        for label in range(free.live.size):
            cell = free.cell[label, duties.column[j]]
            if cell >= 0 and group.counts[cell] == 0:
                free.verdict[label] += 1
    if not lacking:
        return False
    most = 0
    for label in range(free.live.size):
        if free.live[label] > 0:
            most = max(most, free.verdict[label])
    rising = False
    merit = _merit(free, duties, group, np.int64(-1))
    for label in range(free.live.size):
        free.allowed[label] = most > 0 and free.live[label] > 0 and free.verdict[label] == most
        if prefer_variance and free.allowed[label] and _merit(free, duties, group, label) > merit + TOLERANCE:
            free.verdict[label] = -1
            rising = True
    if rising:
        for label in range(free.live.size):
            free.allowed[label] = free.verdict[label] == -1
    return True


@bare
def _lacks_variance(duties: Obligations, group: Group) -> bool:
    for j in range(duties.p.size):
        if (
            group.obliged[j]
            and duties.reference[j] > 0
            and duties.r[j] - _share(duties, group, j, np.int64(-1)) > TOLERANCE
        ):
            return True
    return False


@bare
def _allow_rising(free: Free, duties: Obligations, group: Group) -> bool:
    merit = _merit(free, duties, group, np.int64(-1))
    for label in range(free.live.size):
        free.allowed[label] = free.live[label] > 0 and _merit(free, duties, group, label) > merit + TOLERANCE
    return True


@bare
def _allow_keeping(free: Free, duties: Obligations, group: Group) -> bool:
    for label in range(free.live.size):
        free.allowed[label] = free.live[label] > 0 and _keeps(free, duties, group, label)
    return True


@bare
def _keeps(free: Free, duties: Obligations, group: Group, label: int) -> bool:
    """Whether every obliged variance is large enough after a record joins, and no new obligation lacks values."""
    for j in range(duties.p.size):
        slot = _slot(free, duties, j, label)
        new = slot >= 0 and duties.rare[slot] and not group.obliged[j]
        if not (new or group.obliged[j]):
            continue
        if duties.reference[j] > 0 and duties.r[j] - _share(duties, group, j, slot) > TOLERANCE:
            return False
        if new:
            # Another record with a rare value would have obliged the group, so this value is a new one.
            width = duties.slot[j + 1] - duties.slot[j]
            if _distinct(group.counts, duties.first[j], duties.first[j] + width) + 1 < duties.p[j]:
                return False
    return True


@bare
def _allow_closer(free: Free, duties: Obligations, group: Group, close: FlatRules) -> bool:
    """Allow the labels that bring an obliged group closer to the table, if any can those that keep its variance."""
    free.tree.sizes[2] += free.live.size * group.counts.size
    now = _too_far(duties, group, close)
    if now <= 0:
        return False
    keeping = False
    for label in range(free.live.size):
        free.verdict[label] = 0
        if free.live[label] == 0:
            continue
        for view in range(free.cell.shape[1]):
            if free.cell[label, view] >= 0:
                group.counts[free.cell[label, view]] += 1
        closer = _too_far(duties, group, close) < now - TOLERANCE
        for view in range(free.cell.shape[1]):
            if free.cell[label, view] >= 0:
                group.counts[free.cell[label, view]] -= 1
        if closer:
            free.verdict[label] = 2 if _keeps(free, duties, group, label) else 1
            keeping |= free.verdict[label] == 2
    for label in range(free.live.size):
        free.allowed[label] = free.verdict[label] == 2 or (free.verdict[label] == 1 and not keeping)
    return True


@bare
def _too_far(duties: Obligations, group: Group, close: FlatRules) -> float:
    """How far the distance of an obliged attribute exceeds its limit."""
    worst = 0.0
    for j in range(close.kind.size):
        if group.obliged[j]:
            ints = close.ints[close.int_start[j] : close.int_start[j + 1]]
            floats = close.floats[close.float_start[j] : close.float_start[j + 1]]
            own = group.counts[duties.first[j] : duties.first[j] + duties.slot[j + 1] - duties.slot[j]]
            worst = max(worst, distance_deficit(ints, floats, own))
    return worst


@bare
def _rare_left(free: Free, duties: Obligations) -> int:
    left = 0
    for label in range(free.live.size):
        if duties.has_rare[label]:
            left += free.live[label]
    return left


@inner
def _tail(free: Free, duties: Obligations, k: int, tail: int) -> bool:
    """Whether the rare records that are left cannot make a group: by themselves (Y), or with all free records (X)."""
    if tail == TAIL_X and live_count(free.tree) < k:
        return True
    for j in range(duties.p.size):
        counts = np.zeros(duties.slot[j + 1] - duties.slot[j], dtype=np.int64)
        obliged = False
        for label in range(free.live.size):
            slot = _slot(free, duties, j, label)
            if slot >= 0 and free.live[label] > 0:
                obliged |= duties.rare[slot]
                if tail == TAIL_X or duties.has_rare[label]:
                    counts[slot - duties.slot[j]] += free.live[label]
        if not obliged:
            continue
        if np.count_nonzero(counts) < duties.p[j]:
            return True
        if tail == TAIL_Y and duties.reference[j] > 0:
            share = _variance_of(duties, j, counts) / duties.reference[j]
            if duties.r[j] - share > TOLERANCE:
                return True
    return False


@inner
def _variance_of(duties: Obligations, j: int, counts: Longs) -> float:
    known, total, squares = 0, 0.0, 0.0
    held = np.zeros(duties.weight.size, dtype=np.int64)
    for code in range(counts.size):
        slot = duties.slot[j] + code
        known += counts[code]
        total += counts[code] * duties.value[slot]
        for i in range(duties.chain_start[slot], duties.chain_start[slot + 1]):
            held[duties.chain[i]] += counts[code]
    if duties.top[j] < 0:
        for code in range(counts.size):
            squares += counts[code] * (duties.value[duties.slot[j] + code] - total / max(known, 1)) ** 2
    else:
        for i in range(held.size):
            squares += duties.weight[i] * held[i] * held[i]
    return _variance(duties.top[j], squares, known)


@bare
def _take_all_rare(free: Free, seeds: Seeds, duties: Obligations, group: Group, members: Ints, size: int) -> int:
    for label in range(free.live.size):
        while duties.has_rare[label] and free.live[label] > 0:
            record = np.int64(free.listed[free.start[label]])
            size = _take(free, seeds, duties, group, record, members, size)
    return size


@bare
def _give_back(free: Free, duties: Obligations, members: Ints, size: int) -> int:
    """Only the rare records stay. The others are free again; no search of this table meets them any more."""
    kept = 0
    for i in range(size):
        if duties.has_rare[free.label[members[i]]]:
            members[kept] = members[i]
            kept += 1
    return kept
