"""Taxonomies: trees of values, stored so that one comparison tells which leaves lie below a node.

Leaves are numbered in depth-first order. The leaves below a node are then a range of codes, and the lowest
common ancestor of a set of leaves is that of its smallest and its largest code.

>>> tree = Taxonomy.from_rows([("41076", "410**", "*"), ("41075", "410**", "*"), ("48201", "482**", "*")])
>>> tree.labels
('41076', '41075', '48201', '410**', '482**', '*')
>>> tree.labels[tree.lca(0, 1)], tree.labels[tree.lca(1, 2)], tree.labels[tree.lca(2, 2)]
('410**', '*', '48201')
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ConfigError, InputError, InternalError, did_you_mean, require_a

IntArray = NDArray[np.int32]

MISSING = ""  # the label of the leaf that stands for "no value"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Taxonomy:
    """A rooted tree over the values of one attribute. It need not be balanced.

    Make one with `from_rows`, `from_parents`, `read` or a function of `shoal.taxonomy_build`. Nodes 0 … leaves-1 are
    the leaves in depth-first order; inner nodes follow, children before parents, the root last.

    - `labels`: the text of every node.
    - `parent`: the parent of every node, -1 for the root.
    - `name`: what error messages call it; "taxonomy" by default.

    >>> import shoal, tempfile
    >>> tree = shoal.Taxonomy.from_parents({"flu": "lungs", "asthma": "lungs", "ulcer": "any", "lungs": "any"}, name="illness")
    >>> tree
    Taxonomy('illness', 3 leaves, 3 levels)
    >>> tree.labels[tree.lca(tree.code("flu"), tree.code("asthma"))]
    'lungs'
    >>> bool(tree.covers(tree.node("lungs"), tree.code("ulcer"))), tree.path(tree.code("flu"))
    (False, ('flu', 'lungs', 'any'))
    >>> [tree.labels[node] for node in tree.ancestors_at(1)]
    ['ulcer', 'lungs', 'lungs']
    >>> tree.with_missing().leaves
    4
    >>> path = tempfile.mkdtemp() + "/illness.csv"
    >>> tree.write(path)
    >>> shoal.Taxonomy.read(path) == tree, next(tree.rows())
    (True, ('ulcer', 'any'))
    """

    labels: tuple[str, ...]
    parent: IntArray
    """Parent of each node, -1 for the root."""
    name: str = "taxonomy"
    """What error messages call this taxonomy."""

    leaves: int = field(init=False)
    nodes: int = field(init=False)
    root: int = field(init=False)
    levels: int = field(init=False)
    """Height of the tree plus one."""
    first: IntArray = field(init=False)
    """Smallest leaf code below each node."""
    last: IntArray = field(init=False)
    """Largest leaf code below each node."""
    height: IntArray = field(init=False)
    """Edges down to the deepest leaf below each node: 0 for a leaf."""
    depth: IntArray = field(init=False)
    """Edges up to the root."""
    leaf_counts: IntArray = field(init=False)
    leaf_codes: dict[str, int] = field(init=False)
    _by_label: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        parent = [int(above) for above in self.parent]
        nodes = len(self.labels)
        if nodes == 0 or len(parent) != nodes or parent[-1] != -1:
            raise InternalError(f"taxonomy '{self.name}': labels and parents do not describe a rooted tree")
        if any(not node < above < nodes for node, above in enumerate(parent[:-1])):
            raise InternalError(f"taxonomy '{self.name}': a child has to be numbered before its parent")

        inner = set(parent)
        leaves = sum(1 for node in range(nodes) if node not in inner)
        first, last = list(range(nodes)), list(range(nodes))
        for node in range(leaves, nodes):
            first[node], last[node] = nodes, -1
        below = [1] * leaves + [0] * (nodes - leaves)
        height, depth = [0] * nodes, [0] * nodes
        for node, above in enumerate(parent[:-1]):
            first[above] = min(first[above], first[node])
            last[above] = max(last[above], last[node])
            height[above] = max(height[above], height[node] + 1)
            below[above] += below[node]
        for node in range(nodes - 2, -1, -1):
            depth[node] = depth[parent[node]] + 1
        if any(high - low + 1 != count for low, high, count in zip(first, last, below, strict=True)):
            raise InternalError(f"taxonomy '{self.name}': leaves are not numbered in depth-first order")

        put = object.__setattr__
        put(self, "parent", _frozen(parent))
        put(self, "leaves", leaves)
        put(self, "nodes", nodes)
        put(self, "root", nodes - 1)
        put(self, "levels", height[-1] + 1)
        put(self, "first", _frozen(first))
        put(self, "last", _frozen(last))
        put(self, "height", _frozen(height))
        put(self, "depth", _frozen(depth))
        put(self, "leaf_counts", _frozen(below))
        put(self, "leaf_codes", {label: code for code, label in enumerate(self.labels[:leaves])})
        put(self, "_by_label", {label: node for node, label in enumerate(self.labels)})  # the highest comes last
        if len(self.leaf_codes) != leaves:
            raise InternalError(f"taxonomy '{self.name}': two leaves carry the same label")
        for node, label in enumerate(self.labels):
            other = self._by_label[label]
            if (first[node], last[node]) != (first[other], last[other]):
                raise ConfigError(self._two_meanings(node, other))

    def _two_meanings(self, node: int, other: int) -> str:
        """What to say of two nodes with one label over different leaves: nobody could tell which of them was published."""
        outside = next(c for c in range(self.first[other], self.last[other] + 1) if not self.covers(node, c))
        one, two = (";".join(self.path(leaf)) for leaf in (int(self.first[node]), outside))
        return (
            f"Taxonomy '{self.name}': '{self.labels[node]}' stands for different groups of values in the rows '{one}' and "
            f"'{two}'; give each group a label of its own."
        )

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[str]], name: str = "taxonomy") -> Taxonomy:
        """From `rows`, one a leaf, leaf first and root last; they may differ in length. `name` is for messages
        ("taxonomy" by default).

        Equal labels may follow each other on a path, over the same leaves. A label that stands for different leaves in
        different rows is refused: published, it would not tell which. Returns the taxonomy.
        """
        require_a("the rows of a taxonomy", rows, Iterable, "paths from leaf to root, such as ['flu', 'lung', '*']")
        labels: list[str] = []
        parent: list[int] = []
        known: dict[tuple[int, str], int] = {}
        row_ends: dict[str, int] = {}
        for row in rows:
            require_a(
                "a row of a taxonomy", row, (list, tuple), "labels from leaf to root, such as ['flu', 'lung', '*']"
            )
            for label in row:
                require_a("a label of a taxonomy", label, str, "a text")
            if len(row) == 0:
                raise ConfigError(f"Taxonomy '{name}' has an empty row; every row names a leaf and its ancestors.")
            node = -1
            for label in reversed(row):
                child = known.get((node, label))
                if child is None:
                    child = len(labels)
                    if node == -1 and child > 0:
                        raise ConfigError(
                            f"Taxonomy '{name}' has two roots, '{labels[0]}' and '{label}' (of '{row[0]}'); "
                            f"end every row with the same root, for example '*'."
                        )
                    known[node, label] = child
                    labels.append(label)
                    parent.append(node)
                node = child
            if row_ends.setdefault(row[0], node) != node:
                raise ConfigError(
                    f"Taxonomy '{name}' lists the leaf '{row[0]}' twice with different paths; keep one row."
                )
        ends = set(row_ends.values())
        for node, above in enumerate(parent):
            if above in ends:
                raise ConfigError(
                    f"Taxonomy '{name}' has a row for '{labels[above]}', which is also the parent of "
                    f"'{labels[node]}'; rows start at leaves only."
                )
            if labels[node] == MISSING and node not in ends:
                raise ConfigError(f"Taxonomy '{name}' has an inner node without a label; only a leaf may be empty.")
        return _assemble(cls, labels, parent, name)

    @classmethod
    def from_parents(cls, parents: Mapping[str, str], name: str = "taxonomy") -> Taxonomy:
        """From `parents`, a mapping child → parent; the root is absent as a child, or maps to ''.

        `name` is for messages ("taxonomy" by default). Returns the taxonomy.
        """
        require_a("the parents of a taxonomy", parents, Mapping, "a mapping of values to parents")
        for label in (*parents, *parents.values()):
            require_a("a label of a taxonomy", label, str, "a text")
        children: dict[str, list[str]] = {}
        roots: dict[str, None] = {}
        for child, above in parents.items():
            if above == MISSING:
                roots[child] = None
                continue
            children.setdefault(above, []).append(child)
            if above not in parents:
                roots[above] = None
        if len(roots) > 1:
            one, other = list(roots)[:2]
            raise ConfigError(f"Taxonomy '{name}' has two roots, '{one}' and '{other}'; give one of them a parent.")
        labels = list(roots)
        parent = [-1] * len(labels)
        reached = 0
        while reached < len(labels):
            for child in children.get(labels[reached], ()):
                labels.append(child)
                parent.append(reached)
            reached += 1
        placed = set(labels)
        lost = next((label for label in parents if label not in placed), None)
        if lost is not None:
            circle = " → ".join(f"'{label}'" for label in _circle(parents, lost))
            raise ConfigError(f"Taxonomy '{name}' runs in a circle: {circle}; every value must lead to the root.")
        return _assemble(cls, labels, parent, name)

    @classmethod
    def read(cls, path: str | Path) -> Taxonomy:
        """From the text file at `path`: rows `leaf;…;root`, or a parent list headed `child;parent` or `value;parent`.

        Columns are separated by semicolons, tabs or commas. Blank cells after the leaf are skipped. Returns the taxonomy.
        """
        require_a("the taxonomy file", path, (str, Path), "a path")
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as problem:
            if isinstance(problem, UnicodeDecodeError):
                raise InputError(f"The taxonomy file '{path}' is not UTF-8 text; save it as UTF-8.") from problem
            if not isinstance(problem, OSError):  # a NUL in a name
                raise InputError("The taxonomy file has a name that no file can have.") from None
            raise InputError(f"The taxonomy file '{path}' cannot be read: {problem.strerror}.") from problem
        try:
            rows = _cells(text)
        except csv.Error as problem:
            raise InputError(f"The taxonomy file '{path}' cannot be parsed: {problem}.") from problem
        heading = [cell.casefold() for cell in rows[0]] if rows else []
        if heading in (["child", "parent"], ["value", "parent"]):
            return cls.from_parents(_parent_list(rows[1:], path.name), path.name)
        if len(heading) > 1 and (heading[0], heading[-1]) == ("leaf", "root"):
            rows = rows[1:]
        return cls.from_rows([[row[0], *filter(None, row[1:])] for row in rows], path.name)

    def write(self, path: str | Path) -> None:
        """Write rows `leaf;…;root` to `path`, as `read` reads them."""
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            # A lone label with a comma would otherwise be read as two columns.
            quoting: Literal[0, 1] = csv.QUOTE_ALL if self.nodes == 1 else csv.QUOTE_MINIMAL
            writer = csv.writer(file, delimiter=";", lineterminator="\n", quoting=quoting)
            writer.writerows(self.rows())

    def rows(self) -> Iterator[tuple[str, ...]]:
        """One path of labels from leaf to root per leaf, in code order."""
        return (self.path(leaf) for leaf in range(self.leaves))

    def path(self, node: int) -> tuple[str, ...]:
        """Returns the labels from `node` up to the root."""
        labels = []
        while node != -1:
            labels.append(self.labels[node])
            node = int(self.parent[node])
        return tuple(labels)

    def code(self, label: str) -> int:
        """Returns the code of the leaf with this `label`; KeyError when there is none."""
        return self.leaf_codes[label]

    def node(self, label: str) -> int:
        """Returns the node with this `label`; of several nodes on one chain, the highest."""
        node = self._by_label.get(label)
        if node is None:
            raise ConfigError(f"Taxonomy '{self.name}' has no value '{label}'; {did_you_mean(label, self._by_label)}")
        return node

    @overload
    def lca(self, lo: int | np.integer[Any], hi: int | np.integer[Any]) -> int: ...
    @overload
    def lca(self, lo: NDArray[np.integer[Any]], hi: NDArray[np.integer[Any]]) -> IntArray: ...
    def lca(self, lo: Any, hi: Any) -> int | IntArray:
        """The lowest node above the leaves `lo` and `hi`, for codes or arrays of codes. Returns the leaf itself when
        they agree.
        """
        low, high = np.minimum(lo, hi), np.maximum(lo, hi)
        nodes: IntArray = np.array(low, dtype=np.int32).reshape(-1)
        ends = np.asarray(high).reshape(-1)
        climbing = np.flatnonzero(self.last[nodes] < ends)
        while climbing.size:
            nodes[climbing] = self.parent[nodes[climbing]]
            climbing = climbing[self.last[nodes[climbing]] < ends[climbing]]
        return int(nodes[0]) if np.ndim(low) == 0 else nodes.reshape(np.shape(low))

    def covers(self, node: int | NDArray[np.integer[Any]], leaf: int | NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Returns whether each `leaf` lies below its `node` (or is it)."""
        return np.asarray((self.first[node] <= leaf) & (self.last[node] >= leaf))

    def ancestors_at(self, level: int) -> IntArray:
        """The node of every leaf `level` steps up, for full-domain algorithms. Returns one node a leaf.

        An unbalanced tree is padded at the leaf with copies of the leaf, so level 0 holds the leaves and level `levels
        - 1` the root everywhere.
        """
        if not 0 <= level < self.levels:
            raise ConfigError(
                f"Taxonomy '{self.name}' has the levels 0 to {self.levels - 1}; level {level} does not exist."
            )
        allowed = self.levels - 1 - level
        nodes: IntArray = np.arange(self.leaves, dtype=np.int32)
        for _ in range(level):
            deep = self.depth[nodes] > allowed
            nodes[deep] = self.parent[nodes[deep]]
        return nodes

    def with_missing(self) -> Taxonomy:
        """The same tree with one more leaf, labelled '', as the last leaf and directly under the root.

        Under the lowest root, where several nodes of its name follow each other: all of them stand for everything.
        """
        top = self.root
        while (
            np.count_nonzero(self.parent == top) == 1 and self.labels[top - 1] == self.labels[top] and top > self.leaves
        ):
            top -= 1
        known = self.leaf_codes.get(MISSING)
        if known is not None and known == self.leaves - 1 and self.parent[known] >= top:
            return self
        if known is not None:
            raise ConfigError(
                f"Taxonomy '{self.name}' puts the missing value inside a branch; give it the last row, "
                f"directly under the root '{self.labels[self.root]}'."
            )
        if self.nodes == 1:
            return Taxonomy((*self.labels, MISSING, "*"), _frozen([2, 2, -1]), self.name)
        labels = (*self.labels[: self.leaves], MISSING, *self.labels[self.leaves :])
        parent = np.where(self.parent == -1, -1, self.parent + 1).astype(np.int32)
        return Taxonomy(labels, np.insert(parent, self.leaves, top + 1), self.name)

    def __repr__(self) -> str:
        return f"Taxonomy('{self.name}', {self.leaves} leaves, {self.levels} levels)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        return self.labels == other.labels and np.array_equal(self.parent, other.parent)

    def __hash__(self) -> int:
        return hash(self.labels)

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled arrays would be writeable; making the tree anew keeps them frozen.
        return Taxonomy, (self.labels, self.parent, self.name)


