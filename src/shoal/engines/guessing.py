"""Which cuts a table will probably get, guessed from a few of its records, so that one walk counts several levels at once.

A guess decides no cut. It says only which parts are counted together: the counts of a part are those of its guessed pieces added
up, exactly, whatever they are. Where the cut that these counts call for is the guessed one, its children are counted already;
where it is another one they wait for the next walk. A guess that is always wrong costs what no guess costs: a walk a level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shoal.engines.corners import Corners, Groups, Part

Ints = NDArray[np.int64]
Runs = list[tuple[int, int]]
Best = Callable[[tuple[Groups, ...]], "tuple[int, Runs, list[Part]] | None"]


@dataclass(eq=False)
class Sample:
    """Some records: their codes, a row an attribute, what each view counts of them, and how many records each stands for."""

    codes: NDArray[np.int32]
    seen: NDArray[np.int32]
    weight: int

    def take(self, inside: NDArray[np.bool_]) -> Sample:
        """Those that are inside."""
        return Sample(
            np.ascontiguousarray(self.codes[:, inside]), np.ascontiguousarray(self.seen[:, inside]), self.weight
        )

    @property
    def records(self) -> int:
        """How many records they stand for."""
        return int(self.codes.shape[1]) * self.weight


@dataclass(eq=False)
class Guess:
    """A part and, where its cut is guessed, the cut and the children. Its `part` says between which codes all its records lie."""

    part: Part
    attribute: int = -1
    runs: Runs = field(default_factory=list)
    children: list[Guess] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    """Of the pieces that make it up, where they are counted."""

    @property
    def pieces(self) -> Iterator[Guess]:
        """What is counted: those whose cut nobody guessed, in order."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            if not one.children:
                yield one
            waiting += reversed(one.children)

    @property
    def cells(self) -> int:
        """How many codes are counted."""
        return sum(one.part.cells for one in self.pieces)

    def placed(self, first: int) -> int:
        """Give its pieces their places, from the first one on; the next free one."""
        if not self.children:
            self.places = [first]
            return first + 1
        begin = first
        for child in self.children:
            first = child.placed(first)
        self.places = list(range(begin, first))
        return first


def guess(
    part: Part, sample: Sample, best: Best, counted: Callable[[Part, Sample], Corners], size: int, most: int
) -> Guess:
    """The cuts of a part as the records of a sample that lie in it call for them, level by level.

    - `best`: the cut that some counts call for; `counted`: the counts of a sample.
    - `size`: a part with no more records is cut no further; `most`: how many cells may be counted in all.
    """
    root = Guess(part)
    cells, waiting = part.cells, [(root, sample)]
    for one, own in waiting:
        found = best(_groups(counted(one.part, own))) if own.records > size else None
        if found is None:
            continue
        attribute, runs, _ = found
        code = own.codes[attribute]
        masks = [(code >= first) & (code <= last) for first, last in runs]
        masks.append(~np.logical_or.reduce(masks))
        parts = _bounded(one.part, attribute, runs)
        more = sum(child.cells for child in parts) - one.part.cells
        # Blocks need no counts of their own: a cut into nothing else is left to the walk that counts the whole.
        if cells + more > most or all(np.count_nonzero(mask) * own.weight <= size for mask in masks):
            continue
        cells += more
        one.attribute, one.runs, one.children = attribute, runs, [Guess(child) for child in parts]
        waiting += [(child, own.take(mask)) for child, mask in zip(one.children, masks, strict=True)]
    return root


def _groups(corners: Corners) -> tuple[Groups, ...]:
    return tuple(corners.of(0, a) for a in range(len(corners.shape.sets)))


def _bounded(part: Part, attribute: int, runs: Runs) -> list[Part]:
    """The children of a cut, each with the ends that its records cannot lie beyond."""
    low, high = int(part.low[attribute]), int(part.high[attribute])
    for first, last in sorted(runs):
        low = last + 1 if first <= low <= last else low
    for first, last in sorted(runs, reverse=True):
        high = first - 1 if first <= high <= last else high
    children = []
    for first, last in [
        *((max(f, int(part.low[attribute])), min(e, int(part.high[attribute]))) for f, e in runs),
        (low, high),
    ]:
        lows, highs = part.low.copy(), part.high.copy()
        lows[attribute], highs[attribute] = first, last
        children.append(Part(part.weight, lows, highs))
    return children


def heaps(guesses: Sequence[Guess], most: int) -> list[list[Guess]]:
    """Guesses in as few heaps as have no more than so many cells each; a heap has at least one."""
    found: list[list[Guess]] = []
    taken = 0
    for one in guesses:
        needed = one.cells
        if not found or taken + needed > most:
            found.append([])
            taken = 0
        found[-1].append(one)
        taken += needed
    return found
