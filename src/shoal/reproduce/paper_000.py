"""Truta et al. 2007, §4: EnhancedPK, GreedyPK and adapted Incognito on 10,000 Adult records, k = 20."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

import shoal
from shoal.algorithms import run as run_algorithm
from shoal.measures.loss import measure
from shoal.policy import Policy
from shoal.progress import Progress
from shoal.reproduce.experiments import Cell, Experiment, Line, Paper, Wish, timed
from shoal.reproduce.figures import Figure, Series, average
from shoal.reproduce.tables import adult_sample
from shoal.reproduce.verdicts import Below, Claim, Ordered, Prints, Rows, Same, Shown, Within, curve, told

K = 20
QUASI = ("age", "workclass", "marital-status", "race", "sex", "native-country")
SENSITIVE = ("education-num", "education", "occupation")
P = (2, 4, 6, 8, 10)
ENHANCED, GREEDY, INCOGNITO = ({"algorithm": name} for name in ("enhanced_pk", "greedy_pk", "incognito"))

MODELS = {
    "p-sensitive, p = 4": shoal.PSensitive(4),
    "distinct l-diversity, l = 4": shoal.LDiversity(4, variant="distinct"),
    "entropy l-diversity, l = 4": shoal.LDiversity(4, variant="entropy"),
    "(α, k), α = 0.5": shoal.AlphaK(0.5),
    "t-closeness, t = 0.3": shoal.TCloseness(0.3),
}
RIVALS = ("enhanced_pk", "greedy_pk", "mondrian", "top_down", "incognito")
"""Both clusterings, what is commonly used for these models, local recoding from above, and global recoding."""


TABLE_1: dict[str, list[Any]] = {
    "Age": [20] * 3 + [30] * 4,
    "ZipCode": ["41099"] * 7,
    "Diagnosis": ["AIDS"] * 3 + ["Diabetes"] * 2 + ["Tuberculosis"] * 2,
    "Income": [60_000, 60_000, 40_000, 50_000, 40_000, 50_000, 40_000],
}
# Fig. 1 has no quasi-identifiers: one that tells nobody apart stands for them.
FIG_1: dict[str, list[Any]] = {
    "Age": [20] * 4,
    "A": ["1", "1", "2", "2"],
    "B": ["a", "b", "a", "b"],
    "C": ["α", "β", "β", "α"],
}


def example_cells(quick: bool) -> list[Cell]:
    """The worked examples: Table 1 as printed and with one other diagnosis, and Fig. 1."""
    return [{"example": name} for name in ("Table 1", "Table 1, one other diagnosis", "Fig. 1")]


def example_run(cell: Cell, progress: Progress) -> Cell:
    """k and p of the table as it is; the bound of Condition 2 for p = 2, and the most classes that any partition has."""
    name = str(cell["example"])
    columns = dict(FIG_1 if name == "Fig. 1" else TABLE_1)
    if "other" in name:
        columns["Diagnosis"] = ["Flu", *TABLE_1["Diagnosis"][1:]]
    quasi = [one for one in ("Age", "ZipCode") if one in columns]
    data = shoal.Microdata.from_frame(
        pl.DataFrame(columns), {one: {"role": "quasi" if one in quasi else "sensitive"} for one in columns}
    )
    keys = [tuple(columns[one][i] for one in quasi) for i in range(data.n)]
    labels = np.array([sorted(set(keys)).index(key) for key in keys], dtype=np.int32)
    return {
        "k": int(np.bincount(labels).min()),
        "p": max(p for p in range(1, data.n + 1) if _good(data, labels, p)),
        "bound": data.rules(Policy((shoal.PSensitive(2),))).max_classes,
        "most": max((int(one.max()) + 1 for one in partitions(data.n) if _good(data, one, 2)), default=0),
    }


def _good(data: shoal.Microdata, labels: np.ndarray[tuple[int], np.dtype[np.int32]], p: int) -> bool:
    rules = data.rules(Policy((shoal.PSensitive(p),)))
    return not rules.deficits(labels, int(labels.max()) + 1).any()


def partitions(n: int) -> Iterator[np.ndarray[tuple[int], np.dtype[np.int32]]]:
    """Every way to put n records into classes."""
    found = [[0]]
    for _ in range(n - 1):
        found = [[*one, label] for one in found for label in range(max(one) + 2)]
    return (np.array(one, dtype=np.int32) for one in found)


@lru_cache(maxsize=4)
def sample(n: int, seed: int, sensitive: tuple[str, ...] = SENSITIVE) -> shoal.Microdata:
    """A random sample of Adult with the paper's attributes."""
    return adult_sample(n, QUASI, sensitive, seed=seed)


