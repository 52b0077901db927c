"""The three domains a quasi-identifier can have, and what it costs to generalize in them.

An attribute is a set of integer codes with a *join*. A class has one *state* per attribute; adding a record
joins its code into the state, and every state has a loss in [0, 1]:

- `Interval` (numbers, dates, ordered categories): state = (lowest code, highest code);
- `Tree` (a taxonomy): leaves are coded in depth-first order, so the lowest common ancestor of a set is that of
  its smallest and largest code, and the state is again (lowest code, highest code);
- `Set` (categories without a taxonomy): state = the set of codes, held as 64-bit words.

Missing is the last code of a domain. Joined with a number it gives "any", with loss 1; in a taxonomy it
is a leaf under the root; in a set it is one more member.
A loss measure is a choice of numbers, not of code: `il`, `ncp`, `granularity` (docs/measures.md#loss).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import ConfigError, did_you_mean
from shoal.taxonomy import Taxonomy
from shoal.taxonomy_build import number_label

Measure = Literal["il", "ncp", "granularity"]
MEASURES: tuple[Measure, ...] = ("il", "ncp", "granularity")

Codes = NDArray[np.int32]
States = NDArray[np.int64]
Floats = NDArray[np.float64]

EPOCH = date(1970, 1, 1)
SUPPRESSED = "*"
MISSING_MEMBER = "∅"

# Labels that could be taken for a set, an interval, suppressed or missing; and, among others, for several labels.
_ODD_ALONE = re.compile(r'[\[{"]|\*+$|∅$')
_ODD_AMONG_OTHERS = re.compile(r'.*[,{}\[\]"]|\*+$|∅$|\s|.*\s$', re.DOTALL)


@dataclass(frozen=True, eq=False)
class Interval:
    """Numbers coded by rank over their distinct values; ordered labels and dates are numbers in disguise."""

    values: Floats
    width: float
    has_missing: bool = False
    labels: tuple[str, ...] | None = None
    is_date: bool = False

    @property
    def size(self) -> int:
        """Number of codes, missing included."""
        return len(self.values) + self.has_missing

    @property
    def missing_code(self) -> int:
        """The code of missing, or one that never occurs."""
        return len(self.values)

    def loss(self, lo: States, hi: States, measure: Measure) -> Floats:
        """Width over the reference range, the same for every measure; 1 for "any"."""
        m = len(self.values)
        if m == 0:
            return np.zeros(len(lo))
        spread = self.values[np.minimum(hi, m - 1)] - self.values[np.minimum(lo, m - 1)]
        loss = spread / self.width if self.width > 0 else np.zeros(len(lo))
        if self.has_missing:
            loss = np.where(hi == m, np.where(lo == m, 0.0, 1.0), loss)
        return np.asarray(np.minimum(loss, 1.0))

    def text(self, code: int) -> str:
        """One value as it is published."""
        if self.labels is not None:
            return self.labels[code]
        if self.is_date:
            return (EPOCH + timedelta(days=int(self.values[code]))).isoformat()
        return number_label(float(self.values[code]))

    def publish(self, lo: int, hi: int) -> str | None:
        """`[17, 39]`, one value when both ends agree, None for missing, `*` for any."""
        m = len(self.values)
        if hi == m and self.has_missing:
            return None if lo == m else SUPPRESSED
        if self.labels is not None:
            return written(self.text(lo)) if lo == hi else f"[{member(self.text(lo))}, {member(self.text(hi))}]"
        return self.text(lo) if lo == hi else f"[{self.text(lo)}, {self.text(hi)}]"


@dataclass(frozen=True, eq=False)
class Tree:
    """A taxonomy; `taxonomy` already holds the missing leaf (last code) when the column has missing values."""

    taxonomy: Taxonomy
    has_missing: bool = False

    @property
    def size(self) -> int:
        """Number of leaves, missing included."""
        return self.taxonomy.leaves

    @property
    def missing_code(self) -> int:
        """The code of missing, or one that never occurs."""
        return self.taxonomy.leaves - 1 if self.has_missing else self.taxonomy.leaves

    def node_losses(self, measure: Measure) -> Floats:
        """The loss of publishing each node."""
        tree = self.taxonomy
        leaves = tree.leaf_counts.astype(np.float64)
        total = float(tree.leaves)
        if tree.leaves <= 1:
            return np.zeros(tree.nodes)
        if measure == "il":
            return np.asarray(tree.height / max(1, int(tree.height[tree.root])))
        if measure == "ncp":
            return np.where(leaves > 1, leaves / total, 0.0)
        return np.asarray((leaves - 1) / (total - 1))

    def loss(self, lo: States, hi: States, measure: Measure) -> Floats:
        """Loss of the lowest common ancestor of each code range."""
        return np.asarray(self.node_losses(measure)[self.taxonomy.lca(lo, hi)])

    def publish(self, lo: int, hi: int) -> str | None:
        """The label of the lowest common ancestor; None for missing alone."""
        if self.has_missing and lo == self.missing_code:
            return None
        return self.taxonomy.labels[int(self.taxonomy.lca(np.array([lo]), np.array([hi]))[0])]


@dataclass(frozen=True, eq=False)
class Set:
    """Categories without a taxonomy; the loss of a set comes from its size alone."""

    labels: tuple[str, ...]
    has_missing: bool = False

    @property
    def size(self) -> int:
        """Number of codes, missing included."""
        return len(self.labels) + self.has_missing

    @property
    def missing_code(self) -> int:
        """The code of missing, or one that never occurs."""
        return len(self.labels)

    @property
    def words(self) -> int:
        """How many 64-bit words a set takes."""
        return max(1, math.ceil(self.size / 64))

    def size_losses(self, measure: Measure) -> Floats:
        """The loss of publishing a set of 0, 1, … values. Definition 9 knows no sets: `il` reads them as `ncp`."""
        sizes = np.arange(self.size + 1, dtype=np.float64)
        if self.size <= 1:
            return np.zeros(self.size + 1)
        if measure == "granularity":
            return np.maximum(sizes - 1, 0) / (self.size - 1)
        return np.where(sizes > 1, sizes / self.size, 0.0)

    def publish(self, members: Sequence[int]) -> str | None:
        """`{a, b}` sorted, one label when alone, None for missing alone, `∅` last when missing is among others."""
        names = sorted(self.labels[code] for code in members if code < len(self.labels))
        if not names:
            return None
        if len(names) == len(members) == 1:
            return written(names[0])
        listed = [member(name) for name in names] + [MISSING_MEMBER] * (len(names) < len(members))
        return "{" + ", ".join(listed) + "}"


Domain = Interval | Tree | Set


def written(label: str) -> str:
    """A label as it is published by itself: in quotes where it could be taken for something else.

    >>> written("clerk"), written("*"), written("{a, b}")
    ('clerk', '"*"', '"{a, b}"')
    """
    return _quoted(label) if _ODD_ALONE.match(label) else label


def member(label: str) -> str:
    """A label as it is published in a set or an interval.

    >>> member("clerk"), member("Ash, Birch & Co")
    ('clerk', '"Ash, Birch & Co"')
    """
    return _quoted(label) if _ODD_AMONG_OTHERS.match(label) else label


def _quoted(label: str) -> str:
    return '"' + label.replace('"', '""') + '"'


@dataclass(frozen=True, eq=False)
class Space:
    """The quasi-identifiers' domains side by side, with weights and one loss measure."""

    domains: tuple[Domain, ...]
    weights: Floats
    measure: Measure
    slots: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ConfigError(f"'{self.measure}' is not a loss measure; {did_you_mean(self.measure, MEASURES)}")
        widths = [domain.words if isinstance(domain, Set) else 2 for domain in self.domains]
        object.__setattr__(self, "slots", np.concatenate([[0], np.cumsum(widths)]).astype(np.int64))

    @property
    def width(self) -> int:
        """Number of slots of one state: two for a range, one a word for a set."""
        return int(self.slots[-1])

    def states(self, codes: Codes, order: NDArray[np.int64], starts: NDArray[np.int64]) -> States:
        """The joined state of each class; `order` lists records class by class, `starts` where each begins."""
        result = np.zeros((len(starts), self.width), dtype=np.int64)
        if len(starts) == 0:
            return result
        for a, domain in enumerate(self.domains):
            column = codes[order, a]
            slot = int(self.slots[a])
            if isinstance(domain, Set):
                # Every record sets one bit of its class, however many words a set of thousands of values takes.
                own = column[int(starts[0]) :]
                bits = (np.uint64(1) << (own & 63).astype(np.uint64)).view(np.int64)
                owners = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(column))))
                places = owners, slot + (own >> 6)
                np.bitwise_or.at(result, places, bits)
            else:
                result[:, slot] = np.minimum.reduceat(column, starts)
                result[:, slot + 1] = np.maximum.reduceat(column, starts)
        return result

    def losses(self, states: States, measure: Measure | None = None) -> Floats:
        """Loss per class and attribute, in [0, 1], without weights."""
        measure = measure or self.measure
        result = np.zeros((len(states), len(self.domains)))
        for a, domain in enumerate(self.domains):
            slot = int(self.slots[a])
            if isinstance(domain, Set):
                sizes = np.bitwise_count(states[:, slot : slot + domain.words].view(np.uint64)).sum(axis=1)
                result[:, a] = domain.size_losses(measure)[sizes]
            else:
                result[:, a] = domain.loss(states[:, slot], states[:, slot + 1], measure)
        return result

    def unit(self, states: States) -> Floats:
        """Weighted loss of one record in each class: the papers' unit(cl)."""
        return exact.along(self.losses(states), self.weights)

    def publish(self, states: States) -> list[list[str | None]]:
        """Per attribute, the published text of each class's state. Equal states are rendered once."""
        columns: list[list[str | None]] = []
        for a, domain in enumerate(self.domains):
            part = np.ascontiguousarray(states[:, int(self.slots[a]) : int(self.slots[a + 1])])
            distinct, inverse = np.unique(part, axis=0, return_inverse=True)
            if isinstance(domain, Set):
                texts = [domain.publish(members_of(row)) for row in distinct]
            else:
                texts = [domain.publish(int(row[0]), int(row[1])) for row in distinct]
            columns.append([texts[i] for i in inverse.ravel()])
        return columns


def members_of(words: States) -> list[int]:
    """The codes in a set held as 64-bit words."""
    bits = np.unpackbits(np.ascontiguousarray(words, dtype="<i8").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist()
