"""People who come back: under every guard they are who they were, and an exact intruder learns nothing more about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import sqlalchemy as sa
from tests.reference.intruder import exposed, releases_of

import shoal
from shoal.errors import VerificationError
from shoal.evolve.store.archive import read_memory
from shoal.evolve.store.sync import sync
from shoal.io import write_sql

SCHEMA: dict[str, Any] = {"age": {"role": "quasi", "domain": [0, 100]}, "ill": {"role": "sensitive"}}
POLICY = shoal.KAnonymity(2) & shoal.PSensitive(2, "ill")
ILLS = ["flu", "cold", "ulcer", "asthma"]


def rows(*people: tuple[int, int, str]) -> pl.DataFrame:
    return pl.DataFrame(people, schema={"id": pl.Int64, "age": pl.Int64, "ill": pl.String}, orient="row")


def first(n: int = 8) -> pl.DataFrame:
    """Neighbours in age are a class of two, with two illnesses."""
    return rows(*((i, 10 * (i // 4) + i % 4 + 20, ILLS[i % 4]) for i in range(n)))


def make(folder: Path, guard: Any = "batching", policy: Any = POLICY, **more: Any) -> Published:
    made = shoal.Store.create(
        f"sqlite:///{folder}/registry.db",
        more.pop("data", first()),
        policy,
        key="id",
        schema=SCHEMA,
        algorithm="mondrian",
        refine=False,
        guard=guard,
        m=2 if guard == "m-invariance" else None,
        **more,
    )
    return Published(made)


class Published:
    """A store whose releases are noted by the test: person, class and illness of every row; counterfeits are negative."""

    def __init__(self, store: shoal.Store) -> None:
        self.store = store
        self.releases: list[list[tuple[int, int, str]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def release(self, *args: Any, **more: Any) -> Any:
        made = self.store.release(*args, **more)
        self.releases.append(newest(self.store))
        return made


def newest(store: shoal.Store) -> list[tuple[int, int, str]]:
    """The rows behind the newest release."""
    with store._database.reading() as connection:
        like = pl.DataFrame(schema={"age": pl.Int64, "ill": pl.String})
        shown = read_memory(connection, store.settings, like).before
    assert shown is not None
    return list(zip(shown.records.tolist(), shown.classes.tolist(), shown.frame["ill"], strict=True))


def learned(store: Published, k: int = 2, p: int = 2) -> set[Any]:
    return exposed(releases_of(store.releases), k, p)


@pytest.mark.parametrize("guard", ["batching", "m-invariance"])
def test_who_left_with_others_and_is_back_with_strangers(tmp_path: Path, guard: str) -> None:
    store = make(tmp_path, guard)
    store.release()
    store.delete([0, 1, 2, 3])
    store.release()
    store.insert(rows((0, 20, "flu"), (20, 21, "HIV"), (21, 22, "gout"), (22, 23, "mumps")))
    made = store.release()
    assert not learned(store) and not store.audit().exposed
    if guard == "batching":  # the others are shown; 0 would have flu, the only illness that both classes know
        assert (made.waiting["insertions"], made.masked.height) == (1, 7)
        store.insert(rows((1, 50, "cold")))
        both = store.release()  # those two were a class
        assert (both.waiting["insertions"], both.masked.height) == (0, 9)
        assert not learned(store) and not store.audit().exposed


@pytest.mark.parametrize("guard", ["batching", "m-invariance"])
def test_who_is_back_while_the_deletion_waits_is_shown_once(tmp_path: Path, guard: str) -> None:
    store = make(tmp_path, guard)
    store.release()
    store.delete([0])
    waits = store.release()
    assert waits.waiting["deletions"] == (guard == "batching")
    store.insert(rows((0, 20, "flu")))
    again = store.release()
    assert (again.waiting, again.masked.height) == ({"insertions": 0, "deletions": 0, "updates": 0}, 8)
    assert not learned(store) and not store.audit().exposed


@pytest.mark.parametrize("guard", ["batching", "m-invariance"])
def test_an_insertion_that_was_published_taken_back_and_made_again_with_others(tmp_path: Path, guard: str) -> None:
    store = make(tmp_path, guard)
    store.release()
    store.insert(rows((8, 60, "flu"), (9, 61, "cold")))
    store.release()
    store.undo()
    store.release()
    store.insert(rows((8, 60, "flu"), (10, 61, "HIV"), (11, 62, "gout")))
    store.release()
    assert not learned(store) and not store.audit().exposed
    with store._database.reading() as connection:
        persons = connection.execute(sa.text("SELECT person FROM shoal_records WHERE key = '8'")).scalar()
    assert persons == 8


def test_a_feed_in_which_a_discharge_is_taken_back(tmp_path: Path) -> None:
    store = make(tmp_path)
    store.release()
    source = f"sqlite:///{tmp_path}/clinic.db"

    def clinic(version: int, *here: int) -> None:
        away = [None if i in here else "2024-05-01" for i in range(8)]
        more = first().with_columns(version=pl.lit(version), discharged_at=pl.Series(away, dtype=pl.String))
        write_sql(more, source, "patients", force=True)
        sync(store.store, source, "patients", deleted="discharged_at")

    clinic(1, 4, 5, 6, 7)
    store.release()
    clinic(2, 0, 4, 5, 6, 7)
    store.insert(rows((20, 21, "HIV"), (21, 22, "gout")))
    made = store.release()
    assert (made.waiting["insertions"], made.masked.height) == (1, 6)
    assert not learned(store) and not store.audit().exposed
    clinic(3, *range(8))
    assert store.release().masked.height == 10
    assert not learned(store) and not store.audit().exposed


def test_without_a_guard_the_audit_knows_who_is_back(tmp_path: Path) -> None:
    store = make(tmp_path, "none")
    store.release()
    store.delete([0, 1, 2, 3])
    store.release()
    store.insert(rows((0, 20, "flu"), (20, 21, "HIV"), (21, 22, "gout"), (22, 23, "mumps")))
    with pytest.raises(VerificationError, match="1 record that left the class"):
        store.release()
    store.release(allow_exposure=True)
    named = {life[0] for life in learned(store)}
    assert 0 in named and store.audit().exposed


def test_with_another_value_who_is_back_is_new(tmp_path: Path) -> None:
    store = make(tmp_path)
    store.release()
    store.delete([0, 1, 2, 3])
    store.release()
    store.insert(rows((0, 20, "HIV"), (1, 21, "gout")))
    made = store.release()
    assert (made.waiting["insertions"], made.masked.height) == (0, 6)
    assert not learned(store) and not store.audit().exposed
    # The others of the old class cannot come back without those two: what they had would be the difference.
    store.insert(rows((2, 22, "ulcer")))
    assert store.release().waiting["insertions"] == 1
    assert not learned(store)


def test_who_is_back_goes_on_with_the_old_signature(tmp_path: Path) -> None:
    store = make(tmp_path, "m-invariance")
    random = np.random.default_rng(1)
    store.release()
    here, away = set(range(8)), set()
    table = {row[0]: row for row in first(40).rows()}
    for turn in range(8):
        gone = set(random.choice(sorted(here), 3, replace=False).tolist())
        back = set(random.choice(sorted(away), min(len(away), 2), replace=False).tolist()) if away else set()
        new = {8 + 2 * turn, 9 + 2 * turn}
        store.apply(insert=rows(*(table[i] for i in sorted(back | new))), delete=sorted(gone))
        here, away = here - gone | back | new, (away | gone) - back
        store.release()
    assert not learned(store) and not store.audit().exposed


def test_without_sensitive_attributes_a_cohort_is_its_number(tmp_path: Path) -> None:
    people = pl.DataFrame({"id": range(8), "age": range(20, 28)})
    schema = {"age": {"role": "quasi", "domain": [0, 100]}}
    url = f"sqlite:///{tmp_path}/registry.db"
    store = shoal.Store.create(url, people, shoal.KAnonymity(4), key="id", schema=schema, algorithm="mondrian")
    store.release()
    store.delete([0, 1, 2, 3])
    assert store.release().masked.height == 4
    store.insert(people[:3])
    assert store.release().waiting["insertions"] == 3
    store.insert(people[3:4])
    assert store.release().masked.height == 8
    assert not store.audit().exposed


def test_who_was_told_apart_without_a_guard_and_is_back_waits_under_batching(tmp_path: Path) -> None:
    """Two releases without a guard tell 0 apart from everybody; alone it is a cohort, and too small to be a class."""
    store = make(tmp_path, "none")
    store.release(allow_exposure=True)
    store.delete([0])
    store.release(allow_exposure=True)
    store.insert(rows((0, 20, "flu")))
    made = store.release(guard="batching", allow_exposure=True)
    assert (made.waiting["insertions"], made.masked.height) == (1, 7)
    store.check().require()
