"""Wong's local recoding (docs/algorithms.md#top_down): which attribute a node is specialized in, and who stays at it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.kernels.jit import bare, inner, loop
from shoal.kernels.rules import class_deficit
from shoal.kernels.space import TICKS
from shoal.policy import FlatRules

Ints = NDArray[np.int64]
Counts = NDArray[np.int32]

NOBODY = -1


class Taxa(NamedTuple):
    """The levels of all attributes: of attribute a at level l the node above each code from `start[a] + l * codes[a]` on."""

    node: Ints
    start: Ints
    levels: Ints
    codes: Ints


class Secrets(NamedTuple):
    """What the rules count: in which columns of the histograms a record is counted (-1: in none), and who is alike to them."""

    cells: Ints
    columns: int
    group: Ints
    groups: int


class Branches(NamedTuple):
    """Sizes and histograms of the branches; the last row is that of the records that stay."""

    sizes: Ints
    counts: Counts


@loop
def specialize(taxa: Taxa, rules: FlatRules, secrets: Secrets, codes: Counts, rows: Ints) -> Ints:
    """Each row's branch, or -1 if it stays, in the attribute that leaves most records specialized.

    Ties: fewer branches, then the earlier attribute.
    """
    best = np.full(len(rows), NOBODY, dtype=np.int64)
    branch = np.empty(len(rows), dtype=np.int64)
    kept, fewest = 0, 0
    for a in range(len(taxa.start)):
        number = part(taxa, codes, rows, a, branch)
        if number < 2:
            continue
        branches = settle(rules, secrets, rows, branch, number)
        specialized = 0
        for i in range(len(rows)):
            specialized += branch[i] >= 0
        there = 0
        for b in range(number):
            there += branches.sizes[b] > 0
        if specialized > kept or (specialized == kept and kept > 0 and there < fewest):
            best[:] = branch
            kept, fewest = specialized, there
    return best


@inner
def part(taxa: Taxa, codes: Counts, rows: Ints, a: int, branch: Ints) -> int:
    """The first level that parts the rows; their branches are numbered along the codes. How many: 0 if they have one code."""
    low, high = codes[rows[0], a], codes[rows[0], a]
    for r in rows:
        low, high = min(low, codes[r, a]), max(high, codes[r, a])
    if low == high:
        return 0
    level = 0
    for step in range(taxa.levels[a]):
        at = taxa.start[a] + step * taxa.codes[a]
        level += taxa.node[at + low] == taxa.node[at + high]
    at = taxa.start[a] + level * taxa.codes[a]
    first = taxa.node[at + low]
    number = np.zeros(taxa.node[at + high] - first + 1, dtype=np.int64)
    for r in rows:
        number[taxa.node[at + codes[r, a]] - first] = 1
    seen = 0
    for node in range(len(number)):
        seen += number[node]
        number[node] = seen - 1
    for i in range(len(rows)):
        branch[i] = number[taxa.node[at + codes[rows[i], a]] - first]
    return seen


@inner
def settle(rules: FlatRules, secrets: Secrets, rows: Ints, branch: Ints, number: int) -> Branches:
    """Send records back to the node until all branches, and those that stay, satisfy the rules."""
    found = Branches(np.zeros(number + 1, dtype=np.int64), np.zeros((number + 1, secrets.columns), dtype=np.int32))
    for i in range(len(rows)):
        count(found, secrets, rows[i], branch[i], 1)
    failing = np.zeros(number, dtype=np.bool_)
    for b in range(number):
        failing[b] = class_deficit(rules, found.sizes[b], found.counts[b]) > 0
    if not failing.any():
        return found
    for i in range(len(rows)):
        if failing[branch[i]]:
            stay(found, secrets, rows, branch, i)
    take_back(rules, secrets, rows, branch, found)
    return found


@bare
def count(found: Branches, secrets: Secrets, r: int, b: int, change: int) -> None:
    """A record comes to a branch (1), or goes (-1)."""
    found.sizes[b] += change
    for v in range(secrets.cells.shape[1]):
        if secrets.cells[r, v] >= 0:
            found.counts[b, secrets.cells[r, v]] += change


@bare
def stay(found: Branches, secrets: Secrets, rows: Ints, branch: Ints, i: int) -> None:
    """A record returns from its branch to the node."""
    count(found, secrets, rows[i], branch[i], -1)
    branch[i] = NOBODY
    count(found, secrets, rows[i], len(found.sizes) - 1, 1)


@inner
def take_back(rules: FlatRules, secrets: Secrets, rows: Ints, branch: Ints, found: Branches) -> None:
    """Always the record that lowers the deficit of those that stay most, from the branch with most records to spare, the first
    one; its branch must stay good. When no record helps, the smallest branch returns as a whole.

    Records of one branch that the rules cannot tell apart are a run, in their order: the first of each run is a candidate.
    """
    home = len(found.sizes) - 1
    inside = np.flatnonzero(branch >= 0)
    keys = branch[inside] * secrets.groups + secrets.group[rows[inside]]
    order = np.argsort(keys, kind="mergesort")
    inside, keys = inside[order], keys[order]
    first = np.flatnonzero(np.append(np.ones(1, dtype=np.bool_), keys[1:] != keys[:-1])) if len(keys) else keys
    last = np.append(first[1:], len(keys))
    while True:
        deficit = class_deficit(rules, found.sizes[home], found.counts[home])
        if deficit <= 0:
            return
        chosen, most, spare, smallest = NOBODY, 0.0, 0, NOBODY
        for run in range(len(first)):
            if first[run] == last[run]:
                continue
            i = inside[first[run]]
            b = branch[i]
            if smallest == NOBODY or found.sizes[b] < found.sizes[smallest]:
                smallest = b
            fall = np.rint((deficit - changed(rules, found, secrets, rows[i], home, 1)) * TICKS)
            # Runs follow each other by branch: of equal ones the earlier wins, unless its branch has less to spare.
            better = fall > most or (fall == most and chosen != NOBODY and found.sizes[b] > spare)
            equal = fall == most and chosen != NOBODY and found.sizes[b] == spare
            if equal and branch[inside[first[chosen]]] == b and i < inside[first[chosen]]:
                better = True
            if fall > 0 and better and changed(rules, found, secrets, rows[i], b, -1) <= 0:
                chosen, most, spare = run, fall, found.sizes[b]
        if chosen != NOBODY:
            stay(found, secrets, rows, branch, inside[first[chosen]])
            first[chosen] += 1
        elif smallest != NOBODY:
            for run in range(len(first)):
                if first[run] < last[run] and branch[inside[first[run]]] == smallest:
                    for at in range(first[run], last[run]):
                        stay(found, secrets, rows, branch, inside[at])
                    first[run] = last[run]
        else:
            return


@bare
def changed(rules: FlatRules, found: Branches, secrets: Secrets, r: int, b: int, change: int) -> float:
    """The deficit of a branch after a record came (1) or went (-1)."""
    count(found, secrets, r, b, change)
    deficit = class_deficit(rules, found.sizes[b], found.counts[b])
    count(found, secrets, r, b, -change)
    return deficit
