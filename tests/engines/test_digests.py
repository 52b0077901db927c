"""Digests of rows: the same whatever lies beside a row, on every machine, and never the same for two that differ."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl

from shoal.engines.digests import row_keys, row_sums


def table() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "text": ["a", "b", None, "a", "1"],
            "number": [0.0, -0.0, 1.5, None, float("nan")],
            "whole": [1, 1, 2, None, 1],
            "day": [date(2020, 1, 1), None, date(2020, 1, 2), date(2020, 1, 1), None],
            "some": [[1], [], None, [1], [2, 1]],
        }
    )


def test_the_rows_beside_a_row_and_their_order_change_nothing() -> None:
    rows = table()
    order = np.array([3, 0, 4, 2, 1])
    first, second = row_keys(rows, 3)
    for i, keys in enumerate(zip(*row_keys(rows[order], 3), strict=True)):
        assert keys == (first[order[i]], second[order[i]])
    for i in range(rows.height):
        assert row_keys(rows[i : i + 1], 3) == (first[i], second[i])
    total = sum((row_sums(rows[i : i + 1]) for i in range(rows.height)), np.zeros(4, dtype=np.uint64))
    assert (row_sums(rows) == total).all() and (row_sums(rows[order]) == total).all()


def test_whatever_differs_is_told_apart() -> None:
    rows = table()
    assert len(set(row_keys(rows, 3)[0].tolist())) == rows.height
    swapped = pl.DataFrame({"a": ["x", "y"], "b": ["y", "x"]})
    first = row_keys(swapped, 0)[0]
    assert first[0] != first[1]
    assert (row_sums(swapped[:1]) != row_sums(swapped[1:])).all()
    # A text and the number it spells, a missing value and the word for it.
    for one, other in ((["1"], [1]), ([None], ["None"]), ([1], [1.0])):
        assert row_keys(pl.DataFrame({"a": one}), 0)[0] != row_keys(pl.DataFrame({"a": other}), 0)[0]


def test_zero_has_one_spelling() -> None:
    keys = row_keys(pl.DataFrame({"a": [0.0, -0.0]}), 0)[0]
    assert keys[0] == keys[1]


def test_they_are_the_same_everywhere() -> None:
    """Written down once: a release that was ordered elsewhere has this order here."""
    first, second = row_keys(pl.DataFrame({"age": ["[20, 29]"], "n": [7]}), 5)
    assert (int(first[0]), int(second[0])) == (17730382423178130041, 12898940763172733742)
    sums = [13616365402360762769, 14625385592497711201, 11909745175600330117, 16971985576333257165]
    assert row_sums(pl.DataFrame({"age": ["[20, 29]"], "n": [7]})).tolist() == sums
