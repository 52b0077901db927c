"""The general forms that rules are made of, for compiled loops.

A rule is a list of forms, each a few numbers; a class satisfies the rule when it satisfies every form, and the deficits of
the forms add up to the rule's. `shoal.kernels.rules` evaluates them, and tests hold the two equal. A model that is a
composition of these needs nothing outside its own file; one that is not leaves `Rule.forms` alone and goes through NumPy,
slower.

>>> form = Shares.at_most(np.array([0.5, np.inf]))
>>> form.kind.name, form.floats().tolist()
('SHARES', [0.0, 0.0, 0.5, inf])
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shoal import exact

if TYPE_CHECKING:
    from shoal.models.ranges import Ranges
    from shoal.models.sets import Sets

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BITS = 64
"""Bits of a word that tells a set of groups: what an integer of compiled loops has."""


class Kind(IntEnum):
    """The forms that compiled loops can evaluate (`shoal.kernels.rules` says what their numbers mean there)."""

    SIZE = 0
    DISTINCT = 1
    WEIGHT = 2
    ENTROPY = 3
    RECURSIVE = 4
    SHARES = 5
    RANGE = 6
    DISTANCE = 7
    VARIANCE = 8
    BREACH = 9
    HITTING = 10
    SUMMED = 11


@dataclass(frozen=True, eq=False)
class Form(ABC):
    """One condition on the size of a class and its histogram over a rule's codes."""

    kind: ClassVar[Kind]
    by_shares: ClassVar[bool] = True
    """Whether, of all classes of one size, one whose values are as even or as near to the table's as can be is good if any is."""

    @abstractmethod
    def ints(self) -> Ints:
        """The whole numbers."""

    def floats(self) -> Floats:
        """The other numbers."""
        return np.zeros(0)

    @property
    def like_table(self) -> bool:
        """Whether a class is good by being like the whole table, rather than by being even."""
        return False

    @property
    def minded(self) -> NDArray[np.bool_] | None:
        """The codes that the form looks at; None for all."""
        return None

    def nearer(self, table: Ints, n: int, share: float) -> Form:
        """The form with its limit only that share of the way from what the whole table has, where it binds a distribution."""
        return self


@dataclass(frozen=True, eq=False)
class Size(Form):
    """At least k records. Deficit: the missing ones."""

    kind: ClassVar[Kind] = Kind.SIZE
    k: int

    def ints(self) -> Ints:
        """k."""
        return np.array([self.k])


@dataclass(frozen=True, eq=False)
class Distinct(Form):
    """At least p codes occur. Deficit: the missing ones."""

    kind: ClassVar[Kind] = Kind.DISTINCT
    p: int

    def ints(self) -> Ints:
        """p."""
        return np.array([self.p])


@dataclass(frozen=True, eq=False)
class Weight(Form):
    """Each code has a rank in steps, and the ranks of the records (or of the codes that occur, `once`) sum to α or more.

    Deficit: the missing weight.
    """

    kind: ClassVar[Kind] = Kind.WEIGHT
    alpha: float
    ranks: Ints
    steps: int
    once: bool = False

    def ints(self) -> Ints:
        """Whether codes count once, the steps, the ranks."""
        return np.concatenate([[int(self.once), self.steps], self.ranks])

    def floats(self) -> Floats:
        """α."""
        return np.array([self.alpha])


@dataclass(frozen=True, eq=False)
class Entropy(Form):
    """An entropy of at least `least`. Deficit: what is missing, and 1 more where nothing is known."""

    kind: ClassVar[Kind] = Kind.ENTROPY
    least: float

    def ints(self) -> Ints:
        """None."""
        return np.zeros(0, dtype=np.int64)

    def floats(self) -> Floats:
        """The least entropy."""
        return np.array([self.least])

    def nearer(self, table: Ints, n: int, share: float) -> Form:
        """Nearer to the table's own entropy."""
        shares = np.sort(table[table > 0])[::-1] / max(1, int(table.sum()))
        reached = -exact.weighed(shares, exact.log(shares))
        return replace(self, least=reached + share * (self.least - reached))


