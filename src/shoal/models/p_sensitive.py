"""p-sensitivity: every class has at least p distinct values of each sensitive attribute (docs/models.md#p_sensitive)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from shoal.models.base import Attribute, Model, Promise, Rule, require_column
from shoal.models.column import Column, Floats, Ints, View, own_values
from shoal.models.conditions import max_classes
from shoal.models.forms import Distinct, Form
from shoal.models.parameters import Whole


@dataclass(frozen=True)
class PSensitive(Model):
    """Every class has at least `p` distinct values of the attribute (of every sensitive one by default).

    >>> import shoal
    >>> shoal.PSensitive(3, "diagnosis").parameters()
    {'p': 3, 'attribute': 'diagnosis'}
    """

    p: Annotated[int, Whole("distinct values in every class", 1)]
    attribute: Attribute = None

    name: ClassVar[str] = "p_sensitive"
    persons: ClassVar[str] = "distinct"
    superset_closed: ClassVar[bool] = True
    union_closed: ClassVar[bool] = True
    main: ClassVar[str] = "p"
    local: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        """Two values and more."""
        return cls(2), cls(3)

    def bind(self, column: Column | None, n: int) -> Rule:
        """Count the attribute's own values."""
        column = require_column(self, column)
        return DistinctRule(self, column, own_values(column), n, self.p)


class DistinctRule(Rule):
    """At least p of the view's codes occur in each class. Missing values are no value."""

    def __init__(self, model: Model, column: Column, view: View, n: int, p: int, counted: str = "values") -> None:
        super().__init__(model, column, view, n)
        self.p, self.counted = p, counted

    def deficit(self, sizes: Ints, counts: Ints) -> Floats:
        """How many values are missing: Hom (docs/models.md#hom-and-div) of one attribute."""
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
        return max_classes(self.table_counts, self.p)

    def min_size(self) -> int:
        """p records are needed for p values."""
        return self.p

    def promise(self) -> Promise | None:
        """p of the view's codes."""
        assert self.view is not None
        return Promise(self.view.grouped(), self.p)

    def forms(self) -> tuple[Form, ...]:
        """Distinct codes at least p."""
        return (Distinct(self.p),)
