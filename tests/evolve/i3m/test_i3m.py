"""I3M: golden values, the naive twin record for record, and every policy kept through random changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.reference import i3m as reference
from tests.reference.k_member import Table, _loss_table
from tests.tables import random_table

import shoal
from shoal.errors import ConfigError, InfeasibleError, InputError, InternalError, ShoalError, UnsupportedError
from shoal.evolve.i3m.classes import Batch, Binding, Classes
from shoal.microdata import Microdata
from shoal.models import MODELS
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.refine.il_optimization import il_optimization
from shoal.space import Interval, Set, Space, Tree

MEASURES = ("il", "ncp", "granularity")
PA = np.array([0, 0, 1, 1, 2, 2, 2])
ZIP = {"role": "quasi", "taxonomy": {"prefix": [4, 3, 2, 1, 0]}}
GENDER = {"role": "quasi", "taxonomy": {"rows": [["Male", "*"], ["Female", "*"]]}}


def rt9() -> Microdata:
    """The running example (docs/papers.md#the-running-example) and the two records that come later, ages measured against 25..55."""
    frame = pl.DataFrame(
        {
            "age": [25, 40, 35, 55, 33, 42, 38, 30, 41],
            "zip": ["41076", "41935", "12345", "33333", "41733", "41076", "41933", "41075", "41934"],
            "gender": ["Male", "Female", "Male", "Male", "Female", "Male", "Male", "Male", "Female"],
        }
    )
    return Microdata.from_frame(frame, {"age": {"role": "quasi", "domain": [25, 55]}, "zip": ZIP, "gender": GENDER})


def k_only(k: int) -> Binding:
    return Binding(Policy((shoal.KAnonymity(k),)))


def classes_of(data: Microdata, labels: Any, k: int, measure: Any = "il", **more: Any) -> Classes:
    return Classes(data.space(measure), data.codes[: len(labels)], np.asarray(labels), k_only(k), **more)


def test_inserting_into_the_running_example() -> None:
    data = rt9()
    table = Table(data, "il")
    twin = reference.Classes(table, dict(enumerate(PA.tolist())), 2)
    rise = [twin.increase(members, 7) / 2**40 for members in twin.classes.values()]
    assert rise == pytest.approx([21 / 10, 13 / 6, 23 / 10])
    classes = classes_of(data, PA, 2)
    assert classes.loss == pytest.approx(397 / 30)
    first = classes.insert(data.codes[7:8])
    assert (first.inserted.tolist(), first.touched.tolist(), first.created.tolist()) == ([7], [0], [])
    second = classes.insert(data.codes[8:9])
    assert classes.labels.tolist() == [0, 0, 1, 1, 3, 2, 2, 0, 3]
    assert classes.loss == pytest.approx(77 / 6)
    assert (second.touched.tolist(), second.created.tolist(), second.moved.tolist()) == ([2, 3], [3], [4])


def test_deleting_from_the_running_example() -> None:
    data = rt9()
    classes = classes_of(data, PA, 2)
    change = classes.delete([2])
    assert classes.records.tolist() == [0, 1, 3, 4, 5, 6]
    assert classes.labels.tolist() == [0, 0, 0, 2, 2, 2]
    assert classes.loss == pytest.approx(147 / 10)
    assert change.deleted.tolist() == [2]
    assert change.dissolved.tolist() == [1]
    assert change.moved.tolist() == [3]
    assert change.touched.tolist() == [0]


@pytest.mark.parametrize("seed", range(9))
def test_twin(seed: int) -> None:
    k, measure = (2, 3, 5)[seed % 3], MEASURES[seed // 3]
    follow(random_table(seed, 70, sensitive=0), k, measure, seed, start=3 * k, steps=30, most=5)


def test_twin_with_a_deep_tree() -> None:
    follow(random_table(11, 300, sensitive=0, duplicates=0.1), 2, "ncp", 11, start=240, steps=9, most=20)


@pytest.mark.parametrize("seed", range(3))
def test_twin_with_ranges_of_the_batch(seed: int) -> None:
    follow(random_table(50 + seed, 60, sensitive=0), 3, "il", seed, start=9, steps=15, most=5, ranges="batch")


def follow(
    data: Microdata, k: int, measure: Any, seed: int, *, start: int, steps: int, most: int, ranges: Any = "declared"
) -> None:
    """Random insertions, deletions and updates, compared with the twin after every step."""
    random = np.random.default_rng(seed)
    table = Table(data, measure)
    table.codes = np.array(data.codes)
    labels = np.minimum(np.arange(start) // k, start // k - 1)
    twin = reference.Classes(table, dict(enumerate(labels.tolist())), k)
    classes = classes_of(data, labels, k, measure, ranges=ranges)
    coming, done = start, set()
    for step in range(steps):
        present = sorted(twin.labels())
        what = ("insert", "delete", "update")[(step + int(random.integers(2))) % 3]
        count = int(random.integers(1, most + 1))
        if what == "insert" and coming < data.n:
            new = range(coming, min(data.n, coming + count))
            coming = new.stop
            if ranges == "batch":
                measure_by(table, data, measure, [*present, *new])
            classes.insert(data.codes[new.start : new.stop])
            twin.insert(new)
        elif what == "delete" and len(present) - count >= k:
            gone = random.permutation(present)[:count].tolist()
            if ranges == "batch":
                measure_by(table, data, measure, sorted(set(present) - set(gone)))
            classes.delete(gone)
            twin.delete(gone)
        elif what == "update":
            who = random.permutation(present)[:count].tolist()
            codes = data.codes[random.integers(0, data.n, len(who))]
            if ranges == "batch":
                old = table.codes[who].copy()
                table.codes[who] = codes
                measure_by(table, data, measure, present)
                table.codes[who] = old
            classes.update(who, codes)
            twin.update(dict(zip(who, codes, strict=True)))
        done.add(what)
        wanted = twin.labels()
        assert classes.records.tolist() == sorted(wanted)
        assert classes.labels.tolist() == [wanted[record] for record in sorted(wanted)]
        assert classes.loss == pytest.approx(twin.loss(), abs=1e-9)
    assert len(done) == 3


def test_the_tree_finds_what_a_scan_finds() -> None:
    """After many changes, for single records and for whole classes, in every place of the ranking."""
    data, random = random_table(21, 1500, sensitive=0, duplicates=0.2), np.random.default_rng(21)
    classes = classes_of(data, np.arange(600) // 2, 2, "ncp")
    for begin in range(600, 1500, 300):
        classes.insert(data.codes[begin : begin + 300])
        classes.delete(random.permutation(classes.records)[:150])
    grouping = classes._grouping
    slots = np.flatnonzero(grouping.sizes)
    assert len(slots) > 300
    for row in random.permutation(np.flatnonzero(classes._ledger.alive))[:60]:
        state = grouping.state_of(np.array([row]))
        assert grouping.best(int(row)) == slots[scan(classes, state, 1)[0]]
    for c in random.permutation(slots)[:10]:
        state, size = grouping.states[c].copy(), int(grouping.sizes[c])
        ranking = np.concatenate([part.copy() for part in grouping.ranked(state, size)])
        assert ranking.tolist() == slots[scan(classes, state, size)].tolist()


def scan(classes: Classes, state: Any, records: int) -> Any:
    """Classes by the ticks that so many records of this state add to each."""
    space = classes.space
    joined = classes.states.copy()
    for a, domain in enumerate(space.domains):
        slot = slice(int(space.slots[a]), int(space.slots[a + 1]))
        if isinstance(domain, Set):
            joined[:, slot] |= state[slot]
        else:
            joined[:, slot.start] = np.minimum(joined[:, slot.start], state[slot.start])
            joined[:, slot.start + 1] = np.maximum(joined[:, slot.start + 1], state[slot.start + 1])
    after, before = (in_order(space, states) for states in (joined, classes.states))
    cost = np.rint((records * after + classes.sizes * (after - before)) * 2.0**40)
    return np.argsort(cost, kind="stable")


def in_order(space: Space, states: Any) -> Any:
    total = np.zeros(len(states))
    for a, losses in enumerate(space.losses(states).T):
        total = total + space.weights[a] * losses
    return total


def measure_by(table: Table, data: Microdata, measure: str, present: list[int]) -> None:
    """Losses of numbers against their range among these records (docs/algorithms.md#i3m)."""
    for a, domain in enumerate(data.domains):
        if isinstance(domain, Interval) and domain.labels is None:
            values = [domain.values[c] for c in table.codes[present, a] if c < len(domain.values)]
            width = max(values) - min(values) if values else 0.0
            table.losses[a] = _loss_table(replace(domain, width=width), measure)


SECRETIVE = {
    "k and p": Policy((shoal.KAnonymity(4), shoal.PSensitive(p=3))),
    "closeness": Policy((shoal.KAnonymity(3), shoal.TCloseness(t=0.35, distance="equal"))),
    "hierarchical closeness": Policy((shoal.KAnonymity(3), shoal.TCloseness(t=0.3))),
    "shares": Policy((shoal.KAnonymity(4), shoal.AlphaK(alpha=0.5))),
    "entropy": Policy((shoal.KAnonymity(3), shoal.LDiversity(l=2.5, variant="entropy"))),
    "recursive": Policy((shoal.KAnonymity(3), shoal.LDiversity(l=2, variant="recursive", c=1.5))),
    "rare values": Policy((shoal.KAnonymity(3), MODELS["kpqr"].examples()[0])),
}


@pytest.mark.parametrize("name", SECRETIVE)
def test_a_policy_is_kept(name: str) -> None:
    """Every record in exactly one class, every class good, tracked states and loss as recomputed, after every step."""
    policy, random = SECRETIVE[name], np.random.default_rng(len(name))
    data = random_table(len(name), 200)
    binding = Binding(policy, data.sensitive)
    codes, secrets = np.array(data.codes), binding.codes()
    classes = Classes(data.space("ncp"), codes[:80], np.zeros(80, dtype=int), binding, secrets[:80])
    coming = 80
    for step in range(14):
        labels = dict(zip(classes.records.tolist(), classes.labels.tolist(), strict=True))
        who = random.permutation(classes.records)[:4]
        if step % 3 == 0:
            change = classes.insert(codes[coming : coming + 20], secrets[coming : coming + 20])
            coming += 20
        elif step % 3 == 1:
            change = classes.delete(who)
        else:
            source = random.integers(0, data.n, len(who))
            codes[who], secrets[who] = data.codes[source], binding.codes()[source]
            change = classes.update(who, codes[who], secrets[who])
        check(classes, codes, secrets, binding)
        check_change(classes, labels, change)
    assert len(classes.sizes) > 5


def check(classes: Classes, codes: Any, secrets: Any, binding: Binding) -> None:
    records, partition = classes.records, Partition.compact(classes.labels)
    assert len(np.unique(records)) == len(records) == classes.n == partition.sizes.sum()
    rules = binding(secrets[records])
    assert (rules.deficits(partition.labels, partition.classes) <= 0).all()
    states = classes.space.states(codes[records], partition.order, partition.starts)
    assert np.array_equal(states, classes.states)
    assert np.array_equal(partition.sizes, classes.sizes)
    assert classes.loss == pytest.approx(float(classes.space.unit(states) @ partition.sizes), abs=1e-9)


def check_change(classes: Classes, before: dict[int, int], change: Any) -> None:
    after = dict(zip(classes.records.tolist(), classes.labels.tolist(), strict=True))
    stayed = [r for r in after if r in before and r not in change.updated]
    assert change.moved.tolist() == [r for r in stayed if after[r] != before[r]]
    assert set(change.inserted.tolist()) == set(after) - set(before)
    assert set(change.deleted.tolist()) == set(before) - set(after)
    assert set(change.created.tolist()) == set(after.values()) - set(before.values())
    assert set(change.dissolved.tolist()) == set(before.values()) - set(after.values())
    same = {c for c in after.values() if c not in change.touched}
    assert all(before[r] == c for r, c in after.items() if c in same)
    for c in change.touched.tolist():
        assert classes.members(c).tolist() == [r for r in sorted(after) if after[r] == c]


def secretive(values: list[int], ages: list[int], labels: list[int], policy: Policy) -> tuple[Classes, Any]:
    """Records of an age and an illness."""
    frame = pl.DataFrame({"age": ages, "illness": [f"v{value}" for value in values]})
    data = Microdata.from_frame(frame, {"age": {"role": "quasi", "domain": [0, 100]}, "illness": {"role": "sensitive"}})
    binding = Binding(policy, data.sensitive)
    start = len(labels)
    return Classes(data.space("il"), data.codes[:start], np.array(labels), binding, binding.codes()[:start]), (
        data.codes,
        binding.codes(),
    )


def test_a_split_keeps_the_policy() -> None:
    # By age alone the class falls apart into {10, 11} with one illness and {50, 51} with another.
    policy = Policy((shoal.KAnonymity(2), shoal.PSensitive(p=2)))
    classes, (codes, secrets) = secretive([0, 0, 1, 1], [10, 11, 50, 51], [0, 0, 0], policy)
    classes.insert(codes[3:], secrets[3:])
    assert sorted(classes.labels.tolist()) == [0, 0, 1, 1]
    assert classes.labels[0] != classes.labels[1]


def test_a_class_that_cannot_be_split_may_grow() -> None:
    policy = Policy((shoal.KAnonymity(2), shoal.PSensitive(p=2)))
    classes, (codes, secrets) = secretive([0, 0, 0, 0, 1, 0, 1], [1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 0, 0], policy)
    classes.insert(codes[5:6], secrets[5:6])
    assert len(classes.sizes) == 1
    classes.insert(codes[6:], secrets[6:])
    assert len(classes.sizes) == 1
    check(classes, codes, secrets, classes.bind)  # type: ignore[arg-type]


def test_a_neighbour_lends_what_it_can_spare() -> None:
    # Without record 1 the first class lacks a value; its neighbour has three of each kind and lends the nearest.
    policy = Policy((shoal.KAnonymity(2), shoal.PSensitive(p=2)))
    values, ages = [0, 1, 0, 0, 1, 1, 0, 1], [10, 11, 12, 20, 21, 22, 90, 91]
    classes, _ = secretive(values, ages, [0, 0, 0, 1, 1, 1, 2, 2], policy)
    change = classes.delete([1])
    assert change.moved.tolist() == [4]
    assert classes.labels.tolist() == [0, 0, 1, 0, 1, 2, 2]


def test_more_classes_than_the_policy_allows_are_not_repaired_one_by_one() -> None:
    # Two records with v1 are left for three classes (docs/models.md#condition-2): one class has to go.
    policy = Policy((shoal.KAnonymity(2), shoal.PSensitive(p=2)))
    values, ages = [0, 1, 0, 0, 1, 0, 0, 1, 0], [1, 2, 3, 40, 41, 42, 80, 81, 82]
    classes, _ = secretive(values, ages, [0, 0, 0, 1, 1, 1, 2, 2, 2], policy)
    classes.delete([4])
    assert len(classes.sizes) == 2


def test_a_record_goes_where_it_spoils_nothing() -> None:
    # Half of the near class has v0 already, so a third record of it goes to the far class.
    policy = Policy((shoal.KAnonymity(2), shoal.AlphaK(alpha=0.5)))
    values, ages = [0, 1, 2, 0, 0], [10, 10, 60, 60, 10]
    classes, (codes, secrets) = secretive([*values, 1], [*ages, 30], [0, 0, 1, 1], policy)
    with pytest.raises(InfeasibleError):
        classes.insert(codes[4:5], secrets[4:5])
    classes.insert(codes[4:], secrets[4:])
    check(classes, codes, secrets, classes.bind)  # type: ignore[arg-type]


def test_an_empty_change_changes_nothing() -> None:
    data = rt9()
    classes = classes_of(data, PA, 2)
    change = classes.apply()
    assert all(len(part) == 0 for part in vars(change).values())
    assert classes.labels.tolist() == PA.tolist()


def test_insert_and_delete_again_is_a_partition() -> None:
    data = random_table(4, 120, sensitive=0)
    classes = classes_of(data, np.arange(60) // 3, 3, "ncp")
    new = classes.insert(data.codes[60:]).inserted
    classes.delete(new)
    assert classes.records.tolist() == list(range(60))
    assert classes.sizes.min() >= 3


def test_one_step_of_everything() -> None:
    data = random_table(5, 80, sensitive=0)
    together, apart = (classes_of(data, np.arange(40) // 4, 4, "ncp") for _ in range(2))
    change = together.apply(
        delete=[3, 9], update=Batch(data.codes[50:52], records=[20, 1]), insert=Batch(data.codes[60:70])
    )
    # Deletions of both kinds come first, then the new versions, then the new records.
    apart.apply(delete=[3, 9], update=Batch(data.codes[50:52], records=[20, 1]))
    apart.insert(data.codes[60:70])
    assert together.labels.tolist() == apart.labels.tolist()
    assert change.updated.tolist() == [20, 1]
    assert np.array_equal(together.codes[together.records == 20][0], data.codes[50])


def test_from_nothing() -> None:
    data = random_table(6, 40, sensitive=0)
    classes = Classes(data.space("ncp"), data.codes[:0], np.zeros(0, dtype=int), k_only(4))
    with pytest.raises(InfeasibleError, match="needs 4 records and there would be 3"):
        classes.insert(data.codes[:3])
    assert classes.n == 0
    classes.insert(data.codes)
    assert classes.n == 40
    assert classes.sizes.min() >= 4
    assert classes.sizes.max() < 8
    twin = reference.Classes(Table(data, "ncp"), {}, 4)
    twin.insert(range(40))
    assert classes.labels.tolist() == [twin.labels()[record] for record in range(40)]


def test_what_cannot_be_done_changes_nothing() -> None:
    policy = Policy((shoal.KAnonymity(2), shoal.PSensitive(p=2)))
    classes, (codes, secrets) = secretive([0, 1, 0, 1, 0], [1, 2, 60, 61, 3], [0, 0, 1, 1], policy)
    labels, loss = classes.labels.tolist(), classes.loss
    for step, message in (
        (lambda: classes.delete([1, 3]), "2 distinct values"),
        (lambda: classes.delete([0, 1, 2]), "there would be 1;"),
        (lambda: classes.delete([0, 7]), "no record 7"),
        (lambda: classes.delete([0, 0]), "named twice"),
        (lambda: classes.apply(delete=[1], update=Batch(codes[4:5], secrets[4:5], [1])), "both deleted and updated"),
    ):
        with pytest.raises(ShoalError, match=message):
            step()
        assert (classes.labels.tolist(), classes.loss, classes.n) == (labels, loss, 4)
    for step in (
        lambda: classes.insert(codes[4:5] + 99, secrets[4:5]),
        lambda: classes.insert(codes[4:5]),
        lambda: classes.insert(codes[4:5], secrets[4:5], records=[2]),
    ):
        with pytest.raises(InternalError):
            step()
        assert classes.labels.tolist() == labels
    assert classes.insert(codes[4:5], secrets[4:5], records=[9]).inserted.tolist() == [9]
    with pytest.raises(InputError):
        classes.members(17)
    with pytest.raises(ConfigError):
        Classes(classes.space, codes, np.zeros(5), classes.bind, secrets, ranges="weekly")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError):
        Classes(classes.space, codes, np.array([0, 0, 0, 0, -1]), classes.bind, secrets)


def test_a_step_that_fails_half_way_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(7, 80, sensitive=0)
    classes = classes_of(data, np.arange(60) // 3, 3, "ncp")
    labels, loss, codes = classes.labels.copy(), classes.loss, classes.codes.copy()

    def fail(self: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shoal.evolve.i3m.step.Step.finish", fail)
        with pytest.raises(KeyboardInterrupt):
            classes.apply(delete=[0, 1], update=Batch(data.codes[60:62], records=[5, 6]), insert=Batch(data.codes[62:]))
    assert np.array_equal(classes.labels, labels)
    assert np.array_equal(classes.codes, codes)
    assert classes.loss == loss
    fresh = classes_of(data, labels, 3, "ncp")
    classes.insert(data.codes[60:])
    fresh.insert(data.codes[60:])
    assert np.array_equal(classes.labels, fresh.labels)


@pytest.mark.parametrize("name", ["k and p", "closeness"])
@pytest.mark.parametrize("ranges", ["declared", "batch"])
def test_what_had_changed_is_as_it_was(name: str, ranges: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted, altered and new records of a step that fails: secrets and judgement go back too, and what follows is the same."""
    data = random_table(21, 120)
    binding = Binding(SECRETIVE[name], data.sensitive)
    codes, secrets = np.array(data.codes), binding.codes()

    def begun() -> Classes:
        made = Classes(data.space("ncp"), codes[:60], np.zeros(60, dtype=int), binding, secrets[:60], ranges=ranges)
        made.insert(codes[60:80], secrets[60:80])
        return made

    def seen(of: Classes) -> list[Any]:
        told = [of.records, of.labels, of.codes, of.sensitive, of.sizes, of.states, of.rules.codes()]
        return [*(part.tolist() for part in told), of.loss, of.n, of.next_record, of.next_class]

    classes, fresh = begun(), begun()
    before = seen(classes)
    gone, other = classes.records[[1, 5, 33]], classes.records[[0, 7, 40, 70]]
    # Other values, of a record that differs in all it can.
    step: dict[str, Any] = {
        "delete": gone,
        "update": Batch(codes[100:104], secrets[100:104], other),
        "insert": Batch(codes[80:95], secrets[80:95]),
    }
    assert not np.array_equal(secrets[100:104], classes.sensitive[[0, 7, 40, 70]])
    for where in ("Step.mend", "Step.place", "Step.finish"):
        with monkeypatch.context() as patch:

            def fail(*_: object) -> None:
                raise KeyboardInterrupt

            patch.setattr(f"shoal.evolve.i3m.step.{where}", fail)
            with pytest.raises(KeyboardInterrupt):
                classes.apply(**step)
        assert seen(classes) == before, where
    with monkeypatch.context() as patch:
        # The last moment: everything is written, and the check of what came out of it fails.
        patch.setattr(Classes, "_change", lambda *_: fail())
        with pytest.raises(KeyboardInterrupt):
            classes.apply(**step)
    assert seen(classes) == before
    for one in (classes, fresh):
        one.apply(**step)
    assert seen(classes) == seen(fresh) != before


def test_going_on_from_what_was_written_down() -> None:
    data = random_table(8, 150, sensitive=0)
    here = classes_of(data, np.arange(60) // 3, 3, "ncp")
    here.insert(data.codes[60:90])
    here.delete(here.records[::4])
    there = Classes(
        here.space, here.codes, here.labels, here.bind, records=here.records, baseline=here.baseline,
        changed=here.changed, next_class=here.next_class,
    )  # fmt: skip
    for classes in (here, there):
        classes.insert(data.codes[90:])
        classes.delete(classes.records[::5])
    assert np.array_equal(here.records, there.records)
    assert np.array_equal(here.labels, there.labels)
    assert here.next_class == there.next_class
    assert here.needs_full_run() == there.needs_full_run()


def test_places_of_the_dead_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(9, 200, sensitive=0)
    lean, wasteful = (classes_of(data, np.arange(100) // 2, 2, "ncp") for _ in range(2))
    for i in range(8):
        with monkeypatch.context() as patch:
            patch.setattr("shoal.evolve.i3m.classes.SPARE", 0)
            lean.apply(delete=lean.records[:40], insert=Batch(data.codes[i * 20 : i * 20 + 40]))
        wasteful.apply(delete=wasteful.records[:40], insert=Batch(data.codes[i * 20 : i * 20 + 40]))
    assert lean._grouping.rows < wasteful._grouping.rows
    assert np.array_equal(lean.records, wasteful.records)
    assert np.array_equal(lean.labels, wasteful.labels)


def test_larger_domains() -> None:
    """A new number, a new leaf that moves others, more categories than fit a word: as if known from the start."""
    rows = [["a", "low", "*"], ["c", "low", "*"], ["d", "high", "*"]]
    more = [["b", "low", "*"], ["a", "low", "*"], ["c", "low", "*"], ["d", "high", "*"], ["e", "higher", "*"]]
    random = np.random.default_rng(0)
    n, late = 90, 60
    frame = pl.DataFrame(
        {
            "age": [*random.integers(20, 40, late).tolist(), *random.integers(10, 60, n - late).tolist()],
            "job": [*random.choice(["a", "c", "d"], late), *random.choice(["a", "b", "c", "d", "e"], n - late)],
            "colour": [*(f"c{i:02}" for i in random.integers(0, 5, late)), *(f"c{i + 5:02}" for i in range(n - late))],
        }
    )
    fix = {"age": {"role": "quasi", "domain": [0, 100]}, "colour": {"role": "quasi"}}
    old = Microdata.from_frame(frame[:late], {**fix, "job": {"role": "quasi", "taxonomy": {"rows": rows}}})
    new = Microdata.from_frame(frame, {**fix, "job": {"role": "quasi", "taxonomy": {"rows": more}}})
    labels = np.arange(late) // 3
    grown, ready = classes_of(old, labels, 3, "ncp"), classes_of(new, np.append(labels, []).astype(int), 3, "ncp")
    ages, jobs, colours = (
        np.searchsorted(new.domains[0].values, old.domains[0].values),  # type: ignore[union-attr]
        np.array([leaf_code(new.domains[1], label) for label in leaf_labels(old.domains[1])]),
        np.array([new.domains[2].labels.index(label) for label in old.domains[2].labels]),  # type: ignore[union-attr]
    )
    assert isinstance(new.domains[2], Set)
    for domain_maps in ([ages, None, None], [None, jobs, None], [None, None, colours]):
        # One at a time, so that each way of recoding is taken.
        mixed = [
            n if m is not None else o for n, o, m in zip(new.domains, grown.space.domains, domain_maps, strict=True)
        ]
        grown.recode(Space(tuple(mixed), grown.space.weights, "ncp"), domain_maps)
        assert grown.loss == pytest.approx(float(grown.space.unit(grown.states) @ grown.sizes))
    assert np.array_equal(grown.codes, new.codes[:late])
    assert np.array_equal(grown.states, ready.states)
    assert grown.loss == pytest.approx(ready.loss)
    for classes in (grown, ready):
        classes.insert(new.codes[late:])
    assert np.array_equal(grown.labels, ready.labels)


def leaf_labels(domain: Any) -> list[str]:
    assert isinstance(domain, Tree)
    return list(domain.taxonomy.labels[: domain.taxonomy.leaves])


def leaf_code(domain: Any, label: str) -> int:
    return leaf_labels(domain).index(label)


def test_new_secrets() -> None:
    policy = Policy((shoal.KAnonymity(2), shoal.PSensitive(p=2)))
    classes, (codes, _) = secretive([0, 2, 0, 2], [1, 2, 60, 61], [0, 0, 1, 1], policy)
    column = classes.bind.columns[0]  # type: ignore[attr-defined]
    wider = Binding(policy, (replace(column, labels=("v0", "v1", "v2")),))
    classes.recode(classes.space, [None], bind=wider, sensitive_maps=[np.array([0, 2])])
    assert classes.sensitive[:, 0].tolist() == [0, 2, 0, 2]
    classes.insert(codes[:1], np.array([[1]]))
    assert classes.rules.views[0].width == 3
    assert sorted(classes.sizes.tolist()) == [2, 3]


def test_optimization_in_place() -> None:
    data = random_table(12, 200, sensitive=0, duplicates=0.6)
    start = (np.arange(200) // 3).clip(max=65)
    classes = classes_of(data, start, 3, "ncp")
    wanted = il_optimization(
        data.codes, data.space("ncp"), data.rules(Policy((shoal.KAnonymity(3),))), Partition(start)
    )
    change = classes.optimize()
    assert classes.partition.labels.tolist() == wanted.labels.tolist()
    assert len(change.dissolved) == 66 - wanted.classes > 0
    assert len(classes.optimize(classes.numbers[:10]).touched) == 0


@pytest.mark.parametrize("name", ["closeness", "shares", "rare values"])
@pytest.mark.parametrize("seed", range(3))
def test_optimization_keeps_a_policy_that_joining_can_break(name: str, seed: int) -> None:
    """Records of a broken class would fit others best that they spoil: such a class stays, and no class is spoilt."""
    policy = SECRETIVE[name]
    data = random_table(seed + 40, 150, duplicates=0.7)
    binding = Binding(policy, data.sensitive)
    codes, secrets = np.array(data.codes), binding.codes()
    begun = Classes(data.space("ncp"), codes[:40], np.zeros(40, dtype=int), binding, secrets[:40])
    begun.insert(codes[40:], secrets[40:])
    rules = data.rules(policy)
    start = Partition.compact(begun.labels)
    wanted = il_optimization(data.codes, data.space("ncp"), rules, start)
    loss = begun.loss
    begun.optimize()
    check(begun, codes, secrets, binding)
    assert begun.partition.labels.tolist() == wanted.labels.tolist()
    assert begun.loss <= loss


def test_optimization_asks_the_policy() -> None:
    """One record of the broken class carries the value that its best neighbour has too much of already."""
    policy = Policy((shoal.KAnonymity(2), shoal.AlphaK(alpha=0.6)))
    classes, _ = secretive([0, 1, 0, 1, 1, 0, 1, 0], [10, 11, 12, 90, 91, 92, 11, 91], [0, 0, 0, 1, 1, 1, 2, 2], policy)
    before = classes.labels.tolist()
    assert len(classes.optimize().dissolved) == 1  # the wide class is broken, as one of each value goes to each side
    classes, _ = secretive([0, 1, 0, 1, 1, 0, 0, 1], [10, 11, 12, 90, 91, 92, 11, 91], [0, 0, 0, 1, 1, 1, 2, 2], policy)
    assert classes.optimize().touched.tolist() == []  # three of four would have the same value on either side
    assert classes.labels.tolist() == before


def test_adopting_a_full_run() -> None:
    data = random_table(13, 60, sensitive=0)
    classes = classes_of(data, np.arange(60) // 3, 3, "ncp")
    classes.delete([0])
    assert classes.changed == 1
    change = classes.adopt(np.arange(59) // 4 % 14)
    assert change.dissolved.tolist() == list(range(1, 20))
    assert change.created.tolist() == classes.numbers.tolist() == list(range(20, 34))
    assert (classes.changed, classes.baseline) == (0, classes.nil)
    with pytest.raises(InternalError):
        classes.adopt(np.arange(59))
    assert classes.numbers.tolist() == list(range(20, 34))


def test_when_to_run_all_of_it_again() -> None:
    data = random_table(14, 200, sensitive=0)
    classes = classes_of(data, np.zeros(100, dtype=int), 100, "ncp")
    assert classes.needs_full_run() is None
    classes.baseline = classes.nil / 1.04
    assert classes.needs_full_run() is None
    assert "more than 3%" in str(classes.needs_full_run(excess=0.03))
    classes.baseline = 1.0
    classes.insert(data.codes[100:125])
    assert classes.needs_full_run() is None
    classes.insert(data.codes[125:126])
    assert classes.needs_full_run(share=0.25) is None
    assert "26 records changed" in str(classes.needs_full_run())


def test_of_a_table() -> None:
    data = random_table(15, 60)
    policy = Policy((shoal.KAnonymity(3), shoal.PSensitive(p=2)))
    whole = Partition(np.zeros(60, dtype=np.int32))
    classes = Classes.of(data, policy, whole, measure="il")
    assert classes.space.measure == "il"
    assert classes.rules.views[0].width == len(data.sensitive[0].labels)
    assert np.array_equal(classes.codes, data.codes)


@pytest.mark.parametrize("name", [*SECRETIVE, "k alone"])
def test_refining_what_changed(name: str) -> None:
    """The loss falls, the policy stays, whoever is far away is not touched, and a seed gives the same classes."""
    policy = SECRETIVE.get(name, Policy((shoal.KAnonymity(3),)))
    data = random_table(30 + len(name), 240)
    binding = Binding(policy, data.sensitive)
    secrets = binding.codes()
    results = []
    for _ in range(2):
        start = np.zeros(120, dtype=int)
        classes = Classes(data.space("ncp"), data.codes[:120], start, binding, secrets[:120])
        classes.insert(data.codes[120:220], secrets[120:220])
        change = classes.insert(data.codes[220:], secrets[220:])
        loss, labels = classes.loss, dict(zip(classes.records.tolist(), classes.labels.tolist(), strict=True))
        next_class = classes.next_class
        refined = classes.refine(change.touched, effort=0.02, neighbours=2, seed=3)
        check(classes, data.codes, secrets, binding)
        check_change(classes, labels, refined)
        assert set(refined.touched) == set(refined.created)
        assert refined.created.min(initial=next_class) >= next_class
        assert classes.loss <= loss + 1e-9
        results.append(classes)
    assert np.array_equal(results[0].labels, results[1].labels)
    if name == "k alone":
        assert results[0].loss < 0.99 * loss
        assert len(refined.touched) < len(classes.sizes)
    whole = results[0].loss
    results[0].refine(effort=0.02)
    assert results[0].loss <= whole + 1e-9
    check(results[0], data.codes, secrets, binding)


def test_numbers_are_never_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.evolve.i3m.classes.SPARE", 0)
    data = random_table(16, 60, sensitive=0)
    classes = classes_of(data, np.arange(60) // 3, 3, "ncp")
    classes.delete(range(10, 60))
    assert classes.insert(data.codes[:2]).inserted.tolist() == [60, 61]
    assert classes._ledger.rows < 60
    with pytest.raises(InternalError):
        classes.insert(data.codes[:1], records=[30])


@pytest.mark.parametrize("measure", MEASURES)
def test_what_a_loan_costs(measure: Any) -> None:
    """A row that moves from one class to another, also the last one of a class, against both losses worked out anew."""
    data, random = random_table(17, 60, sensitive=0), np.random.default_rng(17)
    grouping = classes_of(data, np.zeros(60, dtype=int), 2, measure)._grouping
    for lenders, borrowers in [(1, 1), (1, 4), (2, 9), (5, 2), (7, 7)]:
        rows = random.permutation(60)[: lenders + borrowers]
        lender, own = np.sort(rows[:lenders]), np.sort(rows[lenders:])
        before = grouping.loss_of([lender, own])
        wanted = [
            grouping.loss_of([part for part in (lender[lender != row], np.append(own, row)) if len(part)]) - before
            for row in lender
        ]
        found = grouping.price_loans(lender, grouping.state_of(own), len(own)) / 2.0**40
        assert found == pytest.approx(wanted, abs=1e-9)
