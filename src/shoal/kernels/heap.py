"""A binary heap and a sort for compiled loops: what a best-first search over classes needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.kernels.jit import bare

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# So few entries are sorted rather than parted once more.
SORTED = 16
# Rounds of parting: twice as many as a million entries take that are halved each time.
ROUNDS = 40


class Heap(NamedTuple):
    """A binary heap by (ticks, class); an item is a node, or ~class."""

    ticks: Ints
    first: Ints
    item: Ints
    size: Ints


def make_heap(room: int) -> Heap:
    """Room for so many nodes and classes."""
    ticks, first, item = (np.zeros(room, dtype=np.int64) for _ in range(3))
    return Heap(ticks, first, item, np.zeros(1, dtype=np.int64))


@njit(cache=True, nogil=True, inline="always")
def push(heap: Heap, ticks: int, first: int, item: int) -> None:
    """Add an entry to the heap."""
    i = heap.size[0]
    heap.size[0] += 1
    while i > 0:
        up = (i - 1) >> 1
        if heap.ticks[up] < ticks or (heap.ticks[up] == ticks and heap.first[up] <= first):
            break
        heap.ticks[i], heap.first[i], heap.item[i] = heap.ticks[up], heap.first[up], heap.item[up]
        i = up
    heap.ticks[i], heap.first[i], heap.item[i] = ticks, first, item


@njit(cache=True, nogil=True, inline="always")
def pop(heap: Heap) -> None:
    """Drop the top entry."""
    heap.size[0] -= 1
    size, i = heap.size[0], 0
    if size == 0:
        return
    ticks, first, item = heap.ticks[size], heap.first[size], heap.item[size]
    while True:
        down = 2 * i + 1
        if down >= size:
            break
        right = down + 1
        if right < size and (
            heap.ticks[right] < heap.ticks[down]
            or (heap.ticks[right] == heap.ticks[down] and heap.first[right] < heap.first[down])
        ):
            down = right
        if ticks < heap.ticks[down] or (ticks == heap.ticks[down] and first <= heap.first[down]):
            break
        heap.ticks[i], heap.first[i], heap.item[i] = heap.ticks[down], heap.first[down], heap.item[down]
        i = down
    heap.ticks[i], heap.first[i], heap.item[i] = ticks, first, item


@bare
def sort_by(keys: Floats, items: Ints) -> None:
    """Sort items by key, then by themselves. (Heapsort: NumPy's sorts take seconds to compile.)"""
    count = len(items)
    for begin in range(count // 2 - 1, -1, -1):
        sink(keys, items, begin, count)
    for end in range(count - 1, 0, -1):
        keys[0], keys[end] = keys[end], keys[0]
        items[0], items[end] = items[end], items[0]
        sink(keys, items, 0, end)


@bare
def part_by(keys: Floats, items: Ints, middle: int) -> None:
    """Bring the items that `sort_by` would put before the middle there, in whatever order; the rest stands behind them.

    Quickselect; what a poor choice of pivots leaves large after some rounds is sorted.
    """
    begin, end, rounds = 0, len(items), 0
    while end - begin > SORTED and rounds < ROUNDS:
        rounds += 1
        pivot = _median(keys, items, begin, (begin + end) // 2, end - 1)
        key, item = keys[pivot], items[pivot]
        low, high = begin, end - 1
        while low <= high:
            while keys[low] < key or (keys[low] == key and items[low] < item):
                low += 1
            while keys[high] > key or (keys[high] == key and items[high] > item):
                high -= 1
            if low <= high:
                keys[low], keys[high] = keys[high], keys[low]
                items[low], items[high] = items[high], items[low]
                low, high = low + 1, high - 1
        if middle <= high:
            end = high + 1
        elif middle >= low:
            begin = low
        else:
            return
    sort_by(keys[begin:end], items[begin:end])


@bare
def _median(keys: Floats, items: Ints, a: int, b: int, c: int) -> int:
    """That of three places whose entry is the middle one."""
    first = keys[a] < keys[b] or (keys[a] == keys[b] and items[a] < items[b])
    second = keys[b] < keys[c] or (keys[b] == keys[c] and items[b] < items[c])
    if first == second:
        return b
    outer = keys[a] < keys[c] or (keys[a] == keys[c] and items[a] < items[c])
    return c if first == outer else a


@bare
def sink(keys: Floats, items: Ints, at: int, end: int) -> None:
    """Let an entry fall to its place below larger ones."""
    while 2 * at + 1 < end:
        down = 2 * at + 1
        right = down + 1
        if right < end and (keys[right] > keys[down] or (keys[right] == keys[down] and items[right] > items[down])):
            down = right
        if keys[at] > keys[down] or (keys[at] == keys[down] and items[at] > items[down]):
            break
        keys[at], keys[down] = keys[down], keys[at]
        items[at], items[down] = items[down], items[at]
        at = down
