"""Strongest δ and β on Adult, beside those that pyCANON 1.3.6 prints of the same masked tables.

pyCANON fixes the versions of all it needs and cannot stand beside ours, so what it printed is written down here;
`python -m benchmarks.measures --peer PYTHON` runs it in an environment of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import shoal
from shoal.datasets.public import adult
from shoal.errors import ShoalError
from shoal.models import MODELS, Model
from shoal.verifier import audit

QUASI = ("age", "sex", "race", "marital-status")


def table() -> shoal.Microdata:
    try:
        frame = adult().select([*QUASI, "occupation"])
    except ShoalError as reason:
        pytest.skip(f"Adult is not here: {reason}")
    roles: dict[str, Any] = {name: {"role": "quasi"} for name in QUASI}
    return shoal.Microdata.from_frame(frame, {**roles, "occupation": {"role": "sensitive"}})


def masked(data: shoal.Microdata, *models: Model, **more: Any) -> shoal.Release:
    more = {"refine": False, "order": "keep", "seed": 1, **more}
    return shoal.anonymize(data, shoal.Policy(models), algorithm="mondrian", **more)


def strengths(release: shoal.Release) -> dict[str, float]:
    data = release.data
    found = {(s.model, *s.settings.values()): s.strongest for s in audit(release.masked, data.schema)}
    names = {"delta": ("delta_disclosure", "allowed"), "basic": ("beta_likeness", "basic")}
    return {name: found[key] for name, key in {**names, "enhanced": ("beta_likeness", "enhanced")}.items()}


def test_the_strongest_parameters_are_those_of_pycanon() -> None:
    data = table()
    k, delta, beta = (MODELS[name] for name in ("k_anonymity", "delta_disclosure", "beta_likeness"))
    for models, classes, printed in [
        ((k(1000),), 23, {"delta": 3.0264874554025223, "basic": 5.672639787622367, "enhanced": 5.672639787622367}),
        (
            (k(50), delta(1.0)),
            17,
            {"delta": 0.9990973511190777, "basic": 1.7158292814694758, "enhanced": 1.7158292814694758},
        ),
        (
            (k(50), beta(1.0)),
            33,
            {"delta": 2.1683851283354656, "basic": 0.9998342422383928, "enhanced": 0.9998342422383928},
        ),
    ]:
        release = masked(data, *models)
        assert release.measures.classes == classes
        assert strengths(release) == pytest.approx(printed, rel=1e-12)


def test_where_no_beta_is_enhanced_none_is_claimed() -> None:
    """pyCANON prints 8.117, the largest −ln p; but a value gains more than its own −ln p, which no β allows."""
    data = table()
    release = masked(data, MODELS["k_anonymity"](200))
    found = strengths(release)
    assert release.measures.classes == 104
    assert (found["delta"], found["basic"]) == pytest.approx((3.38081106837246, 22.852906287069988), rel=1e-12)
    assert math.isnan(found["enhanced"])
    policy = shoal.Policy((MODELS["beta_likeness"](1e9, variant="enhanced"),))
    assert not shoal.verify(release.masked, policy, data.schema).passed


@pytest.mark.parametrize("model", [("delta_disclosure", 1.0), ("beta_likeness", 1.0)], ids=str)
def test_a_search_finds_less_loss_within_the_model(model: tuple[str, float]) -> None:
    name, parameter = model
    data = table().take(np.arange(0, 30162, 12))
    models = shoal.KAnonymity(10), MODELS[name](parameter, "occupation")
    plain, refined = masked(data, *models), masked(data, *models, refine=1.0)
    assert refined.evidence.passed
    assert refined.measures.ncp < plain.measures.ncp
    assert refined.secret["notes"]["refined"]["by"] == ["relocate", "box_search"]
