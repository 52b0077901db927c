"""What an analyst keeps: answers to counting queries, and a classifier's accuracy, on masked against original data.

A masked record is taken to lie anywhere in its published box with equal probability, which is what an analyst has to
assume who knows no more (Xiao & Tao 2006; LeFevre et al. 2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import ConfigError, InputError, did_you_mean
from shoal.measures.masked import Published, one_each, read_published
from shoal.microdata import Microdata
from shoal.progress import Progress, Told
from shoal.space import Interval, Set

__all__ = ["classification", "query_error"]

Floats = NDArray[np.float64]

# Of a forest: more make it slower and hardly surer.
TREES = 30
# Estimates are rounded to this grid, so that the order in which their parts are added decides nothing.
STEPS = 2.0**20


@dataclass(frozen=True)
class QueryError:
    """Relative errors of random counting queries: |estimate − truth| / max(truth, floor·n)."""

    queries: int
    median: float
    mean: float
    percentile_90: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Classification:
    """Cross-validated accuracy of one classifier on both tables, and of always saying the most frequent value."""

    target: str
    original: float
    masked: float
    baseline: float

    @property
    def kept(self) -> float:
        """The share of what the classifier gains over the baseline that it still gains on masked data."""
        gain = self.original - self.baseline
        return (self.masked - self.baseline) / gain if gain > 0 else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "kept": None if np.isnan(self.kept) else self.kept}


def query_error(
    original: Microdata,
    masked: pl.DataFrame,
    *,
    queries: int = 1000,
    attributes: int = 3,
    selectivity: float = 0.1,
    floor: float = 0.001,
    seed: int = 0,
    progress: Told | None = None,
) -> QueryError:
    """Random COUNT queries on masked against original data (docs/measures.md#queries).

    - `original`, `masked`: the table, and what was published of it, in any order.
    - `queries`: how many; 1000 by default.
    - `attributes`: on one to so many quasi-identifiers each, 3 by default: a range of numbers, or some of the categories.
    - `selectivity`: each predicate takes about selectivity^(1/number of attributes) of its domain; 0.1 by default.
    - `floor`: small true counts are floored at this share of the records, lest single records decide; 0.001 by default.
    - `seed`: 0 by default.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    Returns the median, the mean and the 90th percentile of the relative errors.

    >>> import polars as pl, shoal
    >>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": list(range(20, 60))}), {"age": {"role": "quasi"}})
    >>> same = pl.DataFrame({"age": [str(age) for age in range(20, 60)]})
    >>> query_error(data, same, queries=50).mean
    0.0
    """
    if queries < 1 or attributes < 1 or not 0 < selectivity <= 1:
        raise ConfigError("query_error: queries and attributes must be at least 1 and selectivity in (0, 1].")
    found = read_published(original, one_each(original, masked))
    generator = np.random.default_rng(seed)
    d = len(original.domains)
    errors = np.empty(queries)
    share = exact.power(selectivity, 1 / np.arange(1, attributes + 1))
    hidden = int((found.labels < 0).sum())
    told = Progress.of(progress)
    for q in told.each(range(queries)):
        number = int(generator.integers(1, min(attributes, d) + 1))
        inside = np.ones(original.n, dtype=bool)
        likely, unseen = np.ones(len(found.sizes)), 1.0
        for a in sorted(generator.choice(d, number, replace=False).tolist()):
            chosen = _predicate(original, a, float(share[number - 1]), generator)
            inside &= chosen[original.codes[:, a]]
            likely *= _overlap(original, found, a, chosen)
            unseen *= chosen.sum() / max(1, len(chosen))
        # The digits that are certain of a sum over so many classes.
        estimate = float(np.rint((found.sizes * likely).sum() * STEPS) / STEPS) + hidden * unseen
        truth = int(np.count_nonzero(inside))
        errors[q] = abs(estimate - truth) / max(truth, floor * original.n, 1.0)
    return QueryError(queries, float(np.median(errors)), exact.mean(errors), float(np.quantile(errors, 0.9)))


def classification(
    original: Microdata,
    masked: pl.DataFrame,
    target: str,
    *,
    folds: int = 5,
    seed: int = 0,
    classifier: Any = None,
    progress: Told | None = None,
) -> Classification:
    """Predict a column that is published unchanged from the quasi-identifiers, in both tables
    (docs/measures.md#classification).

    - `original`, `masked`: the table, and what was published of it.
    - `target`: the column to predict.
    - `folds`: of the cross-validation; 5 by default.
    - `seed`: 0 by default.
    - `classifier`: one of scikit-learn's; a random forest by default.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    The ends of published boxes are the features (both ends agree in the original), so the same classifier sees both
    tables in the same form. Returns both accuracies, and that of always saying the most frequent value.

    >>> import polars as pl, shoal
    >>> frame = pl.DataFrame({"age": list(range(60)), "retired": ["no"] * 40 + ["yes"] * 20})
    >>> data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}, "retired": {"role": "other"}})
    >>> masked = frame.with_columns(age=pl.Series(["[0, 39]"] * 40 + ["[40, 59]"] * 20))
    >>> classification(data, masked, "retired").masked
    1.0
    """
    if target in original.quasi or target not in masked.columns or target not in original.frame.columns:
        free = [name for name in masked.columns if name in original.frame.columns and name not in original.quasi]
        raise InputError(f"'{target}' is not published unchanged; {did_you_mean(target, free)}")
    if original.persons is not None:
        raise InputError("A classifier predicts one value a record, and people here have several rows; leave it out.")
    found = read_published(original, masked)
    shown = np.flatnonzero(found.labels >= 0)
    before = _features(original, found, found.codes, None)
    after = np.full((masked.height, before.shape[1]), np.nan)
    after[shown] = _features(original, found, None, found.labels[shown])
    truth = _classes(original.frame[target], masked[target])
    told, accuracy = Progress.of(progress), []
    for x, y in zip((before, after), truth, strict=True):
        with told.stage(weight=0.5) as part:
            accuracy.append(_accuracy(x, y, folds, seed, classifier, part))
    counts = np.bincount(truth[0][truth[0] >= 0])
    return Classification(target, accuracy[0], accuracy[1], float(counts.max() / counts.sum()))


def _predicate(original: Microdata, a: int, share: float, generator: np.random.Generator) -> NDArray[np.bool_]:
    """The codes a query asks for: neighbours for numbers and ordered labels, any for categories. Never missing."""
    domain = original.domains[a]
    size = domain.missing_code if domain.has_missing else domain.size
    wanted = max(1, round(exact.ticks(size * share) / exact.TICKS))
    chosen = np.zeros(domain.size, dtype=bool)
    if isinstance(domain, Interval):
        begin = int(generator.integers(0, size - wanted + 1))
        chosen[begin : begin + wanted] = True
    else:
        chosen[generator.choice(size, wanted, replace=False)] = True
    return chosen


def _overlap(original: Microdata, found: Published, a: int, chosen: NDArray[np.bool_]) -> Floats:
    """Which part of each class's region a predicate takes."""
    old, domain, slot = original.domains[a], found.space.domains[a], int(found.space.slots[a])
    if isinstance(domain, Set):
        words = found.states[:, slot : slot + domain.words]
        wanted = _as_words(chosen, domain.words)
        hit = np.bitwise_count((words & wanted).view(np.uint64)).sum(axis=1)
        return np.asarray(hit / np.maximum(1, np.bitwise_count(words.view(np.uint64)).sum(axis=1)))
    lo, hi = found.states[:, slot], found.states[:, slot + 1]
    if not isinstance(domain, Interval) or not isinstance(old, Interval) or domain.labels is not None:
        counted = np.concatenate([[0], np.cumsum(chosen)])
        return np.asarray((counted[hi + 1] - counted[lo]) / (hi - lo + 1))
    values = old.values
    picked = np.flatnonzero(chosen)
    first, last = values[picked[0]], values[picked[-1]]
    # Whole numbers are points one apart, so both ends of an interval count; else only its length does.
    unit = float(bool((values == np.floor(values)).all()))
    top = len(domain.values) - 1
    anything, missing = hi > top, lo > top
    low = np.where(anything, values[0], domain.values[np.minimum(lo, top)])
    high = np.where(anything, values[-1], domain.values[np.minimum(hi, top)])
    common = np.minimum(high, last) - np.maximum(low, first)
    width = high - low + unit
    part = np.where(width > 0, np.clip((common + unit) / np.where(width > 0, width, 1.0), 0, 1), common >= 0)
    return np.asarray(np.where(missing, 0.0, np.where(common >= 0, part, 0.0)), dtype=np.float64)


