"""Batching: records that were published together stay together, whatever happens to single ones of them.

A *cohort* is a set of records that enter the releases together and leave them together. Every published class is a
cohort, or several whole ones.

- New records wait until they can be classes of their own, made of nobody but new records.
- Records that were deleted stay published until the whole class goes, or until those that go and those that stay both
  satisfy the policy: then the cohort becomes two.
- Records that are back are who they were. While their class is still published they are simply in it again. Once it has
  left, they wait until the whole cohort is back as it was, or until those that are back and those that are not both satisfy
  the policy. One that is back with other sensitive values, all of them, is new.
- A change of quasi-identifiers alone is shown at once: the cohort and its sensitive values remain as they are.
- When the table is renewed, a cohort may become several that lose less, each of which satisfies the policy. There is no other
  way to publish the same records with less loss: cohorts that are put together lose more, and none may be torn and put
  together anew, since who compares the releases would have the torn parts.
- A change of a sensitive value (or of a column published as it is, by which a row could be recognized) waits until
  the changed records can be a cohort of their own, or until all others of the class are gone.

Why this is safe, returns included. Call a person with unchanged sensitive values a life (`evolve/releases/lives.py`), and lives
with the same class in every release, and out of the same ones, a cell. By induction over the releases every cell satisfies
the policy:

1. In the first release the cells are its classes.
2. In a later one every published class is made of whole cells, or of parts of cells; and a cell is cut only into what
   is published in one class now and the rest, wherever the rest is (in another class, or in none), and only if both satisfy
   the policy; or, renewed, into several parts, each of which is a class now and satisfies the policy. It makes no difference
   whether the cell was published last time or left years ago: a cell that is back is either whole or cut in this way. So
   every cell after the release, being a cell before it or such a part, satisfies the policy.
3. A life that was never published before is in a class of such lives only, which is a new cell and satisfies the policy.

How often each value occurs in each published class is a sum over its cells. So all releases together are a function of one
table, that of all cells with their sensitive values, and this table satisfies the policy class by class. Comparing
releases, in whatever way and however many, therefore tells an intruder no more than that table would, even one who knows
everybody's quasi-identifiers and who is in which release.

It is not enough that each change of a class satisfies the policy: five join a class, and next week four of them and one
other leave it. Each is a good change set, and the two together give the fifth away. Nor that a class which is back is good:
with three strangers, somebody who left in a class of four has only the values that both classes have in common.

People with several rows (docs/persons.md). A record is then a person, and has as sensitive values all rows of the person, of
which an intruder may see that they belong together: call them a *line*. Everything above stays, with two more rules:

- A person is in a new life only if their line has no value in common with the one published last. With a further visit, or one
  visit less, they are who they were: what they had is still to be found in what they have, and in a new company, where one
  line has something of an old one, that would tell whose it is.
- Within a life a line only grows: rows are added, and none is taken back or changed while somebody has others. A person whose
  published rows are not all in the table any more is shown as before until they leave or begin a new life. Further visits
  are shown like any change of a sensitive value: with those of so many others of the cell that these satisfy the policy, before
  and after, and so do those who stay.

Why this is safe. Exchanging all lines of two persons of a cell, from its first release to its last, changes no release: both are
in the same class every time, and both had further visits between the same releases. So all that the releases tell, also
somebody who knows who came again and when, is which lines the persons of a cell had, one after the other, and not who had which.
The newest lines of a cell satisfy the policy when it is made, when it changes and when it is cut. Then its older lines do too:
they are as many; and each older set is part of a newer one, so that values which meet all older sets meet all newer ones, and
fewer than p values never do. Of shares and distributions that is not true, which is why only models of sizes and of distinct
values are allowed with people.

What remains. A class that disappears tells that all its records left or changed, and a record that turns up in another class
that its sensitive value was corrected, though neither from what nor to what. Who knows this rule and who is waiting learns
from a long wait that the waiting records do not yet satisfy the policy, for example that they are alike. Who is back alone
may wait for good. And a class that has been good for one table may be far from a later one (t-closeness): it is then shown as
one class with others, but what was published stays published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import InfeasibleError
from shoal.evolve.releases.guards import Numbers, Plan, Shown, Table, aligned, changed
from shoal.evolve.releases.lives import Cells, Lives, counted, lives_of
from shoal.evolve.releases.people import ROWS, added_to, each, grown, of_people
from shoal.evolve.releases.rows import places
from shoal.evolve.releases.versions import Versions
from shoal.microdata import Microdata
from shoal.policy import Policy, Rules
from shoal.progress import Progress
from shoal.schema import Schema
from shoal.space import Measure, Space

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Pending:
    """What the rows shown before want: to leave, or to change what must not change alone.

    Rows are those of `versions`, counted through: shown before, of the present table, of cohorts that are partly back.
    """

    versions: Versions
    rules: Rules
    records: Numbers
    cells: Numbers
    """The cell of each row shown before."""
    gone: NDArray[np.bool_]
    altered: NDArray[np.bool_]
    other_person: NDArray[np.bool_]
    """Of the altered rows, those with other sensitive values: their old class says nothing about the new one."""
    held: NDArray[np.bool_]
    """Of the altered rows, those of persons some of whose published rows would be taken back: they stay as they are."""
    version: Rows
    """The row to show in place of one that stays: the present one, which may have other quasi-identifiers."""
    latest: Rows
    arrived: Rows
    """Rows of the present table whose records were not shown before."""
    busy: NDArray[np.bool_]
    """The rows shown before whose class has to be looked at."""

    def ok(self, rows: Rows) -> bool:
        """Whether rows would be a good class."""
        return bool(self.rules.ok(self.versions.encoded(rows)))


@dataclass(frozen=True, eq=False)
class _Back:
    """Records that are back: rows of the present table by cohort, with the values of those of the cohort that are not."""

    waiting: Rows
    """All rows of records that are back with a value they had; they are not new."""
    parts: list[tuple[Rows, pl.DataFrame]]


def batching(
    now: Table,
    before: Shown,
    schema: Schema,
    policy: Policy,
    *,
    objective: Measure,
    seed: int,
    progress: Progress,
    next_class: int,
    earlier: Sequence[Shown],
    recut: bool = False,
) -> Plan:
    """The next release of whole cohorts; what cannot be shown yet waits. With `recut`, cohorts that can be cut are."""
    past = [*earlier, before]
    *were, are = lives_of([*past, now], schema)
    cells = Cells(past, were)
    back = _back(now, schema, before, cells, are)
    pending = _pending(now, before, schema, policy, cells, (were[-1], are), back, recut)
    kept: dict[int, Rows] = {}
    pool: list[Rows] = []
    wanting = set(before.classes[pending.gone | pending.altered | pending.other_person].tolist())
    looked_at = np.flatnonzero(pending.busy)
    for number, members in _classes(before.classes[looked_at]):
        rows = looked_at[members]
        if number not in wanting and not recut:
            kept[number] = pending.version[rows]
            continue
        progress.check()
        stay, fresh, free = _settle(pending, rows)
        if recut and len(stay) == len(rows):
            stay, *more = _cut(pending, rows, objective=objective, seed=seed)
            fresh = [*fresh, *more]
        if len(stay):
            kept[number if len(stay) == len(rows) else next_class] = stay
            next_class += len(stay) < len(rows)
        for part in fresh:
            kept[next_class] = part
            next_class += 1
        pool.append(free)
    for rows in _whole_again(pending, back, len(before.records), now.frame.height):
        kept[next_class] = rows
        next_class += 1
    new_ones = np.setdiff1d(pending.arrived, len(before.records) + back.waiting)
    waiting = np.concatenate([new_ones, *pool]).astype(np.int64)
    waiting.sort()
    new = _new_classes(pending.versions, policy, waiting, objective=objective, seed=seed, progress=progress)
    if not pending.rules.superset_closed:
        unchanged = {number: pending.version[rows] for number, rows in _classes(before.classes)}
        kept, new = _against_the_table(
            pending, ((kept, new), (kept, []), (unchanged, [])), objective, next_class, progress
        )
        next_class = max([next_class, *(number + 1 for number in kept)])
    for rows in new:
        kept[next_class] = rows
        next_class += 1
    return _plan(pending, kept, before.classes)


def _pending(
    now: Table,
    before: Shown,
    schema: Schema,
    policy: Policy,
    cells: Cells,
    lives: tuple[Lives, Lives],
    back: _Back,
    recut: bool,
) -> _Pending:
    old, place = aligned(before, now)
    count = len(before.records)
    there = place >= 0
    latest = np.where(there, count + place, np.arange(count))
    altered, another = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    were, are = lives
    if were.shape[1]:
        another[there] = (were[there] != are[place[there]]).all(axis=1)
    altered[there] = another[there]
    rows = np.flatnonzero(there)
    altered[rows] |= changed(old, rows, now.frame, place[rows], schema.named("sensitive") + schema.named("other"))
    held = np.zeros(count, dtype=bool)
    if of_people(schema):
        for name in (*schema.named("sensitive"), ROWS):
            pair = old[name].gather(rows), now.frame[name].gather(place[rows])
            held[rows] |= ~each(added_to if name == ROWS else grown, *pair)
    records = np.concatenate([before.records, now.records])
    version = np.where(altered, np.arange(count), latest)
    arrived = count + np.flatnonzero(places(before.records, now.records) < 0)
    # A class that is compared with the table wants the whole of it.
    alone = all(model.local and model.superset_closed for model in policy.models)
    busy = np.ones(count, dtype=bool)
    if alone and not recut:
        busy = np.isin(before.classes, before.classes[~there | altered])
    asked = np.concatenate([np.flatnonzero(busy), latest[busy], arrived]) if alone else None
    versions = Versions.of(old, now.frame, [absent for _, absent in back.parts], schema, asked)
    own = cells.cell_of[cells.units[-1]]
    rules, held = versions.data.rules(policy), held & ~another
    return _Pending(versions, rules, records, own, ~there, altered, another, held, version, latest, arrived, busy)


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
    more = altered & ~another & ~pending.held[rows]
    kinds = [kind for kind in (gone, another, more) if kind.any()]
    choices = [list(some) for count in range(1, len(kinds) + 1) for some in combinations(kinds, count)]
    if of_people(pending.versions.data.schema):
        # Further visits by themselves: what each part had is then told by those who stay, as the audit asks.
        choices = [some for some in choices if len(some) == 1 or not any(kind is more for kind in some)]
    choices.sort(key=lambda some: -sum(int(kind.sum()) for kind in some))
    for leaving in choices:
        rest = rows[~np.logical_or.reduce(leaving)]
        parts = [part for part in (*(rows[kind] for kind in leaving), rest) if len(part)]
        if len(parts) > 1 and not (pending.rules.superset_closed and _all_good(pending, parts)):
            continue
        new = [pending.latest[rows[kind]] for kind in leaving if kind is not gone]
        if all(map(pending.ok, new)):
            return pending.version[rest], new, nobody
    return pending.version[rows], [], nobody


def _cut(pending: _Pending, rows: Rows, *, objective: Measure, seed: int) -> list[Rows]:
    """A class that stays as it is, in the parts that lose least; itself where it cannot be cut, or is not one cohort."""
    whole = pending.version[rows]
    one = len(np.unique(pending.cells[rows])) == 1
    if not one or not pending.rules.superset_closed or len(rows) < 2 * pending.rules.k:
        return [whole]
    told = Progress()
    parts = _new_classes(
        pending.versions, pending.rules.policy, np.sort(whole), objective=objective, seed=seed, progress=told
    )
    place = np.argsort(whole, kind="stable")
    old = [rows[place[np.searchsorted(whole[place], part)]] for part in parts]
    if len(parts) < 2 or not _all_good(pending, old):
        return [whole]
    data, encoded = pending.versions.data, pending.versions.encoded(np.concatenate([whole, *parts]))
    space, sizes = data.space(objective), np.array([len(whole), *map(len, parts)])
    units = space.unit(space.states(data.codes, encoded, np.cumsum(sizes) - sizes))
    costs = exact.ticks(units * sizes)
    return parts if costs[1:].sum() < costs[0] else [whole]


def _all_good(pending: _Pending, parts: list[Rows]) -> bool:
    """Whether all parts of a class satisfy the policy, and in each of them what it has of every cell."""
    pieces = [part[members] for part in parts for _, members in _classes(pending.cells[part])]
    return all(map(pending.ok, pieces))


def _back(now: Table, schema: Schema, before: Shown, cells: Cells, lives: Lives) -> _Back:
    """Who is back, by cohort. A cohort of which somebody has other values now, or of which not all is known, waits."""
    last = cells.latest(now.records)
    back = np.flatnonzero((last >= 0) & ~np.isin(now.records, before.records))
    if not len(back):
        return _Back(back, [])
    same, other = _compared(cells, last[back], lives[back])
    if now.differs is not None:
        same &= ~now.differs[back]
    names = schema.named("sensitive") + schema.named("other")
    parts = []
    known = cells.last_rows if of_people(schema) else cells.rows
    for cell, members in _classes(cells.cell_of[last[back[same]]]):
        rows = back[same][members]
        published, here = known(cell, names), counted(now.frame, rows, names)
        if published is None or here - published:
            continue
        absent = list((published - here).elements())
        like = now.frame[np.repeat(rows[:1], len(absent))]
        types = {name: now.frame.schema[name] for name in names}
        values = pl.DataFrame(absent, schema=types, orient="row") if names else pl.DataFrame()
        parts.append((rows, like.with_columns(values[name] for name in names)))
    return _Back(back[~other], parts)


def _compared(cells: Cells, last: Numbers, lives: Lives) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of persons that are back, by the lives they were last published with: the same ones, and those that are new throughout."""
    was = cells.lives[last]
    if not was.shape[1]:
        return np.ones(len(last), dtype=bool), np.zeros(len(last), dtype=bool)
    return (was == lives).all(axis=1), (was != lives).all(axis=1)


