"""Top-down local recoding, in the forms of Wong et al. 2006 and of Xu et al. 2006 (docs/algorithms.md#top_down).

`variant="wong"` starts with all records at the roots and specializes one attribute at a time along its taxonomy. Branches that
do not satisfy the policy return to their parent; if those that returned do not satisfy it either, they get records
from the branches that can spare them, or a whole branch. Of all attributes the one is specialized that leaves most
records specialized. Numbers without a taxonomy are halved at their median again and again, categories without one
have a root and their values. Records and branches are tested with the policy itself, so it may be any.

`variant="xu"` splits by two far-apart records: the others join the one whose group loses less with them. Groups that are
too small are repaired at the end: they borrow from one other group or merge with it, whatever costs less; under a policy
beyond k, groups that fail are merged. `direction="up"` starts from single records instead, merges the smallest group
with the one it loses least with, and splits what became too large; it takes O(n²).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.algorithms.common import require_one_class, sensitive_groups
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules, Stats
from shoal.progress import Progress
from shoal.space import Domain, Interval, Measure, Space, Tree

if TYPE_CHECKING:
    from shoal.kernels.space import FlatSpace

Variant = Literal["wong", "xu"]
Direction = Literal["down", "up"]
Visit = Literal["random", "record"]
Records = NDArray[np.int64]


def top_down(
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Progress | None = None,
    variant: Variant = "wong",
    direction: Direction = "down",
    visit: Visit = "random",
) -> Partition:
    """Recode locally. `objective`, `seed`, `direction` and `visit` matter to Xu's form alone.

    `visit` is the order in which seeds and records are taken: drawn with `seed`, or that of the table ("record").
    """
    require_one_class(rules, "top_down")
    told = Progress.of(progress)
    if variant == "wong":
        classes = list(_Specialization(data, rules, told).classes())
    elif direction == "down":
        random = np.random.default_rng(seed) if visit == "random" else None
        classes = _Groups(data, rules, data.space(objective), told).from_above(random)
    else:
        classes = _Groups(data, rules, data.space(objective), told).from_below()
    labels = np.empty(data.n, dtype=np.int32)
    for index, rows in enumerate(classes):
        labels[rows] = index
    return Partition(labels)


class _Specialization:
    """Wong et al.: `rank[a]` tells the node above each code of attribute a, level by level from the root down."""

    def __init__(self, data: Microdata, rules: Rules, progress: Progress) -> None:
        self.data, self.rules, self.progress = data, rules, progress
        self.rank = [_levels(domain, data.codes[:, a]) for a, domain in enumerate(data.domains)]
        self.group, self.codes_of_group = sensitive_groups(rules)
        self.compiled = self.loop()

    def classes(self) -> Iterator[Records]:
        """The records that stay at a node, then those of its branches."""
        stack, done = [np.arange(self.data.n)], 0
        while stack:
            rows = stack.pop()
            branches, stay = self.specialize(rows)
            stack.extend(reversed(branches))
            if len(stay):
                done += len(stay)
                self.progress(done / self.data.n)
                yield stay

    def specialize(self, rows: Records) -> tuple[list[Records], Records]:
        """Specialize the attribute that leaves most records specialized; ties: fewer branches, then the earlier column.

        A step that leads everybody into one branch is always best, so the records' lowest common ancestors are where
        all such steps end; from there one step of each attribute is tried.
        """
        self.progress.check()
        if len(rows) < 2 * self.rules.k and self.rules.only_size:
            return [], rows
        best = self.compiled(rows) if self.compiled is not None else self.best(rows)
        order = np.argsort(best, kind="stable")
        branches = np.split(rows[order], np.flatnonzero(np.diff(best[order])) + 1)
        return (branches[1:], branches[0]) if best[order[0]] < 0 else (branches, rows[:0])

    def loop(self) -> Callable[[Records], Records] | None:
        """`best` as a compiled loop; None where some rule has no compiled form."""
        from shoal.kernels.specialize import Secrets, Taxa, specialize

        flat, codes = self.rules.flat(), np.ascontiguousarray(self.data.codes, dtype=np.int32)
        if flat is None:
            return None
        sizes = np.array([rank.size for rank in self.rank], dtype=np.int64)
        taxa = Taxa(
            node=np.concatenate([rank.ravel() for rank in self.rank]).astype(np.int64),
            start=np.cumsum(sizes) - sizes,
            levels=np.array([len(rank) for rank in self.rank], dtype=np.int64),
            codes=np.array([rank.shape[1] for rank in self.rank], dtype=np.int64),
        )
        cells, columns = self.rules.cells(self.rules.codes()), int(self.rules.view_starts[-1])
        secrets = Secrets(cells, columns, self.group, len(self.codes_of_group))
        return lambda rows: specialize(taxa, flat, secrets, codes, rows)

    def best(self, rows: Records) -> Records:
        """Each row's branch in the best attribute, -1 for those that stay: `shoal.kernels.specialize` says the same."""
        best, kept, fewest = np.full(len(rows), -1), 0, 0
        for a, rank in enumerate(self.rank):
            self.progress.check()
            codes = self.data.codes[rows, a]
            low, high = int(codes.min()), int(codes.max())
            if low < high:
                level = int(np.count_nonzero(rank[:, low] == rank[:, high]))
                branch = self.settle(rows, np.unique(rank[level, codes], return_inverse=True)[1].ravel())
                specialized, branches = int(np.count_nonzero(branch >= 0)), len(np.unique(branch[branch >= 0]))
                if specialized > kept or (specialized == kept > 0 and branches < fewest):
                    best, kept, fewest = branch, specialized, branches
        return best

    def settle(self, rows: Records, branch: NDArray[np.intp]) -> NDArray[np.intp]:
        """Each record's branch, or -1 for those that must return so that all branches and the returned are good."""
        stats = self.stats(rows, branch, int(branch.max()) + 1)
        failing = self.rules.deficit(stats) > 0
        branch = np.where(failing[branch], -1, branch)
        return self.take_back(rows, branch) if failing.any() else branch

    def stats(self, rows: Records, label: NDArray[Any], classes: int) -> Stats:
        """Sizes and histograms of the records by label; label -1 is nobody's."""
        rows, label = rows[label >= 0], label[label >= 0]
        counts = []
        for view in self.rules.views:
            codes = view.codes[rows]
            cells = (label.astype(np.int64) * view.width + codes)[codes >= 0]
            counts.append(np.bincount(cells, minlength=classes * view.width).reshape(classes, view.width))
        return Stats(np.bincount(label, minlength=classes).astype(np.int64), tuple(counts))

    def take_back(self, rows: Records, branch: NDArray[np.intp]) -> NDArray[np.intp]:
        """Take records back until those at the parent are good.

        Always the record that lowers their deficit most, from the branch with most records to spare, the first one;
        its branch must stay good. When no record helps, the smallest branch returns as a whole.
        """
        rules, group = self.rules, self.group[rows]
        while True:
            self.progress.check()
            returned = self.stats(rows, np.where(branch == -1, 0, -1), 1)
            deficit = float(rules.deficit(returned)[0])
            if deficit <= 0 or not (branch >= 0).any():
                return branch
            inside = np.flatnonzero(branch >= 0)
            # Records of one branch that the rules cannot tell apart are one candidate, the first of them.
            _, first = np.unique(branch[inside] * len(self.codes_of_group) + group[inside], return_index=True)
            first = inside[first]
            stats = self.stats(rows, branch, int(branch.max()) + 1)
            after = rules.deficit(self.moved(returned, np.zeros(len(first), dtype=np.int64), group[first], 1))
            spoilt = rules.deficit(self.moved(stats, branch[first], group[first], -1)) > 0
            fall = exact.ticks(deficit - after)
            helpful = np.flatnonzero((fall > 0) & ~spoilt)
            if len(helpful):
                keys = (first[helpful], branch[first[helpful]], -stats.sizes[branch[first[helpful]]], -fall[helpful])
                branch[first[helpful[np.lexsort(keys)[0]]]] = -1
            else:
                smallest = int(np.argmin(np.where(stats.sizes > 0, stats.sizes, len(rows) + 1)))
                branch[branch == smallest] = -1

    def moved(self, stats: Stats, at: Records, groups: Records, change: int) -> Stats:
        """For each pair: the statistics at a label after one record of a group came (1) or went (-1)."""
        counts = []
        for v, counted in enumerate(stats.counts):
            codes = self.codes_of_group[groups, v]
            new = counted[at].astype(np.int64)
            new[np.flatnonzero(codes >= 0), codes[codes >= 0]] += change
            counts.append(new)
        return Stats(stats.sizes[at] + change, tuple(counts))


