"""SpatialDistance in compiled loops (docs/algorithms.md#spatial_distance).

A reference (the open class) has a mean per number and a set of values per category. Distances of categories come from
contingency tables of the pool (the records not yet grouped and the open class). The pool does not change while
a class grows, so tables are made anew only when the class gained a value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import bare, entry, inner
from shoal.kernels.rules import class_deficit
from shoal.kernels.space import TICKS
from shoal.policy import FlatRules

# The tables of all categories take about so many steps a record and attribute.
TABLES = 4


class Records(NamedTuple):
    """Codes and numbers of all records; column a is a number where `is_number`, else a category of `size` codes."""

    codes: NDArray[np.int32]
    numbers: NDArray[np.float64]
    known: NDArray[np.bool_]
    is_number: NDArray[np.bool_]
    size: NDArray[np.int64]
    start: NDArray[np.int64]


class Reference(NamedTuple):
    """What a class looks like from outside: sums of its numbers, and the values it holds."""

    total: NDArray[np.float64]
    count: NDArray[np.int64]
    holds: NDArray[np.bool_]


class Scratch(NamedTuple):
    """Reusable arrays."""

    distance: NDArray[np.float64]
    shares: NDArray[np.int64]
    depth: NDArray[np.int64]
    order: NDArray[np.int64]
    others: NDArray[np.int64]
    keys: NDArray[np.int64]


def scratch_for(records: Records) -> Scratch:
    """Arrays large enough for any pool of these records."""
    cells = int(records.start[-1])
    widest = int(records.size.max()) if len(records.size) else 1
    d = len(records.size)
    return Scratch(
        distance=np.zeros(cells),
        shares=np.zeros(cells, dtype=np.int64),
        depth=np.zeros(len(records.codes), dtype=np.int64),
        order=np.zeros(d, dtype=np.int64),
        others=np.zeros(widest, dtype=np.int64),
        keys=np.zeros(widest, dtype=np.int64),
    )


@entry
def add(records: Records, reference: Reference, r: int) -> bool:
    """Let a record into the class; whether the class gained a value of some category."""
    gained = False
    for a in range(len(records.size)):
        if records.is_number[a]:
            if records.known[r, a]:
                reference.total[a] += records.numbers[r, a]
                reference.count[a] += 1
        else:
            cell = records.start[a] + records.codes[r, a]
            if not reference.holds[cell]:
                reference.holds[cell] = True
                gained = True
    return gained


@bare
def cardinalities(
    records: Records, pool: NDArray[np.int64], size: int, present: NDArray[np.bool_], scratch: Scratch
) -> int:
    """Mark the pool's values and order its categories by how many they have; returns how many categories there are."""
    present[:] = False
    count = 0
    for a in range(len(records.size)):
        if not records.is_number[a]:
            for i in range(size):
                present[records.start[a] + records.codes[pool[i], a]] = True
            scratch.order[count] = a
            count += 1
    for i in range(1, count):
        a = scratch.order[i]
        j = i - 1
        while j >= 0 and _distinct(records, present, scratch.order[j]) > _distinct(records, present, a):
            scratch.order[j + 1] = scratch.order[j]
            j -= 1
        scratch.order[j + 1] = a
    return count


@inner
def _distinct(records: Records, present: NDArray[np.bool_], a: int) -> int:
    return int(np.count_nonzero(present[records.start[a] : records.start[a + 1]]))


