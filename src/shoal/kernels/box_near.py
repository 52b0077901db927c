"""For each tuple the tuples nearest to it, by a search in a static tree of bounding states."""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.kernels.box_state import (
    KIND,
    SLOT,
    VALUES,
    Floats,
    Ints,
    Shorts,
    holds,
    range_cost,
    row_growth,
    row_join,
)
from shoal.kernels.jit import inner
from shoal.kernels.space import SET

EPSILON = 1e-9


@njit(cache=True, nogil=True)
def nearest(spec: Ints, losses: Floats, codes: Shorts, node: Ints, near: Shorts, first: int, end: int) -> None:
    """Fill rows first … end - 1 of `near` with the others that cost least to share a class with, nearest first.

    `node` is a perfect binary tree (the children of i are 2i + 1 and 2i + 2): bounding state, first tuple, end.
    """
    width = near.shape[1]
    half = len(node) // 2
    state = node.shape[1] - 2
    cost = np.empty(width)
    stack = np.empty(64, dtype=np.int64)
    bound = np.empty(64)
    alone = np.empty((1, state), dtype=np.int64)
    none = np.int64(0)
    for t in range(first, end):
        row_join(spec, alone, none, codes, t, none)
        # The last tuple and those near it are at least as many others, so none of the nearest costs more than all of them.
        most = np.inf
        if t > first:
            most = row_growth(spec, losses, alone, none, codes, t - 1, np.inf)
            for j in range(width):
                most = max(most, row_growth(spec, losses, alone, none, codes, np.int64(near[t - 1, j]), np.inf))
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
            if bound[top] < cost[width - 1]:
                if i < half:
                    left = reach(spec, losses, node, 2 * i + 1, codes, t)
                    right = reach(spec, losses, node, 2 * i + 2, codes, t)
                    nearer = 1 if left <= right else 2
                    stack[top], bound[top] = 2 * i + 3 - nearer, max(left, right)
                    stack[top + 1], bound[top + 1] = 2 * i + nearer, min(left, right)
                    top += 2
                else:
                    for other in range(node[i, state], node[i, state + 1]):
                        price = row_growth(spec, losses, alone, none, codes, other, cost[width - 1])
                        if other != t and price < cost[width - 1]:
                            j = width - 1
                            while j > 0 and cost[j - 1] > price:
                                cost[j] = cost[j - 1]
                                near[t, j] = near[t, j - 1]
                                j -= 1
                            cost[j] = price
                            near[t, j] = other


@inner
def reach(spec: Ints, losses: Floats, node: Ints, i: int, codes: Shorts, t: int) -> float:
    """The least loss of tuple `t` joined with any tuple below node `i`."""
    total = 0.0
    for a in range(len(spec)):
        slot = spec[a, SLOT]
        code = np.int64(codes[t, a])
        if spec[a, KIND] == SET:
            if not holds(node, i, slot, code):
                total += losses[spec[a, VALUES] + 2]
        else:
            # Losses of code ranges grow with the range, in a taxonomy too, so the nearer end is the cheapest.
            lo, hi = node[i, slot], node[i, slot + 1]
            if code < lo or code > hi:
                end = lo if code < lo else hi
                total += range_cost(spec, losses, a, min(code, end), max(code, end))
    return total
