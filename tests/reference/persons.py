"""Privacy models for people with several values, straight from docs/persons.md: one class, plain Python and exact fractions.

A class and a table are lists of persons, each the list of their rows' values, None for a missing one. `about` is as in
`tests.reference.models`. Every function answers whether the class satisfies the model.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

from tests.reference.models import TOLERANCE, category, nodes, path


def sets(members):
    """What each person is known to have; who has nothing known takes no part."""
    found = [{value for value in person if value is not None} for person in members]
    return [own for own in found if own]


def hitting(groups):
    """The least number of values of which everybody has one: try all sets of values, small ones first."""
    if not groups:
        return 0
    values = sorted(set().union(*groups))
    for count in range(len(values) + 1):
        for chosen in combinations(values, count):
            if all(own & set(chosen) for own in groups):
                return count
    raise AssertionError


def spread(members):
    """Each person's weight of one, evenly over their values."""
    return _spread(tuple(map(tuple, members)))


@lru_cache(maxsize=4)
def _spread(members):
    """Remembered, because every class of a table is compared with the same one."""
    weight = Counter()
    for own in sets(members):
        for value in own:
            weight[value] += Fraction(1, len(own))
    total = sum(weight.values())
    return {value: part / total for value, part in weight.items()}


def having(members):
    """How many persons have each value."""
    return Counter(value for own in sets(members) for value in own)


def means(members, about):
    numbers = tuple(tuple(about.number.get(value) for value in person) for person in members)
    return _means(numbers)


@lru_cache(maxsize=4)
def _means(members):
    found = []
    for person in members:
        numbers = [number for number in person if number is not None]
        if numbers:
            found.append(math.fsum(numbers) / len(numbers))
    return found


def k_anonymity(members, table, about, *, k):
    return len(members) >= k


def p_sensitive(members, table, about, *, p):
    return hitting(sets(members)) >= p


def extended_p_sensitive(members, table, about, *, p):
    leaves = {child for child in about.parent if child not in about.parent.values()}
    protected = {node for node in nodes(about) if leaves & {node} or set(path(about, node)) & set(about.protect)}
    strong = {value: [node for node in path(about, value) if node in protected][-1] for value in leaves}
    return hitting([{strong[value] for value in own} for own in sets(members)]) >= p


def p_plus_sensitive(members, table, about, *, p):
    return hitting([{category(about, value) for value in own} for own in sets(members)]) >= p


def p_alpha_sensitive(members, table, about, *, p, alpha, scope="rows"):
    m = len(about.categories)

    def weight(value):
        return Fraction(category(about, value), m - 1) if m > 1 else Fraction(0)

    if scope == "rows":
        total = sum(min(weight(value) for value in own) for own in sets(members))
    else:
        total = sum(weight(value) for value in set().union(*sets(members), set()))
    return hitting(sets(members)) >= p and total >= Fraction(alpha) - TOLERANCE


def l_diversity(members, table, about, *, l, variant="distinct", c=None):  # noqa: E741
    if variant == "distinct":
        return hitting(sets(members)) >= l
    shares = sorted(spread(members).values(), reverse=True) if sets(members) else []
    if variant == "entropy":
        return bool(shares) and -sum(float(x) * math.log(x) for x in shares) + 1e-9 >= math.log(l)
    return len(shares) >= l and shares[0] < Fraction(c) * sum(shares[l - 1 :])


def alpha_k(members, table, about, *, alpha, values=None):
    counts = having(members)
    return all(
        Fraction(count, len(members)) <= Fraction(alpha) + TOLERANCE
        for value, count in counts.items()
        if values is None or value in values
    )


def k_e(members, table, about, *, e, count="rows", k=None):
    numbers = means(members, about)
    counted = len(members) if count == "rows" else len(set(numbers))
    return bool(numbers) and counted >= (k or 0) and max(numbers) - min(numbers) >= e * (1 - 1e-12)


def t_closeness(members, table, about, *, t, distance=None):
    if not sets(members):
        return t >= 1
    if distance is None:
        distance = "ordered" if about.rank else "hierarchical" if about.parent else "equal"
    p, q = spread(members), spread(table)
    return emd(p, q, about, distance) <= Fraction(t) + Fraction(1, 10**9)


def emd(p, q, about, distance):
    if distance == "equal":
        return sum(abs(p.get(value, 0) - q[value]) for value in q) / 2
    if distance == "ordered":
        values = sorted(q, key=about.rank.__getitem__)
        running, total = Fraction(0), Fraction(0)
        for value in values:
            running += p.get(value, 0) - q[value]
            total += abs(running)
        return total / (len(values) - 1) if len(values) > 1 else Fraction(0)
    from tests.reference.models import height, root

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


def delta_disclosure(members, table, about, *, delta, absent="allowed"):
    if not sets(members):
        return False
    p, q = spread(members), spread(table)
    if absent == "refused" and set(p) != set(q):
        return False
    return all(abs(math.log(share / q[value])) < delta - 1e-9 for value, share in p.items())


def beta_likeness(members, table, about, *, beta, variant="basic"):
    if not sets(members):
        return False
    p, q = spread(members), spread(table)
    for value, share in p.items():
        limit = beta if variant == "basic" else min(beta, -math.log(q[value]))
        if share > q[value] and float((share - q[value]) / q[value]) > limit + 1e-9:
            return False
    return True


def kpqr(members, table, about, *, p, q, r, reference="all", scope="required"):
    """A table of means, one a person (None for whoever has none)."""
    own, all_means = means(members, about), means(table, about)
    frequency = Counter(all_means)
    rare = {value for value, count in frequency.items() if Fraction(count, len(table)) < Fraction(q) - TOLERANCE}
    obliged = any(value in rare for value in own)
    if obliged and len(set(own)) < p:
        return False
    if not (obliged if scope == "required" else len(set(own)) >= p):
        return True
    compared = [value for value in all_means if reference == "all" or value in rare]
    whole = _variance(compared)
    return whole == 0 or _variance(own) / whole >= r - 1e-9


def _variance(values):
    if not values:
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)


def personalized(members, table, about, *, breach, guard):
    """`guard`: levels up, or a mapping from values to nodes."""

    def of(value):
        return path(about, value)[: guard + 1][-1] if isinstance(guard, int) else guard.get(value)

    known = sets(members)
    guards = {of(value) for own in known for value in own} - {None}
    for node in guards:
        below = sum(any(node in path(about, value) for value in own) for own in known)
        if Fraction(below, len(members)) > Fraction(breach) + TOLERANCE:
            return False
    return True
