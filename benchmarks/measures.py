"""All models, measures, risks and attacks on Adult: how long they take, beside pycanon in the same run.

    python benchmarks/measures.py                        with pycanon, where this Python has it
    python benchmarks/measures.py --peer PYTHON          with the pycanon of another Python

Two masked tables of the 30,162 complete records: 2,476 and 11,089 classes over seven quasi-identifiers, with occupation
as sensitive attribute. Both tools read the same files; times are processor seconds without reading and importing, ours the
best of three. pycanon computes the models it has (k, alpha, l in three forms, t, beta in two forms, delta). Writes
benchmarks/out/measures.json.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.datasets import adult
from shoal.datasets.public import adult_taxonomy_path
from shoal.errors import InputError
from shoal.measures.attacks import linking, run_attacks
from shoal.measures.masked import measure_masked
from shoal.measures.risk import reidentification_risk
from shoal.measures.seen import MaskedTable
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.recode import generalize
from shoal.states import class_states
from shoal.verifier import audit, derive_classes

QUASI = ("age", "workclass", "education", "marital-status", "race", "sex", "native-country")
SENSITIVE = "occupation"
CLASSES = {2_476: 0.5, 11_089: 1.0}
"""Classes, and the seconds within which everything shall be measured."""

PEER = """
import json, sys, time
import pandas as pd
from pycanon import anonymity
data = pd.read_csv(sys.argv[1], dtype=str, keep_default_na=False)
quasi, sensitive = sys.argv[2].split(","), [sys.argv[3]]
found = {}
for name in ("k_anonymity", "alpha_k_anonymity", "l_diversity", "entropy_l_diversity", "recursive_c_l_diversity",
             "t_closeness", "basic_beta_likeness", "enhanced_beta_likeness", "delta_disclosure"):
    function = getattr(anonymity, name)
    started = time.process_time()
    value = function(data, quasi) if name == "k_anonymity" else function(data, quasi, sensitive)
    seconds = time.process_time() - started
    found[name] = {"value": [float(v) for v in (value if isinstance(value, tuple) else (value,))], "seconds": seconds}
