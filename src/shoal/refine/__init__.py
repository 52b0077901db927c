"""The same policy with less loss: searches that start from any partition and never end worse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.space import Measure

Effort = bool | Literal["fast", "thorough"] | float


def refined(
    data: Microdata,
    rules: Rules,
    partition: Partition,
    *,
    objective: Measure,
    effort: Effort = True,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Partition:
    """The partition after a box search.

    Full-domain partitions publish one level a column and are left as they are; so are policies that no compiled loop knows.
    """
    if effort is False or partition.levels is not None or rules.flat() is None or partition.classes == 0:
        return partition
    from shoal.refine.box_search import box_search

    work: Literal["fast", "thorough"] | float = "fast" if effort is True else effort
    found = box_search(data.codes, data.space(objective), rules, partition, effort=work, seed=seed, progress=progress)
    return Partition(found.labels, None, {**partition.notes, "refined": {"by": "box_search", "effort": work}})
