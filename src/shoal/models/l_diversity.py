"""l-diversity: distinct, entropy and recursive (docs/models.md#l_diversity)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from shoal import exact
from shoal.errors import ConfigError
from shoal.models.base import TOLERANCE, Attribute, Model, Promise, Rule, by_blocks, require_column, rounded, settled
from shoal.models.column import Column, Floats, Ints, own_values
from shoal.models.conditions import max_classes
from shoal.models.forms import Entropy, Form, Recursive
from shoal.models.p_sensitive import DistinctRule
from shoal.models.parameters import Number, Word, require

VARIANTS = ("distinct", "entropy", "recursive")


@dataclass(frozen=True)
class LDiversity(Model):
    """Every class has at least `l` well-represented values.

    What makes values well represented is the `variant`:


    - "distinct" (the default): at least l different values;
    - "entropy": an entropy of at least ln l (l need not be whole);
    - "recursive", with `c`: r_1 < c·(r_l + … + r_m) for the frequencies r_1 ≥ … ≥ r_m. (Domingo-Ferrer et al. 2008
      print r_1 as the first summand on the right, with which the test is vacuous for c ≥ 1.)

    Frequencies are those of known values; a class without any known value is never diverse.

    >>> import shoal
    >>> print(shoal.LDiversity(3, "illness", variant="recursive", c=2.0))
    l_diversity(l = 3, variant = recursive, c = 2.0)
    """

    l: Annotated[float, Number("well-represented values in every class", 1)]  # noqa: E741 - the papers' symbol
    attribute: Attribute = None
    variant: Annotated[str, Word("what makes values well represented", VARIANTS)] = "distinct"
    c: Annotated[float | None, Number("for recursive: r_1 < c·(r_l + … + r_m)", 0, above=True)] = None

    name: ClassVar[str] = "l_diversity"
    union_closed: ClassVar[bool] = True
    main: ClassVar[str] = "l"
    local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require("l_diversity", "l", self.l, 1, whole=self.variant != "entropy")
        if self.variant == "recursive":
            require("l_diversity", "c", self.c, 0, above=True)
        elif self.c is not None:
            raise ConfigError(
                f'l_diversity: c = {self.c!r} belongs to variant = "recursive" and the variant is '
                f'"{self.variant}"; leave it out.'
            )

    @property
    def persons(self) -> str:  # type: ignore[override]
        """Distinct values by sets that meet everybody, the others by distributions."""
        return "distinct" if self.variant == "distinct" else "spread"

    @property
    def superset_closed(self) -> bool:
        """Only the distinct variant: more of one value lowers the entropy, and raises r_1."""
        return self.variant == "distinct"

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        """All variants."""
        return (
            cls(3),
            cls(2, variant="entropy"),
            cls(2.5, variant="entropy"),
            cls(2, variant="recursive", c=1.5),
            cls(3, variant="recursive", c=2.0),
            cls(1, variant="recursive", c=0.6),
        )

    def bind(self, column: Column | None, n: int) -> Rule:
        """The variant's rule on the attribute's own values."""
        column = require_column(self, column)
        if self.variant == "entropy":
            return EntropyRule(self, column, own_values(column), n)
        if self.variant == "recursive":
            return RecursiveRule(self, column, own_values(column), n)
        return DistinctRule(self, column, own_values(column), n, int(self.l))


class EntropyRule(Rule):
    """The entropy of a class against ln l. Its exponential is a number of equally frequent values."""

    model: LDiversity

    def deficit(self, sizes: Ints, counts: Ints) -> Floats:
        """How much entropy is missing, and 1 where no value is known at all."""
        unknown = counts.sum(axis=1) == 0
        return np.asarray(settled(float(exact.log(self.model.l)) - by_blocks(entropy, counts)) + unknown)

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The smallest exponential of a class's entropy; 0 where no value is known."""
        if not len(counts):
            return float("nan")
        return 0.0 if (counts.sum(axis=1) == 0).any() else float(exact.exp(by_blocks(entropy, counts).min()))

    def infeasible(self) -> str | None:
        """The table's entropy is at least the average of its classes' (concavity), so it must reach ln l too."""
        counts = self.table_counts[None, :]
        if self.deficit(np.array([self.n]), counts)[0] == 0:
            return None
        most = self.strongest(np.array([self.n]), counts)
        way_out = f"ask for l ≤ {rounded(most, up=False)}" if most else "drop the rule or fill the column"
        return (
            f"l_diversity (entropy) with l = {self.model.l:g} needs {self.model.l:g} equally frequent values of "
            f"'{self.attribute}' and the whole table has the entropy of {most:.6g}; {way_out}"
        )

    def max_classes(self) -> int:
        """An entropy of ln l takes at least l values: Condition 2 (docs/models.md#condition-2)."""
        return max_classes(self.table_counts, self.min_size())

    def min_size(self) -> int:
        """At least l values."""
        return max(1, math.ceil(self.model.l * (1 - 2 * TOLERANCE)))

    def promise(self) -> Promise | None:
        """An entropy of ln l takes at least l values."""
        return Promise(np.arange(len(self.table_counts)), self.min_size())

    def forms(self) -> tuple[Form, ...]:
        """Entropy at least ln l."""
        return (Entropy(float(exact.log(self.model.l))),)


