"""Regions: the box search of a large table side by side on all cores, against one region.

Adult-like records with eight quasi-identifiers (as in `blocks`), k = 5, NCP, `fast`, starting from Mondrian's classes. One region
is what smaller tables get. Seconds are of the wall clock; how many cores there are changes them, never the result. Writes
benchmarks/out/regions.json.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from benchmarks.blocks import adult_like

from shoal.algorithms import run
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.models.k_anonymity import KAnonymity
from shoal.policy import Policy
from shoal.refine.box_search import REGION_RECORDS, box_search

SIZES = (240_000, 480_000)
K = 5
OUT = Path(__file__).parent / "out"


def main() -> None:
    """Both ways for every size."""
    print(f"box search, fast, k = {K}, {os.cpu_count()} cores")
    print(f"{'records':>9} {'regions':>8} {'seconds':>8} {'processor':>10} {'mondrian':>9} {'ncp':>8}")
    largest = adult_like(SIZES[-1])
    searched(largest.take(np.arange(2_000)), REGION_RECORDS)  # compiles, or loads what is compiled
    rows = []
    for n in SIZES:
        data = largest.take(np.arange(n))
        for records in (n, REGION_RECORDS):
            row = searched(data, records)
            rows.append(row)
            print(
                f"{n:9,} {row['regions']:8} {row['seconds']:8.2f} {row['processor']:10.2f} {row['mondrian']:9.5f} "
                f"{row['ncp']:8.5f}",
                flush=True,
            )
    OUT.mkdir(exist_ok=True)
    (OUT / "regions.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def searched(data: Microdata, records: int) -> dict[str, Any]:
    """One search with regions of so many records."""
    rules, space = data.rules(Policy((KAnonymity(K),))), data.space("ncp")
    start = run("mondrian", data, rules)
    wall, processor = time.perf_counter(), time.process_time()
    with mock.patch("shoal.refine.box_search.REGION_RECORDS", records):
        found = box_search(data.codes, space, rules, start, effort="fast")
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    if found.sizes.min() < K:
        raise SystemExit("a class is too small")
    row = {"records": data.n, "regions": -(-data.n // records), "seconds": wall, "processor": processor}
    return {**row, "mondrian": measure(data, start).ncp, "ncp": measure(data, found).ncp}


if __name__ == "__main__":
    main()
