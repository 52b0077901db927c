"""p-sensitive k-anonymous microaggregation (Solanas et al. 2008), which Domingo-Ferrer et al. 2008 compare with."""

from __future__ import annotations

from typing import Literal

import numpy as np

from shoal.algorithms.features import feature_matrix, finish_groups, last_resort
from shoal.algorithms.mdav import Growth
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import Progress
from shoal.space import Measure


def p_mdav(
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Progress,
    init: Literal["random", "farthest", "order"] = "random",
) -> Partition:
    """A group takes the records nearest to its seed that bring a new sensitive value, then the nearest ones up to k.

    New is a value of any attribute that has fewer than p values in the group. Seeds are drawn at random, or are the
    record `farthest` from the mean of those that are left, or the first one in the table's `order`. Left-over
    records join the group with the nearest mean. Other rules are met as `mdav` meets them.
    """
    resort = last_resort(rules, "p_mdav")
    X, growth, every = feature_matrix(data, progress), Growth(rules), np.arange(data.n)
    orders = {"random": np.random.default_rng(seed).permutation(data.n), "order": every}
    with progress.stage("forming groups", 0.9) as part:
        labels = growth.groups(X, every, growth.k, part, order=orders.get(init), diverse_first=True)
    return finish_groups(data, rules, X, labels, resort, progress)
