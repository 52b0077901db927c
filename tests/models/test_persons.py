"""Models of people with several rows: each rule against its naive twin, and the hitting number against all sets of values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numba import njit
from tests.reference import persons as reference
from tests.reference.models import About

from shoal.errors import ConfigError, UnsupportedError
from shoal.kernels.hitting import BLOCK, deficits_after, following, hitting_deficit
from shoal.kernels.rules import class_deficit, class_ok
from shoal.models import MODELS, Sensitive
from shoal.models.forms import Hitting
from shoal.models.persons import Crowd, HittingRule
from shoal.models.sets import (
    TOGETHER,
    Sets,
    cannot_be_hit,
    class_hitting_numbers,
    hitting_number,
    number_sets,
    sparse,
)
from shoal.pieces import CELLS
from shoal.policy import Policy
from shoal.taxonomy import Taxonomy

ILLNESSES = [
    ["flu", "lung", "*"],
    ["asthma", "lung", "*"],
    ["ulcer", "stomach", "*"],
    ["gastritis", "stomach", "*"],
    ["HIV", "blood", "*"],
]
LABELS = tuple(row[0] for row in ILLNESSES)
CATEGORIES = (("secret", ("HIV", "ulcer")), ("middle", ("gastritis",)), ("plain", ("flu", "asthma")))


def crowd(random, persons, *, numbers):
    """Persons with one to four rows, some values missing; sometimes one value each."""
    rows = 1 if random.random() < 0.4 else 4
    owner = np.repeat(np.arange(persons), random.integers(1, rows + 1, persons)).astype(np.int32)
    codes = random.integers(-1 if random.random() < 0.3 else 0, random.integers(2, 6), len(owner)).astype(np.int32)
    order = random.permutation(len(owner))
    if numbers:
        column = Sensitive("x", codes[order], tuple("01234"), np.array([10.0, 20.0, 25.0, 40.0, 80.0]), ordered=True)
        about = About(
            number=dict(zip("01234", column.numbers.tolist(), strict=True)), rank={c: i for i, c in enumerate("01234")}
        )
    else:
        tree = Taxonomy.from_rows(ILLNESSES)
        column = Sensitive("x", codes[order], LABELS, taxonomy=tree, protect=("lung",), categories=CATEGORIES)
        parent = {a: b for row in ILLNESSES for a, b in pairwise(row)}
        about = About(parent=parent, protect=("lung",), categories=CATEGORIES)
    return Crowd(column, owner[order], persons), about


def lists(column, members):
    """The rows' values of some persons."""
    found = []
    for person in members:
        codes = column.rows.codes[column.owner == person]
        found.append([None if code < 0 else column.labels[code] for code in codes])
    return found


EXAMPLES = [model for kind in MODELS.values() for model in kind.examples() if kind.name != "k_anonymity"]


@pytest.mark.parametrize("model", EXAMPLES, ids=str)
def test_a_class_is_good_exactly_when_its_twin_says_so(model):
    random = np.random.default_rng(7)
    judge = getattr(reference, model.name)
    asked, good = 0, 0
    for turn in range(60):
        column, about = crowd(random, int(random.integers(3, 12)), numbers=model.persons == "mean" or turn % 2 == 0)
        try:
            rules = Policy((model,)).bind((column,), column.count)
        except (ConfigError, UnsupportedError):
            continue
        labels = random.integers(0, 2, column.count)
        labels[0], labels[1] = 0, 1
        table = lists(column, range(column.count))
        parameters = {key: value for key, value in model.parameters().items() if key != "attribute"}
        stats = rules.stats(labels, 2)
        deficits = rules.deficit(stats)
        flat = rules.flat()
        for c in (0, 1):
            members = np.flatnonzero(labels == c)
            wanted = judge(lists(column, members), table, about, **parameters)
            found = deficits[c] <= 0
            assert found == wanted, (model, lists(column, members), table)
            if flat is not None:
                counts = np.concatenate([matrix[c] for matrix in stats.counts]).astype(np.int32)
                assert class_ok(flat, len(members), counts) == found
                assert class_deficit(flat, len(members), counts) == pytest.approx(deficits[c], abs=1e-9)
            asked, good = asked + 1, good + found
    assert asked > 20
    assert 0 < good < asked


