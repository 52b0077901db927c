"""The tools that pip installs, on the same tables in the same run: anonypy (Mondrian) and anjana (one level a column).

    python -m benchmarks.peers                     with the peers, where this Python has them
    python -m benchmarks.peers --peer PYTHON       with the peers of another Python

Adult, 8 quasi-identifiers, k = 10. Processor seconds from a table in memory to a masked one, reading and importing left out;
ours include encoding and the verification of what is published. The ratio is a tool's time over that of our Mondrian. A peer
that takes more than 60 s is stopped. Loss is the flat NCP, computed by the same code from what each tool publishes: v of an
attribute's V categories cost (v - 1)/(V - 1), an interval its share of the range, a suppressed record everything. anonypy and
ours work without taxonomies here; anjana cannot, and may suppress up to 5 % of the records. The fastest public strict
Mondrian is quoted: measured on a machine like this one. Writes benchmarks/out/peers.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import shoal
from shoal.datasets import adult, adult_taxonomy_path
from shoal.errors import InputError
from shoal.measures.loss import measure
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.reproduce.tables import EIGHT, NUMBERS

OUT = Path(__file__).parent / "out"
K, LIMIT, SUPPRESSED = 10, 60, 5
SENSITIVE = "income"
QUOTED = {"tool": "a public strict Mondrian", "seconds": 0.33, "loss": 0.0999}

ANONYPY = """
import json, sys, time
import anonypy, pandas as pd
from anonypy.anonypy import anonymize
folder, quasi, numbers, sensitive, k = sys.argv[1], *map(json.loads, sys.argv[2:4]), sys.argv[4], int(sys.argv[5])
data = pd.read_csv(folder + "/table.csv")
for name in quasi:
    if name not in numbers:
        data[name] = data[name].astype("category")
started = time.process_time()
preserver = anonypy.Preserver(data, quasi, sensitive)
parts = preserver.modrian.partition(k)
rows = anonymize(data, parts, quasi, sensitive)
seconds = time.process_time() - started
labels = pd.Series(-1, index=data.index)
for i, part in enumerate(parts):
    labels[part] = i
