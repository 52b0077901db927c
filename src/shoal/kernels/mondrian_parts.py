"""The parts of a table that Mondrian cuts: stretches of memory, measured by streaming and cut in place.

A part is contiguous in all columns, and a cut moves its rows stably to the children's stretches, so rows inside a part
stay in the table's order: what relaxed cuts break ties by. Medians come from counting below a bisected code, which
needs no tables, so a small part of a large domain costs nothing extra. Subtrees touch disjoint stretches: threads may
work on different parts of one `Table` at once.

Few arrays and plain loops on purpose: what is passed along, and what the library does in a line, is paid for when
the kernels are compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import bare, entry, inner, loop
from shoal.kernels.space import TICKS

NUMBER, CODES, SETS, HIERARCHY = 0, 1, 2, 3
# What a class publishes of an attribute.
RANGE, NODE, SET = 0, 1, 2
# Columns of Cuts.attribute; START is where its stretch of `numbers` and `rank` begins, PRICE that of its losses, APART
# whether one value or node may be cut from the rest.
KIND, STATE, SIZE, MISSING, START, PRICE, LEVELS, APART = 0, 1, 2, 3, 4, 5, 6, 7
# Rows of Table.cargo: the row's number, then its weight or the codes that rules count.
NAME, WEIGHT = 0, 1
# Rows of Table.scratch.
SIDE, SOURCE, SPARE = 0, 1, 2
# Rows of Work.part (ITSELF holds 0, 1, …, UNKNOWN only -1) and of Work.codes.
LOW, HIGH, EXTENT, ITSELF, UNKNOWN = 0, 1, 2, 3, 4
PLACE, FOUND = 0, 1

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Marks = NDArray[np.int32]
Column = NDArray[np.uint16]


class Table(NamedTuple):
    """The rows, part after part; the last column is scratch. `cargo` travels along, `begins` marks finished classes."""

    columns: Column
    cargo: NDArray[np.int32]
    scratch: NDArray[np.int32]
    begins: NDArray[np.uint8]
    weighted: bool


class Cuts(NamedTuple):
    """How each attribute is measured and cut.

    A number has its reference width and then its values in `numbers`. A taxonomy has tables of levels × leaves from the
    root down: the number of the leaf's ancestor there in `rank`, that ancestor's share of the leaves in `numbers`.
    """

    attribute: Ints
    numbers: Floats
    rank: NDArray[np.int32]
    view_start: Ints
    relaxed: bool
    k: int


class Work(NamedTuple):
    """One thread's scratch: ranges and extents of the part at hand; a table by code, zero between uses, and a list."""

    part: Ints
    codes: Ints


@loop
def new_work(cuts: Cuts) -> Work:
    """Scratch for one thread."""
    d = len(cuts.attribute)
    part = np.zeros((5, d), np.int64)
    largest = 1
    for a in range(d):
        largest = max(largest, cuts.attribute[a, SIZE])
        part[ITSELF, a], part[UNKNOWN, a] = a, -1
    return Work(part, np.zeros((2, largest), np.int64))


@entry
def measure_part(columns: Column, cuts: Cuts, work: Work, begin: int, end: int) -> None:
    """Ranges and extents of a part: ticks plus one, 0 when all codes agree."""
    for a in range(len(cuts.attribute)):
        column = columns[a, begin:end]
        low = high = column[0]
        # Written with `if`, not min and max: only so the loop becomes vector instructions.
        for code in column:
            if code < low:
                low = code
            if code > high:
                high = code
        work.part[LOW, a], work.part[HIGH, a], work.part[EXTENT, a] = low, high, 0
        if low < high:
            share = extent(column, cuts, work, a, np.int64(low), np.int64(high))
            work.part[EXTENT, a] = np.int64(np.rint(share * TICKS)) + 1


@entry
def extent(column: Column, cuts: Cuts, work: Work, a: int, low: int, high: int) -> float:
    """How much of its domain an attribute takes in a part (docs/algorithms.md#mondrian)."""
    kind, size, start = cuts.attribute[a, KIND], cuts.attribute[a, SIZE], cuts.attribute[a, START]
    if kind == NUMBER:
        if high == cuts.attribute[a, MISSING]:
            return 1.0
        return (cuts.numbers[start + 1 + high] - cuts.numbers[start + 1 + low]) / cuts.numbers[start]
    if kind == CODES:
        return (high - low) / (size - 1)
    if kind == SETS:
        distinct = find_codes(column, work.codes)
        forget(work.codes, distinct)
        return distinct / size
    return cuts.numbers[start + common_level(cuts, a, low, high) * size + low]


