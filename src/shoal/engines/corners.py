"""What has to be known of the parts of a table to cut them: counted piece by piece, in any order, and added up.

A `Shape` says which parts are counted and where; `Corners` are the counts. Whoever has some of the records adds them; whoever has
two heaps of counts merges them. Neither grows with the records: a cell for each part, attribute and code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shoal.kernels.corners import Places, Tree
    from shoal.kernels.mondrian_parts import Table

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]

# A row of corners has its weight in 32 bits; what is heavier is told by several rows.
HEAVIEST = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the table: how many records it has, and the lowest and highest code of each attribute among them."""

    weight: int
    low: Ints
    high: Ints

    @property
    def cells(self) -> int:
        """How many codes are counted."""
        return int((self.high - self.low + 1).sum())


@dataclass(frozen=True, eq=False)
class Shape:
    """Which parts are counted, and of which attributes the members are noted and not the ends alone (`sets`, with sizes)."""

    parts: tuple[Part, ...]
    sets: tuple[int, ...]
    """Per attribute, how many members its sets may have; 0 for one of which the ends are enough."""
    view_start: Ints
    seen: tuple[tuple[str, Codes], ...] = ()
    """Per view the coded column that it looks at, and what it counts of each of that column's entries (-1: nothing)."""

    @property
    def cell_bytes(self) -> int:
        """What one cell takes."""
        return 8 * (1 + len(self.sets) + self.words + int(self.view_start[-1]))

    @property
    def words(self) -> int:
        """How many 64-bit words the sets of one cell take."""
        return sum(math.ceil(size / 64) for size in self.sets)

    @cached_property
    def start(self) -> Ints:
        """Where each part and attribute begins; the last number is how many cells there are."""
        widths = np.array([part.high - part.low + 1 for part in self.parts], dtype=np.int64).ravel()
        return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)

    @cached_property
    def word(self) -> Ints:
        """Where the words of each attribute begin; -1 for one that has none."""
        widths = [math.ceil(size / 64) for size in self.sets]
        places = np.cumsum([0, *widths])[:-1]
        return np.where(np.array(widths) > 0, places, -1).astype(np.int64)

    def places(self) -> Places:
        """The same for compiled loops."""
        from shoal.kernels.corners import Places

        low = np.array([part.low for part in self.parts], dtype=np.int64)
        return Places(self.start[:-1].reshape(low.shape).copy(), low, self.word, self.view_start)


class Corners:
    """The counts of some records. `add` takes more of them, `merge` the counts of others."""

    def __init__(self, shape: Shape) -> None:
        cells, attributes = int(shape.start[-1]), len(shape.sets)
        self.shape = shape
        self.counts = np.zeros(cells, dtype=np.int64)
        self.ends = np.empty((cells, attributes, 2), dtype=np.int32)
        self.ends[:, :, 0], self.ends[:, :, 1] = np.iinfo(np.int32).max, -1
        self.bits = np.zeros((cells, shape.words), dtype=np.int64)
        self.histograms = np.zeros((cells, int(shape.view_start[-1])), dtype=np.int64)

    def add(self, tree: Tree, codes: Codes, seen: Codes) -> None:
        """More records: their codes, a row an attribute, and what each view counts of them, a row a view."""
        from shoal.kernels.corners import count_corners, route

        part = np.empty(codes.shape[1], dtype=np.int32)
        route(tree, codes, part)
        arrays = self.counts, self.ends, self.bits, self.histograms
        count_corners(self.shape.places(), codes, seen, part, *arrays)

    def merge(self, other: Corners) -> Corners:
        """Itself, with the counts of other records."""
        self.counts += other.counts
        np.minimum(self.ends[:, :, 0], other.ends[:, :, 0], out=self.ends[:, :, 0])
        np.maximum(self.ends[:, :, 1], other.ends[:, :, 1], out=self.ends[:, :, 1])
        self.bits |= other.bits
        self.histograms += other.histograms
        return self

    def together(self, places: Sequence[int], whole: Part) -> Corners:
        """Some parts as one, which lies between the ends of `whole`."""
        found = Corners(replace(self.shape, parts=(whole,)))
        for place in places:
            part = self.shape.parts[place]
            for a in range(len(self.shape.sets)):
                begin, end = self.shape.start[len(self.shape.sets) * place + a :][:2].tolist()
                at = int(found.shape.start[a] + part.low[a] - whole.low[a])
                here, there = slice(at, at + end - begin), slice(begin, end)
                found.counts[here] += self.counts[there]
                np.minimum(found.ends[here, :, 0], self.ends[there, :, 0], out=found.ends[here, :, 0])
                np.maximum(found.ends[here, :, 1], self.ends[there, :, 1], out=found.ends[here, :, 1])
                found.bits[here] |= self.bits[there]
                found.histograms[here] += self.histograms[there]
        return found

    def of(self, part: int, attribute: int) -> Groups:
        """What is known of each code that an attribute has in a part."""
        place = part * len(self.shape.sets) + attribute
        begin, end = int(self.shape.start[place]), int(self.shape.start[place + 1])
        there = np.flatnonzero(self.counts[begin:end])
        cells = begin + there
        codes = there + int(self.shape.parts[part].low[attribute])
        known = self.counts[cells], self.ends[cells], self.bits[cells], self.histograms[cells]
        return Groups(self.shape, attribute, codes, *known)


