"""The contract of every algorithm with every model, on every small table: a verified release, or a refusal that explains itself."""

from __future__ import annotations

import pytest

from shoal.algorithms import names
from shoal.checks import check, combinations, fitting, tables
from shoal.models import MODELS, Model
from shoal.policy import Policy


@pytest.mark.parametrize(("algorithm", "model"), combinations(), ids=lambda value: str(value))
def test_released_or_refused_with_a_reason(algorithm: str, model: Model) -> None:
    for data in tables().values():
        told = check(algorithm, fitting(model, data), data)
        assert told == "released" or len(told.split()) > 5


@pytest.mark.parametrize("algorithm", names())
def test_k_anonymity_is_always_released(algorithm: str) -> None:
    assert check(algorithm, Policy((MODELS["k_anonymity"](3),)), tables()["mixed"]) == "released"
    assert "k = 3" in check(algorithm, Policy((MODELS["k_anonymity"](3),)), tables()["one record"])
