"""Batching: what waits and what is shown, single cases and random sequences with every kind of change and policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.algorithms import run as run_algorithm
from shoal.configuration import read_schema
from shoal.errors import ConfigError, InfeasibleError
from shoal.evolve.releases.guards import Plan, Shown, Table, plan_release
from shoal.evolve.releases.history import audit_members
from shoal.microdata import Microdata
from shoal.policy import Policy

SCHEMA = read_schema(
    {
        "name": {"role": "identifier"},
        "age": {"role": "quasi", "domain": [0, 100]},
        "ill": {"role": "sensitive"},
        "cost": {"role": "other", "kind": "number"},
    }
)
TYPES = {"name": pl.String, "age": pl.Int64, "ill": pl.String, "cost": pl.Int64}
TWO = shoal.KAnonymity(2) & shoal.PSensitive(2, "ill")

Person = tuple[str, int, str, int]


def table(people: dict[int, Person], labels: list[int] | None = None) -> Table:
    records = sorted(people)
    frame = pl.DataFrame([people[r] for r in records], schema=TYPES, orient="row")
    return Table(np.array(records, dtype=np.int64), frame, np.array(labels or [0] * len(records), dtype=np.int64))


def people(*rows: tuple[int, int, str]) -> dict[int, Person]:
    return {record: (f"p{record}", age, ill, 10) for record, age, ill in rows}


START = people((0, 20, "flu"), (1, 22, "cold"), (2, 40, "flu"), (3, 41, "ulcer"), (4, 42, "cold"), (5, 43, "HIV"))
LABELS = [0, 0, 1, 1, 1, 1]
FIRST = Shown(table(START).records, np.array(LABELS), table(START).frame)


def batched(now: dict[int, Person], before: Shown = FIRST, policy: Policy = TWO, **more: Any) -> Plan:
    return plan_release("batching", table(now), before, SCHEMA, policy, **more)


def groups(plan: Plan) -> list[list[int]]:
    numbers = np.unique(plan.shown.classes)
    return [sorted(plan.shown.records[plan.shown.classes == number].tolist()) for number in numbers]


def test_the_first_release_and_no_guard_show_the_table() -> None:
    now = table(START, LABELS)
    for guard in ("none", "batching"):
        plan = plan_release(guard, now, None, SCHEMA, TWO)  # type: ignore[arg-type]
        assert plan.shown.records.tolist() == list(range(6))
        assert (plan.shown.classes.tolist(), plan.counterfeits) == (LABELS, 0)
        assert plan.waiting == {"insertions": 0, "deletions": 0, "updates": 0}
    bare = plan_release("none", table(people((0, 20, "flu")), [7]), FIRST, SCHEMA, TWO)
    assert (bare.shown.records.tolist(), bare.shown.classes.tolist()) == ([0], [7])


def test_bad_requests() -> None:
    with pytest.raises(ConfigError, match="did you mean 'batching'"):
        plan_release("batch", table(START), None, SCHEMA, TWO)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match='belongs to guard = "m-invariance"'):
        batched(START, m=2)


def test_nothing_changed() -> None:
    plan = batched(START)
    assert groups(plan) == [[0, 1], [2, 3, 4, 5]]
    assert plan.shown.classes.tolist() == LABELS
    assert plan.shown.frame.equals(FIRST.frame)


def test_one_new_record_waits_and_two_different_ones_do_not() -> None:
    one = batched({**START, **people((6, 30, "HIV"))})
    assert (groups(one), one.waiting["insertions"]) == ([[0, 1], [2, 3, 4, 5]], 1)
    alike = batched({**START, **people((6, 30, "HIV"), (7, 31, "HIV"))}, one.shown)
    assert alike.waiting["insertions"] == 2
    two = batched({**START, **people((6, 30, "HIV"), (7, 31, "HIV"), (8, 33, "flu"))}, alike.shown)
    assert (groups(two), two.waiting["insertions"]) == ([[0, 1], [2, 3, 4, 5], [6, 7, 8]], 0)
    assert np.unique(two.shown.classes).tolist() == [0, 1, 2]
    assert batched({**START, **people((6, 30, "HIV"), (7, 31, "flu"))}, next_class=40).shown.classes.max() == 40


def test_deleted_records_leave_together() -> None:
    left = {record: row for record, row in START.items() if record != 0}
    one = batched(left)
    assert (groups(one), one.waiting["deletions"]) == ([[0, 1], [2, 3, 4, 5]], 1)
    assert one.shown.frame.row(0) == START[0]
    both = batched({record: row for record, row in START.items() if record > 1}, one.shown)
    assert (groups(both), both.waiting["deletions"]) == ([[2, 3, 4, 5]], 0)
    # 2 and 4 differ, and so do 3 and 5: the class becomes two, of which one leaves.
    half = batched({record: START[record] for record in (0, 1, 3, 5)})
    assert (groups(half), half.shown.classes.tolist()) == ([[0, 1], [3, 5]], [0, 0, 2, 2])
    # 2 alone, or all but one, must stay.
    assert groups(batched({record: START[record] for record in (0, 1, 3, 4, 5)})) == groups(one)
    most = batched({record: START[record] for record in (0, 1, 3)})
    assert (groups(most), most.waiting["deletions"]) == ([[0, 1], [2, 3, 4, 5]], 3)


def test_other_quasi_identifiers_are_shown_at_once() -> None:
    moved = batched({**START, 0: ("renamed", 77, "flu", 10)})
    assert moved.shown.frame.row(0) == ("renamed", 77, "flu", 10)
    assert (groups(moved), moved.waiting["updates"]) == ([[0, 1], [2, 3, 4, 5]], 0)


@pytest.mark.parametrize("change", [("p2", 40, "cold", 10), ("p2", 99, "cold", 10), ("p2", 40, "flu", 11)])
def test_one_changed_value_waits(change: Person) -> None:
    plan = batched({**START, 2: change})
    assert plan.shown.frame.equals(FIRST.frame)
    assert (plan.waiting["updates"], plan.waiting["insertions"]) == (1, 0)


def test_changed_values_become_a_class_of_their_own() -> None:
    now = {**START, 2: ("p2", 40, "ulcer", 10), 4: ("p4", 42, "flu", 10)}
    plan = batched(now)
    assert groups(plan) == [[0, 1], [3, 5], [2, 4]]
    assert plan.waiting["updates"] == 0
    rows = dict(zip(plan.shown.records.tolist(), plan.shown.frame.rows(), strict=True))
    assert rows == now
    # New versions that are alike are no good class.
    alike = batched({**START, 2: ("p2", 40, "asthma", 10), 4: ("p4", 42, "asthma", 10)})
    assert (groups(alike), alike.waiting["updates"]) == ([[0, 1], [2, 3, 4, 5]], 2)
    # Nor are one with a new value and one with a new cost, whose old value would be in both classes.
    mixed = batched({**START, 2: ("p2", 40, "ulcer", 10), 4: ("p4", 42, "cold", 11)})
    assert (groups(mixed), mixed.waiting["updates"]) == ([[0, 1], [2, 3, 4, 5]], 2)


def test_the_last_of_a_class_with_a_new_value_may_go_elsewhere() -> None:
    now = {record: row for record, row in START.items() if record != 0}
    now[1] = ("p1", 22, "HIV", 10)
    alone = batched(now)
    assert (groups(alone), alone.waiting) == ([[2, 3, 4, 5]], {"insertions": 0, "deletions": 0, "updates": 1})
    joined = batched({**now, **people((6, 23, "flu"))}, alone.shown)
    assert (groups(joined), joined.waiting["insertions"]) == ([[2, 3, 4, 5], [1, 6]], 0)
    # With the same value and another cost it must stay: both classes would be known to have the value.
    now[1] = ("p1", 22, "cold", 99)
    kept = batched({**now, **people((6, 23, "flu"))})
    assert (groups(kept)[0], kept.waiting) == ([0, 1], {"insertions": 1, "deletions": 1, "updates": 1})
    assert kept.shown.frame.row(1) == START[1]


def test_who_is_back_is_shown_as_before_or_not_at_all() -> None:
    """A deletion that was published and then undone: in another class the values of both would be known to be possible."""
    without = {record: row for record, row in START.items() if record > 1}
    left = batched(without)
    assert groups(left) == [[2, 3, 4, 5]]
    newcomers = people((6, 21, "HIV"), (7, 23, "asthma"))
    one = batched({**without, 0: START[0], **newcomers}, left.shown, earlier=[FIRST])
    assert (groups(one), one.waiting["insertions"]) == ([[2, 3, 4, 5], [6, 7]], 1)
    both = batched({**START, **newcomers, 1: ("p1", 50, "cold", 10)}, one.shown, earlier=[FIRST, left.shown])
    assert (groups(both), both.waiting["insertions"]) == ([[2, 3, 4, 5], [6, 7], [0, 1]], 0)
    assert not audit_members([FIRST, left.shown, one.shown, both.shown], SCHEMA, TWO).exposed
    # With another cost the class is not what it was; with another illness it is another person to the releases.
    costly = batched({**START, **newcomers, 1: ("p1", 22, "cold", 99)}, one.shown, earlier=[FIRST, left.shown])
    assert (groups(costly), costly.waiting["insertions"]) == ([[2, 3, 4, 5], [6, 7]], 2)
    other = {**without, **newcomers, 0: ("p0", 20, "ulcer", 10), **people((8, 21, "flu"))}
    assert groups(batched(other, one.shown, earlier=[FIRST, left.shown])) == [[2, 3, 4, 5], [6, 7], [0, 8]]


def test_a_stricter_policy_merges_whole_classes() -> None:
    close = shoal.KAnonymity(2) & shoal.TCloseness(0.4, "ill")
    plan = batched(START, policy=close)
    data = Microdata.from_frame(plan.shown.frame, SCHEMA)
    rules = data.rules(close)
    assert all(rules.ok(np.flatnonzero(plan.shown.classes == number)) for number in np.unique(plan.shown.classes))
    alike = Shown(np.array([0, 1]), np.array([0, 0]), table(people((0, 20, "flu"), (1, 22, "flu"))).frame)
    with pytest.raises(InfeasibleError, match="not even as one class"):
        batched(
            people((0, 20, "flu"), (1, 22, "flu")),
            alike,
            shoal.KAnonymity(2) & shoal.TCloseness(0.1, "ill") & shoal.KAnonymity(3),
        )


POLICIES = [
    TWO,
    shoal.KAnonymity(4) & shoal.LDiversity(3, "ill"),
    shoal.KAnonymity(3) & shoal.TCloseness(0.5, "ill"),
    shoal.KAnonymity(3) & shoal.AlphaK(0.6, "ill"),
]


@pytest.mark.parametrize("which", range(len(POLICIES)))
@pytest.mark.parametrize("seed", range(3))
def test_cohorts(which: int, seed: int) -> None:
    """Whoever differ in their classes anywhere are in groups of k with the promised values; nobody is lost or doubled."""
    policy = POLICIES[which]
    k = policy.models[0].k  # type: ignore[attr-defined]
    random = np.random.default_rng(100 * which + seed)
    ills = ["flu", "cold", "ulcer", "HIV", "asthma"]
    now = people(*((i, int(random.integers(100)), ills[i % 5]) for i in range(30)))
    data = Microdata.from_frame(table(now).frame, SCHEMA)
    labels = run_algorithm("mondrian", data, data.rules(policy)).labels.tolist()
    plans = [plan_release("batching", table(now, labels), None, SCHEMA, policy)]
    coming = 30
    for _ in range(12):
        for record in list(now):
            name, age, ill, cost = now[record]
            chance = random.random()
            if chance < 0.25:
                del now[record]
            elif chance < 0.3:
                now[record] = (name, int(random.integers(100)), ill, cost)
            elif chance < 0.35:
                now[record] = (name, age, ills[random.integers(5)], cost)
            elif chance < 0.4:
                now[record] = (name, age, ill, cost + 1)
        for _ in range(int(random.integers(10))):
            now[coming] = (f"p{coming}", int(random.integers(100)), ills[int(random.integers(5))], 10)
            coming += 1
        plans.append(batched(dict(now), plans[-1].shown, policy))
        check_plan(plans[-1], plans[-2].shown, now, policy)
    # Versions of a record with different values are different persons to whom the releases are all there is.
    history: dict[tuple[int, str, int], list[int]] = {}
    run: dict[int, tuple[str, int]] = {}
    for t, plan in enumerate(plans):
        rows = zip(plan.shown.records.tolist(), plan.shown.classes.tolist(), plan.shown.frame["ill"], strict=True)
        for record, number, ill in rows:
            if run.get(record, ("", 0))[0] != ill:
                run[record] = (ill, t)
            history.setdefault((record, *run[record]), [-1] * len(plans))[t] = number
    cells: dict[tuple[int, ...], list[str]] = {}
    for (_, ill, _), path in history.items():
        cells.setdefault(tuple(path), []).append(ill)
    if which < 2:
        assert min(map(len, cells.values())) >= k
        assert min(len(set(values)) for values in cells.values()) >= (2, 3)[which]
    assert len(cells) > 3
    found = audit_members([plan.shown for plan in plans], SCHEMA, policy)
    assert not found.exposed, found.findings


def check_plan(plan: Plan, before: Shown, now: dict[int, Person], policy: Policy) -> None:
    shown = plan.shown
    rows = dict(zip(shown.records.tolist(), shown.frame.rows(), strict=True))
    assert len(rows) == len(shown.records) and (np.diff(shown.records) > 0).all()
    rules = Microdata.from_frame(shown.frame, SCHEMA).rules(policy)
    assert all(rules.ok(np.flatnonzero(shown.classes == number)) for number in np.unique(shown.classes))
    published = set(before.records.tolist())
    assert plan.waiting["deletions"] == len(rows.keys() - now.keys())
    stale = {record for record in rows.keys() & now.keys() if rows[record] != now[record]}
    missing = now.keys() - rows.keys()
    assert plan.waiting["updates"] == len(stale) + len(missing & published)
    assert plan.waiting["insertions"] == len(missing - published)
