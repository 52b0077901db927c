"""`shoal anonymize FILE --quasi … -k 5`: one line gives what the configuration gives that it saves, and what Python's short form gives."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from click.testing import Result
from tests.visits import visits
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.configuration import read_config
from shoal.errors import ConfigError, InputError

LINE = ("--quasi", "age,zip", "--sensitive", "illness", "--person", "pid", "-k", "5", "-p", "3", "--seed", "7")
QUICK = ("-a", "mondrian")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    frame = visits(120, 400, 3)
    first = frame.group_by("pid", maintain_order=True).agg(pl.col("age", "zip").first())
    frame.drop("age", "zip").join(first, on="pid", how="left", maintain_order="left").write_csv(tmp_path / "visits.csv")
    return tmp_path


def run(folder: Path, *words: str | Path) -> Result:
    return CliRunner().invoke(app, ["anonymize", *map(str, words)], env={"COLUMNS": "200"})


def done(folder: Path, *words: str | Path) -> str:
    result = run(folder, *words)
    assert result.exception is None, result.exception
    return result.stdout


def test_the_line_and_the_file_it_saves_give_the_same_bytes(folder: Path) -> None:
    (folder / "conf").mkdir()
    config = folder / "conf" / "shoal.toml"
    told = done(folder, folder / "visits.csv", "-o", folder / "line.csv", *LINE, *QUICK, "--save", config)
    assert "Left out, since nobody named them: sex, days" in told
    assert f"Written: {config}" in told
    done(folder, "-c", config, "-o", folder / "file.csv")
    assert (folder / "line.csv").read_bytes() == (folder / "file.csv").read_bytes()
    saved = read_config(config)
    assert saved.config.source.path == "../visits.csv"
    assert saved.config.policy == {"k": 5, "p_sensitive": {"p": 3}}
    assert (saved.schema.person, saved.schema.named("quasi")) == ("pid", ["age", "zip"])
    masked = pl.read_csv(folder / "line.csv")
    assert masked.columns == ["illness", "age", "zip"] or set(masked.columns) == {"illness", "age", "zip"}
    release = shoal.anonymize(
        folder / "visits.csv",
        {"k": 5, "p_sensitive": {"p": 3}},
        quasi=["age", "zip"],
        sensitive="illness",
        person="pid",
        algorithm="mondrian",
        seed=7,
    )
    release.write(folder / "python.csv")
    assert (folder / "python.csv").read_bytes() == (folder / "line.csv").read_bytes()
    assert shoal.verify(folder / "line.csv", saved).passed


def test_names_may_come_one_by_one_and_with_blanks(folder: Path) -> None:
    more = ("--sensitive", "illness", "--person", "pid", "-k", "5", *QUICK, "--seed", "7", "-p", "3")
    done(folder, folder / "visits.csv", "-o", folder / "a.csv", *LINE, *QUICK)
    done(folder, folder / "visits.csv", "-o", folder / "b.csv", "--quasi", " age", "--quasi", "zip ", *more)
    assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--quasi", "age,zip", "--sensitive", "illness", "-k", "5"), "--person pid"),
        (("--quasi", "age,zip", "--person", "pid"), "-k 5"),
        (("--sensitive", "illness", "-k", "5"), "needs --quasi"),
        (("-k", "5"), "needs --quasi"),
        (("--save", "x.toml"), "needs --quasi"),
        (("--quasi", "age", "--person", "pid", "-k", "5", "-p", "2"), "--sensitive"),
        (("--quasi", "agee", "--person", "pid", "-k", "5"), "did you mean 'age'"),
        (("--quasi", "age", "--sensitive", "age", "--person", "pid", "-k", "5"), "say one of them"),
        (("--quasi", "age", "--person", "pid", "-k", "5", "-c", "shoal.toml"), "not both"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(
    folder: Path, words: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    refused = run(folder, "visits.csv", "-o", "masked.csv", *words)
    assert isinstance(refused.exception, ConfigError), refused.exception
    assert says in str(refused.exception)
    assert [path.name for path in folder.iterdir()] == ["visits.csv"]


def test_a_table_is_needed(folder: Path) -> None:
    refused = run(folder, "-o", folder / "masked.csv", *LINE)
    assert isinstance(refused.exception, ConfigError)
    assert "Name the table" in str(refused.exception)


def test_nothing_is_overwritten_by_what_is_saved(folder: Path) -> None:
    before = (folder / "visits.csv").read_bytes()
    for save in ("visits.csv", "masked.csv"):
        refused = run(
            folder, folder / "visits.csv", "-o", folder / "masked.csv", *LINE, "--save", folder / save, "--force"
        )
        assert isinstance(refused.exception, InputError)
    (folder / "shoal.toml").write_text("# mine\n")
    mine = run(folder, folder / "visits.csv", "-o", folder / "masked.csv", *LINE, "--save", folder / "shoal.toml")
    assert isinstance(mine.exception, InputError)
    assert (folder / "shoal.toml").read_text() == "# mine\n"
    assert (folder / "visits.csv").read_bytes() == before
    assert not (folder / "masked.csv").exists()


def test_what_must_not_leave_does_not_leave_in_one_line_either(folder: Path) -> None:
    """A column of names called sensitive is refused, as it is from a configuration."""
    frame = pl.read_csv(folder / "visits.csv").with_columns(contact=pl.format("{}@example.org", "pid"))
    frame.write_csv(folder / "visits.csv")
    words = ("--quasi", "age,zip", "--sensitive", "illness,contact", "--person", "pid", "-k", "5")
    refused = run(folder, folder / "visits.csv", "-o", folder / "masked.csv", *words, "--save", folder / "shoal.toml")
    assert isinstance(refused.exception, InputError)
    assert "'contact'" in str(refused.exception)
    assert not (folder / "masked.csv").exists()
    assert not (folder / "shoal.toml").exists()