@dataclass(frozen=True, eq=False)
class Groups:
    """The records of a part, grouped by their code of one attribute."""

    shape: Shape
    attribute: int
    codes: Ints
    counts: Ints
    ends: NDArray[np.int32]
    bits: Ints
    histograms: Ints

    @cached_property
    def before(self) -> tuple[Ints, Ints]:
        """Records, and histograms, of all groups before each; the last entry has all."""
        sizes = np.concatenate([[0], np.cumsum(self.counts)])
        start = np.zeros((1, self.histograms.shape[1]), dtype=np.int64)
        return sizes, np.concatenate([start, np.cumsum(self.histograms, axis=0)])

    def part_of(self, inside: NDArray[np.bool_]) -> Part:
        """Some of the groups as a part of its own."""
        low = self.ends[inside, :, 0].min(axis=0).astype(np.int64)
        high = self.ends[inside, :, 1].max(axis=0).astype(np.int64)
        for b, size in enumerate(self.shape.sets):
            if size:
                members = np.flatnonzero(self.members(b)[inside].any(axis=0))
                low[b], high[b] = members[0], members[-1]
        return Part(int(self.counts[inside].sum()), low, high)

    def members(self, attribute: int) -> NDArray[np.bool_]:
        """Which members of a set each group has: a row a group, a column a code."""
        word, size = int(self.shape.word[attribute]), self.shape.sets[attribute]
        words = np.ascontiguousarray(self.bits[:, word : word + math.ceil(size / 64)]).view(np.uint8)
        return np.unpackbits(words, axis=1, bitorder="little")[:, :size].astype(np.bool_)

    def corners(self, dtype: type[np.unsignedinteger]) -> Table:
        """Rows that show the ends and members of every group: the first of each has its weight, the others none."""
        from shoal.kernels.mondrian_parts import Table

        attributes, groups = len(self.shape.sets), len(self.codes)
        members = {b: self.members(b) for b, size in enumerate(self.shape.sets) if size}
        rows = np.full(groups, 2, dtype=np.int64)
        for found in members.values():
            rows = np.maximum(rows, np.count_nonzero(found, axis=1))
        rows = np.maximum(rows, -(-self.counts // HEAVIEST))
        start = np.cumsum(rows) - rows
        owner = np.repeat(np.arange(groups), rows)
        turn = np.arange(int(rows.sum())) - start[owner]
        columns = np.empty((attributes + 1, len(owner)), dtype=dtype)
        for b in range(attributes):
            if b in members:
                columns[b] = _shown(members[b], start, owner)
            else:
                columns[b] = np.where(turn == 1, self.ends[owner, b, 1], self.ends[owner, b, 0])
        weights = np.clip(self.counts[owner] - turn * HEAVIEST, 0, HEAVIEST)
        cargo = np.stack([np.arange(len(owner)), weights]).astype(np.int32)
        scratch = np.empty((3, len(owner)), dtype=np.int32)
        return Table(columns, cargo, scratch, np.zeros(len(owner), dtype=np.uint8), weighted=True)


def _shown(members: NDArray[np.bool_], start: Ints, owner: Ints) -> Ints:
    """A code for each row: every member of its group in turn, the first one again where there are no more."""
    group, code = np.nonzero(members)
    sizes = np.count_nonzero(members, axis=1)
    first = np.cumsum(sizes) - sizes
    shown = code[first][owner]
    shown[start[group] + np.arange(len(group)) - first[group]] = code
    return np.asarray(shown, dtype=np.int64)


def coded_arrays(rows: pl.DataFrame, seen: Sequence[tuple[str, Codes]]) -> tuple[Codes, Codes]:
    """The codes of some coded records, a row an attribute, and what each view counts of them, a row a view."""
    counted = [view[rows[name].to_numpy()] for name, view in seen]
    empty = np.zeros((0, rows.height), dtype=np.int32)
    return stacked(rows, "q"), np.ascontiguousarray(np.stack(counted), dtype=np.int32) if counted else empty


def stacked(rows: pl.DataFrame, letter: str) -> Codes:
    """The coded columns that begin with a letter, a row each."""
    names = [name for name in rows.columns if name[0] == letter and name[1:].isdigit()]
    return np.ascontiguousarray(np.stack([rows[name].to_numpy() for name in names]), dtype=np.int32)
