"""DuckDB's records give what records in memory give; its folder is its owner's and goes; a changed staged table is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.tables import random_table

import shoal
from shoal.engines import duck
from shoal.engines.duck import DuckEngine, frame_source, parquet_files, text_file
from shoal.engines.memory import MemoryEngine
from shoal.engines.walk import LargeRelease, Settings, walk
from shoal.errors import InputError, InternalError, MissingExtraError, ShoalError, VerificationError
from shoal.microdata import Microdata
from shoal.policy import Policy

K = Policy((shoal.KAnonymity(3),))
P = shoal.KAnonymity(3) & shoal.PSensitive(2)
T = shoal.KAnonymity(2) & shoal.TCloseness(0.4)
PLAIN: dict[str, Any] = {"algorithm": "mondrian", "refine": False}


@pytest.fixture
def spill(tmp_path: Path) -> Iterator[Path]:
    """A folder for the engines' own; nothing may be left in it."""
    folder = tmp_path / "spill"
    folder.mkdir()
    yield folder
    assert list(folder.iterdir()) == []


def stored(data: Microdata, path: Path, files: int = 1) -> Path:
    """The table as Parquet, in so many files."""
    if files == 1:
        data.frame.write_parquet(path)
        return path
    path.mkdir()
    for i in range(files):
        data.frame[i::files].write_parquet(path / f"{files - i}.parquet")
    return path


def sorted_rows(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sort(frame.columns, nulls_last=True)


def in_memory(data: Microdata, policy: Policy, **settings: Any) -> LargeRelease:
    return walk(MemoryEngine(data.frame.to_arrow(), batch=77), data.schema, policy, Settings(**settings))


@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        (K, {**PLAIN, "blocks": 60}),
        (P, {**PLAIN, "blocks": 1}),
        (T, {**PLAIN, "blocks": 60}),
        (P, {"algorithm": "k_member", "refine": False, "blocks": 80}),
        (K, {"refine": True, "blocks": 100}),
        (P, {**PLAIN, "intervals": "columns", "blocks": 60}),
        (P, {**PLAIN, "intervals": "midpoint", "blocks": 60}),
        (P, {**PLAIN, "recode": "microaggregate", "blocks": 60}),
        (P, {**PLAIN, "recode": "suppress", "blocks": 60}),
    ],
    ids=str,
)
def test_memory_and_duckdb_give_the_same_release(
    policy: Policy, settings: dict[str, Any], tmp_path: Path, spill: Path
) -> None:
    data = random_table(3, 300, sensitive=2)
    wanted = in_memory(data, policy, **settings)
    source = parquet_files(stored(data, tmp_path / "table.parquet"))
    with walk(DuckEngine(source, folder=spill), data.schema, policy, Settings(**settings)) as found:
        assert isinstance(found.engine, DuckEngine) and isinstance(wanted.engine, MemoryEngine)
        assert sorted_rows(pl.read_parquet(found.engine.staged)).equals(sorted_rows(wanted.engine.staged))
        assert found.evidence == wanted.evidence
        assert found.measures.to_dict() == wanted.measures.to_dict()
        assert found.manifest == wanted.manifest


