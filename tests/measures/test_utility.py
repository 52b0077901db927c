"""What an analyst keeps: counting queries and a classifier, on masked against original data."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.measures.masking import masked_of, partition_of
from tests.tables import random_table

import shoal
from shoal.errors import ConfigError, InputError
from shoal.measures.masked import read_published
from shoal.measures.utility import _overlap, classification, query_error
from shoal.microdata import Microdata


def test_an_unmasked_table_answers_exactly() -> None:
    data = random_table(1, 50)
    masked, _, _ = masked_of(data, shoal.Partition(np.arange(50, dtype=np.int32)))
    found = query_error(data, masked, queries=100)
    assert (found.median, found.mean, found.percentile_90) == (0, 0, 0)


def test_more_generalization_costs_more_answers() -> None:
    data = random_table(2, 200)
    order = np.lexsort(data.codes.T)
    errors = []
    for size in (2, 10, 50):
        labels = np.empty(200, dtype=np.int32)
        labels[order] = np.arange(200) // size
        masked, _, _ = masked_of(data, shoal.Partition(labels))
        errors.append(query_error(data, masked, queries=200).mean)
    assert errors == sorted(errors)
    assert errors[0] < errors[-1]


def test_the_same_seed_asks_the_same_queries() -> None:
    data = random_table(3, 60)
    masked, _, _ = masked_of(data, partition_of(3, 60, 12, suppressed=3))
    assert query_error(data, masked, queries=50, seed=5) == query_error(data, masked, queries=50, seed=5)
    assert query_error(data, masked, queries=50, seed=5) != query_error(data, masked, queries=50, seed=6)


def overlap(values: list[Any], published: list[Any], chosen: list[bool], **attribute: Any) -> list[float]:
    data = Microdata.from_frame(pl.DataFrame({"a": values}), {"a": {"role": "quasi", **attribute}})
    found = read_published(data, pl.DataFrame({"a": published}))
    return _overlap(data, found, 0, np.array(chosen)).tolist()


def test_spread_evenly_inside_boxes() -> None:
    # Whole numbers: 20 to 24 are five of the ten from 20 to 29; 30 is out, 22 is in.
    values = [20, 22, 24, 29, 30]
    asked = [True, True, True, False, False]
    assert overlap(values, ["[20, 29]", "30", "22"], asked) == pytest.approx([0.5, 0, 1])
    # Lengths: 0.5 to 1.0 is half of 0.5 to 1.5.
    assert overlap([0.5, 1.0, 1.5], ["[0.5, 1.5]"], [True, True, False]) == pytest.approx([0.5])
    # Two of the three leaves below the node, one of the two members of the set.
    rows = [["a", "x", "*"], ["b", "x", "*"], ["c", "x", "*"], ["d", "*"]]
    tree = {"taxonomy": {"rows": rows}}
    assert overlap(["a", "b", "c", "d"], ["x", "d"], [True, True, False, False], **tree) == pytest.approx([2 / 3, 0])
    assert overlap(["a", "b", "c"], ["{a, b}", "c"], [True, False, False]) == pytest.approx([0.5, 0])


def test_queries_are_checked() -> None:
    data = random_table(1, 20)
    with pytest.raises(ConfigError, match="selectivity"):
        query_error(data, data.frame, selectivity=0.0)


def labelled(n: int = 240) -> Microdata:
    random = np.random.default_rng(0)
    age = random.integers(20, 60, n)
    frame = pl.DataFrame(
        {"age": age, "town": [f"t{i}" for i in random.integers(0, 4, n)], "ill": np.where(age > 40, "gout", "flu")}
    )
    schema = {"age": {"role": "quasi"}, "town": {"role": "quasi"}, "ill": {"role": "sensitive"}}
    return Microdata.from_frame(frame, schema)


def test_a_classifier_loses_what_generalization_took() -> None:
    data = labelled()
    order = np.lexsort((data.codes[:, 1], data.codes[:, 0]))
    labels = np.empty(data.n, dtype=np.int32)
    labels[order] = np.arange(data.n) // 12
    fine, _, _ = masked_of(data, shoal.Partition(labels))
    nothing, _, _ = masked_of(data, shoal.Partition(np.zeros(data.n, dtype=np.int32)))
    kept, lost = (classification(data, table, "ill", folds=3) for table in (fine, nothing))
    assert kept.original > 0.95
    assert kept.masked > 0.85 > kept.baseline
    assert lost.masked == pytest.approx(lost.baseline, abs=0.02)
    assert kept.kept > 0.7 > lost.kept
    assert classification(data, fine, "ill", folds=3) == kept


def test_only_a_column_published_unchanged_can_be_predicted() -> None:
    data = labelled(30)
    masked, _, _ = masked_of(data, shoal.Partition(np.zeros(30, dtype=np.int32)))
    with pytest.raises(InputError, match="'age' is not published unchanged"):
        classification(data, masked, "age")
    with pytest.raises(InputError, match="did you mean 'ill'"):
        classification(data, masked, "il")
