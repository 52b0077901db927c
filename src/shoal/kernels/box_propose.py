"""Proposals of the box search: a random record, and a box around it."""

from __future__ import annotations

import numpy as np

from shoal.kernels.box_state import (
    CLASS,
    CODES,
    COUNT,
    FIRST,
    KIND,
    LAST,
    MISSING,
    NEXT_IN_TUPLE,
    NOBODY,
    NODES,
    PARENT,
    SIZE,
    SLOT,
    WORK,
    Floats,
    Ints,
    Shorts,
    Words,
    row_cost,
    row_growth,
    row_join,
    widen,
)
from shoal.kernels.jit import inner
from shoal.kernels.logs import power
from shoal.kernels.space import SET, TREE

EPSILON = 1e-9
# Kinds of steps; the rest are classes that grow.
SHIFTS, GATHERS, CHANGES, GENERALIZATIONS, JOINS = range(5)
REPLACES = 0.5
# How often a record that loses nothing is put back, and the most of the near tuples that a gathering leaves out.
FREE, SKIPS = 0.9, 0.6


@inner
def uniform(seed: Words) -> float:
    """A number in [0, 1), by xorshift64*."""
    x = seed[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    seed[0] = x
    return np.float64((x * np.uint64(2685821657736338717)) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inner
def below(seed: Words, n: int) -> int:
    """A whole number in 0 … n-1."""
    return np.int64(uniform(seed) * n)


@inner
def pick(records: Shorts, heads: Shorts, hold: Shorts, loss: Floats, seed: Words) -> tuple[int, int]:
    """The tuple and class of a random record: of two, the one in the dearer class."""
    best_t, best_c = 0, NOBODY
    tries = 0
    while tries < 2:
        t = records[below(seed, len(records))]
        h = heads[t]
        chosen = h
        count = 0
        while h != NOBODY:
            count += 1
            if count > 1 and below(seed, count) == 0:
                chosen = h
            h = hold[h, NEXT_IN_TUPLE]
        c = hold[chosen, CLASS]
        if best_c == NOBODY or loss[c] > loss[best_c]:
            best_t, best_c = t, c
        tries += 1
        if tries == 2 and loss[best_c] <= EPSILON and uniform(seed) < FREE:
            tries = 1
    return np.int64(best_t), np.int64(best_c)


@inner
def propose(
    spec: Ints,
    losses: Floats,
    tree: Ints,
    codes: Shorts,
    near: Shorts,
    records: Shorts,
    box: Ints,
    loss: Floats,
    klass: Ints,
    hold: Shorts,
    heads: Shorts,
    number: Ints,
    shares: Floats,
    seed: Words,
    kind: float,
    t: int,
    c: int,
    trial: int,
    k: int,
) -> bool:
    """Write a box around tuple `t` of class `c` into the trial row; whether it replaces the class."""
    width = box.shape[1]
    replaced = False
    for w in range(width):
        box[trial, w] = box[c, w]
    if kind < shares[GATHERS]:
        gather(spec, losses, codes, near, box, loss, klass, hold, heads, number, seed, t, loss[c], trial, k)
    elif kind < shares[CHANGES]:
        widen(spec, tree, box, trial)
        for _ in range(1 + below(seed, 3)):
            perturb(spec, tree, codes, box, seed, t, trial, 0.5)
        replaced = uniform(seed) < REPLACES
    elif kind < shares[GENERALIZATIONS]:
        most = loss[c] * (0.5 + 0.7 * uniform(seed))
        row_join(spec, box, trial, codes, t, np.int64(0))
        for _ in range(8):
            for w in range(width):
                box[trial + 1, w] = box[trial, w]
            perturb(spec, tree, codes, box, seed, t, trial, 1.0)
            if row_cost(spec, losses, box, trial) > most:
                for w in range(width):
                    box[trial, w] = box[trial + 1, w]
    elif kind < shares[JOINS]:
        for i in range(2 + below(seed, 3)):
            nearness = uniform(seed)
            other = near[t, np.int64(nearness * nearness * near.shape[1])] if i else t
            row_join(spec, box, trial, codes, np.int64(other), i)
    else:
        best = np.inf
        chosen = t
        for i in range(12):
            other = near[t, below(seed, near.shape[1])] if i < 6 else records[below(seed, len(records))]
            growth = row_growth(spec, losses, box, c, codes, np.int64(other), best)
            if EPSILON < growth < best:
                best, chosen = growth, np.int64(other)
        row_join(spec, box, trial, codes, chosen, np.int64(1))
        replaced = True
    widen(spec, tree, box, trial)
    return replaced


@inner
def gather(
    spec: Ints,
    losses: Floats,
    codes: Shorts,
    near: Shorts,
    box: Ints,
    loss: Floats,
    klass: Ints,
    hold: Shorts,
    heads: Shorts,
    number: Ints,
    seed: Words,
    t: int,
    most: float,
    trial: int,
    k: int,
) -> None:
    """Join near tuples to `t`, some left out at random, until k records are there that would gain or are to spare.

    The trial box stays as it was if it would cost `most` before.
    """
    copy = trial + 1
    row_join(spec, box, copy, codes, t, np.int64(0))
    price, have = 0.0, 0
    h = heads[t]
    while h != NOBODY:
        have += hold[h, COUNT]
        h = hold[h, NEXT_IN_TUPLE]
    skip = SKIPS * uniform(seed)
    i = 0
    while i < near.shape[1] and have < k:
        if uniform(seed) >= skip:
            other = np.int64(near[t, i])
            dearer = price + row_growth(spec, losses, box, copy, codes, other, most - price)
            if dearer < most - EPSILON:
                useful = 0
                h = heads[other]
                while h != NOBODY:
                    c = hold[h, CLASS]
                    surplus = hold[h, COUNT] if loss[c] >= dearer - EPSILON else klass[c, SIZE] - k
                    useful += max(0, min(hold[h, COUNT], surplus))
                    h = hold[h, NEXT_IN_TUPLE]
                if useful > 0:
                    row_join(spec, box, copy, codes, other, np.int64(1))
                    price = dearer
                    have += useful
        i += 1
    number[WORK] += 4 * i
    if have >= k:
        for w in range(box.shape[1]):
            box[trial, w] = box[copy, w]


@inner
def perturb(spec: Ints, tree: Ints, codes: Shorts, box: Ints, seed: Words, t: int, c: int, upwards: float) -> None:
    """Change one attribute of row `c` a little, tuple `t` staying inside; it grows with probability `upwards`."""
    a = below(seed, len(spec))
    slot = spec[a, SLOT]
    code = np.int64(codes[t, a])
    grow = uniform(seed) < upwards
    far = uniform(seed)
    lo, hi = box[c, slot], box[c, slot + 1] if spec[a, KIND] != SET else box[c, slot]
    if spec[a, KIND] == SET:
        other = below(seed, spec[a, CODES])
        bit = np.int64(1) << (other & 63)
        if grow:
            box[c, slot + (other >> 6)] |= bit
        elif other != code:
            box[c, slot + (other >> 6)] &= ~bit
    elif spec[a, KIND] == TREE:
        # The chain of nodes above the tuple: the first that is wider, or the last that is narrower, than the state.
        begin = spec[a, NODES]
        node = code
        above = tree[begin + node, PARENT]
        reach = hi - lo + 1 if grow else hi - lo
        while above >= 0 and tree[begin + above, LAST] - tree[begin + above, FIRST] < reach:
            node = above
            above = tree[begin + node, PARENT]
        if grow and above >= 0:
            node = above
        if grow or lo < hi:
            box[c, slot] = tree[begin + node, FIRST]
            box[c, slot + 1] = tree[begin + node, LAST]
    else:
        top = spec[a, CODES] - 1
        missing = spec[a, MISSING] == top
        if missing and (code == top or hi == top or (grow and far < 0.05)):
            box[c, slot] = top if code == top and not grow else 0
            box[c, slot + 1] = top if code == top or grow else top - 1
        else:
            # Steps of all sizes, up to a quarter of the codes.
            ranks = np.int64(power(1.0 + 0.25 * spec[a, CODES], far))
            if uniform(seed) < 0.5:
                box[c, slot] = max(0, lo - ranks) if grow else min(code, lo + ranks)
            else:
                box[c, slot + 1] = min(top - 1 if missing else top, hi + ranks) if grow else max(code, hi - ranks)
