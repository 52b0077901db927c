"""Bounds and warnings are not only true but sharp: against every class, every partition and every possible group of small tables.

What is said too late or not at all breaks no promise of a model, but a bound that became looser would let algorithms search where
nothing is, and a warning that stays silent would publish a release that gives somebody away.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from tests.models.stand_in import VALUES, rich
from tests.models.test_model_contract import bound, deficits, examples, most_classes, random_codes

from shoal.models import MODELS, Model
from shoal.models.base import Rule, rounded

pytestmark = pytest.mark.filterwarnings("ignore:.*do not vary")

# By how much in all the least size of a class stays below the smallest good class, over all tables; 0 for every other model.
SIZE_SLACK = {
    "p_alpha_sensitive(p = 2, alpha = 1.5, scope = rows)": 1,
    "p_alpha_sensitive(p = 1, alpha = 3.0, scope = rows)": 8,
    "t_closeness(t = 0.35, distance = equal)": 5,
    "t_closeness(t = 0.25, distance = hierarchical)": 5,
}
# By how much the most classes exceed those of the finest partition, over all tables that have one; 0 for every other model.
CLASS_SLACK = {
    "alpha_k(alpha = 0.5)": 21,
    "alpha_k(alpha = 0.3333333333333333)": 11,
    "alpha_k(alpha = 0.4, values = ('10', '40'))": 56,
    "beta_likeness(beta = 1.0, variant = basic)": 32,
    "beta_likeness(beta = 0.5, variant = basic)": 33,
    "beta_likeness(beta = 1.5, variant = enhanced)": 11,
    "delta_disclosure(delta = 0.7, absent = allowed)": 32,
    "delta_disclosure(delta = 0.4, absent = allowed)": 23,
    "kpqr(p = 2, q = 0.25, r = 0.5, reference = all, scope = required)": 35,
    "kpqr(p = 3, q = 0.25, r = 0.3, reference = all, scope = required)": 44,
    "kpqr(p = 2, q = 0.25, r = 0.6, reference = all, scope = literal)": 38,
    "kpqr(p = 2, q = 0.25, r = 0.6, reference = rare, scope = required)": 32,
    "l_diversity(l = 2, variant = entropy)": 4,
    "l_diversity(l = 3, variant = recursive, c = 2.0)": 4,
    "l_diversity(l = 1, variant = recursive, c = 0.6)": 4,
    "p_alpha_sensitive(p = 2, alpha = 1.5, scope = rows)": 2,
    "p_alpha_sensitive(p = 2, alpha = 1.5, scope = distinct)": 2,
    "t_closeness(t = 0.3)": 39,
    "t_closeness(t = 0.35, distance = equal)": 24,
    "t_closeness(t = 0.2, distance = ordered)": 13,
    "t_closeness(t = 0.25, distance = hierarchical)": 22,
    "personalized(breach = 0.5, guard = 1)": 18,
    "personalized(breach = 0.6, guard = 1)": 34,
    "personalized(breach = 0.5, guard = {'20': 'pair', '30': '30', '50': 'high'})": 42,
    "personalized(breach = 0.3, guard = {'10': 'low'})": 21,
}
# How many of 120 groups are seen to break what the model promises.
SEEN = {
    "alpha_k(alpha = 0.5)": 50,
    "alpha_k(alpha = 0.3333333333333333)": 90,
    "alpha_k(alpha = 0.4, values = ('10', '40'))": 42,
    "beta_likeness(beta = 1.0, variant = basic)": 90,
    "beta_likeness(beta = 0.5, variant = basic)": 103,
    "beta_likeness(beta = 1.5, variant = enhanced)": 75,
    "delta_disclosure(delta = 0.7, absent = allowed)": 90,
    "delta_disclosure(delta = 0.4, absent = allowed)": 108,
    "delta_disclosure(delta = 1.2, absent = refused)": 107,
    "k_e(e = 20.0, count = rows)": 20,
    "k_e(e = 15.0, count = rows, k = 3)": 20,
    "k_e(e = 20.0, count = distinct, k = 3)": 20,
    "personalized(breach = 0.5, guard = 1)": 82,
    "personalized(breach = 0.6, guard = 1)": 74,
    "personalized(breach = 0.5, guard = {'20': 'pair', '30': '30', '50': 'high'})": 22,
    "personalized(breach = 0.3, guard = {'10': 'low'})": 70,
    "kpqr(p = 3, q = 0.25, r = 0.3, reference = all, scope = required)": 25,
    "t_closeness(t = 0.3)": 43,
    "t_closeness(t = 0.35, distance = equal)": 60,
    "t_closeness(t = 0.2, distance = ordered)": 55,
    "t_closeness(t = 0.25, distance = hierarchical)": 61,
}


@cache
def small_tables():
    rng = np.random.default_rng(9)
    return [random_codes(rng, int(rng.integers(4, 9))) for _ in range(30)]


@examples
def test_bounds_are_as_sharp_as_they_were(model: Model) -> None:
    sizes_below, classes_above = 0, 0
    for codes in small_tables():
        n = len(codes)
        rules, rule = bound(model, codes)
        subsets = np.array([[mask >> i & 1 for i in range(n)] for mask in range(1, 2**n)], dtype=bool)
        sizes, counts = deficits(rules, subsets)
        good = np.concatenate([[False], rule.deficit(sizes, counts) == 0])
        if good.any():
            sizes_below += int(sizes[good[1:]].min()) - rule.min_size()
        most = most_classes(good, n)
        if most > 0:
            classes_above += rule.max_classes() - most
    assert sizes_below == SIZE_SLACK.get(str(model), 0)
    assert classes_above <= CLASS_SLACK.get(str(model), 0)


@examples
def test_who_is_exposed_certainly_is_and_most_are_seen(model: Model) -> None:
    """Against every way in which the values that are not certain can fall."""
    _, rule = bound(model, np.arange(36) % 6)
    if type(rule).exposed is Rule.exposed or rule.view is None or rule.view.width != len(VALUES):
        nobody = rule.exposed(np.array([3]), np.array([[3, 0, 0, 0, 0, 0]]), np.array([[3, 0, 0, 0, 0, 0]]))
        assert nobody.shape == (1,) and (type(rule).exposed is not Rule.exposed or not nobody.any())
        return
    rng, sizes, bounds = np.random.default_rng(1), [], []
    for _ in range(120):
        size = int(rng.integers(1, 6))
        truth = np.bincount(rng.integers(0, 6, size) % int(rng.integers(1, 7)), minlength=6)
        lower = np.maximum(0, truth - rng.integers(0, 2, 6) * (rng.random() < 0.7))
        upper = np.minimum(size, truth + rng.integers(0, 3, 6) * (rng.random() < 0.7))
        sizes.append(size)
        bounds.append((lower, upper))
    found = rule.exposed(np.array(sizes), *(np.array(ends) for ends in zip(*bounds, strict=True)))
    for size, (lower, upper), seen in zip(sizes, bounds, found, strict=True):
        if seen:
            ranges = [range(low, high + 1) for low, high in zip(lower, upper, strict=True)]
            worlds = np.array([world for world in product(*ranges) if sum(world) == size])
            assert (rule.deficit(np.full(len(worlds), size), worlds) > 0).all()
    assert found.sum() >= SEEN.get(str(model), 13)


# local, superset_closed, union_closed, per_attribute, smaller_is_stronger, how people with several rows are counted
DECLARED = {
    "alpha_k": (False, False, True, True, True, "shares"),
    "beta_likeness": (False, False, True, True, True, "spread"),
    "delta_disclosure": (False, False, False, True, True, "spread"),
    "extended_p_sensitive": (True, True, True, True, False, "distinct"),
    "k_anonymity": (True, True, True, False, False, "shares"),
    "k_e": (True, True, True, True, False, "mean"),
    "kpqr": (False, False, False, True, False, "mean"),
    "l_diversity": (True, True, True, True, False, "distinct"),
    "p_alpha_sensitive": (False, True, True, True, False, "weighed"),
    "p_plus_sensitive": (True, True, True, True, False, "distinct"),
    "p_sensitive": (True, True, True, True, False, "distinct"),
    "personalized": (False, False, False, True, True, "shares"),
    "t_closeness": (False, False, True, True, True, "spread"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_declare_what_the_manual_says(name: str) -> None:
    model = MODELS[name].examples()[0]
    found = (model.local, model.superset_closed, model.union_closed, model.per_attribute, model.smaller_is_stronger)
    assert (*found, model.persons) == DECLARED[name]


@pytest.mark.parametrize(
    ("model", "group", "least"),
    [
        (MODELS["p_sensitive"](3), [0, 1, 2, 3, 4, 5], 3),
        (MODELS["p_plus_sensitive"](2), [0, 0, 1, 1, 2, 2], 2),
        (MODELS["extended_p_sensitive"](2), [0, 4, 4, 1, 2, 3], 2),
        (MODELS["p_alpha_sensitive"](2, 1.5), [0, 1, 2, 3, 4, 5], 2),
        (MODELS["l_diversity"](3), [0, 1, 2, 3, 4, 5], 3),
        (MODELS["l_diversity"](2.5, variant="entropy"), [0, 1, 2, 3, 4, 5], 3),
        (MODELS["l_diversity"](2, variant="recursive", c=1.5), [0, 1, 2, 3, 4, 5], 2),
        (MODELS["k_e"](20.0, count="distinct", k=4), [0, 1, 2, 3, 4, 5], 4),
        (MODELS["k_e"](20.0, count="rows", k=4), None, 0),
        (MODELS["k_e"](20.0), None, 0),
        (MODELS["t_closeness"](0.3), None, 0),
        (MODELS["k_anonymity"](3), None, 0),
    ],
    ids=str,
)
def test_what_stays_possible_for_everybody(model: Model, group: list[int] | None, least: int) -> None:
    rule = model.bind(rich(np.arange(36) % 6) if model.per_attribute else None, 36)
    promise = rule.promise()
    assert (promise is None) == (group is None)
    if promise is not None:
        assert len(set(zip(promise.group.tolist(), group or [], strict=True))) == len(set(group or []))
        assert promise.least == least


def test_among_how_many_a_model_hides_everybody() -> None:
    crowds = [MODELS["k_anonymity"](5), MODELS["k_e"](1.0, k=4), MODELS["k_e"](1.0), MODELS["p_sensitive"](3)]
    assert [model.crowd for model in crowds] == [5, 4, 1, 1]


def test_limits_are_rounded_to_the_side_that_can_be_asked_for() -> None:
    assert [rounded(value, up=True) for value in (0.3, 0.30001, 0.29999, 1.0, 2.5, 0.12341)] == [
        "0.3", "0.3001", "0.3", "1", "2.5", "0.1235",
    ]  # fmt: skip
    assert [rounded(value, up=False) for value in (0.3, 0.30001, 0.29999, 1.0, 0.1 + 0.2)] == [
        "0.3", "0.3", "0.2999", "1", "0.3",
    ]  # fmt: skip
