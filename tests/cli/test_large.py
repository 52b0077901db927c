"""`--engine duckdb` and `--memory`: the same release from a table that is not read, chosen when it does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli.test_targets import CONFIG, TABLE
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.engines import choosing
from shoal.engines.choosing import bytes_of, choose, estimated
from shoal.errors import ConfigError, InputError
from shoal.io.files import read_table
from shoal.io.sql import read_sql, store_sql, write_sql


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "spill"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spill"))
    (tmp_path / "spill").mkdir()
    TABLE.write_parquet("people.parquet")
    Path("shoal.toml").write_text(CONFIG.format(source='path = "people.parquet"'))
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["anonymize", *arguments])


def test_the_same_release_as_in_memory(folder: Path) -> None:
    done = run("-o", "large.parquet", "--engine", "duckdb", "--memory", "1GB", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["settings"]["engine"] == "duckdb" and told["evidence"]["passed"]
    assert run("-o", "small.parquet", "--quiet").exit_code == 0
    one, other = (pl.read_parquet(f"{name}.parquet") for name in ("large", "small"))
    assert one.schema == other.schema
    assert one.sort(one.columns, nulls_last=True).equals(other.sort(other.columns, nulls_last=True))
    halves = [json.loads(Path(f"{name}.parquet.manifest.json").read_text()) for name in ("large", "small")]
    for half in halves:
        half.pop("output_sha256"), half.pop("input_commitment")
    assert halves[0] == halves[1]
    assert list((folder / "spill").iterdir()) == []
    verified = CliRunner().invoke(app, ["verify", "large.parquet", "-c", "shoal.toml", "--manifest"])
    assert verified.exit_code == 0, verified.output


def test_a_secret_half_says_that_another_engine_made_it(folder: Path) -> None:
    assert run("-o", "large.parquet", "--engine", "duckdb", "--quiet").exit_code == 0
    done = CliRunner().invoke(
        app,
        [
            "verify",
            "large.parquet",
            "-c",
            "shoal.toml",
            "--secret",
            "large.parquet.secret.json",
            "--original",
            "people.parquet",
        ],
    )
    assert done.exit_code != 0


def test_auto_takes_duckdb_when_the_table_does_not_fit_and_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "RECORD", 10**8)
    done = run("-o", "masked.parquet", "--memory", "1GB")
    assert done.exit_code == 0, done.output
    said = " ".join((done.output + (done.stderr if done.stderr_bytes else "")).split())
    assert "Engine: duckdb, with 1.0 GB of memory: it would take about 4.0 GB" in said


def test_the_configuration_may_say_it(folder: Path) -> None:
    text = Path("shoal.toml").read_text().replace("[method]\n", '[method]\nengine = "duckdb"\n')
    Path("shoal.toml").write_text(text)
    done = run("-o", "masked.parquet", "--json")
    assert json.loads(done.stdout)["settings"]["engine"] == "duckdb"
    assert json.loads(run("-o", "m.parquet", "--engine", "memory", "--json").stdout)["settings"].get("engine") is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-o", "masked.xlsx", "--engine", "duckdb"), "written as .parquet, .csv or .tsv"),
        (("-o", "masked.csv.gz", "--engine", "duckdb"), "written as .parquet, .csv or .tsv"),
        (("-o", "masked.parquet", "--engine", "duckdb", "--report", "r.txt"), "no name for a report"),
        (("-o", "masked.parquet", "--engine", "duck"), "engine = 'duck'"),
        (("-o", "masked.parquet", "--engine", "duckdb", "--memory", "lots"), "write a size such as 4GB"),
        (("-o", "masked.parquet", "--engine", "duckdb", "--memory", "1MB"), "no less than 256MB"),
        (
            ("people.parquet", "-o", "m.parquet", "--engine", "duckdb", "--quasi", "age", "-k", "4"),
            "--quasi needs the table",
        ),
        (("none.parquet", "-o", "m.parquet", "--engine", "duckdb"), "There is no file"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(folder: Path, arguments: tuple[str, ...], says: str) -> None:
    before = sorted(path.name for path in folder.iterdir())
    done = run(*arguments)
    assert done.exit_code != 0
    assert says in str(done.exception)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert list((folder / "spill").iterdir()) == []


@pytest.mark.parametrize("whom", ["owner", "public"])
def test_the_report_is_that_of_memory_but_for_what_needs_records(folder: Path, whom: str) -> None:
    pages = []
    for name in ("duckdb", "memory"):
        done = run(
            *("-o", f"{name}.parquet", "--engine", name, "--algorithm", "mondrian", "--quiet"),
            *("--report", f"{name}.html", "--for", whom),
        )
        assert done.exit_code == 0, done.output
        pages.append(Path(f"{name}.html").read_text())
    assert "--engine duckdb" in pages[0] or whom == "public"
    assert ("the records stay with their engine" in pages[0]) is (whom == "owner")
    assert "records stay with their engine" not in pages[1]
    assert list((folder / "spill").iterdir()) == []


def test_a_text_file_says_what_separates_its_columns(folder: Path) -> None:
    TABLE.write_csv("people.csv")
    Path("shoal.toml").write_text(CONFIG.format(source='path = "people.csv"'))
    done = run("-o", "masked.parquet", "--engine", "duckdb", "--quiet")
    assert done.exit_code != 0
    Path("shoal.toml").write_text(CONFIG.format(source='path = "people.csv"\ndelimiter = ","'))
    assert run("-o", "large.parquet", "--engine", "duckdb", "--quiet").exit_code == 0
    assert run("-o", "small.parquet", "--engine", "memory", "--quiet").exit_code == 0
    one, other = (pl.read_parquet(f"{name}.parquet") for name in ("large", "small"))
    assert one.sort(one.columns, nulls_last=True).equals(other.sort(other.columns, nulls_last=True))


@pytest.mark.parametrize("more", [(), ("--safe-csv",)], ids=["as it is", "safe"])
@pytest.mark.parametrize("end", ["csv", "tsv"])
def test_text_files_have_the_lines_that_memory_writes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, end: str, more: tuple[str, ...]
) -> None:
    monkeypatch.setattr("shoal.engines.duck.BATCH", 7)
    monkeypatch.setattr("shoal.engines.texts.FEWEST", 5)
    bad = ["=1+A1", 'say "no",\n\tthen', "flu", "cold"]
    TABLE.with_columns(ill=pl.Series([bad[i % 4] for i in range(TABLE.height)])).write_parquet("people.parquet")
    done = run("-o", f"large.{end}", "--engine", "duckdb", *more)
    assert done.exit_code == 0, done.output
    assert run("-o", f"small.{end}", "--engine", "memory", "--quiet", *more).exit_code == 0
    one, other = (read_table(f"{name}.{end}") for name in ("large", "small"))
    assert one.sort(one.columns, nulls_last=True).equals(other.sort(other.columns, nulls_last=True))
    lines = [sorted(Path(f"{name}.{end}").read_text().splitlines()) for name in ("large", "small")]
    assert lines[0] == lines[1]
    said = " ".join((done.output + (done.stderr if done.stderr_bytes else "")).split())
    assert ("spreadsheets would run 10 of its cells" in said) is not bool(more)
    verified = CliRunner().invoke(app, ["verify", f"large.{end}", "-c", "shoal.toml", "--manifest"])
    assert verified.exit_code == 0, verified.output
    assert list((folder / "spill").iterdir()) == []


def test_a_text_file_that_does_not_read_back_is_not_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.engines import texts

    original = texts.write_table_to
    monkeypatch.setattr(
        texts, "write_table_to", lambda frame, *more: original(frame.with_columns(ill=pl.lit("x")), *more)
    )
    done = run("-o", "masked.csv", "--engine", "duckdb")
    assert "does not read back" in str(done.exception)
    assert not list(folder.glob("*masked*")) and list((folder / "spill").iterdir()) == []


def test_a_table_of_a_database(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{folder}/clinic.db"
    write_sql(TABLE, url, "people")
    monkeypatch.setattr("shoal.io.sql._CHUNK", 9)
    for source in ('table = "people"', 'query = "select * from people"'):
        Path("shoal.toml").write_text(CONFIG.format(source=f'url = "{url}"\n{source}'))
        for engine in ("duckdb", "memory"):
            done = run("-o", f"{engine}.parquet", "--engine", engine, "--quiet", "--force")
            assert done.exit_code == 0, done.exception
        one, other = (pl.read_parquet(f"{name}.parquet") for name in ("duckdb", "memory"))
        assert one.sort(one.columns, nulls_last=True).equals(other.sort(other.columns, nulls_last=True))
    Path("shoal.toml").write_text(CONFIG.format(source=f'url = "{url}"\ntable = "nobody"'))
    assert "has no table 'nobody'" in str(run("-o", "m.parquet", "--engine", "duckdb").exception)
    assert list((folder / "spill").iterdir()) == []


def test_parts_of_a_table_get_the_types_of_the_whole(folder: Path) -> None:
    table = pl.DataFrame({"a": [1, 2, 3, 4], "b": [None, None, "x", "y"], "c": [1.0, 2.0, 3.0, 4.5]})
    url = f"sqlite:///{folder}/clinic.db"
    write_sql(table, url, "t")
    store_sql(folder / "parts", url, table="t", rows=1)
    assert read_sql(url, table="t").equals(pl.read_parquet(folder / "parts" / "*.parquet"))
    with pytest.raises(InputError, match="has no records"):
        store_sql(folder / "none", url, query="select * from t where a > 9")


def test_from_python(folder: Path) -> None:
    wanted = shoal.anonymize("people.parquet", "shoal.toml", algorithm="mondrian", refine=False)
    for data in ("people.parquet", TABLE, TABLE.to_pandas()):
        release = shoal.anonymize(data, "shoal.toml", engine="duckdb", algorithm="mondrian", refine=False)
        shown = release.frame.collect()
        assert (
            shown.sort(shown.columns, nulls_last=True)
            .select("age", "seen", "ill")
            .equals(wanted.masked.sort(wanted.masked.columns, nulls_last=True).select("age", "seen", "ill"))
        )
        assert release.evidence == wanted.evidence
        release.close()  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="needs a schema that declares every column"):
        shoal.anonymize("people.parquet", {"k": 3}, quasi="age", engine="duckdb")
    assert shoal.anonymize("people.parquet", "shoal.toml", engine="auto").evidence.passed


def test_sizes_and_estimates(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bytes_of("4GB") == bytes_of("4 gb") == bytes_of("4000MB") == 4 * 10**9
    assert estimated(Path("people.parquet")) == 40 * (choosing.RECORD + 5 * choosing.CELL)
    small = choose("auto", Path("people.parquet"))
    assert small.engine == "memory" and "are free for it" in small.why
    monkeypatch.setattr(choosing, "free_memory", lambda: 10)
    assert choose("auto", Path("people.parquet")).engine == "duckdb"
    assert choose("auto", None).engine == "memory"
    TABLE.write_ndjson("people.jsonl")
    assert choose("auto", Path("people.jsonl")).engine == "memory", "a format that has to be read whole"
