"""Top-down local recoding straight from docs/algorithms.md#top_down (Wong et al. 2006, Xu et al. 2006), in plain Python.

Costs are compared in units of 2⁻⁴⁰, ties go to the smaller record, group or column. `deficit` says what a class lacks
under the policy. Wong: numbers are halved after their median record again and again (a value nobody has counts
as one record), missing is cut off first; categories without a taxonomy have a root and their values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Deficit = Callable[[Sequence[int]], float]
Rows = list[int]


def ticks(x: float) -> int:
    return round(x * 2.0**40)


def wong(data: Any, k: int, deficit: Deficit) -> list[Rows]:
    """The records that stay at a node, then the classes of its branches, in their order."""
    paths = [_paths(domain, [int(c) for c in data.codes[:, a]]) for a, domain in enumerate(data.domains)]
    classes: list[Rows] = []

    def visit(rows: Rows, depth: list[int]) -> None:
        best: tuple[int, int, int] | None = None
        for a in range(len(paths)):
            path = {r: paths[a][int(data.codes[r, a])] for r in rows}
            if depth[a] + 1 >= min(len(path[r]) for r in rows):
                # The node is a leaf: all records of a part share it.
                continue
            branches: dict[Any, Rows] = {}
            for r in rows:
                branches.setdefault(path[r][depth[a] + 1], []).append(r)
            ordered = [branches[node] for node in sorted(branches, key=lambda node: min(_codes_under(paths[a], node)))]
            kept, stay = settle(ordered, k, deficit)
            score = (-sum(map(len, kept)), len(kept), a)
            if kept and (best is None or score < best):
                best, chosen = score, (kept, stay)
        if best is None:
            classes.append(rows)
            return
        kept, stay = chosen
        if stay:
            classes.append(sorted(stay))
        for branch in kept:
            visit(branch, [d + (a == best[2]) for a, d in enumerate(depth)])

    visit(list(range(len(data.codes))), [0] * len(paths))
    return classes


def settle(branches: list[Rows], k: int, deficit: Deficit) -> tuple[list[Rows], Rows]:
    """Branches that stay, and the records that return to the parent."""
    kept = [list(branch) if deficit(branch) <= 0 else [] for branch in branches]
    stay = [r for branch in branches if deficit(branch) > 0 for r in branch]
    while stay and deficit(stay) > 0:
        best: tuple[int, int, int, int] | None = None
        for b, branch in enumerate(kept):
            for r in branch:
                fall = ticks(deficit(stay) - deficit([*stay, r]))
                rest = [x for x in branch if x != r]
                if fall > 0 and rest and deficit(rest) <= 0:
                    key = (-fall, -(len(branch) - k), b, r)
                    best = key if best is None or key < best else best
        if best is not None:
            stay.append(best[3])
            kept[best[2]].remove(best[3])
        else:
            smallest = min((b for b, branch in enumerate(kept) if branch), key=lambda b: (len(kept[b]), b))
            stay += kept[smallest]
            kept[smallest] = []
    return [branch for branch in kept if branch], stay


def _paths(domain: Any, column: list[int]) -> list[list[Any]]:
    """Each code's nodes from the root down, all labels different."""
    kind = type(domain).__name__
    if kind == "Set":
        return [["root", code] for code in range(domain.size)]
    if kind == "Tree":
        parent = [int(node) for node in domain.taxonomy.parent]
        paths = []
        for leaf in range(domain.size):
            path = [leaf]
            while parent[path[0]] != -1:
                path.insert(0, parent[path[0]])
            paths.append(path)
        return paths
    known = len(domain.values)
    paths = [[("root",)] for _ in range(domain.size)]
    counts = [max(1, column.count(code)) for code in range(known)]

    def halve(first: int, last: int) -> None:
        if first == last:
            return
        half, so_far, middle = sum(counts[first : last + 1]) / 2, 0, first
        for code in range(first, last + 1):
            so_far += counts[code]
            if so_far >= half:
                middle = min(code, last - 1)
                break
        for low, high in ((first, middle), (middle + 1, last)):
            for code in range(low, high + 1):
                paths[code].append((low, high))
            halve(low, high)

    if domain.size > known > 0:
        for code in range(known):
            paths[code].append(("known",))
        paths[known].append(("missing",))
    halve(0, known - 1)
    return paths


def _codes_under(paths: list[list[Any]], node: Any) -> list[int]:
    return [code for code, path in enumerate(paths) if node in path]


