"""Are the suggestions worth accepting? Eight tables in the style of public ones, judged against what somebody of the field says."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.public_schemas import TABLES, expected

import shoal
from shoal.commented import config_text
from shoal.configuration import parse_config
from shoal.models import MODELS
from shoal.pricing import DEAR, HIGH, priced
from shoal.schema import Attribute
from shoal.suggesting import ColumnProfile, Profile, profile
from shoal.suggesting.found import schema_of

SCORED = ("identifier", "person", "quasi")


@cache
def suggested(name: str) -> Profile:
    table = TABLES[name]()
    return priced(table, profile(table))


def named(roles: dict[str, str], role: str) -> set[str]:
    return {column for column, one in roles.items() if one == role}


@pytest.mark.parametrize("name", TABLES)
def test_the_fixture_is_about_the_table_it_speaks_of(name: str) -> None:
    roles = expected(name)
    assert list(roles) == TABLES[name]().columns
    assert 5 <= len(named(roles, "quasi")) <= 12
    assert len(roles) == 80 or name != "survey"


@pytest.mark.parametrize("role", SCORED)
def test_precision_and_recall_are_nine_tenths(role: str) -> None:
    right = proposed = wanted = 0
    for name in TABLES:
        found, truth = {column.name: column.role for column in suggested(name).columns}, expected(name)
        right += len(named(found, role) & named(truth, role))
        proposed += len(named(found, role))
        wanted += len(named(truth, role))
    assert right >= 0.9 * proposed
    assert right >= 0.9 * wanted


@pytest.mark.parametrize("name", TABLES)
def test_no_table_goes_far_wrong(name: str) -> None:
    """Nobody who is named leaves, every person is found, at most twelve columns are masked, and one of these in vain at most."""
    found, truth = {column.name: column.role for column in suggested(name).columns}, expected(name)
    assert len(named(found, "quasi")) <= 12
    for role in ("identifier", "person"):
        assert named(found, role) == named(truth, role)
    assert named(truth, "quasi") <= named(found, "quasi")
    assert len(named(found, "quasi") - named(truth, "quasi")) <= 1


@pytest.mark.parametrize("name", TABLES)
def test_a_dear_policy_says_so(name: str) -> None:
    found = suggested(name)
    assert found.costs is not None
    said = any("are dear" in note for note in found.notes)
    assert said == (found.costs.policy > DEAR * found.costs.alone)
    assert set(found.costs.rules) == {one.attribute for one in found.diversity if one.rule is not None}


@pytest.mark.parametrize("name", TABLES)
def test_rules_suit_their_columns(name: str) -> None:
    """Ranges for numbers with many values, different values for the others, and nothing for a flag that few have."""
    table = TABLES[name]()
    for one in suggested(name).diversity:
        series = table[one.attribute]
        many = series.dtype.is_numeric() and series.n_unique() > 20
        assert (one.e is not None) == many, one
        common = int(series.drop_nulls().value_counts()["count"].max())  # type: ignore[arg-type]
        if common >= 0.95 * len(series):
            assert one.rule is None
            assert "No rule" in one.why


def test_what_is_to_be_considered_is_ranked_and_priced() -> None:
    found = suggested("survey")
    assert found.costs is not None
    told = [column.separation for column in found.consider]
    assert told == sorted(told, reverse=True)
    assert len(found.named("quasi")) + len(found.consider) + 6 == 80  # an identifier and five sensitive columns
    assert list(found.costs.consider) == [column.name for column in found.consider[:20]]
    # One column more leaves less of the others, up to what a greedy search gains or loses by chance.
    assert np.mean(list(found.costs.consider.values())) > found.costs.alone
    text = config_text(found, {"path": "t.csv", "missing": [""]}, "t.csv")
    assert "and 44 more that tell less" in text
    assert "#   duration_min: tells 97.6 % apart, the others lose" in text
    assert parse_config(text).attributes["q1"].role == "other"


def test_a_rule_that_doubles_the_loss_is_said_to() -> None:
    """Two values, one of them rare and only among the old: the rule is suggested, tried, found dear, and says so."""
    n = 600
    table = pl.DataFrame(
        {
            "age": [i % 100 for i in range(n)],
            "zip": [f"{10_000 + 97 * (i * 7 % 83)}" for i in range(n)],
            "diagnosis": ["yes" if i % 100 >= 85 else "no" for i in range(n)],
        }
    )
    found = priced(table, profile(table))
    assert found.costs is not None
    assert found.policy["p_sensitive"] == [{"p": 2, "attribute": "diagnosis"}]
    assert found.costs.policy > DEAR * found.costs.alone
    assert any("'diagnosis'" in note and "are dear" in note for note in found.notes)


def test_many_columns_warn_of_the_dimension_from_which_the_loss_is_high() -> None:
    random = np.random.default_rng(3)
    n = 100
    table = pl.DataFrame(
        {name: random.integers(0, 60, n) for name in ("age", "height", "weight", "children", "city", "school")}
    )
    found = priced(table, profile(table))
    assert found.costs is not None
    high = next(count for count, loss in enumerate(found.costs.columns, start=1) if loss > HIGH)
    assert any(f"With {high} quasi-identifiers or more the loss is high" in note for note in found.notes)


def column(found: Profile, name: str) -> ColumnProfile:
    return next(one for one in found.columns if one.name == name)


def test_what_others_know_and_is_one_too_many_is_left_out_not_published() -> None:
    places = [
        "age",
        "sex",
        "city",
        "race",
        "marital",
        "job",
        "school",
        "height",
        "weight",
        "hair",
        "eye",
        "language",
        "county",
        "rank",
    ]
    table = pl.DataFrame(
        {name: [i * (place + 3) % (2 + place) for i in range(200)] for place, name in enumerate(places)}
    )
    found = profile(table)
    assert len(found.named("quasi")) == 12
    assert all(one.left_out for one in found.consider)
    assert {one.name for one in found.consider} == {"age", "sex"}  # those that tell least
    schema_of(found.columns).resolve(table.columns)


def test_a_measurement_that_singles_people_out_is_rounded_or_left_out() -> None:
    n = 300
    random = np.random.default_rng(1)
    table = pl.DataFrame(
        {
            "age": random.integers(18, 90, n),
            "sex": random.choice(["f", "m"], n),
            "usage_seconds": random.permutation(100_000)[:n],
            "usage_of_age": random.integers(0, 2, n),
        }
    ).with_columns(usage_of_age=pl.col("age") * 3)
    found = profile(table)
    seconds, doubled = column(found, "usage_seconds"), column(found, "usage_of_age")
    assert (seconds.role, seconds.consider) == ("other", True)
    assert seconds.more["round"] >= 100
    rounded = (table["usage_seconds"] / seconds.more["round"]).round()
    assert int(rounded.is_unique().sum()) < 0.05 * n
    assert doubled.role == "quasi" or (doubled.left_out and "left out" in doubled.why)


def test_names_that_differ_by_a_number_are_answers() -> None:
    table = pl.DataFrame(
        {
            "age": [20 + i % 60 for i in range(120)],
            **{f"x{i}": [(i + j * j) % 5 for j in range(1, 121)] for i in range(1, 6)},
            "zzz": ["a", "b"] * 60,
        }
    )
    found = profile(table)
    assert found.named("quasi") == ["age", "zzz"]
    assert "5 columns whose names differ by a number" in column(found, "x3").why
    # Four are no list of questions: nothing is known about them, and there is room.
    assert {"x1", "x4"} <= set(profile(table.drop("x5")).named("quasi"))


@cache
def attacked(name: str) -> shoal.front.Attacks:
    """A table's suggestions accepted as they are, released, and attacked."""
    table, found = TABLES[name](), suggested(name)
    release = shoal.anonymize(
        table, found.policy, schema=schema_of(found.columns), algorithm="mondrian", refine=False, seed=1
    )
    return shoal.attack(release)


