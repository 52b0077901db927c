"""p-sensitivity: every class has at least p distinct values (docs/models.md#p_sensitive)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.models.base import (
    Column,
    Compiled,
    CompiledKind,
    Floats,
    Ints,
    Model,
    Rule,
    View,
    own_values,
    require,
    require_column,
)


@dataclass(frozen=True)
class PSensitive(Model):
    """Every class has at least `p` distinct values of the attribute (of every sensitive one by default)."""

    p: int
    attribute: str | None = None

    name: ClassVar[str] = "p_sensitive"
    superset_closed: ClassVar[bool] = True
    union_closed: ClassVar[bool] = True
    main: ClassVar[str] = "p"
    local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require("p_sensitive", "p", self.p, 1, whole=True)

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        """Two values and more."""
        return cls(2), cls(3)

    def bind(self, column: Column | None, n: int) -> Rule:
        """Count the attribute's own values."""
        column = require_column(self, column)
        return DistinctRule(self, column.name, own_values(column), n, self.p)


class DistinctRule(Rule):
    """At least p of the view's codes occur in each class. Missing values are no value."""

    def __init__(self, model: Model, attribute: str, view: View, n: int, p: int, counted: str = "values") -> None:
        super().__init__(model, attribute, view, n)
        self.p, self.counted = p, counted

    def deficit(self, sizes: Ints, counts: Ints) -> Floats:
        """How many values are missing: Hom for one attribute (docs/models.md#hom-and-div)."""
        return np.asarray(np.maximum(0.0, self.p - np.count_nonzero(counts, axis=1)))

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The smallest number of distinct values in a class."""
        return float(np.count_nonzero(counts, axis=1).min()) if len(counts) else float("nan")

    def infeasible(self) -> str | None:
        """Condition 1 (docs/models.md#condition-1): not more than the values that occur at all."""
        distinct = int(np.count_nonzero(self.table_counts))
        if distinct >= self.p:
            return None
        # Condition 1 has no way out for a column without any value: no p would do.
        way_out = f"ask for {self.model.main} ≤ {distinct}" if distinct else "drop the rule or fill the column"
        return (
            f"{self.model.name} with {self.model.main} = {self.p} needs {self.p} distinct {self.counted} of "
            f"'{self.attribute}' and the table has {distinct}; {way_out}"
        )

    def max_classes(self) -> int:
        """Condition 2 (docs/models.md#condition-2)."""
        return max_classes(self.table_counts, self.n, self.p)

    def min_size(self) -> int:
        """p records are needed for p values."""
        return self.p

    def compiled(self) -> Compiled:
        """Distinct codes at least p."""
        return Compiled(CompiledKind.DISTINCT, ints=(self.p,))


def max_classes(frequencies: Ints, n: int, p: int) -> int:
    """The largest m with Σ min(f_v, m) ≥ m·p: Condition 2 in its equivalent form (docs/models.md#condition-2).

    A class needs p different values, so m classes need m·p records of which no value gives more than m.
    Records with a missing value are no help, which is why n itself does not enter.
    """
    low, high = 0, int(frequencies.sum()) // max(p, 1)
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(frequencies, middle).sum()) >= middle * p:
            low = middle
        else:
            high = middle - 1
    return low
