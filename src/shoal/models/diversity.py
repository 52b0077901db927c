"""Div and Hom of Truta et al. 2007: how diverse a class is, and what a record would add (docs/models.md#hom-and-div).

>>> import numpy as np
>>> illness, income = np.array([[1, 1, 0]]), np.array([[2, 0]])
>>> hom([illness, income], 3)
array([1.5])
>>> div([illness, income], np.array([[2, 0], [0, 1], [2, 1]]), 3)
array([[0.5],
       [1. ],
       [1.5]])
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.models.column import Floats, Ints
from shoal.models.parameters import require_word

SCHEMES = ("equal", "inverse_cardinality")


def hom(counts: Sequence[Ints], p: int, weights: Floats | None = None) -> Floats:
    """Σ_j w_j·(p − min(distinct_j, p)) per class: zero iff the class is p-sensitive.

    `counts` has one histogram matrix (classes × codes) per sensitive attribute.
    """
    weight = diversity_weights([matrix.shape[1] for matrix in counts]) if weights is None else weights
    missing = [p - _values(matrix, p) for matrix in counts]
    return exact.along(np.stack(missing, axis=1), weight)


def div(counts: Sequence[Ints], codes: NDArray[np.integer], p: int, weights: Floats | None = None) -> Floats:
    """Σ_j w_j·(y'_j − y_j)·(p − y_j) for each record (rows) and class (columns), y_j = min(distinct_j, p).

    `codes` has one row per record and one column per attribute; a missing value (-1) adds nothing.
    """
    weight = diversity_weights([matrix.shape[1] for matrix in counts]) if weights is None else weights
    gain = np.zeros((len(codes), len(counts[0])))
    for j, matrix in enumerate(counts):
        code = codes[:, j]
        new = (code >= 0)[:, None] & (matrix[:, np.maximum(code, 0)].T == 0)
        gain += weight[j] * new * (p - _values(matrix, p))
    return gain


def diversity_weights(cardinalities: Sequence[int], scheme: str = "equal") -> Floats:
    """Weights of the sensitive attributes, summing to 1: equal, or inverse to their number of values."""
    require_word("diversity_weights", "scheme", scheme, SCHEMES)
    raw = np.ones(len(cardinalities)) if scheme == "equal" else 1 / np.maximum(1, np.asarray(cardinalities))
    return np.asarray(raw / raw.sum())


def _values(counts: Ints, p: int) -> Ints:
    return np.minimum(np.asarray(np.count_nonzero(counts, axis=1), dtype=np.int64), p)
