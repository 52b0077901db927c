"""Mondrian straight from docs/algorithms.md#mondrian: parts are lists of records, every quantity is worked out anew from the codes.

Extents and savings are compared in units of 2⁻⁴⁰. Ties: larger extent, earlier column, then the order in which an
attribute's cuts are listed: along the taxonomy, between two codes, one value or node against the rest. An attribute
whose codes all agree in a part cannot be cut. Missing is the last code; a number mixed with missing has extent 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

Part = list[int]
Good = Callable[[Sequence[int]], bool]


def mondrian(
    data: Any,
    good: Good,
    *,
    mode: str = "strict",
    categories: str = "auto",
    split: str = "median",
    cuts: str = "median",
    measure: str = "ncp",
) -> list[Part]:
    """The classes, left children first."""
    table = Table(data, categories, measure)

    def divide(part: Part) -> list[Part]:
        for children in ordered_cuts(table, part, mode, split, cuts):
            if all(good(child) for child in children):
                return [piece for child in children for piece in divide(child)]
        return [part]

    return divide(list(range(len(table.codes))))


def ordered_cuts(table: Table, part: Part, mode: str, split: str, cuts: str) -> Iterator[list[Part]]:
    """All cuts of a part, the preferred one first."""
    extents = [ticks(table.extent(part, a)) for a in range(table.width)]
    usable = [a for a in range(table.width) if len(table.present(part, a)) > 1]
    usable.sort(key=lambda a: (-extents[a], a))
    if split == "median":
        for a in usable:
            yield branches(table, part, a) if table.tree[a] else median_halves(table, part, a, mode)
        return
    listed: list[list[Part]] = []
    for a in usable:
        if cuts == "median":
            listed.append(branches(table, part, a) if table.tree[a] else median_halves(table, part, a, mode))
        else:
            listed += every_cut(table, part, a)
    listed = [children for children in listed if all(children)]
    yield from sorted(listed, key=lambda children: -ticks(saving(table, part, children)))


def median_halves(table: Table, part: Part, a: int, mode: str) -> list[Part]:
    """Strict: the records up to the median value and the others. Relaxed: the first half by (value, record)."""
    ordered = sorted(part, key=lambda r: (table.codes[r][a], r))
    if mode == "relaxed":
        return [sorted(ordered[: len(part) // 2]), sorted(ordered[len(part) // 2 :])]
    median = table.codes[ordered[(len(part) + 1) // 2 - 1]][a]
    return halves(table, part, a, [code for code in table.present(part, a) if code <= median])


def halves(table: Table, part: Part, a: int, inside: Sequence[int]) -> list[Part]:
    return [
        [r for r in part if table.codes[r][a] in inside],
        [r for r in part if table.codes[r][a] not in inside],
    ]


def branches(table: Table, part: Part, a: int) -> list[Part]:
    """One child for each child of the lowest common ancestor that has records."""
    level = table.common_depth(table.present(part, a), a) + 1
    return [[r for r in part if table.codes[r][a] in group] for group in table.groups(table.present(part, a), a, level)]


def every_cut(table: Table, part: Part, a: int) -> list[list[Part]]:
    codes = table.present(part, a)
    if table.tree[a]:
        found = [branches(table, part, a)]
        seen: list[list[int]] = []
        for level in range(table.common_depth(codes, a) + 1, table.deepest[a] + 1) if table.apart else ():
            for group in table.groups(codes, a, level):
                if group not in seen:
                    seen.append(group)
                    found.append(halves(table, part, a, group))
        return found
    found = [halves(table, part, a, codes[:j]) for j in range(1, len(codes))]
    if table.apart and table.kinds[a] == "Set":
        found += [halves(table, part, a, [code]) for code in codes[1:]]
    return found


def saving(table: Table, part: Part, children: list[Part]) -> float:
    """Loss per record before the cut minus after."""
    after = 0.0
    for child in children:
        after += len(child) / len(part) * table.loss(child)
    return table.loss(part) - after


def ticks(x: float) -> int:
    return round(x * 2.0**40)


class Table:
    """Codes, extents and losses of a table, looked up in the dullest way."""

    def __init__(self, data: Any, categories: str, measure: str) -> None:
        self.codes = [[int(code) for code in row] for row in data.codes]
        self.domains, self.width, self.measure = data.domains, len(data.domains), measure
        self.kinds = [type(domain).__name__ for domain in data.domains]
        self.weights = [float(data.schema.attributes[name].weight) for name in data.quasi]
        self.tree = [kind == "Tree" and categories in ("auto", "hierarchy") for kind in self.kinds]
        self.apart, self.by_codes = categories == "auto", categories == "codes"
        self.paths = [
            _paths(domain) if kind == "Tree" else [] for domain, kind in zip(data.domains, self.kinds, strict=True)
        ]
        self.deepest = [max((len(path) for path in paths), default=1) - 1 for paths in self.paths]

    def present(self, part: Part, a: int) -> list[int]:
        return sorted({self.codes[r][a] for r in part})

    def extent(self, part: Part, a: int) -> float:
        codes, domain = self.present(part, a), self.domains[a]
        if len(codes) == 1:
            return 0.0
        if self.kinds[a] == "Interval":
            return self.extent_of_numbers(codes, a)
        if self.by_codes:
            return (codes[-1] - codes[0]) / (domain.size - 1)
        return len(self.below(codes, a)) / domain.size if self.tree[a] else len(codes) / domain.size

    def common_depth(self, codes: list[int], a: int) -> int:
        """Depth of the lowest common ancestor; the root has depth 0."""
        paths = [self.paths[a][code] for code in codes]
        return max(i for i in range(min(map(len, paths))) if len({path[i] for path in paths}) == 1)

    def below(self, codes: list[int], a: int) -> list[int]:
        """The leaves under the lowest common ancestor."""
        depth = self.common_depth(codes, a)
        node = self.paths[a][codes[0]][depth]
        return [leaf for leaf, path in enumerate(self.paths[a]) if node in path]

    def groups(self, codes: list[int], a: int, depth: int) -> list[list[int]]:
        """The codes by their ancestor at a depth; a leaf above it stands for itself."""
        nodes = [path[min(depth, len(path) - 1)] for path in self.paths[a]]
        return [
            [code for code in codes if nodes[code] == node] for node in dict.fromkeys(nodes[code] for code in codes)
        ]

    def loss(self, part: Part) -> float:
        """Weighted loss of one record of the part."""
        total = 0.0
        for a in range(self.width):
            total += self.weights[a] * self.attribute_loss(self.present(part, a), a)
        return total

    def attribute_loss(self, codes: list[int], a: int) -> float:
        domain = self.domains[a]
        if len(codes) == 1:
            return 0.0
        if self.kinds[a] == "Interval":
            return min(1.0, self.extent_of_numbers(codes, a))
        if self.kinds[a] == "Tree":
            leaves = self.below(codes, a)
            if self.measure == "il":
                depth = self.common_depth(codes, a)
                return (max(len(self.paths[a][leaf]) for leaf in leaves) - 1 - depth) / self.deepest[a]
            count = len(leaves)
        else:
            count = len(codes)
        return (count - 1) / (domain.size - 1) if self.measure == "granularity" else count / domain.size

    def extent_of_numbers(self, codes: list[int], a: int) -> float:
        values = self.domains[a].values
        return 1.0 if codes[-1] == len(values) else (values[codes[-1]] - values[codes[0]]) / self.domains[a].width


def _paths(domain: Any) -> list[list[int]]:
    """Each leaf's nodes from the root down."""
    parent = [int(node) for node in domain.taxonomy.parent]
    paths = []
    for leaf in range(domain.size):
        path = [leaf]
        while parent[path[0]] != -1:
            path.insert(0, parent[path[0]])
        paths.append(path)
    return paths
