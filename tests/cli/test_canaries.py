"""Canaries in every column, searched for in every output of every command: what is said, written and left behind, failures included."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest
from tests.cli.errors import call, captured, inside

N = 40
TABLE = pl.DataFrame(
    {
        "name": [f"Qzname{i:03d}" for i in range(N)],
        "mail": [f"qzmail{i:03d}@example.org" for i in range(N)],
        "age": [8675300 + 7 * (i % 13) for i in range(N)],
        "zip": [f"Qzz{41000 + i % 9}" for i in range(N)],
        "job": [f"Qzjob{i % 5}" for i in range(N)],
        "born": [f"1977-0{1 + i % 7}-1{i % 9}" for i in range(N)],
        "illness": [f"Qzill{i % 4}" for i in range(N)],
        "cost": [7203100 + 17 * (i % 6) for i in range(N)],
    }
)
HIDDEN = ("Qzname", "qzmail", "86753", "Qzz4", "Qzjob", "1977-0")
"""Never to be seen: identifiers, and quasi-identifiers that are published as ranges and nodes."""
SECRET = ("Qzill", "72031")
"""To be seen in the masked table, and in what is said about that table's own cells; in nothing that is said about the original."""
JOBS = ", ".join(f'["Qzjob{i}", "*"]' for i in range(5))
CONFIG = f"""[source]
path = "people.csv"
[attributes.name]
role = "identifier"
[attributes.mail]
role = "identifier"
[attributes.age]
role = "quasi"
taxonomy = {{ edges = [[0, 10000000]] }}
[attributes.zip]
role = "quasi"
taxonomy = {{ prefix = [0] }}
[attributes.job]
role = "quasi"
taxonomy = {{ rows = [{JOBS}] }}
[attributes.born]
role = "quasi"
kind = "date"
taxonomy = {{ dates = ["decade"] }}
[attributes.illness]
role = "sensitive"
[attributes.cost]
role = "sensitive"
accept = "made up"
[policy]
k = 20
[method]
algorithm = "mondrian"
refine = false
"""
ANONYMIZE = ("anonymize", "-c", "shoal.toml", "-o", "masked.csv")

# What goes wrong, each of another column and kind: configuration (old, new), or a table of its own.
BROKEN = {
    "text for a number": ('[attributes.job]\nrole = "quasi"', '[attributes.job]\nrole = "quasi"\nkind = "number"'),
    "text for a date": ('[attributes.zip]\nrole = "quasi"', '[attributes.zip]\nrole = "quasi"\nkind = "date"'),
    "a taxonomy that lacks a value": (', ["Qzjob4", "*"]', ""),
    "edges too narrow": ("[[0, 10000000]]", "[[0, 10]]"),
    "a domain too narrow": ("taxonomy = { edges = [[0, 10000000]] }", "domain = [0, 10]"),
    "an order that lacks a value": ("taxonomy = { prefix = [0] }", 'order = ["a", "b"]'),
    "categories that lack a value": ('[attributes.illness]\nrole = "sensitive"', '[attributes.illness]\nrole = "sensitive"\ncategories = { a = ["x"] }'),
    "a secret's order": ('[attributes.illness]\nrole = "sensitive"', '[attributes.illness]\nrole = "sensitive"\norder = ["x", "y"]'),
    "a secret's taxonomy": ('[attributes.illness]\nrole = "sensitive"', '[attributes.illness]\nrole = "sensitive"\ntaxonomy = { rows = [["x", "*"]] }'),
    "a value of alpha_k": ("k = 20", 'k = 20\nalpha_k = { alpha = 0.5, attribute = "illness", values = ["Qzil"] }'),
    "too small an alpha": ("k = 20", 'k = 20\nalpha_k = { alpha = 0.1, attribute = "illness" }'),
    "a t out of reach": ("k = 20", 'k = 20\nl_diversity = { l = 9, attribute = "illness" }'),
    "an identifier published": ('[attributes.mail]\nrole = "identifier"', '[attributes.mail]\nrole = "other"'),
    "a column that separates": ('[attributes.name]\nrole = "identifier"', '[attributes.name]\nrole = "other"'),
    "rows of persons": ('[attributes.job]\nrole = "quasi"', '[attributes.job]\nrole = "person"'),
    "a top that is a word": ('[attributes.cost]\nrole = "sensitive"', '[attributes.cost]\nrole = "sensitive"\ntop = "Z"'),
    "one record too many": ("k = 20", "k = 41"),
}  # fmt: skip


def left_behind(folder: Path, before: set[Path]) -> dict[str, str]:
    found = {}
    for path in set(folder.rglob("*")) - before:
        if path.is_file():
            data = path.read_bytes()
            found[path.name] = (gzip.decompress(data) if path.suffix == ".gz" else data).decode(
                "utf-8", errors="replace"
            )
    return found


