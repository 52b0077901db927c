"""What the verifier found, and how it says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import VerificationError
from shoal.io.frames import from_polars
from shoal.shown import Shown

# Failing classes that a message names: enough to see what is wrong.
SHOWN = 5
STARS = "*"


@dataclass(frozen=True)
class Violation:
    """One class that fails one rule.

    `rule` is the rule in words, `published` what the class publishes, `size` its records, `deficit` how far it is from
    good.

    >>> from shoal.verifier import Violation
    >>> print(Violation("k_anonymity(k = 3)", {"age": "[20, 29]"}, size=2, deficit=1.0))
    class (age = [20, 29]) with 2 records fails k_anonymity(k = 3) by 1
    """

    rule: str
    published: dict[str, Any]
    size: int
    deficit: float
    way: str = "as written"
    """Whether the class is one of the cells as they are written, or as they are read."""

    def __str__(self) -> str:
        values = ", ".join(
            f"{name} = {'missing' if value is None else value}" for name, value in self.published.items()
        )
        records = "record" if self.size == 1 else "records"
        starred = all(value == STARS for value in self.published.values())
        what = "the class of suppressed records" if starred else "class"
        way = "" if self.way == "as written" else f", {self.way},"
        return f"{what} ({values}) with {self.size} {records}{way} fails {self.rule} by {self.deficit:.6g}"


@dataclass(frozen=True)
class Check:
    """One rule on the whole table.

    `rule` is the rule in words, `model` and `attribute` what it is about; `parameter` is the model's main one,
    `required` what the policy asks of it and `strongest` the strongest value that holds; `failing` is the number of
    classes that fail.

    >>> from shoal.verifier import Check
    >>> Check("k_anonymity(k = 3)", "k_anonymity", None, "k", required=3.0, strongest=2.0, failing=1).holds
    False
    """

    rule: str
    model: str
    attribute: str | None
    parameter: str
    required: float
    strongest: float
    failing: int

    @property
    def holds(self) -> bool:
        """Whether every class satisfies the rule."""
        return self.failing == 0


@dataclass(frozen=True)
class Evidence(Shown):
    """What the verifier found in a masked table.

    `records` and `classes` are counts, `smallest` and `largest` the sizes of classes; `checks` has one entry a rule and
    `violations` the worst classes of each rule that fails (none by default).

    >>> import polars as pl, shoal
    >>> masked = pl.DataFrame({"age": ["[20, 29]", "[20, 29]", "[30, 39]"]})
    >>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi")})
    >>> evidence: shoal.verifier.Evidence = shoal.verify(masked, shoal.Policy((shoal.KAnonymity(1),)), schema)
    >>> evidence.require().passed, evidence.to_dict()["smallest"]
    (True, 1)
    """

    records: int
    classes: int
    smallest: int
    largest: int
    checks: tuple[Check, ...]
    violations: tuple[Violation, ...] = field(default=())
    notes: tuple[str, ...] = ()
    """What a reader should know: values with several spellings, spellings of missing."""
    problems: tuple[str, ...] = ()
    """What nobody can vouch for: cells that the configuration does not know."""
    persons: int | None = None
    """How many persons the rows belong to, where they were counted; sizes and deficits are then of persons."""
    backend: str = field(default="polars", repr=False, compare=False)
    """The frame library that `frame` is in."""

    @property
    def frame(self) -> Any:
        """What was asked and found, one row a rule, in the frame library that came in."""
        rows = [
            {
                "rule": one.rule,
                "asked": one.required,
                "found": one.strongest,
                "failing": one.failing,
                "holds": one.holds,
            }
            for one in self.checks
        ]
        return from_polars(pl.DataFrame(rows), self.backend)

    @property
    def passed(self) -> bool:
        """Whether the table satisfies the policy, and holds nothing that its configuration does not know."""
        return all(check.holds for check in self.checks) and not self.problems

    def require(self) -> Evidence:
        """Itself, or a `VerificationError` that names the classes that fail."""
        if self.passed:
            return self
        told = []
        failing = sum(check.failing for check in self.checks)
        if failing:
            first = "; ".join(str(violation) for violation in self.violations[:SHOWN])
            told.append(f"The table does not satisfy its policy: {failing} failing classes, among them {first}.")
        raise VerificationError(" ".join([*told, *self.problems[:SHOWN]]))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "passed": self.passed,
            "records": self.records,
            "classes": self.classes,
            "smallest": self.smallest,
            "largest": self.largest,
            "checks": [
                {**vars(check), "strongest": _or_none(check.strongest), "holds": check.holds} for check in self.checks
            ],
            "violations": [vars(violation) for violation in self.violations],
            "notes": list(self.notes),
            "problems": list(self.problems),
            **({} if self.persons is None else {"persons": self.persons}),
        }


@dataclass(frozen=True)
class Strength:
    """The strongest value of a model's main parameter that a table satisfies.

    `model` and `attribute` say what it is about, `parameter` is the main parameter and `strongest` its value (not a
    number where none holds or can be told), `settings` are the model's other parameters (none by default).

    >>> from shoal.verifier import Strength
    >>> Strength("t_closeness", "illness", "t", 0.25, {"distance": "equal"}).to_dict()["strongest"]
    0.25
    """

    model: str
    attribute: str | None
    parameter: str
    strongest: float
    settings: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; None where no value of the parameter holds or can be told."""
        return {**vars(self), "strongest": _or_none(self.strongest), "settings": dict(self.settings)}


def _or_none(number: float) -> float | None:
    return None if np.isnan(number) else number
