"""What an attack found, and what whoever publishes can change about it: every alarm names a way out.

>>> more_values("illness", 2, values=5)
'Ask for p_sensitive = { p = 2, attribute = "illness" } in [policy].'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal.models import Sensitive

__all__ = ["Exposure"]

# What can be changed about attacks that look at more than the masked table.
_WAYS = {
    "linking": "Ask for a larger k in [policy], or give the columns of the list coarser taxonomies.",
    "minimality": 'Choose an algorithm that does not generalize only as far as it must: algorithm = "k_member" under [method].',
    "intersection": "Publish from a store (shoal store), whose guards look at all releases together.",
    "difference": "Publish from a store (shoal store), whose guards look at all releases together.",
    "tracing": "Publish from a store (shoal store), whose guards look at all releases together.",
}


@dataclass(frozen=True)
class Exposure:
    """What one attack found.

    - `attack`, `attribute`: its name, and the sensitive attribute (None where it is about persons).
    - `exposed`, `total`: so many records (or persons) of so many are exposed.
    - `classes`, `of_classes`: in these classes, of so many.
    - `worst`: the attack's own number where it hits hardest: a probability, or a gain.
    - `sentence`: the same for a data steward.
    - `details`: what else it counted; nothing by default.
    - `way_out`: what whoever publishes can change about it, where somebody is exposed; nothing by default.

    >>> from shoal.measures.exposure import Exposure
    >>> Exposure("homogeneity", "illness", 3, 12, (0,), 4, 1.0, "In 1 of 4 classes …").to_dict()["share"]
    0.25
    """

    attack: str
    attribute: str | None
    exposed: int
    total: int
    classes: tuple[int, ...]
    of_classes: int
    worst: float
    """The attack's own number where it hits hardest: a probability, or a gain."""
    sentence: str
    details: Mapping[str, Any] = field(default_factory=dict)
    way_out: str = ""

    def __post_init__(self) -> None:
        if self.exposed and not self.way_out:
            object.__setattr__(self, "way_out", _WAYS.get(self.attack, ""))

    @property
    def share(self) -> float:
        """The exposed share."""
        return self.exposed / self.total if self.total else 0.0

    def to_dict(self) -> dict[str, Any]:
        """For JSON: numbers of classes, not which."""
        plain = {key: value for key, value in vars(self).items() if key not in ("classes", "details")}
        return {**plain, "share": self.share, "classes": len(self.classes), **self.details}


def more_values(name: str, p: int, values: int) -> str:
    """What to ask for so that no class has fewer than p values, or as many as there are."""
    p = min(p, values)
    if p < 2:
        return f"The table has one value of '{name}' only: leave the column out, with drop = true under [attributes.{name}]."
    return f'Ask for p_sensitive = {{ p = {p}, attribute = "{name}" }} in [policy].'


def farther_apart(column: Sensitive, similar_range: float) -> str:
    """What to ask for so that the values of a class are farther apart."""
    closeness = f't_closeness = {{ t = 0.3, attribute = "{column.name}" }}'
    if column.numbers is None or not len(column.numbers):
        return f"Ask for {closeness} in [policy]."
    # A little more than what is still similar.
    e = 1.01 * similar_range * float(column.numbers[-1] - column.numbers[0])
    return f'Ask for k_e = {{ e = {e:.6g}, attribute = "{column.name}" }} or {closeness} in [policy].'


def nearer_the_table(name: str, gain: float) -> str:
    """What to ask for so that no class makes a value much more frequent than the table does."""
    own = f'attribute = "{name}" }}'
    return f"Ask for beta_likeness = {{ beta = {gain:g}, {own} or t_closeness = {{ t = 0.3, {own} in [policy], or for a larger k."
