"""The box search: never worse than its start, always within the policy, the same for the same seed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from tests.tables import random_table

import shoal
import shoal.refine.box_search as module
from shoal.algorithms import run
from shoal.kernels.box_search import search
from shoal.kernels.hitting import BLOCK
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.progress import Progress
from shoal.refine import refined
from shoal.refine.box_search import box_search
from shoal.refine.box_tables import encode, take
from shoal.refine.regions import regions
from shoal.states import class_states


def loss_of(data: Microdata, partition: shoal.Partition, measure: str) -> float:
    space = data.space(measure)  # type: ignore[arg-type]
    return float(space.unit(class_states(data, partition, space)) @ partition.sizes)


def one_class(n: int) -> shoal.Partition:
    return shoal.Partition(np.zeros(n, dtype=np.int32))


POLICIES = [
    Policy((shoal.KAnonymity(3),)),
    shoal.KAnonymity(3) & shoal.PSensitive(2),
    shoal.KAnonymity(2) & shoal.TCloseness(0.5),
    shoal.KAnonymity(2) & shoal.LDiversity(2, variant="entropy"),
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("measure", ["il", "ncp", "granularity"])
def test_good_classes_and_less_loss(policy: Policy, measure: str) -> None:
    data = random_table(5, n=80)
    rules = data.rules(policy)
    start = one_class(data.n)
    found = box_search(data.codes, data.space(measure), rules, start, effort=0.02, seed=3)  # type: ignore[arg-type]
    assert found.suppressed == 0
    assert rules.deficits(found.labels, found.classes).max() == 0
    assert loss_of(data, found, measure) < loss_of(data, start, measure)
    again = box_search(data.codes, data.space(measure), rules, start, effort=0.02, seed=3)  # type: ignore[arg-type]
    assert np.array_equal(found.labels, again.labels)


def test_many_values_without_a_taxonomy() -> None:
    random = np.random.default_rng(1)
    frame = pl.DataFrame({"colour": [f"c{i}" for i in random.integers(0, 90, 200)], "x": random.normal(size=200)})
    data = Microdata.from_frame(frame, {"colour": {"role": "quasi"}, "x": {"role": "quasi"}})
    rules = data.rules(Policy((shoal.KAnonymity(4),)))
    found = box_search(data.codes, data.space("ncp"), rules, one_class(200), effort=0.05)
    assert found.sizes.min() >= 4
    assert loss_of(data, found, "ncp") < 0.5 * loss_of(data, one_class(200), "ncp")


def test_more_effort_is_no_worse_on_average() -> None:
    data = random_table(8, n=120)
    rules = data.rules(Policy((shoal.KAnonymity(4),)))
    means = []
    for effort in (0.001, 0.01, 0.1):
        losses = [
            loss_of(
                data, box_search(data.codes, data.space("il"), rules, one_class(data.n), effort=effort, seed=s), "il"
            )
            for s in range(3)
        ]
        means.append(np.mean(losses))
    assert all(more <= less for less, more in pairwise(means))


def test_tiny_tables_mostly_reach_the_optimum() -> None:
    ratios = []
    for seed in range(6):
        data = random_table(seed, n=8)
        rules = data.rules(Policy((shoal.KAnonymity(2),)))
        found = box_search(data.codes, data.space("il"), rules, one_class(8), effort=0.05, seed=seed)
        ratios.append(loss_of(data, found, "il") / optimum(data, 2))
    assert min(ratios) >= 1 - 1e-9
    assert sum(ratio < 1 + 1e-9 for ratio in ratios) >= 3
    assert max(ratios) < 1.2


def crowded(persons: int) -> Microdata:
    """People with up to three of forty illnesses, one of which is common, so that they have many sets of them."""
    random = np.random.default_rng(2)
    owner = np.repeat(np.arange(persons), random.integers(1, 4, persons))
    ages, weights = random.integers(20, 60, persons), random.normal(70, 9, persons).round()
    ill = np.where(random.random(len(owner)) < 0.4, 0, random.integers(0, 40, len(owner)))
    frame = pl.DataFrame({"who": owner, "age": ages[owner], "weight": weights[owner], "ill": ill.astype(str)})
    roles = {"who": "person", "age": "quasi", "weight": "quasi", "ill": "sensitive"}
    return Microdata.from_frame(frame, roles)


OF_PERSONS = [
    shoal.KAnonymity(3) & shoal.PSensitive(3),
    shoal.KAnonymity(2) & shoal.PSensitive(2) & shoal.AlphaK(0.8),
    shoal.KAnonymity(2) & shoal.LDiversity(2, variant="entropy"),
]


@pytest.mark.parametrize("policy", [*POLICIES, Policy((shoal.KAnonymity(1),))], ids=str)
def test_books_agree_with_the_partition(policy: Policy) -> None:
    books_agree(random_table(7, n=90), policy)


@pytest.mark.parametrize("policy", OF_PERSONS, ids=str)
def test_books_agree_with_the_partition_of_persons(policy: Policy) -> None:
    data = crowded(120)
    assert len(data.rules(policy).views) == 1 and data.rules(policy).views[0].width > 3 * BLOCK
    books_agree(data, policy)


@pytest.mark.parametrize("policy", OF_PERSONS, ids=str)
def test_sums_of_blocks_find_what_looking_at_every_set_finds(policy: Policy) -> None:
    data = crowded(120)
    rules, found = data.rules(policy), []
    whole = encode(data.codes, data.space("ncp"), rules, np.arange(data.n), Progress(), budget=10**9)
    plain = rules.flat()
    assert plain is not None and plain.sets is not None and whole.flat.sets is not None
    assert plain.sets.max() == -1 and whole.flat.sets.max() == rules.views[0].width
    for flat in (plain, whole.flat):
        part = take(whole, np.arange(data.n), np.zeros(data.n, dtype=np.int64))
        part.store.desk.random = 9
        search(whole.gauge, flat, part.table, part.store, 0.3, 1_000_000)
        found.append(part.labels(part.held()).tolist())
    assert found[0] == found[1] and len(set(found[0])) > 5


def books_agree(data: Microdata, policy: Policy) -> None:
    """After a search everything that is kept of the classes is what the classes have, and of no class nothing is left."""
    rules, space = data.rules(policy), data.space("il")
    whole = encode(data.codes, space, rules, np.arange(data.n), Progress(), budget=10**9)
    part = take(whole, np.arange(data.n), np.zeros(data.n, dtype=np.int64))
    store = part.store
    before = loss_of(data, one_class(data.n), "il")
    store.desk.random = 9
    search(whole.gauge, whole.flat, part.table, store, 0.3, 3_000_000)
    live, dense = np.unique(part.labels(part.held()), return_inverse=True)
    assert rules.deficits(dense, len(live)).max() <= 0
    assert loss_of(data, shoal.Partition(dense), "il") == pytest.approx(before + float(store.desk.gained))
    order = np.argsort(dense, kind="stable")
    states = space.states(data.codes, order, np.searchsorted(dense[order], np.arange(len(live))))
    assert np.array_equal(store.box[live], states)
    assert np.array_equal(store.classes["size"][live], np.bincount(dense))
    assert store.classes["size"][: store.desk.old].sum() == data.n
    counts = list(rules.stats(dense, len(live)).counts)
    if whole.flat.sets is not None:
        counts.append(np.add.reduceat(counts[0], np.arange(0, counts[0].shape[1], BLOCK), axis=1))
    if counts:
        assert np.array_equal(store.histogram[live], np.concatenate(counts, axis=1))
    assert not np.delete(store.histogram, live, axis=0).any()


def optimum(data: Microdata, k: int) -> float:
    """Least loss over all partitions into classes of at least k records, by dynamic programming over subsets."""
    n, space = data.n, data.space("il")
    cost = np.full(1 << n, np.inf)
    for mask in range(1, 1 << n):
        members = np.array([r for r in range(n) if mask >> r & 1])
        if len(members) >= k:
            state = space.states(data.codes, members, np.array([0]))
            cost[mask] = len(members) * space.unit(state)[0]
    best = np.full(1 << n, np.inf)
    best[0] = 0.0
    for mask in range(1, 1 << n):
        part = mask
        while part:
            best[mask] = min(best[mask], cost[part] + best[mask ^ part])
            part = (part - 1) & mask
    return float(best[-1])


def test_suppressed_records_stay_out() -> None:
    data = random_table(3, n=40)
    labels = np.zeros(40, dtype=np.int32)
    labels[::10] = -1
    rules = data.rules(Policy((shoal.KAnonymity(3),)))
    found = box_search(data.codes, data.space("ncp"), rules, shoal.Partition(labels), effort=0.02)
    assert np.array_equal(np.flatnonzero(found.labels < 0), np.arange(0, 40, 10))
    assert found.sizes.min() >= 3


def test_full_domain_partitions_are_left_alone() -> None:
    data = random_table(3, n=40)
    rules = data.rules(Policy((shoal.KAnonymity(3),)))
    chosen = shoal.Partition(np.zeros(40, dtype=np.int32), levels=(1, 1, 1, 1, 1, 1))
    assert refined(data, rules, chosen, objective="ncp") is chosen


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_regions_keep_the_policy_and_do_not_know_how_many_cores_there_are(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REGION_RECORDS", 60)
    monkeypatch.setattr(module, "REGION_CLASSES", 5)
    data = random_table(6, n=260)
    rules, space = data.rules(policy), data.space("ncp")
    start = run("mondrian", data, rules)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        shares: list[float] = []
        found.append(box_search(data.codes, space, rules, start, effort=0.1, progress=shares.append))
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(1.0)
    assert np.array_equal(found[0].labels, found[1].labels)
    assert rules.deficits(found[0].labels, found[0].classes).max() == 0
    assert loss_of(data, found[0], "ncp") < loss_of(data, start, "ncp")


def test_an_interruption_reaches_every_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REGION_RECORDS", 60)
    monkeypatch.setattr(module, "REGION_CLASSES", 5)
    data = random_table(6, n=260)
    rules = data.rules(Policy((shoal.KAnonymity(3),)))
    calls = []

    def interrupt(share: float) -> None:
        calls.append(share)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        box_search(data.codes, data.space("ncp"), rules, run("mondrian", data, rules), effort=60.0, progress=interrupt)
    assert len(calls) <= 8


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_regions_are_disjoint_and_of_whole_classes(count: int) -> None:
    data = random_table(3, n=300)
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(60), 5))
    found = regions(data.codes, labels, count, np.random.default_rng(1))
    assert len(found) == count
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(300))
    assert sum(len(np.unique(labels[records])) for records in found) == 60
    assert max(map(len, found)) <= 300 / count + 5 * count
