"""Records that are written alike, each looked at once: nothing may come out otherwise than when each is looked at."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.forged.cases import Case
from tests.forged.test_forged import CASES, require_verdict

import shoal
from shoal.errors import ShoalError
from shoal.io import repeated
from shoal.io.written import Written, read_written

TEXTS = ["34", "34.0", " 34", "", "?", "clerk", "clerk ", '"a, b"', '"say ""no"""', "'=1", "[20, 29]", "\u00e9", "01"]
ODD = ['"two\nlines"', 'a"b', '"open', "x\r", "\x01", "\ufeffx", "\tx"]
FORGED = [case for case in CASES if case.file.endswith((".csv", ".tsv", ".txt"))]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files too, and whatever share of the lines is left."""
    monkeypatch.setattr(repeated, "_LARGE", 0)
    monkeypatch.setattr(repeated, "_WORTH", 1.0)
    monkeypatch.setattr(repeated, "_HOPELESS", 1.0)


def outcome(path: Path) -> tuple[str, Written | None]:
    """What reading gives: the file's cells, or the sentence that refuses it."""
    try:
        return "", read_written(path)
    except ShoalError as problem:
        return str(problem), None


def a_file(seed: int) -> str:
    """Lines of which many are alike, now and then with what a careless program writes."""
    thrown = random.Random(seed)
    width = thrown.choice([1, 2, 3])
    cells = TEXTS if thrown.random() < 0.6 else TEXTS + ODD
    lines = [",".join(thrown.choice(cells) for _ in range(width)) for _ in range(6)]
    if thrown.random() < 0.2:
        lines.append(thrown.choice(["", "  ", ","]))
    records = [thrown.choice(lines) for _ in range(thrown.choice([1, 5, 40]))]
    return "\n".join([",".join("abc"[:width]), *records]) + thrown.choice(["", "\n", "\n\n"])


def test_nothing_comes_out_otherwise(always: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "masked.csv"
    read = refused = told = 0
    for seed in range(600):
        # Files are looked at in pieces, and one line may be in several.
        monkeypatch.setattr(repeated, "_PIECE", (1 << 25, 40, 1)[seed % 3])
        path.write_text(a_file(seed), newline="")
        fast, quick = outcome(path)
        with monkeypatch.context() as plain:
            plain.setattr("shoal.io.delimited.alike_lines", lambda pieces: None)
            slow, careful = outcome(path)
        assert fast == slow, seed
        refused += bool(slow)
        if quick is None or careful is None:
            continue
        assert quick.cells.equals(careful.cells) and quick.cells.schema == careful.cells.schema, seed
        assert quick.table.equals(careful.table) and quick.table.schema == careful.table.schema, seed
        read += 1
        if quick.alike is not None:
            told += 1
            first = quick.cells[quick.alike.first]
            assert first.is_unique().all()  # no line is there twice
            assert quick.alike.dealt(first).equals(quick.cells)
            assert quick.differing(quick.cells) is None
            assert quick.some(quick.table.columns[:1]).equals(quick.table.select(quick.table.columns[:1]))
    assert read > 200 and refused > 50 and told > 60  # all of it was tried


def test_the_first_record_is_named(always: None, tmp_path: Path) -> None:
    path = tmp_path / "masked.csv"
    path.write_text("age,job\n" + "1,a\n" * 9 + "nan,a\n" * 3)
    with pytest.raises(ShoalError, match=r"record 10 of "):
        read_written(path)


def test_large_files_only_and_where_it_is_worth_it(tmp_path: Path) -> None:
    path = tmp_path / "masked.csv"
    path.write_text("age,job\n" + '"[20, 29]",clerk\n' * 1000)
    assert read_written(path).alike is None
    path.write_text("age,job\n" + '"[20, 29]",clerk\n' * 70_000)
    found = read_written(path)
    assert found.alike is not None and found.alike.first.tolist() == [0] and len(found.cells) == 70_000
    path.write_text("age,job\n" + "".join(f'"[20, 29]",clerk{i}\n' for i in range(70_000)))
    assert read_written(path).alike is None


def test_a_record_at_fault_is_counted_among_all(always: None, tmp_path: Path) -> None:
    path = tmp_path / "masked.csv"
    path.write_text("age,ill\n" + "34,flu\n34,cold\n" * 4 + "old,flu\n" * 3)
    schema = shoal.Schema(
        {"age": shoal.Attribute(role="quasi", kind="number"), "ill": shoal.Attribute(role="sensitive")}
    )
    found = shoal.verify(path, {"k": 3}, schema)
    assert found.problems == (
        "Column 'age': it holds what is no number and no interval of numbers in 3 records, the first is record 9.",
    )
    assert (found.records, found.classes, found.smallest, found.largest) == (11, 2, 3, 8)


@pytest.mark.parametrize("case", FORGED, ids=lambda case: case.name)
def test_forged_files_get_the_same_verdict(case: Case, always: None, tmp_path: Path) -> None:
    require_verdict(case, tmp_path)
