"""What Spark stages is judged as it lies there, refused when it was changed, and gets its name by one rename."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.engines.test_spark import PLAIN, K, P, given, in_memory, sorted_rows
from tests.tables import random_table

import shoal
from shoal.engines.memory import MemoryEngine
from shoal.engines.spark import SparkEngine
from shoal.engines.spark_release import anonymize_spark, read_source
from shoal.engines.walk import Settings, walk
from shoal.errors import InfeasibleError, InputError, InternalError, ShoalError, UnsupportedError, VerificationError
from shoal.policy import Policy


@pytest.mark.parametrize(
    ("policy", "change", "error"),
    [
        (shoal.KAnonymity(3) & shoal.PSensitive(40), lambda frame: frame, InfeasibleError),
        (K, lambda frame: frame.with_columns(job=pl.lit("pilot")), InputError),
        (K, lambda frame: frame.clear(), InputError),
    ],
    ids=["infeasible", "taxonomy gap", "no records"],
)
def test_the_local_errors_come_before_any_long_job(
    policy: Policy, change: Any, error: type[ShoalError], spark: Any, spill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = random_table(0, 100)
    frame = change(data.frame)
    with pytest.raises(error) as wanted:
        shoal.anonymize(frame, policy, schema=data.schema, **PLAIN)
    monkeypatch.setattr(SparkEngine, "encode", None)
    with pytest.raises(error) as found:
        walk(SparkEngine(given(spark, frame), staging=spill), data.schema, policy, Settings(**PLAIN))
    assert str(found.value) == str(wanted.value)


def test_columns_that_differ_in_capitals_alone_are_refused(spark: Any, spill: Path) -> None:
    with pytest.raises(UnsupportedError, match="'age' and 'Age' differ in capitals alone"):
        SparkEngine(given(spark, pl.DataFrame({"age": [1], "Age": [2]})), staging=spill)


def changed(engine: SparkEngine, place: str) -> None:
    """Exchange a value of the staged table, in its own file or in one more."""
    folder = Path(engine.staged.removeprefix("file:"))
    table = pl.read_parquet(folder / "part-00000.parquet")
    row = pl.int_range(pl.len()) == 0
    other = table.with_columns(height=pl.when(row).then(pl.lit(table["height"][1])).otherwise(pl.col("height")))
    other.write_parquet(folder / place)


def test_a_staged_table_that_is_changed_before_it_is_judged_is_refused(
    spark: Any, tmp_path: Path, spill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = random_table(2, 150)
    original = SparkEngine.judge

    def tampered(self: SparkEngine, *args: Any) -> Any:
        changed(self, "part-00000.parquet")
        return original(self, *args)

    monkeypatch.setattr(SparkEngine, "judge", tampered)
    with pytest.raises(VerificationError, match="nothing was released"):
        walk(SparkEngine(given(spark, data.frame), staging=spill), data.schema, P, Settings(**PLAIN))


def test_a_staged_table_that_is_changed_after_it_was_judged_is_refused(spark: Any, tmp_path: Path, spill: Path) -> None:
    data = random_table(2, 150)
    target = tmp_path / "out" / "masked.parquet"
    target.parent.mkdir()
    with anonymize_spark(given(spark, data.frame), data.schema, P, Settings(**PLAIN), staging=spill) as release:
        folder = Path(release.engine.staged.removeprefix("file:"))
        for beside in ("_names.txt", ".names.crc"):
            (folder / beside).write_text("Ann")
            with pytest.raises(VerificationError, match="beside the staged table; nothing was released"):
                release.write(target)
            (folder / beside).unlink()
        for place in ("part-00009.parquet", "part-00000.parquet"):
            changed(release.engine, place)
            with pytest.raises(VerificationError, match="was changed after it was written; nothing was released"):
                release.write(target)
    assert list(target.parent.iterdir()) == []


def test_a_staged_table_that_breaks_the_policy_fails_even_if_nobody_changed_it(
    spark: Any, spill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict is on what is staged, not on what was meant."""
    data = random_table(2, 150)
    original = SparkEngine.publish

    def wrong(self: SparkEngine, whole: Any) -> None:
        original(self, whole)
        file = next(Path(self.staged.removeprefix("file:")).glob("*.parquet"))
        pl.read_parquet(file).with_columns(height=pl.int_range(pl.len()).cast(pl.String)).write_parquet(file)
        self.digest = self._digest_of_files(self.staged)

    monkeypatch.setattr(SparkEngine, "publish", wrong)
    with pytest.raises(InternalError, match="failed verification, nothing was released"):
        walk(SparkEngine(given(spark, data.frame), staging=spill), data.schema, K, Settings(**PLAIN))


def test_a_release_is_a_spark_frame_a_folder_and_a_table(spark: Any, tmp_path: Path, spill: Path) -> None:
    data = random_table(5, 200)
    data.frame.write_csv(tmp_path / "table.csv")
    frame, as_text = read_source(spark, str(tmp_path / "table.csv"))
    target = tmp_path / "masked.parquet"
    settings = Settings(**PLAIN)
    with anonymize_spark(frame, data.schema, P, settings, staging=spill, as_text=as_text) as release:
        assert as_text
        assert type(release.frame).__name__ == "DataFrame" and release.frame.count() == 200
        release.save_table("masked_people")
        with pytest.raises(InputError, match="already exists"):
            release.save_table("masked_people")
        path = release.write(target)
        assert release.frame.count() == 200
    assert sorted(one.name for one in tmp_path.iterdir() if one.name.startswith("masked")) == [
        "masked.parquet",
        "masked.parquet.manifest.json",
        "masked.parquet.secret.json",
    ]
    assert Path(f"{path}.secret.json").stat().st_mode & 0o077 == 0
    written = pl.read_parquet(target / "*.parquet")
    assert [one.name for one in target.iterdir()] == ["part-00000.parquet"]
    assert shoal.verify(written, P, schema=data.schema).passed
    wanted = in_memory(data, P, **PLAIN)
    assert isinstance(wanted.engine, MemoryEngine)
    assert sorted_rows(written).equals(sorted_rows(wanted.engine.staged))
    table = spark.table("masked_people")
    assert table.count() == 200
    told = {row.key: row.value for row in spark.sql("SHOW TBLPROPERTIES masked_people").collect()}
    assert "output_sha256" in told["shoal.manifest"] and "seed" not in told["shoal.manifest"]
