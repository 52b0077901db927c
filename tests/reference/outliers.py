"""Suppression of outliers straight from docs/algorithms.md#suppression: every tail of every class is tried again and again.

For policies that a class keeps whatever joins it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.reference.k_member import Table, ticks

Good = Callable[[Sequence[int]], bool]
Tail = tuple[int, int, tuple[int, int], list[int]]  # class, attribute, first and last code, records


class Outliers:
    """Classes that lose records as long as that pays."""

    def __init__(self, table: Table, classes: list[list[int]], k: int, good: Good, allowed: int) -> None:
        self.table, self.classes, self.k, self.good, self.allowed = table, classes, k, good, allowed
        self.gone: list[int] = []
        self.everything = int(ticks(sum(table.weights)))

    def run(self, drop: bool) -> tuple[list[list[int]], list[int]]:
        """The classes and the suppressed records."""
        start, before = [list(members) for members in self.classes], self.total()
        while self.trim() or self.disperse():
            pass
        if not drop and self.gone and not self.good(self.gone) and not self.take_along(before):
            return start, []
        return self.classes, sorted(self.gone)

    def unit(self, members: Sequence[int]) -> int:
        return int(ticks(self.table.unit(members)))

    def total(self) -> int:
        return sum(len(c) * self.unit(c) for c in self.classes) + len(self.gone) * self.everything

    def left(self) -> int:
        return self.allowed - len(self.gone)

    def tails(self, c: int) -> list[Tail]:
        members, found = self.classes[c], []
        lost = len(members) * self.unit(members)
        for a in range(self.table.codes.shape[1]):
            codes = [int(self.table.codes[r, a]) for r in members]
            ranges = [(code, code) for code in sorted(set(codes))]
            if not self.table.is_set[a]:
                low = [(min(codes), code) for code in sorted(set(codes))]
                ranges = low + [(code, max(codes)) for code in sorted(set(codes))]
            for first, last in ranges:
                tail = [r for r, own in zip(members, codes, strict=True) if first <= own <= last]
                if len(tail) < len(members) and len(tail) <= self.left() and len(tail) * self.everything < lost:
                    found.append((c, a, (first, last), tail))
        return found

    def gain(self, tail: Tail) -> int:
        members, leaving = self.classes[tail[0]], tail[3]
        rest = [r for r in members if r not in leaving]
        unit = self.unit(members)
        return len(rest) * (unit - self.unit(rest)) - len(leaving) * (self.everything - unit)

    def trim(self) -> bool:
        asked, changed = list(range(len(self.classes))), False
        while asked and self.left() > 0:
            best: list[tuple[int, Tail]] = []
            for c in asked:
                allowed = []
                for tail in self.tails(c):
                    rest = [r for r in self.classes[c] if r not in tail[3]]
                    if self.gain(tail) > 0 and len(rest) >= self.k and self.good(rest):
                        allowed.append((-self.gain(tail), tail[1], tail[2], tail))
                if allowed:
                    first = min(allowed)
                    best.append((-first[0], first[3]))
            asked = []
            for _, tail in sorted(best, key=lambda one: (-one[0] / len(one[1][3]), one[1][0])):
                if len(tail[3]) <= self.left():
                    self.classes[tail[0]] = [r for r in self.classes[tail[0]] if r not in tail[3]]
                    self.gone += tail[3]
                    asked.append(tail[0])
                    changed = True
        return changed

    def disperse(self) -> bool:
        if self.left() <= 0 or len(self.classes) < 2:
            return False
        priced: list[tuple[int, Tail]] = []
        for c, members in enumerate(self.classes):
            tails = self.tails(c)
            if not tails:
                continue
            tail = min(tails, key=lambda one: (-self.gain(one), one[1], one[2]))
            gain = len(members) * self.unit(members) - len(tail[3]) * self.everything
            if gain <= 0:
                continue
            for record in members:
                if record not in tail[3]:
                    others = [own for o, own in enumerate(self.classes) if o != c]
                    gain -= min(int(ticks(self.table.added(own, [record])[0])) for own in others)
            if gain > 0:
                priced.append((gain, tail))
        chosen, room = [], self.left()
        for _, tail in sorted(priced, key=lambda one: (-one[0], one[1][0])):
            if len(tail[3]) <= room:
                chosen.append(tail)
                room -= len(tail[3])
        while chosen:
            if self.give_up(chosen):
                return True
            chosen = chosen[: len(chosen) // 2]
        return False

    def give_up(self, tails: list[Tail]) -> bool:
        old, gone, before = self.classes, list(self.gone), self.total()
        owners = {tail[0] for tail in tails}
        leaving = [r for tail in tails for r in tail[3]]
        waiting = sorted(r for c in owners for r in old[c] if r not in leaving)
        self.classes = [list(members) for c, members in enumerate(old) if c not in owners]
        if not self.classes:
            self.classes = old
            return False
        for record in waiting:
            self.classes[self.table.best_class(record, self.classes)].append(record)
        self.gone = gone + leaving
        if self.total() < before:
            return True
        self.classes, self.gone = old, gone
        return False

    def take_along(self, before: int) -> bool:
        now, found = self.total(), []
        for c, members in enumerate(self.classes):
            price = len(members) * (self.everything - self.unit(members))
            if len(members) <= self.left() and now + price < before and self.good(self.gone + members):
                found.append((price, c))
        if not found:
            return False
        self.gone += self.classes.pop(min(found)[1])
        return True
