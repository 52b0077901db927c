"""Records that come and go in classes: joining the best class, leaving one, and the split of a class of 2k.

The members of a class are a linked list through its records. Whatever changes a class also brings its state, its losses
and its place in the index (`kernels/class_index.py`) up to date. What has left its class since a step began is kept in a log,
so that the step can be told, or undone, without looking at the whole table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.class_index import (
    HEAD,
    LEAF,
    NEVER,
    NOBODY,
    NODES,
    SIZE,
    Groups,
    Index,
    appraise,
    best_class,
    build,
    enter,
    leave,
    pull_up,
    widen_up,
)
from shoal.kernels.heap import Heap, sort_by
from shoal.kernels.jit import bare, entry, inner, loop
from shoal.kernels.rules import class_ok
from shoal.kernels.space import SET, TICKS, FlatSpace, begin, join, joined_loss, loss, range_loss
from shoal.policy import FlatRules

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Columns of `Records.link`, one row a record.
CLASS, NEXT, PREVIOUS, WAS = range(4)
# In column WAS: the record has not left its class since the step began.
STAYED = -2
# Columns of a survey, one row an attribute: the smallest code, how many records have it, the first of them, and the code
# after it; the same from above.
LOW, LOWS, LOW_AT, SECOND_LOW, HIGH, HIGHS, HIGH_AT, SECOND_HIGH = range(8)
NODES_A_CLASS = 24


class Records(NamedTuple):
    """The codes of all records; `link` has the class of each (NOBODY: in none) and its neighbours in that class.

    `log` are the records that have left a class since the step began, `logged` how many; their first class is in `link`.
    """

    codes: NDArray[np.int32]
    link: NDArray[np.int32]
    log: NDArray[np.int32]
    logged: Ints


class Tests(NamedTuple):
    """A policy beyond k: its rules, the codes they count, one line a record, and where each column of them begins."""

    rules: FlatRules
    seen: NDArray[np.int32]
    offset: Ints


def make_records(codes: NDArray[np.int32], classes: NDArray[Any]) -> Records:
    """Records with their classes, not yet in lists."""
    link = np.full((len(codes), 4), NOBODY, dtype=np.int32)
    link[:, CLASS], link[:, WAS] = classes, STAYED
    return Records(codes, link, np.empty(len(codes), dtype=np.int32), np.zeros(1, dtype=np.int64))


def make_groups(flat: FlatSpace, classes: int) -> Groups:
    """Room for so many classes, all empty."""
    return Groups(
        state=np.zeros((classes, int(flat.slot[-1])), dtype=np.int64),
        loss=np.zeros((classes, len(flat.kind) + 1)),
        info=np.full((classes, 3), (0, NOBODY, NOBODY), dtype=np.int64),
    )


@loop
def settle(flat: FlatSpace, index: Index, groups: Groups, records: Records, classes: int) -> None:
    """Lists, states, losses and the index of so many classes, from the classes of the records."""
    thread(records, groups)
    filled = 0
    order = np.empty(classes, dtype=np.int64)
    for c in range(classes):
        if groups.info[c, SIZE] > 0:
            tighten(flat, groups, records, c)
            order[filled] = c
            filled += 1
    build(flat, index, groups, order[:filled])


@bare
def thread(records: Records, groups: Groups) -> None:
    """Sizes and lists of members from the classes of the records; the newest record comes first."""
    for c in range(len(groups.info)):
        groups.info[c, SIZE], groups.info[c, HEAD] = 0, NOBODY
    for row in range(len(records.link)):
        if records.link[row, CLASS] != NOBODY:
            hook(records, groups, row, records.link[row, CLASS])


@bare
def hook(records: Records, groups: Groups, row: int, c: int) -> None:
    """Put a record at the head of a class's list."""
    head = groups.info[c, HEAD]
    records.link[row, CLASS], records.link[row, NEXT], records.link[row, PREVIOUS] = c, head, NOBODY
    if head != NOBODY:
        records.link[head, PREVIOUS] = row
    groups.info[c, HEAD] = row
    groups.info[c, SIZE] += 1


@bare
def unhook(records: Records, groups: Groups, row: int) -> None:
    """Take a record out of its class's list."""
    c, after, before, was = records.link[row]
    if was == STAYED:
        records.link[row, WAS] = c
        records.log[records.logged[0]] = row
        records.logged[0] += 1
    if before != NOBODY:
        records.link[before, NEXT] = after
    else:
        groups.info[c, HEAD] = after
    if after != NOBODY:
        records.link[after, PREVIOUS] = before
    records.link[row, CLASS] = NOBODY
    groups.info[c, SIZE] -= 1


