"""I3M through long random histories: after every step a partition, a policy kept, everything tracked as recomputed.

For k alone the naive twin follows step by step, class number by class number. About ten thousand steps in all.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import polars as pl
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.reference import i3m as reference
from tests.reference.k_member import Table

import shoal
from shoal.errors import InfeasibleError, InputError, ShoalError
from shoal.evolve.i3m.classes import Batch, Binding, Change, Classes
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Policy

POOL = 60
ROOM = 6_000
MOST = 40

sources = st.lists(st.integers(0, POOL - 1), min_size=1, max_size=5)
places = st.lists(st.integers(0, 10_000), min_size=1, max_size=5)


@cache
def pool() -> Microdata:
    """The values that records may have: ties, missing values, a taxonomy, a category without one."""
    random = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "age": [None if random.random() < 0.08 else int(x) for x in random.integers(20, 40, POOL)],
            "zip": [f"{a}{b}" for a, b in random.integers(0, 3, (POOL, 2))],
            "colour": [f"c{i}" for i in np.minimum(random.geometric(0.5, POOL), 5)],
            "illness": [None if random.random() < 0.05 else f"v{x}" for x in random.integers(0, 4, POOL)],
        }
    )
    schema = {
        "age": {"role": "quasi", "domain": [0, 100]},
        "zip": {"role": "quasi", "taxonomy": {"prefix": [1, 0]}},
        "colour": {"role": "quasi"},
        "illness": {"role": "sensitive"},
    }
    return Microdata.from_frame(frame, schema)


class History(RuleBasedStateMachine):
    """A table that changes. `present` says what every record is, kept here independently."""

    policy: ClassVar[Policy] = Policy((shoal.KAnonymity(3),))
    measure: ClassVar[Any] = "ncp"

    @initialize(first=st.integers(0, POOL - 1))
    def start(self, first: int) -> None:
        # Places of the dead are forgotten at once, so that this is tried all the time.
        self.patch = mock.patch("shoal.evolve.i3m.classes.SPARE", 0)
        self.patch.start()
        self.data = pool()
        self.binding = Binding(self.policy, self.data.sensitive)
        self.secrets = self.binding.codes()
        # Twenty different records in one class satisfy every policy here.
        sources = [(first + i) % POOL for i in range(20)]
        self.present = dict(enumerate(sources))
        self.classes = Classes(
            self.data.space(self.measure),
            self.data.codes[sources],
            np.zeros(len(sources), dtype=int),
            self.binding,
            self.secrets[sources],
        )

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.stop()

    def some(self, places: list[int]) -> list[int]:
        records = sorted(self.present)
        return list(dict.fromkeys(records[place % len(records)] for place in places)) if records else []

    def step(self, gone: list[int], new_versions: dict[int, int], new: list[int]) -> None:
        """Do it, or see that nothing has changed."""
        before = self.classes.labels.tolist(), self.classes.loss, self.classes.next_class
        after = {r: s for r, s in {**self.present, **new_versions}.items() if r not in gone}
        updated = list(new_versions.values())
        try:
            change = self.classes.apply(
                delete=gone,
                update=Batch(self.data.codes[updated], self.secrets[updated], list(new_versions)),
                insert=Batch(self.data.codes[new], self.secrets[new]),
            )
        except ShoalError as reason:
            assert (self.classes.labels.tolist(), self.classes.loss, self.classes.next_class) == before
            self.refused(len(after) + len(new), reason)
            return
        after |= dict(zip(change.inserted.tolist(), new, strict=True))
        self.followed(gone, new_versions, dict(zip(change.inserted.tolist(), new, strict=True)))
        self.present = after
        assert change.deleted.tolist() == sorted(gone)
        assert change.updated.tolist() == list(new_versions)

    def refused(self, records: int, reason: ShoalError) -> None:
        """Never for k alone, unless there are too few records; a good single class would be a way for others."""
        if records >= self.classes.rules.k:
            assert not self.policy.models[1:] or isinstance(reason, InfeasibleError), reason
            assert self.policy.models[1:]

    def followed(self, gone: list[int], new_versions: dict[int, int], new: dict[int, int]) -> None:
        """For the twin."""

    def rearranged(self, change: Change) -> None:
        """For the twin."""

    @rule(new=sources)
    def insert(self, new: list[int]) -> None:
        if len(self.present) + len(new) <= MOST:
            self.step([], {}, new)

    @rule(who=places)
    def delete(self, who: list[int]) -> None:
        self.step(self.some(who), {}, [])

    @rule(who=places, values=sources)
    def update(self, who: list[int], values: list[int]) -> None:
        self.step([], dict(zip(self.some(who), values, strict=False)), [])

    @rule(who=places, values=sources, new=sources)
    def everything(self, who: list[int], values: list[int], new: list[int]) -> None:
        chosen = self.some(who)
        half = len(chosen) // 2
        room = new if len(self.present) < MOST else []
        self.step(chosen[:half], dict(zip(chosen[half:], values, strict=False)), room)

    @precondition(lambda self: len(self.present) > 30)
    @rule()
    def delete_most(self) -> None:
        self.step(sorted(self.present)[::2] + sorted(self.present)[1::4], {}, [])

    @rule()
    def optimize(self) -> None:
        loss = self.classes.loss
        self.rearranged(self.classes.optimize())
        assert self.classes.loss <= loss + 1e-9

    @rule()
    def write_down_and_go_on(self) -> None:
        old = self.classes
        self.classes = Classes(
            old.space, old.codes, old.labels, old.bind, old.sensitive, records=old.records, baseline=old.baseline,
            changed=old.changed, next_class=old.next_class, next_record=old.next_record,
        )  # fmt: skip

    @rule()
    def a_record_that_is_not_there(self) -> None:
        labels = self.classes.labels.tolist()
        with pytest.raises(InputError):
            self.classes.delete([*sorted(self.present)[:2], self.classes.next_record])
        assert self.classes.labels.tolist() == labels

    @invariant()
    def all_is_well(self) -> None:
        classes, records = self.classes, sorted(self.present)
        of = [self.present[record] for record in records]
        assert classes.records.tolist() == records
        assert classes.n == len(records)
        assert np.array_equal(classes.codes, self.data.codes[of])
        assert np.array_equal(classes.sensitive, self.secrets[of])
        partition = Partition.compact(classes.labels)
        assert np.array_equal(partition.sizes, classes.sizes)
        assert classes.numbers.tolist() == np.unique(classes.labels).tolist()
        rules = self.binding(self.secrets[of])
        assert (rules.deficits(partition.labels, partition.classes) <= 0).all()
        states = classes.space.states(self.data.codes[of], partition.order, partition.starts)
        assert np.array_equal(states, classes.states)
        assert classes.loss == pytest.approx(float(classes.space.unit(states) @ partition.sizes), abs=1e-9)


class HistoryOfK(History):
    """k alone: the twin decides every single record."""

    @initialize(first=st.integers(0, POOL - 1))
    def start(self, first: int) -> None:
        super().start(first)
        sources = list(self.present.values())
        self.table = Table(self.data, self.measure)
        self.table.codes = np.zeros((ROOM, len(self.data.domains)), dtype=np.int64)
        self.table.codes[: len(sources)] = self.data.codes[sources]
        self.twin = reference.Classes(self.table, dict.fromkeys(range(len(sources)), 0), self.classes.rules.k)

    def followed(self, gone: list[int], new_versions: dict[int, int], new: dict[int, int]) -> None:
        self.twin.delete([*gone, *new_versions])
        coming = new_versions | new
        for record, source in coming.items():
            self.table.codes[record] = self.data.codes[source]
        self.twin.insert(coming)

    def rearranged(self, change: Change) -> None:
        wanted = reference.il_optimization(
            self.data, self.table, [self.twin.classes[c] for c in sorted(self.twin.classes)]
        )
        assert [self.classes.members(int(c)).tolist() for c in self.classes.numbers] == wanted
        self.twin.classes = {int(c): self.classes.members(int(c)).tolist() for c in self.classes.numbers}

    @invariant()
    def as_the_twin(self) -> None:
        wanted = self.twin.labels()
        assert self.classes.labels.tolist() == [wanted[record] for record in self.classes.records.tolist()]


class Loss(HistoryOfK):
    """IL and the smallest k."""

    policy = Policy((shoal.KAnonymity(2),))
    measure = "il"


class Diverse(History):
    """More records never hurt."""

    policy = Policy((shoal.KAnonymity(3), shoal.PSensitive(p=2)))


class Shares(History):
    """A record can spoil a class."""

    policy = Policy((shoal.KAnonymity(2), shoal.AlphaK(alpha=0.6)))


class Entropy(History):
    """A record can spoil a class, and the table does not matter."""

    policy = Policy((shoal.KAnonymity(2), shoal.LDiversity(l=1.8, variant="entropy")))


class Close(History):
    """Every record changes what all classes are compared with."""

    policy = Policy((shoal.KAnonymity(3), shoal.TCloseness(t=0.45, distance="equal")))


def long(examples: int) -> settings:
    # Histories this long would be shrunk for many minutes, and a failing one can be read as it is.
    return settings(
        max_examples=examples,
        stateful_step_count=100,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
    )


TestHistoryOfK = HistoryOfK.TestCase
TestLoss = Loss.TestCase
TestDiverse = Diverse.TestCase
TestShares = Shares.TestCase
TestEntropy = Entropy.TestCase
TestClose = Close.TestCase
TestHistoryOfK.settings = long(25)
TestLoss.settings = long(20)
TestDiverse.settings = long(20)
TestShares.settings = long(12)
TestEntropy.settings = long(12)
TestClose.settings = long(12)
