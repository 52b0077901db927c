"""(p, α)-sensitivity: at least p values with a total weight of at least α in every class (docs/models.md#p_alpha_sensitive)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from shoal.models.base import TOLERANCE, Attribute, Model, Rule, require_column, rounded, settled
from shoal.models.column import Column, Floats, Ints, own_values
from shoal.models.forms import Form, Weight
from shoal.models.p_plus_sensitive import category_of
from shoal.models.p_sensitive import DistinctRule
from shoal.models.parameters import Number, Whole, Word

SCOPES = ("rows", "distinct")


@dataclass(frozen=True)
class PAlphaSensitive(Model):
    """Every class has at least `p` distinct values, and weights that sum to at least `alpha`.

    Of m categories, most secret first, the i-th weighs (i − 1)/(m − 1); a value weighs what its category does and a
    missing one nothing. The sum runs over the records (`scope` "rows", the default) or the distinct values ("distinct")
    of the class.

    >>> import shoal
    >>> shoal.PAlphaSensitive(2, 1.5).scope
    'rows'
    """

    p: Annotated[int, Whole("distinct values in every class", 1)]
    alpha: Annotated[float, Number("total weight of every class", 0)]
    attribute: Attribute = None
    scope: Annotated[str, Word("what is weighed: the records, or each distinct value once", SCOPES)] = "rows"

    name: ClassVar[str] = "p_alpha_sensitive"
    persons: ClassVar[str] = "weighed"
    superset_closed: ClassVar[bool] = True
    union_closed: ClassVar[bool] = True
    main: ClassVar[str] = "p"

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        """Both scopes."""
        return cls(2, 1.5), cls(1, 3.0), cls(2, 1.5, scope="distinct")

    def bind(self, column: Column | None, n: int) -> Rule:
        """Count the attribute's own values, each with its category's weight."""
        return WeightRule(self, require_column(self, column), n)


class WeightRule(DistinctRule):
    """Distinct values and their weight. Weights are whole steps of 1/(m − 1), so sums are exact."""

    model: PAlphaSensitive

    def __init__(self, model: PAlphaSensitive, column: Column, n: int) -> None:
        super().__init__(model, column, own_values(column), n, model.p)
        category = category_of(model, column)
        self.rank = np.zeros(max(1, len(category)), dtype=np.int64)
        self.rank[: len(category)] = np.maximum(category, 0)
        self.steps = max(1, len(column.categories) - 1)

    def weights(self, counts: Ints) -> Floats:
        """Total weight per class."""
        weighed = counts if self.model.scope == "rows" else (counts > 0).astype(np.int64)
        return np.asarray((weighed @ self.rank) / self.steps)

    def deficit(self, sizes: Ints, counts: Ints) -> Floats:
        """How many values and how much weight are missing."""
        return super().deficit(sizes, counts) + settled(self.model.alpha - self.weights(counts))

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The smallest number of distinct values in a class; 0 where a class is too light for any p."""
        if len(counts) and self.weights(counts).min() < self.model.alpha - TOLERANCE:
            return 0.0
        return super().strongest(sizes, counts)

    def infeasible(self) -> str | None:
        """Neither more values than the table has, nor more weight: no class has more than all records."""
        total = float(self.weights(self.table_counts[None, :])[0])
        if total >= self.model.alpha - TOLERANCE:
            return super().infeasible()
        return (
            f"p_alpha_sensitive with alpha = {self.model.alpha:g} needs a total weight of {self.model.alpha:g} and "
            f"all of '{self.attribute}' weighs {total:.6g}; ask for alpha ≤ {rounded(total, up=False)}"
        )

    def max_classes(self) -> int:
        """m classes need the weight m·α, to which a value adds at most min(f_v, m) times its own.

        With scope "rows" it adds f_v times its own. Both sides are concave in m and equal at m = 0, so the
        possible m are all up to a largest one.
        """
        low, high = 0, super().max_classes()
        while low < high:
            middle = (low + high + 1) // 2
            if self._weight_for(middle) >= middle * (self.model.alpha - TOLERANCE):
                low = middle
            else:
                high = middle - 1
        return low

    def _weight_for(self, classes: int) -> float:
        frequencies = self.table_counts
        used = frequencies if self.model.scope == "rows" else np.minimum(frequencies, classes)
        return float(used @ self.rank) / self.steps

    def min_size(self) -> int:
        """As many of the heaviest records (or values) as reach α."""
        heaviest = np.sort(self.rank[self.table_counts > 0])[::-1] / self.steps
        if self.model.alpha <= TOLERANCE or not len(heaviest) or heaviest[0] <= 0:
            return super().min_size()
        if self.model.scope == "rows":
            needed = int(np.ceil((self.model.alpha - TOLERANCE) / heaviest[0]))
        else:
            needed = int(np.searchsorted(np.cumsum(heaviest), self.model.alpha - TOLERANCE)) + 1
        return max(self.p, needed)

    def forms(self) -> tuple[Form, ...]:
        """Distinct codes at least p, and ranks that sum to at least α·(m − 1)."""
        weight = Weight(float(self.model.alpha), self.rank, self.steps, once=self.model.scope == "distinct")
        return (*super().forms(), weight)
