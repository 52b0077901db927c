"""peel (ours): classes leave a lattice of full-domain cells, cheapest cells first, with some slack kept.

A cell is all records that agree when every attribute is generalized to one of its levels. The cells of the lattice are
visited by rising loss, and from each leave as a class as many of its remaining records as satisfy the policy with some
slack kept: a class at the very limit could take nobody in later, in particular none of the left-over records, which
join the cheapest class that stays good.

This is made for models that bind the distribution in a class (t-closeness, (α, k), entropy and recursive l-diversity), as a
start for `shoal.refine.relocation`; other policies take cells as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.algorithms.common import finish, require_one_class, sensitive_groups
from shoal.algorithms.levels import full_domain
from shoal.errors import UnsupportedError
from shoal.microdata import Microdata, distinct_rows
from shoal.models import Kind
from shoal.models.parameters import require
from shoal.partition import Partition
from shoal.policy import Entry, FlatRules, Rules
from shoal.progress import SLICE, Progress
from shoal.space import Measure, Space

if TYPE_CHECKING:
    from shoal.kernels.peel import Lots, Wanted
    from shoal.kernels.space import FlatSpace

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Words = NDArray[np.uint64]
Node = tuple[int, ...]

# Distribution rules come out badly in classes of hardly more than their smallest size: counts are whole numbers. Much more is
# too much for the search that follows (`benchmarks.closeness --room` has what other figures lose).
ROOM = 1.4
# The lattice is thinned until nodes × points and the bits of all groups stay below these.
VISITS = 50_000_000
BITS = 2**30
# … and nodes of ordinary tables: each takes about a millisecond whatever there is in it, in wider tables more in proportion.
NODES, WIDTH = 5_000, 8


def peel(
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Progress,
    slack: float = 0.8,
    smallest: int | None = None,
) -> Partition:
    """Peel classes off the lattice of cells.

    `slack` in (0, 1] is how much of the way from the table's own distribution to a rule's limit peeled classes may go
    (with 0.8, t-closeness is peeled at 0.8·t). `smallest` is the size of the smallest class that is peeled.
    """
    require("peel", "slack", slack, 0, 1, above=True)
    if smallest is not None:
        require("peel", "smallest", smallest, 1, whole=True)
    require_one_class(rules, "peel")
    flat_rules = rules.flat()
    if flat_rules is None:
        rule = next(rule for rule in rules.rules if rule.forms() is None)
        raise UnsupportedError(f"peel cannot evaluate {rule} in compiled loops; take the algorithm mondrian.")
    from shoal.kernels.peel import LABEL, NEXT, peel_cells
    from shoal.kernels.space import flatten

    wanted = _wanted(rules, slack, smallest)
    space, lots = data.space(objective), _lots(data, rules)
    live = _bits(np.zeros(len(data.points.codes), dtype=np.int32), 1)[0]
    with progress.stage("listing cells", 0.2) as part:
        inside, visits = _cells(data, flatten(space), wanted, live, part)
    labels, at = np.full(data.n, -1, dtype=np.int64), np.zeros(2, dtype=np.int64)
    with progress.stage("peeling classes", 0.5) as part:
        while at[NEXT] < len(visits):
            peel_cells(visits, inside, live, lots, wanted, labels, at, SLICE)
            part(at[NEXT] / len(visits))
    label, left = int(at[LABEL]), int(np.count_nonzero(labels < 0))
    if label > 0 and left > 0:
        with progress.stage("placing left-over records", 0.2) as part:
            _place(data, rules, flat_rules, space, labels, part)
    return finish(data, rules, labels, objective, progress, peeled=label, left_over=left)


def _wanted(rules: Rules, slack: float, smallest: int | None) -> Wanted:
    """What peeled classes must be, and how cells are brought there."""
    from shoal.kernels.peel import FILL, REMOVE, WHOLE, Wanted

    group, codes = sensitive_groups(rules)
    entries = rules.entries or ()
    if rules.superset_closed:
        mode = WHOLE
    else:
        by_shares = codes.shape[1] == 1 and all(entry.form.by_shares for entry in entries)
        mode = FILL if by_shares else REMOVE
    share = np.bincount(group, minlength=len(codes)).astype(np.float64)
    if not any(entry.form.like_table for entry in entries):
        share[:] = 1.0
    share[~_minded(entries, codes)] = 0.0
    bound = [rule.min_size() for rule in rules.rules if not rule.model.superset_closed]
    stricter = rules.flat([_nearer(rules, entry, slack) for entry in entries])
    assert stricter is not None
    return Wanted(
        rules=stricter,
        cells=rules.cells(codes),
        share=share / max(1.0, share.sum()),
        width=int(rules.view_starts[-1]),
        smallest=max(rules.k, smallest if smallest is not None else math.ceil(ROOM * max(bound, default=0))),
        mode=mode,
    )


def _minded(entries: Sequence[Entry], codes: Codes) -> NDArray[np.bool_]:
    """Groups with a known value, and with one that is bound where nothing but the shares of such values is limited."""
    minded = (codes >= 0).any(axis=1)
    asked = [entry.form.minded for entry in entries if entry.form.kind != Kind.SIZE]
    flags = [flag for flag in asked if flag is not None]
    if flags and len(flags) == len(asked) and codes.shape[1] == 1:
        minded &= np.asarray(np.any(flags, axis=0))[codes[:, 0]]
    return np.asarray(minded)


def _nearer(rules: Rules, entry: Entry, slack: float) -> Entry:
    """The form with its limit moved towards what the table itself has, where it binds a distribution."""
    return entry._replace(form=entry.form.nearer(rules.rules[entry.rule].table_counts, rules.n, slack))


def _lots(data: Microdata, rules: Rules) -> Lots:
    from shoal.kernels.peel import Lots

    group, codes = sensitive_groups(rules)
    point = data.points.of_record.astype(np.int64)
    order = np.lexsort((group, point))
    key = point[order] * len(codes) + group[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    return Lots(
        start=np.searchsorted(point[order[first]], np.arange(len(data.points.codes) + 1)),
        group=group[order[first]],
        first=first,
        last=np.append(first[1:], data.n),
        record=order,
    )


def _cells(data: Microdata, flat: FlatSpace, wanted: Wanted, live: Words, progress: Progress) -> tuple[Words, Codes]:
    """The groups of all levels as bits over the points, and the cells by rising loss, as one group per attribute."""
    from shoal.kernels.peel import REMOVE, cell_losses

    points = data.points.codes
    # Step by step every group is asked in every cell, so there must be fewer cells.
    visits = VISITS // max(1, len(wanted.share) // 8) if wanted.mode == REMOVE else VISITS
    visits = min(visits, NODES * WIDTH // max(WIDTH, points.shape[1]) * len(points))
    levels = _thinned([_distinct(per) for per in full_domain(data).groups], len(points), visits)
    rows, inside = 0, []
    first: list[list[int]] = []
    for a, per in enumerate(levels):
        first.append([])
        for level in per:
            first[a].append(rows)
            inside.append(_bits(level[points[:, a]], int(level.max()) + 1))
            rows += len(inside[-1])
    nodes = []
    for node, groups in _large_cells(levels, points, data.points.weights, wanted.smallest):
        progress.check()
        nodes.append(groups + np.array([first[a][i] for a, i in enumerate(node)], dtype=np.int32))
    cells, bits = np.concatenate(nodes), np.concatenate(inside)
    losses = np.empty(len(cells))
    # Every node has each point in one cell at most.
    cost = (len(live) + len(nodes) * len(points) // max(1, len(cells))) * len(levels)
    for part in progress.slices(len(cells), cost):
        losses[part] = cell_losses(flat, points, cells[part], bits, live)
    price = exact.ticks(losses)
    return bits, np.ascontiguousarray(cells[np.argsort(price, kind="stable")])


def _distinct(per: tuple[Codes, ...]) -> list[Codes]:
    """The levels of an attribute that differ from the one before."""
    return [level for i, level in enumerate(per) if i == 0 or not np.array_equal(level, per[i - 1])]


def _thinned(levels: list[list[Codes]], points: int, visits: int) -> list[list[Codes]]:
    """Leave out levels until the lattice is small enough: inner ones close to their neighbours, then the finest."""
    levels = [list(per) for per in levels]
    while True:
        sizes = [[int(level.max()) + 1 for level in per] for per in levels]
        bits, nodes = sum(map(sum, sizes)) * points, math.prod(map(len, levels))
        if (bits <= BITS and nodes * points <= visits) or nodes == 1:
            return levels
        inner = [(per[i - 1] / per[i + 1], a, i) for a, per in enumerate(sizes) for i in range(1, len(per) - 1)]
        if bits > BITS or not inner:
            a, i = -max((per[0], -a) for a, per in enumerate(sizes) if len(per) > 1)[1], 0
        else:
            _, a, i = min(inner)
        del levels[a][i]


def _large_cells(
    levels: list[list[Codes]], points: Codes, weights: Ints, smallest: int
) -> Iterator[tuple[Node, Codes]]:
    """Every node with its cells of enough records, each counted from the cells of a finer node.

    A cell with the same records as one of that finer node is left out: whatever could leave it has left.
    """
    finest = np.stack([per[0][points[:, a]] for a, per in enumerate(levels)], axis=1)
    codes, sizes, _ = _grouped(finest, weights, [int(per[0].max()) + 1 for per in levels])

    def walk(a: int, node: Node, codes: Codes, sizes: Ints, fresh: NDArray[np.bool_]) -> Iterator[tuple[Node, Codes]]:
        if a == len(levels):
            yield node, codes[fresh & (sizes >= smallest)]
            return
        for i, level in enumerate(levels[a]):
            if i > 0:
                above = np.zeros(int(levels[a][i - 1].max()) + 1, dtype=np.int32)
                above[levels[a][i - 1]] = level
                codes = codes.copy()
                codes[:, a] = above[codes[:, a]]
                at = (*node, i, *[0] * (len(levels) - a - 1))
                spans = [int(per[at[b]].max()) + 1 for b, per in enumerate(levels)]
                codes, sizes, fresh = _grouped(codes, sizes, spans)
            yield from walk(a + 1, (*node, i), codes, sizes, fresh)

    yield from walk(0, (), codes, sizes, np.ones(len(codes), dtype=bool))


def _grouped(codes: Codes, sizes: Ints, spans: list[int]) -> tuple[Codes, Ints, NDArray[np.bool_]]:
    """Equal rows made one: their codes, their records, and whether several rows became one."""
    found = distinct_rows(codes, spans)
    return found.codes, np.bincount(found.of_record, sizes).astype(np.int64), found.weights > 1


def _bits(groups: Codes, count: int) -> Words:
    """One row of 64-bit words per group, with a bit for every point in it."""
    point = np.arange(len(groups))
    bits = np.zeros((count, -(-len(groups) // 64)), dtype=np.uint64)
    np.bitwise_or.at(bits, (groups, point >> 6), np.uint64(1) << (point & 63).astype(np.uint64))
    return bits


def _place(
    data: Microdata, rules: Rules, flat_rules: FlatRules, space: Space, labels: Ints, progress: Progress
) -> None:
    """Left-over records to the cheapest class that stays good; labels change in place."""
    from shoal.kernels.peel import place
    from shoal.kernels.space import flatten

    waiting, classes = np.flatnonzero(labels < 0), int(labels.max()) + 1
    stats = rules.stats(labels, classes)
    order = np.argsort(labels, kind="stable")[len(waiting) :]
    states = space.states(data.codes, order, np.cumsum(stats.sizes) - stats.sizes)
    empty = np.zeros((classes, 0), dtype=np.int64)
    flat, cells, losses = flatten(space), rules.cells(rules.codes()), space.unit(states)
    counts = np.concatenate([empty, *stats.counts], axis=1).astype(np.int32)
    for part in progress.slices(len(waiting), states.size + classes):
        place(flat, flat_rules, data.codes, cells, waiting[part], states, losses, stats.sizes, counts, labels)