@bare
def find_codes(column: Column, codes: Ints) -> int:
    """List the codes that occur, unsorted, each marked by a one in its place; their number."""
    distinct = np.int64(0)
    for code in column:
        if codes[PLACE, code] == 0:
            codes[PLACE, code] = 1
            codes[FOUND, distinct] = code
            distinct += 1
    return distinct


@bare
def sort_found(codes: Ints, count: int) -> None:
    """Sort the list and write each code's position in its place."""
    gap = count // 2
    while gap > 0:
        for i in range(gap, count):
            code = codes[FOUND, i]
            j = i
            while j >= gap and codes[FOUND, j - gap] > code:
                codes[FOUND, j] = codes[FOUND, j - gap]
                j -= gap
            codes[FOUND, j] = code
        gap = 1 if gap == 2 else gap * 5 // 11
    for j in range(count):
        codes[PLACE, codes[FOUND, j]] = j


@bare
def forget(codes: Ints, count: int) -> None:
    """Make the places zero again."""
    for j in range(count):
        codes[PLACE, codes[FOUND, j]] = 0


@bare
def common_level(cuts: Cuts, a: int, low: int, high: int) -> int:
    """The depth of the lowest common ancestor of two leaves."""
    level = 0
    while level + 1 < cuts.attribute[a, LEVELS]:
        row = cuts.attribute[a, START] + (level + 1) * cuts.attribute[a, SIZE]
        if cuts.rank[row + low] != cuts.rank[row + high]:
            break
        level += 1
    return level


@entry
def median_cut(table: Table, cuts: Cuts, work: Work, a: int, begin: int, end: int) -> tuple[int, int, int]:
    """The cut at the median: number of children (0 when one is too small), last code that goes left, tie position.

    Rows from the tie position on go left only with smaller codes. A cut along a taxonomy has no code (-1): its
    children are marked.
    """
    if cuts.attribute[a, KIND] == HIERARCHY:
        return mark_branches(table, cuts, work, a, begin, end), -1, 0
    column = table.columns[a, begin:end]
    weights = table.cargo[WEIGHT, begin:end] if table.weighted else table.cargo[NAME, begin:begin]
    total = weight_of(table, begin, end)
    rank = total // 2 if cuts.relaxed else (total + 1) // 2
    low, high = work.part[LOW, a], work.part[HIGH, a]
    while low < high:
        middle = (low + high) // 2
        if weight_up_to(column, weights, middle) >= rank:
            high = middle
        else:
            low = middle + 1
    left = weight_up_to(column, weights, low)
    ties = end - begin
    if cuts.relaxed:
        while left > rank:
            ties -= 1
            if column[ties] == low:
                left -= 1
    return 2 if left >= cuts.k and total - left >= cuts.k else 0, low, ties


@entry
def weight_of(table: Table, begin: int, end: int) -> int:
    """Number of records in a stretch."""
    if not table.weighted:
        return end - begin
    total = 0
    for weight in table.cargo[WEIGHT, begin:end]:
        total += weight
    return total


@bare
def weight_up_to(column: Column, weights: NDArray[np.int32], code: int) -> int:
    """Number of records with a code ≤ `code`; without weights a row is one."""
    limit = column.dtype.type(code)
    total = 0
    if len(weights):
        for i in range(len(column)):
            if column[i] <= limit:
                total += weights[i]
    else:
        for x in column:
            if x <= limit:
                total += 1
    return total


@bare
def mark_branches(table: Table, cuts: Cuts, work: Work, a: int, begin: int, end: int) -> int:
    """Mark each row's child of the lowest common ancestor; the number of non-empty children, 0 if one is too small."""
    size = cuts.attribute[a, SIZE]
    row = cuts.attribute[a, START] + (common_level(cuts, a, work.part[LOW, a], work.part[HIGH, a]) + 1) * size
    rank = cuts.rank[row : row + size]
    column, codes = table.columns[a, begin:end], work.codes
    children = np.int64(0)
    for i in range(len(column)):
        branch = rank[column[i]]
        if codes[PLACE, branch] == 0:
            codes[FOUND, children] = branch
            children += 1
        codes[PLACE, branch] += table.cargo[WEIGHT, begin + i] if table.weighted else 1
    smallest = codes[PLACE, codes[FOUND, 0]]
    for j in range(1, children):
        smallest = min(smallest, codes[PLACE, codes[FOUND, j]])
    if smallest >= cuts.k:
        sort_found(codes, children)
        side = table.scratch[SIDE, begin:end]
        for i in range(len(column)):
            side[i] = codes[PLACE, rank[column[i]]]
    forget(codes, children)
    return children if smallest >= cuts.k else 0


