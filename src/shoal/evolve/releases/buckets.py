"""The steps of m-invariance (`evolve/releases/invariance.py`): records are put into buckets by signature, and buckets are cut.

A *bucket* has the rows of one signature by value. Where real records do not suffice, counterfeits stand in: they have the
quasi-identifiers of a real record of their class, so they cost no loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import InfeasibleError, InternalError
from shoal.evolve.releases.guards import Numbers
from shoal.evolve.releases.values import Values
from shoal.progress import Progress
from shoal.space import Space

# So many pairs of rows are compared at a time; each is a class of two, with a state and losses, some hundred bytes.
PAIRS = 2**18
Signature = tuple[int, ...]
RowList = list[int]
Bucket = dict[int, RowList]


@dataclass(eq=False)
class Work:
    """The table in codes, and the counterfeits made so far. Row numbers below zero are counterfeits: -1, -2, …"""

    m: int
    space: Space
    codes: NDArray[np.int32]
    known: Values
    values: Numbers
    """The number of each record's values, as they are shown."""
    frequency: Numbers
    """How many records have each; values of the past have 0."""
    fakes: list[int] = field(default_factory=list)
    """The value of each counterfeit."""
    stale: int = 0
    """Records that are shown with old values."""
    likeness: list[int] = field(default_factory=list)
    """The record whose quasi-identifiers each counterfeit has."""

    def fake(self, value: int, like: int) -> int:
        """A new counterfeit."""
        self.fakes.append(value)
        self.likeness.append(like if like >= 0 else self.likeness[-like - 1])
        return -len(self.fakes)

    def value_of(self, row: int) -> int:
        """The value of a record or counterfeit."""
        return int(self.values[row]) if row >= 0 else self.fakes[-row - 1]

    def like(self, rows: Sequence[int]) -> RowList:
        """The records whose quasi-identifiers records and counterfeits have."""
        return [row if row >= 0 else self.likeness[-row - 1] for row in rows]

    def codes_of(self, rows: Sequence[int]) -> NDArray[np.int32]:
        """Codes of the quasi-identifiers of records and counterfeits."""
        return self.codes[self.like(rows)]

    @property
    def frequent(self) -> list[int]:
        """All values, the most frequent first."""
        return [int(v) for v in np.lexsort((np.arange(len(self.frequency)), -self.frequency))]

    def gaps(self, these: RowList, those: RowList) -> NDArray[np.float64]:
        """For each of these rows, the loss of one class with the nearest of those, in ticks."""
        step = max(1, PAIRS // len(those))
        pieces = [self._gaps(these[i : i + step], those) for i in range(0, len(these), step)]
        return np.concatenate(pieces)

    def _gaps(self, these: RowList, those: RowList) -> NDArray[np.float64]:
        codes = np.concatenate([self.codes_of(these), self.codes_of(those)])
        one = np.repeat(np.arange(len(these)), len(those))
        other = np.tile(np.arange(len(those)), len(these)) + len(these)
        order = np.stack([one, other], axis=1).ravel()
        units = self.space.unit(self.space.states(codes, order, np.arange(0, len(order), 2)))
        return np.asarray(exact.ticks(units).reshape(len(these), len(those)).min(axis=1))

    def joined(self, these: RowList, group: RowList) -> NDArray[np.float64]:
        """For each of these rows, the loss of one class with a whole group, in ticks."""
        codes, size = np.concatenate([self.codes_of(group), self.codes_of(these)]), len(group)
        order = np.tile(np.arange(size + 1), len(these)).reshape(len(these), size + 1)
        order[:, size] += np.arange(len(these))
        units = self.space.unit(self.space.states(codes, order.ravel(), np.arange(0, order.size, size + 1)))
        return np.asarray(exact.ticks(units))

    def loss(self, group: RowList) -> float:
        """The loss of one row in a class of these, in ticks."""
        return float(self.joined(group[:1], group)[0])


def divide(
    work: Work, place: Numbers, signatures: list[Signature], shown: list[int], last: int
) -> tuple[dict[Signature, Bucket], Bucket, RowList]:
    """Records that were published before, by signature, the new ones by value, and those that are back and have to wait.

    `place` is where each row that was published is now, or -1: first the `last` ones of the last release, and `shown` is the
    value that each of these had; then those of records that are back.
    """
    buckets: dict[Signature, Bucket] = {}
    held: RowList = []
    seen = np.zeros(len(work.values), dtype=bool)
    away = np.arange(len(place)) >= last
    for row, signature, old, back in sorted(zip(place.tolist(), signatures, shown, away.tolist(), strict=True)):
        if row < 0:
            continue
        seen[row] = True
        if work.values[row] not in signature:
            other = _block(work, signature, int(work.values[row]))
            if other is None and back:
                held.append(row)
                continue
            if other is None:
                work.values[row], work.stale = old, work.stale + 1
            else:
                signature = other
        key = _padded(work, signature)
        bucket = buckets.setdefault(key, {v: [] for v in key})
        bucket[int(work.values[row])].append(row)
    stock: Bucket = {}
    for row in np.flatnonzero(~seen).tolist():
        stock.setdefault(int(work.values[row]), []).append(row)
    return buckets, stock, held


def _block(work: Work, signature: Signature, value: int) -> Signature | None:
    """The values among which a new one hides that is not in the signature; none for combinations of several."""
    if not work.known.simple:
        return None
    others = [v for v in range(len(work.frequency)) if v not in signature]
    blocks = len(others) // work.m
    if blocks == 0:
        return None
    at = min(others.index(value) // work.m, blocks - 1)
    return tuple(others[at * work.m : (at + 1) * work.m if at < blocks - 1 else None])


def _padded(work: Work, signature: Signature) -> Signature:
    """A signature from a time when fewer values were asked for gets the most frequent others."""
    if len(signature) >= work.m:
        return signature
    return tuple(sorted(filled(work, list(signature), work.m)))


def filled(work: Work, values: list[int], wanted: int) -> list[int]:
    """Values and as many of the most frequent others as are wanted, none of which clash."""
    found = work.known.apart(values, wanted, work.frequent)
    if found is None:
        raise InfeasibleError(
            f"m-invariance with m = {work.m} needs {work.m} different sensitive values and the table has "
            f"{len(np.unique(work.known.parts[:, 0]))}; take a smaller m."
        )
    return found


def balance(work: Work, buckets: dict[Signature, Bucket], stock: Bucket, progress: Progress) -> None:
    """Make every value of a bucket equally frequent: by new records with it, those that lose least first, then by counterfeits.

    A new record is taken even when those that remain have to be filled up. That never costs a counterfeit: s new records with
    at most f of a value need max(0, m·f - s) of them, and one record less raises that by one at most, while it saves one.
    """
    lacking: dict[tuple[Signature, int], int] = {}
    offers: list[tuple[float, Signature, int, int]] = []
    for key in progress.each(sorted(buckets)):
        bucket = buckets[key]
        most = max(len(rows) for rows in bucket.values())
        lacking |= {(key, value): most - len(bucket[value]) for value in key}
        there = [row for value in key for row in bucket[value]]
        new = [row for value in key if lacking[key, value] for row in stock.get(value, [])]
        if new:
            losses = work.joined(new, there) if most == 1 else work.gaps(new, there)
            offers += [(loss, key, work.value_of(row), row) for loss, row in zip(losses.tolist(), new, strict=True)]
    taken: set[int] = set()
    for _, key, value, row in sorted(offers):
        if row not in taken and lacking[key, value]:
            taken.add(row)
            lacking[key, value] -= 1
            buckets[key][value].append(row)
    take_out(stock, taken)
    for key in sorted(buckets):
        bucket = buckets[key] = {value: sorted(rows) for value, rows in buckets[key].items()}
        most = max(len(rows) for rows in bucket.values())
        full = next(bucket[value] for value in key if len(bucket[value]) == most)
        for value in key:
            bucket[value] += [work.fake(value, full[i]) for i in range(len(bucket[value]), most)]


def take_out(stock: Bucket, rows: set[int]) -> None:
    """Take these rows from a stock."""
    for value in list(stock):
        stock[value] = [row for row in stock[value] if row not in rows]
        if not stock[value]:
            del stock[value]


def rounds(work: Work, buckets: dict[Signature, Bucket], stock: Bucket, progress: Progress) -> None:
    """The records of a block, in rounds, into buckets of their own signatures.

    A round takes the rows nearest to the first one of its most frequent value.
    """
    while stock:
        progress.check()
        values, number = next_round({value: len(rows) for value, rows in stock.items()}, work.m)
        anchor = stock[values[0]][0]
        key = tuple(sorted(values))
        bucket = buckets.setdefault(key, {v: [] for v in key})
        for value in values:
            bucket[value] += _taken(work, stock, value, number, [anchor])


def _taken(work: Work, stock: Bucket, value: int, number: int, near: RowList) -> RowList:
    """Take so many rows with a value from the stock, the nearest to some others first."""
    rows = stock.pop(value)
    chosen = np.lexsort((np.array(rows), work.gaps(rows, near)))[:number]
    taken = {rows[i] for i in chosen}
    if len(taken) < len(rows):
        stock[value] = [row for row in rows if row not in taken]
    return sorted(taken)


def missing_rows(stock: Bucket, m: int) -> int:
    """How many rows are missing until no value has more than one m-th of them."""
    total = sum(len(rows) for rows in stock.values())
    return max(0, m * max((len(rows) for rows in stock.values()), default=0) - total)


def next_round(counts: dict[int, int], m: int) -> tuple[list[int], int]:
    """The next values to put together and how many rows of each: the fewest values, m or more, then the most rows.

    The β most frequent values give α rows each so that of the rest again no value has more than one m-th.
    """
    order = sorted(counts, key=lambda value: (-counts[value], value))
    total = sum(counts.values())
    for beta in range(m, len(order) + 1):
        after = counts[order[beta]] if beta < len(order) else 0
        alpha = min(counts[order[beta - 1]], (total - m * after) // beta)
        if beta > m:
            alpha = min(alpha, (total - m * counts[order[0]]) // (beta - m))
        if alpha >= 1:
            return order[:beta], alpha
    raise InternalError(f"no {m} values can be put together so that the rest stays balanced")


def fill_up(work: Work, stock: Bucket, lacking: int, buckets: dict[Signature, Bucket]) -> None:
    """Counterfeits among the new records, rather with values that make a signature that exists already."""
    most = max(len(rows) for rows in stock.values())
    top = min(value for value, rows in stock.items() if len(rows) == most)
    used = np.zeros(len(work.frequency), dtype=np.int64)
    for key in buckets:
        if top in key:
            used[list(key)] += 1
    order = sorted(range(len(work.frequency)), key=lambda v: (-used[v], -work.frequency[v], v))
    for value in order:
        room = min(lacking, most - len(stock.get(value, [])))
        if room > 0:
            stock.setdefault(value, []).extend([work.fake(value, stock[top][i]) for i in range(room)])
            lacking -= room
    if lacking:
        filled(work, [top], work.m)


def held_back(stock: Bucket, m: int) -> RowList:
    """Take the newest rows of the most frequent value away until no value has more than one m-th; they are returned."""
    held: RowList = []
    while stock and missing_rows(stock, m):
        value = max(stock, key=lambda v: (len(stock[v]), -v))
        held.append(stock[value].pop())
        if not stock[value]:
            del stock[value]
    return held


def split(work: Work, bucket: Bucket, progress: Progress) -> list[RowList]:
    """Cut a balanced bucket into classes that have every value once, each time along the attribute that loses least."""
    grid = np.array([sorted(rows) for rows in bucket.values()], dtype=np.int64)
    pile, classes = [grid], []
    while pile:
        progress.check()
        part = pile.pop()
        if part.shape[1] == 1:
            classes.append(part[:, 0].tolist())
            continue
        left, right = _halved(work, part)
        pile += [right, left]
    return classes


def _halved(work: Work, grid: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both halves of a bucket with a line a value; equal codes go by row number."""
    lines, count = grid.shape
    half, attributes = count // 2, len(work.space.domains)
    codes = work.codes_of(grid.ravel().tolist())
    order = np.argsort(codes.reshape(lines, count, attributes), axis=1, kind="stable")
    at = (order + np.arange(lines)[:, None, None] * count).transpose(2, 0, 1)
    parts = [at[a][:, side].ravel() for a in range(attributes) for side in (slice(0, half), slice(half, None))]
    sizes = np.array([len(part) for part in parts])
    units = work.space.unit(work.space.states(codes, np.concatenate(parts), np.cumsum(sizes) - sizes))
    costs = exact.ticks(units * sizes).reshape(attributes, 2).sum(axis=1)
    best = grid.ravel()[at[int(np.argmin(costs))]]
    return np.sort(best[:, :half], axis=1), np.sort(best[:, half:], axis=1)
