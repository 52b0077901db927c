"""Mondrian: how time grows, what memory it takes, and what each kind of cut loses.

    python benchmarks/mondrian.py            100 thousand to 10 million records
    python benchmarks/mondrian.py --large    and 30 and 100 million
    python benchmarks/mondrian.py --quick    100 thousand to 1 million

Growth: synthetic encoded records with seven quasi-identifiers (two wide ranges, a taxonomy of 1,000 leaves, an order, three
categories), k = 10, the paper's median cuts, and cuts by loss up to 3 million. Seconds are of the wall clock; processor seconds
stand beside them. Losses: Adult, where it is on disk. Writes benchmarks/out/mondrian.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.algorithms import run
from shoal.algorithms.mondrian import cut_columns
from shoal.datasets.public import ADULT_COLUMNS, adult, adult_taxonomy_path
from shoal.errors import InputError
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.models.k_anonymity import KAnonymity
from shoal.policy import Policy
from shoal.space import Interval, Set, Space, Tree
from shoal.taxonomy_build import from_prefixes

K = 10
SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
CHUNK = 2_000_000
SEVEN = ("age", "sex", "race", "marital-status", "education", "native-country", "workclass")
EIGHT = ("age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country")
WAYS = {
    "default: loss, all cuts": {},
    "loss, median cuts": {"split": "loss", "cuts": "median"},
    "strict medians": {"split": "median"},
    "relaxed medians": {"split": "median", "mode": "relaxed"},
}


def main() -> None:
    """Run the parts asked for, print one table each, write all figures."""
    parser = argparse.ArgumentParser(description="Mondrian: growth, memory and loss.")
    parser.add_argument("--quick", action="store_true", help="up to 1,000,000 records")
    largest = SIZES[2] if parser.parse_args().quick else SIZES[-1]
    sizes = [n for n in SIZES if n <= largest]

    figures: dict[str, Any] = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    figures["first_use_seconds"] = first_use()
    figures["growth"] = [
        growth("strict medians", [n for n in sizes if n <= SIZES[4]], 1),
        growth("strict medians", sizes, os.cpu_count() or 1),
        growth("default: loss, all cuts", [n for n in sizes if n <= SIZES[3]], os.cpu_count() or 1),
    ]
    figures["adult"] = losses_on_adult()
    target = Path(__file__).parent / "out" / "mondrian.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"written: {target.relative_to(Path(__file__).parents[1])}")


def first_use() -> float:
    """Seconds until both kinds of kernels have worked once."""
    started = time.perf_counter()
    for way in ("default: loss, all cuts", "strict medians"):
        partitioned(columns(1000), way, 1)
    seconds = time.perf_counter() - started
    print(f"first use: {seconds:.2f} s (compiling, or loading what an earlier run compiled)\n")
    return seconds


def growth(way: str, sizes: list[int], threads: int) -> dict[str, Any]:
    """Time, memory and classes by size, and the exponent fitted over all sizes but the smallest."""
    print(f"{way}, k = {K}, {threads} thread{'s' if threads > 1 else ''}")
    print(f"{'records':>12} {'seconds':>9} {'processor':>10} {'classes':>10} {'peak GB':>8}")
    rows = []
    for n in sizes:
        table = columns(n)
        wall, processor = time.perf_counter(), time.process_time()
        labels = partitioned(table, way, threads)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        sizes_of_classes = np.bincount(labels)
        if sizes_of_classes.min() < K or len(labels) != n:
            raise SystemExit(f"{way}: a class of {n} records has fewer than {K}")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        print(f"{n:>12,} {wall:>9.2f} {processor:>10.2f} {len(sizes_of_classes):>10,} {peak:>8.2f}", flush=True)
        rows.append(
            {"records": n, "seconds": wall, "processor": processor, "classes": len(sizes_of_classes), "gb": peak}
        )
    measured = rows[1:] or rows
    exponent = None
    if len(measured) > 1:
        logs = [(np.log(row["records"]), np.log(row["processor"])) for row in measured]
        exponent = float(np.polyfit(*zip(*logs, strict=True), 1)[0])
        print(f"processor time grows with exponent {exponent:.3f} from {measured[0]['records']:,} records")
    print()
    return {"way": way, "threads": threads, "rows": rows, "exponent": exponent}


def columns(n: int) -> list[NDArray[Any]]:
    """Encoded records, one array of one or two bytes a code for each quasi-identifier."""
    table: list[NDArray[Any]] = [np.empty(n, dtype=kind) for kind in ("u1", "u2", "u2", "u1", "u1", "u1", "u1")]
    for begin in range(0, n, CHUNK):
        random = np.random.default_rng([0, begin])
        end = min(n, begin + CHUNK)
        count = end - begin
        table[0][begin:end] = np.clip(random.normal(45, 20, count), 0, 99)
        table[1][begin:end] = random.integers(0, 730, count)
        table[2][begin:end] = np.minimum(random.geometric(0.01, count) - 1, 999)
        table[3][begin:end] = random.integers(0, 2, count)
        table[4][begin:end] = np.minimum(random.geometric(0.08, count) - 1, 59)
        table[5][begin:end] = np.minimum(random.geometric(0.4, count) - 1, 6)
        table[6][begin:end] = random.binomial(15, 0.5, count)
    return table


def partitioned(table: list[NDArray[Any]], way: str, threads: int) -> NDArray[np.int32]:
    """The classes of encoded records."""
    domains = (
        Interval(np.arange(100.0), 99.0),
        Interval(np.arange(730.0), 729.0),
        Tree(from_prefixes([f"{i:03d}" for i in range(1000)], [2, 1, 0], "zip")),
        Set(("f", "m")),
        Set(tuple(f"occupation {i}" for i in range(60))),
        Set(tuple(f"status {i}" for i in range(7))),
        Interval(np.arange(16.0), 15.0),
    )
    rules = Policy((KAnonymity(K),)).bind((), len(table[0]))
    options: dict[str, Any] = WAYS[way]
    return cut_columns(table, Space(domains, np.ones(len(domains)), "ncp"), rules, threads=threads, **options)


def losses_on_adult() -> list[dict[str, Any]]:
    """Granularity and NCP on Adult with its taxonomies by k and kind of cut."""
    try:
        table = adult()
        paths = {name: str(adult_taxonomy_path(name)) for name in {*SEVEN, *EIGHT} - {"age"}}
    except InputError as reason:
        print(f"Adult is left out: {reason}")
        return []
    rows = []
    print(f"{'Adult':<28} {'quasi':>5} {'k':>4} {'granularity':>12} {'ncp':>8} {'classes':>8} {'seconds':>8}")
    for quasi in (SEVEN, EIGHT):
        schema: dict[str, Any] = {name: {"role": "identifier"} for name in ADULT_COLUMNS}
        schema |= {name: {"role": "quasi", "taxonomy": paths[name]} for name in quasi if name in paths}
        schema |= {"age": {"role": "quasi", "domain": [1, 100]}}
        data = Microdata.from_frame(table, schema)
        for way, options in WAYS.items():
            for k in (2, 5, 10, 25, 50, 100):
                rules = data.rules(Policy((KAnonymity(k),)))
                started = time.perf_counter()
                partition = run("mondrian", data, rules, objective="granularity", options=options)
                seconds = time.perf_counter() - started
                found = measure(data, partition, k)
                print(
                    f"{way:<28} {len(quasi):>5} {k:>4} {found.granularity:>12.4f} {found.ncp:>8.4f} "
                    f"{partition.classes:>8,} {seconds:>8.3f}"
                )
                rows.append(
                    {"way": way, "quasi": len(quasi), "k": k, "granularity": found.granularity, "ncp": found.ncp}
                )
                rows[-1] |= {"classes": partition.classes, "seconds": seconds}
    print()
    return rows


if __name__ == "__main__":
    main()
