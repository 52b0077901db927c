"""What every model promises, tried on the examples of every model that the package finds."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
from tests.models.stand_in import RICH, VALUES, rich
from tests.reference import models as twins

from shoal.errors import ConfigError
from shoal.kernels.rules import class_deficit, class_ok, form_deficit
from shoal.models import MODELS, Model
from shoal.policy import Policy

# Beside the models' own examples, those that speak of the values of the stand-in column.
MORE = [
    MODELS["alpha_k"](0.4, values=["10", "40"]),
    MODELS["kpqr"](2, 0.25, 0.6, reference="rare"),
    MODELS["personalized"](0.5, guard={"20": "pair", "30": "30", "50": "high"}),
    MODELS["personalized"](0.3, guard={"10": "low"}),
]
EXAMPLES = [example for model in MODELS.values() for example in model.examples()] + MORE
pytestmark = pytest.mark.filterwarnings("ignore:.*do not vary")
examples = pytest.mark.parametrize("model", EXAMPLES, ids=str)


def random_codes(rng, n):
    """Skewed values and some missing ones."""
    shares = rng.dirichlet(np.full(len(VALUES), rng.choice([0.5, 1.5])))
    codes = rng.choice(len(VALUES), size=n, p=shares)
    codes[rng.random(n) < rng.choice([0.0, 0.15])] = -1
    return codes


def bound(model: Model, codes):
    rules = Policy((model,)).bind([rich(codes)], len(codes))
    return rules, rules.rules[0]


def deficits(rules, members):
    """Deficit of each class given by a row of flags (classes × records)."""
    sizes = members.sum(axis=1).astype(np.int64)
    if not rules.views:
        return sizes, np.zeros((len(sizes), 0), dtype=np.int64)
    view = rules.views[0]
    counts = np.zeros((len(members), view.width), dtype=np.int64)
    for code in range(view.width):
        counts[:, code] = members[:, view.codes == code].sum(axis=1)
    return sizes, counts


@cache
def tables():
    rng = np.random.default_rng(20)
    return [random_codes(rng, int(rng.integers(10, 41))) for _ in range(40)]


@cache
def pairs_of_classes(index):
    """Many pairs of disjoint classes of a table."""
    n, rng = len(tables()[index]), np.random.default_rng(index)
    trials = 300
    level = rng.choice([0.1, 0.25, 0.5], size=(trials, 1))
    first = rng.random((trials, n)) < level
    return first, ~first & (rng.random((trials, n)) < level[::-1])


def closure_failures(model):
    superset, union = 0, 0
    for index, codes in enumerate(tables()):
        rules, rule = bound(model, codes)
        first, second = pairs_of_classes(index)
        some = first.any(axis=1) & second.any(axis=1)
        good = {
            name: rule.deficit(*deficits(rules, members[some])) == 0
            for name, members in (("first", first), ("second", second), ("both", first | second))
        }
        superset += int((good["first"] & ~good["both"]).sum())
        union += int((good["first"] & good["second"] & ~good["both"]).sum())
    return superset, union


@examples
def test_closure_properties_are_the_declared_ones(model):
    superset, union = closure_failures(model)
    assert (superset == 0) == model.superset_closed
    assert (union == 0) == model.union_closed


@pytest.mark.parametrize("model", [example for example in EXAMPLES if example.local], ids=str)
def test_a_local_model_judges_a_class_by_itself(model):
    for index in range(0, 40, 4):
        codes = tables()[index]
        rules, rule = bound(model, codes)
        for members in pairs_of_classes(index)[0][:60]:
            if members.any():
                alone, same = bound(model, codes[members])
                everyone = np.ones((1, int(members.sum())), dtype=bool)
                found = same.deficit(*deficits(alone, everyone))
                assert found == pytest.approx(rule.deficit(*deficits(rules, members[None])), abs=1e-12)
                assert same.min_size() == rule.min_size()


@examples
def test_deficit_is_zero_or_positive_and_finite(model):
    rules, rule = bound(model, tables()[0])
    first, _ = pairs_of_classes(0)
    found = rule.deficit(*deficits(rules, first))
    assert found.dtype == np.float64
    assert found.shape == (len(first),)
    assert np.isfinite(found).all()
    assert ((found == 0) | (found > 1e-12)).all()
    assert not rule.deficit(np.zeros(0, dtype=np.int64), deficits(rules, first[:0])[1]).size


@examples
def test_compiled_rule_equals_numpy(model):
    for index in range(0, 40, 4):
        rules, rule = bound(model, tables()[index])
        flat = rules.flat()
        assert flat is not None
        sizes, counts = deficits(rules, pairs_of_classes(index)[0][:100])
        expected = rule.deficit(sizes, counts)
        for size, row, wanted in zip(sizes, counts.astype(np.int32), expected, strict=True):
            if size == 0:
                continue
            found = class_deficit(flat, size, row)
            assert found == pytest.approx(wanted, abs=1e-9)
            assert (found == 0) == (wanted == 0)
            assert class_ok(flat, size, row) == (wanted == 0)


def test_compiled_policy_of_several_attributes_equals_numpy():
    rng = np.random.default_rng(5)
    columns = [rich(random_codes(rng, 60), name="one"), rich(random_codes(rng, 60), name="two")]
    policy = Policy(tuple(example for model in MODELS.values() for example in model.examples()[:1]))
    rules = policy.bind(columns, 60)
    flat, labels = rules.flat(), rng.integers(0, 8, size=60)
    stats = rules.stats(labels, 8)
    by_rule = rules.rule_deficits(stats)
    assert len(rules.rules) == 2 * len(MODELS) - 1  # all but k_anonymity once for each attribute
    row = np.concatenate(stats.counts, axis=1).astype(np.int32)
    for c in range(8):
        found = np.zeros(len(rules.rules))
        for i, entry in enumerate(rules.entries):
            found[entry.rule] += form_deficit(flat, i, stats.sizes[c], row[c])
        assert found == pytest.approx(by_rule[:, c], abs=1e-9)
        assert class_deficit(flat, stats.sizes[c], row[c]) == pytest.approx(rules.deficit(stats)[c], abs=1e-9)


def test_every_model_has_a_naive_twin():
    assert [name for name in MODELS if not hasattr(twins, name)] == []


@examples
def test_naive_twin_agrees(model):
    parameters = {key: value for key, value in model.parameters().items() if key != "attribute"}
    twin, answers = getattr(twins, model.name), set()
    for index, codes in enumerate(tables()):
        rules, rule = bound(model, codes)
        members = pairs_of_classes(index)[0][:12]
        members = members[members.any(axis=1)]
        found = rule.deficit(*deficits(rules, members)) == 0
        table = [None if code < 0 else VALUES[code] for code in codes]
        for flags, ok in zip(members, found, strict=True):
            of_class = [value for value, inside in zip(table, flags, strict=True) if inside]
            assert twin(of_class, table, RICH, **parameters) == ok, (table, of_class)
            answers.add(bool(ok))
    assert answers == {True, False}


@examples
def test_strongest_holds_and_nothing_stronger_does(model):
    tried = 0
    for index, codes in enumerate(tables()):
        rules, rule = bound(model, codes)
        members = pairs_of_classes(index)[0]
        by_size = members[np.argsort(-members.sum(axis=1), kind="stable")]
        for some in (members[members.sum(axis=1) > 3][:3], by_size[:3]):
            sizes, counts = deficits(rules, some)
            value = rule.strongest(sizes, counts)
            step = 1e-6 if model.smaller_is_stronger else -1e-6
            for candidate, holds in ((value + step, True), (value - step, False)):
                changed = with_main(model, candidate, stronger=not holds)
                if model.name == "kpqr" and not holds and not rule.obliged(counts).any():
                    continue  # without an obliged class every p holds
                if changed is not None and np.isfinite(value):
                    tried += 1
                    assert (bound(changed, codes)[1].deficit(sizes, counts) == 0).all() == holds
        assert np.isnan(rule.strongest(sizes[:0], counts[:0]))
    assert tried > 10


def with_main(model, value, *, stronger):
    """The model with another main parameter, the next whole one where it is whole; None out of its range."""
    if isinstance(getattr(model, model.main), int) and getattr(model, "variant", "") != "entropy":
        value = int(np.ceil(value)) if stronger else int(np.floor(value + 1e-3))
    try:
        return replace(model, **{model.main: value})
    except ConfigError:
        return None


def test_strongest_entropy_is_real():
    _, rule = bound(MODELS["l_diversity"](2, variant="entropy"), [0] * 4 + [1] * 3 + [2] * 2 + [3])
    assert rule.strongest(np.array([10]), rule.table_counts[None, :]) == pytest.approx(3.5961, abs=1e-4)


@examples
def test_feasibility_and_bounds_against_all_partitions(model):
    rng = np.random.default_rng(9)
    seen = set()
    for _ in range(25):
        n = int(rng.integers(2, 8))
        codes = random_codes(rng, n)
        rules, rule = bound(model, codes)
        subsets = np.array([[mask >> i & 1 for i in range(n)] for mask in range(1, 2**n)], dtype=bool)
        sizes, counts = deficits(rules, subsets)
        good = np.concatenate([[False], rule.deficit(sizes, counts) == 0])
        most = most_classes(good, n)
        reason = rule.infeasible()
        seen.add(reason is None)
        if reason is not None:
            assert most < 0, reason
        elif model.union_closed:
            assert most >= 1  # the table as one class is then good
        assert most <= rule.max_classes()
        if good.any():
            assert sizes[good[1:]].min() >= rule.min_size()
    assert True in seen


def most_classes(good, n):
    """The largest number of good classes in a partition of n records, -1 when there is none."""
    best = [0] + [-1] * (2**n - 1)
    for mask in range(1, 2**n):
        lowest, part = mask & -mask, mask
        while part:
            if part & lowest and good[part] and best[mask ^ part] >= 0:
                best[mask] = max(best[mask], best[mask ^ part] + 1)
            part = (part - 1) & mask
    return best[-1]


@examples
def test_infeasible_says_what_could_be_asked_for(model):
    rng, refused, hopeless = np.random.default_rng(3), 0, 0
    for attempt in range(30):
        codes = random_codes(rng, int(rng.integers(1, 7)))
        if attempt % 2:
            codes[codes != codes[0]] = -1
        rules, rule = bound(model, codes)
        changed, reason = model, rule.infeasible()
        refused += reason is not None
        hopeless += model.union_closed and not rules.ok(np.arange(len(codes)))
        for _ in range(4):
            if reason is None or "fill the column" in reason or "larger c" in reason:
                break
            name, text = re.search(r"ask for (\w+) [≤≥] ([\d.]+)$", reason).groups()
            changed = replace(changed, **{name: float(text) if "." in text else int(text)})
            reason = bound(changed, codes)[1].infeasible()
        assert reason is None or "fill the column" in reason or "larger c" in reason
    assert refused or not hopeless


@examples
def test_a_column_without_any_value_breaks_nothing(model):
    columns = [rich([-1] * 5), replace(rich([-1] * 5), labels=(), numbers=np.zeros(0))]
    for column in columns:
        rule = model.bind(column, 5)
        width = rule.view.width if rule.view else 0
        counts = np.zeros((1, width), dtype=np.int64)
        found = rule.deficit(np.array([5]), counts)
        assert np.isfinite(found).all()
        parameters = {key: value for key, value in model.parameters().items() if key != "attribute"}
        assert (found == 0) == getattr(twins, model.name)([None] * 5, [None] * 5, RICH, **parameters)
        assert rule.infeasible() is None or found > 0
        assert rule.max_classes() >= 0
        assert rule.min_size() >= 1
        rule.strongest(np.array([5]), counts)
        rule.forms()


@examples
def test_models_are_values(model):
    assert model == replace(model)
    assert hash(model) == hash(replace(model))
    assert type(model)(**model.parameters()) == model
    assert Policy.from_config(Policy((model,)).to_config()) == Policy((model,))
    assert model.main in {field.name for field in fields(model)}


def test_merging_never_lowers_distinct_counts_nor_raises_the_largest_distance():
    for index, codes in enumerate(tables()):
        first, second = pairs_of_classes(index)
        some = first.any(axis=1) & second.any(axis=1)
        for name in ("p_sensitive", "p_plus_sensitive", "extended_p_sensitive"):
            rules, _ = bound(MODELS[name](2), codes)
            one, two, both = (deficits(rules, m[some])[1] for m in (first, second, first | second))
            larger = np.maximum(np.count_nonzero(one, axis=1), np.count_nonzero(two, axis=1))
            assert (np.count_nonzero(both, axis=1) >= larger).all()
        for distance in ("equal", "ordered", "hierarchical"):
            rules, rule = bound(MODELS["t_closeness"](0.1, distance=distance), codes)
            if rule.known:
                one, two, both = (rule.distances(deficits(rules, m[some])[1]) for m in (first, second, first | second))
                assert (both <= np.maximum(one, two) + 1e-12).all()
