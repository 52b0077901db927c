"""Classes that publish the same values are one class to whoever looks at the table (docs/algorithms.md#recoding).

Most policies hold for two good classes together whenever they hold for each. Where one may not ((k, p, q, r), personalized …),
classes that look alike are joined only if the policy holds for them together. Otherwise one of them is told apart: it publishes
a little more than its records need, the cheapest region that no other class publishes. What can neither be joined nor told
apart is joined with a class nearby, and if that does not help either the release is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.errors import UnsupportedError
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.recode import generalize, microaggregate
from shoal.schema import Intervals, Recode
from shoal.space import Domain, Interval, Set, Space, States, Tree
from shoal.states import class_states
from shoal.verifier.meaning import reader_of

Ints = NDArray[np.int64]

ROUNDS = 20
"""Joined classes may come to look like others; so many times they are looked at again."""
TRIED = 2_000
"""Regions that are tried to tell one class apart."""
NEAR = 50
"""Classes nearby that are tried for one that can neither be joined nor told apart."""


@dataclass(frozen=True)
class Recoding:
    """How classes are published: all that decides which of them look alike."""

    recode: Recode = "generalize"
    intervals: Intervals = "text"
    drop: bool = False
    """Whether suppressed records are left out; otherwise they are a class like any other."""


def published_classes(
    data: Microdata, partition: Partition, rules: Rules, space: Space, how: Recoding | None = None
) -> tuple[Partition, States]:
    """The classes that a reader will see, every one of them good, and what they publish."""
    how = how or Recoding()
    if rules.union_closed:
        return _joined_by_state(data, partition, space, how)
    states = class_states(data, partition, space)
    for _ in range(ROUNDS):
        table = _Shown(data, partition, states, how)
        settled = _settled(table, list(table.collisions()), rules, space)
        if settled is None:
            return partition, states
        partition, states = settled
    raise _refusal(how)


def _joined_by_state(data: Microdata, partition: Partition, space: Space, how: Recoding) -> tuple[Partition, States]:
    """Equal states are one class; a policy that allows it needs no more."""
    states = class_states(data, partition, space)
    shown = states.copy()
    for a, domain in enumerate(space.domains):
        slot = int(space.slots[a])
        if isinstance(domain, Tree):
            nodes = domain.taxonomy.lca(states[:, slot], states[:, slot + 1])
            shown[:, slot], shown[:, slot + 1] = domain.taxonomy.first[nodes], domain.taxonomy.last[nodes]
        elif isinstance(domain, Interval) and domain.has_missing:
            anything = (shown[:, slot + 1] == domain.missing_code) & (shown[:, slot] < domain.missing_code)
            shown[anything, slot] = 0
            if how.intervals == "columns" and domain.labels is None:
                # Two ends have no room for a missing value: they are those of the whole range.
                shown[anything, slot + 1] = domain.missing_code - 1
    _, first, inverse = np.unique(shown, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(shown):
        return partition, states
    rank = np.argsort(np.argsort(first))
    merged = np.append(rank[inverse.ravel()], -1).astype(np.int32)[partition.labels]
    joined = Partition(merged, partition.levels, partition.notes)
    return joined, class_states(data, joined, space)


class _Shown:
    """What every class publishes, as it is written and as it is read."""

    def __init__(self, data: Microdata, partition: Partition, states: States, how: Recoding) -> None:
        self.data, self.partition, self.states, self.how = data, partition, states, how
        labels, rows = np.unique(partition.labels, return_index=True)
        if how.drop:
            labels, rows = labels[labels >= 0], rows[labels >= 0]
        self.labels: list[int] = labels.tolist()
        frame = self._frame(partition, states, rows.astype(np.int64))
        self._readers: dict[str, Callable[[Sequence[str | None]], list[Any]]] = {
            column.name: reader_of(column.unique().to_list(), column.name, data.schema)
            for column in frame
            if column.dtype == pl.String
        }
        self.written = frame.rows()
        self.read = self._keys(frame)
        self.used = set(self.read)

    def collisions(self) -> Iterator[list[int]]:
        """Labels of the classes that a reader takes for one; -1 are the suppressed records."""
        groups: dict[Any, list[int]] = {}
        for label, key in zip(self.labels, self.read, strict=True):
            groups.setdefault(key, []).append(label)
        return (group for group in groups.values() if len(group) > 1)

    def same_text(self, group: list[int]) -> bool:
        """Whether classes that are read as one are also written alike."""
        first = 0 if self.labels[0] == 0 else 1  # suppressed records come before the first class
        return len({self.written[label + first] for label in group}) == 1

    def key_of(self, state: States) -> Any:
        """How a class with this state would be read."""
        one = Partition(np.zeros(1, dtype=np.int32))
        return self._keys(self._frame(one, state[None, :], np.zeros(1, dtype=np.int64)))[0]

    def _frame(self, partition: Partition, states: States, rows: Ints) -> pl.DataFrame:
        if self.how.recode == "microaggregate":
            return pl.DataFrame(microaggregate(self.data, partition, rows=rows))
        return pl.DataFrame(generalize(self.data, partition, states, intervals=self.how.intervals, rows=rows))

    def _keys(self, frame: pl.DataFrame) -> list[Any]:
        columns = []
        for column in frame:
            read = self._readers.get(column.name)
            distinct = column.unique().to_list()
            # A column is whole numbers where all of them are; one class by itself may look otherwise.
            keys = read(distinct) if read else [float(x) if isinstance(x, int) else x for x in distinct]
            meaning = dict(zip(distinct, keys, strict=True))
            columns.append([meaning[value] for value in column.to_list()])
        return list(zip(*columns, strict=True))


def _settled(table: _Shown, groups: list[list[int]], rules: Rules, space: Space) -> tuple[Partition, States] | None:
    """Every group joined or told apart, None where nothing has to change; an error for what can be neither."""
    owner = np.arange(len(table.states), dtype=np.int64)
    states = table.states.copy()
    changed = False
    taken: set[int] = (
        set()
    )  # joined with a class nearby, which may be in a group of its own: that one waits for the next round
    for group in groups:
        if taken & set(group):
            continue
        members = {label: np.flatnonzero(table.partition.labels == label) for label in group}
        if rules.ok(np.concatenate(list(members.values()))):
            if -1 not in group and table.same_text(group):
                _join(owner, states, group, space)
                changed = True
            continue
        if -1 in group:
            raise _refusal(table.how)
        heaps = _heaps(members, rules)
        for heap in heaps:
            _join(owner, states, heap, space)
        for heap in heaps[1:]:
            size = sum(len(members[label]) for label in heap)
            root = int(owner[heap[0]])
            wider = _wider(table, states[root], size, space) if table.how.recode != "microaggregate" else None
            if wider is None:
                partner = _partner(table, group, members, owner, states, rules, space)
                taken |= {partner, *group}
                _join(owner, states, [partner, *(heap[0] for heap in heaps)], space)
                break
            states[root] = wider
        changed = True
    if not changed:
        return None
    kept, labels = np.unique(owner, return_inverse=True)
    merged = np.append(labels, -1).astype(np.int32)[table.partition.labels]
    return Partition(merged, table.partition.levels, table.partition.notes), states[kept]


def _heaps(members: dict[int, Ints], rules: Rules) -> list[list[int]]:
    """Classes that look alike in as few heaps as come of taking the largest first: each heap is good together."""
    heaps: list[list[int]] = []
    for label in sorted(members, key=lambda label: (-len(members[label]), label)):
        for heap in heaps:
            if rules.ok(np.concatenate([members[one] for one in (*heap, label)])):
                heap.append(label)
                break
        else:
            heaps.append([label])
    return heaps


def _join(owner: Ints, states: States, group: list[int], space: Space) -> None:
    """One class of several: the first one's label, and what holds all of them."""
    roots = sorted({int(owner[label]) for label in group})
    for other in roots[1:]:
        owner[owner == other] = roots[0]
        states[roots[0]] = _union(states[roots[0]], states[other], space)


