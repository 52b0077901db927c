"""What a store writes down, it reads back: values, settings, and the codes of values that come later."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evolve.store.registry import POLICY, SCHEMA, people

import shoal
from shoal.configuration import read_schema
from shoal.evolve.store.batch_input import fitted, widened
from shoal.evolve.store.codebook import Books, settled
from shoal.evolve.store.settings import Settings, decode_rows, encode_rows, type_names
from shoal.schema import Schema
from shoal.space import Interval, Set

TEXTS = st.text(max_size=8) | st.sampled_from(['"', "\\", "\n", "null", "é", "🐟", "{}"])
KINDS: dict[str, Any] = {
    "whole": st.integers(-(2**63), 2**63 - 1),
    "number": st.floats(allow_nan=False, allow_infinity=False),
    "text": TEXTS,
    "day": st.dates(date(1, 1, 1), date(9999, 12, 31)),
    "moment": st.datetimes(datetime(1700, 1, 1), datetime(2250, 1, 1)),
}
TYPES = {"whole": pl.Int64, "number": pl.Float64, "text": pl.String, "day": pl.Date, "moment": pl.Datetime("us")}


@given(st.lists(st.fixed_dictionaries({name: st.none() | values for name, values in KINDS.items()}), max_size=6))
@settings(max_examples=60)
def test_records_come_back_as_they_were(rows: list[dict[str, Any]]) -> None:
    frame = pl.DataFrame(rows, schema=TYPES)
    assert decode_rows(encode_rows(frame), type_names(frame)).equals(frame)


def plain(schema: dict[str, Any], frame: pl.DataFrame) -> Schema:
    kept = {name: attribute for name, attribute in schema.items() if attribute["role"] != "identifier"}
    return settled(read_schema(kept), frame.select(list(kept)))


def test_settings_come_back_as_they_were() -> None:
    schema = {
        **SCHEMA,
        "job": {"role": "quasi", "taxonomy": "auto", "weight": 2.5},
        "age": {"role": "quasi", "domain": [0, 120]},
    }
    first = Settings("id", plain(schema, people(0, 40)), shoal.Policy(POLICY.models), ("name",), options={"a": 1})
    again = Settings.from_json(first.to_json())
    assert again.to_json() == first.to_json()
    assert again.schema.attributes == first.schema.attributes
    assert again.policy == first.policy


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=5), st.booleans())
@settings(max_examples=30)
def test_codes_follow_the_values_that_are_learned(seeds: list[int], holes: bool) -> None:
    """However values arrive, a code always stands for the same value, and old codes go where `moves` says."""
    parts = []
    for seed in seeds:
        part = people(0, 8, seed).with_columns(age=pl.col("age") + (seed % 3) / 2, job=pl.col("job") + str(seed % 4))
        if holes and seed % 2 and parts:
            part = part.with_columns(
                age=pl.when(pl.col("age") > 50).then(pl.col("age")), zip=pl.lit(None, dtype=pl.String)
            )
        parts.append(part.with_columns(pl.col("age").cast(pl.Float64)))
    schema = plain(SCHEMA, pl.concat(parts))
    policy = shoal.Policy(POLICY.models)
    books = Books(schema, policy).learn(parts[0])
    codes, secrets = books.codes(parts[0])
    written = books.news(Books(schema, policy))
    for part in parts[1:]:
        grown = books.learn(part)
        quasi, rest = grown.moves(books)
        for j, new_code in enumerate(quasi):
            codes[:, j] = codes[:, j] if new_code is None else np.asarray(new_code)[codes[:, j]]
        for j, new_code in enumerate(rest):
            lookup = None if new_code is None else np.append(new_code, -1)
            secrets[:, j] = secrets[:, j] if lookup is None else lookup[secrets[:, j]]
        expected = grown.codes(parts[0])
        assert np.array_equal(codes, expected[0]) and np.array_equal(secrets, expected[1])
        written += grown.news(books)
        books = grown
    order = sorted(written, key=lambda row: (row["column"], row["position"]))
    assert len({(row["column"], row["position"]) for row in order}) == len(order)
    read = Books(schema, policy).read([(row["column"], row["value"]) for row in order])
    for part in parts:
        for one, other in zip(read.codes(part), books.codes(part), strict=True):
            assert np.array_equal(one, other)
        values = books.codes(part)[0]
        for j, (name, domain) in enumerate(zip(schema.named("quasi"), books.space("ncp").domains, strict=True)):
            assert [_value(domain, code) for code in values[:, j]] == part[name].to_list()
    assert books.learn(parts[0]) is books


def _value(domain: Any, code: int) -> Any:
    """What a code stands for."""
    if domain.has_missing and code == domain.missing_code:
        return None
    if isinstance(domain, Interval):
        return domain.values[code]
    return domain.labels[code] if isinstance(domain, Set) else domain.taxonomy.labels[code]


def test_columns_take_the_type_of_the_store() -> None:
    whole = pl.Series("x", [1, None])
    assert fitted(whole, "number").dtype == pl.Float64
    assert fitted(whole, "text").to_list() == ["1", None]
    assert fitted(pl.Series("x", [1.0, 2.5]), "text").to_list() == ["1", "2.5"]
    assert fitted(pl.Series("x", ["7", "8"]), "integer").to_list() == [7, 8]
    assert fitted(pl.Series("x", ["7", "8.5"]), "integer").to_list() == [7.0, 8.5]
    assert fitted(pl.Series("x", ["2024-02-29"]), "date").to_list() == [date(2024, 2, 29)]
    assert fitted(pl.Series("x", [date(2024, 2, 29)]), "moment").to_list() == [datetime(2024, 2, 29)]
    assert fitted(pl.Series("x", [None, None], dtype=pl.String), "date").dtype == pl.Date
    frame = pl.DataFrame({"x": [1.5], "y": ["a"]})
    assert widened({"x": "integer", "y": "text"}, frame) == {"x": "number", "y": "text"}
