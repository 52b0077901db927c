"""The risk of being found: by intruders of three kinds, in the population, and by which columns (docs/measures.md#risk).

Records of a class of size f cannot be told apart, so an intruder who knows that the target is in the table is right
once in f times (prosecutor). Who only knows a population in which F persons fit the class is right once in F times
(journalist). The marketer wants as many as possible and counts how many guesses come true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import ConfigError, InputError
from shoal.measures.attacks import shared_quasi
from shoal.measures.regions import common_space, relate
from shoal.measures.seen import MaskedTable
from shoal.models.base import TOLERANCE

__all__ = [
    "dankar",
    "pitman",
    "population_sizes",
    "reidentification_risk",
    "sample_uniques",
    "separating_sets",
    "slide_negative_binomial",
    "zayatz",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Risks that are customary limits: classes of 20, 10, 5, 3 and 2 records.
THRESHOLDS = (0.05, 0.1, 0.2, 0.33, 0.5)

# Pitman's θ + α lies between 0.001 and 10⁹; logarithms, because those are searched.
LEAST_LOG, MOST_LOG = -6.907755278982137, 20.72326583694641
SIMPLEX: Any = {"xatol": 1e-9, "fatol": 1e-14, "maxiter": 2000, "maxfev": 2000}


@dataclass(frozen=True)
class Risk:
    """What one kind of intruder achieves: the highest and the average risk of a record, and records above thresholds.

    A record that was left out has no risk and counts in the average; the records that a release shows starred are a
    class like any other.
    """

    intruder: str
    highest: float
    average: float
    above: Mapping[float, int]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "above": {f"{threshold:g}": count for threshold, count in self.above.items()}}


@dataclass(frozen=True)
class Risks:
    """All three intruders; the journalist needs a population."""

    prosecutor: Risk
    journalist: Risk | None
    marketer: Risk

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        journalist = self.journalist.to_dict() if self.journalist else None
        return {
            "prosecutor": self.prosecutor.to_dict(),
            "journalist": journalist,
            "marketer": self.marketer.to_dict(),
        }

    def sentence(self) -> str:
        """For a data steward."""
        text = (
            f"Who knows that somebody is in the table finds them with a probability of at most "
            f"{self.prosecutor.highest:.3f}, {self.prosecutor.average:.3f} on average"
        )
        if self.journalist is not None:
            text += f"; who knows only the population, with at most {self.journalist.highest:.3f}"
        return text + f"; guessing everybody at once finds {self.marketer.average:.2%} of all."


def reidentification_risk(
    sizes: Sequence[int] | Ints,
    population: Sequence[int] | Ints | None = None,
    *,
    dropped: int = 0,
    thresholds: Sequence[float] = THRESHOLDS,
) -> Risks:
    """Risks from the sizes of the classes, and of the same classes in a population.

    - `sizes`: records of each class.
    - `population`: persons that fit each class; without them the journalist has no risk.
    - `dropped`: records that were left out of the release, which have no risk and count in averages; 0 by default.
    - `thresholds`: above which risks the records are counted.

    Returns the risks of the three intruders (docs/measures.md#risk).

    >>> risks = reidentification_risk([2, 3, 5], [4, 6, 5])
    >>> risks.prosecutor.highest, risks.prosecutor.average, risks.journalist.highest, risks.marketer.average
    (0.5, 0.3, 0.25, 0.2)
    """
    f = np.asarray(sizes, dtype=np.int64)
    if len(f) == 0 or f.min() < 1:
        raise InputError("Risks need at least one class, and classes have records.")
    prosecutor = _risk("prosecutor", f, 1 / f, dropped, thresholds)
    if population is None:
        return Risks(prosecutor, None, _risk("marketer", f, 1 / f, dropped, thresholds))
    F = np.asarray(population, dtype=np.int64)
    if len(F) != len(f):
        raise InputError(f"The population has {len(F)} classes and the table {len(f)}; they must be the same.")
    small = np.flatnonzero(f > F)
    if len(small):
        raise InputError(
            f"Class {int(small[0]) + 1} has {f[small[0]]} records and fits only {F[small[0]]} of the population, so "
            "the table is no part of it."
        )
    journalist = _risk("journalist", f, 1 / F, dropped, thresholds)
    return Risks(prosecutor, journalist, _risk("marketer", f, 1 / F, dropped, thresholds))


def population_sizes(table: MaskedTable, population: pl.DataFrame) -> Ints:
    """How many of a `population` fit each class of the masked `table`: with the same published values, or covered by them.

    A population whose columns hold the same generalized values as the masked table is matched by them; one with
    original values is matched by what they are covered by. Returns one number a class.

    >>> import polars as pl, shoal
    >>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi")})
    >>> table = MaskedTable.of(pl.DataFrame({"age": ["[20, 29]", "[30, 39]"]}), schema)
    >>> population_sizes(table, pl.DataFrame({"age": [21, 22, 33, 50]})).tolist()
    [2, 1]
    """
    quasi = table.groups.columns
    if all(name in population.columns for name in quasi):
        keys = population.select(pl.col(quasi).cast(pl.String))
        shown = table.groups.select(pl.col(quasi).cast(pl.String))
        counts = keys.group_by(quasi).len("persons")
        found = shown.join(counts, on=quasi, how="left", nulls_equal=True, maintain_order="left")["persons"]
        if found.null_count() == 0:
            return found.to_numpy().astype(np.int64)
    names = shared_quasi(table.schema, population)
    space, (classes, persons) = common_space([table.groups, population], table.schema, names, [False, False])
    points, of_person = np.unique(persons, axis=0, return_inverse=True)
    weights = np.bincount(of_person.ravel(), minlength=len(points)).astype(np.int64)
    return np.asarray(relate(space, classes, points) @ weights, dtype=np.int64)


def sample_uniques(sizes: Sequence[int] | Ints) -> int:
    """Records that are alone in their class; `sizes` are those of the classes. Returns their number.

    >>> sample_uniques([1, 1, 4])
    2
    """
    return int(np.count_nonzero(np.asarray(sizes) == 1))


def zayatz(sizes: Sequence[int] | Ints, fraction: float) -> float:
    """Estimated number of unique persons in the population (Zayatz 1991, as in Dankar et al. 2012, Appendix A).

    `sizes` are those of the classes of a sample, and `fraction` the share of the population that it is. Bayes' rule for
    P(F = 1 | f = 1), with the share of classes of each size taken from the sample and P(f = 1 | F = j) hypergeometric;
    the population has s_1 · P(F = 1 | f = 1) / fraction. Returns the estimate.

    >>> round(zayatz([1] * 10 + [2] * 5 + [3] * 2, fraction=0.1))
    42
    """
    f, n, N = _sample(sizes, fraction)
    unique = sample_uniques(f)
    if not unique:
        return 0.0
    size, classes = np.unique(f, return_counts=True)
    # P(f = 1 | F = j) = j·C(N − j, n − 1) / C(N, n); from j to j + 1 the coefficient shrinks by (N − j − n + 1) / (N − j).
    j = np.arange(1, int(size[-1]))
    shrunk = np.cumprod(np.concatenate([[1.0], np.maximum(0, N - j - n + 1) / np.maximum(1, N - j)]))
    seen = classes * size * shrunk[size - 1]
    return unique * float(seen[0]) / exact.total(seen) * N / n


def pitman(sizes: Sequence[int] | Ints, fraction: float) -> float:
    """Estimated number of unique persons in the population by Pitman's model (Hoshino 2001).

    `sizes` are those of the classes of a sample, and `fraction` the share of the population that it is. θ and α are
    those of maximal likelihood: with u classes of sizes f and n records, Σ_{i<u} ln(θ + iα) − Σ_{i<n} ln(θ + i) + Σ_f
    Σ_{i<f} ln(i − α), the sums in closed form with Γ. The population of N then has N · Γ(θ+α+N−1) Γ(θ+1) / (Γ(θ+α)
    Γ(θ+N)) unique persons on average, for large N the Γ(θ+1)/Γ(θ+α) · N^α of the paper. Returns the estimate, not a
    number if the model does not fit.

    >>> 0 < pitman([1] * 10 + [2] * 5 + [3] * 2, fraction=0.1) < 260
    True
    """
    from scipy.optimize import minimize

    f, n, N = _sample(sizes, fraction)
    if not sample_uniques(f):
        return 0.0
    if len(f) < 2 or f.max() < 2:
        return float("nan")
    size, classes = np.unique(f, return_counts=True)
    u = len(f)

    def parameters(x: Floats) -> tuple[float, float]:
        theta, alpha = exact.exp([x[0], -x[1]])
        return float(theta - 1 / (1 + alpha)), float(1 / (1 + alpha))

    def loss(x: Floats) -> float:
        theta, alpha = parameters(x)
        gammas = exact.log_gamma(
            [theta / alpha + u, theta / alpha + 1, theta + n, theta + 1, 1 - alpha, *(size - alpha)]
        )
        rising = (u - 1) * float(exact.log(alpha)) + gammas[0] - gammas[1]
        inside = exact.weighed(classes, gammas[5:] - gammas[4])
        return float(-(rising - (gammas[2] - gammas[3]) + inside) / n)

    # The simplex of Nelder and Mead does nothing but add, halve and compare; methods with gradients go through LAPACK.
    box = [(LEAST_LOG, MOST_LOG), (-12.0, 12.0)]
    best = minimize(
        loss, np.array([float(exact.log(max(1.0, u / 2))), 0.0]), method="Nelder-Mead", bounds=box, options=SIMPLEX
    )
    best = minimize(loss, best.x, method="Nelder-Mead", bounds=box, options=SIMPLEX)
    theta, alpha = parameters(best.x)
    if not np.isfinite(best.fun):
        return float("nan")
    gammas = exact.log_gamma([theta + alpha + N - 1, theta + 1, theta + alpha, theta + N])
    logs = float(exact.log(N)) + gammas[0] + gammas[1] - gammas[2] - gammas[3]
    return min(float(exact.exp(logs)), float(N))


def slide_negative_binomial(sizes: Sequence[int] | Ints, fraction: float) -> float:
    """Estimated number of unique persons by the slide negative binomial model (Chen & Keller-McNulty 1998).

    `sizes` are those of the classes of a sample, and `fraction` the share of the population that it is. A population
    class has 1 + NB(α, β) persons, so its generating function is G(z) = z·(β / (1 − (1 − β)z))^α, and a sample of the
    fraction π has on average s_1 = K·π·G'(1 − π) and s_2 = K·π²/2·G''(1 − π) classes of one and two. K classes in all
    are estimated from the sample (Shlosser 1981, in Haas & Stokes 1998), α and β solve the two equations, and K·β^α
    persons are unique. Returns the estimate, not a number where they have no solution.

    >>> 0 < slide_negative_binomial([1] * 30 + [2] * 10 + [3] * 4, fraction=0.5) < 60
    True
    """
    f, _, _ = _sample(sizes, fraction)
    one, two = sample_uniques(f), int(np.count_nonzero(f == 2))
    if not one:
        return 0.0
    if not two or fraction >= 1:
        return float("nan") if fraction < 1 else float(one)
    size, classes = np.unique(f, return_counts=True)
    z = 1 - fraction
    unseen = exact.power(z, size)
    K = len(f) + one * exact.weighed(classes, unseen) / exact.weighed(classes, size * fraction / z * unseen)

    def solved(x: Floats) -> tuple[Floats, Floats, Floats]:
        """For logits x of β, the α that gives s_2 / s_1, and ln s_1 with both less what it should be.

        s_2 / s_1 = π/2·(1 − β)·α(2 − w + αw) / ((1 − w)(1 − w + αw)) with w = (1 − β)z rises with α: a quadratic equation.
        """
        odds = exact.exp(x)
        beta, w = odds / (1 + odds), z / (1 + odds)
        ratio = 2 * two * (1 - w) * (1 + odds) / (one * fraction)
        half = (2 - w - ratio * w) / 2
        root = np.sqrt(half * half + w * ratio * (1 - w))
        alpha = np.where(half > 0, ratio * (1 - w) / (half + root), (root - half) / w)
        logs = exact.log(K * fraction / one * (1 + alpha * w / (1 - w))) + alpha * exact.log(beta / (1 - w))
        return beta, alpha, logs

    low, high = -25.0, 25.0
    for _ in range(8):
        x = np.asarray(low + (high - low) / 500 * np.arange(501), dtype=np.float64)
        positive = solved(x)[2] > 0
        change = np.flatnonzero(positive[1:] != positive[:-1])
        if not len(change):
            break
        low, high = float(x[change[0]]), float(x[change[0] + 1])
    beta, alpha, logs = (float(part[0]) for part in solved(np.array([low])))
    if abs(logs) > 1e-6 or abs(float(exact.log(alpha))) > 15:
        return float("nan")
    return K * float(exact.power(beta, alpha))


@dataclass(frozen=True)
class Uniqueness:
    """Unique persons in the population by each estimator (NaN where it does not fit), and the one to use."""

    sample: int
    population: int
    pitman: float
    zayatz: float
    slide_negative_binomial: float
    model: str
    estimate: float

    @property
    def share(self) -> float:
        """The estimated share of the population that is unique."""
        return self.estimate / self.population

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {key: None if value != value else value for key, value in asdict(self).items()}
        return {**plain, "share": self.share}


def dankar(sizes: Sequence[int] | Ints, fraction: float) -> Uniqueness:
    """The decision rule of Dankar et al. (2012) for the number of unique persons in the population.

    `sizes` are those of the classes of a sample, and `fraction` the share of the population that it is. Pitman for
    sampling fractions up to 0.1; above, the smaller of Zayatz and slide negative binomial. Zayatz always gives an
    answer and stands in where another model does not fit. Returns all estimates, and which one to use.

    >>> dankar([1] * 10 + [2] * 5 + [3] * 2, fraction=0.1).model
    'pitman'
    """
    f, _, N = _sample(sizes, fraction)
    by_pitman, by_zayatz = pitman(f, fraction), zayatz(f, fraction)
    by_slide = slide_negative_binomial(f, fraction)
    model, estimate = "zayatz", by_zayatz
    if fraction <= 0.1 and not np.isnan(by_pitman):
        model, estimate = "pitman", by_pitman
    elif fraction > 0.1 and by_slide <= by_zayatz:
        model, estimate = "slide_negative_binomial", by_slide
    return Uniqueness(sample_uniques(f), N, by_pitman, by_zayatz, by_slide, model, estimate)


@dataclass(frozen=True)
class Separation:
    """How well some columns tell records apart (Motwani & Xu 2007)."""

    columns: tuple[str, ...]
    distinction: float
    """Distinct rows over rows: 1 when the columns are a key."""
    separation: float
    """Share of the pairs of records that differ somewhere in these columns."""


def separating_sets(frame: pl.DataFrame, columns: Sequence[str], largest: int = 3) -> list[Separation]:
    """All sets of up to `largest` (3 by default) of the `columns` of a `frame`, those that tell the most records apart
    first.

    Missing is a value. Returns distinction and separation of each (docs/measures.md#separating-sets).

    >>> import polars as pl
    >>> frame = pl.DataFrame({"sex": ["f", "m", "f", "m"], "zip": ["1", "1", "2", "2"]})
    >>> separating_sets(frame, ["sex", "zip"])[0]
    Separation(columns=('sex', 'zip'), distinction=1.0, separation=1.0)
    """
    if largest < 1:
        raise ConfigError(f"largest = {largest} is not allowed; it must be at least 1.")
    n = frame.height
    if n < 2:
        raise InputError("Telling records apart needs two records or more.")
    codes = {name: frame[name].rank("dense").fill_null(0).to_numpy().astype(np.int64) for name in columns}
    found = []
    for number in range(1, min(largest, len(columns)) + 1):
        for chosen in combinations(columns, number):
            key = np.zeros(n, dtype=np.int64)
            for name in chosen:
                key = np.unique(key * (int(codes[name].max()) + 1) + codes[name], return_inverse=True)[1]
            sizes = np.bincount(key)
            alike = exact.total(sizes * (sizes - 1.0)) / (n * (n - 1.0))
            found.append(Separation(chosen, len(sizes) / n, 1 - alike))
    return sorted(found, key=lambda item: (-item.distinction, -item.separation, len(item.columns)))


def _risk(intruder: str, sizes: Ints, risk: Floats, dropped: int, thresholds: Sequence[float]) -> Risk:
    n = int(sizes.sum()) + dropped
    above = {float(t): int(sizes[risk > t + TOLERANCE].sum()) for t in thresholds}
    return Risk(intruder, float(risk.max()), exact.weighed(sizes, risk) / n, above)


def _sample(sizes: Sequence[int] | Ints, fraction: float) -> tuple[Ints, int, int]:
    """Class sizes, records in the sample and persons in the population."""
    if not 0 < fraction <= 1:
        raise ConfigError(f"The sampling fraction {fraction!r} is not allowed; it must be above 0 and at most 1.")
    f = np.asarray(sizes, dtype=np.int64)
    if len(f) == 0 or f.min() < 1:
        raise InputError("Uniqueness needs at least one class, and classes have records.")
    n = int(f.sum())
    return f, n, max(n, round(n / fraction))
