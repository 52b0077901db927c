"""β-likeness: no value gains much in a class over its share of the table (docs/models.md#beta_likeness)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from shoal import exact
from shoal.models.base import TOLERANCE, Attribute, Model, Rule, by_blocks, require_column
from shoal.models.column import Column, Floats, Ints
from shoal.models.forms import Shares
from shoal.models.parameters import Number, Word
from shoal.models.shares import RelativeRule, table_shares

VARIANTS = ("basic", "enhanced")


@dataclass(frozen=True)
class BetaLikeness(Model):
    """In every class, no value's share exceeds its share p of the table by more than `beta` times p.

    With the `variant` "basic" (the default) the relative gain (q − p)/p of each value is at most β, with "enhanced" also at most
    −ln p, which keeps frequent values from becoming certain: q ≤ p·(1 − ln p) < 1 where p < 1. Shares are of known
    values; a value that falls, or is absent, gains nothing. A class without any known value fails.

    >>> import shoal
    >>> shoal.BetaLikeness(1.0, "illness", variant="enhanced").main
    'beta'
    """

    beta: Annotated[float, Number("largest relative gain of a value", 0, above=True)]
    attribute: Attribute = None
    variant: Annotated[str, Word("whether gains are also bound by −ln p", VARIANTS)] = "basic"

    name: ClassVar[str] = "beta_likeness"
    persons: ClassVar[str] = "spread"
    superset_closed: ClassVar[bool] = False
    union_closed: ClassVar[bool] = True
    main: ClassVar[str] = "beta"
    smaller_is_stronger: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        """Both variants."""
        return cls(1.0), cls(0.5), cls(1.5, variant="enhanced")

    def bind(self, column: Column | None, n: int) -> Rule:
        """Compare the attribute's values with those of the whole table."""
        return LikenessRule(self, require_column(self, column), n)


class LikenessRule(RelativeRule):
    """Shares of at most (1 + gain) times those of the table."""

    model: BetaLikeness

    def __init__(self, model: BetaLikeness, column: Column, n: int) -> None:
        share = table_shares(column)
        there = share > 0
        self.limit = np.full(len(share), np.inf)
        """What a value may gain whatever β is."""
        if model.variant == "enhanced":
            self.limit = np.where(there, -exact.log(np.where(there, share, 1.0)), np.inf)
        # Equal within the tolerance, relative to the bound, is allowed (`SharesRule` adds the absolute one).
        upper = share * (1 + np.minimum(float(model.beta), self.limit)) * (1 + TOLERANCE) - TOLERANCE
        super().__init__(model, column, n, Shares.at_most(np.where(there, upper, np.inf), of_known=True))

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The largest relative gain; not a number where a value gains more than any β allows."""
        if not len(counts) or (counts.sum(axis=1) == 0).any():
            return float("nan")
        return float(by_blocks(self._gain, counts).max())

    def _gain(self, counts: Ints) -> Floats:
        there = self.share > 0
        shares = counts[:, there] / counts.sum(axis=1, keepdims=True)
        gains = np.maximum(shares / self.share[there] - 1, 0.0)
        beyond = (gains > self.limit[there] + TOLERANCE).any(axis=1)
        return np.where(beyond, np.nan, gains.max(axis=1, initial=0.0))