def _union(one: States, other: States, space: Space) -> States:
    joined = one.copy()
    for a, domain in enumerate(space.domains):
        slot, end = int(space.slots[a]), int(space.slots[a + 1])
        if isinstance(domain, Set):
            joined[slot:end] |= other[slot:end]
        else:
            joined[slot], joined[slot + 1] = min(one[slot], other[slot]), max(one[slot + 1], other[slot + 1])
    return joined


def _wider(table: _Shown, state: States, size: int, space: Space) -> States | None:
    """The cheapest larger region that no class publishes, or None."""
    counter = 0
    heap: list[tuple[float, int, States]] = [(0.0, 0, state)]
    seen = {state.tobytes()}
    tried = 0
    while heap and tried < TRIED:
        _, _, found = heappop(heap)
        tried += 1
        key = table.key_of(found)
        if key not in table.used:
            table.used.add(key)
            return found
        for step in _steps(found, space):
            if step.tobytes() not in seen:
                seen.add(step.tobytes())
                counter += 1
                cost = float(space.unit(step[None, :])[0]) * size
                heappush(heap, (cost, counter, step))
    return None


def _steps(state: States, space: Space) -> Iterator[States]:
    """Every region that is one step larger in one attribute."""
    for a, domain in enumerate(space.domains):
        slot, end = int(space.slots[a]), int(space.slots[a + 1])
        for part in _larger(domain, state[slot:end]):
            step = state.copy()
            step[slot:end] = part
            yield step


