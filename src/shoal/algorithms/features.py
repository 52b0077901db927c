"""Records as points, and classes by the distance of their means, for microaggregation (docs/algorithms.md#mdav).

Squared distances of points add up over the attributes. Numbers and the ranks of ordered labels are standardized (mean 0,
standard deviation 1), two different categories are at distance 1, two leaves of a taxonomy at the height of their
lowest common ancestor over the height of the tree. A table of numbers alone is nothing but its standardized columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.algorithms.common import checked, require_one_class
from shoal.microdata import Microdata
from shoal.models.kpqr import RareRule
from shoal.models.ranges import Ranges, singles, subtrees
from shoal.partition import Partition
from shoal.pieces import CELLS, pieces
from shoal.policy import Rules, Stats
from shoal.progress import Progress
from shoal.space import Domain, Interval, Tree
from shoal.states import class_states

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Records = NDArray[np.int64]

# An attribute that would need more columns than this is projected to as many; exact distances would cost too much.
WIDEST = 128
# Partners of a class are tried in batches, the nearest first.
TRIED_FIRST = 16
# Steps of a search for the nearest of very many means.
SEARCHED = 10_000


@dataclass(frozen=True)
class Demands:
    """What a class must satisfy: names, and the deficits of classes, one row a name."""

    names: list[str]
    deficits: Callable[[Stats], Floats]


def feature_matrix(data: Microdata, progress: Progress | None = None) -> Floats:
    """One row a record. An attribute's weight multiplies its squared distances.

    A missing number lies at the mean of its column and one unit away in a column of its own, so it is as far from
    a random record as two random records are from each other. Missing is one more category, and a leaf below the root.
    """
    told, columns = Progress.of(progress), []
    for a, (name, domain) in enumerate(zip(data.quasi, data.domains, strict=True)):
        scale = float(np.sqrt(data.schema.attributes[name].weight))
        for column in _features(data.codes[:, a], domain, a):
            told.check()
            columns.append(scale * column)
    if not columns:
        return np.zeros((data.n, 1))
    rows = np.empty((data.n, len(columns)))
    for place, column in enumerate(columns):
        told.check()
        rows[:, place] = column
    return rows


def _features(codes: Codes, domain: Domain, seed: int) -> Iterator[Floats]:
    if isinstance(domain, Interval):
        yield from _number(codes, domain)
        return
    present = np.unique(codes).astype(np.int64)
    ranges = _weighted_nodes(present, domain) if isinstance(domain, Tree) else singles(present, 1.0)
    place = np.arange(len(present))
    points: Floats
    if len(ranges.weight) <= WIDEST:
        inside = (ranges.begin <= place[:, None]) & (place[:, None] < ranges.end)
        varied = ~inside.all(axis=0)
        points = np.where(inside[:, varied], np.sqrt(ranges.weight[varied] / 2), 0.0)
    else:
        points = _projected(ranges, len(present), seed)
    yield from points.T[:, np.searchsorted(present, codes)]


def _number(codes: Codes, domain: Interval) -> Iterator[Floats]:
    missing = codes >= domain.missing_code
    known = codes[~missing]
    column = np.zeros(len(codes))
    # Equal values have no spread, whatever rounding makes of their mean.
    if len(known) and known.min() < known.max():
        values = domain.values[known]
        column[~missing] = (values - values.mean()) / values.std()
    yield column
    if missing.any() and len(known):
        yield missing.astype(np.float64)


def _weighted_nodes(present: NDArray[np.int64], domain: Tree) -> Ranges:
    """The leaves below each node, weighing what the node adds to squared distances.

    Let φ(N) = (height(N)/H)². The nodes between a leaf and an ancestor N raise φ by φ(N) in all; two leaves differ in
    all nodes below their lowest common ancestor, on both sides, so half of each rise makes the squared distance φ.
    """
    tree = domain.taxonomy
    value = (tree.height / max(1, int(tree.height[tree.root]))) ** 2
    return subtrees(present, present, tree, value)


def _projected(ranges: Ranges, values: int, seed: int) -> Floats:
    """Random signs keep squared distances in the mean, with a standard deviation of about a tenth."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (len(ranges.weight), WIDEST))
    signs *= np.sqrt(ranges.weight / (2 * WIDEST))[:, None]
    steps = np.zeros((values + 1, WIDEST))
    np.add.at(steps, ranges.begin, signs)
    np.subtract.at(steps, ranges.end, signs)
    return np.asarray(np.cumsum(steps, axis=0)[:-1])


