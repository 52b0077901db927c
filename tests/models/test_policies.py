"""Models joined: a policy has a property when all its models have it, and needs what the neediest of them does."""

from __future__ import annotations

import numpy as np
import pytest
from tests.models.stand_in import NUMBERS, VALUES, column, rich
from tests.reference import models as twins

from shoal.models import MODELS
from shoal.models.alpha_k import AlphaK
from shoal.models.k_anonymity import KAnonymity
from shoal.models.k_e import KE
from shoal.models.kpqr import KPQR
from shoal.models.p_sensitive import PSensitive
from shoal.models.personalized import Personalized
from shoal.models.t_closeness import TCloseness
from shoal.policy import Policy

CODES = np.arange(36) % 6


def test_the_k_of_a_policy_is_the_largest_of_its_models() -> None:
    for models, k in [
        ((KAnonymity(2), PSensitive(5)), 5),
        ((PSensitive(3), KAnonymity(7)), 7),
        ((KAnonymity(4), KE(20.0, count="rows", k=6)), 6),
        ((AlphaK(0.25), KAnonymity(2)), 4),
    ]:
        rules = Policy(models).bind([rich(CODES)], 36)
        assert rules.k == k
        # It is a bound: no class below it is good.
        assert not any(rules.ok(np.arange(size)) for size in range(1, k))


def test_the_most_classes_of_a_policy_are_the_fewest_of_its_models() -> None:
    rules = Policy((KAnonymity(9), PSensitive(2))).bind([rich(CODES)], 36)
    assert rules.max_classes == 4
    assert Policy((PSensitive(2), KAnonymity(9))).bind([rich(CODES)], 36).max_classes == 4


@pytest.mark.parametrize(
    ("models", "superset", "union"),
    [
        ((KAnonymity(2), PSensitive(2)), True, True),
        ((KAnonymity(2), TCloseness(0.3)), False, True),
        ((TCloseness(0.3), Personalized(0.5)), False, False),
        ((Personalized(0.5), KAnonymity(2)), False, False),
        ((KPQR(2, 0.1, 0.5), AlphaK(0.5)), False, False),
    ],
)
def test_a_policy_is_closed_when_all_its_models_are(models, superset, union) -> None:
    rules = Policy(models).bind([rich(CODES)], 36)
    assert rules.superset_closed == superset == all(model.superset_closed for model in models)
    assert rules.union_closed == union == all(model.union_closed for model in models)


def test_a_range_of_nothing_asks_for_a_known_number_and_no_more() -> None:
    """(k, e) with e = 0: any class with a known number spans it, one without any does not."""
    attribute = column(["10", "10", None, "60", None], VALUES, numbers=NUMBERS)
    rules = Policy((KE(0.0),)).bind([attribute], 5)
    about = twins.About(number=dict(zip(VALUES, NUMBERS.tolist(), strict=True)))
    flat = rules.flat()
    from shoal.kernels.rules import class_deficit

    for members, good in [([0], True), ([0, 1], True), ([0, 3], True), ([2], False), ([2, 4], False), ([2, 3], True)]:
        values = [(None if attribute.codes[i] < 0 else VALUES[attribute.codes[i]]) for i in members]
        stats = rules.stats_of(np.array(members))
        assert rules.ok(np.array(members)) == good == twins.k_e(values, values, about, e=0.0)
        assert (class_deficit(flat, len(members), stats.counts[0][0].astype(np.int32)) == 0) == good
    rule = rules.rules[0]
    assert rule.infeasible() is None
    assert rule.min_size() == 1
    assert rule.max_classes() == 3  # one for each known number
    stats = rules.stats(np.array([0, 0, 0, 1, 1]), 2)
    assert rule.strongest(stats.sizes, stats.counts[0]) == 0.0
    assert KE(0.0, k=2).bind(attribute, 5).max_classes() == 2
    assert KE(0.0, count="distinct", k=2).bind(attribute, 5).max_classes() == 1
    alone = column([None, None], VALUES, numbers=NUMBERS)
    assert "no known one" in str(KE(0.0).bind(alone, 2).infeasible())


def test_two_columns_of_guards_stay_apart() -> None:
    """Each personalized model reads its own column; the last one named used to serve for all."""
    guards = {
        "mild": np.array(["", "", "", ""], dtype=object),
        "strict": np.array(["10", "10", "20", "20"], dtype=object),
    }
    parents = {"10": "low", "20": "low", "low": "*"}
    attribute = column(["10", "10", "20", "20"], taxonomy=parents, beside=guards)
    policy = Policy((Personalized(0.25, guard="strict"), Personalized(0.25, guard="mild")))
    assert policy.beside(["illness"]) == {"illness": ("strict", "mild")}
    deficits = policy.bind([attribute], 4).rule_deficits(policy.bind([attribute], 4).stats(np.zeros(4, dtype=int), 1))
    assert (deficits[:, 0] > 0).tolist() == [True, False]


def test_a_model_may_be_bound_to_counts_alone() -> None:
    """Rules need no records: whoever has the counts of a table's values gets the same answers."""

    class Counted:
        def __init__(self, of):
            self.__dict__.update({name: getattr(of, name) for name in ("name", "labels", "numbers", "ordered")})
            self.taxonomy, self.protect, self.categories = of.taxonomy, of.protect, of.categories
            self.counts = of.counts

        def pairs(self, beside):
            return None

    records = rich(np.append(CODES, [-1, -1]))
    for kind in MODELS.values():
        for model in kind.examples():
            one, other = (model.bind(held if kind.per_attribute else None, 38) for held in (records, Counted(records)))
            assert np.array_equal(one.table_counts, other.table_counts)
            assert (one.max_classes(), one.min_size()) == (other.max_classes(), other.min_size())
            assert one.infeasible() == other.infeasible()
