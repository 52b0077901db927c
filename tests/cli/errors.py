"""Everything that can be wrong with a request, one case each; the page docs/errors.md is made from their answers."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

CONFIG = """
[attributes.age]
role = "quasi"
kind = "number"

[attributes.zip]
role = "quasi"
kind = "category"

[attributes.illness]
role = "sensitive"

[policy]
k = 2
"""
TABLE = "age,zip,illness\n" + "".join(f"{20 + i},{41000 + i % 3},{'flu' if i % 2 else 'cold'}\n" for i in range(12))


@dataclass(frozen=True)
class Case:
    """One mistake: what is wrong, how to make it, and the words the answer must contain."""

    what: str
    prepare: Callable[[Path], None]
    says: str
    arguments: tuple[str, ...] = ("anonymize", "patients.csv", "-c", "shoal.toml", "-o", "masked.csv")
    trouble: tuple[str, int] | None = None
    """A system call that fails, and how: what no test can bring about on every machine."""


def table(text: str | bytes) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        data = text.encode() if isinstance(text, str) else text
        (folder / "patients.csv").write_bytes(data)

    return prepare


def config(old: str, new: str) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        assert old in CONFIG
        (folder / "shoal.toml").write_text(CONFIG.replace(old, new))

    return prepare


def taxonomy(text: str) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        (folder / "zip.csv").write_text(text)
        (folder / "shoal.toml").write_text(
            CONFIG.replace('kind = "category"', 'kind = "category"\ntaxonomy = "zip.csv"')
        )

    return prepare


def nothing(folder: Path) -> None:
    pass


def write_existing(folder: Path) -> None:
    (folder / "masked.csv").write_text("precious\n")


WIDE = ",".join(f"c{i}" for i in range(10_000)) + "\n" + ",".join("1" for _ in range(10_000)) + "\n"

CASES = [
    Case("ragged rows", table("age,zip,illness\n1,2,flu\n1,2\n3,4,flu\n"), "line 3"),
    Case("duplicate header", table("age,age,illness\n1,2,flu\n3,4,flu\n"), "'age'"),
    Case("empty header", table("age,,illness\n1,2,flu\n3,4,flu\n"), "column 2"),
    Case("wrong encoding", table("age,zip,illness\n1,2,grippe à virus\n".encode("latin-1")), "utf-8",
         ("anonymize", "patients.csv", "-c", "utf8.toml", "-o", "masked.csv")),
    Case("NUL bytes", table(b"age,zip,illness\n1,2,fl\x00u\n3,4,flu\n"), "NUL"),
    Case("empty file", table(""), "empty"),
    Case("header without records", table("age,zip,illness\n"), "no records"),
    Case("one record", table("age,zip,illness\n1,2,flu\n"), "the table has 1"),
    Case("one column", table("age\n1\n2\n3\n"), "no such column"),
    Case("a column that is all missing", table("age,zip,illness\n1,,flu\n2,,cold\n"), "'zip' has no values"),
    Case("numbers with text among them", table(TABLE.replace("20,", "twenty,")), "record 1: the value is not a number"),
    Case("infinite number", table(TABLE.replace("20,", "inf,")), "inf"),
    Case("NaN", table(TABLE.replace("20,", "NaN,")), "NaN"),
    Case("huge whole numbers", table(TABLE.replace("20,", f"{2**60},")), "2^53"),
    Case("numbers too long for any machine", table(TABLE.replace("20,", "9" * 400 + ",")), "age"),
    Case("date out of range", lambda folder: (
        table(TABLE.replace("20,", "2024-02-30,"))(folder), config('kind = "number"', 'kind = "date"')(folder), None)[-1],
        "is not a date"),
    Case("10,000 columns", table(WIDE), "no such column"),
    Case("unknown column in the configuration", config("[attributes.zip]", "[attributes.zipp]"), "did you mean 'zip'"),
    Case("column without a role", config("[attributes.zip]\nrole = \"quasi\"\nkind = \"category\"\n", ""), "Column 'zip' has no role"),
    Case("unknown role", config('role = "sensitive"', 'role = "sensitiv"'), "did you mean 'sensitive'"),
    Case("unknown key", config("[policy]", "[method]\nalgoritm = \"mondrian\"\n\n[policy]"), "did you mean 'algorithm'"),
    Case("unknown model", config("k = 2", "k = 2\np_sensitve = { p = 2 }"), "did you mean 'p_sensitive'"),
    Case("unknown option of an algorithm", config("k = 2", "k = 2\n\n[method.options]\nseed = 3"), "auto: 'seed' is no option"),
    Case("option under its old name", config("k = 2", "k = 2\n\n[method]\nalgorithm = \"top_down\"\noptions = { order = \"record\" }"), "write visit = 'record'"),
    Case("unknown algorithm", config("k = 2", "k = 2\n\n[method]\nalgorithm = \"mondrain\""), "did you mean 'mondrian'"),
    Case("configuration that is not TOML", config("k = 2", "k = "), "not valid TOML"),
    Case("k larger than the table", config("k = 2", "k = 13"), "the table has 12"),
    Case("p that the table cannot reach", config("k = 2", "k = 2\np_sensitive = { p = 3 }"), "p ≤ 2"),
    Case("no quasi-identifier", lambda folder: (folder / "shoal.toml").write_text(
        CONFIG.replace('role = "quasi"', 'role = "other"')) and None, 'role "quasi"'),
    Case("taxonomy with two roots", taxonomy("41000;a;*\n41001;a;*\n41002;b;all\n"), "root"),
    Case("taxonomy with a label of two meanings", taxonomy("41000;other;a;*\n41001;other;b;*\n41002;b;*\n"), "rows '41000;other;a;*' and '41001;other;b;*'"),
    Case("taxonomy with a cycle", taxonomy("child;parent\n41000;a\na;b\nb;a\n"), "circle"),
    Case("value the taxonomy does not know", taxonomy("41000;*\n41001;*\n"), "does not know a value (4 records)"),
    Case("taxonomy file missing", config('kind = "category"', 'taxonomy = "nowhere.csv"'), "nowhere.csv"),
    Case("table missing", nothing, "nobody.csv", ("anonymize", "nobody.csv", "-c", "shoal.toml", "-o", "masked.csv")),
    Case("configuration missing", nothing, "shoal init", ("anonymize", "patients.csv", "-c", "none.toml", "-o", "masked.csv")),
    Case("output folder missing", nothing, "folder 'nowhere'", ("anonymize", "patients.csv", "-c", "shoal.toml", "-o", "nowhere/masked.csv")),
    Case("output folder not writable", nothing, "masked.csv", trouble=("shoal.io.atomic._sync_file", errno.EACCES)),
    Case("output disk full", nothing, "full", trouble=("shoal.io.atomic._sync_file", errno.ENOSPC)),
    Case("output of an unknown kind", nothing, ".doc", ("anonymize", "patients.csv", "-c", "shoal.toml", "-o", "masked.doc")),
    Case("output exists already", write_existing, "--force"),
    Case("one line and a configuration", nothing, "not both", ("anonymize", "patients.csv", "-c", "shoal.toml", "-o", "masked.csv", "--quasi", "age", "-k", "2")),
    Case("one line without columns that others know", nothing, "needs --quasi", ("anonymize", "patients.csv", "-o", "masked.csv", "-k", "2")),
    Case("one line without k", nothing, "-k 5", ("anonymize", "patients.csv", "-o", "masked.csv", "--quasi", "age")),
    Case("option that does not exist", nothing, "--algoritm", ("anonymize", "--algoritm", "mondrian")),
]  # fmt: skip


def provoke(case: Case, folder: Path) -> tuple[int, str, str, list[str]]:
    """Run one case in an empty folder: exit code, stdout, stderr, and the files that were not there before."""
    (folder / "patients.csv").write_text(TABLE)
    (folder / "shoal.toml").write_text(CONFIG)
    (folder / "utf8.toml").write_text('[source]\nencoding = "utf-8"\n' + CONFIG)
    case.prepare(folder)
    before = snapshot(folder)
    with inside(folder), captured() as (out, err), failing(case.trouble):
        code = call(case.arguments)
    after = snapshot(folder)
    changed = sorted(name for name in after if after[name] != before.get(name))
    return code, out.getvalue(), err.getvalue(), changed


def call(arguments: tuple[str, ...]) -> int:
    """The command line in this process."""
    from shoal.cli import main

    kept = sys.argv
    sys.argv = ["shoal", *arguments]
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    finally:
        sys.argv = kept
    return 0


@contextlib.contextmanager
def failing(trouble: tuple[str, int] | None) -> Iterator[None]:
    if trouble is None:
        yield
        return
    with mock.patch(trouble[0], side_effect=OSError(trouble[1], os.strerror(trouble[1]))):
        yield


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    home = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(home)


@contextlib.contextmanager
def captured() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        yield out, err
