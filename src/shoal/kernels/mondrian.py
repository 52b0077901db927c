"""Mondrian (LeFevre, DeWitt, Ramakrishnan 2006) on compact columns: which cut a part gets, and the recursion.

`MEDIANS` cuts the attribute with the largest extent, or the next one that allows it. `LOSS_OF_MEDIANS` and
`LOSS_OF_ALL` take the cut that saves most, loss(P) − Σ |P_i|/|P| · loss(P_i), over the median cuts or over every cut: along a
taxonomy, between two codes, one value or node against the rest. Equal savings: larger extent, then earlier
column, then in that order, nodes from the root down, smaller codes first.

`prices` is None for `MEDIANS` and `rules` is None when only the size counts: what is not needed is not compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.kernels.jit import entry, loop
from shoal.kernels.mondrian_loss import Candidates, save
from shoal.kernels.mondrian_parts import (
    APART,
    EXTENT,
    HIERARCHY,
    HIGH,
    ITSELF,
    KIND,
    LOW,
    NAME,
    SIDE,
    UNKNOWN,
    Cuts,
    Floats,
    Ints,
    Table,
    Work,
    count_children,
    make_cut,
    mark_halves,
    measure_part,
    median_cut,
    new_work,
    weight_of,
)
from shoal.kernels.rules import class_ok
from shoal.policy import FlatRules

MEDIANS, LOSS_OF_MEDIANS, LOSS_OF_ALL = 0, 1, 2
# Histograms of a cut's children are counted in pieces of about this many cells.
CELLS = 4_000_000
NONE = np.int64(-1)


class Todo(NamedTuple):
    """Parts that are still to be cut, the last one first. `at`: how many they are, the cut of the last tried last (-1: none)."""

    parts: Ints
    at: Ints


LEFT, TRIED = 0, 1


def todo_of(begin: int, end: int) -> Todo:
    """One part, and room for all parts that can come of it."""
    parts = np.empty((end - begin, 2), dtype=np.int64)
    parts[0] = begin, end
    return Todo(parts, np.array([1, -1], dtype=np.int64))


@loop
def cut(
    table: Table,
    cuts: Cuts,
    prices: Floats | None,
    rules: FlatRules | None,
    split: int,
    todo: Todo,
    once: bool,
    steps: int,
) -> Ints:
    """Cut the parts and their parts until nothing can be cut; `begins` marks where each class starts.

    With `once`, make the best allowed cut only: where the children begin and end, or the part's own ends when there is none.
    One function for both on purpose: a second one around this would have it all compiled again. Returns after about so many
    steps when something is still to do; the cuts of a part are weighed anew then, so large parts are given more steps.
    """
    work = new_work(cuts)
    bounds = todo.parts[0]
    while todo.at[LEFT] > 0 and steps > 0:
        begin, end = todo.parts[todo.at[LEFT] - 1, 0], todo.parts[todo.at[LEFT] - 1, 1]
        bounds = np.empty(2, np.int64)
        bounds[0], bounds[1] = begin, end
        if weight_of(table, begin, end) >= 2 * cuts.k:
            measure_part(table.columns, cuts, work, begin, end)
            tried = candidates(table, cuts, prices, work, split, begin, end)
            chosen = next_best(tried.key, todo.at[TRIED])
            while chosen >= 0:
                a, first, last = tried.attribute[chosen], tried.first[chosen], tried.last[chosen]
                children, ties = np.int64(2), end - begin
                if first < 0:
                    children, last, ties = median_cut(table, cuts, work, a, begin, end)
                    first = min(last, 0)
                if rules is not None and children > 0:
                    children *= satisfy(table, cuts, rules, a, children, first, last, ties, begin, end)
                if children > 0:
                    bounds = make_cut(table, a, children, first, last, ties, begin, end)
                    break
                steps -= end - begin + cuts.view_start[-1]
                todo.at[TRIED] = chosen
                if steps <= 0:
                    return bounds
                chosen = next_best(tried.key, chosen)
        steps -= (end - begin) * len(cuts.attribute)
        todo.at[LEFT] -= 1
        todo.at[TRIED] = -1
        if once:
            break
        if len(bounds) == 2:
            table.begins[begin] = 1
            continue
        for child in range(len(bounds) - 1):
            todo.parts[todo.at[LEFT], 0], todo.parts[todo.at[LEFT], 1] = bounds[child], bounds[child + 1]
            todo.at[LEFT] += 1
    return bounds


@entry
def next_best(keys: Ints, last: int) -> int:
    """Where the largest key comes after `last`, by key and then position; 0 is no candidate, -1 no more."""
    best = -1
    for i in range(len(keys)):
        if keys[i] == 0 or (best >= 0 and keys[i] <= keys[best]):
            continue
        if last < 0 or keys[i] < keys[last] or (keys[i] == keys[last] and i > last):
            best = i
    return best


@loop
def satisfy(
    table: Table,
    cuts: Cuts,
    rules: FlatRules,
    a: int,
    children: int,
    first: int,
    last: int,
    ties: int,
    begin: int,
    end: int,
) -> bool:
    """Whether every child of a cut satisfies all rules."""
    if first >= 0:
        mark_halves(table.columns[a, begin:end], first, last, ties, table.scratch[SIDE, begin:end])
    width = cuts.view_start[-1]
    step = max(1, min(children, CELLS // max(1, width)))
    sizes = np.empty(step, np.int64)
    counts = np.empty((step, width), np.int32)
    for child in range(0, children, step):
        counted = min(step, children - child)
        count_children(table, cuts.view_start, child, counted, begin, end, sizes, counts)
        for i in range(counted):
            if not class_ok(rules, sizes[i], counts[i]):
                return False
    return True


@njit(cache=True, nogil=True, inline="always")
def candidates(
    table: Table, cuts: Cuts, prices: Floats | None, work: Work, split: int, begin: int, end: int
) -> Candidates:
    """The cuts of a part."""
    if prices is None:
        return Candidates(work.part[EXTENT], work.part[ITSELF], work.part[UNKNOWN], work.part[UNKNOWN])
    room = len(cuts.attribute)
    if split == LOSS_OF_ALL:
        for a in range(len(cuts.attribute)):
            room += 2 * min(end - begin, work.part[HIGH, a] - work.part[LOW, a] + 1)
    found = Candidates(np.zeros(room, np.int64), np.zeros(room, np.int64), np.full(room, -1), np.full(room, -1))
    filled = np.int64(0)
    # By extent, so that equal savings already come in the order that ties want.
    a = next_best(work.part[EXTENT], NONE)
    while a >= 0:
        along, apart = cuts.attribute[a, KIND] == HIERARCHY, cuts.attribute[a, APART] == 1
        for way in range(2):
            by_median = way == 0
            if along or split == LOSS_OF_MEDIANS if by_median else split == LOSS_OF_ALL and (apart or not along):
                filled = save(table, cuts, prices, work, by_median, a, begin, end, found, filled)
        a = next_best(work.part[EXTENT], a)
    return found


@entry
def number_classes(table: Table, labels: NDArray[np.int32]) -> int:
    """Label every row with the number of its class, counted along the table; the number of classes."""
    classes = 0
    for i in range(len(table.begins)):
        classes += table.begins[i]
        labels[table.cargo[NAME, i]] = classes - 1
    return classes
