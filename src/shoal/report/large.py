"""The report of a table that lies with an engine: the same page, from counts and from classes that the engine folds.

No record comes here. What the page says of classes is found where they are, some whole classes at a time; what only records can
tell is left out, and the page says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from shoal.declaration import Examination
from shoal.engines.judging import Opened
from shoal.engines.walk import LargeRelease
from shoal.errors import ConfigError, InputError, ShoalError
from shoal.measures.exposure import Exposure
from shoal.measures.glimpses import Glimpse, Looking
from shoal.measures.regions import published_cells
from shoal.measures.risk import Risk, Risks
from shoal.measures.utility import Classification
from shoal.models import Rule
from shoal.report.findings import Findings
from shoal.report.levels import Shown, column_levels
from shoal.report.original import Intruder, Least, Original
from shoal.report.published import Published, Tightest, a_hair_more, columns_of
from shoal.report.sizes import Sizes
from shoal.space import SUPPRESSED
from shoal.verifier import Evidence, Strength
from shoal.verifier.examine import audit_rules, strength_of

AFAR = "it is found record by record, and the records stay with their engine"


def findings_afar(
    release: LargeRelease, for_: str, *, name: str, command: str | None = None, digest: str | None = None
) -> Findings:
    """What is found about a release that lies with an engine. For the public nothing of the original goes further than this."""
    opened = Opened.of(release.engine, release.policy, release.learned.data.schema)
    settings = release.manifest.get("settings", {})
    seen = Afar(
        name,
        opened.columns,
        opened.schema,
        release.policy,
        release.evidence,
        settings=settings,
        digest=digest,
        opened=opened,
    )
    if for_ == "public":
        return Findings(seen)
    known = {**release.secret["settings"], "policy": release.policy}
    notes = release.secret.get("notes", {})
    data = release.learned.data
    return Findings(seen, OriginalAfar(data, release.measures, known, notes, False, command, release=release))


@dataclass(frozen=True, eq=False)
class Afar(Published):
    """A masked table that lies with an engine; `masked` has its columns and none of its rows."""

    opened: Opened = None  # type: ignore[assignment]

    @cached_property
    def _glimpse(self) -> Glimpse:
        looking = Looking(self.schema, self.opened.folding.columns, len(self.opened.folding.quasi), self._stars())
        return self.opened.folded(looking.glimpse, Glimpse.merge)

    def _stars(self) -> tuple[int, ...] | None:
        """The number of the value that shows nothing, for each published quasi-identifier; None where one has none."""
        found = []
        for values, _ in self.opened.folding.quasi.values():
            star = values.index_of(SUPPRESSED) if values.dtype == pl.String else None
            if star is None:
                return None
            found.append(star)
        return tuple(found)

    @cached_property
    def sizes(self) -> Sizes:
        """Of the classes."""
        return Sizes.counted(self._glimpse.sizes)

    @cached_property
    def risks(self) -> Risks:
        """Of being found: each class is one right guess."""
        classes = int(self.sizes.classes.sum())
        risk = Risk("prosecutor", 1 / self.sizes.smallest, classes / self.sizes.records, {})
        return Risks(risk, None, replace(risk, intruder="marketer"))

    @cached_property
    def attacks(self) -> list[Exposure]:
        """What needs nothing but the table."""
        return self._glimpse.exposures

    @cached_property
    def starred(self) -> int:
        """Rows of which every masked column is hidden."""
        return self._glimpse.starred

    def left_to(self, names: Sequence[str]) -> Sizes:
        """Who knows only these columns is left with so many records."""
        chosen = columns_of(list(self.opened.folding.quasi), names)
        books = self.opened.books(self.opened.folding.ways[0], chosen, secrets=False)
        looking = Looking(self.schema, (), len(chosen))
        return Sizes.counted(self.opened.engine.judge(books, looking.glimpse, Glimpse.merge).sizes)

    @cached_property
    def asis(self) -> Examination:
        """The columns that are published as they are."""
        return self.opened.examined()

    def alone_in(self, name: str) -> tuple[int, int]:
        """Rows with a value of a column that no other row has, and how many different values there are."""
        counts = self.opened.published[name].counts
        return int(np.count_nonzero(counts == 1)), len(counts)

    @cached_property
    def shown(self) -> list[Shown]:
        """How exact each masked column is."""
        told = []
        for name in self.schema.named("quasi"):
            own = columns_of(list(self.opened.folding.quasi), [name])
            own = [name] if name in own else own
            cells, counts = self._counted(own)
            nothing = np.zeros(len(counts), dtype=np.bool_)
            found = published_cells(cells, name)
            told.append(column_levels(found, counts, nothing, self.schema, str(self.settings.get("recode"))))
        return told

    def _counted(self, columns: Sequence[str]) -> tuple[pl.DataFrame, Any]:
        """The distinct values of some published columns together, and how many records have each."""
        if len(columns) == 1:
            values, counts = self.opened.folding.quasi[columns[0]]
            return values.to_frame(), counts
        from shoal.engines.base import COUNT
        from shoal.engines.learning import MOST

        (found,) = self.opened.engine.value_counts([columns], most=MOST, staged=True)
        table = pl.DataFrame(pl.from_arrow(found))
        if table.height > MOST:
            raise InputError(f"Column '{columns[0]}' has more than {MOST:,} different values; give it coarser ones.")
        table = table.sort(columns)
        return table.select(columns), table[COUNT].to_numpy().astype(np.int64)

    @cached_property
    def _asked(self) -> tuple[list[tuple[Rule, float]], Evidence, list[str]]:
        """Every model there is, and a hair more than what was found of each promise: all rules in one walk over the classes."""
        folding = self.opened.folding
        every = audit_rules(folding.columns, folding.records, self.policy if self.policy.models else None)
        by_name = {column.name: column for column in folding.columns}
        more: list[tuple[str, Rule]] = []
        for check in self.evidence.checks:
            stronger = a_hair_more(check, self.models)
            try:
                if stronger is not None:
                    more.append((check.rule, stronger.bind(by_name.get(str(check.attribute)), folding.records)))
            except (ShoalError, ConfigError, ValueError):
                continue
        asked = folding.asking([*every, *(rule for _, rule in more)])
        verdicts = [self.opened.verdict(way, asked) for way in folding.ways]
        strongest = verdicts[0].strongest[: len(every)]
        rest = [one.of_rules(slice(len(every), None)) for one in verdicts]
        evidence = folding.asking([rule for _, rule in more]).evidence(rest)
        return list(zip(every, strongest, strict=True)), evidence, [rule for rule, _ in more]

    @cached_property
    def strengths(self) -> list[Strength]:
        """The table by every model."""
        return [strength_of(rule, best) for rule, best in self._asked[0]]

    @cached_property
    def tightest(self) -> Mapping[str, Tightest]:
        """By rule, the classes that fail when a hair more is asked than what was found."""
        _, evidence, rules = self._asked
        found = {}
        for rule, check in zip(rules, evidence.checks, strict=True):
            some = [one for one in evidence.violations if one.rule == check.rule][:3]
            found[rule] = Tightest(check.failing, tuple(some))
        return found


@dataclass(frozen=True, eq=False)
class OriginalAfar(Original):
    """The original where it lies; `data` has its columns and domains and none of its records."""

    release: LargeRelease = None  # type: ignore[assignment]

    @cached_property
    def sizes(self) -> Sizes:
        """Classes of records that are alike in the original, counted by the engine."""
        learned = self.release.learned
        found = Sizes.counted(self.release.engine.alike(learned.books[: len(learned.domains)]))
        if found.records != learned.n:
            raise InputError("The table is not what it was when it was masked: a report would mix two; mask it again.")
        return found

    @cached_property
    def asis(self) -> Examination:
        """As it was examined before the search."""
        return Examination.from_dict(self.release.secret["published_as_it_is"])

    def intruders(self, published: Published) -> list[Intruder] | str:
        """Left out."""
        return AFAR

    @cached_property
    def least(self) -> Least:
        """Left out."""
        return Least(None, AFAR)

    def queries(self, published: Published) -> str:
        """Left out."""
        return AFAR

    def classifier(self, published: Published) -> Classification | None:
        """Left out."""
        return None

    def different(self, name: str) -> int:
        """Different values of a quasi-identifier in the original."""
        learned = self.release.learned
        return int(np.count_nonzero(learned.counts[learned.data.quasi.index(name)]))
