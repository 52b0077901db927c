"""Closed forms against independent formulas: transport problems, pairs of records, logarithms of shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import entropy as scipy_entropy
from tests.models.stand_in import NUMBERS, PARENTS, RICH, VALUES, column, histogram, rich
from tests.reference import models as twins

from shoal.kernels.rules import class_deficit, class_ok
from shoal.models import MODELS
from shoal.models.kpqr import KPQR
from shoal.models.l_diversity import entropy
from shoal.models.personalized import Personalized
from shoal.models.t_closeness import TCloseness
from shoal.models.variance import variance_for
from shoal.policy import Policy
from shoal.taxonomy import Taxonomy

FLAT = dict.fromkeys(VALUES, "*")
KINDS = {
    "number": ({"numbers": NUMBERS}, twins.About(number=RICH.number, rank=RICH.rank)),
    "ordinal": ({"ordered": True}, twins.About(rank=RICH.rank)),
    "tree": ({"taxonomy": PARENTS}, twins.About(parent=PARENTS)),
    "nominal": ({}, twins.About()),
}


def draw(rng, n, values=VALUES):
    return [None if code == len(values) else values[code] for code in rng.integers(0, len(values) + 1, size=n)]


@pytest.mark.parametrize("distance", ["equal", "ordered", "hierarchical"])
def test_distance_is_the_cost_of_the_best_transport(distance):
    rng = np.random.default_rng(1)
    for _ in range(25):
        table = [value for value in draw(rng, 14) if value is not None]
        members = [table[i] for i in rng.choice(len(table), size=int(rng.integers(1, 6)), replace=False)]
        attribute = column(table, VALUES, ordered=True, taxonomy=PARENTS)
        rule = TCloseness(0.1, distance=distance).bind(attribute, len(table))
        found = float(rule.distances(histogram(members, VALUES))[0])
        assert found == pytest.approx(transport(members, table, distance), abs=1e-9)
        assert found == pytest.approx(float(twins.emd(members, table, RICH, distance)), abs=1e-12)
        assert found <= 1


def transport(members, table, distance):
    values = sorted(set(table))
    p, q = (np.array([records.count(value) / len(records) for value in values]) for records in (members, table))
    m = len(values)
    cost = np.array([twins.ground_distance(RICH, distance, values, a, b) for a in values for b in values])
    leaves, arrives = np.kron(np.eye(m), np.ones(m)), np.kron(np.ones(m), np.eye(m))
    solved = linprog(cost, A_eq=np.vstack([leaves, arrives]), b_eq=np.concatenate([p, q]), method="highs")
    assert solved.success
    return solved.fun


def test_a_flat_taxonomy_is_equal_distance_and_distances_are_symmetric():
    rng = np.random.default_rng(2)
    for _ in range(50):
        table = [value for value in draw(rng, 20) if value is not None]
        half = len(table) // 2
        flat = TCloseness(0, distance="hierarchical").bind(column(table, VALUES, taxonomy=FLAT), len(table))
        equal = TCloseness(0, distance="equal").bind(column(table, VALUES), len(table))
        counts = histogram(table[:half], VALUES)
        assert flat.distances(counts) == pytest.approx(equal.distances(counts), abs=1e-12)
        if set(table[:half]) == set(table[half:]):
            for distance in ("equal", "ordered", "hierarchical"):
                there, back = (
                    TCloseness(0, distance=distance)
                    .bind(column(side, VALUES, ordered=True, taxonomy=PARENTS), len(side))
                    .distances(histogram(other, VALUES))
                    for side, other in ((table[:half], table[half:]), (table[half:], table[:half]))
                )
                assert there == pytest.approx(back, abs=1e-12)


def test_values_that_do_not_occur_change_no_distance():
    table, members = ["10", "20", "50", "50"], ["10", "50"]
    for distance in ("equal", "ordered", "hierarchical"):
        found = [
            float(
                TCloseness(0, distance=distance)
                .bind(column(table, labels, ordered=True, taxonomy=PARENTS), 4)
                .distances(histogram(members, labels))[0]
            )
            for labels in (VALUES, ("10", "20", "50"))
        ]
        assert found[0] == pytest.approx(found[1], abs=1e-12)


def test_missing_values_count_in_no_distribution():
    rule = TCloseness(0, distance="equal").bind(column(["a", "b", None, None, None]), 5)
    assert rule.distances(np.array([[1, 1], [1, 0], [0, 0]])) == pytest.approx([0, 0.5, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_variance_is_half_the_mean_squared_distance_of_pairs(kind):
    more, about = KINDS[kind]
    rng = np.random.default_rng(3)
    for _ in range(30):
        values = draw(rng, int(rng.integers(1, 15)))
        variance = variance_for(KPQR(1, 0, 0), column(values, VALUES, **more))
        found = float(variance.of(histogram(values, VALUES))[0])
        assert found == pytest.approx(twins.variance(twins.known(values), about), abs=1e-9)
        if kind == "number" and twins.known(values):
            assert found == pytest.approx(np.var([float(value) for value in twins.known(values)]))


def test_variance_keeps_its_digits_far_from_zero():
    values = np.array([1e9, 1e9 + 1, 1e9 + 2])
    variance = variance_for(KPQR(1, 0, 0), column(list("abc"), numbers=values))
    assert float(variance.of(np.array([[1, 1, 1]]))[0]) == pytest.approx(2 / 3, rel=1e-12)


def test_entropy_equals_scipy():
    counts = np.random.default_rng(4).integers(0, 50, size=(200, 7))
    counts[:, 0] += 1
    assert entropy(counts) == pytest.approx(scipy_entropy(counts, axis=1), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:.*do not vary")
def test_kpqr_and_closeness_on_every_kind_of_attribute(kind):
    more, about = KINDS[kind]
    rng, answers = np.random.default_rng(6), set()
    for _ in range(40):
        table = draw(rng, 24)
        table[:6] = [str(value) for value in rng.choice(VALUES[:2], size=6)]
        attribute = column(table, VALUES, **more)
        members = np.sort(rng.choice(24, size=int(rng.integers(1, 9)), replace=False))
        of_class = [table[i] for i in members]
        for model in (KPQR(2, 0.2, 0.7), KPQR(2, 0.2, 0.8, reference="rare", scope="literal"), TCloseness(0.4)):
            rules = Policy((model,)).bind([attribute], 24)
            stats, flat = rules.stats_of(members), rules.flat()
            deficit = float(rules.deficit(stats)[0])
            row = stats.counts[0][0].astype(np.int32)
            assert class_deficit(flat, len(members), row) == pytest.approx(deficit, abs=1e-9)
            assert class_ok(flat, len(members), row) == (deficit == 0)
            parameters = model.parameters()
            assert getattr(twins, model.name)(of_class, table, about, **parameters) == (deficit == 0)
            answers.add((model, deficit == 0))
    assert len(answers) == 6


def test_guards_of_records_equal_the_naive_twin():
    rng, answers = np.random.default_rng(7), set()
    for _ in range(60):
        table = draw(rng, 20)
        guards = [
            None if value is None or rng.random() < 0.5 else str(rng.choice(twins.path(RICH, value)[:-1]))
            for value in table
        ]
        attribute = column(table, VALUES, taxonomy=PARENTS, beside={"wish": np.array(guards, dtype=object)})
        rules = Policy((Personalized(0.5, guard="wish"),)).bind([attribute], 20)
        flat = rules.flat()
        members = np.sort(rng.choice(20, size=int(rng.integers(1, 9)), replace=False))
        breach = twins.breach_of([table[i] for i in members], [guards[i] for i in members], RICH)
        stats = rules.stats_of(members)
        assert rules.rules[0].strongest(stats.sizes, stats.counts[0]) == pytest.approx(breach)
        assert rules.ok(members) == (breach <= 0.5 + 1e-12)
        row = stats.counts[0][0].astype(np.int32)
        assert class_deficit(flat, len(members), row) == pytest.approx(float(rules.deficit(stats)[0]), abs=1e-9)
        answers.add(rules.ok(members))
    assert answers == {True, False}


def test_large_histograms_are_worked_on_in_blocks(monkeypatch):
    rng = np.random.default_rng(8)
    codes = rng.integers(-1, 6, size=400)
    labels = rng.integers(0, 60, size=400)
    policy = Policy(tuple(example for model in MODELS.values() for example in model.examples()))
    rules = policy.bind([rich(codes)], 400)
    whole = rules.rule_deficits(rules.stats(labels, 60))
    monkeypatch.setattr("shoal.models.base.BLOCK", 40)
    pieces = rules.rule_deficits(rules.stats(labels, 60))
    assert pieces == pytest.approx(whole, abs=1e-12)
    assert np.array_equal(pieces == 0, whole == 0)


def test_subtree_ranges_are_merged_where_they_hold_the_same_values():
    """A taxonomy much larger than the data costs no more than the values that occur."""
    rows = [(f"v{i}", f"g{i // 4}", f"h{i // 16}", "*") for i in range(64)]
    attribute = replace(column(["v0", "v1", "v20"]), taxonomy=Taxonomy.from_rows(rows))
    rule = TCloseness(0.1, distance="hierarchical").bind(attribute, 3)
    assert len(rule.ranges.weight) == 4  # v0, v1, both, v20
    # v0 → v20 costs 1 (they meet at the root), v0 → v1 costs 1/3.
    assert float(rule.distances(np.array([[1, 0, 0]]))[0]) == pytest.approx(1 / 3 + 1 / 3 / 3)
