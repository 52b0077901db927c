"""What a renewal does for what is published: it lowers its loss where that is safe, or says that it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.evolve.store.test_returns import ILLS, Published, learned, make, rows

import shoal
from shoal.configuration import read_schema
from shoal.evolve.releases.guards import Shown, Table, plan_release
from shoal.policy import Policy

SCHEMA = read_schema({"age": {"role": "quasi", "domain": [0, 100]}, "ill": {"role": "sensitive"}})


def eight(*ages: int) -> pl.DataFrame:
    return rows(*((i, age, ILLS[i % 4]) for i, age in enumerate(ages)))


def wide(tmp_path: Path) -> Published:
    """Eight people of one age are published as one class, and then they all grow older, some sooner than others."""
    store = make(tmp_path, data=eight(*[30] * 8))
    store.release()
    store.update(eight(20, 21, 22, 23, 60, 61, 62, 63))
    return store


def test_a_class_that_came_apart_is_cut(tmp_path: Path) -> None:
    store = wide(tmp_path)
    before = store.release().release.measures.ncp
    done = store.renew()
    assert done.note is not None and f"instead of {before:.4f}" in done.note
    foreseen = store.release(dry_run=True).release.measures.ncp
    after = store.release()
    assert after.release.measures.ncp == foreseen < before / 2 and f"loses {foreseen:.4f} instead" in done.note
    assert len(set(after.masked["age"])) == 4
    assert not learned(store) and store.audit().safe
    again = store.renew()
    assert "cannot be cut finer" in again.note
    assert store.release().masked["age"].sort().to_list() == after.masked["age"].sort().to_list()
    # Those who leave now leave in twos.
    store.delete([0, 1])
    assert store.release().masked.height == 6
    assert not learned(store) and store.audit().safe
    store.check().require()


def test_a_renewal_counts_until_the_next_release(tmp_path: Path) -> None:
    store = wide(tmp_path)
    store.renew()
    store.update(eight(30, 30, 30, 30, 30, 30, 30, 30))
    assert len(set(store.release().masked["age"])) == 1
    store.update(eight(20, 21, 22, 23, 60, 61, 62, 63))
    assert len(set(store.release().masked["age"])) == 1


def test_it_is_advised_only_where_it_helps(tmp_path: Path) -> None:
    for guard, released, advised in (("batching", False, True), ("batching", True, False), ("none", True, True)):
        folder = tmp_path / f"{guard} {released}"
        folder.mkdir()
        store = make(folder, guard).store
        if released:
            store.release()
        more = rows(*((20 + i, 90 - 7 * i, ILLS[i % 4]) for i in range(8)))
        assert (store.insert(more).advice is not None) == advised
        assert (store.renew().note is None) == advised
        store.close()


def test_under_m_invariance_there_is_nothing_to_renew(tmp_path: Path) -> None:
    store = make(tmp_path, "m-invariance").store
    assert store.renew().note is None
    store.release()
    assert store.insert(rows(*((20 + i, 90 - 7 * i, ILLS[i % 4]) for i in range(8)))).advice is None
    assert "cut anew under m-invariance" in (store.renew().note or "")


@pytest.mark.parametrize("seed", range(10))
def test_only_parts_that_satisfy_the_policy(seed: int) -> None:
    """Cohorts of random sizes and values: cut or not, every part of every cohort is good, and the loss does not rise."""
    random = np.random.default_rng(seed)
    n, policy = 40, Policy((shoal.KAnonymity(3), shoal.PSensitive(2, "ill")))
    frame = pl.DataFrame(
        {"age": random.integers(0, 100, n), "ill": [ILLS[min(int(x), 3)] for x in random.geometric(0.5, n) - 1]}
    )
    classes = np.sort(random.integers(0, 3, n))
    before = Shown(np.arange(n), classes, frame)
    moved = frame.with_columns(age=pl.Series(random.integers(0, 100, n)))
    # A cohort that was in two classes before must not be cut as if it were one.
    earlier = [Shown(np.arange(n), (np.arange(n) + classes) % 2, frame)] if seed % 2 else []
    now = Table(np.arange(n), moved, classes)
    plain, cut = (
        plan_release("batching", now, before, SCHEMA, policy, recut=recut, earlier=earlier) for recut in (False, True)
    )
    assert loss(cut.shown) <= loss(plain.shown)
    for number in np.unique(cut.shown.classes):
        inside = np.flatnonzero(cut.shown.classes == number)
        was = np.unique(before.classes[cut.shown.records[inside]])
        assert len(was) == 1
        whole = np.count_nonzero(before.classes == was[0]) == len(inside)
        values = cut.shown.frame["ill"][inside]
        assert whole or (len(inside) >= 3 and values.n_unique() >= 2 and not earlier)


def loss(shown: Shown) -> float:
    found = 0.0
    for number in np.unique(shown.classes):
        ages: Any = shown.frame["age"].filter(pl.Series(shown.classes == number))
        found += (ages.max() - ages.min()) * len(ages)
    return found
