"""Everything a report says, found once: what the masked table tells, and for its owner what the original adds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from shoal.declaration import ALONE, Examination, Finding
from shoal.measures.exposure import Exposure
from shoal.measures.utility import Classification, QueryError
from shoal.progress import Progress
from shoal.report.original import Intruder, Least, Original
from shoal.report.published import Published
from shoal.report.tried import Attack, linking, tried


@dataclass(frozen=True, eq=False)
class Findings:
    """What a report is made of. Without `original` it is one for the public: nothing else is at hand."""

    published: Published
    original: Original | None = None
    extra: tuple[Exposure, ...] = ()
    """What further attacks found, with lists and earlier releases that somebody has."""

    @property
    def for_owner(self) -> bool:
        """Whether there is more in it than the masked table tells."""
        return self.original is not None or bool(self.extra)

    @property
    def judged(self) -> bool:
        """Whether there was any promise to check."""
        return bool(self.published.models) or bool(self.published.evidence.problems)

    @cached_property
    def asis(self) -> Examination:
        """The columns published as they are, by the stronger of the two looks."""
        return self.original.asis if self.original is not None else self.published.asis

    @cached_property
    def decisions(self) -> list[Finding]:
        """Columns about which somebody has to decide: dangerous, and not accepted by hand."""
        return [finding for finding in self.asis.findings if finding.accepted is None]

    @property
    def accepted(self) -> list[Finding]:
        """Columns that were accepted by hand."""
        return [finding for finding in self.asis.findings if finding.accepted is not None]

    @property
    def together(self) -> bool:
        """Whether the columns published as they are single out many records together, though none does alone."""
        found = self.asis
        alone = any(finding.role == "other" for finding in found.findings)
        return len(found.columns) > 1 and not alone and found.alone >= ALONE * found.records

    @cached_property
    def _linked(self) -> list[Intruder] | str:
        return [] if self.original is None else self.original.intruders(self.published)

    @property
    def intruders(self) -> list[Intruder]:
        """What those who know some columns achieve, before and after."""
        return [] if isinstance(self._linked, str) else self._linked

    @property
    def unlinked(self) -> str:
        """Why that is not known, where it is not."""
        return self._linked if isinstance(self._linked, str) else ""

    @cached_property
    def queries(self) -> QueryError | str | None:
        """How far counts are off; None in a report for the public."""
        return None if self.original is None else self.original.queries(self.published)

    @cached_property
    def classifier(self) -> Classification | None:
        """What a classifier keeps, where it was tried."""
        return None if self.original is None else self.original.classifier(self.published)

    @cached_property
    def least(self) -> Least | None:
        """The proven bound; None in a report for the public."""
        return None if self.original is None else self.original.least

    @cached_property
    def attacks(self) -> list[Attack]:
        """All attacks that were tried."""
        found = (*self.published.attacks, *self.extra)
        return [linking(self.published, self.intruders), *(tried(one, self.published) for one in found)]

    def found_out(self, progress: Progress) -> Findings:
        """Itself, with everything found that takes a while; whoever waits is told what."""
        stages = (
            ("trying attacks", "attacks"),
            ("counting", "queries"),
            ("looking for the least loss", "least"),
            ("predicting", "classifier"),
        )
        for doing, what in stages:
            with progress.stage(doing, 0.2):
                getattr(self, what)
        return self
