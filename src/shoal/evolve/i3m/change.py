"""What goes into a step and what comes out of it: records to insert or update, the table's rows, the classes that changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError, InternalError
from shoal.evolve.i3m.index import Rows, longer
from shoal.models import Sensitive
from shoal.models.persons import PersonView
from shoal.policy import Policy, Rules
from shoal.space import Codes, Interval, Space

Numbers = NDArray[np.int64]
Bind = Callable[[Codes], Rules]


@dataclass(frozen=True, eq=False)
class Batch:
    """Records to insert, or new versions of old ones: codes of quasi-identifiers and of sensitive attributes.

    `records` are the numbers of the old ones; new records may bring ascending numbers above all earlier ones, or get them.
    """

    codes: Codes
    sensitive: Codes | None = None
    records: Iterable[int] | None = None


@dataclass(frozen=True, eq=False)
class Change:
    """What a step did, as numbers of records and classes, ascending (`inserted` and `updated` in the order they came).

    `moved` are the other records whose class changed; `touched` the classes that exist and have other members than
    before, or members with other values; `created` those among them that are new.
    """

    inserted: Numbers
    updated: Numbers
    deleted: Numbers
    moved: Numbers
    touched: Numbers
    created: Numbers
    dissolved: Numbers


class Binding:
    """Binds a policy to a table that changes: from the sensitive codes of its records to the policy's rules.

    The codes have one column per sensitive attribute, then one for each column of labels that a model wants beside one.
    """

    def __init__(self, policy: Policy, columns: Sequence[Sensitive] = ()) -> None:
        self.policy, self.columns = policy, tuple(columns)
        beside: dict[str, NDArray[np.object_]] = {}
        for column in columns:
            beside.update(column.beside)
        self._labels, self._codes = {}, {}
        for name, labels in beside.items():
            texts = np.array(["" if label is None else str(label) for label in labels], dtype=object)
            self._labels[name], self._codes[name] = np.unique(texts, return_inverse=True)

    def codes(self) -> Codes:
        """The codes of the columns given."""
        parts: list[NDArray[Any]] = [column.codes for column in self.columns]
        return np.stack([*parts, *self._codes.values()], axis=1).astype(np.int32)

    def __call__(self, codes: Codes) -> Rules:
        places = enumerate(self._labels.items(), start=len(self.columns))
        beside = {name: labels[codes[:, at]] for at, (name, labels) in places}
        bound = [
            replace(
                column,
                codes=np.ascontiguousarray(codes[:, j]),
                beside={name: beside[name] for name in column.beside},
            )
            for j, column in enumerate(self.columns)
        ]
        return self.policy.bind(bound, len(codes))


def is_local(rules: Rules) -> bool:
    """Whether a class that does not change is judged as before, whatever happens to the rest of the table.

    Rules bound to any part of a table then do for all of it. Sets of values of people with several rows are numbered anew in
    every table.
    """
    sets = any(isinstance(rule.view, PersonView) for rule in rules.rules)
    return not sets and all(model.local for model in rules.policy.models)


class Incoming(NamedTuple):
    """A batch that has been checked."""

    codes: Codes
    secrets: Codes
    records: list[int] | None


def checked(batch: Batch | None, space: Space, columns: int) -> Incoming:
    """The batch in arrays that compiled code can be trusted with; an empty one when there is none."""
    if batch is None:
        batch = Batch(np.zeros((0, len(space.domains)), dtype=np.int32))
    sizes = np.array([domain.size for domain in space.domains])
    codes = np.asarray(batch.codes, dtype=np.int32).reshape(len(batch.codes), len(sizes))
    if (codes < 0).any() or (codes >= sizes).any():
        raise InternalError("a batch has codes that the domains do not know; recode the classes first")
    if batch.sensitive is None and columns and len(codes):
        raise InternalError(f"a batch comes without the codes of its {columns} sensitive attributes")
    secrets = np.zeros((len(codes), columns), dtype=np.int32)
    if batch.sensitive is not None:
        secrets = np.asarray(batch.sensitive, dtype=np.int32).reshape(len(codes), columns)
    return Incoming(codes, secrets, None if batch.records is None else list(batch.records))


def measured_by(space: Space, codes: Codes) -> Space:
    """The space with losses against the ranges of the numbers among these codes (docs/algorithms.md#i3m)."""
    domains = []
    for a, domain in enumerate(space.domains):
        if isinstance(domain, Interval) and domain.labels is None:
            known = codes[codes[:, a] < len(domain.values), a]
            width = float(domain.values[known.max()] - domain.values[known.min()]) if len(known) else 0.0
            domain = replace(domain, width=width)
        domains.append(domain)
    return Space(tuple(domains), space.weights, space.measure)


class Ledger:
    """What is known of every row beside its codes and its class: its number, whether it is there, its sensitive codes.

    `seen` are the codes that the policy counts. New rows stand behind the others; what a step writes can be taken back.
    """

    def __init__(self, numbers: Numbers, secrets: Codes, seen: Codes) -> None:
        self.rows = self.n = len(numbers)
        self._numbers, self._secrets, self._seen = numbers, secrets, seen
        self._alive = np.ones(self.rows, dtype=bool)
        self.begin_step()

    @property
    def numbers(self) -> Numbers:
        """The number of every row, ascending."""
        return self._numbers[: self.rows]

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which rows are still there."""
        return self._alive[: self.rows]

    @property
    def secrets(self) -> Codes:
        """Sensitive codes."""
        return self._secrets[: self.rows]

    @property
    def seen(self) -> Codes:
        """Codes that the policy counts."""
        return self._seen[: self.rows]

    def begin_step(self) -> None:
        """From here on `go_back` is possible."""
        nobody = np.zeros(0, dtype=np.int64)
        self._first = (self.rows, self.n, self._seen)
        self._buried, self._altered = nobody, nobody
        self._old = (self._secrets[nobody], self._seen[nobody])

    def go_back(self) -> None:
        """Everything as it was when the step began."""
        self._alive[self._buried] = True
        self.rows, self.n, seen = self._first
        self._seen = longer(seen, len(self._alive))
        self._secrets[self._altered], self._seen[self._altered] = self._old

    def find(self, records: Iterable[int]) -> Rows:
        """The rows of these records."""
        wanted = np.fromiter(records, dtype=np.int64)
        rows = np.searchsorted(self.numbers, wanted)
        found = rows < self.rows
        found[found] = (self.numbers[rows[found]] == wanted[found]) & self.alive[rows[found]]
        if not found.all():
            raise InputError(f"There is no record {wanted[~found][0]}; leave it out of the batch.")
        named, times = np.unique(wanted, return_counts=True)
        if len(named) < len(wanted):
            raise InputError(f"Record {named[times > 1][0]} is named twice; leave one of them out.")
        return rows

    def bury(self, rows: Rows) -> None:
        """These rows are no more."""
        self._buried = rows
        self._alive[rows] = False
        self.n -= len(rows)

    def rewrite(self, rows: Rows, secrets: Codes) -> None:
        """Other sensitive codes; `see` has to follow."""
        self._altered, self._old = rows, (self._secrets[rows], self._seen[rows])
        self._secrets[rows] = secrets

    def add(self, numbers: Numbers, secrets: Codes) -> Rows:
        """New rows; `see` has to follow."""
        first, last = self.rows, self.rows + len(numbers)
        if last > len(self._alive):
            room = last + max(len(numbers), last // 8)
            self._numbers, self._alive = longer(self._numbers, room), longer(self._alive, room)
            self._secrets, self._seen = longer(self._secrets, room), longer(self._seen, room)
        self._numbers[first:last], self._secrets[first:last], self._alive[first:last] = numbers, secrets, True
        self.rows, self.n = last, self.n + len(numbers)
        return np.arange(first, last)

    def see(self, rows: Rows, codes: Codes) -> None:
        """What the policy counts in these rows."""
        self._seen[rows] = codes

    def see_anew(self, codes: Codes) -> bool:
        """What the policy counts in all rows that are there; whether the old ones among them look as before."""
        old = self.seen
        self._seen = np.full((len(self._alive), codes.shape[1]), -1, dtype=np.int32)
        self._seen[: self.rows][self.alive] = codes
        before = self.alive[: self._first[0]].copy()
        before[self._altered] = False
        return old.shape == self.seen.shape and np.array_equal(
            old[: len(before)][before], self.seen[: len(before)][before]
        )