def _as_words(chosen: NDArray[np.bool_], words: int) -> NDArray[np.int64]:
    padded = np.zeros(64 * words, dtype=np.uint8)
    padded[: len(chosen)] = chosen
    return np.packbits(padded, bitorder="little").view(np.int64)


def _features(
    original: Microdata, found: Published, codes: NDArray[np.int64] | None, labels: NDArray[np.int64] | None
) -> Floats:
    """Two ends for a range, one indicator a member for a set (the 64 most frequent)."""
    columns: list[Floats] = []
    for a, domain in enumerate(found.space.domains):
        slot = int(found.space.slots[a])
        if isinstance(domain, Set):
            width = min(64, domain.size)
            if codes is not None:
                columns += [(codes[:, a] == code).astype(np.float64) for code in range(width)]
            else:
                words = found.states[labels, slot].view(np.uint64)
                sizes = np.bitwise_count(found.states[labels, slot : slot + domain.words].view(np.uint64)).sum(axis=1)
                bits = [(words >> np.uint64(code) & np.uint64(1)).astype(np.float64) for code in range(width)]
                columns += [bit / np.maximum(1, sizes) for bit in bits]
            continue
        ends = [codes[:, a]] * 2 if codes is not None else [found.states[labels, slot], found.states[labels, slot + 1]]
        if isinstance(domain, Interval) and domain.labels is None:
            known = np.append(domain.values, np.nan)
            ends = [known[np.minimum(end, len(domain.values))] for end in ends]
        columns += [np.asarray(end, dtype=np.float64) for end in ends]
    return np.column_stack(columns)


