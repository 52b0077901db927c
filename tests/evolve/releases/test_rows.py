"""Rows numbered by columns, against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.evolve.releases.rows import in_order, numbered, places


@pytest.mark.parametrize("seed", range(60))
def test_numbers_are_those_of_numpy(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, d = int(random.integers(0, 40)), int(random.integers(1, 5))
    reach = [1, 3, 50, 2**40, 2**62][seed % 5]
    table = random.integers(-reach // 2, reach // 2 + 1, (n, d)) * random.integers(0, 2, d)
    expected, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    number, begins = numbered(*table.T)
    assert number.tolist() == inverse.ravel().tolist()
    assert begins.tolist() == first.tolist()
    assert np.array_equal(table[begins], expected)


@pytest.mark.parametrize("seed", range(40))
def test_orders_and_places_are_those_of_lists(seed: int) -> None:
    """With few and many numbers, dense ones and ones so large that no table has room, repeated ones and negative ones."""
    random = np.random.default_rng(seed)
    reach = [1, 5, 60, 2**40, 2**62][seed % 5]
    number = random.integers(0, reach, int(random.integers(0, 30)))
    assert in_order(number).tolist() == sorted(range(len(number)), key=lambda row: number[row])
    known = random.integers(-2, reach, int(random.integers(0, 30)))
    wanted = np.concatenate([random.integers(-2, reach, 10), random.permutation(known)[:5]])
    expected = [known.tolist().index(one) if one >= 0 and one in known.tolist() else -1 for one in wanted.tolist()]
    assert places(known, wanted).tolist() == expected
