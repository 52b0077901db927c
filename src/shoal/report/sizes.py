"""The sizes of classes, counted: all that a report says of them, however many classes there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sizes:
    """How many classes there are of each size.

    >>> sizes = Sizes.of(np.array([5, 2, 2]))
    >>> sizes.smallest, sizes.largest, sizes.records, sizes.within(2, 4), sizes.many(2, 4), sizes.alone, sizes.median
    (2, 5, 9, 4, 2, 0, 5.0)
    """

    each: Ints
    """The sizes that occur, the smallest first."""
    classes: Ints

    @classmethod
    def of(cls, sizes: NDArray[np.integer]) -> Sizes:
        """From the size of each class."""
        each, classes = np.unique(sizes, return_counts=True)
        return cls(each.astype(np.int64), classes.astype(np.int64))

    @classmethod
    def counted(cls, classes: Mapping[int, int]) -> Sizes:
        """From how many classes have each size."""
        each = sorted(classes)
        return cls(np.array(each, dtype=np.int64), np.array([classes[size] for size in each], dtype=np.int64))

    @property
    def smallest(self) -> int:
        """Of all classes."""
        return int(self.each[0])

    @property
    def largest(self) -> int:
        """Of all classes."""
        return int(self.each[-1])

    @property
    def records(self) -> int:
        """In all classes."""
        return int((self.each * self.classes).sum())

    @property
    def alone(self) -> int:
        """Records that are a class by themselves."""
        return self.within(1, 1)

    def within(self, low: int, high: int) -> int:
        """Records in classes of these sizes."""
        inside = (self.each >= low) & (self.each <= high)
        return int((self.each * self.classes)[inside].sum())

    def many(self, low: int, high: int) -> int:
        """Classes of these sizes."""
        return int(self.classes[(self.each >= low) & (self.each <= high)].sum())

    @property
    def median(self) -> float:
        """The size of the class of the middle record; between two of them, their mean."""
        ends = np.cumsum(self.each * self.classes)
        middle = [(self.records - 1) // 2, self.records // 2]
        return float(self.each[np.searchsorted(ends, middle, side="right")].mean())
