"""States, joins and losses for compiled loops: `shoal.space` flattened into arrays.

A state is a row of 64-bit slots: (lowest code, highest code) for an Interval or a Tree, bit words for a Set.
Losses here are weighted sums over the attributes. Sums of the same numbers in another order differ in the last
bits, so costs are compared in *ticks* of 2^-40 (docs/algorithms.md#ties-and-ticks).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.kernels.jit import bare, entry
from shoal.space import Interval, Set, Space, Tree

INTERVAL, TREE, SET = 0, 1, 2
TICKS = 2.0**40
PAIR_LIMIT = 512


class FlatSpace(NamedTuple):
    """All domains of a Space in plain arrays; `start` is an attribute's offset into the arrays of its kind."""

    kind: NDArray[np.int64]
    size: NDArray[np.int64]
    missing: NDArray[np.int64]
    slot: NDArray[np.int64]
    weight: NDArray[np.float64]
    scale: NDArray[np.float64]
    start: NDArray[np.int64]
    values: NDArray[np.float64]
    parent: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    node_loss: NDArray[np.float64]
    set_loss: NDArray[np.float64]
    pair_start: NDArray[np.int64]
    pair: NDArray[np.float64]


def flatten(space: Space) -> FlatSpace:
    """The arrays of a space, losses multiplied by the attributes' weights."""
    d = len(space.domains)
    kind, size, missing, start, pair_start = (np.zeros(d, dtype=np.int64) for _ in range(5))
    scale = np.zeros(d)
    values: list[NDArray[np.float64]] = [np.zeros(0)]
    parents: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    firsts: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    lasts: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    node_losses: list[NDArray[np.float64]] = [np.zeros(0)]
    set_losses: list[NDArray[np.float64]] = [np.zeros(0)]
    pairs: list[NDArray[np.float64]] = [np.zeros(0)]
    for a, domain in enumerate(space.domains):
        weight = float(space.weights[a])
        size[a], missing[a], pair_start[a] = domain.size, domain.missing_code, -1
        if isinstance(domain, Interval):
            kind[a], start[a] = INTERVAL, sum(map(len, values))
            scale[a] = weight / domain.width if domain.width > 0 else 0.0
            values.append(domain.values)
        elif isinstance(domain, Tree):
            kind[a], start[a] = TREE, sum(map(len, parents))
            parents.append(domain.taxonomy.parent.astype(np.int64))
            firsts.append(domain.taxonomy.first.astype(np.int64))
            lasts.append(domain.taxonomy.last.astype(np.int64))
            node_losses.append(weight * domain.node_losses(space.measure))
        elif isinstance(domain, Set):
            kind[a], start[a] = SET, sum(map(len, set_losses))
            set_losses.append(weight * domain.size_losses(space.measure))
        # A table of all code ranges is the fastest loss there is, while it fits into the cache.
        if not isinstance(domain, Set) and 0 < domain.size <= PAIR_LIMIT:
            lo, hi = np.meshgrid(np.arange(domain.size), np.arange(domain.size), indexing="ij")
            ordered = np.minimum(lo, hi).ravel(), np.maximum(lo, hi).ravel()
            pair_start[a] = sum(map(len, pairs))
            pairs.append(weight * domain.loss(ordered[0], ordered[1], space.measure))
    return FlatSpace(
        kind=kind,
        size=size,
        missing=missing,
        slot=space.slots.astype(np.int64),
        weight=np.asarray(space.weights, dtype=np.float64),
        scale=scale,
        start=start,
        values=np.concatenate(values),
        parent=np.concatenate(parents),
        first=np.concatenate(firsts),
        last=np.concatenate(lasts),
        node_loss=np.concatenate(node_losses),
        set_loss=np.concatenate(set_losses),
        pair_start=pair_start,
        pair=np.concatenate(pairs),
    )


@njit(cache=True, nogil=True, inline="always")
def popcount(word: np.int64) -> int:
    """Number of set bits in a word."""
    x = np.uint64(word)
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@bare
def range_loss(flat: FlatSpace, a: int, lo: int, hi: int) -> float:
    """Weighted loss of the code range lo..hi of an Interval or a Tree."""
    table = flat.pair_start[a]
    if table >= 0:
        return flat.pair[table + lo * flat.size[a] + hi]
    if lo == hi:
        return 0.0
    begin = flat.start[a]
    if flat.kind[a] == INTERVAL:
        if hi == flat.missing[a]:
            return flat.weight[a]
        return (flat.values[begin + hi] - flat.values[begin + lo]) * flat.scale[a]
    node = lo
    while flat.last[begin + node] < hi:
        node = flat.parent[begin + node]
    return flat.node_loss[begin + node]


