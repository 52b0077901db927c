"""Truta et al. 2007, §4: EnhancedPK, GreedyPK and adapted Incognito on 10,000 Adult records, k = 20."""

from __future__ import annotations

from dataclasses import dataclass

import shoal
from shoal.algorithms import run as run_algorithm
from shoal.measures.loss import Measures, measure
from shoal.progress import Progress
from shoal.reproduce import Line, judged
from shoal.reproduce.tables import adult_sample

K = 20
QUASI = ("age", "workclass", "marital-status", "race", "sex", "native-country")
SENSITIVE = ("education-num", "education", "occupation")


@dataclass(frozen=True)
class Cell:
    """All algorithms at one p."""

    p: int
    bound: int
    enhanced: Measures
    greedy: Measures
    incognito: Measures
    auto: Measures


def run(quick: bool, progress: Progress) -> list[Line]:
    """AVG and DM by p, and the paper's statements about them."""
    cells = []
    grid = (2, 4, 8, 10) if quick else (2, 4, 6, 8, 10)
    data = adult_sample(3_000 if quick else 10_000, QUASI, SENSITIVE)
    algorithms = {"enhanced_pk": {}, "greedy_pk": {}, "incognito": {}, "auto": {"prefer": "classes"}}
    for p in grid:
        rules = data.rules(shoal.KAnonymity(K) & shoal.PSensitive(p))
        found = {}
        for name, options in algorithms.items():
            with progress.stage(f"p = {p}: {name}", 1 / (len(grid) * len(algorithms))) as part:
                made = run_algorithm(name, data, rules, objective="il", options=options, progress=part)
                found[name] = measure(data, made, K)
        cells.append(
            Cell(p, rules.max_classes, found["enhanced_pk"], found["greedy_pk"], found["incognito"], found["auto"])
        )
    return [line for cell in cells for line in _lines(cell)]


def _lines(cell: Cell) -> list[Line]:
    e, g, i, a = cell.enhanced, cell.greedy, cell.incognito, cell.auto
    shown = f"AVG {e.avg:.3f} / {g.avg:.3f} / {i.avg:.3f}, DM {e.dm:,.0f} / {g.dm:,.0f} / {i.dm:,.0f}"
    printed = "figures 3 and 4, curves only"
    lines = [
        Line(f"p = {cell.p}: Enhanced / Greedy / Incognito", printed, shown, "qualitatively", "no numbers are printed"),
        judged(
            f"p = {cell.p}: classes within the bound of Condition 2",
            f"at most {cell.bound}",
            str(e.classes),
            e.classes <= cell.bound and (cell.p < 10 or e.classes == cell.bound),
            "reached exactly at p = 10" if cell.p == 10 else "",
        ),
        judged(
            f"p = {cell.p}: Incognito is worst on AVG and DM",
            "clearly worst",
            f"AVG {i.avg:.2f}",
            i.avg >= max(e.avg, g.avg) and i.dm >= max(e.dm, g.dm),
        ),
    ]
    if cell.p in (2, 4):
        same = abs(e.avg - g.avg) < 1e-9 and e.dm == g.dm
        lines.append(
            judged(
                f"p = {cell.p}: no difference between the two clusterers", "equal", f"{e.avg:.3f} and {g.avg:.3f}", same
            )
        )
        ratio = a.il / g.il
        lines.append(
            judged(
                f"p = {cell.p}: auto has Enhanced's classes and at most Greedy's IL + 5 %",
                "the authors' wish",
                f"{a.classes} classes, IL {ratio:.3f} of Greedy's",
                a.classes >= e.classes and ratio <= 1.05,
            )
        )
    if cell.p >= 8:
        better = e.avg < g.avg and e.dm < g.dm
        lines.append(
            judged(
                f"p = {cell.p}: Enhanced is better",
                "better from p = 6",
                f"AVG ratio {e.avg / g.avg:.3f}, DM ratio {e.dm / g.dm:.3f}",
                better,
            )
        )
    lines.append(
        Line(
            f"p = {cell.p}: IL of Enhanced over Greedy",
            "not in the paper",
            f"{e.il / g.il:.3f}",
            "qualitatively",
            "what the paper's measures do not show",
        )
    )
    return lines
