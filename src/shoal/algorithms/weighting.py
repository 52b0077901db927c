"""How much each quasi-identifier says about the sensitive attribute (docs/algorithms.md#three_layer)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.microdata import Microdata
from shoal.space import Interval

Weighting = Literal["chi_squared", "cramers_v", "information_gain", "uniform"]
Floats = NDArray[np.float64]


def weigh(data: Microdata, label: str | None, scheme: Weighting = "chi_squared", bins: int = 10) -> Floats:
    """One weight a quasi-identifier; all alike without a label. The paper leaves the label open: it is the sensitive one."""
    target = next((column for column in data.sensitive if label in (None, column.name)), None)
    if scheme == "uniform" or target is None:
        return np.ones(len(data.domains))
    known = target.codes >= 0
    weights = []
    for a, domain in enumerate(data.domains):
        groups = binned(data.codes[:, a], domain, bins) if isinstance(domain, Interval) else data.codes[:, a]
        table = contingency(groups[known], target.codes[known])
        weights.append({"chi_squared": chi_squared, "cramers_v": cramers_v}.get(scheme, information_gain)(table))
    return np.array(weights)


def binned(codes: NDArray[np.int32], domain: Interval, bins: int) -> NDArray[np.int64]:
    """Numbers in equal-width bins, missing in one of its own."""
    values = domain.values
    if len(values) == 0 or values[-1] <= values[0]:
        return np.asarray(codes == domain.missing_code, dtype=np.int64)
    places = np.minimum((values - values[0]) / (values[-1] - values[0]) * bins, bins - 1).astype(np.int64)
    return np.asarray(np.append(places, bins)[codes])


def contingency(rows: NDArray[np.integer], columns: NDArray[np.integer]) -> Floats:
    """Counts of row and column values together; empty rows and columns are left out."""
    _, i = np.unique(rows, return_inverse=True)
    _, j = np.unique(columns, return_inverse=True)
    width = int(j.max()) + 1 if len(j) else 0
    cells = np.bincount(i.ravel() * width + j.ravel(), minlength=(int(i.max()) + 1 if len(i) else 0) * width)
    return cells.reshape(-1, max(1, width)).astype(np.float64)


def chi_squared(table: Floats) -> float:
    """Σ (O − E)² / E, without a continuity correction; 0 for a single row or column."""
    if min(table.shape) < 2:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return exact.total((table - expected) ** 2 / expected)


def cramers_v(table: Floats) -> float:
    """Bias-corrected, so that independent attributes weigh nothing however many values they have (Bergsma 2013)."""
    if min(table.shape) < 2:
        return 0.0
    n, (r, c) = table.sum(), table.shape
    phi = max(0.0, chi_squared(table) / n - (r - 1) * (c - 1) / (n - 1))
    rows, columns = r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)
    return float(np.sqrt(phi / max(1e-12, min(rows, columns) - 1)))


def information_gain(table: Floats) -> float:
    """Mutual information over the attribute's own entropy: the gain ratio."""
    if min(table.shape) < 2:
        return 0.0
    n, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
    positive = table > 0
    ratios = (n * table)[positive] / np.outer(rows, columns)[positive]
    return exact.weighed(table[positive], exact.log(ratios)) / -exact.weighed(rows, exact.log(rows / n))


def normalized(values: Floats) -> Floats:
    """Onto [0, 1]; all 1 when they are equal."""
    spread = values.max() - values.min()
    return np.ones(len(values)) if spread <= 0 else np.asarray((values - values.min()) / spread)
