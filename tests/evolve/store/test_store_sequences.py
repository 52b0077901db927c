"""Long random sequences of batches on a store, with everything proved after every step.

SHOAL_STEPS=10000 runs as many steps; by default there are 240.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.evolve.store.registry import POLICY, kept, make, people, place, same

import shoal
from shoal.errors import InfeasibleError, InputError, UnsupportedError

POLICIES = [
    shoal.KAnonymity(3),
    POLICY,
    shoal.KAnonymity(2) & shoal.TCloseness(0.6, "illness"),
    shoal.KAnonymity(2) & shoal.LDiversity(2, "illness"),
]
STEPS = 40
TAKEN = int(os.environ.get("SHOAL_STEPS", "240"))
# A disk in memory where there is one: waiting for a real one is most of the time.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
SEEDS = st.integers(0, 2**20)


class Sequences(RuleBasedStateMachine):
    """Two processes' worth of stores take turns on one database; a plain dictionary says what should be in it."""

    server: ClassVar[str | None] = None
    taken: ClassVar[int] = 0

    @initialize(seed=SEEDS, policy=st.sampled_from(POLICIES), refine=st.sampled_from([False, True, "thorough"]))
    def begin(self, seed: int, policy: Any, refine: Any) -> None:
        self.stack = ExitStack()
        if self.server is None:
            folder = self.stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY))
            self.url = f"sqlite:///{folder}/registry.db"
        else:
            self.url = self.stack.enter_context(place(self.server))
        self.policy = policy if isinstance(policy, shoal.Policy) else shoal.Policy((policy,))
        first = make(self.url, 16, self.policy, seed=seed, refine=refine)
        self.stores = [first, shoal.Store.open(self.url)]
        self.turn, self.next_key, self.batches = 0, 16, 0
        self.model = {row["id"]: row for row in kept(people(0, 16)).to_dicts()}
        self.before: dict[str, Any] | None = None

    def teardown(self) -> None:
        if hasattr(self, "stores"):
            for store in self.stores:
                store.close()
            self.stack.close()

    @rule(seed=SEEDS, n=st.integers(1, 5), odd=st.booleans())
    def insert(self, seed: int, n: int, odd: bool) -> None:
        rows = self._people(self.next_key, n, seed, odd)
        if self._apply(insert=rows):
            self.next_key += n

    @rule(seed=SEEDS, n=st.integers(1, 4), odd=st.booleans())
    def update(self, seed: int, n: int, odd: bool) -> None:
        keys = self._some(seed, n)
        rows = self._people(0, len(keys), seed, odd).with_columns(id=pl.Series(keys, dtype=pl.String))
        self._apply(update=rows)

    @rule(seed=SEEDS, n=st.integers(1, 5))
    def delete(self, seed: int, n: int) -> None:
        self._apply(delete=self._some(seed, n))

    @rule(seed=SEEDS, gone=st.integers(0, 3), came=st.integers(0, 3))
    def everything(self, seed: int, gone: int, came: int) -> None:
        leaving = self._some(seed, gone)
        stays = sorted(set(self.model) - set(leaving))[:2]
        rows = pl.concat(
            [
                self._people(0, len(stays), seed, False).with_columns(id=pl.Series(stays, dtype=pl.String)),
                self._people(self.next_key, came, seed, True).with_columns(pl.col("id").cast(pl.String)),
            ],
            how="vertical_relaxed",
        )
        if rows.height and self._apply(upsert=rows, **({"delete": leaving} if leaving else {})):
            self.next_key += came

    @rule()
    def again(self) -> None:
        """A batch that was applied is not applied again."""
        if self.batches and self.before is not None:
            assert not self._store().apply(**self.last, batch=f"batch {self.batches}").applied
            with pytest.raises(InputError, match="is something else"):
                self._store().insert(people(10_000, 3), batch=f"batch {self.batches}")

    @rule()
    def undo(self) -> None:
        if self.before is None:
            with pytest.raises(InputError, match="nothing to undo"):
                self._store().undo()
        else:
            self._store().undo()
            self.model, self.before = self.before, None

    @rule()
    def reopen(self) -> None:
        self.stores[0].close()
        self.stores[0] = shoal.Store.open(self.url)

    @precondition(lambda self: self.next_key % 4 == 0)
    @rule()
    def renew(self) -> None:
        self._store().renew()
        self.before = None

    @invariant()
    def everything_holds(self) -> None:
        if not hasattr(self, "stores"):
            return
        type(self).taken += 1
        store = self.stores[0]
        assert store.check().require().records == len(self.model)
        found = store.records()
        expected = pl.DataFrame(list(self.model.values()), schema=found.schema)
        assert same(found, expected)

    def _apply(self, **parts: Any) -> bool:
        self.batches += 1
        try:
            self._store().apply(**parts, batch=f"batch {self.batches}")
            self.last = parts
        except (InfeasibleError, UnsupportedError):
            left = len(self.model) - len(parts.get("delete", []))
            assert left < 3 or len(self.policy.models) > 1, "k-anonymity alone refuses only when too few are left"
            self.batches -= 1
            return False
        self.before, self.model = self.model, dict(self.model)
        for name in ("insert", "update", "upsert"):
            if name in parts:
                rows = kept(parts[name])
                self.model.update({row["id"]: row for row in rows.to_dicts()})
        for key in parts.get("delete", []):
            del self.model[key]
        return True

    def _store(self) -> shoal.Store:
        self.turn += 1
        return self.stores[self.turn % 2]

    def _some(self, seed: int, n: int) -> list[str]:
        keys = sorted(self.model)
        random = np.random.default_rng(seed)
        return [keys[i] for i in random.choice(len(keys), min(n, len(keys)), replace=False)]

    def _people(self, first: int, n: int, seed: int, odd: bool) -> pl.DataFrame:
        rows = people(first, n, seed)
        if odd:  # values never seen before: a number between others, a category, a place, nothing at all
            rows = rows.with_columns(
                age=pl.col("age") + (seed % 8) / 8,
                job=pl.lit(f"job {seed % 50}" if seed % 3 else None, dtype=pl.String),
                zip=pl.lit(f"5{seed % 1000:03}"),
            )
        return rows


def run(machine: type[Sequences], steps: int) -> None:
    machine.taken = 0
    limits = settings(
        # Hypothesis ends many sequences early.
        max_examples=max(1, round(1.6 * steps / STEPS)),
        stateful_step_count=STEPS,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=limits)


def test_sequences_on_sqlite() -> None:
    run(Sequences, TAKEN)
    assert Sequences.taken >= TAKEN


def test_sequences_on_postgresql(server: str) -> None:
    class OnPostgreSQL(Sequences):
        pass

    OnPostgreSQL.server = server
    run(OnPostgreSQL, TAKEN)
    assert OnPostgreSQL.taken >= TAKEN
