"""Templates: every rule is applied where the values are what it speaks of, and nowhere else; what is written can be used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.cli.errors import call, captured

import shoal
from shoal.suggesting import profile
from shoal.templates import TEMPLATES, applied


def table(n: int = 300) -> pl.DataFrame:
    random = np.random.default_rng(5)
    days = pl.Series("admitted", random.integers(18_000, 19_500, n).astype(np.int32)).cast(pl.Date)
    return pl.DataFrame(
        {
            "patient_name": [f"Somebody {i}" for i in range(n)],
            "email": [f"s{i}@example.org" for i in range(n)],
            "age": random.integers(18, 99, n),
            "zip": [str(z) for z in random.choice([41076, 41075, 48202, 48201, 10115], n)],
            "admitted": days,
            "school": random.choice(["north", "south"], n).tolist(),
            "hhsize": random.integers(1, 12, n),
            "diagnosis": random.choice(["flu", "cold", "ulcer", "asthma", "angina"], n).tolist(),
        }
    )


@pytest.mark.parametrize("name", TEMPLATES)
def test_names_and_addresses_leave_whatever_the_field(name: str) -> None:
    found = applied(name, profile(table()))
    assert {"patient_name", "email"} <= set(found.named("identifier"))
    assert found.k == TEMPLATES[name].k
    assert TEMPLATES[name].source in found.notes[0]


def test_hipaa_gathers_the_old_cuts_zips_and_dates() -> None:
    found = {column.name: column for column in applied("hipaa-limited", profile(table())).columns}
    assert found["age"].more == {"top": 90}
    assert found["zip"].taxonomy == {"prefix": [3, 0]}
    assert found["admitted"].taxonomy == {"dates": ["year", "decade"]}


def test_a_rule_is_not_applied_to_values_it_does_not_speak_of() -> None:
    odd = pl.DataFrame(
        {"age": ["young", "old", "old"] * 10, "admitted": ["soon", "late"] * 15, "illness": ["flu", "cold"] * 15}
    )
    found = applied("hipaa-limited", profile(odd))
    assert all(column.more == {} for column in found.columns)
    said = [note for note in found.notes if "not what that rule is about" in note]
    assert len(said) == 2


def test_a_small_table_gets_a_smaller_k_and_is_told_so() -> None:
    found = applied("hipaa-limited", profile(table(40)))
    assert found.k == 4
    assert any("too small for 11" in note for note in found.notes)


def test_a_person_column_stays_one() -> None:
    visits = pl.concat([table(), table()]).with_columns(student_id=pl.Series(list(range(300)) * 2))
    assert applied("education", profile(visits)).named("person") == ["student_id"]


@pytest.mark.parametrize("name", TEMPLATES)
def test_what_init_writes_can_be_used_as_it_is(name: str, tmp_path: Path) -> None:
    source, config = tmp_path / "table.csv", tmp_path / "shoal.toml"
    table().write_csv(source)
    with captured() as (_, err):
        code = call(["init", str(source), "-o", str(config), "--template", name])
    assert code == 0, err.getvalue()
    release = shoal.anonymize(source, config, algorithm="mondrian", refine=False)
    assert release.evidence.smallest >= TEMPLATES[name].k
    assert TEMPLATES[name].source.split(",")[0] in config.read_text(encoding="utf-8").replace("\n# ", " ")
    assert "email" not in release.masked.columns


def test_a_misspelt_template_gets_a_sentence(tmp_path: Path) -> None:
    source = tmp_path / "table.csv"
    table().write_csv(source)
    with captured() as (_, err):
        code = call(["init", str(source), "-o", str(tmp_path / "shoal.toml"), "--template", "hipaa"])
    assert code == 2
    assert "hipaa-limited" in err.getvalue()
    assert not (tmp_path / "shoal.toml").exists()