def _assemble(cls: type[Taxonomy], labels: list[str], parent: list[int], name: str) -> Taxonomy:
    """Renumber a tree whose nodes come parents first and siblings in their order."""
    if not labels:
        raise ConfigError(f"Taxonomy '{name}' is empty; give it at least one value.")
    children: list[list[int]] = [[] for _ in labels]
    for node, above in enumerate(parent):
        if above != -1:
            children[above].append(node)
    leaf_order: list[int] = []
    stack = [0]
    while stack:
        node = stack.pop()
        if children[node]:
            stack.extend(reversed(children[node]))
        else:
            leaf_order.append(node)
    height, first = [0] * len(labels), [len(labels)] * len(labels)
    for code, node in enumerate(leaf_order):
        first[node] = code
    for node in range(len(labels) - 1, 0, -1):
        height[parent[node]] = max(height[parent[node]], height[node] + 1)
        first[parent[node]] = min(first[parent[node]], first[node])
    # Ordered by height, children come before parents and the numbering does not depend on row order alone.
    inner = sorted((node for node in range(len(labels)) if children[node]), key=lambda n: (height[n], first[n]))
    order = leaf_order + inner
    number = [0] * len(labels)
    for new, old in enumerate(order):
        number[old] = new
    parents = [-1 if parent[old] == -1 else number[parent[old]] for old in order]
    return cls(tuple(labels[old] for old in order), _frozen(parents), name)


def _frozen(values: Sequence[int]) -> IntArray:
    array = np.array(values, dtype=np.int32)
    array.flags.writeable = False
    return array


def _circle(parents: Mapping[str, str], start: str) -> list[str]:
    """The labels of the circle that climbing from `start` ends in, the first one repeated at the end."""
    position: dict[str, int] = {}
    label = start
    while label not in position:
        position[label] = len(position)
        label = parents[label]
    return [*list(position)[position[label] :], label]


def _cells(text: str) -> list[list[str]]:
    """Stripped cells of all rows that hold something, split at the separator that splits the most rows."""

    def split(separator: str) -> list[list[str]]:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        return [row for row in ([cell.strip() for cell in line] for line in lines) if any(row)]

    return max((split(separator) for separator in ";\t,"), key=lambda rows: sum(len(row) > 1 for row in rows))


def _parent_list(rows: list[list[str]], name: str) -> dict[str, str]:
    parents: dict[str, str] = {}
    for row in rows:
        child, above = (*row, MISSING)[:2]
        if parents.setdefault(child, above) != above:
            raise ConfigError(
                f"Taxonomy '{name}' gives '{child}' two parents, '{parents[child]}' and '{above}'; keep one."
            )
    return parents
