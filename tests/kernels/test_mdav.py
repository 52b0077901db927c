"""MDAV gives the partition of the naive twin, record for record, and the losses published for it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from tests.reference import mdav as twin

from shoal.datasets import census
from shoal.errors import ConfigError, InfeasibleError, InputError
from shoal.kernels.kdtree import (
    build_tree,
    delete_record,
    farthest_record,
    live_count,
    nearest_allowed,
    nearest_records,
)
from shoal.kernels.mdav import mdav_labels

Floats = NDArray[np.float64]

PLANE = np.array([[1, 1], [2, 1], [1, 2], [8, 8], [9, 8], [8, 9], [5, 5]], dtype=float)
LINE = np.array([[1], [2], [3], [10], [11], [12], [20], [21], [30]], dtype=float)

GOLDEN_SMALL = [
    (PLANE, 2, "generic", [{0, 1}, {4, 3}, {2, 5, 6}], 33.6196),
    (PLANE, 2, "single", [{0, 1}, {2, 6}, {3, 4, 5}], 9.5738),
    (PLANE, 3, "generic", [{0, 1, 2}, {3, 4, 5, 6}], 12.9135),
    (PLANE, 3, "single", [{0, 1, 2}, {3, 4, 5, 6}], 12.9135),
    (LINE, 3, "generic", [{8, 7, 6}, {0, 1, 2}, {3, 4, 5}], 8.3381),
    (LINE, 3, "single", [{8, 7, 6}, {0, 1, 2}, {3, 4, 5}], 8.3381),
    (LINE, 2, "generic", [{8, 7}, {0, 1}, {6, 5}, {2, 3, 4}], 14.3123),
    (LINE, 2, "single", [{8, 7}, {6, 5}, {4, 3}, {0, 1, 2}], 9.6705),
]


@pytest.mark.parametrize(("X", "k", "form", "groups", "loss"), GOLDEN_SMALL)
def test_golden_small_sets(X: Floats, k: int, form: str, groups: list[set[int]], loss: float) -> None:
    labels = mdav_labels(X, k, form)
    assert {frozenset(np.flatnonzero(labels == g).tolist()) for g in range(labels.max() + 1)} == set(
        map(frozenset, groups)
    )
    assert lost(X, labels) == pytest.approx(loss, abs=5e-5)


@pytest.mark.parametrize(("k", "loss"), [(3, 5.6922), (4, 7.4947), (5, 9.0884), (7, 11.5979), (10, 14.1559)])
def test_generic_on_census(k: int, loss: float) -> None:
    X = standardized_census()
    labels = mdav_labels(X, k, "generic")
    assert lost(X, labels) == pytest.approx(loss, abs=5e-5)
    np.testing.assert_array_equal(labels, twin.mdav(X, k))
    np.testing.assert_array_equal(labels, twin.mdav(X, k, exact_mean=False))


@pytest.mark.parametrize(
    ("k", "loss", "with_last"),
    [(3, 5.58723, 5.6536), (4, 7.52733, 7.4414), (5, 9.21171, 8.8840), (7, 11.53596, 11.4266)],
)
def test_single_on_census(k: int, loss: float, with_last: float) -> None:
    X = standardized_census()
    assert lost(X, mdav_labels(X, k, "single")) == pytest.approx(with_last, abs=5e-5)
    X = X[:, :-1].copy()  # the paper's experiment leaves the last attribute out (Domingo-Ferrer et al. 2008, §5)
    labels = mdav_labels(X, k, "single")
    assert lost(X, labels) == pytest.approx(loss, abs=5e-6)
    np.testing.assert_array_equal(labels, twin.mdav_single(X, k))
    np.testing.assert_array_equal(labels, twin.mdav_single(X, k, exact_mean=False))


@pytest.mark.parametrize("seed", range(60))
def test_same_as_twin_on_adversarial_tables(seed: int) -> None:
    X, k = adversarial(seed)
    np.testing.assert_array_equal(mdav_labels(X, k, "generic"), twin.mdav(X, k))
    np.testing.assert_array_equal(mdav_labels(X, k, "single"), twin.mdav_single(X, k))


def test_same_as_twin_through_several_trees() -> None:
    X = np.random.default_rng(5).standard_normal((1500, 4))
    np.testing.assert_array_equal(mdav_labels(X, 4, "generic"), twin.mdav(X, 4))


@pytest.mark.parametrize("seed", range(12))
def test_tree_answers_as_a_scan_would(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, columns = int(rng.integers(1, 700)), int(rng.integers(1, 5))
    X = rng.integers(0, 6, (n, columns)).astype(float) if seed % 2 else rng.standard_normal((n, columns))
    labels = rng.integers(0, 4, n).astype(np.int32)
    tree = build_tree(X)
    alive = list(range(n))
    found, distances = np.empty(9, dtype=np.int32), np.empty(9)
    while alive:
        assert live_count(tree) == len(alive)
        query = X[rng.integers(n)] if rng.random() < 0.5 else 3.0 * rng.standard_normal(columns)
        assert farthest_record(tree, query) == twin.farthest(X, alive, query)
        for m in (1, 9):
            count = nearest_records(tree, query, m, found, distances)
            assert found[:count].tolist() == twin.nearest(X, alive, query, m)
            np.testing.assert_array_equal(distances[:count], np.sort(twin.distances(X, alive, query))[:m])
        allowed = rng.random(4) < 0.5
        count = nearest_allowed(tree, query, 9, labels, allowed, found, distances)
        among = [record for record in alive if allowed[labels[record]]]
        assert found[:count].tolist() == (twin.nearest(X, among, query, 9) if among else [])
        for record in rng.permutation(alive)[: max(1, len(alive) // 3)]:
            delete_record(tree, np.int32(record))
            alive.remove(record)
    assert farthest_record(tree, X[0]) == -1
    assert nearest_records(tree, X[0], 3, found, distances) == 0


def test_equal_records_are_shared_out_in_order() -> None:
    labels = mdav_labels(np.zeros((20_000, 3)), 7, "generic")
    np.testing.assert_array_equal(labels, np.minimum(np.arange(20_000) // 7, 20_000 // 7 - 1))


def test_input_is_left_alone_and_any_layout_serves() -> None:
    X = np.random.default_rng(0).standard_normal((90, 3))
    before = X.copy()
    labels = mdav_labels(X, 3, "generic")
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(labels, mdav_labels(np.asfortranarray(X), 3, "generic"))
    assert labels.dtype == np.int32


def test_smallest_tables() -> None:
    assert mdav_labels(np.array([[4.0]]), 1, "generic").tolist() == [0]
    assert mdav_labels(np.array([[4.0], [5.0]]), 2, "single").tolist() == [0, 0]
    assert mdav_labels(np.empty((4, 0)), 2, "generic").tolist() == [0, 0, 1, 1]
    assert mdav_labels(np.array([[1.0], [2.0], [9.0]]), 1, "generic").tolist() == [1, 2, 0]


def test_refusals_say_what_to_change() -> None:
    X = np.zeros((3, 2))
    with pytest.raises(InfeasibleError, match="3 records, fewer than k = 4"):
        mdav_labels(X, 4, "generic")
    with pytest.raises(ConfigError, match="k is 0"):
        mdav_labels(X, 0, "generic")
    with pytest.raises(ConfigError, match="'generic' and 'single'"):
        mdav_labels(X, 2, "double")  # type: ignore[arg-type]
    X[1, 1] = np.nan
    with pytest.raises(InputError, match="Row 1 of column 1 is nan"):
        mdav_labels(X, 2, "generic")


def adversarial(seed: int) -> tuple[Floats, int]:
    """Ties, duplicates, constant columns, integer grids, outliers, and distances near the step of rounding."""
    rng = np.random.default_rng(seed)
    n, columns = int(rng.integers(2, 160)), int(rng.integers(1, 6))
    k = int(rng.integers(1, min(n, 9) + 1))
    kind = seed % 6
    if kind == 0:
        X = rng.integers(0, 3, (n, columns)).astype(float)
    elif kind == 1:
        X = rng.integers(-5, 6, (n, columns)).astype(float)
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 0.1)
    elif kind == 2:
        X = rng.standard_normal((n, columns))[rng.integers(0, n, n) // 2]
    elif kind == 3:
        X = np.full((n, columns), 0.1)
        X[:, 0] = rng.integers(0, 2, n)
    elif kind == 4:
        X = 100.0 * rng.standard_cauchy((n, columns))
    else:
        X = 10.0 ** rng.uniform(-8, -5) * rng.standard_normal((n, columns))
    return X, k


def standardized_census() -> Floats:
    try:
        table: pl.DataFrame = census()
    except InputError as missing:
        pytest.skip(str(missing))
    X = table.to_numpy().astype(float)
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def lost(X: Floats, labels: NDArray[np.int32]) -> float:
    """SSE within groups over total SSE, in per cent."""
    within = sum(((X[labels == g] - X[labels == g].mean(axis=0)) ** 2).sum() for g in range(labels.max() + 1))
    return float(100 * within / ((X - X.mean(axis=0)) ** 2).sum())
