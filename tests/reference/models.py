"""Privacy models straight from docs/models.md: one class, one attribute, plain Python and exact fractions.

A class and a table are lists of records' values, None for a missing one. `about` describes the attribute: `number` and
`rank` of each value, `parent` of each node of its taxonomy, `protect`, `categories`. Every
function answers whether the class satisfies the model.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

TOLERANCE = Fraction(1, 10**12)


@dataclass
class About:
    number: dict[str, float] = field(default_factory=dict)
    rank: dict[str, int] = field(default_factory=dict)
    parent: dict[str, str] = field(default_factory=dict)
    protect: tuple[str, ...] = ()
    categories: tuple[tuple[str, tuple[str, ...]], ...] = ()


def known(records):
    return [value for value in records if value is not None]


def k_anonymity(members, table, about, *, k):
    return len(members) >= k


def p_sensitive(members, table, about, *, p):
    return len(set(known(members))) >= p


def extended_p_sensitive(members, table, about, *, p):
    leaves = {child for child in about.parent if child not in about.parent.values()}
    protected = {node for node in nodes(about) if leaves & {node} or set(path(about, node)) & set(about.protect)}

    def strong(value):
        return [node for node in path(about, value) if node in protected][-1]

    return len({strong(value) for value in known(members)}) >= p


def p_plus_sensitive(members, table, about, *, p):
    return len({category(about, value) for value in known(members)}) >= p


def p_alpha_sensitive(members, table, about, *, p, alpha, scope="rows"):
    m = len(about.categories)
    counted = known(members) if scope == "rows" else sorted(set(known(members)))
    weight = sum(Fraction(category(about, value), m - 1) if m > 1 else 0 for value in counted)
    return len(set(known(members))) >= p and weight >= Fraction(alpha) - TOLERANCE


def l_diversity(members, table, about, *, l, variant="distinct", c=None):  # noqa: E741
    r = sorted(Counter(known(members)).values(), reverse=True)
    s = sum(r)
    if variant == "distinct":
        return len(r) >= l
    if variant == "entropy":
        return s > 0 and -sum(x / s * math.log(x / s) for x in r) + 1e-12 >= math.log(l)
    return len(r) >= l and r[0] + TOLERANCE * s < Fraction(c) * sum(r[l - 1 :])


def alpha_k(members, table, about, *, alpha, values=None):
    counts = Counter(value for value in known(members) if values is None or value in values)
    return all(Fraction(count, len(members)) <= Fraction(alpha) + TOLERANCE for count in counts.values())


def k_e(members, table, about, *, e, count="rows", k=None):
    numbers = [about.number[value] for value in known(members)]
    counted = len(members) if count == "rows" else len(set(numbers))
    return bool(numbers) and counted >= (k or 0) and max(numbers) - min(numbers) >= e * (1 - 1e-12)


def t_closeness(members, table, about, *, t, distance=None):
    if distance is None:
        distance = "ordered" if about.rank else "hierarchical" if about.parent else "equal"
    return emd(members, table, about, distance) <= Fraction(t) + TOLERANCE


def emd(members, table, about, distance):
    """The closed forms of docs/models.md#t_closeness."""
    if not known(members):
        return Fraction(1)
    p, q = shares(members), shares(table)
    if distance == "equal":
        return sum(abs(p.get(value, 0) - q[value]) for value in q) / 2
    if distance == "ordered":
        values = sorted(q, key=about.rank.__getitem__)
        if len(values) == 1:
            return Fraction(0)
        running, total = Fraction(0), Fraction(0)
        for value in values:
            running += p.get(value, 0) - q[value]
            total += abs(running)
        return total / (len(values) - 1)
    extra = {node: Fraction(0) for node in nodes(about)}
    for value in q:
        for node in path(about, value):
            extra[node] += p.get(value, 0) - q[value]
    total = Fraction(0)
    for node in nodes(about):
        below = [extra[child] for child, above in about.parent.items() if above == node]
        positive, negative = sum(x for x in below if x > 0), -sum(x for x in below if x < 0)
        total += Fraction(height(about, node), height(about, root(about))) * min(positive, negative)
    return total


