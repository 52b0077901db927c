"""Blocks: large tables cut into parts that any algorithm solves one by one, on all cores.

The cuts are Mondrian's and know the policy, so every block is a good class by itself and whatever an algorithm repairs by
merging ends well inside it. Rules travel with a block: it is measured by the whole table's distributions. Then the seams: the
classes that lose most are those that lacked a neighbour beyond one, so their records are pooled over all blocks, cut anew (the
seams now lie elsewhere) and solved again; what comes out is kept if it loses less.

How many threads there are changes the time, never the result. One block is the algorithm itself, record for record.

>>> import polars as pl, shoal
>>> from shoal.algorithms import run
>>> frame = pl.DataFrame({"age": [20 + i * i % 60 for i in range(400)], "zip": [i * 7 % 100 for i in range(400)]})
>>> data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}, "zip": {"role": "quasi"}})
>>> rules = data.rules(shoal.Policy((shoal.KAnonymity(4),)))
>>> found = run("k_member", data, rules, options={"blocks": 100})
>>> found.notes["blocks"]["count"] > 3, int(found.sizes.min()) >= 4
(True, True)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.algorithms import find
from shoal.algorithms.mondrian import cut_blocks
from shoal.errors import ConfigError, shown
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import Progress, side_by_side
from shoal.space import Measure, Space
from shoal.states import class_states

Labels = NDArray[np.int64]
Records = NDArray[np.int64]

# Larger tables are cut into blocks of this many records unless told otherwise: up to there quadratic work takes minutes, and
# larger blocks lose hardly less (benchmarks/blocks.py).
WHOLE = 200_000
RECORDS = 25_000
# These are fast enough on any table that fits into memory, and their distances are relative to the table they see.
ONLY_IF_ASKED = ("mdav", "p_mdav")
# The shares of the records, those that lose most, that are solved again over the seams, one share after the other.
POOLED = (0.2, 0.05)


def in_blocks(
    name: str,
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure,
    seed: int,
    progress: Progress,
    blocks: int | None = None,
    threads: int = 0,
    **options: Any,
) -> Partition:
    """Run an algorithm block by block. `blocks` is the number of records of one: 0 for none, by default up to the size."""
    size = _size(name, data.n, blocks, options)
    whole = find(name)
    space = data.space(objective)
    labels = np.zeros(1, np.int32)
    if 0 < size < data.n:
        with progress.stage("cutting blocks", 0.05) as part:
            labels = cut_blocks(data, rules, space, size, part, threads)
    if labels.max() == 0:
        return whole(data, rules, objective=objective, seed=seed, progress=progress, **options)

    def solve(part: Microdata, bound: Rules, number: int, told: Progress) -> Partition:
        return whole(part, bound, objective=objective, seed=_seed(seed, number), progress=told, **options)

    work = _Work(data, rules, solve, threads or os.cpu_count() or 1)
    with progress.stage("solving blocks", 0.75) as part:
        found = work.solved(labels, 0, part)
    count, number, pooled = int(labels.max()) + 1, int(labels.max()) + 1, []
    for share in POOLED:
        # The work is about that of the records which are solved again.
        with progress.stage("mending seams", 0.2 * share / sum(POOLED)) as part:
            found, number, better = work.mended(found, space, size, number, share, part)
        pooled += [share] if better else []
    note = {"count": count, "records": size, "pooled": pooled}
    return Partition.compact(found, notes={"blocks": note})


def _size(name: str, n: int, blocks: int | None, options: dict[str, Any]) -> int:
    """Records per block, 0 for no blocks."""
    if blocks is None:
        # A record to begin with belongs to the whole table.
        wanted = n > WHOLE and name not in ONLY_IF_ASKED and options.get("first") is None
        return RECORDS if wanted else 0
    if blocks < 0:
        raise ConfigError(
            f"{name}: blocks = {shown(blocks)} is not allowed; it must be 0 (no blocks) or a number of records."
        )
    if blocks and options.get("first") is not None:
        raise ConfigError(f"{name}: first names a record of the whole table; leave it out, or set blocks = 0.")
    return blocks


def _seed(seed: int, number: int) -> int:
    return int(np.random.default_rng([seed, number]).integers(2**31))


@dataclass(frozen=True, eq=False)
class _Work:
    """The table, and how one part of it is solved: `solve(part, rules, number, progress)`."""

    data: Microdata
    rules: Rules
    solve: Callable[[Microdata, Rules, int, Progress], Partition]
    threads: int

    def solved(self, blocks: NDArray[Any], first: int, progress: Progress) -> Labels:
        """The class of each record, block after block; label -1 is in no block. Blocks are numbered from `first` on."""
        order = np.argsort(blocks, kind="stable")[np.count_nonzero(blocks < 0) :]
        members = np.split(order, np.cumsum(np.bincount(blocks[order]))[:-1])

        def one(number: int, told: Progress) -> Partition:
            records = members[number]
            return self.solve(self.data.take(records), self.rules.restrict(records), first + number, told)

        labels = np.full(self.data.n, -1, dtype=np.int64)
        classes = 0
        # The largest first: the last one to finish should not be a large one that began late.
        turns = sorted(range(len(members)), key=lambda number: (-len(members[number]), number))
        sizes = [len(members[number]) for number in turns]
        solved = side_by_side(one, turns, progress, threads=self.threads, weights=sizes)
        results = dict(zip(turns, solved, strict=True))
        for number, records in enumerate(members):
            part = results[number]
            labels[records] = np.where(part.labels >= 0, part.labels + classes, -1)
            classes += part.classes
        return labels

    def mended(
        self, labels: Labels, space: Space, size: int, number: int, share: float, progress: Progress
    ) -> tuple[Labels, int, bool]:
        """The labels after a share of the records was solved again, the next block's number, and whether that was better."""
        before = Partition.compact(labels)
        units = exact.ticks(space.unit(class_states(self.data, before, space)))
        dearest = np.argsort(-units, kind="stable")
        taken = np.zeros(before.classes, dtype=bool)
        taken[dearest[np.cumsum(before.sizes[dearest]) <= share * before.n]] = True
        # The last entry is for suppressed records.
        inside = np.append(taken, False)[before.labels]
        records = np.flatnonzero(inside)
        rules = self.rules.restrict(records)
        # Good classes together are good if the policy says so; else it is a matter of luck.
        if np.count_nonzero(taken) < 2 or not rules.ok(np.arange(len(records))):
            return labels, number, False
        blocks = np.full(self.data.n, -1, dtype=np.int32)
        with progress.stage(weight=0.1) as part:
            blocks[records] = cut_blocks(self.data.take(records), rules, space, size, part, self.threads)
        again = self.solved(blocks, number, progress)
        fresh = np.where(inside, np.where(again >= 0, again + before.classes, -1), before.labels)
        number += int(blocks.max()) + 1
        if _total(self.data, Partition.compact(fresh), space) >= _total(self.data, before, space):
            return labels, number, False
        return fresh, number, True


def _total(data: Microdata, partition: Partition, space: Space) -> float:
    """The loss in ticks; a suppressed record loses everything."""
    units = exact.ticks(space.unit(class_states(data, partition, space)))
    return exact.weighed(partition.sizes, units) + partition.suppressed * float(exact.ticks(exact.total(space.weights)))
