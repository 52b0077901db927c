"""Parameters and columns that models refuse, and what they say."""

from __future__ import annotations

import numpy as np
import pytest
from tests.models.stand_in import CATEGORIES, PARENTS, VALUES, column

from shoal.errors import ConfigError, InfeasibleError
from shoal.models import MODELS
from shoal.models.kpqr import KPQR
from shoal.models.p_sensitive import PSensitive
from shoal.models.personalized import Personalized
from shoal.policy import Policy

NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("k_anonymity", {"k": 0}, "k = 0 is not allowed; it must be a whole number at least 1"),
        ("k_anonymity", {"k": 2.5}, "whole number"),
        ("k_anonymity", {"k": True}, "k = True"),
        ("p_sensitive", {"p": 0}, "p = 0"),
        ("p_sensitive", {"p": "3"}, "p = '3'"),
        ("extended_p_sensitive", {"p": 0}, "p = 0"),
        ("p_plus_sensitive", {"p": -1}, "p = -1"),
        ("p_alpha_sensitive", {"p": 0, "alpha": 1}, "p = 0"),
        ("p_alpha_sensitive", {"p": 1, "alpha": -0.1}, "alpha = -0.1"),
        ("p_alpha_sensitive", {"p": 1, "alpha": 1, "scope": "row"}, "did you mean 'rows'"),
        ("l_diversity", {"l": 0}, "l = 0"),
        ("l_diversity", {"l": 2.5}, "l = 2.5 is not allowed; it must be a whole number"),
        ("l_diversity", {"l": 0.5, "variant": "entropy"}, "l = 0.5"),
        ("l_diversity", {"l": 2, "variant": "entropie"}, "did you mean 'entropy'"),
        ("l_diversity", {"l": 2, "variant": "recursive"}, "c = None is not allowed; it must be a number above 0"),
        ("l_diversity", {"l": 2, "variant": "recursive", "c": 0}, "c = 0"),
        ("l_diversity", {"l": 2, "c": 1.0}, 'belongs to variant = "recursive"'),
        ("alpha_k", {"alpha": 0}, "above 0 and at most 1"),
        ("alpha_k", {"alpha": 1.1}, "alpha = 1.1"),
        ("alpha_k", {"alpha": NAN}, "alpha = nan"),
        ("alpha_k", {"alpha": 0.5, "values": []}, "list of sensitive values"),
        ("alpha_k", {"alpha": 0.5, "values": "flu"}, "list of sensitive values"),
        ("k_e", {"e": -1}, "e = -1"),
        ("k_e", {"e": float("inf")}, "e = inf"),
        ("k_e", {"e": 1, "count": "distinct"}, "needs k"),
        ("k_e", {"e": 1, "count": "values"}, "allowed: rows, distinct"),
        ("k_e", {"e": 1, "k": 0}, "k = 0"),
        ("t_closeness", {"t": -0.1}, "t = -0.1 is not allowed; it must be a number between 0 and 1"),
        ("t_closeness", {"t": 1.01}, "t = 1.01"),
        ("t_closeness", {"t": 0.1, "distance": "orderd"}, "did you mean 'ordered'"),
        ("kpqr", {"p": 0, "q": 0.1, "r": 0.1}, "p = 0"),
        ("kpqr", {"p": 1, "q": 1.1, "r": 0.1}, "q = 1.1"),
        ("kpqr", {"p": 1, "q": 0.1, "r": -0.1}, "r = -0.1"),
        ("kpqr", {"p": 1, "q": 0.1, "r": 0.1, "reference": "any"}, "allowed: all, rare"),
        ("kpqr", {"p": 1, "q": 0.1, "r": 0.1, "scope": "literally"}, "did you mean 'literal'"),
        ("personalized", {"breach": 0}, "above 0"),
        ("personalized", {"breach": 0.5, "guard": -1}, "guard = -1"),
        ("personalized", {"breach": 0.5, "guard": 1.5}, "guard = 1.5"),
        ("personalized", {"breach": 0.5, "guard": {}}, "guard is empty"),
        ("personalized", {"breach": 0.5, "guard": ""}, "guard is empty"),
    ],
)
def test_parameters_out_of_range(name, parameters, message):
    with pytest.raises(ConfigError) as caught:
        MODELS[name](**parameters)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("model", "more", "message"),
    [
        (MODELS["extended_p_sensitive"](2), {}, "needs a taxonomy of 'illness'"),
        (MODELS["extended_p_sensitive"](2), {"taxonomy": {"10": "*"}}, "'20' of 'illness': it is no leaf"),
        (MODELS["extended_p_sensitive"](2), {"taxonomy": PARENTS, "protect": ("pari",)}, "did you mean 'pair'"),
        (MODELS["p_plus_sensitive"](2), {}, "needs the categories of 'illness'"),
        (MODELS["p_plus_sensitive"](2), {"categories": CATEGORIES[:1]}, "The value '30' of 'illness' is in none"),
        (
            MODELS["p_alpha_sensitive"](2, 1.0),
            {"categories": (*CATEGORIES, ("again", ("10",)))},
            "The value '10' of 'illness' is in the categories 'secret' and 'again'",
        ),
        (MODELS["alpha_k"](0.5, values=["100"]), {}, "'100' of values is no value of 'illness'; did you mean '10'"),
        (MODELS["k_e"](5), {}, "k_e needs numbers and 'illness' has none"),
        (MODELS["t_closeness"](0.5, distance="ordered"), {}, "the values of 'illness' have none"),
        (MODELS["t_closeness"](0.5, distance="hierarchical"), {}, "needs a taxonomy of 'illness'"),
        (MODELS["personalized"](0.5), {}, "needs a taxonomy of 'illness'"),
        (MODELS["personalized"](0.5, guard={"100": "low"}), {"taxonomy": PARENTS}, "did you mean '10'"),
        (MODELS["personalized"](0.5, guard={"pair": "pair"}), {"taxonomy": PARENTS}, "'pair' of guard is no value"),
        (MODELS["personalized"](0.5, guard={"10": "lwo"}), {"taxonomy": PARENTS}, "did you mean 'low'"),
        (MODELS["personalized"](0.5, guard={"10": "high"}), {"taxonomy": PARENTS}, "is not above the value '10'"),
        (MODELS["personalized"](0.5, guard="wish"), {"taxonomy": PARENTS}, "guard = 'wish' names a column"),
    ],
)
def test_columns_that_do_not_fit(model, more, message):
    with pytest.raises(ConfigError) as caught:
        model.bind(column(VALUES, **more), len(VALUES))
    assert message in str(caught.value)


