"""How near releases are to the proven least: loss, lower bound, and their ratio, on every table and policy.

    python -m benchmarks.certificate                          all tables, 60 nominal seconds a policy
    python -m benchmarks.certificate --tables "Adult × 7"     one table
    python -m benchmarks.certificate --seconds 300            longer

Search and bound share the seconds, which are nominal: both count operations. The loss is granularity (ncp for the survey and the
hospital), nothing suppressed. Every certificate is tested, box by box or record by record, by code that shares nothing with what
made it. Beside each are the processor seconds of both. Writes benchmarks/out/certificate.json, or certificate-300.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks._tables import adult_like_for_like, adult_table, hospital_table, survey_table
from benchmarks.budget import wide

import shoal
from shoal.algorithms import run
from shoal.measures.bounds import check_certificate, loss_bound
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.refine import refined
from shoal.reproduce.tables import EIGHT, census_table
from shoal.space import Measure

OUT = Path(__file__).parent / "out"
KS = (2, 5, 10, 25, 50, 100)
SECONDS = 60.0
"""What the goals of docs/performance.md are about; others are written apart."""
# The share of the seconds that goes into the bound.
BOUND = 0.3


def main() -> None:
    """A block a table; all figures are written, a policy at a time."""
    parser = argparse.ArgumentParser(description="Loss, bound and ratio.")
    parser.add_argument("--tables", default=",".join(TABLES), help="comma-separated")
    parser.add_argument("--k", default=",".join(map(str, KS)), help="comma-separated; others are left out")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="nominal, search and bound together")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in options.tables.split(","):
        data, objective = TABLES[name]()
        print(f"\n{name}, {data.n:,} × {len(data.quasi)}, {objective}\n", flush=True)
        print(f"{'policy':14}{'loss':>9}{'s':>7}{'bound':>9}{'s':>7}{'ratio':>8}{'parts':>7}{'check s':>9}", flush=True)
        for policy, words in policies(data, [int(k) for k in options.k.split(",")]):
            rows.append({"table": name} | one(data, policy, words, objective, options.seconds))
            OUT.mkdir(exist_ok=True)
            longer = "" if options.seconds == SECONDS else f"-{options.seconds:.0f}"
            (OUT / f"certificate{longer}.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def policies(data: Microdata, ks: Sequence[int]) -> list[tuple[shoal.Policy, str]]:
    """k alone; and where a column is sensitive three values of it, and a distribution near the table's."""
    found = [(shoal.Policy((shoal.KAnonymity(k),)), f"k = {k}") for k in ks]
    if data.schema.named("sensitive") and 5 in ks:
        found.append((shoal.KAnonymity(5) & shoal.PSensitive(3), "k = 5, p = 3"))
        found.append((shoal.KAnonymity(5) & shoal.TCloseness(0.2, distance="equal"), "k = 5, t = 0.2"))
    return found


def one(data: Microdata, policy: shoal.Policy, words: str, objective: Measure, seconds: float) -> dict[str, Any]:
    """Search, bound, and the test of the certificate."""
    rules, space = data.rules(policy), data.space(objective)
    begun = time.process_time()
    start = run("auto", data, rules, objective=objective, options={"refined": True})
    found = refined(data, rules, start, objective=objective, effort=(1 - BOUND) * seconds, seed=1)
    searched = time.process_time()
    bound = loss_bound(data.codes, space, rules, effort=BOUND * seconds)
    bounded = time.process_time()
    if (rules.deficits(found.labels, found.classes) > 0).any() or found.suppressed:
        raise SystemExit(f"{words}: the search broke the policy")
    if not check_certificate(data.codes, space, rules, bound):
        raise SystemExit(f"{words}: the bound's certificate does not hold")
    tested, loss = time.process_time() - bounded, mean_loss(data, found, objective)
    row = {
        "policy": words,
        "loss": loss,
        "search_seconds": searched - begun,
        "bound": bound.mean,
        "bound_seconds": bounded - searched,
        "ratio": bound.mean / loss if loss else 1.0,
        "parts": len(bound.parts),
        "check_seconds": tested,
    }
    print(
        f"{words:14}{loss:9.5f}{row['search_seconds']:7.1f}{bound.mean:9.5f}{row['bound_seconds']:7.1f}"
        f"{row['ratio']:8.3f}{len(bound.parts):7}{tested:9.1f}",
        flush=True,
    )
    return row


def mean_loss(data: Microdata, partition: Partition, objective: Measure) -> float:
    """Per cell of the table, as the bound is."""
    space = data.space(objective)
    units = space.unit(space.states(data.codes, partition.order, partition.starts))
    return float((units * partition.sizes).sum() / (data.n * space.weights.sum()))


def adult_wide() -> Microdata:
    """Adult with all its thirteen columns."""
    return next(data for name, data in wide() if name.startswith("Adult"))


TABLES: dict[str, Callable[[], tuple[Microdata, Measure]]] = {
    "Adult × 7": lambda: (adult_table(), "granularity"),
    "Adult × 7 with age.csv": lambda: (adult_like_for_like(), "granularity"),
    "Adult × 8": lambda: (adult_table(EIGHT, ()), "granularity"),
    "Adult × 13": lambda: (adult_wide(), "granularity"),
    "Census": lambda: (census_table(), "granularity"),
    "hospital": lambda: (hospital_table(), "ncp"),
    "survey": lambda: (survey_table(), "ncp"),
}

if __name__ == "__main__":
    main()
