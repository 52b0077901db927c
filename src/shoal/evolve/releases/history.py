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
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import InputError, VerificationError, which
from shoal.evolve.releases.decision import Budget, decide
from shoal.evolve.releases.deduction import Ints, Knowledge, Publication, deduce, distinct, steady
from shoal.evolve.releases.guards import Plan, Shown, columns_of
from shoal.evolve.releases.lives import Rows, apart, counted, lives_of
from shoal.evolve.releases.people import microdata, of_people
from shoal.evolve.releases.rows import numbered
from shoal.microdata import Microdata, encode_sensitive
from shoal.models import Rule, Sensitive
from shoal.models.base import Promise
from shoal.partition import Partition
from shoal.policy import Policy, labelled
from shoal.progress import Progress, Told
from shoal.schema import Schema
from shoal.shown import Shown as Card
from shoal.space import Domain, Set, States, Tree, members_of

Attack = Literal["intersection", "difference", "tracing"]
# A table of classes and values is looked up instead of sorting the rows while it has at most so many bits for each of them.
DENSE = 16
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

    @property
    def withheld(self) -> str:
        """What is said of it where the release is not out: no value and no class, unless values may be shown."""
        if not which():
            return self.sentence
        what = f"values of '{self.attribute}' of {_count(self.records)}" if self.attribute else "whose a row may be"
        return f"Comparing the releases up to {self.release} gives away {what}{which()}."


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
    numbers: Sequence[int] | None = None,
    progress: Told | None = None,
) -> Audit:
    """The audit against one who knows everybody's class in every release.

    Rows that can be `followed` are found by the rows themselves, unless they have been found already. `numbers` are those of
    the releases, where some are missing; they count from 1 otherwise.
    """
    told = Progress.of(progress)
    if len(shown) < 2:
        return Audit(len(shown))
    if of_people(schema):
        return _audit_people(shown, schema, policy, numbers or range(1, len(shown) + 1), newest_only)
    histories = _Histories(shown, columns_of(shown[-1].frame, schema), policy, numbers)
    found: list[Finding] = []
    facts: dict[str, dict[str, float]] = {}
    budget, undecided = Budget(progress=told), 0
    for name in told.each(histories.schema.named("sensitive")):
        publications, labels, records = histories.publications(name)
        possible = histories.told_alone(name)
        if any(len(one.persons) for one in publications):
            now, exposed, open_cells = histories.judged(publications, len(labels), name, budget)
            if newest_only and len(exposed) + len(open_cells):
                past, known, _ = histories.judged(publications[:-1], len(labels), name, budget)
                old = past.persons[np.isin(past.cell_of, known)]
                fresh = np.unique(now.cell_of[~np.isin(now.persons, old)])
                exposed, open_cells = np.intersect1d(exposed, fresh), np.intersect1d(open_cells, fresh)
            found += [histories.tell(now, int(cell), name, labels, records) for cell in exposed]
            undecided = max(undecided, int(now.sizes[open_cells].sum()))
            shown_now = np.searchsorted(now.persons, publications[-1].persons)
            possible = np.concatenate([possible, now.possible[now.cell_of[shown_now]]])
        facts[name] = _facts(possible)
    if followed is None:
        pairs = list(zip(pairwise(histories.numbers), pairwise(shown), strict=True))
        followed = [
            f for two, pair in (pairs[-1:] if newest_only else pairs) for f in rows_followed(*pair, two, schema, policy)
        ]
    found += followed
    found.sort(key=lambda finding: (finding.records, finding.release))
    return Audit(len(shown), tuple(found), facts, undecided)


