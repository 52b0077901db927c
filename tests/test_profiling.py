"""What `profile` sees in a table and suggests for it."""

from __future__ import annotations

import datetime
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal.datasets import hospital
from shoal.errors import InputError
from shoal.profiling import percent
from shoal.suggesting import ColumnProfile, Profile, profile

N = 60


def column(name: str, values: list[Any]) -> ColumnProfile:
    """The profile of one column in a table that has another one."""
    return profile(
        pl.DataFrame({name: values, "colour": (["red", "blue", "green"] * len(values))[: len(values)]})
    ).columns[0]


def cycle(values: list[Any], n: int = N) -> list[Any]:
    return [values[i % len(values)] for i in range(n)]


def test_the_hospital_is_understood() -> None:
    found = profile(hospital(2_000, 3))
    roles = {c.name: (c.role, c.kind) for c in found.columns}
    assert roles == {
        "name": ("identifier", "category"),
        "record": ("identifier", "category"),
        "age": ("quasi", "number"),
        "sex": ("quasi", "category"),
        "zip": ("quasi", "category"),
        "admitted": ("quasi", "date"),
        "occupation": ("quasi", "category"),
        "diagnosis": ("sensitive", "category"),
        "stay": ("quasi", "number"),
        "cost": ("sensitive", "number"),
    }
    taxonomies = {c.name: c.taxonomy for c in found.columns if c.taxonomy is not None}
    assert taxonomies == {"zip": {"prefix": [3, 2, 0]}, "admitted": {"dates": ["month", "year"]}}
    assert found.k == 5
    # Costs are hardly ever equal: not three different ones, but a range.
    assert [(d.attribute, d.p, d.e is not None) for d in found.diversity] == [
        ("diagnosis", 3, False),
        ("cost", 1, True),
    ]
    assert all(c.why.endswith(".") for c in found.columns)
    assert all(c.taxonomy_why for c in found.columns if c.role == "quasi")


def test_measures_agree_with_counting_by_hand() -> None:
    rng = np.random.default_rng(11)
    for _ in range(20):
        n = int(rng.integers(2, 25))
        rows = [
            (int(rng.integers(3)) or None, ["x", "y", "z", None][rng.integers(4)], float(rng.integers(4)))
            for _ in range(n)
        ]
        found = profile(
            pl.DataFrame(rows, schema={"age": pl.Int64, "city": pl.String, "height": pl.Float64}, orient="row")
        )
        for position, seen in enumerate(found.columns):
            values = [row[position] for row in rows]
            known = {value for value in values if value is not None}
            apart = sum(one != other for one, other in combinations(values, 2))
            assert seen.distinct == len(known)
            assert seen.missing == pytest.approx(values.count(None) / n)
            assert seen.distinction == pytest.approx(len(known) / n)
            assert seen.separation == pytest.approx(apart / (n * (n - 1) / 2))
        quasi = [position for position, seen in enumerate(found.columns) if seen.role == "quasi"]
        tuples = Counter(tuple(row[position] for position in quasi) for row in rows)
        once = sum(1 for count in tuples.values() if count == 1)
        assert found.unique == pytest.approx(once / n if quasi else 0.0)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([f"person{i}@example.org" for i in range(N)], "e-mail"),
        (cycle(["a@example.org", "b@example.org"]), "e-mail"),
        ([f"123e4567-e89b-12d3-a456-{i:012d}" for i in range(N)], "UUID"),
        ([f"{100 + i}-{10 + i % 80}-{1000 + i}" for i in range(N)], "social security"),
        ([f"DE{10 + i} 3704 0044 0532 0130 {10 + i}" for i in range(N)], "bank account"),
        ([f"10.0.{i}.1" for i in range(N)], "internet"),
        ([f"+49 170 12345{i:02d}" for i in range(N)], "phone"),
        ([f"(555) 123-45{i:02d}" for i in range(N)], "phone"),
        ([f"R{i:07d}" for i in range(N)], "record numbers"),
        ([f"{'ABCDEFGH'[i % 8]}nna {'KLMNOPQRST'[i // 6]}øller" for i in range(N)], "personal names"),
        ([f"{chr(97 + i % 26)}{i}xx" for i in range(N)], "nearly every record"),
        ([f"the patient said that {i % 30} hurts" for i in range(N)], "free text"),
        (list(range(1000, 1000 + N)), "record numbers"),
        ([123456789 + 7919 * i for i in range(N)], "record numbers"),
    ],
)
def test_values_that_name_people_are_recognised_under_any_name(values: list[Any], words: str) -> None:
    seen = column("zzz", values)
    assert seen.role == "identifier"
    assert words in seen.why


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Nachname", cycle(["Ash", "Birch", "Cole"])),
        ("first name", cycle(["Ann", "Bo", "Cy"])),
        ("customerName", cycle(["Ann", "Bo", "Cy"])),
        ("nom_de_famille", cycle(["Ann", "Bo", "Cy"])),
        ("patient_id", list(range(1000))),
        ("PatientNr", list(range(0, 3 * N, 3))),
        ("id", [i * i for i in range(N)]),
        ("Telefonnummer", [1234567 + 31 * i for i in range(N)]),
        ("ssn", [10**8 + 17 * i for i in range(N)]),
        ("Straße", [f"am weg {i % 30}" for i in range(N)]),
    ],
)
def test_names_of_identifiers(name: str, values: list[Any]) -> None:
    assert column(name, values).role == "identifier"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Geburtsjahr", "quasi"),
        ("Geschlecht", "quasi"),
        ("sexe", "quasi"),
        ("Estado Civil", "quasi"),
        ("maritalStatus", "quasi"),
        ("Beruf", "quasi"),
        ("paese", "quasi"),
        ("age at diagnosis", "quasi"),
        ("education-num", "quasi"),
        ("nombre_enfants", "quasi"),
        ("learning_style", "quasi"),
        ("Hauptdiagnose", "sensitive"),
        ("ICD10", "sensitive"),
        ("enfermedad", "sensitive"),
        ("Salario", "sensitive"),
        ("Monatseinkommen", "sensitive"),
        ("HIV status", "sensitive"),
        ("religion", "sensitive"),
        ("sexual_orientation", "sensitive"),
        ("drug name", "sensitive"),
        ("Straftat", "sensitive"),
    ],
)
def test_names_of_quasi_identifiers_and_sensitive_columns(name: str, role: str) -> None:
    assert column(name, cycle([1, 2, 3, 4, 4])).role == role


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("phone", cycle(["yes", "no"])),
        ("department_id", cycle(list(range(12)))),
        ("number_of_visits", [i * i for i in range(N)]),
        ("velocity", [1000.5 + 3 * i for i in range(N)]),
        ("revenue", [100 + i * i for i in range(N)]),
    ],
)
def test_a_name_alone_does_not_make_an_identifier(name: str, values: list[Any]) -> None:
    assert column(name, values).role == "quasi"


