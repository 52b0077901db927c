"""Rules that bound the share of each value in a class, from above, from below or both."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.models.base import TOLERANCE, Model, Rule, by_blocks
from shoal.models.column import Column, Floats, Ints, own_values
from shoal.models.forms import Form, Shares

# least_size looks at class sizes up to this one; a search without end would pay little.
SIZES = 4096
# Bounds on whole numbers of records are widened by this, so that rounding excludes nothing that the rule allows.
NOISE = 1e-9


class SharesRule(Rule):
    """The shares of an attribute's values against their bounds."""

    def __init__(self, model: Model, column: Column, n: int, bounds: Shares) -> None:
        super().__init__(model, column, own_values(column), n)
        self.bounds, self.labels = bounds, column.labels

    def shares(self, sizes: Ints, counts: Ints) -> Floats:
        """Share of every value that is bound (one column each) in every class."""
        whole = counts.sum(axis=1) if self.bounds.of_known else sizes
        return np.asarray(counts[:, self.bounds.minded] / np.maximum(whole, 1)[:, None])

    def deficit(self, sizes: Ints, counts: Ints) -> Floats:
        """How many records are too many or too few: Σ max(0, c_v − upper_v·size) + Σ max(0, lower_v·size − c_v).

        Of a value that has to occur and does not, one record is missing at least.
        """
        return by_blocks(self._deficit, counts, sizes)

    def _deficit(self, counts: Ints, sizes: Ints) -> Floats:
        bounds, minded = self.bounds, self.bounds.minded
        shares = self.shares(sizes, counts)
        excess = shares - bounds.upper[minded]
        if bounds.lower.any():
            absent, lower = counts[:, minded] == 0, bounds.lower[minded]
            excess = np.maximum(excess, np.where(absent, 0.0, lower - shares))
            if bounds.everywhere:
                one = 1 / np.maximum(counts.sum(axis=1) if bounds.of_known else sizes, 1)[:, None]
                excess = np.where(absent & (lower > 0), np.maximum(lower, one), excess)
        off = np.where(excess > TOLERANCE, excess, 0.0).sum(axis=1)
        if not bounds.of_known:
            return np.asarray(off * sizes)
        known = counts.sum(axis=1)
        return np.where(known > 0, off * known, 1.0)

    def least_size(self) -> int:
        """No class has fewer known records than this: the smallest s at which whole numbers of records fit the bounds.

        With s records a value can have from ⌈s·lower⌉ (at least 1) to ⌊s·upper⌋ of them, or none unless it has to occur.
        """
        frequencies = self.table_counts[self.bounds.minded & (self.table_counts > 0)]
        lower, upper = (
            bound[self.bounds.minded & (self.table_counts > 0)] for bound in (self.bounds.lower, self.bounds.upper)
        )
        limit = min(int(self.table_counts.sum()), SIZES)
        if not len(frequencies):
            return 1
        step = max(1, 65_536 // len(frequencies))
        for begin in range(1, limit + 1, step):
            sizes = np.arange(begin, min(begin + step, limit + 1))[:, None]
            least = np.maximum(1, np.ceil(sizes * (lower - 2 * TOLERANCE) - NOISE))
            most = np.minimum(frequencies, np.floor(np.minimum(sizes * (upper + 2 * TOLERANCE), sizes) + NOISE))
            possible = least <= most
            fits = np.where(possible, most, 0).sum(axis=1) >= sizes[:, 0]
            if self.bounds.everywhere:
                fits &= possible.all(axis=1) & (least.sum(axis=1) <= sizes[:, 0])
            if fits.any():
                return int(sizes[fits.argmax(), 0])
        return max(1, limit)

    def exposed(self, sizes: Ints, lower: Ints, upper: Ints) -> NDArray[np.bool_]:
        """Groups in which some value certainly has too large a share, or too small a one."""
        minded, whole = self.bounds.minded, np.maximum(sizes, 1)[:, None]
        least, most = lower[:, minded] / whole, 1 - (lower.sum(axis=1, keepdims=True) - lower[:, minded]) / whole
        bound, everywhere = self.bounds.lower[minded], self.bounds.everywhere
        large = least > self.bounds.upper[minded] + TOLERANCE
        small = ((lower[:, minded] > 0) | everywhere) & (most < bound - TOLERANCE)
        gone = everywhere & (bound > 0) & (upper[:, minded] == 0)
        return np.asarray((large | small | gone).any(axis=1))

    def forms(self) -> tuple[Form, ...]:
        """The bounds."""
        return (self.bounds,)


class RelativeRule(SharesRule):
    """Bounds that follow the shares of the whole table, which as one class therefore satisfies them."""

    def __init__(self, model: Model, column: Column, n: int, bounds: Shares) -> None:
        super().__init__(model, column, n, bounds)
        self.share = table_shares(column)

    def infeasible(self) -> str | None:
        """The table as one class is like the table, unless nothing is known in it."""
        if self.table_counts.any():
            return None
        main = self.model.main
        return (
            f"{self.model.name} with {main} = {getattr(self.model, main):g} compares distributions and '{self.attribute}' has "
            "no known value; drop the rule or fill the column"
        )

    def max_classes(self) -> int:
        """Every class needs `min_size` records with a known value."""
        return int(self.table_counts.sum()) // self.min_size()

    def min_size(self) -> int:
        """The smallest class whose values can have whole numbers of records."""
        return self.least_size()


def table_shares(column: Column) -> Floats:
    """The share of each code among the known values of the whole table."""
    shares = np.zeros(max(1, len(column.labels)))
    shares[: len(column.counts)] = column.counts / max(1, int(column.counts.sum()))
    return shares
