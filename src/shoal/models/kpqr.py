"""(k, p, q, r)-anonymity: classes with a rare value have p values and enough variance (docs/models.md#kpqr)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.models.base import TOLERANCE, Attribute, Model, Rule, require_column, settled
from shoal.models.column import Column, Floats, Ints, own_values
from shoal.models.conditions import max_classes
from shoal.models.forms import Form, Variance
from shoal.models.parameters import Number, Whole, Word
from shoal.models.variance import variance_for

REFERENCES = ("all", "rare")
SCOPES = ("required", "literal")


@dataclass(frozen=True)
class KPQR(Model):
    """A class with a rare value has at least `p` distinct values, and the share `r` of the reference variance.

    Rare is a value of less than the share `q` of all records. The `reference` is the variance of "all" records (the
    default), or of the "rare" ones as in the paper's procedure. The `scope` "required" (the default) tests the variance
    of the classes that are required to be diverse; "literal" that of every class with p or more values, as the
    definition's sentence reads. Variances are population variances over known values (`shoal.models.variance`). The k
    comes from k_anonymity.

    >>> import shoal
    >>> print(shoal.KPQR(3, 0.05, 0.5))
    kpqr(p = 3, q = 0.05, r = 0.5, reference = all, scope = required)
    """

    p: Annotated[int, Whole("distinct values in a class with a rare one", 1)]
    q: Annotated[float, Number("a value of less than this share of all records is rare", 0, 1)]
    r: Annotated[float, Number("share of the reference variance in a class with a rare value", 0, 1)]
    attribute: Attribute = None
    reference: Annotated[str, Word("whose variance is the reference: all records', or the rare ones'", REFERENCES)] = (
        "all"
    )
    scope: Annotated[str, Word("whose variance is tested: the classes with a rare value, or with p values", SCOPES)] = (
        "required"
    )

    name: ClassVar[str] = "kpqr"
    persons: ClassVar[str] = "mean"
    superset_closed: ClassVar[bool] = False
    union_closed: ClassVar[bool] = False
    # Which classes are tested depends on the fewest values of any.
    folds: ClassVar[bool] = False
    main: ClassVar[str] = "p"

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        """Both scopes."""
        return cls(2, 0.25, 0.5), cls(3, 0.25, 0.3), cls(2, 0.25, 0.6, scope="literal")

    def bind(self, column: Column | None, n: int) -> Rule:
        """Count the attribute's own values."""
        return RareRule(self, require_column(self, column), n)


class RareRule(Rule):
    """Distinct values and variance of the classes with rare values."""

    model: KPQR

    def __init__(self, model: KPQR, column: Column, n: int) -> None:
        super().__init__(model, column, own_values(column), n)
        frequencies = self.table_counts
        self.rare: NDArray[np.bool_] = (frequencies > 0) & (frequencies / max(1, n) < model.q - TOLERANCE)
        self.variance = variance_for(model, column)
        self.references = {
            "all": float(self.variance.of(frequencies[None, :])[0]),
            "rare": float(self.variance.of(np.where(self.rare, frequencies, 0)[None, :])[0]),
        }
        if self.references[model.reference] <= 0 < model.r and self.rare.any():
            warnings.warn(
                f"{self}: the reference records of '{column.name}' do not vary, so every class passes r = {model.r:g}.",
                stacklevel=2,
            )

    def obliged(self, counts: Ints) -> NDArray[np.bool_]:
        """Which classes hold a rare value."""
        return np.asarray((counts[:, self.rare] > 0).any(axis=1))

    def ratios(self, counts: Ints, reference: str | None = None) -> Floats:
        """Variance of each class over the reference variance; infinite where the reference does not vary."""
        of_reference = self.references[reference or self.model.reference]
        if of_reference <= 0:
            return np.full(len(counts), np.inf)
        return self.variance.of(counts) / of_reference

    def deficit(self, sizes: Ints, counts: Ints) -> Floats:
        """How many values and which share of the variance are missing."""
        distinct, obliged = np.count_nonzero(counts, axis=1), self.obliged(counts)
        missing = np.where(obliged, np.maximum(0, self.model.p - distinct), 0)
        tested = obliged if self.model.scope == "required" else distinct >= self.model.p
        return missing + np.where(tested, settled(self.model.r - self.ratios(counts)), 0.0)

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The fewest values in an obliged class, with the same q and r; 0 where no p would do.

        Where no class is obliged, all p hold, and the number of values in the table is reported.
        """
        if not len(counts):
            return float("nan")
        distinct, obliged = np.count_nonzero(counts, axis=1), self.obliged(counts)
        fewest = int(distinct[obliged].min(initial=np.count_nonzero(self.table_counts)))
        tested = obliged if self.model.scope == "required" else distinct >= fewest
        return 0.0 if (self.ratios(counts)[tested] < self.model.r - TOLERANCE).any() else float(fewest)

    def infeasible(self) -> str | None:
        """A rare record is in some class, and that class has no more values than the table."""
        distinct = int(np.count_nonzero(self.table_counts))
        if distinct >= self.model.p or not self.rare.any():
            return None
        return (
            f"kpqr with p = {self.model.p} needs {self.model.p} distinct values of '{self.attribute}' where a rare one "
            f"occurs and the table has {distinct}; ask for p ≤ {distinct}"
        )

    def _all_rare(self) -> bool:
        return int(self.table_counts[self.rare].sum()) == self.n

    def max_classes(self) -> int:
        """Condition 2 (docs/models.md#condition-2), where every record is rare and so every class is obliged."""
        return max_classes(self.table_counts, self.model.p) if self._all_rare() else self.n

    def min_size(self) -> int:
        """p, where every record is rare."""
        return self.model.p if self._all_rare() else 1

    def exposed(self, sizes: Ints, lower: Ints, upper: Ints) -> NDArray[np.bool_]:
        """Groups that certainly hold a rare value, among fewer than p possible ones."""
        return np.asarray(self.obliged(lower) & (np.count_nonzero(upper, axis=1) < self.model.p))

    def forms(self) -> tuple[Form, ...]:
        """Values and variance of the classes with rare values."""
        model = self.model
        variance = Variance(
            p=model.p,
            r=float(model.r),
            flagged=self.rare,
            reference=self.references[model.reference],
            numbers=self.variance.flat(),
            literal=model.scope == "literal",
        )
        return (variance,)