@loop
def members_of(records: Records, groups: Groups, c: int) -> Ints:
    """The records of a class, ascending."""
    rows, keys = np.empty(groups.info[c, SIZE], dtype=np.int64), np.zeros(groups.info[c, SIZE])
    row = groups.info[c, HEAD]
    for i in range(len(rows)):
        rows[i] = row
        row = records.link[row, NEXT]
    sort_by(keys, rows)
    return rows


@loop
def members_of_all(records: Records, groups: Groups, classes: Ints) -> Ints:
    """The records of several classes, class by class."""
    total = 0
    for c in classes:
        total += groups.info[c, SIZE]
    rows, at = np.empty(total, dtype=np.int64), 0
    for c in classes:
        for row in members_of(records, groups, c):
            rows[at] = row
            at += 1
    return rows


@entry
def attach(flat: FlatSpace, index: Index, groups: Groups, records: Records, row: int, c: int) -> None:
    """A record joins a class that is in the index."""
    hook(records, groups, row, c)
    join(flat, groups.state[c], records.codes[row])
    appraise(flat, groups, c)
    widen_up(flat, index, groups, c)


@bare
def tighten(flat: FlatSpace, groups: Groups, records: Records, c: int) -> None:
    """The state of a class from its records."""
    row = groups.info[c, HEAD]
    begin(flat, groups.state[c], records.codes[row])
    row = records.link[row, NEXT]
    while row != NOBODY:
        join(flat, groups.state[c], records.codes[row])
        row = records.link[row, NEXT]
    appraise(flat, groups, c)


@loop
def detach(flat: FlatSpace, index: Index, groups: Groups, records: Records, rows: Ints) -> None:
    """Records leave their classes; a class without records leaves the index."""
    touched, keys = np.empty(len(rows), dtype=np.int64), np.zeros(len(rows))
    for i in range(len(rows)):
        touched[i] = records.link[rows[i], CLASS]
        unhook(records, groups, rows[i])
    sort_by(keys, touched)
    for i in range(len(touched)):
        c = touched[i]
        if i > 0 and c == touched[i - 1]:
            continue
        if groups.info[c, SIZE] == 0:
            leave(flat, index, groups, c)
        else:
            tighten(flat, groups, records, c)
            pull_up(flat, index, groups, groups.info[c, LEAF])


@entry
def found(flat: FlatSpace, index: Index, groups: Groups, records: Records, rows: Ints, c: int, leaf: int) -> None:
    """An unused class is made of records that are in none, in the neighbourhood of a leaf."""
    groups.info[c, SIZE], groups.info[c, HEAD] = 0, NOBODY
    for row in rows:
        hook(records, groups, row, c)
    tighten(flat, groups, records, c)
    enter(flat, index, groups, c, leaf)


@loop
def disband(flat: FlatSpace, index: Index, groups: Groups, records: Records, c: int) -> Ints:
    """A class leaves the index and lets its records go; they are returned, ascending."""
    rows = members_of(records, groups, c)
    leave(flat, index, groups, c)
    for row in rows:
        unhook(records, groups, row)
    return rows


