"""Models bound to people with several rows: the rule of a class of persons, made from the rule of a class of values.

A model says with one word (`Model.persons`) how it counts people (docs/persons.md); everything else follows from its ordinary
rule, bound to how many persons have each value, and from the sets of values that persons have (`shoal.models.sets`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shoal.errors import UnsupportedError
from shoal.models.base import Model, Rule, settled
from shoal.models.column import Codes, Floats, Ints, Pairs, Sensitive, View
from shoal.models.forms import Form, Hitting, Summed, Weight
from shoal.models.sets import DEEPEST, PARTS, Counts, Sets, class_hitting_numbers, means, number_sets, summed

Counting = Literal["distinct", "weighed", "shares", "spread", "mean"]


@dataclass(frozen=True, eq=False)
class Crowd:
    """A sensitive attribute of people with several rows: the attribute row by row, and whose each row is."""

    rows: Sensitive
    owner: Codes
    count: int

    @property
    def name(self) -> str:
        """The column's name."""
        return self.rows.name

    @property
    def labels(self) -> tuple[str, ...]:
        """The value behind each code."""
        return self.rows.labels

    @property
    def codes(self) -> Codes:
        """The set of each person, -1 where nothing is known."""
        return self.sets[0]

    @cached_property
    def sets(self) -> tuple[Codes, Sets]:
        """The set of values of each person, -1 where none is known, and the distinct sets."""
        return number_sets(self.owner, self.rows.codes, self.count)

    def numbered(self, codes: Codes) -> tuple[Codes, Sets]:
        """The set of codes of each person, by the codes of their rows, and the distinct sets."""
        return self.sets if codes is self.rows.codes else number_sets(self.owner, codes, self.count)

    @property
    def single(self) -> Sensitive | None:
        """An ordinary column, where nobody has two values."""
        codes, sets = self.sets
        if self.rows.beside or (len(sets) and int(sets.lengths.max()) > 1):
            return None
        return replace(self.rows, codes=np.append(sets.members, -1)[codes].astype(np.int32))

    def plain(self) -> Sensitive:
        """One value a person: their only one, or their mean."""
        return self.single or self.mean()

    def mean(self) -> Sensitive:
        """A column with the mean of each person."""
        if self.rows.numbers is None:
            raise UnsupportedError(
                f"'{self.name}' has no numbers to take a person's mean of; this model cannot be asked of people with several "
                "different values of it."
            )
        numbers = np.append(self.rows.numbers, np.nan)[self.rows.codes]
        found = means(self.owner, numbers, self.count)
        values = np.unique(found[~np.isnan(found)])
        codes = np.where(np.isnan(found), -1, np.searchsorted(values, np.nan_to_num(found))).astype(np.int32)
        return Sensitive(self.name, codes, tuple(repr(float(x)) for x in values), values, ordered=True)

    def take(self, persons: NDArray[Any]) -> Crowd:
        """Some of the persons, in that order."""
        place = np.full(self.count, -1, dtype=np.int32)
        place[persons] = np.arange(len(persons), dtype=np.int32)
        rows = np.flatnonzero(place[self.owner] >= 0)
        return Crowd(self.rows.take(rows), place[self.owner[rows]], len(persons))

    def labelled(self, beside: Mapping[str, NDArray[np.object_]]) -> Self:
        """With the labels of other columns, row by row."""
        return replace(self, rows=replace(self.rows, beside=beside))


@dataclass(frozen=True, eq=False)
class _Counted:
    """A column whose counts are of persons, each once a value, or with their weight spread over their values."""

    crowd: Crowd
    spread: bool

    def __getattr__(self, name: str) -> Any:
        return getattr(self.crowd.rows, name)

    @cached_property
    def counts(self) -> Ints:
        """Persons, or parts of persons, by code."""
        return self._of(self.crowd.rows.codes, len(self.crowd.labels))

    def pairs(self, beside: str) -> Pairs | None:
        """The pairs with the labels of another column, by persons."""
        pairs = self.crowd.rows.pairs(beside)
        if pairs is None:
            return None
        return replace(pairs, counts=self._of(self.crowd.rows.paired(beside), len(pairs.counts)))

    def _of(self, codes: Codes, width: int) -> Ints:
        own, sets = self.crowd.numbered(codes)
        persons = np.bincount(own[own >= 0], minlength=len(sets)).astype(np.int64)
        return np.asarray(persons @ sets.incidence(max(1, width), spread=self.spread), dtype=np.int64)[:width]


