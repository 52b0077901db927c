"""A verdict in pieces: for tables of which nobody holds all records at once.

The verifier never needs records, only how often each published class goes with each sensitive value. Whoever has these counts
for some classes asks for a `Verdict` of them; verdicts of different classes merge into that of all (docs/scale.md#verdicts).
A class is never spread over two pieces, and it is known by its published values themselves, never by a digest of them: two
classes that met in one digest would hide each other.

>>> import polars as pl, shoal
>>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "ill": shoal.Attribute(role="sensitive")})
>>> counted = {"age": (pl.Series("age", ["[20, 29]", "[30, 39]"]), np.array([3, 1]))}
>>> secret = {"ill": (pl.DataFrame({"ill": ["flu", "cold"]}), np.array([2, 2]))}
>>> folding = Folding(counted, secret, shoal.KAnonymity(2) & shoal.PSensitive(2), schema)
>>> one = folding.verdict(pl.DataFrame({"c0": [0, 0], "s0": [0, 1], "records": [2, 1]}))
>>> other = folding.verdict(pl.DataFrame({"c0": [1], "s0": [1], "records": [1]}))
>>> [(check.parameter, check.strongest, check.failing) for check in folding.evidence([one.merge(other)]).checks]
[('k', 1.0, 1), ('p', 1.0, 1)]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.io.frames import apply_missing
from shoal.models import Rule, Sensitive
from shoal.pieces import pieces
from shoal.policy import Policy, labelled
from shoal.schema import Schema
from shoal.transform import require_transformed
from shoal.verifier.classes import spelled
from shoal.verifier.evidence import SHOWN, Check, Evidence, Violation
from shoal.verifier.examine import told_notes, weaker
from shoal.verifier.judging import HAIR, tried_again
from shoal.verifier.meaning import read_cells
from shoal.verifier.sensitive import AuditedColumn, audited_column

Ints = NDArray[np.int64]
Counted = Mapping[str, tuple[pl.Series, Ints]]
Paired = Mapping[str, tuple[pl.DataFrame, Ints]]

# Failing classes of a rule that are kept, the worst first.
KEPT = 10 * SHOWN


@dataclass(frozen=True)
class Failing:
    """A class that fails a rule: how far it is from good, the numbers of its published values, its records."""

    deficit: float
    published: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Verdict:
    """What was found in some classes, rule by rule."""

    records: int
    classes: int
    smallest: int
    largest: int
    strongest: tuple[float, ...]
    failing: tuple[int, ...]
    worst: tuple[tuple[Failing, ...], ...]
    smaller: tuple[bool, ...]
    """Of which rules a smaller parameter is a stronger one."""
    pieces: int = 1

    def merge(self, other: Verdict) -> Verdict:
        """The verdict on these classes and others."""
        return Verdict(
            self.records + other.records,
            self.classes + other.classes,
            min(self.smallest, other.smallest),
            max(self.largest, other.largest),
            tuple(_weakest(*both) for both in zip(self.strongest, other.strongest, self.smaller, strict=True)),
            tuple(a + b for a, b in zip(self.failing, other.failing, strict=True)),
            tuple(_worst([*a, *b]) for a, b in zip(self.worst, other.worst, strict=True)),
            self.smaller,
            self.pieces + other.pieces,
        )

    def of_rules(self, some: slice) -> Verdict:
        """The same classes by some of the rules."""
        return replace(
            self,
            strongest=self.strongest[some],
            failing=self.failing[some],
            worst=self.worst[some],
            smaller=self.smaller[some],
        )


def _weakest(one: float, other: float, smaller: bool) -> float:
    if math.isnan(one) or math.isnan(other):
        return math.nan
    return max(one, other) if smaller else min(one, other)


def _worst(failing: Sequence[Failing]) -> tuple[Failing, ...]:
    return tuple(sorted(failing, key=lambda one: (-one.deficit, one.published))[:KEPT])


class Folding:
    """The published values of a table, counted, and the policy: what a verdict on any of its classes needs.

    - `quasi`: per published quasi-identifier its distinct values, and how many records have each.
    - `sensitive`: per sensitive attribute its distinct values (with the columns that models want beside it, where the policy
      has such models), and how many records have each.
    - `policy`, `schema`: as for `verify`.

    `ways` says how values are grouped into classes: by their place among the distinct ones (as they are written), and, where two
    spellings mean one thing, also by what they mean. One verdict a way is needed.
    """

    def __init__(self, quasi: Counted, sensitive: Paired, policy: Policy | Any, schema: Schema) -> None:
        self.policy = policy if isinstance(policy, Policy) else Policy((policy,))
        self.schema, self.quasi = schema, dict(quasi)
        self.records = int(next(iter(quasi.values()))[1].sum())
        if self.records == 0:
            raise InputError("The masked table has no records.")
        self.notes: list[str] = []
        self.problems: list[str] = []
        for published, _ in quasi.values():
            require_transformed(published.to_frame(), schema)
        self.ways = self._ways()
        columns: list[AuditedColumn] = []
        for name, (values, counts) in sensitive.items():
            values = apply_missing(values, schema.missing)
            require_transformed(values.select(name), schema)
            column = audited_column(values.select(name), name, schema, counts)
            columns += labelled([column], self.policy, values)
            self.notes += told_notes(column)
        self.columns: Sequence[Sensitive] = columns
        bound = self.policy.bind(columns, self.records)
        self.rules: tuple[Rule, ...] = bound.rules
        self._views = {view.key: view.codes for view in bound.views}

    def asking(self, rules: Sequence[Rule]) -> Folding:
        """The same table, asked by other rules than those of its policy."""
        other = copy(self)
        by_name = {column.name: column for column in self.columns}
        other.rules = tuple(rules)
        other._views = {
            rule.view.key: rule.view.of_records(by_name[str(rule.attribute)]) for rule in rules if rule.view is not None
        }
        return other

    def _ways(self) -> list[dict[str, Ints]]:
        written = {name: np.arange(len(values), dtype=np.int64) for name, (values, _) in self.quasi.items()}
        read = dict(written)
        for name, (values, counts) in self.quasi.items():
            if values.dtype != pl.String:
                continue
            found = read_cells(values.to_list(), name, self.schema)
            for problem in found.problems:
                many = int(counts[sorted(problem.texts)].sum())
                self.problems.append(f"Column '{name}': {problem.what} in {many} record{'s' if many != 1 else ''}.")
            if found.spellings:
                self.notes.append(spelled(name, found))
                keys = {key: i for i, key in enumerate(dict.fromkeys(found.keys))}
                read[name] = np.array([keys[key] for key in found.keys], dtype=np.int64)
        return [written] if all(read[name] is written[name] for name in read) else [written, read]

    def verdict(self, counted: pl.DataFrame) -> Verdict:
        """The verdict on some whole classes.

        `counted` has a row for each class and combination of sensitive values: the numbers of the class's values (`c0`, `c1` …,
        by one of the `ways`), the place of each sensitive value among the distinct ones (`s0` …), and how many `records` there
        are. Rows of a class lie beside each other.
        """
        parts = [self._verdict(some) for some in self._some(counted)]
        return reduce(Verdict.merge, parts)

    def _some(self, counted: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The same whole classes, so few at a time that the histograms of all rules fit."""
        _, first, _, _ = _grouped(counted, len(self.quasi))
        ends = np.append(first, counted.height)
        width = sum({rule.view.key: rule.view.width for rule in self.rules if rule.view is not None}.values())
        for some in pieces(len(first), width):
            yield counted[int(ends[some.start]) : int(ends[some.stop])]

    def _verdict(self, counted: pl.DataFrame) -> Verdict:
        labels, first, sizes, weights = _grouped(counted, len(self.quasi))
        strongest, failing, worst = [], [], []
        for rule, counts in zip(self.rules, self._histograms(counted, labels, len(sizes), weights), strict=True):
            strongest.append(rule.strongest(sizes, counts))
            deficits = rule.deficit(sizes, counts)
            bad = np.flatnonzero(deficits > 0)
            failing.append(len(bad))
            some = bad[np.argsort(-deficits[bad], kind="stable")][: 2 * KEPT]
            shown = counted.select(f"c{i}" for i in range(len(self.quasi)))
            worst.append(
                _worst([Failing(float(deficits[c]), tuple(shown.row(int(first[c]))), int(sizes[c])) for c in some])
            )
        return Verdict(
            int(sizes.sum()),
            len(sizes),
            int(sizes.min()),
            int(sizes.max()),
            tuple(strongest),
            tuple(failing),
            tuple(worst),
            tuple(rule.model.smaller_is_stronger for rule in self.rules),
        )

    def _histograms(self, counted: pl.DataFrame, labels: Ints, classes: int, weights: Ints) -> list[Ints]:
        """The histograms of the classes, one matrix a rule."""
        made: dict[Any, Ints] = {None: np.zeros((classes, 0), dtype=np.int64)}
        places = {column.name: i for i, column in enumerate(self.columns)}
        for rule in self.rules:
            if rule.view is None or rule.view.key in made:
                continue
            kinds = counted[f"s{places[str(rule.attribute)]}"].to_numpy()
            codes = self._views[rule.view.key][kinds].astype(np.int64)
            known = codes >= 0
            cells = labels[known] * rule.view.width + codes[known]
            flat = np.bincount(cells, weights[known], minlength=classes * rule.view.width)
            made[rule.view.key] = flat.astype(np.int64).reshape(classes, rule.view.width)
        return [made[None if rule.view is None else rule.view.key] for rule in self.rules]

    def uncertain(self, verdict: Verdict) -> list[tuple[int, Rule]]:
        """The rules whose strongest parameter does not follow from that of pieces, each as it would be with what was found."""
        found = []
        for i, rule in enumerate(self.rules):
            if verdict.pieces > 1 and not rule.model.folds and verdict.strongest[i] > 0:
                column = next((one for one in self.columns if one.name == rule.attribute), None)
                again = tried_again(rule, verdict.strongest[i], column)
                if again is not None:
                    found.append((i, again))
        return found

    def holds(self, counted: pl.DataFrame, again: Sequence[tuple[int, Rule]]) -> list[bool]:
        """Whether each of the `uncertain` rules holds in some whole classes, as for `verdict`."""
        held = [True] * len(again)
        for some in self._some(counted):
            labels, _, sizes, weights = _grouped(some, len(self.quasi))
            counts = self._histograms(some, labels, len(sizes), weights)
            for place, (i, rule) in enumerate(again):
                held[place] &= not bool((rule.deficit(sizes, counts[i]) > HAIR).any())
        return held

    def settled(self, verdict: Verdict, again: Sequence[tuple[int, Rule]], held: Sequence[bool]) -> Verdict:
        """The verdict after the uncertain rules were asked again; where one does not hold, no value of its parameter does."""
        strongest = list(verdict.strongest)
        for (i, _), holds in zip(again, held, strict=True):
            strongest[i] = strongest[i] if holds else 0.0
        return replace(verdict, strongest=tuple(strongest))

    def evidence(self, verdicts: Sequence[Verdict]) -> Evidence:
        """What was found in the whole table, from one verdict a way."""
        if any(one.records != self.records for one in verdicts) or len(verdicts) != len(self.ways):
            raise InputError("The published classes do not add up to the published records.")
        asked = [self._checks(one) for one in verdicts]
        written = verdicts[0]
        names = ("as written", "as read")
        return Evidence(
            records=self.records,
            classes=written.classes,
            smallest=written.smallest,
            largest=written.largest,
            checks=tuple(weaker(same) for same in zip(*asked, strict=True)),
            violations=tuple(
                Violation(str(rule), self._shown(one.published, way), one.size, one.deficit, names[way])
                for way, verdict in enumerate(verdicts)
                for rule, failing in zip(self.rules, verdict.worst, strict=True)
                for one in failing
            ),
            notes=tuple(self.notes),
            problems=tuple(self.problems),
        )

    def _checks(self, verdict: Verdict) -> list[Check]:
        checks = []
        for rule, best, failing in zip(self.rules, verdict.strongest, verdict.failing, strict=True):
            main = rule.model.main
            required = float(getattr(rule.model, main))
            checks.append(Check(str(rule), rule.model.name, rule.attribute, main, required, best, failing))
        return checks

    def _shown(self, numbers: tuple[int, ...], way: int) -> dict[str, Any]:
        """What a class publishes, from the numbers of its values."""
        shown = {}
        for number, (name, (values, _)) in zip(numbers, self.quasi.items(), strict=True):
            shown[name] = values[int(np.flatnonzero(self.ways[way][name] == number)[0])]
        return shown


def _grouped(counted: pl.DataFrame, quasi: int) -> tuple[Ints, Ints, Ints, Ints]:
    """The class of each row, the first row of each class, its records, and the records of each row."""
    weights = counted["records"].to_numpy().astype(np.int64)
    begins = np.ones(counted.height, dtype=np.bool_)
    begins[1:] = False
    for i in range(quasi):
        numbers = counted[f"c{i}"].to_numpy()
        begins[1:] |= numbers[1:] != numbers[:-1]
    first = np.flatnonzero(begins)
    return np.cumsum(begins) - 1, first, np.add.reduceat(weights, first), weights
