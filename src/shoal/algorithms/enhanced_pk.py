"""EnhancedPKClustering (docs/algorithms.md#enhanced_pk): as many classes as p-sensitivity allows.

It starts from the bound on the number of classes (docs/models.md#condition-2), deals the sensitive values out so that this many
classes can have p of them, and only then looks at sizes and loss. At large p it makes more and smaller classes than greedy
growth; at small p it pays for them with loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.algorithms.common import (
    checked,
    diversity_weights,
    finish,
    needs_of,
    require_one_class,
    sensitive_groups,
    writable_codes,
)
from shoal.errors import InternalError
from shoal.microdata import Microdata
from shoal.models import Kind
from shoal.models.conditions import condition_2
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import SLICE, Progress
from shoal.space import Measure

if TYPE_CHECKING:
    from shoal.kernels.greedy import Needs
    from shoal.kernels.pk import Clusters

Ints = NDArray[np.int64]
Column = tuple[str | None, Ints, int]


def enhanced_pk(
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Progress,
    weights: Literal["equal", "inverse_cardinality"] = "equal",
    faithful: bool = False,
    seed_spread: bool = False,
    dissolve: Literal["order", "highest_unit_cost"] = "order",
) -> Partition:
    """Deal rare values first, then frequent ones, then repair diversity, then sizes; the rest goes to the best class.

    `faithful` keeps two habits of the printed procedure: no repair where a frequent value has fewer records than there are
    classes, and records are poured into a class even if none of them helps it. `seed_spread` starts the classes with
    records far from each other, `dissolve` says which classes below k are given up. Nothing here is random: `seed` is
    not used. Policies beyond k and distinct values are reached by dealing every value evenly.
    """
    share = diversity_weights(rules, weights)
    require_one_class(rules, "enhanced_pk")
    entries = rules.entries
    if entries is None or any(e.rule not in rules.distinct and e.form.kind != Kind.SIZE for e in entries):
        return _dealt_evenly(data, rules, objective, seed_spread, progress)

    from shoal.kernels.pk import (
        KEPT,
        PLACE,
        TO_FILL,
        deal,
        diversify,
        fill,
        homogeneity,
        make_clusters,
        make_dealing,
        make_points,
        make_repair,
        make_serving,
        serve,
    )
    from shoal.kernels.pool import make_frontier, make_pool
    from shoal.kernels.space import flatten

    # Step 1: the hardest attribute, and how many classes it allows.
    flat, codes = flatten(data.space(objective)), writable_codes(data)
    group, codes_of_groups, needs, columns = _attributes(rules, share)
    hardest = min((_hardness(*column) for column in columns), key=lambda h: (h.classes, h.i_value))
    m, i_value, p = hardest.classes, hardest.i_value, hardest.p
    clusters = make_clusters(flat, m, data.n)
    group, needs = _in_order_of(hardest.sec, group, needs)
    progress(0.05)

    # Step 2: the less frequent values go round.
    key = data.points.of_record.astype(np.int64) * max(1, len(codes_of_groups)) + group
    known = np.flatnonzero(hardest.sec >= 0)
    order = known[np.lexsort((known, key[known], hardest.sec[known]))]
    points = make_points(codes, key, group, order)
    first = np.searchsorted(hardest.sec[points.records[points.start[:-1]]], np.arange(len(hardest.sizes) + 1))
    near = np.full(len(data.points.codes) if seed_spread else 0, 2**62, dtype=np.int64)
    split = p - i_value
    repaired = bool((hardest.sizes[:split] < m).any()) and not faithful
    visited = np.arange(len(hardest.sizes) - 1, -1 if repaired else split - 1, -1)
    of_point, dealing = data.points.of_record.astype(np.int64), make_dealing(points, needs)
    target, cap = (p, m) if repaired else (i_value, data.n)
    with progress.stage("dealing records", 0.15) as part:
        while not deal(
            flat, codes, group, points, needs, clusters, dealing, first[visited], first[visited + 1], target, cap,
            data.points.codes, of_point, near, SLICE,
        ):  # fmt: skip
            part(int(clusters.size.sum()) / min(data.n, target * m))

    # Step 3: each frequent value once into every class.
    for sec in range(split - 1, -1, -1) if not repaired else ():
        with progress.stage("dealing frequent values", 0.3 / split) as part:
            low, high, serving = int(first[sec]), int(first[sec + 1]), make_serving(needs, m)
            while not serve(flat, codes, group, points, needs, clusters, serving, low, high, SLICE):
                part.check()

    # Step 4: the other attributes.
    by_diversity = np.argsort(homogeneity(needs, group, clusters), kind="stable")
    start, pool, live = _free_by_group(group, clusters.label, len(codes_of_groups))
    repair = make_repair(needs, m, live)
    with progress.stage("repairing diversity", 0.1) as part:
        while not diversify(
            flat, codes, group, needs, clusters, repair, by_diversity, start, pool, live, faithful, SLICE
        ):
            part(repair.at[PLACE] / repair.at[KEPT])
    kept = int(repair.at[KEPT])
    notes = {"bound": m, "hardest": hardest.attribute, "repaired": repaired}
    if kept == 0:
        warning = "no class became diverse enough, so all records are in one"
        return checked(rules, np.zeros(data.n, dtype=np.int64), **notes, warning=warning)

    # Step 5: which classes can reach k.
    order, free = _affordable(clusters, by_diversity[:kept], rules.k, dissolve)

    # Steps 6 and 7: sizes first, then every other record to the best class.
    if len(free):
        tree = make_pool(flat, codes, key, np.zeros(data.n, dtype=np.int64), free)
        front, at = make_frontier(tree), np.array([0, -1], dtype=np.int64)
        with progress.stage("filling classes", 0.3) as part:
            while not fill(flat, tree, front, clusters, order, rules.k, at, SLICE):
                part(at[TO_FILL] / len(order))
    position = np.full(m + 1, -1, dtype=np.int64)
    position[order] = np.arange(len(order))
    partition = finish(data, rules, position[clusters.label], objective, progress, **notes)
    if partition.classes > min(m, data.n // rules.k):
        raise InternalError("enhanced_pk made more classes than the policy allows")
    return partition


class Hardness(NamedTuple):
    """How hard an attribute is (Truta et al. 2007, Definition 13), with its sensitive classes in descending order of size."""

    attribute: str | None
    classes: int
    i_value: int
    p: int
    sec: Ints
    """The number of each record's SEC, 0 for the most frequent value, -1 where the value is missing."""
    sizes: Ints


