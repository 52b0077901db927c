"""`shoal store` from end to end: what it prints, its exit codes, its JSON, its files."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import pytest
from tests.cli.errors import CONFIG, TABLE

from shoal.cli import main
from shoal.io import write_sql
from shoal.io.files import read_table

STORE = "sqlite:///registry.db"


def shoal(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run a command of the store in a folder: exit code, stdout, stderr."""
    out, err = io.StringIO(), io.StringIO()
    words = ["shoal", "store", arguments[0], *arguments[1:]]
    if arguments[-1] != "--help":
        words += ["--store", STORE]
    with (
        contextlib.chdir(folder),
        mock.patch.object(sys, "argv", words),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


def told(folder: Path, *arguments: str) -> dict[str, Any]:
    """The JSON object of a command that succeeds."""
    code, out, err = shoal(folder, *arguments, "--json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def batch(folder: Path, name: str, first: int, n: int, **more: Any) -> str:
    rows = [
        {"id": first + i, "age": 20 + i % 12, "zip": 41000 + i % 3, "illness": ("flu", "cold")[i % 2]} for i in range(n)
    ]
    pl.DataFrame(rows).with_columns(**more).write_csv(folder / name)
    return name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = TABLE.splitlines()
    text = "\n".join([f"id,{lines[0]}", *(f"{i},{line}" for i, line in enumerate(lines[1:]))]) + "\n"
    (tmp_path / "patients.csv").write_text(text)
    config = CONFIG + '\n[source]\npath = "patients.csv"\n\n[method]\nalgorithm = "mondrian"\nrefine = false\n'
    (tmp_path / "shoal.toml").write_text(config)
    return tmp_path


def test_the_whole_life_of_a_store(folder: Path) -> None:
    made = told(folder, "create", "--key", "id")
    assert (made["records"], made["passed"]) == (12, True)
    assert told(folder, "release", "-o", "one.csv")["release"] == 1
    assert read_table(folder / "one.csv").columns == ["age", "zip", "illness"]
    assert told(folder, "insert", batch(folder, "new.csv", 12, 3), "--batch", "monday")["inserted"] == 3
    assert told(folder, "insert", "new.csv", "--batch", "monday")["applied"] is False
    assert told(folder, "update", batch(folder, "corrected.csv", 0, 2, age=77))["updated"] == 2
    assert told(folder, "delete", batch(folder, "gone.csv", 5, 1))["deleted"] == 1
    second = told(folder, "release", "-o", "two.parquet")
    assert second["release"] == 2 and sum(second["waiting"].values()) > 0
    assert told(folder, "undo")["records"] == 15
    assert told(folder, "check")["passed"] is True
    assert told(folder, "renew")["records"] == 15
    history = told(folder, "history", "--chart", "history.svg")
    assert [line["release"] for line in history["releases"]] == [1, 2]
    assert (folder / "history.svg").read_text().startswith("<svg")
    kinds = [line["kind"] for line in told(folder, "history", "--batches")["batches"]]
    assert kinds == ["creation", "batch", "batch", "batch", "undo", "renewal"]
    assert told(folder, "audit")["exposed"] is False
    told(folder, "release", "--again", "1", "-o", "first.csv")
    assert (folder / "first.csv").read_bytes() == (folder / "one.csv").read_bytes()
    kept = told(folder, "retain", "1")
    assert (kept["compacted"], kept["retention"]) == (1, 1)
    assert [line["in_full"] for line in told(folder, "history")["releases"]] == [False, True]
    assert (
        "2 releases" not in shoal(folder, "history")[1] and "1 releases are kept in full" in shoal(folder, "history")[1]
    )
    code, _, err = shoal(folder, "release", "--again", "1", "-o", "copy.csv")
    assert code == 2 and "Release 1 is not kept in full any more" in err
    assert told(folder, "retain", "0")["retention"] is None
    told(folder, "release", "--again", "2", "-o", "copy.parquet")
    assert read_table(folder / "copy.parquet").equals(read_table(folder / "two.parquet"))
    code, out, _ = shoal(folder, "check")
    assert code == 0 and "everything is as it should be" in out


def test_watch_and_sync(folder: Path) -> None:
    told(folder, "create", "--key", "id")
    (folder / "inbox").mkdir()
    batch(folder, "inbox/a.csv", 12, 4)
    code, out, err = shoal(folder, "watch", "inbox", "--once", "--interval", "0.05")
    assert code == 0 and "a.csv" in out and "4 inserted" in out, err
    batch(folder, "inbox/insert-b.csv", 12, 1)
    code, out, err = shoal(folder, "watch", "inbox", "--once", "--interval", "0.05")
    assert code == 2 and "insert-b.csv" in err and "is in the store already" in err
    rows = read_table(folder / "inbox/a.csv").with_columns(pl.col("id") + 100, version=pl.int_range(1, 5))
    write_sql(rows, f"sqlite:///{folder}/clinic.db", "patients")
    done = told(folder, "sync", "--from", "sqlite:///clinic.db", "--table", "patients")
    assert (done["applied"]["inserted"], done["mark"]) == (4, "4")
    assert told(folder, "sync", "--from", "sqlite:///clinic.db", "--table", "patients")["applied"]["applied"] is False


def test_exposure_is_refused_with_exit_code_1(folder: Path) -> None:
    told(folder, "create", "--key", "id", "--guard", "none")
    told(folder, "release")
    told(folder, "insert", batch(folder, "new.csv", 12, 1))
    code, out, err = shoal(folder, "release", "-o", "leak.csv", "--json")
    assert (code, out) == (1, "") and "Release 2 was refused" in err
    assert not (folder / "leak.csv").exists()
    assert told(folder, "release", "-o", "leak.csv", "--allow-exposure")["exposed"] is True
    assert shoal(folder, "audit")[0] == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["create", "--key", "age"], "would be published"),
        (["create", "--key", "ident"], "'ident'"),
        (["create", "--key", "id", "--guard", "some"], "guard = 'some' is not allowed; allowed: none, batching"),
        (["insert", "new.csv"], "There is no store"),
        (["check"], "There is no store"),
    ],
)
def test_mistakes_without_a_store(folder: Path, arguments: list[str], says: str) -> None:
    code, out, err = shoal(folder, *arguments)
    assert (code, out) == (2, "") and says in err
    assert not (folder / "registry.db").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["create", "--key", "id"], "holds a store already"),
        (["insert", "patients.csv"], "the key is in the store already"),
        (["delete", "nobody.csv"], "nobody.csv"),
        (["undo"], "nothing to undo"),
        (["audit"], "no releases yet"),
        (["release", "-o", "patients.csv"], "already exists"),
        (["release", "--again", "1"], "name it with -o"),
        (["release", "--guard", "some"], "guard = 'some' is not allowed; allowed: none, batching"),
        (["history", "--chart", "x.svg"], "no releases to draw"),
        (["watch", "nowhere"], "no folder"),
        (["watch", ".", "--as", "inserts"], "did you mean 'insert'"),
    ],
)
def test_mistakes_with_a_store(folder: Path, arguments: list[str], says: str) -> None:
    told(folder, "create", "--key", "id")
    code, out, err = shoal(folder, *arguments)
    assert (code, out) == (2, "") and says in err
    assert told(folder, "check")["records"] == 12


@pytest.mark.parametrize(
    "command",
    [
        "create",
        "insert",
        "delete",
        "update",
        "release",
        "history",
        "retain",
        "audit",
        "undo",
        "renew",
        "check",
        "watch",
        "sync",
    ],
)
def test_help_teaches(folder: Path, command: str) -> None:
    code, out, _ = shoal(folder, command, "--help")
    assert code == 0 and "Example: shoal store" in " ".join(out.split())


@pytest.mark.parametrize("guard", ["batching", "m-invariance", "none"])
def test_a_release_leaves_a_report_for_the_public(folder: Path, guard: str) -> None:
    told(folder, "create", "--key", "id")
    made = told(folder, "release", "-o", "one.csv", "--report", "report.html", "-g", guard)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "for the public" in page
    assert f"{made['evidence']['records']} records" in page
    code, _, err = shoal(folder, "release", "-o", "two.csv", "--for", "public")
    assert code == 2
    assert "add --report" in err