def test_hitting_number_equals_trying_all_sets_of_values():
    random = np.random.default_rng(3)
    for _ in range(400):
        groups = [
            tuple(sorted(set(random.integers(0, 6, random.integers(1, 4)).tolist())))
            for _ in range(random.integers(1, 7))
        ]
        wanted = reference.hitting([set(one) for one in groups])
        assert hitting_number(groups, 7) == wanted
        having = np.bincount([value for one in groups for value in one], minlength=6)[None, :]
        for depth in range(1, 6):
            if cannot_be_hit(np.array([len(groups)]), having, depth)[0]:
                assert wanted > depth


@pytest.mark.parametrize(("most", "together"), [(CELLS, TOGETHER), (CELLS, 1), (40, TOGETHER), (1, 7)])
def test_hitting_numbers_of_classes_are_those_of_each_by_itself(most, together, monkeypatch):
    """Many classes at a time or few, and where so many attempts at once are too many: the same numbers as by trying all sets."""
    monkeypatch.setattr("shoal.models.sets.CELLS", most)
    monkeypatch.setattr("shoal.models.sets.TOGETHER", together)
    random = np.random.default_rng(4)
    for _ in range(15):
        groups, people, classes = int(random.integers(1, 7)), int(random.integers(5, 40)), int(random.integers(1, 9))
        owner = np.repeat(np.arange(people), random.integers(1, 4, people))
        of, sets = number_sets(owner, random.integers(-1, groups, len(owner)), people)
        labels = random.integers(-1, classes, people)
        counts = sparse(labels, of, classes, max(1, len(sets)))
        dense = np.zeros((classes, max(1, len(sets))), dtype=np.int64)
        for c, s in zip(labels, of, strict=True):
            dense[c, s] += c >= 0 and s >= 0
        assert np.array_equal(counts.toarray(), dense)
        if len(sets):
            limit = int(random.integers(1, 6))
            there = [[set(sets.values(s)) for s in np.flatnonzero(row)] for row in dense]
            wanted = [min(limit, reference.hitting(one)) for one in there]
            for given in (counts, dense):
                assert class_hitting_numbers(given, sets, sets.incidence(groups), limit).tolist() == wanted


@pytest.mark.parametrize("model", EXAMPLES, ids=str)
def test_counting_only_what_occurs_gives_the_same_deficits(model, monkeypatch):
    random = np.random.default_rng(8)
    asked = 0
    for turn in range(20):
        column, _ = crowd(random, 30, numbers=model.persons == "mean" or turn % 2 == 0)
        try:
            rules = Policy((model,)).bind((column,), column.count)
        except (ConfigError, UnsupportedError):
            continue
        labels = random.integers(-1, 6, column.count)
        wanted = rules.deficit(rules.stats(labels, 6))
        assert np.array_equal(rules.deficits(labels, 6), wanted)
        with monkeypatch.context() as patch:
            patch.setattr("shoal.pieces.CELLS", 12)
            assert np.array_equal(rules.deficits(labels, 6), wanted)
        asked += 1
    assert asked > 5


@njit
def _following(counts, blocks, s):
    return following(counts, blocks, s)


def sums_of_blocks(counts):
    return np.add.reduceat(counts, np.arange(0, len(counts), BLOCK)).astype(np.int32)


@pytest.mark.parametrize("width", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 5 * BLOCK - 2])
def test_codes_that_occur_are_found_one_after_the_other(width):
    random = np.random.default_rng(width)
    for share in (0.0, 0.05, 0.5, 1.0):
        counts = (random.random(width) < share).astype(np.int32) * 3
        for s in range(width + 1):
            wanted = next((i for i in range(s, width) if counts[i]), width)
            assert _following(counts, counts[:0], s) == _following(counts, sums_of_blocks(counts), s) == wanted


@njit
def _asked(ints, counts, blocks, asked, after):
    return deficits_after(ints, counts, asked, after), hitting_deficit(ints, counts, blocks)


