"""Sarrafi Aghdam & Sonehara 2013, §§4–5: SpatialDistance against Mondrian, Incognito and Datafly on Adult samples."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import shoal
from shoal import exact
from shoal.algorithms import run as run_algorithm
from shoal.algorithms.spatial_distance import distances
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.progress import Progress
from shoal.reproduce.experiments import Cell, Experiment, Line, Paper, Wish, timed
from shoal.reproduce.figures import Figure, Series
from shoal.reproduce.tables import EIGHT, adult_sample
from shoal.reproduce.verdicts import Below, Claim, Ordered, Prints, Rows, Shown, Smoother, Widens, Within, curve, told

K = (2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50)
SIZES = (500, 1000, 3000, 5000)
SEEDS = 3
ALGORITHMS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "spatial_distance": ("spatial_distance", {}, False),
    "mondrian strict": ("mondrian", {"mode": "strict", "categories": "codes", "split": "median"}, False),
    "mondrian relaxed": ("mondrian", {"mode": "relaxed", "categories": "codes", "split": "median"}, False),
    "incognito": ("incognito", {}, True),
    "datafly": ("datafly", {}, True),
    "k_member": ("k_member", {}, False),
}
"""Algorithm, options, and whether it needs taxonomies; the last is not the paper's."""
OURS = {"algorithm": "spatial_distance"}
RIVALS = tuple({"algorithm": name} for name in list(ALGORITHMS)[1:5])


@lru_cache(maxsize=4)
def sample(n: int, taxonomies: bool, seed: int) -> Microdata:
    """Adult, eight quasi-identifiers, with taxonomies or in alphabetical order; the same records."""
    return adult_sample(n, EIGHT, taxonomies=taxonomies, seed=seed)


def loss_cells(quick: bool) -> list[Cell]:
    """Every n, k and algorithm of the figures, over samples."""
    sizes, grid, seeds = ((500, 1000), (2, 10, 35, 50), 1) if quick else (SIZES, K, SEEDS)
    return [
        {"records": n, "k": k, "algorithm": name, "seed": seed}
        for n in sizes
        for seed in range(seeds)
        for name in ALGORITHMS
        for k in grid
    ]


def loss_run(cell: Cell, progress: Progress) -> Cell:
    """Total NCP by the distinct values of each class, whatever the algorithm; and how outlying the records of large classes are."""
    n, k = int(cell["records"]), int(cell["k"])
    name, options, needs = ALGORITHMS[str(cell["algorithm"])]
    seed = int(cell["seed"])
    data, plain = sample(n, needs, seed), sample(n, False, seed)
    rules = data.rules(Policy((shoal.KAnonymity(k),)))
    found = run_algorithm(name, data, rules, options=options, progress=progress)
    # By what lies in a class, not by the level it is published at: the same measure for all, and the kinder one to full-domain methods.
    total = measure(plain, Partition(found.labels)).ncp_distinct
    large, rest = outlying(plain, found, k)
    return {"ncp": total, "utility": 1 - total, "classes": found.classes, "large": large, "rest": rest}


def outlying(data: Microdata, found: Partition, k: int) -> tuple[float, float]:
    """How far records lie out on average, those of classes larger than k and the others; 0 where there are none.

    A record lies out, in each attribute, by the share of records that have another value (numbers: that lie nearer to the
    median); the mean over the attributes.
    """
    far = np.zeros(data.n)
    for a in range(len(data.domains)):
        far += _far(data.codes[:, a], a < 2) / len(data.domains)
    large = np.append(found.sizes, 0)[found.labels] > k
    inside, outside = (exact.mean(far[some]) if some.any() else 0.0 for some in (large, ~large))
    return inside, outside


def _far(codes: NDArray[np.int32], number: bool) -> NDArray[np.float64]:
    if not number:
        return np.asarray(1 - (np.bincount(codes) / len(codes))[codes])
    away = np.abs(codes - int(np.median(codes)))
    return np.asarray(np.searchsorted(np.sort(away), away, side="left") / len(codes))


def growth_cells(quick: bool) -> list[Cell]:
    """SpatialDistance alone, on ever larger samples, at the smallest and the largest k."""
    sizes = (500, 1_000, 2_000) if quick else (1_250, 2_500, 5_000, 10_000)
    return [{"k": k, "records": n} for k in (K[0], K[-1]) for n in sizes]


