"""Files of SPSS, Stata and SAS: labels, missing values, and what is said where they cannot be read."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import polars as pl
import pyreadstat
import pytest

import shoal
from shoal.io import read_table, write_table

TABLE = pl.DataFrame(
    {
        "sex": [1.0, 2.0, 1.0, None],
        "age": [34.0, -8.0, 51.0, 40.0],
        "score": [1.5, 2.0, None, 9.0],
        "seen": [date(2024, 3, 31), None, date(1999, 1, 1), date(2020, 2, 29)],
        "town": ["Bonn", "", "Köln", "Ulm"],
    }
)
LABELS = {"sex": {1: "female", 2: "male"}, "age": {-8: "don't know", 34: "a special age"}}


@pytest.mark.parametrize(("suffix", "write"), [(".sav", pyreadstat.write_sav), (".dta", pyreadstat.write_dta)])
def test_labels_are_values_where_all_have_one(tmp_path: Path, suffix: str, write) -> None:
    path = tmp_path / f"survey{suffix}"
    write(TABLE, str(path), variable_value_labels=LABELS)
    found = read_table(path)
    assert found["sex"].to_list() == ["female", "male", "female", None]
    # Where only some have a label the numbers stay, and "don't know" is no age.
    assert found["age"].to_list() == [34, None, 51, 40]
    assert found["score"].to_list() == [1.5, 2.0, None, 9.0]
    assert found["seen"].to_list() == TABLE["seen"].to_list()
    assert found["town"].to_list() == ["Bonn", None, "Köln", "Ulm"]


def test_what_spss_calls_missing_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "survey.sav"
    pyreadstat.write_sav(TABLE, str(path), missing_ranges={"score": [9.0]})
    assert read_table(path)["score"].to_list() == [1.5, 2.0, None, None]


def test_a_transport_file_of_sas(tmp_path: Path) -> None:
    path = tmp_path / "survey.xpt"
    pyreadstat.write_xport(TABLE, str(path))
    found = read_table(path, columns=["age", "seen"])
    assert found.rows()[0] == (34, date(2024, 3, 31))


def test_a_broken_file_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "survey.sav"
    pyreadstat.write_sav(TABLE, str(path))
    for content in (path.read_bytes()[:200], b"age,sex\n1,2\n"):
        path.write_bytes(content)
        with pytest.raises(shoal.InputError, match=r"not a whole \.sav file"):
            read_table(path)


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "survey.dta").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(shoal.ShoalError, match=r"pip install 'shoal\[stats\]'"):
        read_table(tmp_path / "survey.dta")


def test_they_are_neither_written_nor_verified(tmp_path: Path) -> None:
    path = tmp_path / "masked.sav"
    with pytest.raises(shoal.InputError, match="not written"):
        write_table(TABLE, path)
    pyreadstat.write_sav(TABLE, str(path))
    with pytest.raises(shoal.InputError, match="read as originals"):
        shoal.verify(path, {"k": 2}, quasi="age")


@pytest.mark.parametrize("option", [{"header": ["a"]}, {"skip_rows": 1}])
def test_they_bring_their_names(tmp_path: Path, option: dict) -> None:
    path = tmp_path / "survey.sav"
    pyreadstat.write_sav(TABLE, str(path))
    with pytest.raises(shoal.ConfigError, match="brings its own column names"):
        read_table(path, **option)