@dataclass(frozen=True, eq=False)
class Recursive(Form):
    """r_1 < c·(r_l + … + r_m) for the counts r_1 ≥ … ≥ r_m. Deficit: missing codes, r_1 − c·tail where positive, and 1."""

    kind: ClassVar[Kind] = Kind.RECURSIVE
    length: int
    c: float

    def ints(self) -> Ints:
        """l."""
        return np.array([self.length])

    def floats(self) -> Floats:
        """c."""
        return np.array([self.c])

    def nearer(self, table: Ints, n: int, share: float) -> Form:
        """Nearer to the c that the table itself just fails."""
        ordered = np.sort(table)[::-1]
        reached = float(ordered[0] / max(1, int(ordered[self.length - 1 :].sum())))
        return replace(self, c=reached + share * (self.c - reached))


@dataclass(frozen=True, eq=False)
class Shares(Form):
    """Each code's share lies between bounds. Deficit: the records by which shares are too large or too small.

    Shares are of all records, or, with `of_known`, of those with a known code; a class without any then fails. A code that
    does not occur is below no bound unless `everywhere`: then each code with a lower bound has to occur, and where one does
    not, one record is missing at least.
    """

    kind: ClassVar[Kind] = Kind.SHARES
    lower: Floats
    upper: Floats
    of_known: bool = False
    everywhere: bool = False

    @classmethod
    def at_most(cls, upper: Floats, *, of_known: bool = False) -> Self:
        """Upper bounds alone; infinite ones bind nothing."""
        return cls(np.zeros(len(upper)), upper, of_known)

    def ints(self) -> Ints:
        """Whether shares are of known codes, and whether codes have to occur."""
        return np.array([int(self.of_known), int(self.everywhere)])

    def floats(self) -> Floats:
        """Lower bounds, upper bounds."""
        return np.concatenate([self.lower, self.upper])

    @property
    def minded(self) -> NDArray[np.bool_]:
        """The codes that are bound at all."""
        return np.isfinite(self.upper) | (self.lower > 0)

    @property
    def like_table(self) -> bool:
        """Bounds that differ follow the table's shares; one bound for all codes is met best by even ones."""
        return bool(np.ptp(self.upper[self.minded]) > 0) if self.minded.any() else False

    def nearer(self, table: Ints, n: int, share: float) -> Form:
        """Nearer to the table's shares; codes with one bound are moved by the one that is nearest to it."""
        shares = table / max(1, int(table.sum()) if self.of_known else n)
        lower, upper = self.lower.copy(), self.upper.copy()
        for bounds, nearest in ((lower, np.min), (upper, np.max)):
            for bound in np.unique(bounds[self.minded & np.isfinite(bounds) & (bounds != 0)]):
                same = self.minded & (bounds == bound)
                reached = float(nearest(shares[same]))
                bounds[same] = reached + share * (bound - reached)
        return replace(self, lower=lower, upper=upper)


@dataclass(frozen=True, eq=False)
class Range(Form):
    """The largest number that occurs exceeds the smallest by e or more. Deficit: the missing share of e (1: none known)."""

    kind: ClassVar[Kind] = Kind.RANGE
    e: float
    numbers: Floats
    """The number of each code, ascending."""

    def ints(self) -> Ints:
        """None."""
        return np.zeros(0, dtype=np.int64)

    def floats(self) -> Floats:
        """e, and the number of each code."""
        return np.concatenate([[self.e], self.numbers])


@dataclass(frozen=True, eq=False)
class Distance(Form):
    """Σ weight·|share − target| over ranges of codes is at most t; 1 where nothing is known. Deficit: the excess."""

    kind: ClassVar[Kind] = Kind.DISTANCE
    t: float
    ranges: Ranges
    target: Floats

    def ints(self) -> Ints:
        """The ranges."""
        return self.ranges.flat()

    def floats(self) -> Floats:
        """t, the targets, the weights."""
        return np.concatenate([[self.t], self.target, self.ranges.weight])

    @property
    def like_table(self) -> bool:
        """The target is the table's distribution."""
        return True

    def nearer(self, table: Ints, n: int, share: float) -> Form:
        """The table itself is at distance 0."""
        return replace(self, t=share * self.t)


