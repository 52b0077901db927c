"""Naive algorithms for `exactness.py`: each step looks at every record, in plain NumPy.

They share no code with the package. Where a step is more than a scan it is the twin's (`tests/reference`); ties and rounding
are the twins' everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.reference import i3m as i3m_twin
from tests.reference import micro as micro_twin
from tests.reference import pk as pk_twin
from tests.reference.k_member import Table, ticks

from shoal.microdata import Microdata

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


# ---- k_member, greedy_pk, enhanced_pk, I3M: the scans of the twins


class Scans(Table):
    """The twin's table with its scans over arrays."""

    def joined(self, members: Sequence[int], candidates: Sequence[int]) -> Floats:
        own, new = self.codes[list(members)], self.codes[np.asarray(candidates)]
        total = np.zeros(len(new))
        for a, losses in enumerate(self.losses):
            if self.is_set[a]:
                held = np.unique(own[:, a])
                loss = losses[len(held) + ~np.isin(new[:, a], held)]
            else:
                loss = losses[np.minimum(own[:, a].min(), new[:, a]), np.maximum(own[:, a].max(), new[:, a])]
            total = total + self.weights[a] * loss
        return total

    def furthest(self, record: int, rest: Sequence[int]) -> int:
        return least(-ticks(self.joined([record], rest)), rest)

    def cheapest(self, members: Sequence[int], rest: Sequence[int]) -> int:
        return least(ticks(self.joined(members, rest)), rest)


def least(cost: Ints, records: Sequence[int]) -> int:
    """The smallest record of those with the least cost."""
    return int(np.asarray(records)[cost == cost.min()].min())


class SecretScans(pk_twin.Secrets):
    """The twin's sensitive attributes; records with the same values are asked about once."""

    def __init__(self, codes: Sequence[Sequence[int]], p: Sequence[int]) -> None:
        super().__init__(codes, p)
        _, self.example, self.kind = np.unique(np.array(self.codes), axis=1, return_index=True, return_inverse=True)

    def gains(self, cluster: Sequence[int], records: Sequence[int]) -> Ints:
        """div of every record, in ticks."""
        found = ticks([self.div(int(example), cluster) for example in self.example])
        return np.asarray(found[self.kind.ravel()[np.asarray(records)]])


def best_match(table: Table, secrets: SecretScans, records: Sequence[int], cluster: list[int]) -> tuple[int, float]:
    gains = secrets.gains(cluster, records)
    best = np.asarray(records)[gains == gains.max()]
    chosen = table.cheapest(cluster, best.tolist()) if cluster else int(best.min())
    return chosen, secrets.div(chosen, cluster)


def sweep(table: Table, secrets: SecretScans, sec: Sequence[int], clusters: list[list[int]]) -> None:
    records = np.asarray(sec)
    gain = np.concatenate([secrets.gains(cluster, sec) for cluster in clusters])
    cost = np.concatenate([ticks(table.added(cluster, sec)) for cluster in clusters])
    record, owner = np.tile(records, len(clusters)), np.repeat(np.arange(len(clusters)), len(records))
    free, waiting = np.ones(table.n, dtype=bool), np.ones(len(clusters), dtype=bool)
    for i in np.lexsort((owner, record, cost, -gain)):
        if free[record[i]] and waiting[owner[i]]:
            free[record[i]] = waiting[owner[i]] = False
            clusters[owner[i]].append(int(record[i]))


def disperse(table: Table, records: Sequence[int], clusters: list[list[int]]) -> None:
    """Each record to the class with the least added loss, all classes at once."""
    spans = Spans(table, dict(enumerate(clusters)), len(clusters))
    for record in sorted(records):
        c = int(np.argmin(ticks((spans.size + 1) * spans.joined(record) - spans.size * spans.unit)))
        clusters[c].append(record)
        spans.renew(c, clusters[c])


