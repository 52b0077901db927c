"""Variance of a sensitive attribute of any kind, from histograms (docs/models.md#variance).

Var_d = (1/2n²) Σ_a Σ_b d(a, b)² over pairs of records: half of Rao's quadratic entropy, and for numbers the
population variance. Numbers have d = |a − b| and ordered labels the difference of ranks; unordered ones have
d = [a ≠ b], or height(lowest common ancestor)/height(taxonomy). All are concave in the distribution, so the
variance of a merged class is at least the average of its parts'.

>>> import numpy as np
>>> NumberVariance(np.array([1.0, 4.0, 10.0])).of(np.array([[1, 1, 1], [2, 0, 0]]))
array([14.,  0.])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal import exact
from shoal.models.base import Model, by_blocks, leaves_of
from shoal.models.column import Column, Floats, Ints
from shoal.models.ranges import Ranges, singles, subtrees


@dataclass(frozen=True, eq=False)
class NumberVariance:
    """Population variance of the number behind each code; ranks for ordered labels."""

    values: Floats

    def of(self, counts: Ints) -> Floats:
        """Variance per class; 0 where nothing is known."""
        return by_blocks(self._of, counts)

    def _of(self, counts: Ints) -> Floats:
        known = np.maximum(1, counts.sum(axis=1))
        mean = exact.along(counts, self.values) / known
        # Squares of differences, not a difference of squares, which would lose the digits that ratios need.
        return np.asarray((counts * (self.values - mean[:, None]) ** 2).sum(axis=1) / known)

    def flat(self) -> tuple[Ints, Floats]:
        """For compiled loops: form 0, and the values."""
        return np.array([0]), self.values


@dataclass(frozen=True, eq=False)
class TreeVariance:
    """½ (φ(root) − Σ (φ(parent of C) − φ(C))·share(C)²) over all nodes C but the root, with φ = (height/H)².

    Two records contribute φ of their lowest common ancestor. The pairs below a node N that do not share a child
    have weight share(N)² − Σ share(child)²; collecting share(C)² from C and from its parent gives the sum above.
    """

    top: float
    ranges: Ranges

    def of(self, counts: Ints) -> Floats:
        """Variance per class; 0 where nothing is known."""
        return by_blocks(self._of, counts)

    def _of(self, counts: Ints) -> Floats:
        known = counts.sum(axis=1)
        shares = self.ranges.sums(counts) / np.maximum(known, 1)[:, None]
        variance = 0.5 * (self.top - exact.along(shares**2, self.ranges.weight))
        return np.where(known > 0, np.maximum(variance, 0.0), 0.0)

    def flat(self) -> tuple[Ints, Floats]:
        """For compiled loops: form 1 with the ranges, and φ(root) with the weights."""
        return np.concatenate([[1], self.ranges.flat()]), np.concatenate([[self.top], self.ranges.weight])


Variance = NumberVariance | TreeVariance


def variance_for(model: Model, column: Column) -> Variance:
    """The variance that fits the kind of the attribute."""
    width = max(1, len(column.labels))
    if column.numbers is not None or column.ordered:
        values = np.arange(width, dtype=np.float64)
        if column.numbers is not None:
            values[: len(column.labels)] = column.numbers
        return NumberVariance(values)
    if column.taxonomy is None:
        return TreeVariance(1.0, singles(np.arange(width, dtype=np.int64), 1.0))
    tree, leaves = leaves_of(model, column)
    placed = np.flatnonzero(leaves >= 0).astype(np.int64)
    value = (tree.height / max(1, int(tree.height[tree.root]))) ** 2
    return TreeVariance(float(value[tree.root]), subtrees(placed, leaves[placed], tree, value))
