"""I3M+, I3M−, Split2k and IL_Optimization straight from docs/algorithms.md#i3m, looking at every class every time.

Losses come from the tables of `tests/reference/k_member.py`. Costs are compared in units of 2⁻⁴⁰; ties go to the
smallest record and to the oldest class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from tests.reference.k_member import Table, ticks


class Classes:
    """Classes by number, each a list of records. `table` holds the codes of every record there ever is."""

    def __init__(self, table: Table, labels: Mapping[int, int], k: int) -> None:
        self.table, self.k = table, k
        self.codes = np.array(table.codes)
        self.classes: dict[int, list[int]] = {}
        for record, label in labels.items():
            self.classes.setdefault(label, []).append(record)
        self.next = max(self.classes, default=-1) + 1
        self.buffer: list[int] = []

    def insert(self, records: Iterable[int]) -> None:
        """I3M+."""
        for record in records:
            self.add(record)

    def delete(self, records: Iterable[int]) -> None:
        """I3M−."""
        gone = set(records)
        for members in self.classes.values():
            members[:] = [record for record in members if record not in gone]
        for number in sorted(self.classes):
            members = self.classes.get(number, [])
            if not members:
                self.classes.pop(number, None)
        for number in sorted(self.classes):
            if len(self.classes[number]) < self.k and len(self.classes) > 1:
                for record in sorted(self.classes.pop(number)):
                    self.add(record)

    def update(self, changes: Mapping[int, Sequence[int]]) -> None:
        """I3M− on the old versions, I3M+ on the new ones."""
        self.delete(changes)
        for record, codes in changes.items():
            self.table.codes[record] = codes
        self.insert(changes)

    def add(self, record: int) -> None:
        """FindBestCluster and, at 2k, Split2kCluster. Without a class, records wait until they are k."""
        if not self.classes:
            self.buffer.append(record)
            if len(self.buffer) == self.k:
                self.classes[self.next], self.buffer = self.buffer, []
                self.next += 1
            return
        costs = {number: self.increase(members, record) for number, members in self.classes.items()}
        number = min(costs, key=lambda c: (costs[c], c))
        self.classes[number].append(record)
        while len(self.classes[number]) >= 2 * self.k:
            new = split(self.table, self.classes[number], self.k)
            self.classes[number] = [r for r in self.classes[number] if r not in new]
            self.classes[self.next] = new
            self.next += 1

    def increase(self, members: Sequence[int], record: int) -> int:
        """IL(class ∪ {r}) − IL(class) = unit(class ∪ {r}) + |class|·(unit(class ∪ {r}) − unit(class))."""
        after, before = float(self.table.joined(members, [record])[0]), self.table.unit(members)
        return int(ticks(after + len(members) * (after - before)))

    def labels(self) -> dict[int, int]:
        """The class of every record."""
        return {record: number for number, members in self.classes.items() for record in members}

    def loss(self) -> float:
        """Σ |class|·unit(class)."""
        return self.table.total(list(self.classes.values()))


def split(table: Table, members: Sequence[int], k: int) -> list[int]:
    """The k records that move to the new class, one at a time (Truta & Campan 2007, Figure 1)."""
    rest, new = sorted(members), []
    while len(new) < k:
        costs = []
        for record in rest:
            others = [r for r in rest if r != record]
            joined = [*new, record]
            costs.append(ticks(len(others) * table.unit(others) + len(joined) * table.unit(joined)))
        record = rest[int(np.argmin(costs))]
        rest.remove(record)
        new.append(record)
    return new


def il_optimization(data: Any, table: Table, classes: Sequence[Sequence[int]], good: Any = None) -> list[list[int]]:
    """IL_Optimization with the class removed before it is broken and its covers looked for again."""
    current = {number: sorted(members) for number, members in enumerate(classes)}
    units = {number: int(ticks(table.unit(members))) for number, members in current.items()}
    found = [c for c in current if all(covers_of(data, table, r, c, current) for r in current[c])]
    for c in sorted(found, key=lambda c: (-len(current[c]) * units[c], c)):
        targets = {}
        for record in current[c]:
            covers = covers_of(data, table, record, c, current)
            if covers:
                targets[record] = min(covers, key=lambda other: (units[other], other))
        if len(targets) < len(current[c]):
            continue
        if sum(units[t] for t in targets.values()) >= len(current[c]) * units[c]:
            continue
        after = {t: sorted([*current[t], *(r for r in targets if targets[r] == t)]) for t in targets.values()}
        if good is not None and not all(good(members) for members in after.values()):
            continue
        current.update(after)
        del current[c]
    return [current[c] for c in sorted(current)]


def covers_of(data: Any, table: Table, record: int, own: int, classes: Mapping[int, Sequence[int]]) -> list[int]:
    """The other classes that publish the same with this record as without."""
    return [
        c
        for c, members in classes.items()
        if c != own and generalization(data, table, members) == generalization(data, table, [*members, record])
    ]


def generalization(data: Any, table: Table, members: Sequence[int]) -> list[Any]:
    """What a class publishes, attribute by attribute."""
    result: list[Any] = []
    for a, domain in enumerate(data.domains):
        codes = sorted({int(table.codes[r, a]) for r in members})
        kind = type(domain).__name__
        if len(codes) == 1:
            result.append(codes[0])
        elif kind == "Set":
            result.append(tuple(codes))
        elif kind == "Interval":
            any_value = codes[-1] == len(domain.values)
            result.append("any" if any_value else (codes[0], codes[-1]))
        else:
            parent = [int(above) for above in domain.taxonomy.parent]
            lines = [_line(parent, code) for code in codes]
            result.append(next(node for node in lines[0] if all(node in line for line in lines)))
    return result


def _line(parent: Sequence[int], node: int) -> list[int]:
    line = []
    while node != -1:
        line.append(node)
        node = parent[node]
    return line
