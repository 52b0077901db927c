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

# A table by label is faster than sorting, as long as it is not much longer than the labels.
ROOM = 8


@dataclass(frozen=True, eq=False)
class Partition:
    """Which record is in which class, and nothing else. Algorithms make one; `of_classes` and `compact` make one by hand.

    - `labels`: the class of each record, 0, 1, … without gaps; -1 for a suppressed record.
    - `levels`: the level of each attribute where an algorithm chose full-domain levels; None by default.
    - `notes`: what an algorithm has to say about how it came to this; empty by default.

    >>> import numpy as np
    >>> from shoal import Partition
    >>> partition = Partition.of_classes([[0, 2], [1, 3]], n=5)
    >>> partition.labels.tolist(), partition.sizes.tolist(), partition.suppressed
    ([0, 1, 0, 1, -1], [2, 2], 1)
    >>> [members.tolist() for members in partition.members()]
    [[0, 2], [1, 3]]
    >>> Partition.compact(np.array([7, 3, 7])).labels.tolist()
    [1, 0, 1]
    """

    labels: Labels
    levels: tuple[int, ...] | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        labels = np.ascontiguousarray(self.labels, dtype=np.int32)
        if not _without_gaps(labels):
            raise InternalError("a partition's labels must be -1 (suppressed) or 0, 1, … without gaps")
        labels.flags.writeable = False
        object.__setattr__(self, "labels", labels)

    @classmethod
    def of_classes(cls, classes: Iterable[Sequence[int]], n: int, **more: Any) -> Partition:
        """From `classes`, lists of record numbers, of a table of `n` records; records in no list are suppressed.

        `more` is `levels` and `notes`. Returns the partition.
        """
        labels = np.full(n, -1, dtype=np.int32)
        for index, members in enumerate(classes):
            labels[np.asarray(members, dtype=np.int64)] = index
        return cls(labels, **more)

    @classmethod
    def compact(cls, labels: NDArray[np.integer[Any]], **more: Any) -> Partition:
        """From `labels` with gaps, keeping their order; `more` is `levels` and `notes`. Returns the partition."""
        largest = int(labels.max(initial=-1))
        if largest < ROOM * max(1, len(labels)) and labels.min(initial=-1) == -1:
            used = np.zeros(largest + 2, dtype=bool)
            used[labels] = True
            used[-1] = False  # where label -1 lands
            dense = np.cumsum(used) - 1
            dense[-1] = -1
            return cls(dense[labels].astype(np.int32), **more)
        kept = np.unique(labels[labels >= 0])
        found = np.searchsorted(kept, labels).astype(np.int32)
        return cls(np.where(labels >= 0, found, np.int32(-1)).astype(np.int32), **more)

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
        """The record numbers of each class, ascending."""
        return np.split(self.order, self.starts[1:]) if self.classes else []


def _without_gaps(labels: Labels) -> bool:
    if len(labels) == 0:
        return True
    low, high = int(labels.min()), int(labels.max())
    if low < -1 or high >= len(labels):
        return False
    used = np.zeros(high + 2, dtype=bool)
    used[labels] = True
    return bool(used[: high + 1].all())
