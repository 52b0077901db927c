"""The audit of releases of people with several rows: whether everybody is still one of enough.

Persons with the same class in every release, whose rows also changed at the same releases, are a *cell*. Each release is a
function of how often each line occurs in each cell, a line being all that a person publishes in it; so exchanging the lines of
two persons of a cell, in all releases at once, changes none of them, and whoever has all releases cannot tell these persons
apart. What they can learn of a cell is at most which lines it has. It is therefore enough that every cell satisfies the policy
with the lines it has; and with the lines it had last, since batching never publishes less of a person than before
(docs/evolving-data.md#people-with-several-rows): values that meet all sets of a cell as it was would still meet them when these
have grown.

What lines a cell has is read off a class that is the cell alone, or is what the other cells of its class leave. A cell that does
not satisfy the policy is a finding; one whose lines cannot be told is undecided, and that is not safe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.evolve.releases.guards import Numbers, Shown
from shoal.evolve.releases.lives import Cells, counted, lives_of
from shoal.evolve.releases.people import ROWS, crowd, values_of
from shoal.evolve.releases.rows import numbered
from shoal.policy import Policy, Rules
from shoal.schema import Schema


class Crowds:
    """The cells of all releases with the lines they had last."""

    def __init__(self, shown: Sequence[Shown], schema: Schema, policy: Policy) -> None:
        self.shown, self.policy = shown, policy
        self.names = schema.named("sensitive")
        self.cells = Cells(shown, lives_of(shown, schema))
        self.cell_of = self._told_apart()
        self.count = int(self.cell_of.max(initial=-1)) + 1
        self.sizes = np.bincount(self.cell_of, minlength=self.count).astype(np.int64)
        first = np.zeros(self.count, dtype=np.int64)
        first[self.cell_of[::-1]] = np.arange(len(self.cell_of) - 1, -1, -1)
        self.path = self.cells.history[first]
        """The class of each cell in each release, -1 where it is in none."""
        there = self.path >= 0
        self.last = there.shape[1] - 1 - np.argmax(there[:, ::-1], axis=1)
        self._inside = [self._by_class(t) for t in range(len(shown))]
        self._order = [np.argsort(one.classes, kind="stable") for one in shown]
        self._sorted = [one.classes[order] for one, order in zip(shown, self._order, strict=True)]

    def _told_apart(self) -> Numbers:
        """The cell of each life; who got further rows at other releases than somebody else is told apart from them as well."""
        stand = np.full(self.cells.history.shape, -1, dtype=np.int64)
        for t, one in enumerate(self.shown):
            stand[self.cells.units[t], t] = (one.lives or {})[ROWS]
        first = np.where(stand >= 0, stand, np.iinfo(np.int64).max).min(axis=1)
        return numbered(self.cells.cell_of, *np.where(stand >= 0, stand - first[:, None], -1).T)[0]

    def _by_class(self, release: int) -> dict[int, list[int]]:
        """The cells of each class."""
        found: dict[int, list[int]] = {}
        for cell in np.flatnonzero(self.path[:, release] >= 0).tolist():
            found.setdefault(int(self.path[cell, release]), []).append(cell)
        return found

    def _rows(self, release: int, number: int) -> Numbers:
        """The rows of a class."""
        begin, end = np.searchsorted(self._sorted[release], [number, number + 1])
        return np.asarray(self._order[release][begin:end])

    def _stands(self, cell: int, release: int) -> list[tuple[int, int]]:
        """Which of their lines the persons of a cell show in a release."""
        one, rows = self.shown[release], self._rows(release, int(self.path[cell, release]))
        rows = rows[self.cell_of[self.cells.units[release][rows]] == cell]
        lines = (one.lives or {})[ROWS]
        return sorted(zip(one.records[rows].tolist(), lines[rows].tolist(), strict=True))

    def _alone(self, cell: int, release: int) -> Counter[tuple[str | None, ...]] | None:
        """The lines of a cell in a release, from one in which it shows the same and is a class of its own."""
        wanted = None
        for t in np.flatnonzero(self.path[cell] >= 0)[::-1].tolist():
            number = int(self.path[cell, t])
            if len(self._inside[t][number]) > 1:
                continue
            if t != release:
                wanted = wanted or self._stands(cell, release)
                if self._stands(cell, t) != wanted:
                    continue
            return counted(self.shown[t].frame, self._rows(t, number), self.names)
        return None

    def lines(self, cell: int) -> Counter[tuple[str | None, ...]] | None:
        """The sets that the persons of a cell had when it was last published; None where nothing tells."""
        last = int(self.last[cell])
        number = int(self.path[cell, last])
        found = counted(self.shown[last].frame, self._rows(last, number), self.names)
        for other in self._inside[last][number]:
            if other == cell:
                continue
            known = self._alone(other, last)
            if known is None or known - found:
                return None
            found = found - known
        return found

    @cached_property
    def told(self) -> list[list[tuple[str | None, ...]] | None]:
        """The lines of each cell, one a person."""
        found = [self.lines(cell) for cell in range(self.count)]
        return [None if lines is None else sorted(lines.elements(), key=repr) for lines in found]

    def judged(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The cells that do not satisfy the policy, and those of which it cannot be told."""
        unknown = np.array([lines is None for lines in self.told], dtype=bool)
        rows = [(cell, line) for cell, lines in enumerate(self.told) for line in lines or ()]
        exposed = np.zeros(self.count, dtype=bool)
        if rows:
            labels = np.array([cell for cell, _ in rows], dtype=np.int64)
            exposed = (self._rules([line for _, line in rows]).deficits(labels, self.count) > 0) & ~unknown
        return exposed, unknown

    def _rules(self, lines: Sequence[tuple[str | None, ...]]) -> Rules:
        columns = [crowd(name, [line[j] for line in lines]) for j, name in enumerate(self.names)]
        return self.policy.bind(columns, len(lines))

    def persons(self, cells: NDArray[np.bool_]) -> Numbers:
        """Who is in some of the cells."""
        return self.cells.persons[cells[self.cell_of]]

    def values(self, cell: int) -> tuple[str, ...]:
        """All that occurs in a cell, of the first sensitive attribute."""
        lines = self.told[cell] or []
        return tuple(sorted(frozenset().union(*(values_of(line[0]) for line in lines)))) if self.names else ()


def exposures(
    shown: Sequence[Shown], schema: Schema, policy: Policy, *, newest_only: bool
) -> tuple[Crowds, Numbers, int]:
    """The cells that comparing releases exposes, and of how many persons it cannot be told.

    With `newest_only` without those whose persons the earlier releases expose already.
    """
    found = Crowds(shown, schema, policy)
    exposed, unknown = found.judged()
    if newest_only and len(shown) > 1 and (exposed | unknown).any():
        before = Crowds(shown[:-1], schema, policy)
        was, open_before = before.judged()
        for mine, old in ((exposed, before.persons(was)), (unknown, before.persons(open_before))):
            for cell in np.flatnonzero(mine).tolist():
                mine[cell] = not np.isin(found.cells.persons[found.cell_of == cell], old).all()
    return found, np.flatnonzero(exposed), int(found.sizes[unknown].sum())
