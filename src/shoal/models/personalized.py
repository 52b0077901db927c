"""Personalized privacy: nobody's guarding node is inferred with more than a given probability (docs/models.md#personalized)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ConfigError, like, raw
from shoal.models.base import TOLERANCE, Attribute, Model, Rule, by_blocks, require_column, rounded
from shoal.models.column import Codes, Column, Floats, Ints, View, occurring, own_values
from shoal.models.forms import Breach, Form
from shoal.models.parameters import OneOf, Share, require
from shoal.taxonomy import Taxonomy

GUARD = OneOf(
    "the guarding nodes: levels above each value, a mapping from values to nodes, or a column with a node for each record",
    (
        {"type": "integer", "minimum": 0},
        {"type": "string", "minLength": 1},
        {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
    ),
)


@dataclass(frozen=True)
class Personalized(Model):
    """For every record, at most the share `breach` of its class lies below the record's guarding node.

    `guard` says where the guarding nodes are in the taxonomy: so many levels above each value (1 by default; 0 is the
    value itself), a mapping from values to nodes, or the name of a column with a node for each record. A value outside
    the mapping, an empty guard and a missing value ask for nothing; all records count in the class.

    >>> import shoal
    >>> shoal.Personalized(0.5, guard={"HIV": "Infections"}).parameters()["guard"]
    {'HIV': 'Infections'}
    """

    breach: Annotated[float, Share("largest share of a class below a record's guarding node")]
    attribute: Attribute = None
    guard: Annotated[int | str | Mapping[str, str] | tuple[tuple[str, str], ...], GUARD] = 1

    name: ClassVar[str] = "personalized"
    persons: ClassVar[str] = "shares"
    superset_closed: ClassVar[bool] = False
    union_closed: ClassVar[bool] = False
    main: ClassVar[str] = "breach"
    smaller_is_stronger: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.guard, Mapping):
            # Pairs, because a model is hashable.
            pairs = tuple((str(value), str(node)) for value, node in self.guard.items())
            object.__setattr__(self, "guard", pairs)
        elif not isinstance(self.guard, (str, tuple)):
            require("personalized", "guard", self.guard, 0, whole=True)
        if self.guard in ("", ()):
            raise ConfigError(
                "personalized: guard is empty; give a number of levels, a mapping from values to nodes, or the name of "
                "a column with a node for each record."
            )

    @property
    def beside(self) -> str | None:
        """The column with a guarding node for each record."""
        return self.guard if isinstance(self.guard, str) else None

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        """Guards one level up."""
        return cls(0.5), cls(0.6)

    def parameters(self) -> dict[str, Any]:
        """The guards as the mapping that was written."""
        shown = super().parameters()
        return {**shown, "guard": dict(self.guard)} if isinstance(self.guard, tuple) else shown

    def bind(self, column: Column | None, n: int) -> Rule:
        """Count pairs of a value and its guard."""
        column = require_column(self, column)
        tree = column.taxonomy
        if tree is None:
            raise ConfigError(
                f"personalized needs a taxonomy of '{column.name}' and it has none; give it one under "
                f"[attributes.{column.name}]."
            )
        value = np.full(max(1, len(column.labels)), -1, dtype=np.int64)
        for code in occurring(column):
            value[code] = _node(tree, column.labels[code])
        if isinstance(self.guard, str):
            view, value, guard = _guarded_pairs(self.guard, column, tree, value)
        else:
            view, guard = own_values(column), _guards_of_values(self.guard, column, tree, value)
        for node, above in zip(value, guard, strict=True):
            if above >= 0 and not (tree.first[above] <= tree.first[node] and tree.last[node] <= tree.last[above]):
                raise ConfigError(
                    f"personalized: the guard '{tree.labels[above]}' of '{column.name}' is not above "
                    f"{raw(tree.labels[node], 'a value', 'the value')} that it guards; name that value or a node above it."
                )
        return BreachRule(self, column, view, n, tree, value, guard)


def _node(tree: Taxonomy, label: str) -> int:
    leaf = tree.leaf_codes.get(label)
    return tree.node(label) if leaf is None else leaf


def _guards_of_values(guard: Any, column: Column, tree: Taxonomy, value: Ints) -> Ints:
    """The guarding node of every code, -1 for none."""
    if isinstance(guard, tuple):
        wanted = dict(guard)
        known = dict.fromkeys((*column.labels, *tree.leaf_codes))
        for label in wanted:
            # A misspelt value, or a node above the values, would guard nobody and nothing would show it.
            if label not in known:
                raise ConfigError(
                    f"personalized: '{label}' of guard is no value of '{column.name}'; {like(label, known)}"
                )
        nodes = [_node(tree, wanted[label]) if label in wanted else -1 for label in column.labels]
        nodes += [-1] * (len(value) - len(nodes))
        return np.where(value >= 0, np.array(nodes, dtype=np.int64), -1)
    nodes_up = value.copy()
    for _ in range(min(guard, tree.levels)):
        nodes_up = np.where((nodes_up >= 0) & (nodes_up != tree.root), tree.parent[nodes_up], nodes_up)
    return nodes_up


def _guarded_pairs(name: str, column: Column, tree: Taxonomy, value: Ints) -> tuple[View, Ints, Ints]:
    """The view of the pairs that occur, with the value's node and the guard's node of each pair."""
    pairs = column.pairs(name)
    if pairs is None:
        raise ConfigError(
            f"personalized: guard = '{name}' names a column with the guard of each record of '{column.name}', and "
            "there is none; declare it, or give a number of levels or a mapping instead."
        )
    view = View((column.name, "guards", name), max(1, len(pairs.labels)), beside=name)
    if not len(pairs.labels):
        return view, value[:1], np.array([-1])
    nodes = {label: _node(tree, label) if label else -1 for label in pairs.labels}
    return view, value[pairs.codes], np.array([nodes[label] for label in pairs.labels], dtype=np.int64)


class BreachRule(Rule):
    """For each guarding node that a record of the class has, the share of the class below it against the limit."""

    model: Personalized

    def __init__(
        self, model: Personalized, column: Column, view: View, n: int, tree: Taxonomy, value: Ints, guard: Ints
    ) -> None:
        super().__init__(model, column, view, n)
        self.nodes = np.unique(guard[guard >= 0])
        self.labels = [tree.labels[node] for node in self.nodes]
        self.of_pair = np.where(guard >= 0, np.searchsorted(self.nodes, guard), -1)
        first, last, at = tree.first[value], tree.last[value], self.nodes[:, None]
        below = np.minimum(tree.last[at], last) - np.maximum(tree.first[at], first) + 1
        # A value that is itself an inner node lies below the guard in part (docs/models.md#personalized).
        self.inside = np.where(value >= 0, np.maximum(below, 0) / (last - first + 1), 0.0)
        self.owners = (self.of_pair == np.arange(len(self.nodes))[:, None]).astype(np.float64)

    def breaches(self, sizes: Ints, counts: Ints) -> Floats:
        """Per class and guarding node: the share below it; 0 where no record of the class has that guard."""
        guarded = counts @ self.owners.T > 0
        return np.where(guarded, self.below(counts) / np.maximum(sizes, 1)[:, None], 0.0)

    def below(self, counts: Ints) -> Floats:
        """Records below each guarding node: whole ones, which any BLAS adds up exactly, then parts from left to right."""
        whole = np.floor(self.inside)
        found = np.asarray(counts @ whole.T, dtype=np.float64)
        for pair in np.flatnonzero((self.inside > whole).any(axis=0)):
            found += counts[:, pair, None] * (self.inside - whole)[:, pair]
        return found

    def deficit(self, sizes: Ints, counts: Ints) -> Floats:
        """How many records below guarding nodes are too many."""
        return by_blocks(self._deficit, counts, sizes)

    def _deficit(self, counts: Ints, sizes: Ints) -> Floats:
        excess = self.breaches(sizes, counts) - self.model.breach
        return np.asarray(np.where(excess > TOLERANCE, excess, 0.0).sum(axis=1) * sizes)

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The largest breach of a record."""
        return float(self.breaches(sizes, counts).max(initial=0)) if len(sizes) else float("nan")

    def infeasible(self) -> str | None:
        """Let R records have the guard g, and U of all n lie below it. The classes of these R hold I ≥ R records below
        g and at most n − U others, so I ≤ breach·(I + n − U), hence R ≤ breach·(R + n − U).
        """
        table = self.table_counts
        owners = self.owners @ table
        needed = np.where(owners > 0, owners / np.maximum(1, owners + self.n - self.below(table[None, :])[0]), 0.0)
        if not len(needed) or needed.max() <= self.model.breach + TOLERANCE:
            return None
        worst = int(needed.argmax())
        return (
            f"personalized with breach = {self.model.breach:g} fails for {raw(self.labels[worst], 'a guard', 'the guard')} of "
            f"'{self.attribute}': {int(owners[worst])} records have it and too few lie outside; "
            f"ask for breach ≥ {rounded(float(needed[worst]), up=True)}"
        )

    def max_classes(self) -> int:
        """⌊n / smallest size⌋."""
        return self.n // self.min_size()

    def min_size(self) -> int:
        """⌈1/breach⌉, where every record has a guard: it is itself below it."""
        if int(self.table_counts[self.of_pair >= 0].sum()) < self.n:
            return 1
        return math.ceil(1 / (self.model.breach + TOLERANCE))

    def exposed(self, sizes: Ints, lower: Ints, upper: Ints) -> NDArray[np.bool_]:
        """Groups in which too many certainly lie below a guard that somebody certainly has.

        Where guards stand in a column of their own the audit, which knows values, cannot say whose they are.
        """
        if self.view is not None and self.view.beside is not None:
            return super().exposed(sizes, lower, upper)
        return np.asarray((self.breaches(sizes, lower) > self.model.breach + TOLERANCE).any(axis=1))

    def of_people(self, owner: Codes, codes: Codes) -> tuple[Rule, Codes, Codes] | None:
        """The rule of people with several values: it counts who has a guard, and who is below one that they have not.

        Each person counts once for each guard, however many of their values lie below it. None where a value lies below a guard
        in part, and only the sum of parts is known.
        """
        guards, known = len(self.nodes), codes >= 0
        if not guards or (self.inside != np.rint(self.inside)).any():
            return None
        persons, pairs = owner[known].astype(np.int64), codes[known]
        guarded = self.of_pair[pairs] >= 0
        having = np.unique(persons[guarded] * guards + self.of_pair[pairs[guarded]])
        row, guard = np.nonzero(self.inside.T[pairs])
        below = np.setdiff1d(persons[row] * guards + guard, having)
        rule = copy(self)
        rule.of_pair = np.concatenate([np.arange(guards), np.full(guards, -1)])
        rule.inside = np.hstack([np.eye(guards), np.eye(guards)])
        rule.owners = np.hstack([np.eye(guards), np.zeros((guards, guards))])
        assert self.view is not None
        rule.view = View(("guards", self.model.guard, *self.view.key), 2 * guards)
        told = np.concatenate([having % guards, guards + below % guards])
        rule.table_counts = np.bincount(told, minlength=2 * guards).astype(np.int64)
        return rule, (np.concatenate([having, below]) // guards).astype(np.int32), told.astype(np.int32)

    def forms(self) -> tuple[Form, ...]:
        """Each pair's guard, and which part of each pair lies below each guard."""
        return (Breach(float(self.model.breach), self.of_pair, self.inside),)
