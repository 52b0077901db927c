"""Measures, risks and attacks straight from docs/measures.md: plain Python, record by record, pair by pair."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

# --- losses: a column is a list of values, None for missing; a class is a list of record numbers -------------------


class Number:
    """A number; `width` is the reference range."""

    def __init__(self, values, width=None):
        self.values = values
        known = [v for v in values if v is not None]
        self.width = width if width is not None else max(known) - min(known)

    def losses(self, members):
        values = [self.values[i] for i in members]
        known = [v for v in values if v is not None]
        if len(known) < len(values):
            loss = 1.0 if known else 0.0
        else:
            loss = (max(known) - min(known)) / self.width if self.width else 0.0
        names = ("il", "ncp", "ncp_distinct", "ncp_published", "granularity", "distortion")
        return dict.fromkeys(names, loss), 1.0, loss > 0


class Tree:
    """A taxonomy by each leaf's path to the root; missing is one more leaf under the root."""

    def __init__(self, values, paths):
        self.values = values
        self.paths = {leaf: [tuple(path[i:]) for i in range(len(path))] for leaf, path in paths.items()}
        root = next(iter(self.paths.values()))[-1]
        if any(v is None for v in values):
            self.paths[None] = [("missing", *root), root]
        self.root = root

    def height(self, node):
        return max(path.index(node) for path in self.paths.values() if node in path)

    def losses(self, members):
        values = {self.values[i] for i in members}
        first = self.paths[next(iter(values))]
        node = next(node for node in first if all(node in self.paths[v] for v in values))
        leaves = sum(node in path for path in self.paths.values())
        total, top = len(self.paths), self.height(self.root)
        everything = len(set(self.values))
        il = self.height(node) / top if top and total > 1 else 0.0
        ncp = leaves / total if leaves > 1 else 0.0
        losses = {
            "il": il,
            "ncp": ncp,
            "ncp_distinct": len(values) / everything if len(values) > 1 else 0.0,
            "ncp_published": ncp,
            "granularity": (leaves - 1) / (total - 1) if total > 1 else 0.0,
            "distortion": il,
        }
        return losses, float(top), len(values) > 1


class Bag:
    """Categories without a taxonomy; missing is one more of them."""

    def __init__(self, values):
        self.values = values

    def losses(self, members):
        distinct, total = len({self.values[i] for i in members}), len(set(self.values))
        ncp = distinct / total if distinct > 1 else 0.0
        losses = {
            "il": ncp,
            "ncp": ncp,
            "ncp_distinct": ncp,
            "ncp_published": ncp,
            "granularity": (distinct - 1) / (total - 1) if total > 1 else 0.0,
            "distortion": float(distinct > 1),
        }
        return losses, 1.0, distinct > 1


def measures(columns, weights, classes, suppressed, k):
    """All totals for classes of record numbers."""
    n = sum(map(len, classes)) + len(suppressed)
    d = len(columns)
    sums = Counter()
    il = changed = distortion = 0.0
    steps = sum(column.losses([0])[1] for column in columns)
    for members in classes:
        for column, weight in zip(columns, weights, strict=True):
            losses, height, differs = column.losses(members)
            for name, loss in losses.items():
                sums[name] += len(members) * loss
            il += weight * len(members) * losses["il"]
            distortion += len(members) * losses["distortion"] * height
            changed += len(members) * differs
    for name in list(sums):
        sums[name] = (sums[name] + len(suppressed) * d) / (n * d)
    shown = len(classes) + bool(suppressed)
    return {
        "il": il + len(suppressed) * sum(weights),
        "nil": sums["il"],
        "ncp": sums["ncp"],
        "ncp_distinct": sums["ncp_distinct"],
        "ncp_published": sums["ncp_published"],
        "granularity": sums["granularity"],
        "distortion": (distortion + len(suppressed) * steps) / (n * steps),
        "precision": 1 - sums["distortion"],
        "changed": changed + len(suppressed) * d,
        "dm": sum(len(c) ** 2 if len(c) >= k else n * len(c) for c in classes) + n * len(suppressed),
        "avg": n / (shown * k),
    }


def sse(columns, classes, suppressed):
    """Lost variance in percent: squared distances to the mean of the class over those to the mean of the table.

    A suppressed record is as good as replaced by the mean of all. Columns that do not vary have nothing to lose.
    """
    ratios = []
    for values in columns:
        known = [Fraction(v) for v in values if v is not None]
        mean = sum(known) / len(known)
        spread = sum((v - mean) ** 2 for v in known)
        if not spread:
            continue
        lost = sum((Fraction(values[i]) - mean) ** 2 for i in suppressed if values[i] is not None)
        for members in classes:
            inside = [Fraction(values[i]) for i in members if values[i] is not None]
            lost += sum((v - sum(inside) / len(inside)) ** 2 for v in inside)
        ratios.append(lost / spread)
    return 100 * float(sum(ratios) / len(ratios)) if ratios else None


def distortion_ratio(rows, heights):
    """`rows` are levels per attribute, or None for a suppressed record; heights in edges."""
    total = sum(sum(heights) if row is None else sum(row) for row in rows)
    return Fraction(total, len(rows) * sum(heights))


# --- risk -----------------------------------------------------------------------------------------------------------


def risks(f, F=None):
    """Highest prosecutor and journalist risk, and the averages, record by record."""
    records = [(size, (F or f)[j]) for j, size in enumerate(f) for _ in range(size)]
    prosecutor = [Fraction(1, size) for size, _ in records]
    other = [Fraction(1, size) for _, size in records]
    return max(prosecutor), sum(prosecutor) / len(records), max(other), sum(other) / len(records)


