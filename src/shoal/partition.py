"""Partition: which record is in which class, and nothing else.

Label -1 marks a suppressed record. Classes are numbered 0, 1, … without gaps, in the order an algorithm made them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InternalError

Labels = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Partition:
    """Labels of all records; `levels` are the chosen full-domain levels where an algorithm has them."""

    labels: Labels
    levels: tuple[int, ...] | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        labels = np.ascontiguousarray(self.labels, dtype=np.int32)
        if len(labels) and (labels.min() < -1 or len(np.unique(labels[labels >= 0])) != labels.max() + 1):
            raise InternalError("a partition's labels must be -1 (suppressed) or 0, 1, … without gaps")
        labels.flags.writeable = False
        object.__setattr__(self, "labels", labels)

    @classmethod
    def of_classes(cls, classes: Iterable[Sequence[int]], n: int, **more: Any) -> Partition:
        """From lists of record indices; records in no list are suppressed."""
        labels = np.full(n, -1, dtype=np.int32)
        for index, members in enumerate(classes):
            labels[np.asarray(members, dtype=np.int64)] = index
        return cls(labels, **more)

    @classmethod
    def compact(cls, labels: NDArray[np.integer[Any]], **more: Any) -> Partition:
        """From labels with gaps, keeping their order."""
        kept = np.unique(labels[labels >= 0])
        dense = np.searchsorted(kept, labels).astype(np.int32)
        return cls(np.where(labels >= 0, dense, np.int32(-1)).astype(np.int32), **more)

    @property
    def n(self) -> int:
        """Number of records, suppressed ones included."""
        return len(self.labels)

    @cached_property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.labels.max()) + 1 if len(self.labels) else 0

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Records per class."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.classes).astype(np.int64)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Records class by class, by index inside a class; suppressed ones left out."""
        order = np.argsort(self.labels, kind="stable")
        return np.asarray(order[np.count_nonzero(self.labels < 0) :], dtype=np.int64)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each class begins in `order`."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)[: self.classes]

    @cached_property
    def suppressed(self) -> int:
        """Number of suppressed records."""
        return int(np.count_nonzero(self.labels < 0))

    def members(self) -> list[NDArray[np.int64]]:
        """Record indices of each class."""
        return np.split(self.order, self.starts[1:]) if self.classes else []
