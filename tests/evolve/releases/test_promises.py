"""What each model promises across releases, against a twin that lists every world and knows only the models' definitions.

Two or three small releases, each of whose classes satisfies the model. People whom no release tells apart are a group; a world
gives everybody a value so that every class comes out as published. Whatever the audit finds is true in every world; and where
a model speaks of single values or of groups of values, it finds all that is true in every world.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.evolve.releases.test_history import ILL
from tests.reference.intruder import Worlds, releases_of

import shoal
from shoal.configuration import read_schema
from shoal.evolve.releases.decision import Budget
from shoal.evolve.releases.guards import Shown
from shoal.evolve.releases.history import _Histories
from shoal.policy import Policy

SCHEMA = read_schema(ILL)
VALUES = ["HIV", "cancer", "flu", "cold"]
GRAVE = {"HIV", "cancer"}
HISTORIES = 120


def history(seed: int) -> list[list[tuple[int, int, str]]]:
    """Rows (person, class, value) of two or three releases: some come, some go, and classes change."""
    random = np.random.default_rng(seed)
    ills = {person: VALUES[random.integers(4)] for person in range(9)}
    releases = []
    for _ in range(int(random.integers(2, 4))):
        here = [person for person in ills if random.random() < 0.8] or [0]
        random.shuffle(here)
        size = int(random.integers(3, 6))
        releases.append(
            [(person, min(i // size, len(here) // size - 1), ills[person]) for i, person in enumerate(here)]
        )
    return [[(person, max(number, 0), ill) for person, number, ill in rows] for rows in releases]


def every_world(worlds: Worlds, releases: list[Any]) -> list[dict[tuple[Any, ...], Counter[str]]]:
    """What each group has, in every world."""
    groups = list(worlds.groups.items())
    left = [{number: Counter(counts) for number, counts in one.items()} for _, one in releases]
    found: list[dict[tuple[Any, ...], Counter[str]]] = []

    def go_on(at: int, rest: int, first: int, now: dict[tuple[Any, ...], Counter[str]]) -> None:
        if at == len(groups):
            found.append({path: Counter(counts) for path, counts in now.items()})
            return
        path = groups[at][0]
        if rest == 0:
            go_on(at + 1, len(groups[at + 1][1]) if at + 1 < len(groups) else 0, 0, now)
            return
        classes = [left[t][number] for t, number in enumerate(path) if number is not None]
        for place in range(first, len(VALUES)):  # in ascending order: whose each value is makes no other world
            value = VALUES[place]
            if all(one[value] for one in classes):
                for one in classes:
                    one[value] -= 1
                now.setdefault(path, Counter())[value] += 1
                go_on(at, rest - 1, place, now)
                now[path][value] -= 1
                for one in classes:
                    one[value] += 1

    go_on(0, len(groups[0][1]), 0, {})
    return found


def kinds(values: Any) -> int:
    """Categories of ILL among some values, which are its protected subtrees too."""
    return len({value in GRAVE for value in values})


def away(counts: Counter[str], table: Counter[str]) -> float:
    """Half the sum of the differences of shares."""
    size, total = sum(counts.values()), sum(table.values())
    return sum(abs(counts[value] / size - table[value] / total) for value in VALUES) / 2


def breach(counts: Counter[str]) -> float:
    """The share of grave illnesses, where somebody has HIV and so does not want to be thought to have one."""
    return sum(counts[value] for value in GRAVE) / sum(counts.values()) if counts["HIV"] else 0.0


# Of each model: whether a class satisfies it, what is certainly broken for a group in all its worlds, and whether the audit
# must find all of that. Of distances and of shares of several values together it knows bounds, and may miss something.
MODELS: dict[str, tuple[Any, Any, Any, bool]] = {
    "p_plus": (
        shoal.PPlusSensitive(2),
        lambda counts, table: kinds(+counts) >= 2,
        lambda own, table: kinds({value for one in own for value in +one}) < 2,
        True,
    ),
    "extended": (
        shoal.ExtendedPSensitive(2),
        lambda counts, table: kinds(+counts) >= 2,
        lambda own, table: kinds({value for one in own for value in +one}) < 2,
        True,
    ),
    "alpha": (
        shoal.AlphaK(0.5),
        lambda counts, table: max(counts.values()) <= 0.5 * sum(counts.values()),
        lambda own, table: any(min(one[value] for one in own) > 0.5 * sum(own[0].values()) for value in VALUES),
        True,
    ),
    "t": (
        shoal.TCloseness(0.45, distance="equal"),
        lambda counts, table: away(counts, table) <= 0.45,
        lambda own, table: min(away(one, table) for one in own) > 0.45,
        False,
    ),
    "personalized": (
        shoal.Personalized(0.6, guard={"HIV": "grave"}),
        lambda counts, table: breach(counts) <= 0.6,
        lambda own, table: min(breach(one) for one in own) > 0.6,
        False,
    ),
}


def shown(rows: list[tuple[int, int, str]]) -> Shown:
    persons, classes, ills = zip(*sorted(rows), strict=True)
    return Shown(np.array(persons), np.array(classes), pl.DataFrame({"age": [20 + c for c in classes], "ill": ills}))


def named(releases: list[Shown], policy: Policy) -> set[int]:
    """The people whom the audit finds exposed."""
    histories = _Histories(releases, SCHEMA, policy)
    publications, labels, records = histories.publications("ill")
    known, cells, undecided = histories.judged(publications, len(labels), "ill", Budget())
    assert not len(undecided)
    return {int(records[unit]) for unit in known.persons[np.isin(known.cell_of, cells)].tolist()}


@pytest.mark.parametrize("name", MODELS)
def test_a_promise_is_kept_by_the_audit(name: str) -> None:
    model, satisfies, broken, exact = MODELS[name]
    alone, policy, tried, some = Policy((shoal.KAnonymity(1),)), Policy((model,)), 0, 0
    for seed in range(HISTORIES):
        rows = history(seed)
        releases = releases_of(rows)
        tables = [sum(counts.values(), Counter()) for _, counts in releases]
        good = all(
            satisfies(counts, tables[t]) and satisfies(counts, tables[-1])
            for t, (_, found) in enumerate(releases)
            for counts in found.values()
        )
        if not good:
            continue
        tried += 1
        worlds = Worlds(releases)
        every = every_world(worlds, releases)
        told = named([shown(one) for one in rows], policy)
        anyhow = named([shown(one) for one in rows], alone)  # a single possible value is too few under any policy
        for path, members in worlds.groups.items():
            people = {person for person, _ in members}
            assert people <= told or not people & told
            whole = any(
                sum(of == number for of in releases[t][0].values()) == len(members)
                for t, number in enumerate(path)
                if number is not None
            )
            certain = not whole and broken([world[path] for world in every], tables[-1])
            if people <= told and not people <= anyhow:
                assert certain, (seed, path)
                some += 1
            elif exact and certain:
                assert people <= anyhow, (seed, path)
    assert tried > 5 and some, (tried, some)