def growth_run(cell: Cell, progress: Progress) -> Cell:
    """Processor seconds."""
    data = sample(int(cell["records"]), False, 0)
    rules = data.rules(Policy((shoal.KAnonymity(int(cell["k"])),)))
    return {"seconds": timed(lambda: run_algorithm("spatial_distance", data, rules, progress=progress))[1]}


def example_cells(quick: bool) -> list[Cell]:
    """The pairs of the worked example."""
    return [
        {"from": "Male, Japan", "to": to} for to in ("Female, Japan", "Male, China", "Male, Korea", "Female, China")
    ]


def example_run(cell: Cell, progress: Progress) -> Cell:
    """The distance from the first record of Fig. 1, by the kernel that SpatialDistance runs with."""
    data = example()
    rows = list(zip(data.frame["gender"].to_list(), data.frame["nationality"].to_list(), strict=True))
    first = rows.index(tuple(str(cell["from"]).split(", ")))  # type: ignore[arg-type]
    other = rows.index(tuple(str(cell["to"]).split(", ")))  # type: ignore[arg-type]
    return {"distance": float(distances(data, first, k=3)[other])}


def example() -> Microdata:
    """Fig. 1: twenty people, of whom eleven men are 5, 5 and 1 from Japan, Korea and China. One woman from Japan has to be there."""
    counts = {
        ("Male", "Japan"): 5,
        ("Male", "Korea"): 5,
        ("Male", "China"): 1,
        ("Female", "Japan"): 3,
        ("Female", "China"): 6,
    }
    rows = [pair for pair, count in counts.items() for _ in range(count)]
    frame = pl.DataFrame({"gender": [g for g, _ in rows], "nationality": [n for _, n in rows]})
    return Microdata.from_frame(frame, {"gender": {"role": "quasi"}, "nationality": {"role": "quasi"}})


def _beyond(rows: Rows) -> str:
    if not rows:
        return "not run"
    largest = max(int(row["records"]) for row in rows)
    where = {"records": largest}
    ours, other = (curve(rows, "ncp", "k", {**where, "algorithm": name}) for name in ("spatial_distance", "k_member"))
    return f"NCP at {largest:,} records, SpatialDistance against k_member: " + "; ".join(
        f"k = {k}: {told(ours[k])} and {told(other[k])}" for k in (2, 10, 50) if k in ours and k in other
    )


def _lines() -> list[Line]:
    claim: Claim
    lines = []
    for letter, n in zip("abcd", SIZES, strict=True):
        where = {"records": n}
        lines += [
            Line(
                f"Fig. 4({letter}), Fig. 5({letter})",
                f"n = {n}: SpatialDistance has the lowest NCP, and so the highest utility",
                "much less",
                Below("ncp", "k", OURS, RIVALS, where=where),
                "003-losses",
            ),
            Line(
                f"Fig. 5({letter})",
                f"n = {n}: the utility of SpatialDistance falls with k",
                "decreasing",
                Ordered("utility", "k", {**where, **OURS}, "falls"),
                "003-losses",
            ),
            *(
                Line(
                    f"Fig. 5({letter})",
                    f"n = {n}: the curve of {name} is not monotone",
                    "not very clear",
                    Ordered("utility", "k", {**where, "algorithm": name}, "bends"),
                    "003-losses",
                )
                for name in ("incognito", "datafly")
            ),
            Line(
                f"Fig. 4({letter})",
                f"n = {n}: NCP of k_member by k",
                "not in the paper",
                Shown("ncp", "k", {**where, "algorithm": "k_member"}),
                "003-losses",
            ),
            Line(
                "§5",
                f"n = {n}: records of classes larger than k lie further out than the others",
                "outliers are in groups of more than k",
                Within("rest", "large", {**where, **OURS, "k": 35}, "<"),
                "003-losses",
                "k = 35, which divides no n: where k divides n, all classes have k",
            ),
        ]
    for k in (25, 50):
        claim = Widens("ncp", "records", OURS, RIVALS, {"k": k})
        lines.append(
            Line(
                "Fig. 4", f"the gap to the nearest other grows with n, k = {k}", "more significant", claim, "003-losses"
            )
        )
    for other in RIVALS:
        claim = Widens("ncp", "records", OURS, (other,), {"k": 50})
        lines.append(
            Line(
                "Fig. 4",
                f"the gap to {other['algorithm']} grows with n, k = 50",
                "more significant",
                claim,
                "003-losses",
            )
        )
    claim = Smoother("ncp", "k", "records", OURS)
    note = "our rule for it: less bending"
    lines.append(
        Line(
            "Fig. 4(d)",
            "the curve of SpatialDistance is smoother with more records",
            "smoother",
            claim,
            "003-losses",
            note,
        )
    )
    for k in (K[0], K[-1]):
        claim = Ordered("seconds", "records", {"k": k}, "squares")
        lines.append(Line("§5.1", f"SpatialDistance is O(n²), k = {k}", "O(n²)", claim, "003-growth", "processor time"))
    claim = Below("seconds", "records", {"k": K[0]}, ({"k": K[-1]},))
    note = "by its pseudo-code n/k classes are grown by k − 1 searches each: n² whatever k"
    lines.append(Line("§5.1", "a small k takes less time", "much lower", claim, "003-growth", note))
    for to, printed in (
        ("Female, Japan", "1.0"),
        ("Male, China", "0.5"),
        ("Male, Korea", "0.25"),
        ("Female, China", "1.5"),
    ):
        printing = Prints("distance", printed, {"from": "Male, Japan", "to": to})
        lines.append(
            Line(
                "Fig. 1, Table 3",
                f"distance from (Male, Japan) to ({to})",
                printed,
                printing,
                "003-example",
                "by the compiled loop that the algorithm runs with",
            )
        )
    return lines  # fmt: skip


