"""Full-domain generalization straight from docs/algorithms.md (incognito, datafly): every node looks at every record.

`table` is a list of rows of codes. `levels[a][level][code]` is the group of a code. `ok` tells whether a list of
records is a good class. Nodes are tuples of levels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations, product

Node = tuple[int, ...]
Table = Sequence[Sequence[int]]
Levels = Sequence[Sequence[Sequence[object]]]
Ok = Callable[[list[int]], bool]
Split = tuple[list[list[int]], list[int]]
"""The classes that stay, and the records that are suppressed."""


def padded(paths: Sequence[Sequence[str]]) -> list[list[object]]:
    """Levels of a tree given by paths from leaf to root; shorter ones repeat their leaf. A node is its path upwards."""
    longest = max(map(len, paths))
    full = [[path[0]] * (longest - len(path)) + list(path) for path in paths]
    return [[tuple(path[level:]) for path in full] for level in range(longest)]


def classes_at(table: Table, levels: Levels, attributes: Sequence[int], node: Node) -> list[list[int]]:
    """Records with equal generalized values, in order of their smallest record."""
    found: dict[tuple[object, ...], list[int]] = {}
    for record, row in enumerate(table):
        key = tuple(levels[a][level][row[a]] for a, level in zip(attributes, node, strict=True))
        found.setdefault(key, []).append(record)
    return list(found.values())


def passes(table: Table, levels: Levels, attributes: Sequence[int], node: Node, ok: Ok, budget: int) -> bool:
    classes = classes_at(table, levels, attributes, node)
    return sum(len(members) for members in classes if not ok(members)) <= budget


def all_nodes(levels: Levels) -> list[Node]:
    return sorted(product(*(range(len(one)) for one in levels)), key=lambda node: (sum(node), node))


def satisfying_nodes(table: Table, levels: Levels, ok: Ok, budget: int = 0) -> list[Node]:
    """Exhaustive search of the whole lattice, by rising height."""
    every = range(len(levels))
    return [node for node in all_nodes(levels) if passes(table, levels, every, node, ok, budget)]


def minimal_nodes(nodes: Iterable[Node]) -> list[Node]:
    known = list(nodes)
    return [node for node in known if not any(below in known for below in direct_specializations(node))]


def direct_specializations(node: Node) -> list[Node]:
    return [(*node[:a], level - 1, *node[a + 1 :]) for a, level in enumerate(node) if level > 0]


def checks(table: Table, levels: Levels, ok: Ok, budget: int = 0) -> int:
    """How many nodes Incognito counts: those that survived in smaller sets, with no specialization that passed."""
    counted = 0
    survivors: dict[tuple[int, ...], set[Node]] = {}
    for size in range(1, len(levels) + 1):
        found: dict[tuple[int, ...], set[Node]] = {}
        for attributes in combinations(range(len(levels)), size):
            passed: set[Node] = set()
            for node in all_nodes([levels[a] for a in attributes]):
                parts = [(attributes[:i] + attributes[i + 1 :], node[:i] + node[i + 1 :]) for i in range(size)]
                if size > 1 and not all(rest in survivors[which] for which, rest in parts):
                    continue
                if any(below in passed for below in direct_specializations(node)):
                    passed.add(node)
                    continue
                counted += 1
                if passes(table, levels, attributes, node, ok, budget):
                    passed.add(node)
            found[attributes] = passed
        survivors = found
    return counted


def split(table: Table, levels: Levels, node: Node, ok: Ok, masked: str, limit: int) -> Split | None:
    """What a node publishes. Suppressed records that are no good class take the smallest good class along that helps.

    Equally small classes: the one with the smaller groups, attribute by attribute.
    """
    classes = classes_at(table, levels, range(len(levels)), node)
    classes.sort(key=lambda members: [place(levels[a][node[a]], table[members[0]][a]) for a in range(len(levels))])
    good = [members for members in classes if ok(members)]
    lost = [record for members in classes if not ok(members) for record in members]
    if not good:
        return None
    if not lost or masked == "drop" or ok(lost):
        return good, sorted(lost)
    for members in sorted(good, key=len):
        if len(good) > 1 and len(lost) + len(members) <= limit and ok(lost + members):
            return [one for one in good if one is not members], sorted(lost + members)
    return None


def place(groups: Sequence[object], code: int) -> int:
    """Groups are ordered by their smallest code."""
    return min(other for other, group in enumerate(groups) if group == groups[code])


def incognito(
    table: Table, levels: Levels, ok: Ok, choose: str, budget: int = 0, masked: str = "absorb"
) -> tuple[Node, Split]:
    """The best of the minimal nodes (of all nodes for `classes`) that can be published."""
    nodes = satisfying_nodes(table, levels, ok, budget)
    for among in ([] if choose == "classes" else [minimal_nodes(nodes)]) + [nodes]:
        best: tuple[Fraction, int, Node, Split] | None = None
        for node in among:
            made = split(table, levels, node, ok, masked, budget)
            if made is None:
                continue
            entry = (cost(table, levels, node, made, choose), sum(node), node, made)
            if best is None or entry[:3] < best[:3]:
                best = entry
        if best is not None:
            return best[2], best[3]
    raise AssertionError("even the top node fails")


def cost(table: Table, levels: Levels, node: Node, made: Split, choose: str) -> Fraction:
    n, (classes, lost) = len(table), made
    if choose == "height":
        return Fraction(sum(node))
    if choose == "classes":
        return Fraction(-len(classes))
    if choose == "avg":
        return Fraction(n, len(classes) + bool(lost))
    if choose == "dm":
        return Fraction(sum(len(members) ** 2 for members in classes) + n * len(lost))
    shares = [Fraction(level, len(one) - 1) for level, one in zip(node, levels, strict=True) if len(one) > 1]
    return (n - len(lost)) * sum(shares, Fraction(0)) + len(lost) * len(node)


def datafly(
    table: Table, levels: Levels, ok: Ok, threshold: int, masked: str = "absorb"
) -> tuple[Node, list[int], Split]:
    """Levels, the attributes generalized one after the other, and what is published."""
    d, n = len(levels), len(table)
    node, steps = [0] * d, []
    while True:
        bad = sum(len(members) for members in classes_at(table, levels, range(d), tuple(node)) if not ok(members))
        if bad <= threshold:
            made = split(table, levels, tuple(node), ok, masked, n)
            if made is not None:
                return tuple(node), steps, made
        values = [
            len({levels[a][node[a]][row[a]] for row in table}) if node[a] < len(levels[a]) - 1 else -1 for a in range(d)
        ]
        chosen = values.index(max(values))
        node[chosen] += 1
        steps.append(chosen)