@inner
def tabulate(
    records: Records,
    reference: Reference,
    pool: NDArray[np.int64],
    size: int,
    present: NDArray[np.bool_],
    categories: int,
    k: int,
    sequential: bool,
    scratch: Scratch,
) -> None:
    """The distance of every category value from the reference (docs/algorithms.md#spatial_distance), into `scratch.distance`."""
    matching = np.zeros(categories + 1, dtype=np.int64)
    for i in range(size):
        r = pool[i]
        depth = 0
        while depth < categories:
            a = scratch.order[depth]
            if not reference.holds[records.start[a] + records.codes[r, a]]:
                break
            depth += 1
        scratch.depth[i] = depth
        for level in range(depth + 1):
            matching[level] += 1
    least = 1.0
    for position in range(categories):
        a = scratch.order[position]
        begin, end = records.start[a], records.start[a + 1]
        scratch.distance[begin:end] = 0.0
        values = _distinct(records, present, a)
        if values == 2:
            for cell in range(begin, end):
                if present[cell] and not reference.holds[cell]:
                    scratch.distance[cell] = 1.0
            least = 1.0
        elif values > 2:
            # Fewer than k matching records say little: forget the most recently visited attribute first.
            context = position
            while context > 0 and matching[context] < k:
                context -= 1
            least = _by_similarity(records, reference, pool, size, present, a, context, least, sequential, scratch)


@bare
def _by_similarity(
    records: Records,
    reference: Reference,
    pool: NDArray[np.int64],
    size: int,
    present: NDArray[np.bool_],
    a: int,
    context: int,
    least: float,
    sequential: bool,
    scratch: Scratch,
) -> float:
    begin, end = records.start[a], records.start[a + 1]
    scratch.shares[begin:end] = 0
    rows = 0
    for i in range(size):
        if scratch.depth[i] >= context:
            scratch.shares[begin + records.codes[pool[i], a]] += 1
            rows += 1
    own, held, count = 0.0, 0, 0
    for cell in range(begin, end):
        if present[cell] and reference.holds[cell]:
            own += scratch.shares[cell] / rows
            held += 1
        elif present[cell]:
            scratch.others[count] = cell
            count += 1
    if count == 0:
        return least
    own /= max(1, held)
    for i in range(count):
        scratch.keys[i] = np.int64(np.rint(abs(scratch.shares[scratch.others[i]] / rows - own) * TICKS))
    # Least similar first, then the rarer value, then the smaller code.
    for i in range(1, count):
        cell, key = scratch.others[i], scratch.keys[i]
        j = i - 1
        while j >= 0 and (
            scratch.keys[j] < key
            or (scratch.keys[j] == key and scratch.shares[scratch.others[j]] > scratch.shares[cell])
        ):
            scratch.others[j + 1], scratch.keys[j + 1] = scratch.others[j], scratch.keys[j]
            j -= 1
        scratch.others[j + 1], scratch.keys[j + 1] = cell, key
    distance = least / count
    for i in range(count):
        if i > 0 and (sequential or scratch.keys[i] != scratch.keys[i - 1]):
            distance /= count
        scratch.distance[scratch.others[i]] = distance
    return distance


@bare
def distance_to(records: Records, reference: Reference, scratch: Scratch, r: int) -> float:
    """Distance from the reference to a record; a missing number is at distance 1 from any known one."""
    total = 0.0
    for a in range(len(records.size)):
        if not records.is_number[a]:
            total += scratch.distance[records.start[a] + records.codes[r, a]]
        elif records.known[r, a] and reference.count[a] > 0:
            total += abs(reference.total[a] / reference.count[a] - records.numbers[r, a])
        elif records.known[r, a] or reference.count[a] > 0:
            total += 1.0
    return total


@bare
def clear(reference: Reference) -> None:
    """An empty class."""
    reference.total[:] = 0.0
    reference.count[:] = 0
    reference.holds[:] = False


GROWN, CHOSEN, CATEGORIES, TABLED = range(4)
"""Where `next_class` is: members so far, the one to join next, how many categories there are, whether they are tabulated."""


