"""`shoal init` on people with several rows: the column that says whose each row is, and a release nobody had to edit for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.visits import accepted, visits
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.configuration import read_config
from shoal.policy import Policy
from shoal.suggesting import profile


def table(persons: int = 200, rows: int = 805, seed: int = 1) -> pl.DataFrame:
    """The table of the two releases that must not happen: numbers of patients, as whole numbers."""
    frame = visits(persons, rows, seed)
    return frame.with_columns(pid=frame["pid"].str.slice(1).cast(pl.Int64) + 1_000)


def roles(frame: pl.DataFrame) -> dict[str, str]:
    return {column.name: column.role for column in profile(frame).columns}


@pytest.mark.parametrize(
    "name", ["pid", "patient_id", "PatientID", "mrn", "Kundennummer", "customer", "subject no", "nr", "x"]
)
def test_untouched_suggestions_protect_persons(name: str, tmp_path: Path) -> None:
    """Whatever the key is called: nobody's number leaves, and classes are classes of people."""
    frame = table().rename({"pid": name})
    source, config, masked = tmp_path / "visits.csv", tmp_path / "shoal.toml", tmp_path / "masked.csv"
    frame.write_csv(source)
    runner = CliRunner()
    told = runner.invoke(app, ["init", str(source), "-o", str(config)], catch_exceptions=False)
    assert told.exit_code == 0
    assert "805 records of 200 persons" in told.stdout
    assert "1 to 10 rows each" in " ".join(config.read_text().replace("#", "").split())
    if name not in ("pid", "x"):
        return
    done = runner.invoke(app, ["anonymize", "-c", str(config), "-o", str(masked), "--quiet"], catch_exceptions=False)
    assert done.exit_code == 0
    assert name not in pl.read_csv(masked).columns
    configuration = read_config(config)
    schema, policy = configuration.schema, Policy.from_config(configuration.config.policy)
    # How long a visit took differs from visit to visit: nobody else knows it, and it is published as it is.
    assert set(schema.named("quasi")) == {"age", "zip", "sex"}
    assert (schema.person, str(policy)) == (name, "k_anonymity(k = 5) & p_sensitive(p = 3)")
    kept = shoal.anonymize(shoal.Microdata.from_frame(frame, schema), policy, refine=True, order="keep")
    assert sorted(kept.masked.write_csv().splitlines()) == sorted(masked.read_text().splitlines())
    asked = Policy(
        tuple(
            type(m)(**{**m.parameters(), **({"attribute": "illness"} if m.per_attribute else {})})
            for m in policy.models
        )
    )
    accepted(frame.rename({name: "pid"}), kept.masked, asked, ("age", "zip", "sex"))


def test_the_number_as_an_identifier_is_refused_until_somebody_says_whose_it_is(tmp_path: Path) -> None:
    source, config = tmp_path / "visits.csv", tmp_path / "shoal.toml"
    table().write_csv(source)
    runner = CliRunner()
    runner.invoke(app, ["init", str(source), "-o", str(config)], catch_exceptions=False)
    config.write_text(
        config.read_text().replace('role = "person"', 'role = "identifier"').replace("within =", "# within =")
    )
    done = runner.invoke(app, ["anonymize", "-c", str(config), "-o", str(tmp_path / "masked.csv")])
    assert isinstance(done.exception, shoal.InputError)
    assert "'pid' repeats: 805 rows have 200 values" in str(done.exception)
    assert not (tmp_path / "masked.csv").exists()


def test_rows_of_an_address_or_a_full_name_are_one_persons_when_they_agree() -> None:
    frame = table()
    mail = frame.with_columns(pl.format("p{}@example.org", "pid").alias("contact")).drop("pid")
    assert roles(mail)["contact"] == "person"
    people = frame.with_columns(pl.format("Ash{} Birch", "pid").alias("name")).drop("pid")
    assert roles(people)["name"] == "person"


def test_first_names_and_the_like_may_repeat() -> None:
    random = np.random.default_rng(4)
    n = 600
    sex = random.integers(0, 2, n)
    given = np.array([["Ada", "Bea", "Cleo", "Dora"], ["Abel", "Bert", "Carl", "Dan"]])[sex, random.integers(0, 4, n)]
    frame = pl.DataFrame(
        {
            "first_name": [f"{name}{i}" for name, i in zip(given, random.integers(0, 12, n), strict=True)],
            "sex": np.array(["f", "m"])[sex],
            "age": random.integers(18, 90, n),
            "zip": [f"4{x:03d}" for x in random.integers(0, 80, n)],
            "doctor_id": random.integers(100, 160, n),
            "illness": random.choice(["flu", "cold", "asthma"], n),
        }
    ).with_columns(department=pl.col("doctor_id") % 7)
    found = {column.name: column for column in profile(frame).columns}
    assert (found["first_name"].role, found["first_name"].repeats) == ("identifier", "allowed")
    assert all(column.role != "person" for column in found.values())
    assert profile(frame).persons is None


def test_a_key_that_never_repeats_is_an_identifier_and_one_that_does_once_a_person() -> None:
    frame = table(300, 300)
    assert roles(frame)["pid"] == "identifier"
    again = pl.concat([frame, frame[:1]])
    assert roles(again)["pid"] == "person"


def test_the_diversity_suggested_is_one_of_persons() -> None:
    """Everybody has flu somewhere in their rows: no class of people is diverse, though rows are."""
    frame = pl.DataFrame(
        {
            "patient_id": [i // 2 for i in range(200)],
            "age": [20 + i // 2 % 50 for i in range(200)],
            "illness": ["flu" if i % 2 else ("cold", "asthma", "ulcer")[i % 3] for i in range(200)],
        }
    )
    found = profile(frame)
    assert (found.persons, found.k) == (100, 5)
    assert [(rule.attribute, rule.p) for rule in found.diversity] == [("illness", 1)]
    rows = profile(frame.drop("patient_id"))
    assert [rule.p for rule in rows.diversity] == [3]
