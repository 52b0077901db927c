"""Golden values of the per-column transformations, and that a masked table which skipped them is caught."""

from __future__ import annotations

from datetime import date, datetime

import polars as pl
import pytest

import shoal
from shoal.configuration import read_schema
from shoal.transform import require_transformed, transformed


@pytest.mark.parametrize(
    ("values", "rule", "wanted"),
    [
        ([149, 151, 250], {"round": 100}, [100, 200, 200]),
        ([0.14, 0.16, None], {"round": 0.1}, [0.1, 0.2, None]),
        ([1.1, 1.2, 3.8], {"round": 2.5}, [0.0, 0.0, 5.0]),
        ([17, 50, 95], {"top": 90, "bottom": 18}, [18, 50, 90]),
        ([48.13743, -11.57549], {"truncate": 2}, [48.13, -11.57]),
        (["41076", "10115"], {"truncate": 3}, ["410", "101"]),
        ([date(2024, 3, 17), None], {"truncate": "month"}, [date(2024, 3, 1), None]),
        ([date(2024, 3, 17), date(1931, 1, 1)], {"truncate": "decade"}, [date(2020, 1, 1), date(1930, 1, 1)]),
        ([datetime(2024, 3, 17, 12, 30)], {"truncate": "day"}, [date(2024, 3, 17)]),
        ([date(1901, 1, 1), date(2024, 1, 1)], {"bottom": "1934-01-01"}, [date(1934, 1, 1), date(2024, 1, 1)]),
        (["12", "160"], {"round": 50, "kind": "number"}, [0.0, 150.0]),
    ],
)
def test_golden(values, rule, wanted):
    schema = read_schema({"x": {"role": "other", **rule}})
    frame = pl.DataFrame({"x": values})
    once = transformed(frame, schema)
    assert once["x"].to_list() == wanted
    assert transformed(once, schema).equals(once)
    require_transformed(once, schema)


def test_whole_numbers_stay_whole():
    schema = read_schema({"x": {"role": "other", "round": 10}})
    assert transformed(pl.DataFrame({"x": [14, 16]}), schema)["x"].dtype == pl.Int64


def test_a_column_that_was_not_transformed_is_found():
    schema = read_schema({"x": {"role": "other", "round": 100}})
    with pytest.raises(shoal.VerificationError, match=r"'x'.*round = 100.*2 of its published values"):
        require_transformed(pl.DataFrame({"x": [100, 101, 199]}), schema)


@pytest.mark.parametrize(
    ("rule", "good", "forged"),
    [
        ({"top": 90}, ["[20, 90]", "34", "*", None], "[20, 97]"),
        ({"bottom": 18}, ["[18, 30]"], "[17, 30]"),
        ({"round": 5}, ["[20, 25]", "30"], "[20, 24]"),
        ({"round": 5}, ["[20, 25]", "30"], "31"),
        ({"truncate": 1}, ["[1.1, 1.5]"], "[1.1, 1.57]"),
        ({"truncate": "month", "kind": "date"}, ["[2024-01-01, 2024-03-01]"], "[2024-01-01, 2024-03-14]"),
        ({"bottom": "1935-01-01", "kind": "date"}, ["[1935-01-01, 1990-04-04]"], "[1931-01-01, 1990-04-04]"),
    ],
)
def test_the_ends_of_intervals_are_verified_too(rule, good, forged):
    schema = read_schema({"x": {"role": "quasi", **rule}})
    require_transformed(pl.DataFrame({"x": good}), schema)
    with pytest.raises(shoal.VerificationError, match=r"'x'.*1 of its published values"):
        require_transformed(pl.DataFrame({"x": [*good, forged]}), schema)


def test_means_are_not_rounded_and_nodes_are_no_values():
    schema = read_schema({"x": {"role": "quasi", "round": 5, "top": 90}})
    require_transformed(pl.DataFrame({"x": [21.7, 88.0]}), schema)
    with pytest.raises(shoal.VerificationError, match="top = 90"):
        require_transformed(pl.DataFrame({"x": [21.7, 91.0]}), schema)
    coarse = read_schema({"x": {"role": "quasi", "top": 90, "taxonomy": {"edges": [[0, 50, 100]]}}})
    require_transformed(pl.DataFrame({"x": ["[50, 100]"]}), coarse)
    both = read_schema({"x": {"role": "quasi", "round": 5}})
    with pytest.raises(shoal.VerificationError, match="'x_max'"):
        require_transformed(pl.DataFrame({"x_min": [20, 30], "x_max": [25, 33]}), both)


def test_a_dropped_column_leaves():
    frame = pl.DataFrame({"age": [1, 2, 3, 4], "note": list("abcd")})
    data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}, "note": {"drop": True}})
    release = shoal.anonymize(data, shoal.KAnonymity(2), algorithm="mondrian", refine=False)
    assert release.masked.columns == ["age"]


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (["a", "b"], {"round": 10}),
        (["a", "b"], {"truncate": 1, "top": 3}),
        ([date(2024, 1, 1)], {"round": 5}),
        ([date(2024, 1, 1)], {"top": "soon"}),
        ([1.5], {"truncate": "month"}),
    ],
)
def test_what_makes_no_sense_is_refused(values, rule):
    with pytest.raises(shoal.ConfigError, match=r"\[attributes\.x\]"):
        transformed(pl.DataFrame({"x": values}), read_schema({"x": {"role": "other", **rule}}))
