"""Cuts weighed without the records: what has to be known of a part, counted record by record, and the cuts that follow from it.

To weigh every cut of an attribute the loss split needs, for each of its codes, only how many records have it and the ends of
every attribute among them (of sets: which members). This is counted here for many parts at once, in one walk over the records
(`count_corners`). A few rows that show just these ends, the first of each code with all the weight and the rest with none, then
give `shoal.kernels.mondrian_loss` the same savings, bit for bit (`candidates_of`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import entry, loop
from shoal.kernels.mondrian import LOSS_OF_ALL, LOSS_OF_MEDIANS, MEDIANS
from shoal.kernels.mondrian_loss import Candidates, save
from shoal.kernels.mondrian_parts import (
    APART,
    EXTENT,
    HIERARCHY,
    HIGH,
    KIND,
    LOW,
    Cuts,
    Floats,
    Ints,
    Table,
    Work,
    measure_part,
)

Codes = NDArray[np.int32]


class Tree(NamedTuple):
    """Cuts as a tree of pairs: records whose code of `attribute` lies from `first` to `last` go left, others right.

    A leaf has attribute -1 and in `left` the number of its part, -1 where nobody asks for it.
    """

    attribute: Codes
    first: Codes
    last: Codes
    left: Codes
    right: Codes


class Places(NamedTuple):
    """Where each part and attribute is counted: cell start + code − low; which words hold an attribute's set, -1 for none."""

    start: Ints
    low: Ints
    word: Ints
    view_start: Ints


@entry
def route(tree: Tree, codes: Codes, part: Codes) -> None:
    """The part of each record; `codes` has a row an attribute."""
    for i in range(len(part)):
        node = 0
        while tree.attribute[node] >= 0:
            code = codes[tree.attribute[node], i]
            node = tree.left[node] if tree.first[node] <= code <= tree.last[node] else tree.right[node]
        part[i] = tree.left[node]


@loop
def by_part(codes: Codes, seen: Codes, part: Codes, parts: int) -> tuple[Codes, Ints]:
    """The records, a row each, part after part, and where each part begins; those of no part are left out.

    The cells of all parts are more than a processor keeps near. Part after part, it needs those of one at a time.
    """
    attributes, views = len(codes), len(seen)
    start = np.zeros(parts + 1, dtype=np.int64)
    for p in part:
        if p >= 0:
            start[p + 1] += 1
    for p in range(parts):
        start[p + 1] += start[p]
    rows, at = np.empty((start[parts], attributes + views), dtype=np.int32), start[:parts].copy()
    for i in range(len(part)):
        p = part[i]
        if p >= 0:
            row = rows[at[p]]
            at[p] += 1
            for a in range(attributes):
                row[a] = codes[a, i]
            for view in range(views):
                row[attributes + view] = seen[view, i]
    return rows, start


@loop
def count_corners(
    places: Places,
    codes: Codes,
    seen: Codes,
    part: Codes,
    counts: Ints,
    ends: NDArray[np.int32],
    bits: Ints,
    histograms: Ints,
) -> None:
    """Add records: of each part, attribute and code how many there are, the ends of every attribute and the histograms."""
    attributes = len(codes)
    rows, start = by_part(codes, seen, part, len(places.start))
    for p in range(len(places.start)):
        for i in range(start[p], start[p + 1]):
            row = rows[i]
            for a in range(attributes):
                cell = places.start[p, a] + row[a] - places.low[p, a]
                counts[cell] += 1
                for b in range(attributes):
                    code = row[b]
                    if places.word[b] >= 0:
                        bits[cell, places.word[b] + (code >> 6)] |= np.int64(1) << np.int64(code & 63)
                        continue
                    if code < ends[cell, b, 0]:
                        ends[cell, b, 0] = code
                    if code > ends[cell, b, 1]:
                        ends[cell, b, 1] = code
                for view in range(len(seen)):
                    value = row[attributes + view]
                    if value >= 0:
                        histograms[cell, places.view_start[view] + value] += 1


@loop
def candidates_of(table: Table, cuts: Cuts, prices: Floats, work: Work, split: int, a: int) -> Candidates:
    """The cuts of one attribute of a part of which `table` shows the corners; `work` measures the part."""
    rows = len(table.begins)
    measure_part(table.columns, cuts, work, 0, rows)
    room = 1 + 2 * min(rows, work.part[HIGH, a] - work.part[LOW, a] + 1)
    found = Candidates(np.zeros(room, np.int64), np.zeros(room, np.int64), np.full(room, -1), np.full(room, -1))
    filled = np.int64(0)
    if work.part[EXTENT, a] == 0:
        return found
    if split == MEDIANS:
        found.key[0], found.attribute[0] = work.part[EXTENT, a], a
        return found
    along, apart = cuts.attribute[a, KIND] == HIERARCHY, cuts.attribute[a, APART] == 1
    for way in range(2):
        by_median = way == 0
        if along or split == LOSS_OF_MEDIANS if by_median else split == LOSS_OF_ALL and (apart or not along):
            filled = save(table, cuts, prices, work, by_median, a, 0, rows, found, filled)
    return found