def _larger(domain: Domain, part: States) -> Iterator[list[int]]:
    if isinstance(domain, Set):
        words = part.view(np.uint64)
        for code in range(domain.size):
            if not int(words[code >> 6]) >> (code & 63) & 1:
                more = words.copy()
                more[code >> 6] |= np.uint64(1 << (code & 63))
                yield more.view(np.int64).tolist()
        return
    low, high = int(part[0]), int(part[1])
    if isinstance(domain, Tree):
        tree = domain.taxonomy
        node = int(tree.lca(low, high))
        if node != tree.root:
            above = int(tree.parent[node])
            yield [int(tree.first[above]), int(tree.last[above])]
        return
    last = len(domain.values) - 1
    if high > last:  # missing alone, or already anything
        if low > last and last >= 0:
            yield [0, last + 1]
        return
    if low > 0:
        yield [low - 1, high]
    if high < last:
        yield [low, high + 1]
    if domain.has_missing and (low, high) == (0, last):
        yield [0, last + 1]


def _partner(
    table: _Shown,
    group: list[int],
    members: dict[int, Ints],
    owner: Ints,
    states: States,
    rules: Rules,
    space: Space,
) -> int:
    """A class nearby with which all of a group is good; an error where there is none."""
    together = np.concatenate(list(members.values()))
    whole = states[int(owner[group[0]])]
    alone = {int(label) for label, size in zip(*np.unique(owner, return_counts=True), strict=True) if size == 1}
    others = [label for label in table.labels if label in alone and label not in group]
    costs = [float(space.unit(_union(whole, states[label], space)[None, :])[0]) for label in others]
    for position in np.argsort(costs, kind="stable")[:NEAR]:
        label = others[int(position)]
        records = np.concatenate([together, np.flatnonzero(table.partition.labels == label)])
        if rules.ok(records):
            return label
    raise _refusal(table.how)


def _refusal(how: Recoding) -> UnsupportedError:
    ways = "declare more quasi-identifiers or finer ones, or use another algorithm"
    if how.recode == "microaggregate":
        ways = 'use recode = "generalize"'
    elif not how.drop:
        ways = f'{ways}; where records were suppressed, leave them out with suppressed = "drop"'
    return UnsupportedError(
        "Some classes publish the same values, which makes them one class to every reader, and the policy does not hold for them "
        f"together; {ways}."
    )
