"""What masking cost, in pieces: the losses of some classes, which add up to those of all (docs/scale.md#verdicts).

Sums are kept exactly, as whole numbers of 2⁻¹⁰⁷⁴, and rounded once at the end: whoever adds them up in whatever order gets the
same digits as `shoal.measures.loss.measure` of the whole table.

>>> one, other = Sum(), Sum()
>>> one.add(np.array([0.1] * 7)); other.add(np.array([0.1] * 3))
>>> one.merge(other); one.value
1.0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.measures.loss import Measures, distinct_losses, heights, moments, numeric, state_losses, within_classes
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.space import Domain, Interval, Set, Space, States

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A float is a whole number of 2⁻¹⁰⁷⁴; its 53 digits are added in two halves, which cannot overflow below 2³⁶ terms.
SMALLEST, DIGITS, HALF = 1074, 53, 26


class Sum:
    """A sum of floats that can be continued, merged, and is rounded once."""

    def __init__(self) -> None:
        self.units = 0

    def add(self, values: Floats) -> None:
        """Add finite numbers."""
        fraction, power = np.frexp(values)
        digits = (fraction * 2.0**DIGITS).astype(np.int64)
        for step in np.unique(power).tolist():
            some = digits[power == step]
            whole = (int((some >> HALF).sum()) << HALF) + int((some & ((1 << HALF) - 1)).sum())
            shift = step - DIGITS + SMALLEST
            # Below the smallest step all digits that would be lost are zero.
            self.units += whole << shift if shift >= 0 else whole >> -shift

    def merge(self, other: Sum) -> None:
        """Add another sum."""
        self.units += other.units

    @property
    def value(self) -> float:
        """The sum as a float; a quotient of whole numbers is rounded correctly."""
        return self.units / (1 << SMALLEST)


@dataclass(frozen=True, eq=False)
class Whole:
    """What the losses of a class are measured against: figures of the whole table."""

    space: Space
    k: int
    distinct: tuple[int, ...]
    """How many different values each attribute has."""
    moments: tuple[tuple[float, float], ...]
    """Mean, and sum of squared differences from it, of each attribute that is a number; zeros for others."""

    @classmethod
    def of_counts(cls, space: Space, k: int, counts: Sequence[Ints]) -> Whole:
        """From how many records have each code, one array an attribute."""
        found = []
        for domain, own in zip(space.domains, counts, strict=True):
            codes = np.flatnonzero(own).astype(np.int32)
            found.append(
                moments(domain, codes, own[codes]) if isinstance(domain, Interval) and numeric(domain) else (0.0, 0.0)
            )
        return cls(space, k, tuple(int(np.count_nonzero(own)) for own in counts), tuple(found))


@dataclass(eq=False)
class Tally:
    """The losses of some classes, ready to be added to those of others."""

    records: int = 0
    classes: int = 0
    smallest: int = 0
    largest: int = 0
    changed: int = 0
    squares: int = 0
    small: int = 0
    """Records of classes smaller than k."""
    sums: dict[tuple[str, int], Sum] = field(default_factory=dict)
    fractions: set[str] = field(default_factory=set)
    """Published columns of numbers in which not every number is a whole one."""

    def merge(self, other: Tally) -> Tally:
        """Itself, with the losses of other classes."""
        if other.classes:
            self.smallest = min(self.smallest, other.smallest) if self.classes else other.smallest
            self.largest = max(self.largest, other.largest)
        for name in ("records", "classes", "changed", "squares", "small"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for key, more in other.sums.items():
            self.sums.setdefault(key, Sum()).merge(more)
        self.fractions |= other.fractions
        return self

    def _add(self, what: str, attribute: int, values: Floats) -> None:
        self.sums.setdefault((what, attribute), Sum()).add(values)

    def _value(self, what: str, attribute: int = 0) -> float:
        found = self.sums.get((what, attribute))
        return found.value if found is not None else 0.0

    def measures(self, names: Sequence[str], whole: Whole) -> Measures:
        """The measures of all classes together."""
        n, d, weights, high = self.records, len(names), whole.space.weights, heights(whole.space)
        keys = ("il", "ncp", "ncp_published", "granularity", "distortion", "ncp_distinct")
        share = {key: np.array([self._value(key, a) for a in range(d)]) / max(1, n) for key in keys}
        counted = [a for a in range(d) if whole.moments[a][1] > 0]
        lost = sum((self._value("within", a) / whole.moments[a][1] for a in counted), 0.0)
        top = exact.total(high)
        return Measures(
            il=self._value("total"),
            nil=exact.mean(share["il"]),
            ncp=exact.mean(share["ncp"]),
            ncp_distinct=exact.mean(share["ncp_distinct"]),
            ncp_published=exact.mean(share["ncp_published"]),
            granularity=exact.mean(share["granularity"]),
            dm=float(self.squares + n * self.small),
            avg=n / (self.classes * whole.k) if self.classes else float("nan"),
            sse=100 * lost / len(counted) if counted else float("nan"),
            distortion=self._value("edges") / (n * top) if top > 0 else 0.0,
            precision=1 - exact.mean(share["distortion"]),
            changed=self.changed,
            classes=self.classes,
            smallest_class=self.smallest,
            largest_class=self.largest,
            suppressed=0,
            attributes={name: {key: float(share[key][a]) for key in keys} for a, name in enumerate(names)}
            if len(weights)
            else {},
        )


def tally(data: Microdata, partition: Partition, states: States, whole: Whole) -> Tally:
    """The losses of the classes of a `partition` of some of the records, which publish these `states`."""
    cells = state_losses(whole.space, states)
    cells["ncp_distinct"] = distinct_losses(data, partition, everything=whole.distinct)
    found = _tallied(partition.sizes, cells, whole)
    for a, (domain, (_, spread)) in enumerate(zip(whole.space.domains, whole.moments, strict=True)):
        if isinstance(domain, Interval) and spread > 0:
            found._add("within", a, within_classes(domain, data.codes[:, a], partition.labels, None, partition.classes))
    return found


def tally_class(counts: Sequence[tuple[Ints, Ints]], whole: Whole) -> tuple[Tally, States]:
    """The losses of one class of which only is known how many records have each code, and what it publishes.

    `counts` has the codes that occur and how many records have each, one entry an attribute.
    """
    states = np.zeros((1, whole.space.width), dtype=np.int64)
    for a, (domain, (codes, _)) in enumerate(zip(whole.space.domains, counts, strict=True)):
        slot = int(whole.space.slots[a])
        if isinstance(domain, Set):
            for code in codes.tolist():
                states[:, slot + (code >> 6)] |= np.uint64(1 << (code & 63)).astype(np.int64)
        else:
            states[0, slot], states[0, slot + 1] = codes.min(), codes.max()
    cells = state_losses(whole.space, states)
    cells["ncp_distinct"] = np.array(
        [[_distinct_share(a, codes, states, whole) for a, (codes, _) in enumerate(counts)]]
    )
    found = _tallied(np.array([int(counts[0][1].sum())], dtype=np.int64), cells, whole)
    for a, (domain, (codes, own)) in enumerate(zip(whole.space.domains, counts, strict=True)):
        if isinstance(domain, Interval) and whole.moments[a][1] > 0:
            nobody = np.zeros(len(codes), dtype=np.int32)
            found._add("within", a, within_classes(domain, codes.astype(np.int32), nobody, own, 1))
    return found, states


def _distinct_share(a: int, codes: Ints, states: States, whole: Whole) -> float:
    domain: Domain = whole.space.domains[a]
    if isinstance(domain, Interval):
        slot = int(whole.space.slots[a])
        return float(domain.loss(states[:, slot], states[:, slot + 1], "ncp")[0])
    return len(codes) / whole.distinct[a] if len(codes) > 1 else 0.0


def _tallied(sizes: Ints, cells: dict[str, Floats], whole: Whole) -> Tally:
    """All that follows from the sizes of classes and the losses of what they publish."""
    found = Tally(
        records=int(sizes.sum()),
        classes=len(sizes),
        smallest=int(sizes.min(initial=np.iinfo(np.int64).max)) if len(sizes) else 0,
        largest=int(sizes.max(initial=0)),
        changed=int((sizes * np.count_nonzero((cells["ncp"] > 0) | (cells["il"] > 0), axis=1)).sum()),
        squares=sum(size * size for size in sizes[sizes >= whole.k].tolist()),
        small=int(sizes[sizes < whole.k].sum()),
    )
    weights = sizes.astype(np.float64)
    for key, losses in cells.items():
        for a in range(losses.shape[1]):
            found._add(key, a, weights * losses[:, a])
    found._add("total", 0, weights * exact.along(cells["il"], whole.space.weights))
    found._add("edges", 0, (weights[:, None] * (cells["distortion"] * heights(whole.space))).ravel())
    return found
