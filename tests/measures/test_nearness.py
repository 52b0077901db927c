"""How near a release is to the proven least: what is said, and when nothing is."""

from __future__ import annotations

import polars as pl
import pytest
from tests.tables import random_table

import shoal
from shoal.cli.anonymize import bound_effort
from shoal.errors import ConfigError
from shoal.measures.nearness import Nearness


def test_a_release_knows_how_near_it_is() -> None:
    data = random_table(3, n=60)
    release = shoal.anonymize(data, shoal.KAnonymity(3) & shoal.PSensitive(2))
    near = release.nearness()
    assert near.least is not None
    assert near.ratio is not None
    assert 0 < near.least <= near.loss == release.measures.ncp
    assert 0.5 < near.ratio <= 1
    assert near.to_dict()["ratio"] == near.ratio


def test_the_objective_is_what_is_compared() -> None:
    release = shoal.anonymize(random_table(3, n=40), shoal.Policy((shoal.KAnonymity(2),)), objective="granularity")
    near = release.nearness(0.1)
    assert (near.measure, near.loss) == ("granularity", release.measures.granularity)


def test_where_nothing_is_proven_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"age": [21, 22, 40, 41]})
    averages = shoal.anonymize(frame, {"k": 2}, quasi="age", recode="microaggregate")
    assert "not for averages" in str(averages.nearness())
    plain = shoal.anonymize(frame, {"k": 2}, quasi="age")
    monkeypatch.setattr("shoal.measures.nearness.LARGE", 3)
    assert plain.nearness().least is None
    assert "--bound thorough" in str(plain.nearness())
    assert plain.nearness(1.0).ratio == pytest.approx(1.0)


def test_what_is_said_is_never_too_much() -> None:
    assert "less than 0.1234: it is within 21.5 % of the least" in str(Nearness("ncp", 0.15, 0.12349))
    assert "it is the least" in str(Nearness("ncp", 0.0, 0.0))
    assert "as far as is known" in str(Nearness("ncp", 0.1, 0.0))


def test_the_option_of_the_command_line() -> None:
    assert (bound_effort("none"), bound_effort("thorough"), bound_effort("12.5")) == (None, "thorough", 12.5)
    for wrong in ("quick", "-1", "nan", "1e9"):
        with pytest.raises(ConfigError, match="fast, thorough, none"):
            bound_effort(wrong)