class RecursiveRule(Rule):
    """The most frequent value against the least frequent ones."""

    model: LDiversity

    def deficit(self, sizes: Ints, counts: Ints) -> Floats:
        """How many values are missing, and how far r_1 is from staying below c·(r_l + … + r_m).

        Missing are records, at least one: equality is not enough.
        """
        return by_blocks(self._deficit, counts)

    def _deficit(self, counts: Ints) -> Floats:
        length, c = int(self.model.l), float(self.model.c or 0)
        ordered = -np.sort(-counts, axis=1)
        missing = np.maximum(0, length - np.count_nonzero(counts, axis=1))
        tail = ordered[:, length - 1 :].sum(axis=1)
        gap = ordered[:, 0] - c * tail
        return np.where(gap < -TOLERANCE * ordered.sum(axis=1), 0.0, missing + np.maximum(gap, 0) + 1)

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The largest l that holds in all classes with the same c; 0 when none does."""
        if not len(counts):
            return float("nan")
        ordered = -np.sort(-counts, axis=1)
        tails = ordered[:, ::-1].cumsum(axis=1)[:, ::-1]
        # Tails shrink as l grows, so the l that hold are all up to a largest one.
        holds = ordered[:, :1] - float(self.model.c or 0) * tails < -TOLERANCE * ordered.sum(axis=1)[:, None]
        return float(holds.sum(axis=1).min())

    def infeasible(self) -> str | None:
        """Merging good classes gives a good one, so the table itself must be good."""
        counts, sizes = self.table_counts[None, :], np.array([self.n])
        if self.deficit(sizes, counts)[0] == 0:
            return None
        most = self.strongest(sizes, counts)
        way_out = f"ask for l ≤ {most:.0f}" if most else "ask for a larger c"
        return (
            f"l_diversity (recursive) with l = {self.model.l} and c = {self.model.c:g} fails on the whole table: the "
            f"most frequent value of '{self.attribute}' occurs {int(counts.max())} times; {way_out}"
        )

    def max_classes(self) -> int:
        """At least l values a class: Condition 2 (docs/models.md#condition-2)."""
        by_values = max_classes(self.table_counts, int(self.model.l))
        return min(by_values, self.n // self.min_size())

    def min_size(self) -> int:
        """l − 1 records before the tail, and a tail above r_1/c ≥ 1/c."""
        return int(self.model.l) + math.floor(1 / float(self.model.c or 1))

    def promise(self) -> Promise | None:
        """The tail begins with the l-th value."""
        return Promise(np.arange(len(self.table_counts)), int(self.model.l))

    def forms(self) -> tuple[Form, ...]:
        """r_1 below c times the tail from r_l on."""
        return (Recursive(int(self.model.l), float(self.model.c or 0)),)


def entropy(counts: Ints) -> Floats:
    """-Σ (r/s) ln(r/s) per class, as ln s − Σ r ln r / s; 0 where nothing is known."""
    total = np.maximum(1, counts.sum(axis=1))
    if counts.size < total.max(
        initial=0
    ):  # few classes of many parts of persons: a table of all logarithms would be longer
        return np.asarray(exact.log(total) - (counts * exact.log(np.maximum(counts, 1))).sum(axis=1) / total)
    logs = exact.log(np.arange(1, int(total.max(initial=0)) + 1))
    return np.asarray(logs[total - 1] - (counts * logs[np.maximum(counts, 1) - 1]).sum(axis=1) / total)
