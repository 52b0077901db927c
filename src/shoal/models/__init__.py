"""The privacy models, one a file; `MODELS` finds them all, so a new file is picked up by itself."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from shoal.models.base import Column, Compiled, CompiledKind, Model, Rule, View


def _discover() -> dict[str, type[Model]]:
    found: dict[str, type[Model]] = {}
    for module in sorted(info.name for info in iter_modules(__path__)):
        for thing in vars(import_module(f"{__name__}.{module}")).values():
            if isinstance(thing, type) and issubclass(thing, Model) and "name" in vars(thing):
                found[thing.name] = thing
    return dict(sorted(found.items()))


MODELS = _discover()

__all__ = ["MODELS", "Column", "Compiled", "CompiledKind", "Model", "Rule", "View"]
