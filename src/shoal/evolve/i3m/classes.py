"""I3M: a partition that follows its table while records come, go and change (docs/algorithms.md#i3m).

I3M+ gives each new record to the class whose loss rises least and splits a class that reaches 2k. I3M− disperses the
classes that deletions left too small. An update is a deletion and an insertion in one step.

How a step proceeds, also for policies beyond k, is told in `shoal.evolve.i3m.step`; what it works on in `shoal.evolve.i3m.index`.
A step takes time in proportion to what it changes, not to the table, unless the policy compares classes with the table.

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

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import InfeasibleError, InputError, InternalError, UnsupportedError, require_word
from shoal.evolve.i3m.change import (
    Batch,
    Bind,
    Binding,
    Change,
    Incoming,
    Ledger,
    Numbers,
    checked,
    is_local,
    measured_by,
)
from shoal.evolve.i3m.index import Grouping, Rows, Slots
from shoal.evolve.i3m.repair import Judge, neighbours_of, same_rules
from shoal.evolve.i3m.step import Step
from shoal.microdata import Microdata
from shoal.models.persons import one_row_each
from shoal.partition import Partition
from shoal.policy import Policy, Rules, labelled
from shoal.progress import Progress, Told
from shoal.space import Codes, Measure, Space

__all__ = ["Batch", "Bind", "Binding", "Change", "Classes", "Numbers"]

Ranges = Literal["declared", "batch"]

# Places of records and classes that are no more may be so many beyond those in use.
SPARE = 1024
NOBODY = np.zeros(0, dtype=np.int64)


class Classes:
    """The classes of a table that changes. After every step each record is in one class and every class is good.

    A step that cannot be done raises and leaves everything as it was. All codes are those of `space`; a batch with values
    that it does not know is encoded with larger domains, and `recode` brings what is here into them first.

    `labels` are class numbers, one a record, gaps allowed; `records` the records' numbers, ascending (0, 1, … by default).
    `ranges="batch"` measures losses against the range of the numbers in the table after each step, as the paper does, instead
    of the fixed widths of `space`. `baseline`, `changed`, `next_class` and `next_record` go on from an earlier session.
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
        next_record: int = 0,
    ) -> None:
        require_word("ranges", ranges, ("declared", "batch"))
        if (np.asarray(labels) < 0).any():
            raise UnsupportedError(
                "Classes that follow a table hold all its records; make the partition without suppression."
            )
        names, slots = np.unique(labels, return_inverse=True)
        self._names = names.astype(np.int64)
        self.next_class = max(next_class, int(self._names[-1]) + 1 if len(names) else 0)
        numbers = np.arange(len(codes)) if records is None else np.array(records, dtype=np.int64)
        if (np.diff(numbers) <= 0).any():
            raise InternalError("the numbers of records must ascend")
        self.next_record = max(next_record, int(numbers[-1]) + 1 if len(numbers) else 0)
        none = np.zeros((len(codes), 0), dtype=np.int32)
        secrets = none if sensitive is None else np.array(sensitive, dtype=np.int32)
        self.bind, self.ranges = bind, ranges
        self._table: Rules | None = bind(secrets)
        self._ledger = Ledger(numbers, secrets, self._table.codes())
        self._judge = Judge(self._table, self._ledger.seen)
        self._grouping = Grouping(space, codes, slots)
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
        columns = one_row_each(data.sensitive, "Incremental maintenance")
        binding = Binding(policy, one_row_each(labelled(columns, policy, data.frame), "Incremental maintenance"))
        codes = binding.codes() if binding.columns else None
        return cls(data.space(measure), data.codes, partition.labels, binding, codes, ranges=ranges)

    @property
    def n(self) -> int:
        """Number of records."""
        return self._ledger.n

    @property
    def rules(self) -> Rules:
        """The policy bound to the present table."""
        if self._table is None:
            self._table = self.bind(self.sensitive)
        return self._table

    @property
    def space(self) -> Space:
        """The domains that codes belong to, and the loss."""
        return self._grouping.space

    @property
    def records(self) -> Numbers:
        """The numbers of all records, ascending; the order of `codes`, `sensitive`, `labels` and `partition`."""
        return self._ledger.numbers[self._ledger.alive]

    @property
    def codes(self) -> Codes:
        """Codes of the quasi-identifiers."""
        return self._grouping.codes[self._ledger.alive]

    @property
    def sensitive(self) -> Codes:
        """Codes of the sensitive attributes."""
        return self._ledger.secrets[self._ledger.alive]

    @property
    def labels(self) -> Numbers:
        """The class of each record."""
        return self._names[self._grouping.classes[self._ledger.alive]]

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
        """Total loss: the sum over the classes of size times loss per record, to the last digit in whatever order they lie."""
        return math.fsum((self._grouping.units * self._grouping.sizes).tolist())

    @property
    def nil(self) -> float:
        """Loss per record and quasi-identifier."""
        return self.loss / max(1, self.n * len(self.space.domains))

    def members(self, number: int) -> Numbers:
        """The records of a class."""
        return self._ledger.numbers[self._grouping.members(int(self._slots([number])[0]))]

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

    def apply(
        self,
        *,
        delete: Iterable[int] = (),
        update: Batch | None = None,
        insert: Batch | None = None,
        progress: Progress | None = None,
    ) -> Change:
        """Deletions, updates and insertions as one step, checked when all is done; cancelled, nothing has changed."""
        self._keep_compact()
        grouping, ledger = self._grouping, self._ledger
        columns = ledger.secrets.shape[1]
        changed, coming = checked(update, self.space, columns), checked(insert, self.space, columns)
        leaving, altered = ledger.find(delete), ledger.find(changed.records or ())
        if len(both := np.intersect1d(leaving, altered)):
            raise InputError(f"Record {ledger.numbers[both[0]]} is both deleted and updated; leave one of them out.")
        if len(altered) != len(changed.codes):
            raise InternalError(f"{len(altered)} records to update and {len(changed.codes)} new versions")
        numbers, out = self._numbered(coming), np.concatenate([leaving, altered])
        with self._step(altered):
            ledger.bury(leaving)
            ledger.rewrite(altered, changed.secrets)
            new = ledger.add(numbers, coming.secrets)
            as_before = self._judge_anew(np.concatenate([altered, new]), fewer=len(out) > 0)
            suspects = np.unique(grouping.classes[out]).astype(np.int64)
            grouping.detach(out)
            grouping.set_codes(altered, changed.codes)
            grouping.add_rows(coming.codes)
            if self.ranges == "batch":
                grouping.measure_by(self._observed())
            if not as_before:
                deficits = self.rules.deficits(grouping.classes[ledger.alive], grouping.slots)
                suspects = np.flatnonzero((deficits > 0) & (grouping.sizes > 0))
            step = Step(grouping, self._judge, lambda: self.rules, Progress.of(progress))
            step.mend(suspects)
            step.place(np.concatenate([altered, new]))
            step.finish()
            change = self._change(leaving, altered, new)
        self.next_record = max(self.next_record, int(numbers[-1]) + 1 if len(numbers) else 0)
        self.changed += len(out) + len(new)
        return change

    def optimize(self, classes: Iterable[int] | None = None, *, progress: Progress | None = None) -> Change:
        """IL_Optimization (Truta & Campan 2007, §4) in place: break those of the classes (default: all) that are worth it."""
        grouping, slots = self._grouping, self._slots(classes)
        dearness = exact.ticks(grouping.units[slots]) * grouping.sizes[slots]
        order = slots[np.argsort(-dearness, kind="stable")]
        at, told = -1, Progress.of(progress)
        with self._step():
            while True:
                told((at + 1) / max(1, len(order)))
                at, targets = grouping.next_break(order, at + 1, told)
                if at == len(order):
                    break
                rows = grouping.members(int(order[at]))
                gaining = np.unique(targets)
                gains = zip(grouping.members_by_class(gaining), gaining.tolist(), strict=True)
                joined = [np.concatenate([members, rows[targets == c]]) for members, c in gains]
                if self._judge.rules.superset_closed or (self._judge.deficits(joined) <= 0).all():
                    grouping.break_class(int(order[at]), targets)
            return self._change()

    def refine(
        self,
        classes: Iterable[int] | None = None,
        *,
        effort: Literal["fast", "thorough"] | float = "fast",
        neighbours: int = 8,
        seed: int = 0,
        progress: Told | None = None,
    ) -> Change:
        """A box search (`shoal.refine`) among these classes (all, by default) and so many nearest ones of each.

        The loss falls or stays. Classes that come out of it with other members get new numbers. A policy with a model that
        compiled loops do not know (`Rule.forms`) is left as it is.
        """
        from shoal.refine.box_search import box_search

        if self._judge.rules.entries is None:
            return self.apply()
        grouping, ledger = self._grouping, self._ledger
        slots = self._slots(classes)
        if classes is not None:
            slots = np.unique(np.concatenate([slots, *(neighbours_of(grouping, int(c))[:neighbours] for c in slots)]))
        rows, labels = grouping.labelled(slots)
        if is_local(self._judge.rules):
            rules, codes, places = self.bind(ledger.secrets[rows]), grouping.codes[rows], np.arange(len(rows))
        else:
            # The policy compares with the whole table; whoever is not in these classes takes no part in the search.
            rules, codes, places = self.rules, self.codes, np.cumsum(ledger.alive)[rows] - 1
        start = np.full(rules.n, -1, dtype=np.int32)
        start[places] = labels
        found = box_search(codes, self.space, rules, Partition(start), effort=effort, seed=seed, progress=progress)
        with self._step():
            grouping.regroup(slots, found.labels[places].astype(np.int64))
            return self._change()

    def adopt(self, labels: NDArray[Any], *, full_run: bool = True) -> Change:
        """Another partition of the same records, for example of a full run, which the next ones are compared with."""
        partition = Partition.compact(np.asarray(labels))
        if partition.n != self.n or partition.suppressed:
            raise InternalError(
                f"{self.n} records need a class each, and {partition.n - partition.suppressed} have one"
            )
        used = self._grouping.slots
        with self._step():
            alive = np.flatnonzero(self._ledger.alive)
            self._grouping.set_classes(alive, partition.labels.astype(np.int64) + used, used + partition.classes)
            change = self._change()
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
        ledger = self._ledger
        self._grouping.recode(space, maps)
        for j, new_code in enumerate(sensitive_maps):
            if new_code is not None:
                # Code -1 picks the last entry, so that missing stays missing.
                lookup = np.append(np.asarray(new_code, dtype=np.int32), np.int32(-1))
                ledger.secrets[:, j] = lookup[ledger.secrets[:, j]]
        self.bind = bind or self.bind
        if self.ranges == "batch":
            self._grouping.measure_by(self._observed())
        self._table = self.bind(self.sensitive)
        ledger.see_anew(self._table.codes())
        self._judge = Judge(self._table, ledger.seen)

    @contextmanager
    def _step(self, altered: Rows = NOBODY) -> Iterator[None]:
        """All of it or nothing: what is written inside is taken back when something is raised."""
        grouping, ledger = self._grouping, self._ledger
        held = self._judge, self._table, self._names, self.next_class
        codes = grouping.codes[altered]
        grouping.begin_step()
        ledger.begin_step()
        try:
            yield
        except BaseException:
            self._judge, self._table, self._names, self.next_class = held
            ledger.go_back()
            grouping.go_back(altered, codes)
            raise
        grouping.keep_fresh()

    def _judge_anew(self, rows: Rows, *, fewer: bool) -> bool:
        """The policy on the new table, where these rows are new; whether classes without them are judged as before."""
        ledger, rules = self._ledger, self._judge.rules
        self._table, as_before = None, True
        if is_local(self._judge.rules):
            if len(rows):
                ledger.see(rows, self.bind(ledger.secrets[rows]).codes())
        else:
            rules = self.rules
            as_before = ledger.see_anew(rules.codes()) and same_rules(rules, self._judge.rules)
        if ledger.n < rules.k:
            raise InfeasibleError(
                f"The policy needs {rules.k} records and there would be {ledger.n}; keep or add more, or withdraw the release.",
                witness=ledger.n,
            )
        # Good classes stay good when records join them, so that there must have been something to lose.
        if not rules.only_size and (fewer or not rules.superset_closed or len(rows) == ledger.n):
            self.rules.require_feasible()
        self._judge = Judge(rules, ledger.seen)
        return as_before

    def _change(self, leaving: Rows = NOBODY, altered: Rows = NOBODY, new: Rows = NOBODY) -> Change:
        """Compare with what was, and check what is new; new classes get their numbers here."""
        grouping, ledger = self._grouping, self._ledger
        fresh = grouping.slots - len(self._names)
        before = len(self._names)
        self._names = np.append(self._names, self.next_class + np.arange(fresh))
        self.next_class += fresh
        rows, was = grouping.departed()
        now = grouping.classes[rows]
        moved = was != now
        there = moved | np.isin(rows, altered)
        slots = np.concatenate([was[there], now[there], grouping.classes[new]])
        slots = np.unique(slots[slots >= 0])
        exists = grouping.sizes[slots] > 0
        if (self._judge.deficits(grouping.members_by_class(slots[exists])) > 0).any():
            raise InternalError("a step left a class that does not satisfy the policy")
        return Change(
            inserted=ledger.numbers[new],
            updated=ledger.numbers[altered],
            deleted=np.sort(ledger.numbers[leaving]),
            moved=ledger.numbers[np.setdiff1d(rows[moved], np.concatenate([leaving, altered]))],
            touched=self._names[slots[exists]],
            created=self._names[slots[exists & (slots >= before)]],
            dissolved=self._names[slots[~exists & (slots < before)]],
        )

    def _slots(self, numbers: Iterable[int] | None) -> Slots:
        """Where these classes are; all that exist by default."""
        if numbers is None:
            return np.flatnonzero(self._grouping.sizes)
        wanted = np.unique(np.fromiter(numbers, dtype=np.int64))
        slots = np.searchsorted(self._names, wanted)
        found = slots < len(self._names)
        found[found] = (self._names[slots[found]] == wanted[found]) & (self._grouping.sizes[slots[found]] > 0)
        if not found.all():
            raise InputError(f"There is no class {wanted[~found][0]}.")
        return slots

    def _numbered(self, batch: Incoming) -> Numbers:
        """Numbers for new records."""
        if batch.records is None:
            return np.arange(self.next_record, self.next_record + len(batch.codes))
        numbers = np.array(batch.records, dtype=np.int64)
        if len(numbers) != len(batch.codes) or (np.diff(numbers, prepend=self.next_record - 1) <= 0).any():
            raise InternalError("new records need ascending numbers above all earlier ones")
        return numbers

    def _observed(self) -> Space:
        return measured_by(self.space, self.codes)

    def _keep_compact(self) -> None:
        """Forget places of records and classes that are no more, once they are the larger part."""
        grouping, ledger = self._grouping, self._ledger
        if grouping.rows <= 2 * self.n + SPARE and grouping.slots <= 2 * grouping.live + SPARE:
            return
        alive = ledger.alive
        kept, classes = np.unique(grouping.classes[alive], return_inverse=True)
        self._grouping = Grouping(grouping.space, grouping.codes[alive], classes)
        self._names = self._names[kept]
        self._ledger = Ledger(ledger.numbers[alive], ledger.secrets[alive], ledger.seen[alive])
        self._judge = Judge(self._judge.rules, self._ledger.seen)