def last_resort(rules: Rules, algorithm: str) -> Codes:
    """A partition that satisfies the policy whatever happens, found before any work; refuses where there is none.

    One class with all records, or one with those that hold a rare value of a (k, p, q, r) rule and one with the rest:
    where the variance is measured against that of the rare records, too many others would drown it.
    """
    rare = np.zeros(rules.n, dtype=np.int32)
    for rule, view in zip(rules.rules, rules.view_of, strict=True):
        if isinstance(rule, RareRule):
            rare |= np.append(rule.rare, False)[rules.views[view].codes]
    both = bool(rare.any()) and not rare.all()
    if both and not rules.ok(np.arange(rules.n)) and not (rules.deficits(1 - rare, 2) > 0).any():
        return np.asarray(1 - rare, dtype=np.int32)
    require_one_class(rules, algorithm)
    return np.zeros(rules.n, dtype=np.int32)


def finish_groups(
    data: Microdata,
    rules: Rules,
    X: Floats,
    labels: NDArray[Any],
    resort: Codes,
    progress: Progress,
    demands: Demands | None = None,
    **notes: Any,
) -> Partition:
    """Place left-over records (negative labels), merge what is not good, and check the promise.

    `demands` may ask for more than the rules. Where good classes may spoil each other, those that publish
    the same values are merged too, because a reader of the release cannot tell them apart.
    """
    if labels.max() < 0:
        return checked(rules, resort, **notes)
    if rules.only_size and labels.min() >= 0:
        return checked(rules, labels, **notes)
    demands = demands or Demands([str(rule) for rule in rules.rules], rules.rule_deficits)
    blamed: Counter[str] = Counter()
    with progress.stage("placing left-over records") as part:
        classes = _Classes(X, labels, rules, demands, part)
        classes.place(np.flatnonzero(labels < 0))
        good = classes.merge_failing(blamed)
        while good and not rules.union_closed and classes.merge_alike(data):
            good = classes.merge_failing(blamed)
    if blamed:
        notes["merged_for"] = dict(sorted(blamed.items()))
    return checked(rules, classes.labels if good else resort, **notes)


