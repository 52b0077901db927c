"""A table that changes: what a change costs, beside anonymizing the whole table anew, and how it grows with the table.

    python -m benchmarks.evolve               100,000 records against a full run; single inserts at 10k, 100k and 1M; a store of a
                                              million opened, changed and released; the size of 200 releases of 10,000 records
    python -m benchmarks.evolve --quick       20,000 records, no million, and 20 releases of 1,000
    python -m benchmarks.evolve --writers 60  and two processes that insert at once for a minute

Made-up hospitals, k = 5; every store is a SQLite file in the folder for temporary files, and is checked at the end by code
that trusts nothing in memory. Times are processor seconds of the process, the wall clock beside them. Writes
benchmarks/out/evolve.json.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import resource
import sqlite3
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
from shoal.evolve.i3m.classes import Classes
from shoal.partition import Partition

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
    parser.add_argument("--alone", metavar="STORE", help=argparse.SUPPRESS)  # a part that wants a process of its own
    options = parser.parse_args()
    if options.alone:
        print(json.dumps(alone(options.alone)))
        return
    figures: dict[str, Any] = {"machine": platform.processor() or platform.machine()}
    _warm()
    figures["against_full_run"] = against_full_run(20_000 if options.quick else 100_000)
    figures["growth"] = growth([10_000, 20_000] if options.quick else [10_000, 100_000, 1_000_000])
    figures["sizes"] = sizes(1_000, (5, 10, 20)) if options.quick else sizes(10_000, (10, 50, 200))
    if options.writers:
        figures["two_writers"] = two_writers(options.writers)
    target = Path(__file__).parent / "out" / "evolve.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"written: {target.relative_to(Path(__file__).parents[1])}")


def against_full_run(n: int) -> dict[str, Any]:
    """Changes of 1 % (half comes, a fifth goes, the rest is corrected), three of them, and a full run, on the same store."""
    changes, times = n // 100, 3
    table = people(n + times * changes)
    came, gone, corrected = changes // 2, changes // 5, changes - changes // 2 - changes // 5
    costs, walls = [], []
    with _store(table[:n], algorithm="auto", refine=True) as store:
        for turn in range(times):
            old, new = table[turn * changes :], table[n + turn * changes :]
            batch = {
                "insert": new[corrected : corrected + came],
                "update": new[:corrected].with_columns(record=old["record"][:corrected]),
                "delete": old["record"][corrected : corrected + gone].to_list(),
            }
            applied, seconds, wall = timed(lambda batch=batch: store.apply(**batch))
            costs.append(seconds)
            walls.append(wall)
        seconds, wall = float(np.mean(costs)), float(np.mean(walls))
        store.check().require()
        renewed, full_seconds, full_wall = timed(store.renew)
        store.check().require()
    row = {
        "records": n,
        "changed": changes,
        "changes": times,
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
            if n == sizes[-1]:
                opened = _in_a_process(store)
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
    print(f"a store of {opened['records']:,} records, in a process of its own ({opened['memory_gb']:.2f} GB at most):")
    print(f"opening it and applying one row: {opened['open_seconds']:.2f} s ({opened['open_memory_gb']:.2f} GB)")
    for number, line in enumerate(opened["releases"], start=1):
        ratio = line["seconds"] / line["once_seconds"]
        print(
            f"release {number}: {line['seconds']:.2f} s; masking, verifying and measuring its table once: "
            f"{line['once_seconds']:.2f} s; ratio {ratio:.2f}"
        )
    print()
    return {"rows": rows, "exponent": exponent, "alone": opened}


def alone(url: str) -> dict[str, Any]:
    """What a process costs that opens a store, applies one row, and releases twice with a thousand records in between."""
    from shoal.evolve.store import publish

    _warm(silent=True)
    costs: list[dict[str, float]] = []
    masked = publish._masked

    def once(*arguments: Any) -> Any:
        result, seconds, _ = timed(lambda: masked(*arguments))
        costs[-1]["once_seconds"] = seconds
        return result

    publish._masked = once
    store, opening, _ = timed(lambda: shoal.Store.open(url))
    fresh = people(2 * BATCH + 1).with_columns(record=pl.int_range(-2 * BATCH - 1, 0))
    _, first, _ = timed(lambda: store.insert(fresh[:1]))
    memory = _memory()
    for part in (fresh[1 : BATCH + 1], fresh[BATCH + 1 :]):
        costs.append({})
        _, costs[-1]["seconds"], _ = timed(lambda: store.release(guard="batching"))
        store.insert(part)
    found = {"open_seconds": opening + first, "open_memory_gb": memory, "memory_gb": _memory()}
    return {"records": store.status()["records"], **found, "releases": costs}


def sizes(n: int, after: tuple[int, ...]) -> dict[str, Any]:
    """Bytes of a store after so many releases, with all of them in full and with five; a hundredth changes between them."""
    print(f"{'releases':>9} {'records':>8} {'all in full':>12} {'five in full':>13} {'release s':>10}")
    table, rows, change = people(n + max(after) * (n // 200)), [], n // 200
    with _store(table[:n], algorithm="mondrian", refine=False, guard="batching") as store:
        for number in range(1, max(after) + 1):
            begin = n + (number - 1) * change
            gone = table["record"][(number - 1) * change : number * change].to_list()
            store.apply(insert=table[begin : begin + change], delete=gone)
            _, seconds, _ = timed(store.release)
            if number in after:
                row = {"releases": number, "in_full": store.status()["bytes"], "retained": _retained(store, 5)}
                rows.append({**row, "release_seconds": seconds})
                print(f"{number:>9} {n:>8,} {row['in_full']:>12,} {row['retained']:>13,} {seconds:>10.2f}")
        store.audit().require()
        store.check().require()
    print()
    return {"records": n, "rows": rows}


def _retained(store: shoal.Store, keep: int) -> int:
    """The bytes of a copy of a store that keeps so many releases in full."""
    path = Path(str(store._database.path))
    copy = path.with_name("copy.db")
    with sqlite3.connect(path) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    source.close(), target.close()
    with shoal.Store.open(f"sqlite:///{copy}") as other:
        other.retain(keep)
        found = int(other.status()["bytes"])
    for left in path.parent.glob("copy.db*"):
        left.unlink()
    return found


def _in_a_process(store: shoal.Store) -> dict[str, Any]:
    """What `alone` finds out about a copy of a store, without anything that this process has in memory."""
    path = Path(str(store._database.path))
    copy = path.with_name("alone.db")
    with sqlite3.connect(path) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    source.close(), target.close()
    command = [sys.executable, "-m", "benchmarks.evolve", "--alone", f"sqlite:///{copy}"]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def _memory() -> float:
    """The most that this process has had, in gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


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
    """The result, processor and wall seconds. What was done before leaves no garbage for this to collect."""
    gc.collect()
    processor, clock = time.process_time(), time.perf_counter()
    result = work()
    return result, time.process_time() - processor, time.perf_counter() - clock


