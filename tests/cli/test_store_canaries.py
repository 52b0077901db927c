"""Canaries in every column of a store and of its batches, searched for in what its commands say, write and leave behind."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from tests.cli.errors import call, captured, inside
from tests.cli.test_canaries import CONFIG, HIDDEN, SECRET, TABLE, left_behind, searched

from shoal.io import write_sql

STORE = ("--store", "sqlite:///registry.db")
DATABASE = ("registry.db", "registry.db-wal", "registry.db-shm")
"""Holds the secrets, as it says; only its owner can read it."""


def some(begin: int, n: int, **more: pl.Expr) -> pl.DataFrame:
    """People who are not in the table yet."""
    rows = TABLE[:n].with_columns(name=pl.Series([f"Qzname{begin + i:03d}" for i in range(n)]))
    return rows.with_columns(mail=pl.Series([f"qzmail{begin + i:03d}@example.org" for i in range(n)]), **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    TABLE.write_csv(tmp_path / "people.csv")
    (tmp_path / "shoal.toml").write_text(CONFIG.replace("k = 20", "k = 10"))
    some(100, 12).write_csv(tmp_path / "new.csv")
    some(200, 2).write_csv(tmp_path / "few.csv")
    TABLE[:3].with_columns(age=pl.lit(8675399), illness=pl.lit("Qzill3")).write_csv(tmp_path / "corrected.csv")
    TABLE[5:7].select("name").write_csv(tmp_path / "gone.csv")
    feed = some(300, 11, updated_at=pl.lit("2024-05-01 10:00:00"))
    write_sql(feed, f"sqlite:///{tmp_path}/clinic.db", "admissions")
    (tmp_path / "inbox").mkdir()
    some(400, 10).write_csv(tmp_path / "inbox" / "insert-1.csv")
    some(100, 1).write_csv(tmp_path / "inbox" / "insert-2.csv")
    return tmp_path


def say(folder: Path, *arguments: str) -> tuple[int, str, dict[str, str]]:
    """Exit code, everything that is said, and what is left behind beside the database."""
    before = set(folder.rglob("*"))
    with inside(folder), captured() as (out, err):
        code = call(("store", *arguments, *STORE))
    files = {name: text for name, text in left_behind(folder, before).items() if name not in DATABASE}
    return code, out.getvalue() + err.getvalue(), files


def begun(folder: Path, guard: str = "batching") -> None:
    assert say(folder, "create", "--key", "name", "--guard", guard)[0] == 0


SYNC = ("sync", "--from", "sqlite:///clinic.db", "--table", "admissions")
JOURNEY: tuple[tuple[int, tuple[str, ...]], ...] = (
    (0, ("create", "--key", "name")), (0, ("release", "-o", "one.csv")), (0, ("insert", "new.csv", "--dry-run")),
    (0, ("insert", "new.csv", "--batch", "monday")), (0, ("insert", "new.csv", "--batch", "monday")), (0, ("update", "corrected.csv", "--dry-run")),
    (0, ("update", "corrected.csv")), (0, ("delete", "gone.csv", "--dry-run")), (0, ("delete", "gone.csv")), (0, ("undo", "--dry-run")),
    (0, ("undo",)), (0, ("release", "--dry-run")), (0, ("release", "-o", "two.parquet", "--report", "public.html")), (0, (*SYNC, "--dry-run")),
    (0, SYNC), (0, ("release", "--report", "owner.html", "--for", "owner")), (0, ("release", "--again", "1", "-o", "again.csv")),
    (0, ("history", "--chart", "history.svg")), (0, ("history", "--batches")), (0, ("status",)), (0, ("metrics",)), (0, ("audit",)), (0, ("check",)),
    (0, ("renew",)), (2, ("watch", "inbox", "--once", "--interval", "0.05")), (0, ("retain", "2")), (0, ("forget", "gone.csv", "--dry-run")),
    (0, ("forget", "gone.csv")), (0, ("withdraw", "--never-handed-out")), (0, ("release",)),
)  # fmt: skip


@pytest.mark.parametrize("as_json", [False, True])
def test_no_command_of_a_store_leaks_what_is_hidden(folder: Path, as_json: bool) -> None:
    """Secrets are in the masked tables, and in what is said about the cells of these; nothing else is anywhere."""
    for expected, arguments in JOURNEY:
        json = ("--json",) if as_json and arguments[0] not in ("metrics", "watch") else ()
        force = ("--force",) if "-o" in arguments else ()
        code, said, files = say(folder, *arguments, *force, *json)
        assert code == expected, (arguments, said)
        assert not searched(said, HIDDEN + SECRET), (arguments, said)
        for name, content in files.items():
            assert not searched(content, HIDDEN), (arguments, name)
            if "masked" not in name and not name.endswith((".csv", ".html", ".parquet")):
                assert not searched(content, SECRET), (arguments, name)


PEOPLE: tuple[tuple[str, ...], ...] = (
    ("create", "--key", "name"), ("release", "-o", "one.csv"), ("insert", "again.csv", "--dry-run"), ("insert", "again.csv"), ("delete", "gone.csv"),
    ("release", "-o", "two.csv", "--report", "public.html"), ("undo",), ("renew",), ("forget", "whom.csv", "--dry-run"), ("forget", "whom.csv"),
    ("release", "--dry-run"), ("release",), ("history",), ("status",), ("audit",), ("check",),
)  # fmt: skip


@pytest.mark.parametrize("as_json", [False, True])
def test_no_command_leaks_of_people_with_several_rows(folder: Path, as_json: bool) -> None:
    whose = pl.format("qzmail00{}@example.org", pl.int_range(pl.len()) // 7).alias("mail")  # six people
    config = (folder / "shoal.toml").read_text().replace("k = 10", "k = 3")
    config = config.replace('[attributes.mail]\nrole = "identifier"', '[attributes.mail]\nrole = "person"')
    for quasi in ("age", "zip", "job", "born"):
        config = config.replace(f"[attributes.{quasi}]\n", f'[attributes.{quasi}]\nwithin = "first"\n')
    (folder / "shoal.toml").write_text(config)
    TABLE.with_columns(whose).write_csv(folder / "people.csv")
    some(900, 12).with_columns(whose).write_csv(folder / "again.csv")
    pl.DataFrame({"mail": ["qzmail000@example.org"]}).write_csv(folder / "whom.csv")
    for arguments in PEOPLE:
        code, said, files = say(folder, *arguments, *(("--json",) if as_json else ()))
        assert code == 0, (arguments, said)
        assert not searched(said, HIDDEN + SECRET), (arguments, said)
        assert not any(searched(content, HIDDEN) for content in files.values()), arguments
    few = some(700, 1).with_columns(job=pl.lit("Qzjob9"))
    few.write_csv(folder / "bad.csv")
    for arguments in (("insert", "bad.csv"), ("forget", "few.csv"), ("delete", "few.csv")):
        code, said, _ = say(folder, *arguments)
        assert code == 2 and not searched(said, HIDDEN + SECRET), (arguments, said)


BAD = {
    "a number that is none": lambda rows: rows.with_columns(age=pl.lit("Qzjob-eight")),
    "a date that is none": lambda rows: rows.with_columns(born=pl.lit("1977-02-31")),
    "a value the taxonomy does not know": lambda rows: rows.with_columns(job=pl.lit("Qzjob9")),
    "a number outside the edges": lambda rows: rows.with_columns(age=pl.lit(8675309999)),
    "an infinite number": lambda rows: rows.with_columns(cost=pl.lit("inf")),
    "a key that is there": lambda rows: rows.with_columns(name=pl.Series(["Qzname001", *rows["name"][1:]])),
    "a key twice": lambda rows: pl.concat([rows, rows[:1]]),
    "a key that is missing": lambda rows: rows.with_columns(
        name=pl.when(pl.int_range(pl.len()) > 0).then(pl.col("name"))
    ),
    "a column too few": lambda rows: rows.drop("job"),
    "a column too many": lambda rows: rows.with_columns(pl.lit("Qzjob7").alias("nickname")),
}


@pytest.mark.parametrize("mistake", BAD)
def test_no_bad_row_is_quoted(mistake: str, folder: Path) -> None:
    begun(folder)
    BAD[mistake](some(500, 4)).write_csv(folder / "bad.csv")
    for arguments in (("insert", "bad.csv"), ("insert", "bad.csv", "--dry-run", "--json")):
        code, said, files = say(folder, *arguments)
        assert code == 2, said
        assert not searched(said, HIDDEN + SECRET), said
        assert files == {}


@pytest.mark.parametrize(
    "arguments", [("update", "few.csv"), ("delete", "few.csv"), ("forget", "few.csv"), ("forget", "few.csv", "--json")]
)
def test_no_key_of_a_file_that_the_store_does_not_know_is_said(arguments: tuple[str, ...], folder: Path) -> None:
    begun(folder)
    code, said, files = say(folder, *arguments)
    assert code == 2
    assert not searched(said, HIDDEN + SECRET), said
    assert files == {}
    assert "'Qzname200'" in say(folder, *arguments, "--show-values")[1]


def test_a_bad_row_of_a_feed_is_not_quoted(folder: Path) -> None:
    begun(folder)
    bad = some(300, 11, updated_at=pl.lit("2024-05-01 10:00:00"), job=pl.lit("Qzjob9"))
    write_sql(bad, f"sqlite:///{folder}/worse.db", "admissions")
    code, said, _ = say(folder, "sync", "--from", "sqlite:///worse.db", "--table", "admissions")
    assert code == 2
    assert not searched(said, HIDDEN + SECRET), said


def test_a_refusal_does_not_say_what_was_to_be_kept_secret(folder: Path) -> None:
    """Under no guard two newcomers are given away; the sentence that refuses it must not do the same in a log."""
    begun(folder, "none")
    assert say(folder, "release", "-o", "one.csv")[0] == 0
    for arguments in (
        ("insert", "few.csv", "--dry-run"),
        ("insert", "few.csv"),
        ("release", "--dry-run"),
        ("release",),
    ):
        for more in ((), ("--json",)) if "--dry-run" in arguments else ((),):
            code, said, _ = say(folder, *arguments, *more)
            assert code == int(arguments == ("release",)), said
            assert not searched(said, HIDDEN + SECRET), (arguments, said)
    assert "illness" in said and "exposes" in said
    assert searched(say(folder, "release", "--show-values")[1], SECRET)


def test_damage_is_named_without_the_key(folder: Path) -> None:
    begun(folder)
    with sqlite3.connect(folder / "registry.db") as connection:
        connection.execute("UPDATE shoal_records SET content = replace(content, 'Qzill1', 'Qzill2') WHERE number = 5")
        connection.execute("UPDATE shoal_records SET content = 'Qzjob' WHERE number = 6")
        connection.execute("UPDATE shoal_records SET class = 'Qzjob' WHERE number = 7")
    connection.close()
    code, said, _ = say(folder, "check")
    assert code == 1 and "number 5" in said
    assert not searched(said, HIDDEN + SECRET), said
    assert "'Qzname005'" in say(folder, "check", "--show-values")[1]
    for arguments in (("release",), ("insert", "new.csv"), ("renew",), ("audit",)):
        said = say(folder, *arguments)[1]
        assert not searched(said, HIDDEN + SECRET), (arguments, said)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_command_leaves_nothing_readable(how: signal.Signals, folder: Path) -> None:
    """Whatever a killed command leaves has no raw value but in the database, which nobody else can read."""
    wide = pl.concat([some(1000 * i, 40) for i in range(1, 60)])
    wide.write_csv(folder / "new.csv")
    begun(folder)
    before = set(folder.rglob("*"))
    for delay in (0.8, 2.0):
        process = subprocess.Popen(
            [sys.executable, "-m", "shoal", "store", "insert", "new.csv", *STORE],
            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip
        time.sleep(delay)
        process.send_signal(how)
        said = process.communicate()[1]
        assert not searched(said, HIDDEN + SECRET), said
        for name, content in left_behind(folder, before).items():
            if name in DATABASE:
                assert (folder / name).stat().st_mode & 0o077 == 0, name
            else:
                assert not searched(content, HIDDEN + SECRET), name
    assert say(folder, "check")[0] == 0