def _hardness(attribute: str | None, codes: Ints, p: int) -> Hardness:
    counts = np.bincount(codes[codes >= 0])
    values = np.lexsort((np.arange(len(counts)), -counts))[: np.count_nonzero(counts)]
    rank = np.full(len(counts) + 1, -1, dtype=np.int64)
    rank[values] = np.arange(len(values))
    classes, i_value = condition_2(counts, p)
    return Hardness(attribute, classes, i_value, p, rank[codes], counts[values])


def _attributes(rules: Rules, share: NDArray[np.float64]) -> tuple[Ints, NDArray[np.int32], Needs, list[Column]]:
    """The attributes that must be diverse; without any, one that has a single value and p = 1."""
    from shoal.kernels.greedy import Needs

    group, codes_of_groups = sensitive_groups(rules)
    columns: list[Column] = []
    for i, p in rules.distinct.items():
        codes = rules.views[rules.view_of[i]].codes
        columns.append((rules.rules[i].attribute, codes.astype(np.int64), p))
    if columns:
        compiled = needs_of(rules, codes_of_groups, share)
        if compiled is None:
            raise InternalError("a rule that counts distinct values has no compiled form")
        return group, codes_of_groups, compiled[0], columns
    one = np.ones(1, dtype=np.int64)
    needs = Needs(np.zeros((1, 1), dtype=np.int64), one, 0 * one, 0 * one, one, np.ones(1), 1)
    return group, codes_of_groups, needs, [(None, np.zeros(rules.n, dtype=np.int64), 1)]


def _in_order_of(sec: Ints, group: Ints, needs: Needs) -> tuple[Ints, Needs]:
    """Groups numbered anew, so that those of one SEC follow each other."""
    groups = len(needs.cell)
    sec_of_group = np.zeros(groups, dtype=np.int64)
    sec_of_group[group] = sec
    order = np.argsort(sec_of_group, kind="stable")
    number = np.empty(groups, dtype=np.int64)
    number[order] = np.arange(groups)
    return number[group], needs._replace(cell=np.ascontiguousarray(needs.cell[order]))


