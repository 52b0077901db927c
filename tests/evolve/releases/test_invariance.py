"""m-invariance: the example of docs/evolving-data.md, the naive twin on random sequences, and the promise itself checked from outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.reference import invariance as reference

import shoal
from shoal.configuration import read_schema
from shoal.errors import ConfigError, InfeasibleError, UnsupportedError
from shoal.evolve.releases import blocks
from shoal.evolve.releases.buckets import next_round
from shoal.evolve.releases.guards import Plan, Shown, Table, plan_release
from shoal.evolve.releases.history import audit_members
from shoal.policy import Policy

PEOPLE = read_schema(
    {
        "name": {"role": "identifier"},
        "age": {"role": "quasi", "domain": [0, 100]},
        "zip": {"role": "quasi", "domain": [0, 60]},
        "ill": {"role": "sensitive"},
    }
)
RANGES = [100.0, 60.0]


def policy(k: int = 2) -> Policy:
    return Policy((shoal.KAnonymity(k),))


def table(records: list[int], rows: list[tuple[Any, ...]]) -> Table:
    frame = pl.DataFrame(
        rows, schema={"name": pl.String, "age": pl.Int64, "zip": pl.Int64, "ill": pl.String}, orient="row"
    )
    return Table(np.array(records), frame, np.zeros(len(records), dtype=np.int64))


def release(now: Table, before: Shown | None, m: int = 2, **more: Any) -> Plan:
    return plan_release("m-invariance", now, before, PEOPLE, policy(), m=m, **more)


def classes_of(plan: Plan) -> list[list[tuple[str | None, str]]]:
    rows = zip(plan.shown.classes.tolist(), plan.shown.frame["name"], plan.shown.frame["ill"], strict=True)
    found: dict[int, list[tuple[str | None, str]]] = {}
    for number, name, ill in rows:
        found.setdefault(number, []).append((name, ill))
    return [sorted(rows, key=str) for rows in found.values()]


BOB, ALICE = ("Bob", 21, 12, "dyspepsia"), ("Alice", 22, 14, "bronchitis")
ANDY, DAVID = ("Andy", 24, 18, "flu"), ("David", 23, 25, "gastritis")
EMILY, LINDA = ("Emily", 25, 15, "bronchitis"), ("Linda", 58, 50, "gastritis")


def test_the_example() -> None:
    """Alice leaves, Emily takes her place in Bob's bucket, and Linda gets one counterfeit."""
    first = Shown(np.array([0, 1, 2, 3]), np.array([0, 0, 1, 1]), table([0, 1, 2, 3], [BOB, ALICE, ANDY, DAVID]).frame)
    plan = release(table([0, 2, 3, 4, 5], [BOB, ANDY, DAVID, EMILY, LINDA]), first)
    found = classes_of(plan)
    assert [("Bob", "dyspepsia"), ("Emily", "bronchitis")] in found
    others = [rows for rows in found if ("Bob", "dyspepsia") not in rows]
    assert [sorted(ill for _, ill in rows) for rows in others] == [["flu", "gastritis"]] * 2
    assert [(plan.counterfeits, sum(plan.counterfeits_by_class.values()))] == [(1, 1)]
    fake = plan.shown.frame.filter(pl.Series(plan.shown.records < 0)).row(0, named=True)
    assert (fake["name"], fake["ill"]) == (None, "flu")
    # A counterfeit looks like a real person of its class and widens no region.
    number = next(iter(plan.counterfeits_by_class))
    assert plan.shown.classes.min() == 2 and number >= 2
    with_fake = plan.shown.frame.filter(pl.Series(plan.shown.classes == number))
    assert with_fake["age"].n_unique() == 1
    assert not audit_members([first, plan.shown], PEOPLE, policy()).exposed


