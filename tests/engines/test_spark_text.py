"""Text that Spark writes: a folder of parts, each of which says cell by cell what was judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.engines.test_spark import PLAIN, P, given, rows_of

import shoal
from shoal.engines import spark as engines
from shoal.engines import spark_staged as tasks
from shoal.engines.spark import SparkEngine
from shoal.engines.spark_release import anonymize_spark
from shoal.engines.walk import Settings
from shoal.errors import InputError, VerificationError
from shoal.io.parts import joined_text, parts_of
from shoal.io.written import read_written
from shoal.release import file_digest

ODD = ['say "no"', "a,b", "two\nlines", "=1+1", "ünïcode", "cr\r\nlf"]
ROLES = {"a": {"role": "quasi"}, "ill": {"role": "sensitive"}, 'n "o", te': {"role": "other", "accept": "a test"}}


def table(n: int = 300) -> pl.DataFrame:
    random = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "a": random.integers(0, 50, n),
            "ill": [f"i{i}" for i in random.integers(0, 4, n)],
            'n "o", te': [[*ODD, None][i] for i in random.integers(0, 7, n)],
        }
    )


def parquet(folder: Path, frame: pl.DataFrame) -> bytes:
    frame.write_parquet(folder / "one.parquet")
    return (folder / "one.parquet").read_bytes()


def pair(content: bytes, written: bytes) -> Any:
    return pa.record_batch({"content": pa.array([content], pa.binary()), "written": pa.array([written], pa.binary())})


@pytest.mark.parametrize("rows", [0, 1, 3_000])
def test_a_part_says_what_its_staged_file_does(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "SLICE", 1_100)
    frame = table(rows)
    content = parquet(tmp_path, frame)
    batch = pa.record_batch({"content": pa.array([content], pa.binary())})
    lines = [row for found in tasks.texts([batch], "masked.csv", False) for row in found.column(0).to_pylist()]
    text = "".join(f"{line}\n" for line in lines).encode()
    assert len(lines) == max(1, rows // 1_100)
    (tmp_path / "part-00000.csv").write_bytes(text)
    if rows:
        found = read_written(tmp_path / "part-00000.csv").cells
        assert found["ill"].equals(frame["ill"]) and found['n "o", te'].equals(frame['n "o", te'].fill_null(""))

    def wrong(written: bytes) -> str:
        (told,) = tasks.compared([pair(content, written)], "masked.csv", False)
        return str(told.column(0)[0].as_py())

    assert wrong(text) == ""
    for other in (text + b"x", text[:-2], text.replace(b"a", b"b", 1), b""):
        assert wrong(other) == tasks.OTHER


def test_a_cell_that_text_cannot_hold_is_refused(tmp_path: Path) -> None:
    content = parquet(tmp_path, pl.DataFrame({"a": ["x", "\x00y"] * 600}))
    (told,) = tasks.compared([pair(content, b"")], "masked.csv", False)
    assert "'masked.csv'" in told.column(0)[0].as_py() and "y" not in told.column(0)[0].as_py()[:1]


def test_a_folder_is_read_as_the_file_that_it_would_be(tmp_path: Path) -> None:
    frame = table(90)
    folder = tmp_path / "masked.csv"
    folder.mkdir()
    for i in range(3):
        frame[30 * i : 30 * i + 30].write_csv(folder / f"part-0000{i}.csv")
    (folder / "_SUCCESS").touch()
    frame.write_csv(tmp_path / "whole.csv")
    assert read_written(folder).cells.equals(read_written(tmp_path / "whole.csv").cells)
    frame[:0].write_csv(folder / "part-00003.csv", quote_style="always")
    assert joined_text(parts_of(folder, ".csv", "it"), "it", False) == (tmp_path / "whole.csv").read_bytes()
    each = file_digest(folder)
    (folder / "part-00003.csv").write_text("a,ill\n1,i2\n")
    assert file_digest(folder) != each
    with pytest.raises(VerificationError, match=r"'part-00003\.csv' of .* has other columns than the first file"):
        read_written(folder)
    (folder / "part-00003.csv").unlink()
    for name, text in (("_SUCCESS", "names"), (".part-00000.csv.crc", "x"), ("notes.txt", ""), ("_x.csv", "a\n")):
        (folder / name).write_text(text)
        with pytest.raises(VerificationError, match=r"beside its \.csv files: remove it"):
            read_written(folder)
        (folder / name).unlink()
    empty = tmp_path / "empty.parquet"
    empty.mkdir()
    with pytest.raises(InputError, match=r"a folder without \.parquet files"):
        read_written(empty)


def test_text_is_a_folder_of_parts_with_the_rows_that_were_judged(
    spark: Any, spill: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "FILE", 100)
    data = shoal.Microdata.from_frame(table(), ROLES)
    schema = data.schema
    with anonymize_spark(given(spark, data.frame), schema, P, Settings(**PLAIN), staging=spill) as release:
        wanted = rows_of(release.engine)
        folder = Path(release.write(tmp_path / "masked.csv"))
        assert sorted(one.name for one in folder.iterdir()) == [f"part-0000{i}.csv" for i in range(3)]
        assert all(read_written(one).cells.columns == wanted.columns for one in folder.iterdir())
        safe = Path(release.write(tmp_path / "safe.tsv", safe_csv=True))
        assert release.formulas() == {'n "o", te': wanted['n "o", te'].eq("=1+1").sum()}
        release.write(tmp_path / "masked.parquet")
        again = Path(release.write(tmp_path / "again.csv"))
        assert shoal.verify(tmp_path / "masked.parquet", P, schema=schema).passed
    assert file_digest(again) == file_digest(folder)
    assert shoal.verify(folder, P, schema=schema).passed
    assert shoal.verify(folder / "part-00001.csv", {"k": 2}, schema=schema).records < 300
    blank = pl.col("a").cast(pl.String), pl.col('n "o", te').fill_null("")
    assert read_written(folder).cells.equals(wanted.with_columns(blank))
    marked = read_written(safe).cells['n "o", te']
    assert marked.eq("'=1+1").sum() == wanted['n "o", te'].eq("=1+1").sum()
    told = json.loads((tmp_path / "masked.csv.manifest.json").read_text())
    assert told["output_sha256"] == file_digest(folder)
    assert sorted(one.name for one in tmp_path.glob(".*")) == []


@pytest.mark.parametrize("when", ["as it was written", "when it was compared"])
def test_text_that_somebody_changes_is_refused(
    when: str, spark: Any, spill: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = shoal.Microdata.from_frame(table(), ROLES)
    target = tmp_path / "out" / "masked.csv"
    target.parent.mkdir()
    with anonymize_spark(given(spark, data.frame), data.schema, P, Settings(**PLAIN), staging=spill) as release:
        place = Path(release.engine.folder.removeprefix("file:")) / "staged.csv"
        original = SparkEngine._digest_of_files if when == "as it was written" else SparkEngine.ready

        def meddled(self: SparkEngine, *args: Any) -> Any:
            found = original(self, *args) if when != "as it was written" else None
            for file in place.glob("*.csv"):
                file.write_bytes(file.read_bytes().replace(b"i1", b"i2", 1))
            return found or original(self, *args)

        monkeypatch.setattr(SparkEngine, original.__name__, meddled)
        with pytest.raises(VerificationError, match="nothing was released"):
            release.write(target)
        monkeypatch.undo()
        assert list(target.parent.iterdir()) == []
        assert Path(release.write(target)).is_dir(), "what was meddled with is written anew"
