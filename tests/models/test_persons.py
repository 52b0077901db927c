"""Models of people with several rows: each rule against its naive twin, and the hitting number against all sets of values."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numba import njit
from tests.reference import persons as reference
from tests.reference.models import About

from shoal.errors import ConfigError, UnsupportedError
from shoal.kernels.hitting import deficits_after, hitting_deficit
from shoal.kernels.rules import class_deficit, class_ok
from shoal.models import MODELS, Sensitive
from shoal.models.forms import Hitting
from shoal.models.persons import Crowd, HittingRule
from shoal.models.sets import Sets, cannot_be_hit, hitting_number, number_sets
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


@njit
def _asked(ints, counts, asked, after):
    return deficits_after(ints, counts, asked, after), hitting_deficit(ints, counts)


def test_what_a_person_more_would_do_is_what_it_does():
    random = np.random.default_rng(5)
    for _ in range(200):
        width, groups, p = int(random.integers(1, 60)), int(random.integers(2, 7)), int(random.integers(1, 5))
        lists = [sorted(set(random.integers(0, groups, random.integers(1, 4)).tolist())) for _ in range(width)]
        ints = Hitting(p, Sets.of(lists), groups).ints()
        counts = np.where(random.random(width) < 0.1, random.integers(1, 4, width), 0).astype(np.int32)
        asked, after = random.random(width) < 0.5, np.full(width, -1.0)
        before, now = _asked(ints, counts, asked, after)
        wanted = p - min(p, reference.hitting([set(lists[s]) for s in np.flatnonzero(counts)]))
        assert before == now == wanted
        for s in range(width):
            more = counts.copy()
            more[s] += 1
            assert after[s] == (_asked(ints, more, asked, np.zeros(width))[1] if asked[s] else -1.0)


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
