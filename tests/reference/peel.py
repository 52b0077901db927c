"""Naive twins of peel and of priced relocation, from their descriptions alone: plain Python, nothing shared with src/.

Classes are lists of record indices. A `unit` function gives the loss of one record in a class, a `good` function says
whether a class satisfies the policy, and a `slack` function how far it is from its limits.
"""

from __future__ import annotations

import math
from itertools import product

GAIN = 1e-9


def largest_subset(counts, good, smallest=1):
    """Size of the largest good choice of at most counts[v] records of each value v; 0 if there is none."""
    best = 0
    for chosen in product(*(range(c + 1) for c in counts)):
        if sum(chosen) >= max(smallest, best + 1) and good(chosen):
            best = sum(chosen)
    return best


def equal_distance(counts, table):
    """½ Σ |p − q|."""
    return 0.5 * sum(abs(c / sum(counts) - q / sum(table)) for c, q in zip(counts, table, strict=True))


def entropy(counts):
    """−Σ p ln p."""
    return -sum(c / sum(counts) * math.log(c / sum(counts)) for c in counts if c > 0)


def recursive_gap(counts, l, c):  # noqa: E741 - the papers' symbol
    """c·(r_l + … + r_m) − r_1."""
    ordered = sorted(counts, reverse=True)
    return c * sum(ordered[l - 1 :]) - ordered[0]


def cells(codes, groups, smallest):
    """All sets of at least so many records that agree at some combination of levels; groups[a][level][code]."""
    found = set()
    for node in product(*(range(len(levels)) for levels in groups)):
        together = {}
        for record, row in enumerate(codes):
            key = tuple(groups[a][node[a]][code] for a, code in enumerate(row))
            together.setdefault(key, []).append(record)
        found |= {frozenset(members) for members in together.values() if len(members) >= smallest}
    return found


def peel(codes, groups, smallest, unit, ok):
    """Peeling for a policy that more records cannot spoil: cells by rising loss, whatever is left in one if it is ok."""
    visits, seen = [], set()
    for node in product(*(range(len(levels)) for levels in groups)):
        together = {}
        for record, row in enumerate(codes):
            key = tuple(groups[a][node[a]][code] for a, code in enumerate(row))
            together.setdefault(key, []).append(record)
        for key in sorted(together):
            members = together[key]
            if len(members) >= smallest and tuple(members) not in seen:
                seen.add(tuple(members))
                visits.append((round(unit(members) * 2**40), len(visits), members))
    left, classes = set(range(len(codes))), []
    for _, _, members in sorted(visits):
        rest = [record for record in members if record in left]
        if len(rest) >= smallest and ok(rest):
            classes.append(rest)
            left -= set(rest)
    return place(sorted(left), classes, unit, ok)


def place(waiting, classes, unit, good):
    """Each waiting record joins the class with the least added loss that stays good."""
    classes = [list(members) for members in classes]
    for record in waiting:
        costs = []
        for c, members in enumerate(classes):
            if good([*members, record]):
                added = (len(members) + 1) * unit([*members, record]) - len(members) * unit(members)
                costs.append((round(added * 2**40), c))
        if costs:
            classes[min(costs)[1]].append(record)
    return classes


def move(classes, order, price, top, unit, good, slack):
    """One sweep: each record to the class where growth of loss − price·(top − loss)·growth of slack is least."""
    classes = [list(members) for members in classes]
    for record in order:
        own = next(c for c, members in enumerate(classes) if record in members)
        rest = [other for other in classes[own] if other != record]
        if not rest or not good(rest):
            continue
        leaving = len(rest) * unit(rest) - len(classes[own]) * unit(classes[own])
        leaving -= price * max(0.0, top - unit(classes[own])) * (slack(rest) - slack(classes[own]))
        best, least = None, 0.0
        for c, members in enumerate(classes):
            joined = [*members, record]
            if c == own or not good(joined):
                continue
            cost = leaving + len(joined) * unit(joined) - len(members) * unit(members)
            cost -= price * max(0.0, top - unit(members)) * (slack(joined) - slack(members))
            if cost < least - GAIN:
                best, least = c, cost
        if best is not None:
            classes[own] = rest
            classes[best].append(record)
    return classes


def cheapest_swap(classes, unit, value):
    """The least that swapping two records of the same value can cost, counting what each costs the class it joins."""
    costs = [0.0]
    for one, first in enumerate(classes):
        for two, second in enumerate(classes):
            for r, q in product(first, second):
                if one != two and value[r] == value[q]:
                    rest = [m for m in first if m != r]
                    grown = len(second) * (unit([*second, r]) - unit(second))
                    costs.append(grown + len(first) * (unit([*rest, q]) - unit(first)))
    return min(costs)
