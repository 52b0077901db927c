"""For the page *Policy*: what each promise would mean on the project's own table, tried before anybody makes it.

A quick algorithm (mondrian, no search) groups some thousand of the records under the promises with one parameter moved, and says
what that loses; the same groups under k alone say whom a promise protects that is not made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import Cancelled, ShoalError
from shoal.progress import Progress
from shoal.studio.promises import KS, Promise, offered, policy_with, values_of
from shoal.studio.tasks import configured

if TYPE_CHECKING:
    from shoal.microdata import Microdata
    from shoal.policy import Policy

FEW, MANY = 6, 1_000
"""Values of a parameter that are tried before the largest possible one is called not known: of persons, and of records."""
SAMPLE = 6_000  # records that promises are tried on: a try takes about a tenth of a second


def meant(folder: Path, progress: Progress, **_: Any) -> dict[str, Any]:
    """Whether the promises can be kept, how many classes there can be, and each one, made or not, with what it means."""
    from shoal.policy import Policy

    with progress.stage("reading", 0.3):
        configuration, data = configured(folder)
    section = configuration.config.policy
    found: dict[str, Any] = {
        "records": data.n,
        "persons": data.persons is not None,
        "alone": int((data.points.weights == 1).sum()) if data.quasi else 0,
        "quasi": list(data.quasi),
    }
    found |= _feasible(data, Policy.from_config(section))
    if not data.quasi:
        return found | {"k": None, "promises": []}
    step = max(1, data.n // SAMPLE)
    some = data.take(np.arange(0, data.n, step)) if step > 1 else data
    found["tried_on"] = some.n
    crowd = _Crowd(some, int(section.get("k", 2)))
    promises = list(offered(section, _secrets(data)))
    secrets = list(data.schema.named("sensitive"))
    tries = [(None, k) for k in KS] + [
        (one, value) for one in promises for value in (values_of(one) if one.on else (one.value,))
    ]
    tried: dict[Promise | None, list[dict[str, Any]]] = {}
    with progress.stage("trying promises") as part:
        for one, value in part.each(tries):
            moved = {**section, "k": value} if one is None else policy_with(section, one.moved(value), secrets)
            tried.setdefault(one, []).append({"value": value, "loss": _loss(some, moved)})
    found["k"] = {"value": section.get("k", 1), "values": tried[None], "largest": data.n}
    found["promises"] = [
        one.to_dict()
        | {
            "values": tried[one],
            "largest": _largest(data, one),
            "unprotected": crowd.unprotected(one),
            "why": _why(data, one) if one.on else "",
        }
        for one in promises
    ]
    return found | {"loss": _loss(some, section)}


def _feasible(data: Microdata, policy: Policy) -> dict[str, Any]:
    try:
        rules = data.rules(policy)
        rules.require_feasible()
    except ShoalError as problem:
        return {"feasible": False, "why": str(problem), "classes": 0}
    return {"feasible": True, "why": "", "classes": rules.max_classes}


def _secrets(data: Microdata) -> list[tuple[str, float | None]]:
    """The secret columns, and of numbers half of what lies between their quarters: a range that means something."""
    from shoal.models.persons import Crowd

    found: list[tuple[str, float | None]] = []
    for column in data.sensitive:
        own = column.rows if isinstance(column, Crowd) else column
        numbers, codes = own.numbers, own.codes
        if numbers is None or not (codes >= 0).any():
            found.append((column.name, None))
            continue
        known = np.sort(numbers[codes[codes >= 0]])
        found.append((column.name, float(known[len(known) * 3 // 4] - known[len(known) // 4]) / 2))
    return found


def _loss(data: Microdata, section: Mapping[str, Any]) -> float | None:
    """What mondrian loses under some promises; None where they cannot be kept."""
    from shoal import exact
    from shoal.algorithms import run
    from shoal.policy import Policy
    from shoal.states import class_states

    try:
        rules = data.rules(Policy.from_config(section))
        rules.require_feasible()
        partition = run("mondrian", data, rules)
    except Cancelled:
        raise
    except ShoalError:
        return None
    space = data.space("ncp")
    states = class_states(data, partition, space)
    sizes = np.bincount(partition.labels, minlength=len(states))
    return exact.weighed(sizes, exact.along(space.losses(states), [1.0] * len(data.quasi))) / (data.n * len(data.quasi))


class _Crowd:
    """The classes that k alone makes: whose secret a promise protects that is not made yet."""

    def __init__(self, data: Microdata, k: int) -> None:
        from shoal.algorithms import run
        from shoal.policy import Policy

        self.data = data
        try:
            self.labels = run("mondrian", data, data.rules(Policy.from_config({"k": k}))).labels
        except Cancelled:
            raise
        except ShoalError:
            self.labels = np.zeros(data.n, dtype=np.int32)

    def unprotected(self, one: Promise) -> float | None:
        """The share of records in classes that break the promise when only k is promised."""
        from shoal.policy import Policy

        try:
            rules = self.data.rules(Policy((one.model,)))
        except ShoalError:
            return None
        classes = int(self.labels.max(initial=0)) + 1
        broken = rules.deficits(self.labels, classes) > 0
        sizes = np.bincount(self.labels, minlength=classes)
        return float(sizes[broken].sum()) / self.data.n


def _largest(data: Microdata, one: Promise) -> int | None:
    """The largest value of a whole-number parameter that can be kept; None where that is not known."""
    from shoal.policy import Policy

    if not one.whole:
        return None
    best = 1
    # Of people with several values each the question grows with every step, by branching.
    most = FEW if data.persons is not None else MANY
    for value in range(2, most + 1):
        try:
            if any(rule.infeasible() for rule in data.rules(Policy((one.moved(value).model,))).rules):
                return best
        except ShoalError:
            return best
        best = value
    return None


def _why(data: Microdata, one: Promise) -> str:
    """Why a promise that is made cannot be kept; empty where it can."""
    from shoal.policy import Policy

    try:
        reasons: Iterator[str | None] = (rule.infeasible() for rule in data.rules(Policy((one.model,))).rules)
        return next((f"{reason}." for reason in reasons if reason), "")
    except ShoalError as problem:
        return str(problem)