def zayatz(f, N):
    """Bayes' rule with binomial coefficients."""
    n, u = sum(f), len(f)

    def seen_once(j):
        return Fraction(j * math.comb(N - j, n - 1), math.comb(N, n))

    share = Counter(f)
    evidence = sum(Fraction(count, u) * seen_once(size) for size, count in share.items())
    return float(share[1] * (Fraction(share[1], u) * seen_once(1) / evidence) * Fraction(N, n))


def pitman_log_likelihood(f, theta, alpha):
    """Sums as Hoshino prints them."""
    n, u = sum(f), len(f)
    total = sum(math.log(theta + i * alpha) for i in range(1, u)) - sum(math.log(theta + i) for i in range(1, n))
    return total + sum(math.log(i - alpha) for size in f for i in range(1, size))


def pitman(f, N):
    """Unique persons of a population of N by the most likely θ and α, which are looked for on finer and finer grids."""
    theta, alpha, wide, high = 30.0, 0.5, 30.0, 0.5
    for _ in range(26):
        grid = [(theta + wide * a / 4, alpha + high * b / 4) for a in range(-4, 5) for b in range(-4, 5)]
        grid = [(t, a) for t, a in grid if 0 < a < 1 and t + a > 0]
        theta, alpha = max(grid, key=lambda point: pitman_log_likelihood(f, *point))
        wide, high = wide / 1.8, high / 1.8
    gammas = (
        math.lgamma(theta + alpha + N - 1)
        + math.lgamma(theta + 1)
        - math.lgamma(theta + alpha)
        - math.lgamma(theta + N)
    )
    return N * math.exp(gammas)


def slide_negative_binomial(f, fraction):
    """Unique persons where a class has 1 + NB(α, β) of them: the (α, β) that give the expected classes of one and two."""
    one, two, z = f.count(1), f.count(2), 1 - fraction
    unseen = sum(z**size for size in f)
    K = len(f) + one * unseen / sum(size * fraction * z ** (size - 1) for size in f)

    def expected(alpha, beta):
        """s_1 = K·π·G'(z) and s_2 = K·π²/2·G''(z) for G(z) = z·h(z) with h(z) = (β / (1 − (1 − β)z))^α."""
        c = 1 - beta
        h = (beta / (1 - c * z)) ** alpha
        h1 = h * alpha * c / (1 - c * z)
        h2 = h1 * (alpha + 1) * c / (1 - c * z)
        return K * fraction * (h + z * h1), K * fraction**2 / 2 * (2 * h1 + z * h2)

    def alpha_of(beta):
        """s_2 / s_1 rises with α."""
        low, high = 1e-9, 1e9
        for _ in range(200):
            middle = math.sqrt(low * high)
            first, second = expected(middle, beta)
            low, high = (middle, high) if second * one < two * first else (low, middle)
        return low

    betas = [i / 400 for i in range(1, 400)]
    gaps = [expected(alpha_of(beta), beta)[0] - one for beta in betas]
    place = next((i for i in range(398) if (gaps[i] > 0) != (gaps[i + 1] > 0)), None)
    if place is None:
        return None
    low, high = betas[place], betas[place + 1]
    for _ in range(60):
        middle = (low + high) / 2
        same = (expected(alpha_of(middle), middle)[0] - one > 0) == (gaps[place] > 0)
        low, high = (middle, high) if same else (low, middle)
    return K * low ** alpha_of(low)


def separation(rows):
    """Share of distinct rows, and of pairs that differ."""
    pairs = list(combinations(rows, 2))
    return Fraction(len(set(rows)), len(rows)), Fraction(sum(a != b for a, b in pairs), len(pairs))


# --- attacks --------------------------------------------------------------------------------------------------------


def posterior(values, strength):
    """The best guess after the worst `strength` other values are ruled out."""
    counts = sorted(Counter(values).values(), reverse=True)
    return Fraction(counts[0], sum(counts) - sum(counts[1 : strength + 1]))


def gains(members, table):
    """p/q − 1 of every value of a class."""
    p, q = Counter(members), Counter(table)
    return {v: Fraction(p[v], len(members)) / Fraction(q[v], len(table)) - 1 for v in p}


def minimality(sizes, occurrences, share):
    """Every world one by one: which individuals have the value."""
    owner = [g for g, size in enumerate(sizes) for _ in range(size)]
    worlds = remaining = 0
    hits = [0] * len(sizes)
    for chosen in combinations(range(len(owner)), occurrences):
        counts = Counter(owner[i] for i in chosen)
        worlds += 1
        if any(Fraction(counts[g], size) > share for g, size in enumerate(sizes)):
            remaining += 1
            for g in range(len(sizes)):
                hits[g] += counts[g]
    if not remaining:
        return None, 0, worlds
    return [Fraction(hit, remaining * size) for hit, size in zip(hits, sizes, strict=True)], remaining, worlds


def covers(text, value, path=None):
    """Whether a published text covers a known value; an unknown value (None) is covered by everything."""
    if value is None or text == "*":
        return True
    if text is None:
        return False
    if path is not None:
        return text in path
    if text.startswith("{"):
        return str(value) in text[1:-1].split(", ")
    if text.startswith("["):
        low, high = text[1:-1].split(", ")
        return float(low) <= float(value) <= float(high)
    if isinstance(value, str):
        return text == value
    return float(text) == float(value)


def candidates(masked_rows, person, paths):
    """Numbers of the masked rows that cover a person; `paths` gives, per column, the labels above each value."""
    found = []
    for i, row in enumerate(masked_rows):
        pairs = enumerate(zip(row, person, strict=True))
        if all(covers(text, value, paths[a].get(value) if paths[a] else None) for a, (text, value) in pairs):
            found.append(i)
    return found