def _free_by_group(group: Ints, label: Ints, groups: int) -> tuple[Ints, Ints, Ints]:
    """Free records listed by group, each group with room for all of its records."""
    total = np.bincount(group, minlength=groups)
    start = np.concatenate([[0], np.cumsum(total)]).astype(np.int64)
    free = np.flatnonzero(label < 0)
    free = free[np.argsort(group[free], kind="stable")]
    live = np.bincount(group[free], minlength=groups).astype(np.int64)
    pool = np.full(len(group), -1, dtype=np.int64)
    pool[np.repeat(start[:-1], live) + np.arange(len(free)) - np.repeat(np.cumsum(live) - live, live)] = free
    return start, pool, live


def _affordable(clusters: Clusters, listed: Ints, k: int, dissolve: str) -> tuple[Ints, Ints]:
    """Step 5: the classes that are kept, largest first, and the records that are free then."""
    listed = listed[np.argsort(-clusters.size[listed], kind="stable")]
    sizes = clusters.size[listed]
    large = int(np.count_nonzero(sizes >= k))
    free = int(np.count_nonzero(clusters.label < 0))
    v = max(1, number_of_classes(sizes, free, k))
    if dissolve == "highest_unit_cost":
        ticks = exact.ticks(clusters.loss[listed[large:]])
        chosen = np.sort(np.argsort(ticks, kind="stable")[: v - large])
        kept = np.concatenate([listed[:large], listed[large:][chosen]])
    else:
        kept = listed[:v]
    gone = np.setdiff1d(listed, kept)
    clusters.label[np.isin(clusters.label, gone)] = -1
    return kept, np.flatnonzero(clusters.label < 0)


def number_of_classes(sizes: Ints, free: int, k: int) -> int:
    """The corrected v (docs/papers.md#truta-et-al-2007): classes of k or more, and as many as the records of the others make.

    >>> number_of_classes(np.array([5, 2, 1]), 0, 4)
    1
    """
    large = int(np.count_nonzero(sizes >= k))
    return min(len(sizes), large + (free + int(sizes[sizes < k].sum())) // k)


def _dealt_evenly(
    data: Microdata, rules: Rules, objective: Measure, seed_spread: bool, progress: Progress
) -> Partition:
    """Any policy: every combination of sensitive values goes round the classes, so that each mirrors the table.

    How many records of a combination a class gets does not depend on which, so the number of classes is settled first: the
    one that gives most good classes. Inside a combination each class takes the cheapest record; failing classes are merged.
    """
    from shoal.kernels.greedy import Needs
    from shoal.kernels.pk import deal, make_clusters, make_dealing, make_points
    from shoal.kernels.space import flatten

    flat, codes = flatten(data.space(objective)), writable_codes(data)
    group, codes_of_groups = sensitive_groups(rules)
    with progress.stage("counting how many classes there can be", 0.1) as part:
        m = _most_even_classes(rules, np.argsort(group, kind="stable"), part)
    clusters = make_clusters(flat, m, data.n)
    key = data.points.of_record.astype(np.int64) * max(1, len(codes_of_groups)) + group
    order = np.lexsort((np.arange(data.n), key, group))
    points = make_points(codes, key, group, order)
    first = np.searchsorted(points.group, np.arange(len(codes_of_groups) + 1))
    none = np.zeros(0, dtype=np.int64)
    needs = Needs(np.zeros((len(codes_of_groups), 0), dtype=np.int64), none, none, none, none, np.zeros(0), 0)
    of_point, dealing = data.points.of_record.astype(np.int64), make_dealing(points, needs)
    near = np.full(len(data.points.codes) if seed_spread else 0, 2**62, dtype=np.int64)
    with progress.stage("dealing records", 0.8) as part:
        while not deal(
            flat, codes, group, points, needs, clusters, dealing, first[:-1], first[1:], data.n, data.n,
            data.points.codes, of_point, near, SLICE,
        ):  # fmt: skip
            part(int(clusters.size.sum()) / data.n)
    return finish(data, rules, clusters.label, objective, progress, dealt=m)


def _most_even_classes(rules: Rules, order: Ints, progress: Progress) -> int:
    """How many classes to deal the records to, in this order, like cards: as many as possible without those that fail."""
    labels = np.empty(rules.n, dtype=np.int64)
    size = max(rules.k, -(-rules.n // max(1, rules.max_classes)))
    best, chosen = 1, 1
    while rules.n // size > best:
        progress.check()
        m = rules.n // size
        labels[order] = np.arange(rules.n) % m
        # A class that fails is merged with another, so it does not count.
        good = m - int(np.count_nonzero(rules.deficits(labels, m) > 0))
        if good > best:
            best, chosen = good, m
        size += max(1, size // 32)
    return chosen
