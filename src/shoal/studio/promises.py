"""The promises of a policy, one by one, as a page shows and changes them: made or not, with the parameter that can be moved.

>>> made = list(offered({"k": 5, "p_sensitive": {"p": 3}}, [("diagnosis", None)]))
>>> [(one.name, one.attribute, one.value) for one in made if one.on]
[('p_sensitive', 'diagnosis', 3)]
>>> policy_with({"k": 5, "p_sensitive": {"p": 3}}, made[0].moved(2), ["diagnosis", "drug"])
{'k': 5, 'p_sensitive': [{'p': 3, 'attribute': 'drug'}, {'p': 2, 'attribute': 'diagnosis'}]}
>>> policy_with({"k": 5, "p_sensitive": {"p": 3}}, made[0], ["diagnosis"], on=False)
{'k': 5}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shoal.models import MODELS, Model
from shoal.policy import Policy

KS = (2, 3, 5, 7, 10, 15, 20, 50)  # steps of the slider, each worth looking at
START: dict[str, dict[str, Any]] = {
    "p_sensitive": {"p": 3},
    "t_closeness": {"t": 0.3},
    "l_diversity": {"l": 2, "variant": "entropy"},
    "alpha_k": {"alpha": 0.5},
    "beta_likeness": {"beta": 2.0},
    "delta_disclosure": {"delta": 1.0},
}
"""What is offered for a secret column, and where its slider stands before anybody moves it."""
STEPS: dict[str, tuple[Any, ...]] = {
    "p_sensitive": (2, 3, 4, 5, 6),
    "t_closeness": (0.5, 0.4, 0.3, 0.2, 0.1),
    "l_diversity": (1.5, 2, 3, 4),
    "alpha_k": (0.9, 0.7, 0.5, 0.3),
    "beta_likeness": (4.0, 2.0, 1.0, 0.5),
    "delta_disclosure": (2.0, 1.5, 1.0, 0.5),
}
"""Values of the sliders, from the weakest promise to the strongest."""


@dataclass(frozen=True)
class Promise:
    """One model about one column, and whether the policy has it."""

    model: Model
    attribute: str
    on: bool
    range: float | None = None

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def value(self) -> Any:
        """Its main parameter."""
        return getattr(self.model, self.model.main)

    @property
    def whole(self) -> bool:
        """Whether the parameter counts something."""
        return isinstance(self.value, int) and self.name in ("p_sensitive", "extended_p_sensitive", "p_plus_sensitive")

    @property
    def key(self) -> str:
        """What fields of a form call it."""
        return f"{self.name}:{self.attribute}"

    def moved(self, value: Any) -> Promise:
        """The same with another value, which is checked."""
        return replace(self, model=replace(self.model, **{self.model.main: value}), on=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "key": self.key,
            "model": self.name,
            "attribute": self.attribute,
            "parameter": self.model.main,
            "value": self.value,
            "on": self.on,
            "whole": self.whole,
        }


def offered(section: Mapping[str, Any], secrets: Sequence[tuple[str, float | None]]) -> Iterator[Promise]:
    """Everything that a policy promises about its secret columns, and what else could be promised about each."""
    made = [model for model in Policy.from_config(section).models if model.per_attribute] if section else []
    for attribute, spread in secrets:
        own = [model for model in made if getattr(model, "attribute", None) in (None, attribute)]
        start = dict(START)
        if spread:
            start["k_e"] = {"e": _round(spread)}
        for name in dict.fromkeys([*(model.name for model in own), *start]):
            have = [model for model in own if model.name == name]
            for model in have:
                yield Promise(replace(model, attribute=attribute), attribute, True, spread)  # type: ignore[call-arg]
            if not have:
                given = {**start[name], "attribute": attribute}
                yield Promise(MODELS[name](**given), attribute, False, spread)


def values_of(one: Promise) -> tuple[Any, ...]:
    """The values of its slider, its own among them."""
    if one.name == "k_e" and one.range:
        steps: tuple[Any, ...] = tuple(_round(one.range * share) for share in (0.25, 0.5, 1.0, 2.0))
    else:
        steps = STEPS.get(one.name, ())
    return tuple(sorted({*steps, one.value}, reverse=one.model.smaller_is_stronger))


def policy_with(section: Mapping[str, Any], one: Promise, secrets: Sequence[str], *, on: bool = True) -> dict[str, Any]:
    """The policy with a promise made, moved or taken away; what spoke of all `secrets` then speaks of each by its name."""
    kept: list[Model] = []
    for model in Policy.from_config(section).models:
        named = [replace(model, attribute=name) for name in secrets] if _of_all(model) else [model]  # type: ignore[call-arg]
        kept += [each for each in named if (each.name, getattr(each, "attribute", None)) != (one.name, one.attribute)]
    models = (*kept, one.model) if on else tuple(kept)
    return Policy(models).to_config() if models else {}


def _of_all(model: Model) -> bool:
    return model.per_attribute and getattr(model, "attribute", None) is None


def _round(number: float) -> float:
    return float(f"{number:.2g}")
