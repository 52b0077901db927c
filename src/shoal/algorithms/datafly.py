"""Datafly: generalize the attribute with the most values, level by level, until few enough records are left over.

Sweeney 2002; compared with in Sarrafi Aghdam & Sonehara 2013; docs/algorithms.md#datafly. Classes are tested with the
policy itself, so any policy works that all records together satisfy.

>>> import polars as pl, shoal
>>> frame = pl.DataFrame({"age": [21, 24, 25, 43, 48, 49], "sex": ["M", "F", "M", "F", "F", "M"]})
>>> age = {"role": "quasi", "taxonomy": {"intervals": [10]}}
>>> data = shoal.Microdata.from_frame(frame, {"age": age, "sex": {"role": "quasi"}})
>>> found = datafly(data, data.rules(shoal.Policy((shoal.KAnonymity(2),))))
>>> found.levels, found.labels.tolist(), found.notes["steps"]
((1, 0), [0, -1, 0, 1, 1, -1], ['age'])
"""

from __future__ import annotations

import numpy as np

from shoal.algorithms.common import require_one_class
from shoal.algorithms.levels import (
    Frequencies,
    Masked,
    Node,
    full_domain,
    good_groups,
    kept_groups,
    partition_at,
    require_masked,
    rolled_up,
    table_frequencies,
)
from shoal.errors import ConfigError, shown
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import Progress
from shoal.space import Measure


def datafly(
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Progress | None = None,
    allowed: int | None = None,
    threshold: int | None = None,
    masked: Masked = "absorb",
) -> Partition:
    """Generalize until at most `threshold` records (default: the policy's smallest class) are in classes that fail.

    These are suppressed; `allowed` is how many records may be at the very most. Published masked they are a class too:
    where they are not a good one, the smallest good class that makes them one is suppressed with them, and where there is
    none, generalization goes on. With `masked = "drop"` they are to be left out of the release and need not be a good
    class.
    """
    if threshold is not None and threshold < 0:
        raise ConfigError(
            f"datafly: threshold = {shown(threshold)} is not allowed; it must be a whole number of records."
        )
    require_masked("datafly", masked, rules)
    require_one_class(rules, "datafly")
    told = Progress.of(progress)
    most = data.n if allowed is None else allowed
    if threshold is None:
        threshold = rules.k if allowed is None else allowed
    threshold = min(threshold, most)
    levels = full_domain(data)
    every = range(len(levels.heights))
    node: Node = (0,) * len(levels.heights)
    frequencies = table_frequencies(data, rules)
    steps: list[str] = []
    while True:
        good = good_groups(frequencies, rules, threshold)
        kept = None if good is None else kept_groups(frequencies, rules, good, masked, most)
        if kept is not None:
            break
        # The top is one class with all records, which is good: there is always an attribute left here.
        a = _most_values(frequencies, node, levels.heights)
        above = (*node[:a], node[a] + 1, *node[a + 1 :])
        frequencies = rolled_up(frequencies, levels, rules, every, node, above)
        node = above
        steps.append(data.quasi[a])
        told(sum(node) / sum(levels.heights))
    notes = {"levels": dict(zip(data.quasi, node, strict=True)), "steps": steps, "masked": masked}
    return partition_at(data, levels, node, kept, notes)


def _most_values(frequencies: Frequencies, node: Node, heights: Node) -> int:
    """The attribute with the most different values among those below their top; the first of equals."""
    open_ones = [a for a, height in enumerate(heights) if node[a] < height]
    return max(open_ones, key=lambda a: len(np.unique(frequencies.codes[:, a])))
