"""The verifier's audit: every model, with the parameter that just holds, and histograms that are counted in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.measures.masking import masked_of, partition_of
from tests.tables import ILLNESSES, random_table

from shoal.configuration import read_schema
from shoal.models import MODELS
from shoal.models.k_anonymity import KAnonymity
from shoal.models.kpqr import KPQR
from shoal.models.l_diversity import LDiversity
from shoal.models.parameters import declared
from shoal.models.personalized import Personalized
from shoal.pieces import CELLS
from shoal.policy import Policy
from shoal.schema import Schema
from shoal.verifier import Strength, audit, audited_column, judging, verify


def example(seed: int) -> tuple[pl.DataFrame, Schema]:
    data = random_table(seed, 80, sensitive=2)
    masked, _, _ = masked_of(data, partition_of(seed, 80, 6))
    return masked, data.schema


def holds(strength: Strength, value: Any, masked: pl.DataFrame, schema: Schema) -> bool:
    given = {strength.parameter: value, **strength.settings}
    if strength.attribute is not None:
        given["attribute"] = strength.attribute
    return verify(masked, Policy((MODELS[strength.model](**given),)), schema).passed


@pytest.mark.parametrize("seed", range(3))
def test_the_parameter_holds_and_a_stronger_one_does_not(seed: int) -> None:
    masked, schema = example(seed)
    found = audit(masked, schema)
    assert {strength.model for strength in found} == set(MODELS)
    for strength in found:
        value, model = strength.strongest, MODELS[strength.model]
        whole = strength.parameter in ("k", "p") or (strength.model, strength.settings.get("variant")) in (
            ("l_diversity", "distinct"),
            ("l_diversity", "recursive"),
        )
        if whole:
            if value >= 1:
                assert holds(strength, int(value), masked, schema), strength
            if strength.model != "kpqr":  # without a rare value in any class every p holds
                assert not holds(strength, int(value) + 1, masked, schema), strength
        elif np.isnan(value):
            assert not holds(strength, 1e6 if model.smaller_is_stronger else 0.0, masked, schema), strength
        elif model.smaller_is_stronger:
            most = declared(model)[strength.parameter].high
            weaker = value + 1e-9
            assert holds(strength, weaker if most is None else min(most, weaker), masked, schema), strength
            if value > 1e-3:
                assert not holds(strength, value - 1e-6, masked, schema), strength
        else:
            assert holds(strength, value - 1e-9, masked, schema), strength
            assert not holds(strength, value + 1e-6, masked, schema), strength


@pytest.mark.parametrize("seed", range(3))
def test_counting_in_pieces_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    masked, schema = example(seed)
    policy = Policy((KAnonymity(3), LDiversity(2, variant="entropy"), KPQR(p=2, q=0.3, r=0.2)))
    whole, judged = audit(masked, schema, policy), verify(masked, policy, schema)
    monkeypatch.setattr("shoal.pieces.CELLS", 20)
    for one, other in zip(whole, audit(masked, schema, policy), strict=True):
        if one.settings.get("scope") == "literal":  # may not be told from pieces, and then says so
            assert np.isnan(other.strongest) or other.strongest == one.strongest
        else:
            assert other.strongest == pytest.approx(one.strongest, abs=1e-12, nan_ok=True)
    again = verify(masked, policy, schema)
    assert [check.failing for check in again.checks] == [check.failing for check in judged.checks]
    assert [str(v) for v in again.violations] == [str(v) for v in judged.violations]


def test_what_pieces_cannot_tell_is_tested_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Piece by piece p = 2 seems to hold; but then the last class, with three values that hardly vary, is tested too."""
    pay = [50, 100, 50, 0, 100, 1, *[0, 1, 2] * 3]
    masked = pl.DataFrame({"g": ["a"] * 2 + ["b"] * 4 + ["c"] * 9, "pay": pay})
    schema = read_schema({"g": {"role": "quasi"}, "pay": {"role": "sensitive"}})
    policy = Policy((KPQR(2, 0.2, 0.3, scope="literal"),))
    assert verify(masked, policy, schema).checks[0].strongest == 0
    monkeypatch.setattr("shoal.pieces.CELLS", 5)
    told = verify(masked, policy, schema)
    assert np.isnan(told.checks[0].strongest) and not told.passed
    assert told.to_dict()["checks"][0]["strongest"] is None
    # What does hold in all pieces and in the whole is told all the same.
    assert verify(masked, Policy((LDiversity(2),)), schema).checks[0].strongest == 2


def test_no_piece_is_larger_than_the_limit() -> None:
    n = 6000
    masked = pl.DataFrame({"g": [f"c{i // 2}" for i in range(n)], "pay": np.arange(n) * 1.5})
    schema = read_schema({"g": {"role": "quasi"}, "pay": {"role": "sensitive"}})
    column = audited_column(masked, "pay", schema)
    rule = LDiversity(2).bind(column, n)
    sizes = np.full(n // 2, 2)
    labels = np.repeat(np.arange(n // 2), 2)
    cells = [counts.size for _, counts in judging._pieces(rule, labels, sizes, [column])]
    assert max(cells) <= CELLS < sum(cells)
    found = verify(masked, Policy((LDiversity(2),)), schema)
    assert found.passed and found.checks[0].strongest == 2


def test_the_policys_own_parameters_are_used() -> None:
    masked, schema = example(1)
    found = audit(masked, schema, Policy((LDiversity(2, variant="recursive", c=3.5),)))
    settings = [s.settings for s in found if s.model == "l_diversity"]
    assert {"variant": "recursive", "c": 3.5} in settings
    assert {"variant": "recursive", "c": 1.5} not in settings
    assert {"variant": "entropy"} in settings


def test_models_that_do_not_apply_are_left_out() -> None:
    masked = pl.DataFrame({"g": ["a", "a", "b", "b"], "ill": ["flu", "cold", "flu", "cold"]})
    schema = read_schema({"g": {"role": "quasi"}, "ill": {"role": "sensitive"}})
    found = audit(masked, schema)
    assert {"k_e", "personalized", "p_plus_sensitive", "extended_p_sensitive"}.isdisjoint(s.model for s in found)
    assert {s.settings.get("distance") for s in found if s.model == "t_closeness"} == {None, "equal"}
    nothing = audit(masked.drop("ill"), read_schema({"g": {"role": "quasi"}}))
    assert [(s.model, s.strongest) for s in nothing] == [("k_anonymity", 2.0)]


def test_guards_in_a_published_column_are_seen() -> None:
    masked = pl.DataFrame(
        {"g": ["a"] * 4, "ill": ["flu", "ulcer", "gastritis", "HIV"], "guard": ["flu", "stomach", "", None]}
    )
    schema = read_schema(
        {
            "g": {"role": "quasi"},
            "ill": {"role": "sensitive", "taxonomy": {"rows": ILLNESSES}},
            "guard": {"role": "other"},
        }
    )
    found = verify(masked, Policy((Personalized(0.4, guard="guard"),)), schema)
    assert (found.passed, found.checks[0].strongest) == (False, 0.5)
