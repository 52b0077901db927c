"""The minimality attack: an intruder who knows that a table was generalized no more than it had to be.

A class came from merging groups with the same quasi-identifiers because some group would have violated the policy. Of
all ways to distribute a sensitive value over the groups, only those remain in which the groups apart do violate it
(Wong et al. 2007; docs/measures.md#minimality).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.errors import ConfigError, InputError
from shoal.measures.attacks import shared_quasi
from shoal.measures.exposure import Exposure
from shoal.measures.regions import common_space, relate
from shoal.measures.seen import MaskedTable
from shoal.microdata import Microdata
from shoal.models.base import TOLERANCE
from shoal.models.persons import one_row_each
from shoal.partition import Partition
from shoal.progress import Progress, Told

__all__ = ["minimality", "minimality_attack", "minimality_by_rerun"]

Floats = NDArray[np.float64]

LARGEST = 500
"""Classes of more records are left out: nobody merges that many because one small group forces it."""


@dataclass(frozen=True)
class Minimality:
    """Posterior probability of the value in each group, the naive one, and the share of worlds that remain.

    `applies` is False when in no world the groups apart violate the rule: then nothing forced the merge, and the
    intruder knows no more than the naive share.
    """

    posterior: tuple[float, ...]
    naive: float
    consistent: float
    applies: bool

    @property
    def worst(self) -> float:
        """The largest posterior."""
        return max(self.posterior)


def minimality(sizes: Sequence[int], occurrences: int, share: float = 0.5) -> Minimality:
    """A class of groups with these `sizes` holds a value so many times (`occurrences`); the rule allows at most `share`
    of a group, 0.5 by default.

    Each way to give group i the value c_i times has the weight Π C(n_i, c_i). The ways in which *no* group violates the
    rule are those with c_i ≤ share·n_i everywhere, so their weight is a coefficient of Π Σ C(n_i, c) x^c over the
    allowed c. What is left of all ways remains; whole numbers all along, so nothing is lost to rounding, and the work
    grows with groups × occurrences where the number of ways grows exponentially.

    Returns the posterior probability of the value in each group, the naive one, and the share of worlds that remain.

    >>> minimality([2, 5], 2).posterior
    (1.0, 0.0)
    >>> minimality([2, 3], 2).posterior
    (0.25, 0.5)
    """
    if not sizes or min(sizes) < 1 or not 0 <= occurrences <= sum(sizes):
        raise ConfigError(f"minimality: {occurrences} occurrences do not fit groups of sizes {list(sizes)}.")
    n = sum(sizes)
    naive = occurrences / n
    caps = [math.floor(size * (share + TOLERANCE)) for size in sizes]
    allowed = [[math.comb(size, c) for c in range(cap + 1)] for size, cap in zip(sizes, caps, strict=True)]
    before, after = [[1]], [[1]]
    for polynomial, backwards in zip(allowed, reversed(allowed), strict=True):
        before.append(_product(before[-1], polynomial, occurrences))
        after.append(_product(after[-1], backwards, occurrences))
    after.reverse()
    everything = math.comb(n, occurrences)
    remaining = everything - _coefficient(before[-1], occurrences)
    if remaining == 0:
        return Minimality((naive,) * len(sizes), naive, 0.0, applies=False)
    posterior = []
    for i, size in enumerate(sizes):
        counted = _product(before[i], [c * ways for c, ways in enumerate(allowed[i])], occurrences)
        harmless = sum(ways * _coefficient(after[i + 1], occurrences - c) for c, ways in enumerate(counted))
        # Over all ways the group has its share of the occurrences, n_i / n.
        posterior.append(float((Fraction(everything * occurrences * size, n) - harmless) / (remaining * size)))
    return Minimality(tuple(posterior), naive, float(Fraction(remaining, everything)), applies=True)


def minimality_attack(
    table: MaskedTable,
    external: pl.DataFrame,
    share: float,
    attribute: str | None = None,
    *,
    progress: Told | None = None,
) -> Exposure:
    """Run the attack on every class whose members the intruder knows, for every value of a sensitive attribute.

    - `table`: the masked table.
    - `external`: everybody in it, with their quasi-identifiers.
    - `share`: the largest share of a value that the policy allows.
    - `attribute`: the sensitive attribute; the first by default.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    Classes that cover as many persons as they have records are attacked; where classes overlap, the intruder cannot
    tell who is in which. Returns what is exposed.

    >>> import polars as pl, shoal
    >>> from shoal.measures.seen import MaskedTable
    >>> masked = pl.DataFrame({"age": ["[20, 21]"] * 7, "illness": ["HIV", "HIV"] + ["flu"] * 5})
    >>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "illness": shoal.Attribute(role="sensitive")})
    >>> everybody = pl.DataFrame({"age": [20, 20, 21, 21, 21, 21, 21]})
    >>> minimality_attack(MaskedTable.of(masked, schema), everybody, share=0.5).worst
    1.0
    """
    names = shared_quasi(table.schema, external)
    histogram = next((h for h in table.histograms if attribute in (None, h.column.name)), None)
    if histogram is None:
        raise InputError(f"'{attribute}' is not a sensitive attribute.")
    space, (classes, persons) = common_space([table.groups, external], table.schema, names, [False, True])
    points, of_person = np.unique(persons, axis=0, return_inverse=True)
    weights = np.bincount(of_person.ravel(), minlength=len(points))
    told = Progress.of(progress)
    with told.stage(weight=0.3) as part:
        cover = relate(space, classes, points, progress=part)
    exposed, hit, worst, attacked = 0, [], 0.0, 0
    for c in range(len(table.sizes)):
        told(0.3 + 0.7 * c / len(table.sizes))
        groups = weights[cover.indices[cover.indptr[c] : cover.indptr[c + 1]]]
        if int(groups.sum()) != int(table.sizes[c]) or len(groups) < 2 or table.sizes[c] > LARGEST:
            continue
        attacked += 1
        cells = slice(int(histogram.starts[c]), int(histogram.starts[c + 1]))
        found = [minimality(groups.tolist(), int(count), share) for count in histogram.count[cells]]
        above = np.array([[p > share + TOLERANCE for p in f.posterior] for f in found if f.applies], dtype=bool)
        worst = max([worst, *(f.worst for f in found if f.applies)])
        if above.any():
            hit.append(c)
            exposed += int(groups[above.any(axis=0)].sum())
    name = histogram.column.name
    if not attacked:
        sentence = "Minimality could not be tried: no class covers exactly the persons it was made of."
    elif hit:
        sentence = (
            f"Who knows that the table was generalized no more than needed can give {exposed:,} of {table.n:,} records "
            f"a value of '{name}' with a probability above {share:g} (up to {worst:.2f}), in {len(hit):,} classes."
        )
    else:
        sentence = f"Knowing that the table was generalized no more than needed lifts no probability above {share:g}."
    details = {"attacked_classes": attacked}
    return Exposure("minimality", name, exposed, table.n, tuple(hit), len(table.sizes), worst, sentence, details)


def minimality_by_rerun(
    data: Microdata, attribute: str, run: Callable[[Microdata], Partition], *, tries: int = 200, seed: int = 0
) -> Floats:
    """For algorithms that are not minimal: how often a value falls to each record when the output stays the same.

    - `data`, `attribute`: the table, and the sensitive attribute.
    - `run`: the algorithm, a function from a table to a partition.
    - `tries`: how often the sensitive values are shuffled and masked again; 200 by default.
    - `seed`: 0 by default.

    Of the runs that give the same classes with the same values in them, the share in which each record (row) has each
    value (column). Returns these shares, not numbers where no shuffle gives the same output. For tiny tables only.

    >>> import polars as pl, shoal
    >>> frame = pl.DataFrame({"age": [20, 21], "illness": ["flu", "HIV"]})
    >>> data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}, "illness": {"role": "sensitive"}})
    >>> together = shoal.Partition.of_classes([[0, 1]], 2)
    >>> bool((minimality_by_rerun(data, "illness", lambda table: together, tries=100) > 0.3).all())
    True
    """
    columns = one_row_each(data.sensitive, "minimality_by_rerun")
    column = next((c for c in columns if c.name == attribute), None)
    if column is None:
        raise InputError(f"'{attribute}' is not a sensitive attribute.")
    generator = np.random.default_rng(seed)
    shown = _output(run(data), column.codes)
    counts, same = np.zeros((data.n, len(column.labels))), 0
    for _ in range(tries):
        codes = generator.permutation(column.codes)
        others = tuple(replace(c, codes=codes) if c is column else c for c in columns)
        if _output(run(replace(data, sensitive=others)), codes) == shown:
            known = np.flatnonzero(codes >= 0)
            counts[known, codes[known]] += 1
            same += 1
    return counts / same if same else np.full_like(counts, np.nan)


def _output(partition: Partition, codes: NDArray[np.int32]) -> tuple[list[int], list[tuple[int, int]]]:
    """Classes and the values in them, as a reader of the release sees both."""
    first: dict[int, int] = {}
    labels = [first.setdefault(int(label), len(first)) for label in partition.labels]
    return labels, sorted(zip(labels, map(int, codes), strict=True))


def _product(one: list[int], other: list[int], degree: int) -> list[int]:
    """The product of two polynomials up to a degree."""
    result = [0] * min(degree + 1, len(one) + len(other) - 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other[: len(result) - i]):
            result[i + j] += a * b
    return result


def _coefficient(polynomial: list[int], degree: int) -> int:
    return polynomial[degree] if 0 <= degree < len(polynomial) else 0
