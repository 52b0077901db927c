"""Time that holds: what a search may take by its own word, and the processor time that it takes, neighbours and tables included.

Made-up surveys (`shoal.datasets.survey`) with 5 to 40 quasi-identifiers and 3,000 to 1,000,000 records, the hospital, Adult and
all its columns; k = 5 (25 where it says so), "fast", from the classes that auto starts with. `beside` is what was taken over
the nominal time; the goal is at most 1.5. On the wide tables the losses stand beside those of the best algorithm without a
search: "fast" shall never lose more, "thorough" at least 6 % less. NCP, processor seconds. `--long` adds the million records, and
300,000 Adult-like ones searched as "fast" does and as if time had grown in proportion: at most 30 µs a record, and at most 3 %
more loss. `--large` prints these alone. Writes benchmarks/out/budget.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks._tables import adult_table, hospital_table, survey_table
from benchmarks.end_to_end import adult_like

import shoal
from shoal.algorithms import run
from shoal.datasets import adult
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.refine import effort
from shoal.refine.box_search import box_search
from shoal.refine.effort import Effort, nominal
from shoal.reproduce.tables import SEVEN, adult_schema

OUT = Path(__file__).parent / "out"
GRID = ((3_000, 5), (3_000, 40), (10_000, 12), (30_000, 5), (30_000, 12), (100_000, 8), (100_000, 24))
LONG = ((1_000_000, 5),)
UNREFINED = ("k_member", "mondrian")
# Whatever Adult says of a person, but the weight of the record and the income.
MORE = ("occupation", "relationship", "education-num", "capital-gain", "capital-loss", "hours-per-week")


def main() -> None:
    """The grid, then the wide tables with all efforts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="a million records as well")
    parser.add_argument("--large", action="store_true", help="only the 300,000 records")
    options = parser.parse_args()
    if options.large:
        large()
        return
    searched(survey_table(1_200, 12), 5, "fast")  # compiles, or loads what is compiled
    searched(survey_table(9_000, 12), 5, "fast")
    print(f"{'table':28} {'k':>3} {'effort':9} {'start':>7} {'loss':>7} {'nominal':>8} {'taken':>7} {'beside':>7}")
    grid = [shown(name, data, k, "fast") for name, data, k in tables(GRID)]
    compared = []
    for name, data in wide():
        rules = data.rules(shoal.Policy((shoal.KAnonymity(5),)))
        losses = {other: measure(data, run(other, data, rules)).ncp for other in UNREFINED}
        print(f"{name:28} without a search: {'  '.join(f'{other} {loss:.4f}' for other, loss in losses.items())}")
        found = {effort: shown(name, data, 5, effort) for effort in ("fast", "thorough")}
        least = min(losses.values())
        less = {effort: 1 - row["loss"] / least for effort, row in found.items()}
        print(
            f"{'':28} less than the best of them: fast {less['fast']:.1%}, thorough {less['thorough']:.1%}", flush=True
        )
        compared.append({"table": name, "unrefined": losses, "less": less, "searches": found})
    if options.long:
        large()
        for n, questions in LONG:
            grid.append(shown(f"survey {n:,} × {questions}", survey_table(n, questions), 5, "fast"))
    OUT.mkdir(exist_ok=True)
    (OUT / "budget.json").write_text(json.dumps({"grid": grid, "wide": compared}, indent=1), encoding="utf-8")


def tables(sizes: tuple[tuple[int, int], ...]) -> Iterator[tuple[str, Microdata, int]]:
    """The grid: tables, and the k that they are searched with."""
    for n, questions in sizes:
        yield f"survey {n:,} × {questions}", survey_table(n, questions), 5
    yield "survey 30,000 × 12", survey_table(30_000, 12), 25
    yield "hospital 30,000 × 5", hospital_table(), 5
    yield "Adult 30,162 × 7", adult_table(), 5
    yield "Adult 30,162 × 7", adult_table(), 100


def wide() -> Iterator[tuple[str, Microdata]]:
    """The tables on which width is what costs."""
    yield "survey 30,000 × 24", survey_table(30_000, 24)
    yield "survey 10,000 × 40", survey_table(10_000, 40)
    schema = adult_schema((*SEVEN, "occupation")) | {name: {"role": "quasi"} for name in MORE[1:]}
    schema["age"]["domain"] = [1, 100]
    data = Microdata.from_frame(adult().select(list(schema)), schema)
    yield f"Adult {data.n:,} × {data.codes.shape[1]}", data


def searched(data: Microdata, k: int, effort: Effort) -> dict[str, Any]:
    """One search from where auto starts."""
    rules = data.rules(shoal.Policy((shoal.KAnonymity(k),)))
    start = run("auto", data, rules, options={"refined": True})
    begun = time.process_time()
    found = box_search(data.codes, data.space("ncp"), rules, start, effort=effort, seed=1)
    taken, said = time.process_time() - begun, nominal(effort, data.n, data.codes.shape[1])
    row = {"records": data.n, "quasi": data.codes.shape[1], "k": k, "effort": effort}
    losses = {"start": measure(data, start).ncp, "loss": measure(data, found).ncp}
    return row | losses | {"nominal": said, "taken": taken, "beside": taken / said}


def large(n: int = 300_000) -> dict[str, float]:
    """Adult-like records: what a record takes and what is lost, as "fast" is and as it would be in proportion."""
    schema = adult_schema(SEVEN)
    schema["age"]["domain"] = [1, 100]
    data = Microdata.from_frame(adult_like(n).select(SEVEN), schema)
    rules = data.rules(shoal.Policy((shoal.KAnonymity(5),)))
    few = data.take(np.arange(3_000))
    searched(few, 5, "fast")  # compiles, or loads what is compiled
    start = run("mondrian", data, rules)
    found: dict[str, float] = {}
    share = effort.HURRIED
    for way, patience in (("in proportion", 1.0), ("fast", share)):
        effort.HURRIED = patience
        begun = time.process_time()
        result = box_search(data.codes, data.space("ncp"), rules, start, effort="fast", seed=1)
        found[way] = 1e6 * (time.process_time() - begun) / n
        found[f"{way}: loss"] = measure(data, result).ncp
        print(
            f"Adult-like {n:,} × 7, {way}: {found[way]:.1f} µs a record, loss {found[f'{way}: loss']:.5f}", flush=True
        )
    print(f"fast loses {found['fast: loss'] / found['in proportion: loss'] - 1:.1%} more", flush=True)
    return found


def shown(name: str, data: Microdata, k: int, effort: Effort) -> dict[str, Any]:
    """One line."""
    row = searched(data, k, effort)
    print(
        f"{name:28} {k:3} {effort:9} {row['start']:7.4f} {row['loss']:7.4f} {row['nominal']:8.2f} {row['taken']:7.2f} "
        f"{row['beside']:7.2f}",
        flush=True,
    )
    return {"table": name} | row


if __name__ == "__main__":
    main()
