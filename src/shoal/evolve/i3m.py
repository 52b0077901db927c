"""I3M: a partition that follows its table while records come, go and change (004, §3; SPEC §4.17).

I3M+ gives each new record to the class whose loss rises least and splits a class that reaches 2k. I3M− disperses the
classes that deletions left too small. An update is a deletion and an insertion in one step.

For a policy beyond k (SPEC §9, F10) a split must leave two good parts, otherwise the class may grow and is tried again at
3k, 4k, 6k, 8k, 12k …; a class that a deletion spoilt first borrows records that its neighbours can spare; where a record
can spoil a class it goes to the cheapest one that stays good. Classes are merged when nothing else helps. While there
are more classes than the policy allows for the new table (Condition 2 of 000), spoilt ones are dispersed at once.

Records and classes have numbers that are never used again. They matter only by their order: ties go to the smaller one.

>>> import numpy as np, polars as pl, shoal
>>> frame = pl.DataFrame({"age": [25, 27, 40, 41, 55, 26, 54], "sex": ["M", "M", "F", "F", "F", "M", "F"]})
>>> data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}, "sex": {"role": "quasi"}})
>>> policy = shoal.Policy((shoal.KAnonymity(2),))
>>> classes = Classes(data.space("il"), data.codes[:5], np.array([0, 0, 1, 1, 1]), Binding(policy))
>>> change = classes.insert(data.codes[5:])
>>> classes.labels.tolist(), change.created.tolist()
([0, 0, 2, 2, 1, 0, 1], [2])
>>> classes.delete([0, 5]).dissolved.tolist(), classes.labels.tolist()
([0], [2, 2, 2, 1, 1])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ConfigError, InfeasibleError, InputError, InternalError, UnsupportedError
from shoal.evolve.index import Grouping, Rows
from shoal.evolve.repair import TICKS, Judge, good_half, loans, neighbours_of, partner_for, target_for
from shoal.microdata import Microdata, Sensitive
from shoal.partition import Partition
from shoal.policy import Policy, Rules
from shoal.space import Codes, Interval, Measure, Space

Numbers = NDArray[np.int64]
Bind = Callable[[Codes], Rules]
Ranges = Literal["declared", "batch"]

# Places of records and classes that are no more may be so many beyond those in use.
SPARE = 1024


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

    The codes have one column per sensitive attribute, then one per attribute with guards (personalized privacy).
    """

    def __init__(self, policy: Policy, columns: Sequence[Sensitive] = ()) -> None:
        self.policy, self.columns = policy, tuple(columns)
        self._guards = [
            np.unique(column.guards.astype(str), return_inverse=True) if column.guards is not None else None
            for column in columns
        ]

    def codes(self) -> Codes:
        """The codes of the columns given."""
        parts: list[NDArray[Any]] = [column.codes for column in self.columns]
        parts += [found[1] for found in self._guards if found is not None]
        return np.stack(parts, axis=1).astype(np.int32)

    def __call__(self, codes: Codes) -> Rules:
        bound, at = [], len(self.columns)
        for j, column in enumerate(self.columns):
            guards = None
            if (found := self._guards[j]) is not None:
                guards, at = found[0].astype(object)[codes[:, at]], at + 1
            bound.append(replace(column, codes=np.ascontiguousarray(codes[:, j]), guards=guards))
        return self.policy.bind(bound, len(codes))