class Spans:
    """What classes span: lowest and highest codes, or the set of them; room for more classes than there are."""

    def __init__(self, table: Table, classes: Mapping[int, list[int]], room: int) -> None:
        self.table = table
        self.low, self.high = np.zeros((2, room, len(table.losses)), dtype=np.int64)
        self.held = {
            a: np.zeros((room, len(table.losses[a])), dtype=bool) for a, is_set in enumerate(table.is_set) if is_set
        }
        self.unit, self.size = np.zeros(room), np.zeros(room, dtype=np.int64)
        for c, members in classes.items():
            self.renew(c, members)

    def renew(self, c: int, members: list[int]) -> None:
        own = self.table.codes[members]
        self.low[c], self.high[c] = own.min(axis=0), own.max(axis=0)
        for a, sets_of in self.held.items():
            sets_of[c] = np.isin(np.arange(sets_of.shape[1]), own[:, a])
        self.unit[c], self.size[c] = self.table.unit(members), len(members)

    def joined(self, record: int) -> Floats:
        """The loss of one record of each class once it holds this one."""
        total = np.zeros(len(self.unit))
        for a, losses in enumerate(self.table.losses):
            code = self.table.codes[record, a]
            if a in self.held:
                loss = losses[self.held[a].sum(axis=1) + ~self.held[a][:, code]]
            else:
                loss = losses[np.minimum(self.low[:, a], code), np.maximum(self.high[:, a], code)]
            total = total + self.table.weights[a] * loss
        return total


