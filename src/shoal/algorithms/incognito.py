"""Incognito: all full-domain generalizations that satisfy the policy, found from small attribute sets upwards.

LeFevre et al. 2005; compared with in two of the papers; docs/algorithms.md#incognito. When good classes merged
are good (*union-closed*), two things hold that save most of the work: every generalization of a node that
satisfies the policy satisfies it too, and a node fails when its levels fail for fewer attributes.

>>> import polars as pl, shoal
>>> frame = pl.DataFrame({"age": [21, 24, 25, 43, 48, 49], "sex": ["M", "F", "M", "F", "F", "M"]})
>>> age = {"role": "quasi", "taxonomy": {"intervals": [10]}}
>>> data = shoal.Microdata.from_frame(frame, {"age": age, "sex": {"role": "quasi"}})
>>> found = incognito(data, data.rules(shoal.Policy((shoal.KAnonymity(3),))))
>>> found.levels, found.labels.tolist(), found.notes["minimal_nodes"], found.notes["checked"]
((1, 1), [0, 0, 0, 1, 1, 1], [[1, 1], [2, 0]], 6)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from shoal import exact
from shoal.algorithms.common import require_one_class
from shoal.algorithms.levels import (
    Bools,
    Frequencies,
    Levels,
    Masked,
    Node,
    full_domain,
    good_groups,
    kept_groups,
    partition_at,
    require_masked,
    rolled_up,
    table_frequencies,
)
from shoal.errors import InternalError, UnsupportedError
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import Progress
from shoal.space import Measure
from shoal.states import class_states

Choose = Literal["avg", "dm", "loss", "precision", "height", "classes"]

# More nodes than this cannot be searched in any reasonable time.
LARGEST_LATTICE = 1_000_000
# Frequency sets that wait to be rolled up may have about this many groups together; others are counted anew.
WAITING_GROUPS = 10_000_000


def incognito(
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Progress | None = None,
    allowed: int | None = None,
    choose: Choose = "avg",
    masked: Masked = "absorb",
) -> Partition:
    """Search the lattice of levels and take the best of its minimal nodes.

    `allowed` is how many records may be suppressed, none by default. `choose` says what is best: the normalized average
    class size (`avg`), discernibility (`dm`), the `loss` of the objective, `precision`, the sum of levels (`height`), or
    the most `classes` of all nodes that satisfy the policy, not only of the minimal ones.
    Ties go to the smaller sum of levels, then to the lower levels of the first attributes. Suppressed records are a
    class too when they are published masked, and `levels.kept_groups` makes it a good one; with `masked = "drop"` they
    are to be left out of the release and need not be.
    """
    allowed = allowed or 0
    _require_policy(rules, allowed, masked)
    require_one_class(rules, "incognito")
    levels = full_domain(data)
    _require_lattice(data, levels)
    lattice = _Lattice(levels, rules, table_frequencies(data, rules), allowed)
    told = Progress.of(progress)
    with told.stage("searching the lattice", 0.8) as part:
        satisfying = lattice.search(part)
    minimal = _minimal(satisfying)
    # Without suppression no node has more classes than the finest ones.
    every = choose == "classes" and allowed > 0
    nodes = _by_height(satisfying) if every else minimal
    with told.stage("weighing what was found") as part:
        best = _best(data, lattice, nodes, choose, objective, masked, part)
        if best is None:
            # Nothing to suppress at the top: among all nodes there is always one.
            best = _best(data, lattice, _by_height(satisfying), choose, objective, masked, part)
    if best is None:
        raise InternalError("incognito found no node whose suppressed records can be published")
    notes = {
        "levels": dict(zip(data.quasi, best.node, strict=True)),
        "minimal_nodes": [list(node) for node in minimal],
        "satisfying": int(np.count_nonzero(satisfying)),
        "checked": lattice.checked,
        "masked": masked,
    }
    return partition_at(data, levels, best.node, best.kept, notes)


def _require_policy(rules: Rules, allowed: int, masked: Masked) -> None:
    for rule in rules.rules:
        if not rule.model.union_closed:
            raise UnsupportedError(
                f"incognito relies on good classes staying good when they are merged, which {rule.model.name} does not "
                "promise; use datafly or mondrian, which take any policy."
            )
        if allowed > 0 and not rule.model.superset_closed:
            raise UnsupportedError(
                "incognito may suppress records only where a class stays good whatever joins it, which "
                f"{rule.model.name} does not promise; set suppress = 0, or use datafly."
            )
    if allowed > 0:
        require_masked("incognito", masked, rules)


def _require_lattice(data: Microdata, levels: Levels) -> None:
    nodes = math.prod(height + 1 for height in levels.heights)
    if nodes > LARGEST_LATTICE:
        raise UnsupportedError(
            f"incognito would search {nodes} combinations of levels of {len(data.quasi)} quasi-identifiers, more than "
            f"{LARGEST_LATTICE}; give taxonomies fewer levels, or use datafly or mondrian."
        )


class _Lattice:
    """The search over all attribute sets. Nodes that satisfy the policy are marked in a grid of all levels."""

    def __init__(self, levels: Levels, rules: Rules, table: Frequencies, allowed: int) -> None:
        self.levels, self.rules, self.table, self.allowed = levels, rules, table, allowed
        self.checked = 0

    def search(self, progress: Progress) -> Bools:
        """The grid of all attributes: which nodes satisfy the policy."""
        d = len(self.levels.heights)
        found: dict[tuple[int, ...], Bools] = {}
        done, total = 0, math.prod(height + 2 for height in self.levels.heights) - 1
        for size in range(1, d + 1):
            smaller, found = found, {}
            for attributes in combinations(range(d), size):
                candidates = np.ones([self.levels.heights[a] + 1 for a in attributes], dtype=bool)
                if size > 1:
                    # A node is worth looking at when it survived without any one of its attributes.
                    for left_out in range(size):
                        rest = attributes[:left_out] + attributes[left_out + 1 :]
                        candidates &= np.expand_dims(smaller[rest], left_out)
                found[attributes] = self._search(attributes, candidates, progress)
                done += candidates.size
                progress(done / total)
        return found[tuple(range(d))]

    def _search(self, attributes: Sequence[int], candidates: Bools, progress: Progress) -> Bools:
        """Breadth first from the finest candidates; whatever lies above a node that satisfies the policy does too."""
        satisfying = np.zeros_like(candidates)
        bottom = (0,) * len(attributes)
        start = self.frequencies(attributes, bottom)
        finer: dict[Node, Frequencies] = {}
        failed: dict[Node, Frequencies] = {}
        waiting, last = 0, -1
        for node in _by_height(candidates):
            if satisfying[node]:
                continue
            progress.check()
            height = sum(node)
            if height != last:
                finer, failed = (failed if height == last + 1 else {}), {}
                waiting, last = sum(len(frequencies.sizes) for frequencies in finer.values()), height
            low, source = _smallest(finer, node) or (bottom, start)
            frequencies = rolled_up(source, self.levels, self.rules, attributes, low, node)
            self.checked += 1
            if good_groups(frequencies, self.rules, self.allowed) is not None:
                satisfying[tuple(slice(level, None) for level in node)] = True
            elif waiting + len(frequencies.sizes) <= WAITING_GROUPS:
                failed[node] = frequencies
                waiting += len(frequencies.sizes)
        return satisfying

    def frequencies(self, attributes: Sequence[int], node: Node) -> Frequencies:
        """The frequency set of a node, from that of the whole table."""
        table = self.table._replace(codes=self.table.codes[:, list(attributes)])
        return rolled_up(table, self.levels, self.rules, attributes, (0,) * len(node), node)


def _smallest(finer: dict[Node, Frequencies], node: Node) -> tuple[Node, Frequencies] | None:
    """The direct specialization with the fewest groups among those at hand."""
    below = [(*node[:a], level - 1, *node[a + 1 :]) for a, level in enumerate(node)]
    known = [one for one in below if one in finer]
    if not known:
        return None
    chosen = min(known, key=lambda one: len(finer[one].sizes))
    return chosen, finer[chosen]


def _by_height(grid: Bools) -> list[Node]:
    """The marked nodes by rising sum of levels, then by the levels themselves."""
    nodes = np.argwhere(grid)
    order = np.argsort(nodes.sum(axis=1), kind="stable")
    return [tuple(node) for node in nodes[order].tolist()]


def _minimal(satisfying: Bools) -> list[Node]:
    """Nodes that satisfy the policy while no direct specialization of theirs does."""
    minimal = satisfying.copy()
    for axis in range(satisfying.ndim):
        above = (slice(None),) * axis + (slice(1, None),)
        below = (slice(None),) * axis + (slice(None, -1),)
        minimal[above] &= ~satisfying[below]
    return _by_height(minimal)


class _Release(NamedTuple):
    """A node with the groups that stay, and what it costs."""

    cost: int
    node: Node
    kept: Bools


def _best(
    data: Microdata,
    lattice: _Lattice,
    nodes: list[Node],
    choose: Choose,
    objective: Measure,
    masked: Masked,
    progress: Progress,
) -> _Release | None:
    """The cheapest node whose suppressed records can be published; None when there is none."""
    best: _Release | None = None
    for done, node in enumerate(nodes):
        progress(done / len(nodes))
        frequencies = lattice.frequencies(range(len(node)), node)
        good = good_groups(frequencies, lattice.rules, lattice.allowed)
        kept = None if good is None else kept_groups(frequencies, lattice.rules, good, masked, lattice.allowed)
        if kept is None:
            continue
        cost = _cost(data, lattice.levels, node, frequencies, kept, choose, objective)
        if best is None or cost < best.cost:
            best = _Release(cost, node, kept)
    return best


def _cost(
    data: Microdata,
    levels: Levels,
    node: Node,
    frequencies: Frequencies,
    kept: Bools,
    choose: Choose,
    objective: Measure,
) -> int:
    """What a node costs; less is better. A suppressed record costs everything (docs/measures.md#loss)."""
    sizes = frequencies.sizes[kept]
    suppressed = data.n - int(sizes.sum())
    if choose == "height":
        return sum(node)
    if choose == "classes":
        return -len(sizes)
    if choose == "avg":
        # n / (classes · k) falls with the number of classes; masked records are one.
        return -len(sizes) - (suppressed > 0)
    if choose == "dm":
        return int((sizes * sizes).sum()) + data.n * suppressed
    if choose == "precision":
        share = sum(level / height for level, height in zip(node, levels.heights, strict=True) if height)
        return int(exact.ticks(((data.n - suppressed) * share + suppressed * len(node)) / data.n))
    space = data.space(objective)
    partition = partition_at(data, levels, node, kept, {})
    units = space.unit(class_states(data, partition, space))
    loss = exact.weighed(partition.sizes, units) + suppressed * exact.total(space.weights)
    return int(exact.ticks(loss / data.n))