class Classes:
    """The classes of a table that changes. After every step each record is in one class and every class is good.

    A step that cannot be done raises and leaves everything as it was. All codes are those of `space`; a batch with values
    that it does not know is encoded with larger domains, and `recode` brings what is here into them first.

    `labels` are class numbers, one a record, gaps allowed; `records` the records' numbers, ascending (0, 1, … by default).
    `ranges="batch"` measures losses against the range of the numbers in the table after each step, as 004 does, instead
    of the fixed widths of `space`. `baseline`, `changed` and `next_class` go on from an earlier session.
    """

    def __init__(
        self,
        space: Space,
        codes: Codes,
        labels: NDArray[Any],
        bind: Bind,
        sensitive: Codes | None = None,
        *,
        records: Numbers | None = None,
        ranges: Ranges = "declared",
        baseline: float | None = None,
        changed: int = 0,
        next_class: int = 0,
    ) -> None:
        if ranges not in ("declared", "batch"):
            raise ConfigError(f'ranges = {ranges!r} is not allowed; it must be "declared" or "batch".')
        if (np.asarray(labels) < 0).any():
            raise UnsupportedError(
                "Classes that follow a table hold all its records; make the partition without suppression."
            )
        names, slots = np.unique(labels, return_inverse=True)
        self.bind, self.ranges = bind, ranges
        self._names = names.astype(np.int64)
        self.next_class = max(next_class, int(self._names[-1]) + 1 if len(names) else 0)
        self._numbers = np.arange(len(codes)) if records is None else np.asarray(records, dtype=np.int64)
        if (np.diff(self._numbers) <= 0).any():
            raise InternalError("the numbers of records must ascend")
        self._alive = np.ones(len(codes), dtype=bool)
        none = np.zeros((len(codes), 0), dtype=np.int32)
        self._sensitive = none if sensitive is None else np.array(sensitive, dtype=np.int32)
        self._grouping = Grouping(space, codes, slots)
        self._judge = self._judged(bind(self._sensitive), self._alive)
        self._bad: set[int] = set()
        if ranges == "batch" and self.n:
            self._grouping.measure_by(self._observed())
        self.baseline = self.nil if baseline is None else baseline
        self.changed = changed

    @classmethod
    def of(
        cls,
        data: Microdata,
        policy: Policy,
        partition: Partition,
        *,
        measure: Measure = "ncp",
        ranges: Ranges = "declared",
    ) -> Classes:
        """The classes of a partition of a table."""
        from shoal.microdata import with_guards

        binding = Binding(policy, with_guards(data.sensitive, policy, data.frame))
        codes = binding.codes() if binding.columns else None
        return cls(data.space(measure), data.codes, partition.labels, binding, codes, ranges=ranges)

    @property
    def n(self) -> int:
        """Number of records."""
        return int(np.count_nonzero(self._alive))

    @property
    def rules(self) -> Rules:
        """The policy bound to the present table."""
        return self._judge.rules

    @property
    def space(self) -> Space:
        """The domains that codes belong to, and the loss."""
        return self._grouping.space

    @property
    def records(self) -> Numbers:
        """The numbers of all records, ascending; the order of `codes`, `sensitive`, `labels` and `partition`."""
        return self._numbers[self._alive]

    @property
    def codes(self) -> Codes:
        """Codes of the quasi-identifiers."""
        return self._grouping.codes[self._alive]

    @property
    def sensitive(self) -> Codes:
        """Codes of the sensitive attributes."""
        return self._sensitive[self._alive]

    @property
    def labels(self) -> Numbers:
        """The class of each record."""
        return self._names[self._grouping.classes[self._alive]]

    @property
    def partition(self) -> Partition:
        """The same with classes numbered without gaps."""
        return Partition.compact(self.labels)

    @property
    def numbers(self) -> Numbers:
        """The numbers of all classes, ascending; the order of `sizes` and `states`."""
        return self._names[self._grouping.sizes > 0]

    @property
    def sizes(self) -> Numbers:
        """Records per class."""
        return self._grouping.sizes[self._grouping.sizes > 0]

    @property
    def states(self) -> NDArray[np.int64]:
        """The joined state of each class."""
        return self._grouping.states[self._grouping.sizes > 0]

    @property
    def loss(self) -> float:
        """Total loss: the sum over the classes of size times loss per record."""
        return float(self._grouping.units @ self._grouping.sizes)

    @property
    def nil(self) -> float:
        """Loss per record and quasi-identifier."""
        return self.loss / max(1, self.n * len(self.space.domains))

    def members(self, number: int) -> Numbers:
        """The records of a class."""
        slot = int(np.searchsorted(self._names, number))
        if slot == len(self._names) or self._names[slot] != number or self._grouping.sizes[slot] == 0:
            raise InputError(f"There is no class {number}.")
        return self._numbers[self._grouping.members(slot)]

    def needs_full_run(self, excess: float = 0.05, share: float = 0.2) -> str | None:
        """Why the whole table should be anonymized anew, or None: loss over the last full run's, or records changed."""
        if self.nil > (1 + excess) * self.baseline + 1e-12:
            return f"The loss {self.nil:.6g} is more than {excess:.0%} above {self.baseline:.6g} of the last full run."
        if self.changed > share * self.n:
            return f"{self.changed} records changed since the last full run, more than {share:.0%} of {self.n}."
        return None

    def insert(self, codes: Codes, sensitive: Codes | None = None, *, records: Iterable[int] | None = None) -> Change:
        """I3M+: new records in the order of their arrival."""
        return self.apply(insert=Batch(codes, sensitive, records))

    def delete(self, records: Iterable[int]) -> Change:
        """I3M−: these records go."""
        return self.apply(delete=records)

    def update(self, records: Iterable[int], codes: Codes, sensitive: Codes | None = None) -> Change:
        """New values for these records: I3M− on the old ones, then I3M+ on the new ones in the order given."""
        return self.apply(update=Batch(codes, sensitive, records))

    def apply(self, *, delete: Iterable[int] = (), update: Batch | None = None, insert: Batch | None = None) -> Change:
        """Deletions, updates and insertions as one step, checked when all is done."""
        self._keep_compact()
        nothing = Batch(np.zeros((0, len(self.space.domains)), dtype=np.int32))
        changed, coming = self._checked(update or nothing), self._checked(insert or nothing)
        leaving, altered = self._rows(delete), self._rows(() if changed.records is None else changed.records)
        if len(both := np.intersect1d(leaving, altered)):
            raise InputError(f"Record {self._numbers[both[0]]} is both deleted and updated; leave one of them out.")
        if len(altered) != len(changed.codes):
            raise InternalError(f"{len(altered)} records to update and {len(changed.codes)} new versions")
        before, grouping = _Before(self, altered), self._grouping
        self._alive = np.concatenate([self._alive, np.ones(len(coming.codes), dtype=bool)])
        self._alive[leaving] = False
        self._numbers = np.concatenate([self._numbers, self._numbered(coming)])
        self._sensitive = np.concatenate([self._sensitive, self._secrets(coming)])
        self._sensitive[altered] = self._secrets(changed)
        try:
            rules = self.bind(self._sensitive[self._alive])
            rules.require_feasible()
            if self.n < rules.k:
                raise InfeasibleError(
                    f"{self.n} records would be left and a class needs {rules.k}; keep more records, or withdraw the release.",
                    witness=self.n,
                )
            out = np.concatenate([leaving, altered])
            suspects = np.unique(grouping.classes[out]).astype(np.int64)
            grouping.detach(out)
            grouping.set_codes(altered, changed.codes)
            new = grouping.add_rows(coming.codes)
            if self.ranges == "batch":
                grouping.measure_by(self._observed())
            judge = self._judged(rules, self._alive)
            if not judge.agrees_with(self._judge, np.flatnonzero(self._alive[: before.rows])):
                deficits = rules.deficits(grouping.classes[self._alive], grouping.slots)
                suspects = np.flatnonzero((deficits > 0) & (grouping.sizes > 0))
            self._judge = judge
            if not rules.superset_closed:
                bad = judge.deficits(grouping.members_by_class(suspects)) > 0
                self._bad = set(suspects[bad].tolist())
            for c in suspects.tolist():
                self._mend(c)
            self._place(np.concatenate([altered, new]))
            self._finish()
            change = self._change(before, leaving, altered, new)
            self._require_good(change.touched)
        except BaseException:
            before.restore(self)
            raise
        self.changed += len(out) + len(new)
        grouping.keep_fresh()
        return change

    def optimize(self, classes: Numbers | None = None) -> Change:
        """IL_Optimization (004, §4) in place: break those of the classes (of all, by default) that are worth it."""
        grouping, before = self._grouping, _Before(self)
        slots = np.flatnonzero(grouping.sizes)
        if classes is not None:
            slots = slots[np.isin(self._names[slots], classes)]
        dearness = np.rint(grouping.units[slots] * TICKS) * grouping.sizes[slots]
        order = slots[np.argsort(-dearness, kind="stable")]
        at = -1
        while True:
            at, targets = grouping.next_break(order, at + 1)
            if at == len(order):
                break
            rows = grouping.members(int(order[at]))
            gaining = np.unique(targets)
            gains = zip(grouping.members_by_class(gaining), gaining.tolist(), strict=True)
            joined = [np.concatenate([members, rows[targets == c]]) for members, c in gains]
            if self.rules.superset_closed or (self._judge.deficits(joined) <= 0).all():
                grouping.break_class(int(order[at]), targets)
        nobody = np.zeros(0, dtype=np.int64)
        return self._change(before, nobody, nobody, nobody)

    def adopt(self, labels: NDArray[Any], *, full_run: bool = True) -> Change:
        """Another partition of the same records, for example of a full run, which the next ones are compared with."""
        partition, before = Partition.compact(np.asarray(labels)), _Before(self)
        if partition.n != self.n or partition.suppressed:
            raise InternalError(
                f"{self.n} records need a class each, and {partition.n - partition.suppressed} have one"
            )
        classes = np.full(self._grouping.rows, -1, dtype=np.int32)
        classes[self._alive] = partition.labels + self._grouping.slots
        try:
            self._grouping.set_classes(classes, self._grouping.slots + partition.classes)
            nobody = np.zeros(0, dtype=np.int64)
            change = self._change(before, nobody, nobody, nobody)
            self._require_good(change.touched)
        except BaseException:
            before.restore(self)
            raise
        if full_run:
            self.baseline, self.changed = self.nil, 0
        return change

    def recode(
        self,
        space: Space,
        maps: Sequence[NDArray[Any] | None],
        *,
        bind: Bind | None = None,
        sensitive_maps: Sequence[NDArray[Any] | None] = (),
    ) -> None:
        """Larger domains: the same records and classes under other codes.

        `maps` has for every quasi-identifier the new code of each old one (missing too, where it has a code), or None
        where codes stay; `sensitive_maps` the same for sensitive attributes, for which missing stays -1. Numbers are coded by
        rank, so that a new number moves the codes of all larger ones; as long as the order stays, this is quick.
        """
        self._grouping.recode(space, maps)
        for j, new_code in enumerate(sensitive_maps):
            if new_code is not None:
                # Code -1 picks the last entry, so that missing stays missing.
                lookup = np.append(np.asarray(new_code, dtype=np.int32), np.int32(-1))
                self._sensitive[:, j] = lookup[self._sensitive[:, j]]
        self.bind = bind or self.bind
        if self.ranges == "batch":
            self._grouping.measure_by(self._observed())
        self._judge = self._judged(self.bind(self._sensitive[self._alive]), self._alive)

    def _mend(self, c: int) -> None:
        """A class that lost records is made good, or dispersed; the last one is left for `_finish` to judge."""
        grouping, judge = self._grouping, self._judge
        self._bad.discard(c)
        if grouping.sizes[c] == 0 or judge.good(grouping.members(c)):
            return
        if grouping.live == 1:
            self._bad.add(c)
            return
        if not judge.rules.only_size and grouping.live <= judge.rules.max_classes:
            self._bad.add(c)
            if self._borrow(c):
                return
            self._bad.discard(c)
        self._place(grouping.disband(c))

    def _borrow(self, c: int) -> bool:
        """Whether neighbours could lend class `c` what it lacks."""
        lenders = neighbours_of(self._grouping, c)
        rows = loans(self._grouping, self._judge, c, lenders[[int(d) not in self._bad for d in lenders]])
        if rows is None:
            return False
        self._grouping.detach(rows)
        for row in rows.tolist():
            self._grouping.attach(row, c)
        self._bad.discard(c)
        return True

    def _place(self, rows: Rows) -> None:
        """FindBestCluster for one row after the other (004, Figure 1), each split at 2k."""
        grouping, rules = self._grouping, self.rules
        at = 0
        while at < len(rows):
            if grouping.live == 0:
                at += self._found_first(rows[at:])
            elif rules.superset_closed:
                at, c = grouping.place(rows, at, rules.k, splits=rules.only_size)
                if c >= 0:
                    self._split(c)
            else:
                self._place_tested(int(rows[at]))
                at += 1

    def _found_first(self, rows: Rows) -> int:
        """The first class takes as many rows as it needs; all of them if they are not enough."""
        taken = min(self.rules.k, len(rows))
        while taken < len(rows) and not self._judge.good(rows[:taken]):
            taken = min(len(rows), taken + max(1, taken // 8))
        c = self._grouping.found(rows[:taken])
        if not self._judge.good(rows[:taken]):
            self._bad.add(c)
        return taken

    def _place_tested(self, row: int) -> None:
        """A row that may spoil a class."""
        grouping = self._grouping
        c = target_for(grouping, self._judge, row, self._bad)
        if c >= 0:
            grouping.attach(row, c)
            self._split(c)
            return
        c = grouping.best(row)
        grouping.attach(row, c)
        self._bad.add(c)
        if grouping.live > 1 and not self._borrow(c):
            self._merge(c)

    def _split(self, c: int) -> None:
        """Split2k, for a policy beyond k only into good parts, and only at the sizes where it is tried."""
        size, k = int(self._grouping.sizes[c]), self.rules.k
        if self.rules.only_size:
            self._grouping.split(c, k)
        elif c not in self._bad and size % k == 0 and _due(size // k):
            self._split_well(c)

    def _split_well(self, c: int) -> None:
        rows = self._grouping.members(c)
        while len(rows) >= 2 * self.rules.k and (half := good_half(self._grouping, self._judge, rows)) is not None:
            self._grouping.detach(rows[half])
            self._grouping.found(rows[half], near=c)
            rows = rows[~half]

    def _merge(self, c: int) -> None:
        """Merge a bad class with others until it is good, then split it if that is possible."""
        grouping, judge = self._grouping, self._judge
        while not judge.good(grouping.members(c)):
            if grouping.live == 1:
                self._bad.add(c)
                return
            partner = partner_for(grouping, judge, c)
            self._bad.discard(c)
            for row in grouping.disband(c).tolist():
                grouping.attach(row, partner)
            c = partner
        self._bad.discard(c)
        self._split_well(c)

    def _finish(self) -> None:
        """What is still bad is merged."""
        for c in sorted(self._bad):
            if c in self._bad:
                self._bad.discard(c)
                if self._grouping.sizes[c] > 0:
                    self._merge(c)
        if not self._bad:
            return
        deficits = self.rules.rule_deficits(self.rules.stats_of(np.arange(self.n)))[:, 0]
        kind = InfeasibleError if self.rules.union_closed else UnsupportedError
        raise kind(
            f"The {self.n} records of the table cannot be kept under {self.rules.rules[int(np.argmax(deficits))]}: not even "
            "one class with all of them satisfies it; "
            "change the batch, weaken the model, or anonymize the table anew."
        )

    def _require_good(self, numbers: Numbers) -> None:
        slots = np.searchsorted(self._names, numbers)
        if (self._judge.deficits(self._grouping.members_by_class(slots)) > 0).any():
            raise InternalError("a step left a class that does not satisfy the policy")

    def _change(self, before: _Before, leaving: Rows, altered: Rows, new: Rows) -> Change:
        """Compare with what was; new classes get their numbers here."""
        grouping = self._grouping
        fresh = grouping.slots - len(self._names)
        self._names = np.append(self._names, self.next_class + np.arange(fresh))
        self.next_class += fresh
        now = grouping.classes[: before.rows]
        moved = np.flatnonzero(now != before.classes)
        rows = np.concatenate([moved, altered])
        slots = np.concatenate([before.classes[rows], now[rows], grouping.classes[new]])
        slots = np.unique(slots[slots >= 0])
        exists = grouping.sizes[slots] > 0
        was = slots < before.slots
        return Change(
            inserted=self._numbers[new],
            updated=self._numbers[altered],
            deleted=np.sort(self._numbers[leaving]),
            moved=self._numbers[np.setdiff1d(moved, np.concatenate([leaving, altered]))],
            touched=self._names[slots[exists]],
            created=self._names[slots[exists & ~was]],
            dissolved=self._names[slots[~exists & was]],
        )

    def _judged(self, rules: Rules, alive: NDArray[np.bool_]) -> Judge:
        seen = np.full((len(alive), len(rules.views)), -1, dtype=np.int32)
        seen[alive] = rules.codes()
        return Judge(rules, seen)

    def _observed(self) -> Space:
        """The space measured against the ranges of the numbers in the table."""
        domains = []
        for a, domain in enumerate(self.space.domains):
            if isinstance(domain, Interval) and domain.labels is None:
                codes = self._grouping.codes[self._alive, a]
                codes = codes[codes < len(domain.values)]
                width = float(domain.values[codes.max()] - domain.values[codes.min()]) if len(codes) else 0.0
                domain = replace(domain, width=width)
            domains.append(domain)
        return Space(tuple(domains), self.space.weights, self.space.measure)

    def _rows(self, records: Iterable[int]) -> Rows:
        """Where these records are."""
        wanted = np.fromiter(records, dtype=np.int64)
        rows = np.searchsorted(self._numbers, wanted)
        found = rows < len(self._numbers)
        found[found] = (self._numbers[rows[found]] == wanted[found]) & self._alive[rows[found]]
        if not found.all():
            raise InputError(f"There is no record {wanted[~found][0]}; leave it out of the batch.")
        if len(np.unique(rows)) < len(rows):
            twice = np.flatnonzero(np.bincount(rows) > 1)[0]
            raise InputError(f"Record {self._numbers[twice]} is named twice; leave one of them out.")
        return rows

    def _numbered(self, batch: Batch) -> Numbers:
        """Numbers for new records."""
        first = int(self._numbers[-1]) + 1 if len(self._numbers) else 0
        if batch.records is None:
            return np.arange(first, first + len(batch.codes))
        numbers = np.fromiter(batch.records, dtype=np.int64)
        if len(numbers) != len(batch.codes) or (np.diff(numbers, prepend=first - 1) <= 0).any():
            raise InternalError("new records need ascending numbers above all earlier ones")
        return numbers

    def _checked(self, batch: Batch) -> Batch:
        """Codes that the kernels can be trusted with."""
        sizes = np.array([domain.size for domain in self.space.domains])
        codes = np.asarray(batch.codes, dtype=np.int32).reshape(len(batch.codes), len(sizes))
        if (codes < 0).any() or (codes >= sizes).any():
            raise InternalError("a batch has codes that the domains do not know; recode the classes first")
        records = None if batch.records is None else list(batch.records)
        return Batch(codes, batch.sensitive, records)

    def _secrets(self, batch: Batch) -> Codes:
        """Sensitive codes, one line a record."""
        columns = self._sensitive.shape[1]
        if batch.sensitive is None:
            if columns and len(batch.codes):
                raise InternalError(f"a batch comes without the codes of its {columns} sensitive attributes")
            return np.zeros((len(batch.codes), columns), dtype=np.int32)
        return np.asarray(batch.sensitive, dtype=np.int32).reshape(len(batch.codes), columns)

    def _keep_compact(self) -> None:
        """Forget places of records and classes that are no more, once they are the larger part."""
        grouping = self._grouping
        if grouping.rows <= 2 * self.n + SPARE and grouping.slots <= 2 * grouping.live + SPARE:
            return
        kept, classes = np.unique(grouping.classes[self._alive], return_inverse=True)
        seen = self._judge.seen[self._alive]
        self._grouping = Grouping(grouping.space, grouping.codes[self._alive], classes)
        self._names, self._numbers = self._names[kept], self._numbers[self._alive]
        self._sensitive, self._alive = self._sensitive[self._alive], np.ones(self.n, dtype=bool)
        self._judge = Judge(self._judge.rules, seen)


class _Before:
    """What a step can go back to. Arrays of records are replaced in a step, never written to, so holding them is enough."""

    HELD = ("_alive", "_numbers", "_sensitive", "_names", "_judge", "next_class")

    def __init__(self, classes: Classes, altered: Rows | None = None) -> None:
        grouping = classes._grouping
        self.rows, self.slots, self.space = grouping.rows, grouping.slots, grouping.space
        self.classes = grouping.classes.copy()
        self.altered = np.zeros(0, dtype=np.int64) if altered is None else altered
        self.codes = grouping.codes[self.altered]
        self.held = {name: getattr(classes, name) for name in self.HELD}

    def restore(self, classes: Classes) -> None:
        """Go back."""
        for name, value in self.held.items():
            setattr(classes, name, value)
        classes._bad = set()
        grouping = classes._grouping
        if grouping.rows == self.rows and np.array_equal(grouping.classes, self.classes):
            return
        grouping.drop_rows(self.rows)
        grouping.set_codes(self.altered, self.codes)
        grouping.set_classes(self.classes, self.slots)
        if grouping.space is not self.space:
            grouping.measure_by(self.space)


def _due(parts: int) -> bool:
    """Whether a class of so many times k is to be tried again: 2, 3 and their doubles."""
    while parts > 3 and parts % 2 == 0:
        parts //= 2
    return parts in (2, 3)
