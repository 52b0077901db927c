"""GreedyPKClustering and EnhancedPKClustering straight from docs/algorithms.md: lists, scans and sorted matrices.

`secrets` has one row of codes a sensitive attribute, -1 for missing, and `p` one number each. Diversities and costs are
compared in units of 2⁻⁴⁰, then records, then clusters. For one cluster the least added loss is the least loss of the union.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.reference.k_member import Table, ticks

Cluster = list[int]


class Secrets:
    """Sensitive attributes, what is asked of them, and their weights."""

    def __init__(
        self, codes: Sequence[Sequence[int]], p: Sequence[int], weights: Sequence[float] | None = None
    ) -> None:
        self.codes = [[int(code) for code in column] for column in codes]
        self.p = list(p)
        self.weights = list(weights) if weights is not None else [1 / len(self.p)] * len(self.p)

    def values(self, cluster: Sequence[int]) -> list[set[int]]:
        return [{column[r] for r in cluster if column[r] >= 0} for column in self.codes]

    def hom(self, cluster: Sequence[int]) -> float:
        """Definition 12."""
        found = self.values(cluster)
        return float(sum((p - min(len(v), p)) * w for v, p, w in zip(found, self.p, self.weights, strict=True)))

    def div(self, record: int, cluster: Sequence[int]) -> float:
        """Definition 11."""
        total = 0.0
        for column, found, p, w in zip(self.codes, self.values(cluster), self.p, self.weights, strict=True):
            y = min(len(found), p)
            after = min(len(found | ({column[record]} if column[record] >= 0 else set())), p)
            total += (after - y) * (p - y) * w
        return total


def most_classes(frequencies: Sequence[int], p: int) -> int:
    """Condition 2 in its other form: the largest m for which the values give m·p records, each at most m."""
    m = 0
    while sum(min(f, m + 1) for f in frequencies) >= (m + 1) * p:
        m += 1
    return m


def max_clusters(frequencies: Sequence[int], p: int) -> tuple[int, int]:
    """Condition 2 as it is printed, for one attribute, and its iValue."""
    f = sorted(frequencies, reverse=True)
    bounds = [(sum(f) - sum(f[: p - i])) // i for i in range(1, p + 1)]
    return min(bounds), bounds.index(min(bounds)) + 1


def best_match(table: Table, secrets: Secrets, records: Sequence[int], cluster: Cluster) -> tuple[int, float]:
    """BestMatch(T, {cl})."""
    gains = [int(ticks(secrets.div(r, cluster))) for r in records]
    best = [r for r, gain in zip(records, gains, strict=True) if gain == max(gains)]
    chosen = table.cheapest(cluster, best) if cluster else min(best)
    return chosen, secrets.div(chosen, cluster)


def disperse(table: Table, records: Sequence[int], clusters: list[Cluster]) -> None:
    for record in sorted(records):
        clusters[table.best_class(record, clusters)].append(record)


def greedy_pk(table: Table, secrets: Secrets, k: int, first: int) -> list[Cluster]:
    """docs/algorithms.md#greedy_pk."""
    k = max([k, *secrets.p])
    rest, clusters = list(range(table.n)), []
    seed = first
    while True:
        rest.remove(seed)
        cluster = [seed]
        while rest and (secrets.hom(cluster) > 0 or len(cluster) < k):
            if secrets.hom(cluster) > 0:
                chosen, _ = best_match(table, secrets, rest, cluster)
            else:
                chosen = table.cheapest(cluster, rest)
            rest.remove(chosen)
            cluster.append(chosen)
        if secrets.hom(cluster) > 0 or len(cluster) < k:
            if not clusters:
                return [sorted(cluster)]
            disperse(table, cluster, clusters)
            return clusters
        clusters.append(cluster)
        if not rest:
            return clusters
        seed = table.furthest(seed, rest)


