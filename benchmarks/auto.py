"""auto against each of its candidates: the loss of what it chose, over the least loss of any candidate.

Adult (30,162 records, beyond the size up to which all candidates run on the whole table) and the synthetic hospital, several
policies, no refinement. The claim is that the ratio never exceeds 1.05. Writes benchmarks/out/auto.json.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks._tables import adult_table, hospital_table

import shoal
from shoal.algorithms import run
from shoal.algorithms.auto import suitable
from shoal.errors import ShoalError
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.policy import Policy

OUT = Path(__file__).parent / "out"


def main() -> None:
    """One line a table and policy."""
    rows = []
    for table, data in tables().items():
        for policy in policies(data):
            row = compared(table, data, policy)
            rows.append(row)
            losses = "  ".join(f"{name} {loss:.4f}" for name, loss in row["candidates"].items())  # type: ignore[attr-defined]
            print(f"{table:9} {policy!s:60} auto {row['auto']:.4f}  ratio {row['ratio']:.3f}   {losses}", flush=True)
    OUT.mkdir(exist_ok=True)
    (OUT / "auto.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def tables() -> dict[str, Microdata]:
    """Adult with occupation, and the hospital with diagnosis as sensitive attribute."""
    return {"adult": adult_table(), "hospital": hospital_table(12_000)}


def policies(data: Microdata) -> list[Policy]:
    """Size only, diversity that is cheap and diversity that decides, and models that bind the distribution."""
    on = data.sensitive[0].name
    five = shoal.KAnonymity(5)
    return [
        Policy((five,)),
        Policy((shoal.KAnonymity(25),)),
        five & shoal.PSensitive(3, on),
        five & shoal.PSensitive(5, on),
        five & shoal.AlphaK(0.5, on),
        five & shoal.LDiversity(3.0, on, variant="entropy"),
        five & shoal.TCloseness(0.4, on, distance="equal"),
    ]


def compared(table: str, data: Microdata, policy: Policy) -> dict[str, object]:
    """auto and its candidates on one policy."""
    rules = data.rules(policy)
    losses: dict[str, float] = {}
    for name in suitable(rules, data.n, refined=False):
        try:
            losses[name] = measure(data, run(name, data, rules)).ncp
        except ShoalError:
            continue
    chosen = measure(data, run("auto", data, rules)).ncp
    ratio = chosen / max(1e-12, min(losses.values()))
    return {"table": table, "policy": str(policy), "auto": chosen, "ratio": ratio, "candidates": losses}


if __name__ == "__main__":
    main()