def _audit_people(
    shown: Sequence[Shown], schema: Schema, policy: Policy, numbers: Sequence[int], newest_only: bool
) -> Audit:
    """The same where people have several rows (`evolve/releases/people_audit.py`)."""
    from shoal.evolve.releases.people_audit import exposures

    crowds, exposed, undecided = exposures(shown, columns_of(shown[-1].frame, schema), policy, newest_only=newest_only)
    found = []
    for cell in exposed.tolist():
        last, size = int(crowds.last[cell]), int(crowds.sizes[cell])
        place = (shown[last].texts or {}).get(int(crowds.path[cell, last]), "")
        values = crowds.values(cell)
        sentence = (
            f"Comparing releases {numbers[0]} to {numbers[-1]} tells {_count(size, 'person')} of the class ({place}) in release "
            f"{numbers[last]} apart from the others, and together they have {', '.join(values) or 'no value'}, which does not "
            f"satisfy {policy}."
        )
        found.append(
            Finding("intersection", numbers[last], crowds.names[0] if crowds.names else None, size, values, sentence)
        )
    found.sort(key=lambda finding: (finding.records, finding.release))
    return Audit(len(shown), tuple(found), {}, undecided)


def smallest_class(policy: Policy) -> int:
    """The k of the policy; two where it has none."""
    return max([2, *(model.crowd for model in policy.models)])


@dataclass(frozen=True, eq=False)
class _Asked:
    """What the releases are asked about one sensitive attribute."""

    publications: list[Publication]
    labels: list[str]
    records: Ints
    newest: Sensitive
    """The attribute as all rows of the newest release have it."""
    alone: Ints
    """Of rows of the newest release that no comparison says more about: how many values its class leaves them."""