def test_harmless_and_empty_columns_are_other() -> None:
    assert column("unit", ["cm"] * N).role == "other"
    assert column("age", [None] * N).role == "other"
    # Whoever has the value differs from those who have none.
    assert column("unit", cycle(["cm", None])).role == "quasi"


def test_a_column_nobody_can_place_is_quasi_to_be_safe() -> None:
    seen = column("zzz", cycle(["a", "b"]))
    assert seen.role == "quasi"
    assert "safe side" in seen.why


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("day", cycle(["2024-03-31", "1999-12-01"]), "date"),
        ("day", cycle(["2024-03-31", "2024-02-30"]), "category"),
        ("day", cycle([datetime.datetime(2024, 3, 31, 4), datetime.datetime(2024, 4, 1)]), "date"),
        ("dose", cycle(["1", "2.5"]), "number"),
        ("dose", cycle(["1", "NA", "12"]), "number"),
        ("dose", cycle(["1", "1e400"]), "category"),
        ("dose", cycle(["01", "12"]), "category"),
        ("dose", cycle([2**60, 2**60 + 1]), "category"),
        ("race", cycle([1, 2, 3]), "category"),
        ("region", cycle(list(range(200)), 400), "number"),
        ("zip", cycle([41076, 41099]), "category"),
        ("zip", cycle([1076, 41099]), "number"),
    ],
)
def test_kinds(name: str, values: list[Any], kind: str) -> None:
    assert column(name, values).kind == kind