def clustering_cells(quick: bool) -> list[Cell]:
    """Every p of the figures, the three algorithms and the combination that the authors wish for, over samples."""
    n, seeds = (2_000, 1) if quick else (10_000, 5)
    names = ("enhanced_pk", "greedy_pk", "incognito", "auto")
    return [
        {"algorithm": name, "p": p, "k": K, "records": n, "seed": seed}
        for seed in range(seeds)
        for p in P
        for name in names
    ]


def clustering_run(cell: Cell, progress: Progress) -> Cell:
    """AVG, DM, IL and processor seconds of one run."""
    data = sample(int(cell["records"]), int(cell["seed"]))
    rules = data.rules(shoal.KAnonymity(K) & shoal.PSensitive(int(cell["p"])))
    name = str(cell["algorithm"])
    options = {"prefer": "classes"} if name == "auto" else {}
    found, seconds = timed(lambda: run_algorithm(name, data, rules, objective="il", options=options, progress=progress))
    losses = measure(data, found, K)
    return {
        "avg": losses.avg,
        "dm": losses.dm,
        "il": losses.il,
        "classes": losses.classes,
        "bound": rules.max_classes,
        "best": data.n // K,
        "best_dm": least_dm(data.n, K),
        "seconds": seconds,
    }


def least_dm(n: int, k: int) -> int:
    """DM of n records in as many classes of k or more as there can be, as even as they can be."""
    size, over = divmod(n, n // k)
    return over * (size + 1) ** 2 + (n // k - over) * size**2


def growth_cells(quick: bool) -> list[Cell]:
    """Both clusterings on ever larger samples, at a p where they are easy and one where they are hard."""
    sizes = (1_000, 2_000, 4_000) if quick else (2_500, 5_000, 10_000, 20_000)
    return [
        {"algorithm": name, "p": p, "records": n}
        for name in ("enhanced_pk", "greedy_pk")
        for p in (2, 8)
        for n in sizes
    ]


def growth_run(cell: Cell, progress: Progress) -> Cell:
    """Processor seconds."""
    data = sample(int(cell["records"]), 0)
    rules = data.rules(shoal.KAnonymity(K) & shoal.PSensitive(int(cell["p"])))
    name = str(cell["algorithm"])
    return {"seconds": timed(lambda: run_algorithm(name, data, rules, objective="il", progress=progress))[1]}


def model_cells(quick: bool) -> list[Cell]:
    """Other models, each by both clusterings and by what others use."""
    n = 1_000 if quick else 5_000
    return [{"model": model, "algorithm": name, "k": K, "records": n} for model in MODELS for name in RIVALS]


def model_run(cell: Cell, progress: Progress) -> Cell:
    """AVG, DM and IL of one algorithm under one model, for the occupation alone."""
    data = sample(int(cell["records"]), 0, ("occupation",))
    policy: Policy = shoal.KAnonymity(K) & MODELS[str(cell["model"])]
    found = run_algorithm(str(cell["algorithm"]), data, data.rules(policy), objective="il", progress=progress)
    losses = measure(data, found, K)
    return {"avg": losses.avg, "dm": losses.dm, "nil": losses.nil, "classes": losses.classes}


def _combined(rows: Rows) -> str:
    if not rows:
        return "not run"
    classes = all(
        curve(rows, "classes", "p", {"algorithm": "auto"}).get(p, 0) >= value
        for p, value in curve(rows, "classes", "p", ENHANCED).items()
    )
    il = [average(rows, "il", {"algorithm": "auto", "p": p}) / average(rows, "il", {**GREEDY, "p": p}) for p in (2, 4)]
    many = "as many classes as Enhanced at every p" if classes else "fewer classes than Enhanced at some p"
    return f"{many}; IL at p = 2, 4: {', '.join(told(one) for one in il)} of Greedy's"


def _growth(rows: Rows) -> str:
    if not rows:
        return "not run"
    parts = []
    for name, where in (("Enhanced", ENHANCED), ("Greedy", GREEDY)):
        for p in (2, 8):
            found = list(curve(rows, "seconds", "records", {**where, "p": p}).values())
            parts.append(f"{name}, p = {p}: {told(found[-1] / found[-2])} times")
    return "processor time when the records double: " + "; ".join(parts)


def _models(rows: Rows) -> str:
    if not rows:
        return "not run"
    least = {
        model: min(curve(rows, "nil", "algorithm", {"model": model}).items(), key=lambda pair: pair[1])
        for model in MODELS
    }
    return "least IL: " + "; ".join(f"{model}: {name} ({told(value)})" for model, (name, value) in least.items())


def _enhanced(rows: Rows) -> str:
    if not rows:
        return "not run"
    parts = []
    for model in MODELS:
        avg, loss = (average(rows, column, {**ENHANCED, "model": model}) for column in ("avg", "nil"))
        parts.append(f"{model}: AVG {told(avg)}, IL {told(loss)}")
    return "every class is good; " + "; ".join(parts)


def _line(about: str, what: str, printed: str, claim: Claim, note: str = "") -> Line:
    return Line(about, what, printed, claim, "000-clusterings", note)


LINES = (
    _line("Fig. 3", "AVG: Enhanced lies below Incognito", "clearly outperform", Below("avg", "p", ENHANCED, (INCOGNITO,))),
    _line("Fig. 3", "AVG: Greedy lies below Incognito", "clearly outperform", Below("avg", "p", GREEDY, (INCOGNITO,))),
    _line("Fig. 3", "DM: Enhanced lies below Incognito", "clearly outperform", Below("dm", "p", ENHANCED, (INCOGNITO,))),
    _line("Fig. 3", "DM: Greedy lies below Incognito", "clearly outperform", Below("dm", "p", GREEDY, (INCOGNITO,))),
    *(
        _line("Fig. 4 left", f"{name.upper()}: no improvement at p = {p}", "no improvement", Same(name, "p", ENHANCED, GREEDY, {"p": p}))
        for name in ("avg", "dm")
        for p in (2, 4)
    ),
    *(
        _line("Fig. 4 left", f"{who} has the optimal {what} at p = {p}", "the optimal solution", Within(column, best, {**where, "p": p}, "="))
        for who, where in (("Enhanced", ENHANCED), ("Greedy", GREEDY))
        for what, column, best in (("number of classes", "classes", "best"), ("DM", "dm", "best_dm"))
        for p in (2, 4)
    ),
    *(
        _line("Fig. 4 left", f"{name.upper()}: Enhanced is better at p = {p}", "performs better", Below(name, "p", ENHANCED, (GREEDY,), where={"p": p}))
        for name in ("avg", "dm")
        for p in (6, 8, 10)
    ),
    *(
        Line(where, what, printed, Prints(column, printed, {"example": example}), "000-examples")
        for where, what, printed, column, example in (
            ("Table 1", "the largest k", "3", "k", "Table 1"),
            ("Table 1", "the largest p", "1", "p", "Table 1"),
            ("Table 1", "the largest p, if one of the first class had another diagnosis", "2", "p", "Table 1, one other diagnosis"),
            ("Fig. 1", "maxClusters for p = 2", "2", "bound", "Fig. 1"),
            ("Fig. 1", "the most 2-sensitive classes that any partition has", "1", "most", "Fig. 1"),
        )
    ),
    *(
        _line("§4", f"IL: {who} lies below Incognito, which recodes globally", "weaker results", Below("il", "p", where, (INCOGNITO,)))
        for who, where in (("Enhanced", ENHANCED), ("Greedy", GREEDY))
    ),
    *(
        Line("§4", f"{name}: {who} lies below Incognito under every model", "weaker results", Below(column, "model", where, (INCOGNITO,)), "000-models",
             "the paper expects so of any cost measure and any model, and tried none")
        for name, column in (("AVG", "avg"), ("DM", "dm"), ("IL", "nil"))
        for who, where in (("Enhanced", ENHANCED), ("Greedy", GREEDY))
    ),
    _line("§2, Condition 2", "no more classes than the bound", "a superior limit", Within("classes", "bound", ENHANCED)),
    _line("Fig. 4 right", "Incognito is fastest", "very fast", Below("seconds", "p", INCOGNITO, (ENHANCED, GREEDY)), "processor time; ours are compiled, theirs were Java"),
    *(
        _line("Fig. 4 right", f"Greedy is faster than Enhanced at p = {p}", "faster", Below("seconds", "p", GREEDY, (ENHANCED,), where={"p": p}))
        for p in (2, 4)
    ),
    *(
        _line("Fig. 4 right", f"Enhanced is faster than Greedy at p = {p}", "a slight advantage", Below("seconds", "p", ENHANCED, (GREEDY,), where={"p": p}))
        for p in (6, 8, 10)
    ),
    *(
        Line("§3.2", f"Enhanced is O(n²), p = {p}", "O(n²)", Ordered("seconds", "records", {**ENHANCED, "p": p}, "squares"), "000-growth", "processor time")
        for p in (2, 8)
    ),
    *(
        _line("not in the paper", f"IL by p, {name}", "", Shown("il", "p", {"algorithm": name}, "what AVG and DM do not show"))
        for name in ("enhanced_pk", "greedy_pk", "incognito")
    ),
)  # fmt: skip

THREE = tuple(
    Series(name, where) for name, where in (("Enhanced", ENHANCED), ("Greedy", GREEDY), ("Incognito", INCOGNITO))
)
FIGURES = (
    Figure("000-fig-3-avg", "Fig. 3", "Fig. 3, left: AVG by p (k = 20)", "000-clusterings", "avg", "p", THREE, "p", "AVG"),
    Figure("000-fig-3-dm", "Fig. 3", "Fig. 3, right: DM by p (k = 20)", "000-clusterings", "dm", "p", THREE, "p", "DM"),
    Figure("000-fig-4-left", "Fig. 4 left", "Fig. 4, left: AVG and DM of Enhanced over those of Greedy (k = 20)", "000-clusterings", "avg", "p",
           (Series("AVG", ENHANCED), Series("DM", ENHANCED, "dm")), "p", "ratio", over=GREEDY),
    Figure("000-fig-4-right", "Fig. 4 right", "Fig. 4, right: processor time over that of Greedy (k = 20)", "000-clusterings", "seconds", "p",
           THREE, "p", "ratio of times", over=GREEDY),
    Figure("000-growth", "§3.2", "Processor seconds by the number of records", "000-growth", "seconds", "records",
           tuple(Series(f"{name}, p = {p}", {**where, "p": p}) for name, where in (("Enhanced", ENHANCED), ("Greedy", GREEDY)) for p in (2, 8)), "records", "seconds"),
    Figure("000-models", "§4, future work", "Other models: IL by algorithm (0 to 1)", "000-models", "nil", "model",
           tuple(Series(name, {"algorithm": name}) for name in RIVALS), "model", "IL, normalized"),
)  # fmt: skip

PAPER = Paper(
    "000",
    "Truta et al. 2007: EnhancedPKClustering against GreedyPKClustering and Incognito (AVG, DM, times)",
    (
        Experiment("000-examples", example_cells, example_run, "the records of Table 1 and of Fig. 1 as printed; every partition of them is tried"),
        Experiment(
            "000-clusterings",
            clustering_cells,
            clustering_run,
            "Adult, complete records, random samples of 10,000 with 5 seeds (quick: 2,000, one); k = 20; quasi-identifiers age, workclass, "
            "marital-status, race, sex, native-country; sensitive education-num, education, occupation; taxonomies of ARX's example; "
            "Incognito's minimal node with the least AVG",
        ),
        Experiment("000-growth", growth_cells, growth_run, "the same samples, seed 0, 2,500 to 20,000 records (quick: 1,000 to 4,000)"),
        Experiment("000-models", model_cells, model_run, "Adult, 5,000 records (quick: 1,000), seed 0, k = 20, occupation alone is sensitive"),
    ),
    LINES,
    FIGURES,
    (
        ("Fig. 2", "a drawing of a hierarchy of diseases"),
    ),
    (
        Wish("a combination of Greedy (small p) and Enhanced (large p)", "algorithms.md#auto", _combined, "000-clusterings"),
        Wish("the complexity of the clusterings in full", "algorithms.md#enhanced_pk", _growth, "000-growth"),
        Wish("comparison with algorithms for l-diversity, (α, k)-anonymity and t-closeness", "algorithms.md#any-policy", _models, "000-models"),
        Wish("EnhancedPK for (α, k)-anonymity, l-diversity and t-closeness", "algorithms.md#any-policy", _enhanced, "000-models"),
    ),
    "Traian Marius Truta, Alina Campan, Paul Meyer: Generating Microdata with P-Sensitive K-Anonymity Property. 2007",
)  # fmt: skip