class _Histories:
    """The rows of all releases, ready to be asked about."""

    def __init__(
        self, shown: Sequence[Shown], schema: Schema, policy: Policy, numbers: Sequence[int] | None = None
    ) -> None:
        self.shown, self.schema, self.policy = shown, schema, policy
        self.numbers = list(numbers or range(1, len(shown) + 1))
        self.k = smallest_class(policy)
        self.lives = lives_of(shown, schema)
        self._known: dict[str, _Asked] = {}

    def publications(self, attribute: str) -> tuple[list[Publication], list[str], Ints]:
        """The releases with a number for each life, the values' labels, and the record of each life.

        Without the rows of which one release tells all that there is: nobody is exposed by comparing those. A counterfeit is
        another one in every release.
        """
        asked = self._asked(attribute)
        return asked.publications, asked.labels, asked.records

    def told_alone(self, attribute: str) -> Ints:
        """How many values are possible for each row of the newest release that is not in its publication."""
        return self._asked(attribute).alone

    def _asked(self, attribute: str) -> _Asked:
        if attribute not in self._known:
            self._known[attribute] = self._ask(attribute)
        return self._known[attribute]

    def _ask(self, attribute: str) -> _Asked:
        which = self.schema.named("sensitive").index(attribute)
        records = np.concatenate([apart(t, one.records) for t, one in enumerate(self.shown)])
        place, first = numbered(records, np.concatenate([own[:, which] for own in self.lives]))
        persons = np.split(place, np.cumsum([len(one.records) for one in self.shown])[:-1])
        still = steady(persons, [one.classes for one in self.shown])
        moving = [np.flatnonzero(~one) for one in still]
        column, text, ends = self._column(attribute, moving)
        codes = column.codes.astype(np.int64) + 1
        labels, row_of = ["missing", *column.labels], np.full(len(column.labels) + 1, -1, dtype=np.int64)
        row_of[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
        for code in np.flatnonzero(row_of[1:] >= 0).tolist():
            labels[code + 1] = text[int(row_of[code + 1])]  # as it was published first
        *earlier, newest = np.split(codes, ends[:-1])
        values = [
            *(part[len(part) - len(rows) :] for part, rows in zip(earlier, moving, strict=False)),
            newest[moving[-1]],
        ]
        found = [
            Publication(own[rows], one.classes[rows], part)
            for own, one, rows, part in zip(persons, self.shown, moving, values, strict=True)
        ]
        alone = _possible(self.shown[-1].classes[still[-1]], newest[still[-1]])
        column = column.take(np.arange(len(codes) - len(newest), len(codes)))
        return _Asked(found, labels, np.maximum(records[first], -1), column, alone)

    def _column(self, attribute: str, moving: Sequence[Ints]) -> tuple[Sensitive, pl.Series, Ints]:
        """The attribute in the first row with each value and in some rows of each release, and in all rows of the newest.

        Every value of every release is among them: which are told apart, and by what name, hangs on all of them.
        """
        columns = self.shown[-1].frame.columns
        parts = []
        for one, rows in zip(self.shown[:-1], moving[:-1], strict=True):
            frame = one.frame.select(columns)
            parts.append(frame[np.concatenate([frame[attribute].arg_unique().to_numpy(), rows])])
        parts.append(self.shown[-1].frame)
        frame = pl.concat(parts, how="vertical_relaxed")
        (column,) = labelled([encode_sensitive(frame, attribute, self.schema)], self.policy, frame)
        return column, frame[attribute].cast(pl.String), np.cumsum([part.height for part in parts])

    def rules(self, attribute: str) -> list[Rule]:
        """What the policy asks of an attribute, as the newest release has it."""
        newest = self._asked(attribute).newest
        asked = [model for model in self.policy.models if getattr(model, "attribute", None) in (None, attribute)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said when the release was made
            return [model.bind(newest, len(newest.codes)) for model in asked if model.per_attribute]

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
        when = f"{'after' if event == 'left' else 'in'} release {self.numbers[at]}"
        compared = f"releases {self.numbers[0]} {'and' if len(self.shown) == 2 else 'to'} {self.numbers[-1]}"
        sentence = f"Comparing {compared} gives away that the {_count(number)} that {event} the class ({place}) {when} {learned}."
        attack: Attack = "difference" if event != "stayed in" and len(certain) else "intersection"
        return Finding(attack, self.numbers[release], attribute, number, names, sentence)

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


def class_texts(
    shown: Shown, schema: Schema, data: Microdata | None = None, states: States | None = None
) -> dict[int, str]:
    """What every class publishes of its quasi-identifiers, in words.

    `data` are its rows, where they have been encoded, and `states` what the classes publish in codes, where that is known.
    """
    data = data or microdata(shown.frame, columns_of(shown.frame, schema))
    label, first = numbered(shown.classes)
    numbers, space = shown.classes[first], data.space("ncp")
    if states is None:
        partition = Partition(label.astype(np.int32))
        states = space.states(data.codes, partition.order, partition.starts)
    cells = []
    for a, (name, domain) in enumerate(zip(data.quasi, space.domains, strict=True)):
        column = _published(domain, states[:, int(space.slots[a]) : int(space.slots[a + 1])])
        cells.append(pl.lit(f"{name} = ") + column.fill_null("missing"))
    texts = pl.select(pl.concat_str(cells, separator=", ")).to_series().to_list() if cells else [""] * len(numbers)
    return dict(zip(numbers.tolist(), texts, strict=True))


def _published(domain: Domain, states: Ints) -> pl.Series:
    """What states of an attribute are published as; each text is made once, and the nodes of a taxonomy are found together."""
    number, first = numbered(*states.T)
    found = states[first]
    if isinstance(domain, Set):
        texts = [domain.publish(members_of(row)) for row in found]
    elif isinstance(domain, Tree):
        labels = domain.taxonomy.labels
        texts = [labels[node] for node in domain.taxonomy.lca(found[:, 0], found[:, 1]).tolist()]
        if domain.has_missing:
            missing = (found[:, 0] == domain.missing_code).tolist()
            texts = [None if gone else text for gone, text in zip(missing, texts, strict=True)]
    else:
        texts = [domain.publish(low, high) for low, high in found.tolist()]
    return pl.Series(texts, dtype=pl.String)[number]


def rows_followed(
    older: Shown, newer: Shown, numbers: tuple[int, int], schema: Schema, policy: Policy
) -> list[Finding]:
    """Rows that can be recognized in two releases, of these `numbers`, by the columns published as they are."""
    known = columns_of(newer.frame, schema)
    if not known.named("other") or of_people(known):  # whole rows of persons are what their audit is about
        return []
    names = [*known.named("other"), *known.named("sensitive")]
    both = _lines(older, names).join(_lines(newer, names), on="record", suffix="_new")
    cells = both.filter(pl.col("record") >= 0).with_columns(
        together=pl.len().over("class", "class_new"),
        same=pl.all_horizontal(pl.col(name).eq_missing(pl.col(f"{name}_new")) for name in names),
    )
    few = pl.col("together") < smallest_class(policy)
    hit = cells.filter(pl.col("single") & pl.col("single_new") & pl.col("same") & few)
    # Where two classes have the same rows and not the same persons, rows are not persons: nobody can be followed by them.
    pairs = hit.select("class", "class_new").unique().rows()
    alike = {pair for pair in pairs if _rows_of(older, pair[0], names) == _rows_of(newer, pair[1], names)}
    texts = class_texts(newer, schema) if hit.height else {}
    found = []
    for row in hit.sort("record").iter_rows(named=True):
        if (row["class"], row["class_new"]) in alike:
            continue
        shown = ", ".join(f"{name} = {row[name]}" for name in names)
        sentence = (
            f"Comparing releases {numbers[0]} and {numbers[1]} gives away that the row with {shown} in the class "
            f"({texts[row['class_new']]}) belongs to one of {row['together']} persons."
        )
        found.append(Finding("tracing", numbers[1], None, 1, (), sentence))
    return found


def _rows_of(shown: Shown, number: int, names: list[str]) -> Rows:
    return counted(shown.frame, np.flatnonzero(shown.classes == number), names)


def _lines(shown: Shown, names: list[str]) -> pl.DataFrame:
    lines = shown.frame.select(names).with_columns(
        pl.Series("record", shown.records), pl.Series("class", shown.classes)
    )
    return lines.with_columns(single=pl.len().over(names) == 1)


def _count(number: int, what: str = "record") -> str:
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"


def _possible(classes: Ints, values: Ints) -> Ints:
    """Of each row, how many different known values its class has."""
    label, first = numbered(classes)
    wide = int(values.max(initial=0)) + 1
    if len(first) * wide <= DENSE * len(label):
        there = np.zeros(len(first) * wide, dtype=bool)
        there[label * wide + values] = True
        return np.asarray(np.count_nonzero(there.reshape(-1, wide)[:, 1:], axis=1)[label], dtype=np.int64)
    pairs = numbered(label, values)[1]
    return np.asarray(np.bincount(label[pairs[values[pairs] > 0]], minlength=len(first))[label], dtype=np.int64)


def _facts(possible: Ints) -> dict[str, float]:
    """Measures over the rows of the newest release, given by the number of values that are possible for each."""
    counts = np.bincount(possible[possible > 0])
    values, often = np.flatnonzero(counts), counts[counts > 0]
    if not len(values):
        return {"fewest_values": 0.0, "mean_exposure": 0.0, "share_with_one_value": 0.0}
    rows = int(often.sum())
    # As one sum over the rows, rounded once: there are millions of rows and few numbers among them.
    exposure = sum(Fraction(1 / n) * times for n, times in zip(values.tolist(), often.tolist(), strict=True))
    return {
        "fewest_values": float(values[0]),
        "mean_exposure": float(exposure) / rows,
        "share_with_one_value": float(counts[1]) / rows if len(counts) > 1 else 0.0,
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
    data = microdata(plan.shown.frame, columns_of(plan.shown.frame, schema))
    partition, space = Partition.compact(plan.shown.classes), data.space("ncp")
    units = space.unit(space.states(data.codes, partition.order, partition.starts))
    return {
        "guard": guard,
        "records": data.n,
        **{f"waiting_{name}": count for name, count in plan.waiting.items()},
        "counterfeits": plan.counterfeits,
        "ncp": exact.weighed(partition.sizes, units) / (data.n * exact.total(space.weights)),
    }
