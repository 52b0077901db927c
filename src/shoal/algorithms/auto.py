"""auto: choose the algorithm from the policy, the data and the size, and say why.

Truta et al. 2007 wished for a combination of Greedy (small p) and Enhanced (large p); this is it, with more candidates.
Small tables are worth trying everything on; large ones are judged by a sample, and the winner runs on the whole table.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from shoal import exact
from shoal.algorithms import names, run
from shoal.errors import Cancelled, ShoalError, UnsupportedError
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import Progress
from shoal.space import Measure
from shoal.states import class_states

Prefer = Literal["loss", "classes"]

# Up to this many records every candidate runs on the whole table; beyond, on a sample of this size first.
WHOLE = 20_000
SAMPLE = 5_000
# Up to this many records a search that follows finds its classes from nothing as well as from a start.
FROM_NOTHING = 50_000


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
    results: dict[str, Partition] = {}
    losses: dict[str, float] = {}
    refused: dict[str, str] = {}
    for name in candidates:
        try:
            with progress.stage(f"trying {name}", (1.0 if whole else 0.5) / len(candidates)) as part:
                results[name] = run(
                    name, trial, trial.rules(rules.policy), objective=objective, seed=seed, progress=part
                )
            losses[name] = _loss(trial, results[name], objective)
        except Cancelled:
            raise
        except ShoalError as problem:
            refused[name] = str(problem)
    if not losses:
        # Nothing worked on the trial: let the most general candidate explain itself on the whole table.
        return run("mondrian", data, rules, objective=objective, seed=seed, progress=progress)

    def rank(name: str) -> tuple[int, float, int]:
        fewer = -results[name].classes if prefer == "classes" else 0
        return fewer, round(losses[name], 12), candidates.index(name)

    best = min(losses, key=rank)
    found = results[best] if whole else run(best, data, rules, objective=objective, seed=seed, progress=progress)
    where = "all records" if whole else f"a sample of {SAMPLE:,} records"
    aim = f"least {objective}" if prefer == "loss" else f"most classes, then least {objective},"
    note: dict[str, object] = {"algorithm": best, "why": f"{aim} on {where}", "losses": losses, "refused": refused}
    return _noted(found, note)


def _needs_no_start(data: Microdata, rules: Rules) -> bool:
    return data.n <= FROM_NOTHING and rules.superset_closed and rules.flat() is not None and rules.ok(np.arange(data.n))


def suitable(rules: Rules, n: int, refined: bool, prefer: Prefer = "loss") -> list[str]:
    """The candidates for a policy: full-domain algorithms never win on loss and are left out."""
    there = set(names())
    if prefer == "classes":
        return ["greedy_pk", "enhanced_pk", "k_member"]
    if not rules.superset_closed:
        wanted = ["peel", "mondrian"] if rules.union_closed else ["mondrian"]
        if rules.entries is None:
            wanted = ["mondrian"]
        elif refined and rules.union_closed and any(entry.form.like_table for entry in rules.entries):
            # Classes like the table: what a start keeps as slack is worth more than what it loses.
            wanted = ["peel"]
    elif refined:
        wanted = ["mondrian"]
    else:
        wanted = ["k_member", "mondrian"]
        if not rules.only_size:
            # Greedy while p-sensitivity is cheap, enhanced when it decides how many classes there can be.
            wanted = ["greedy_pk", *wanted] if rules.max_classes * rules.k >= 2 * n else ["enhanced_pk", *wanted]
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
