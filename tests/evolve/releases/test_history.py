"""The audit: planted leaks are found and named, bounds are true in every possible world, and a guarded year shows nothing."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.releases import POLICY, SCHEMA, Weeks, publish, year

import shoal
from shoal.configuration import read_schema
from shoal.errors import InputError, VerificationError
from shoal.evolve.i3m.classes import Binding, Classes
from shoal.evolve.releases.deduction import Publication, deduce, steady
from shoal.evolve.releases.guards import Shown, Table, plan_release
from shoal.evolve.releases.history import Audit, audit, audit_members, costs, line, smallest_class
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.schema import Schema

AGE = read_schema({"age": {"role": "quasi", "domain": [0, 100]}, "ill": {"role": "sensitive"}})
K3 = Policy((shoal.KAnonymity(3),))
AGES = [20, 22, 24, 26, 40, 42, 44, 46]
ILLS = ["flu", "cold", "ulcer", "flu", "cold", "flu", "ulcer", "asthma"]


def shown(rows: dict[int, tuple[int, int, str | None]], schema: Schema = AGE) -> Shown:
    """From record → class, age, ill."""
    records = sorted(rows)
    frame = pl.DataFrame([rows[r][1:] for r in records], schema={"age": pl.Int64, "ill": pl.String}, orient="row")
    return Shown(np.array(records, dtype=np.int64), np.array([rows[r][0] for r in records], dtype=np.int64), frame)


def masked(release: Shown) -> pl.DataFrame:
    """The release as it is published: ages of a class as an interval, rows in no order."""
    lines = release.frame.with_columns(number=pl.Series(release.classes))
    low, high = pl.col("age").min().over("number"), pl.col("age").max().over("number")
    return lines.with_columns(age=pl.format("[{}, {}]", low, high)).drop("number").sort("age", "ill")


START = {i: (i // 4, age, ill) for i, (age, ill) in enumerate(zip(AGES, ILLS, strict=True))}


def both_audits(releases: list[Shown], policy: Policy = K3, **more: Any) -> tuple[Audit, Audit]:
    frames = [masked(release) for release in releases]
    return audit(frames, AGE, policy, shown=releases, **more), audit(frames, AGE, policy, **more)


def test_plain_i3m_gives_one_inserted_record_away() -> None:
    """Exactly this one record, with its class and its value, by who knows everybody and by who sees the tables only."""
    frame = pl.DataFrame({"age": [*AGES, 25], "ill": [*ILLS, "HIV"]})
    data = Microdata.from_frame(frame, AGE)
    binding = Binding(K3, data.sensitive)
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    classes = Classes(data.space("ncp"), data.codes[:8], labels, binding, binding.codes()[:8])
    first = plan_release("none", Table(classes.records, frame[:8], classes.labels), None, AGE, K3).shown
    classes.insert(data.codes[8:], binding.codes()[8:])
    second = plan_release("none", Table(classes.records, frame, classes.labels), first, AGE, K3).shown
    for found in both_audits([first, second]):
        assert found.exposed and len(found.found) == 1
        finding = found.found[0]
        assert (finding.attack, finding.release, finding.records, finding.values) == ("difference", 2, 1, ("HIV",))
        assert (
            "Comparing releases 1 and 2 gives away that the 1 record that joined the class (age = [20, 26]) in release 2 has ill = HIV."
            in found.findings[0]
        )
        with pytest.raises(VerificationError, match=r"has ill = HIV\. Nothing was released; use guard = \"batching\""):
            found.require()
        assert found.to_dict()["findings"][0]["values"] == ("HIV",)
    batched = plan_release("batching", Table(classes.records, frame, classes.labels), first, AGE, K3)
    assert batched.waiting["insertions"] == 1
    for found in both_audits([first, batched.shown]):
        assert found.require() is found


def test_one_deletion() -> None:
    second = {record: row for record, row in START.items() if record != 7}
    for found in both_audits([shown(START), shown(second)]):
        assert [(f.attack, f.release, f.values) for f in found.found] == [("difference", 2, ("asthma",))]
        assert "that left the class (age = [40, 4" in found.findings[0]
        assert "after release 1 has ill = asthma." in found.findings[0]


def test_one_corrected_value() -> None:
    second = {**START, 0: (0, 20, "HIV")}
    exact, seen = both_audits([shown(START), shown(second)])
    assert sorted(f.values for f in exact.found) == [("HIV",), ("flu",)]
    assert all("that changed in the class (age = [20, 26]) in release" in sentence for sentence in exact.findings)
    assert sorted(f.values for f in seen.found) == [("HIV",), ("flu",)]


def test_a_split_that_leaves_one_value_in_common() -> None:
    """The classes of one person have one value in common, in no matter what else happens."""
    first = shown({0: (0, 20, "dyspepsia"), 1: (0, 22, "bronchitis"), 2: (1, 40, "flu"), 3: (1, 42, "gastritis")})
    second = shown({0: (2, 20, "dyspepsia"), 3: (2, 42, "gastritis"), 1: (3, 22, "bronchitis"), 2: (3, 40, "flu")})
    two = Policy((shoal.KAnonymity(2),))
    found = audit_members([first, second], AGE, two)
    assert sorted(f.values for f in found.found) == [("bronchitis",), ("dyspepsia",), ("flu",), ("gastritis",)]
    assert {(f.attack, f.records, f.release) for f in found.found} == {("intersection", 1, 2)}
    assert "that stayed in the class (age = [20, 42]) in release 2 has ill = dyspepsia" in " ".join(found.findings)
    assert found.facts["ill"] == {"fewest_values": 1.0, "mean_exposure": 1.0, "share_with_one_value": 1.0}


def test_two_good_changes_that_give_one_record_away_together() -> None:
    """Three join a class, and next time two of them and an old one leave it: each change is good, the two are not."""
    five = {i: (0, 20 + i, ill) for i, ill in enumerate(["flu", "cold", "ulcer", "flu", "HIV"])}
    joined = {**five, **{5 + i: (0, 30 + i, ill) for i, ill in enumerate(["flu", "cold", "asthma"])}}
    left = {record: row for record, row in joined.items() if record not in (5, 6, 4)}
    releases = [shown(five), shown(joined), shown(left)]
    assert not audit_members(releases[:2], AGE, K3).exposed
    assert not audit_members(releases[1:], AGE, K3).exposed
    found = audit_members(releases, AGE, K3)
    assert {f.values for f in found.found if f.records == 1} == {("asthma",), ("HIV",)}


def test_only_what_is_new() -> None:
    second = {**START, 8: (0, 25, "HIV")}
    third = {**second, 9: (1, 45, "asthma")}
    releases = [shown(START), shown(second), shown(third)]
    for found in both_audits(releases):
        assert sorted(f.values for f in found.found) == [("HIV",), ("asthma",)]
    for found in both_audits(releases, newest_only=True):
        assert [f.values for f in found.found] == [("asthma",)]
        assert found.found[0].release == 3
    for found in both_audits([*releases, shown(third)], newest_only=True):
        assert not found.exposed


def test_promises_of_the_policy() -> None:
    """A policy with p = 3 is broken by releases that leave two values, which k alone allows."""
    six = {i: (0, 20 + i, ill) for i, ill in enumerate(["flu", "cold", "ulcer"] * 2)}
    more = {**six, **{6 + i: (0, 30 + i, ill) for i, ill in enumerate(["flu", "cold", "cold"])}}
    diverse = shoal.KAnonymity(3) & shoal.PSensitive(3, "ill")
    assert (smallest_class(diverse), smallest_class(shoal.Policy((shoal.PSensitive(3),)))) == (3, 2)
    assert not audit_members([shown(six), shown(more)], AGE, K3).exposed
    found = audit_members([shown(six), shown(more)], AGE, diverse)
    assert [(f.values, f.records) for f in found.found] == [(("cold", "flu"), 3)]
    alike = {**six, **{6 + i: (0, 30 + i, "flu") for i in range(3)}}
    for audited in both_audits([shown(six), shown(alike)]):
        assert [f.records for f in audited.found] == [3]


ILL = {
    "age": {"role": "quasi", "kind": "number"},
    "ill": {
        "role": "sensitive",
        "categories": {"secret": ["HIV", "cancer"], "plain": ["flu", "cold"]},
        "taxonomy": {
            "parents": {"HIV": "grave", "cancer": "grave", "flu": "mild", "cold": "mild", "grave": "*", "mild": "*"}
        },
        "protect": ["grave", "mild"],
    },
}
PAY = {"age": {"role": "quasi", "kind": "number"}, "ill": {"role": "sensitive", "kind": "number"}}


@pytest.mark.parametrize(
    ("policy", "schema", "first", "joining", "harmless"),
    [
        # Two values stay possible, and both are of one category: p = 2 values were promised, and p = 2 categories.
        (shoal.PPlusSensitive(2), ILL, ["HIV", "flu"] * 3, ["HIV", "cancer", "HIV"], ["HIV", "flu", "cold"]),
        (shoal.ExtendedPSensitive(2), ILL, ["HIV", "flu"] * 3, ["flu", "cold", "flu"], ["HIV", "flu", "cold"]),
        (
            shoal.LDiversity(2.5, variant="entropy"),
            ILL,
            ["HIV", "flu", "cold"] * 2,
            ["HIV", "flu", "flu"],
            ["HIV", "flu", "cold"],
        ),
        (shoal.AlphaK(0.6), ILL, ["HIV", "flu", "cold"] * 2, ["HIV", "HIV", "flu"], ["HIV", "flu", "cold"]),
        (shoal.KE(20.0), PAY, ["10", "20", "40"] * 2, ["10", "20", "20"], ["10", "20", "30"]),
        (
            shoal.TCloseness(0.3, distance="equal"),
            ILL,
            ["HIV", "flu", "cold"] * 4,
            ["HIV", "HIV", "HIV", "flu"],
            ["HIV", "flu", "cold", "HIV"],
        ),
        (
            shoal.BetaLikeness(0.7),
            ILL,
            ["HIV", "flu", "cold"] * 4,
            ["HIV", "HIV", "HIV", "flu"],
            ["HIV", "flu", "cold", "HIV"],
        ),
        (
            shoal.DeltaDisclosure(0.5),
            ILL,
            ["HIV", "flu", "cold"] * 4,
            ["HIV", "HIV", "HIV", "flu"],
            ["HIV", "flu", "cold", "HIV"],
        ),
        (
            shoal.DeltaDisclosure(2.0, absent="refused"),
            ILL,
            ["HIV", "flu", "cold"] * 2,
            ["HIV", "flu", "flu"],
            ["HIV", "flu", "cold"],
        ),
        (shoal.KPQR(3, 0.3, 0.0), ILL, ["flu", "cold", "cancer"] * 3, ["HIV", "flu", "flu"], ["HIV", "flu", "cold"]),
        (
            shoal.Personalized(0.6, guard={"HIV": "grave"}),
            ILL,
            ["HIV", "flu", "cold"] * 2,
            ["HIV", "cancer", "flu"],
            ["HIV", "flu", "cold"],
        ),
    ],
    ids=lambda value: value.name if isinstance(value, shoal.models.Model) else None,
)
def test_every_model_says_what_it_promises_across_releases(policy, schema, first, joining, harmless) -> None:
    """Those who join a class are told apart from it by the release before: what they are left with has to keep the promise."""
    schema = read_schema(schema)
    if schema.attributes["ill"].kind == "number":
        first, joining, harmless = ([int(value) for value in values] for values in (first, joining, harmless))
    k = len(joining)
    old = {i: (0, 20 + i, ill) for i, ill in enumerate(first)}
    asked = shoal.KAnonymity(k) & policy

    def exposes(values: list[Any], by: Policy) -> bool:
        new = {**old, **{100 + i: (0, 40 + i, ill) for i, ill in enumerate(values)}}
        assert not data_rules(shown(new, schema), schema, by).any(), "each release by itself is good"
        return audit_members([shown(old, schema), shown(new, schema)], schema, by).exposed

    assert exposes(joining, asked)
    assert not exposes(joining, shoal.Policy((shoal.KAnonymity(k),)))
    assert not exposes(harmless, asked)


def data_rules(release: Shown, schema: Schema, policy: Policy) -> Any:
    data = shoal.Microdata.from_frame(release.frame, schema)
    return data.rules(policy).deficits(np.zeros(data.n, dtype=np.int64), 1)


def test_missing_values_expose_nobody() -> None:
    second = {**START, 8: (0, 25, None)}
    assert not audit_members([shown(START), shown(second)], AGE, K3).exposed


def test_rows_that_can_be_followed() -> None:
    """A cost published as it is ties a row to the persons that its two classes have in common."""
    schema = read_schema({"age": {"role": "quasi"}, "ill": {"role": "sensitive"}, "cost": {"role": "other"}})

    def release(classes: list[int], costs: list[int]) -> Shown:
        frame = pl.DataFrame({"age": [1, 2, 3, 4], "ill": ["a", "b", "a", "b"], "cost": costs})
        return Shown(np.arange(4), np.array(classes), frame)

    two = Policy((shoal.KAnonymity(2),))
    first, second = release([0, 0, 1, 1], [10, 20, 30, 30]), release([2, 3, 3, 2], [10, 20, 30, 30])
    found = audit_members([first, second], schema, two)
    assert [f.attack for f in found.found] == ["tracing"] * 4
    assert (
        "the row with cost = 10, ill = a in the class (age = [1, 4]) belongs to one of 1 persons" in found.findings[0]
    )
    assert not audit_members([first, first], schema, two).exposed


def test_without_enough_to_compare() -> None:
    assert audit([], AGE, K3).to_dict() == {
        "exposed": False,
        "undecided": 0,
        "releases": 0,
        "findings": [],
        "facts": {},
    }
    assert not audit([masked(shown(START))], AGE, K3, shown=[shown(START)]).exposed
    with pytest.raises(InputError, match="give all or none"):
        audit([masked(shown(START))] * 2, AGE, K3, shown=[shown(START)])


def test_masked_tables_alone_take_a_new_class_for_new_people() -> None:
    """A class of newcomers inside the region of an old one that is still there is no change of it."""
    second = {**START, 8: (2, 21, "flu"), 9: (2, 22, "cold"), 10: (2, 23, "ulcer"), 11: (2, 25, "HIV")}
    for found in both_audits([shown(START), shown(second)]):
        assert not found.exposed


@pytest.mark.parametrize("seed", range(25))
def test_bounds_are_true_in_every_world(seed: int) -> None:
    """All assignments of values that fit the releases, tried; bounds hold in each, and mostly cannot be narrower."""
    random = np.random.default_rng(seed)
    persons, values = int(random.integers(4, 8)), 3
    truth = random.integers(0, values, persons)
    releases = []
    for _ in range(int(random.integers(2, 4))):
        there = np.flatnonzero(random.random(persons) < 0.8)
        if len(there):
            releases.append(Publication(there, random.integers(0, 2, len(there)), truth[there]))
    everybody = np.unique(np.concatenate([release.persons for release in releases]))
    known = deduce(releases, values)
    assert known.persons.tolist() == everybody.tolist()
    least = np.full((len(known.sizes), values), persons)
    most = np.zeros((len(known.sizes), values), dtype=int)
    for world in product(range(values), repeat=len(everybody)):
        value = dict(zip(everybody.tolist(), world, strict=True))
        if not all(fits(release, value) for release in releases):
            continue
        counts = np.zeros((len(known.sizes), values), dtype=int)
        np.add.at(counts, (known.cell_of, list(world)), 1)
        least, most = np.minimum(least, counts), np.maximum(most, counts)
    assert (known.lower <= least).all() and (known.upper >= most).all()
    # Not every consequence is drawn, yet with so few cells hardly any is missed.
    missed = (known.lower != least).sum() + (known.upper != most).sum()
    assert missed <= 0.25 * known.lower.size


def fits(release: Publication, value: dict[int, int]) -> bool:
    for number in np.unique(release.classes):
        inside = release.classes == number
        if sorted(value[p] for p in release.persons[inside].tolist()) != sorted(release.values[inside].tolist()):
            return False
    return True


def test_nested_classes_are_exact() -> None:
    """A ⊂ B ⊂ C in three releases: both differences are known to the last record, whatever order the releases have."""
    values = np.array([1, 2, 3, 1, 2, 1])
    parts = [Publication(np.arange(n), np.zeros(n, dtype=np.int64), values[:n]) for n in (2, 4, 6)]
    for order in permutations(parts):
        known = deduce(order, 4)
        assert (known.lower == known.upper).all()
        cell = known.cell_of[[0, 2, 4]]
        assert known.lower[cell].tolist() == [[0, 1, 1, 0], [0, 1, 0, 1], [0, 1, 1, 0]]


def test_a_year_in_hospital() -> None:
    """50 weekly releases: nothing under both guards, and plenty without one; what it costs is counted."""
    size = Weeks(start=600, weeks=50, admitted=12, discharged=11, moved=2, corrected=2)
    tables, schema = year(size), read_schema(SCHEMA)
    found, cost = {}, {}
    for guard in ("none", "batching", "m-invariance"):
        plans = publish(tables, guard, schema)  # type: ignore[arg-type]
        found[guard] = audit_members([plan.shown for plan in plans], schema, POLICY)
        cost[guard] = costs([line(guard, plan, schema) for plan in plans])[0]
        assert (cost[guard].guard, cost[guard].releases) == (guard, 50)
    assert len(found["none"].found) > 100
    assert (found["batching"].findings, found["m-invariance"].findings) == ([], [])
    assert found["batching"].facts["diagnosis"]["fewest_values"] >= 3
    records = np.mean([len(now.records) for now in tables])
    assert cost["none"].shown == records
    batching, invariance = cost["batching"], cost["m-invariance"]
    assert batching.deletions_waiting > 0 and batching.counterfeits == 0
    assert invariance.counterfeits > 0 and invariance.deletions_waiting == 0
    assert invariance.shown == pytest.approx(records + invariance.counterfeits)
    assert cost["none"].loss < batching.loss < invariance.loss < 1


def test_steady_classes_are_the_same_persons_wherever_any_of_them_is() -> None:
    """Against sets of persons compared one by one: joins, splits, leaving, coming back whole, in part or among strangers."""
    both = 0
    for seed in range(300):
        random = np.random.default_rng(seed)
        start, releases = random.integers(0, 4, 12), []
        for _ in range(int(random.integers(1, 5))):
            moved = random.random(12) < random.choice([0.0, 0.1, 0.5])
            start = np.where(moved, random.integers(0, 5, 12), start)
            gone = random.integers(-1, 5)  # a class that is not in this release, if any
            there = random.permutation(
                np.flatnonzero((start != gone) & (random.random(12) < random.choice([0.9, 1.0])))
            )
            releases.append((there, start[there] * 7))
        classes = [
            {frozenset(there[names == name].tolist()) for name in set(names.tolist())} for there, names in releases
        ]
        good = {
            one for sets in classes for one in sets if all(one == o or not one & o for some in classes for o in some)
        }
        found = steady(*(list(column) for column in zip(*releases, strict=True)))
        for (there, _), rows in zip(releases, found, strict=True):
            assert rows.tolist() == [any(person in one for one in good) for person in there.tolist()], seed
            both += 0 < rows.sum() < len(rows)
    assert both > 50