def ground_distance(about, distance, values, a, b):
    """Distance of two values, for a transport problem over `values`."""
    if a == b:
        return 0.0
    if distance == "equal":
        return 1.0
    if distance == "ordered":
        place = sorted(values, key=about.rank.__getitem__)
        return abs(place.index(a) - place.index(b)) / (len(values) - 1)
    return tree_distance(about, a, b)


def delta_disclosure(members, table, about, *, delta, absent="allowed"):
    p, q = shares(members), shares(table)
    changes = [abs(math.log(p[value] / q[value])) if value in p else math.inf for value in q]
    if absent == "allowed":
        changes = [change for change in changes if change < math.inf]
    return bool(p) and all(change < delta - 1e-12 for change in changes)


def beta_likeness(members, table, about, *, beta, variant="basic"):
    p, q = shares(table), shares(members)
    gains = {value: (q[value] - p[value]) / p[value] for value in q if q[value] > p[value]}
    limit = {value: min(beta, -math.log(p[value])) if variant == "enhanced" else beta for value in gains}
    return bool(q) and all(gain <= limit[value] + 1e-12 for value, gain in gains.items())


def kpqr(members, table, about, *, p, q, r, reference="all", scope="required"):
    frequency = Counter(known(table))
    rare = {value for value, count in frequency.items() if Fraction(count, len(table)) < Fraction(q) - TOLERANCE}
    obliged = any(value in rare for value in known(members))
    distinct = len(set(known(members)))
    if obliged and distinct < p:
        return False
    if not (obliged if scope == "required" else distinct >= p):
        return True
    compared = [value for value in known(table) if reference == "all" or value in rare]
    whole = variance(compared, about)
    return whole == 0 or variance(known(members), about) / whole >= r - 1e-12


def variance(values, about):
    """Half the mean squared distance of pairs (docs/models.md#variance)."""
    if not values:
        return 0.0

    def distance(a, b):
        if about.number:
            return about.number[a] - about.number[b]
        if about.rank:
            return about.rank[a] - about.rank[b]
        return tree_distance(about, a, b) if about.parent else float(a != b)

    return sum(distance(a, b) ** 2 for a in values for b in values) / (2 * len(values) ** 2)


def personalized(members, table, about, *, breach, guard):
    """`guard`: levels up, or a mapping from values to nodes; `breach_of` takes guards record by record."""

    def of(value):
        if isinstance(guard, int):
            return path(about, value)[: guard + 1][-1]
        return guard.get(value)

    return breach_of(members, [None if value is None else of(value) for value in members], about) <= breach + 1e-12


def breach_of(members, guards, about):
    """The largest breach of a record in the class."""
    below = [
        sum(value is not None and guard in path(about, value) for value in members) / len(members)
        for guard, own in zip(guards, members, strict=True)
        if guard and own is not None
    ]
    return max(below, default=0.0)


def category(about, value):
    return next(index for index, (_, values) in enumerate(about.categories) if value in values)


def shares(records):
    values = known(records)
    return {value: Fraction(count, len(values)) for value, count in Counter(values).items()}


def nodes(about):
    return sorted(set(about.parent) | set(about.parent.values()))


def root(about):
    return next(node for node in nodes(about) if node not in about.parent)


def path(about, node):
    steps = [node]
    while steps[-1] in about.parent:
        steps.append(about.parent[steps[-1]])
    return steps


def height(about, node):
    below = [child for child, above in about.parent.items() if above == node]
    return 1 + max(height(about, child) for child in below) if below else 0


def tree_distance(about, a, b):
    if a == b:
        return 0.0
    lowest = next(node for node in path(about, a) if node in path(about, b))
    return height(about, lowest) / height(about, root(about))
