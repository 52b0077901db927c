"""*Policy*: what do you promise?"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from shoal.errors import InputError
from shoal.studio.project import edited
from shoal.studio.promises import Promise, offered, policy_with
from shoal.studio.studio import Action, Form, Studio


def view(studio: Studio, query: Mapping[str, str]) -> dict[str, Any]:
    """Every promise, made or not, with what it would cost here and whom it protects."""
    project = studio.project
    told: dict[str, Any] = {"begun": project.begun}
    if not project.begun:
        return told
    meant = studio.answer("meant", "policy:meant")
    config = project.configuration.config
    as_is = [name for name, one in config.attributes.items() if one.role == "other"]
    return told | {
        "source": project.source,
        "weighing": meant.to_dict(),
        "meant": meant.shown,
        "as_it_is": as_is,
        "columns": {
            role: [n for n, one in config.attributes.items() if one.role == role] for role in ("quasi", "sensitive")
        },
    }


def _promise(studio: Studio, key: str) -> tuple[Promise, list[str]]:
    """The promise that a field speaks of, and the names of all secret columns."""
    model, _, attribute = key.partition(":")
    config = studio.project.configuration.config
    secrets = [name for name, one in config.attributes.items() if one.role == "sensitive"]
    meant = studio.answer("meant", "policy:meant", wait=0.1).shown or {}
    ranges = {one["attribute"]: float(one["value"]) for one in meant.get("promises", []) if one["model"] == "k_e"}
    known = offered(config.policy, [(name, ranges.get(name)) for name in secrets])
    found = next((one for one in known if (one.name, one.attribute) == (model, attribute)), None)
    if found is None:
        raise InputError("There is no such promise about this table; open the page again.")
    return found, secrets


def k(studio: Studio, form: Form) -> None:
    """Another k: the step of the slider, or a number."""
    number = int(float(_value(form, "k")))
    if number < 1:
        raise InputError("k is the number of records in a class, 1 at least.")
    _write(studio, {**studio.project.configuration.config.policy, "k": number})


def promise(studio: Studio, form: Form) -> None:
    """Make a promise, or another value of it."""
    one, secrets = _promise(studio, form("promise"))
    value: Any = float(_value(form, "value"))
    if one.whole or (value == int(value) and isinstance(one.value, int)):
        value = int(value)
    _write(studio, policy_with(studio.project.configuration.config.policy, one.moved(value), secrets))


def drop(studio: Studio, form: Form) -> None:
    """Take a promise back."""
    one, secrets = _promise(studio, form("promise"))
    _write(studio, policy_with(studio.project.configuration.config.policy, one, secrets, on=False))


def _value(form: Form, name: str) -> str:
    """What was moved, by what the page showed (`was`): the field if it says something else, or the slider's step (`at`).

    The same form sent twice, as a key and a change may do, means the same the second time.
    """
    typed, was, at = (form(field, "").strip().replace(",", ".") for field in (name, "was", "at"))
    listed = form("steps", "").split(" ")
    slid = listed[int(at)] if at.isdigit() and int(at) < len(listed) else ""
    chosen = slid if slid and (not typed or _same(typed, was)) else typed
    try:
        if not isfinite(float(chosen)):
            raise ValueError
    except ValueError:
        raise InputError(f"{name} has to be a number.") from None
    return chosen


def _same(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return False


def _write(studio: Studio, policy: Mapping[str, Any]) -> None:
    project = studio.project
    now = project.configuration.config.policy
    changes: dict[Any, Any] = {("policy", name): None for name in now if name not in policy}
    changes |= {("policy", name): value for name, value in policy.items() if now.get(name) != value}
    project.write(edited(project.text, changes))


def undo(studio: Studio, form: Form) -> None:
    """Take the last change back."""
    studio.project.undo()


ACTIONS: dict[str, Action] = {"k": k, "promise": promise, "drop": drop, "undo": undo}
