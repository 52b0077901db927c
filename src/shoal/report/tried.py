"""Attacks as people read of them: stopped, limited or open, and what each comes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shoal.measures.exposure import Exposure
from shoal.report.markup import Html, escaped, joined, number, plain, shown
from shoal.report.original import Intruder
from shoal.report.published import Published
from shoal.report.words import UNEVEN


@dataclass(frozen=True)
class Attack:
    """One attack: whether it is stopped, limited or open, what it is called, and what it comes to."""

    state: str
    name: str
    told: Html


def linking(of: Published, intruders: Sequence[Intruder]) -> Attack:
    """With lists of the very persons where the original is at hand, else by the sizes of classes."""
    name, smallest = "Linking with a list.", of.sizes.smallest
    if intruders:
        certain, fewest = max(one.certain for one in intruders), min(one.fewest for one in intruders)
        told = (
            f"Of {intruders[0].persons:,} persons {f'{certain:,}' if certain else 'none'} {'fit' if certain > 1 else 'fits'} "
            f"exactly one record; nobody has fewer than {fewest:,} candidates."
        )
        return Attack("open" if certain else "stopped", name, escaped(told))
    if smallest == 1:
        alone, everybody = of.sizes.alone, of.sizes.records
        return Attack("open", name, escaped(f"{alone:,} of {everybody:,} {of.many} are alone in their class."))
    told = f"Whoever knows all masked columns of a person is left with at least {smallest:,} {of.many}."
    return Attack("stopped", name, escaped(told))


def tried(exposure: Exposure, of: Published) -> Attack:
    """What an attack found, in words."""
    return _TOLD.get(exposure.attack, _beyond)(exposure, of)


def _same_secret(exposure: Exposure, of: Published) -> Attack:
    on = shown(exposure.attribute)
    if exposure.exposed:
        where = f"In {len(exposure.classes):,} of {exposure.of_classes:,} classes everybody has the same "
        told = joined([where, on, f": {exposure.exposed:,} of {exposure.total:,} {of.many}."])
        return Attack("open", "Same secret.", told)
    guess = f"At worst the best guess is right {number(100 * exposure.worst, 0)} times in 100."
    told = joined(["No class has only one value of ", on, f", so being in a class does not give it away. {guess}"])
    return Attack("stopped", "Same secret.", told)


def _ruling_out(exposure: Exposure, of: Published) -> Attack:
    one = of.strength == 1
    who = f"Who can exclude {'one value' if one else f'{of.strength} values'} of "
    name, on = f"Ruling {'one' if one else 'some'} out.", shown(exposure.attribute)
    if exposure.exposed:
        found = f"{exposure.exposed:,} of {exposure.total:,} {of.many}, in {len(exposure.classes):,} classes."
        return Attack("open", name, joined([who, on, f" for a person may be certain of another: {found}"]))
    values = int(exposure.details["values"])
    if values <= of.strength + 1:
        told = f" has {values:,} value{'s' if values != 1 else ''} in the whole table: who can exclude the others needs no table."
        return Attack("stopped", name, joined([on, told]))
    guess = f"the best guess rises to {number(100 * exposure.worst, 0)} in 100. Who can exclude more may be."
    return Attack("limited", name, joined([who, on, f" still cannot be certain of anybody’s; {guess}"]))


def _similar(exposure: Exposure, of: Published) -> Attack:
    found = f"{len(exposure.classes):,} of {exposure.of_classes:,}, with {exposure.exposed:,} {of.many}."
    told = joined(["Classes whose values of ", shown(exposure.attribute), f" differ and yet say the same: {found}"])
    return Attack("open" if exposure.exposed else "stopped", "Similar secrets.", told)


def _uneven(exposure: Exposure, of: Published) -> Attack:
    on, name = shown(exposure.attribute), "Uneven classes."
    if not exposure.exposed:
        told = joined(["No class makes a value of ", on, " more than twice as probable as the whole table does."])
        if exposure.details.get("own"):
            told = joined([told, " Amounts that one person of a class has are hidden by its size."])
        return Attack("stopped", name, told)
    limited = any(model.name in UNEVEN for model in of.models)
    promise = "A promise limits how far." if limited else "No promise covers this; t_closeness would."
    told = joined(
        [
            f"{exposure.exposed:,} of {exposure.total:,} {of.many} have a value of ",
            on,
            f" that their class makes more than twice as probable as the whole table. {promise}",
        ]
    )
    return Attack("limited" if limited else "open", name, told)


def _beyond(exposure: Exposure, of: Published) -> Attack:
    """An attack with more than the masked table: its own sentence."""
    name = _NAMES.get(exposure.attack, f"{exposure.attack.replace('_', ' ').capitalize()}.")
    return Attack("open" if exposure.exposed else "stopped", name, escaped(plain(exposure.sentence, 600)))


_TOLD: dict[str, Callable[[Exposure, Published], Attack]] = {
    "homogeneity": _same_secret,
    "background_knowledge": _ruling_out,
    "similarity": _similar,
    "skewness": _uneven,
}
_NAMES = {
    "linking": "The list at hand.",
    "minimality": "Why so far and no further.",
    "intersection": "What releases have in common.",
    "difference": "The last release and this one.",
    "tracing": "Following people from release to release.",
}
