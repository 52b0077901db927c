"""The declaration questioned: dangerous columns are refused or named with their figure, harmless ones are not."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from tests import dangerous as forms
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.configuration import read_schema
from shoal.declaration import certainty, examine

N = 3000
QUASI = {"age": {"role": "quasi"}, "sex": {"role": "quasi"}, "zip": {"role": "quasi"}}


def people(rng: np.random.Generator) -> dict[str, object]:
    """Three quasi-identifiers."""
    return {
        "age": rng.integers(18, 95, N),
        "sex": rng.choice(["f", "m"], N),
        "zip": [f"4{x:03d}0" for x in rng.integers(0, 60, N)],
    }


def dangerous(rng: np.random.Generator, base: dict[str, object]) -> dict[str, object]:
    """Columns that must not leave as they are, each dangerous in a way of its own."""
    age, zips = np.asarray(base["age"]), np.array(base["zip"])
    born = [
        date(2024 - int(a), 1 + int(m), 1 + int(d))
        for a, m, d in zip(age, rng.integers(0, 12, N), rng.integers(0, 28, N), strict=True)
    ]
    start = datetime(2024, 1, 1)
    seconds = rng.integers(0, 31_000_000, N)
    towns = {z: f"Town {i // 2}" for i, z in enumerate(sorted(set(zips.tolist())))}
    digits = rng.integers(0, 10, (N, 20)).astype(str)
    return {
        "email": [f"p{i % 700}@example.org" for i in range(N)],
        "phone": [f"+49 30 {x}" for x in rng.integers(1_000_000, 9_999_999, N)],
        "iban": [
            "DE" + "".join(row[:2]) + " " + " ".join("".join(row[i : i + 4]) for i in range(0, 16, 4)) for row in digits
        ],
        "ssn": [f"{a:03d}-{b:02d}-{c:04d}" for a, b, c in rng.integers(1, 99, (N, 3))],
        "uuid": [f"{a:08x}-0000-4000-8000-{b:012x}" for a, b in rng.integers(0, 2**31, (N, 2))],
        "homepage": [f"https://example.org/~{i}" for i in range(N)],
        "ip": [f"10.{a}.{b}.{c}" for a, b, c in rng.integers(0, 255, (N, 3))],
        "lat": np.round(rng.normal(48.1, 0.2, N), 14),
        "lon": np.round(rng.normal(11.5, 0.2, N), 4),
        "position": [f"{a:.5f}, {b:.5f}" for a, b in rng.normal((48.1, 11.5), 0.2, (N, 2))],
        "remark": [f"seen on ward {i} by the doctor on duty" for i in range(N)],
        "full_name": [
            f"{a}{i} {b}"
            for i, (a, b) in enumerate(
                zip(rng.choice(["Ash", "Birch", "Cole"], N), rng.choice(["Elm", "Fern"], N), strict=True)
            )
        ],
        "order_number": np.arange(100_000, 100_000 + N),
        "invoice": [f"INV-{x:06d}" for x in rng.permutation(N)],
        "salary": np.round(rng.lognormal(10.5, 0.5, N), 2),
        "cost": rng.integers(500, 400_000, N),
        "admitted_at": [start + timedelta(seconds=int(s)) for s in seconds],
        "dob": born,
        "birth_year": 2024 - age,
        "age_in_months": age * 12 + rng.integers(0, 2, N),
        "age_group": [f"{a // 10 * 10}s" for a in age],
        "town": [towns[z] for z in zips],
        "area": [z[:3] for z in zips],
        "gender_code": np.where(np.asarray(base["sex"]) == "f", 1, 2),
        "device": [f"{x:012x}" for x in rng.integers(0, 2**40, N)],
        "hash": [f"{x:032x}" for x in rng.integers(0, 2**62, N)],
        "pid": np.arange(N) // 4,
        "weight_grams": rng.integers(40_000, 140_000, N),
    }


def harmless(rng: np.random.Generator) -> dict[str, object]:
    """Columns that say nothing about who somebody is."""
    return {
        "ward": rng.choice(list("ABCDEFGH"), N),
        "stay": np.minimum(rng.geometric(0.15, N), 40),
        "visits": rng.poisson(2.0, N),
        "satisfied": rng.integers(1, 6, N),
        "insured": rng.choice(["yes", "no"], N, p=[0.9, 0.1]),
        "rare_flag": rng.random(N) < 0.01,
        "blood": rng.choice(["A", "B", "AB", "0"], N),
        "amount": rng.integers(0, 50, N) * 100.0,
        "quarter": rng.choice(["2024-Q1", "2024-Q2", "2024-Q3", "2024-Q4"], N),
        "month": [date(2024, int(m), 1) for m in rng.integers(1, 13, N)],
        "dose": rng.choice([0.5, 1.0, 1.5, 2.0], N),
        "answer": rng.choice(["I do not know yet at all", "I would rather not say so"], N),
        "product": rng.choice([f"Product {c}" for c in "ABCDEFGHIJKLMNOP"], N),
        "grade": rng.choice(list("ABCDEF"), N),
        "temperature": np.round(rng.normal(37, 0.4, N), 1),
        "pulse": rng.integers(50, 120, N),
        "score": rng.integers(0, 101, N),
        "smoker": rng.choice(["never", "former", "current"], N),
        "shift": rng.choice(["early", "late", "night"], N),
        "constant": ["2024"] * N,
        "empty": pl.Series([None] * N, dtype=pl.String),
        "mostly_missing": pl.Series([str(i % 4) if i % 50 == 0 else None for i in range(N)]),
        "channel": rng.choice(["web", "phone", "desk"], N),
        "year": rng.choice([2022, 2023, 2024], N),
        "group": rng.choice(["treatment", "control"], N),
        "ward_id": rng.integers(0, 12, N),
        "number_of_children": rng.poisson(1.5, N),
        "duration": rng.integers(1, 12, N) * 5,
    }


def test_every_dangerous_column_is_refused_as_other_and_at_least_named_as_sensitive():
    rng = np.random.default_rng(1)
    base = people(rng)
    columns = dangerous(rng, base)
    assert len(columns) >= 25
    frame = pl.DataFrame({**base, **columns})
    for role in ("other", "sensitive"):
        schema = read_schema({**QUASI, **{name: {"role": role} for name in columns}})
        found = {finding.column: finding for finding in examine(frame, schema).findings}
        assert set(columns) - set(found) == set()
        for name, finding in found.items():
            assert finding.refused == (role == "other" or finding.problem == "identifier"), name
            assert finding.of == N and 0 < finding.records <= N


def test_no_harmless_column_is_named():
    rng = np.random.default_rng(2)
    base, columns = people(rng), harmless(rng)
    assert len(columns) >= 25
    frame = pl.DataFrame({**base, **columns})
    for role in ("other", "sensitive"):
        schema = read_schema({**QUASI, **{name: {"role": role} for name in columns}})
        assert examine(frame, schema).findings == ()


def test_what_names_people_in_many_countries_is_refused_in_either_role():
    rng = np.random.default_rng(11)
    base = forms.people(rng)
    columns = forms.dangerous(rng, base)
    frame = pl.DataFrame({**base, **columns})
    for role, passing in (("other", set()), ("sensitive", set(forms.NAMED_ONLY))):
        schema = read_schema({**QUASI, **{name: {"role": role} for name in columns}})
        found = {finding.column: finding for finding in examine(frame, schema).findings}
        assert set(columns) - set(found) == set()
        assert {name for name, finding in found.items() if not finding.refused} == passing


def test_what_many_people_share_is_named_in_neither_role():
    rng = np.random.default_rng(12)
    base, columns = forms.people(rng), forms.harmless(rng)
    frame = pl.DataFrame({**base, **columns})
    for role in ("other", "sensitive"):
        schema = read_schema({**QUASI, **{name: {"role": role} for name in columns}})
        assert examine(frame, schema).findings == ()


def test_a_date_in_three_columns_and_harmless_columns_together_are_told_with_their_figure():
    rng = np.random.default_rng(13)
    base = forms.people(rng)
    days = {"year": 2024 - base["age"], "month": rng.integers(1, 13, N), "day": rng.integers(1, 29, N)}
    schema = read_schema({**QUASI, **{name: {"role": "other"} for name in days}})
    told = examine(pl.DataFrame({**base, **days}), schema)
    assert [(finding.column, finding.problem) for finding in told.refused] == [("year", "determines")]
    assert told.columns == ("year", "month", "day") and told.alone > 0.8 * N


def test_a_dangerous_column_stops_the_road_and_names_figure_and_way_out_but_no_value():
    rng = np.random.default_rng(3)
    base = people(rng)
    frame = pl.DataFrame({**base, "cost": np.arange(N) + 0.25})
    data = shoal.Microdata.from_frame(frame, {**QUASI, "cost": {"role": "other"}})
    with pytest.raises(shoal.InputError, match=r"'cost'.*3,000 of 3,000.*accept") as caught:
        shoal.anonymize(data, shoal.KAnonymity(5), algorithm="mondrian", refine=False)
    assert "0.25" not in str(caught.value)


def test_an_accepted_column_is_released_and_the_manifest_says_why():
    rng = np.random.default_rng(4)
    frame = pl.DataFrame({**people(rng), "cost": np.arange(N) + 0.25})
    data = shoal.Microdata.from_frame(frame, {**QUASI, "cost": {"role": "other", "accept": "invoices are public"}})
    release = shoal.anonymize(data, shoal.KAnonymity(5), algorithm="mondrian", refine=False)
    told = release.manifest["published_as_it_is"]["findings"]
    assert [(finding["column"], finding["accepted"], finding["refused"]) for finding in told] == [
        ("cost", "invoices are public", False)
    ]


def test_the_report_of_a_release_names_what_was_accepted_and_what_a_sensitive_column_tells(tmp_path):
    rng = np.random.default_rng(8)
    pl.DataFrame({**people(rng), "cost": np.arange(N) + 0.25, "salary": np.arange(N) * 7.5}).write_csv(
        tmp_path / "t.csv"
    )
    config = tmp_path / "shoal.toml"
    config.write_text(
        '[source]\npath = "t.csv"\n'
        + "".join(f'[attributes.{name}]\nrole = "quasi"\n' for name in QUASI)
        + '[attributes.cost]\nrole = "other"\naccept = "invoices are public"\n[attributes.salary]\nrole = "sensitive"\n'
        + '[policy]\nk = 5\n[method]\nalgorithm = "mondrian"\nrefine = false\n'
    )
    told = CliRunner().invoke(app, ["anonymize", "-c", str(config), "-o", str(tmp_path / "masked.csv")])
    said = " ".join(told.stdout.split())
    assert "'cost'" in said and "accepted: invoices are public" in said
    assert "'salary' (role \"sensitive\", published as it is) tells records apart: 3,000 of 3,000" in said
    assert "Together, cost are published as they are: 3,000 of 3,000" in said


def test_several_dangerous_columns_are_told_at_once():
    rng = np.random.default_rng(5)
    base = people(rng)
    frame = pl.DataFrame({**base, **dangerous(rng, base)})
    schema = {
        **QUASI,
        **{name: {"role": "other"} for name in ("email", "dob", "salary")},
        "*": {"role": "identifier", "repeats": "allowed"},
    }
    data = shoal.Microdata.from_frame(frame, schema)
    with pytest.raises(shoal.InputError) as caught:
        shoal.anonymize(data, shoal.KAnonymity(5), algorithm="mondrian", refine=False)
    assert all(f"'{name}'" in str(caught.value) for name in ("email", "dob", "salary"))


def test_certainty_leaves_one_out():
    # Values that occur once determine everything and explain nothing.
    once = np.arange(40, dtype=np.int64)
    assert certainty(once, once % 2) == 0.0
    pairs = once // 2
    assert certainty(pairs, pairs % 5) == 1.0
    coin = np.random.default_rng(0).integers(0, 2, 4000)
    assert certainty(np.arange(4000) // 2, coin) < 0.2


def test_the_combination_is_counted():
    frame = pl.DataFrame({"age": [1, 2] * 20, "a": list(range(8)) * 5, "b": [i // 8 for i in range(40)]})
    schema = read_schema({"age": {"role": "quasi"}, "a": {"role": "other"}, "b": {"role": "other"}})
    told = examine(frame, schema)
    assert (told.columns, told.alone, told.records) == (("a", "b"), 40, 40)


def test_a_release_never_overwrites_its_source(tmp_path):
    source, link = tmp_path / "people.csv", tmp_path / "other.csv"
    source.write_text("age,ill\n" + "\n".join(f"{20 + i % 5},{'ab'[i % 2]}" for i in range(40)) + "\n")
    link.hardlink_to(source)
    before = source.read_bytes()
    data = shoal.read(source, {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})
    release = shoal.anonymize(data, shoal.KAnonymity(2), algorithm="mondrian", refine=False)
    for target in (source, link, tmp_path / "." / "people.csv"):
        with pytest.raises(shoal.InputError, match="never overwrites"):
            release.write(target, force=True)
    assert source.read_bytes() == before


def test_verify_and_attack_question_any_masked_file(tmp_path):
    rng = np.random.default_rng(6)
    masked = tmp_path / "masked.csv"
    pl.DataFrame(
        {"age": ["[20, 40]"] * N, "contact": [f"p{i}@example.org" for i in range(N)], "ill": rng.choice(list("abc"), N)}
    ).write_csv(masked)
    config = tmp_path / "shoal.toml"
    config.write_text(
        '[attributes.age]\nrole = "quasi"\n[attributes.contact]\nrole = "other"\n[attributes.ill]\nrole = "sensitive"\n[policy]\nk = 5\n'
    )
    runner = CliRunner()
    told = runner.invoke(app, ["verify", str(masked), "-c", str(config), "--json"])
    assert isinstance(told.exception, shoal.VerificationError) and "'contact'" in str(told.exception)
    attacked = runner.invoke(app, ["attack", str(masked), "-c", str(config), "--json"])
    for output in (told.stdout, attacked.stdout):
        findings = json.loads(output)["published_as_it_is"]["findings"]
        assert [(f["column"], f["refused"]) for f in findings] == [("contact", True)]


def relatives(n: int) -> dict[str, list[str]]:
    """What names people in ways that a list of dangerous columns forgets."""
    return {
        "device": [f"00:1A:2B:{i // 65536:02X}:{i // 256 % 256:02X}:{i % 256:02X}" for i in range(n)],
        "address": [f"2001:db8::{i:x}" for i in range(n)],
        "card": [f"4111 {i // 10**8 % 10**4:04d} {i // 10**4 % 10**4:04d} {i % 10**4:04d}" for i in range(n)],
        "account": [f"@person_{i}" for i in range(n)],
        "digest": [f"{i:032x}" for i in range(n)],
        "plate": [f"B-{chr(65 + i % 26)}{chr(65 + i // 26 % 26)} {i % 9000 + 100}" for i in range(n)],
        "scan": [f"scans/{i}.dcm" for i in range(n)],
        "shoe": [f"{i} inches" for i in range(n)],
    }


@pytest.mark.parametrize("column", relatives(2))
@pytest.mark.parametrize("visits", [1, 3])
def test_what_is_a_persons_own_is_refused_however_many_rows_it_stands_in(column: str, visits: int) -> None:
    rng = np.random.default_rng(8)
    n = 900
    values = relatives(n)[column]
    table = pl.DataFrame(
        {
            "pid": np.repeat(np.arange(n), visits),
            "age": np.repeat(rng.integers(18, 95, n), visits),
            column: [value for value in values for _ in range(visits)],
        }
    )
    schema = read_schema({"pid": {"role": "person"}, "age": {"role": "quasi"}, column: {"role": "other"}})
    assert [finding.column for finding in examine(table, schema).refused] == [column]
    if visits > 1 and column == "shoe":
        finding = examine(table, schema).refused[0]
        assert (finding.records, finding.of) == (n, n), "persons are counted, not rows"
        assert "tells persons apart" in finding.detail


@pytest.mark.parametrize("first", [True, False])
def test_what_follows_from_a_quasi_identifier_is_found_in_whatever_row_it_stands(first: bool) -> None:
    """A town that is written down at the second visit alone tells the zip no less than one that stands in the first."""
    n, rng = 400, np.random.default_rng(5)
    zips = rng.integers(0, 12, n)
    visit = np.tile([0, 1], n)
    towns = [f"Town {zips[i // 2] // 2}" if (visit[i] == 0) == first else None for i in range(2 * n)]
    table = pl.DataFrame({"pid": np.repeat(np.arange(n), 2), "zip": np.repeat(zips, 2), "town": towns})
    schema = read_schema({"pid": {"role": "person"}, "zip": {"role": "quasi"}, "town": {"role": "other"}})
    (finding,) = examine(table, schema).findings
    assert (finding.column, finding.problem, finding.refused) == ("town", "determined", True)


def test_what_many_persons_share_passes_in_a_table_of_visits() -> None:
    rng = np.random.default_rng(9)
    table = pl.DataFrame(
        {
            "pid": np.repeat(np.arange(900), 3),
            "age": np.repeat(rng.integers(18, 95, 900), 3),
            "ward": rng.choice(["north", "south", "east"], 2700),
            "hour": rng.integers(0, 24, 2700),
            "at": [
                f"{h:02d}:{m:02d}:00"
                for h, m in zip(rng.integers(0, 24, 2700), rng.integers(0, 4, 2700) * 15, strict=True)
            ],
        }
    )
    roles = {"pid": {"role": "person"}, "age": {"role": "quasi"}, "*": {"role": "other"}}
    schema = read_schema(roles).resolve(table.columns)
    assert examine(table, schema).refused == ()
