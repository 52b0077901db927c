"""Releases audited against each other: what somebody learns who keeps all of them (docs/evolving-data.md#the-audit).

Two intruders are tried.

With `shown`, the rows behind each release, one who knows everybody's quasi-identifiers and who is in which release, and
so each person's class every time. That is the strongest there is, and every finding is real: the sentence is true of the
records it counts. `evolve/releases/deduction.py` says what is deduced, and `evolve/releases/decision.py` how the rest is
decided exactly, or said to be undecided where the budget ends. An update of the sensitive value ends what
a person's classes say about each other; who did not notice the update would deduce something false, which is not counted.

Without `shown`, one who sees the masked tables alone, and takes classes of successive releases with the same, a containing
or a contained region for the same people when most of their sensitive values agree. This is a guess of the intruder, and
a finding may be a coincidence; and what needs more knowledge is not found.

A finding is something that a single release does not tell: fewer values (or categories, or subtrees) possible for somebody
than the policy promises, two values at least; a group that certainly breaks a bound of the policy (a share, a range, a
distance); a group below k that certainly has a value; or a row that can be followed, by columns published as they are, to
fewer than k persons.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import InputError, VerificationError
from shoal.evolve.releases.decision import Budget, decide
from shoal.evolve.releases.deduction import Ints, Knowledge, Publication, deduce, distinct
from shoal.evolve.releases.guards import Plan, Shown, columns_of
from shoal.evolve.releases.lives import apart, lives_of
from shoal.microdata import Microdata, encode_sensitive
from shoal.models import Rule
from shoal.models.base import Promise
from shoal.partition import Partition
from shoal.policy import Policy, labelled
from shoal.progress import Progress, Told
from shoal.schema import Schema
from shoal.shown import Shown as Card

Attack = Literal["intersection", "difference", "tracing"]
COUNTED = ("records", "waiting_insertions", "waiting_deletions", "waiting_updates", "counterfeits", "ncp")


@dataclass(frozen=True)
class Finding:
    """Something that releases tell together and none of them alone. `release` counts from 1."""

    attack: Attack
    release: int
    attribute: str | None
    records: int
    values: tuple[str, ...]
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Audit(Card):
    """What was found; `facts` are measures over the newest release, by sensitive attribute.

    `undecided` are records about which nothing could be decided within the budget. That is not to say that they are safe.
    """

    releases: int
    found: tuple[Finding, ...] = ()
    facts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    undecided: int = 0

    @property
    def exposed(self) -> bool:
        """Whether anything was found."""
        return bool(self.found)

    @property
    def safe(self) -> bool:
        """Whether everything was decided and nothing found."""
        return not self.found and not self.undecided

    @property
    def findings(self) -> list[str]:
        """One sentence a finding: the release, the class and what is learned."""
        return [finding.sentence for finding in self.found]

    def require(self) -> Audit:
        """Itself, or an error with the first findings and the way out."""
        if self.safe:
            return self
        if not self.found:
            raise VerificationError(
                f"Comparing the {self.releases} releases leaves {_count(self.undecided)} of which it could not be decided "
                'within the budget whether they are exposed; use guard = "batching" or "m-invariance".'
            )
        more = f" And {len(self.found) - 3} more." if len(self.found) > 3 else ""
        raise VerificationError(
            f"Comparing the {self.releases} releases exposes records: {' '.join(self.findings[:3])}{more} Nothing was "
            'released; use guard = "batching" or "m-invariance", or wait until more records have changed.'
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "exposed": self.exposed,
            "undecided": self.undecided,
            "releases": self.releases,
            "findings": [asdict(finding) for finding in self.found],
            "facts": {name: dict(numbers) for name, numbers in self.facts.items()},
        }


def audit(
    releases: Sequence[pl.DataFrame],
    schema: Schema,
    policy: Policy,
    *,
    shown: Sequence[Shown] | None = None,
    newest_only: bool = False,
    progress: Told | None = None,
) -> Audit:
    """Compare masked releases, oldest first; `shown` are the rows behind each of them, for the strongest intruder.

    With `newest_only` what the earlier ones gave away already is left out: nothing can take it back.
    """
    if shown is not None:
        if len(shown) != len(releases):
            raise InputError(f"{len(releases)} releases and the rows behind {len(shown)} of them; give all or none.")
        return audit_members(shown, schema, policy, newest_only=newest_only, progress=progress)
    if len(releases) < 2:
        return Audit(len(releases))
    k, found = smallest_class(policy), []
    pairs = list(enumerate(pairwise(releases), start=2))
    for number, (older, newer) in Progress.of(progress).each(pairs[-1:] if newest_only else pairs):
        found += _read_off(older, newer, schema, k, number)
    return Audit(len(releases), tuple(found))


def audit_members(
    shown: Sequence[Shown],
    schema: Schema,
    policy: Policy,
    *,
    newest_only: bool = False,
    followed: Sequence[Finding] | None = None,
    progress: Told | None = None,
) -> Audit:
    """The audit against one who knows everybody's class in every release.

    Rows that can be `followed` are found by the rows themselves, unless they have been found already.
    """
    told = Progress.of(progress)
    if len(shown) < 2:
        return Audit(len(shown))
    histories = _Histories(shown, columns_of(shown[-1].frame, schema), policy)
    found: list[Finding] = []
    facts: dict[str, dict[str, float]] = {}
    budget, undecided = Budget(progress=told), 0
    for name in told.each(histories.schema.named("sensitive")):
        publications, labels, records = histories.publications(name)
        now, exposed, open_cells = histories.judged(publications, len(labels), name, budget)
        if newest_only and len(exposed) + len(open_cells):
            past, known, _ = histories.judged(publications[:-1], len(labels), name, budget)
            old = past.persons[np.isin(past.cell_of, known)]
            fresh = np.unique(now.cell_of[~np.isin(now.persons, old)])
            exposed, open_cells = np.intersect1d(exposed, fresh), np.intersect1d(open_cells, fresh)
        found += [histories.tell(now, int(cell), name, labels, records) for cell in exposed]
        undecided = max(undecided, int(now.sizes[open_cells].sum()))
        facts[name] = _facts(now, publications[-1])
    if followed is None:
        pairs = list(enumerate(pairwise(shown), start=2))
        followed = [
            f for t, pair in (pairs[-1:] if newest_only else pairs) for f in rows_followed(*pair, t, schema, policy)
        ]
    found += followed
    found.sort(key=lambda finding: (finding.records, finding.release))
    return Audit(len(shown), tuple(found), facts, undecided)


def smallest_class(policy: Policy) -> int:
    """The k of the policy; two where it has none."""
    return max([2, *(model.crowd for model in policy.models)])


class _Histories:
    """The rows of all releases, ready to be asked about."""

    def __init__(self, shown: Sequence[Shown], schema: Schema, policy: Policy) -> None:
        self.shown, self.schema, self.policy = shown, schema, policy
        self.k = smallest_class(policy)
        frame = pl.concat([part.frame.select(shown[-1].frame.columns) for part in shown], how="vertical_relaxed")
        columns = [encode_sensitive(frame, name, schema) for name in schema.named("sensitive")]
        self.columns = {column.name: column for column in labelled(columns, policy, frame)}
        self.texts = {name: frame[name].cast(pl.String) for name in self.columns}
        self.lives = lives_of(shown, schema)
        self.ends = np.cumsum([len(part.records) for part in shown])

    def publications(self, attribute: str) -> tuple[list[Publication], list[str], Ints]:
        """The releases with a number for each life, the values' labels, and the record of each life.

        A counterfeit is another one in every release.
        """
        column, text = self.columns[attribute], self.texts[attribute]
        labels = ["missing", *column.labels]
        for row in np.unique(column.codes, return_index=True)[1].tolist():
            if column.codes[row] >= 0:
                labels[column.codes[row] + 1] = text[row]  # as it was published
        which = self.schema.named("sensitive").index(attribute)
        codes = np.split(column.codes.astype(np.int64) + 1, self.ends[:-1])
        own = [np.stack([apart(t, one.records), self.lives[t][:, which]]) for t, one in enumerate(self.shown)]
        units, place = np.unique(np.concatenate(own, axis=1), axis=1, return_inverse=True)
        persons = np.split(place.ravel(), self.ends[:-1])
        found = [Publication(*three) for three in zip(persons, [one.classes for one in self.shown], codes, strict=True)]
        return found, labels, np.maximum(units[0], -1)

    def rules(self, attribute: str) -> list[Rule]:
        """What the policy asks of an attribute, as the newest release has it."""
        column, newest = self.columns[attribute], len(self.shown[-1].records)
        column = column.take(np.arange(len(column.codes) - newest, len(column.codes)))
        asked = [model for model in self.policy.models if getattr(model, "attribute", None) in (None, attribute)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said when the release was made
            return [model.bind(column, newest) for model in asked if model.per_attribute]

    def judged(
        self, publications: Sequence[Publication], values: int, attribute: str, budget: Budget
    ) -> tuple[Knowledge, Ints, Ints]:
        """What publications tell, and the cells of which they tell more than the policy allows and more than one release does.

        Everybody is promised two possible values at least, and what the models promise (`Rule.promise`, `Rule.exposed`).
        Last the cells about which it could not be decided.
        """
        known = deduce(publications, values, budget.progress)
        rules = self.rules(attribute)
        promises = [Promise(np.arange(values - 1), 2)]
        promises += [promise for rule in rules if (promise := rule.promise()) is not None]
        limits = []
        for promise in promises:
            possible, support = known.groups(promise.group)
            # Who can have no value of any group is promised none.
            limits.append((promise.group, np.where(possible > 0, np.minimum(promise.least, support), 0)))
        few = (known.sizes < self.k) & ~known.whole
        sizes = known.counts.sum(axis=1)
        open_to = [
            ~known.whole & ~known.told_at_once(r.exposed(sizes, known.counts[:, 1:], known.counts[:, 1:]))
            for r in rules
        ]

        def exposed(cells: Ints, lower: Ints, upper: Ints) -> NDArray[np.bool_]:
            found = few[cells] & (lower[:, 1:] > 0).any(axis=1)
            for group, limit in limits:
                found |= distinct(upper, group) < limit[cells]
            for rule, ask in zip(rules, open_to, strict=True):
                found |= ask[cells] & rule.exposed(known.sizes[cells], lower[:, 1:], upper[:, 1:])
            return found

        known, undecided = decide(known, exposed, budget)
        found = exposed(np.arange(len(known.sizes)), known.lower, known.upper)
        return known, np.flatnonzero(found), np.flatnonzero(undecided & ~found)

    def tell(self, known: Knowledge, cell: int, attribute: str, labels: list[str], records: Ints) -> Finding:
        """The sentence about an exposed cell."""
        number = int(known.sizes[cell])
        certain = np.flatnonzero(known.lower[cell])
        values = certain if len(certain) else np.flatnonzero(known.upper[cell])
        names = tuple(labels[value] for value in sorted(values.tolist(), key=lambda value: (value > 0, labels[value])))
        release, at, event = self._event(known.history[cell], records[known.persons[known.cell_of == cell]])
        has = "has" if number == 1 else "have"
        if not len(certain):
            learned = f"{has} {attribute} = {' or '.join(names)}"
        elif (known.lower[cell] == known.upper[cell]).all():
            learned = f"{has} {attribute} = {', '.join(names)}"
        else:
            learned = f"include {attribute} = {', '.join(names)}"
        place = self._class_text(at, int(known.history[cell][at]))
        when = f"after release {at + 1}" if event == "left" else f"in release {at + 1}"
        compared = f"releases 1 {'and' if len(self.shown) == 2 else 'to'} {len(self.shown)}"
        sentence = f"Comparing {compared} gives away that the {_count(number)} that {event} the class ({place}) {when} {learned}."
        attack: Attack = "difference" if event != "stayed in" and len(certain) else "intersection"
        return Finding(attack, release + 1, attribute, number, names, sentence)

    def _event(self, history: Ints, records: Ints) -> tuple[int, int, str]:
        """What sets a cell apart: the release that shows it, the release whose class is named, and what happened."""
        there = np.flatnonzero(history >= 0)
        first, last, newest = int(there[0]), int(there[-1]), len(self.shown) - 1
        if first > 0:
            before = np.isin(records, self.shown[first - 1].records).all()
            return first, first, "changed in" if before else "joined"
        if last < newest:
            after = np.isin(records, self.shown[last + 1].records).all()
            return last + 1, last, "changed in" if after else "left"
        return newest, newest, "stayed in"

    def _class_text(self, release: int, number: int) -> str:
        """What a class published, in words."""
        if release not in self._texts:
            shown = self.shown[release]
            self._texts[release] = shown.texts or class_texts(shown, self.schema)
        return self._texts[release][number]

    @cached_property
    def _texts(self) -> dict[int, Mapping[int, str]]:
        return {}


def class_texts(shown: Shown, schema: Schema) -> dict[int, str]:
    """What every class publishes of its quasi-identifiers, in words."""
    data = Microdata.from_frame(shown.frame, columns_of(shown.frame, schema))
    numbers, labels = np.unique(shown.classes, return_inverse=True)
    partition = Partition(labels.astype(np.int32))
    space = data.space("ncp")
    columns = space.publish(space.states(data.codes, partition.order, partition.starts))
    texts = {}
    for c, name in enumerate(numbers.tolist()):
        cells = zip(data.quasi, (column[c] for column in columns), strict=True)
        texts[name] = ", ".join(f"{quasi} = {'missing' if cell is None else cell}" for quasi, cell in cells)
    return texts


def rows_followed(older: Shown, newer: Shown, number: int, schema: Schema, policy: Policy) -> list[Finding]:
    """Rows that can be recognized in release `number` and the one before by the columns published as they are."""
    known = columns_of(newer.frame, schema)
    if not known.named("other"):
        return []
    names = [*known.named("other"), *known.named("sensitive")]
    both = _lines(older, names).join(_lines(newer, names), on="record", suffix="_new")
    cells = both.filter(pl.col("record") >= 0).with_columns(
        together=pl.len().over("class", "class_new"),
        same=pl.all_horizontal(pl.col(name).eq_missing(pl.col(f"{name}_new")) for name in names),
    )
    few = pl.col("together") < smallest_class(policy)
    hit = cells.filter(pl.col("single") & pl.col("single_new") & pl.col("same") & few)
    texts = class_texts(newer, schema) if hit.height else {}
    found = []
    for row in hit.sort("record").iter_rows(named=True):
        shown = ", ".join(f"{name} = {row[name]}" for name in names)
        sentence = (
            f"Comparing releases {number - 1} and {number} gives away that the row with {shown} in the class "
            f"({texts[row['class_new']]}) belongs to one of {row['together']} persons."
        )
        found.append(Finding("tracing", number, None, 1, (), sentence))
    return found


def _lines(shown: Shown, names: list[str]) -> pl.DataFrame:
    lines = shown.frame.select(names).with_columns(
        pl.Series("record", shown.records), pl.Series("class", shown.classes)
    )
    return lines.with_columns(single=pl.len().over(names) == 1)


def _count(number: int) -> str:
    return "1 record" if number == 1 else f"{number:,} records"


def _facts(known: Knowledge, newest: Publication) -> dict[str, float]:
    """Measures over the rows of the newest release."""
    cells = known.cell_of[np.searchsorted(known.persons, newest.persons)]
    possible = known.possible[cells]
    judged = possible[possible > 0]
    return {
        "fewest_values": float(judged.min()) if len(judged) else 0.0,
        "mean_exposure": exact.mean(1 / judged) if len(judged) else 0.0,
        "share_with_one_value": float((judged == 1).mean()) if len(judged) else 0.0,
    }


def _read_off(older: pl.DataFrame, newer: pl.DataFrame, schema: Schema, k: int, number: int) -> list[Finding]:
    """What the masked tables alone show: a class that changed by fewer than k records, or by one value only."""
    from shoal.measures.releases import Releases, difference

    names = schema.named("sensitive")
    if not names:
        return []
    read = Releases.of([older, newer], schema)
    found = []
    for change in difference(read, k)[0]:
        size = int(read.tables[-1].sizes[change.newer])
        old = int(read.tables[-2].sizes[change.older])
        values = change.disclosed(k)
        if not values or 2 * (size - len(change.added)) < max(size, old):
            continue
        for verb, keys in (("joined", change.added), ("left", change.removed)):
            learned = tuple(key for key in keys if key in values)
            if not learned:
                continue
            texts = tuple(", ".join("missing" if v is None else v for v in key) for key in learned)
            when = f"in release {number}" if verb == "joined" else f"after release {number - 1}"
            sentence = (
                f"Comparing releases {number - 1} and {number} gives away that the {_count(len(learned))} that {verb} the class "
                f"({read.tables[-1].show(change.newer)}) {when} {'has' if len(learned) == 1 else 'have'} "
                f"{' and '.join(names)} = {'; '.join(texts)}."
            )
            attribute = names[0] if len(names) == 1 else None
            found.append(Finding("difference", number, attribute, len(learned), texts, sentence))
    return found


@dataclass(frozen=True)
class Cost:
    """What a guard costs: means a release; the loss is ncp a row and quasi-identifier, `last_loss` that of the newest."""

    guard: str
    releases: int
    shown: float
    insertions_waiting: float
    deletions_waiting: float
    updates_waiting: float
    counterfeits: float
    loss: float
    last_loss: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def costs(lines: Sequence[Mapping[str, Any]]) -> list[Cost]:
    """What each guard cost, in the order they were used; lines are those of `Store.history`, or of `line`."""
    result = []
    for guard in dict.fromkeys(line["guard"] for line in lines):
        own = [line for line in lines if line["guard"] == guard]
        mean = {name: exact.mean([line[name] for line in own]) for name in COUNTED}
        result.append(
            Cost(
                guard=str(guard),
                releases=len(own),
                shown=mean["records"],
                insertions_waiting=mean["waiting_insertions"],
                deletions_waiting=mean["waiting_deletions"],
                updates_waiting=mean["waiting_updates"],
                counterfeits=mean["counterfeits"],
                loss=mean["ncp"],
                last_loss=float(own[-1]["ncp"]),
            )
        )
    return result


def line(guard: str, plan: Plan, schema: Schema) -> dict[str, Any]:
    """What a planned release costs, in the words of `Store.history`."""
    data = Microdata.from_frame(plan.shown.frame, columns_of(plan.shown.frame, schema))
    partition, space = Partition.compact(plan.shown.classes), data.space("ncp")
    units = space.unit(space.states(data.codes, partition.order, partition.starts))
    return {
        "guard": guard,
        "records": data.n,
        **{f"waiting_{name}": count for name, count in plan.waiting.items()},
        "counterfeits": plan.counterfeits,
        "ncp": exact.weighed(partition.sizes, units) / (data.n * exact.total(space.weights)),
    }