def test_too_frequent_values_at_the_first_release() -> None:
    rows = [("a", 1, 1, "flu"), ("b", 2, 2, "flu"), ("c", 3, 3, "cold")]
    with pytest.raises(
        InfeasibleError, match=r"allows no value more than 1 of 3 records .* 2 have 'flu' as ill; use guard"
    ) as problem:
        release(table([0, 1, 2], rows), None)
    assert problem.value.witness == "flu"
    more = [("d", 4, 4, "cold"), ("e", 5, 5, "ulcer")]
    with pytest.raises(InfeasibleError, match=r"no value more than 1 of 5 .* have 'cold' as ill; take m = 2 or less"):
        release(table([0, 1, 2, 3, 4], rows + more), None, m=4)
    held = release(table([0, 1, 2], rows), None, hold_back=True)
    assert (sorted(held.shown.records.tolist()), held.waiting["insertions"], held.counterfeits) == ([0, 2], 1, 0)


def test_what_it_cannot_do() -> None:
    now = table([0, 1], [BOB, ALICE])
    with pytest.raises(ConfigError, match="at least 3"):
        plan_release("m-invariance", now, None, PEOPLE, policy(3), m=2)
    with pytest.raises(ConfigError, match="protects sensitive attributes and the table has none"):
        plan_release("m-invariance", now, None, read_schema({**PEOPLE.attributes, "ill": {"role": "quasi"}}), policy())
    two = table([2, 3], [("c", 20, 20, "flu"), ("d", 20, 20, "flu")])
    first = Shown(now.records, np.array([0, 0]), now.frame.with_columns(ill=pl.Series(["flu", "cold"])))
    with pytest.raises(InfeasibleError, match="needs 3 different sensitive values and the table has 2"):
        plan_release("m-invariance", two, first, PEOPLE, policy(), m=3)
    strict = shoal.KAnonymity(2) & shoal.TCloseness(0.3, "ill")
    rows = [(f"p{i}", i, i, ill) for i, ill in enumerate(["flu", "flu", "cold", "cold", "ulcer", "ulcer"])]
    with pytest.raises(InfeasibleError, match=r"3 of 3 m-invariant classes do not satisfy t_closeness\(t = 0.3"):
        plan_release("m-invariance", table(list(range(6)), rows), None, PEOPLE, strict, m=2)


def test_it_does_not_go_on_from_another_guard() -> None:
    """{a, a, b} published as one class and then as {a, b} and {a, counterfeits}: the third would be told apart."""
    rows = [("p", 1, 1, "flu"), ("q", 2, 2, "flu"), ("r", 3, 3, "cold"), ("s", 4, 4, "ulcer")]
    now = table([0, 1, 2, 3], rows)
    with pytest.raises(UnsupportedError, match="was not made with m-invariance"):
        release(now, Shown(now.records, np.array([0, 0, 0, 0]), now.frame))


def test_a_corrected_value() -> None:
    """Inside the signature it is shown; outside it moves to m values that are all new; with too few of these it waits."""
    first = Shown(np.array([0, 1]), np.array([0, 0]), table([0, 1], [BOB, ALICE]).frame)
    swapped = release(table([0, 1], [("Bob", 21, 12, "bronchitis"), ALICE]), first)
    assert [sorted({ill for _, ill in rows}) for rows in classes_of(swapped)] == [["bronchitis", "dyspepsia"]] * 2
    corrected = ("Bob", 30, 12, "flu")
    alone = release(table([0, 1], [corrected, ALICE]), first)
    assert classes_of(alone) == [[("Alice", "bronchitis"), ("Bob", "dyspepsia")]]
    assert (alone.waiting["updates"], alone.shown.frame.filter(name="Bob")["age"].item()) == (1, 30)
    moved = release(table([0, 1, 2, 3], [corrected, ALICE, ANDY, DAVID]), alone.shown)
    bob = next(rows for rows in classes_of(moved) if ("Bob", "flu") in rows)
    assert ({ill for _, ill in bob}, moved.waiting["updates"]) == ({"flu", "gastritis"}, 0)