def _whole_again(pending: _Pending, back: _Back, before: int, now: int) -> list[Rows]:
    """The cohorts that are back, and parts of others that satisfy the policy and leave a rest that does."""
    found = []
    begin = before + now
    for rows, absent in back.parts:
        rest = np.arange(begin, begin + absent.height)
        begin += absent.height
        if not pending.rules.superset_closed:
            good = not len(rest)  # how it is beside the others of the table is looked at when all of them are known
        else:
            # A cohort of another guard's release may be too small to be shown, even whole.
            good = pending.ok(before + rows) and (not len(rest) or pending.ok(rest))
        if good:
            found.append(before + rows)
    return found


def _new_classes(
    versions: Versions,
    policy: Policy,
    waiting: Rows,
    *,
    objective: Measure,
    seed: int,
    progress: Progress,
) -> list[Rows]:
    """Classes of nobody but new rows; none when they are too few or too alike."""
    from shoal.algorithms import run
    from shoal.refine import refined

    if len(waiting) == 0:
        return []
    part = versions.data.take(versions.encoded(waiting))
    rules = part.rules(policy)
    try:
        with progress.stage("grouping new records", 0.3) as told:
            found = run("auto", part, rules, objective=objective, seed=seed, options={"refined": True}, progress=told)
    except InfeasibleError:
        return []
    with progress.stage("refining") as told:
        found = refined(part, rules, found, objective=objective, seed=seed, progress=told)
    return [waiting[members] for members in found.members()]


