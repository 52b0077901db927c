"""What the classes of a partition publish, in codes: the tight state of each, or the nodes of the levels that were chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.space import Space, States, Tree


@dataclass(frozen=True, eq=False)
class Members:
    """What the classes are made of, class by class: rows of codes, the class of each and how many records it stands for."""

    codes: NDArray[np.int32]
    labels: NDArray[np.int32]
    weights: NDArray[np.int64] | None

    def states(self, space: Space) -> States:
        """The tight state of each class."""
        sizes = np.bincount(self.labels, minlength=1)
        starts = np.cumsum(sizes) - sizes
        return space.states(self.codes, np.arange(len(self.labels)), starts if len(self.labels) else starts[:0])


def members(data: Microdata, partition: Partition) -> Members:
    """The distinct tuples, where no two equal records are in different classes; else the records one by one."""
    points = data.points
    owner = np.full(len(points.weights), -1, dtype=np.int32)
    owner[points.of_record] = partition.labels
    if np.array_equal(owner[points.of_record], partition.labels):
        order = np.argsort(owner, kind="stable")[np.count_nonzero(owner < 0) :]
        return Members(points.codes[order], owner[order], points.weights[order])
    return Members(data.codes[partition.order], partition.labels[partition.order], None)


def class_states(data: Microdata, partition: Partition, space: Space) -> States:
    """What each class publishes: its tight state, or the nodes of the chosen levels where there are levels."""
    states = members(data, partition).states(space)
    if partition.levels is None:
        return states
    for a, (domain, level) in enumerate(zip(space.domains, partition.levels, strict=True)):
        if isinstance(domain, Tree):
            slot = int(space.slots[a])
            nodes = domain.taxonomy.ancestors_at(level)[states[:, slot]]
            states[:, slot] = domain.taxonomy.first[nodes]
            states[:, slot + 1] = domain.taxonomy.last[nodes]
    return states