def enhanced_pk(
    table: Table,
    secrets: Secrets,
    k: int,
    faithful: bool = False,
    seed_spread: bool = False,
    by_unit_cost: bool = False,
) -> list[Cluster]:
    """docs/algorithms.md#enhanced_pk, step by step."""
    k = max([k, *secrets.p])
    # Step 1
    hardness = []
    for j, (column, p) in enumerate(zip(secrets.codes, secrets.p, strict=True)):
        values = sorted({code for code in column if code >= 0}, key=lambda v: (-column.count(v), v))
        secs = [[r for r in range(table.n) if column[r] == v] for v in values]
        hardness.append((*max_clusters([len(sec) for sec in secs], p), j, secs, p))
    m, i_value, _, secs, p = min(hardness, key=lambda h: h[:3])
    clusters: list[Cluster] = [[] for _ in range(m)]
    # Step 2
    repaired = any(len(sec) < m for sec in secs[: p - i_value]) and not faithful
    if repaired:
        split(table, secrets, secs, clusters, p, m, seed_spread)
    else:
        split(table, secrets, secs[p - i_value :], clusters, i_value, table.n, seed_spread)
        # Step 3
        for j in range(p - i_value - 1, -1, -1):
            sweep(table, secrets, secs[j], clusters)
    used = {r for cluster in clusters for r in cluster}
    T = [r for r in range(table.n) if r not in used]
    # Step 4
    clusters.sort(key=lambda cluster: int(ticks(secrets.hom(cluster))))
    h, aux = 0, m
    while h < aux and secrets.hom(clusters[h]) == 0:
        h += 1
    while h < aux:
        while h < aux and T:
            chosen, div = best_match(table, secrets, T, clusters[h])
            if div == 0 and not faithful:
                break
            T.remove(chosen)
            clusters[h].append(chosen)
            while h < aux and secrets.hom(clusters[h]) == 0:
                h += 1
        if h < aux:
            aux -= 1
            T += clusters[aux]
    if aux == 0:
        return [list(range(table.n))]
    # Step 5
    clusters = sorted(clusters[:aux], key=len, reverse=True)
    g = sum(len(cluster) >= k for cluster in clusters)
    v = max(1, min(aux, g + (len(T) + sum(len(cluster) for cluster in clusters[g:])) // k))
    if by_unit_cost:
        small = sorted(range(g, aux), key=lambda i: int(ticks(table.unit(clusters[i]))))
        keep = [*range(g), *sorted(small[: v - g])]
    else:
        keep = list(range(v))
    T += [r for i in range(aux) if i not in keep for r in clusters[i]]
    clusters = [clusters[i] for i in keep]
    # Step 6
    for cluster in clusters:
        while len(cluster) < k:
            chosen = table.cheapest(cluster, T)
            T.remove(chosen)
            cluster.append(chosen)
    # Step 7
    disperse(table, T, clusters)
    return clusters


def split(
    table: Table,
    secrets: Secrets,
    secs: Sequence[Sequence[int]],
    clusters: list[Cluster],
    target: int,
    cap: int,
    seed_spread: bool,
) -> None:
    """From the least frequent value on, records go round the clusters."""
    c, seeds = 0, list[int]()
    for sec in reversed(secs):
        rest = list(sec)
        for _ in range(min(cap, len(sec))):
            if seed_spread and not clusters[c]:
                gains = [int(ticks(secrets.div(r, []))) for r in rest]
                best = [r for r, gain in zip(rest, gains, strict=True) if gain == max(gains)]
                near = [min((int(ticks(table.unit([r, s]))) for s in seeds), default=0) for r in best]
                chosen = best[near.index(max(near))]
                seeds.append(chosen)
            else:
                chosen, _ = best_match(table, secrets, rest, clusters[c])
            rest.remove(chosen)
            clusters[c].append(chosen)
            c += 1
            if c == len(clusters):
                if len(clusters[-1]) >= target:
                    return
                c = 0


def sweep(table: Table, secrets: Secrets, sec: Sequence[int], clusters: list[Cluster]) -> None:
    """All pairs, sorted; a pair counts while both its record and its cluster are free."""
    pairs = []
    for c, cluster in enumerate(clusters):
        cost = ticks(table.added(cluster, sec))
        for record, added in zip(sec, cost.tolist(), strict=True):
            pairs.append((-int(ticks(secrets.div(record, cluster))), added, record, c))
    gone: set[int] = set()
    served: set[int] = set()
    for _, _, record, c in sorted(pairs):
        if record not in gone and c not in served:
            gone.add(record)
            served.add(c)
            clusters[c].append(record)


def as_partition(clusters: Sequence[Sequence[int]]) -> list[list[int]]:
    """Clusters in their order, records sorted: what labels can show."""
    return [sorted(int(r) for r in np.asarray(cluster)) for cluster in clusters]