class Stepwise(i3m_twin.Classes):
    """I3M; a record is compared with all classes at once."""

    def __init__(self, table: Table, labels: Mapping[int, int], k: int) -> None:
        super().__init__(table, labels, k)
        self.spans = Spans(table, self.classes, self.next + 1 + len(table.codes) // k)

    def delete(self, records: Iterable[int]) -> None:
        # The twin changes classes here before it places anybody: all spans are looked at again.
        gone = set(records)
        for members in self.classes.values():
            members[:] = [record for record in members if record not in gone]
        for c, members in self.classes.items():
            if members:
                self.spans.renew(c, members)
        super().delete(())

    def add(self, record: int) -> None:
        there = np.array(sorted(self.classes))
        after = self.spans.joined(record)[there]
        cost = ticks(after + self.spans.size[there] * (after - self.spans.unit[there]))
        c = int(there[np.argmin(cost)])
        self.classes[c].append(record)
        while len(self.classes[c]) >= 2 * self.k:
            new = i3m_twin.split(self.table, self.classes[c], self.k)
            self.classes[c] = [r for r in self.classes[c] if r not in new]
            self.classes[self.next] = new
            self.spans.renew(self.next, new)
            self.next += 1
        self.spans.renew(c, self.classes[c])


# ---- mdav, p_mdav, kpqr


class Points:
    """Records as points; distances are summed and rounded as the twin does it."""

    def __init__(self, X: Floats) -> None:
        self.X, self.columns = X, np.ascontiguousarray(X.T)

    def distances(self, query: Floats) -> Floats:
        total = np.zeros(len(self.X))
        for column, value in zip(self.columns, query, strict=True):
            total += (column - value) ** 2
        return np.where(total < 2048, np.rint(total * 2.0**40) / 2.0**40, (total + 6144.0) - 6144.0)

    def farthest(self, query: Floats, rows: Ints) -> int:
        return int(rows[np.argmax(self.distances(query)[rows])])

    def mean(self, rows: Ints) -> Floats:
        return np.asarray(self.X[rows].sum(axis=0, dtype=np.longdouble).astype(np.float64) / len(rows))

    def group(self, seed: int, rows: Ints, k: int) -> tuple[list[int], Ints]:
        """The seed and the k - 1 records next to it, and the rows without them."""
        distance = self.distances(self.X[seed])[rows]
        distance[rows == seed] = -1.0
        near = np.argsort(distance, kind="stable")[:k]
        return rows[near].tolist(), np.delete(rows, near)


def mdav(X: Floats, k: int, form: str, rows: Ints | None = None) -> list[list[int]]:
    points, free, groups = Points(X), np.arange(len(X)) if rows is None else rows, []
    while len(free) >= 2 * k:
        paired = form == "generic" and len(free) >= 3 * k
        seed = points.farthest(points.mean(free), free)
        group, free = points.group(seed, free, k)
        groups.append(group)
        if paired:
            group, free = points.group(points.farthest(X[seed], free), free, k)
            groups.append(group)
    return [*groups, free.tolist()]


class Growing:
    """One group of free records, nearest first."""

    def __init__(self, points: Points, seed: int, free: Mask) -> None:
        self.group, self.free, self.distance = [seed], free, points.distances(points.X[seed])
        free[seed] = False

    def take(self, candidates: Mask) -> None:
        self.group.append(int(np.argmin(np.where(candidates, self.distance, np.inf))))
        self.free[self.group[-1]] = False


def p_mdav(X: Floats, k: int, codes: Ints, p: int) -> list[list[int]]:
    points, free, groups = Points(X), np.ones(len(X), dtype=bool), []
    for seed in range(len(X)):
        if not free[seed]:
            continue
        if free.sum() < k or distinct(codes[free]) < p:
            break
        one = Growing(points, seed, free)
        while distinct(codes[one.group]) < p:
            one.take(free & (codes >= 0) & ~np.isin(codes, codes[one.group]))
        while len(one.group) < k:
            one.take(free)
        groups.append(one.group)
    return groups


def kpqr(X: Floats, k: int, rule: micro_twin.Attribute, codes: Ints) -> list[list[int]]:
    """One rule, first test of the tail; what depends on a record's value alone is asked once a value."""
    points, free, groups = Points(X), np.ones(len(X), dtype=bool), []
    _, example, kind = np.unique(codes, return_index=True, return_inverse=True)
    rare = np.array([rule.obliges([int(i)]) for i in example])[kind]

    def by_value(question: Callable[[int], bool]) -> Mask:
        return free & np.array([question(int(i)) for i in example])[kind]

    def merit(group: list[int]) -> float:
        return micro_twin.merit([rule], group)

    for seed in np.flatnonzero(rare):
        if not free[seed]:
            continue
        one = Growing(points, int(seed), free)
        reachable = True
        while reachable and rule.few(one.group):
            new = free & (codes >= 0) & ~np.isin(codes, codes[one.group])
            reachable = bool(new.any())
            if reachable:
                one.take(new)
        while reachable and rule.flat(one.group):
            now = merit(one.group)
            rising = by_value(lambda i, one=one, now=now: merit([*one.group, i]) > now + 1e-12)
            if not rising.any():
                break
            one.take(rising)
        while len(one.group) < k and free.any():
            kept = by_value(lambda i, one=one: micro_twin.keeps([rule], one.group, i))
            one.take(kept if kept.any() else free)
        rest = free & rare
        if rest.any() and (free.sum() < k or distinct(codes[free]) < rule.p):
            one.group += np.flatnonzero(rest).tolist()
            free &= ~rest
        groups.append(one.group)
    if free.sum() >= k:
        groups += mdav(X, k, "single", np.flatnonzero(free))
    return groups


def distinct(codes: Ints) -> int:
    return len(np.unique(codes[codes >= 0]))


# ---- spatial_distance


def spatial_distance(codes: Ints, numbers: dict[int, Floats], k: int) -> list[list[int]]:
    """Numbers are scaled and NaN where missing; the other columns are categories."""
    categories = [a for a in range(codes.shape[1]) if a not in numbers]
    variety = [len(np.unique(column)) for column in codes.T]
    pool = np.argsort(codes[:, int(np.argmax(variety))], kind="stable")

    def distances(members: list[int], far: dict[int, Floats], rows: Ints) -> Ints:
        total = np.zeros(len(rows))
        for a in range(codes.shape[1]):
            if a in far:
                total = total + far[a][codes[rows, a]]
                continue
            known = [value for value in numbers[a][members].tolist() if value == value]
            values = numbers[a][rows]
            apart = np.abs(sum(known) / len(known) - values) if known else np.where(np.isnan(values), 0.0, 1.0)
            total = total + np.where(np.isnan(apart), 1.0, apart)
        return np.rint(total * 2.0**40).astype(np.int64)

    groups: list[list[int]] = []
    while len(pool) >= k:
        columns = {a: Column.of(codes[pool, a], int(codes[:, a].max()) + 1) for a in categories}
        members, pool = [int(pool[0])], pool[1:]
        while len(members) < k:
            far = category_distances(columns, {a: np.unique(codes[members, a]) for a in categories}, k)
            best = int(np.argmin(distances(members, far, pool)))
            members.append(int(pool[best]))
            pool = np.delete(pool, best)
        groups.append(members)
    columns = {a: Column.of(codes[:, a], int(codes[:, a].max()) + 1) for a in categories}
    for r in pool:
        prices = []
        for members in groups:
            far = category_distances(columns, {a: np.unique(codes[members, a]) for a in categories}, k)
            prices.append(int(distances(members, far, np.array([r]))[0]))
        groups[int(np.argmin(prices))].append(int(r))
    return groups


@dataclass(frozen=True)
class Column:
    """A category of the pool: its codes, and those that occur."""

    codes: Ints
    values: Ints
    size: int

    @classmethod
    def of(cls, codes: Ints, size: int) -> Column:
        return cls(codes, np.unique(codes), size)


def category_distances(columns: dict[int, Column], own: dict[int, Ints], k: int) -> dict[int, Floats]:
    """SpatialDistance's distances of all values from the reference's own; contexts of attributes with fewer values first."""
    order = sorted(columns, key=lambda a: (len(columns[a].values), a))
    rows = np.arange(len(columns[order[0]].codes)) if order else np.zeros(0, dtype=np.int64)
    contexts, least_yet, result = [rows], 1.0, {}
    for a in order:
        column, inside = columns[a], np.zeros(columns[a].size, dtype=bool)
        inside[own[a]] = True
        distance, others = np.zeros(column.size), column.values[~inside[column.values]]
        if len(column.values) == 2:
            distance[others] = least_yet = 1.0
        elif len(column.values) > 2 and len(others):
            matching = next((rows for rows in reversed(contexts) if len(rows) >= k), contexts[0])
            share = np.bincount(column.codes[matching], minlength=column.size) / len(matching)
            held = share[column.values[inside[column.values]]].tolist()
            away = np.abs(share - sum(held) / max(1, len(held)))
            level = np.rint(away * 2.0**40)
            ranked = others[np.lexsort((others, share[others], -level[others]))]
            ranks = np.cumsum(np.concatenate([[0], np.diff(level[ranked]) != 0]))
            current = least_yet / len(others)
            for i, value in enumerate(ranked):
                if i > 0 and ranks[i] != ranks[i - 1]:
                    current /= len(others)
                distance[value] = current
            least_yet = current
        result[a] = distance
        contexts.append(contexts[-1][inside[column.codes[contexts[-1]]]])
    return result


# ---- il_optimization


def il_optimization(data: Microdata, table: Table, start: Sequence[list[int]]) -> list[list[int]]:
    """Which codes a class covers is kept as a table of classes and codes for each attribute."""
    current = {c: list(members) for c, members in enumerate(start)}
    units = np.array([int(ticks(table.unit(members))) for members in current.values()])
    covers = [
        np.array([covered(domain, set(data.codes[members, a].tolist())) for members in current.values()])
        for a, domain in enumerate(data.domains)
    ]
    there = np.ones(len(units), dtype=bool)

    def covers_of(record: int, own: int) -> Ints:
        found = there.copy()
        found[own] = False
        for a, table_of_codes in enumerate(covers):
            found &= table_of_codes[:, data.codes[record, a]]
        return np.flatnonzero(found)

    total = [c for c, members in current.items() if all(len(covers_of(r, c)) for r in members)]
    for c in sorted(total, key=lambda c: (-len(current[c]) * units[c], c)):
        found = {record: covers_of(record, c) for record in current[c]}
        if not all(len(classes) for classes in found.values()):
            continue
        targets = {record: classes[np.argmin(units[classes])] for record, classes in found.items()}
        if sum(units[t] for t in targets.values()) < len(current[c]) * units[c]:
            for record, t in targets.items():
                current[int(t)].append(record)
            there[c] = False
            del current[c]
    return list(current.values())


def covered(domain: Any, codes: set[int]) -> Mask:
    """The codes that leave what is published as it is."""
    if len(codes) == 1 or type(domain).__name__ == "Set":
        return np.isin(np.arange(domain.size), list(codes))
    if type(domain).__name__ == "Interval":
        beyond = max(codes) == len(domain.values)
        return np.array([beyond or min(codes) <= code <= max(codes) for code in range(domain.size)])
    parent = [int(above) for above in domain.taxonomy.parent]
    lines = []
    for node in range(domain.size):
        line = [node]
        while parent[line[-1]] != -1:
            line.append(parent[line[-1]])
        lines.append(line)
    top = next(node for node in lines[min(codes)] if all(node in lines[code] for code in codes))
    return np.array([top in line for line in lines])