def test_groups_that_share_a_bit_are_two():
    """{0}, {64} and {0, 64}: bit by bit they are alike, and still no group meets all of them."""
    sets = Sets.of([[0], [64], [0, 64], [63, 127]])
    assert sets.words(64).tolist() == [1, 1, 1, -(2**63)]
    ints = Hitting(3, sets, 128).ints()
    for there, wanted in (([0, 1], 2), ([0, 1, 2], 2), ([0, 2], 1), ([0, 1, 3], 3), ([2, 3], 2)):
        counts = np.zeros(4, dtype=np.int32)
        counts[there] = 1
        assert _asked(ints, counts, counts[:0], np.zeros(4, dtype=bool), np.zeros(4)) == (3 - wanted, 3 - wanted)


@pytest.mark.parametrize("apart", [1, 40], ids=["a bit each", "shared bits"])
def test_what_a_person_more_would_do_is_what_it_does(apart):
    random = np.random.default_rng(5)
    for _ in range(200):
        width, groups, p = int(random.integers(1, 60)), int(random.integers(2, 7)), int(random.integers(1, 5))
        lists = [
            sorted(set((apart * random.integers(0, groups, random.integers(1, 4))).tolist())) for _ in range(width)
        ]
        ints = Hitting(p, Sets.of(lists), apart * groups).ints()
        counts = np.where(random.random(width) < 0.1, random.integers(1, 4, width), 0).astype(np.int32)
        asked, after = random.random(width) < 0.5, np.full(width, -1.0)
        before, now = _asked(ints, counts, sums_of_blocks(counts), asked, after)
        wanted = p - min(p, reference.hitting([set(lists[s]) for s in np.flatnonzero(counts)]))
        assert before == now == wanted
        for s in range(width):
            more = counts.copy()
            more[s] += 1
            assert after[s] == (_asked(ints, more, more[:0], asked, np.zeros(width))[1] if asked[s] else -1.0)


def test_sets_are_numbered_in_the_order_of_their_members():
    random = np.random.default_rng(6)
    for _ in range(50):
        rows, persons = int(random.integers(1, 60)), int(random.integers(1, 20))
        owner, codes = random.integers(0, persons, rows), random.integers(-1, 6, rows)
        of, found = number_sets(owner, codes, persons)
        wanted = [
            tuple(sorted({int(c) for o, c in zip(owner, codes, strict=True) if o == i and c >= 0}))
            for i in range(persons)
        ]
        order = sorted({one for one in wanted if one})
        assert [found.values(i) for i in range(len(found))] == order
        assert of.tolist() == [order.index(one) if one else -1 for one in wanted]


def test_the_bound_on_classes_is_one():
    """No partition of a small crowd into good classes has more classes than `max_classes` says."""
    random = np.random.default_rng(11)
    for _ in range(40):
        column, _ = crowd(random, 6, numbers=False)
        rules = Policy((MODELS["p_sensitive"](2),)).bind((column,), 6)
        most = max(
            (len(parts) for parts in partitions(list(range(6))) if all(rules.ok(np.array(part)) for part in parts)),
            default=0,
        )
        assert most <= rules.max_classes
        if most == 0:
            assert rules.rules[0].infeasible() is not None
        else:
            assert rules.rules[0].infeasible() is None


def partitions(items):
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in partitions(rest):
        for i, part in enumerate(smaller):
            yield [*smaller[:i], [first, *part], *smaller[i + 1 :]]
        yield [[first], *smaller]


def test_everybody_has_flu():
    column = Sensitive("x", np.array([0, 0, 1, 0, 2], dtype=np.int32), ("flu", "cold", "HIV"))
    three = Crowd(column, np.array([0, 1, 1, 2, 2], dtype=np.int32), 3)
    rules = Policy((MODELS["p_sensitive"](2),)).bind((three,), 3)
    assert isinstance(rules.rules[0], HittingRule)
    assert not rules.ok(np.arange(3))
    assert "1 meet everybody" in str(rules.rules[0].infeasible())


def test_parts_of_a_person_add_up():
    sets = Sets.of([[0], [0, 1, 2], list(range(17))])
    assert np.add.reduceat(sets.parts, sets.starts[:-1]).tolist() == [720_720] * 3