def _classes(one: pl.Series, other: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both columns with the same codes, -1 for missing."""
    texts = [series.cast(pl.String) for series in (one, other)]
    labels = sorted(set(texts[0].drop_nulls()) | set(texts[1].drop_nulls()))
    if len(labels) < 2:
        raise InputError(f"'{one.name}' has fewer than two values, so there is nothing to predict.")
    codes = [text.cast(pl.Enum(labels)).to_physical().cast(pl.Int64).fill_null(-1).to_numpy() for text in texts]
    return codes[0], codes[1]


def _accuracy(x: Floats, y: NDArray[np.int64], folds: int, seed: int, classifier: Any, progress: Progress) -> float:
    from sklearn.base import clone
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

    known = y >= 0
    x, y = x[known], y[known]
    model = classifier or RandomForestClassifier(TREES, min_samples_leaf=5, random_state=seed)
    smallest: Sequence[int] = np.bincount(y)[np.unique(y)].tolist()
    if len(y) < folds:
        raise InputError(f"{len(y)} records are too few for {folds} folds.")
    kind = StratifiedKFold if min(smallest) >= folds else KFold
    parts = list(kind(n_splits=folds, shuffle=True, random_state=seed).split(x, y))
    scores = [cross_val_score(clone(model), x, y, cv=[part], scoring="accuracy")[0] for part in progress.each(parts)]
    return exact.mean(scores)
