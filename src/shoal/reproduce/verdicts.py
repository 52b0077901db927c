"""What papers state, as objects that are held against rows of data: no verdict is written by hand.

A claim names the series it compares, says in words which inequality it tests, and finds out from the rows whether it is so.
Lines are of four kinds (docs/papers.md#verdicts): *equal*, to the printed digits; *within spread*, over so many seeds;
*qualitatively*, an inequality or an order; *no claim*, a figure of our own or one that the paper says nothing about, which counts
for nothing. The first three are *not reproduced* where the rows say otherwise.

>>> rows = [{"k": 2, "tool": "ours", "loss": 0.1}, {"k": 2, "tool": "theirs", "loss": 0.3}]
>>> claim = Below("loss", by="k", one={"tool": "ours"}, others=({"tool": "theirs"},))
>>> claim.says, claim.judge(rows)
('loss(ours) < loss(theirs) at every k', Finding(holds=True, ours='2: 0.1 < 0.3'))
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from shoal import exact

Value = str | int | float
Row = Mapping[str, Value]
Rows = Sequence[Row]
Where = Mapping[str, Value]
Kind = Literal["equal", "within spread", "qualitatively", "no claim"]
Verdict = Literal["equal", "within spread", "qualitatively", "no claim", "not reproduced", "not run"]

# Digits that people read of a measured number.
DIGITS = 4
# Pairs of numbers that one line can show.
FEW = 6


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds (None: there is no data, or nothing is claimed), and what came out here."""

    holds: bool | None
    ours: str


class Claim(ABC):
    """A statement about rows."""

    kind: Kind = "qualitatively"

    @property
    @abstractmethod
    def says(self) -> str:
        """The inequality, in words."""

    @abstractmethod
    def judge(self, rows: Rows) -> Finding:
        """Hold it against the rows."""

    def verdict(self, rows: Rows) -> tuple[Verdict, str]:
        """The verdict of a line, and what came out here."""
        found = self.judge(rows)
        if self.kind == "no claim":
            return "no claim", found.ours
        if found.holds is None:
            return "not run", found.ours
        return (self.kind if found.holds else "not reproduced"), found.ours


def chosen(rows: Rows, where: Where) -> list[Row]:
    """The rows that have these settings."""
    return [row for row in rows if all(row.get(name) == value for name, value in where.items())]


def numbers(rows: Rows, column: str, where: Where) -> list[float]:
    """What a column holds in the rows that have these settings."""
    return [float(row[column]) for row in chosen(rows, where) if column in row]


def curve(rows: Rows, column: str, by: str, where: Where) -> dict[Value, float]:
    """A series: the mean of a column at every setting of another, in the order of the settings."""
    found: dict[Value, list[float]] = {}
    for row in chosen(rows, where):
        if column in row and by in row:
            found.setdefault(row[by], []).append(float(row[column]))
    return {at: exact.mean(found[at]) for at in sorted(found, key=_order)}


def _order(value: Value) -> tuple[bool, Value]:
    return isinstance(value, str), value


def told(value: float) -> str:
    """A number as people read it.

    >>> told(398790.0), told(0.30534), told(12.0249), told(0.0)
    ('398,790', '0.3053', '12.02', '0')
    """
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 10 ** (DIGITS - 1) else f"{value:.{DIGITS}g}"


def named(where: Where) -> str:
    """A series by its settings."""
    return ", ".join(value if isinstance(value, str) else f"{name} = {value}" for name, value in where.items())


@dataclass(frozen=True)
class Prints(Claim):
    """A printed number comes out to its last digit: cut off there, as the papers do, or rounded."""

    column: str
    printed: str
    where: Where = field(default_factory=dict)
    rounded: bool = False
    kind: Kind = field(default="equal", init=False)

    @property
    def says(self) -> str:
        if "." not in self.printed:
            return f"{self.column} = {self.printed}"
        return f"{self.column} = {self.printed}, {'rounded' if self.rounded else 'cut off'} at its last digit"

    def judge(self, rows: Rows) -> Finding:
        values = numbers(rows, self.column, self.where)
        if not values:
            return Finding(None, "")
        digits = len(self.printed.partition(".")[2])
        printed, scale = round(float(self.printed.replace(",", "")) * 10**digits), 10**digits
        # A value that lies on a digit is that digit, whatever its last bit.
        shown = [round(v * scale) if self.rounded else math.floor(v * scale + 1e-6) for v in values]
        ours = ", ".join(f"{v:.{digits + 2}f}" if digits else f"{v:,g}" for v in values)
        return Finding(all(s == printed for s in shown), ours)


