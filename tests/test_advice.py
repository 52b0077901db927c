"""Advice after a release: what it says about width and about sets is what the table itself gives."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.advice import advice


def wide(columns: int, n: int = 600, seed: int = 0) -> shoal.Microdata:
    """Independent numbers of 50 values; the last column has four, and costs the others less."""
    random = np.random.default_rng(seed)
    frame = pl.DataFrame({f"q{i}": random.integers(0, 50 if i < columns - 1 else 4, n) for i in range(columns)})
    return shoal.Microdata.from_frame(frame, {name: {"role": "quasi"} for name in frame.columns})


def released(data: shoal.Microdata, k: int) -> shoal.Release:
    return shoal.anonymize(data, shoal.KAnonymity(k), algorithm="mondrian", refine=False)


def test_the_column_that_is_named_saves_the_others_what_is_said() -> None:
    data = wide(9)
    release = released(data, 10)
    [sentence] = advice(release.data, release.partition, 10)
    found = re.search(r"without '(q\d)' the others lose ([\d.]+) instead of ([\d.]+) \((\d+)% less\)", sentence)
    assert found is not None and "drop = true under [attributes." in sentence
    name, after, before = found[1], float(found[2]), float(found[3])
    # The same by hand: mondrian with and without the column, NCP of the others.
    others = [column for column in data.frame.columns if column != name]
    without = shoal.Microdata.from_frame(data.frame.select(others), {column: {"role": "quasi"} for column in others})
    assert released(without, 10).measures.ncp == pytest.approx(after, abs=6e-4)
    assert after < before and int(found[4]) == pytest.approx(100 * (1 - after / before), abs=0.6)


def test_nothing_is_said_where_there_is_nothing_to_say() -> None:
    narrow = released(wide(7), 10)
    assert advice(narrow.data, narrow.partition, 10) == []
    alike = shoal.Microdata.from_frame(
        pl.DataFrame({f"q{i}": [1, 2] * 300 for i in range(9)}), {f"q{i}": {"role": "quasi"} for i in range(9)}
    )
    cheap = released(alike, 10)
    assert cheap.measures.ncp == 0 and advice(cheap.data, cheap.partition, 10) == []
    few = released(wide(9, n=30), 10)
    assert advice(few.data, few.partition, 10) == []


def test_long_sets_ask_for_a_taxonomy() -> None:
    frame = pl.DataFrame({"employer": [f"e{i % 400:03d}" for i in range(1_200)], "age": [20, 40, 60] * 400})
    data = shoal.Microdata.from_frame(frame, {name: {"role": "quasi"} for name in frame.columns})
    release = released(data, 20)
    [sentence] = advice(release.data, release.partition, 20)
    sizes = release.masked["employer"].str.count_matches(",").cast(pl.Float64) + 1
    assert f"a set of {sizes.mean():.1f} of them" in sentence
    assert "'employer' has 400 values" in sentence and 'taxonomy = "auto"' in sentence
    short = released(data, 2)
    assert advice(short.data, short.partition, 2) == []