@pytest.mark.parametrize("name", TABLES)
def test_every_alarm_names_what_its_reader_can_change(name: str) -> None:
    table, found = TABLES[name](), attacked(name)
    keys = {*MODELS, *Attribute.model_fields}
    for one in found.exposures:
        assert bool(one.exposed) == bool(one.way_out), one
        if one.exposed:
            assert keys & set(re.findall(r"\w+", one.way_out)), one.way_out
            assert str(one.attribute) in one.way_out
            asked = re.search(r"Ask for (\w+) = (\{.*?\})", one.way_out)
            if asked is not None:
                rule = tomllib.loads(f"{asked[1]} = {asked[2]}")
                assert MODELS[asked[1]](**rule[asked[1]]).parameters()["attribute"] == one.attribute
        values = table[str(one.attribute)].drop_nulls()
        if one.attack == "background_knowledge" and values.n_unique() == 2:
            # Ruling out one of two values is known without any table; classes with one value are homogeneity's.
            same = next(
                other for other in found.exposures if (other.attack, other.attribute) == ("homogeneity", one.attribute)
            )
            assert one.exposed == same.exposed
        if one.attack == "skewness" and values.dtype.is_float():
            # Two persons of a class may owe the same to the cent, by chance.
            assert one.details["own"] > 0.9 * one.total
            assert one.exposed <= 0.02 * one.total
    assert not any(finding.refused for finding in found.published.findings)
    for finding in found.published.findings:
        if table[finding.column].dtype.is_float() and finding.problem == "separates":
            assert "round = " in finding.detail


