"""Rahimi et al. 2015, §§V–VI: five models on Adult with a random health condition, and both readings of the third stage."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

import shoal
from shoal.algorithms import run as run_algorithm
from shoal.algorithms.levels import full_domain
from shoal.algorithms.three_layer import Preparation, prepare
from shoal.measures.loss import measure
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.progress import Progress
from shoal.reproduce.experiments import Cell, Experiment, Line, Paper, Wish, remembered, timed
from shoal.reproduce.figures import Figure, Series, average
from shoal.reproduce.tables import TABLE_2, adult_with_diseases
from shoal.reproduce.verdicts import Below, Ordered, Rows, Shown, Spread, Value, Where, Within, told

READINGS = ("class", "inside")
MODELS = ("1: p-sensitive", "2: p+-sensitive", "3: (p, α)-sensitive", "4: (k, p, t)", "5: (k, p+, t)")
WITH_T = "2 with t"
"""p+-sensitivity and t by top-down recoding: what the other models would cost with the promise of the three layers."""
K = (2, 4, 10, 20, 50, 100)
QUICK = 1_000
SEEDS, MORE_SEEDS = 3, 5
"""Of the sweeps, and of what takes seconds: each draws the health condition and begins x-means anew."""


def asked(model: str, k: int, p: int, alpha: float, t: float) -> Policy:
    """The policy of a model."""
    size = shoal.KAnonymity(k)
    if model == MODELS[0]:
        return Policy((size, shoal.PSensitive(p)))
    if model == MODELS[1]:
        return Policy((size, shoal.PPlusSensitive(p)))
    if model == MODELS[2]:
        return Policy((size, shoal.PAlphaSensitive(p, alpha)))
    diverse = shoal.PSensitive(p) if model == MODELS[3] else shoal.PPlusSensitive(p)
    return Policy((size, diverse, shoal.TCloseness(t)))


def layered(model: str) -> bool:
    """Whether the three layers make it."""
    return model in MODELS[3:]


@lru_cache(maxsize=2)
def sample(n: int, attributes: int, seed: int) -> shoal.Microdata:
    """So many complete records of both parts (0: all), with the first quasi-identifiers of Table 2."""
    return adult_with_diseases(seed, quasi=TABLE_2[:attributes], n=n or None)


@remembered(2)
def prepared(n: int, attributes: int, k: int, seed: int, *, progress: Progress) -> tuple[Preparation, float]:
    """Layers 1 and 2, and their processor seconds."""
    data = sample(n, attributes, seed)
    prepare(data.take(np.arange(min(500, data.n))), k=k)  # what is loaded once is not timed
    return timed(lambda: prepare(data, k=k, seed=seed, progress=progress), again=False)


def sweep_cells(varied: str, quick: bool) -> list[Cell]:
    """All models over the number of quasi-identifiers, or over k; the three layers in both readings."""
    n = QUICK if quick else 0
    by_k = (2, 10, 50) if quick else K
    # k, p, α, t, quasi-identifiers, the size that the preparation is made for and how many runs share it.
    grid = [(4, 4, 4.0, 0.5, m, 4, 1) for m in ((2, 7) if quick else range(2, 8))]
    if varied == "k":
        grid = [(k, 2, 1.0, 0.2, 7, max(by_k), len(by_k)) for k in by_k]
    names = ("k", "p", "alpha", "t", "attributes", "prepared_for", "shared_by")
    return [
        {"model": model, "reading": reading, **dict(zip(names, cell, strict=True)), "records": n, "seed": seed}
        for seed in range(1 if quick else SEEDS)
        for cell in grid
        for model in (MODELS if seed else (*MODELS, WITH_T))
        for reading in (READINGS if layered(model) else ("none",))
    ]


def sweep_run(cell: Cell, progress: Progress) -> Cell:
    """Distortion and processor seconds; `shared` counts the preparation once for all the runs that share it."""
    model, m, n, seed = str(cell["model"]), int(cell["attributes"]), int(cell["records"]), int(cell["seed"])
    data = sample(n, m, seed)
    rules = data.rules(asked(model, int(cell["k"]), int(cell["p"]), float(cell["alpha"]), float(cell["t"])))
    options: dict[str, Any] = {}
    preparing = 0.0
    if layered(model):
        ready, preparing = prepared(n, m, int(cell["prepared_for"]), seed, progress=progress)
        options = {"preparation": ready, "reading": cell["reading"], "outliers": "suppress"}
    name = "three_layer" if layered(model) else "top_down"
    work = partial(run_algorithm, name, data, rules, options=options, progress=progress)
    # What a preparation takes is not done twice, and hides what is loaded once.
    found, seconds = timed(work, again=not layered(model))
    return {
        "distortion": measure(data, found).distortion,
        "classes": found.classes,
        "suppressed": found.suppressed,
        "vulnerable": similar(data, found),
        "preparing": preparing,
        "seconds": preparing + seconds,
        "shared": preparing / int(cell["shared_by"]) + seconds,
    }


def similar(data: shoal.Microdata, partition: Partition) -> int:
    """Classes whose values all lie in one category (docs/measures.md#similarity)."""
    rules = data.rules(Policy((shoal.PPlusSensitive(2),)))
    return int((rules.deficits(partition.labels, partition.classes) > 0).sum())


def table_cells(quick: bool) -> list[Cell]:
    """The minimal tables of the three models, for (2, 2)."""
    n, seeds = (QUICK, 2) if quick else (0, MORE_SEEDS)
    return [
        {"model": model, "k": 2, "p": 2, "alpha": 1.0, "records": n, "seed": seed}
        for seed in range(seeds)
        for model in MODELS[:3]
    ]


def table_run(cell: Cell, progress: Progress) -> Cell:
    """How many full-domain generalizations are minimal, how many of them fall to similarity, and the most records exposed in one."""
    data = sample(int(cell["records"]), 7, int(cell["seed"]))
    policy = asked(str(cell["model"]), 2, 2, float(cell["alpha"]), 0.0)
    with progress.stage(weight=0.5) as part:
        notes = run_algorithm("incognito", data, data.rules(policy), progress=part).notes
    levels, rules = full_domain(data), data.rules(Policy((shoal.PPlusSensitive(2),)))
    exposed = []
    for node in notes["minimal_nodes"]:
        progress.check()
        codes = levels.lift(data.codes, range(len(node)), (0,) * len(node), tuple(node))
        labels = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
        classes = int(labels.max()) + 1
        falls = rules.deficits(labels.astype(np.int32), classes) > 0
        exposed.append(int(np.bincount(labels, minlength=classes)[falls].sum()))
    return {"tables": len(exposed), "vulnerable": sum(count > 0 for count in exposed), "exposed": max(exposed)}


def attack_cells(quick: bool) -> list[Cell]:
    """The three layers for (2, 2, 0.2) and (2, 2+, 0.2)."""
    n, seeds = (QUICK, 2) if quick else (0, MORE_SEEDS)
    return [
        {"model": model, "reading": reading, "records": n, "seed": seed}
        for seed in range(seeds)
        for model in MODELS[3:]
        for reading in READINGS
    ]


def attack_run(cell: Cell, progress: Progress) -> Cell:
    """Classes, those that fall to similarity, outliers, and what the worst class lacks against the records that are released."""
    n, seed = int(cell["records"]), int(cell["seed"])
    data, policy = sample(n, 7, seed), asked(str(cell["model"]), 2, 2, 0.0, 0.2)
    ready, _ = prepared(n, 7, 2, seed, progress=progress)
    options = {"preparation": ready, "reading": cell["reading"], "outliers": "suppress"}
    found = run_algorithm("three_layer", data, data.rules(policy), options=options, progress=progress)
    kept = np.flatnonzero(found.labels >= 0)
    left = data.take(kept).rules(policy)
    return {
        "classes": found.classes,
        "vulnerable": similar(data, found),
        "outliers": found.suppressed,
        "deficit": float(left.deficits(found.labels[kept], found.classes).max()),
        "distortion": measure(data, found).distortion,
    }


BASE: Cell = {
    "kmin": 3,
    "kmax": 60,
    "criterion": "bic",
    "weighting": "chi_squared",
    "scaling": "range",
    "attributes": 4,
    "start": 0,
}
CHANGES: tuple[Cell, ...] = (
    {},
    {"kmax": 20},
    {"kmax": 200},
    {"kmin": 30},
    {"criterion": "aic"},
    {"weighting": "cramers_v"},
    {"weighting": "information_gain"},
    {"weighting": "uniform"},
    {"attributes": 2},
    {"attributes": 7},
    {"scaling": "spread"},
    {"scaling": "spread", "weighting": "uniform"},
    {"start": 1},
    {"start": 2},
    {"kmax": 200, "attributes": 7, "weighting": "uniform"},
)
"""What x-means can be told, one thing at a time: its limits, its criterion, the weights, how many attributes it begins with, and
how they are scaled; another start, as a measure of chance; and last what gives most classes, together."""


def xmeans_cells(quick: bool) -> list[Cell]:
    """Every change of x-means' settings, in both readings."""
    n = QUICK if quick else 0
    changes = [CHANGES[i] for i in (0, 1, 2, 7, 12)] if quick else CHANGES
    return [
        {
            "change": ", ".join(f"{key} = {value}" for key, value in change.items()) or "as it is",
            "reading": reading,
            **BASE,
            **change,
            "records": n,
        }
        for change in changes
        for reading in READINGS
    ]


@remembered(1)
def clustered(n: int, *settings: Value, progress: Progress) -> Preparation:
    """Layers 1 and 2 with other settings of x-means, for both readings."""
    named: dict[str, Any] = dict(zip(BASE, settings, strict=True))
    m1, seed = named.pop("attributes"), named.pop("start")
    return prepare(sample(n, 7, 0), k=4, m1=m1, seed=seed, progress=progress, **named)


def xmeans_run(cell: Cell, progress: Progress) -> Cell:
    """Distortion, clusters and classes for (4, 4+, 0.5)."""
    data = sample(int(cell["records"]), 7, 0)
    rules = data.rules(asked(MODELS[4], 4, 4, 0.0, 0.5))
    ready = clustered(int(cell["records"]), *(cell[key] for key in BASE), progress=progress)
    options = {"preparation": ready, "reading": cell["reading"]}
    found = run_algorithm("three_layer", data, rules, options=options, progress=progress)
    return {
        "clusters": len(np.unique(ready.cluster[ready.cluster >= 0])),
        "classes": found.classes,
        "distortion": measure(data, found).distortion,
    }


def _weightings(rows: Rows) -> str:
    if not rows:
        return "not run"
    names = [f"weighting = {name}" for name in ("cramers_v", "information_gain", "uniform")]
    parts = []
    for reading in READINGS:
        found = {
            name: average(rows, "distortion", {"change": name, "reading": reading}) for name in ("as it is", *names)
        }
        shown = ", ".join(
            f"{name.removeprefix('weighting = ')} {told(value)}" for name, value in found.items() if value == value
        )
        parts.append(f"reading “{reading}”: {shown}")
    return "distortion at (4, 4+, 0.5), χ² as it is: " + "; ".join(parts)


def _clusterings(rows: Rows) -> str:
    if not rows:
        return "not run"
    parts = []
    for reading in READINGS:
        found = {str(row["change"]): float(row["distortion"]) for row in rows if row["reading"] == reading}
        least, most = (choose(found, key=lambda change: found[change]) for choose in (min, max))
        starts = [value for change, value in found.items() if change in ("as it is", "start = 1", "start = 2")]
        parts.append(
            f"reading “{reading}”: {told(min(starts))} to {told(max(starts))} by the start alone, "
            f"least with {least} ({told(found[least])}), most with {most} ({told(found[most])})"
        )
    return f"distortion over {len(rows) // len(READINGS)} settings of x-means: " + "; ".join(parts)


def _prepared(rows: Rows) -> str:
    if not rows:
        return "not run"
    one = average(rows, "preparing", {"model": MODELS[4]})
    rest = average(rows, "shared", {"model": MODELS[4], "reading": "class"})
    return f"one preparation for a sweep over k (--prepare): {told(one)} processor seconds once, then {told(rest)} a k with its share"


def _three(model: str, reading: str) -> Where:
    return {"model": model, "reading": reading}


OTHERS = tuple({"model": model} for model in MODELS[:3])


def _lines() -> list[Line]:
    lines = [
        Line(
            "§VI A.1",
            "minimal tables of 2-sensitive 2-anonymity",
            "21",
            Spread("tables", 21, OTHERS[0]),
            "001-tables",
            "which taxonomies and which random condition is not known",
        ),
        Line("§VI A.1", "of these, vulnerable to similarity", "13", Spread("vulnerable", 13, OTHERS[0]), "001-tables"),
        Line(
            "§VI A.1",
            "records exposed in one of them",
            "916",
            Spread("exposed", 916, OTHERS[0]),
            "001-tables",
            "the most in any of ours",
        ),
        Line(
            "§VI A.1",
            "model 2 leaves fewer tables vulnerable than model 1",
            "only four",
            Below("vulnerable", "k", OTHERS[1], (OTHERS[0],)),
            "001-tables",
            "under p+ = 2 none can be, by definition; the sentence of the paper is garbled",
        ),
        Line(
            "§VI A.1",
            "model 3 leaves fewer tables vulnerable than model 1",
            "only four",
            Below("vulnerable", "k", OTHERS[2], (OTHERS[0],)),
            "001-tables",
            "α = 1, which the paper does not state here",
        ),
    ]
    for reading in READINGS:
        where, as_read = _three(MODELS[4], reading), f"reading “{reading}”"
        lines += [
            Line(
                "§VI A.1",
                f"(2, 2+, 0.2): no class is vulnerable, {as_read}",
                "0 of 65",
                Within("vulnerable", 0, where, "="),
                "001-layers",
                "follows from p+ = 2",
            ),
            Line(
                "§VI A.1",
                f"(2, 2+, 0.2): classes, {as_read}",
                "65",
                Spread("classes", 65, where),
                "001-layers",
                "depends on the tool as well",
            ),
            Line(
                "§VI A.1",
                f"(2, 2+, 0.2): records removed as outliers, {as_read}",
                "19",
                Spread("outliers", 19, where),
                "001-layers",
                "depends on the tool as well",
            ),
            Line(
                "§IV",
                f"k, p+ and t hold in every class, {as_read}",
                "all constraints",
                Within("deficit", 0, where, "="),
                "001-layers",
            ),
            Line(
                "§IV, stage 2",
                f"the larger the clusters, the less is lost, {as_read}",
                "significantly reduced",
                Ordered(
                    "distortion", "kmax", {"reading": reading, **{key: BASE[key] for key in BASE if key != "kmax"}}
                ),
                "001-xmeans",
                "our rule for it: distortion rises with the clusters that x-means may make, 20, 60, 200",
            ),
            Line(
                "§IV, D22",
                f"model 5: records suppressed as outliers, by quasi-identifiers, {as_read}",
                "usually small",
                Shown("suppressed", "attributes", where, "no limit is stated; of 45,222 records"),
                "001-attributes",
            ),
            Line(
                "§VI A.1",
                f"(2, 2, 0.2), model 4: vulnerable classes, {as_read}",
                "not stated",
                Shown("vulnerable", "reading", _three(MODELS[3], reading)),
                "001-layers",
            ),
        ]
        for number, model in ((4, MODELS[3]), (5, MODELS[4])):
            mine = _three(model, reading)
            said = f"model {number}, {as_read}"
            lines += [
                *(
                    Line(
                        "Fig. 4",
                        f"{said}: slower than model {other[0]}",
                        "considerably slower",
                        Below("seconds", "attributes", {"model": other}, (mine,)),
                        "001-attributes",
                        "processor seconds, preparation included",
                    )
                    for other in MODELS[:3]
                ),
                Line(
                    "Fig. 4",
                    f"{said}: time hardly grows with the quasi-identifiers",
                    "almost independent",
                    Ordered("seconds", "attributes", mine, "lags"),
                    "001-attributes",
                    "our rule for it: less than in proportion",
                ),
                Line(
                    "Fig. 4",
                    f"{said}: time rises with the quasi-identifiers",
                    "slightly increases",
                    Ordered("seconds", "attributes", mine),
                    "001-attributes",
                ),
                Line(
                    "Fig. 5",
                    f"{said}: time rises with k at first",
                    "first has a linear increase",
                    Ordered("seconds", "k", mine, "begins"),
                    "001-k",
                ),
                Line(
                    "Fig. 5",
                    f"{said}: less time than models 1, 2 and 3 at every k",
                    "considerably more efficient",
                    Below("seconds", "k", mine, OTHERS),
                    "001-k",
                    "preparation included; of Fig. 4 the paper says the opposite",
                ),
                Line(
                    "Fig. 5",
                    f"{said}: time rises with k only at first",
                    "remains constant and even starts to decrease",
                    Ordered("seconds", "k", mine, "peaks"),
                    "001-k",
                ),
                Line(
                    "Fig. 5",
                    f"{said}: with the preparation counted once, faster than models 1, 2 and 3",
                    "a reduction in large scales",
                    Below("shared", "p", mine, OTHERS),
                    "001-k",
                    "mean over all k of the sweep, a share of the preparation in each",
                ),
                Line(
                    "Fig. 6",
                    f"{said}: less distortion than models 2 and 3, by quasi-identifiers",
                    "considerably less",
                    Below("distortion", "attributes", mine, OTHERS[1:]),
                    "001-attributes",
                    "the caption says Fig. 5",
                ),
                Line(
                    "Fig. 6",
                    f"{said}: distortion rises with the quasi-identifiers",
                    "increases",
                    Ordered("distortion", "attributes", mine),
                    "001-attributes",
                ),
                Line(
                    "Fig. 7",
                    f"{said}: less distortion than models 2 and 3, by k",
                    "less",
                    Below("distortion", "k", mine, OTHERS[1:]),
                    "001-k",
                    "the caption says Fig. 6; “significantly reduces” in the abstract",
                ),
                Line(
                    "Fig. 7", f"{said}: distortion rises with k", "increases", Ordered("distortion", "k", mine), "001-k"
                ),
            ]
    for model in MODELS[:3]:
        lines.append(
            Line(
                "Fig. 6",
                f"model {model[0]}: distortion rises with the quasi-identifiers",
                "increases",
                Ordered("distortion", "attributes", {"model": model}),
                "001-attributes",
            )
        )
        lines.append(
            Line(
                "Fig. 7",
                f"model {model[0]}: distortion rises with k",
                "increases",
                Ordered("distortion", "k", {"model": model}),
                "001-k",
            )
        )
    lines.append(
        Line(
            "Fig. 6",
            "model 2 with t as well, by top-down alone",
            "not in the paper",
            Shown(
                "distortion", "attributes", {"model": WITH_T}, "what the promise of model 5 costs without its clusters"
            ),
            "001-attributes",
        )
    )
    lines.append(
        Line(
            "Fig. 7",
            "model 2 with t as well, by top-down alone",
            "not in the paper",
            Shown("distortion", "k", {"model": WITH_T}, "what the promise of model 5 costs without its clusters"),
            "001-k",
        )
    )
    for reading in READINGS:
        lines.append(
            Line(
                "§VII",
                f"what x-means decides, reading “{reading}”",
                "not in the paper",
                Shown("distortion", "change", {"reading": reading}, "x-means told otherwise, one thing at a time"),
                "001-xmeans",
            )
        )
    return [_beside(line) for line in lines]  # fmt: skip


def _beside(line: Line) -> Line:
    """A line that is there under both readings, with the statement and the reading for the table of both."""
    reading = next((one for one in READINGS if f"reading “{one}”" in line.what), None)
    if reading is None or line.claim.kind == "no claim":
        return line
    said = line.what.replace(f", reading “{reading}”", "")
    return replace(line, beside=(f"{line.about}: {said}", f"reading “{reading}”"))


ALL = (
    *(Series(model, {"model": model}) for model in MODELS[:3]),
    *(
        Series(f"{model[0]}, reading “{reading}”", _three(model, reading))
        for model in MODELS[3:]
        for reading in READINGS
    ),
)
FIGURES = (
    Figure("001-fig-4", "Fig. 4", "Fig. 4: processor seconds by quasi-identifiers (k = p = 4, α = 4, t = 0.5)", "001-attributes", "seconds", "attributes", ALL, "quasi-identifiers", "seconds"),
    Figure("001-fig-5", "Fig. 5", "Fig. 5: processor seconds by k (t = 0.2, l = 2)", "001-k", "seconds", "k", ALL, "k", "seconds"),
    Figure("001-fig-5-shared", "Fig. 5", "The same with the preparation counted once for the whole sweep", "001-k", "shared", "k", ALL, "k", "seconds"),
    Figure("001-fig-6", "Fig. 6", "Fig. 6: distortion ratio by quasi-identifiers (k = p = 4, α = 4, t = 0.5)", "001-attributes", "distortion", "attributes", ALL, "quasi-identifiers", "distortion ratio"),
    Figure("001-fig-7", "Fig. 7", "Fig. 7: distortion ratio by k (t = 0.2, l = 2)", "001-k", "distortion", "k", ALL, "k", "distortion ratio"),
    Figure("001-xmeans", "§VII", "What x-means decides: distortion at (4, 4+, 0.5)", "001-xmeans", "distortion", "change",
           tuple(Series(f"reading “{reading}”", {"reading": reading}) for reading in READINGS), "setting", "distortion ratio"),
)  # fmt: skip

TABLE = (
    "Adult, both parts, 45,222 complete records (quick: 1,000), health condition drawn and x-means begun with each seed; quasi-identifiers of Table 2 in its order, "
    "age on a taxonomy of five levels as Table 2 says (race has two levels, Table 2 three); "
)
PAPER = Paper(
    "001",
    "Rahimi et al. 2015: the three-layer (k, p+, t) algorithm against three models of top-down recoding",
    (
        Experiment("001-tables", table_cells, table_run, TABLE + "all minimal full-domain generalizations, k = p = 2; 5 seeds (quick: 2)"),
        Experiment("001-layers", attack_cells, attack_run, TABLE + "prepared for k = 2, outliers suppressed; 5 seeds (quick: 2)"),
        Experiment("001-attributes", lambda quick: sweep_cells("attributes", quick), sweep_run,
                   TABLE + "k = p = 4, α = 4, t = 0.5; models 1 to 3 by top-down recoding (Wong et al. 2006), x-means 3 to 60 clusters, BIC, outliers suppressed; 3 seeds (quick: 1)"),
        Experiment("001-k", lambda quick: sweep_cells("k", quick), sweep_run,
                   TABLE + "p = l = 2, t = 0.2, α = 1 (not stated); one preparation for all k, with the largest as its size; 3 seeds (quick: 1)"),
        Experiment("001-xmeans", xmeans_cells, xmeans_run, TABLE + "(4, 4+, 0.5), outliers rescued; condition of seed 0, x-means begun with the seed named as start"),
    ),
    tuple(_lines()),
    FIGURES,
    (
        ("Table 1", "an example of 2-anonymity, tested in the suite"),
        ("Table 2", "the attributes and heights, which the experiments use"),
        ("Table 3", "the categories of the health condition, which the experiments use"),
        ("Fig. 1", "a drawing of the stages"),
        ("Fig. 2", "a flow chart, absent from the text"),
        ("Fig. 3", "pseudo-code"),
    ),
    (
        Wish("other weightings", "algorithms.md#three_layer", _weightings, "001-xmeans"),
        Wish("a customized x-means", "algorithms.md#three_layer", _clusterings, "001-xmeans"),
        Wish("less time and less loss in the anonymization stage", "algorithms.md#three_layer", _prepared, "001-k"),
    ),
    "Masoud Rahimi, Mehdi Bateni, Hosein Mohammadinejad: Extended K-Anonymity Model for Privacy Preserving on Micro Data. IJCNIS 7 (12), 2015",
    "How the third stage applies the policy to a cluster is left open. Read as “class”, each cluster becomes one class; read as “inside”, "
    "the policy is applied inside each cluster by the recoding that the paper compares with.",
)  # fmt: skip
