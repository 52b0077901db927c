"""Large text files, some of their lines at a time: nothing may come out otherwise than when a file is read as a whole."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.errors import ShoalError
from shoal.io import files, lean, repeated
from shoal.io.files import read_table, write_table
from shoal.io.fingerprint import fingerprint
from shoal.io.written import read_written
from shoal.order import ranks, shuffled
from shoal.verifier import verify

WORDS = ["clerk", "nurse", " clerk", "clerk ", "", "?", "-", '"a, b"', '"say ""no"""', '""', "\u00e9t\u00e9", "x y"]
NUMBERS = ["1", "2", "34", "-5", "", "?", "+7"]
REALS = [*NUMBERS, "1.5", "2.0", "1e3"]
CODES = ["01", "1", "2"]
ODD = ['"two\nlines"', 'a"b', '"open', "x\r", "\ufeffx", "\tx", "inf", "nan", "9" * 20, "\x00"]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files too."""
    monkeypatch.setattr(repeated, "_LARGE", 0)


def a_file(thrown: random.Random) -> bytes:
    """Records of a few kinds of columns, now and then with what a careless program writes."""
    kinds = [thrown.choice([WORDS, NUMBERS, REALS, CODES, ["?", ""]]) for _ in range(thrown.choice([1, 2, 3, 4]))]
    kinds = [[*kind, thrown.choice(ODD)] if thrown.random() < 0.1 else kind for kind in kinds]
    rows = [",".join(thrown.choice(kind) for kind in kinds) for _ in range(thrown.choice([1, 5, 40]))]
    if thrown.random() < 0.1:
        rows.insert(thrown.randrange(len(rows) + 1), thrown.choice(["", "  ", ","]))
    end = thrown.choice(["\n", "\n", "\r\n"])
    text = end.join([",".join("abcd"[: len(kinds)]), *rows]) + thrown.choice(["", end, end * 2])
    return text.encode("latin-1" if thrown.random() < 0.05 and "\ufeff" not in text else "utf-8")


def outcome(path: Path, **how: Any) -> tuple[str, pl.DataFrame]:
    """What reading gives: the table, or the sentence that refuses the file."""
    try:
        return "", read_table(path, **how)
    except ShoalError as problem:
        return str(problem), pl.DataFrame()


def test_nothing_comes_out_otherwise(always: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.csv"
    refused = in_pieces = numbers = 0
    for seed in range(600):
        thrown = random.Random(seed)
        monkeypatch.setattr(repeated, "_PIECE", thrown.choice([1 << 25, 40, 1]))
        # Nearly every column as numbers into a list, few of them, none.
        monkeypatch.setattr(lean, "_REPEATED", thrown.choice([0, 2, 1000]))
        path.write_bytes(a_file(thrown))
        how: dict[str, Any] = thrown.choice(
            [{}, {}, {"missing": ["-", "?"]}, {"as_text": True}, {"as_text": ["a", "z"]}]
        )
        how |= thrown.choice(
            [{}, {}, {"columns": ["a"]}, {"columns": ["b", "a"]}, {"skip_rows": 1}, {"header": ["p", "q"]}]
        )
        found, quick = outcome(path, **how)
        with monkeypatch.context() as plain:
            plain.setattr(files, "read_in_pieces", lambda path, wanted: None)
            told, careful = outcome(path, **how)
            _, given = outcome(path, **how, lean=True)
        assert found == told, seed
        assert quick.equals(careful) and quick.schema == careful.schema == given.schema, seed
        refused += bool(found)
        held = outcome(path, **how, lean=True)[1]
        assert lean.spelled_out(held).equals(careful), seed
        for column in filter(lean.is_lean, held):
            texts = lean.texts_of(column)
            assert texts.to_list() == sorted(set(column.drop_nulls().cast(str))), seed
        in_pieces += any(map(lean.is_lean, held))
        numbers += any(dtype.is_numeric() for dtype in held.dtypes)
    assert refused > 60 and in_pieces > 60 and numbers > 100  # all of it was tried


def test_more_texts_than_numbers(always: None, tmp_path: Path) -> None:
    """The first records repeat themselves, later ones do not: the file is read as a whole."""
    path = tmp_path / "table.csv"
    lines = [f"{'same' if row < 200_000 else row},x" for row in range(270_000)]
    path.write_text("\n".join(["a,b", *lines]))
    table = read_table(path, lean=True)
    assert table.dtypes == [pl.String, pl.String]
    assert table["a"].n_unique() == 70_001


def test_what_is_wrong_is_told_with_its_line(always: None, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + "1,x\n" * 50 + "1,inf\n" + "inf,x\n")
    with pytest.raises(ShoalError, match="line 53"):
        read_table(path, lean=True)


@pytest.mark.parametrize("missing", ["category", "drop"])
def test_a_lean_table_is_encoded_as_any_other(missing: Any) -> None:
    frame = pl.DataFrame(
        {
            "job": ["clerk", "nurse", None, "clerk", "baker", "nurse"] * 10,
            "town": ["b", "a", "b", "c", "a", "d"] * 10,
            "ill": ["flu", "cold", None, "flu", "Flu ", "cold"] * 10,
            "ward": ["x", None, "y", "x", "x", "y"] * 10,
        }
    )
    roles = {"job": {"role": "quasi"}, "town": {"role": "quasi", "order": ["d", "c", "b", "a"]}}
    roles |= {"ill": {"role": "sensitive"}, "ward": {"role": "other", "accept": "tried"}}
    held = pl.DataFrame([lean.lean(column) for column in frame])
    plain, small = (shoal.Microdata.of_table(one, roles, missing=missing) for one in (frame, held))
    assert small.codes.tolist() == plain.codes.tolist() and small.domains[0].labels == plain.domains[0].labels  # type: ignore[union-attr]
    assert small.sensitive[0].codes.tolist() == plain.sensitive[0].codes.tolist()  # type: ignore[union-attr]
    assert small.sensitive[0].labels == plain.sensitive[0].labels  # type: ignore[union-attr]
    made = [shoal.anonymize(one, {"k": 2}, algorithm="mondrian", refine=False) for one in (plain, small)]
    assert any(map(lean.is_lean, small.table))  # nobody asked for all of its texts
    assert made[0].masked.equals(made[1].masked) and made[0].manifest == made[1].manifest
    assert fingerprint(small.table) == fingerprint(plain.frame)
    assert small.frame.equals(plain.frame) and small.frame.schema == plain.frame.schema


def test_what_is_wrong_with_a_lean_column_is_told_with_its_record() -> None:
    held = pl.DataFrame([lean.lean(pl.Series("age", ["1", "2", "x", "1"] * 3))])
    with pytest.raises(ShoalError, match=r"record 3: .*3 such values"):
        shoal.Microdata.of_table(held, {"age": {"role": "quasi", "kind": "number"}})


def test_texts_that_are_gone_are_gone() -> None:
    """A list of texts must not tell of records that are no longer there."""
    column = lean.lean(pl.Series("name", ["Ann", "Bob", None, "Cid"]))
    assert lean.texts_of(lean.lean(column.gather([0, 2, 3]))).to_list() == ["Ann", "Cid"]
    assert lean.lean(column.gather([2])).to_list() == [None]
    assert lean.by_text(column, lambda texts: texts.str.replace("Bob", "Cid")).to_list() == ["Ann", "Cid", None, "Cid"]
    assert lean.by_text(column, lambda texts: texts.str.strip_chars()) is column
    assert lean.bytes_of(column) == lean.bytes_of(lean.spelled(column)) == 9


def test_a_lean_table_is_judged_as_any_other() -> None:
    jobs = ["[clerk]", "{baker, nurse}", "[clerk]", "*", "{baker, nurse}", None] * 4
    frame = pl.DataFrame({"job": jobs, "ill": ["flu", "cold", "Flu ", "?", None, "cold"] * 4})
    schema = shoal.Schema({"job": shoal.Attribute(role="quasi"), "ill": shoal.Attribute(role="sensitive")})
    held = pl.DataFrame([lean.lean(column) for column in frame])
    policy = shoal.KAnonymity(4) & shoal.PSensitive(2)
    assert verify(held, policy, schema).to_dict() == verify(frame, policy, schema).to_dict()


@pytest.mark.parametrize("changed", [None, "cold", "", "?", "never seen"])
def test_what_is_read_back_is_compared_with_what_was_meant(changed: str | None, always: None, tmp_path: Path) -> None:
    path = tmp_path / "masked.csv"
    frame = pl.DataFrame({"ill": ["flu", "cold", None, "", "flu"] * 20, "n": [1, 2, 3, 4, 1] * 20})
    write_table(frame, path)
    written = read_written(path)
    assert written.alike is not None
    meant = frame.with_columns(ill=pl.Series(["flu", *frame["ill"][1:-1], "flu" if changed is None else changed]))
    held = pl.DataFrame([lean.lean(column) for column in meant])
    assert written.differing(held) == written.differing(meant) == (None if changed is None else "ill")
    table = written.table
    assert lean.spelled_out(written.lean(["n", "ill"])).equals(table.select("n", "ill"))


def test_places_are_sorted_as_whole_numbers_are() -> None:
    random = np.random.default_rng(3)
    for most in (1, 70_000, 2**40):
        key = random.integers(most, size=5000)
        expected = np.random.default_rng(7).permutation(np.argsort(key, kind="stable"))
        assert shuffled(key, 7).tolist() == expected.tolist()
    assert shuffled(np.zeros(0, dtype=np.int64), 7).tolist() == []
    column = pl.Series("a", ["b", None, "a", "b"])
    assert [found.tolist() for found in (ranks(column)[0], ranks(lean.lean(column))[0])] == [[2, 0, 1, 2]] * 2