@pytest.mark.parametrize(
    ("name", "values", "taxonomy"),
    [
        ("zip", [f"{i:05d}" for i in range(N)], {"prefix": [3, 2, 0]}),
        ("PLZ", cycle([1010, 4020]), {"prefix": [2, 1, 0]}),
        (
            "postcode",
            [f"SW{i} 1AA" for i in range(10, 10 + N)],
            {"prefix": [5, 3, 0]},
        ),
        ("birth", [f"{1940 + i}-05-01" for i in range(N)], {"dates": ["month", "year", "decade"]}),
        ("admitted", [f"{2020 + i % 3}-05-01" for i in range(N)], {"dates": ["month", "year"]}),
        ("admitted", [f"2024-05-{1 + i % 20:02d}" for i in range(N)], None),
        ("seen", [f"2024-05-{1 + i % 20:02d} 10:{i:02d}" for i in range(N)], None),
        ("city", cycle([f"Town {i}" for i in range(20)]), None),
        ("city", cycle([f"Town {i}" for i in range(21)]), "auto"),
        ("city", [f"Town {i}" for i in range(2001)], {"prefix": [3, 2, 1, 0]}),
        ("city", cycle([f"*{i}" for i in range(30)]), None),
        ("age", list(range(N)), None),
    ],
)
def test_taxonomies(name: str, values: list[Any], taxonomy: Any) -> None:
    seen = column(name, values)
    assert seen.role == "quasi"
    assert seen.taxonomy == taxonomy
    assert seen.taxonomy_why


def test_texts_that_mean_missing() -> None:
    frame = pl.DataFrame(
        {
            "dose": cycle(["1", "2", "NA", "."]),
            "country": cycle(["DE", "NA", "FR"]),
            "town": cycle(["Bonn", "null", "none"]),
        }
    )
    found = profile(frame)
    assert found.missing == ("null", "NA", ".")
    assert [round(c.missing, 2) for c in found.columns] == [0.5, 0.33, 0.33]
    assert any("'country'" in note and "'NA'" in note for note in found.notes)
    # Without numbers to betray it, NA among country codes is Namibia; in longer words it is missing.
    assert profile(frame.select("country", "town")).missing == ("null",)
    assert profile(frame.select(pl.col("country").replace("DE", "Germany"))).missing == ("NA",)


def policy_of(values: list[Any]) -> tuple[int, int]:
    found: Profile = profile(pl.DataFrame({"age": [i % 90 for i in range(len(values))], "diagnosis": values}))
    return found.k, found.diversity[0].p


def test_the_policy_fits_the_table() -> None:
    assert policy_of(cycle(["flu", "cold", "ulcer"], 100)) == (5, 3)
    assert policy_of(cycle(["flu", "cold"], 100)) == (5, 2)
    assert policy_of(cycle(["flu", "cold", "ulcer"], 6)) == (2, 2)
    assert policy_of(cycle(["flu", "cold", "ulcer"], 35)) == (3, 3)
    # One patient in a thousand: a second value in every class would leave one class.
    assert policy_of(["flu"] * 999 + ["cold"]) == (5, 1)
    assert policy_of(cycle(["flu", None], 100)) == (5, 1)


def test_notes() -> None:
    same = profile(
        pl.DataFrame({"school": cycle(["a", "b", "c"]), "years": cycle([9, 10, 13]), "sex": cycle(["f", "m"])})
    )
    assert [note for note in same.notes if "say the same" in note and "'school' and 'years'" in note]
    headless = profile(
        pl.DataFrame({"39": cycle([39, 50]), "Male": cycle(["Male", "Female"]), "3.5": cycle([1.5, 2.5])})
    )
    assert any("--header" in note for note in headless.notes)
    assert any("No column looks sensitive" in note for note in headless.notes)
    strange = profile(pl.DataFrame({"dose": [*map(str, range(N)), "a lot"], "diagnosis": cycle(["a", "b"], N + 1)}))
    assert any("'dose' would be numbers without 'a lot'" in note for note in strange.notes)
    nothing = profile(pl.DataFrame({"name": cycle(["Ann Lee", "Bo Fox", "Cy May"]), "diagnosis": cycle(["a", "b"])}))
    assert any("nothing to anonymize" in note for note in nothing.notes)


def test_two_hundred_columns_are_not_two_hundred_quasi_identifiers() -> None:
    found = profile(pl.DataFrame({f"c{i}": [1, 2, 2] for i in range(200)}))
    assert len(found.named("quasi")) == 8
    assert len(found.consider) == 192


def test_the_same_table_gives_the_same_profile() -> None:
    frame = hospital(500, 2)
    assert profile(frame) == profile(frame.clone())
    assert profile(frame).to_dict()["columns"][0]["name"] == "name"


@pytest.mark.parametrize("records", [0, 1])
def test_nobody_hides_in_a_crowd_of_one(records: int) -> None:
    with pytest.raises(InputError, match="at least two"):
        profile(pl.DataFrame({"age": [30] * records}, schema={"age": pl.Int64}))


def test_percent_does_not_round_away() -> None:
    assert [percent(x) for x in (0.0, 0.5, 0.9996, 0.99999, 1.0)] == ["0 %", "50 %", "99.96 %", "99.999 %", "100 %"]
