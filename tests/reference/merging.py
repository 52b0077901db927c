"""The least loss of the partitions that whole classes can make, by trying all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

Multiset = Mapping[int, int]


def least(
    amounts: Multiset, classes: Sequence[tuple[Multiset, Fraction]], alone: Mapping[int, Fraction], k: int
) -> Fraction | float:
    """Points with so many records each, classes with their losses, and points that may stand alone at a loss a record.

    Infinite when the classes do not fit together.
    """
    open_points = sorted(point for point, amount in amounts.items() if amount > 0)
    if not open_points:
        return Fraction(0)
    first = open_points[0]
    found: list[Fraction | float] = [math.inf]
    for number, (members, loss) in enumerate(classes):
        if first in members and all(amounts.get(point, 0) >= count for point, count in members.items()):
            rest = {point: amount - members.get(point, 0) for point, amount in amounts.items()}
            # A class may be taken once; those before it with this point have been tried.
            later = [other for place, other in enumerate(classes) if place != number]
            found.append(loss + least(rest, later, alone, k))
    if first in alone:
        # As many as are left over stand alone, and the others go with classes.
        others = {point: loss for point, loss in alone.items() if point != first}
        for together in range(k, amounts[first] + 1):
            rest = {**amounts, first: amounts[first] - together}
            found.append(alone[first] * together + least(rest, classes, others, k))
    return min(found)
