"""People with several rows against people with one, and the examination of columns against the road.

    python -m benchmarks.persons
    python -m benchmarks.persons --persons 2000 --records 100000    smaller

The same people twice: with all their admissions, several diagnoses each, and with the first one alone. What is compared is the
processor time of the same search over the same number of people (a unit is a person in both), alternating in one process, the
fastest of three; once with the chapters of diagnoses and once with each by its name, of which people have very many sets. The box
search has the same budget of operations, so the ratio is what one of them costs. The road is encoding, mondrian (k = 5, p = 3),
masking, verifying and manifest without refinement, over a hospital of a million admissions, of which the examination of the
columns published as they are is a part. Writes benchmarks/out/persons.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import shoal
from shoal.algorithms import run
from shoal.datasets import hospital, taxonomy_path
from shoal.declaration import examine
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.refine.box_search import box_search

PERSONS, RECORDS, TURNS = 10_000, 1_000_000, 3
READMITTED = 0.4
MOST, SHARE = 1.5, 0.10
POLICY = shoal.KAnonymity(5) & shoal.PSensitive(3, "diagnosis")
OUT = Path(__file__).parent / "out"


def main() -> None:
    """Both searches with and without persons, and the examination."""
    parser = argparse.ArgumentParser(description="What persons and the examination of columns cost.")
    parser.add_argument("--persons", type=int, default=PERSONS)
    parser.add_argument("--records", type=int, default=RECORDS)
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for few in (True, False):
        figures["few values" if few else "many values"] = compared(options.persons, few)
    road, looked = examination(options.records)
    figures["examination"] = {"records": options.records, "road": road, "seconds": looked, "share": looked / road}
    print(
        f"{options.records:,} records: the road takes {road:.2f} s of processor time, of which the examination of columns "
        f"{looked:.2f} s: {100 * looked / road:.1f} % (at most {100 * SHARE:.0f} %)"
    )
    OUT.mkdir(exist_ok=True)
    (OUT / "persons.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def compared(persons: int, few: bool) -> dict[str, Any]:
    """Both searches on the same people with all their rows and with one."""
    several, single = tables(persons, few)
    sets = len(several.rules(POLICY).rules[1].sets)  # type: ignore[attr-defined]
    values = len(single.sensitive[0].labels)
    print(
        f"{several.n:,} people with {several.frame.height:,} admissions, or the first one of each alone; {values} diagnoses, "
        f"{sets:,} sets of them; {POLICY}"
    )
    figures: dict[str, Any] = {"persons": several.n, "rows": several.frame.height, "values": values, "sets": sets}
    for name, search in (("k_member", grown), ("box search", searched)):
        for small in tables(300, few):  # so that nothing is compiled while the clock runs
            search(small)
        turns = [(timed(search, several), timed(search, single)) for _ in range(TURNS)]
        with_rows, without = min(one for one, _ in turns), min(one for _, one in turns)
        figures[name] = {"with": with_rows, "without": without, "ratio": with_rows / without}
        print(
            f"{name:<12} {1e6 * with_rows / several.n:8.1f} µs a person with all rows, "
            f"{1e6 * without / single.n:8.1f} µs with one: "
            f"{with_rows / without:.2f} times (at most {MOST})"
        )
    return figures


def tables(persons: int, few: bool) -> tuple[Microdata, Microdata]:
    """People with all their rows, and with the first; `few`: the chapters of diagnoses, instead of each by its name."""
    frame = hospital(2 * persons, seed=2, readmitted=READMITTED).select("patient", *SCHEMA)
    if few:
        lines = taxonomy_path("diagnosis").read_text(encoding="utf-8").splitlines()
        frame = frame.with_columns(
            pl.col("diagnosis").replace({line.split(";")[0]: line.split(";")[2] for line in lines})
        )
    kept = frame["patient"].unique(maintain_order=True).head(persons)
    frame = frame.filter(pl.col("patient").is_in(kept.implode()))
    whose = {"patient": {"role": "person"}, **SCHEMA}
    several = Microdata.from_frame(frame, whose)
    # What counts for a person with several rows is what the person with one row has.
    first = frame.with_columns(
        pl.col("age").max().over("patient"),
        pl.col("zip").drop_nulls().mode(maintain_order=True).first().over("patient"),
        pl.col("admitted").min().over("patient"),
    ).unique("patient", keep="first", maintain_order=True)
    return several, Microdata.from_frame(first.drop("patient"), SCHEMA)


SCHEMA: dict[str, Any] = {
    "age": {"role": "quasi", "kind": "number", "domain": [0, 110], "within": "max"},
    "sex": {"role": "quasi", "kind": "category"},
    "zip": {"role": "quasi", "kind": "category", "taxonomy": {"prefix": [3, 2, 0]}, "within": "most"},
    "admitted": {"role": "quasi", "kind": "date", "taxonomy": {"dates": ["month", "year"]}, "within": "min"},
    "occupation": {"role": "quasi", "kind": "category", "taxonomy": str(taxonomy_path("occupation"))},
    "diagnosis": {"role": "sensitive", "kind": "category"},
}


def grown(data: Microdata) -> Partition:
    """k_member, unrefined."""
    return run("k_member", data, data.rules(POLICY), seed=1)


def searched(data: Microdata) -> Partition:
    """The box search from one class of all, with the same budget for the same number of people."""
    everybody = Partition(np.zeros(data.n, dtype=np.int32))
    return box_search(data.codes, data.space("ncp"), data.rules(POLICY), everybody, effort="fast", seed=1)


def timed(search: Callable[[Microdata], Partition], data: Microdata) -> float:
    """Processor seconds of a search."""
    started = time.process_time()
    search(data)
    return time.process_time() - started


def examination(records: int) -> tuple[float, float]:
    """Processor seconds of the road, and of the examination within it."""
    frame = hospital(records, seed=3).drop("name", "record")
    schema = {
        **{name: {key: value for key, value in rule.items() if key != "within"} for name, rule in SCHEMA.items()},
        "stay": {"role": "other", "kind": "number", "round": 2, "top": 14},
        "cost": {"role": "other", "kind": "number", "round": 1000, "top": 10000},
    }
    started = time.process_time()
    data = Microdata.from_frame(frame, schema)
    shoal.anonymize(data, POLICY, algorithm="mondrian", refine=False)
    road = time.process_time() - started
    started = time.process_time()
    examine(data.frame, data.schema)
    return road, time.process_time() - started


if __name__ == "__main__":
    main()
