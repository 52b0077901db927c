"""k-member clustering (Byun et al. 2007): classes of k records grown greedily from far-apart seeds."""

from __future__ import annotations

from typing import Literal

import numpy as np

from shoal.algorithms.common import finish, grow_classes, require_one_class
from shoal.errors import ConfigError, shown
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import Progress
from shoal.space import Measure


def k_member(
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Progress,
    first: int | None = None,
    seed_from: Literal["last", "seed"] = "last",
) -> Partition:
    """Each class starts with the record furthest from the last one added and takes the cheapest records.

    Beyond k the class goes on with the record that lowers its deficit most; when none does, its records are left over.
    Left-overs join the class with the least added loss that stays good.

    `first` is the record that the first seed is furthest from (drawn with `seed` by default); `seed_from="seed"` measures
    from the previous seed instead of the record added last.
    """
    if first is not None and not 0 <= first < data.n:
        raise ConfigError(
            f"k_member: first = {shown(first)} is not allowed; it must be a record between 0 and {data.n - 1}."
        )
    require_one_class(rules, "k_member")
    if data.n <= rules.k:
        return finish(data, rules, np.zeros(data.n, dtype=np.int64), objective, progress)
    start = int(np.random.default_rng(seed).integers(data.n)) if first is None else first
    with progress.stage("growing classes", 0.9) as part:
        labels = grow_classes(
            data,
            rules,
            data.space(objective),
            first=start,
            start_there=False,
            diverse_first=False,
            from_seed=seed_from == "seed",
            weights=None,
            progress=part,
        )
    return finish(data, rules, labels, objective, progress)
