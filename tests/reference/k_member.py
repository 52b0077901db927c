"""k-member straight from docs/algorithms.md#k_member (Byun et al. 2007): every step looks at every record that is left.

Losses are worked out here from the table's codes, numbers and parent arrays. Costs are compared in units of 2⁻⁴⁰, ties
go to the smallest record, then to the oldest class. Policies beyond k: the class grows to `size`, then takes the record
that lowers its deficit most; a class that nothing helps gives its records back as left-overs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Deficit = Callable[[Sequence[int]], float]


def k_member(
    table: Table,
    size: int,
    first: int,
    seed_from: str = "last",
    deficit: Deficit | None = None,
) -> list[list[int]]:
    """The classes in the order they were made. `deficit` is what a class lacks beyond its size."""
    n = table.n
    if n <= size:
        return [list(range(n))]
    lacks = deficit or (lambda members: 0.0)
    rest, classes, left_over = list(range(n)), [], []
    reference = first
    while len(rest) >= size:
        seed = table.furthest(reference, rest)
        rest.remove(seed)
        members, last = [seed], seed
        while rest and len(members) < size:
            last = table.cheapest(members, rest)
            rest.remove(last)
            members.append(last)
        while rest and lacks(members) > 0:
            before = lacks(members)
            gains = [ticks(before - lacks([*members, r])) for r in rest]
            if max(gains) <= 0:
                break
            last = table.cheapest(members, [r for r, gain in zip(rest, gains, strict=True) if gain == max(gains)])
            rest.remove(last)
            members.append(last)
        if lacks(members) > 0:
            left_over += members
        else:
            classes.append(members)
        reference = last if seed_from == "last" else seed
    left_over += rest
    if not classes:
        return [list(range(n))]
    for record in sorted(left_over):
        classes[table.best_class(record, classes)].append(record)
    return classes


def ticks(cost: Any) -> Any:
    """Costs as whole numbers of 2⁻⁴⁰."""
    return np.rint(np.asarray(cost, dtype=np.float64) * 2.0**40).astype(np.int64)


class Table:
    """Codes and losses of a table, looked up in the dullest way."""

    def __init__(self, data: Any, measure: str) -> None:
        self.codes = np.asarray(data.codes)
        self.n = len(self.codes)
        self.weights = [float(data.schema.attributes[name].weight) for name in data.quasi]
        self.losses = [_loss_table(domain, measure) for domain in data.domains]
        self.is_set = [type(domain).__name__ == "Set" for domain in data.domains]

    def unit(self, members: Sequence[int]) -> float:
        """Loss of one record of a class: the sum over the attributes, in their order."""
        return float(self.joined(members, [members[0]])[0])

    def joined(self, members: Sequence[int], candidates: Sequence[int]) -> NDArray[np.float64]:
        """unit(members ∪ {c}) for every candidate c."""
        total = np.zeros(len(candidates))
        for a, losses in enumerate(self.losses):
            own = self.codes[list(members), a]
            new = self.codes[list(candidates), a]
            if self.is_set[a]:
                inside = np.isin(new, own)
                loss = losses[len(set(own.tolist())) + np.where(inside, 0, 1)]
            else:
                loss = losses[np.minimum(own.min(), new), np.maximum(own.max(), new)]
            total = total + self.weights[a] * loss
        return total

    def furthest(self, record: int, rest: Sequence[int]) -> int:
        cost = ticks(self.joined([record], rest))
        return min(zip((-cost).tolist(), rest, strict=True))[1]

    def cheapest(self, members: Sequence[int], rest: Sequence[int]) -> int:
        cost = ticks(self.joined(members, rest))
        return min(zip(cost.tolist(), rest, strict=True))[1]

    def added(self, members: Sequence[int], candidates: Sequence[int]) -> NDArray[np.float64]:
        """IL(members ∪ {c}) − IL(members)."""
        if not members:
            return np.zeros(len(candidates))
        size = len(members)
        return np.asarray((size + 1) * self.joined(members, candidates) - size * self.unit(members))

    def best_class(self, record: int, classes: Sequence[Sequence[int]]) -> int:
        """The class with the least added loss."""
        cost = ticks([self.added(members, [record])[0] for members in classes])
        return int(np.argmin(cost))

    def total(self, classes: Sequence[Sequence[int]]) -> float:
        """Σ |class|·unit(class)."""
        return sum(len(members) * self.unit(members) for members in classes)


def _loss_table(domain: Any, measure: str) -> NDArray[np.float64]:
    """Ranges: loss by lowest and highest code. Sets: loss by number of codes."""
    name, size = type(domain).__name__, int(domain.size)
    if name == "Set":
        sizes = np.arange(size + 2, dtype=np.float64)
        if size <= 1:
            return np.zeros(size + 2)
        return (
            (np.maximum(sizes - 1, 0) / (size - 1))
            if measure == "granularity"
            else np.where(sizes > 1, sizes / size, 0)
        )
    table = np.zeros((size, size))
    if name == "Tree":
        parent = [int(above) for above in domain.taxonomy.parent]
        of_node = [_node_loss(parent, node, measure) for node in range(len(parent))]
    for lo in range(size):
        for hi in range(lo + 1, size):
            table[lo, hi] = of_node[_ancestor(parent, lo, hi)] if name == "Tree" else _interval(domain, lo, hi)
    return table


def _interval(domain: Any, lo: int, hi: int) -> float:
    if hi == len(domain.values):  # missing beside a number
        return 1.0
    return float(domain.values[hi] - domain.values[lo]) / domain.width if domain.width > 0 else 0.0


def _ancestor(parent: list[int], a: int, b: int) -> int:
    line = []
    while a != -1:
        line.append(a)
        a = parent[a]
    while b not in line:
        b = parent[b]
    return b


def _node_loss(parent: list[int], node: int, measure: str) -> float:
    below, everything = len(_leaves(parent, node)), len(_leaves(parent, len(parent) - 1))
    if below == 1:
        return 0.0
    if measure == "il":
        return _height(parent, node) / max(1, _height(parent, len(parent) - 1))
    return below / everything if measure == "ncp" else (below - 1) / (everything - 1)


def _leaves(parent: list[int], node: int) -> list[int]:
    children = [child for child, above in enumerate(parent) if above == node]
    return [leaf for child in children for leaf in _leaves(parent, child)] if children else [node]


def _height(parent: list[int], node: int) -> int:
    return max((1 + _height(parent, child) for child, above in enumerate(parent) if above == node), default=0)
