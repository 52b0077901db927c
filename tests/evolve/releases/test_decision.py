"""The audit decides exactly: it names whom the intruder with integer programs names, nobody else and nobody less."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from tests.reference.intruder import Worlds, exposed, releases_of

import shoal
from shoal.configuration import read_schema
from shoal.errors import VerificationError
from shoal.evolve.releases import decision
from shoal.evolve.releases.deduction import deduce
from shoal.evolve.releases.guards import Shown
from shoal.evolve.releases.history import _Histories, audit_members
from shoal.policy import Policy

SCHEMA = read_schema({"age": {"role": "quasi", "domain": [0, 100]}, "ill": {"role": "sensitive"}})
ILLS = ["flu", "cold", "ulcer", "asthma", "gout"]


def history(seed: int) -> list[list[tuple[int, int, str]]]:
    """Releases at random: people come, go, come back and are corrected, and are put into classes of three or so."""
    random = np.random.default_rng(seed)
    people = {i: ILLS[random.integers(2 + seed % 4)] for i in range(int(random.integers(6, 14)))}
    releases = []
    for _ in range(int(random.integers(2, 5))):
        for person in people:
            if random.random() < 0.05:
                people[person] = ILLS[random.integers(5)]
        here = [person for person in people if random.random() < 0.75] or [0]
        random.shuffle(here)
        size = int(random.integers(2, 5))
        releases.append([(person, i // size, people[person]) for i, person in enumerate(here)])
    return releases


def shown(rows: list[tuple[int, int, str]]) -> Shown:
    rows = sorted(rows)
    persons, classes, ills = zip(*rows, strict=True)
    frame = pl.DataFrame({"age": [20 + c for c in classes], "ill": list(ills)})
    return Shown(np.array(persons), np.array(classes), frame)


def named(releases: list[Shown], policy: Policy) -> set[tuple[int, int]]:
    """Person and life of everybody in an exposed cell."""
    histories = _Histories(releases, SCHEMA, policy)
    publications, labels, records = histories.publications("ill")
    known, cells, undecided = histories.judged(publications, len(labels), "ill", decision.Budget())
    assert not len(undecided)
    lives, found = {}, set()
    for unit, record in enumerate(records.tolist()):
        lives[record] = lives.get(record, -1) + 1
        if unit in known.persons and known.cell_of[np.searchsorted(known.persons, unit)] in cells:
            found.add((record, lives[record]))
    return found


@pytest.mark.parametrize("block", range(4))
def test_the_audit_names_whom_the_exact_intruder_names(block: int) -> None:
    more = 0
    for seed in range(60 * block, 60 * (block + 1)):
        rows, p = history(seed), 2 + seed % 2
        policy = shoal.KAnonymity(2 + seed % 3) & shoal.PSensitive(p, "ill")
        releases = [shown(one) for one in rows]
        assert named(releases, policy) == exposed(releases_of(rows), 2 + seed % 3, p), seed
        known = deduce(_Histories(releases, SCHEMA, policy).publications("ill")[0], 6)
        more += bool((known.lower < known.upper).any())
    assert more > 2  # in some of them narrowing bounds left something open


def test_what_only_an_integer_program_finds() -> None:
    """Four cells of one in a ring: no bound narrows, and yet only two worlds fit, which differ in everybody."""
    rows = [
        [(0, 0, "flu"), (1, 0, "cold"), (2, 1, "flu"), (3, 1, "cold"), (4, 2, "ulcer"), (5, 2, "flu")],
        [(0, 0, "flu"), (2, 0, "flu"), (1, 1, "cold"), (3, 1, "cold"), (4, 2, "ulcer"), (5, 2, "flu")],
    ]
    worlds = Worlds(releases_of(rows))
    assert worlds.possible((0, 0)) == {"flu"}
    policy = shoal.KAnonymity(2) & shoal.PSensitive(2, "ill")
    assert named([shown(one) for one in rows], policy) == exposed(releases_of(rows), 2, 2)


def test_a_budget_that_ends_is_not_safety(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = shoal.KAnonymity(2) & shoal.PSensitive(2, "ill")
    releases = {seed: [shown(one) for one in history(seed)] for seed in range(30)}
    full = {seed: audit_members(one, SCHEMA, policy) for seed, one in releases.items()}
    assert not any(found.undecided for found in full.values())
    monkeypatch.setattr(decision, "UNKNOWNS", 0)
    left = {seed: audit_members(one, SCHEMA, policy) for seed, one in releases.items()}
    open_ones = [seed for seed, found in left.items() if found.undecided]
    assert open_ones
    for seed in open_ones:
        assert not left[seed].safe and left[seed].to_dict()["undecided"] == left[seed].undecided
        assert {f.sentence for f in left[seed].found} <= {f.sentence for f in full[seed].found}
        with pytest.raises(VerificationError, match=r"could not be decided|exposes records"):
            left[seed].require()


def test_m_invariance_needs_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "UNKNOWNS", 0)
    random = np.random.default_rng(3)
    releases = []
    for _ in range(6):  # everybody keeps a signature of three, in classes that are drawn anew
        rows, number = [], 0
        for bucket in range(2):
            columns = [random.permutation(10) * 3 + value + 30 * bucket for value in range(3)]
            for people in zip(*columns, strict=True):
                rows += [(int(person), number, ILLS[person % 3 + bucket]) for person in people]
                number += 1
        releases.append(rows)
    found = audit_members([shown(one) for one in releases], SCHEMA, shoal.KAnonymity(3) & shoal.PSensitive(3, "ill"))
    assert found.safe
