"""Weighted ranges of codes: one shape for earth mover's distances and for variances over a taxonomy.

Both are sums over sets of values: all single values, all values up to some value, or all values below a node.
In the right order of the codes each of these sets is a range, and prefix sums give its count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.models.column import Floats, Ints
from shoal.taxonomy import Taxonomy


@dataclass(frozen=True, eq=False)
class Ranges:
    """Range i is the codes order[begin[i]:end[i]] and weighs weight[i]."""

    order: Ints
    begin: Ints
    end: Ints
    weight: Floats

    def sums(self, counts: Ints) -> Ints:
        """How many records of each class (rows) fall into each range (columns)."""
        prefix = np.zeros((len(counts), len(self.order) + 1), dtype=np.int64)
        np.cumsum(counts[:, self.order], axis=1, out=prefix[:, 1:])
        return np.asarray(prefix[:, self.end] - prefix[:, self.begin])

    def flat(self) -> Ints:
        """For compiled loops: the lengths, then order, begin and end."""
        return np.concatenate([[len(self.order), len(self.begin)], self.order, self.begin, self.end])


def singles(codes: Ints, weight: float) -> Ranges:
    """Every code by itself."""
    at = np.arange(len(codes), dtype=np.int64)
    return Ranges(codes, at, at + 1, np.full(len(codes), weight))


def prefixes(codes: Ints, weight: float) -> Ranges:
    """All codes up to each code but the last."""
    end = np.arange(1, len(codes), dtype=np.int64)
    return Ranges(codes, np.zeros(len(end), dtype=np.int64), end, np.full(len(end), weight))


def subtrees(codes: Ints, leaves: Ints, tree: Taxonomy, value: Floats) -> Ranges:
    """The codes below each node but the root, weighing how much `value` rises from the node to its parent.

    `leaves` are the codes' leaves. Nodes with the same codes below them become one range, empty ones none.
    """
    order = np.argsort(leaves, kind="stable")
    at = leaves[order]
    begin, end = np.searchsorted(at, tree.first[:-1]), np.searchsorted(at, tree.last[:-1], side="right")
    rise: Floats = value[tree.parent[:-1]] - value[:-1]
    some = begin < end
    pairs, which = np.unique(np.stack([begin, end], axis=1)[some], axis=0, return_inverse=True)
    weight = np.zeros(len(pairs))
    np.add.at(weight, which.ravel(), rise[some])
    return Ranges(codes[order], pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64), weight)