print(json.dumps(found))
"""


def main() -> None:
    """Measure both tables with both tools, print a table each, write all figures."""
    parser = argparse.ArgumentParser(description="Measures: time against pycanon.")
    parser.add_argument("--peer", default=sys.executable, help="a Python that has pycanon")
    options = parser.parse_args()
    try:
        data = table()
    except InputError as missing:
        print(f"Adult is not here: {missing}")
        return
    figures: dict[str, Any] = {"machine": platform.processor() or platform.machine(), "tables": []}
    for classes, limit in CLASSES.items():
        masked = masked_table(data, classes)
        ours = our_times(data, masked)
        total = sum(ours["seconds"].values())
        print(f"{classes:,} classes: everything in {total:.3f} s (goal: {limit:g} s)")
        for name, seconds in ours["seconds"].items():
            print(f"  {name:<28} {seconds:8.3f} s")
        print(f"  {'linking all of Adult (extra)':<28} {ours['linking_seconds']:8.3f} s")
        row = {"classes": classes, "asked_seconds": limit, "seconds": total, "parts": ours["seconds"]}
        row["linking_seconds"] = ours["linking_seconds"]
        row["pycanon"] = peer_times(options.peer, masked, ours, total)
        figures["tables"].append(row)
        print()
    target = Path(__file__).parent / "out" / "measures.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"written: {target.relative_to(Path(__file__).parents[1])}")


def table() -> Microdata:
    """The complete records of Adult."""
    schema: dict[str, Any] = {name: {"role": "quasi"} for name in QUASI}
    for name in QUASI[1:]:
        schema[name]["taxonomy"] = str(adult_taxonomy_path(name))
    schema[SENSITIVE] = {"role": "sensitive", "taxonomy": str(adult_taxonomy_path(SENSITIVE))}
    return Microdata.from_frame(adult().select([*QUASI, SENSITIVE]), schema)


def masked_table(data: Microdata, classes: int) -> pl.DataFrame:
    """A masked table with exactly so many classes: sorted records, cut into pieces, until the count is right."""
    order = np.lexsort(data.codes.T[::-1])
    generator = np.random.default_rng(0)
    cuts = np.arange(data.n + 1)
    while True:
        labels = np.empty(data.n, dtype=np.int32)
        labels[order] = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
        partition = Partition.compact(labels)
        states = class_states(data, partition, data.space("ncp"))
        masked = pl.DataFrame([*generalize(data, partition, states), data.frame[SENSITIVE]])
        surplus = derive_classes(masked, list(QUASI))[1].height - classes
        if surplus == 0:
            return masked
        if surplus < 0:
            raise InputError(f"{classes} classes cannot be cut out of Adult this way ({surplus}).")
        # Without a cut two pieces are one, and mostly one class less; small steps near the end do not overshoot.
        cuts = np.delete(cuts, generator.choice(np.arange(1, len(cuts) - 1), max(1, surplus // 2), replace=False))


def our_times(data: Microdata, masked: pl.DataFrame) -> dict[str, Any]:
    """Everything Shoal says about a masked table."""
    schema = data.schema
    opened = MaskedTable.of(masked, schema)
    seconds = {}
    models, seconds["all models"] = timed(lambda: audit(masked, schema))
    _, seconds["all losses"] = timed(lambda: measure_masked(data, masked, 2))
    _, seconds["risks"] = timed(lambda: reidentification_risk(opened.sizes))
    _, seconds["attacks"] = timed(lambda: run_attacks(MaskedTable.of(masked, schema)))
    _, extra = timed(lambda: linking(opened, data.frame.select(QUASI)), repeats=1)
    strongest = {(s.model, *s.settings.values()): s.strongest for s in models}
    return {"seconds": seconds, "linking_seconds": extra, "strongest": strongest}


def peer_times(python: str, masked: pl.DataFrame, ours: dict[str, Any], total: float) -> dict[str, Any] | None:
    """pycanon on the same file, or the reason why not."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "masked.csv"
        masked.write_csv(file)
        # Without our own paths: the other Python has its own packages.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        command = [python, "-c", PEER, str(file), ",".join(QUASI), SENSITIVE]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it said nothing"
        print(f"  pycanon left out: {reason}; give --peer a Python that has it")
        return None
    found = json.loads(done.stdout)
    seconds = sum(entry["seconds"] for entry in found.values())
    models = ours["seconds"]["all models"]
    print(f"  pycanon, its nine models          {seconds:8.2f} s")
    print(f"  ratio: {seconds / models:,.0f} against all our models, {seconds / total:,.0f} against everything")
    strongest = ours["strongest"]
    same = {
        "k": found["k_anonymity"]["value"][0] == strongest[("k_anonymity",)],
        "alpha": bool(np.isclose(found["alpha_k_anonymity"]["value"][0], strongest[("alpha_k",)])),
        "l": found["l_diversity"]["value"][0] == strongest[("l_diversity", "distinct")],
        "t": bool(np.isclose(found["t_closeness"]["value"][0], strongest[("t_closeness", "equal")])),
        "beta": bool(np.isclose(found["basic_beta_likeness"]["value"][0], strongest[("beta_likeness", "basic")])),
        "delta": bool(np.isclose(found["delta_disclosure"]["value"][0], strongest[("delta_disclosure", "allowed")])),
    }
    print(f"  the same strongest parameters: {', '.join(f'{name} {value}' for name, value in same.items())}")
    return {
        "seconds": seconds,
        "parts": found,
        "ratio_models": seconds / models,
        "ratio_all": seconds / total,
        "same": same,
    }


def timed(work: Callable[[], Any], repeats: int = 3) -> tuple[Any, float]:
    """The result and the least processor time."""
    best = np.inf
    for _ in range(repeats):
        started = time.process_time()
        result = work()
        best = min(best, time.process_time() - started)
    return result, float(best)


if __name__ == "__main__":
    main()