def one_row_each(columns: Sequence[Sensitive | Crowd], who: str) -> tuple[Sensitive, ...]:
    """The columns of a table in which every row is a person; `who` cannot work with others and says so."""
    if any(isinstance(column, Crowd) for column in columns):
        raise UnsupportedError(
            f'{who} takes one row a person, and this table has a column of the role "person": publish it with shoal anonymize, '
            "or bring it to one row a person first."
        )
    return tuple(column for column in columns if isinstance(column, Sensitive))


def bound(model: Model, column: Sensitive | Crowd | None, n: int) -> Rule:
    """A model's rule on one attribute of records, or of people with several rows."""
    if not isinstance(column, Crowd):
        return model.bind(column, n)
    if model.persons is None:
        raise UnsupportedError(
            f"{model} does not say what it asks of people with several rows; leave it out, or keep one row a person."
        )
    single = column.plain() if model.persons == "mean" else column.single
    if single is not None:
        rule = model.bind(single, n)
        if rule.view is not None:
            rule.view = PersonView(rule.view.key, rule.view.width, of_person=rule.view.of_records(single))
        return rule
    inner = model.bind(
        _Counted(column, spread=model.persons == "spread"), n * PARTS if model.persons == "spread" else n
    )
    kinds: dict[str, type[HittingRule | SummedRule]] = {"distinct": HittingRule, "weighed": WeighedRule}
    return kinds.get(model.persons, SummedRule)(inner, column, n)


@dataclass(frozen=True, eq=False)
class PersonView(View):
    """What a rule counts of each person."""

    of_person: Codes = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    def of_records(self, column: Any) -> Codes:
        """The code of each person, -1 for none."""
        return self.of_person


@runtime_checkable
class CountsPeople(Protocol):
    """A rule that counts something else of people with several values than the groups of their values."""

    def of_people(self, owner: Codes, codes: Codes) -> tuple[Rule, Codes, Codes] | None:
        """The rule over what it counts, and who has it; None where that is the groups, of which `owner` has `codes`."""


class SetRule(Rule):
    """A rule over the sets of groups that persons have; `inner` is the rule over the groups."""

    def __init__(self, inner: Rule, crowd: Crowd, n: int) -> None:
        assert inner.view is not None
        super().__init__(inner.model, None, None, n)
        owner, codes = crowd.owner, inner.view.of_records(crowd.rows)
        told = inner.of_people(owner, codes) if isinstance(inner, CountsPeople) else None
        if told is not None:
            inner, owner, codes = told
        assert inner.view is not None
        self.inner, self.attribute = inner, crowd.name
        of_person, self.sets = crowd.numbered(codes) if told is None else number_sets(owner, codes, crowd.count)
        if not len(self.sets):
            self.sets = Sets.of([[]])
        key, self.groups = ("sets", *inner.view.key), inner.view.width
        self.view = PersonView(key, len(self.sets), groups=self.groups, of_person=of_person)
        self.table_counts = np.bincount(of_person[of_person >= 0], minlength=self.view.width).astype(np.int64)
        self.spread = inner.model.persons == "spread"

    @cached_property
    def incidence(self) -> Any:
        """Sets × groups."""
        return self.sets.incidence(self.groups, spread=self.spread)

    def having(self, counts: Counts) -> Ints:
        """Classes × groups: how many persons have each group, or which parts of them."""
        return summed(counts, self.incidence)


class SummedRule(SetRule):
    """Shares of persons, or of their spread weight: the ordinary rule on what persons have together."""

    def _sizes(self, sizes: Ints) -> Ints:
        return sizes * PARTS if self.spread else sizes

    def deficit(self, sizes: Ints, counts: Counts) -> Floats:
        """That of the ordinary rule."""
        return self.inner.deficit(self._sizes(sizes), self.having(counts))

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """That of the ordinary rule."""
        return self.inner.strongest(self._sizes(sizes), self.having(counts))

    def infeasible(self) -> str | None:
        """That of the ordinary rule: both ways of counting make the whole table a mean of its classes."""
        return self.inner.infeasible()

    def forms(self) -> tuple[Form, ...] | None:
        """Those of the ordinary rule, on what persons have together."""
        inner = self.inner.forms()
        return None if inner is None else tuple(Summed(form, self.sets, self.groups, self.spread) for form in inner)


