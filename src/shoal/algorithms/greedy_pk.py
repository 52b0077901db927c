"""GreedyPKClustering (Campan et al. 2007; docs/algorithms.md#greedy_pk): the baseline of Truta et al. 2007.

Classes are grown one after the other, diversity first. It is fast and loses little while p is small; near its end the rare
sensitive values are used up, and with a large p many records have to be dispersed.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from shoal.algorithms.common import diversity_weights, finish, grow_classes, require_one_class
from shoal.errors import ConfigError, shown
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import Progress
from shoal.space import Measure


def greedy_pk(
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Progress,
    first: int | None = None,
    weights: Literal["equal", "inverse_cardinality"] = "equal",
) -> Partition:
    """Each class takes the records that add most diversity, the cheapest of these, then the cheapest until it has k.

    The first class starts with the record `first` (drawn with `seed` by default), each later one with the record furthest
    from the seed before. Records of a class that cannot be finished are dispersed to the best classes. For rules other
    than p-sensitivity and its relatives, diversity is the decrease of their deficit (docs/algorithms.md#any-policy).
    """
    share = diversity_weights(rules, weights)
    if first is not None and not 0 <= first < data.n:
        raise ConfigError(
            f"greedy_pk: first = {shown(first)} is not allowed; it must be a record between 0 and {data.n - 1}."
        )
    require_one_class(rules, "greedy_pk")
    start = int(np.random.default_rng(seed).integers(data.n)) if first is None else first
    with progress.stage("growing classes", 0.9) as part:
        labels = grow_classes(
            data,
            rules,
            data.space(objective),
            first=start,
            start_there=True,
            diverse_first=True,
            from_seed=True,
            weights=share,
            progress=part,
        )
    dispersed = int(np.count_nonzero(labels < 0))
    return finish(data, rules, labels, objective, progress, dispersed=dispersed)