SERIES = tuple(
    (name, {"algorithm": name})
    for name in ("spatial_distance", "mondrian strict", "mondrian relaxed", "incognito", "datafly")
)
FIGURES = (
    *(
        Figure(f"003-fig-{number}{letter}", f"Fig. {number}({letter})", f"Fig. {number}({letter}): {title} by k, {n:,} records", "003-losses", column, "k",
               tuple(Series(name, {**where, "records": n}) for name, where in SERIES), "k", title)
        for number, column, title in ((4, "ncp", "total NCP"), (5, "utility", "utility, 1 − NCP"))
        for letter, n in zip("abcd", SIZES, strict=True)
    ),
    Figure("003-growth", "§5.1", "§5.1: processor seconds of SpatialDistance by the number of records", "003-growth", "seconds", "records",
           tuple(Series(f"k = {k}", {"k": k}) for k in (K[0], K[-1])), "records", "seconds"),
)  # fmt: skip

PAPER = Paper(
    "003",
    "Sarrafi Aghdam & Sonehara 2013: SpatialDistance against Mondrian, Incognito and Datafly (NCP)",
    (
        Experiment("003-example", example_cells, example_run, "the twenty records of Fig. 1, k = 3"),
        Experiment(
            "003-losses",
            loss_cells,
            loss_run,
            "Adult, complete records, samples of 500 to 5,000, 3 of each (quick: 500 and 1,000, one of each, four k); eight quasi-identifiers (the paper "
            "names none); no taxonomies but for Incognito and Datafly (ARX's example); all measured by the distinct values of a class over "
            "those of the table, numbers by width, Mondrian on codes in alphabetical order, cut at the median",
        ),
        Experiment(
            "003-growth",
            growth_cells,
            growth_run,
            "Adult, samples of 1,250 to 10,000 (quick: 500 to 2,000), seed 0, no taxonomies",
        ),
    ),
    tuple(_lines()),
    FIGURES,
    (
        ("Table 1", "an example of a linking attack; tested in the suite"),
        ("Table 2", "the same table after masking; tested in the suite"),
        (
            "Fig. 2",
            "an example of contingency tables whose two parts contradict each other; the rows as printed are tested in the suite",
        ),
        ("Fig. 3", "pseudo-code"),
    ),
    (
        Wish(
            "more utility without taxonomies (the paper names no wish)", "algorithms.md#k_member", _beyond, "003-losses"
        ),
    ),
    "Mohammad Rasool Sarrafi Aghdam, Noboru Sonehara: On Enhancing Data Utility in K-Anonymization for Data without Hierarchical Taxonomies. 2013",
)
