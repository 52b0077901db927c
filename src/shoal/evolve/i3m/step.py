"""One step of I3M: what deletions left too small is mended, then new rows join their best classes (docs/algorithms.md#i3m).

For a policy of k alone this is the paper to the letter: a class below k is dispersed, a class of 2k is split.

For other policies a split must leave two good parts, otherwise the class may grow and is tried again at
3k, 4k, 6k, 8k, 12k …; a class that a deletion spoilt first borrows rows that its neighbours can spare; where a row can
spoil a class it goes to the cheapest one that stays good. Classes are merged when nothing else helps. While there
are more classes than the policy allows for the new table (docs/models.md#condition-2), spoilt ones are dispersed at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shoal.errors import InfeasibleError, UnsupportedError
from shoal.evolve.i3m.index import Grouping, Rows, Slots
from shoal.evolve.i3m.repair import Judge, good_half, loans, neighbours_of, partner_for, target_for
from shoal.policy import Rules
from shoal.progress import Progress

# A huge class is not taken apart all at once: that would take as long as anonymizing it anew.
PARTS = 16
# Rows that join their best classes between two checks of the progress: each looks for its class in a tree of all.
PLACED = 500


class Step:
    """Changes a grouping; `bad` are the classes known not to be good at the moment.

    `table` binds the policy to the whole table as it will be, which is asked for only when it matters.
    """

    def __init__(self, grouping: Grouping, judge: Judge, table: Callable[[], Rules], progress: Progress) -> None:
        self.grouping, self.judge, self.rules, self.table = grouping, judge, judge.rules, table
        self.progress = progress
        self.bad: set[int] = set()

    def mend(self, suspects: Slots) -> None:
        """I3M−: every class in turn that is not good any more when it is its turn."""
        if not self.rules.superset_closed:
            bad = self.judge.deficits(self.grouping.members_by_class(suspects)) > 0
            self.bad = set(suspects[bad].tolist())
        for c in suspects.tolist():
            self.progress.check()
            self._mend_class(c)

    def place(self, rows: Rows) -> None:
        """I3M+: FindBestCluster for one row after the other, with a split at 2k (Truta & Campan 2007, Figure 1)."""
        at = 0
        while at < len(rows):
            self.progress.check()
            if self.grouping.live == 0:
                at += self._found_first(rows[at:])
            elif self.rules.superset_closed:
                at, c = self.grouping.place(rows[: at + PLACED], at, self.rules.k, self.judge.tests)
                if c >= 0:
                    self._split(c)
            else:
                self._place_tested(int(rows[at]))
                at += 1

    def finish(self) -> None:
        """What is still bad is merged; raises when even one class with all rows is not good."""
        for c in sorted(self.bad):
            if c in self.bad and self.grouping.sizes[c] > 0:
                self._merge(c)
            elif self.grouping.sizes[c] == 0:
                self.bad.discard(c)
        if not self.bad:
            return
        # Only the last class of all is ever left bad.
        rules = self.table()
        deficits = rules.rule_deficits(rules.stats_of(np.arange(rules.n)))[:, 0]
        kind = InfeasibleError if rules.union_closed else UnsupportedError
        raise kind(
            f"The {rules.n} records of the table cannot be kept under {rules.rules[int(np.argmax(deficits))]}: not even "
            "one class with all of them satisfies it; change the batch, weaken the model, or anonymize the table anew."
        )

    def _mend_class(self, c: int) -> None:
        """Make a class good, or disperse it; the last class of all is left for `finish` to judge."""
        self.bad.discard(c)
        size = int(self.grouping.sizes[c])
        if size == 0 or (size >= self.rules.k if self.rules.only_size else self.judge.good(self.grouping.members(c))):
            return
        if self.grouping.live == 1:
            self.bad.add(c)
            return
        if not self.rules.only_size and self.grouping.live <= self.table().max_classes:
            self.bad.add(c)
            if self._borrow(c):
                return
            self.bad.discard(c)
        self.place(self.grouping.disband(c))

    def _borrow(self, c: int) -> bool:
        """Whether neighbours could lend a class what it lacks."""
        lenders = neighbours_of(self.grouping, c)
        rows = loans(self.grouping, self.judge, c, lenders[[int(d) not in self.bad for d in lenders]])
        if rows is None:
            return False
        self.grouping.detach(rows)
        for row in rows.tolist():
            self.grouping.attach(row, c)
        self.bad.discard(c)
        return True

    def _found_first(self, rows: Rows) -> int:
        """The first class takes as many rows as it needs; all of them if they are not enough."""
        taken = min(self.rules.k, len(rows))
        while taken < len(rows) and not self.judge.good(rows[:taken]):
            taken = min(len(rows), taken + max(1, taken // 8))
        c = self.grouping.found(rows[:taken])
        if not self.judge.good(rows[:taken]):
            self.bad.add(c)
        return taken

    def _place_tested(self, row: int) -> None:
        """A row that may spoil a class; when it would spoil all that were tried, the cheapest takes it and is repaired."""
        c = target_for(self.grouping, self.judge, row, self.bad)
        if c >= 0:
            self.grouping.attach(row, c)
            self._split(c)
            return
        c = self.grouping.best(row)
        self.grouping.attach(row, c)
        self.bad.add(c)
        if self.grouping.live > 1 and not self._borrow(c):
            self._merge(c)

    def _split(self, c: int) -> None:
        """Split2k; for a policy beyond k only into good parts, and only at the sizes where that is tried."""
        from shoal.kernels.i3m import split_is_due

        size, k = int(self.grouping.sizes[c]), self.rules.k
        if self.rules.only_size:
            self.grouping.split(c, k)
        elif c not in self.bad and split_is_due(size, k):
            self._split_well(c)

    def _split_well(self, c: int) -> None:
        rows = self.grouping.members(c)
        for _ in range(PARTS):
            half = good_half(self.grouping, self.judge, rows) if len(rows) >= 2 * self.rules.k else None
            if half is None:
                break
            self.grouping.detach(rows[half])
            self.grouping.found(rows[half], near=c)
            rows = rows[~half]

    def _merge(self, c: int) -> None:
        """Merge a bad class with others until it is good, then split it if that is possible."""
        self.bad.discard(c)
        while not self.judge.good(self.grouping.members(c)):
            self.progress.check()
            if self.grouping.live == 1:
                self.bad.add(c)
                return
            partner = partner_for(self.grouping, self.judge, c)
            for row in self.grouping.disband(c).tolist():
                self.grouping.attach(row, partner)
            c = partner
            self.bad.discard(c)
        self._split_well(c)
