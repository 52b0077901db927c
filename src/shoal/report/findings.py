"""Everything a report says, found once: what the masked table tells, and for its owner what the original adds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from shoal.declaration import ALONE, Examination, Finding
from shoal.measures.attacks import Exposure
from shoal.measures.utility import Classification, QueryError
from shoal.report.markup import Html, joined, number, percent, shown
from shoal.report.original import Intruder, Least, Original
from shoal.report.published import Published
from shoal.report.words import UNEVEN


@dataclass(frozen=True)
class Attack:
    """One attack: whether it is stopped, limited or open, what it is called, and what it comes to."""

    state: str
    name: str
    told: Html


@dataclass(frozen=True, eq=False)
class Findings:
    """What a report is made of. Without `original` it is one for the public: nothing else is at hand."""

    published: Published
    original: Original | None = None
    extra: tuple[Exposure, ...] = ()
    """What further attacks found, with lists and earlier releases that somebody has."""

    @property
    def for_owner(self) -> bool:
        """Whether figures of the original are in it."""
        return self.original is not None

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
    def intruders(self) -> list[Intruder]:
        """What those who know some columns achieve, before and after."""
        return [] if self.original is None else self.original.intruders(self.published)

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
        found = [self._linking()]
        found += [self._judged(exposure) for exposure in (*self.published.attacks, *self.extra)]
        return found

    def _linking(self) -> Attack:
        name, of = "Linking with a list.", self.published
        smallest = int(of.sizes.min())
        if self.intruders:
            most = self.intruders[-1]
            certain = max(one.certain for one in self.intruders)
            fewest = min(one.fewest for one in self.intruders)
            told = joined(
                [
                    f"Of {most.persons:,} persons {certain if certain else 'none'} "
                    f"{'fit' if certain > 1 else 'fits'} exactly one record; nobody has fewer than {fewest:,} candidates."
                ]
            )
            return Attack("open" if certain else "stopped", name, told)
        if smallest == 1:
            alone = int((of.sizes == 1).sum())
            return Attack("open", name, joined([f"{alone:,} of {of.table.n:,} {of.many} are alone in their class."]))
        told = joined([f"Whoever knows all masked columns of a person is left with at least {smallest:,} {of.many}."])
        return Attack("stopped", name, told)

    def _judged(self, exposure: Exposure) -> Attack:
        on, of = shown(exposure.attribute), self.published
        if exposure.attack == "homogeneity":
            if exposure.exposed:
                told = joined(
                    [
                        f"In {len(exposure.classes):,} of {exposure.of_classes:,} classes everybody has the same ",
                        on,
                        f": {exposure.exposed:,} of {exposure.total:,} {of.many}.",
                    ]
                )
                return Attack("open", "Same secret.", told)
            told = joined(
                [
                    "No class has only one value of ",
                    on,
                    ", so being in a class does not give it away. "
                    f"At worst the best guess is right {number(100 * exposure.worst, 0)} times in 100.",
                ]
            )
            return Attack("stopped", "Same secret.", told)
        if exposure.attack == "background_knowledge":
            if exposure.exposed:
                told = joined(
                    [
                        "Who can exclude one value of ",
                        on,
                        f" for a person may be certain of another: {exposure.exposed:,} of {exposure.total:,} {of.many}, "
                        f"in {len(exposure.classes):,} classes.",
                    ]
                )
                return Attack("open", "Ruling one out.", told)
            told = joined(
                [
                    "Who can exclude one value of ",
                    on,
                    " still cannot be certain of anybody’s; the best guess rises to "
                    f"{number(100 * exposure.worst, 0)} in 100. Who can exclude more may be.",
                ]
            )
            return Attack("limited", "Ruling one out.", told)
        if exposure.attack == "similarity":
            state = "open" if exposure.exposed else "stopped"
            told = joined(
                [
                    "Classes whose values of ",
                    on,
                    f" differ and yet say the same: {len(exposure.classes):,} of {exposure.of_classes:,}, "
                    f"with {exposure.exposed:,} {of.many}.",
                ]
            )
            return Attack(state, "Similar secrets.", told)
        if exposure.attack == "skewness":
            limits = [model for model in of.models if model.name in UNEVEN]
            if not exposure.exposed:
                told = joined(
                    ["No class makes a value of ", on, " more than twice as probable as the whole table does."]
                )
                return Attack("stopped", "Uneven classes.", told)
            promise = "A promise limits how far." if limits else "No promise covers this; t_closeness would."
            told = joined(
                [
                    f"{exposure.exposed:,} of {exposure.total:,} {of.many} have a value of ",
                    on,
                    f" that their class makes more than twice as probable as the whole table. {promise}",
                ]
            )
            return Attack("limited" if limits else "open", "Uneven classes.", told)
        name = f"{exposure.attack.replace('_', ' ').capitalize()}."
        told = joined([f"{exposure.exposed:,} of {exposure.total:,} are exposed, {percent(exposure.share)}."])
        return Attack("open" if exposure.exposed else "stopped", name, told)
