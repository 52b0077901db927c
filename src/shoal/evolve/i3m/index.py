"""Rows in classes that change: members, states, losses, and a search tree over the states (`kernels/class_index.py`).

Rows and classes are places in growing arrays here. What happens to them and why is decided in `shoal.evolve.i3m.step`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.progress import SLICE, Progress
from shoal.space import Codes, Set, Space, States

if TYPE_CHECKING:
    from shoal.kernels.i3m import Tests

Rows = NDArray[np.int64]
Slots = NDArray[np.int64]

# The tree is built anew when this share of its classes has come or gone since the last time.
STALE = 0.25
# Classes that are ranked at first, and twice as many whenever more are asked for: mostly an early one will do.
RANKED_FIRST = 16


class Grouping:
    """Rows with their codes, each in one class or in none (-1)."""

    def __init__(self, space: Space, codes: Codes, classes: NDArray[Any]) -> None:
        from shoal.kernels.class_index import make_index
        from shoal.kernels.i3m import make_groups, make_records
        from shoal.kernels.space import flatten

        self.space, self.flat = space, flatten(space)
        self.rows, self.slots = len(codes), int(classes.max(initial=-1)) + 1
        self._records = make_records(np.array(codes, dtype=np.int32, order="C"), classes)
        self._groups, self._index = make_groups(self.flat, 0), make_index(self.flat, 1)
        self._used = np.zeros(1, dtype=np.int64)
        self._first = (self.rows, self.slots, space)
        self.rebuild()

    def rebuild(self) -> None:
        """Everything from the codes and the classes of the rows."""
        from shoal.kernels.class_index import make_index
        from shoal.kernels.heap import make_heap
        from shoal.kernels.i3m import make_groups, settle

        room = self.slots + max(64, self.slots // 8)
        self._groups, self._index = make_groups(self.flat, room), make_index(self.flat, room)
        self._heap = make_heap(2 * room)
        self._used[0] = self.slots
        settle(self.flat, self._index, self._groups, self._records, self.slots)
        # Classes that came and classes that went up to now; `keep_fresh` looks at how much that has grown.
        self._built = 2 * self.slots - self.live

    @property
    def codes(self) -> Codes:
        """Codes of all rows, also of those in no class."""
        return self._records.codes[: self.rows]

    @property
    def classes(self) -> NDArray[np.int32]:
        """The class of every row; -1 for none."""
        return self._records.link[: self.rows, 0]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows per class; 0 for a class that is no more."""
        return self._groups.info[: self.slots, 0]

    @property
    def states(self) -> States:
        """The joined state of every class."""
        return self._groups.state[: self.slots]

    @property
    def units(self) -> NDArray[np.float64]:
        """Loss per record of every class."""
        return self._groups.loss[: self.slots, -1]

    @property
    def live(self) -> int:
        """Number of classes with rows."""
        from shoal.kernels.class_index import ITEMS

        return int(self._index.top[ITEMS])

    def members(self, c: int) -> Rows:
        """The rows of a class, ascending."""
        from shoal.kernels.i3m import members_of

        return np.asarray(members_of(self._records, self._groups, c))

    def members_by_class(self, classes: Slots) -> list[Rows]:
        """The same for several classes."""
        from shoal.kernels.i3m import members_of_all

        if len(classes) == 0:
            return []
        rows = members_of_all(self._records, self._groups, np.asarray(classes, dtype=np.int64))
        return np.split(rows, np.cumsum(self.sizes[classes])[:-1])

    def labelled(self, classes: Slots) -> tuple[Rows, Slots]:
        """The rows of several classes, class by class, and which of the classes, from 0 on, each is in."""
        members = self.members_by_class(classes)
        sizes = np.array([len(rows) for rows in members], dtype=np.int64)
        return np.concatenate([*members, np.zeros(0, dtype=np.int64)]), np.repeat(np.arange(len(members)), sizes)

    def begin_step(self) -> None:
        """From here on `departed` tells what has left its class, and `go_back` is possible."""
        from shoal.kernels.i3m import STAYED, WAS

        self._records.link[self._records.log[: self._records.logged[0]], WAS] = STAYED
        self._records.logged[0] = 0
        self._first = (self.rows, self.slots, self.space)

    def departed(self) -> tuple[Rows, Slots]:
        """The rows, ascending, that have left a class since the step began, perhaps for a while only, and that class."""
        from shoal.kernels.i3m import WAS

        rows = np.sort(self._records.log[: self._records.logged[0]].astype(np.int64))
        rows = rows[: np.searchsorted(rows, self._first[0])]
        return rows, self._records.link[rows, WAS].astype(np.int64)

    def go_back(self, altered: Rows, codes: Codes) -> None:
        """Everything as it was when the step began; `altered` rows had these codes."""
        from shoal.kernels.class_index import NOBODY
        from shoal.kernels.i3m import CLASS

        departed, classes = self.departed()
        count, slots, space = self._first
        if len(departed) or (self.rows, self.slots) != (count, slots):
            self._records.link[departed, CLASS] = classes
            self._records.link[count:, CLASS] = NOBODY
            self.rows, self.slots = count, slots
            self.set_codes(altered, codes)
            self.rebuild()
        if self.space is not space:
            self.measure_by(space)

    def add_rows(self, codes: Codes) -> Rows:
        """New rows, in no class yet."""
        from shoal.kernels.class_index import NOBODY
        from shoal.kernels.i3m import STAYED, WAS, Records

        first, self.rows = self.rows, self.rows + len(codes)
        kept, fresh = self._records, slice(first, self.rows)
        if self.rows > len(kept.codes):
            room = self.rows + max(len(codes), self.rows // 8)
            wider = (longer(kept.codes, room), longer(kept.link, room), longer(kept.log, room))
            self._records = Records(*wider, kept.logged)
            # The room behind the rows as well: it must not look like members of a class.
            fresh = slice(first, room)
        self._records.codes[first : self.rows] = codes
        self._records.link[fresh] = NOBODY
        self._records.link[fresh, WAS] = STAYED
        return np.arange(first, self.rows)

    def set_codes(self, rows: Rows, codes: Codes) -> None:
        """Other codes for rows that are in no class."""
        self._records.codes[rows] = codes

    def set_classes(self, rows: Rows, classes: Slots, slots: int) -> None:
        """Another class, of so many, for these rows; builds everything anew."""
        from shoal.kernels.i3m import CLASS, STAYED, WAS

        link, log, logged = self._records.link, self._records.log, self._records.logged
        fresh = rows[link[rows, WAS] == STAYED]
        log[logged[0] : logged[0] + len(fresh)] = fresh
        logged[0] += len(fresh)
        link[fresh, WAS] = link[fresh, CLASS]
        link[rows, CLASS] = classes
        self.slots = slots
        self.rebuild()

    def keep_fresh(self) -> None:
        """Build the tree anew when many classes have come or gone since."""
        from shoal.kernels.class_index import build

        gone = self.slots - self.live
        if self.slots + gone - self._built > STALE * self.live + RANKED_FIRST:
            self._make_room(0)
            build(self.flat, self._index, self._groups, np.flatnonzero(self.sizes))
            self._built = self.slots + gone

    def place(self, rows: Rows, start: int, k: int, tests: Tests | None) -> tuple[int, int]:
        """Rows from `start` on join their best classes, until one calls for a decision (`kernels.i3m.place_all`)."""
        from shoal.kernels.i3m import place_all

        parts = self.flat, self._index, self._groups, self._records, self._heap
        at, c = place_all(*parts, rows, start, self._used, k, tests)
        self.slots = int(self._used[0])
        return int(at), int(c)

    def best(self, row: int) -> int:
        """The class whose loss rises least with one row more."""
        from shoal.kernels.class_index import best_class

        state = self.state_of(np.array([row]))
        return int(best_class(self.flat, self._index, self._groups, self._heap, state, 1))

    def attach(self, row: int, c: int) -> None:
        """A row joins a class."""
        from shoal.kernels.i3m import attach

        attach(self.flat, self._index, self._groups, self._records, row, c)

    def detach(self, rows: Rows) -> None:
        """Rows leave their classes."""
        from shoal.kernels.i3m import detach

        detach(self.flat, self._index, self._groups, self._records, rows)

    def found(self, rows: Rows, near: int = -1) -> int:
        """A new class of rows that are in none, put into the tree beside class `near` (-1 when there is no class)."""
        from shoal.kernels.class_index import LEAF, ROOT
        from shoal.kernels.i3m import found

        self._make_room(1)
        c, self.slots = self.slots, self.slots + 1
        self._used[0] = self.slots
        leaf = self._groups.info[near, LEAF] if near >= 0 else self._index.top[ROOT]
        found(self.flat, self._index, self._groups, self._records, rows, c, leaf)
        return c

    def disband(self, c: int) -> Rows:
        """The rows of a class that is no more."""
        from shoal.kernels.i3m import disband

        return np.asarray(disband(self.flat, self._index, self._groups, self._records, c))

    def regroup(self, classes: Slots, labels: NDArray[np.int64]) -> None:
        """The rows of several classes, in the order of `labelled`, form other classes; what stays together is left alone."""
        rows, old = self.labelled(classes)
        pairs, sizes = np.unique(np.stack([old, labels]), axis=1, return_counts=True)
        same = (sizes == np.bincount(old)[pairs[0]]) & (sizes == np.bincount(labels)[pairs[1]])
        moves = ~np.isin(labels, pairs[1, same])
        for i in np.unique(old[moves]).tolist():
            self.disband(int(classes[i]))
        order = np.lexsort((rows[moves], labels[moves]))
        begins = np.flatnonzero(np.diff(labels[moves][order], prepend=-1))
        for part in np.split(rows[moves][order], begins)[1:]:
            self.found(part, near=self.best(int(part[0])) if self.live else -1)

    def split(self, c: int, k: int) -> None:
        """Split2k of Truta & Campan 2007, again and again until fewer than 2k rows are left."""
        from shoal.kernels.i3m import split_class

        self._make_room(int(self.sizes[c]) // k)
        split_class(self.flat, self._index, self._groups, self._records, self._used, c, k)
        self.slots = int(self._used[0])

    def ranked(self, state: States, records: int) -> Iterator[Slots]:
        """Classes by the loss that so many records of this joined state add to them, a few and then more at a time.

        Nothing may change while this is read.
        """
        from shoal.kernels.class_index import next_ranked, start_ranking

        start_ranking(self._index, self._heap)
        found = np.empty(RANKED_FIRST, dtype=np.int64)
        while count := next_ranked(self.flat, self._index, self._groups, self._heap, state, records, found):
            yield found[:count]
            found = np.empty(2 * len(found), dtype=np.int64)

    def state_of(self, rows: Rows) -> States:
        """The joined state of some rows."""
        return np.asarray(self.space.states(self._records.codes, rows, np.zeros(1, dtype=np.int64))[0])

    def loss_of(self, classes: Sequence[Rows]) -> float:
        """Total loss of classes made of these rows."""
        return float(sum(len(rows) * self.space.unit(self.state_of(rows)[None, :])[0] for rows in classes))

    def choose_half(self, rows: Rows, k: int) -> NDArray[np.bool_]:
        """Which k rows Split2k moves."""
        from shoal.kernels.i3m import choose_half

        return np.asarray(choose_half(self.flat, self._records.codes, rows, k))

    def price_moves(self, rows: Rows, moved: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Ticks of the loss of both parts after one more row has moved; infinite for rows that have."""
        from shoal.kernels.i3m import price_moves

        costs, taken = np.empty(len(rows)), np.flatnonzero(moved)
        state = self.state_of(rows[taken] if len(taken) else rows[:1])
        price_moves(self.flat, self._records.codes, rows, moved, len(taken), state, costs)
        return costs

    def price_loans(self, lender: Rows, state: States, size: int) -> NDArray[np.float64]:
        """Ticks that the total loss rises by when a row of a class moves to one of so many rows and this joined state."""
        from shoal.kernels.i3m import price_loans

        costs = np.empty(len(lender))
        price_loans(self.flat, self._records.codes, lender, state, size, costs)
        return costs

    def next_break(self, order: Slots, start: int, progress: Progress) -> tuple[int, Slots]:
        """The next class in `order` that is worth breaking, and where its rows go (`kernels.coverage`)."""
        from shoal.kernels.coverage import Breaks, next_break

        targets = np.empty(int(self.sizes[order].max(initial=1)), dtype=np.int64)
        breaks = Breaks(order, np.array([start, 0, 0], dtype=np.int64), targets)
        while not next_break(self.flat, self._index, self._groups, self._records, self._heap, breaks, SLICE):
            progress.check()
        at = int(breaks.at[0])
        return at, targets[: self.sizes[order[at]]] if at < len(order) else targets[:0]

    def break_class(self, c: int, targets: Slots) -> None:
        """Every row of a class goes to its target."""
        from shoal.kernels.coverage import break_class

        break_class(self.flat, self._index, self._groups, self._records, c, targets)

    def measure_by(self, space: Space) -> None:
        """The same codes and states, but other losses."""
        from shoal.kernels.class_index import appraise_all, pull_all
        from shoal.kernels.space import flatten

        self.space, self.flat = space, flatten(space)
        appraise_all(self.flat, self._groups, self.slots)
        pull_all(self.flat, self._index, self._groups)

    def recode(self, space: Space, maps: Sequence[NDArray[Any] | None]) -> None:
        """Other domains: `maps` has, per attribute, the new code of every old one, or None where nothing changes."""
        codes = self._records.codes
        shifted = True
        for a, new_code in enumerate(maps):
            if new_code is None:
                continue
            codes[: self.rows, a] = np.asarray(new_code, dtype=np.int32)[codes[: self.rows, a]]
            # Ranges keep their ends where the order of the codes stays; sets, and trees grown elsewhere, do not.
            if isinstance(space.domains[a], Set) or (np.diff(new_code) <= 0).any():
                shifted = False
            elif shifted:
                slot = int(space.slots[a])
                ends = self._groups.state[: self.slots, slot : slot + 2]
                ends[:] = np.asarray(new_code)[np.where(self.sizes[:, None] > 0, ends, 0)]
        if shifted and np.array_equal(space.slots, self.space.slots):
            self.measure_by(space)
        else:
            from shoal.kernels.space import flatten

            self.space, self.flat = space, flatten(space)
            self.rebuild()

    def _make_room(self, classes: int) -> None:
        """So many more classes will fit."""
        from shoal.kernels.class_index import NODES, Groups, Index
        from shoal.kernels.heap import make_heap
        from shoal.kernels.i3m import NODES_A_CLASS

        slots, nodes = self.slots + classes, int(self._index.top[NODES]) + classes * NODES_A_CLASS
        if slots > len(self._groups.info):
            room = slots + slots // 8
            self._groups = Groups(*(longer(part, room) for part in self._groups))
        if nodes > len(self._index.info):
            room = nodes + nodes // 8
            kids, box, bound, info, top = self._index
            self._index = Index(longer(kids, room), longer(box, room), longer(bound, room), longer(info, room), top)
        if len(self._heap.ticks) < len(self._groups.info) + len(self._index.info):
            self._heap = make_heap(len(self._groups.info) + len(self._index.info))


def longer(part: NDArray[Any], room: int) -> NDArray[Any]:
    """The same with room behind it."""
    result = np.zeros((room, *part.shape[1:]), dtype=part.dtype)
    result[: len(part)] = part
    return result
