"""The synthetic survey: the same for the same seed, answers that hang together, and a schema that fits."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import shoal
from shoal.datasets import survey, survey_schema
from shoal.errors import ConfigError


def test_the_same_seed_gives_the_same_answers() -> None:
    assert_frame_equal(survey(500, 24, seed=4), survey(500, 24, seed=4))
    assert not survey(500, 24, seed=4).equals(survey(500, 24, seed=5))
    assert survey(0, 9).height == 0


@pytest.mark.parametrize("questions", [5, 9, 24, 40])
def test_the_schema_knows_every_column(questions: int) -> None:
    table = survey(200, questions)
    assert table.columns == list(survey_schema(questions)) and len(table.columns) == questions + 1
    data = shoal.Microdata.from_frame(table, survey_schema(questions))
    assert data.codes.shape == (200, questions)
    assert table["income"].null_count() > 0 and table.drop("income").null_count().sum_horizontal()[0] == 0


def test_answers_hang_together_and_nearly_everybody_is_alone() -> None:
    table = survey(5_000, 24, seed=1)
    assert table.drop("vote").unique().height > 0.99 * 5_000
    for one, other, least in (("age", "hours", 0.5), ("education", "income", 0.3), ("q10", "q15", 0.35)):
        known = table.drop_nulls([one, other])
        codes = [known[name].rank("dense").to_numpy() for name in (one, other)]
        assert abs(np.corrcoef(*codes)[0, 1]) > least, (one, other)
    assert abs(np.corrcoef(table["age"], table["sex"].rank("dense"))[0, 1]) < 0.05
    assert table["vote"].n_unique() >= 5 and table["age"].min() >= 18


@pytest.mark.parametrize("given", [{"n": -1}, {"seed": 1.5}, {"questions": 4}, {"questions": 61}, {"questions": True}])
def test_what_is_not_possible_is_said(given: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(given))):
        survey(**given)  # type: ignore[arg-type]


def test_a_region_is_in_its_province() -> None:
    table = survey(300, 5)
    assert table["region"].str.len_chars().unique().to_list() == [3]
    assert isinstance(table["age"].dtype, pl.Int64)