@loop
def place_all(
    flat: FlatSpace, index: Index, groups: Groups, records: Records, heap: Heap,
    rows: Ints, start: int, used: Ints, k: int, tests: Tests | None,
) -> tuple[int, int]:  # fmt: skip
    """Records from `start` on join their best class one after the other; classes of 2k are split.

    With tests, only if both parts pass, and only at the sizes where that is tried. Stops after a record whose class should
    have been split and was not, for want of room or of good parts, and says where it stopped and which class that is;
    also before a record that finds no class at all.
    """
    state = np.empty(flat.slot[-1], dtype=np.int64)
    for i in range(start, len(rows)):
        begin(flat, state, records.codes[rows[i]])
        c = best_class(flat, index, groups, heap, state, 1)
        if c == NOBODY:
            return i, NOBODY
        attach(flat, index, groups, records, rows[i], c)
        size = groups.info[c, SIZE]
        if tests is None:
            if size >= 2 * k:
                if not has_room(index, groups, used, size // k):
                    return i + 1, c
                split_class(flat, index, groups, records, used, c, k)
        elif split_is_due(size, k):
            # Larger classes are split again and again, which is left to the caller.
            if size > 2 * k or not has_room(index, groups, used, 1):
                return i + 1, c
            members = members_of(records, groups, c)
            half = choose_half(flat, records.codes, members, k)
            if not (passes(tests, members, half) and passes(tests, members, ~half)):
                return i + 1, c
            split_off(flat, index, groups, records, used, c, members[half])
    return len(rows), NOBODY


@entry
def split_is_due(size: int, k: int) -> bool:
    """Whether a class of so many records is to be split, or tried again: at 2, 3 and their doubles times k."""
    parts = size // k
    while parts > 3 and parts % 2 == 0:
        parts //= 2
    return size % k == 0 and (parts == 2 or parts == 3)


@inner
def passes(tests: Tests, rows: Ints, chosen: NDArray[np.bool_]) -> bool:
    """Whether the chosen ones of some records are a class that satisfies the rules."""
    counts, size = np.zeros(tests.offset[-1], dtype=np.int32), 0
    for i in range(len(rows)):
        if chosen[i]:
            size += 1
            for view in range(len(tests.offset) - 1):
                code = tests.seen[rows[i], view]
                if code >= 0:
                    counts[tests.offset[view] + code] += 1
    return class_ok(tests.rules, size, counts)


@bare
def has_room(index: Index, groups: Groups, used: Ints, classes: int) -> bool:
    """Whether so many more classes certainly fit."""
    return used[0] + classes <= len(groups.info) and index.top[NODES] + classes * NODES_A_CLASS <= len(index.info)


@loop
def split_class(flat: FlatSpace, index: Index, groups: Groups, records: Records, used: Ints, c: int, k: int) -> None:
    """Cut k records after k off a class until fewer than 2k are left (docs/algorithms.md#i3m)."""
    rows = members_of(records, groups, c)
    alike = groups.loss[c, len(flat.kind)] == 0.0
    while len(rows) >= 2 * k:
        if alike:
            # No record costs anything anywhere, and ties go to the first records.
            chosen, rows = rows[:k], rows[k:]
        else:
            moved = choose_half(flat, records.codes, rows, k)
            chosen, rest, at = np.empty(k, dtype=np.int64), np.empty(len(rows) - k, dtype=np.int64), 0
            for i in range(len(rows)):
                if moved[i]:
                    chosen[at] = rows[i]
                    at += 1
                else:
                    rest[i - at] = rows[i]
            rows = rest
        split_off(flat, index, groups, records, used, c, chosen)


@bare
def split_off(flat: FlatSpace, index: Index, groups: Groups, records: Records, used: Ints, c: int, rows: Ints) -> None:
    """Some records of a class become a new one beside it."""
    for row in rows:
        unhook(records, groups, row)
    found(flat, index, groups, records, rows, used[0], groups.info[c, LEAF])
    used[0] += 1
    tighten(flat, groups, records, c)
    pull_up(flat, index, groups, groups.info[c, LEAF])


@loop
def choose_half(flat: FlatSpace, codes: NDArray[np.int32], rows: Ints, k: int) -> NDArray[np.bool_]:
    """Which k of the records (ascending) Split2kCluster moves to the new class (Truta & Campan 2007, Figure 1)."""
    moved = np.zeros(len(rows), dtype=np.bool_)
    choose_more(flat, codes, rows, moved, np.zeros(flat.slot[-1], dtype=np.int64), k, k * len(rows))
    return moved


@loop
def choose_more(
    flat: FlatSpace,
    codes: NDArray[np.int32],
    rows: Ints,
    moved: NDArray[np.bool_],
    state: Ints,
    more: int,
    steps: int,
) -> int:
    """Move so many more records, or as many as there are steps for, to the class with this state; how many are still to move.

    A step prices one record.
    """
    costs, taken = np.empty(len(rows)), np.count_nonzero(moved)
    while more > 0 and steps > 0:
        price_moves(flat, codes, rows, moved, taken, state, costs)
        move(flat, codes, rows, moved, taken, state, int(np.argmin(costs)))
        taken, more, steps = taken + 1, more - 1, steps - len(rows)
    return more


@loop
def price_moves(
    flat: FlatSpace,
    codes: NDArray[np.int32],
    rows: Ints,
    moved: NDArray[np.bool_],
    taken: int,
    state: Ints,
    costs: Floats,
) -> None:
    """Ticks of IL(rest without r) + IL(new with r) for every record r of the rest; infinite for those that have moved.

    `state` is that of the `taken` records in the new class. Most records lie inside the ends of every attribute, so that
    the rest would lose as much without them; the few others are marked and looked at closely.
    """
    d = len(flat.kind)
    survey, counts = np.empty((d, 8), dtype=np.int64), np.empty(len(flat.set_loss), dtype=np.int64)
    extreme = np.zeros(len(rows), dtype=np.bool_)
    take_stock(flat, codes, rows, moved, survey, counts, extreme)
    whole, left = 0.0, len(rows) - np.count_nonzero(moved)
    for a in range(d):
        whole += rest_loss(flat, survey, counts, a, -1)
    for i in range(len(rows)):
        costs[i] = np.inf
        if moved[i]:
            continue
        rest, new = whole, 0.0
        # Nobody is left without the last record, and nobody loses anything.
        if extreme[i] and left > 1:
            rest = 0.0
            for a in range(d):
                rest += rest_loss(flat, survey, counts, a, codes[rows[i], a])
        if taken > 0:
            new = joined_loss(flat, state, codes[rows[i]])
        costs[i] = np.rint(((left - 1) * rest + (taken + 1) * new) * TICKS)


@bare
def move(
    flat: FlatSpace,
    codes: NDArray[np.int32],
    rows: Ints,
    moved: NDArray[np.bool_],
    taken: int,
    state: Ints,
    chosen: int,
) -> None:
    """One record of the rest joins the new class."""
    moved[chosen] = True
    if taken == 0:
        begin(flat, state, codes[rows[chosen]])
    else:
        join(flat, state, codes[rows[chosen]])


@loop
def price_loans(flat: FlatSpace, codes: NDArray[np.int32], rows: Ints, state: Ints, size: int, costs: Floats) -> None:
    """Ticks that the total loss rises by when one of these records, which are a class, moves to another of this state."""
    nobody = np.zeros(len(rows), dtype=np.bool_)
    price_moves(flat, codes, rows, nobody, size, state, costs)
    whole = state.copy()
    begin(flat, whole, codes[rows[0]])
    for row in rows:
        join(flat, whole, codes[row])
    paid = np.rint((len(rows) * loss(flat, whole) + size * loss(flat, state)) * TICKS)
    for i in range(len(rows)):
        costs[i] -= paid


@bare
def take_stock(
    flat: FlatSpace, codes: NDArray[np.int32], rows: Ints, moved: NDArray[np.bool_],
    survey: Ints, counts: Ints, extreme: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Survey the records that have not moved: ends of ranges, members of sets, and who alone holds one of them."""
    for i in range(len(counts)):
        counts[i] = 0
    for i in range(len(rows)):
        extreme[i] = False
    for a in range(len(flat.kind)):
        own = survey[a]
        own[LOW], own[SECOND_LOW], own[HIGH], own[SECOND_HIGH] = NEVER, NEVER, -1, -1
        own[LOWS], own[HIGHS], own[LOW_AT], own[HIGH_AT] = 0, 0, 0, 0
        for i in range(len(rows)):
            if moved[i]:
                continue
            code = np.int64(codes[rows[i], a])
            if flat.kind[a] == SET:
                # LOWS is the number of different members.
                own[LOWS] += counts[flat.start[a] + code] == 0
                counts[flat.start[a] + code] += 1
                continue
            if code < own[LOW]:
                own[LOW], own[LOWS], own[LOW_AT], own[SECOND_LOW] = code, 1, i, own[LOW]
            elif code == own[LOW]:
                own[LOWS] += 1
            elif code < own[SECOND_LOW]:
                own[SECOND_LOW] = code
            if code > own[HIGH]:
                own[HIGH], own[HIGHS], own[HIGH_AT], own[SECOND_HIGH] = code, 1, i, own[HIGH]
            elif code == own[HIGH]:
                own[HIGHS] += 1
            elif code > own[SECOND_HIGH]:
                own[SECOND_HIGH] = code
        if flat.kind[a] != SET:
            extreme[own[LOW_AT]] |= own[LOWS] == 1
            extreme[own[HIGH_AT]] |= own[HIGHS] == 1
        else:
            for i in range(len(rows)):
                extreme[i] |= not moved[i] and counts[flat.start[a] + codes[rows[i], a]] == 1


@bare
def rest_loss(flat: FlatSpace, survey: Ints, counts: Ints, a: int, code: int) -> float:
    """Loss of an attribute of the surveyed records when one with this code has gone; with code -1, of all of them."""
    own = survey[a]
    if flat.kind[a] == SET:
        alone = code >= 0 and counts[flat.start[a] + code] == 1
        return flat.set_loss[flat.start[a] + own[LOWS] - alone]
    lo = own[SECOND_LOW] if code == own[LOW] and own[LOWS] == 1 else own[LOW]
    hi = own[SECOND_HIGH] if code == own[HIGH] and own[HIGHS] == 1 else own[HIGH]
    return range_loss(flat, a, lo, hi)
