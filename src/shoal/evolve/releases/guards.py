"""Guards: what the next release of a changing table may show, so that comparing releases tells nobody more.

- `none`: the table as it is. One insertion into a published class gives the newcomer's sensitive value away.
- `batching`: who was published together stays together; new records wait until they can be classes of their own, and
  records that left stay until they can leave together (`evolve/releases/batching.py`).
- `m-invariance`: everybody keeps the same set of possible sensitive values, with counterfeits where the real records do
  not suffice (`evolve/releases/invariance.py`).

These are pure functions from what a store holds and what it published last to what it publishes next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.errors import ConfigError, InternalError, require_word
from shoal.evolve.releases.rows import places, taken
from shoal.policy import Policy
from shoal.progress import Progress, Told
from shoal.schema import Attribute, Schema
from shoal.space import Measure

Guard = Literal["none", "batching", "m-invariance"]
GUARDS: tuple[Guard, ...] = get_args(Guard)
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """What a store holds: the numbers of its persons, ascending, their values in the same order, and their classes.

    A person keeps the number for good: who leaves and comes back has it again.
    """

    records: Numbers
    frame: pl.DataFrame
    labels: Numbers
    lives: Mapping[str, Numbers] | None = None
    """As for `Shown`, going on from it: another number than the last published one for another value."""
    differs: NDArray[np.bool_] | None = None
    """Of persons with several rows who are back: whether they have something else than what was published of them last."""


@dataclass(frozen=True, eq=False)
class Shown:
    """What a release publishes, before masking, one line a row.

    Negative records are counterfeits. The values are those that the release shows: of a record whose update waits the old
    ones, and a record whose deletion waits is still there. With `lives` (`evolve/releases/lives.py`) it need not be known
    which row of a class is whose; without, `frame` has each record's own values, and lives are read off these.
    """

    records: Numbers
    classes: Numbers
    frame: pl.DataFrame
    lives: Mapping[str, Numbers] | None = None
    """By sensitive attribute, which of the record's lives each row is."""
    texts: Mapping[int, str] | None = None
    """What each class published, in words, where `frame` has no quasi-identifiers any more."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The next release, how many rows have to wait for a later one, and how many of those shown nobody is behind."""

    shown: Shown
    waiting: dict[str, int]
    counterfeits: int = 0
    counterfeits_by_class: Mapping[int, int] = field(default_factory=dict)
    """Classes with counterfeits; these numbers are published."""


def plan_release(
    guard: Guard,
    now: Table,
    before: Shown | None,
    schema: Schema,
    policy: Policy,
    *,
    m: int | None = None,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Told | None = None,
    next_class: int = 0,
    hold_back: bool = False,
    earlier: Sequence[Shown] = (),
    recut: bool = False,
) -> Plan:
    """What to publish next under a guard; `before` is what the last release showed, None for the first one.

    `earlier` are the releases before that one, oldest first: a record that was in them, left and is back is still the same
    person to who has them.
    `m` is for m-invariance (the policy's smallest class by default), and `hold_back` makes its surplus newcomers wait
    instead of adding counterfeits for them. `recut` makes batching cut what was published finer where it may.
    New classes get numbers from `next_class` and from those in use upwards.
    """
    require_word("guard", guard, GUARDS)
    if m is not None and guard != "m-invariance":
        raise ConfigError(f'm = {m!r} belongs to guard = "m-invariance" and this is "{guard}"; leave it out.')
    if not len(now.records) == now.frame.height == len(now.labels):
        raise InternalError("a table's records, values and classes differ in number")
    if before is not None and len(before.records):
        next_class = max(next_class, int(before.classes.max()) + 1)
    known = columns_of(now.frame, schema)
    if guard == "m-invariance":
        from shoal.evolve.releases.invariance import invariance

        return invariance(
            now,
            before,
            known,
            policy,
            m=m,
            objective=objective,
            seed=seed,
            next_class=next_class,
            hold_back=hold_back,
            back=returned(now, before, earlier),
            progress=Progress.of(progress),
        )
    if guard == "none" or before is None:
        return Plan(Shown(now.records, now.labels, now.frame), _nobody())
    from shoal.evolve.releases.batching import batching

    return batching(
        now,
        before,
        known,
        policy,
        objective=objective,
        seed=seed,
        progress=Progress.of(progress),
        next_class=next_class,
        earlier=earlier,
        recut=recut,
    )


def columns_of(frame: pl.DataFrame, schema: Schema) -> Schema:
    """The schema of exactly the columns at hand: a store keeps its key to itself."""
    rest = schema.attributes.get("*")
    found: dict[str, Attribute] = {}
    for name in frame.columns:
        attribute = schema.attributes.get(name, rest)
        if attribute is None:
            raise InternalError(f"column '{name}' of the table is not in its schema")
        found[name] = attribute
    return Schema(found, schema.folder)


def returned(now: Table, before: Shown | None, earlier: Sequence[Shown]) -> Shown:
    """The classes that records which are back were last published in, whole; classes are numbered anew.

    Which row of such a class is whose may not be known any more.
    """
    missing = np.setdiff1d(now.records, before.records if before is not None else now.records)
    parts: list[Shown] = []
    count = 0
    for shown in reversed(earlier):
        back = np.isin(shown.records, missing)
        if not back.any():
            continue
        rows = np.flatnonzero(np.isin(shown.classes, shown.classes[back]))
        numbers = np.unique(shown.classes[rows], return_inverse=True)[1] + count
        # A member that is published elsewhere, or was again later, is listed as nobody: it only gives the class its values.
        records = np.where(back[rows], shown.records[rows], -1)
        names = [name for name in now.frame.columns if name in shown.frame.columns]
        values = shown.frame[rows].select(pl.col(name).cast(now.frame.schema[name]) for name in names)
        parts.append(Shown(records, numbers, values))
        missing, count = np.setdiff1d(missing, shown.records[back]), int(numbers.max()) + 1
    if not parts:
        return Shown(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), now.frame.clear())
    records, classes = (np.concatenate([getattr(part, name) for part in parts]) for name in ("records", "classes"))
    return Shown(records, classes, pl.concat([part.frame for part in parts], how="diagonal"))


def aligned(before: Shown, now: Table) -> tuple[pl.DataFrame, Numbers]:
    """The values shown before, in the columns and types of the table, and each row's place in the table (or -1)."""
    frame = before.frame.select(now.frame.columns).cast(now.frame.schema)
    return frame, places(now.records, before.records)


def changed(
    old: pl.DataFrame, rows: Numbers, new: pl.DataFrame, others: Numbers, names: list[str]
) -> NDArray[np.bool_]:
    """Of rows of one table and rows of another, pair by pair, those that differ in some of these columns."""
    result = np.zeros(len(rows), dtype=bool)
    for name in names:
        result |= taken(old[name], rows).cast(new.schema[name]).ne_missing(taken(new[name], others)).to_numpy()
    return result


def _nobody() -> dict[str, int]:
    return {"insertions": 0, "deletions": 0, "updates": 0}
