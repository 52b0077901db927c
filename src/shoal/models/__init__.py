"""The privacy models, one a file; `MODELS` finds them all, so a new file is picked up by itself."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from shoal.models.base import Model, Rule
from shoal.models.column import Column, Sensitive, View
from shoal.models.forms import Form, Kind


def _discover() -> dict[str, type[Model]]:
    found: dict[str, type[Model]] = {}
    for module in sorted(info.name for info in iter_modules(__path__)):
        for thing in vars(import_module(f"{__name__}.{module}")).values():
            if isinstance(thing, type) and issubclass(thing, Model) and "name" in vars(thing):
                found[thing.name] = thing
    return dict(sorted(found.items()))


MODELS = _discover()
"""Every model by its name in configurations."""

__all__ = ["MODELS", "Column", "Form", "Kind", "Model", "Rule", "Sensitive", "View"]