def _against_the_table(
    pending: _Pending,
    choices: tuple[tuple[dict[int, Rows], list[Rows]], ...],
    objective: Measure,
    next_class: int,
    progress: Progress,
) -> tuple[dict[int, Rows], list[Rows]]:
    """Classes that are good in the table that is published now: where they are compared with it, it has changed.

    New classes are merged with new ones only, since what joins an old class can be read off; old ones with old ones. The
    first choice that can be made good so is taken; the last one is to show what was shown before.
    """
    data, policy = pending.versions.data, pending.rules.policy
    space = data.space(objective)
    for kept, new in choices:
        shown = np.sort(np.concatenate([*kept.values(), *new]).astype(np.int64))
        if len(shown) == 0:
            return kept, new
        rules = data.take(shown).rules(policy)
        fresh = _merged(data, space, rules, shown, new, progress)
        old = _merged(data, space, rules, shown, list(kept.values()), progress)
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


def _merged(
    data: Microdata, space: Space, rules: Rules, shown: Rows, classes: list[Rows], progress: Progress
) -> list[Rows] | None:
    """Whole classes merged, each with the one that costs least, until all are good; None when that is impossible."""
    classes = list(classes)
    bad = [i for i, rows in enumerate(classes) if not rules.ok(np.searchsorted(shown, rows))]
    while bad:
        progress.check()
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


def _plan(pending: _Pending, kept: dict[int, Rows], before: Numbers) -> Plan:
    """The classes that were looked at as they are now, and those of the release before in which nothing happened."""
    numbers, quiet = sorted(kept), np.flatnonzero(~pending.busy)
    rows = np.concatenate([pending.version[quiet], *(kept[number] for number in numbers)]).astype(np.int64)
    sizes = [len(kept[number]) for number in numbers]
    classes = np.concatenate([before[quiet], np.repeat(np.array(numbers, dtype=np.int64), sizes)])
    order = np.argsort(pending.records[rows], kind="stable")
    rows, classes = rows[order], classes[order]
    old = rows[rows < len(pending.gone)]
    there = np.isin(np.flatnonzero(pending.altered), old)
    withdrawn = pending.altered & ~np.isin(pending.records[: len(pending.gone)], pending.records[rows])
    waiting = {
        "insertions": int((~np.isin(pending.arrived, rows)).sum()),
        "deletions": int(pending.gone[old].sum()),
        "updates": int(there.sum() + withdrawn.sum()),
    }
    return Plan(Shown(pending.records[rows], classes, pending.versions.frame(rows)), waiting)
