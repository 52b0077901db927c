"""m-invariance: everybody keeps the same possible sensitive values as long as they are published (Xiao & Tao 2007).

A class is *m-unique* when it has at least m rows with different sensitive values; its *signature* is the set of these
values. When all releases are m-unique and everybody's classes in successive releases have one signature, comparing
releases leaves each person with the m or more values of that signature, each with probability at most 1/m.

Records are put into buckets by signature: old ones where they were (division), new ones where values are missing
(balancing), the other new ones in rounds (assignment); buckets are cut into classes that have every value once (split).
Where real records do not suffice, counterfeits stand in. They have the quasi-identifiers of a real record of their
class, so they cost no loss; how many a class has is published, which rows they are is not.

A new record is taken for balancing even when those that remain have to be filled up
(docs/evolving-data.md#m-invariance-step-by-step). That never costs a counterfeit: s new records with at most f of a value
need max(0, m·f − s) of them, and one record less raises that by one at most, while it saves one.

Changes of quasi-identifiers are shown at once, and so is a new sensitive value of the same signature. A record with a
value outside of it must change its signature, and who sees that knows that the new value is none of the old ones: so it
goes to a signature without any of them. Which one must not depend on the value more than it has to, or the rule would
tell it: the other values are cut into blocks of m, in alphabetical order, and the record gets its value's block. With
fewer than m other values there is none, and the old value stays on show.

Who left and is back goes on with the signature of the class they were last published in; outside of it they get a block
like everybody else, or wait where there is none.

Why this is safe, returns included. Take a person with a signature for as long as it lasts, published all the time or not,
and a bucket: everybody with one signature S, in all releases, and the counterfeits among them. In every release the bucket
is cut into classes, each of which has every value of S exactly once. Exchange the values of S among each other by any
permutation, for the whole bucket and in all releases at once: every class still has every value once, so everything that
was published is as it was. Corrected values that were within S still differ from what they were, and those that left S are
in another bucket that has none of its values. So for every person each value of S is equally likely, by whatever
comparison of releases: the argument speaks of all releases at once and not of successive ones, and a gap changes nothing.

What remains: the promise is about sensitive values. Membership and identity are not hidden, a class may have fewer
than m real persons, and columns that are published as they are would let rows be followed, so there must be none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import ConfigError, InfeasibleError, InternalError, UnsupportedError, raw, shown
from shoal.evolve.releases.guards import Numbers, Plan, Shown, Table, aligned
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.progress import Progress
from shoal.schema import Schema
from shoal.space import Measure, Space

# So many pairs of rows are compared at a time; each is a class of two, with a state and losses, some hundred bytes.
PAIRS = 2**18
Signature = tuple[int, ...]
RowList = list[int]


@dataclass(eq=False)
class _Work:
    """The table in codes, and the counterfeits made so far. Row numbers below zero are counterfeits: -1, -2, …"""

    m: int
    space: Space
    codes: NDArray[np.int32]
    values: Numbers
    """The code of each record's sensitive value, as it is shown."""
    frequency: Numbers
    """How many records have each value; values of the past have 0."""
    fakes: list[int] = field(default_factory=list)
    """The value of each counterfeit."""
    stale: int = 0
    """Records that are shown with an old value."""
    likeness: list[int] = field(default_factory=list)
    """The record whose quasi-identifiers each counterfeit has."""

    def fake(self, value: int, like: int) -> int:
        """A new counterfeit."""
        self.fakes.append(value)
        self.likeness.append(like if like >= 0 else self.likeness[-like - 1])
        return -len(self.fakes)

    def value_of(self, row: int) -> int:
        """The value of a record or counterfeit."""
        return int(self.values[row]) if row >= 0 else self.fakes[-row - 1]

    def codes_of(self, rows: Sequence[int]) -> NDArray[np.int32]:
        """Codes of the quasi-identifiers of records and counterfeits."""
        return self.codes[[row if row >= 0 else self.likeness[-row - 1] for row in rows]]

    def gaps(self, these: RowList, those: RowList) -> NDArray[np.float64]:
        """For each of these rows, the loss of one class with the nearest of those, in ticks."""
        step = max(1, PAIRS // len(those))
        pieces = [self._gaps(these[i : i + step], those) for i in range(0, len(these), step)]
        return np.concatenate(pieces)

    def _gaps(self, these: RowList, those: RowList) -> NDArray[np.float64]:
        codes = np.concatenate([self.codes_of(these), self.codes_of(those)])
        one = np.repeat(np.arange(len(these)), len(those))
        other = np.tile(np.arange(len(those)), len(these)) + len(these)
        order = np.stack([one, other], axis=1).ravel()
        units = self.space.unit(self.space.states(codes, order, np.arange(0, len(order), 2)))
        return np.asarray(exact.ticks(units).reshape(len(these), len(those)).min(axis=1))


Bucket = dict[int, RowList]


def invariance(
    now: Table,
    before: Shown | None,
    schema: Schema,
    policy: Policy,
    *,
    m: int | None,
    objective: Measure,
    next_class: int,
    hold_back: bool,
    back: Shown,
    progress: Progress,
) -> Plan:
    """The next m-invariant release. With `hold_back` surplus newcomers wait instead of being filled up.

    Records that are `back` go on with the signatures they had.
    """
    attribute = only_sensitive(schema)
    if now.frame.height == 0:
        raise InfeasibleError("The table has no records, so there is nothing to publish.")
    data = Microdata.from_frame(now.frame, schema)
    m = _checked_m(m, data, policy)
    last = len(before.records) if before is not None else 0
    back, unlike = _distinct(back, attribute)
    before = _both(before, back, now, attribute) if before is not None else None
    narrow = replace(now, frame=now.frame.select(attribute))
    old, place = aligned(before, narrow) if before is not None else (now.frame.clear(), np.zeros(0, dtype=np.int64))
    labels, codes = _encode(now.frame[attribute], old[attribute])
    values = codes[: now.frame.height].copy()
    frequency = np.bincount(values, minlength=len(labels)).astype(np.int64)
    work = _Work(m, data.space(objective), data.codes, values, frequency)
    past = _signatures(before.classes, codes[now.frame.height :]) if before is not None else {}
    if before is not None and sum(map(len, past.values())) < len(before.records):
        # Who shares a value with somebody of the class would be told apart from the others by what is published next.
        raise UnsupportedError(
            "The last release was not made with m-invariance, since it has classes with the same sensitive value twice; go on "
            "with the guard it was made with, or make a new store for m-invariance."
        )
    signatures = [past[c] for c in before.classes.tolist()] if before is not None else []
    buckets, stock, held = divide(work, place, signatures, codes[now.frame.height :].tolist(), last)
    held += _taken_out(stock, np.flatnonzero(np.isin(now.records, unlike)).tolist())
    with progress.stage("balancing values", 0.5) as part_of:
        balance(work, buckets, stock, part_of)
        waiting = held + assign(
            work,
            buckets,
            stock,
            first=before is None,
            hold_back=hold_back,
            names=labels,
            attribute=attribute,
            progress=part_of,
        )
    with progress.stage("cutting classes") as part_of:
        classes = [part for key in part_of.each(sorted(buckets)) for part in split(work, buckets[key], part_of)]
    # A class of nothing but counterfeits has every value of its signature once, so nothing is lost without it.
    classes = [part for part in classes if max(part) >= 0]
    return _plan(work, now, data, policy, classes, waiting, labels, attribute, next_class)


def _both(before: Shown, back: Shown, now: Table, attribute: str) -> Shown:
    """The last release and the classes of records that are back as one, with nothing but the sensitive attribute."""
    value = pl.col(attribute).cast(now.frame.schema[attribute])
    classes = back.classes + int(before.classes.max(initial=-1)) + 1
    return Shown(
        np.concatenate([before.records, back.records]),
        np.concatenate([before.classes, classes]),
        pl.concat([before.frame.select(value), back.frame.select(value)]),
    )


def _distinct(back: Shown, attribute: str) -> tuple[Shown, Numbers]:
    """The classes of records that are back in which no value is there twice, and the records of the others.

    Such a class was made under another guard, and its records wait.
    """
    frame = back.frame.select(attribute).with_columns(pl.Series("__class", back.classes))
    twice = frame.is_duplicated().to_numpy()
    bad = np.isin(back.classes, back.classes[twice])
    unlike = back.records[bad & (back.records >= 0)]
    return Shown(back.records[~bad], back.classes[~bad], back.frame.filter(pl.Series(~bad))), unlike


def _taken_out(stock: Bucket, rows: RowList) -> RowList:
    """Take these rows from the stock."""
    some = set(rows)
    for value in list(stock):
        stock[value] = [row for row in stock[value] if row not in some]
        if not stock[value]:
            del stock[value]
    return rows


def divide(
    work: _Work, place: Numbers, signatures: list[Signature], shown: list[int], last: int
) -> tuple[dict[Signature, Bucket], Bucket, RowList]:
    """Records that were published before, by signature, the new ones by value, and those that are back and have to wait.

    `place` is where each row that was published is now, or -1: first the `last` ones of the last release, and `shown` is the
    value that each of these had; then those of records that are back.
    """
    buckets: dict[Signature, Bucket] = {}
    held: RowList = []
    seen = np.zeros(len(work.values), dtype=bool)
    away = np.arange(len(place)) >= last
    for row, signature, old, back in sorted(zip(place.tolist(), signatures, shown, away.tolist(), strict=True)):
        if row < 0:
            continue
        seen[row] = True
        if work.values[row] not in signature:
            other = _block(work, signature, int(work.values[row]))
            if other is None and back:
                held.append(row)
                continue
            if other is None:
                work.values[row], work.stale = old, work.stale + 1
            else:
                signature = other
        key = _padded(work, signature)
        bucket = buckets.setdefault(key, {v: [] for v in key})
        bucket[int(work.values[row])].append(row)
    stock: Bucket = {}
    for row in np.flatnonzero(~seen).tolist():
        stock.setdefault(int(work.values[row]), []).append(row)
    return buckets, stock, held


def _block(work: _Work, signature: Signature, value: int) -> Signature | None:
    """The values among which a new one hides that is not in the signature."""
    others = [v for v in range(len(work.frequency)) if v not in signature]
    blocks = len(others) // work.m
    if blocks == 0:
        return None
    at = min(others.index(value) // work.m, blocks - 1)
    return tuple(others[at * work.m : (at + 1) * work.m if at < blocks - 1 else None])


def balance(work: _Work, buckets: dict[Signature, Bucket], stock: Bucket, progress: Progress) -> None:
    """Make every value of a bucket equally frequent: by the nearest new records with it, then by counterfeits."""
    for key in progress.each(sorted(buckets)):
        bucket = buckets[key]
        most = max(len(rows) for rows in bucket.values())
        full = next(bucket[value] for value in key if len(bucket[value]) == most)
        there = [row for value in key for row in bucket[value]]
        for value in key:
            lacking = most - len(bucket[value])
            if lacking and value in stock:
                bucket[value] += _taken(work, stock, value, lacking, there)
            bucket[value] += [work.fake(value, full[i]) for i in range(len(bucket[value]), most)]


def _taken(work: _Work, stock: Bucket, value: int, number: int, near: RowList) -> RowList:
    """Take so many rows with a value from the stock, the nearest to some others first."""
    rows = stock.pop(value)
    chosen = np.lexsort((np.array(rows), work.gaps(rows, near)))[:number]
    taken = {rows[i] for i in chosen}
    if len(taken) < len(rows):
        stock[value] = [row for row in rows if row not in taken]
    return sorted(taken)


def assign(
    work: _Work,
    buckets: dict[Signature, Bucket],
    stock: Bucket,
    *,
    first: bool,
    hold_back: bool,
    names: Sequence[str | None],
    attribute: str,
    progress: Progress,
) -> RowList:
    """The other new records, in rounds, into buckets of their own signatures; the ones held back are returned.

    A round takes the rows nearest to the first one of its most frequent value.
    """
    held: RowList = []
    lacking = missing_rows(stock, work.m)
    if lacking and hold_back:
        held = _held_back(stock, work.m)
    elif lacking and first:
        value = max(stock, key=lambda v: (len(stock[v]), -v))
        most, total = len(stock[value]), sum(map(len, stock.values()))
        raise InfeasibleError(
            f"m-invariance with m = {work.m} allows no value more than {total // work.m} of {total} records at the first "
            f"release, and {most} have {raw(names[value], 'one value')} as {attribute}; "
            + (f"take m = {total // most} or less." if total // most >= 2 else 'use guard = "batching".'),
            witness=names[value],
        )
    elif lacking:
        _fill_up(work, stock, lacking, buckets)
    while stock:
        progress.check()
        values, number = next_round({value: len(rows) for value, rows in stock.items()}, work.m)
        anchor = stock[values[0]][0]
        key = tuple(sorted(values))
        bucket = buckets.setdefault(key, {v: [] for v in key})
        for value in values:
            bucket[value] += _taken(work, stock, value, number, [anchor])
    return held


def missing_rows(stock: Bucket, m: int) -> int:
    """How many rows are missing until no value has more than one m-th of them."""
    total = sum(len(rows) for rows in stock.values())
    return max(0, m * max((len(rows) for rows in stock.values()), default=0) - total)


def next_round(counts: dict[int, int], m: int) -> tuple[list[int], int]:
    """The next values to put together and how many rows of each: the fewest values, m or more, then the most rows.

    The β most frequent values give α rows each so that of the rest again no value has more than one m-th.
    """
    order = sorted(counts, key=lambda value: (-counts[value], value))
    total = sum(counts.values())
    for beta in range(m, len(order) + 1):
        after = counts[order[beta]] if beta < len(order) else 0
        alpha = min(counts[order[beta - 1]], (total - m * after) // beta)
        if beta > m:
            alpha = min(alpha, (total - m * counts[order[0]]) // (beta - m))
        if alpha >= 1:
            return order[:beta], alpha
    raise InternalError(f"no {m} values can be put together so that the rest stays balanced")


def split(work: _Work, bucket: Bucket, progress: Progress) -> list[RowList]:
    """Cut a balanced bucket into classes that have every value once, each time along the attribute that loses least."""
    grid = np.array([sorted(rows) for rows in bucket.values()], dtype=np.int64)
    pile, classes = [grid], []
    while pile:
        progress.check()
        part = pile.pop()
        if part.shape[1] == 1:
            classes.append(part[:, 0].tolist())
            continue
        left, right = _halved(work, part)
        pile += [right, left]
    return classes


def _halved(work: _Work, grid: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both halves of a bucket with a line a value; equal codes go by row number."""
    lines, count = grid.shape
    half, attributes = count // 2, len(work.space.domains)
    codes = work.codes_of(grid.ravel().tolist())
    order = np.argsort(codes.reshape(lines, count, attributes), axis=1, kind="stable")
    at = (order + np.arange(lines)[:, None, None] * count).transpose(2, 0, 1)
    parts = [at[a][:, side].ravel() for a in range(attributes) for side in (slice(0, half), slice(half, None))]
    sizes = np.array([len(part) for part in parts])
    units = work.space.unit(work.space.states(codes, np.concatenate(parts), np.cumsum(sizes) - sizes))
    costs = exact.ticks(units * sizes).reshape(attributes, 2).sum(axis=1)
    best = grid.ravel()[at[int(np.argmin(costs))]]
    return np.sort(best[:, :half], axis=1), np.sort(best[:, half:], axis=1)


def _fill_up(work: _Work, stock: Bucket, lacking: int, buckets: dict[Signature, Bucket]) -> None:
    """Counterfeits among the new records, rather with values that make a signature that exists already."""
    most = max(len(rows) for rows in stock.values())
    top = min(value for value, rows in stock.items() if len(rows) == most)
    used = np.zeros(len(work.frequency), dtype=np.int64)
    for key in buckets:
        if top in key:
            used[list(key)] += 1
    order = sorted(range(len(work.frequency)), key=lambda v: (-used[v], -work.frequency[v], v))
    for value in order:
        room = min(lacking, most - len(stock.get(value, [])))
        if room > 0:
            stock.setdefault(value, []).extend([work.fake(value, stock[top][i]) for i in range(room)])
            lacking -= room
    if lacking:
        raise InfeasibleError(
            f"m-invariance with m = {work.m} needs {work.m} different sensitive values and the table has "
            f"{len(work.frequency)}; take a smaller m."
        )


def _held_back(stock: Bucket, m: int) -> RowList:
    """Take the newest rows of the most frequent value away until no value has more than one m-th; they are returned."""
    held: RowList = []
    while stock and missing_rows(stock, m):
        value = max(stock, key=lambda v: (len(stock[v]), -v))
        held.append(stock[value].pop())
        if not stock[value]:
            del stock[value]
    return held


def _padded(work: _Work, signature: Signature) -> Signature:
    """A signature from a time when fewer values were asked for gets the most frequent others."""
    if len(signature) >= work.m:
        return signature
    others = [v for v in np.lexsort((np.arange(len(work.frequency)), -work.frequency)).tolist() if v not in signature]
    return tuple(sorted([*signature, *others[: work.m - len(signature)]]))


def _signatures(classes: Numbers, codes: Numbers) -> dict[int, Signature]:
    found: dict[int, set[int]] = {}
    for number, value in zip(classes.tolist(), codes.tolist(), strict=True):
        found.setdefault(number, set()).add(value)
    return {number: tuple(sorted(values)) for number, values in found.items()}


def _encode(now: pl.Series, old: pl.Series) -> tuple[list[str | None], Numbers]:
    """Codes of the sensitive values of both tables, missing being a value of its own."""
    texts = pl.concat([now.cast(pl.String), old.cast(pl.String)])
    labels: list[str | None] = list(texts.unique().drop_nulls().sort())
    if texts.null_count():
        labels.append(None)
    place = {label: code for code, label in enumerate(labels)}
    return labels, np.array([place[text] for text in texts], dtype=np.int64)


def only_sensitive(schema: Schema) -> str:
    """The one sensitive attribute; refuses tables for which m-invariance is not defined."""
    names, others = schema.named("sensitive"), schema.named("other")
    if len(names) != 1:
        raise ConfigError(
            f"m-invariance protects one sensitive attribute and the table has {len(names)}; "
            'give the others another role, or use guard = "batching".'
        )
    if others:
        raise ConfigError(
            f"m-invariance cannot publish '{others[0]}' as it is, rows could be followed by it from release to release; "
            'give it the role "identifier" or "quasi", or use guard = "batching".'
        )
    return names[0]


def _checked_m(m: int | None, data: Microdata, policy: Policy) -> int:
    least = data.rules(policy).k
    if m is None:
        return max(2, least)
    if isinstance(m, bool) or not isinstance(m, int) or m < max(2, least):
        raise ConfigError(
            f"m = {shown(m)} is not allowed; the policy needs a whole number of at least {max(2, least)}."
        )
    return m


def _plan(
    work: _Work,
    now: Table,
    data: Microdata,
    policy: Policy,
    classes: list[RowList],
    waiting: RowList,
    labels: list[str | None],
    attribute: str,
    next_class: int,
) -> Plan:
    # By class and value: who is real, who came first, and which row was which before cannot be told from the order.
    parts = [sorted(part, key=work.value_of) for part in classes]
    rows = np.array([row for part in parts for row in part], dtype=np.int64)
    numbers = np.repeat(np.arange(len(parts)), [len(part) for part in parts]) + next_class
    real = np.array([min(row for row in part if row >= 0) for part in parts])
    fakes = rows < 0
    like = np.where(fakes, real[numbers - next_class], rows)
    frame = now.frame[like]
    if fakes.any() or work.stale:
        frame = _disguised(frame, rows, work, labels, attribute, data.schema)
    records = np.where(fakes, -np.cumsum(fakes.astype(np.int64)), now.records[like])
    counted = np.unique(numbers[fakes], return_counts=True)
    by_class = dict(zip(counted[0].tolist(), counted[1].tolist(), strict=True))
    shown = Shown(records.astype(np.int64), numbers.astype(np.int64), frame)
    _require_policy(shown, data.schema, policy)
    return Plan(
        shown,
        {"insertions": len(waiting), "deletions": 0, "updates": work.stale},
        int(fakes.sum()),
        counterfeits_by_class=by_class,
    )


def _disguised(
    frame: pl.DataFrame, rows: Numbers, work: _Work, labels: list[str | None], attribute: str, schema: Schema
) -> pl.DataFrame:
    """Give every row the sensitive value it is to show, and counterfeits nobody's name."""
    texts = [labels[work.value_of(row)] for row in rows.tolist()]
    columns = [pl.Series(attribute, texts, dtype=pl.String).cast(frame.schema[attribute])]
    real = pl.Series(rows >= 0)
    for name in schema.named("identifier"):
        columns.append(frame.select(pl.when(real).then(pl.col(name)).alias(name)).to_series())
    return frame.with_columns(columns)


def _require_policy(shown: Shown, schema: Schema, policy: Policy) -> None:
    data = Microdata.from_frame(shown.frame, schema)
    names, labels = np.unique(shown.classes, return_inverse=True)
    rules = data.rules(policy)
    deficits = rules.rule_deficits(rules.stats(labels, len(names)))
    for rule, row in zip(rules.rules, deficits, strict=True):
        if (row > 0).any():
            raise InfeasibleError(
                f"{int((row > 0).sum())} of {len(names)} m-invariant classes do not satisfy {rule}; take a larger m, or use "
                'guard = "batching".',
                witness=rule.attribute,
            )
