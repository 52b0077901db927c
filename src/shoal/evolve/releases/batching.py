"""Batching: records that were published together stay together, whatever happens to single ones of them.

A *cohort* is a set of records that enter the releases together and leave them together. Every published class is a
cohort, or several whole ones. So all releases together are a function of one table, that of all cohorts there ever were
with their sensitive values, and this table satisfies the policy class by class. Comparing releases, in whatever way and
however many, therefore tells an intruder no more than that table would, even one who knows everybody's
quasi-identifiers and who is in which release.

- New records wait until they can be classes of their own, made of nobody but new records.
- Records that were deleted stay published until the whole class goes, or until those that go and those that stay both
  satisfy the policy: then the cohort becomes two.
- A change of quasi-identifiers alone is shown at once: the cohort and its sensitive values remain as they are.
- A record that left and is back waits until its whole class is.
- A change of a sensitive value (or of a column published as it is, by which a row could be recognized) waits until
  the changed records can be a cohort of their own, or until all others of the class are gone.

It is not enough that each change of a class satisfies the policy: five join a class, and next week four of them and one
other leave it. Each is a good change set, and the two together give the fifth away.

What remains. A class that disappears tells that all its records left or changed, and a record that turns up in another class
that its sensitive value was corrected, though neither from what nor to what. Who knows this rule and who is waiting learns
from a long wait that the waiting records do not yet satisfy the policy, for example that they are alike. A record that
left and is inserted again has a new number and counts as another person. And a class that has been good for one table may
be far from a later one (t-closeness): it is then shown as one class with others, but what was published stays published.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import InfeasibleError
from shoal.evolve.releases.guards import Numbers, Plan, Shown, Table, aligned, changed
from shoal.microdata import Microdata
from shoal.policy import Policy, Rules
from shoal.schema import Schema
from shoal.space import Measure, Space

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Pending:
    """What the rows shown before want: to leave, or to change what must not change alone.

    Rows are places in the table of all versions: first those shown before, then those of the present table.
    """

    data: Microdata
    rules: Rules
    records: Numbers
    gone: NDArray[np.bool_]
    altered: NDArray[np.bool_]
    other_person: NDArray[np.bool_]
    """Of the altered rows, those with another sensitive value: their old class says nothing about the new one."""
    version: Rows
    """The row to show in place of one that stays: the present one, which may have other quasi-identifiers."""
    latest: Rows


def batching(
    now: Table,
    before: Shown,
    schema: Schema,
    policy: Policy,
    *,
    objective: Measure,
    seed: int,
    progress: Callable[[float], None] | None,
    next_class: int,
    back: Shown,
) -> Plan:
    """The next release of whole cohorts; what cannot be shown yet waits."""
    pending = _pending(now, before, schema, policy)
    kept: dict[int, Rows] = {}
    pool: list[Rows] = []
    for number, rows in _classes(before.classes):
        stay, fresh, free = _settle(pending, rows)
        if len(stay):
            kept[number if len(stay) == len(rows) else next_class] = stay
            next_class += len(stay) < len(rows)
        for part in fresh:
            kept[next_class] = part
            next_class += 1
        pool.append(free)
    arrived = len(before.records) + np.flatnonzero(~np.isin(now.records, before.records))
    known, whole = _back(now, schema, back, len(before.records))
    for rows in whole:
        kept[next_class] = rows
        next_class += 1
    waiting = np.concatenate([np.setdiff1d(arrived, known), *pool]).astype(np.int64)
    waiting.sort()
    new = _new_classes(pending.data, policy, waiting, objective=objective, seed=seed, progress=progress)
    if not pending.rules.superset_closed:
        unchanged = {number: pending.version[rows] for number, rows in _classes(before.classes)}
        kept, new = _against_the_table(pending, ((kept, new), (kept, []), (unchanged, [])), objective, next_class)
        next_class = max([next_class, *(number + 1 for number in kept)])
    for rows in new:
        kept[next_class] = rows
        next_class += 1
    return _plan(pending, kept, arrived)


def _pending(now: Table, before: Shown, schema: Schema, policy: Policy) -> _Pending:
    old, place = aligned(before, now)
    count = len(before.records)
    data = Microdata.from_frame(pl.concat([old, now.frame]), schema.of_versions())
    there = place >= 0
    latest = np.where(there, count + place, np.arange(count))
    altered, another = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    pair = old.filter(there), now.frame[place[there]]
    another[there] = changed(*pair, schema.named("sensitive"))
    altered[there] = another[there] | changed(*pair, schema.named("other"))
    records = np.concatenate([before.records, now.records])
    version = np.where(altered, np.arange(count), latest)
    return _Pending(data, data.rules(policy), records, ~there, altered, another, version, latest)


def _classes(labels: Numbers) -> list[tuple[int, Rows]]:
    if len(labels) == 0:
        return []
    order = np.argsort(labels, kind="stable")
    numbers, starts = np.unique(labels[order], return_index=True)
    return list(zip(numbers.tolist(), np.split(order, starts[1:]), strict=True))


def _settle(pending: _Pending, rows: Rows) -> tuple[Rows, list[Rows], Rows]:
    """What becomes of a class: the rows that stay, new versions that are classes now, and ones that join the pool.

    Records with a new sensitive value and those without are never one class: who can tell them apart would find the
    value of the latter in both classes.
    """
    gone, altered, another = pending.gone[rows], pending.altered[rows], pending.other_person[rows]
    nobody = np.zeros(0, dtype=np.int64)
    if (gone | another).all():
        return nobody, [], pending.latest[rows[another]]
    kinds = [kind for kind in (gone, another, altered & ~another) if kind.any()]
    choices = [list(some) for count in range(1, len(kinds) + 1) for some in combinations(kinds, count)]
    choices.sort(key=lambda some: -sum(int(kind.sum()) for kind in some))
    for leaving in choices:
        rest = rows[~np.logical_or.reduce(leaving)]
        parts = [part for part in (*(rows[kind] for kind in leaving), rest) if len(part)]
        if len(parts) > 1 and not (pending.rules.superset_closed and all(map(pending.rules.ok, parts))):
            continue
        new = [pending.latest[rows[kind]] for kind in leaving if kind is not gone]
        if all(map(pending.rules.ok, new)):
            return pending.version[rest], new, nobody
    return pending.version[rows], [], nobody


def _back(now: Table, schema: Schema, back: Shown, offset: int) -> tuple[Rows, list[Rows]]:
    """Rows of records that are back with the value they had, and the classes of them that are back as they were."""
    old, place = aligned(back, now)
    there = place >= 0
    pair = old.filter(there), now.frame[place[there]]
    same = there.copy()
    same[there] = ~changed(*pair, schema.named("sensitive"))
    equal = same.copy()
    equal[there] &= ~changed(*pair, schema.named("other"))
    whole = [offset + place[rows] for _, rows in _classes(back.classes) if equal[rows].all()]
    return offset + place[same], whole


def _new_classes(
    data: Microdata,
    policy: Policy,
    waiting: Rows,
    *,
    objective: Measure,
    seed: int,
    progress: Callable[[float], None] | None,
) -> list[Rows]:
    """Classes of nobody but new rows; none when they are too few or too alike."""
    from shoal.algorithms import run
    from shoal.refine import refined

    if len(waiting) == 0:
        return []
    part = data.take(waiting)
    rules = part.rules(policy)
    try:
        found = run("auto", part, rules, objective=objective, seed=seed, options={"refined": True})
    except InfeasibleError:
        return []
    found = refined(part, rules, found, objective=objective, seed=seed, progress=progress)
    return [waiting[members] for members in found.members()]


def _against_the_table(
    pending: _Pending, choices: tuple[tuple[dict[int, Rows], list[Rows]], ...], objective: Measure, next_class: int
) -> tuple[dict[int, Rows], list[Rows]]:
    """Classes that are good in the table that is published now: where they are compared with it, it has changed.

    New classes are merged with new ones only, since what joins an old class can be read off; old ones with old ones. The
    first choice that can be made good so is taken; the last one is to show what was shown before.
    """
    space, policy = pending.data.space(objective), pending.rules.policy
    for kept, new in choices:
        shown = np.sort(np.concatenate([*kept.values(), *new]).astype(np.int64))
        if len(shown) == 0:
            return kept, new
        rules = pending.data.take(shown).rules(policy)
        fresh = _merged(pending.data, space, rules, shown, new)
        old = _merged(pending.data, space, rules, shown, list(kept.values()))
        if fresh is None or old is None:
            continue
        names = {rows.tobytes(): number for number, rows in kept.items()}
        result: dict[int, Rows] = {}
        for rows in old:
            number = names.get(rows.tobytes())
            result[next_class if number is None else number] = rows
            next_class += number is None
        return result, fresh
    raise InfeasibleError(
        "What was published before does not satisfy the policy, not even as one class; go back to the policy it was "
        "published under, or start a new store."
    )


def _merged(data: Microdata, space: Space, rules: Rules, shown: Rows, classes: list[Rows]) -> list[Rows] | None:
    """Whole classes merged, each with the one that costs least, until all are good; None when that is impossible."""
    classes = list(classes)
    bad = [i for i, rows in enumerate(classes) if not rules.ok(np.searchsorted(shown, rows))]
    while bad:
        if len(classes) == 1:
            return None
        rows = classes.pop(bad[0])
        order = np.concatenate([np.concatenate([rows, other]) for other in classes])
        sizes = np.array([len(rows) + len(other) for other in classes])
        states = space.states(data.codes, order, np.cumsum(sizes) - sizes)
        best = int(np.argmin(exact.ticks(space.unit(states) * sizes)))
        classes[best] = np.sort(np.concatenate([classes[best], rows]))
        bad = [i for i, rows in enumerate(classes) if not rules.ok(np.searchsorted(shown, rows))]
    return classes


def _plan(pending: _Pending, kept: dict[int, Rows], arrived: Rows) -> Plan:
    numbers = sorted(kept)
    rows = np.concatenate([kept[number] for number in numbers]) if kept else np.zeros(0, dtype=np.int64)
    classes = np.repeat(np.array(numbers, dtype=np.int64), [len(kept[number]) for number in numbers])
    order = np.argsort(pending.records[rows], kind="stable")
    rows, classes = rows[order], classes[order]
    old = rows[rows < len(pending.gone)]
    there = np.isin(np.flatnonzero(pending.altered), old)
    withdrawn = pending.altered & ~np.isin(pending.records[: len(pending.gone)], pending.records[rows])
    waiting = {
        "insertions": int((~np.isin(arrived, rows)).sum()),
        "deletions": int(pending.gone[old].sum()),
        "updates": int(there.sum() + withdrawn.sum()),
    }
    return Plan(Shown(pending.records[rows], classes, pending.data.frame[rows]), waiting)