@pytest.mark.parametrize("model", [m.examples()[0] for m in MODELS.values() if m.per_attribute], ids=str)
def test_without_a_sensitive_attribute(model):
    with pytest.raises(ConfigError, match=f"{model.name} needs a sensitive attribute"):
        model.bind(None, 5)


def test_values_that_do_not_occur_need_no_place():
    """A column may know more values than the table holds."""
    attribute = column(["10", "20"], VALUES, taxonomy={"10": "*", "20": "*"}, categories=(("one", ("10", "20")),))
    for name in ("extended_p_sensitive", "p_plus_sensitive"):
        assert MODELS[name](1).bind(attribute, 2).infeasible() is None
    assert MODELS["t_closeness"](0.2, distance="hierarchical").bind(attribute, 2).infeasible() is None


def test_infeasible_policy_names_the_attribute():
    rules = Policy((PSensitive(4),)).bind([column(list("abca"))], 4)
    with pytest.raises(InfeasibleError, match=r"needs 4 distinct values of 'illness' and the table has 3; .* p ≤ 3"):
        rules.require_feasible()
    assert "ask for l ≤ 3" in MODELS["l_diversity"](4).bind(column(list("abca")), 4).infeasible()
    assert "ask for alpha ≥ 0.5" in MODELS["alpha_k"](0.3).bind(column(list("abca")), 4).infeasible()
    assert "'a'" in MODELS["alpha_k"](0.3).bind(column(list("abca")), 4).infeasible()


def test_a_reference_without_variance_is_said():
    with pytest.warns(UserWarning, match="do not vary"):
        rule = KPQR(1, 0.3, 0.5, reference="rare").bind(column(["a"] + ["b"] * 9), 10)
    assert rule.deficit(np.array([1]), np.array([[1, 0]])) == 0
    assert np.isinf(rule.ratios(np.array([[1, 0]]))).all()
    assert np.isfinite(rule.ratios(np.array([[1, 1]]), "all")).all()


def test_guards_are_written_as_a_mapping():
    model = Personalized(0.5, guard={"flu": "infection"})
    assert model.parameters() == {"breach": 0.5, "guard": {"flu": "infection"}}
    assert Policy.from_config({"personalized": {"breach": 0.5, "guard": {"flu": "infection"}}}).models == (model,)


def test_every_attribute_gets_its_rule_unless_one_is_named():
    columns = [column(list("abc"), name="one"), column(list("aab"), name="two")]
    assert [rule.attribute for rule in Policy((PSensitive(2),)).bind(columns, 3).rules] == ["one", "two"]
    assert [rule.attribute for rule in Policy((PSensitive(2, "two"),)).bind(columns, 3).rules] == ["two"]


def test_infeasible_guards_count_what_lies_outside():
    """One record guards "low", four lie below it and one outside: at best the two are a class of their own."""
    attribute = column(["10", "20", "30", "40", "50"], VALUES, taxonomy=PARENTS)
    model = Personalized(0.4, guard={"10": "low"})
    assert "the guard 'low' of 'illness'" in model.bind(attribute, 5).infeasible()
    assert model.bind(attribute, 5).infeasible().endswith("ask for breach ≥ 0.5")
    assert Policy((Personalized(0.5, guard={"10": "low"}),)).bind([attribute], 5).ok(np.array([0, 4]))