class HittingRule(SetRule):
    """No set of fewer than p groups meets every person of a class. Who has nothing known takes no part."""

    @property
    def p(self) -> int:
        """How many groups are asked for."""
        return int(getattr(self.model, self.model.main))

    def deficit(self, sizes: Ints, counts: Counts) -> Floats:
        """How far the hitting number is below p."""
        found = class_hitting_numbers(counts, self.sets, self.incidence, self.p)
        return np.asarray(self.p - found, dtype=np.float64)

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The least hitting number of a class, told up to a limit."""
        if not len(counts):
            return float("nan")
        return float(class_hitting_numbers(counts, self.sets, self.incidence, max(self.p, DEEPEST)).min())

    def infeasible(self) -> str | None:
        """Not more than the hitting number of the whole table: a set that meets everybody meets every class."""
        table = self.table_counts[None, :]
        found = int(class_hitting_numbers(table, self.sets, self.incidence, self.p)[0]) if table.any() else 0
        if found >= self.p:
            return None
        return (
            f"{self.model.name} with {self.model.main} = {self.p} asks that no {self.p - 1} values of '{self.attribute}' meet "
            f"everybody in a class, and {found} meet everybody in the table; ask for {self.model.main} ≤ {max(found, 1)}"
        )

    def max_classes(self) -> int:
        """Condition 2 for sets (docs/persons.md): with i groups chosen, a class needs p − i persons whom these do not meet.

        A class has hitting number p or more, so its persons not met by i groups have p − i or more, and are at least as many.
        The groups are chosen greedily, which only makes the bound weaker.
        """
        most, left = self.n // max(1, self.p), self.table_counts.copy()
        for chosen in range(self.p):
            most = min(most, int(left.sum()) // (self.p - chosen))
            if chosen + 1 < self.p:
                group = int(np.argmax(self.having(left[None, :])[0]))
                left[self._with(group)] = 0
        return most

    def _with(self, group: int) -> Ints:
        owners = np.repeat(np.arange(len(self.sets)), self.sets.lengths)
        return np.asarray(owners[self.sets.members == group])

    def min_size(self) -> int:
        """A group for each person meets them all, so p persons are needed."""
        return self.p

    def forms(self) -> tuple[Form, ...]:
        """Hitting number at least p."""
        return (Hitting(self.p, self.sets, self.groups),)


class WeighedRule(HittingRule):
    """(p, α) of persons: a person weighs what their most secret value does, or each value of the class once."""

    def _weight(self) -> Weight:
        found = [form for form in self.inner.forms() or () if isinstance(form, Weight)]
        return found[0]

    @cached_property
    def ranks(self) -> Ints:
        """The lowest rank in each set."""
        if not len(self.sets.members):
            return np.zeros(len(self.sets), dtype=np.int64)
        return np.asarray(np.minimum.reduceat(self._weight().ranks[self.sets.members], self.sets.starts[:-1]))

    def missing(self, counts: Counts) -> Floats:
        """The weight that classes lack."""
        weight = self._weight()
        if weight.once:
            total = (self.having(counts) > 0).astype(np.int64) @ weight.ranks
        else:
            total = counts @ self.ranks
        return settled(weight.alpha - total / weight.steps)

    def deficit(self, sizes: Ints, counts: Counts) -> Floats:
        """Groups and weight that are missing."""
        return super().deficit(sizes, counts) + self.missing(counts)

    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The least hitting number; 0 where a class is too light for any p."""
        return 0.0 if len(counts) and self.missing(counts).max() > 0 else super().strongest(sizes, counts)

    def infeasible(self) -> str | None:
        """Neither more groups than the table has, nor more weight."""
        lacking = float(self.missing(self.table_counts[None, :])[0])
        if lacking > 0:
            return (
                f"{self.model} on '{self.attribute}' needs more weight than all persons have together, by {lacking:.6g}"
            )
        return super().infeasible()

    def forms(self) -> tuple[Form, ...]:
        """Hitting number at least p, and the weight."""
        weight = self._weight()
        weighed: Form = (
            Summed(weight, self.sets, self.groups, False) if weight.once else replace(weight, ranks=self.ranks)
        )
        return (*super().forms(), weighed)
