"""Damage: every flipped bit that changes what a store says of its records, classes, releases and those who left is named by the check."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from tests.evolve.store.registry import make, people

import shoal
from shoal.errors import InputError, ShoalError, VerificationError

FLIPS = 300
SEALED = ("shoal_records", "shoal_releases", "shoal_batches", "shoal_snapshot", "shoal_left", "shoal_values")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a past, in one file."""
    folder = tmp_path_factory.mktemp("sound")
    store = make(f"sqlite:///{folder}/registry.db", 120, guard="batching")
    store.release()
    store.apply(insert=people(200, 12), delete=list(range(10)), batch="monday")
    store.release()
    store.update(people(30, 6, seed=3))
    # Older releases are what changed since the one before, and without their tables.
    for week in range(3):
        store.apply(insert=people(300 + 20 * week, 8), delete=list(range(20 + 4 * week, 24 + 4 * week)))
        store.release()
    store.retain(2)
    store.check().require()
    store._database.scrub([])
    store.close()
    return folder / "registry.db"


def read(path: Path) -> Any:
    """What is written in the tables that have seals; an error is an answer too."""
    connection = sqlite3.connect(path)
    try:
        tables = [connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall() for name in SEALED]
        return tables, connection.execute("PRAGMA integrity_check").fetchall()
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        return type(error)
    finally:
        connection.close()


def pages(path: Path) -> list[tuple[int, int]]:
    """Begin and length of every page of the sealed tables and their indexes."""
    with sqlite3.connect(path) as connection:
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        try:
            query = "SELECT pageno FROM dbstat WHERE name IN (SELECT name FROM sqlite_master WHERE tbl_name = ?)"
            numbers = [row[0] for name in SEALED for row in connection.execute(query, (name,))]
        except sqlite3.OperationalError:  # not every SQLite can say whose a page is
            numbers = list(range(1, path.stat().st_size // size + 1))
    connection.close()
    return [((number - 1) * size, size) for number in sorted(numbers)]


def test_every_harmful_bit_is_named(sound: Path, tmp_path: Path) -> None:
    places, before, content = pages(sound), read(sound), sound.read_bytes()
    random = np.random.default_rng(11)
    harmful, unnamed = 0, []
    for _ in range(FLIPS):
        begin, size = places[random.integers(len(places))]
        at, bit = begin + int(random.integers(size)), int(random.integers(8))
        damaged = bytearray(content)
        damaged[at] ^= 1 << bit
        copy = tmp_path / "registry.db"
        copy.write_bytes(damaged)
        if read(copy) == before:
            continue
        harmful += 1
        try:
            store = shoal.Store.open(f"sqlite:///{copy}")
            passed = store.check().passed
            store.close()
        except ShoalError:
            passed = False
        if passed:
            unnamed.append((at, bit))
        for path in tmp_path.iterdir():
            path.unlink()
    assert harmful > 50
    assert not unnamed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            "UPDATE shoal_records SET content = replace(content, 'flu', 'flx') WHERE content LIKE '%flu%'",
            "store update",
        ),
        ("UPDATE shoal_records SET class = class + 1 WHERE number = 40", "store renew"),
        (
            "UPDATE shoal_records SET person = 7 WHERE number = 40",
            r"record number 40, key '40' is not as it was written",
        ),
        (
            "UPDATE shoal_releases SET members = (SELECT members FROM shoal_releases WHERE number = 2)",
            "release 1 is not",
        ),
        ("UPDATE shoal_releases SET shown = faces WHERE number = 5", "rows behind release 5"),
        ("DELETE FROM shoal_releases WHERE number = 1", "release 2 is not remembered"),
        ("UPDATE shoal_left SET person = person + 1 WHERE person = 3", "person 4, who left"),
        ("UPDATE shoal_left SET forgotten = true WHERE person = 3", "person 3, who left"),
        ("UPDATE shoal_meta SET value = substr(value, 2) || substr(value, 1, 1) WHERE name = 'secret'", "who left"),
        ("UPDATE shoal_values SET value = value || 'x' WHERE value = 'nurse'", "a value that column 'job'"),
        ("UPDATE shoal_batches SET counts = '{}' WHERE version = 2", "change 2 in the list"),
    ],
)
def test_damage_is_named_with_the_way_out(sound: Path, tmp_path: Path, change: str, says: str) -> None:
    shutil.copy(sound, tmp_path / "registry.db")
    store = shoal.Store.open(f"sqlite:///{tmp_path}/registry.db")
    with store._database.writing() as connection:
        connection.execute(sa.text(change))
    found = store.check()
    assert not found.passed
    with pytest.raises(VerificationError):
        found.require()
    assert any(re.search(says, problem) for problem in found.problems), found.problems


def test_another_batch_of_the_same_name_is_an_error(sound: Path, tmp_path: Path) -> None:
    shutil.copy(sound, tmp_path / "registry.db")
    store = shoal.Store.open(f"sqlite:///{tmp_path}/registry.db")
    assert not store.apply(insert=people(200, 12), delete=list(range(10)), batch="monday").applied
    for other in ({"insert": people(200, 12)}, {"delete": list(range(11))}, {"insert": people(201, 11), "delete": [0]}):
        with pytest.raises(InputError, match="'monday' was applied as version 2, and what is given now"):
            store.apply(**other, batch="monday")
    assert store.check().passed
