"""`shoal anonymize --engine spark`, and the same from Python: what DuckDB and memory release, in a folder or the catalog."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli.test_targets import CONFIG, TABLE
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.errors import ConfigError, InputError, UnsupportedError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    TABLE.write_parquet("people.parquet")
    Path("shoal.toml").write_text(CONFIG.format(source='path = "people.parquet"'))
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["anonymize", *arguments])


def test_a_folder_of_parquet_with_the_same_rows_and_manifest_as_in_memory(spark: Any, folder: Path) -> None:
    done = run("-o", "large.parquet", "--engine", "spark", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["settings"]["engine"] == "spark" and told["evidence"]["passed"]
    assert run("-o", "small.parquet", "--engine", "duckdb", "--quiet").exit_code == 0
    one, other = pl.read_parquet("large.parquet/*.parquet"), pl.read_parquet("small.parquet")
    assert one.sort(one.columns, nulls_last=True).equals(other.sort(other.columns, nulls_last=True))
    halves = [json.loads(Path(f"{name}.parquet.manifest.json").read_text()) for name in ("large", "small")]
    for half in halves:
        half.pop("output_sha256"), half.pop("input_commitment")
    assert halves[0] == halves[1]
    assert list(folder.glob(".shoal*")) == []
    again = run("-o", "large.parquet", "--engine", "spark")
    assert again.exit_code != 0 and "already exists" in str(again.exception)
    assert "masking" not in again.output


def test_a_folder_of_text_that_verify_reads_and_the_report_of_memory(spark: Any, folder: Path) -> None:
    done = run("-o", "large.csv", "--engine", "spark", "--report", "large.html", "--for", "public")
    assert done.exit_code == 0, done.output
    done = run("-o", "small.csv", "--engine", "duckdb", "--quiet", "--report", "small.html", "--for", "public")
    assert done.exit_code == 0, done.output
    pages = [Path(f"{name}.html").read_text().replace(f"{name}.", "masked.") for name in ("large", "small")]
    assert [re.sub("[0-9a-f]{64}", "digest", one) for one in pages] == [re.sub("[0-9a-f]{64}", "digest", pages[0])] * 2
    lines = ["".join(one.read_text() for one in sorted(Path("large.csv").iterdir())), Path("small.csv").read_text()]
    assert sorted(lines[0].splitlines()) == sorted(lines[1].splitlines())
    assert json.loads(Path("large.csv.manifest.json").read_text())["output_sha256"] in Path("large.html").read_text()
    verified = CliRunner().invoke(app, ["verify", "large.csv", "-c", "shoal.toml", "--manifest"])
    assert verified.exit_code == 0, verified.output
    assert list(folder.glob(".shoal*")) == []


def test_python_takes_a_spark_frame_and_gives_one(spark: Any, folder: Path) -> None:
    frame = spark.read.parquet(str(folder / "people.parquet"))
    with shoal.anonymize(frame, "shoal.toml", algorithm="mondrian", refine=False, staging=folder) as release:  # type: ignore[attr-defined]
        assert type(release.frame) is type(frame)
        found = pl.DataFrame(pl.from_arrow(release.frame.toArrow()))
    wanted = shoal.anonymize(TABLE, "shoal.toml", algorithm="mondrian", refine=False).frame
    assert found.sort(found.columns, nulls_last=True).equals(wanted.sort(wanted.columns, nulls_last=True))
    assert list(folder.glob(".shoal*")) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-o", "masked.xlsx", "--engine", "spark"), "Spark writes a folder of Parquet or text files"),
        (("-o", "masked.parquet", "--engine", "spark", "--report", "r.txt"), "no name for a report"),
        (("-o", "masked.parquet", "--engine", "spark", "gone.parquet"), "Spark cannot read"),
        (
            ("-o", "masked.parquet", "--engine", "spark", "--master", "local[7]"),
            "A Spark session runs already, at local[2]",
        ),
        (("-o", "masked.parquet", "--master", "local[2]"), "it belongs to --engine spark"),
    ],
    ids=str,
)
def test_what_cannot_be_is_a_sentence(arguments: tuple[str, ...], says: str, spark: Any, folder: Path) -> None:
    done = run(*arguments)
    assert done.exit_code != 0
    assert says in str(done.exception), done.output
    assert not list(folder.glob("masked*")) and not list(folder.glob(".shoal*"))


def test_names_are_no_schema_and_other_frames_are_no_spark_frames(spark: Any, folder: Path) -> None:
    frame = spark.read.parquet(str(folder / "people.parquet"))
    with pytest.raises(ConfigError, match="needs a schema that declares every column"):
        shoal.anonymize(frame, {"k": 2}, quasi=[frame.columns[0]])
    with pytest.raises(UnsupportedError, match="masks Spark data frames"):
        shoal.anonymize(TABLE, "shoal.toml", engine="spark")
    with pytest.raises(InputError, match="Spark cannot read 'no_such_table'"):
        shoal.anonymize("no_such_table", "shoal.toml", engine="spark")
