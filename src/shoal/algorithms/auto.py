"""auto: choose the algorithm from the policy, the data and the size, and say why.

Truta et al. 2007 wished for a combination of Greedy (small p) and Enhanced (large p); this is it, with more candidates.
Small tables are worth trying everything on; large ones are judged by a sample, and whoever is near the least loss there runs on
the whole table. How much is tried follows from the number of records alone, never from a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from shoal import exact
from shoal.algorithms import names, run
from shoal.errors import Cancelled, ShoalError, UnsupportedError
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import Progress
from shoal.space import Measure, Set
from shoal.states import class_states

Prefer = Literal["loss", "classes"]

# Up to this many records every candidate runs on the whole table; beyond, on a sample of this size first.
WHOLE = 20_000
SAMPLE = 5_000
# A sample is thinner than its table, and what grows classes gains more from density than what cuts them: up to FINAL records
# everyone whose loss on the sample exceeds the least by no more than CLOSE runs on the whole table.
CLOSE, FINAL = 0.15, 60_000
# Up to this many records a search that follows finds its classes from nothing as well as from a start.
FROM_NOTHING = 50_000
# … and up to so many distinct tuples × quasi-identifiers: in a wider table a step sees only what is near.
NARROW = 100_000


def auto(
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Progress,
    refined: bool = False,
    prefer: Prefer = "loss",
) -> Partition:
    """The candidate with the least loss; with `prefer="classes"` the one with most classes, then the least loss.

    `refined` says that a search follows, so the start hardly matters.
    """
    if refined and prefer == "loss" and _needs_no_start(data, rules):
        why = "a search follows that needs no start: it begins with one class of all records"
        return Partition(np.zeros(data.n, dtype=np.int32), None, {"auto": {"algorithm": "box_search", "why": why}})
    candidates = suitable(rules, data.n, refined, prefer)
    if len(candidates) == 1:
        reason = "a refinement follows, so the fastest suitable start is taken" if refined else "the only suitable one"
        found = run(candidates[0], data, rules, objective=objective, seed=seed, progress=progress)
        return _noted(found, {"algorithm": candidates[0], "why": reason})
    whole = data.n <= WHOLE
    trial = data if whole else data.take(np.sort(np.random.default_rng(seed).choice(data.n, SAMPLE, replace=False)))
    with progress.stage(weight=1.0 if whole else 0.3) as part:
        tried = _tried(candidates, trial, trial.rules(rules.policy), part, objective, seed)
    if not tried.losses:
        # Nothing worked on the trial: let the most general candidate explain itself on the whole table.
        return run("mondrian", data, rules, objective=objective, seed=seed, progress=progress)
    ranked = tried.ranked(candidates, prefer)
    made = tried
    if not whole:
        finalists = tried.near(ranked) if prefer == "loss" and data.n <= FINAL else ranked[:1]
        with progress.stage() as part:
            made = _tried(finalists, data, rules, part, objective, seed)
        if not made.losses:
            return run(finalists[0], data, rules, objective=objective, seed=seed, progress=progress)
        ranked = made.ranked(candidates, prefer)
    best = ranked[0]
    where = "all records" if whole else f"a sample of {SAMPLE:,} records"
    where += f", and on all of them among {len(made.losses)}" if len(made.losses) > 1 and not whole else ""
    words = f"least {objective}" if prefer == "loss" else f"most classes, then least {objective},"
    note: dict[str, object] = {"algorithm": best, "why": f"{words} on {where}"}
    # Losses of one table stand beside each other, never some of a sample beside some of all records.
    losses = made.losses if len(made.losses) > 1 else tried.losses
    note |= {"losses": losses, "refused": tried.refused | made.refused}
    return _noted(made.results[best], note)


@dataclass
class _Tried:
    """What candidates made of a table, what that loses, and why some made nothing."""

    results: dict[str, Partition] = field(default_factory=dict)
    losses: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def ranked(self, candidates: Sequence[str], prefer: Prefer) -> list[str]:
        """The best first; whoever loses the same as another comes in the order of the candidates."""

        def rank(name: str) -> tuple[int, float, int]:
            fewer = -self.results[name].classes if prefer == "classes" else 0
            return fewer, round(self.losses[name], 12), candidates.index(name)

        return sorted(self.losses, key=rank)

    def near(self, ranked: Sequence[str]) -> list[str]:
        """Those that may be the best of the whole table."""
        most = self.losses[ranked[0]] * (1 + CLOSE)
        return [name for name in ranked if self.losses[name] <= most]


def _tried(
    names: Sequence[str], data: Microdata, rules: Rules, progress: Progress, objective: Measure, seed: int
) -> _Tried:
    found = _Tried()
    for name in names:
        try:
            with progress.stage(f"trying {name}", 1 / len(names)) as part:
                found.results[name] = run(name, data, rules, objective=objective, seed=seed, progress=part)
            found.losses[name] = _loss(data, found.results[name], objective)
        except Cancelled:
            raise
        except ShoalError as problem:
            found.refused[name] = str(problem)
    return found


def _needs_no_start(data: Microdata, rules: Rules) -> bool:
    if data.n > FROM_NOTHING or not rules.superset_closed or rules.flat() is None or not rules.ok(np.arange(data.n)):
        return False
    # A set of thousands of values is as wide as many attributes: a step over it takes as long.
    width = sum(domain.words if isinstance(domain, Set) else 1 for domain in data.domains)
    return bool(data.n * width <= NARROW or _tuples(data) * width <= NARROW)


def _tuples(data: Microdata) -> int:
    """How many different rows the quasi-identifiers have."""
    import polars as pl

    return pl.from_numpy(data.codes).n_unique()


def suitable(rules: Rules, n: int, refined: bool, prefer: Prefer = "loss") -> list[str]:
    """The candidates for a policy: full-domain algorithms never win on loss and are left out."""
    there = set(names())
    if prefer == "classes":
        return ["greedy_pk", "enhanced_pk", "k_member"]
    if rules.entries is None and not rules.superset_closed:
        wanted = ["mondrian"]  # to grow classes record by record would ask NumPy record by record
    elif not rules.superset_closed:
        # Cells that are taken whole, cuts, and classes that grow: which of them suits depends on the table.
        wanted = (["peel"] if rules.union_closed else []) + ["mondrian"]
        if not refined:
            wanted += ["greedy_pk", "k_member"]
        elif rules.union_closed and any(entry.form.like_table for entry in rules.entries or ()):
            # Classes like the table: what a start keeps as slack is worth more than what it loses.
            wanted = ["peel"]
    elif refined:
        wanted = ["mondrian"]
    else:
        # Where few rows repeat, as in small tables, cells that are taken whole lose less than what grows or is cut.
        wanted = ["k_member", "mondrian", *(["peel"] if rules.entries is not None else [])]
        # Greedy while p-sensitivity is cheap, enhanced when it decides how many classes there can be; with few records to a
        # class the other one is seldom far behind, and sometimes ahead.
        cheap = rules.only_size or rules.max_classes * rules.k >= 2 * n
        wanted += ["greedy_pk", "enhanced_pk"] if cheap else ["enhanced_pk", "greedy_pk"]
    found = [name for name in wanted if name in there]
    if not found:
        raise UnsupportedError("no algorithm is suitable for this policy.")
    return found


def _loss(data: Microdata, partition: Partition, objective: Measure) -> float:
    space = data.space(objective)
    units = space.unit(class_states(data, partition, space))
    whole = exact.total(space.weights)
    return (exact.weighed(partition.sizes, units) + partition.suppressed * whole) / (data.n * max(1e-300, whole))


def _noted(partition: Partition, note: dict[str, object]) -> Partition:
    return Partition(partition.labels, partition.levels, {**partition.notes, "auto": note})
