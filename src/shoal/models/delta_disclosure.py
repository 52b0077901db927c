"""δ-disclosure privacy: a class tells little more about a value than the table does (docs/models.md#delta_disclosure)."""

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

ABSENT = ("allowed", "refused")

# Beyond this e^δ is no number that a computer has, and binds nothing anyway.
LARGEST = 700.0


@dataclass(frozen=True)
class DeltaDisclosure(Model):
    """In every class, |ln(share of a value in the class / in the table)| is below `delta`.

    Shares are of known values, and logarithms natural: ARX takes them to the base 2, where the same bound is `delta` / ln 2.
    A value of the table that a class does not have would be at −∞. Brickell & Shmatikov 2008 read literally refuse such a
    class, `absent` = "refused"; every class then has every value, and most tables become one class. By default, as in ARX
    and pyCANON, `absent` is "allowed": the ratios of the values that a class has are bound, those of the others are not, so
    that a reader may learn which values somebody does not have. A class without any known value fails.

    >>> import shoal
    >>> shoal.DeltaDisclosure(1.5).absent
    'allowed'
    """

    delta: Annotated[float, Number("largest change of the logarithm of a value's share", 0, above=True)]
    attribute: Attribute = None
    absent: Annotated[str, Word("whether a class may lack values that the table has", ABSENT)] = "allowed"

    name: ClassVar[str] = "delta_disclosure"
    persons: ClassVar[str] = "spread"
    superset_closed: ClassVar[bool] = False
    main: ClassVar[str] = "delta"
    smaller_is_stronger: ClassVar[bool] = True

    @property
    def union_closed(self) -> bool:
        """Shares of a merged class are means of the parts'; but a value that one part lacks may fall below its bound."""
        return self.absent == "refused"

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        """Both ways to take absent values."""
        return cls(0.7), cls(0.4), cls(1.2, absent="refused")

    def bind(self, column: Column | None, n: int) -> Rule:
        """Compare the attribute's values with those of the whole table."""
        return DisclosureRule(self, require_column(self, column), n)


class DisclosureRule(RelativeRule):
    """Shares strictly between those of the table divided and multiplied by e^δ."""

    model: DeltaDisclosure

    def __init__(self, model: DeltaDisclosure, column: Column, n: int) -> None:
        share = table_shares(column)
        there, factor = share > 0, float(exact.exp(min(model.delta, LARGEST)))
        # Equality is not enough; a share that is not beyond a bound by more than the tolerance is at it (`SharesRule`).
        lower = share / factor * (1 + TOLERANCE) + TOLERANCE
        upper = share * factor * (1 - TOLERANCE) - TOLERANCE
        bounds = Shares(
            np.where(there, lower, 0.0),
            np.where(there, upper, np.inf),
            of_known=True,
            everywhere=model.absent == "refused",
        )
        super().__init__(model, column, n, bounds)

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The largest change of a logarithm, which every larger δ allows; not a number where no δ does."""
        if not len(counts):
            return float("nan")
        lacking = (counts[:, self.share > 0] == 0).any() if self.model.absent == "refused" else False
        return float("nan") if lacking or (counts.sum(axis=1) == 0).any() else float(by_blocks(self._off, counts).max())

    def _off(self, counts: Ints) -> Floats:
        known = counts.sum(axis=1, keepdims=True)
        ratios = np.where(counts > 0, counts / known / np.where(self.share > 0, self.share, 1.0), 1.0)
        return np.asarray(np.abs(exact.log(ratios)).max(axis=1))

    def max_classes(self) -> int:
        """What `min_size` leaves; and every class has each value, where none may be absent."""
        most = super().max_classes()
        return most if self.model.absent == "allowed" else int(self.table_counts[self.share > 0].min(initial=most))
