"""A table that changes: what a change costs, beside anonymizing the whole table anew, and how it grows with the table.

    python -m benchmarks.evolve               100,000 records against a full run; single inserts at 10k, 100k and 1M
    python -m benchmarks.evolve --quick       20,000 records and no million
    python -m benchmarks.evolve --writers 60  and two processes that insert at once for a minute

Made-up hospitals, k = 5; every store is a SQLite file on the disk and is checked at the end by code that trusts
nothing in memory. Times are processor seconds of the process, the wall clock beside them. Writes benchmarks/out/evolve.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import shoal
from shoal.datasets import hospital, taxonomy_path

POLICY = shoal.KAnonymity(5)
SCHEMA: dict[str, Any] = {
    "age": {"role": "quasi", "kind": "number", "domain": [0, 110]},
    "sex": {"role": "quasi"},
    "zip": {"role": "quasi", "kind": "category", "taxonomy": {"prefix": [3, 2, 0]}},
    "admitted": {"role": "quasi", "kind": "date", "taxonomy": {"dates": ["month", "year"]}},
    "occupation": {"role": "quasi", "taxonomy": str(taxonomy_path("occupation"))},
    "diagnosis": {"role": "sensitive"},
}
BATCH = 1_000


def main() -> None:
    """Run the parts asked for, print one table each, write all figures."""
    parser = argparse.ArgumentParser(description="The store: speed of changes, and growth.")
    parser.add_argument("--quick", action="store_true", help="20,000 records and no million")
    parser.add_argument("--writers", type=float, default=0.0, metavar="SECONDS", help="also two writers at once")
    options = parser.parse_args()
    figures: dict[str, Any] = {"machine": platform.processor() or platform.machine()}
    _warm()
    figures["against_full_run"] = against_full_run(20_000 if options.quick else 100_000)
    figures["growth"] = growth([10_000, 20_000] if options.quick else [10_000, 100_000, 1_000_000])
    if options.writers:
        figures["two_writers"] = two_writers(options.writers)
    target = Path(__file__).parent / "out" / "evolve.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"written: {target.relative_to(Path(__file__).parents[1])}")


def against_full_run(n: int) -> dict[str, Any]:
    """A change of 1 % (half comes, a fifth goes, the rest is corrected) and a full run, on the same store."""
    table = people(n + n // 100)
    changes = n // 100
    came, gone, corrected = changes // 2, changes // 5, changes - changes // 2 - changes // 5
    with _store(table[:n], algorithm="auto", refine=True) as store:
        mixed = table[n : n + corrected].with_columns(record=table["record"][:corrected])
        applied, seconds, wall = timed(
            lambda: store.apply(
                insert=table[n + corrected : n + corrected + came],
                update=mixed,
                delete=table["record"][corrected : corrected + gone].to_list(),
            )
        )
        store.check().require()
        renewed, full_seconds, full_wall = timed(store.renew)
        store.check().require()
    row = {
        "records": n,
        "changed": changes,
        "change_seconds": seconds,
        "change_wall": wall,
        "full_seconds": full_seconds,
        "full_wall": full_wall,
        "ratio": full_seconds / seconds,
        "loss": applied.loss,
        "full_loss": renewed.loss,
    }
    print(
        f"{'records':>9} {'changed':>8} {'change s':>9} {'full run s':>11} {'ratio':>6} {'loss':>8} {'full loss':>10}"
    )
    print(
        f"{n:>9,} {changes:>8,} {seconds:>9.2f} {full_seconds:>11.2f} {row['ratio']:>6.0f} {applied.loss:>8.4f} "
        f"{renewed.loss:>10.4f}\n"
    )
    return row


def growth(sizes: list[int]) -> dict[str, Any]:
    """Inserts in batches of 1,000 into stores of several sizes; the exponent is the slope of log cost over log size."""
    print(f"{'records':>9} {'inserts/s':>10} {'wall/s':>8} {'ms a batch':>11} {'make s':>8} {'check s':>8}")
    rows = []
    for n in sizes:
        batches = 10
        table = people(n + (batches + 1) * BATCH)
        started = time.process_time()
        with _store(table[:n], algorithm="mondrian", refine=False) as store:
            made = time.process_time() - started
            costs, walls = [], []
            for i in range(batches + 1):
                part = table[n + i * BATCH : n + (i + 1) * BATCH]
                _, seconds, wall = timed(lambda part=part: store.insert(part))
                costs.append(seconds)
                walls.append(wall)
            _, check, _ = timed(lambda: store.check().require())
        # The first batch makes room in memory for those that follow.
        cost, wall = float(np.mean(costs[1:])), float(np.mean(walls[1:]))
        rows.append(
            {
                "records": n,
                "inserts_a_second": BATCH / cost,
                "wall_inserts_a_second": BATCH / wall,
                "batch_seconds": cost,
                "first_batch_seconds": costs[0],
                "make_seconds": made,
                "check_seconds": check,
                "verified": True,
            }
        )
        print(f"{n:>9,} {BATCH / cost:>10,.0f} {BATCH / wall:>8,.0f} {1000 * cost:>11.0f} {made:>8.1f} {check:>8.1f}")
    logs = np.log([[row["records"], row["batch_seconds"]] for row in rows])
    exponent = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
    print(f"growth exponent of the cost of an insert: {exponent:.2f}\n")
    return {"rows": rows, "exponent": exponent}


def two_writers(seconds: float) -> dict[str, Any]:
    """The test of two processes that insert at once, for as long as asked."""
    command = [sys.executable, "-m", "pytest", "-q", "tests/evolve/store/test_two_writers.py"]
    environment = {**os.environ, "SHOAL_SECONDS": str(seconds)}
    done = subprocess.run(command, cwd=Path(__file__).parents[1], env=environment, check=False)
    return {"seconds": seconds, "passed": done.returncode == 0}


def people(n: int) -> pl.DataFrame:
    """A hospital with its key."""
    return hospital(n, 1).select("record", *SCHEMA)


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, processor and wall seconds."""
    processor, clock = time.process_time(), time.perf_counter()
    result = work()
    return result, time.process_time() - processor, time.perf_counter() - clock


@contextmanager
def _store(table: pl.DataFrame, **more: Any) -> Iterator[shoal.Store]:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/registry.db"
        with shoal.Store.create(url, table, POLICY, key="record", schema=SCHEMA, **more) as store:
            yield store


def _warm() -> None:
    """Load what was compiled before, or compile it."""
    started = time.perf_counter()
    table = people(700)
    for algorithm, refine in (("auto", True), ("mondrian", False)):
        with _store(table[:600], algorithm=algorithm, refine=refine) as store:
            store.apply(insert=table[600:], delete=table["record"][:50].to_list(), update=table[60:70])
    print(f"first use: {time.perf_counter() - started:.1f} s (compiling, or loading what an earlier run compiled)\n")


if __name__ == "__main__":
    main()
