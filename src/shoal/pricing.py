"""What suggestions would cost, tried before anybody accepts them: mondrian on some of the records, under k and under the policy.

A few thousand records answer within a second or two, and say more than a rule of thumb: the table's own figures. Fewer of them
lie farther apart, so a large table mostly loses less than its sample: what is compared are policies on the same records.

>>> import polars as pl
>>> from shoal.suggesting import profile
>>> frame = pl.DataFrame({"age": [20 + i % 50 for i in range(400)], "hiv": ["no", "no", "no", "yes"] * 100})
>>> costs = priced(frame, profile(frame)).costs
>>> costs.records, costs.alone < costs.policy
(400, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from shoal import exact
from shoal.algorithms import run
from shoal.errors import Cancelled, ShoalError
from shoal.io.frames import apply_missing
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.profiling import percent
from shoal.progress import Progress, Told
from shoal.schema import Schema
from shoal.states import class_states
from shoal.suggesting import ColumnProfile, Costs, Profile, as_quasi
from shoal.suggesting.found import schema_of

SAMPLE = 2000  # records or persons: a try takes some hundredths of a second
TRIED = 20  # columns to consider that are tried; the others tell less
DEAR = 2.0
"""A policy that loses more than this many times what k alone loses is dear, and says so."""
HIGH = 0.4
"""Two fifths of what the columns tell are lost: a range covers as much of its column, and little is left to analyse."""


def priced(table: pl.DataFrame, found: Profile, progress: Told | None = None) -> Profile:
    """The suggestions with what they cost, and notes where that is much; without, and a note, where they cannot be tried."""
    if not found.named("quasi"):
        return found
    try:
        costs = _costs(apply_missing(table, found.missing), found, Progress.of(progress))
    except Cancelled:
        raise
    except ShoalError as problem:
        return replace(found, notes=(*found.notes, f"What the suggestions cost could not be tried: {problem}"))
    return replace(found, costs=costs, notes=(*found.notes, *_notes(found, costs)))


def _costs(table: pl.DataFrame, found: Profile, progress: Progress) -> Costs:
    quasi = sorted(
        (column for column in found.columns if column.role == "quasi"), key=lambda column: -column.separation
    )
    consider = found.consider[:TRIED]
    data = _sampled(table, found, consider)
    places = {name: place for place, name in enumerate(data.quasi)}
    own = [places[column.name] for column in quasi]
    alone, rules = Policy.from_config({"k": found.k}), [one for one in found.diversity if one.rule is not None]
    jobs: list[tuple[Policy, list[int], int | None]] = [(alone, own[:count], None) for count in range(1, len(own) + 1)]
    jobs += [(Policy.from_config({"k": found.k, one.rule[0]: one.rule[1]}), own, None) for one in rules if one.rule]
    jobs += [(alone, own, places[column.name]) for column in consider]
    jobs.append((Policy.from_config(found.policy), own, None))
    losses = [_loss(data, policy, columns, beside) for policy, columns, beside in progress.each(jobs)]
    by_rule, beside = losses[len(own) : len(own) + len(rules)], losses[len(own) + len(rules) : -1]
    return Costs(
        records=data.n,
        alone=losses[len(own) - 1],
        policy=losses[-1],
        rules={one.attribute: loss for one, loss in zip(rules, by_rule, strict=True)},
        columns=tuple(losses[: len(own)]),
        consider={column.name: loss for column, loss in zip(consider, beside, strict=True)},
    )


def _sampled(table: pl.DataFrame, found: Profile, consider: Sequence[ColumnProfile]) -> Microdata:
    """Some of the records or persons, evenly spaced, with the columns to consider as quasi-identifiers too."""
    person = next(iter(found.named("person")), None)
    if person is None:
        rows = table.gather_every(max(1, table.height // SAMPLE))
    else:
        keys = table[person].unique(maintain_order=True).drop_nulls()
        rows = table.filter(table[person].is_in(keys.gather_every(max(1, len(keys) // SAMPLE)).implode()))
    wanted = {column.name for column in consider}
    columns = [
        as_quasi(rows, column, person) if column.name in wanted else column
        for column in found.columns
        if column.role in ("quasi", "sensitive", "person") or column.name in wanted
    ]
    return Microdata.of_table(rows.select(column.name for column in columns), schema_of(columns))


def _loss(data: Microdata, policy: Policy, columns: Sequence[int], beside: int | None = None) -> float:
    """What some of the quasi-identifiers lose by mondrian, a share of what they tell, where `beside` them is one more."""
    used = sorted(columns if beside is None else [*columns, beside])
    away = {name for place, name in enumerate(data.quasi) if place not in used}
    part = replace(
        data,
        schema=Schema({name: one for name, one in data.schema.attributes.items() if name not in away}),
        codes=np.ascontiguousarray(data.codes[:, used]),
        domains=tuple(data.domains[place] for place in used),
    )
    partition, space = run("mondrian", part, part.rules(policy)), part.space("ncp")
    states = class_states(part, partition, space)
    counted = [float(place != beside) for place in used]
    sizes = np.bincount(partition.labels, minlength=len(states))
    return exact.weighed(sizes, exact.along(space.losses(states), counted)) / (part.n * len(columns))


def _notes(found: Profile, costs: Costs) -> list[str]:
    notes = []
    tried = f"tried on {costs.records:,} {'records' if found.persons is None else 'persons'}"
    if costs.alone > HIGH:
        count = len(costs.columns)
        # From there on it stays high: one more column may make a greedy search find better cuts.
        high = next(one for one in range(1, count + 1) if min(costs.columns[one - 1 :]) > HIGH)
        few = max(1, high // 2)
        steps = [f"{percent(costs.columns[one - 1])} with {one}" for one in sorted({few, high, count} - {count})]
        notes.append(
            f"With {high} quasi-identifier{'s' if high > 1 else ''} or more the loss is high: "
            + ", ".join([*steps, f"{percent(costs.alone)} of what the columns tell with all {count}"])
            + f" ({tried}; a larger table loses less). Coarser values, or fewer columns, cost less."
        )
    if costs.policy > DEAR * costs.alone:
        dear = ", ".join(
            f"'{name}' {_times(loss, costs.alone)}"
            for name, loss in sorted(costs.rules.items(), key=lambda one: -one[1])
            if loss > costs.alone
        )
        times = _times(costs.policy, costs.alone)
        notes.append(
            f"The rules for sensitive columns are dear: {percent(costs.policy)} is lost with them, {percent(costs.alone)} with k "
            f"alone, {times} as much ({tried}). Each by itself: {dear}. Leave out what may be known."
        )
    return notes


def _times(loss: float, alone: float) -> str:
    """How many times as much; k alone may lose nothing at all."""
    return f"{loss / alone:.1f} times" if alone else "infinitely many times"
