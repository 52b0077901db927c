"""MDAV against a compiled naive loop in the same run: same partition, how much faster, and how time grows.

    python -m benchmarks.mdav              10k to 100k against the naive loop, 50k to 800k and 1,000,000 alone
    python -m benchmarks.mdav --quick      10k and 50k only

Standard normal tables with 6 columns, k = 5, generic form unless said. Both run on one core; times are processor
seconds of the process (the wall clock stands beside them), the best of the repeats. Writes benchmarks/out/mdav.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.datasets import adult, census
from shoal.errors import InputError
from shoal.kernels.mdav import mdav_labels

COLUMNS, K = 6, 5
Floats = NDArray[np.float64]


def main() -> None:
    """Run the parts asked for, print one table each, write all figures."""
    parser = argparse.ArgumentParser(description="MDAV: exactness, speed and growth.")
    parser.add_argument("--quick", action="store_true", help="only 10,000 and 50,000 records")
    options = parser.parse_args()

    started = time.perf_counter()
    mdav_labels(normal(100), K, "generic")
    first_use = time.perf_counter() - started
    naive_labels(normal(100), K, True)
    print(f"first use: {first_use:.2f} s (compiling, or loading what an earlier run compiled)\n")

    figures: dict[str, Any] = {"machine": platform.processor() or platform.machine(), "first_use_seconds": first_use}
    figures["exactness"] = exactness()
    figures["against_naive"] = against_naive([10_000, 50_000] if options.quick else [10_000, 50_000, 100_000])
    if not options.quick:
        figures["growth"] = growth([50_000, 100_000, 200_000, 400_000, 800_000])
        figures["million"] = growth([1_000_000])
    target = Path(__file__).parent / "out" / "mdav.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"written: {target.relative_to(Path(__file__).parents[1])}")


def exactness() -> list[dict[str, Any]]:
    """Both forms on the real tables that are here, record for record."""
    rows = []
    for name, X in real_tables():
        for k in (2, 5, 20):
            for form in ("generic", "single"):
                same = bool(np.array_equal(mdav_labels(X, k, form), naive_labels(X, k, form == "generic")))
                rows.append(
                    {"table": name, "records": len(X), "columns": X.shape[1], "k": k, "form": form, "same": same}
                )
    same_partitions = sum(row["same"] for row in rows)
    if rows:
        print(f"real tables, both forms, k = 2, 5, 20: {same_partitions} of {len(rows)} partitions the same\n")
    return rows


def against_naive(sizes: list[int]) -> list[dict[str, Any]]:
    """Naive and fast in turn on the same tables."""
    print(f"{'records':>9} {'naive s':>9} {'fast s':>9} {'ratio':>7} {'same':>5} {'wall naive':>11} {'wall fast':>10}")
    rows = []
    for n in sizes:
        X = normal(n)
        fast, seconds, wall = timed(lambda X=X: mdav_labels(X, K, "generic"), repeats=3)
        naive, naive_seconds, naive_wall = timed(lambda X=X: naive_labels(X, K, True), repeats=1)
        same = bool(np.array_equal(naive, fast))
        ratio = naive_seconds / seconds
        print(
            f"{n:>9,} {naive_seconds:>9.2f} {seconds:>9.3f} {ratio:>7.1f} {same!s:>5} {naive_wall:>11.2f} {wall:>10.3f}"
        )
        rows.append(
            {
                "records": n,
                "naive_seconds": naive_seconds,
                "fast_seconds": seconds,
                "ratio": ratio,
                "same": same,
                "naive_wall": naive_wall,
                "fast_wall": wall,
            }
        )
    print()
    return rows


def growth(sizes: list[int]) -> dict[str, Any]:
    """The fast one alone; the exponent is the slope of log time over log records."""
    print(f"{'records':>9} {'fast s':>9} {'wall s':>9}")
    rows = []
    for n in sizes:
        X = normal(n)
        _, seconds, wall = timed(lambda X=X: mdav_labels(X, K, "generic"), repeats=3 if n <= 200_000 else 1)
        print(f"{n:>9,} {seconds:>9.2f} {wall:>9.2f}")
        rows.append({"records": n, "fast_seconds": seconds, "fast_wall": wall})
    exponent = None
    if len(rows) > 1:
        logs = np.log([[row["records"], row["fast_seconds"]] for row in rows])
        exponent = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
        print(f"growth exponent {exponent:.2f}")
    print()
    return {"rows": rows, "exponent": exponent}


def timed(work: Callable[[], NDArray[np.int32]], repeats: int) -> tuple[NDArray[np.int32], float, float]:
    """The result, and the least processor and wall time."""
    best = wall = np.inf
    for _ in range(repeats):
        processor, clock = time.process_time(), time.perf_counter()
        result = work()
        best, wall = min(best, time.process_time() - processor), min(wall, time.perf_counter() - clock)
    return result, float(best), float(wall)


def normal(n: int) -> Floats:
    """The table of the benchmark."""
    return np.random.default_rng(0).standard_normal((n, COLUMNS))


def real_tables() -> list[tuple[str, Floats]]:
    """Census, and 5,000 records of Adult with 8 quasi-identifiers as codes, where the user has the files."""
    try:
        quasi = ["age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country"]
        people = adult().select(quasi).head(5_000)
        codes = np.column_stack([np.unique(people[name].to_numpy(), return_inverse=True)[1] for name in quasi])
        tables = [("Census", census().to_numpy().astype(float)), ("Adult", codes.astype(float))]
    except InputError as missing:
        print(f"real tables left out: {missing}\n")
        return []
    return [(name, (X - X.mean(axis=0)) / X.std(axis=0)) for name, X in tables]


@njit(cache=True, nogil=True)
def naive_labels(X: Floats, k: int, paired: bool) -> NDArray[np.int32]:
    """MDAV as defined, compiled: each step measures every remaining record (they are kept together at the front)."""
    rest = X.copy()
    ids = np.arange(len(X))
    labels = np.full(len(X), -1, dtype=np.int32)
    total = np.zeros((2, X.shape[1]))
    for row in range(len(X)):
        _add(total, X[row], 1.0)
    near, near_distance = np.empty(k, dtype=np.int64), np.empty(k)
    live, groups = len(X), 0
    while live >= 2 * k:
        second = paired and live >= 3 * k
        seed = _farthest(rest, ids, live, (total[0] + total[1]) / live)
        while True:
            query = rest[seed].copy()
            live = _take(seed, rest, ids, live, labels, groups, total)
            _nearest(rest, ids, live, query, k - 1, near, near_distance)
            # from the back, so that the record which fills a gap is never one still to be taken
            for place in -np.sort(-near[: k - 1]):
                live = _take(place, rest, ids, live, labels, groups, total)
            groups += 1
            if not second:
                break
            seed = _farthest(rest, ids, live, query)
            second = False
    for i in range(live):
        labels[ids[i]] = groups
    return labels


@njit(cache=True, nogil=True)
def _farthest(rest: Floats, ids: NDArray[np.int64], live: int, query: Floats) -> int:
    best, best_distance = -1, -1.0
    for i in range(live):
        distance = 0.0
        for column in range(query.size):
            distance += (rest[i, column] - query[column]) * (rest[i, column] - query[column])
        distance = (distance + 6144.0) - 6144.0
        if distance > best_distance or (distance == best_distance and ids[i] < ids[best]):
            best, best_distance = i, distance
    return best


@njit(cache=True, nogil=True)
def _nearest(
    rest: Floats, ids: NDArray[np.int64], live: int, query: Floats, m: int, near: NDArray[np.int64], kept: Floats
) -> None:
    count = 0
    for i in range(live if m > 0 else 0):
        distance = 0.0
        for column in range(query.size):
            distance += (rest[i, column] - query[column]) * (rest[i, column] - query[column])
        distance = (distance + 6144.0) - 6144.0
        if count < m:
            count += 1
        elif distance > kept[m - 1] or (distance == kept[m - 1] and ids[i] > ids[near[m - 1]]):
            continue
        place = count - 1
        while place > 0 and (
            kept[place - 1] > distance or (kept[place - 1] == distance and ids[near[place - 1]] > ids[i])
        ):
            kept[place] = kept[place - 1]
            near[place] = near[place - 1]
            place -= 1
        kept[place] = distance
        near[place] = i


@njit(cache=True, nogil=True)
def _take(
    place: int,
    rest: Floats,
    ids: NDArray[np.int64],
    live: int,
    labels: NDArray[np.int32],
    group: int,
    total: Floats,
) -> int:
    labels[ids[place]] = group
    _add(total, rest[place], -1.0)
    rest[place] = rest[live - 1]
    ids[place] = ids[live - 1]
    return live - 1


@njit(cache=True, nogil=True)
def _add(total: Floats, row: Floats, sign: float) -> None:
    for column in range(row.size):
        before = total[0, column]
        after = before + sign * row[column]
        shadow = after - before
        total[1, column] += (before - (after - shadow)) + (sign * row[column] - shadow)
        total[0, column] = after


if __name__ == "__main__":
    main()
