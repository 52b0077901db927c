"""The audit of people with several rows: where it says that nobody is exposed, an exact intruder finds nobody."""

from __future__ import annotations

import json
import random

import numpy as np
import polars as pl
from tests.reference.people import exposed

import shoal
from shoal.evolve.releases.guards import Shown
from shoal.evolve.releases.history import Audit, audit_members
from shoal.evolve.releases.people import ROWS, added_to, crowd, goes_on, grown, written
from shoal.policy import Policy
from shoal.schema import Attribute, Schema

HISTORIES = 250
K, P = 2, 2
POLICY = Policy((shoal.KAnonymity(K), shoal.PSensitive(P, "ill")))
SCHEMA = Schema(
    {
        "age": Attribute(role="quasi", kind="number"),
        "ill": Attribute(role="sensitive", kind="category"),
        ROWS: Attribute(role="other", kind="category"),
    }
)
Release = dict[int, tuple[int, tuple[str, ...]]]


def shown(releases: list[Release]) -> list[Shown]:
    """Releases as a store remembers them: which persons and which lines a class has, and not whose each line is."""
    last: dict[int, tuple[int, int, tuple[str, ...]]] = {}
    found = []
    for release in releases:
        rows = sorted((number, person, line) for person, (number, line) in release.items())
        lives, stands = [], []
        for _, person, line in rows:
            life, stand, before = last.get(person, (0, 0, line))
            life, stand = life + (not set(before) & set(line)), stand + (before != line)
            last[person] = (life, stand, line)
            lives.append(life)
            stands.append(stand)
        lines = [line for number, line in sorted((number, line) for number, _, line in rows)]
        frame = pl.DataFrame(
            {
                "age": [number for number, _, _ in rows],
                "ill": [written(line) for line in lines],
                ROWS: [json.dumps([{"ill": value} for value in line]) for line in lines],
            }
        )
        classes, persons = (np.array([row[j] for row in rows], dtype=np.int64) for j in (0, 1))
        own = {"ill": np.array(lives, dtype=np.int64), ROWS: np.array(stands, dtype=np.int64)}
        found.append(Shown(persons, classes, frame, own, dict.fromkeys(classes.tolist(), "a class")))
    return found


def audited(releases: list[Release]) -> Audit:
    return audit_members(shown(releases), SCHEMA, POLICY)


def a_history(number: int) -> list[Release]:
    """Nobody guards it: people stay, go, come back, get further illnesses, in classes as it happens."""
    draw = random.Random(number)
    ills = ["flu", "cold", "ulcer", "gout"][: draw.randint(3, 4)]
    lines = {person: (draw.choice(ills),) for person in range(draw.randint(4, 7))}
    groups = draw.randint(1, 2)
    classes = {person: person % groups for person in lines}
    history = []
    for _ in range(draw.randint(2, 3)):
        there = [person for person in lines if draw.random() < draw.choice([0.8, 1.0])]
        history.append({person: (classes[person], lines[person]) for person in there})
        if draw.random() < 0.5:
            for person in draw.sample(sorted(lines), draw.randint(1, len(lines))):
                lines[person] = tuple(sorted({*lines[person], draw.choice(ills)}))
        for person in draw.sample(sorted(lines), draw.choice([0, 0, 2])):
            classes[person] = draw.randrange(2)
    return [release for release in history if release]


def test_safe_is_safe() -> None:
    """What the intruder finds beyond what single releases tell is never called safe; and not everything is called unsafe."""
    safe = unsafe = 0
    for number in range(HISTORIES):
        history = a_history(number)
        if len(history) < 2 or any(exposed([release], K, P) for release in history):
            continue  # a single release of it would not have been made
        if audited(history).safe:
            safe += 1
            assert not exposed(history, K, P), (number, history)
        else:
            unsafe += 1
    assert safe > 20 and unsafe > 20, (safe, unsafe)


def test_a_finding_names_the_release_and_how_many() -> None:
    before: Release = {0: (0, ("flu",)), 1: (0, ("flu",)), 2: (0, ("cold",)), 3: (0, ("gout",))}
    found = audited([before, {2: (0, ("cold",)), 3: (0, ("gout",))}])
    assert [finding.records for finding in found.found] == [2]
    with shoal.errors.show_values():
        assert any(
            "tells 2 persons of the class (a class) in release 1 apart" in sentence for sentence in found.findings
        )
    assert audited([before, before]).safe


def test_what_cannot_be_told_is_undecided() -> None:
    """Both halves of a class come again, and nothing says which lines each had before."""
    before = {0: (0, ("flu",)), 1: (0, ("cold",)), 2: (0, ("flu",)), 3: (0, ("cold",))}
    grew = {0: (1, ("flu", "gout")), 1: (1, ("cold", "ulcer")), 2: (2, ("flu", "ulcer")), 3: (2, ("cold", "gout"))}
    assert audited([before, grew]).safe  # each cell is a class of its own last
    gone = {0: (1, ("flu", "gout")), 1: (1, ("cold", "ulcer"))}
    found = audited([before, gone])
    assert found.undecided == 2 and not found.safe


def test_sets_and_rows() -> None:
    assert written([None]) is None and written(["b", "a", "b"]) == '["a","b"]'
    assert goes_on(None, None) and not goes_on(None, '["a"]') and goes_on('["a"]', '["a","b"]')
    assert grown(None, None) and not grown(None, '["a"]') and not grown('["a","b"]', '["a"]')
    assert added_to('[{"x":1}]', '[{"x":1},{"x":1}]') and not added_to('[{"x":1},{"x":1}]', '[{"x":1},{"x":2}]')
    crowded = crowd("ill", ['["a","b"]', None, '["b"]'])
    assert (crowded.count, crowded.labels, crowded.owner.tolist(), crowded.rows.codes.tolist()) == (
        3,
        ("a", "b"),
        [0, 0, 2],
        [0, 1, 1],
    )
