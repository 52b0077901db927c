"""Exports of several countries and programs through `shoal init`, untouched: kinds, dates, decimals and missing codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.spellings import DIALECTS, FILES, GERMAN, SEX, clinic, german, text_file, write
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.columns import typed
from shoal.configuration import Configuration, read_config
from shoal.configured import load
from shoal.dialects import detected
from shoal.errors import InputError
from shoal.io.delimited import parse_delimited, without_last

ROOT = Path(__file__).parents[1]
KINDS = {
    "born": "date",
    "seen": "date",
    "age": "number",
    "weight": "number",
    "cost": "number",
    "zip": "category",
    "smoker": "category",
}


def suggested(path: Path, *options: str) -> Configuration:
    target = path.parent / "shoal.toml"
    result = CliRunner().invoke(app, ["init", str(path), "-o", str(target), "--force", "--quiet", *options])
    assert result.exception is None, result.exception
    return read_config(target)


def kinds(configuration: Configuration, table: pl.DataFrame) -> dict[str, str | None]:
    """What the configuration says a column is, or what its values are where it says nothing."""
    found: dict[str, str | None] = {}
    for name in KINDS:
        dtype = table[name].dtype
        own = configuration.schema.attributes[name].kind
        found[name] = own or ("date" if dtype.is_temporal() else "number" if dtype.is_numeric() else "category")
    return found


@pytest.mark.parametrize("name", [*DIALECTS, *FILES])
def test_an_export_is_read_as_it_is_meant(tmp_path: Path, name: str) -> None:
    meant = clinic()
    configuration = suggested(write(name, meant, tmp_path))
    read = load(configuration).frame
    assert kinds(configuration, read) == KINDS
    for column in ("born", "seen"):
        days = typed(read[column], configuration.schema.attributes[column])[0]
        assert days.cast(pl.Date).equals(meant[column])
    assert read["age"].cast(pl.Int64).equals(meant["age"])
    for column in ("weight", "cost"):
        assert (read[column].cast(pl.Float64) - meant[column]).abs().max() < 1e-9
        assert read[column].null_count() == meant[column].null_count()
    assert read["diagnosis"].equals(meant["diagnosis"])
    assert read["zip"].cast(pl.String).equals(meant["zip"])
    assert set(read["sex"]) == set(SEX.values())
    assert read.columns == meant.columns


def test_every_dialect_is_listed_in_the_manual() -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    assert len(DIALECTS) + len(FILES) >= 15
    assert [name for name in (*DIALECTS, *FILES) if f"| {name} |" not in page] == []


def test_a_german_clinic_loses_no_more_than_a_table_cleaned_by_hand(tmp_path: Path) -> None:
    meant = clinic(1200, 8)
    (tmp_path / "raw").mkdir()
    (tmp_path / "clean").mkdir()
    raw = text_file(meant, GERMAN._replace(encoding="cp1252"), tmp_path / "raw" / "export.csv")
    meant.write_csv(tmp_path / "clean" / "export.csv")
    losses = {}
    for path in (raw, tmp_path / "clean" / "export.csv"):
        data = load(suggested(path))
        release = shoal.anonymize(data, {"k": 5}, algorithm="mondrian", refine=False)
        losses[path.parent.name] = release.measures.ncp
        assert not any(german(day) in " ".join(map(str, release.masked.row(0))) for day in meant["seen"])
    assert losses["raw"] <= 1.1 * losses["clean"]


def dialect(values: list[Any], name: str = "x", **others: list[Any]) -> tuple[dict[str, Any], list[str], pl.Series]:
    read, found, notes = detected(pl.DataFrame({name: values, **others}), year=2024)
    return (found[name].keys if name in found else {}), [told for column, told in notes if column == name], read[name]


def test_days_and_months_that_could_be_either_are_asked() -> None:
    either = [f"{1 + i % 12:02d}/{1 + i % 11:02d}/2020" for i in range(60)]
    first = [f"{13 + i % 15}/03/2020" for i in range(60)]
    comma = [f"{i},5" for i in range(60)]
    keys, notes, _ = dialect(either)
    assert keys == {"format": "MM/DD/YYYY"} and "two ways" in notes[0] and "a guess" in notes[0]
    keys, notes, _ = dialect(either, other=first)
    assert keys == {"format": "DD/MM/YYYY"} and "other columns" in notes[0]
    keys, notes, _ = dialect(either, other=comma)
    assert keys == {"format": "DD/MM/YYYY"} and notes
    # Between points the day comes first, everywhere.
    assert dialect([text.replace("/", ".") for text in either])[:2] == ({"format": "DD.MM.YYYY"}, [])


def test_one_comma_before_three_digits_is_asked() -> None:
    grouped = [f"{1 + i % 9},{100 + i}" for i in range(60)]
    keys, notes, read = dialect(grouped)
    assert keys == {"decimal": "."} and "two ways" in notes[0] and read[0] == 1100
    keys, notes, read = dialect(grouped, other=[f"{i},5" for i in range(60)])
    assert keys == {"decimal": ","} and notes and read[0] == 1.1
    assert dialect([f"${text}" for text in grouped])[:2] == ({"format": "$#"}, [])
    assert dialect([*grouped, "0,25"])[:2] == ({"decimal": ","}, [])
    # 1.234 is a fraction, unless everything else is written with commas.
    points = [text.replace(",", ".") for text in grouped]
    assert dialect(points)[:2] == ({}, [])
    keys, notes, read = dialect(points, other=[f"{i},5" for i in range(60)])
    assert keys == {"decimal": ","} and notes and read[0] == 1100


@pytest.mark.parametrize(
    ("values", "keys", "told"),
    [
        ([f"{1 + i % 28:02d}.03.2020" for i in range(99)] + ["gestern"], {"format": "DD.MM.YYYY"}, "1 values that are no dates"),
        ([f"{1 + i % 28:02d}.03.2020" for i in range(97)] + ["unklar"] * 3, {"format": "DD.MM.YYYY", "missing": ["unklar"]}, None),
        ([f"{1 + i % 28:02d}.03.2020" for i in range(90)] + ["31.02.2020"] * 10, {}, None),
        ([f"{1 + i % 28:02d}/02/2020" for i in range(50)] + [f"02/{1 + i % 28:02d}/2020" for i in range(50)], {}, "day first"),
        ([f"{1 + i % 28:02d}.03.{i % 99:02d}" for i in range(99)], {"format": "DD.MM.YY to 2024"}, None),
        ([f"{i} y" for i in range(70)] + [f"{i} m" for i in range(30)], {}, "different units"),
        ([f"{i}.{i % 10}" for i in range(95)] + ["<0.5"] * 5, {"format": ["#", "<#"]}, None),
        ([f"{20 + i % 70}" for i in range(95)] + ["90+"] * 5, {"format": ["#", "#+"]}, None),
        ([f"12,{10 + i % 80},567" for i in range(60)], {"decimal": "."}, None),
        ([f"{20 + i},50 €/h" for i in range(60)], {"format": "# €/h", "decimal": ","}, None),
        ([f"{10_000_000 + 7 * i}{'TRWAGMYFP'[i % 9]}" for i in range(90)], {}, None),
        ([f"{2000 + i % 20}-{1 + i % 12:02d}" for i in range(60)], {"format": "YYYY-MM"}, None),
        ([f"{2000 + i % 11}-{1 + i % 11:02d}" for i in range(60)], {}, None),
        ([f"{1 + i % 12:02d}/{2000 + i % 20}" for i in range(60)], {"format": "MM/YYYY"}, None),
        ([1_600_000_000 + 86_400 * i for i in range(60)], {}, None),
        ([None] * 20, {}, None),
        (["n/a"] * 20, {}, None),
        ([f"0{1000 + i}" for i in range(60)], {}, None),
        ([f"J{10 + i}.0" for i in range(60)], {}, None),
        ([f"{i}a" for i in range(60)], {}, None),
        ([f"10.0.{i}.1" for i in range(60)], {}, None),
        ([f"{i}-{i + 9}" for i in range(60)], {}, None),
        (["yes", "no", "unbekannt"] * 20, {"missing": ["unbekannt"]}, None),
        (["DE", "FR", "NA", "KA"] * 20, {}, None),
        ([12345678 + 7919 * i for i in range(60)], {}, None),
        ([20200100 + 1 + i % 28 for i in range(60)], {"format": "YYYYMMDD"}, None),
    ],
)  # fmt: skip
def test_doubtful_columns(values: list[Any], keys: dict[str, Any], told: str | None) -> None:
    series = pl.Series(values, dtype=pl.String) if all(value is None for value in values) else values
    found, notes, _ = dialect(series)  # type: ignore[arg-type]
    assert found == keys
    assert (notes == []) if told is None else (told in notes[0])


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([*range(18, 90), -99, -99], [-99]),
        ([*range(18, 90), -99], [-99]),
        ([*range(18, 90), 999, 999], [999]),
        ([*range(18, 98), *[99] * 12], [99]),
        ([*range(18, 100)], []),
        ([*range(100)] * 2, []),
        ([1, 2, 3, 4, 5] * 20 + [9] * 5, [9]),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9] * 20, []),
        ([0, 1, 2, 3] * 50 + [9], []),
        ([-40.5, 12.0, 33.0, -9.0] * 20, []),
        ([500, 900, 1000, 4000, 999] * 9, []),
        ([0, 1, 99] * 20, [99]),
        ([150.5, 171.0, 999.9, 999.9, 182.5], [999.9]),
        ([5, 5, 5, -99], []),
    ],
)
def test_codes_are_told_by_gap_and_frequency(values: list[float], codes: list[float]) -> None:
    assert dialect(values)[0].get("missing", []) == codes


def test_seconds_are_counted_under_names_that_speak_of_time() -> None:
    seconds = [1_600_000_000 + 86_400 * i for i in range(60)]
    for name in ("created_at", "last_login", "timestamp"):
        keys, notes, read = dialect(seconds, name)
        assert (keys, notes, str(read[0])) == ({"format": "epoch"}, [], "2020-09-13 12:26:40")
    keys, _, read = dialect([1000 * one for one in seconds], "updated")
    assert (keys, str(read[0])) == ({"format": "epoch ms"}, "2020-09-13 12:26:40")
    assert dialect(seconds, "npi")[0] == dialect(seconds, "at_physician_npi")[0] == {}


def test_a_guessed_encoding_a_sheet_and_totals_are_said(tmp_path: Path) -> None:
    lines = "imię;wiek\n" + "".join(f"Paweł{i};{20 + i % 50}\n" for i in range(40)) + "Razem;2000\n"
    (tmp_path / "t.csv").write_bytes(lines.encode("cp1250"))
    result = CliRunner().invoke(app, ["init", str(tmp_path / "t.csv"), "-o", str(tmp_path / "shoal.toml")])
    assert result.exception is None, result.exception
    source = read_config(tmp_path / "shoal.toml").config.source
    assert (source.encoding, source.delimiter, source.skip_last) == ("cp1250", ";", 1)
    assert "read as cp1250, a guess" in result.stdout.replace("\n", " ") and "skip_last" in result.stdout
    kept = suggested(tmp_path / "t.csv", "--skip-last", "0").config.source
    assert kept.skip_last == 0
    # A last line that lacks a value is a mistake and no remark.
    (tmp_path / "r.csv").write_text("age,sex\n1,f\n2,m\n3\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="line 4"):
        suggested(tmp_path / "r.csv")


def test_dates_that_stand_for_none() -> None:
    days = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.{1990 + i % 30}" for i in range(90)]
    assert dialect([*days, "31.12.9999"])[0] == {"format": "DD.MM.YYYY", "missing": ["31.12.9999"]}
    assert dialect([*days, *["01.01.1900"] * 5])[0] == {"format": "DD.MM.YYYY", "missing": ["01.01.1900"]}
    assert dialect([*days, "01.01.1980"])[0] == {"format": "DD.MM.YYYY"}


def test_options_win_over_what_is_found(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "Titel\nage;pay\n" + "".join(f"{20 + i};{i},5\n" for i in range(30)), encoding="cp1252"
    )
    found = suggested(tmp_path / "t.csv").config.source
    assert (found.skip_rows, found.delimiter) == (1, ";")
    told = suggested(tmp_path / "t.csv", "--skip-rows", "1", "--delimiter", ";", "--encoding", "cp1252").config.source
    assert (told.skip_rows, told.delimiter, told.encoding) == (1, ";", "cp1252")


def test_a_column_of_codes_is_no_number() -> None:
    table = pl.DataFrame(
        {
            "isco_code": [1000 + 37 * (i % 90) for i in range(300)],
            "flag": [0, 1, 1] * 100,
            "hours": [i % 60 for i in range(300)],
        }
    )
    assert {column.name: column.kind for column in shoal.profile(table).columns} == {
        "isco_code": "category",
        "flag": "category",
        "hours": "number",
    }


def test_more_lines_below_the_table_than_there_are_lines() -> None:
    assert without_last(b"a\n1\n\ntotal \n \n", 1) == b"a\n1\n\n"
    assert without_last(b"a\n1\n", 0) == b"a\n1\n"
    assert without_last(b"a\r\n1\r\ntotal", 10**18) == b""
    with pytest.raises(InputError, match="holds no header and no records"):
        parse_delimited(b"a,b\n1,2\n", "the table", skip_last=10**18)