class _Classes:
    """Classes that still change, with their members and means."""

    def __init__(self, X: Floats, labels: NDArray[Any], rules: Rules, demands: Demands, progress: Progress) -> None:
        self.X, self.rules, self.demands, self.progress = X, rules, demands, progress
        self.labels = np.array(labels, dtype=np.int64)
        self.filled = np.ones(int(self.labels.max()) + 1, dtype=np.bool_)
        self.members: list[Records]
        self.means: Floats
        self.gather()

    def gather(self) -> None:
        """Members and means from the labels, while no class is empty."""
        order = np.argsort(self.labels, kind="stable")[np.count_nonzero(self.labels < 0) :]
        sizes = np.bincount(self.labels[order])
        starts = np.cumsum(sizes) - sizes
        self.members = np.split(order, starts[1:])
        self.means = np.add.reduceat(self.X[order], starts, axis=0) / sizes[:, None]

    def place(self, waiting: Records) -> None:
        """Each record, in order, joins the class with the nearest mean that stays good; the nearest if none does.

        The means are those of the classes before anybody joined (docs/algorithms.md#p_mdav).
        """
        if len(waiting) == 0:
            return
        if self.rules.superset_closed:
            from shoal.kernels.kdtree import build_tree
            from shoal.kernels.micro import nearest_points

            chosen, tree = np.empty(len(waiting), dtype=np.int32), build_tree(self.means)
            for part in self.progress.slices(len(waiting), min(self.means.size, SEARCHED)):
                nearest_points(tree, self.X[waiting[part]], chosen[part])
            self.labels[waiting] = chosen
        else:
            for record in waiting:
                c = self.first_good(self.by_distance(self.X[record]), np.array([record]))
                self.members[c] = np.append(self.members[c], record)
                self.labels[record] = c
        self.gather()

    def merge_failing(self, blamed: Counter[str]) -> bool:
        """Merge each class that is not good with the nearest that makes it good, or the nearest; whether all are good.

        `blamed` counts the merges by what the class lacked most.
        """
        failing = self.failing()
        while failing:
            self.progress.check()
            c = failing.pop(0)
            blamed[self.demands.names[int(np.argmax(self.lacks(c)))]] += 1
            near = self.by_distance(self.means[c])
            near = near[near != c]
            if len(near) == 0:
                return False
            partner = self.first_good(near, self.members[c])
            self.merge(partner, c)
            failing = [f for f in failing if f != partner]
            if self.lacks(partner).any():
                failing = sorted([*failing, partner])
        return True

    def merge_alike(self, data: Microdata) -> bool:
        """Merge classes that publish the same values; whether there were any."""
        places = np.flatnonzero(self.filled)
        partition = Partition.compact(self.labels)
        space = data.space("ncp")
        shown = class_states(data, partition, space)
        for a, domain in enumerate(space.domains):
            if isinstance(domain, Tree):
                slot, tree = int(space.slots[a]), domain.taxonomy
                nodes = tree.lca(shown[:, slot], shown[:, slot + 1])
                shown[:, slot], shown[:, slot + 1] = tree.first[nodes], tree.last[nodes]
        _, first, inverse = np.unique(shown, axis=0, return_index=True, return_inverse=True)
        for c, twin in zip(places, places[first[inverse.ravel()]], strict=True):
            if c != twin:
                self.merge(int(twin), int(c))
        return len(first) < len(shown)

    def merge(self, into: int, c: int) -> None:
        """Class c becomes part of another."""
        self.labels[self.members[c]] = into
        self.members[into] = np.sort(np.concatenate([self.members[into], self.members[c]]))
        self.means[into] = self.X[self.members[into]].mean(axis=0)
        self.members[c] = self.members[c][:0]
        self.filled[c] = False

    def failing(self) -> list[int]:
        """The classes that lack something."""
        filled = np.flatnonzero(self.filled)
        parts = [filled[some] for some in pieces(len(filled), self.rules.widest)]
        none = np.zeros(0, dtype=np.int64)
        return [int(c) for part in parts for c in part[(self.demands.deficits(self.stats(part, none)) > 0).any(axis=0)]]

    def distances(self, point: Floats) -> Floats:
        """Squared distances of the means as they are compared: ties within 2⁻⁴⁰."""
        squared = exact.ticks(((self.means - point) ** 2).sum(axis=1))
        return np.where(self.filled, squared, np.inf)

    def by_distance(self, point: Floats) -> Records:
        """Classes by the distance of their means, ties to the smaller index."""
        return np.argsort(self.distances(point), kind="stable")[: np.count_nonzero(self.filled)]

    def first_good(self, candidates: Records, joining: Records) -> int:
        """The first class that is good together with some records, or the first."""
        done, step = 0, TRIED_FIRST
        while done < len(candidates):
            self.progress.check()
            batch = candidates[done : done + step]
            good = np.flatnonzero(self.demands.deficits(self.stats(batch, joining)).sum(axis=0) <= 0)
            if len(good):
                return int(batch[good[0]])
            done, step = done + step, min(4 * step, max(TRIED_FIRST, CELLS // self.rules.widest))
        return int(candidates[0])

    def lacks(self, c: int) -> Floats:
        """What a class lacks of each demand."""
        return self.demands.deficits(self.stats(np.array([c]), self.members[c][:0]))[:, 0]

    def stats(self, chosen: Records, joining: Records) -> Stats:
        """Sizes and histograms of some classes, each with some more records."""
        rows = np.concatenate([self.members[c] for c in chosen])
        sizes = np.array([len(self.members[c]) for c in chosen], dtype=np.int64)
        owner = np.repeat(np.arange(len(chosen)), sizes)
        counts = []
        for view in self.rules.views:
            codes, more = view.codes[rows], view.codes[joining]
            cells = (owner * view.width + codes)[codes >= 0]
            counted = np.bincount(cells, minlength=len(chosen) * view.width).reshape(len(chosen), view.width)
            counts.append(counted + np.bincount(more[more >= 0], minlength=view.width))
        return Stats(sizes + len(joining), tuple(counts))
