"""k-anonymity: every class has at least k records (docs/models.md#k_anonymity)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from shoal.models.base import Model, Rule
from shoal.models.column import Column, Floats, Ints
from shoal.models.forms import Form, Size
from shoal.models.parameters import Whole


@dataclass(frozen=True)
class KAnonymity(Model):
    """Every class has at least `k` records.

    >>> import shoal
    >>> print(shoal.KAnonymity(5) & shoal.PSensitive(3, "diagnosis"))
    k_anonymity(k = 5) & p_sensitive(p = 3) on diagnosis
    """

    k: Annotated[int, Whole("records in every class", 1)]

    name: ClassVar[str] = "k_anonymity"
    persons: ClassVar[str] = "shares"
    superset_closed: ClassVar[bool] = True
    union_closed: ClassVar[bool] = True
    main: ClassVar[str] = "k"
    local: ClassVar[bool] = True
    per_attribute: ClassVar[bool] = False

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        """Small and larger classes."""
        return cls(2), cls(5)

    @property
    def crowd(self) -> int:
        """k."""
        return self.k

    def bind(self, column: Column | None, n: int) -> Rule:
        """The rule for a table with n records; k-anonymity needs no sensitive attribute."""
        return SizeRule(self, None, None, n)


class SizeRule(Rule):
    """The size of a class against k."""

    model: KAnonymity

    def deficit(self, sizes: Ints, counts: Ints) -> Floats:
        """How many records are missing."""
        return np.maximum(0, self.model.k - sizes).astype(np.float64)

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The smallest class."""
        return float(sizes.min()) if len(sizes) else float("nan")

    def infeasible(self) -> str | None:
        """Fewer than k records in the table."""
        if self.n >= self.model.k:
            return None
        return (
            f"k = {self.model.k} needs at least {self.model.k} records and the table has {self.n}; ask for k ≤ {self.n}"
        )

    def max_classes(self) -> int:
        """⌊n / k⌋."""
        return self.n // self.model.k

    def min_size(self) -> int:
        """k."""
        return self.model.k

    def forms(self) -> tuple[Form, ...]:
        """Size at least k."""
        return (Size(self.model.k),)
