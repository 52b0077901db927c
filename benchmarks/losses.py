"""Loss by k, nothing suppressed: box search, the proven lower bound, Mondrian, k_member, and ARX's figures.

Granularity (mean over cells; 0 is untouched, 1 suppressed), the policy checked by the rules, one core, processor seconds. On
Adult with seven quasi-identifiers ARX 3.9.2 (local recoding, best setting tried, 0.2 to 2.2 s; 3.4 s with 3-diversity) is
listed: measured on a machine like this one, not run (`benchmarks.quoted` says how). The first table is like for like: both have
the same hierarchies, age.csv among them. The second has free intervals of ages instead, which ARX has not; the difference
between the two is what intervals add, and no lead. On Adult with eight and on the synthetic hospital nothing was tuned, and
there is no figure of ARX. The search starts from Mondrian's classes; bounds are certified box by box. `--like-for-like` prints
the first table only; `--long` free intervals alone, searched for nominal 120 s. Writes benchmarks/out/losses.json, or
losses-long.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks._tables import adult_like_for_like, adult_table, hospital_table
from benchmarks.quoted import ARX, ARX_DIVERSE

import shoal
from shoal.algorithms import run
from shoal.measures.bounds import check_certificate, loss_bound
from shoal.measures.loss import measure
from shoal.refine import Effort
from shoal.refine.box_search import box_search
from shoal.reproduce.tables import EIGHT

THOROUGH = 5
"""The k at which the untuned tables are also searched thoroughly."""
LONG = 120.0
"""Nominal seconds of a long search."""
OUT = Path(__file__).parent / "out"
SEARCHED = ("k_member", "mondrian", "fast", "thorough")
COLUMNS = ("arx", *SEARCHED, "bound")

Row = dict[str, Any]


def main() -> None:
    """One table of figures a table of records; all figures are written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--efforts", default="fast,thorough", help="comma-separated")
    parser.add_argument("--like-for-like", action="store_true", help="the table with the same hierarchies only")
    parser.add_argument("--long", action="store_true", help=f"free intervals alone, nominal {LONG:.0f} s a search")
    options = parser.parse_args()
    if options.long:
        long()
        return
    efforts: list[Effort] = options.efforts.split(",")
    figures: dict[str, list[Row]] = {}
    same = {"Adult, 7 quasi-identifiers, the same hierarchies": adult_like_for_like()}
    free = {} if options.like_for_like else {"Adult, 7 quasi-identifiers": adult_table()}
    diverse = shoal.KAnonymity(5) & shoal.PSensitive(3, "occupation")
    for name, data in (same | free).items():
        rows = figures[name] = []
        header(f"{name}{'' if name in same else ', free intervals of ages'}, {data.n:,} records", COLUMNS)
        for k, arx in ARX.items():
            rows.append(one(data, k_anonymous(k), f"k = {k}", efforts, arx=arx))
        rows.append(one(data, diverse, "k = 5, p = 3", efforts, arx=ARX_DIVERSE))
        if name in same:
            for effort in efforts:
                less = ", ".join(f"{1 - float(row[effort]) / float(row['arx']):.0%}" for row in rows)
                print(f"{effort}: less than ARX by {less}")
    untuned = {} if options.like_for_like else untuned_tables()
    for name, other in untuned.items():
        header(f"{name}, {other.n:,} records", SEARCHED)
        figures[name] = [
            one(other, k_anonymous(k), f"k = {k}", [e for e in efforts if e != "thorough" or k == THOROUGH])
            for k in ARX
        ]
    OUT.mkdir(exist_ok=True)
    if not options.like_for_like:
        (OUT / "losses.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")


def long() -> None:
    """What two minutes of search give on the table that one of fifteen seconds is judged by."""
    data = adult_table()
    space = data.space("granularity")
    print(
        f"Adult, 7 quasi-identifiers, free intervals of ages, nominal {LONG:.0f} s\n\n{'policy':12}{'loss':>10}{'s':>8}"
    )
    rows = []
    for k in ARX:
        rules = data.rules(k_anonymous(k))
        start = run("mondrian", data, rules, objective="granularity")
        begun = time.process_time()
        found = box_search(data.codes, space, rules, start, effort=LONG, seed=1)
        row = {"policy": f"k = {k}", "loss": measure(data, found).granularity, "seconds": time.process_time() - begun}
        if (rules.deficits(found.labels, found.classes) > 0).any():
            raise SystemExit(f"k = {k}: the search broke the policy")
        rows.append(row)
        print(f"{row['policy']:12}{row['loss']:10.5f}{row['seconds']:8.1f}", flush=True)
    OUT.mkdir(exist_ok=True)
    (OUT / "losses-long.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def untuned_tables() -> dict[str, shoal.Microdata]:
    """Tables that nobody looked at when the search was made."""
    return {"Adult, 8 quasi-identifiers": adult_table(EIGHT, ()), "synthetic hospital": hospital_table()}


def k_anonymous(k: int) -> shoal.Policy:
    """Nothing but k."""
    return shoal.Policy((shoal.KAnonymity(k),))


def one(
    data: shoal.Microdata,
    policy: shoal.Policy,
    name: str,
    efforts: Sequence[Effort],
    *,
    arx: float | None = None,
) -> Row:
    """One policy: start, efforts, the other algorithm, and the bound beside figures of ARX."""
    rules, space = data.rules(policy), data.space("granularity")
    row: Row = {"policy": name} if arx is None else {"policy": name, "arx": arx}
    few = data.take(np.arange(1_000))
    for algorithm in ("k_member", "mondrian"):
        # Once on a few records: compiling is not what is measured.
        run(algorithm, few, few.rules(policy), objective="granularity")
        begun = time.process_time()
        start = run(algorithm, data, rules, objective="granularity")
        row[f"{algorithm}_seconds"] = time.process_time() - begun
        row[algorithm] = measure(data, start).granularity
    for effort in efforts:
        begun = time.process_time()
        found = box_search(data.codes, space, rules, start, effort=effort, seed=1)
        row[f"{effort}_seconds"] = time.process_time() - begun
        row[effort] = measure(data, found).granularity
        if (rules.deficits(found.labels, found.classes) > 0).any():
            raise SystemExit(f"{name}: the search broke the policy")
    if arx is not None:
        begun = time.process_time()
        bound = loss_bound(data.codes, space, rules, effort="thorough")
        row |= {"bound": bound.mean, "bound_seconds": time.process_time() - begun}
        if not check_certificate(data.codes, space, rules, bound):
            raise SystemExit(f"{name}: the bound's certificate does not hold")
    show(row, SEARCHED if arx is None else COLUMNS)
    return row


def header(table: str, columns: Sequence[str]) -> None:
    """Names of the columns; the seconds of each stand behind its loss."""
    shown = "".join(f"{name:>10}" + ("" if name == "arx" else f"{'s':>7}") for name in columns)
    print(f"\n{table}\n\n{'policy':12}{shown}")


def show(row: Mapping[str, object], columns: Sequence[str]) -> None:
    """One line; a dash where there is no figure."""
    line = f"{row['policy']:12}"
    for name in columns:
        loss, seconds = row.get(name), row.get(f"{name}_seconds")
        line += f"{loss:10.4f}" if isinstance(loss, float) else f"{'-':>10}"
        if name != "arx":
            line += f"{seconds:7.2f}" if isinstance(seconds, float) else f"{'-':>7}"
    print(line, flush=True)


if __name__ == "__main__":
    main()
