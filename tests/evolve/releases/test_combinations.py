"""m-invariance with several sensitive attributes and with columns published as they are: what is promised, read off the releases.

The intruder of `tests/reference/intruder.py` knows everybody's class in every release and shares no code with the guard.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.evolve.store.registry import make, people
from tests.reference.intruder import Worlds, releases_of

import shoal
from shoal.configuration import read_schema
from shoal.errors import InfeasibleError, UnsupportedError
from shoal.evolve.releases.guards import Plan, Shown, Table, plan_release
from shoal.evolve.releases.history import audit_members, rows_followed
from shoal.policy import Policy
from shoal.schema import Schema

ILLS, JOBS = [f"ill {i}" for i in range(9)], [f"job {i}" for i in range(7)]
QUASI = {"age": {"role": "quasi", "domain": [0, 100]}, "zip": {"role": "quasi", "domain": [0, 60]}}
SECRETS = {"ill": {"role": "sensitive"}, "job": {"role": "sensitive"}}
TWO = read_schema({**QUASI, **SECRETS})
NOTED = read_schema({**QUASI, **SECRETS, "note": {"role": "other"}})
ONE_NOTED = read_schema({**QUASI, "ill": {"role": "sensitive"}, "note": {"role": "other"}})
COLUMNS = {"age": pl.Int64, "zip": pl.Int64, "ill": pl.String, "job": pl.String, "note": pl.Int64}


def policy(k: int = 2) -> Policy:
    return Policy((shoal.KAnonymity(k),))


def table(people: dict[int, tuple[Any, ...]], schema: Schema) -> Table:
    records = sorted(people)
    frame = pl.DataFrame([people[record] for record in records], schema=COLUMNS, orient="row")
    return Table(np.array(records), frame.select(list(schema.attributes)), np.zeros(len(records), dtype=np.int64))


def history(seed: int, schema: Schema, notes: int, releases: int = 4) -> list[Table]:
    """People who come, go, come back, move and are corrected in one column or another."""
    random = np.random.default_rng(seed)
    present: dict[int, tuple[Any, ...]] = {}
    away: dict[int, tuple[Any, ...]] = {}
    tables, coming = [], 0
    for step in range(releases):
        for record in list(present):
            chance = random.random()
            age, place, ill, job, note = present[record]
            if chance < 0.2:
                away[record] = present.pop(record)
            elif chance < 0.25:
                present[record] = (int(random.integers(100)), place, ill, job, note)
            elif chance < 0.3:
                present[record] = (age, place, ILLS[random.integers(len(ILLS))], job, note)
            elif chance < 0.33:
                present[record] = (age, place, ill, job, int(random.integers(notes)))
        for record in list(away):
            if random.random() < 0.3:
                present[record] = away.pop(record)
        for _ in range(14 if step == 0 else int(random.integers(0, 5))):
            there = int(random.integers(100)), int(random.integers(60))
            secret = (
                (ILLS[coming % 9], JOBS[3 * coming % 7])
                if step == 0
                else (ILLS[random.integers(9)], JOBS[random.integers(7)])
            )
            present[coming] = (*there, *secret, int(random.integers(notes)))
            coming += 1
        tables.append(table(present, schema))
    return tables


def publish(tables: list[Table], schema: Schema, m: int) -> list[Plan]:
    plans: list[Plan] = []
    for now in tables:
        earlier = [plan.shown for plan in plans]
        before = earlier.pop() if earlier else None
        plans.append(plan_release("m-invariance", now, before, schema, policy(m), m=m, earlier=earlier))
    return plans


def rows_of(shown: Shown, names: list[str]) -> list[tuple[int, int, Any]]:
    values = shown.frame.select(names).rows()
    return list(zip(shown.records.tolist(), shown.classes.tolist(), values, strict=True))


@pytest.mark.parametrize(
    ("schema", "notes"), [(TWO, 1), (NOTED, 3), (NOTED, 10**6), (ONE_NOTED, 3), (ONE_NOTED, 10**6)]
)
@pytest.mark.parametrize("seed", range(2))
def test_everybody_keeps_the_same_combinations(schema: Schema, notes: int, seed: int) -> None:
    m, names = 2 + seed % 2, [*schema.named("sensitive"), *schema.named("other")]
    tables = history(seed, schema, notes)
    plans = publish(tables, schema, m)
    signature: dict[int, frozenset[Any]] = {}
    for now, plan in zip(tables, plans, strict=True):
        groups: dict[int, list[tuple[int, Any]]] = {}
        for record, number, values in rows_of(plan.shown, names):
            groups.setdefault(number, []).append((record, values))
        for rows in groups.values():
            combinations = frozenset(values for _, values in rows)
            assert len(combinations) == len(rows) >= m
            for column in range(len(schema.named("sensitive"))):
                assert len({values[column] for values in combinations}) == len(rows)
            for record, _ in rows:
                assert record < 0 or signature.setdefault(record, combinations) == combinations
        assert plan.counterfeits == sum(record < 0 for rows in groups.values() for record, _ in rows)
        shown = set(plan.shown.records.tolist())
        missing = set(now.records.tolist()) - shown
        assert len(missing) == plan.waiting["insertions"] and not missing & set(plans[0].shown.records.tolist()) - {
            record for record in missing if record in signature
        }
    # Somebody who keeps all releases, by attribute and by whole rows.
    for wanted in [[name] for name in schema.named("sensitive")] + ([names] if notes <= 3 else []):
        worlds = Worlds(releases_of([rows_of(plan.shown, wanted) for plan in plans]))
        for path, members in worlds.groups.items():
            if any(life[0] >= 0 and life[1] >= 0 for life in members):
                assert len(worlds.possible(path)) >= m
    found = audit_members([plan.shown for plan in plans], schema, policy(m))
    assert found.safe, found.findings


def test_what_leaves_is_replaced_by_its_combination() -> None:
    """With a column in which everybody differs, classes stay what they were, and a counterfeit has the row of who left."""
    first = {i: (10 * i, 0, ILLS[i % 4], JOBS[i % 5], 1000 + i) for i in range(8)}
    then = {i: row for i, row in first.items() if i != 3}
    one, two = publish([table(first, NOTED), table(then, NOTED)], NOTED, 2)
    assert sorted(one.shown.frame["note"]) == sorted(two.shown.frame["note"])
    fake = two.shown.frame.filter(pl.Series(two.shown.records < 0)).row(0, named=True)
    assert (fake["note"], fake["ill"], fake["job"]) == (1003, ILLS[3], JOBS[3])
    assert fake["age"] != 30 and two.counterfeits == 1
    assert not audit_members([one.shown, two.shown], NOTED, policy()).exposed


def test_without_it_such_a_column_gives_the_row_away() -> None:
    """The same people under no guard: the row with a note of its own is followed to the two who are in both classes."""
    people = {i: (10 * i, 0, ILLS[i % 4], JOBS[i % 5], 1000 + i) for i in range(8)}
    now = table(people, NOTED)
    older = Shown(now.records, np.array([0, 0, 0, 0, 1, 1, 1, 1]), now.frame)
    newer = Shown(now.records, np.array([0, 0, 1, 1, 0, 0, 1, 1]), now.frame)
    found = rows_followed(older, newer, (1, 2), NOTED, policy(3))
    assert len(found) == 8 and "belongs to one of 2 persons" in found[0].sentence


def test_a_correction_waits() -> None:
    """In whatever column: any other signature would say what remained the same."""
    people = {i: (10 * i, 0, ILLS[i % 4], JOBS[i % 5], 7) for i in range(8)}
    for corrected in ((30, 0, "ill 8", JOBS[3], 7), (30, 0, ILLS[3], "job 6", 7), (30, 0, ILLS[3], JOBS[3], 8)):
        plan = publish([table(people, NOTED), table({**people, 3: corrected}, NOTED)], NOTED, 2)[1]
        at = plan.shown.records.tolist().index(3)
        assert plan.shown.frame.row(at) == people[3] and plan.waiting["updates"] == 1
    moved = publish([table(people, NOTED), table({**people, 3: (99, 0, *people[3][2:])}, NOTED)], NOTED, 2)[1]
    assert moved.shown.frame["age"][moved.shown.records.tolist().index(3)] == 99 and not moved.waiting["updates"]


def test_a_value_that_is_too_frequent_is_named_with_its_attribute() -> None:
    people = {i: (10 * i, 0, ILLS[i], "judge" if i < 6 else "cook", 7) for i in range(8)}
    with pytest.raises(InfeasibleError, match=r"6 have 'judge' as job; use guard"):
        publish([table(people, TWO)], TWO, 2)


def test_newcomers_that_clash_get_counterfeits_or_wait() -> None:
    """Two who come with the same illness and other jobs than everybody's cannot be a class."""
    people = {i: (10 * i, 0, ILLS[i % 4], JOBS[i % 5], 7) for i in range(8)}
    later = {**people, 8: (50, 0, "ill 7", "job 5", 7), 9: (51, 0, "ill 7", "job 6", 7)}
    first, plan = publish([table(people, TWO), table(later, TWO)], TWO, 2)
    assert sorted(plan.shown.records[plan.shown.records >= 0].tolist()) == list(range(10))
    assert (plan.counterfeits, plan.waiting["insertions"]) == (2, 0)
    now = table(later, TWO)
    held = plan_release("m-invariance", now, first.shown, TWO, policy(), m=2, hold_back=True)
    assert (held.counterfeits, held.waiting["insertions"]) == (0, 2)


