"""People with several sensitive values: what models ask of a class of persons, each with a set of values.

A person i of class C has the set S_i of values over their rows. With one value each, everything here is what it is for rows
(docs/persons.md has the definitions, and why an intruder who knows a person learns no more than the model promises):

- `distinct`: no set of fewer than p values meets every person of the class. The least size of a set that does, the *hitting
  number*, takes the place of the number of distinct values: whoever is certain that a person has one of fewer than p values has
  learned what p-sensitivity forbids.
- `shares`: the share of persons that have a value.
- `spread`: each person has weight one, spread evenly over their values, in the class and in the table alike.
- `mean`: the person's mean; the rule is that of a column of means.

A search counts one code a person, so each distinct set of values has a code of its own, and rules map histograms over sets to
what they ask. Values come in groups where the model groups them (categories, protected subtrees), and sets become sets of groups.

>>> sets = Sets.of([[0], [0, 1], [0, 2]])
>>> hitting_number([sets.values(i) for i in range(3)], 3)   # everybody has value 0
1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shoal.pieces import CELLS

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Counts: TypeAlias = "Ints | csr_array"
"""Classes × sets, of which a class has few: all of them, or those that occur."""

PARTS = 720_720
"""A person's weight in whole parts, so that sums are exact: every number up to 16 divides it. Of more values, the first ones get
one part more than the last."""
DEEPEST = 12
"""Hitting numbers are told up to this many values; more is "at least"."""
TOGETHER = 100_000
"""Hitting numbers of classes with so many sets are searched together: a fortieth of the numbers that there may be on the way."""


@dataclass(frozen=True, eq=False)
class Sets:
    """Distinct sets of codes, one after the other: set i is members[starts[i]:starts[i + 1]], ascending."""

    starts: Ints
    members: Ints

    @classmethod
    def of(cls, sets: Sequence[Sequence[int]]) -> Sets:
        """From lists of codes."""
        lengths = [len(one) for one in sets]
        flat = [code for one in sets for code in sorted(one)]
        return cls(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), np.array(flat, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def values(self, i: int) -> tuple[int, ...]:
        """The codes of one set."""
        return tuple(self.members[self.starts[i] : self.starts[i + 1]].tolist())

    @cached_property
    def lengths(self) -> Ints:
        """How many codes each set has."""
        return np.diff(self.starts)

    @cached_property
    def parts(self) -> Ints:
        """The parts of a person's weight on each member, `PARTS` for each set."""
        of = np.repeat(self.lengths, self.lengths)
        place = np.arange(len(self.members)) - np.repeat(self.starts[:-1], self.lengths)
        return (PARTS // of + (place < PARTS % of)).astype(np.int64)

    def words(self, bits: int) -> Ints:
        """The codes of each set as so many bits of a word, which codes that differ by that number share."""
        words = np.zeros(len(self), dtype=np.uint64)
        owners = np.repeat(np.arange(len(self)), self.lengths)
        np.bitwise_or.at(words, owners, np.uint64(1) << (self.members % bits).astype(np.uint64))
        return words.view(np.int64)

    def incidence(self, width: int, *, spread: bool = False) -> csr_array:
        """Sets × codes: 1 for each member, or its parts."""
        from scipy.sparse import csr_array

        numbers = self.parts if spread else np.ones(len(self.members), dtype=np.int64)
        return csr_array((numbers, self.members, self.starts), shape=(len(self), width))


def number_sets(owner: NDArray[Any], codes: NDArray[Any], count: int) -> tuple[Codes, Sets]:
    """The set of each of `count` owners, -1 for none, and the distinct sets; code -1 is no member.

    Sets are numbered by their members in lexicographic order, whatever the order of the rows.

    >>> of, sets = number_sets(np.array([0, 1, 0, 2]), np.array([1, 0, 0, -1]), 3)
    >>> of.tolist(), [sets.values(i) for i in range(len(sets))]
    ([1, 0, -1], [(0,), (0, 1)])
    """
    known = codes >= 0
    width = int(codes.max(initial=0)) + 1
    pairs = np.unique(owner[known].astype(np.int64) * width + codes[known])
    owners, members = pairs // width, pairs % width
    starts = np.searchsorted(owners, np.arange(count + 1))
    lengths = np.diff(starts)
    some = np.flatnonzero(lengths)
    of = np.full(count, -1, dtype=np.int32)
    if not len(some):
        return of, Sets.of([])
    # A row for each owner, and -1 where its set has ended, which comes before every code.
    table = np.full((len(some), int(lengths.max())), -1, dtype=np.int32)
    table[np.repeat(np.arange(len(some)), lengths[some]), np.arange(len(members)) - starts[owners]] = members
    order = np.lexsort(table.T[::-1])
    sorted_table = table[order]
    begins = np.concatenate([[True], (sorted_table[1:] != sorted_table[:-1]).any(axis=1)])
    of[some[order]] = np.cumsum(begins) - 1
    distinct = sorted_table[begins]
    kept = distinct >= 0
    ends = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int64)
    return of, Sets(ends, distinct[kept].astype(np.int64))


def hitting_number(sets: Sequence[tuple[int, ...]], limit: int) -> int:
    """The least number of codes of which every set has at least one, told up to `limit`.

    Exact: the set with the fewest codes that none chosen so far meets has to be met by one of its own codes, so these are all the
    branches there are, to a depth below `limit`.
    """
    for depth in range(limit):
        if _can_hit(sets, depth):
            return depth
    return limit


def _can_hit(sets: Sequence[tuple[int, ...]], depth: int) -> bool:
    if not sets:
        return True
    if depth == 0:
        return False
    smallest = min(sets, key=len)
    return any(_can_hit([one for one in sets if code not in one], depth - 1) for code in smallest)