print(json.dumps({"seconds": seconds, "labels": labels.tolist()}))
"""
"""The two steps of `Preserver.anonymize_k_anonymity`, apart, since what it returns does not name the records."""

ANJANA = """
import json, sys, time
import pandas as pd
from anjana.anonymity import k_anonymity
folder, quasi, sensitive, k, suppressed = sys.argv[1], json.loads(sys.argv[2]), sys.argv[4], int(sys.argv[5]), sys.argv[6]
data = pd.read_csv(folder + "/table.csv", dtype=str, keep_default_na=False)
ladders = json.load(open(folder + "/ladders.json"))
ladders = {name: {level: pd.Series(column) for level, column in enumerate(zip(*ladders[name]))} for name in quasi}
started = time.process_time()
masked = k_anonymity(data, [], quasi, k, float(suppressed), ladders)
seconds = time.process_time() - started
print(json.dumps({"seconds": seconds, "masked": {name: masked[name].tolist() for name in quasi}}))
"""


def main() -> None:
    """Both sizes, ours and theirs; one line each."""
    parser = argparse.ArgumentParser(description="Time and loss against the tools that pip installs.")
    parser.add_argument("--peer", default=sys.executable, help="a Python that has anonypy and anjana")
    options = parser.parse_args()
    try:
        everyone = adult().select([*EIGHT, SENSITIVE])
    except InputError as missing:
        print(f"Adult is not here: {missing}")
        return
    mask(everyone.head(300), "mondrian", refine=False)
    mask(everyone.head(300), "auto", refine="fast")
    print(f"{'records':>8}  {'tool':28} {'seconds':>8} {'ratio':>7} {'flat NCP':>9} {'classes':>8} {'suppressed':>11}")
    rows: list[dict[str, Any]] = []
    for n in (5_000, everyone.height):
        table = everyone.sample(n, seed=1) if n < everyone.height else everyone
        own = [
            {"tool": "Shoal, Mondrian"} | mask(table, "mondrian", refine=False),
            {"tool": "Shoal, auto"} | mask(table, "auto", refine="fast"),
        ]
        theirs = [{"tool": "anonypy, Mondrian"} | anonypy(options.peer, table)]
        theirs.append({"tool": "anjana, k-anonymity"} | anjana(options.peer, table))
        for row in [*own, *theirs]:
            row |= {"n": n}
            if "seconds" in row:
                row["ratio"] = row["seconds"] / own[0]["seconds"]
            show(row)
            rows.append(row)
    print(f"{everyone.height:8,}  {QUOTED['tool']:28} {QUOTED['seconds']:8.2f} {'':7} {QUOTED['loss']:9.4f}   (quoted)")
    OUT.mkdir(exist_ok=True)
    (OUT / "peers.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def show(row: dict[str, Any]) -> None:
    """One line, or why there is none."""
    start = f"{row['n']:8,}  {row['tool']:28}"
    if "seconds" not in row:
        print(f"{start} {row['failed']}", flush=True)
        return
    share = f"{row['suppressed'] / row['n']:.1%}"
    figures = f"{row['seconds']:8.2f} {row['ratio']:7,.1f} {row['loss']:9.4f} {row['classes']:8,} {share:>11}"
    print(f"{start} {figures}", flush=True)


def flat_schema() -> dict[str, Any]:
    """Numbers and sets; no taxonomy."""
    kinds = {name: "number" if name in NUMBERS else "category" for name in EIGHT}
    return {name: {"role": "quasi", "kind": kind} for name, kind in kinds.items()} | {SENSITIVE: {"role": "sensitive"}}


def mask(table: pl.DataFrame, algorithm: str, refine: Any) -> dict[str, Any]:
    """Ours, from a frame to a verified release; the best of three where a run is over at once."""
    seconds = np.inf
    for _ in range(1 if refine else 3):
        begun = time.process_time()
        data = shoal.Microdata.from_frame(table, flat_schema())
        release = shoal.anonymize(
            data, shoal.KAnonymity(K), algorithm=algorithm, objective="granularity", refine=refine
        )
        seconds = min(seconds, time.process_time() - begun)
    return {"seconds": seconds} | of_classes(table, release.partition.labels)


def of_classes(table: pl.DataFrame, labels: Any) -> dict[str, Any]:
    """Loss of classes whose records are known, each published as sets and intervals."""
    data = shoal.Microdata.from_frame(table, flat_schema())
    partition = Partition.compact(np.asarray(labels))
    rules = data.rules(Policy((shoal.KAnonymity(K),)))
    # A guarantee that is not kept would make the comparison worthless.
    if (rules.deficits(partition.labels, partition.classes) > 0).any():
        raise SystemExit(f"A tool made a class with fewer than {K} records.")
    found = measure(data, partition)
    return {"loss": found.granularity, "classes": found.classes, "suppressed": found.suppressed}


def anonypy(python: str, table: pl.DataFrame) -> dict[str, Any]:
    """Its classes, measured as ours."""
    found = in_peer(python, ANONYPY, table)
    return {"seconds": found["seconds"]} | of_classes(table, found["labels"]) if "seconds" in found else found


def anjana(python: str, table: pl.DataFrame) -> dict[str, Any]:
    """Its masked records: a node stands for the values below it, a band for its width."""
    found = in_peer(python, ANJANA, table)
    if "seconds" not in found:
        return found
    masked = found["masked"]
    published = len(masked[EIGHT[0]])
    sizes = Counter(zip(*(masked[name] for name in EIGHT), strict=True))
    if min(sizes.values(), default=K) < K:
        raise SystemExit(f"anjana made a class with fewer than {K} records.")
    steps = ladders(table)
    cells = 0.0
    for name in EIGHT:
        costs = {value: cost(name, value, steps[name]) for value in set(masked[name])}
        cells += sum(costs[value] for value in masked[name])
    loss = (cells / len(EIGHT) + table.height - published) / table.height
    result = {"seconds": found["seconds"], "loss": loss, "classes": len(sizes)}
    return result | {"suppressed": table.height - published}


def cost(name: str, value: str, ladder: list[list[str]]) -> float:
    """The share of the attribute's values, or of its range, that a published value leaves open."""
    below = [row[0] for row in ladder if value in row]
    if len(below) == 1:
        return 0.0
    if name in NUMBERS:
        ends = [float(row[0]) for row in ladder]
        return (float(below[-1]) - float(below[0])) / (max(ends) - min(ends))
    return (len(below) - 1) / (len(ladder) - 1)


def ladders(table: pl.DataFrame) -> dict[str, list[list[str]]]:
    """The taxonomies, for the values that occur; numbers in bands of 5, 10 and 20 (age) and of 2, 4 and 8 (education)."""
    found: dict[str, list[list[str]]] = {}
    for name in EIGHT:
        values = sorted(table[name].unique().to_list())
        if name in NUMBERS:
            steps = (5, 10, 20) if name == "age" else (2, 4, 8)
            # A band has a name that no value and no other band has: anjana looks rows up by it.
            found[name] = [[str(v), *(f"{v // s * s}-{v // s * s + s - 1}" for s in steps), "*"] for v in values]
            continue
        rows = [line.split(";") for line in adult_taxonomy_path(name).read_text(encoding="utf-8").splitlines() if line]
        found[name] = [row for row in rows if row[0] in values]
    return found


def in_peer(python: str, script: str, table: pl.DataFrame) -> dict[str, Any]:
    """What the peer's script printed, or why it did not."""
    with tempfile.TemporaryDirectory() as folder:
        table.write_csv(Path(folder) / "table.csv")
        (Path(folder) / "ladders.json").write_text(json.dumps(ladders(table)), encoding="utf-8")
        # Without our own paths: the other Python has its own packages.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        arguments = [folder, json.dumps(EIGHT), json.dumps(NUMBERS), SENSITIVE, str(K), str(SUPPRESSED)]
        try:
            done = subprocess.run(
                [python, "-c", script, *arguments],
                capture_output=True,
                text=True,
                env=environment,
                check=False,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT)),
            )
        except OSError as problem:
            return {"failed": f"left out: {problem}"}
    if done.returncode < 0:
        return {"failed": f"gave up after {LIMIT} s"}
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it said nothing"
        return {"failed": f"left out: {reason}; give --peer a Python that has it"}
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


if __name__ == "__main__":
    main()