@dataclass(frozen=True)
class Spread(Claim):
    """A printed number lies within so many standard deviations of the mean over seeds."""

    column: str
    printed: float
    where: Where = field(default_factory=dict)
    deviations: float = 3.0
    kind: Kind = field(default="within spread", init=False)

    @property
    def says(self) -> str:
        return f"|{self.column} − {self.printed:g}| ≤ {self.deviations:g} standard deviations over the seeds"

    def judge(self, rows: Rows) -> Finding:
        values = numbers(rows, self.column, self.where)
        if len(values) < 2:
            return Finding(None, "")
        mean, deviation = exact.mean(values), spread(values)
        inside = abs(self.printed - mean) <= self.deviations * deviation
        shown = [f"{value:.2f}" if abs(self.printed) >= 1 else f"{value:.4f}" for value in (mean, deviation)]
        return Finding(inside, f"{' ± '.join(shown)} ({len(values)} seeds)")


def spread(values: Sequence[float]) -> float:
    """The standard deviation of a sample."""
    mean = exact.mean(values)
    return math.sqrt(exact.total([(value - mean) ** 2 for value in values]) / (len(values) - 1))


@dataclass(frozen=True)
class Below(Claim):
    """One series lies below all of some others, at every setting of a column (or not above them, when not `strict`)."""

    column: str
    by: str
    one: Where
    others: tuple[Where, ...]
    strict: bool = True
    where: Where = field(default_factory=dict)

    @property
    def says(self) -> str:
        rivals = ", ".join(named(other) for other in self.others)
        many = "each of " if len(self.others) > 1 else ""
        sign = "<" if self.strict else "≤"
        return f"{self.column}({named(self.one)}) {sign} {self.column}({many}{rivals}) {_at(self.by, self.where)}"

    def judge(self, rows: Rows) -> Finding:
        mine = curve(rows, self.column, self.by, {**self.where, **self.one})
        theirs = [curve(rows, self.column, self.by, {**self.where, **other}) for other in self.others]
        shared = [at for at in mine if all(at in one for one in theirs)]
        if not shared:
            return Finding(None, "")
        parts, holds = [], True
        for at in shared:
            least = min(one[at] for one in theirs)
            here = mine[at] < least if self.strict else mine[at] <= least
            sign = "<" if mine[at] < least else "=" if mine[at] == least else ">"
            parts.append(f"{at}: {told(mine[at])} {sign} {told(least)}")
            holds = holds and here
        return Finding(holds, "; ".join(parts))


@dataclass(frozen=True)
class Same(Claim):
    """Two series do not differ, at every setting of a column."""

    column: str
    by: str
    one: Where
    other: Where
    where: Where = field(default_factory=dict)

    @property
    def says(self) -> str:
        return f"{self.column}({named(self.one)}) = {self.column}({named(self.other)}) {_at(self.by, self.where)}"

    def judge(self, rows: Rows) -> Finding:
        mine = curve(rows, self.column, self.by, {**self.where, **self.one})
        theirs = curve(rows, self.column, self.by, {**self.where, **self.other})
        shared = [at for at in mine if at in theirs]
        if not shared:
            return Finding(None, "")
        ours = "; ".join(f"{at}: {told(mine[at])} and {told(theirs[at])}" for at in shared)
        return Finding(all(mine[at] == theirs[at] for at in shared), ours)


@dataclass(frozen=True)
class Ordered(Claim):
    """A series rises along a column (`order="falls"`: falls; `"bends"`: does neither), or grows more slowly than the column."""

    column: str
    along: str
    where: Where = field(default_factory=dict)
    order: Literal["rises", "falls", "bends", "lags", "squares", "begins", "peaks"] = "rises"

    @property
    def says(self) -> str:
        name = f"{self.column}({named(self.where)})" if self.where else self.column
        return {
            "rises": f"{name} rises with {self.along}",
            "falls": f"{name} falls with {self.along}",
            "bends": f"{name} neither rises nor falls throughout with {self.along}",
            "lags": f"{name} grows less than in proportion to {self.along}, from the first to the last",
            "squares": f"{name} grows no more than with the square of {self.along}, from the first to the last",
            "begins": f"{name} rises from the smallest {self.along} to the next",
            "peaks": f"{name} is not largest at the largest {self.along}",
        }[self.order]

    def judge(self, rows: Rows) -> Finding:
        found = curve(rows, self.column, self.along, self.where)
        if len(found) < 2:
            return Finding(None, "")
        ours = ", ".join(told(value) for value in found.values())
        return Finding(_ORDERS[self.order](found), ours)


def _steps(found: Mapping[Value, float]) -> list[float]:
    return [after - before for before, after in pairwise(found.values())]


def _lags(found: Mapping[Value, float]) -> bool:
    (first, low), *_, (last, high) = found.items()
    return high * float(first) < low * float(last)


def _squares(found: Mapping[Value, float]) -> bool:
    (first, low), *_, (last, high) = found.items()
    return high * float(first) ** 2 <= low * float(last) ** 2