def test_rows_files_and_batches_change_nothing(tmp_path: Path, spill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(4, 300)
    turned = Microdata.from_frame(data.frame[np.random.default_rng(0).permutation(data.n)], data.schema)
    tables, commitments = [], []
    for place, (one, files, batch) in enumerate([(data, 1, 1 << 17), (turned, 1, 17), (turned, 13, 100)]):
        monkeypatch.setattr(duck, "BATCH", batch)
        source = parquet_files(stored(one, tmp_path / f"t{place}{'.parquet' if files == 1 else ''}", files))
        settings = Settings(algorithm="k_member", refine=False, blocks=70)
        with walk(DuckEngine(source, folder=spill), data.schema, P, settings) as found:
            assert isinstance(found.engine, DuckEngine)
            tables.append(pl.read_parquet(found.engine.staged))
            commitments.append(found.digest)
    assert tables[0].equals(tables[1]) and tables[0].equals(tables[2])
    assert len(set(commitments)) == 3, "other bytes, another commitment"


def test_a_frame_and_a_text_file_are_sources_too(tmp_path: Path, spill: Path) -> None:
    data = random_table(5, 200)
    wanted = in_memory(data, P, **PLAIN)
    data.frame.write_csv(tmp_path / "table.csv")
    sources = [frame_source(data.frame.to_arrow()), text_file(tmp_path / "table.csv", ",")]
    for source in sources:
        engine = DuckEngine(source, folder=spill)
        with walk(engine, data.schema, P, Settings(**PLAIN), as_text=source.as_text):
            assert isinstance(wanted.engine, MemoryEngine)
            assert sorted_rows(pl.read_parquet(engine.staged)).equals(sorted_rows(wanted.engine.staged))


def test_the_folder_is_its_owners_alone_and_goes_with_the_engine(tmp_path: Path, spill: Path) -> None:
    data = random_table(1, 100)
    engine = DuckEngine(frame_source(data.frame.to_arrow()), folder=spill)
    assert engine.folder.stat().st_mode & 0o077 == 0
    release = walk(engine, data.schema, K, Settings(**PLAIN))
    path = release.write(tmp_path / "masked.parquet")
    release.close()
    assert not engine.folder.exists()
    assert shoal.verify(path, K, schema=data.schema).passed
    assert path.stat().st_mode & 0o044, "as readable as other files"


def test_errors_leave_nothing_behind(tmp_path: Path, spill: Path) -> None:
    data = random_table(1, 100)
    for policy in (Policy((shoal.KAnonymity(1000),)), shoal.KAnonymity(2) & shoal.PSensitive(30)):
        with pytest.raises(ShoalError):
            walk(DuckEngine(frame_source(data.frame.to_arrow()), folder=spill), data.schema, policy)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 this is none")
    engine = DuckEngine(parquet_files(broken), folder=spill)
    with pytest.raises(InputError, match="check that its files are whole") as found:
        walk(engine, data.schema, K)
    assert "this is none" not in str(found.value)


@pytest.mark.parametrize("when", ["judge", "write"])
@pytest.mark.parametrize("bad", [True, False], ids=["breaks the policy", "one value exchanged"])
def test_a_changed_staged_table_is_refused(
    when: str, bad: bool, tmp_path: Path, spill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = random_table(2, 150)
    target = tmp_path / "out" / "masked.parquet"
    target.parent.mkdir()

    def changed(engine: DuckEngine) -> None:
        table = pl.read_parquet(engine.staged)
        first = pl.lit("[0, 1]" if bad else table["height"][1])
        row = pl.int_range(pl.len()) == 0
        table.with_columns(pl.when(row).then(first).otherwise(pl.col("height")).alias("height")).write_parquet(
            engine.staged
        )

    original = getattr(DuckEngine, when)

    def tampered(self: DuckEngine, *args: Any) -> Any:
        changed(self)
        return original(self, *args)

    monkeypatch.setattr(DuckEngine, when, tampered)
    engine = DuckEngine(frame_source(data.frame.to_arrow()), folder=spill)
    with pytest.raises((VerificationError, InternalError)), walk(engine, data.schema, P, Settings(**PLAIN)) as release:
        release.write(target)
    assert list(target.parent.iterdir()) == []


def test_a_staged_table_that_breaks_the_policy_fails_even_if_nobody_changed_it(
    tmp_path: Path, spill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict is on what is staged, not on what was meant."""
    data = random_table(2, 150)
    original = DuckEngine.publish

    def wrong(self: DuckEngine, whole: Any) -> None:
        original(self, whole)
        table = pl.read_parquet(self.staged)
        table.with_columns(height=pl.int_range(pl.len()).cast(pl.String)).write_parquet(self.staged)
        self._digest = duck._digest(self.staged)

    monkeypatch.setattr(DuckEngine, "publish", wrong)
    with pytest.raises(InternalError, match="failed verification, nothing was released"):
        walk(DuckEngine(frame_source(data.frame.to_arrow()), folder=spill), data.schema, K, Settings(**PLAIN))


def test_a_killed_process_leaves_nothing_at_the_target_and_its_folder_goes_with_the_next(tmp_path: Path) -> None:
    spill, out = tmp_path / "spill", tmp_path / "out"
    spill.mkdir()
    out.mkdir()
    program = f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path.cwd())!r})
        from tests.tables import random_table
        import shoal
        from shoal.engines.duck import DuckEngine, frame_source
        from shoal.engines.walk import Settings, walk
        data = random_table(2, 150)
        engine = DuckEngine(frame_source(data.frame.to_arrow()), folder={str(spill)!r})
        judge = engine.judge
        engine.judge = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
        walk(engine, data.schema, shoal.KAnonymity(3) & shoal.PSensitive(2), Settings(algorithm="mondrian", refine=False))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert list(out.iterdir()) == []
    assert len(list(spill.iterdir())) == 1
    other = spill / f"{duck.PREFIX}{os.getpid()}-mine"
    other.mkdir()
    DuckEngine(frame_source(random_table(0, 20).frame.to_arrow()), folder=spill).discard()
    assert list(spill.iterdir()) == [other], "what a living process has stays"


def skewed(n: int) -> dict[str, tuple[pl.DataFrame, dict[str, Any]]]:
    random = np.random.default_rng(3)
    roles: dict[str, Any] = {"a": {"role": "quasi"}, "b": {"role": "quasi"}, "ill": {"role": "sensitive"}}
    ill = [f"i{i}" for i in random.integers(0, 4, n)]
    numbers = random.integers(0, 30, n)
    half = np.where(np.arange(n) < n // 2, 7, numbers)
    return {
        "all rows equal": (pl.DataFrame({"a": [1] * n, "b": ["x"] * n, "ill": ill}), roles),
        "half of the table one tuple": (pl.DataFrame({"a": half, "b": ["x"] * n, "ill": ill}), roles),
        "one giant class": (pl.DataFrame({"a": numbers, "b": ["x"] * n, "ill": ["i0"] * (n - 3) + ["i1"] * 3}), roles),
        "as many values as records": (
            pl.DataFrame({"a": random.permutation(n), "b": ["x", "y"] * (n // 2), "ill": ill}),
            roles,
        ),
    }


@pytest.mark.parametrize("name", list(skewed(4)))
def test_skewed_tables(name: str, spill: Path) -> None:
    frame, roles = skewed(4_000)[name]
    data = Microdata.from_frame(frame, roles)
    settings = Settings(blocks=500, **PLAIN)
    with walk(DuckEngine(frame_source(frame.to_arrow()), folder=spill), data.schema, P, settings) as found:
        assert isinstance(found.engine, DuckEngine)
        wanted = shoal.anonymize(data, P, **PLAIN)
        assert sorted_rows(pl.read_parquet(found.engine.staged)).equals(sorted_rows(wanted.masked))
        assert found.measures.to_dict() == wanted.measures.to_dict()


def test_nothing_that_is_collected_grows_with_the_records(spill: Path) -> None:
    sizes = []
    for n in (2_000, 20_000):
        data = random_table(8, n)
        engine = DuckEngine(frame_source(data.frame.to_arrow()), folder=spill)
        walk(engine, data.schema, P, Settings(blocks=n // 8, **PLAIN)).close()
        assert {what for what, _ in engine.collected} == {"value_counts", "repeats", "sample", "weigh"}
        sizes.append(max(rows for what, rows in engine.collected if what != "sample"))
    assert sizes[1] < 1.5 * sizes[0] and sizes[1] < 2_000


def test_without_duckdb_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'shoal\[large\]'"):
        DuckEngine(frame_source(random_table(0, 20).frame.to_arrow()))


def test_nobody_else_imports_it() -> None:
    program = "import sys, shoal, shoal.cli, shoal.engines.walk; print([m for m in ('duckdb', 'pyspark') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"


ODD = ("records", "c0", "q0", "s0", "k0", "t", 'a"b', "a.b", "a`b", "ä名", "x'; --", " row", "part", "count(*)")


@pytest.mark.parametrize("role", ["quasi", "other"])
def test_a_column_may_be_called_anything(role: str, spill: Path) -> None:
    random = np.random.default_rng(0)
    frame = pl.DataFrame(
        {name: random.integers(0, 3, 60) for name in ODD} | {"ill": random.integers(0, 4, 60).astype(str)}
    )
    rest = {"role": role, "accept": "a test"} if role == "other" else {"role": role}
    roles = dict.fromkeys(ODD, rest) | {"b0": {"role": "quasi"}, "ill": {"role": "sensitive"}}
    frame = frame.with_columns(b0=pl.Series(random.integers(0, 9, 60)))
    data = Microdata.from_frame(frame, roles)
    wanted = shoal.anonymize(data, P, **PLAIN)
    for engine in (MemoryEngine(frame.to_arrow()), DuckEngine(frame_source(frame.to_arrow()), folder=spill)):
        with walk(engine, data.schema, P, Settings(**PLAIN, blocks=20)) as found:
            masked = found.frame.lazy().collect()
            assert sorted_rows(masked.select(wanted.masked.columns)).equals(sorted_rows(wanted.masked))


def test_names_that_duckdb_takes_for_one_are_refused(tmp_path: Path, spill: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    one, two = pa.array([1, 2]), pa.array(["a", "b"])
    for names, error, says in (
        (["q", "s", "s"], InputError, "Column 's' is there twice"),
        (["q", "s", "Q"], ShoalError, "'q' and 'Q' differ in capitals alone, which DuckDB does not tell apart"),
    ):
        path = tmp_path / f"{'-'.join(names)}.parquet"
        pq.write_table(pa.Table.from_arrays([one, two, two], names=names), path)
        (tmp_path / "t.csv").write_text(",".join(names) + "\n1,a,b\n")
        for source in (parquet_files(path), text_file(tmp_path / "t.csv", ",")):
            engine = DuckEngine(source, folder=spill)
            with pytest.raises(error, match=says):
                _ = engine.columns
            engine.discard()


def test_moments_of_another_zone_are_refused_and_utc_is_utc_everywhere(tmp_path: Path, spill: Path) -> None:
    from datetime import UTC, datetime

    import pyarrow as pa
    import pyarrow.parquet as pq

    moments = [datetime(2020, 1, 1 + i % 5, 23, 30, tzinfo=UTC) for i in range(40)]
    roles = {"seen": {"role": "quasi"}, "ill": {"role": "sensitive"}}
    for zone in ("UTC", "Asia/Tokyo"):
        table = pa.table({"seen": pa.array(moments, pa.timestamp("us", zone)), "ill": [f"i{i % 3}" for i in range(40)]})
        path = tmp_path / f"{zone[:3]}.parquet"
        pq.write_table(table, path)
        wanted = shoal.anonymize(path, P, schema=roles, **PLAIN)
        schema = Microdata.from_frame(pl.read_parquet(path), roles).schema
        engine = DuckEngine(parquet_files(path), folder=spill)
        if zone == "UTC":
            with walk(engine, schema, P, Settings(**PLAIN)) as found:
                assert sorted_rows(found.frame.collect()).equals(sorted_rows(wanted.masked))
        else:
            with pytest.raises(ShoalError, match="moments of the zone Asia/Tokyo"):
                walk(engine, schema, P, Settings(**PLAIN))
