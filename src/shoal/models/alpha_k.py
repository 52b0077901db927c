"""(α, k)-anonymity: no sensitive value has more than the share α of a class (docs/models.md#alpha_k)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from shoal.errors import ConfigError, like, raw, shown
from shoal.models.base import TOLERANCE, Attribute, Model, Rule, require_column, rounded
from shoal.models.column import Column, Ints
from shoal.models.forms import Shares
from shoal.models.parameters import Share, Texts
from shoal.models.shares import SharesRule


@dataclass(frozen=True)
class AlphaK(Model):
    """In every class, each value (or each of `values`) has at most the share `alpha` of the records.

    Records with a missing value count in the class, so they lower the shares. The k comes from k_anonymity.

    >>> import shoal
    >>> shoal.AlphaK(0.5, "illness", values=["HIV"]).values
    ('HIV',)
    """

    alpha: Annotated[float, Share("largest share of a value in a class")]
    attribute: Attribute = None
    values: Annotated[
        Sequence[str] | None,
        Texts(
            "the values that are protected; all if left out",
            "a list of sensitive values, or left out to protect them all",
        ),
    ] = None

    name: ClassVar[str] = "alpha_k"
    persons: ClassVar[str] = "shares"
    superset_closed: ClassVar[bool] = False
    union_closed: ClassVar[bool] = True
    main: ClassVar[str] = "alpha"
    smaller_is_stronger: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.values is not None:
            object.__setattr__(self, "values", tuple(str(value) for value in self.values))

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        """Shares with and without a finite decimal."""
        return cls(0.5), cls(1 / 3)

    def bind(self, column: Column | None, n: int) -> Rule:
        """Count the attribute's own values."""
        column = require_column(self, column)
        upper = np.full(max(1, len(column.labels)), float(self.alpha))
        if self.values is not None:
            known = set(column.labels) | set(column.taxonomy.leaf_codes if column.taxonomy else ())
            for value in self.values:
                # A misspelt value would protect nobody, and nothing would show it.
                if value not in known:
                    raise ConfigError(
                        f"alpha_k: {shown(value)} of values is no value of '{column.name}'; "
                        f"{like(str(value), column.labels)}"
                    )
            free = [label not in self.values for label in column.labels]
            upper[: len(column.labels)][free] = np.inf
        return AlphaRule(self, column, n, Shares.at_most(upper))


class AlphaRule(SharesRule):
    """Shares of the protected values against α."""

    model: AlphaK

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The largest share of a protected value in a class."""
        return float(self.shares(sizes, counts).max(initial=0)) if len(sizes) else float("nan")

    def infeasible(self) -> str | None:
        """c_v ≤ α·size in all classes adds up to f_v ≤ α·n."""
        frequencies = np.where(self.bounds.minded, self.table_counts, 0)
        value = int(frequencies.argmax())
        share = int(frequencies[value]) / max(1, self.n)
        if share <= self.model.alpha + TOLERANCE:
            return None
        return (
            f"alpha_k with alpha = {self.model.alpha:g} allows no value in more than {self.model.alpha:g} of the "
            f"records, and {share:.6g} of them have {raw(self.labels[value], 'one value')} as '{self.attribute}'; "
            f"ask for alpha ≥ {rounded(share, up=True)}"
        )

    def max_classes(self) -> int:
        """⌊n / ⌈1/α⌉⌋ where every class needs ⌈1/α⌉ records."""
        return self.n // self.min_size()

    def min_size(self) -> int:
        """⌈1/α⌉, where every record has a protected value: one of them alone has the share 1/size."""
        if int(self.table_counts[self.bounds.minded].sum()) < self.n:
            return 1
        return math.ceil(1 / (self.model.alpha + TOLERANCE))