@bare
def attribute_loss(flat: FlatSpace, state: NDArray[np.int64], a: int) -> float:
    """Weighted loss of one attribute of a state."""
    slot = flat.slot[a]
    if flat.kind[a] != SET:
        return range_loss(flat, a, state[slot], state[slot + 1])
    count = 0
    for w in range(slot, flat.slot[a + 1]):
        count += popcount(state[w])
    return flat.set_loss[flat.start[a] + count]


@entry
def loss(flat: FlatSpace, state: NDArray[np.int64]) -> float:
    """Weighted loss of one record in a class with this state."""
    total = 0.0
    for a in range(len(flat.kind)):
        total += attribute_loss(flat, state, a)
    return total


@entry
def begin(flat: FlatSpace, state: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
    """Make `state` the state of a single record."""
    for a in range(len(flat.kind)):
        slot = flat.slot[a]
        code = np.int64(codes[a])
        if flat.kind[a] != SET:
            state[slot] = code
            state[slot + 1] = code
        else:
            for w in range(slot, flat.slot[a + 1]):
                state[w] = 0
            state[slot + (code >> 6)] = np.int64(1) << (code & 63)


@entry
def join(flat: FlatSpace, state: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
    """Join one record into `state`."""
    for a in range(len(flat.kind)):
        slot = flat.slot[a]
        code = np.int64(codes[a])
        if flat.kind[a] != SET:
            if code < state[slot]:
                state[slot] = code
            if code > state[slot + 1]:
                state[slot + 1] = code
        else:
            state[slot + (code >> 6)] |= np.int64(1) << (code & 63)


@entry
def merge(flat: FlatSpace, state: NDArray[np.int64], other: NDArray[np.int64]) -> None:
    """Join a whole state into `state`."""
    for a in range(len(flat.kind)):
        slot = flat.slot[a]
        if flat.kind[a] != SET:
            state[slot] = min(state[slot], other[slot])
            state[slot + 1] = max(state[slot + 1], other[slot + 1])
        else:
            for w in range(slot, flat.slot[a + 1]):
                state[w] |= other[w]


@bare
def joined_attribute_loss(flat: FlatSpace, state: NDArray[np.int64], a: int, code: int) -> float:
    """Weighted loss of attribute `a` after joining one code."""
    slot = flat.slot[a]
    if flat.kind[a] != SET:
        return range_loss(flat, a, min(state[slot], code), max(state[slot + 1], code))
    count = 0
    for w in range(slot, flat.slot[a + 1]):
        count += popcount(state[w])
    if not (state[slot + (code >> 6)] >> (code & 63)) & 1:
        count += 1
    return flat.set_loss[flat.start[a] + count]


@entry
def joined_loss(flat: FlatSpace, state: NDArray[np.int64], codes: NDArray[np.int32]) -> float:
    """Weighted loss of `state` after joining one record: the papers' unit(cl ∪ {t})."""
    total = 0.0
    for a in range(len(flat.kind)):
        total += joined_attribute_loss(flat, state, a, np.int64(codes[a]))
    return total


@entry
def merged_loss(flat: FlatSpace, state: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Weighted loss of two states joined."""
    total = 0.0
    for a in range(len(flat.kind)):
        slot = flat.slot[a]
        if flat.kind[a] != SET:
            total += range_loss(flat, a, min(state[slot], other[slot]), max(state[slot + 1], other[slot + 1]))
        else:
            count = 0
            for w in range(slot, flat.slot[a + 1]):
                count += popcount(state[w] | other[w])
            total += flat.set_loss[flat.start[a] + count]
    return total


@entry
def covers(flat: FlatSpace, state: NDArray[np.int64], codes: NDArray[np.int32]) -> bool:
    """Whether joining the record would leave what the class publishes unchanged (Truta & Campan 2007, Definition 6)."""
    for a in range(len(flat.kind)):
        slot = flat.slot[a]
        code = np.int64(codes[a])
        if flat.kind[a] == SET:
            if not (state[slot + (code >> 6)] >> (code & 63)) & 1:
                return False
        elif code < state[slot] or code > state[slot + 1]:
            if flat.kind[a] == INTERVAL:
                if state[slot + 1] == flat.missing[a] and state[slot] < state[slot + 1]:
                    continue  # the class publishes "any" already
                return False
            if state[slot] == state[slot + 1]:
                return False
            begin_node = flat.start[a]
            node = state[slot]
            while flat.last[begin_node + node] < state[slot + 1]:
                node = flat.parent[begin_node + node]
            if not (flat.first[begin_node + node] <= code <= flat.last[begin_node + node]):
                return False
    return True
