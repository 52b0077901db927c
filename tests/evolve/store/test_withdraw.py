"""Releases that nobody has, withdrawn; and dry runs of every change: nothing is written, and what they foretell comes true."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sqlalchemy as sa
from tests.evolve.store.registry import make as make_registry
from tests.evolve.store.registry import people
from tests.evolve.store.test_returns import ILLS, first, learned, make, newest, rows
from tests.reference.intruder import exposed, releases_of

import shoal
from shoal.errors import ConfigError, InputError
from shoal.evolve.store import tables
from shoal.evolve.store.changes import read_frame
from shoal.evolve.store.sync import sync
from shoal.io import write_sql


def content(store: Any) -> dict[str, list[tuple[Any, ...]]]:
    """Every cell of every table."""
    found = {}
    with store._database.reading() as connection:
        for table in tables.metadata.sorted_tables:
            found[table.name] = [tuple(row) for row in connection.execute(sa.select(table))]
    return found


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("guard", ["batching", "m-invariance", "none"])
@pytest.mark.parametrize("change", ["insert", "delete", "undo", "forget", "forget who left", "sync"])
def test_a_dry_run_writes_nothing_and_foretells_what_comes(tmp_path: Path, guard: str, change: str) -> None:
    store = make(tmp_path, guard).store
    store.release()
    store.delete([7])
    store.insert(rows((8, 25, "flu"), (9, 26, "cold")))
    source = f"sqlite:///{tmp_path}/clinic.db"
    lines = rows((0, 20, "flu"), (20, 40, "asthma")).with_columns(version=pl.lit(3), gone=pl.Series([1, 0]))
    write_sql(lines, source, "patients")

    def do(dry_run: bool) -> Any:
        if change == "insert":
            return store.apply(insert=rows((12, 30, "HIV")), dry_run=dry_run)
        if change == "delete":
            return store.apply(delete=[0, 1], dry_run=dry_run)
        if change == "undo":
            return store.undo(dry_run=dry_run)
        if change == "sync":
            return sync(store, source, "patients", deleted="gone", dry_run=dry_run).applied
        return store.forget([7 if change == "forget who left" else 0], dry_run=dry_run)

    before, file = content(store), digest(tmp_path / "registry.db")
    would = do(True)
    assert content(store) == before and digest(tmp_path / "registry.db") == file
    assert would.prospect is not None and "prospect" in would.to_dict()
    done = do(False)
    assert done == would and done.prospect is None and "prospect" not in done.to_dict()
    if would.prospect.refused is not None:
        with pytest.raises(shoal.ShoalError) as refused:
            store.release()
        assert str(refused.value) == would.prospect.refused
        return
    made = store.release(dry_run=True)
    told = asdict(would.prospect)
    assert (told["shown"], told["waiting"], told["loss"]) == (
        made.masked.height,
        made.waiting,
        made.release.measures.ncp,
    )
    assert (list(told["findings"]), told["counterfeits"]) == (made.audit.findings, made.counterfeits)
    assert guard == "none" or not told["findings"]
    store.check().require()


def test_a_dry_run_says_that_a_release_would_be_refused(tmp_path: Path) -> None:
    store = make(tmp_path, "m-invariance")
    would = store.apply(delete=[1, 3, 5, 7], insert=rows(*((20 + i, 30, "flu") for i in range(4))), dry_run=True)
    assert would.prospect.refused is not None and "allows no value more than" in would.prospect.refused
    assert would.prospect.loss is None


@pytest.mark.parametrize("guard", ["batching", "m-invariance"])
def test_a_withdrawn_release_is_as_if_it_had_never_been(tmp_path: Path, guard: str) -> None:
    """One store makes a release and withdraws it, its twin never made it: what they release next is the same."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = make(tmp_path / "one", guard).store, make(tmp_path / "two", guard).store
    for store in (one, two):
        store.release()
        store.apply(delete=[0, 1], insert=rows(*((20 + i, 30 + i, ILLS[i]) for i in range(4))))
    tested = one.release()
    done = one.withdraw(never_handed_out=True)
    assert (done.number, done.last) == (2, 1)
    for store in (one, two):
        store.apply(delete=[20, 4], insert=rows((0, 20, "flu"), (30, 50, "gout"), (31, 51, "HIV")))
    again, only = one.release(), two.release()
    assert (again.number, only.number) == (3, 2)
    assert again.masked.equals(only.masked) and again.waiting == only.waiting
    assert not again.masked.equals(tested.masked)
    assert one.audit().facts == two.audit().facts
    one.check().require()
    assert [line["withdrawn"] is not None for line in one.history()] == [False, True, False]
    assert one.status()["releases"] == 2
    assert one.history()[1]["records"] == tested.masked.height


