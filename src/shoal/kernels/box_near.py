"""For each tuple the tuples nearest to it, by a search in a static tree of bounding states."""

from __future__ import annotations

import numpy as np

from shoal.kernels.box_gauge import EPSILON, holds, range_cost, row_growth, row_join
from shoal.kernels.box_types import Gauge, Ints, Shorts
from shoal.kernels.jit import bare, loop
from shoal.kernels.space import SET


@loop
def nearest(
    gauge: Gauge, codes: Shorts, node: Ints, near: Shorts, stretch: tuple[int, int, int], steps_left: Ints
) -> int:
    """Fill rows of `near` with the others that cost least to share a class with, nearest first.

    `node` is a perfect binary tree (the children of i are 2i + 1 and 2i + 2): bounding state, first tuple, end.
    `stretch` is where the rows begin, where to go on, and where they end. Steps are taken off `steps_left`; when none are left,
    or at the end, returns where to go on.
    """
    width = near.shape[1]
    half = len(node) // 2
    state = node.shape[1] - 2
    cost = np.empty(width)
    # A way down leaves one node a level behind: 64 levels are more than any table has.
    stack = np.empty(64, dtype=np.int64)
    bound = np.empty(64)
    alone = np.empty((1, state), dtype=np.int64)
    none = np.int64(0)
    first, t, end = stretch
    steps = steps_left[0]
    while t < end and steps > 0:
        row_join(gauge, alone, none, codes, t, none)
        # The last tuple and those near it are at least as many others, so none of the nearest costs more than all of them.
        most = np.inf
        if t > first:
            most = row_growth(gauge, alone, none, codes, t - 1, np.inf)
            for j in range(width):
                most = max(most, row_growth(gauge, alone, none, codes, np.int64(near[t - 1, j]), np.inf))
            most += EPSILON
        for j in range(width):
            cost[j] = most
            near[t, j] = t
        stack[0] = 0
        bound[0] = 0.0
        top = 1
        while top > 0:
            top -= 1
            i = stack[top]
            steps -= len(gauge.attributes)
            if bound[top] < cost[width - 1]:
                if i < half:
                    left = reach(gauge, node, 2 * i + 1, codes, t)
                    right = reach(gauge, node, 2 * i + 2, codes, t)
                    nearer = 1 if left <= right else 2
                    stack[top], bound[top] = 2 * i + 3 - nearer, max(left, right)
                    stack[top + 1], bound[top + 1] = 2 * i + nearer, min(left, right)
                    top += 2
                else:
                    steps -= len(gauge.attributes) * (node[i, state + 1] - node[i, state])
                    for other in range(node[i, state], node[i, state + 1]):
                        price = row_growth(gauge, alone, none, codes, other, cost[width - 1])
                        if other != t and price < cost[width - 1]:
                            j = width - 1
                            while j > 0 and cost[j - 1] > price:
                                cost[j] = cost[j - 1]
                                near[t, j] = near[t, j - 1]
                                j -= 1
                            cost[j] = price
                            near[t, j] = other
        t += 1
    steps_left[0] = steps
    return t


@bare
def reach(gauge: Gauge, node: Ints, i: int, codes: Shorts, t: int) -> float:
    """The least loss of tuple `t` joined with any tuple below node `i`."""
    total = 0.0
    for a in range(len(gauge.attributes)):
        it = gauge.attributes[a]
        code = np.int64(codes[t, a])
        if it.kind == SET:
            if not holds(node, i, it.slot, code):
                total += gauge.losses[it.values + 2]
        else:
            # Losses of code ranges grow with the range, in a taxonomy too, so the nearer end is the cheapest.
            lo, hi = node[i, it.slot], node[i, it.slot + 1]
            if code < lo or code > hi:
                end = lo if code < lo else hi
                total += range_cost(gauge, a, min(code, end), max(code, end))
    return total