_ORDERS: dict[str, Callable[[Mapping[Value, float]], bool]] = {
    "rises": lambda found: all(step > 0 for step in _steps(found)),
    "falls": lambda found: all(step < 0 for step in _steps(found)),
    "bends": lambda found: min(_steps(found)) < 0 < max(_steps(found)),
    "lags": _lags,
    "squares": _squares,
    "begins": lambda found: _steps(found)[0] > 0,
    "peaks": lambda found: max(found.values()) > list(found.values())[-1],
}


@dataclass(frozen=True)
class Widens(Claim):
    """The gap between one series and the nearest of some others grows along a column."""

    column: str
    along: str
    one: Where
    others: tuple[Where, ...]
    where: Where = field(default_factory=dict)

    @property
    def says(self) -> str:
        rivals = ", ".join(named(other) for other in self.others)
        return f"{self.column}(least of {rivals}) − {self.column}({named(self.one)}) rises with {self.along}{_given(self.where)}"

    def judge(self, rows: Rows) -> Finding:
        mine = curve(rows, self.column, self.along, {**self.where, **self.one})
        theirs = [curve(rows, self.column, self.along, {**self.where, **other}) for other in self.others]
        shared = [at for at in mine if all(at in one for one in theirs)]
        if len(shared) < 2:
            return Finding(None, "")
        gaps = {at: min(one[at] for one in theirs) - mine[at] for at in shared}
        ours = "; ".join(f"{at}: {told(gap)}" for at, gap in gaps.items())
        return Finding(all(step > 0 for step in _steps(gaps)), ours)


@dataclass(frozen=True)
class Smoother(Claim):
    """A curve has fewer or smaller bends at the largest setting of a column than at the smallest."""

    column: str
    by: str
    along: str
    where: Where = field(default_factory=dict)

    @property
    def says(self) -> str:
        name = f"{self.column}({named(self.where)})"
        return f"the changes of slope of {name} over {self.by} add up to less at the largest {self.along} than at the smallest"

    def judge(self, rows: Rows) -> Finding:
        places = curve(rows, self.column, self.along, self.where)
        curves = {at: curve(rows, self.column, self.by, {**self.where, self.along: at}) for at in places}
        bends = {at: _bends(one) for at, one in curves.items() if len(one) > 2}
        if len(bends) < 2:
            return Finding(None, "")
        first, *_, last = bends.values()
        return Finding(last < first, "; ".join(f"{at}: {told(value)}" for at, value in bends.items()))


def _bends(found: Mapping[Value, float]) -> float:
    points = [(float(at), value) for at, value in found.items()]
    slopes = [(after - before) / (b - a) for (a, before), (b, after) in pairwise(points)]
    return exact.total([abs(after - before) for before, after in pairwise(slopes)])


@dataclass(frozen=True)
class Within(Claim):
    """In every row a column is at most (exactly, below) a number or another column of the row."""

    column: str
    limit: str | float
    where: Where = field(default_factory=dict)
    sign: Literal["≤", "=", "<"] = "≤"

    @property
    def says(self) -> str:
        limit = self.limit if isinstance(self.limit, str) else told(self.limit)
        return f"{self.column} {self.sign} {limit}{_given(self.where)}"

    def judge(self, rows: Rows) -> Finding:
        found = [row for row in chosen(rows, self.where) if self.column in row]
        if not found:
            return Finding(None, "")
        pairs = [
            (float(r[self.column]), float(r[self.limit] if isinstance(self.limit, str) else self.limit)) for r in found
        ]
        holds = {"≤": operator.le, "=": operator.eq, "<": operator.lt}[self.sign]
        right = sum(holds(a, b) for a, b in pairs)
        shown = list(
            dict.fromkeys(f"{told(a)} and {told(b)}" if isinstance(self.limit, str) else told(a) for a, b in pairs)
        )
        ours = f"{', '.join(shown[:FEW])}{', …' if len(shown) > FEW else ''} (in {right} of {len(pairs)} runs)"
        return Finding(right == len(pairs), ours)


@dataclass(frozen=True)
class Shown(Claim):
    """What came out, beside no claim."""

    column: str
    by: str
    where: Where = field(default_factory=dict)
    what: str = ""
    kind: Kind = field(default="no claim", init=False)

    @property
    def says(self) -> str:
        return self.what or "nothing is claimed"

    def judge(self, rows: Rows) -> Finding:
        found = curve(rows, self.column, self.by, self.where)
        return Finding(None, "; ".join(f"{at}: {told(value)}" for at, value in found.items()))


def _at(by: str, where: Where) -> str:
    """At every setting, or at the one that is given."""
    rest = {name: value for name, value in where.items() if name != by}
    return f"at {by} = {where[by]}{_given(rest)}" if by in where else f"at every {by}{_given(where)}"


def _given(where: Where) -> str:
    return f" ({', '.join(f'{name} = {value}' for name, value in where.items())})" if where else ""
