"""Histories of a store with everything that can happen to it, against an exact intruder who shares no code with it.

People come, leave, come back with the same illness or another, are corrected, undone and forgotten; the table is renewed, fed
from another database, released under one guard and then another, and releases are withdrawn. Under a guard nobody is exposed by what is released; without
one, the audit names exactly whom the intruder names.

SHOAL_HISTORIES=2000 tries as many; by default there are 200.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.evolve.store.test_returns import newest
from tests.reference.intruder import exposed, releases_of

import shoal
from shoal.errors import InfeasibleError, InputError, ShoalError, UnsupportedError, VerificationError
from shoal.evolve.releases.decision import Budget
from shoal.evolve.releases.guards import columns_of
from shoal.evolve.releases.history import _Histories
from shoal.evolve.store.archive import read_memory
from shoal.evolve.store.sync import sync
from shoal.io import write_sql

HISTORIES = int(os.environ.get("SHOAL_HISTORIES", "200"))
BLOCKS = 4
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
ILLS = ["flu", "cold", "ulcer", "asthma", "gout"]
K, P = 3, 2
POLICY = shoal.KAnonymity(K) & shoal.PSensitive(P, "ill")
SCHEMA: dict[str, Any] = {"age": {"role": "quasi", "domain": [0, 100]}, "ill": {"role": "sensitive"}}
SEEDS = st.integers(0, 2**20)


class Histories(RuleBasedStateMachine):
    """A store and what an intruder has of it."""

    @initialize(number=SEEDS, guard=st.sampled_from(["none", "batching", "batching", "m-invariance", "m-invariance"]))
    def begin(self, number: int, guard: Any) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.random = np.random.default_rng(number)
        self.guard, self.changed = guard, False
        self.table = {key: self._person(key) for key in range(12)}
        self.away: set[int] = set()
        self.keys: dict[int, int] = {}
        self.known: set[Any] = set()
        self.next_key = 12
        self.before: dict[int, tuple[int, int, str]] | None = None
        self.releases: list[list[tuple[int, int, str]]] = []
        self.withdrawn = False
        self.store = shoal.Store.create(
            f"sqlite:///{self.folder.name}/registry.db",
            self._rows(self.table),
            POLICY,
            key="id",
            schema=SCHEMA,
            algorithm="mondrian",
            refine=False,
            guard=guard,
            m=K if guard == "m-invariance" else None,
        )

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        if self.releases:
            found = self.store.audit()
            assert not found.undecided and sum(finding.records for finding in found.found) == len(self.known)
        self.store.close()
        self.folder.cleanup()

    @rule(n=st.integers(1, 5), back=st.integers(0, 3), other=st.booleans())
    def come(self, n: int, back: int, other: bool) -> None:
        """New people, and some who were here before: with the illness they had, or with another."""
        keys = [*range(self.next_key, self.next_key + n), *self._some(self.away, back)]
        rows = {key: self._person(key, other=other and key in self.away) for key in keys}
        if self._apply(insert=self._rows(rows)):
            self.table |= rows
            self.away -= set(rows)
            self.next_key += n

    @rule(n=st.integers(1, 5))
    def leave(self, n: int) -> None:
        keys = self._some(set(self.table), n)
        if keys and self._apply(delete=keys):
            self._gone(keys)

    @rule(n=st.integers(1, 3), ill=st.booleans())
    def correct(self, n: int, ill: bool) -> None:
        rows = {}
        for key in self._some(set(self.table), n):
            age = int(self.random.integers(100))
            rows[key] = (key, age, ILLS[self.random.integers(5)] if ill else self.table[key][2])
        if self._apply(update=self._rows(rows)):
            self.table |= rows

    @rule(n=st.integers(3, 6), back=st.integers(1, 2), strangers=st.integers(2, 3))
    def readmission(self, n: int, back: int, strangers: int) -> None:
        """Several leave, and when that is published some of them are back among strangers."""
        self.release()
        keys = sorted(self.table, key=lambda key: self.table[key][1])[:n]
        if self._apply(delete=keys):
            self._gone(keys)
            self.release()
            rows = {key: self._person(key) for key in [*range(self.next_key, self.next_key + strangers), *keys[:back]]}
            if self._apply(insert=self._rows(rows)):
                self.table |= rows
                self.away -= set(rows)
                self.next_key += strangers
                self.release()

    @rule()
    def undo(self) -> None:
        if self.before is None:
            with pytest.raises(InputError, match="nothing to undo"):
                self.store.undo()
            return
        self.store.undo()
        self.away = (self.away | set(self.table)) - set(self.before)
        self.table, self.before = self.before, None

    @rule(here=st.booleans())
    def forget(self, here: bool) -> None:
        keys = self._some(set(self.table) if here else self.away, 1)
        if not keys:
            return
        try:
            self.store.forget(keys)
        except InfeasibleError:
            return
        self.before = None
        self._gone(keys)

    @rule()
    def renew(self) -> None:
        self.store.renew()
        self.before = None

    @rule()
    def withdraw(self) -> None:
        """The last release was never handed out: the intruder does not have it."""
        if not self.releases or self.withdrawn:
            with pytest.raises(InputError):
                self.store.withdraw(never_handed_out=True)
            return
        self.store.withdraw(never_handed_out=True)
        self.releases.pop()
        self.known = exposed(releases_of(self.releases), K, P) if self.releases else set()
        self.withdrawn = True

    @rule(n=st.integers(0, 3), back=st.integers(0, 2))
    def sync(self, n: int, back: int) -> None:
        """Another database says who is here: some are discharged, and the discharge of others is taken back."""
        gone, back_again = self._some(set(self.table), n), self._some(self.away, back)
        rows = {key: self._person(key) for key in [*gone, *back_again]}
        if not rows:
            return
        source = f"sqlite:///{self.folder.name}/clinic.db"
        version = int(self.random.integers(10)) + 100 * len(self.store.batches())
        lines = self._rows(rows).with_columns(version=pl.lit(version), gone=pl.col("id").is_in(gone).cast(pl.Int64))
        write_sql(lines, source, "patients", force=True)
        before = dict(self.table)
        try:
            sync(self.store, source, "patients", deleted="gone")
        except InfeasibleError:
            return
        self.before = before
        self._gone(gone)
        for key in back_again:
            self.table[key] = rows[key]
        self.away -= set(back_again)

    @rule()
    def release(self) -> None:
        self._release(self.guard)

    @rule(guard=st.sampled_from(["batching", "m-invariance"]), often=st.integers(0, 3))
    def release_under_another_guard(self, guard: Any, often: int) -> None:
        if often == 0:
            self._release(guard)

    def _release(self, guard: Any) -> None:
        self._note_keys()
        try:
            made = self.store.release(
                guard=guard, m=K if guard == "m-invariance" else None, allow_exposure=guard == "none"
            )
        except VerificationError:
            # Only what another guard let through can stand in the way of this one.
            assert self.changed or guard != self.guard or self.guard == "none"
            return
        except (InfeasibleError, UnsupportedError, InputError):
            return
        self.changed |= guard != self.guard
        self.withdrawn = False
        self.releases.append(self._published())
        now = exposed(releases_of(self.releases), K, P)
        assert not made.audit.undecided
        if guard == "none":
            assert sum(finding.records for finding in self.store.audit().found) == len(now)
            assert self._named() == {key for key, life in now if life >= 0}
        else:
            assert now <= self.known, (now, self.known)
        self.known = now

    def _published(self) -> list[tuple[int, int, str]]:
        """The newest release by key, not by what the store takes for a person; counterfeits are negative."""
        rows = [(self.keys.get(person, person), number, ill) for person, number, ill in newest(self.store)]
        people = [person for person, _, _ in rows if person >= 0]
        assert len(set(people)) == len(people), "somebody is shown twice"
        return rows

    def _named(self) -> set[int]:
        """Whom the audit means: the keys of the people in the cells that it finds exposed."""
        if len(self.releases) < 2:
            return set()
        with self.store._database.reading() as connection:
            like = pl.DataFrame(schema={"age": pl.Int64, "ill": pl.String})
            releases = read_memory(connection, self.store.settings, like).releases
        histories = _Histories(releases, columns_of(releases[-1].frame, self.store.settings.schema), POLICY)
        publications, labels, persons = histories.publications("ill")
        known, cells, _ = histories.judged(publications, len(labels), "ill", Budget())
        people = persons[known.persons[np.isin(known.cell_of, cells)]]
        return {self.keys.get(person, person) for person in people.tolist() if person >= 0}

    def _note_keys(self) -> None:
        with self.store._database.reading() as connection:
            for person, key in connection.execute(sa.text("SELECT person, key FROM shoal_records")):
                assert self.keys.setdefault(person, int(key)) == int(key)

    @invariant()
    def persons_are_known(self) -> None:
        if hasattr(self, "store"):
            self._note_keys()

    def _apply(self, **parts: Any) -> bool:
        before = dict(self.table)
        try:
            applied = self.store.apply(**parts)
        except (InfeasibleError, ShoalError):
            return False
        if applied.applied:
            self.before = before
        return True

    def _gone(self, keys: list[int]) -> None:
        for key in keys:
            self.table.pop(key, None)
        self.away |= set(keys)

    def _some(self, keys: set[int], n: int) -> list[int]:
        found = sorted(keys)
        return sorted(self.random.choice(found, min(n, len(found)), replace=False).tolist()) if found else []

    def _person(self, key: int, other: bool = False) -> tuple[int, int, str]:
        """Somebody as they always are, or with another illness."""
        shift = int(self.random.integers(1, 5)) if other else 0
        return key, (key * 37) % 100, ILLS[(key * 7 + key // 5 + shift) % 5]

    def _rows(self, rows: dict[int, tuple[int, int, str]]) -> pl.DataFrame:
        return pl.DataFrame(
            list(rows.values()), schema={"id": pl.Int64, "age": pl.Int64, "ill": pl.String}, orient="row"
        )


@pytest.mark.parametrize("block", range(BLOCKS))
def test_nobody_is_exposed_by_any_history(block: int) -> None:
    machine: Any = seed(block)(Histories)
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine,
        settings=settings(
            max_examples=HISTORIES // BLOCKS,
            stateful_step_count=6,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            derandomize=False,
            deadline=None,
            database=None,
        ),
    )
