"""auto against all: the loss of what it chose, over the least loss of any algorithm that takes the policy.

Adult, the synthetic hospital, a survey with 24 questions, the CASC Census (numbers alone) and a table of flat categories
(employers and towns without a taxonomy), several policies each, without refinement and with "fast" after each. The claim is
that the ratio never exceeds 1.03. Full-domain algorithms publish one level a column and are not refined; incognito, whose
lattice grows with every column, and three_layer, which is a road of its own, are left out. `--small` takes 1,500 records of
each. Writes benchmarks/out/auto.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from benchmarks._tables import adult_table, hospital_table, survey_table

import shoal
from shoal.algorithms import names, run
from shoal.errors import ShoalError
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.policy import Policy, Rules
from shoal.refine import refined
from shoal.reproduce.tables import census_table

OUT = Path(__file__).parent / "out"
LEFT_OUT = ("auto", "incognito", "three_layer")
SMALL = 1_500


def main() -> None:
    """Two lines a table and policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help=f"{SMALL:,} records of each table")
    parser.add_argument("--tables", default="", help="only these, comma-separated")
    parser.add_argument("--search", choices=("none", "fast", "both"), default="both", help="what follows")
    options = parser.parse_args()
    rows = []
    chosen = tables(options.small)
    if options.small:
        print(f"{SMALL:,} records of each table (--small)")
    if options.tables:
        chosen = {name: chosen[name] for name in options.tables.split(",")}
    pairs = [(table, data, policy) for table, data in chosen.items() for policy in policies(data)]
    for search in {"none": (False,), "fast": (True,), "both": (False, True)}[options.search]:
        for table, data, policy in pairs:
            row = compared(table, data, policy, search)
            rows.append(row)
            ranked = sorted(row["losses"].items(), key=lambda one: one[1])
            best = "  ".join(f"{name} {loss:.4f}" for name, loss in ranked[:3])
            way = "fast" if search else "none"
            print(
                f"{table:9} {policy!s:64.64} {way} auto {row['auto']:.4f} ratio {row['ratio']:.3f}   {best}", flush=True
            )
        worst = max(row["ratio"] for row in rows if row["refined"] == search)
        print(f"{len(pairs)} pairs, {'with' if search else 'without'} refinement: worst ratio {worst:.3f}", flush=True)
    OUT.mkdir(exist_ok=True)
    if not options.tables:
        (OUT / "auto.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def tables(small: bool) -> dict[str, Microdata]:
    """With taxonomies, wide, numeric and flat."""
    found = {
        "adult": adult_table(),
        "hospital": hospital_table(12_000),
        "survey": survey_table(6_000, 24),
        "census": census_table(),
        "flat": flat_table(6_000),
    }
    return {name: data.take(np.arange(min(SMALL, data.n))) if small else data for name, data in found.items()}


def flat_table(n: int, seed: int = 1) -> Microdata:
    """Employers and towns without a taxonomy, ages, and what people are ill of."""
    random = np.random.default_rng(seed)
    town = random.zipf(1.6, n) % 80
    employer = (town * 7 + random.zipf(1.8, n)) % 400
    frame = pl.DataFrame(
        {
            "age": random.integers(18, 70, n),
            "town": [f"t{i:02d}" for i in town],
            "employer": [f"e{i:03d}" for i in employer],
            "ill": [f"i{i}" for i in random.zipf(1.7, n) % 9],
        }
    )
    roles = {"age": "quasi", "town": "quasi", "employer": "quasi", "ill": "sensitive"}
    return Microdata.from_frame(frame, {name: {"role": role} for name, role in roles.items()})


def policies(data: Microdata) -> list[Policy]:
    """Size only, diversity, and models that bind the distribution."""
    five = shoal.KAnonymity(5)
    plain = [Policy((five,)), Policy((shoal.KAnonymity(25),))]
    if not data.sensitive:
        return plain
    on = data.sensitive[0].name
    return [
        *plain,
        five & shoal.PSensitive(3, on),
        five & shoal.AlphaK(0.6, on),
        five & shoal.TCloseness(0.4, on, distance="equal"),
    ]


def compared(table: str, data: Microdata, policy: Policy, search: bool) -> dict[str, Any]:
    """auto and all algorithms on one policy."""
    rules = data.rules(policy)
    losses: dict[str, float] = {}
    for name in names():
        if name not in LEFT_OUT:
            try:
                losses[name] = lost(name, data, rules, search)
            except ShoalError:
                continue
    chosen = lost("auto", data, rules, search)
    ratio = chosen / max(1e-12, min(losses.values()))
    return {
        "table": table,
        "policy": str(policy),
        "refined": search,
        "auto": chosen,
        "ratio": ratio,
        "losses": losses,
    }


def lost(name: str, data: Microdata, rules: Rules, search: bool) -> float:
    """What an algorithm loses, with or without a search after it."""
    options = {"refined": True} if name == "auto" and search else None
    start = run(name, data, rules, options=options)
    return measure(data, refined(data, rules, start, objective="ncp", effort="fast" if search else False)).ncp


if __name__ == "__main__":
    main()
