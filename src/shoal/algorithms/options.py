"""The options an algorithm takes: its keyword parameters, checked against their own annotations before it runs.

So no algorithm looks after words and kinds of numbers itself; what a number may be (a share, a record of the table) it does.

>>> require_options("mondrian", {"mode": "strikt"})
Traceback (most recent call last):
    ...
shoal.errors.ConfigError: mondrian: mode = 'strikt' is not allowed; did you mean 'strict'?
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import numpy as np

from shoal.algorithms import BLOCKED, COMMON, find
from shoal.errors import ConfigError, did_you_mean, require_word, shown

# Names that options had before, and those they have now.
RENAMED = {("top_down", "order"): "visit"}
# Options that are gone, and what to write instead.
GONE = {("three_layer", "split"): 'reading = "inside"'}
# Settings of every method, which somebody may take for options.
SETTINGS = ("objective", "refine", "seed", "suppress")


def options_of(name: str) -> dict[str, Any]:
    """The options of an algorithm besides the common ones, each with its annotation."""
    parameters = inspect.signature(find(name), eval_str=True).parameters.values()
    own = {p.name: p.annotation for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in COMMON}
    return {**own, "blocks": int | None} if name in BLOCKED else own


def require_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that the algorithm does not have, and values that are none of theirs."""
    allowed = options_of(name)
    for key, value in options.items():
        now = RENAMED.get((name, key))
        if now is not None:
            raise ConfigError(f"{name}: the option '{key}' is called '{now}' now; write {now} = {shown(value)}.")
        if (name, key) in GONE:
            raise ConfigError(f"{name}: there is no option '{key}' any more; write {GONE[name, key]}.")
        if key in SETTINGS:
            raise ConfigError(f"{name}: '{key}' is no option of an algorithm; write it beside it, as [method] {key}.")
        if key not in allowed:
            hint = did_you_mean(key, allowed) if allowed else "it takes none."
            raise ConfigError(f"{name}: no option '{key}'; {hint}")
        _require_kind(f"{name}: {key}", value, allowed[key])


def _require_kind(what: str, value: Any, annotation: Any) -> None:
    kinds = (annotation,) if get_origin(annotation) is Literal else get_args(annotation) or (annotation,)
    if any(_is_a(value, kind) for kind in kinds):
        return
    words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    if words:
        require_word(what, value, words)
    names = [NAMES.get(kind, "") for kind in kinds if kind is not NoneType]
    raise ConfigError(f"{what} = {shown(value)} is not allowed; it must be {' or '.join(names)}.")


NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def _is_a(value: Any, kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if kind in (int, float):
        number = isinstance(value, int | np.integer if kind is int else int | float | np.number)
        return number and not isinstance(value, bool) and math.isfinite(value)
    # What only Python can give (arrays, preparations) is Python's business.
    return isinstance(value, kind) if kind in (bool, str, NoneType) else True
