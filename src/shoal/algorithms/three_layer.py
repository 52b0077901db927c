"""3LayerAnonymizing (docs/algorithms.md#three_layer): weigh attributes, cluster twice, merge until the policy holds.

Layers 1 and 2 do not depend on p and t, and on k only through `k_pre`; `prepare` runs them once for a whole sweep.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.algorithms import run
from shoal.algorithms.common import finish, require_one_class
from shoal.algorithms.weighting import Weighting, normalized, weigh
from shoal.algorithms.xmeans import Criterion, on_grid, xmeans
from shoal.errors import ConfigError
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.pieces import pieces
from shoal.policy import Rules, Stats
from shoal.progress import Progress
from shoal.space import Domain, Interval, Measure, Space

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Merging = Literal["nearest", "loss"]
Outliers = Literal["rescue", "suppress"]
Reading = Literal["class", "inside"]
Scaling = Literal["range", "spread"]

# A weight of zero would let an attribute vanish from the distance altogether.
LEAST_WEIGHT = 0.1
# Two records in an attribute that hardly varies would lie so far apart that squared distances were no longer exact (see xmeans).
LEAST_SPREAD = 1 / 8


@dataclass(frozen=True, eq=False)
class Preparation:
    """Layers 1 and 2: the weights, and where each record ended up (`part` 1 = D1, 21 = D21, 22 = D22).

    `made_with` are the options of three_layer that give the same without it; the seed goes beside them.
    """

    weights: Floats
    order: tuple[int, ...]
    part: Labels
    cluster: Labels
    group: Labels
    features: Floats
    made_with: Mapping[str, Any] = field(default_factory=dict)


def three_layer(
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Progress,
    allowed: int | None = None,
    weighting: Weighting = "chi_squared",
    label: str | None = None,
    kmin: int = 3,
    kmax: int = 60,
    k_pre: int | None = None,
    m1: int | None = None,
    criterion: Criterion = "bic",
    scaling: Scaling = "range",
    merging: Merging = "nearest",
    outliers: Outliers = "rescue",
    reading: Reading = "class",
    preparation: Preparation | None = None,
) -> Partition:
    """Clusters that fail are merged with the nearest one (`merging="loss"`: with the one that costs least).

    Records that fit into no large cluster are outliers: `"suppress"` removes them as the paper does when they are no good
    class of their own, `"rescue"` lets them join the cheapest class that stays good. Where more would be suppressed than
    are `allowed`, those that cost least to place are rescued.

    How the policy is applied to clusters can be read in two ways: each is one class (`reading="class"`), or top-down local
    recoding, which the paper compares with, is run `"inside"` each, and only clusters that are no good class are merged.
    """
    require_one_class(rules, "three_layer")
    if k_pre is not None and k_pre < 1:
        raise ConfigError(f"three_layer: k_pre = {k_pre} is not allowed; it must be a whole number at least 1.")
    with progress.stage("clustering", 0.6) as part:
        ready = preparation or prepare(
            data,
            k=k_pre or rules.k,
            seed=seed,
            weighting=weighting,
            label=label,
            kmin=kmin,
            kmax=kmax,
            m1=m1,
            criterion=criterion,
            scaling=scaling,
            progress=part,
        )
    with progress.stage("merging clusters", 0.2) as part:
        bags = Bags(data, rules, ready, data.space(objective), merging, part)
        bags.settle(bags.of_part(1), part, by_group=True)
        bags.settle(bags.of_part(21), part, by_group=False)
        bags.settle(bags.all(), part, by_group=False)
    labels = bags.labels()
    left = np.flatnonzero(ready.part == 22)
    if len(left) and rules.ok(left):
        labels[left] = labels.max() + 1
    if outliers == "rescue":
        return _finished(data, rules, labels, objective, reading, progress)
    waiting = np.flatnonzero(labels < 0)
    if allowed is not None and len(waiting) > allowed:
        waiting = _dearest(data, labels, data.space(objective))[:allowed]
    return _released(data, rules, labels, waiting, objective, reading, progress)


def prepare(
    data: Microdata,
    *,
    k: int,
    seed: int = 0,
    weighting: Weighting = "chi_squared",
    label: str | None = None,
    kmin: int = 3,
    kmax: int = 60,
    m1: int | None = None,
    criterion: Criterion = "bic",
    scaling: Scaling = "range",
    progress: Progress | None = None,
) -> Preparation:
    """Layers 1 and 2 with the size threshold k; for a sweep over several k take the largest."""
    told = Progress.of(progress)
    weights = normalized(weigh(data, label, weighting))
    lengths = scales(data, weights, scaling)
    distinct = np.array([len(np.unique(data.codes[:, a])) for a in range(len(data.domains))], dtype=np.float64)
    scores = weights + 1 - (normalized(distinct) if distinct.max() > distinct.min() else np.zeros(len(distinct)))
    order = np.argsort(-exact.ticks(scores), kind="stable").tolist()
    chosen = order[: m1 or -(-len(order) // 2)]

    def cluster(records: Labels, attributes: list[int], least: int, most: int) -> Labels:
        rows, inverse, counts = np.unique(
            data.codes[records][:, attributes], axis=0, return_inverse=True, return_counts=True
        )
        points = features(data, rows, attributes, lengths, told)
        found = xmeans(
            points, counts.astype(np.float64), least=least, most=most, seed=seed, criterion=criterion, progress=told
        )
        return np.asarray(found[inverse.ravel()])

    everyone = np.arange(data.n)
    level1 = cluster(everyone, chosen, kmin, kmax)
    told(0.5)
    sizes = np.bincount(level1)
    part = np.where(sizes[level1] >= k, 1, 22).astype(np.int64)
    group = np.where(part == 1, level1, -1)
    sub = np.full(data.n, -1, dtype=np.int64)
    made = 0
    for c in np.flatnonzero(sizes >= k):
        records = np.flatnonzero(level1 == c)
        most = min(10, len(records) // (2 * k))
        inner = np.zeros(len(records), dtype=np.int64)
        if len(records) >= 4 and most >= 2:
            inner = cluster(records, order[: len(chosen) + 1], 2, most)
        sub[records] = made + inner
        made += int(inner.max()) + 1
        told(0.5 + 0.4 * (c + 1) / len(sizes))
    attributes = list(chosen)
    while len(attributes) > 1 and np.count_nonzero(part == 22) >= k:
        attributes.pop()
        records = np.flatnonzero(part == 22)
        found = cluster(records, attributes, kmin, kmax)
        large = np.bincount(found) >= k
        moved = large[found]
        part[records[moved]] = 21
        sub[records[moved]] = made + found[moved]
        made += int(found.max()) + 1
    made_with = {
        "k_pre": k,
        "weighting": weighting,
        "label": label,
        "kmin": kmin,
        "kmax": kmax,
        "m1": m1,
        "criterion": criterion,
        "scaling": scaling,
    }
    return Preparation(weights, tuple(order), part, sub, group, everything(data, lengths, told), made_with)


def scales(data: Microdata, weights: Floats, scaling: Scaling) -> Floats:
    """How much longer a distance in each attribute counts: the root of its weight; by spread, over its usual distance."""
    found = np.sqrt(np.maximum(weights, LEAST_WEIGHT))
    if scaling == "spread":
        found /= [max(LEAST_SPREAD, _apart(domain, data.codes[:, a])) for a, domain in enumerate(data.domains)]
    return found


def _apart(domain: Domain, codes: NDArray[np.int32]) -> float:
    """The root mean square of the distance between two records in one attribute, as `features` has it for a weight of 1."""
    counts = np.bincount(codes, minlength=domain.size)
    n = int(counts.sum())
    if not (isinstance(domain, Interval) and len(domain.values)):
        return math.sqrt((n * n - sum(count * count for count in counts.tolist())) / (n * n))
    places = _places(domain)[: len(counts)]
    away = places - exact.weighed(counts, places) / n
    missing = int(counts[domain.missing_code :].sum()) / n
    return math.sqrt(2 * (exact.weighed(counts, away**2) / n + missing * (1 - missing)))


def everything(data: Microdata, lengths: Floats, progress: Progress) -> Floats:
    """The features of all records and attributes, in which centres of clusters are compared."""
    return features(data, data.codes, list(range(len(data.domains))), lengths, progress)


def features(
    data: Microdata, codes: NDArray[np.int32], attributes: list[int], lengths: Floats, progress: Progress
) -> Floats:
    """Numbers on [0, 1], categories one-hot so that two different values are at distance 1, times the attribute's `scales`.

    All on the grid of x-means, so that their sums are exact.
    """
    parts = []
    for some in pieces(len(codes), sum(data.domains[a].size for a in attributes)):
        progress.check()
        parts.append(_features(data, codes[some], attributes, lengths))
    return np.concatenate(parts)


def _features(data: Microdata, codes: NDArray[np.int32], attributes: list[int], lengths: Floats) -> Floats:
    blocks = []
    for position, a in enumerate(attributes):
        domain, column, scale = data.domains[a], codes[:, position], lengths[a]
        if isinstance(domain, Interval) and len(domain.values):
            known = column < domain.missing_code
            numbers = _places(domain)[np.minimum(column, len(domain.values))]
            blocks.append(
                scale * np.stack([numbers, ~known], axis=1) if domain.has_missing else scale * numbers[:, None]
            )
        else:
            blocks.append(scale / np.sqrt(2) * np.eye(domain.size)[column])
    return on_grid(np.concatenate(blocks, axis=1))


def _places(domain: Interval) -> Floats:
    """Where the values of a number lie on [0, 1], and last where a missing one does: at their mean."""
    spread = domain.values[-1] - domain.values[0]
    scaled = (domain.values - domain.values[0]) / spread if spread > 0 else np.zeros(len(domain.values))
    return np.append(scaled, exact.mean(scaled))


class Bags:
    """Layer 3: clusters as bags of records that can be merged; sums and histograms are kept, not records."""

    def __init__(
        self, data: Microdata, rules: Rules, ready: Preparation, space: Space, merging: Merging, progress: Progress
    ) -> None:
        self.rules, self.space, self.merging = rules, space, merging
        found = Partition.compact(np.where(ready.part == 22, -1, ready.cluster))
        self.records = found.labels.astype(np.int64)
        self.parent = np.arange(found.classes)
        stats = rules.stats(self.records, found.classes)
        self.sizes, self.counts = stats.sizes.copy(), [counts.copy() for counts in stats.counts]
        self.sums = np.zeros((found.classes, ready.features.shape[1]))
        for some in pieces(len(found.order), ready.features.shape[1]):
            progress.check()
            np.add.at(self.sums, found.labels[found.order[some]], ready.features[found.order[some]])
        self.states = space.states(data.codes, found.order, found.starts)
        first = found.order[found.starts]
        self.part, self.group = ready.part[first], ready.group[first]

    def all(self) -> Labels:
        """Every bag that still stands."""
        return np.flatnonzero(self.parent == np.arange(len(self.parent)))

    def of_part(self, part: int) -> Labels:
        """The standing bags of D1 or D21."""
        standing = self.all()
        return np.asarray(standing[self.part[standing] == part])

    def deficits(self, bags: Labels) -> Floats:
        """How far these bags are from good."""
        return self.rules.deficit(Stats(self.sizes[bags], tuple(counts[bags] for counts in self.counts)))

    def settle(self, bags: Labels, progress: Progress, *, by_group: bool) -> None:
        """Merge failing bags, smallest first, with the nearest bag of the same level-1 cluster, else with any of these."""
        while len(bags) > 1:
            progress.check()
            failing = bags[self.deficits(bags) > 0]
            if len(failing) == 0:
                return
            worst = int(failing[np.lexsort((failing, self.sizes[failing]))[0]])
            others = bags[bags != worst]
            same = others[self.group[others] == self.group[worst]] if by_group else others
            self.merge(worst, self.choose(worst, same if len(same) else others))
            bags = bags[bags != worst]

    def choose(self, worst: int, others: Labels) -> int:
        """Nearest by centroid; with `merging="loss"` the cheapest among those that lower the total deficit."""
        if self.merging == "loss":
            union = Stats(
                self.sizes[others] + self.sizes[worst], tuple(counts[others] + counts[worst] for counts in self.counts)
            )
            before = self.deficits(others) + self.deficits(np.array([worst]))[0]
            helpful = self.rules.deficit(union) < before - 1e-12
            pool = others[helpful] if helpful.any() else others
            return int(pool[np.argmin(exact.ticks(self.added(worst, pool)))])
        centres = self.sums[others] / self.sizes[others][:, None]
        own = self.sums[worst] / self.sizes[worst]
        return int(others[np.argmin(exact.ticks(((centres - own) ** 2).sum(axis=1)))])

    def added(self, worst: int, others: Labels) -> Floats:
        """Loss that each merge would add."""
        joined = np.array([self.joined(worst, int(o)) for o in others])
        units = self.space.unit(joined) * (self.sizes[others] + self.sizes[worst])
        return np.asarray(units - self.space.unit(self.states[others]) * self.sizes[others])

    def joined(self, a: int, b: int) -> NDArray[np.int64]:
        """The state of two bags together."""
        state = self.states[a].copy()
        for position, domain in enumerate(self.space.domains):
            begin, end = int(self.space.slots[position]), int(self.space.slots[position + 1])
            if hasattr(domain, "words"):
                state[begin:end] |= self.states[b][begin:end]
            else:
                state[begin] = min(state[begin], self.states[b][begin])
                state[begin + 1] = max(state[begin + 1], self.states[b][begin + 1])
        return np.asarray(state)

    def merge(self, gone: int, into: int) -> None:
        """Empty one bag into another."""
        self.states[into] = self.joined(gone, into)
        self.parent[self.parent == gone] = into
        self.sizes[into] += self.sizes[gone]
        self.sums[into] += self.sums[gone]
        for counts in self.counts:
            counts[into] += counts[gone]

    def labels(self) -> Labels:
        """The bag of each record, -1 for the outliers."""
        return np.asarray(np.append(self.parent, -1)[self.records])


def _dearest(data: Microdata, labels: Labels, space: Space) -> Labels:
    """The records without a class, those first that would add most to the cheapest class for them."""
    from shoal.kernels.greedy import added_by_class, class_losses
    from shoal.kernels.space import flatten

    waiting, found, flat, codes = (
        np.flatnonzero(labels < 0),
        Partition.compact(labels),
        flatten(space),
        data.codes.copy(),
    )
    states = space.states(codes, found.order, found.starts)
    losses = class_losses(flat, states)
    costs = [added_by_class(flat, states, found.sizes, losses, codes[record]).min() for record in waiting]
    return np.asarray(waiting[np.lexsort((waiting, -np.array(costs, dtype=np.int64)))])


def _released(
    data: Microdata,
    rules: Rules,
    labels: Labels,
    suppressed: Labels,
    objective: Measure,
    reading: Reading,
    progress: Progress,
) -> Partition:
    """Suppress the outliers; the table's distributions moved with them, so test again and merge on."""
    kept = np.setdiff1d(np.arange(data.n), suppressed)
    rest = data.take(kept)
    again = rest.rules(rules.policy)
    require_one_class(again, "three_layer")
    full = np.full(data.n, -1, dtype=np.int64)
    full[kept] = _finished(rest, again, labels[kept], objective, reading, progress).labels
    return Partition.compact(full, notes={"outliers": int(data.n - len(kept))})


def _finished(
    data: Microdata, rules: Rules, labels: Labels, objective: Measure, reading: Reading, progress: Progress
) -> Partition:
    """Good clusters as classes, or recoded from above, each by itself."""
    if reading == "class":
        return finish(data, rules, labels, objective, progress)
    with progress.stage(weight=0.1) as part:
        found = finish(data, rules, labels, objective, part)
    smaller = np.empty(data.n, dtype=np.int64)
    classes = 0
    for members in found.members():
        with progress.stage("recoding inside clusters", 0.1 * len(members) / data.n) as told:
            inner = run("top_down", data.take(members), rules.restrict(members), objective=objective, progress=told)
        smaller[members] = inner.labels + classes
        classes += inner.classes
    return Partition.compact(smaller)
