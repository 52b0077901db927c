"""Patterns of dates and numbers: what they read, what they refuse, and how a column that is not as it says is told."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.configuration import read_schema
from shoal.formats import pattern
from shoal.reading import as_declared


def read(text: str, values: list[str | None], decimal: str = ".") -> list[Any]:
    return pattern(text, decimal).read(pl.Series("x", values, dtype=pl.String)).to_list()


@pytest.mark.parametrize(
    ("text", "values", "wanted"),
    [
        ("DD.MM.YYYY", ["1.3.1994", " 01.12.2000 ", None], [date(1994, 3, 1), date(2000, 12, 1), None]),
        ("dd.mm.yyyy", ["01.03.1994"], [date(1994, 3, 1)]),
        ("DD.MM.YYYY", ["31.02.1994", "1/3/1994", "01.03.94", "1.3.19945", "x1.3.1994"], [None] * 5),
        ("MM/DD/YYYY", ["03/31/2024", "31/03/2024"], [date(2024, 3, 31), None]),
        ("YYYYMMDD", ["20240331", "20241331", "2024331"], [date(2024, 3, 31), None, None]),
        ("DD. MMM YYYY", ["3. März 2024", "17. Mai 1999", "3. Foo 2024"], [date(2024, 3, 3), date(1999, 5, 17), None]),
        ("DDMMMYYYY", ["17MAR2024", "01déc1999"], [date(2024, 3, 17), date(1999, 12, 1)]),
        ("MMM DD, YYYY", ["July 4, 1976"], [date(1976, 7, 4)]),
        ("DD.MM.YY to 2024", ["01.02.24", "01.02.25", "01.02.34"], [date(2024, 2, 1), date(1925, 2, 1), date(1934, 2, 1)]),
        ("MM/DD/YYYY hh:mm AM", ["3/31/2024 2:30 PM", "3/31/2024 12:05 am"], [datetime(2024, 3, 31, 14, 30), datetime(2024, 3, 31, 0, 5)]),
        ("MM/DD/YYYY hh:mm AM", ["3/31/2024 13:05 AM", "3/31/2024 0:05 AM"], [None, None]),
        ("YYYY-MM-DDThh:mm:ssZ", ["2024-03-31T23:59:00+02:00", "2024-03-31T12:00:00.25Z"], [datetime(2024, 3, 31, 23, 59), datetime(2024, 3, 31, 12, 0, 0, 250_000)]),
        ("DD.MM.YYYY hh:mm", ["01.03.2024 24:00", "01.03.2024 12:60"], [None, None]),
        ("DD.MM.YYYY", ["31.12.9999"], [date(9999, 12, 31)]),
    ],
)  # fmt: skip
def test_dates(text: str, values: list[str | None], wanted: list[Any]) -> None:
    assert read(text, values) == wanted


@pytest.mark.parametrize(
    ("text", "decimal", "values", "wanted"),
    [
        ("# €", ",", ["1.234,50 €", "-3 €", "7,5€", "1.234,50-\u00a0€"], [1234.5, -3, 7.5, -1234.5]),
        ("# €", ",", ["12,345.00 €", "1.23,4 €", "5 $", "5", "€"], [None] * 5),
        ("$#", ".", ["$45,000", "-$3.50", "($1,200.00)", "$ 12"], [45000, -3.5, -1200, 12]),
        ("$#", ".", ["($1,200.00", "$--3", "$1,20", "$1,2345"], [None] * 4),
        ("# J.", ".", ["34 J.", "34J.", " 7 j. "], [34, 34, 7]),
        ("#", ",", ["1 234,5", "1\u202f234,50", "0,5", ",5"], [1234.5, 1234.5, 0.5, 0.5]),
        ("#", ".", ["1'234.50", "1’234", "1e3", ".5", "−7"], [1234.5, 1234, 1000, 0.5, -7]),
        ("#", ".", ["", "-", ".", "1.2.3", "nan", "inf", "1e999", "０"], [None] * 8),
        ("#%", ".", ["12%", "12 %"], [12, 12]),
    ],
)
def test_numbers(text: str, decimal: str, values: list[str | None], wanted: list[Any]) -> None:
    assert read(text, values, decimal) == wanted


def test_whole_numbers_are_whole() -> None:
    assert pattern("# J.").read(pl.Series(["34 J.", "1,000 J."])).dtype == pl.Int64
    assert pattern("#", ",").read(pl.Series(["34", "1,5"])).dtype == pl.Float64


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"format": "DD.MM.YY"}, "to 2024"),
        ({"format": "DD.MM"}, "day, month and year"),
        ({"format": "DD.MM.YYYY to 2024"}, "four digits"),
        ({"format": "whatever"}, "no pattern"),
        ({"format": ""}, "no pattern"),
        ({"format": "# # €"}, "more than one #"),
        ({"format": ["DD.MM.YYYY", "# €"]}, "not as both"),
        ({"format": "DD.MM.YYYY", "kind": "number"}, "kind"),
        ({"decimal": ",", "kind": "category"}, "kind"),
        ({"decimal": ";"}, "decimal"),
        ({"missing": []}, "missing"),
    ],
)
def test_patterns_that_say_nothing_are_refused(column: dict[str, Any], words: str) -> None:
    with pytest.raises(shoal.ConfigError, match=words):
        read_schema({"x": {"role": "quasi", **column}})


def declared(values: list[Any], **column: Any) -> pl.Series:
    return as_declared(pl.DataFrame({"x": values}), read_schema({"x": {"role": "quasi", **column}}))["x"]


def test_a_column_written_in_two_ways() -> None:
    found = declared(["1.3.1994", "1994-03-02"], format=["DD.MM.YYYY", "YYYY-MM-DD"])
    assert found.to_list() == [date(1994, 3, 1), date(1994, 3, 2)]
    mixed = declared(["34 J.", "35", "3,5"], format=["# J.", "#"], decimal=",")
    assert mixed.to_list() == [34, 35, 3.5]


@pytest.mark.parametrize(
    ("values", "column", "wanted"),
    [
        ([34, -99, 999], {"missing": [-99, 999]}, [34, None, None]),
        ([34.5, -99.0], {"missing": ["-99"]}, [34.5, None]),
        (["34 J.", "k.A.", "999 J."], {"format": "# J.", "missing": ["k.A.", 999]}, [34, None, None]),
        (["1.3.1994", "31.12.9999"], {"format": "DD.MM.YYYY", "missing": ["31.12.9999"]}, [date(1994, 3, 1), None]),
        ([date(1994, 3, 1), date(9999, 12, 31)], {"missing": ["9999-12-31"]}, [date(1994, 3, 1), None]),
        (["a", "unknown "], {"missing": ["unknown"]}, ["a", None]),
        (["7", "-99"], {"missing": [-99]}, ["7", None]),
        ([20240331, 20240401], {"format": "YYYYMMDD"}, [date(2024, 3, 31), date(2024, 4, 1)]),
        ([date(2024, 3, 31)], {"format": "DD.MM.YYYY"}, [date(2024, 3, 31)]),
        ([1.5], {"decimal": ","}, [1.5]),
    ],
)
def test_missing_codes_and_tables_with_types(values: list[Any], column: dict[str, Any], wanted: list[Any]) -> None:
    assert declared(values, **column).to_list() == wanted


@pytest.mark.unshown
def test_what_is_not_as_it_says_is_told_without_its_value() -> None:
    with pytest.raises(shoal.InputError) as told:
        declared(["1.3.1994", "secret", None, "13.13.1994", "x", "y"], format="DD.MM.YYYY")
    sentence = str(told.value)
    assert "Column 'x', record 2" in sentence and "a date written as 'DD.MM.YYYY'" in sentence
    assert "4 such values, also in records 4, 5 …" in sentence and "secret" not in sentence


def test_a_list_of_people_may_be_written_otherwise() -> None:
    masked = pl.DataFrame({"born": ["[1990-01-01, 1994-12-31]"] * 3, "ill": ["flu", "cold", "flu"]})
    schema = {"born": {"role": "quasi", "format": "DD.MM.YYYY"}, "ill": "sensitive"}
    for born in ("01.03.1994", "1994-03-01"):
        found = shoal.attack(masked, schema, external=pl.DataFrame({"born": [born]}))
        assert found.exposures[-1].attack == "linking"


def test_a_file_is_read_as_its_columns_say_whatever_it_looks_like(tmp_path: Path) -> None:
    # 1.234 is no fraction where the comma is the decimal sign, and must not have become one before anybody asked.
    (tmp_path / "t.csv").write_text("age;pay\n" + "".join(f"{20 + i};1.23{i}\n" for i in range(8)))
    data = shoal.read(tmp_path / "t.csv", {"age": "quasi", "pay": {"role": "sensitive", "decimal": ","}})
    assert data.frame["pay"].to_list() == [1230 + i for i in range(8)]
    release = shoal.anonymize(
        tmp_path / "t.csv", {"k": 2}, schema={"age": "quasi", "pay": {"role": "sensitive", "decimal": ","}}
    )
    assert sorted(release.masked["pay"].to_list()) == [1230 + i for i in range(8)]
    path = release.write(tmp_path / "m.csv")
    assert shoal.verify(path, {"k": 2}, {"age": "quasi", "pay": {"role": "sensitive", "decimal": ","}}).passed


def test_a_code_for_nothing_is_no_value_in_a_masked_table() -> None:
    masked = pl.DataFrame({"age": ["[20, 29]"] * 3, "stay": [4, -99, 4]})
    schema = {"age": "quasi", "stay": {"role": "sensitive", "missing": [-99]}}
    assert not shoal.verify(masked, {"p_sensitive": {"p": 2}}, schema).passed
    assert shoal.verify(masked, {"p_sensitive": {"p": 2}}, {"age": "quasi", "stay": "sensitive"}).passed
