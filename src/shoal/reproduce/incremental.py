"""004's experiments: I3M+ and I3M- on Adult against full runs on the final table, before and after IL_Optimization."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np

import shoal
from shoal.algorithms import run as run_algorithm
from shoal.evolve.i3m import Binding, Classes
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.reproduce import Line, Progress, judged
from shoal.reproduce.tables import EIGHT, adult_sample

SHARES = (0.005, 0.01, 0.1, 0.5)


def experiments(quick: bool, progress: Progress) -> list[Line]:
    """Excess loss by size of the change, for insertions (k = 3, 5, 10) and deletions (k = 5)."""
    n = 2_000 if quick else 10_000
    data = adult_sample(n + n // 2, EIGHT)
    lines: list[Line] = []
    grid = (3, 10) if quick else (3, 5, 10)
    for done, k in enumerate(grid):
        lines += _changes(data, n, k, "insert")
        progress(0.1 + 0.8 * (done + 1) / len(grid))
    lines += _changes(data, n, 5, "delete")
    return lines


def _changes(data: Microdata, n: int, k: int, kind: str) -> list[Line]:
    policy = Policy((shoal.KAnonymity(k),))
    space = data.space("il")
    lines, excesses = [], []
    for share in SHARES:
        moved = int(n * share)
        before = data.take(np.arange(n if kind == "insert" else n + moved))
        after = data.take(np.arange(n + moved if kind == "insert" else n))
        labels = run_algorithm("k_member", before, before.rules(policy), objective="il").labels
        classes = Classes(space, before.codes, labels.astype(np.int64), Binding(policy))
        started = time.process_time()
        if kind == "insert":
            classes.insert(data.codes[n : n + moved])
        else:
            classes.delete(range(n, n + moved))
        spent = time.process_time() - started
        plain = classes.loss
        classes.optimize()
        started = time.process_time()
        full = run_algorithm("k_member", after, after.rules(policy), objective="il")
        full_time = time.process_time() - started
        states = space.states(after.codes, full.order, full.starts)
        static = float(space.unit(states) @ full.sizes)
        excess, mended = plain / static - 1, classes.loss / static - 1
        excesses.append(excess)
        faster = full_time / max(spent, 1e-4)
        shown = f"{100 * excess:+.1f} %, after IL_Optimization {100 * mended:+.1f} %, {faster:.0f} times faster"
        small = excess <= 0.03 if share <= 0.005 else True
        what = f"k = {k}, {kind} {100 * share:g} %: excess of IL over a full run"
        lines.append(judged(what, "figures only", shown, small and mended <= excess + 1e-12))
    growing = all(less <= more + 0.005 for less, more in pairwise(excesses))
    shown = ", ".join(f"{100 * e:.1f} %" for e in excesses)
    lines.append(judged(f"k = {k}, {kind}: excess grows with the change", "grows", shown, growing))
    return lines
