"""Encoding: codes, domains, missing values, and errors that say what to do."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from shoal.errors import ConfigError, InputError
from shoal.microdata import Microdata, distinct_rows
from shoal.space import Interval, Set, Tree

FRAME = pl.DataFrame(
    {
        "age": [30, None, 17, 30],
        "zip": ["41076", "41935", "12345", "41076"],
        "job": ["nurse", "baker", "nurse", None],
        "seen": [date(2024, 1, 31), date(2024, 2, 1), date(2023, 5, 5), date(2024, 1, 31)],
        "ill": ["flu", "cold", "flu", None],
    }
)
SCHEMA: dict[str, Any] = {
    "age": {"role": "quasi", "domain": [0, 120]},
    "zip": {"role": "quasi", "taxonomy": {"prefix": [3, 2, 0]}},
    "job": {"role": "quasi"},
    "seen": {"role": "quasi", "taxonomy": {"dates": ["month", "year"]}},
    "ill": {"role": "sensitive"},
}


def test_codes_and_domains() -> None:
    data = Microdata.from_frame(FRAME, SCHEMA)
    age, zips, job, seen = data.domains
    assert isinstance(age, Interval) and age.width == 120
    assert data.codes[:, 0].tolist() == [1, 2, 0, 1]
    assert isinstance(zips, Tree) and zips.taxonomy.labels[: zips.size] == ("12345", "41076", "41935")
    assert isinstance(job, Set) and job.labels == ("nurse", "baker")
    assert data.codes[:, 2].tolist() == [0, 1, 0, 2]
    assert isinstance(seen, Tree) and seen.publish(1, 2) == "2024"
    assert data.sensitive[0].labels == ("flu", "cold")
    assert data.sensitive[0].codes.tolist() == [0, 1, 0, -1]
    assert not data.codes.flags.writeable


def test_equal_tuples_are_found_once() -> None:
    codes = np.array([[1, 0], [0, 5], [1, 0], [0, 2]], dtype=np.int32)
    points = distinct_rows(codes, [2, 6])
    assert points.codes.tolist() == [[0, 2], [0, 5], [1, 0]]
    assert points.of_record.tolist() == [2, 1, 2, 0]
    assert points.weights.tolist() == [1, 1, 2]


def test_tuples_beyond_one_word() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, (200, 40)).astype(np.int32)
    codes[100:] = codes[:100]
    points = distinct_rows(codes, [2_000_000_000] * 40)
    assert np.array_equal(points.codes[points.of_record], codes)
    assert len(points.codes) == len(np.unique(codes, axis=0))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_every_library_gives_the_same_codes(library: str) -> None:
    frame: Any = {"pandas": FRAME.to_pandas, "polars": FRAME.clone, "pyarrow": FRAME.to_arrow}[library]()
    data = Microdata.from_frame(frame, SCHEMA)
    assert np.array_equal(data.codes, Microdata.from_frame(FRAME, SCHEMA).codes)
    kind = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}[library]
    assert isinstance(data.native(data.frame), kind)


def test_dropping_missing_is_counted() -> None:
    data = Microdata.from_frame(FRAME, SCHEMA, missing="drop")
    assert (data.n, data.dropped) == (2, 2)


@pytest.mark.parametrize(
    ("change", "schema", "message"),
    [
        (
            {"age": ["30", "x1", "17", "x2"]},
            {"age": {"role": "quasi", "kind": "number"}},
            r"'age', record 2: 'x1' is not a number \(2 such",
        ),
        (
            {"seen": ["2024-01-01", "2024-02-30", None, None]},
            {"seen": {"role": "quasi", "kind": "date"}},
            "record 2: '2024-02-30' is not a date",
        ),
        ({"age": [1.0, float("inf"), 2.0, 3.0]}, {}, "holds inf in row 2"),
        ({"age": [2**60, 2**60 + 1, 3, 4]}, {"age": {"role": "quasi"}}, "beyond 2"),
        ({"age": [1, 2, 3, 130]}, {}, "130 lies outside the declared domain"),
        ({"job": [None, None, None, None]}, {}, "'job' has no values at all"),
        (
            {"job": ["a", "b", "b", "c"]},
            {"job": {"role": "quasi", "taxonomy": {"rows": [["a", "*"], ["c", "*"]]}}},
            r"does not know 'b' \(2 records\)",
        ),
    ],
)
def test_bad_values_are_named(change: dict[str, Any], schema: dict[str, Any], message: str) -> None:
    frame = FRAME.with_columns(**{name: pl.Series(values, strict=False) for name, values in change.items()})
    with pytest.raises(InputError, match=message):
        Microdata.from_frame(frame, {**SCHEMA, **schema})


def test_missing_as_error_names_the_first() -> None:
    with pytest.raises(InputError, match=r"Column 'age' has 1 missing values, the first in record 2"):
        Microdata.from_frame(FRAME, SCHEMA, missing="error")


def test_undeclared_and_unknown_columns() -> None:
    with pytest.raises(ConfigError, match="Column 'ill' has no role"):
        Microdata.from_frame(FRAME, {k: v for k, v in SCHEMA.items() if k != "ill"})
    with pytest.raises(ConfigError, match=r"no such column; did you mean 'age'"):
        Microdata.from_frame(FRAME, {**SCHEMA, "agee": {"role": "other"}})
    rest = {k: v for k, v in SCHEMA.items() if k != "ill"} | {"*": {"role": "other"}}
    assert Microdata.from_frame(FRAME, rest).schema.named("other") == ["ill"]


def test_automatic_taxonomies_build() -> None:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"x": rng.integers(0, 500, 300), "c": rng.choice(list("abcdefghij"), 300), "d": rng.choice(list("pqr"), 300)}
    )
    data = Microdata.from_frame(
        frame,
        {
            "x": {"role": "quasi", "taxonomy": "auto"},
            "c": {"role": "quasi", "taxonomy": "auto"},
            "d": {"role": "quasi"},
        },
    )
    assert isinstance(data.domains[0], Tree) and isinstance(data.domains[1], Tree)
    assert data.domains[0].taxonomy.levels > 2


def test_ordered_categories_become_intervals() -> None:
    frame = pl.DataFrame({"grade": ["low", "high", "mid"]})
    data = Microdata.from_frame(frame, {"grade": {"role": "quasi", "order": ["low", "mid", "high"]}})
    assert data.codes[:, 0].tolist() == [0, 2, 1]
    assert data.domains[0].publish(0, 1) == "[low, mid]"  # type: ignore[call-arg, arg-type, union-attr]
