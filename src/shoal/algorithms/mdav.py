"""MDAV microaggregation (Domingo-Ferrer & Torra 2005): groups of k near records, formed far from the mean.

Domingo-Ferrer et al. 2008 compare with it, and their own algorithm ends with it. `form="single"` is the variant that their
tables were made with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.algorithms.common import sensitive_groups
from shoal.algorithms.features import Floats, feature_matrix, finish_groups, last_resort
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import FlatRules, Rules
from shoal.progress import SLICE, Progress
from shoal.space import Measure

if TYPE_CHECKING:
    from shoal.kernels.micro import Counted

Labels = NDArray[np.int32]
Longs = NDArray[np.int64]


def mdav(
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Progress,
    form: Literal["generic", "single"] = "generic",
) -> Partition:
    """Groups round the record farthest from the mean and round the one farthest from that (`single`: round the first).

    Under a policy beyond k a group goes on with the nearest record that lowers its deficit. What is left joins the
    group with the nearest mean that stays good, and a group that is not good the nearest one that makes it good.
    """
    resort = last_resort(rules, "mdav")
    X = feature_matrix(data, progress)
    with progress.stage("forming groups", 0.9) as part:
        if rules.only_size:
            from shoal.kernels.mdav import mdav_labels

            labels = mdav_labels(X, min(rules.k, data.n), form, part)
        else:
            labels = far_groups(X, np.arange(data.n), Growth(rules), form, part)
    return finish_groups(data, rules, X, labels, resort, progress)


def far_groups(X: Floats, rows: Longs, growth: Growth, form: str, progress: Progress) -> Labels:
    """MDAV with growth among some rows; those that found no group have a negative label."""
    k = growth.k
    labels = growth.groups(X, rows, 2 * k, progress, paired=form == "generic")
    rest = rows[labels[rows] == -1]
    # Fewer than 2k records are left: one more group, if it is a good one.
    if len(rest) >= k and growth.rules.ok(rest):
        labels[rest] = labels.max() + 1
    return labels


class Growth:
    """The rules in the form that compiled growth needs; rules without one are left to the repair."""

    def __init__(self, rules: Rules) -> None:
        known = [rule for rule in rules.rules if rule.forms() is not None]
        self.rules, self.k = rules, min(rules.k, rules.n)
        self.compiled = rules.only(known)
        label, codes = sensitive_groups(self.compiled)
        self.offset = self.compiled.view_starts
        self.label = label.astype(np.int32)
        self.cell = self.compiled.cells(codes)
        self.cells = int(self.offset[-1])
        flat = self.compiled.flat()
        assert flat is not None
        self.flat: FlatRules = flat

    def counted(self) -> Counted:
        """The rules that ask for distinct values."""
        from shoal.kernels.micro import Counted

        asked = self.compiled.distinct
        view = np.array([self.compiled.view_of[i] for i in asked], dtype=np.int64)
        p = np.array(list(asked.values()), dtype=np.int64)
        return Counted(p, view, self.offset[view], self.offset[view + 1])

    def groups(
        self,
        X: Floats,
        rows: Longs,
        reserve: int,
        progress: Progress,
        *,
        order: Longs | None = None,
        paired: bool = False,
        diverse_first: bool = False,
    ) -> Labels:
        """Groups grown among some rows while at least `reserve` are free; seeds far from the mean, or by an order."""
        from shoal.kernels.kdtree import live_count
        from shoal.kernels.micro import FREE, GROUPS, grow_groups, make_free, make_growing, make_seeds

        labels = np.full(len(X), FREE, dtype=np.int32)
        counted, formed, left = self.counted(), 0, len(rows) + 1
        while reserve <= len(rows) < left:
            left = len(rows)
            free = make_free(np.ascontiguousarray(X[rows]), self.label[rows], self.cell, self.k)
            seeds = make_seeds(free, still_there(order, rows, len(X)))
            own = np.full(len(rows), FREE, dtype=np.int32)
            growing = make_growing(left, self.cells, formed)
            while not grow_groups(
                free, seeds, self.flat, counted, growing, self.k, reserve, paired, diverse_first, own, SLICE
            ):
                progress(1 - live_count(free.tree) / len(X))
            formed = int(growing.at[GROUPS])
            labels[rows] = own
            rows = rows[own == FREE]
        return labels


def still_there(order: Longs | None, rows: Longs, n: int) -> Labels:
    """The order among the rows that are left, as places in `rows`; empty without an order."""
    if order is None:
        return np.zeros(0, dtype=np.int32)
    place = np.full(n, -1, dtype=np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    return np.asarray(place[order][place[order] >= 0])