def cannot_be_hit(sizes: Ints, having: Ints, depth: int) -> NDArray[np.bool_]:
    """Where no `depth` codes meet everybody, surely: together they meet at most as many persons as have them one by one.

    `sizes` are the persons with a known set in each class, `having` (classes × codes) how many of them have each code. With one
    code a person this is exact.
    """
    if depth <= 0:
        return np.asarray(sizes > 0)
    if having.shape[1] <= depth:
        return np.asarray(having.sum(axis=1) < sizes)
    largest = np.partition(having, having.shape[1] - depth, axis=1)[:, having.shape[1] - depth :]
    return np.asarray(largest.sum(axis=1) < sizes)


def sparse(labels: NDArray[Any], codes: NDArray[Any], classes: int, width: int) -> csr_array:
    """Classes × codes: how many of each class have each code; label or code -1 is nobody's. Of many codes a class has few."""
    from scipy.sparse import csr_array

    known = (labels >= 0) & (codes >= 0)
    cells, counts = np.unique(labels[known].astype(np.int64) * width + codes[known], return_counts=True)
    starts = np.searchsorted(cells, np.arange(classes + 1) * width)
    return csr_array((counts.astype(np.int64), cells % width, starts), shape=(classes, width))


def summed(counts: Counts, incidence: csr_array) -> Ints:
    """Classes × codes from classes × sets, of which a class has few."""
    from scipy.sparse import csr_array

    return np.asarray((csr_array(counts) @ incidence).toarray(), dtype=np.int64)


def class_hitting_numbers(counts: Counts, sets: Sets, incidence: csr_array, limit: int) -> Ints:
    """The hitting number of each class (rows of `counts` over sets), told up to `limit`."""
    from scipy.sparse import csr_array

    occurring = csr_array(counts)
    starts, present = occurring.indptr.astype(np.int64), occurring.indices.astype(np.int64)
    known = np.asarray(occurring.sum(axis=1), dtype=np.int64)
    found = np.full(occurring.shape[0], limit, dtype=np.int64)
    asked = np.flatnonzero(~cannot_be_hit(known, summed(occurring, incidence), limit - 1))
    batch = np.cumsum(starts[asked + 1] - starts[asked]) // TOGETHER
    for some in np.split(asked, np.flatnonzero(np.diff(batch)) + 1):
        found[some] = _hit_together(some, starts, present, sets, limit)
    return found


def _hit_together(rows: Ints, starts: Ints, present: Ints, sets: Sets, limit: int) -> Ints:
    """The hitting numbers of some classes, as `hitting_number` finds them, but a depth of all classes at a time.

    An *attempt* is a class with some codes chosen and the sets that these do not meet. Where there would be too many attempts,
    the classes are left to `hitting_number`, which makes one after the other.
    """
    found = np.full(len(rows), limit, dtype=np.int64)
    width = int(sets.members.max(initial=0)) + 1
    pairs = np.repeat(np.arange(len(sets)), sets.lengths) * width + sets.members
    lengths = starts[rows + 1] - starts[rows]
    of_attempt, unmet = np.arange(len(rows)), present[_ranges(starts[rows], lengths)]
    for depth in range(limit):
        done = of_attempt[lengths == 0]
        found[done[found[done] == limit]] = depth
        alive = np.flatnonzero((lengths > 0) & (found[of_attempt] == limit))
        if depth + 1 == limit or not len(alive):
            break
        begins = np.cumsum(lengths) - lengths
        # The codes of the smallest set of each attempt are its branches.
        by_size = np.lexsort((sets.lengths[unmet], np.repeat(np.arange(len(lengths)), lengths)))
        smallest = unmet[by_size[begins[alive]]]
        branches = sets.lengths[smallest]
        if int((branches * lengths[alive]).sum()) > CELLS:
            for i in np.unique(of_attempt[alive]):
                own = [sets.values(int(s)) for s in present[starts[rows[i]] : starts[rows[i] + 1]]]
                found[i] = hitting_number(_minimal(own), limit)
            break
        chosen = sets.members[_ranges(sets.starts[smallest], branches)]
        before = np.repeat(alive, branches)
        entries = unmet[_ranges(begins[before], lengths[before])]
        attempt = np.repeat(np.arange(len(before)), lengths[before])
        key = entries * width + chosen[attempt]
        left = pairs[np.minimum(np.searchsorted(pairs, key), len(pairs) - 1)] != key
        of_attempt, unmet = of_attempt[before], entries[left]
        lengths = np.bincount(attempt[left], minlength=len(before))
    return found


def _ranges(begins: Ints, lengths: Ints) -> Ints:
    """The numbers from each beginning on, as many as said, one range after the other."""
    ends = np.cumsum(lengths)
    return np.arange(int(lengths.sum())) + np.repeat(begins - ends + lengths, lengths)


def _minimal(sets: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Whoever meets a set meets all that contain it."""
    kept: list[tuple[int, ...]] = []
    for one in sorted(sets, key=len):
        own = set(one)
        if not any(own.issuperset(other) for other in kept):
            kept.append(one)
    return kept


def means(owner: NDArray[Any], numbers: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """The mean of each owner's known numbers, missing where none is known; exact before it is rounded once."""
    known = ~np.isnan(numbers)
    order = np.argsort(owner[known], kind="stable")
    values, owners = numbers[known][order], owner[known][order]
    starts = np.searchsorted(owners, np.arange(count + 1))
    found = np.full(count, np.nan)
    single = np.diff(starts) == 1
    found[single] = values[starts[:-1][single]]
    for i in np.flatnonzero(np.diff(starts) > 1):
        part = values[starts[i] : starts[i + 1]]
        found[i] = math.fsum(part) / len(part)
    return found