def test_who_knows_the_rule_cannot_tell_the_new_value() -> None:
    """Every value of the block leads to the same signature, so seeing it tells no more than the block."""
    rows = [(f"p{i}", i, i, f"ill {i % 8}") for i in range(16)]
    first = Shown(np.array([0, 1]), np.array([0, 0]), table([0, 1], rows[:2]).frame)
    seen: dict[frozenset[str], set[str]] = {}
    for value in [f"ill {i}" for i in range(2, 8)]:
        plan = release(table(list(range(16)), [("p0", 0, 0, value), *rows[1:]]), first, m=2)
        signature = frozenset(ill for _, ill in next(r for r in classes_of(plan) if ("p0", value) in r))
        seen.setdefault(signature, set()).add(value)
    assert all(signature == values and len(values) >= 2 for signature, values in seen.items())


def test_who_is_back_has_the_signature_of_before() -> None:
    everybody = table([0, 1, 2, 3], [BOB, ALICE, ANDY, DAVID])
    first = Shown(everybody.records, np.array([0, 0, 1, 1]), everybody.frame)
    second = release(table([1, 2, 3], [ALICE, ANDY, DAVID]), first)
    new = ("Carl", 20, 12, "gastritis"), ("Dora", 20, 12, "flu")
    now = table([0, 1, 2, 3, 4, 5], [BOB, ALICE, ANDY, DAVID, *new])
    third = release(now, second.shown, earlier=[first])
    bob = next(rows for rows in classes_of(third) if ("Bob", "dyspepsia") in rows)
    assert {ill for _, ill in bob} == {"dyspepsia", "bronchitis"}
    assert third.counterfeits == 0
    assert not audit_members([first, second.shown, third.shown], PEOPLE, policy()).exposed


def test_a_larger_m_widens_signatures() -> None:
    first = Shown(np.array([0, 1, 2, 3]), np.array([0, 0, 1, 1]), table([0, 1, 2, 3], [BOB, ALICE, ANDY, DAVID]).frame)
    plan = release(table([0, 1, 2, 3], [BOB, ALICE, ANDY, DAVID]), first, m=3)
    assert all(len({ill for _, ill in rows}) == len(rows) >= 3 for rows in classes_of(plan))


@pytest.mark.parametrize("seed", range(40))
def test_a_round_leaves_the_rest_balanced(seed: int) -> None:
    """The closed form of α equals the search, and an eligible stock always has a round."""
    random = np.random.default_rng(seed)
    m = int(random.integers(2, 6))
    counts = {v: int(c) for v, c in enumerate(random.integers(1, 12, int(random.integers(m, 12))))}
    if m * max(counts.values()) > sum(counts.values()):
        counts = dict.fromkeys(counts, 3)
    twin = reference.Publisher([], [], [], m)
    while counts:
        values, alpha = next_round(counts, m)
        assert (len(values), alpha) == twin._round(sorted(counts.values(), reverse=True))
        counts = {v: c - alpha * (v in values) for v, c in counts.items() if c > alpha * (v in values)}


def random_sequence(seed: int, m: int, releases: int = 6) -> list[Table]:
    """Tables of people who come, go, move and are corrected; the first one is eligible."""
    random = np.random.default_rng(seed)
    ills = [f"ill {i}" for i in range(3 * m)]
    people: dict[int, tuple[Any, ...]] = {}
    tables, coming = [], 0
    for step in range(releases):
        for record in list(people):
            chance = random.random()
            name, age, place, ill = people[record]
            if chance < 0.15:
                del people[record]
            elif chance < 0.2:
                people[record] = (name, int(random.integers(0, 100)), place, ill)
            elif chance < 0.25:
                people[record] = (name, age, place, ills[random.integers(len(ills))])
        for i in range(9 * m if step == 0 else int(random.integers(0, 3 * m))):
            ill = ills[i % len(ills)] if step == 0 else ills[min(int(random.geometric(0.3)), len(ills)) - 1]
            people[coming] = (f"p{coming}", int(random.integers(0, 100)), int(random.integers(0, 60)), ill)
            coming += 1
        records = sorted(people)
        tables.append(table(records, [people[record] for record in records]))
    return tables


