"""m-invariance: everybody keeps the same possible sensitive values as long as they are published (Xiao & Tao 2007).

A class is *m-unique* when it has at least m rows with different sensitive values; its *signature* is the set of these
values. When all releases are m-unique and everybody's classes in successive releases have one signature, comparing
releases leaves each person with the m or more values of that signature, each with probability at most 1/m.

Records are put into buckets by signature: old ones where they were (division), new ones where values are missing, nearest first
(balancing), the other new ones in blocks of neighbours (assignment); buckets are cut into classes that have every value once
(split). Where real records do not suffice, counterfeits stand in. They have the quasi-identifiers of a real record of their
class, so they cost no loss; how many a class has is published, which rows they are is not. The steps are in
`evolve/releases/buckets.py` and `evolve/releases/blocks.py`.

Changes of quasi-identifiers are shown at once, and so is a new sensitive value of the same signature. A record with a
value outside of it must change its signature, and who sees that knows that the new value is none of the old ones: so it
goes to a signature without any of them. Which one must not depend on the value more than it has to, or the rule would
tell it: the other values are cut into blocks of m, in alphabetical order, and the record gets its value's block. With
fewer than m other values there is none, and the old value stays on show.

Who left and is back goes on with the signature of the class they were last published in; outside of it they get a block
like everybody else, or wait where there is none.

Several sensitive attributes, and columns that are published as they are (the role other), are one *combination*
(`evolve/releases/values.py`). A signature is then a set of combinations, no two of which agree in any sensitive attribute. A
combination outside its signature stays as it was shown: of what was corrected, an intruder may know in which column, and any
other signature would say what remained the same.

Why this is safe, returns included. Take a person with a signature for as long as it lasts, published all the time or not,
and a bucket: everybody with one signature S, in all releases, and the counterfeits among them. In every release the bucket
is cut into classes, each of which has every value of S exactly once. Exchange the values of S among each other by any
permutation, for the whole bucket and in all releases at once: every class still has every value once, so everything that
was published is as it was. Corrected values that were within S still differ from what they were, and those that left S are
in another bucket that has none of its values. So for every person each value of S is equally likely, by whatever
comparison of releases: the argument speaks of all releases at once and not of successive ones, and a gap changes nothing.

With combinations for values, the same words prove that each combination of S is equally likely for every person. No two of
them agree in a sensitive attribute, so each value of each attribute has a probability of at most 1/m too; and a row that is
recognized in several releases by its other columns is each person's of the bucket with the same probability, or a
counterfeit's. That two releases have the same row therefore does not say that it is the same person's. What a person's
columns of the role other are is told no better than their sensitive values.

What remains: the promise is about values. Membership and identity are not hidden, and a class may have fewer than m real
persons. Values that an intruder knows cannot go together, in one combination or with a person's quasi-identifiers, are out:
every combination on show is one that some record had.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.errors import ConfigError, InfeasibleError, UnsupportedError, shown
from shoal.evolve.releases.blocks import assign
from shoal.evolve.releases.buckets import RowList, Signature, Work, balance, divide, split, take_out
from shoal.evolve.releases.guards import Numbers, Plan, Shown, Table, aligned
from shoal.evolve.releases.values import Values, encoded, told_apart
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.progress import Progress
from shoal.schema import Schema
from shoal.space import Measure


def invariance(
    now: Table,
    before: Shown | None,
    schema: Schema,
    policy: Policy,
    *,
    m: int | None,
    objective: Measure,
    seed: int,
    next_class: int,
    hold_back: bool,
    back: Shown,
    progress: Progress,
) -> Plan:
    """The next m-invariant release. With `hold_back` surplus newcomers wait instead of being filled up.

    Records that are `back` go on with the signatures they had.
    """
    require_sensitive(schema)
    if now.frame.height == 0:
        raise InfeasibleError("The table has no records, so there is nothing to publish.")
    data = Microdata.from_frame(now.frame, schema)
    m = _checked_m(m, data, policy)
    last = len(before.records) if before is not None else 0
    back, unlike = _distinct(back, schema)
    known, codes, place, classes = _past(now, before, back, schema)
    values = codes[: now.frame.height].copy()
    frequency = np.bincount(values, minlength=known.frame.height).astype(np.int64)
    work = Work(m, data.space(objective), data.codes, known, values, frequency)
    old = codes[now.frame.height :]
    past = _signatures(classes, old)
    signatures = [past[c] for c in classes.tolist()]
    buckets, stock, held = divide(work, place, signatures, old.tolist(), last)
    wait = np.flatnonzero(np.isin(now.records, unlike)).tolist()
    take_out(stock, set(wait))
    with progress.stage("balancing values", 0.2) as part_of:
        balance(work, buckets, stock, part_of)
    with progress.stage(weight=0.6) as part_of:
        how: dict[str, Any] = {"objective": objective, "seed": seed}
        waiting = assign(work, buckets, stock, data, first=before is None, hold_back=hold_back, progress=part_of, **how)
    with progress.stage("cutting classes") as part_of:
        parts = [part for key in part_of.each(sorted(buckets)) for part in split(work, buckets[key], part_of)]
    # A class of nothing but counterfeits has every value of its signature once, so nothing is lost without it.
    parts = [part for part in parts if max(part) >= 0]
    plan = _plan(work, now, data.schema, parts, held + wait + waiting, next_class)
    _require_policy(plan.shown, data.schema, policy)
    return plan


def _past(now: Table, before: Shown | None, back: Shown, schema: Schema) -> tuple[Values, Numbers, Numbers, Numbers]:
    """All values there are with the number of each row's, those of the table first, and the place and class of the rows that
    were published: those of the last release, then those of records that are back.
    """
    names = [*schema.named("sensitive"), *schema.named("other")]
    narrow = replace(now, frame=now.frame.select(names))
    nobody = np.zeros(0, dtype=np.int64)
    if before is None:
        return *encoded(narrow.frame, narrow.frame.clear(), schema), nobody, nobody
    if not told_apart(before.frame, before.classes, schema).all():
        # Who shares a value with somebody of the class would be told apart from the others by what is published next.
        raise UnsupportedError(
            "The last release was not made with m-invariance, since it has classes with the same sensitive value twice; go on "
            "with the guard it was made with, or make a new store for m-invariance."
        )
    types = [pl.col(name).cast(narrow.frame.schema[name]) for name in names]
    both = Shown(
        np.concatenate([before.records, back.records]),
        np.concatenate([before.classes, back.classes + int(before.classes.max(initial=-1)) + 1]),
        pl.concat([before.frame.select(types), back.frame.select(types)]),
    )
    old, place = aligned(both, narrow)
    return *encoded(narrow.frame, old, schema), place, both.classes


def _distinct(back: Shown, schema: Schema) -> tuple[Shown, Numbers]:
    """The classes of records that are back in which no value is there twice, and the records of the others.

    Such a class was made under another guard, and its records wait.
    """
    twice = ~told_apart(back.frame, back.classes, schema)
    bad = np.isin(back.classes, back.classes[twice])
    unlike = back.records[bad & (back.records >= 0)]
    return Shown(back.records[~bad], back.classes[~bad], back.frame.filter(pl.Series(~bad))), unlike


def _signatures(classes: Numbers, codes: Numbers) -> dict[int, Signature]:
    found: dict[int, set[int]] = {}
    for number, value in zip(classes.tolist(), codes.tolist(), strict=True):
        found.setdefault(number, set()).add(value)
    return {number: tuple(sorted(values)) for number, values in found.items()}


def require_sensitive(schema: Schema) -> None:
    """Refuse tables for which m-invariance promises nothing."""
    if not schema.named("sensitive"):
        raise ConfigError(
            'm-invariance protects sensitive attributes and the table has none; give a column the role "sensitive", or use '
            'guard = "batching".'
        )


def _checked_m(m: int | None, data: Microdata, policy: Policy) -> int:
    least = data.rules(policy).k
    if m is None:
        return max(2, least)
    if isinstance(m, bool) or not isinstance(m, int) or m < max(2, least):
        raise ConfigError(
            f"m = {shown(m)} is not allowed; the policy needs a whole number of at least {max(2, least)}."
        )
    return m


def _plan(work: Work, now: Table, schema: Schema, classes: list[RowList], waiting: RowList, next_class: int) -> Plan:
    # By class and value: who is real, who came first, and which row was which before cannot be told from the order.
    parts = [sorted(part, key=work.value_of) for part in classes]
    rows = np.array([row for part in parts for row in part], dtype=np.int64)
    numbers = np.repeat(np.arange(len(parts)), [len(part) for part in parts]) + next_class
    real = np.array([min(row for row in part if row >= 0) for part in parts])
    fakes = rows < 0
    like = np.where(fakes, real[numbers - next_class], rows)
    frame = now.frame[like]
    if fakes.any() or work.stale:
        frame = _disguised(frame, rows, work, schema)
    records = np.where(fakes, -np.cumsum(fakes.astype(np.int64)), now.records[like])
    counted = np.unique(numbers[fakes], return_counts=True)
    by_class = dict(zip(counted[0].tolist(), counted[1].tolist(), strict=True))
    return Plan(
        Shown(records.astype(np.int64), numbers.astype(np.int64), frame),
        {"insertions": len(waiting), "deletions": 0, "updates": work.stale},
        int(fakes.sum()),
        counterfeits_by_class=by_class,
    )


def _disguised(frame: pl.DataFrame, rows: NDArray[np.int64], work: Work, schema: Schema) -> pl.DataFrame:
    """Give every row the values it is to show, and counterfeits nobody's name."""
    values = work.known.frame[[work.value_of(row) for row in rows.tolist()]]
    real = pl.Series(rows >= 0)
    hidden = [
        frame.select(pl.when(real).then(pl.col(name)).alias(name)).to_series() for name in schema.named("identifier")
    ]
    return frame.with_columns(*values, *hidden)


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
