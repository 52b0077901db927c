"""t-closeness on Adult: peel, then priced relocation, nothing suppressed.

    python -m benchmarks.closeness             t = 0.1, 0.2, 0.3, 0.4 with refine = "thorough"
    python -m benchmarks.closeness --fast      the same with refine = "fast"
    python -m benchmarks.closeness --t 0.2     one limit only
    python -m benchmarks.closeness --room      how large peeled classes are at least, on several tables

All 30,162 complete records, 7 quasi-identifiers (age with the domain 1 to 100, the others with their taxonomies), k = 5 and
t-closeness with equal distances on occupation. Granularity is the mean over all cells. One core; times are processor
seconds without compiling. The policy is checked on the result. `--room` tries peeled classes of at least so many times the
records that a class needs for its distribution, with "fast", each beside what three times as many lose. Writes
benchmarks/out/closeness.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
from benchmarks._tables import adult_table, hospital_table, survey_table

import shoal
from shoal.algorithms import run
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.refine.relocation import relocate

LIMITS = (0.1, 0.2, 0.3, 0.4)
ROOMS = (3.0, 2.0, 1.7, 1.4, 1.0)
K = 5


def main() -> None:
    """One line per t; all figures into a file."""
    parser = argparse.ArgumentParser(description="t-closeness on Adult.")
    parser.add_argument("--fast", action="store_true", help='refine = "fast" instead of "thorough"')
    parser.add_argument("--t", type=float, nargs="*", default=LIMITS, help="limits to try")
    parser.add_argument("--room", action="store_true", help="only the sizes of peeled classes")
    options = parser.parse_args()
    if options.room:
        rooms()
        return
    effort: Literal["fast", "thorough"] = "fast" if options.fast else "thorough"

    data = adult_table()
    started = time.process_time()
    solve(data.take(np.arange(500)), 0.4, "fast")
    print(f"first use: {time.process_time() - started:.1f} s (compiling, or loading what an earlier run compiled)")
    print(f'{data.n} records, {len(data.quasi)} quasi-identifiers, k = {K}, refine = "{effort}"\n')
    print("   t   classes   smallest   largest distance   peeled   refined   peel s   relocation s")
    lines = [solve(data, t, effort) for t in options.t]
    for line in lines:
        print(
            f"{line['t']:4.2f}   {line['classes']:7}   {line['smallest_class']:8}   {line['largest_distance']:16.4f}"
            f"   {line['granularity_peeled']:6.4f}   {line['granularity']:7.4f}"
            f"   {line['seconds_peel']:6.1f}   {line['seconds_relocation']:12.1f}"
        )
    target = Path(__file__).parent / "out" / "closeness.json"
    target.parent.mkdir(exist_ok=True)
    figures = {"machine": platform.processor() or platform.machine(), "k": K, "effort": effort, "lines": lines}
    target.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"\nwritten: {target.relative_to(Path(__file__).parents[1])}")


def solve(data: Microdata, t: float, effort: Literal["fast", "thorough"]) -> dict[str, Any]:
    """Peel, relocate, check, measure."""
    rules = data.rules(shoal.KAnonymity(K) & shoal.TCloseness(t, distance="equal"))
    started = time.process_time()
    peeled = run("peel", data, rules, objective="granularity")
    between = time.process_time()
    found = relocate(data.codes, data.space("granularity"), rules, peeled, effort=effort)
    ended = time.process_time()
    if found.suppressed or rules.deficits(found.labels, found.classes).any():
        raise SystemExit(f"t = {t}: the result does not satisfy the policy")
    stats = rules.stats(found.labels, found.classes)
    return {
        "t": t,
        "classes": found.classes,
        "smallest_class": int(found.sizes.min()),
        "largest_distance": rules.rules[1].strongest(stats.sizes, stats.counts[0]),
        "granularity_peeled": granularity(data, peeled),
        "granularity": granularity(data, found),
        "seconds_peel": between - started,
        "seconds_relocation": ended - between,
    }


def rooms() -> None:
    """Loss after relocation over that with three times the records, table by table, and the mean of all."""
    tables = {
        "Adult": adult_table(),
        "hospital": hospital_table(),
        "survey": survey_table(10_000, 8),
        "Adult, 5,000": adult_table().take(np.arange(5_000)),
        "hospital, 5,000": hospital_table(5_000),
    }
    ratios: dict[float, list[float]] = {room: [] for room in ROOMS[1:]}
    print(f"{'table':18}{'t':>5}" + "".join(f"{room:>9}" for room in ROOMS))
    for name, data in tables.items():
        for t in LIMITS:
            losses = [roomy(data, t, room) for room in ROOMS]
            print(f"{name:18}{t:5.1f}" + "".join(f"{loss:9.4f}" for loss in losses), flush=True)
            for room, loss in zip(ROOMS[1:], losses[1:], strict=True):
                ratios[room].append(loss / losses[0])
    means = [float(np.exp(np.log(found).mean())) for found in ratios.values()]
    print(f"{'mean ratio':23}{1.0:9.4f}" + "".join(f"{mean:9.4f}" for mean in means))


def roomy(data: Microdata, t: float, room: float) -> float:
    """The loss after peeling classes of so many times the records that a distribution needs, and relocation."""
    rules = data.rules(shoal.KAnonymity(K) & shoal.TCloseness(t, distance="equal"))
    least = max(rule.min_size() for rule in rules.rules if not rule.model.superset_closed)
    smallest = max(K, int(np.ceil(room * least)))
    peeled = run("peel", data, rules, objective="granularity", options={"smallest": smallest})
    return granularity(data, relocate(data.codes, data.space("granularity"), rules, peeled, effort="fast"))


def granularity(data: Microdata, partition: Partition) -> float:
    """Mean over all cells of the quasi-identifiers."""
    space = data.space("granularity")
    losses = space.losses(space.states(data.codes, partition.order, partition.starts))
    return float(losses.mean(axis=1) @ partition.sizes / data.n)


if __name__ == "__main__":
    main()
