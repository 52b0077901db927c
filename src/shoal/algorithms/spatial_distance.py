"""SpatialDistance (Sarrafi Aghdam & Sonehara 2013, §4): classes of mixed data without taxonomies.

The distance between categories comes from contingency tables: values that are about as frequent as the reference's own,
among records that share the reference's other values, are near. High-cardinality attributes weigh almost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.algorithms.common import finish, require_one_class
from shoal.errors import UnsupportedError
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import SLICE, Progress
from shoal.space import Interval, Measure

if TYPE_CHECKING:
    from shoal.kernels.spatial import Records, Reference

Ties = Literal["dense", "sequential"]
Centre = Literal["set", "seed"]


def spatial_distance(
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Progress,
    ties: Ties = "dense",
    centre: Centre = "set",
) -> Partition:
    """Take the first record in sorted order and the records nearest to the growing class, k at a time.

    `ties="sequential"` ranks equally similar values one after the other; `centre="seed"` keeps the categories of the
    first record as the class's own. Beyond k a class goes on with the nearest record that lowers its deficit most.
    """
    flat_rules = rules.flat()
    if flat_rules is None:
        raise UnsupportedError("spatial_distance needs a policy whose models all have a compiled form; use mondrian.")
    require_one_class(rules, "spatial_distance")
    from shoal.kernels import spatial as kernel

    records = _records(data)
    scratch, present = kernel.scratch_for(records), np.zeros(int(records.start[-1]), dtype=np.bool_)
    reference = _reference(records)
    views, offsets = rules.codes(), rules.view_starts
    counts = np.zeros(int(offsets[-1]), dtype=np.int32)

    pool = np.argsort(data.codes[:, _sort_column(data)], kind="stable").astype(np.int64)
    members = np.zeros(data.n, dtype=np.int64)
    labels = np.full(data.n, -1, dtype=np.int64)
    classes = 0
    sequential, by_seed = ties == "sequential", centre == "seed"
    with progress.stage("growing classes", 0.9) as part:
        while len(pool) >= rules.k:
            taken, at = np.zeros(len(pool), dtype=np.bool_), np.zeros(4, dtype=np.int64)
            while not kernel.next_class(
                records, pool, len(pool), rules.k, sequential, by_seed, flat_rules, views, offsets, counts, members,
                taken, reference, scratch, present, at, SLICE,
            ):  # fmt: skip
                part.check()
            labels[members[: at[kernel.GROWN]]] = classes
            classes += 1
            pool = pool[~taken]
            # The work is that of all pairs of records.
            part(1 - (len(pool) / data.n) ** 2)
    with progress.stage("placing left-over records", 0.05) as part:
        _place(data, rules, records, pool, labels, classes, sequential, part)
    return finish(data, rules, labels, objective, progress)


def distances(data: Microdata, record: int, k: int, *, ties: Ties = "dense") -> NDArray[np.float64]:
    """How far every record is from one of them, by the tables of the whole table: what the first class begins with.

    >>> import polars as pl, shoal
    >>> from shoal.algorithms.spatial_distance import distances
    >>> frame = pl.DataFrame({"sex": ["m"] * 3 + ["f"] * 2, "town": ["a", "a", "b", "a", "c"]})
    >>> data = shoal.Microdata.from_frame(frame, {"sex": {"role": "quasi"}, "town": {"role": "quasi"}})
    >>> distances(data, 0, k=2).tolist()
    [0.0, 0.0, 0.25, 1.0, 1.5]
    """
    from shoal.kernels import spatial as kernel
    from shoal.kernels.space import TICKS

    records = _records(data)
    reference, scratch = _reference(records), kernel.scratch_for(records)
    kernel.add(records, reference, record)
    present, everyone = np.zeros(int(records.start[-1]), dtype=np.bool_), np.arange(data.n, dtype=np.int64)
    found = np.zeros(data.n)
    for r in range(data.n):
        at = np.array([0, -1, 0, 0], dtype=np.int64)
        while not kernel.nearest_class(
            records, everyone, reference.total[None], reference.count[None], reference.holds[None], 1, r, k,
            ties == "sequential", np.ones(1, dtype=np.bool_), scratch, present, at, SLICE,
        ):  # fmt: skip
            pass
        found[r] = at[kernel.DISTANCE] / TICKS
    return found


def _place(
    data: Microdata,
    rules: Rules,
    records: Records,
    pool: NDArray[np.int64],
    labels: NDArray[np.int64],
    classes: int,
    sequential: bool,
    progress: Progress,
) -> None:
    """Left-over records join the class with the nearest centre that stays good; the centre follows."""
    from shoal.kernels import spatial as kernel

    totals = np.zeros((classes, len(records.size)))
    known = np.zeros((classes, len(records.size)), dtype=np.int64)
    holds = np.zeros((classes, int(records.start[-1])), dtype=np.bool_)
    if len(pool) == 0 or classes == 0:
        return
    for r in np.flatnonzero(labels >= 0).tolist():
        progress.check()
        c = labels[r]
        kernel.add(records, kernel.Reference(totals[c], known[c], holds[c]), r)
    scratch, present = kernel.scratch_for(records), np.zeros(int(records.start[-1]), dtype=np.bool_)
    everyone = np.arange(data.n, dtype=np.int64)
    for r in pool:
        allowed = np.ones(classes, dtype=np.bool_)
        while True:
            at = np.array([0, -1, 0, 0], dtype=np.int64)
            while not kernel.nearest_class(
                records, everyone, totals, known, holds, classes, int(r), rules.k, sequential, allowed, scratch,
                present, at, SLICE,
            ):  # fmt: skip
                progress.check()
            c = int(at[kernel.NEAREST])
            if c < 0 or rules.superset_closed or rules.ok(np.append(np.flatnonzero(labels == c), r)):
                break
            allowed[c] = False
        if c >= 0:
            labels[r] = c
            kernel.add(records, kernel.Reference(totals[c], known[c], holds[c]), int(r))


def _records(data: Microdata) -> Records:
    from shoal.kernels.spatial import Records

    numbers = np.zeros(data.codes.shape)
    is_number = np.array([isinstance(domain, Interval) and domain.labels is None for domain in data.domains])
    known = np.ones(data.codes.shape, dtype=np.bool_)
    for a, domain in enumerate(data.domains):
        if isinstance(domain, Interval) and is_number[a]:
            known[:, a] = data.codes[:, a] < domain.missing_code
            values = domain.values
            # The paper measures against the range of the original table, not against a declared domain.
            spread = float(values[-1] - values[0]) if len(values) > 1 else 0.0
            scaled = values / spread if spread > 0 else np.zeros(len(values))
            numbers[known[:, a], a] = scaled[data.codes[known[:, a], a]]
    size = np.array([0 if is_number[a] else domain.size for a, domain in enumerate(data.domains)], dtype=np.int64)
    return Records(
        codes=data.codes,
        numbers=numbers,
        known=known,
        is_number=is_number,
        size=size,
        start=np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
    )


def _reference(records: Records) -> Reference:
    from shoal.kernels.spatial import Reference

    d = len(records.size)
    return Reference(np.zeros(d), np.zeros(d, dtype=np.int64), np.zeros(int(records.start[-1]), dtype=np.bool_))


def _sort_column(data: Microdata) -> int:
    distinct = [len(np.unique(data.codes[:, a])) for a in range(data.codes.shape[1])]
    return int(np.argmax(distinct))