@pytest.mark.parametrize("seed", range(12))
def test_twin(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    m = (2, 3, 4)[seed % 3]
    cut: list[list[int]] = []

    def noted(*given: Any) -> list[list[int]]:
        cut[:] = searched(*given)
        return cut

    searched = blocks.eligible_blocks
    monkeypatch.setattr(blocks, "eligible_blocks", noted)
    before: Shown | None = None
    for now in random_sequence(seed, m):
        place = {int(record): row for row, record in enumerate(now.records)}
        signatures: dict[int, frozenset[str]] = {}
        old: dict[int, str] = {}
        domain = set(now.frame["ill"]) | (set() if before is None else set(before.frame["ill"]))
        if before is not None:
            for number in np.unique(before.classes):
                inside = before.classes == number
                values = frozenset(before.frame["ill"].filter(pl.Series(inside)))
                signatures |= {place[r]: values for r in before.records[inside].tolist() if r in place}
            pairs = zip(before.records.tolist(), before.frame["ill"], strict=True)
            old = {place[record]: ill for record, ill in pairs if record in place}
        points = [(float(a), float(z)) for a, z in now.frame.select("age", "zip").rows()]
        # The data domains declare these ranges.
        twin = reference.Publisher(points, now.frame["ill"].to_list(), RANGES, m)
        plan = release(now, before, m)
        expected = twin.publish(signatures, old, sorted(domain), cut)
        found: dict[int, list[tuple[int, str]]] = {}
        rows = zip(plan.shown.classes.tolist(), plan.shown.records.tolist(), plan.shown.frame["ill"], strict=True)
        for number, record, ill in rows:
            found.setdefault(number, []).append((place.get(record, -1), ill))
        flat = [sorted((max(row, -1), ill) for row, ill in rows) for rows in expected]
        assert sorted(flat) == sorted(sorted(rows) for rows in found.values())
        before = plan.shown


@pytest.mark.parametrize("seed", range(6))
def test_everybody_keeps_a_signature(seed: int) -> None:
    """m-uniqueness and signatures, read from the releases by nothing but Python; and no attack finds anything."""
    m = 2 + seed % 3
    tables, shown = random_sequence(100 + seed, m, 10), []
    signature: dict[int, set[str]] = {}
    value: dict[int, str] = {}
    for now in tables:
        plan = release(now, shown[-1] if shown else None, m)
        groups: dict[int, list[tuple[int, str]]] = {}
        rows = zip(plan.shown.classes.tolist(), plan.shown.records.tolist(), plan.shown.frame["ill"], strict=True)
        for number, record, ill in rows:
            groups.setdefault(number, []).append((record, ill))
        present: dict[int, set[str]] = {}
        for rows_of in groups.values():
            values = [ill for _, ill in rows_of]
            assert len(set(values)) == len(values) >= m
            assert any(record >= 0 for record, _ in rows_of)
            for record, ill in rows_of:
                if record >= 0:
                    present[record] = set(values)
                    past = signature.get(record, set(values))
                    assert past == set(values) or (value[record] != ill and len(set(values) - past) >= m)
                    value[record] = ill
        assert sorted(present) == now.records.tolist()
        assert len(np.unique(plan.shown.records)) == len(plan.shown.records)
        # The order of the rows says nothing: classes one after the other, values in alphabetical order.
        lines = list(zip(plan.shown.classes.tolist(), plan.shown.frame["ill"], strict=True))
        assert lines == sorted(lines)
        assert plan.counterfeits == sum(record < 0 for rows_of in groups.values() for record, _ in rows_of)
        signature = present
        shown.append(plan.shown)
    found = audit_members(shown, PEOPLE, policy(m))
    assert not found.exposed, found.findings
    assert found.facts["ill"]["fewest_values"] >= m
