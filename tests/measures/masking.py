"""Masked tables for tests, made of any partition without an algorithm."""

from __future__ import annotations

import numpy as np
import polars as pl

import shoal
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.release import mask
from shoal.road import published_classes
from shoal.space import States


def partition_of(seed: int, n: int, classes: int, suppressed: int = 0) -> Partition:
    """Random classes, the first records suppressed."""
    labels = np.random.default_rng(seed).integers(0, classes, n)
    labels[:suppressed] = -1
    return Partition.compact(labels)


def masked_of(
    data: Microdata,
    partition: Partition,
    *,
    intervals: str = "text",
    recode: str = "generalize",
    drop: bool = False,
    shuffle: bool = True,
) -> tuple[pl.DataFrame, Partition, States]:
    """What would be published, with the classes and states it has after equal ones were joined."""
    rules = data.rules(Policy((shoal.KAnonymity(1),)))
    joined, states = published_classes(data, partition, rules, data.space("il"))
    table, _ = mask(
        data,
        joined,
        states,
        recode=recode,
        intervals=intervals,  # type: ignore[arg-type]
        drop_suppressed=drop,
        shuffle_seed=3 if shuffle else None,
    )
    return table, joined, states
