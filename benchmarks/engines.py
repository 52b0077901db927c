"""Tables beyond memory: what a row costs in each stage, and how that grows.

    python -m benchmarks.engines                      1 and 3 million records
    python -m benchmarks.engines --rows 1e6 3e6 1e7   as many as said, each in a process of its own
    python -m benchmarks.engines --rows 3e6 3e7 3e6   a size that is there twice counts with its average
    python -m benchmarks.engines --loss               what blocks of 50,000 lose against the whole table in memory
    python -m benchmarks.engines --wide --rows 1e8    eight quasi-identifiers instead of five
    python -m benchmarks.engines --spark              the same on Spark: two threads, after a million records to get warm
    python -m benchmarks.engines --spark --cluster    two executors of a core each, and a driver of its own

The made-up hospital in Parquet files of a million records, Mondrian, k = 10, p = 3, Parquet to verified Parquet within 4 GB.
Processor time, all threads together; on Spark that of the whole machine, which has to be quiet.
Writes benchmarks/out/engines.json, or engines-spark.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import shoal
from shoal.datasets import hospital
from shoal.datasets.hospital import taxonomy_path
from shoal.engines.duck import DuckEngine, parquet_files
from shoal.engines.memory import MemoryEngine
from shoal.engines.walk import LargeRelease, Settings, walk

OUT = Path(__file__).parent / "out"
FILE = 1_000_000
FIVE = ["age", "sex", "zip", "admitted", "occupation"]
MORE = ["children", "insurance", "ward"]
STAGES = ("value_counts", "repeats", "fingerprint", "encode", "sample", "weigh", "solve", "publish", "judge", "write")
POLICY = shoal.KAnonymity(10) & shoal.PSensitive(3)
SETTINGS = Settings(algorithm="mondrian", refine=False)
CLUSTER = "local-cluster[2,1,1536]"
"""Two executors of a core each, beside the driver: what the driver's heap holds is the driver's alone."""


def main() -> None:
    """Print one line a size and write all figures."""
    parser = argparse.ArgumentParser(description="What a row costs beyond memory.")
    parser.add_argument("--rows", nargs="+", type=float, default=[1e6, 3e6])
    parser.add_argument("--wide", action="store_true", help="eight quasi-identifiers")
    parser.add_argument("--memory", type=float, default=4.0, help="gigabytes")
    parser.add_argument("--folder", help="where tables and spilled data go")
    parser.add_argument("--spark", action="store_true", help="on Spark instead of DuckDB")
    parser.add_argument("--cluster", action="store_true", help=f"on Spark at {CLUSTER} instead of local[2]")
    parser.add_argument("--loss", action="store_true", help="losses of blocks against those of whole tables")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        if options.spark:
            print(json.dumps(measured_on_spark(Path(options.one), options.wide, options.cluster)))
        else:
            print(json.dumps(measured(Path(options.one), options.memory, options.wide, options.folder)))
        return
    if options.loss:
        losses()
        return
    quasi = 8 if options.wide else 5
    master = CLUSTER if options.cluster else "local[2]"
    where = f"Spark at {master}" if options.spark else f"DuckDB, {options.memory:g} GB"
    print(f"{where}, Mondrian, {quasi} quasi-identifiers, {POLICY}, {os.cpu_count()} cores")
    print("microseconds of processor time a row:")
    print(
        f"{'records':>12} {'all':>6} "
        + " ".join(f"{name:>12}" for name in STAGES)
        + f" {'walks':>6} {'levels':>6} {'GB':>5}"
    )
    runs = []
    for rows in map(int, options.rows):
        with tempfile.TemporaryDirectory(prefix="shoal-bench-", dir=options.folder) as folder:
            make_table(Path(folder) / "table", rows, options.wide)
            command = [sys.executable, "-m", "benchmarks.engines", "--one", folder, "--memory", str(options.memory)]
            command += ["--wide"] if options.wide else []
            command += ["--folder", options.folder] if options.folder else []
            command += ["--spark"] if options.spark else []
            command += ["--cluster"] if options.cluster else []
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(done.stderr)
            run = json.loads(done.stdout.splitlines()[-1])
        runs.append(run)
        a_row = {name: 1e6 * spent / rows for name, spent in run["stages"].items()}
        print(
            f"{rows:>12,} {1e6 * run['processor'] / rows:6.2f} "
            + " ".join(f"{a_row.get(name, 0.0):12.2f}" for name in STAGES)
            + f" {run['walks']:6} {run['levels']:6} {run['gigabytes']:5.2f}",
            flush=True,
        )
    sizes = [averaged(runs, records) for records in sorted({run["records"] for run in runs})]
    for before, after in [*pairwise(sizes), *([(sizes[0], sizes[-1])] if len(sizes) > 2 else [])]:
        ratio = math.log(after["records"] / before["records"])
        grown = {
            name: math.log(after["stages"][name] / before["stages"][name]) / ratio
            for name in STAGES
            if after["stages"].get(name, 0) > 1 and before["stages"].get(name, 0) > 0
        }
        told = ", ".join(f"{name} {power:.2f}" for name, power in grown.items())
        print(f"exponents from {before['records']:,} to {after['records']:,}: {told}")
    OUT.mkdir(exist_ok=True)
    name = "engines-spark.json" if options.spark else "engines.json"
    (OUT / name).write_text(json.dumps({"cores": os.cpu_count(), "runs": runs}, indent=1), encoding="utf-8")


def averaged(runs: Sequence[dict[str, Any]], records: int) -> dict[str, Any]:
    """What the stages took on the average of all runs of one size: a machine is faster in one minute than in another."""
    spent = [run["stages"] for run in runs if run["records"] == records]
    return {"records": records, "stages": {name: sum(one[name] for one in spent) / len(spent) for name in spent[0]}}


def losses(rows: int = 80_000, blocks: int = 50_000) -> None:
    """What algorithms lose in blocks, over what they lose in memory."""
    table, schema = hospital(rows).select(*FIVE, "diagnosis", "stay"), schema_of(False)
    for algorithm, refine in (("mondrian", True), ("k_member", False)):
        settings = Settings(algorithm=algorithm, refine=refine, blocks=blocks)
        found = walk(MemoryEngine(table.to_arrow()), schema, POLICY, settings).measures.ncp
        whole = shoal.anonymize(table, POLICY, schema=schema, algorithm=algorithm, refine=refine).measures.ncp
        how = f"{algorithm}{', refined' if refine else ''}"
        print(
            f"{rows:,} records in blocks of {blocks:,}, {how}: ncp {found:.4f}, in memory {whole:.4f}: {found / whole:.3f}"
        )


def make_table(folder: Path, rows: int, wide: bool) -> None:
    """The hospital in files of a million records, each with a seed of its own."""
    folder.mkdir()
    for number, begin in enumerate(range(0, rows, FILE)):
        n = min(FILE, rows - begin)
        table = hospital(n, seed=number).select(*FIVE, "diagnosis", "stay")
        if wide:
            random = np.random.default_rng([number, 1])
            table = table.with_columns(
                pl.Series("children", np.minimum(random.geometric(0.5, n) - 1, 6)),
                pl.Series("insurance", np.array([f"insurer {i}" for i in range(8)])[random.integers(0, 8, n)]),
                pl.Series(
                    "ward", np.array([f"ward {i:02}" for i in range(20)])[np.minimum(random.geometric(0.15, n) - 1, 19)]
                ),
            )
        table.write_parquet(folder / f"{number:04}.parquet")


def schema_of(wide: bool) -> shoal.Schema:
    """As in the shipped configuration."""
    columns: dict[str, Any] = {
        "age": {"role": "quasi", "kind": "number", "domain": [0, 110]},
        "sex": {"role": "quasi"},
        "zip": {"role": "quasi", "kind": "category", "taxonomy": {"prefix": [3, 2, 0]}},
        "admitted": {"role": "quasi", "kind": "date", "taxonomy": {"dates": ["month", "year"]}},
        "occupation": {"role": "quasi", "taxonomy": str(taxonomy_path("occupation"))},
        "diagnosis": {"role": "sensitive", "taxonomy": str(taxonomy_path("diagnosis"))},
        "stay": {"role": "other", "kind": "number", "round": 2, "top": 14},
        **({name: {"role": "quasi"} for name in MORE} if wide else {}),
    }
    return shoal.Schema({name: shoal.Attribute.model_validate(one) for name, one in columns.items()})


class Timed:
    """An engine that is timed, stage by stage, in seconds of processor time."""

    def __init__(self, engine: Any, clock: Callable[[], float] = time.process_time) -> None:
        self.engine, self.clock = engine, clock
        self.spent: dict[str, float] = {}

    def __getattr__(self, name: str) -> Any:
        what = getattr(self.engine, name)
        if name not in STAGES:
            return what

        def timed(*args: Any, **options: Any) -> Any:
            begin = self.clock()
            try:
                return what(*args, **options)
            finally:
                self.spent[name] = self.spent.get(name, 0.0) + self.clock() - begin

        return timed


def measured(folder: Path, memory: float, wide: bool, spill: str | None) -> dict[str, Any]:
    """One run in this process; kernels are compiled, or loaded, before the clock starts."""
    small = folder / "small"
    small.mkdir()
    hospital_files = parquet_files(folder / "table")
    pl.read_parquet(hospital_files.files[0]).head(5_000).write_parquet(small / "table.parquet")
    schema = schema_of(wide)
    walk(
        DuckEngine(parquet_files(small), folder=spill),
        schema,
        POLICY,
        Settings(algorithm="mondrian", refine=False, blocks=999),
    ).close()
    begin = time.process_time()
    engine = Timed(DuckEngine(hospital_files, memory=int(memory * 1e9), folder=spill))
    release = walk(engine, schema, POLICY, SETTINGS)
    release.write(folder / "masked.parquet")
    spent = time.process_time() - begin
    release.close()
    return figures(release, engine, spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)


def figures(release: LargeRelease, engine: Timed, spent: float, gigabytes: float) -> dict[str, Any]:
    """One run."""
    return {
        "records": release.evidence.records,
        "classes": release.evidence.classes,
        "blocks": len(release.tree.parts),
        "ncp": release.measures.ncp,
        "processor": spent,
        "stages": engine.spent,
        "walks": release.tree.jobs,
        "levels": release.tree.levels,
        "gigabytes": gigabytes,
        "collected": engine.engine.collected,
    }


def measured_on_spark(folder: Path, wide: bool, cluster: bool) -> dict[str, Any]:
    """One run on two cores, after one of a million records; memory is the driver's heap after collection."""
    from pyspark.sql import SparkSession

    from shoal.engines.spark import SparkEngine

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1536m",
        "spark.local.dir": str(folder / "local"),
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master(CLUSTER if cluster else "local[2]").appName("benchmark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    schema, source = schema_of(wide), session.read.parquet(str(folder / "table"))
    first = session.read.parquet(str(folder / "table" / "0000.parquet"))
    walk(SparkEngine(first, staging=folder), schema, POLICY, replace(SETTINGS, blocks=FILE // 3)).close()
    begin = of_the_machine()
    engine = Timed(SparkEngine(source, staging=folder), of_the_machine)
    release = walk(engine, schema, POLICY, SETTINGS)
    engine.write(folder / "masked.parquet", folder / "masked.parquet", False)
    spent = of_the_machine() - begin
    machine = session._jvm.java.lang
    machine.System.gc()
    runtime = machine.Runtime.getRuntime()
    found = figures(release, engine, spent, (runtime.totalMemory() - runtime.freeMemory()) / 1e9)
    session.stop()
    return found


def of_the_machine() -> float:
    """Seconds of processor time of everything that runs here, since a cluster's processes come, go and change parents."""
    user, nice, system, _, _, interrupts, later = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + interrupts + later) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