def test_the_audit_is_blind_to_what_was_handed_out_all_the_same(tmp_path: Path) -> None:
    """Why the owner's word counts: with the withdrawn release in hand somebody is exposed, and the audit cannot know."""
    store = make(tmp_path, "batching")
    store.release()
    store.insert(rows((20, 20, "flu"), (21, 21, "cold"), (22, 22, "HIV"), (23, 23, "gout")))
    store.release()
    store.store.withdraw(never_handed_out=True)
    store.delete([20])
    store.insert(rows((24, 20, "ulcer"), (25, 20, "mumps")))
    store.release()
    assert not store.audit().exposed and not exposed(releases_of([store.releases[0], store.releases[2]]), 2, 2)
    assert learned(store)


def test_only_the_last_release_and_only_on_somebodys_word(tmp_path: Path) -> None:
    store = make(tmp_path).store
    with pytest.raises(InputError, match="no release to withdraw"):
        store.withdraw(never_handed_out=True)
    store.release()
    before = content(store)
    with pytest.raises(ConfigError, match=r"Release 1 can be withdrawn only if nobody has it: say so"):
        store.withdraw(never_handed_out=False)
    for word in (None, "yes", 1):
        with pytest.raises(ConfigError, match=r"never_handed_out = .* it must be True or False"):
            store.withdraw(never_handed_out=word)  # type: ignore[arg-type]
    assert content(store) == before
    assert store.withdraw(never_handed_out=True).last is None
    assert store.status()["releases"] == 0 and store.status()["last_release"] is None
    with pytest.raises(InputError, match="has been withdrawn already"):
        store.withdraw(never_handed_out=True)
    with pytest.raises(InputError, match="no releases yet"):
        store.audit()
    with pytest.raises(InputError, match="Release 1 was withdrawn and is not kept"):
        store.export(1, tmp_path / "x.csv")
    assert store.release().number == 2
    store.insert(rows((20, 20, "flu"), (21, 21, "cold")))
    assert store.release().number == 3
    assert store.withdraw(never_handed_out=True).last == 2
    with pytest.raises(InputError, match=r"Release 3, the last one, has been withdrawn already"):
        store.withdraw(never_handed_out=True)
    store.check().require()


def test_what_is_needed_to_withdraw_is_kept_of_two_releases_only(tmp_path: Path) -> None:
    store = make(tmp_path).store
    for i in range(4):
        store.insert(rows((20 + 2 * i, 20, "flu"), (21 + 2 * i, 21, "cold")))
        store.release()
    with store._database.writing() as connection:
        kept = connection.execute(sa.text("SELECT number FROM shoal_releases WHERE shown IS NOT NULL")).scalars().all()
        assert sorted(kept) == [3, 4]
        nothing = "UPDATE shoal_releases SET shown = NULL, faces = NULL WHERE number = 3"
        connection.execute(sa.text(nothing))
    with pytest.raises(InputError, match=r"would follow release 3, and the rows behind that are not kept"):
        store.withdraw(never_handed_out=True)


def test_findings_name_releases_by_their_numbers(tmp_path: Path) -> None:
    store = make(tmp_path, "none").store
    store.release()
    store.withdraw(never_handed_out=True)
    store.release()
    store.insert(rows((20, 20, "HIV")))
    found = store.release(allow_exposure=True).audit
    assert found.found and {finding.release for finding in found.found} == {3}
    assert all("Comparing releases 2 and 3" in sentence for sentence in found.findings)
    assert store.audit().findings == found.findings


def test_rows_that_can_be_followed_over_a_withdrawn_release(tmp_path: Path) -> None:
    store = make_registry(f"sqlite:///{tmp_path}/registry.db")
    store.release()
    store.insert(people(60, 5))
    store.release(allow_exposure=True)
    store.withdraw(never_handed_out=True)
    found = store.release(allow_exposure=True).audit
    followed = [finding for finding in found.found if finding.attack == "tracing"]
    assert all("releases 1 and 3" in finding.sentence and finding.release == 3 for finding in followed)
    assert store.audit().exposed == found.exposed


def test_who_is_forgotten_is_forgotten_in_the_release_that_is_kept_for_withdrawing(tmp_path: Path) -> None:
    store = make(tmp_path).store
    store.release()
    store.delete([0, 1, 2, 3])
    store.release()
    store.forget([0])
    store.withdraw(never_handed_out=True)
    assert len(newest(store)) == 8
    with store._database.reading() as connection:
        shown = connection.execute(sa.text("SELECT shown FROM shoal_releases WHERE number = 1")).scalar()
    lines = read_frame(shown)
    assert lines.filter(pl.col("__record") == 0)["age"].item() == lines.filter(pl.col("__record") == 1)["age"].item()
    assert first()["age"][0] not in lines["age"].to_list()
    assert store.release().masked.height == 4
    store.check().require()
