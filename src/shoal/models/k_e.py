"""(k, e)-anonymity: the numbers in every class span at least e (docs/models.md#k_e)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ConfigError
from shoal.models.base import TOLERANCE, Attribute, Model, Promise, Rule, require_column, settled
from shoal.models.column import Column, Floats, Ints, own_values
from shoal.models.conditions import max_classes
from shoal.models.forms import Distinct, Form, Range, Size
from shoal.models.parameters import Number, Whole, Word

COUNTS = ("rows", "distinct")


@dataclass(frozen=True)
class KE(Model):
    """In every class the largest sensitive number exceeds the smallest by at least `e`.

    With `k`, a class also has at least k records (`count` "rows", the default) or k distinct numbers ("distinct").
    Usually the number of records is left to k_anonymity. A class without any known number never spans e.

    >>> import shoal
    >>> shoal.KE(1000.0, "income", count="distinct", k=3).count
    'distinct'
    """

    e: Annotated[float, Number("how far the largest number of a class exceeds the smallest", 0)]
    attribute: Attribute = None
    count: Annotated[str, Word("what k counts: records, or distinct numbers", COUNTS)] = "rows"
    k: Annotated[int | None, Whole("records or distinct numbers in every class", 1)] = None

    name: ClassVar[str] = "k_e"
    persons: ClassVar[str] = "mean"
    superset_closed: ClassVar[bool] = True
    union_closed: ClassVar[bool] = True
    main: ClassVar[str] = "e"
    local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is None and self.count == "distinct":
            raise ConfigError('k_e: count = "distinct" needs k, the number of distinct values; add k = 2 or more.')

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        """Both ways to count, and none."""
        return cls(20.0), cls(15.0, count="rows", k=3), cls(20.0, count="distinct", k=3)

    @property
    def crowd(self) -> int:
        """k, of records or of distinct numbers."""
        return self.k or 1

    def bind(self, column: Column | None, n: int) -> Rule:
        """Count the attribute's own values, in ascending order."""
        column = require_column(self, column)
        if column.numbers is None:
            raise ConfigError(
                f"k_e needs numbers and '{column.name}' has none; name a column of numbers with attribute = \"…\"."
            )
        return RangeRule(self, column, n)


class RangeRule(Rule):
    """Largest minus smallest number against e."""

    model: KE

    def __init__(self, model: KE, column: Column, n: int) -> None:
        super().__init__(model, column, own_values(column), n)
        assert column.numbers is not None
        self.numbers = np.zeros(max(1, len(column.labels)))
        self.numbers[: len(column.labels)] = column.numbers

    def ranges(self, counts: Ints) -> Floats:
        """Largest minus smallest number per class; 0 where none is known."""
        present = counts > 0
        last = counts.shape[1] - 1 - present[:, ::-1].argmax(axis=1)
        return np.where(present.any(axis=1), self.numbers[last] - self.numbers[present.argmax(axis=1)], 0.0)

    def deficit(self, sizes: Ints, counts: Ints) -> Floats:
        """The missing share of e (all of it where no number is known), and the missing records or values."""
        scale = self.model.e or 1.0
        share = settled(1.0 - self.ranges(counts) / scale) if self.model.e else np.zeros(len(counts))
        share[counts.sum(axis=1) == 0] = 1.0
        return np.asarray(share + np.maximum(0, (self.model.k or 0) - self._counted(sizes, counts)))

    def _counted(self, sizes: Ints, counts: Ints) -> Ints:
        if self.model.count == "rows":
            return sizes
        return np.asarray(np.count_nonzero(counts, axis=1), dtype=np.int64)

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The smallest range of a class; not a number where a class misses k or has no known number."""
        short = (self._counted(sizes, counts) < (self.model.k or 0)) | (counts.sum(axis=1) == 0)
        return float("nan") if not len(counts) or short.any() else float(self.ranges(counts).min())

    def infeasible(self) -> str | None:
        """No class has a wider range, or more records or values, than the whole table."""
        counts, sizes, k = self.table_counts[None, :], np.array([self.n]), self.model.k or 0
        if not counts.sum():
            return f"k_e needs numbers and '{self.attribute}' has no known one; drop the rule or fill the column"
        available, widest = int(self._counted(sizes, counts)[0]), float(self.ranges(counts)[0])
        if available < k:
            counted = "records" if self.model.count == "rows" else f"distinct values of '{self.attribute}'"
            return f"k_e with k = {k} needs {k} {counted} and the table has {available}; ask for k ≤ {available}"
        if 1.0 - widest / (self.model.e or 1.0) > TOLERANCE and self.model.e:
            return (
                f"k_e with e = {self.model.e:g} needs a range of {self.model.e:g} and all of '{self.attribute}' "
                f"spans {widest:.12g}; ask for e ≤ {widest:.12g}"
            )
        return None

    def max_classes(self) -> int:
        """The largest number of disjoint pairs of records that are e apart, and what k leaves.

        m pairs exist iff the m smallest numbers can be matched in order with the m largest: any other
        matching of low ends with high ends can be uncrossed into that one.
        """
        classes = self.n if self.model.k is None else self.n // self.model.k
        if self.model.count == "distinct":
            classes = max_classes(self.table_counts, self.model.k or 1)
        values = np.repeat(self.numbers, self.table_counts)
        if not self.model.e:
            return min(classes, len(values))
        low, high = 0, min(classes, len(values) // 2)
        apart = self.model.e * (1 - 2 * TOLERANCE)
        while low < high:
            middle = (low + high + 1) // 2
            if (values[len(values) - middle :] - values[:middle] >= apart).all():
                low = middle
            else:
                high = middle - 1
        return low

    def min_size(self) -> int:
        """k, and two records where a range is asked for."""
        return max(self.model.k or 1, 2 if self.model.e else 1)

    def promise(self) -> Promise | None:
        """k distinct numbers, where these are counted."""
        if self.model.count != "distinct":
            return None
        return Promise(np.arange(len(self.table_counts)), self.model.k or 1)

    def exposed(self, sizes: Ints, lower: Ints, upper: Ints) -> NDArray[np.bool_]:
        """Groups whose possible numbers lie closer together than e."""
        known = (lower > 0).any(axis=1)
        return np.asarray(known & (self.ranges(upper) < self.model.e * (1 - TOLERANCE)))

    def forms(self) -> tuple[Form, ...]:
        """Last minus first number that occurs at least e; records or values at least k."""
        spans = Range(float(self.model.e), self.numbers)
        if self.model.k is None:
            return (spans,)
        return (Size(self.model.k) if self.model.count == "rows" else Distinct(self.model.k), spans)
