"""Relocation and box search in turns (ours), where a record can spoil the class it joins.

Priced relocation moves single records and minds what they use up; the box search moves groups, and leaves slack elsewhere. What
one has settled on is a new start for the other. On large tables relocation takes all of its time at once, and each has one turn;
small ones are settled in a fraction of it, and the rest is for further turns, as long as they gain something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal import exact
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import Progress
from shoal.refine.box_search import box_search
from shoal.refine.effort import RELOCATION_SECOND, Effort, nominal, relocation_budget
from shoal.refine.relocation import relocated
from shoal.space import Space

if TYPE_CHECKING:
    from shoal.refine.relocation import Codes

# Another turn follows one that lowered the loss by more than this share of it.
GAIN = 0.001
# What a turn is taken to be of all that is left: nobody knows how many there will be.
SHARE = 0.6


def in_turns(
    codes: Codes, space: Space, rules: Rules, partition: Partition, *, effort: Effort, seed: int, progress: Progress
) -> Partition:
    """The partition after as many turns as the time of one long relocation and one box search is enough for."""
    left = relocation_budget(effort)
    boxes = int(nominal(effort, partition.n, len(space.domains)) * RELOCATION_SECOND)
    found, before, turn, weight = partition, _loss(codes, space, partition), 0, SHARE / 2
    while True:
        with progress.stage(weight=weight) as part:
            found, used = relocated(codes, space, rules, found, budget=left, seed=seed + turn, progress=part)
        with progress.stage(weight=weight) as part:
            found = box_search(codes, space, rules, found, effort=effort, seed=seed + turn, progress=part)
        after = _loss(codes, space, found)
        # The first box search has a time of its own, like the relocation; later ones share what that has left.
        left -= used + (boxes if turn else 0)
        if before - after <= GAIN * before or left < used + boxes:
            progress(1.0)
            return found
        before, turn, weight = after, turn + 1, weight * (1 - SHARE)


def _loss(codes: Codes, space: Space, partition: Partition) -> float:
    """Of all classes together; suppressed records stay suppressed."""
    units = space.unit(space.states(codes, partition.order, partition.starts))
    return exact.weighed(partition.sizes, units)