def test_a_way_out_that_is_taken_ends_the_alarm() -> None:
    """The rule that the alarm asks for, added to the policy: nobody is exposed any more."""
    n = 300
    random = np.random.default_rng(2)
    table = pl.DataFrame(
        {
            "age": random.integers(18, 80, n),
            "illness": random.choice(["flu", "cold", "gout"], n, p=[0.7, 0.2, 0.1]),
            "cost": np.round(random.lognormal(6, 1, n), 2),
        }
    )
    roles = {"age": "quasi", "illness": "sensitive", "cost": "sensitive"}
    policy: dict[str, object] = {"k": 4}
    for attack in ("homogeneity", "background_knowledge", "similarity"):
        found = shoal.attack(shoal.anonymize(table, policy, schema=roles, algorithm="mondrian", refine=False))
        alarm = next(one for one in found.exposures if one.attack == attack)
        assert alarm.exposed > 0
        asked = re.search(r"Ask for (\w+) = (\{.*?\})", alarm.way_out)
        assert asked is not None
        rule = tomllib.loads(f"{asked[1]} = {asked[2]}")
        after = shoal.attack(shoal.anonymize(table, {"k": 4, **rule}, schema=roles, algorithm="mondrian", refine=False))
        still = next(one for one in after.exposures if (one.attack, one.attribute) == (attack, alarm.attribute))
        assert still.exposed < alarm.exposed
        if attack != "similarity":  # a wide range may still hold values that hardly vary but for one
            assert still.exposed == 0


def test_the_page_tells_what_is_measured() -> None:
    from benchmarks.suggestions import figures, line, scores

    page = (Path(__file__).parents[1] / "docs" / "suggestions.md").read_text(encoding="utf-8")
    found = [figures(name) for name in TABLES]
    for one in found:
        assert line(one) in page
    precision = {role: f"{score[0]:.3f}" for role, score in scores(found).items()}
    told = "precision is {identifier} for identifiers, {person} for persons and {quasi} for quasi-identifiers"
    assert told.format(**precision) in " ".join(page.split())


@pytest.mark.parametrize("name", TABLES)
def test_a_file_of_text_gets_the_same_roles(name: str, tmp_path: Path) -> None:
    """Written as text and read again, as most tables come: numbers, dates and codes are what they were."""
    table = TABLES[name]()
    table.write_csv(tmp_path / f"{name}.csv")
    found = {column.name: column.role for column in profile(tmp_path / f"{name}.csv").columns}
    assert found == {column.name: column.role for column in suggested(name).columns}
