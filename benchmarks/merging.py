"""Merging runs beside one long run: on which tables it pays.

Thorough box search of Adult and of made-up surveys and a hospital, once as several runs whose classes are merged and once as one
run of the same budget, two seeds each; the choice between them (`refine.merging.worth_merging`) is set aside. `codes` are those
of the distinct tuples a record, by which it chooses; `open` is how many numbers of the fractional answer of the last program are
not whole. NCP; `beside` is the loss by merging over that of one run. Writes benchmarks/out/merging.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks._tables import adult_table, hospital_table, survey_table

import shoal
from shoal import exact
from shoal.algorithms import run
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.refine import box_search, merging

OUT = Path(__file__).parent / "out"
SEEDS = (1, 2)


def main() -> None:
    """One line a table."""
    print(f"{'table':24}{'k':>4}{'codes':>8}{'one run':>10}{'merged':>10}{'beside':>8}{'open':>8}")
    lines = [line(name, data, k) for name, data, k in tables()]
    OUT.mkdir(exist_ok=True)
    (OUT / "merging.json").write_text(json.dumps(lines, indent=1), encoding="utf-8")


def tables() -> Iterator[tuple[str, Microdata, int]]:
    """Tables whose rows repeat more and less."""
    for k in (5, 10, 25):
        yield "Adult 30,162 × 7", adult_table(), k
    yield "hospital 10,000 × 5", hospital_table(10_000), 5
    for columns in (5, 6, 8, 12):
        yield f"survey 10,000 × {columns}", survey_table(10_000, columns), 5


def shown(left: int | None) -> str:
    """A number, or that it took too long to know."""
    return "?" if left is None else f"{left:,}"


def line(name: str, data: Microdata, k: int) -> dict[str, Any]:
    """Both ways on one table."""
    rules = data.rules(shoal.Policy((shoal.KAnonymity(k),)))
    start = run("mondrian", data, rules)
    left: list[int | None] = []
    plain = merging._Program.left_open

    def noted(program: merging._Program) -> int | None:
        left.append(plain(program))
        return left[-1]

    merging._Program.left_open = noted  # type: ignore[method-assign]
    losses = {}
    for merged in (False, True):
        box_search.worth_merging = lambda whole, budget, merged=merged: merged  # type: ignore[misc]
        found = [
            box_search.box_search(data.codes, data.space("ncp"), rules, start, effort="thorough", seed=seed)
            for seed in SEEDS
        ]
        losses[merged] = exact.mean(np.array([measure(data, one).ncp for one in found]))
    merging._Program.left_open = plain  # type: ignore[method-assign]
    codes = len(np.unique(data.codes, axis=0)) * data.codes.shape[1] / data.n
    beside, open_left = losses[True] / losses[False], left[-1] if left else None
    print(
        f"{name:24}{k:4}{codes:8.1f}{losses[False]:10.5f}{losses[True]:10.5f}{beside:8.3f}{shown(open_left):>8}",
        flush=True,
    )
    return {"table": name, "k": k, "codes": codes, "one": losses[False], "merged": losses[True], "open": open_left}


if __name__ == "__main__":
    main()
