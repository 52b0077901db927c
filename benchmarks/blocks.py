"""Blocks: one million records on all cores, and what the seams cost.

    python -m benchmarks.blocks             1,000,000 records, and the loss on 100,000 of them with and without blocks
    python -m benchmarks.blocks --quick     100,000 and 30,000

Adult-like records with eight quasi-identifiers: Adult resampled, every value exchanged with a chance of three in ten for that
of another record. k_member, k = 10, NCP. Writes benchmarks/out/blocks.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.algorithms import run
from shoal.algorithms.blocks import RECORDS
from shoal.datasets import adult
from shoal.microdata import Microdata
from shoal.models.k_anonymity import KAnonymity
from shoal.policy import Policy
from shoal.reproduce.tables import adult_schema
from shoal.states import class_states

EIGHT = ("age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country")
K = 10
EXCHANGED = 0.3
OUT = Path(__file__).parent / "out"


def main() -> None:
    """Print one line a run and write all figures."""
    parser = argparse.ArgumentParser(description="k_member in blocks.")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    large, small = (100_000, 30_000) if options.quick else (1_000_000, 100_000)
    table = adult_like(large)
    measured(table.take(np.arange(2000)), 500)  # compiles, or loads what is compiled
    print(f"k_member, k = {K}, {len(EIGHT)} quasi-identifiers, {os.cpu_count()} cores")
    print(
        f"{'records':>10} {'tuples':>8} {'block':>7} {'seconds':>8} {'processor':>10} {'ncp':>8} {'classes':>8} {'GB':>5}"
    )
    sample = table.take(np.sort(np.random.default_rng(0).choice(table.n, small, replace=False)))
    rows = [measured(sample, 0), *(measured(sample, size) for size in (RECORDS, 50_000) if size < small)]
    rows.append(measured(table, RECORDS))
    for row in rows[1:-1]:
        change = 100 * (row["ncp"] / rows[0]["ncp"] - 1)
        print(f"blocks of {row['block']:,} lose {abs(change):.2f} % {'more' if change > 0 else 'less'} than none")
    OUT.mkdir(exist_ok=True)
    (OUT / "blocks.json").write_text(json.dumps({"cores": os.cpu_count(), "runs": rows}, indent=1), encoding="utf-8")


def adult_like(n: int, seed: int = 0) -> Microdata:
    """Adult resampled with much noise, so that most tuples are rare."""
    table = adult().select(EIGHT)
    random = np.random.default_rng(seed)
    rows = random.integers(table.height, size=n)
    columns = []
    for column in table.iter_columns():
        exchanged = random.random(n) < EXCHANGED
        columns.append(column.gather(np.where(exchanged, random.integers(table.height, size=n), rows)))
    return Microdata.from_frame(pl.DataFrame(columns), adult_schema(EIGHT))


def measured(data: Microdata, block: int) -> dict[str, Any]:
    """One run, its policy checked."""
    rules, space = data.rules(Policy((KAnonymity(K),))), data.space("ncp")
    tuples = len(data.points.weights)
    wall, processor = time.perf_counter(), time.process_time()
    found = run("k_member", data, rules, options={"blocks": block})
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    if found.sizes.min() < K or found.suppressed:
        raise SystemExit("a class is too small")
    loss = float(space.unit(class_states(data, found, space)) @ found.sizes) / data.n / len(EIGHT)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    if data.n > 2000:
        print(
            f"{data.n:>10,} {tuples:>8,} {block or 'none':>7} {wall:>8.2f} {processor:>10.2f} {loss:>8.5f} "
            f"{found.classes:>8,} {peak:>5.2f}",
            flush=True,
        )
    row = {"records": data.n, "tuples": tuples, "block": block, "seconds": wall, "processor": processor}
    return {**row, "ncp": loss, "classes": found.classes, "gb": peak, "notes": dict(found.notes)}


if __name__ == "__main__":
    main()
