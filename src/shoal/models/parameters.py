"""What a model's parameters may be, declared once: the check, the message and the JSON Schema come from here.

A parameter is a field of the model with its kind beside its type:

    p: Annotated[int, Whole("distinct values in every class", 1)]

>>> Share("largest share of a value").check("alpha_k", "alpha", 1.5)
Traceback (most recent call last):
...
shoal.errors.ConfigError: alpha_k: alpha = 1.5 is not allowed; it must be a number above 0 and at most 1.
>>> Share("largest share of a value").schema()
{'type': 'number', 'exclusiveMinimum': 0, 'maximum': 1, 'description': 'largest share of a value'}
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, get_type_hints

import numpy as np

from shoal.errors import ConfigError, did_you_mean, shown


@dataclass(frozen=True)
class Parameter(ABC):
    """One kind of parameter; `says` is what it means, in a few words."""

    says: str

    @abstractmethod
    def check(self, model: str, name: str, value: Any) -> None:
        """Raise when the value is not allowed."""

    @abstractmethod
    def kind(self) -> dict[str, Any]:
        """What JSON Schema says of its values."""

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the parameter."""
        return {**self.kind(), "description": self.says}


@dataclass(frozen=True)
class Number(Parameter):
    """A number from `low` to `high`; with `above` the lowest value itself is out."""

    low: float
    high: float | None = None
    above: bool = False
    whole: bool = False

    def check(self, model: str, name: str, value: Any) -> None:
        """One message shape for a number out of range."""
        require(model, name, value, self.low, self.high, whole=self.whole, above=self.above)

    def kind(self) -> dict[str, Any]:
        """Its type and limits."""
        limits = {"exclusiveMinimum" if self.above else "minimum": self.low, "maximum": self.high}
        kind = {"type": "integer" if self.whole else "number"}
        return {**kind, **{key: limit for key, limit in limits.items() if limit is not None}}


@dataclass(frozen=True)
class Whole(Number):
    """A whole number."""

    whole: bool = True


@dataclass(frozen=True)
class Share(Number):
    """A share above 0 and at most 1."""

    low: float = 0
    high: float | None = 1
    above: bool = True


@dataclass(frozen=True)
class Word(Parameter):
    """One of a few words."""

    allowed: tuple[str, ...]

    def check(self, model: str, name: str, value: Any) -> None:
        """One message shape for a word that is none of them."""
        require_word(model, name, value, self.allowed)

    def kind(self) -> dict[str, Any]:
        """The words."""
        return {"enum": list(self.allowed)}


@dataclass(frozen=True)
class Name(Parameter):
    """The name of a column."""

    def check(self, model: str, name: str, value: Any) -> None:
        """A text that is not empty."""
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{model}: {name} = {shown(value)} is not allowed; it must be the name of a column.")

    def kind(self) -> dict[str, Any]:
        """A text."""
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True)
class Texts(Parameter):
    """A list of texts, one at least."""

    otherwise: str

    def check(self, model: str, name: str, value: Any) -> None:
        """Not one text by itself: that would be a list of its letters."""
        if isinstance(value, str) or not isinstance(value, Sequence) or not len(value):
            raise ConfigError(f"{model}: {name} = {shown(value)} is not allowed; it must be {self.otherwise}.")

    def kind(self) -> dict[str, Any]:
        """An array."""
        return {"type": "array", "items": {"type": "string"}, "minItems": 1}


@dataclass(frozen=True)
class OneOf(Parameter):
    """Values of several types, which the model itself checks."""

    kinds: tuple[Mapping[str, Any], ...]

    def check(self, model: str, name: str, value: Any) -> None:
        """The model's own task."""

    def kind(self) -> dict[str, Any]:
        """All of them."""
        return {"anyOf": [dict(kind) for kind in self.kinds]}


@cache
def declared(model: type) -> dict[str, Parameter]:
    """What the parameters of a model may be, by name, in the order of its fields."""
    hints = get_type_hints(model, include_extras=True)
    found: dict[str, Parameter] = {}
    for field in fields(model):
        for kind in getattr(hints[field.name], "__metadata__", ()):
            if isinstance(kind, Parameter):
                found[field.name] = kind
    return found


def require(
    model: str,
    parameter: str,
    value: Any,
    low: float,
    high: float | None = None,
    *,
    whole: bool = False,
    above: bool = False,
) -> None:
    """One message shape for a parameter out of range; with `above` the lowest value itself is out."""
    if above:
        allowed = f"above {low:g}" + ("" if high is None else f" and at most {high:g}")
    else:
        allowed = f"at least {low:g}" if high is None else f"between {low:g} and {high:g}"
    kind = "a whole number" if whole else "a number"
    number = isinstance(value, (int, np.integer)) if whole else isinstance(value, (int, float, np.number))
    number = number and not isinstance(value, bool) and math.isfinite(value)
    if not number or not (low < value if above else low <= value) or (high is not None and value > high):
        raise ConfigError(f"{model}: {parameter} = {shown(value)} is not allowed; it must be {kind} {allowed}.")


def require_word(model: str, parameter: str, value: Any, allowed: Sequence[str]) -> None:
    """One message shape for a parameter that is one of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise ConfigError(f"{model}: {parameter} = {shown(value)} is not allowed; {did_you_mean(value, allowed)}")
