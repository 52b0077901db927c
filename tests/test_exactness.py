"""The adversarial tables of `benchmarks/exactness.py`: all records equal, one column, two values, n < 2k, n = k, and more."""

from __future__ import annotations

from functools import cache

import pytest
from benchmarks.exactness import CASES, adversarial_tables, agree, task

from shoal.microdata import Microdata


@cache
def tables() -> list[tuple[Microdata, int, int]]:
    return list(adversarial_tables())


@pytest.mark.parametrize(
    "name", ["mdav", "mdav, single", "p_mdav", "kpqr", "spatial_distance", "il_optimization", "i3m"]
)
def test_the_naive_partition_and_its_twin_s(name: str) -> None:
    case = CASES[name]
    different = [i for i, table in enumerate(tables()) if not agree(case, task(case, *table), with_twin=True)[0]]
    assert different == []


def test_the_tables_are_as_extreme_as_they_say() -> None:
    found = tables()
    assert len(found) == 50
    assert any(len(data.points.codes) == 1 for data, _, _ in found)
    assert any(len(data.quasi) == 1 for data, _, _ in found)
    assert any(k < data.n < 2 * k for data, k, _ in found)
    assert any(data.n == k for data, k, _ in found)
