"""Extended p-sensitivity: values of at least p protected subtrees in every class (docs/models.md#extended_p_sensitive)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from shoal.models.base import Attribute, Model, Rule, leaves_of, require_column
from shoal.models.column import Column, Ints, regrouped
from shoal.models.p_sensitive import DistinctRule
from shoal.models.parameters import Whole
from shoal.taxonomy import Taxonomy


@dataclass(frozen=True)
class ExtendedPSensitive(Model):
    """Every class has values below at least `p` different strong nodes of the attribute's taxonomy.

    Protected are all leaves, the inner nodes that the schema lists under `protect`, and everything below them. A
    protected node is strong when no node above it is protected.

    >>> import shoal
    >>> print(shoal.ExtendedPSensitive(2))
    extended_p_sensitive(p = 2)
    """

    p: Annotated[int, Whole("protected subtrees in every class", 1)]
    attribute: Attribute = None

    name: ClassVar[str] = "extended_p_sensitive"
    persons: ClassVar[str] = "distinct"
    superset_closed: ClassVar[bool] = True
    union_closed: ClassVar[bool] = True
    main: ClassVar[str] = "p"
    local: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        """Two subtrees and more."""
        return cls(2), cls(3)

    def bind(self, column: Column | None, n: int) -> Rule:
        """Count strong nodes instead of values; all that holds for p-sensitivity then holds here."""
        column = require_column(self, column)
        tree, leaves = leaves_of(self, column)
        strong = strong_nodes(tree, column.protect)
        nodes = np.unique(strong[leaves[leaves >= 0]])
        group_of = np.where(leaves >= 0, np.searchsorted(nodes, strong[leaves]), -1).astype(np.int64)
        view = regrouped(column, "strong", group_of, len(nodes))
        return DistinctRule(self, column, view, n, self.p, counted="protected subtrees")

    def says_more(self, column: Column) -> bool:
        """Without protected nodes this is p-sensitivity again."""
        return bool(column.protect)


def strong_nodes(tree: Taxonomy, protect: tuple[str, ...]) -> Ints:
    """The strong ancestor-or-self of every node; -1 above all strong nodes."""
    protected = np.zeros(tree.nodes, dtype=bool)
    protected[: tree.leaves] = True
    for label in protect:
        protected[tree.node(label)] = True
    strong = np.full(tree.nodes, -1, dtype=np.int64)
    for node in range(tree.nodes - 1, -1, -1):  # parents come after their children
        above = strong[tree.parent[node]] if node != tree.root else -1
        strong[node] = above if above >= 0 else (node if protected[node] else -1)
    return strong
