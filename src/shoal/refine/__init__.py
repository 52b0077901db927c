"""The same policy with less loss: searches that start from any partition and never end worse."""

from __future__ import annotations

from typing import Literal

from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import Progress, Told
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
    progress: Told | None = None,
) -> Partition:
    """The partition after a search that fits the policy, the one of `partition` or less loss.

    Where a record can spoil the class it joins (t-closeness and its relatives) priced relocation comes first: it moves
    single records and minds what they use up, while the box search moves groups; small tables get several turns of both.
    Full-domain partitions publish one level a column and are left as they are. A policy with a model that compiled loops do
    not know (`Rule.forms`) is asked through NumPy, class by class: records with the same sensitive values change places,
    which no rule can notice, and classes are broken and split. The notes say so.
    """
    if effort is False or partition.levels is not None or partition.classes == 0:
        return partition
    if rules.entries is None:
        return _asked_class_by_class(data, rules, partition, objective, effort, seed, Progress.of(progress))
    from shoal.refine.box_search import box_search
    from shoal.refine.turns import in_turns

    work: Literal["fast", "thorough"] | float = "fast" if effort is True else effort
    codes, space, told = data.codes, data.space(objective), Progress.of(progress)
    if rules.superset_closed:
        by, found = ["box_search"], box_search(codes, space, rules, partition, effort=work, seed=seed, progress=told)
    else:
        # Seconds are for both.
        each = work / 2 if isinstance(work, (int, float)) else work
        by = ["relocate", "box_search"]
        found = in_turns(codes, space, rules, partition, effort=each, seed=seed, progress=told)
    note = {"by": by, "effort": work}
    return Partition(found.labels, None, {**partition.notes, "refined": note})


def _asked_class_by_class(
    data: Microdata,
    rules: Rules,
    partition: Partition,
    objective: Measure,
    effort: Effort,
    seed: int,
    progress: Progress,
) -> Partition:
    """The refinement of policies that compiled loops do not know; slower, and not as far."""
    from shoal.refine.il_optimization import il_optimization
    from shoal.refine.relocation import relocate

    work: Literal["fast", "thorough"] | float = "fast" if effort is True else effort
    space = data.space(objective)
    with progress.stage(weight=0.5) as part:
        swapped = relocate(data.codes, space, rules, partition, effort=work, seed=seed, progress=part)
    with progress.stage() as part:
        found = il_optimization(data.codes, space, rules, swapped, iterate=True, progress=part)
    unknown = [str(rule) for rule in rules.rules if rule.forms() is None]
    note = {
        "by": ["relocate", "il_optimization"],
        "effort": "fast" if effort is True else effort,
        "why": f"compiled loops do not know {', '.join(unknown)}: no record moves alone, and the box search is left out",
    }
    return Partition(found.labels, None, {**partition.notes, "refined": note})
