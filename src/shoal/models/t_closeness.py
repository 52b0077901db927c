"""t-closeness: every class distributes the sensitive attribute nearly as the table does (docs/models.md#t_closeness)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import ConfigError
from shoal.models.base import (
    TOLERANCE,
    Attribute,
    Model,
    Rule,
    by_blocks,
    leaves_of,
    require_column,
    settled,
)
from shoal.models.column import Column, Floats, Ints, occurring, own_values
from shoal.models.forms import Distance, Form
from shoal.models.parameters import Number, Word
from shoal.models.ranges import Ranges, prefixes, singles, subtrees

DISTANCES = ("equal", "ordered", "hierarchical")

# min_size looks at class sizes up to this one; a search without end would pay little.
SIZES = 4096


@dataclass(frozen=True)
class TCloseness(Model):
    """The earth mover's distance between a class and the table is at most `t`.

    The `distance` between values is "equal" (1), "ordered" (difference of ranks) or "hierarchical" (height of the
    lowest common ancestor), each at most 1; by default ordered for numbers and ordered labels, hierarchical where there
    is a taxonomy, else equal. Distributions are over known values; a class without any is at distance 1.

    >>> import shoal
    >>> shoal.TCloseness(1.5)
    Traceback (most recent call last):
    ...
    shoal.errors.ConfigError: t_closeness: t = 1.5 is not allowed; it must be a number between 0 and 1.
    """

    t: Annotated[float, Number("largest distance of a class to the table", 0, 1)]
    attribute: Attribute = None
    distance: Annotated[
        str | None, Word("how far values are apart; by the kind of the attribute if left out", DISTANCES)
    ] = None

    name: ClassVar[str] = "t_closeness"
    persons: ClassVar[str] = "spread"
    superset_closed: ClassVar[bool] = False
    union_closed: ClassVar[bool] = True
    main: ClassVar[str] = "t"
    smaller_is_stronger: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        """All distances."""
        return cls(0.3), cls(0.35, distance="equal"), cls(0.2, distance="ordered"), cls(0.25, distance="hierarchical")

    def bind(self, column: Column | None, n: int) -> Rule:
        """Count the attribute's own values, and compare with the counts of the whole table."""
        column = require_column(self, column)
        return ClosenessRule(self, column, n, self._ranges(column))

    def _ranges(self, column: Column) -> Ranges:
        codes, ordered = occurring(column), column.ordered or column.numbers is not None
        distance = self.distance
        if distance is None:
            distance = "ordered" if ordered else ("hierarchical" if column.taxonomy is not None else "equal")
        if distance == "equal":
            return singles(codes, 0.5)
        if distance == "ordered":
            if not ordered:
                raise ConfigError(
                    f"t_closeness: distance = \"ordered\" needs an order and the values of '{column.name}' have none; "
                    'use "equal", or "hierarchical" with a taxonomy.'
                )
            return prefixes(codes, 1 / max(1, len(codes) - 1))
        tree, leaves = leaves_of(self, column)
        return subtrees(codes, leaves[codes], tree, tree.height / (2 * max(1, int(tree.height[tree.root]))))


class ClosenessRule(Rule):
    """Earth mover's distances in closed form: Σ weight·|share in the class − share in the table| over ranges.

    Equal distance sums over single values with weight ½, ordered distance over prefixes with weight 1/(m − 1), and
    hierarchical distance over the values below each node but the root, weighing (height of its parent − its own)/(2H).
    docs/models.md#t_closeness derives it.
    """

    model: TCloseness

    def __init__(self, model: TCloseness, column: Column, n: int, ranges: Ranges) -> None:
        super().__init__(model, column, own_values(column), n)
        self.ranges = ranges
        self.known = int(self.table_counts.sum())
        self.target = ranges.sums(self.table_counts[None, :])[0] / max(1, self.known)

    def distances(self, counts: Ints) -> Floats:
        """Earth mover's distance of each class to the table."""
        return by_blocks(self._distances, counts)

    def _distances(self, counts: Ints) -> Floats:
        known = counts.sum(axis=1)
        shares = self.ranges.sums(counts) / np.maximum(known, 1)[:, None]
        return np.where(known > 0, exact.along(np.abs(shares - self.target), self.ranges.weight), 1.0)

    def deficit(self, sizes: Ints, counts: Ints) -> Floats:
        """How far the distance exceeds t."""
        return settled(self.distances(counts) - self.model.t)

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The largest distance of a class."""
        return float(self.distances(counts).max()) if len(counts) else float("nan")

    def infeasible(self) -> str | None:
        """The table as one class is at distance 0, unless nothing is known in it."""
        if self.known or self.model.t >= 1:
            return None
        return (
            f"t_closeness with t = {self.model.t:g} compares distributions and '{self.attribute}' has no known "
            "value; drop the rule or fill the column"
        )

    def max_classes(self) -> int:
        """Every class needs `min_size` records with a known value."""
        return self.n if self.model.t >= 1 else self.known // self.min_size()

    def min_size(self) -> int:
        """The smallest s at which whole numbers of records can come close enough.

        A range with the share Q in the table holds a whole number of the s known records, so it differs from Q by
        at least |s·Q − nearest integer| / s; the weighted sum of these is a lower bound on the distance.
        """
        if self.model.t >= 1 or not len(self.target):
            return 1
        limit, step = min(self.known, SIZES), max(1, 65_536 // len(self.target))
        for begin in range(1, limit + 1, step):
            sizes = np.arange(begin, min(begin + step, limit + 1))
            wanted = sizes[:, None] * self.target
            bound = exact.along(np.abs(wanted - np.rint(wanted)), self.ranges.weight) / sizes
            close = np.flatnonzero(bound <= self.model.t + 2 * TOLERANCE)
            if len(close):
                return int(sizes[close[0]])
        return max(1, limit)

    def exposed(self, sizes: Ints, lower: Ints, upper: Ints) -> NDArray[np.bool_]:
        """Groups that are further than t from the table however the values that are not certain fall.

        A range holds at least its certain values, and at most all but those of the others.
        """
        whole = np.maximum(sizes, 1)[:, None]
        inside = self.ranges.sums(lower)
        least, most = inside / whole, 1 - (lower.sum(axis=1, keepdims=True) - inside) / whole
        off = np.maximum(0.0, np.maximum(least - self.target, self.target - most))
        return np.asarray(exact.along(off, self.ranges.weight) > self.model.t + TOLERANCE)

    def forms(self) -> tuple[Form, ...]:
        """Weighted differences over ranges at most t."""
        return (Distance(float(self.model.t), self.ranges, self.target),)