class Xu:
    """Xu et al.; losses come from the table's codes, numbers and parent arrays."""

    def __init__(self, data: Any, k: int, deficit: Deficit, measure: str = "ncp") -> None:
        self.codes = [[int(code) for code in row] for row in data.codes]
        self.k, self.deficit, self.measure, self.domains = k, deficit, measure, data.domains
        self.weights = [float(data.schema.attributes[name].weight) for name in data.quasi]
        self.paths = [_paths(domain, []) if type(domain).__name__ == "Tree" else [] for domain in data.domains]

    def top_down(self, random: np.random.Generator | None, only_size: bool) -> list[Rows]:
        groups = self.split(list(range(len(self.codes))), random)
        return self.repair(groups) if only_size else self.merge_failing(groups)

    def split(self, rows: Rows, random: np.random.Generator | None) -> list[Rows]:
        if len(rows) < 2 * self.k:
            return [rows]
        u, v = self.seeds(rows, rows[0] if random is None else rows[int(random.integers(len(rows)))])
        rest = [r for r in rows if r not in (u, v)]
        if random is not None:
            rest = [int(r) for r in random.permutation(rest)]
        first, second = [u], [v]
        for r in rest:
            closer = second if ticks(self.unit([*second, r])) < ticks(self.unit([*first, r])) else first
            closer.append(r)
        parts = [sorted(first), sorted(second)]
        good = [self.deficit(part) <= 0 for part in parts]
        if not any(good):
            return [rows]
        return [g for part, ok in zip(parts, good, strict=True) for g in (self.split(part, random) if ok else [part])]

    def seeds(self, rows: Rows, u: int) -> tuple[int, int]:
        found, best = (u, u), -1
        for _ in range(3):
            v = self.farthest(rows, u)
            u = self.farthest(rows, v)
            distance = ticks(self.unit([u, v]))
            if distance <= best:
                break
            found, best = (u, v), distance
        return found

    def farthest(self, rows: Rows, u: int) -> int:
        return min((r for r in rows if r != u), key=lambda r: (-ticks(self.unit([u, r])), r))

    def repair(self, groups: list[Rows]) -> list[Rows]:
        while any(0 < len(group) < self.k for group in groups):
            g = next(i for i, group in enumerate(groups) if 0 < len(group) < self.k)
            others = [i for i, group in enumerate(groups) if group and i != g]
            partner = min(others, key=lambda i: (ticks(self.unit(groups[g] + groups[i])), i))
            merging = ticks(self.growth([groups[g], groups[partner]], [groups[g] + groups[partner]]))
            loans = []
            for i in others:
                if len(groups[i]) >= 2 * self.k - len(groups[g]):
                    pair = self.loan(groups[g], groups[i])
                    loans.append((ticks(self.growth([groups[g], groups[i]], list(pair))), i, pair))
            if loans and min(loans)[0] <= merging:
                _, i, (groups[g], groups[i]) = min(loans)
            else:
                groups[min(g, partner)], groups[max(g, partner)] = sorted(groups[g] + groups[partner]), []
        return [group for group in groups if group]

    def loan(self, small: Rows, lender: Rows) -> tuple[Rows, Rows]:
        while len(small) < self.k:
            costs = []
            for r in lender:
                rest = [x for x in lender if x != r]
                costs.append((ticks((len(small) + 1) * self.unit([*small, r]) + len(rest) * self.unit(rest)), r))
            r = min(costs)[1]
            small, lender = sorted([*small, r]), [x for x in lender if x != r]
        return small, lender

    def growth(self, before: list[Rows], after: list[Rows]) -> float:
        return sum(len(g) * self.unit(g) for g in after) - sum(len(g) * self.unit(g) for g in before)

    def merge_failing(self, groups: list[Rows]) -> list[Rows]:
        while any(group and self.deficit(group) > 0 for group in groups):
            g = next(i for i, group in enumerate(groups) if group and self.deficit(group) > 0)
            others = [i for i, group in enumerate(groups) if group and i != g]
            others.sort(key=lambda i: (ticks(self.unit(groups[g] + groups[i])), i))
            other = next((i for i in others if self.deficit(groups[g] + groups[i]) <= 0), others[0])
            groups[min(g, other)], groups[max(g, other)] = sorted(groups[g] + groups[other]), []
        return [group for group in groups if group]

    def bottom_up(self) -> list[Rows]:
        groups = [[r] for r in range(len(self.codes))]
        while any(group and self.deficit(group) > 0 for group in groups):
            failing = [i for i, group in enumerate(groups) if group and self.deficit(group) > 0]
            g = min(failing, key=lambda i: (len(groups[i]), i))
            others = [i for i, group in enumerate(groups) if group and i != g]
            other = min(others, key=lambda i: (ticks(self.unit(groups[g] + groups[i])), i))
            groups[min(g, other)], groups[max(g, other)] = sorted(groups[g] + groups[other]), []
        parts = []
        for group in groups:
            rows = group
            while len(rows) >= 2 * self.k:
                near = [self.seeds(rows, rows[0])[0]]
                while len(near) < self.k:
                    rest = [r for r in rows if r not in near]
                    near.append(min(rest, key=lambda r: (ticks(self.unit([*near, r])), r)))
                rest = [r for r in rows if r not in near]
                if self.deficit(near) > 0 or self.deficit(rest) > 0:
                    break
                parts.append(sorted(near))
                rows = rest
            if rows:
                parts.append(rows)
        return parts

    def unit(self, rows: Rows) -> float:
        """Weighted loss of one record of a group."""
        total = 0.0
        for a in range(len(self.domains)):
            total += self.weights[a] * self.loss(sorted({self.codes[r][a] for r in rows}), a)
        return total

    def loss(self, codes: list[int], a: int) -> float:
        domain, kind = self.domains[a], type(self.domains[a]).__name__
        if len(codes) <= 1:
            return 0.0
        if kind == "Interval":
            values = domain.values
            return 1.0 if codes[-1] == len(values) else float(values[codes[-1]] - values[codes[0]]) / domain.width
        count = len(codes)
        if kind == "Tree":
            shared = [node for node in self.paths[a][codes[0]] if all(node in self.paths[a][code] for code in codes)]
            under = _codes_under(self.paths[a], shared[-1])
            if self.measure == "il":
                heights = [len(self.paths[a][code]) for code in under]
                return (max(heights) - len(shared)) / (max(map(len, self.paths[a])) - 1)
            count = len(under)
        return (count - 1) / (domain.size - 1) if self.measure == "granularity" else count / domain.size