@dataclass(frozen=True, eq=False)
class Variance(Form):
    """A class with a flagged code has p codes or more, and the share r or more of a reference variance.

    With `literal` the variance is asked of the classes with p codes or more instead. A reference of 0 asks for nothing.
    Deficit: missing codes, and the missing share.
    """

    kind: ClassVar[Kind] = Kind.VARIANCE
    by_shares: ClassVar[bool] = False
    p: int
    r: float
    flagged: NDArray[np.bool_]
    reference: float
    numbers: tuple[Ints, Floats]
    """The variance's own (`shoal.models.variance`)."""
    literal: bool = False

    def ints(self) -> Ints:
        """p, whether literal, the flags, the variance's own."""
        return np.concatenate([[self.p, int(self.literal)], self.flagged.astype(np.int64), self.numbers[0]])

    def floats(self) -> Floats:
        """r, the reference, the variance's own."""
        return np.concatenate([[self.r, self.reference], self.numbers[1]])


@dataclass(frozen=True, eq=False)
class Breach(Form):
    """For each guard that a code of the class has, at most a share of the class lies inside. Deficit: the records too many."""

    kind: ClassVar[Kind] = Kind.BREACH
    by_shares: ClassVar[bool] = False
    breach: float
    guard: Ints
    """The guard of each code, -1 for none."""
    inside: Floats
    """Guards × codes: which part of a record with this code lies inside."""

    def ints(self) -> Ints:
        """The numbers of codes and guards, the guard of each code, and which codes lie inside each guard."""
        rows, codes = np.nonzero(self.inside)
        starts = np.searchsorted(rows, np.arange(len(self.inside) + 1))
        return np.concatenate([[len(self.guard), len(self.inside)], self.guard, starts, codes])

    def floats(self) -> Floats:
        """The largest share, and the parts inside."""
        return np.concatenate([[self.breach], self.inside[np.nonzero(self.inside)]])


@dataclass(frozen=True, eq=False)
class Hitting(Form):
    """Codes are sets of groups, and no set of fewer than p groups meets all that occur. Deficit: how many groups less do."""

    kind: ClassVar[Kind] = Kind.HITTING
    by_shares: ClassVar[bool] = False
    p: int
    sets: Sets
    groups: int

    def ints(self) -> Ints:
        """p, how many groups there are, where each set begins, the sets in bits, and the sets."""
        return np.concatenate([[self.p, self.groups], self.sets.starts, self.sets.words(BITS), self.sets.members])


@dataclass(frozen=True, eq=False)
class Summed(Form):
    """Codes are sets of groups, and a form asked of how many records have each group, or which parts of them."""

    kind: ClassVar[Kind] = Kind.SUMMED
    by_shares: ClassVar[bool] = False
    form: Form
    sets: Sets
    groups: int
    spread: bool

    def ints(self) -> Ints:
        """The form's kind, the number of groups, a record's weight, the sets' beginnings, the sets, the parts; the form's own."""
        from shoal.models.sets import PARTS

        parts = self.sets.parts if self.spread else np.ones(len(self.sets.members), dtype=np.int64)
        head = [int(self.form.kind), self.groups, PARTS if self.spread else 1]
        return np.concatenate([head, self.sets.starts, self.sets.members, parts, self.form.ints()])

    def floats(self) -> Floats:
        """The form's own."""
        return self.form.floats()

    @property
    def like_table(self) -> bool:
        """A class whose sets are like the table's has groups like the table's."""
        return self.form.like_table

    def nearer(self, table: Ints, n: int, share: float) -> Form:
        """The form's own, from what the whole table has together."""
        together = np.asarray(table @ self.sets.incidence(self.groups, spread=self.spread), dtype=np.int64)
        from shoal.models.sets import PARTS

        return replace(self, form=self.form.nearer(together, n * PARTS if self.spread else n, share))