@entry
def next_class(
    records: Records,
    pool: NDArray[np.int64],
    size: int,
    k: int,
    sequential: bool,
    by_seed: bool,
    rules: FlatRules,
    views: NDArray[np.int32],
    offsets: NDArray[np.int64],
    counts: NDArray[np.int32],
    members: NDArray[np.int64],
    taken: NDArray[np.bool_],
    reference: Reference,
    scratch: Scratch,
    present: NDArray[np.bool_],
    at: NDArray[np.int64],
    steps: int,
) -> bool:
    """Grow one class from the pool's first record: to k by distance, then on while that lowers the deficit.

    Marks the members as `taken` (positions in the pool); the class may still fail. False after about so many steps, to go
    on later; `at` holds what GROWN … TABLED name, and is all zero before a class begins.
    """
    if at[GROWN] == 0:
        clear(reference)
        counts[:] = 0
        at[CATEGORIES] = cardinalities(records, pool, size, present, scratch)
    while steps > 0:
        r = pool[at[CHOSEN]]
        taken[at[CHOSEN]] = True
        members[at[GROWN]] = r
        at[GROWN] += 1
        grown = at[GROWN]
        gained = add_numbers(records, reference, r) if by_seed and grown > 1 else add(records, reference, r)
        _count(views, offsets, counts, r, 1)
        deficit = class_deficit(rules, grown, counts)
        if grown == size or (grown >= k and deficit <= 0):
            return True
        steps -= size * len(records.size) + (size * counts.size if grown >= k else 0)
        if gained or at[TABLED] == 0:
            tabulate(records, reference, pool, size, present, at[CATEGORIES], k, sequential, scratch)
            steps -= TABLES * size * len(records.size)
            at[TABLED] = 1
        chosen = -1
        best_deficit, best = np.inf, np.int64(0)
        for i in range(size):
            if taken[i]:
                continue
            after = 0.0
            if grown >= k:
                _count(views, offsets, counts, pool[i], 1)
                after = class_deficit(rules, grown + 1, counts)
                _count(views, offsets, counts, pool[i], -1)
                if after >= deficit or after > best_deficit:
                    continue
            ticks = np.int64(np.rint(distance_to(records, reference, scratch, pool[i]) * TICKS))
            if chosen < 0 or after < best_deficit or ticks < best:
                chosen, best_deficit, best = i, after, ticks
        if chosen < 0:
            return True
        at[CHOSEN] = chosen
    return False


@bare
def add_numbers(records: Records, reference: Reference, r: int) -> bool:
    """Let a record move the means only: the categories stay those of the first record (`centre="seed"`)."""
    for a in range(len(records.size)):
        if records.is_number[a] and records.known[r, a]:
            reference.total[a] += records.numbers[r, a]
            reference.count[a] += 1
    return False


@bare
def _count(
    views: NDArray[np.int32], offsets: NDArray[np.int64], counts: NDArray[np.int32], r: int, change: int
) -> None:
    for v in range(views.shape[1]):
        if views[r, v] >= 0:
            counts[offsets[v] + views[r, v]] += change


ASKED, NEAREST, DISTANCE, MEASURED = range(4)
"""Where `nearest_class` is: classes asked, the nearest so far (-1: none), its distance, how many categories there are."""


@entry
def nearest_class(
    records: Records,
    everyone: NDArray[np.int64],
    totals: NDArray[np.float64],
    known: NDArray[np.int64],
    holds: NDArray[np.bool_],
    classes: int,
    r: int,
    k: int,
    sequential: bool,
    allowed: NDArray[np.bool_],
    scratch: Scratch,
    present: NDArray[np.bool_],
    at: NDArray[np.int64],
    steps: int,
) -> bool:
    """The allowed class whose centre is nearest to a left-over record, tables from the whole table.

    `at` holds what ASKED … MEASURED name: 0, -1, 0, 0 to begin with. False after about so many steps, to go on later.
    """
    if at[ASKED] == 0:
        at[MEASURED] = cardinalities(records, everyone, len(everyone), present, scratch)
    while at[ASKED] < classes and steps > 0:
        c = at[ASKED]
        at[ASKED] += 1
        if not allowed[c]:
            continue
        steps -= TABLES * len(everyone) * len(records.size)
        reference = Reference(totals[c], known[c], holds[c])
        tabulate(records, reference, everyone, len(everyone), present, at[MEASURED], k, sequential, scratch)
        ticks = np.int64(np.rint(distance_to(records, reference, scratch, r) * TICKS))
        if at[NEAREST] < 0 or ticks < at[DISTANCE]:
            at[NEAREST], at[DISTANCE] = c, ticks
    return at[ASKED] == classes