def searched(text: str, canaries: tuple[str, ...]) -> list[str]:
    return [canary for canary in canaries if canary in text]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    TABLE.write_csv(tmp_path / "people.csv")
    (tmp_path / "shoal.toml").write_text(CONFIG)
    return tmp_path


@pytest.mark.parametrize("mistake", BROKEN)
def test_no_failure_says_a_value(mistake: str, folder: Path) -> None:
    old, new = BROKEN[mistake]
    assert old in CONFIG
    (folder / "shoal.toml").write_text(CONFIG.replace(old, new))
    before = set(folder.rglob("*"))
    with inside(folder), captured() as (out, err):
        code = call(ANONYMIZE)
    assert code == 2, err.getvalue()
    assert not searched(out.getvalue() + err.getvalue(), HIDDEN + SECRET), err.getvalue()
    assert left_behind(folder, before) == {}


def test_show_values_says_which(folder: Path) -> None:
    (folder / "shoal.toml").write_text(CONFIG.replace(*BROKEN["a taxonomy that lacks a value"]))
    with inside(folder), captured() as (_, err):
        assert call((*ANONYMIZE, "--show-values")) == 2
    assert "'Qzjob4'" in err.getvalue()


def test_broken_files_are_not_quoted(folder: Path) -> None:
    text = (folder / "people.csv").read_text()
    for broken in (text.replace("Qzjob1,", "Qzjob1,Qzjob1,", 1), text.replace("8675307", "inf", 1)):
        (folder / "people.csv").write_text(broken)
        with inside(folder), captured() as (out, err):
            assert call(ANONYMIZE) == 2, out.getvalue()
        assert not searched(out.getvalue() + err.getvalue(), HIDDEN + SECRET), err.getvalue()


def test_no_command_leaks_what_is_hidden(folder: Path) -> None:
    """The whole journey: what is printed, written and left behind, for people and for programs."""
    secret = "masked.csv.secret.json"
    for arguments in (
        (*ANONYMIZE, "--json"), (*ANONYMIZE, "--force"), ("verify", "masked.csv"), ("verify", "masked.csv", "--json", "--manifest"),
        ("verify", "masked.csv", "--secret", secret), ("attack", "masked.csv"), ("measure", "people.csv", "masked.csv", "--queries", "20"),
        ("compare", "-a", "mondrian,mdav"), ("init", "people.csv", "-o", "suggested.toml"), ("anonymize", "-c", "shoal.toml", "-o", "masked.xlsx"),
        ("compare", "-a", "mondrian", "--chart", "compare.svg", "--json"), ("taxonomy", "check", "-c", "shoal.toml"),
        ("explore", "-a", "mondrian", "--vary", "k=10,20,41", "--columns", "zip", "--chart", "frontier.svg", "--keep", "found.json"),
        ("explore", "-a", "mondrian", "--vary", "k=10", "--json"), (*ANONYMIZE, "--force", "--report", "public.html", "--for", "public"),
        (*ANONYMIZE, "--force", "--report", "owner.html", "--for", "owner"), ("verify", "masked.csv", "--report", "verified.html"),
        ("attack", "masked.csv", "--report", "attacked.html"), ("measure", "people.csv", "masked.csv", "--queries", "20", "--report", "measured.html"),
    ):  # fmt: skip
        before = set(folder.rglob("*"))
        with inside(folder), captured() as (out, err):
            code = call(arguments)
        assert code == 0, (arguments, err.getvalue())
        said = out.getvalue() + err.getvalue()
        # A suggested configuration is for whoever has the table; it may list the values of an ordered column, never identifiers.
        canaries = ("Qzname", "qzmail") if arguments[0] == "init" else HIDDEN
        assert not searched(said, canaries), (arguments, searched(said, canaries))
        if arguments[0] == "anonymize":
            assert not searched(said, SECRET), arguments
        for name, content in left_behind(folder, before).items():
            assert not searched(content, canaries), (arguments, name)
            if name.endswith(("manifest.json", "secret.json", "found.json", ".svg")):
                assert not searched(content, SECRET), (arguments, name)


@pytest.mark.parametrize(
    "command", [("compare", "-a", "mondrian"), ("explore", "-a", "mondrian"), ("measure", "people.csv", "masked.csv")]
)
@pytest.mark.parametrize(
    "mistake", ["text for a number", "a taxonomy that lacks a value", "a secret's order", "rows of persons"]
)
def test_no_failure_of_another_command_says_a_value(command: tuple[str, ...], mistake: str, folder: Path) -> None:
    with inside(folder), captured():
        assert call(ANONYMIZE) == 0
    (folder / "shoal.toml").write_text(CONFIG.replace(*BROKEN[mistake]))
    before = set(folder.rglob("*"))
    with inside(folder), captured() as (out, err):
        code = call(command)
    assert code == 2, err.getvalue()
    assert not searched(out.getvalue() + err.getvalue(), HIDDEN + SECRET), err.getvalue()
    assert left_behind(folder, before) == {}
