"""Where `shoal anonymize` writes besides files: a table of a database, verified before its transaction ends."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.io.sql import read_sql, same_table, write_sql

TABLE = pl.DataFrame(
    {
        "age": [20 + i // 2 for i in range(40)],
        "seen": pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 2, 9), eager=True),
        "insured": [i % 3 == 0 for i in range(40)],
        "dose": [i % 4 / 4 for i in range(40)],
        "ill": ["flu", "cold", "ulcer", None] * 10,
    }
)
CONFIG = """
[source]
{source}
[attributes.age]
role = "quasi"
[attributes.seen]
role = "quasi"
[attributes.insured]
role = "other"
[attributes.dose]
role = "other"
[attributes.ill]
role = "sensitive"
[policy]
k = 4
[method]
algorithm = "mondrian"
refine = false
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    TABLE.write_parquet("people.parquet")
    Path("shoal.toml").write_text(CONFIG.format(source='path = "people.parquet"'))
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["anonymize", *arguments, "--quiet"])


def test_a_release_in_a_database(folder: Path) -> None:
    result = run("-o", "sqlite:///release.db", "--table", "masked")
    assert result.exception is None, result.exception
    masked = read_sql("sqlite:///release.db", table="masked")
    assert masked.height == 40
    policy, schema = {"k": 4}, "shoal.toml"
    assert shoal.verify(masked, policy, schema).passed
    told = json.loads((folder / "masked.manifest.json").read_text())
    assert told["evidence"]["passed"] and len(told["output_sha256"]) == 64
    assert (folder / "masked.secret.json").stat().st_mode & 0o077 == 0
    with sqlite3.connect("release.db") as connection:
        kinds = {row[1]: row[2] for row in connection.execute("PRAGMA table_info(masked)")}
    assert (kinds["insured"], kinds["dose"], kinds["age"]) == ("BOOLEAN", "DOUBLE", "TEXT")


def test_nothing_is_overwritten_unasked(folder: Path) -> None:
    assert run("-o", "sqlite:///release.db", "--table", "masked").exception is None
    refused = run("-o", "sqlite:///release.db", "--table", "masked").exception
    assert isinstance(refused, shoal.InputError) and "already exists" in str(refused)
    assert run("-o", "sqlite:///release.db", "--table", "masked", "--force").exception is None


@pytest.mark.parametrize("name", ["people", "main.people"])
def test_a_release_never_takes_the_place_of_its_table(folder: Path, name: str) -> None:
    write_sql(TABLE, "sqlite:///source.db", "people")
    Path("shoal.toml").write_text(CONFIG.format(source='url = "sqlite:///source.db"\ntable = "people"'))
    refused = run("-o", f"sqlite:///{folder}/source.db", "--table", name, "--force").exception
    assert isinstance(refused, shoal.InputError) and "made from" in str(refused)
    assert read_sql("sqlite:///source.db", table="main.people").equals(read_sql("sqlite:///source.db", table="people"))
    assert run("-o", "sqlite:///source.db", "--table", "masked").exception is None


def test_requests_that_make_no_sense(folder: Path) -> None:
    for arguments, words in (
        (["-o", "sqlite:///release.db"], "--table"),
        (["-o", "masked.csv", "--table", "masked"], "--table belongs"),
        (["-o", "sqlite:///nowhere/release.db", "--table", "t"], "does not exist"),
        (["-o", "mysterious://x", "--table", "t"], "unknown kind of database"),
    ):
        refused = run(*arguments).exception
        assert isinstance(refused, shoal.ShoalError) and words in str(refused)
    assert not list(folder.glob("*.json")) and not list(folder.glob("*.db"))


def test_what_does_not_read_back_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = shoal.read("people.parquet", "shoal.toml")
    release = shoal.anonymize(data, {"k": 4}, algorithm="mondrian", refine=False)

    def other(connection: Any, statement: Any, label: str) -> pl.DataFrame:
        return release.typed.with_columns(pl.lit("30").alias("age"))

    monkeypatch.setattr("shoal.io.sql._fetch", other)
    with pytest.raises(shoal.InputError, match="'age' does not read back"):
        release.write_sql("sqlite:///release.db", "masked")
    assert not list(folder.glob("*.json")) and not list(folder.glob("*.db"))


def test_the_same_table_by_other_names(tmp_path: Path) -> None:
    here = f"sqlite:///{tmp_path}/a.db"
    assert same_table((here, "t"), (f"sqlite:///{tmp_path}/../{tmp_path.name}/a.db", "main.t"))
    assert not same_table((here, "t"), (here, "u"))
    server = "postgresql://one:secret@host/clinic"
    assert same_table((server, "visits"), ("postgresql://two@host/clinic", "public.visits"))
    assert not same_table((server, "clinic.visits"), (server, "visits"))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".jsonl"])
def test_booleans_and_short_numbers_stay_what_they_were(folder: Path, suffix: str) -> None:
    short = TABLE.with_columns(pl.col("dose").cast(pl.Float32), ward=pl.Series([1, 2] * 20, dtype=pl.UInt8))
    short.write_parquet("people.parquet")
    text = Path("shoal.toml").read_text().replace("[policy]", '[attributes.ward]\nrole = "other"\n[policy]')
    Path("shoal.toml").write_text(text)
    assert run("-o", f"masked{suffix}").exception is None
    read = {".parquet": pl.read_parquet, ".arrow": pl.read_ipc, ".jsonl": pl.read_ndjson}[suffix]
    found = read(f"masked{suffix}").schema
    assert found["insured"] == pl.Boolean
    if suffix != ".jsonl":
        assert (found["dose"], found["ward"]) == (pl.Float32, pl.UInt8)
    result = CliRunner().invoke(
        app, ["verify", f"masked{suffix}", "--manifest", "--secret", f"masked{suffix}.secret.json", "--quiet"]
    )
    assert result.exception is None, result.exception
    assert run("-o", "masked.csv").exception is None
    assert set(pl.read_csv("masked.csv", infer_schema=False)["insured"]) == {"True", "False"}


def test_frames_come_back_with_their_types_and_pandas_with_its_index() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"age": list(range(20, 40)), "insured": [True, False] * 10, "ill": ["flu", "cold"] * 10},
        index=[f"row {i}" for i in range(20)],
    )
    roles = {"age": "quasi", "insured": "other", "ill": "sensitive"}
    how: dict[str, Any] = {"schema": roles, "algorithm": "mondrian", "refine": False}
    kept = shoal.anonymize(frame, {"k": 4}, order="keep", **how).frame
    assert list(kept.index) == list(frame.index)
    assert kept["insured"].dtype == bool and kept["insured"].tolist() == frame["insured"].tolist()
    # In another order the index would say who is who.
    shuffled = shoal.anonymize(frame, {"k": 4}, **how).frame
    assert list(shuffled.index) == list(range(20))
    assert shuffled["insured"].dtype == bool
    polars = shoal.anonymize(pl.from_pandas(frame), {"k": 4}, **how).frame
    assert polars["insured"].dtype == pl.Boolean
    arrow = shoal.anonymize(pl.from_pandas(frame).to_arrow(), {"k": 4}, **how).frame
    assert str(arrow.schema.field("insured").type) == "bool"
