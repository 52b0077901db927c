"""SpatialDistance straight from docs/algorithms.md#spatial_distance; plain Python, nothing shared with the package."""

from __future__ import annotations

from typing import Any


def tick(x: float) -> int:
    return round(x * 2**40)


def category_distances(
    rows: list[list[Any]], categories: list[int], reference: dict[int, set[Any]], k: int, ties: str
) -> dict[int, dict[Any, float]]:
    """Distance of every value of every category in the pool `rows` from the reference's sets of values."""
    values = {a: sorted({row[a] for row in rows}) for a in categories}
    order = sorted(categories, key=lambda a: (len(values[a]), a))
    result: dict[int, dict[Any, float]] = {}
    least = 1.0
    for position, a in enumerate(order):
        distance = dict.fromkeys(values[a], 0.0)
        others = [v for v in values[a] if v not in reference[a]]
        if len(values[a]) == 2:
            for v in others:
                distance[v] = 1.0
            least = 1.0
        elif len(values[a]) > 2 and others:
            context = order[:position]
            while True:
                matching = [row for row in rows if all(row[b] in reference[b] for b in context)]
                if len(matching) >= k or not context:
                    break
                context = context[:-1]
            share = {v: sum(row[a] == v for row in matching) / len(matching) for v in values[a]}
            own = [share[v] for v in values[a] if v in reference[a]]
            centre = sum(own) / max(1, len(own))
            ranked = sorted(others, key=lambda v: (-tick(abs(share[v] - centre)), share[v], v))
            current = least / len(others)
            for i, v in enumerate(ranked):
                new_level = i > 0 and tick(abs(share[v] - centre)) != tick(abs(share[ranked[i - 1]] - centre))
                if i > 0 and (ties == "sequential" or new_level):
                    current /= len(others)
                distance[v] = current
            least = current
        result[a] = distance
    return result


def spatial_distance(
    codes: list[list[int]],
    numbers: dict[int, list[float | None]],
    k: int,
    ties: str = "dense",
    centre: str = "set",
) -> list[list[int]]:
    """Groups of records; `numbers[a]` are the scaled values of a numeric column (None = missing), others are categories."""
    n, d = len(codes), len(codes[0])
    categories = [a for a in range(d) if a not in numbers]
    distinct = [len({row[a] for row in codes}) for a in range(d)]
    key = max(range(d), key=lambda a: (distinct[a], -a))
    pool = sorted(range(n), key=lambda r: (codes[r][key], r))

    def mean(members: list[int], a: int) -> float | None:
        known = [numbers[a][r] for r in members if numbers[a][r] is not None]
        return sum(known) / len(known) if known else None  # type: ignore[arg-type]

    def distance(members: list[int], sets: dict[int, set[int]], table: dict[int, dict[int, float]], r: int) -> int:
        total = 0.0
        for a in range(d):
            if a in numbers:
                own, value = mean(members, a), numbers[a][r]
                if own is not None and value is not None:
                    total += abs(own - value)
                elif own is not None or value is not None:
                    total += 1.0
            else:
                total += table[a][codes[r][a]]
        return tick(total)

    groups: list[list[int]] = []
    while len(pool) >= k:
        rows = [codes[r] for r in pool]
        members = [pool[0]]
        rest = pool[1:]
        while len(members) < k:
            shown = members if centre == "set" else members[:1]
            sets = {a: {codes[r][a] for r in shown} for a in categories}
            table = category_distances(rows, categories, sets, k, ties)
            best = min(range(len(rest)), key=lambda i: (distance(members, sets, table, rest[i]), i))
            members.append(rest.pop(best))
        groups.append(members)
        pool = rest
    for r in pool:
        prices = []
        for g, members in enumerate(groups):
            sets = {a: {codes[m][a] for m in members} for a in categories}
            table = category_distances(codes, categories, sets, k, ties)
            prices.append((distance(members, sets, table, r), g))
        groups[min(prices)[1]].append(r)
    return groups
