"""Merging runs: the best of what whole classes can make, always within the policy, never worse than any of the runs."""

from __future__ import annotations

from fractions import Fraction
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from tests.reference.merging import least
from tests.tables import random_table

import shoal
from shoal import exact
from shoal.algorithms import run
from shoal.errors import Cancelled
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.progress import Progress
from shoal.refine import box_search as searching
from shoal.refine import merging
from shoal.refine.box_tables import Encoded, by_class, encode
from shoal.refine.effort import SECOND
from shoal.refine.merging import Pool, schedule, worth_merging

POLICIES = [
    Policy((shoal.KAnonymity(2),)),
    Policy((shoal.KAnonymity(3),)),
    shoal.KAnonymity(2) & shoal.PSensitive(2),
    shoal.KAnonymity(2) & shoal.TCloseness(0.6),
]


def encoded(data: Microdata, policy: Policy) -> Encoded:
    return encode(data.codes, data.space("ncp"), data.rules(policy), np.arange(data.n), Progress(), budget=10**9)


def some_classes(whole: Encoded, seed: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A partition by chance: records in a random order, cut where what was gathered is good."""
    random, rules = np.random.default_rng(seed), whole.rules
    labels, gathered, number = np.zeros(len(whole.codes), dtype=np.int64), [], 0
    for record in random.permutation(len(whole.codes)).tolist():
        gathered.append(record)
        if rules.ok(np.array(gathered)):
            labels[gathered] = number
            gathered, number = [], number + 1
    labels[gathered] = max(0, number - 1)
    return labels


def loss_of(whole: Encoded, labels: np.ndarray[Any, np.dtype[np.int64]]) -> Fraction:
    units = exact.ticks(whole.space.unit(whole.space.states(whole.codes, *by_class(labels))))
    return sum((Fraction(u) * int(s) for u, s in zip(units, np.bincount(labels), strict=True)), Fraction(0))


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_the_best_that_whole_classes_can_make(policy: Policy) -> None:
    gained = 0
    for seed in range(25):
        whole = encoded(random_table(seed, 14, duplicates=0.6), policy)
        partitions = [labels for labels in (some_classes(whole, draw) for draw in range(4)) if good(whole, labels)]
        if not partitions:
            continue
        pool = Pool(whole, partitions[0])
        for labels in partitions:
            pool.add(labels)
        runs = pool.least
        classes = [
            (dict(zip(c.points.tolist(), c.counts.tolist(), strict=True)), Fraction(c.ticks))
            for c in pool.columns.values()
        ]
        alone = dict(zip(pool.alone.tolist(), map(Fraction, pool.alone_ticks), strict=True))
        assert pool.merge(seed) > 0
        assert good(whole, pool.best) and loss_of(whole, pool.best) == pool.least
        expected = least(dict(enumerate(pool.amounts.tolist())), classes, alone, whole.rules.k)
        # Prices are rounded to a four millionth of the whole.
        assert float(expected) <= pool.least <= float(expected) + 1e-4 * runs
        gained += pool.least < runs
    assert gained > 5


def good(whole: Encoded, labels: np.ndarray[Any, np.dtype[np.int64]]) -> bool:
    return not (whole.rules.deficits(labels.astype(np.int32), int(labels.max()) + 1) > 0).any()


def test_a_program_that_stays_open_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = encoded(random_table(3, 40), POLICIES[0])
    pool = Pool(whole, some_classes(whole, 0))
    for draw in range(5):
        pool.add(some_classes(whole, draw))
    before, best = pool.least, pool.best
    monkeypatch.setattr("scipy.optimize.milp", lambda *args, **options: type("Open", (), {"status": 1, "x": None}))
    assert pool.merge(1) > 0
    assert pool.least == before and pool.best is best


@pytest.mark.parametrize(("limit", "value"), [("OPEN", -1), ("ITERATIONS", 0)])
def test_a_program_that_leaves_too_much_open_is_not_begun(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = encoded(random_table(3, 40, duplicates=0.6), POLICIES[0])
    pool = Pool(whole, some_classes(whole, 0))
    for draw in range(5):
        pool.add(some_classes(whole, draw))
    before, best = pool.least, pool.best
    monkeypatch.setattr(merging, limit, value)
    monkeypatch.setattr("scipy.optimize.milp", lambda *args, **options: pytest.fail("it was begun"))
    assert pool.merge(1) > 0
    assert pool.least == before and pool.best is best


def test_the_oldest_classes_leave_and_those_that_come_again_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = encoded(random_table(4, 60, duplicates=0.0), POLICIES[1])
    first, second, third = (some_classes(whole, draw) for draw in range(3))
    pool = Pool(whole, first)
    pool.add(first)
    one = list(pool.columns)
    monkeypatch.setattr(merging, "ENTRIES", 2 * pool.entries + 5)
    pool.add(second)
    pool.add(first)
    assert list(pool.columns)[-len(one) :] == one
    pool.add(third)
    assert pool.entries <= merging.ENTRIES
    assert set(one) <= set(pool.columns)


def test_nothing_to_gain() -> None:
    data = random_table(5, 30)
    whole = encoded(data.take(np.zeros(30, dtype=np.int64)), POLICIES[0])
    pool = Pool(whole, np.zeros(30, dtype=np.int64))
    pool.add(pool.best)
    assert pool.least == 0 and pool.merge(0) == 0


def test_it_is_run_where_it_pays() -> None:
    whole = encoded(random_table(5, 50, duplicates=0.6), POLICIES[0])
    # Programs have to be set up, which a small table's search is not worth.
    programs = merging.PROGRAMS * len(schedule(whole.rules.k)) * merging.merging_work(whole)
    assert programs > merging.WORTH * 50
    assert worth_merging(whole, programs)
    assert not worth_merging(whole, programs - 1)
    for policy, merged in (
        (POLICIES[2], True),
        (POLICIES[3], False),
        (Policy((shoal.KAnonymity(merging.LARGEST + 1),)), False),
    ):
        assert worth_merging(encoded(random_table(5, 60, duplicates=0.6), policy), 10**9) == merged
    # Where hardly a row repeats, short runs end far from a long one.
    for duplicates, merged in ((0.6, True), (0.0, False)):
        wide = encoded(random_table(5, 60, duplicates=duplicates), POLICIES[0])
        assert (wide.tuples.size <= merging.CODES * 60) == merged == worth_merging(wide, 10**9)
    assert [entry.runs for entry in schedule(2)] == [5, 2, 2, 2]
    assert schedule(10)[0] == (1, 4, 1.0)


@pytest.mark.parametrize("policy", POLICIES[:3], ids=str)
def test_a_search_with_merging(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(6, n=120)
    rules, space = data.rules(policy), data.space("ncp")
    start = run("mondrian", data, rules)
    merges: list[int] = []
    plain = Pool.merge
    monkeypatch.setattr(Pool, "merge", lambda self, seed, progress=None: merges.append(seed) or plain(self, seed))
    found = []
    for cores in (1, 3):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        shares: list[float] = []
        found.append(searching.box_search(data.codes, space, rules, start, effort=0.2, seed=4, progress=shares.append))
        assert shares == sorted(shares) and shares[-1] == pytest.approx(1.0)
    assert merges == [4] * 8
    assert np.array_equal(found[0].labels, found[1].labels)
    assert not (rules.deficits(found[0].labels, found[0].classes) > 0).any()
    whole = encoded(data, policy)
    assert loss_of(whole, found[0].labels.astype(np.int64)) < loss_of(whole, start.labels.astype(np.int64))


def test_the_budget_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(6, n=200)
    budgets: list[int] = []
    whole_part = searching._Search.part
    monkeypatch.setattr(
        searching._Search, "part", lambda self, job, told: budgets.append(job.budget) or whole_part(self, job, told)
    )
    spent: list[int] = []
    plain = Pool.merge
    monkeypatch.setattr(Pool, "merge", lambda self, seed, progress=None: spent.append(plain(self, seed)) or spent[-1])
    rules = data.rules(Policy((shoal.KAnonymity(3),)))
    start = shoal.Partition(np.zeros(200, dtype=np.int32))
    searching.box_search(data.codes, data.space("ncp"), rules, start, effort=0.2)
    assert len(budgets) == 11 and len(spent) == 4
    # The last program is paid when it is known; all runs before it have left about as much.
    assert 0.9 <= (sum(budgets) + sum(spent)) / (0.2 * SECOND) <= 1.02


def test_whoever_gives_up_does_not_wait_for_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = encoded(random_table(5, 30), POLICIES[0])
    pool = Pool(whole, np.zeros(30, dtype=np.int64))
    pool.add(np.arange(30) // 6)
    begun, over, progress = Event(), Event(), Progress()

    def endless(*_: Any, **__: Any) -> Any:
        begun.set()
        over.wait()
        raise ValueError("nobody asks any more")

    monkeypatch.setattr("scipy.optimize.milp", endless)
    Thread(target=lambda: (begun.wait(), progress.cancel())).start()
    try:
        with pytest.raises(Cancelled):
            pool.merge(0, progress)
    finally:
        over.set()