def test_values_that_look_alike_are_one_value() -> None:
    """A reader takes 'Flu' and 'flu ' for one illness, so they are never the two values of a class."""
    schema = read_schema({**QUASI, "ill": {"role": "sensitive"}})
    ills = ["flu", "Flu", "cold", "flu ", "ulcer", "gout"]
    people = {i: (10 * i, 0, ill, "", 0) for i, ill in enumerate(ills)}
    plan = publish([table(people, schema)], schema, 2)[0]
    for number in np.unique(plan.shown.classes):
        values = plan.shown.frame["ill"].filter(pl.Series(plan.shown.classes == number))
        assert values.str.strip_chars().str.to_lowercase().n_unique() == len(values) >= 2


def test_values_count_as_they_are_published() -> None:
    """1,190 and 1,210 are both published as 1,200."""
    schema = read_schema({**QUASI, "note": {"role": "sensitive", "kind": "number", "round": 100}})
    people = {i: (10 * i, 0, "", "", note) for i, note in enumerate([1190, 1210, 500, 700, 1205, 900])}
    plan = publish([table(people, schema)], schema, 2)[0]
    for number in np.unique(plan.shown.classes):
        values = plan.shown.frame["note"].filter(pl.Series(plan.shown.classes == number)).to_numpy()
        assert len(set(np.round(values / 100))) == len(values) >= 2


def test_it_does_not_go_on_from_a_class_that_agrees_in_one_attribute() -> None:
    people = {i: (10 * i, 0, ILLS[i], JOBS[i // 2], 7) for i in range(4)}
    now = table(people, TWO)
    with pytest.raises(UnsupportedError, match="was not made with m-invariance"):
        plan_release("m-invariance", now, Shown(now.records, np.zeros(4, np.int64), now.frame), TWO, policy(), m=2)


def test_a_store_with_a_column_that_is_published_as_it_is(tmp_path: Any) -> None:
    store = make(f"sqlite:///{tmp_path}/registry.db", guard="m-invariance", m=3)
    store.release()
    store.apply(insert=people(60, 20), delete=list(range(0, 30, 2)))
    store.release(tmp_path / "two.csv")
    store.apply(insert=people(0, 1), update=people(31, 2, seed=5))
    made = store.release()
    assert made.waiting["updates"] == 2 and made.counterfeits > 0
    assert store.audit().safe
    store.check().require()
