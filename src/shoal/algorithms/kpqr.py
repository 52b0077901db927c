"""(k, p, q, r)-anonymous microaggregation: groups round rare values first, MDAV for the rest (docs/algorithms.md#kpqr)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from shoal.algorithms.features import Demands, Floats, feature_matrix, finish_groups, last_resort
from shoal.algorithms.mdav import Growth, Labels, far_groups, still_there
from shoal.errors import UnsupportedError
from shoal.microdata import Microdata
from shoal.models import Kind, Rule, Sensitive
from shoal.models.kpqr import RareRule
from shoal.models.parameters import require
from shoal.models.persons import Crowd
from shoal.models.t_closeness import TCloseness
from shoal.models.variance import NumberVariance
from shoal.partition import Partition
from shoal.policy import FlatRules, Rules, Stats
from shoal.progress import SLICE, Progress
from shoal.space import Measure

if TYPE_CHECKING:
    from shoal.kernels.kpqr import Obligations


def kpqr(
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Progress,
    prefer_variance: bool = False,
    tail_test: Literal["X", "Y"] = "X",
    init: Literal["random", "order"] = "random",
    t: float | None = None,
) -> Partition:
    """A group starts with a rare record and takes the nearest records that help: to p values, to the variance, to k records.

    Then the rest is microaggregated by MDAV (one group at a time), and groups that fall short are merged with the
    nearest that makes them good. With several (k, p, q, r) rules a group obeys those whose rare values it holds.

    `prefer_variance` takes, where it can, values that raise the variance already on the way to p, as is printed.
    `tail_test="Y"` gives up forming groups when the rare records left have too few values or too little variance by
    themselves, as is printed; "X" only when all the records left have too few. `t` asks groups with a rare value
    also for t-closeness, against the skewness that the paper leaves open. `init="order"` takes seeds in the table's order.
    A policy without a (k, p, q, r) rule makes this `mdav` in its single form.
    """
    if t is not None:
        require("kpqr", "t", t, 0, 1)
    duty = Duties(data, rules, t)
    resort = last_resort(rules, "kpqr")
    if (duty.demands().deficits(rules.stats(resort, int(resort.max()) + 1)) > 0).any():
        raise UnsupportedError(
            f"kpqr cannot promise t = {t:g}: the classes that satisfy this policy in any case do not keep it; raise t, or "
            'measure the variance against reference = "all".'
        )
    X = feature_matrix(data, progress)
    random = np.random.default_rng(seed) if init == "random" else None
    with progress.stage("grouping rare values", 0.5) as part:
        labels = duty.groups(X, random, prefer_variance, tail_test, part)
    rest = np.flatnonzero(labels == -1)
    if len(rest) >= duty.growth.k:
        with progress.stage("grouping the rest", 0.4) as part:
            found = far_groups(X, rest, duty.growth, "single", part)
        labels = np.where(found >= 0, found + labels.max() + 1, labels)
    more = {} if t is None else {"t": t}
    partition = finish_groups(data, rules, X, labels, resort, progress, duty.demands(), **more)
    return Partition(partition.labels, notes={**partition.notes, **duty.ratios(partition)})


class Duties:
    """The (k, p, q, r) rules of a policy, with the t-closeness that goes with each of them if `t` is given."""

    def __init__(self, data: Microdata, rules: Rules, t: float | None) -> None:
        self.rules, self.growth = rules, Growth(rules)
        self.n = data.n
        self.which = [i for i, rule in enumerate(self.growth.compiled.rules) if isinstance(rule, RareRule)]
        self.rare_rules = [rule for rule in self.growth.compiled.rules if isinstance(rule, RareRule)]
        self.close: list[Rule] = []
        if t is not None:
            columns = {column.name: column for column in data.sensitive}
            self.close = [_close(t, columns[str(rule.attribute)], data.n) for rule in self.rare_rules]

    def groups(
        self, X: Floats, random: np.random.Generator | None, prefer_variance: bool, tail_test: str, progress: Progress
    ) -> Labels:
        """Groups round the rare records; -1 for the others."""
        from shoal.kernels.kdtree import live_count
        from shoal.kernels.kpqr import GROUPS, TAIL_X, TAIL_Y, make_group, rare_groups
        from shoal.kernels.micro import FREE, make_free, make_seeds

        growth, labels, formed = self.growth, np.full(self.n, FREE, dtype=np.int32), 0
        if not self.rare_rules:
            return labels
        obligations = self.obligations()
        order = np.flatnonzero(obligations.has_rare[growth.label])
        if random is not None:
            order = random.permutation(order)
        entries = growth.compiled.entries or ()
        more = any(entry.form.kind != Kind.SIZE and entry.rule not in self.which for entry in entries)
        rows, close = np.arange(self.n), self.closeness()
        while len(left := still_there(order, rows, self.n)):
            free = make_free(np.ascontiguousarray(X[rows]), growth.label[rows], growth.cell, growth.k)
            seeds = make_seeds(free, left)
            own = np.full(len(rows), FREE, dtype=np.int32)
            group = make_group(obligations, growth.cells, len(rows), formed)
            while not rare_groups(
                free, seeds, obligations, group, close, growth.flat, more, growth.k,
                prefer_variance, TAIL_Y if tail_test == "Y" else TAIL_X, own, SLICE,
            ):  # fmt: skip
                progress(1 - live_count(free.tree) / self.n)
            formed = int(group.at[GROUPS])
            labels[rows] = own
            rows = rows[own == FREE]
        return labels

    def obligations(self) -> Obligations:
        """The rules as arrays; what their numbers mean is said at `Obligations`."""
        from shoal.kernels.kpqr import Obligations

        view = np.array([self.growth.compiled.view_of[i] for i in self.which], dtype=np.int64)
        widths = [len(rule.rare) for rule in self.rare_rules]
        values: list[Floats] = []
        tops: list[float] = []
        weights: list[float] = []
        chains: list[list[int]] = []
        for rule, width in zip(self.rare_rules, widths, strict=True):
            held: list[list[int]] = [[] for _ in range(width)]
            if isinstance(rule.variance, NumberVariance):
                values.append(np.resize(rule.variance.values, width))
                tops.append(-1.0)
            else:
                ranges = rule.variance.ranges
                for i, (begin, end) in enumerate(zip(ranges.begin, ranges.end, strict=True)):
                    for code in ranges.order[begin:end]:
                        held[int(code)].append(len(weights) + i)
                weights += ranges.weight.tolist()
                values.append(np.zeros(width))
                tops.append(rule.variance.top)
            chains += held
        slot = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        rare = np.concatenate([rule.rare for rule in self.rare_rules])
        first = self.growth.offset[view]
        has_rare = np.zeros(len(self.growth.cell), dtype=np.bool_)
        for j, of_view in enumerate(view):
            cell = self.growth.cell[:, of_view]
            has_rare |= (cell >= 0) & rare[slot[j] + np.maximum(cell - first[j], 0)]
        return Obligations(
            p=np.array([rule.model.p for rule in self.rare_rules], dtype=np.int64),
            r=np.array([rule.model.r for rule in self.rare_rules], dtype=np.float64),
            reference=np.array([rule.references[rule.model.reference] for rule in self.rare_rules]),
            column=view,
            first=first,
            slot=slot,
            rare=rare,
            value=np.concatenate(values),
            top=np.array(tops, dtype=np.float64),
            chain_start=np.concatenate([[0], np.cumsum([len(chain) for chain in chains])]).astype(np.int64),
            chain=np.array([i for chain in chains for i in chain], dtype=np.int64),
            weight=np.array(weights, dtype=np.float64),
            has_rare=has_rare,
        )

    def closeness(self) -> FlatRules:
        """The t-closeness of each obligation."""
        flat = self.rules.only(self.close).flat()
        assert flat is not None
        return flat

    def demands(self) -> Demands:
        """The policy, and closeness where a class is obliged."""
        names = [str(rule) for rule in self.rules.rules]
        if not self.close:
            return Demands(names, self.rules.rule_deficits)
        at = [self.rules.rules.index(rule) for rule in self.rare_rules]

        def deficits(stats: Stats) -> Floats:
            counts = self.rules.counts_by_rule(stats)
            more = [
                np.where(rule.obliged(counts[i]), close.deficit(stats.sizes, counts[i]), 0.0)
                for i, rule, close in zip(at, self.rare_rules, self.close, strict=True)
            ]
            return np.concatenate([self.rules.rule_deficits(stats), np.array(more)])

        return Demands([*names, *(str(close) for close in self.close)], deficits)

    def ratios(self, partition: Partition) -> dict[str, dict[str, dict[str, float]]]:
        """The smallest variance of an obliged class, as a share of both references (docs/models.md#kpqr)."""
        found: dict[str, dict[str, float]] = {}
        counts = self.rules.counts_by_rule(self.rules.stats(partition.labels, partition.classes))
        for rule in self.rare_rules:
            own = counts[self.rules.rules.index(rule)]
            obliged = own[rule.obliged(own)]
            if len(obliged):
                shares = {word: float(rule.ratios(obliged, word).min()) for word in ("all", "rare")}
                found[str(rule)] = {word: share for word, share in shares.items() if np.isfinite(share)}
        return {"variance_ratios": found} if found else {}


def _close(t: float, column: Sensitive | Crowd, n: int) -> Rule:
    """The t-closeness of an attribute that a (k, p, q, r) rule counts: of people with several rows the means."""
    return TCloseness(t).bind(column.plain() if isinstance(column, Crowd) else column, n)