@contextmanager
def _store(table: pl.DataFrame, **more: Any) -> Iterator[shoal.Store]:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/registry.db"
        with shoal.Store.create(url, table, POLICY, key="record", schema=SCHEMA, **more) as store:
            yield store


def _warm(silent: bool = False) -> None:
    """Load what was compiled before, or compile it."""
    started = time.perf_counter()
    table = people(3_100)
    for algorithm, refine in (("auto", True), ("mondrian", False)):
        with _store(table[:3_000], algorithm=algorithm, refine=refine) as store:
            store.release(guard="batching")
            store.apply(insert=table[3_000:], delete=table["record"][:50].to_list(), update=table[60:70])
            store.release(guard="batching")
    # A class that is worth breaking, which a small table seldom has.
    data = shoal.Microdata.from_frame(pl.DataFrame({"age": [2, 4, 6, 8, 3, 7]}), {"age": {"role": "quasi"}})
    Classes.of(
        data, shoal.Policy((shoal.KAnonymity(2),)), Partition(np.array([0, 0, 1, 1, 2, 2], dtype=np.int32))
    ).optimize()
    if not silent:
        print(
            f"first use: {time.perf_counter() - started:.1f} s (compiling, or loading what an earlier run compiled)\n"
        )


if __name__ == "__main__":
    main()