@entry
def mark_halves(column: Column, first: int, last: int, ties: int, side: Marks) -> None:
    """Mark the two children of a cut that sends the codes from `first` to `last` to the left."""
    for i in range(len(column)):
        code = np.int64(column[i])
        side[i] = 0 if first <= code <= last and (i < ties or code < last) else 1


@entry
def count_children(
    table: Table, view_start: Ints, first: int, children: int, begin: int, end: int, sizes: Ints, counts: Marks
) -> None:
    """Sizes and histograms of some marked children."""
    sizes[:] = 0
    counts[:] = 0
    for i in range(begin, end):
        child = table.scratch[SIDE, i] - first
        if 0 <= child < children:
            sizes[child] += 1
            for view in range(len(view_start) - 1):
                code = table.cargo[1 + view, i]
                if code >= 0:
                    counts[child, view_start[view] + code] += 1


@loop
def make_cut(table: Table, a: int, children: int, first: int, last: int, ties: int, begin: int, end: int) -> Ints:
    """Move the rows to their children; where the children begin, and the end."""
    d = len(table.columns) - 1
    bounds = np.zeros(children + 1, np.int64)
    bounds[0], bounds[children] = begin, end
    if first < 0:
        sort_by_marks(table.scratch[SIDE, begin:end], table.scratch[SOURCE, begin:end], bounds)
        for b in range(d):
            gather(table.columns[b, begin:end], table.scratch[SOURCE, begin:end], table.columns[d, begin:end])
        for b in range(len(table.cargo)):
            gather(table.cargo[b, begin:end], table.scratch[SOURCE, begin:end], table.scratch[SPARE, begin:end])
        return bounds
    key = table.columns[a, begin:end]
    for b in range(d):
        if b != a:
            move_halves(table.columns[b, begin:end], key, first, last, ties, table.columns[d, begin:end])
    for b in range(len(table.cargo)):
        move_halves(table.cargo[b, begin:end], key, first, last, ties, table.scratch[SPARE, begin:end])
    bounds[1] = begin + move_halves(key, key, first, last, ties, table.columns[d, begin:end])
    return bounds


@bare
def move_halves(column: Column, key: Column, first: int, last: int, ties: int, spare: Column) -> int:
    """Stably move the rows that go left to the front; how many they are. `key` may be the column itself."""
    # Unsigned positions spare the test for negative ones, writing to both sides spares the branch.
    origin, codes = np.uint64(first), np.uint64(last - first + 1)
    left = right = np.uint64(0)
    for i in range(len(column)):
        if i == ties:
            codes -= np.uint64(1)
        value = column[i]
        goes_left = np.uint64(np.uint64(key[i]) - origin < codes)
        column[left] = value
        spare[right] = value
        left += goes_left
        right += np.uint64(1) - goes_left
    for i in range(right):
        column[left + i] = spare[i]
    return np.int64(left)


@inner
def sort_by_marks(side: Marks, source: Marks, bounds: Ints) -> None:
    """Where each row of the part, sorted stably by mark, comes from; `bounds` holds the part's ends."""
    children = len(bounds) - 1
    following = np.zeros(children, np.uint64)
    for i in range(len(side)):
        following[side[i]] += np.uint64(1)
    before = 0
    for child in range(children):
        count = np.int64(following[child])
        following[child] = before
        bounds[child] = bounds[0] + before
        before += count
    for i in range(len(side)):
        source[following[side[i]]] = i
        following[side[i]] += np.uint64(1)


@bare
def gather(column: Column, source: Marks, spare: Column) -> None:
    """Put the rows in the order of `source`."""
    for i in range(len(column)):
        spare[i] = column[np.uint64(source[i])]
    for i in range(len(column)):
        column[i] = spare[i]
