"""What several algorithms do: grow classes, place left-over records, merge classes that fail, check the result.

Every algorithm may hand its labels to `finish`: records without a class (label -1) join the cheapest class that stays
good, classes that are not good are merged until they are (docs/algorithms.md#any-policy). That ends well whenever one class
with all the records is good, which `require_one_class` finds out before any work is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import InfeasibleError, InternalError, UnsupportedError
from shoal.microdata import Microdata
from shoal.models import Kind
from shoal.partition import Partition
from shoal.policy import Rules, Stats
from shoal.progress import SLICE, Progress
from shoal.space import Measure, Space

if TYPE_CHECKING:
    from shoal.kernels.greedy import Groups, Needs, Open, Others
    from shoal.kernels.pool import Frontier, Pool
    from shoal.kernels.space import FlatSpace

Labels = NDArray[np.int64]
Records = NDArray[np.int64]
Floats = NDArray[np.float64]
Growth = Callable[..., None]

# A cost beyond all costs: what has it is not to be had.
GONE = 2**62
# Left-over records that spoilt every class are tried once more, for a class that has grown meanwhile may have room.
PASSES = 2
# Classes are judged in batches, the cheapest first, each four times as large as the one before: mostly an early one will do.
TRIED_FIRST = 16
# A class that none of so many neighbours makes good needs more than one of them: it takes the one that helps most and goes on.
MERGED_NEAR = 256
# Groups × classes of which it is remembered that they do not go together: a number each, 80 MB.
REMEMBERED = 20_000_000


def require_one_class(rules: Rules, algorithm: str, everybody: Stats | None = None) -> None:
    """Refuse policies that merging cannot reach: not even all records together are a good class.

    `everybody` counts them, where the records themselves are not at hand.
    """
    deficits = rules.rule_deficits(everybody or rules.stats_of(np.arange(rules.n)))[:, 0]
    if not (deficits > 0).any():
        return
    worst = next(rule for rule, deficit in zip(rules.rules, deficits, strict=True) if deficit > 0)
    if worst.model.union_closed:
        # Good classes merged are good, so a good partition would make the whole table good.
        raise InfeasibleError(
            f"No release of this table can satisfy {worst}: not even one class with all {rules.n} records does; "
            "weaken the model or change the table.",
            witness=worst.attribute,
        )
    raise UnsupportedError(
        f"{algorithm} repairs classes by merging them, and one class with all {rules.n} records does not satisfy {worst}; "
        "weaken the model or take the algorithm mondrian."
    )


def grow_classes(
    data: Microdata,
    rules: Rules,
    space: Space,
    *,
    first: int,
    start_there: bool,
    diverse_first: bool,
    from_seed: bool,
    weights: Floats | None,
    progress: Progress,
) -> Labels:
    """Classes grown one after the other from far-apart seeds; -1 for records that found no finished class.

    The first seed is the record `first` itself (`start_there`) or the one furthest from it.
    `weights` (one a rule) weigh the gains of rules that count distinct values as Div does (docs/models.md#hom-and-div).
    """
    from shoal.kernels.greedy import FREE, POINT, SIZE, make_groups, make_open
    from shoal.kernels.pool import bring_forward, make_frontier, make_pool
    from shoal.kernels.space import flatten

    flat, codes = flatten(space), writable_codes(data)
    group, codes_of_groups = sensitive_groups(rules)
    key = data.points.of_record.astype(np.int64) * max(1, len(codes_of_groups)) + group
    grow = _growth(rules, codes_of_groups, weights, progress)
    labels = np.full(data.n, -1, dtype=np.int64)
    reference = codes[first].copy()
    at, built = np.zeros(5, dtype=np.int64), 0
    at[POINT], at[FREE] = -1, data.n
    width = int(rules.view_starts[-1])
    while at[SIZE] > 0 or at[FREE] >= rules.k:
        # Half-empty trees answer slowly; building one anew is cheap.
        if at[SIZE] == 0 and (2 * at[FREE] <= built or built == 0):
            pool = make_pool(flat, codes, key, group, np.flatnonzero(labels == -1))
            front, groups = make_frontier(pool), make_groups(pool, len(codes_of_groups))
            if start_there and built == 0:
                at[POINT] = bring_forward(pool, first)
            built, opened = int(at[FREE]), make_open(flat, pool, groups, width, at)
        grow(flat, pool, front, groups, opened, rules.k, diverse_first, from_seed, reference, labels, built // 2, SLICE)
        progress(1 - at[FREE] / data.n)
    return np.where(labels >= 0, labels, -1)


def writable_codes(data: Microdata) -> NDArray[np.int32]:
    """A copy of the codes. To the compiler a table that must not be written is another type, and costs another compile."""
    return data.codes.copy()


def sensitive_groups(rules: Rules) -> tuple[Labels, NDArray[np.int32]]:
    """Records with the same codes in every column the rules count: a number per record, the codes of each number."""
    codes = rules.codes()
    if codes.shape[1] == 0:
        return np.zeros(rules.n, dtype=np.int64), np.zeros((1, 0), dtype=np.int32)
    distinct, inverse = np.unique(codes, axis=0, return_inverse=True)
    return inverse.ravel().astype(np.int64), np.ascontiguousarray(distinct)


def needs_of(
    rules: Rules, codes_of_groups: NDArray[np.int32], weights: Floats | None
) -> tuple[Needs, Others | None] | None:
    """The rules for compiled growth; None when some rule has no compiled form."""
    from shoal.kernels.greedy import Needs, Others

    if rules.entries is None:
        return None
    offset, cell = rules.view_starts, rules.cells(codes_of_groups)
    counted = [entry for entry in rules.entries if entry.rule in rules.distinct]
    view = np.array([entry.view for entry in counted], dtype=np.int64)
    needs = Needs(
        cell=cell,
        p=np.array([rules.distinct[entry.rule] for entry in counted], dtype=np.int64),
        column=view,
        first=offset[view],
        last=offset[view + 1],
        weight=np.zeros(len(counted)) if weights is None else weights[[entry.rule for entry in counted]],
        width=int(offset[-1]),
    )
    # Sizes are seen to by k.
    other = [e for e in rules.entries if e.rule not in rules.distinct and e.form.kind != Kind.SIZE]
    flat = rules.flat(other)
    if not other or flat is None:
        return needs, None
    return needs, Others(flat, np.ascontiguousarray(cell[:, [entry.view for entry in other]]))


def _growth(rules: Rules, codes_of_groups: NDArray[np.int32], weights: Floats | None, progress: Progress) -> Growth:
    compiled = needs_of(rules, codes_of_groups, weights)
    if compiled is None:
        return _PlainGrowth(rules, codes_of_groups, weights, progress)
    from shoal.kernels.greedy import grow

    needs, others = compiled
    return lambda flat, pool, front, groups, *more: grow(flat, pool, front, groups, needs, others, *more)


class _PlainGrowth:
    """`kernels.greedy.grow` for rules that only NumPy can evaluate; it checks the progress itself, whatever its steps."""

    def __init__(
        self, rules: Rules, codes_of_groups: NDArray[np.int32], weights: Floats | None, progress: Progress
    ) -> None:
        self.rules, self.codes, self.progress = rules, codes_of_groups, progress
        self.beyond_size = np.array([rule.view is not None for rule in rules.rules])
        self.weights = np.zeros(len(rules.rules)) if weights is None else weights

    def __call__(
        self,
        flat: FlatSpace,
        pool: Pool,
        front: Frontier,
        groups: Groups,
        opened: Open,
        k: int,
        diverse_first: bool,
        from_seed: bool,
        reference: NDArray[np.int32],
        labels: Labels,
        enough: int,
        steps: int,
    ) -> None:
        from shoal.kernels.greedy import FREE, LABEL, POINT, SET_ASIDE, cheapest_among, take_from
        from shoal.kernels.pool import absorb, cheapest, furthest, start_search
        from shoal.kernels.space import begin

        state, at = opened.state, opened.at
        while at[FREE] >= k and at[FREE] > enough:
            counts = [np.zeros((1, view.width), dtype=np.int64) for view in self.rules.views]
            members: list[int] = []
            point = furthest(flat, pool, front, reference) if at[POINT] < 0 else int(at[POINT])
            at[POINT], version, finished = -1, 0, False
            reference[:] = pool.codes[point]
            begin(flat, state, pool.codes[point])
            start_search(front)
            while True:
                self.progress.check()
                members.append(take_from(pool, groups, point))
                labels[members[-1]] = at[LABEL]
                at[FREE] -= 1
                counts = self.joined(counts, np.array([pool.group[point]]))
                version += bool(absorb(flat, state, pool.codes[point]))
                lacking = self.deficits(len(members), counts)
                lacks = (diverse_first or len(members) >= k) and bool((lacking > 0).any())
                finished = len(members) >= k and not lacks
                if finished or at[FREE] == 0:
                    break
                if not lacks:
                    point = cheapest(flat, pool, front, state, version)
                    continue
                helps, allowed = self.most_helpful(groups, len(members), counts, lacking)
                if helps <= 0 and len(members) >= k:
                    break
                point = cheapest_among(flat, pool, front, groups, state, version, allowed, opened.aside)
            if not from_seed:
                reference[:] = pool.codes[point]
            at[LABEL] += finished
            if not finished:
                labels[members] = SET_ASIDE

    def deficits(self, size: int, counts: list[Records]) -> Floats:
        """Rules beyond the size × classes."""
        stats = Stats(np.full(len(counts[0]), size), tuple(counts))
        return np.asarray(self.rules.rule_deficits(stats)[self.beyond_size])

    def joined(self, counts: list[Records], asked: Records) -> list[Records]:
        """The counts with one record of each of some groups."""
        result = []
        for view, count in enumerate(counts):
            more = np.repeat(count, len(asked), axis=0)
            codes = self.codes[asked, view]
            more[np.flatnonzero(codes >= 0), codes[codes >= 0]] += 1
            result.append(more)
        return result

    def most_helpful(
        self, groups: Groups, size: int, counts: list[Records], before: Floats
    ) -> tuple[float, NDArray[np.bool_]]:
        """The largest gain in ticks, and the groups that have it."""
        asked = np.flatnonzero(groups.live > 0)
        after = self.deficits(size + 1, self.joined(counts, asked))
        weights = self.weights[self.beyond_size]
        worth = np.where(weights > 0, before[:, 0] * weights, 1.0)
        gain = exact.ticks(exact.along((before - after).T, worth))
        allowed = np.zeros(len(groups.live), dtype=np.bool_)
        allowed[asked[gain == gain.max()]] = True
        return float(gain.max()), allowed


def finish(
    data: Microdata, rules: Rules, labels: NDArray[Any], objective: Measure, progress: Progress, **notes: Any
) -> Partition:
    """Place the records without a class, merge what is not good, and check the promise; what is left of `progress` is for it."""
    space = data.space(objective)
    with progress.stage("placing left-over records") as part:
        placed = assign_leftovers(data, rules, labels, space, part)
        alone = np.flatnonzero(placed < 0)
        placed[alone] = placed.max() + 1 + np.arange(len(alone))
        return checked(rules, merge_until_ok(data, rules, placed, space, part), **notes)


def checked(rules: Rules, labels: NDArray[Any], **notes: Any) -> Partition:
    """The partition, after a last look at every class."""
    partition = Partition.compact(labels, notes=notes)
    if partition.suppressed or (rules.deficits(partition.labels, partition.classes) > 0).any():
        raise InternalError("an algorithm returned a class that does not satisfy the policy")
    return partition


def assign_leftovers(data: Microdata, rules: Rules, labels: NDArray[Any], space: Space, progress: Progress) -> Labels:
    """Records with label -1, in order, join the class with the least added loss that stays good.

    Those that would spoil every class keep label -1. With no class at all, everybody is in class 0.
    """
    labels = np.array(labels, dtype=np.int64)
    waiting = np.flatnonzero(labels < 0)
    if len(waiting) == data.n:
        return np.zeros(data.n, dtype=np.int64)
    if len(waiting) == 0:
        return labels
    from shoal.kernels.greedy import added_by_class, enlarge, spread

    codes, classes = writable_codes(data), _Classes(data, rules, labels, space)
    flat, states, sizes, losses = classes.flat, classes.states, classes.sizes, classes.losses
    if rules.superset_closed:
        for part in progress.slices(len(waiting), states.size):
            spread(flat, codes, waiting[part], states, sizes, losses, labels)
        return labels
    group, codes_of_groups = sensitive_groups(rules)
    version = np.zeros(len(sizes), dtype=np.int32)
    # Whether a class stays good depends on the record's sensitive values alone; what failed once is not asked again.
    remember = len(codes_of_groups) * len(sizes) <= REMEMBERED
    failed = np.full((len(codes_of_groups), len(sizes)) if remember else (1, 1), -1, dtype=np.int32)
    for _ in range(PASSES):
        for record in waiting:
            progress.check()
            costs = added_by_class(flat, states, sizes, losses, codes[record])
            if remember:
                costs[failed[group[record]] == version] = GONE
            for chosen in _by_cost(costs, len(sizes)):
                good = rules.deficit(classes.stats(chosen, np.array([record]))) <= 0
                if remember:
                    failed[group[record], chosen[~good]] = version[chosen[~good]]
                if good.any():
                    labels[record] = c = int(chosen[np.argmax(good)])
                    enlarge(flat, states, sizes, losses, c, codes[record])
                    classes.members[c] = np.append(classes.members[c], record)
                    version[c] += 1
                    break
        # A class that grew may have room now.
        waiting = np.flatnonzero(labels < 0)
    return labels


def merge_until_ok(data: Microdata, rules: Rules, labels: NDArray[Any], space: Space, progress: Progress) -> Labels:
    """Merge classes that are not good, smallest first, until all are.

    The partner is the cheapest one that makes the class good. If none of the nearest does, it is the one that leaves the
    smallest deficit, and the class that came out is merged on at once: when it is good it has room for others.
    """
    labels = np.array(labels, dtype=np.int64)
    deficits = rules.deficits(labels, int(labels.max()) + 1)
    if not (deficits > 0).any():
        return labels
    from shoal.kernels.greedy import added_by_merging

    classes = _Classes(data, rules, labels, space)
    deficits = np.where(classes.sizes > 0, deficits, 0.0)
    c = -1
    while (deficits > 0).any():
        progress.check()
        if c < 0 or deficits[c] <= 0:
            failing = np.flatnonzero(deficits > 0)
            c = int(failing[np.argmin(classes.sizes[failing])])
        costs = added_by_merging(classes.flat, classes.states, classes.sizes, classes.losses, c)
        if np.count_nonzero(classes.sizes) == 1:
            raise UnsupportedError(
                f"Merging classes cannot reach this policy: one class with all {data.n} records is not good either."
            )
        partner, left = -1, np.inf
        for chosen in _by_cost(costs, MERGED_NEAR):
            remaining = rules.deficit(classes.stats(chosen, classes.members[c]))
            if (remaining <= 0).any():
                partner = int(chosen[np.argmax(remaining <= 0)])
                break
            more = remaining - deficits[chosen]
            if more.min() < left:
                partner, left = int(chosen[np.argmin(more)]), float(more.min())
        classes.merge(partner, c)
        deficits[c] = 0.0
        c = partner
        deficits[c] = rules.deficit(classes.stats(np.array([c]), np.zeros(0, dtype=np.int64)))[0]
    for c, members in enumerate(classes.members):
        labels[members] = c
    return labels


class _Classes:
    """Members, states, sizes and losses of classes that still change."""

    def __init__(self, data: Microdata, rules: Rules, labels: Labels, space: Space) -> None:
        from shoal.kernels.greedy import class_losses
        from shoal.kernels.space import flatten

        order = np.argsort(labels, kind="stable")[np.count_nonzero(labels < 0) :]
        count = int(labels.max()) + 1
        self.rules, self.flat = rules, flatten(space)
        self.sizes = np.bincount(labels[order], minlength=count).astype(np.int64)
        self.members: list[Records] = np.split(order, np.cumsum(self.sizes)[:-1])
        filled = self.sizes > 0
        self.states = np.zeros((count, space.width), dtype=np.int64)
        starts = np.cumsum(self.sizes) - self.sizes
        self.states[filled] = space.states(data.codes, order, starts[filled])
        self.losses = class_losses(self.flat, self.states)

    def stats(self, chosen: Records, joining: Records) -> Stats:
        """Sizes and histograms of some classes, each with some more records."""
        rows = np.concatenate([self.members[c] for c in chosen])
        sizes = self.sizes[chosen]
        owner = np.repeat(np.arange(len(chosen)), sizes)
        counts = []
        for view in self.rules.views:
            codes = view.codes[rows]
            cells = (owner * view.width + codes)[codes >= 0]
            counted = np.bincount(cells, minlength=len(chosen) * view.width).reshape(len(chosen), view.width)
            more = view.codes[joining]
            counts.append(counted + np.bincount(more[more >= 0], minlength=view.width))
        return Stats(sizes + len(joining), tuple(counts))

    def merge(self, into: int, c: int) -> None:
        """Class c becomes part of another."""
        from shoal.kernels.space import loss, merge

        merge(self.flat, self.states[into], self.states[c])
        self.losses[into] = loss(self.flat, self.states[into])
        self.members[into] = np.concatenate([self.members[into], self.members[c]])
        self.members[c] = np.zeros(0, dtype=np.int64)
        self.sizes[into] += self.sizes[c]
        self.sizes[c] = 0


def _by_cost(costs: Records, most: int) -> Iterator[Records]:
    """The `most` cheapest classes by rising cost, ties to the smaller index: a few first, then more at a time."""
    possible = np.flatnonzero(costs < GONE)
    done, step = 0, TRIED_FIRST
    while done < min(most, len(possible)):
        until = min(done + step, most, len(possible))
        if 8 * until < len(possible):
            near = possible[costs[possible] <= np.partition(costs[possible], until)[until]]
        else:
            near = possible
        yield near[np.argsort(costs[near], kind="stable")][done:until]
        done, step = until, 4 * step


def diversity_weights(rules: Rules, weights: str) -> Floats:
    """The w of Div and Hom (docs/models.md#hom-and-div), one a rule: summing to 1 over those that ask for distinct values."""
    counted = np.array([i in rules.distinct for i in range(len(rules.rules))])
    share = counted.astype(np.float64)
    if weights == "inverse_cardinality":
        cardinality = [max(1, np.count_nonzero(rule.table_counts)) for rule in rules.rules]
        share = counted / np.array(cardinality)
    return share / share.sum() if counted.any() else share
