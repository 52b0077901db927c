"""Tuples that are near each other, found without looking at all of them: by random trees, and by asking the neighbours.

In a wide table every tuple is far from almost all others, and a tree of bounding states rules hardly any of them out. A random
tree halves the tuples again and again by whether they are nearer to one or to the other of two of them; those that
end up in the same leaf are likely to be near. Of several such trees some leaf has most of the nearest, and what they miss the
neighbours of neighbours know (Dong et al. 2011).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.box_gauge import range_cost
from shoal.kernels.box_types import Floats, Gauge, Ints, Shorts
from shoal.kernels.jit import bare, entry
from shoal.kernels.space import SET

Singles = NDArray[np.float32]


class Tree(NamedTuple):
    """A random tree: the tuples leaf by leaf, where each of them is, and where leaves begin (and the last one ends)."""

    order: Shorts
    place: Shorts
    edges: Ints


@bare
def apart(gauge: Gauge, codes: Shorts, t: int, u: int, most: float) -> float:
    """What two tuples lose in a class of their own; any number of at least `most` beyond that."""
    total = 0.0
    a = np.int64(0)
    while a < len(gauge.attributes) and total < most:
        code, other = np.int64(codes[t, a]), np.int64(codes[u, a])
        if code != other:
            it = gauge.attributes[a]
            if it.kind == SET:
                total += gauge.losses[it.values + 2]
            else:
                total += range_cost(gauge, a, min(code, other), max(code, other))
        a += 1
    return total


@entry
def halve(gauge: Gauge, codes: Shorts, order: Shorts, sides: Floats, edges: Ints, draws: Ints) -> None:
    """Halve every stretch of `order` between two edges: the half that is nearer to one of two of its tuples comes first.

    `draws` are two random numbers a stretch, which say which two. `sides` is room for as many numbers as there are tuples.
    """
    for node in range(len(edges) - 1):
        begin, end = edges[node], edges[node + 1]
        one = np.int64(order[begin + draws[node, 0] % (end - begin)])
        two = np.int64(order[begin + draws[node, 1] % (end - begin)])
        for i in range(begin, end):
            t = np.int64(order[i])
            sides[i] = apart(gauge, codes, t, one, np.inf) - apart(gauge, codes, t, two, np.inf)
        select(order, sides, begin, end)


@bare
def select(order: Shorts, sides: Floats, begin: int, end: int) -> None:
    """Hoare's selection of the middle; equal sides go by the tuple, so that there is one way to do it."""
    middle, low, high = (begin + end) >> 1, begin, end - 1
    while low < high:
        pivot, name = sides[(low + high) >> 1], order[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while sides[i] < pivot or (sides[i] == pivot and order[i] < name):
                i += 1
            while sides[j] > pivot or (sides[j] == pivot and order[j] > name):
                j -= 1
            if i <= j:
                sides[i], sides[j] = sides[j], sides[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            low = high


@bare
def noted(near: Shorts, cost: Singles, t: int, other: int, price: float) -> None:
    """Put a tuple among the nearest of `t`, unless it is there already or too far."""
    last = near.shape[1] - 1
    j = last
    while j > 0 and cost[t, j - 1] > price:
        j -= 1
    # Whoever costs the same comes before: the same tuple twice would cost the same twice.
    i = j - 1
    while i >= 0 and cost[t, i] == price:
        if near[t, i] == other:
            return
        i -= 1
    for i in range(last, j, -1):
        cost[t, i] = cost[t, i - 1]
        near[t, i] = near[t, i - 1]
    cost[t, j] = price
    near[t, j] = other


@bare
def introduce(gauge: Gauge, codes: Shorts, near: Shorts, cost: Singles, t: int, other: int) -> None:
    """Tuple `t` meets another one, and remembers it if it is among the nearest until now."""
    worst = cost[t, near.shape[1] - 1]
    if other != t:
        price = np.float32(apart(gauge, codes, t, other, np.float64(worst)))
        if price < worst:
            noted(near, cost, t, other, price)


@entry
def meet(gauge: Gauge, codes: Shorts, tree: Tree, near: Shorts, cost: Singles, span: tuple[int, int]) -> None:
    """Tuples from span[0] to span[1] meet all others in their leaf of a tree."""
    for t in range(span[0], span[1]):
        # Leaves are of one size, but for one tuple: the first guess is at most one off.
        leaf = np.int64(tree.place[t]) * (len(tree.edges) - 1) // len(codes)
        while tree.edges[leaf] > tree.place[t]:
            leaf -= 1
        while tree.edges[leaf + 1] <= tree.place[t]:
            leaf += 1
        for i in range(tree.edges[leaf], tree.edges[leaf + 1]):
            introduce(gauge, codes, near, cost, np.int64(t), np.int64(tree.order[i]))


@entry
def ask(gauge: Gauge, codes: Shorts, known: Shorts, near: Shorts, cost: Singles, span: tuple[int, int]) -> None:
    """Tuples from span[0] to span[1] meet the neighbours of their neighbours, as they were `known` before."""
    for t in range(span[0], span[1]):
        for i in range(known.shape[1]):
            friend = np.int64(known[t, i])
            for j in range(known.shape[1]):
                introduce(gauge, codes, near, cost, np.int64(t), np.int64(known[friend, j]))
