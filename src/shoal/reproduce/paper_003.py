"""Sarrafi Aghdam & Sonehara 2013, §5: SpatialDistance against Mondrian, Incognito and Datafly on Adult samples."""

from __future__ import annotations

import numpy as np

import shoal
from shoal.algorithms import run as run_algorithm
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.progress import Progress
from shoal.reproduce import Line, judged
from shoal.reproduce.tables import EIGHT, adult_sample

MONDRIAN = {"categories": "codes", "split": "median"}


def run(quick: bool, progress: Progress) -> list[Line]:
    """NCP by distinct values in every cell of n × k, and the paper's claims about the curves."""
    sizes = (500, 1000) if quick else (500, 1000, 3000, 5000)
    grid = (2, 10, 50) if quick else (2, 5, 10, 25, 50)
    lines: list[Line] = []
    for n in sizes:
        data = adult_sample(n, EIGHT, taxonomies=False)
        utility = []
        for k in grid:
            with progress.stage(f"n = {n}, k = {k}", 0.8 * n / sum(sizes) / len(grid)) as part:
                cell = {name: ncp(data, k, name, ALGORITHMS[name], part) for name in ALGORITHMS}
            ours = cell["spatial_distance"]
            below = ours < min(cell["mondrian strict"], cell["mondrian relaxed"])
            shown = ", ".join(f"{name} {value:.4f}" for name, value in cell.items())
            lines.append(
                judged(f"n = {n}, k = {k}: SpatialDistance has the lowest NCP", "figures only: lowest", shown, below)
            )
            utility.append(1 - ours)
        falling = bool((np.diff(utility) < 0).all())
        lines.append(
            judged(f"n = {n}: utility falls with k", "falls", " > ".join(f"{u:.3f}" for u in utility), falling)
        )
    with progress.stage("full-domain algorithms") as part:
        lines.append(_full_domain(500 if quick else 1000, grid, part))
    return lines


ALGORITHMS = {
    "spatial_distance": {},
    "mondrian strict": {"mode": "strict", **MONDRIAN},
    "mondrian relaxed": {"mode": "relaxed", **MONDRIAN},
}


def ncp(data: Microdata, k: int, name: str, options: dict[str, str], progress: Progress) -> float:
    """Total NCP as the paper prints it."""
    rules = data.rules(Policy((shoal.KAnonymity(k),)))
    with progress.stage(weight=1 / len(ALGORITHMS)) as part:
        return measure(data, run_algorithm(name.split()[0], data, rules, options=options, progress=part)).ncp_distinct


def _full_domain(n: int, grid: tuple[int, ...], progress: Progress) -> Line:
    data = adult_sample(n, EIGHT)
    worst = []
    for k in grid:
        rules = data.rules(Policy((shoal.KAnonymity(k),)))
        found = {}
        for name in ("incognito", "datafly", "spatial_distance"):
            with progress.stage(weight=1 / (3 * len(grid))) as part:
                found[name] = measure(data, run_algorithm(name, data, rules, progress=part)).ncp
        worst.append((min(found["incognito"], found["datafly"]), found["spatial_distance"]))
    shown = ", ".join(f"{full:.3f} against {ours:.3f}" for full, ours in worst)
    return judged(
        f"n = {n}: Incognito and Datafly lose more than SpatialDistance",
        "figures only: more",
        shown,
        all(f > o for f, o in worst),
        "NCP by leaves, Adult taxonomies",
    )