def _levels(domain: Domain, codes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Per level from the root down: the number of the node above each code, counted along the codes."""
    if isinstance(domain, Tree):
        tree = domain.taxonomy
        nodes = np.arange(tree.leaves)
        rows = []
        for level in range(tree.levels - 1, -1, -1):
            nodes = np.where(tree.depth[nodes] > level, tree.parent[nodes], nodes)
            rows.append(np.concatenate([[0], np.cumsum(nodes[1:] != nodes[:-1])]))
        return np.array(rows[::-1])
    if not isinstance(domain, Interval):
        return np.stack([np.zeros(domain.size, dtype=np.int64), np.arange(domain.size)])
    known = len(domain.values)
    counts = np.maximum(np.bincount(codes, minlength=domain.size), 1)
    ranges = [(0, domain.size)]
    rows = []
    while True:
        rows.append(np.repeat(np.arange(len(ranges)), [end - begin for begin, end in ranges]))
        if len(ranges) == domain.size:
            return np.array(rows)
        ranges = [half for begin, end in ranges for half in _halves(counts, begin, end, known)]


def _halves(counts: NDArray[np.int64], begin: int, end: int, known: int) -> list[tuple[int, int]]:
    """A range of codes cut after the median record, missing (the code after the known ones) cut off first of all."""
    if end - begin == 1:
        return [(begin, end)]
    if end > known:
        return [(begin, known), (known, end)]
    upto = np.cumsum(counts[begin:end])
    middle = begin + 1 + int(np.searchsorted(2 * upto, upto[-1]))
    middle = min(middle, end - 1)
    return [(begin, middle), (middle, end)]


class _Groups:
    """Xu et al.: groups of records with their sizes and states; a group that was merged away is empty."""

    def __init__(self, data: Microdata, rules: Rules, space: Space, progress: Progress) -> None:
        from shoal.kernels.space import flatten

        self.data, self.rules, self.space, self.codes = data, rules, space, data.codes
        self.progress = progress
        self.flat: FlatSpace = flatten(space)
        self.take([])

    def take(self, members: list[Records]) -> None:
        """Let these be the groups."""
        self.members = members
        self.sizes = np.array([len(rows) for rows in members], dtype=np.int64)
        starts = np.cumsum(self.sizes) - self.sizes
        order = np.concatenate([*members, np.zeros(0, dtype=np.int64)])
        self.states = self.space.states(self.codes, order, starts)

    def replace(self, g: int, rows: Records) -> None:
        """Give a group other records."""
        self.members[g], self.sizes[g] = np.sort(rows), len(rows)
        if len(rows):
            self.states[g] = self.space.states(self.codes, rows, np.zeros(1, dtype=np.int64))[0]

    def from_above(self, random: np.random.Generator | None) -> list[Records]:
        """Split while both halves can be large enough, then repair."""
        stack, groups, done = [(np.arange(self.data.n), True)], [], 0
        while stack:
            self.progress(0.8 * done / self.data.n)
            rows, good = stack.pop()
            parts = self.split(rows, random) if good and len(rows) >= 2 * self.rules.k else []
            judged = [(part, self.rules.ok(part)) for part in parts]
            if any(good for _, good in judged):
                stack.extend(reversed(judged))
            else:
                groups.append(rows)
                done += len(rows)
        self.take(groups)
        if self.rules.only_size:
            self.repair()
        return self.finished()

    def split(self, rows: Records, random: np.random.Generator | None) -> list[Records]:
        """Two far seeds, and each other record with the seed whose group loses less with it."""
        from shoal.kernels.top_down import deal, far_pair

        start = int(rows[0] if random is None else rows[random.integers(len(rows))])
        u, v = far_pair(self.flat, self.codes, rows, start)
        rest = rows[(rows != u) & (rows != v)]
        if random is not None:
            rest = random.permutation(rest)
        to_second = deal(self.flat, self.codes, u, v, rest)
        return [np.sort(np.append(rest[~to_second], u)), np.sort(np.append(rest[to_second], v))]

    def repair(self) -> None:
        """Bring small groups to size k, first group first: by a loan from one other group or by merging with it."""
        from shoal.kernels.space import loss, merged_loss
        from shoal.kernels.top_down import best_loan, rest_floor

        k, flat, changed = self.rules.k, self.flat, list(range(len(self.members)))
        floor = np.zeros((len(self.members), k))
        rows = np.zeros((len(self.members), 3 * k), dtype=np.int64)
        while True:
            if self.sizes.max() > rows.shape[1]:
                rows = np.pad(rows, ((0, 0), (0, int(self.sizes.max()))))
            for b in changed:
                self.progress.check()
                rows[b, : self.sizes[b]] = self.members[b]
                rest_floor(flat, self.codes, self.members[b], floor[b])
            small = np.flatnonzero((self.sizes > 0) & (self.sizes < k))
            if len(small) == 0:
                return
            g = int(small[0])
            partner = int(self.partners(g)[0])
            cost = (self.sizes[g] + self.sizes[partner]) * merged_loss(flat, self.states[g], self.states[partner])
            for part in (g, partner):
                cost -= self.sizes[part] * loss(flat, self.states[part])
            lent = np.zeros(k - self.sizes[g], dtype=np.int64)
            lender, _ = best_loan(flat, self.codes, rows, self.sizes, self.states, floor, g, k, cost, lent)
            changed = [g, int(lender) if lender >= 0 else partner]
            if lender >= 0:
                lenders = self.members[lender]
                self.replace(g, np.append(self.members[g], lenders[lent]))
                self.replace(int(lender), np.delete(lenders, lent))
            else:
                self.merge(g, partner)

    def partners(self, g: int) -> NDArray[np.int64]:
        """The other groups, those first with which g would lose least."""
        from shoal.kernels.top_down import union_losses

        losses = union_losses(self.flat, self.states, self.sizes, g)
        others = np.flatnonzero(losses >= 0)
        return np.asarray(others[np.argsort(losses[others], kind="stable")])

    def merge(self, g: int, other: int) -> None:
        """Merge two groups into the earlier one."""
        first, second = min(g, other), max(g, other)
        self.replace(first, np.concatenate([self.members[g], self.members[other]]))
        self.replace(second, np.zeros(0, dtype=np.int64))

    def from_below(self) -> list[Records]:
        """Merge from single records up, the smallest failing group first, then split groups of 2k and more."""
        from shoal.kernels.top_down import far_pair, grow_from

        n, k = self.data.n, self.rules.k
        self.take([np.array([r]) for r in range(n)])
        failing = np.array([not self.rules.ok(rows) for rows in self.members])
        while failing.any():
            g = int(np.argmin(np.where(failing, self.sizes, n + 1)))
            other = int(self.partners(g)[0])
            self.merge(g, other)
            failing[[g, other]] = False
            failing[min(g, other)] = not self.rules.ok(self.members[min(g, other)])
            self.progress(0.9 * (1 - np.count_nonzero(failing) / n))
        groups = []
        for rows in self.members:
            while len(rows) >= 2 * k:
                self.progress.check()
                u, _ = far_pair(self.flat, self.codes, rows, int(rows[0]))
                near = grow_from(self.flat, self.codes, rows, u, k)
                if not (self.rules.ok(rows[near]) and self.rules.ok(rows[~near])):
                    break
                groups.append(rows[near])
                rows = rows[~near]
            if len(rows):
                groups.append(rows)
        self.take(groups)
        return self.finished()

    def finished(self) -> list[Records]:
        """The groups after those that fail have been merged: with one that makes them good, where there is one."""
        while True:
            failing = [len(rows) > 0 and not self.rules.ok(rows) for rows in self.members]
            while any(failing):
                g = failing.index(True)
                partners = [int(b) for b in self.partners(g)]
                other = next((b for b in partners if self.good_together(g, b)), partners[0])
                self.merge(g, other)
                failing[g] = failing[other] = False
                failing[min(g, other)] = not self.rules.ok(self.members[min(g, other)])
            if self.rules.union_closed or not self.merge_alike():
                return [rows for rows in self.members if len(rows)]

    def good_together(self, g: int, other: int) -> bool:
        """Whether two groups would be a good one."""
        self.progress.check()
        return self.rules.ok(np.concatenate([self.members[g], self.members[other]]))

    def merge_alike(self) -> bool:
        """Merge groups that would publish the same values; whether there were any."""
        self.take([rows for rows in self.members if len(rows)])
        shown: dict[tuple[str | None, ...], int] = {}
        for g, values in enumerate(zip(*self.space.publish(self.states), strict=True)):
            if shown.setdefault(values, g) != g:
                self.merge(shown[values], g)
        return len(shown) < len(self.members)
