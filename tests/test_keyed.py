"""Shifted dates and pseudonyms: what stays, what is hidden, and where the key never is."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from base64 import b32encode
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.configuration import read_schema
from shoal.schema import Schema
from shoal.transform import require_transformed, transformed

KEY = "0123456789abcdef" * 4
OTHER = "fedcba9876543210" * 4


def keyed(folder: Path, name: str = "my.key", key: str = KEY) -> Path:
    path = folder / name
    path.write_text(key + "\n")
    path.chmod(0o600)
    return path


def schema_of(folder: Path, columns: dict[str, Any]) -> Schema:
    return Schema(read_schema(columns).attributes, folder)


VISITS = pl.DataFrame(
    {
        "pid": ["a", "a", "b", "b", "c", "c"],
        "age": [30, 30, 31, 31, 32, 32],
        "seen": [date(2024, 1, d) for d in (1, 11, 5, 6, 1, 31)],
        "ill": ["flu", "cold", "flu", "flu", "cold", "flu"],
    }
)


def test_a_token_is_the_hmac_of_the_value(tmp_path: Path) -> None:
    keyed(tmp_path)
    schema = schema_of(tmp_path, {"pid": {"role": "person", "pseudonym": "my.key"}})
    found = transformed(pl.DataFrame({"pid": ["a", "b", "a", None]}), schema)["pid"].to_list()
    digest = hmac.new(KEY.encode(), b"shoal pseudonym\0a", hashlib.sha256).digest()[:16]
    assert found[0] == found[2] == "p_" + b32encode(digest).decode().rstrip("=").lower()
    assert found[1] not in (found[0], None)
    assert found[3] is None


def test_tokens_are_equal_across_runs_with_one_key_and_different_with_another(tmp_path: Path) -> None:
    keyed(tmp_path)
    keyed(tmp_path, "other.key", OTHER)
    of = {
        name: transformed(VISITS, schema_of(tmp_path, {"pid": {"role": "identifier", "pseudonym": name}}))[
            "pid"
        ].to_list()
        for name in ("my.key", "other.key")
    }
    again = transformed(VISITS, schema_of(tmp_path, {"pid": {"role": "identifier", "pseudonym": "my.key"}}))[
        "pid"
    ].to_list()
    assert again == of["my.key"]
    assert not set(of["my.key"]) & set(of["other.key"])


@pytest.mark.parametrize("values", [[7, 12], [7.0, 12.0], ["7", "12"]])
def test_a_token_does_not_depend_on_the_type_of_the_column(tmp_path: Path, values: list[Any]) -> None:
    keyed(tmp_path)
    schema = schema_of(tmp_path, {"pid": {"role": "person", "pseudonym": "my.key"}})
    assert transformed(pl.DataFrame({"pid": values}), schema)["pid"].to_list() == [
        "p_"
        + b32encode(hmac.new(KEY.encode(), f"shoal pseudonym\0{v}".encode(), hashlib.sha256).digest()[:16])
        .decode()
        .rstrip("=")
        .lower()
        for v in ("7", "12")
    ]


def test_shifting_keeps_the_intervals_between_a_persons_dates(tmp_path: Path) -> None:
    keyed(tmp_path)
    many = pl.concat([VISITS.with_columns(pid=pl.col("pid") + str(i)) for i in range(40)])
    schema = schema_of(
        tmp_path, {"pid": "person", "seen": {"role": "other", "shift": {"days": 100, "key": "my.key"}}, "*": "other"}
    )
    moved = transformed(many, schema)
    days = (moved["seen"] - many["seen"]).dt.total_days()
    by_person = pl.DataFrame({"pid": many["pid"], "days": days}).group_by("pid").agg(pl.col("days").n_unique())
    assert set(by_person["days"]) == {1}
    assert days.min() >= -100 and days.max() <= 100
    assert days.n_unique() > 60  # persons move by different numbers of days
    assert moved["seen"].to_list() == transformed(many, schema)["seen"].to_list()


def test_the_time_of_day_stays_and_another_key_moves_otherwise(tmp_path: Path) -> None:
    keyed(tmp_path)
    keyed(tmp_path, "other.key", OTHER)
    frame = pl.DataFrame({"name": ["x", "y"], "at": [datetime(2024, 3, 1, 12, 30), datetime(2024, 3, 1, 7)]})
    found = {}
    for key in ("my.key", "other.key"):
        schema = schema_of(
            tmp_path, {"name": "identifier", "at": {"role": "other", "shift": {"days": 9999, "key": key}}}
        )
        found[key] = transformed(frame, schema)["at"]
        assert found[key].dt.time().to_list() == frame["at"].dt.time().to_list()
    assert found["my.key"].to_list() != found["other.key"].to_list()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"seen": {"role": "other", "shift": {"days": 9, "key": "my.key"}}, "*": "other"}, "no person column"),
        (
            {
                "seen": {"role": "other", "shift": {"days": 9, "key": "my.key"}},
                "pid": "identifier",
                "ill": "identifier",
                "*": "other",
            },
            'by = "…"',
        ),
        ({"seen": {"role": "other", "shift": {"days": 9, "key": "my.key", "by": "who"}}, "*": "other"}, "'who'"),
        (
            {
                "ill": {"role": "other", "kind": "category", "shift": {"days": 9, "key": "my.key", "by": "pid"}},
                "*": "other",
            },
            "no dates",
        ),
    ],
)
def test_nobody_knows_whose_dates_move(tmp_path: Path, columns: dict[str, Any], words: str) -> None:
    keyed(tmp_path)
    with pytest.raises(shoal.ConfigError, match="shift") as refused:
        transformed(VISITS, schema_of(tmp_path, columns).resolve(VISITS.columns))
    assert words in str(refused.value)


def test_a_row_that_is_nobodys_is_named(tmp_path: Path) -> None:
    keyed(tmp_path)
    schema = schema_of(
        tmp_path, {"pid": "identifier", "seen": {"role": "other", "shift": {"days": 9, "key": "my.key"}}}
    )
    with pytest.raises(shoal.InputError, match="record 2"):
        transformed(pl.DataFrame({"pid": ["a", None], "seen": [date(2024, 1, 1)] * 2}), schema)


def test_a_missing_key_is_made_for_its_owner_only(tmp_path: Path) -> None:
    schema = schema_of(tmp_path, {"pid": {"role": "person", "pseudonym": "new.key"}})
    with pytest.warns(UserWarning, match="new.key"):
        first = transformed(VISITS, schema.resolve(["pid"]))
    assert (tmp_path / "new.key").stat().st_mode & 0o777 == 0o600
    assert transformed(VISITS, schema)["pid"].equals(first["pid"])


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    keyed(tmp_path).chmod(mode)
    with pytest.raises(shoal.ConfigError, match="read by others"):
        transformed(VISITS, schema_of(tmp_path, {"pid": {"role": "person", "pseudonym": "my.key"}}))


def test_keys_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    keyed(tmp_path, "short.key", "secret")
    for name, words in (("short.key", "guessed"), ("folder", "no file"), ("nowhere/my.key", "cannot be used")):
        with pytest.raises(shoal.ConfigError, match=words):
            transformed(VISITS, schema_of(tmp_path, {"pid": {"role": "person", "pseudonym": name}}))


@pytest.mark.parametrize("role", ["identifier", "person"])
def test_a_masked_table_with_raw_keys_is_found(tmp_path: Path, role: str) -> None:
    schema = schema_of(tmp_path, {"pid": {"role": role, "pseudonym": "my.key"}, "age": "quasi"})
    masked = pl.DataFrame({"pid": ["p_" + "a" * 26] * 2 + ["Ann"], "age": ["[30, 31]"] * 3})
    with pytest.raises(shoal.VerificationError, match=r"'pid'.*1 of its published values"):
        require_transformed(masked, schema)
    with pytest.raises(shoal.VerificationError, match="'pid'"):
        shoal.verify(masked, {"k": 2}, schema)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"role": "quasi", "pseudonym": "k"}, "pseudonym"),
        ({"role": "person", "pseudonym": "k", "publish": "token"}, "publish"),
        ({"role": "identifier", "shift": {"days": 3, "key": "k"}}, "shift"),
        ({"role": "other", "shift": {"days": 0, "key": "k"}}, "days"),
        ({"role": "other", "shift": {"dayz": 3, "key": "k"}}, "days"),
    ],
)
def test_declarations_that_make_no_sense(column: dict[str, Any], words: str) -> None:
    with pytest.raises(shoal.ConfigError, match=words):
        read_schema({"x": column})


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_release_is_verified_linkable_and_without_its_key(tmp_path: Path, suffix: str) -> None:
    key = keyed(tmp_path)
    visits = pl.concat([VISITS.with_columns(pl.col("pid") + str(i), pl.col("age") + i) for i in range(20)])
    attributes = {
        "pid": {"role": "person", "pseudonym": "my.key"},
        "age": "quasi",
        "seen": {
            "role": "other",
            "shift": {"days": 50, "key": "my.key"},
            "truncate": "month",
            "accept": "months of visits",
        },
        "ill": "sensitive",
    }
    schema = schema_of(tmp_path, attributes)
    release = shoal.anonymize(visits, {"k": 3}, schema=schema, algorithm="mondrian", refine=False)
    path = release.write(tmp_path / f"masked{suffix}")
    assert shoal.verify(path, {"k": 3}, schema).passed
    assert release.evidence.persons == 60
    told = json.loads((tmp_path / f"masked{suffix}.manifest.json").read_text())
    assert told["transformations"] == {
        "pid": {"pseudonym": "HMAC-SHA256"},
        "seen": {"truncate": "month", "shift": {"days": 50}},
    }
    assert release.masked["pid"].n_unique() == 60
    assert set(release.masked["seen"].dt.day()) == {1}
    for written in tmp_path.iterdir():
        content = written.read_bytes()
        assert (KEY.encode() in content) == (written == key)
        assert bytes.fromhex(KEY) not in content


def test_an_identifier_stays_as_a_token_where_it_is_one(tmp_path: Path) -> None:
    keyed(tmp_path)
    frame = pl.DataFrame(
        {"case": [f"C{i}" for i in range(40)], "age": [i // 4 for i in range(40)], "ill": ["flu", "cold"] * 20}
    )
    schema = schema_of(
        tmp_path, {"case": {"role": "identifier", "pseudonym": "my.key"}, "age": "quasi", "ill": "sensitive"}
    )
    release = shoal.anonymize(frame, {"k": 4}, schema=schema, algorithm="mondrian", refine=False)
    assert release.masked["case"].n_unique() == 40
    assert release.verify().passed
    # One that repeats is a person's: rows of one would count as several.
    with pytest.raises(shoal.InputError, match="repeats"):
        shoal.anonymize(frame.with_columns(case=pl.lit("C") + (pl.col("age")).cast(pl.String)), {"k": 4}, schema=schema)


def test_a_pseudonym_that_stands_for_a_quasi_identifier_is_refused(tmp_path: Path) -> None:
    keyed(tmp_path)
    frame = pl.DataFrame({"zip": [f"{10000 + i % 7}" for i in range(70)], "ward": [f"W{i % 7}" for i in range(70)]})
    schema = schema_of(tmp_path, {"zip": "quasi", "ward": {"role": "other", "pseudonym": "my.key"}})
    with pytest.raises(shoal.InputError, match=r"'ward'.*determines the quasi-identifier 'zip'"):
        shoal.anonymize(frame, {"k": 5}, schema=schema)


def test_a_store_takes_no_keys(tmp_path: Path) -> None:
    keyed(tmp_path)
    schema = schema_of(tmp_path, {"pid": {"role": "identifier", "pseudonym": "my.key"}, "*": "quasi"})
    with pytest.raises(shoal.UnsupportedError, match="pseudonyms"):
        shoal.Store.create(f"sqlite:///{tmp_path}/s.db", VISITS, shoal.KAnonymity(2), key="pid", schema=schema)
