"""Shoal turns a table about people into a table that can be published.

The public names are loaded when they are first used, so that `import shoal` costs nothing. Models are found in their folder;
a built package carries a stub with all names, for editors (`setup.py`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal import version as _version

if TYPE_CHECKING:
    from shoal.comparison import compare as compare
    from shoal.errors import Cancelled as Cancelled
    from shoal.errors import ConfigError as ConfigError
    from shoal.errors import InfeasibleError as InfeasibleError
    from shoal.errors import InputError as InputError
    from shoal.errors import InternalError as InternalError
    from shoal.errors import ShoalError as ShoalError
    from shoal.errors import UnsupportedError as UnsupportedError
    from shoal.errors import VerificationError as VerificationError
    from shoal.evolve.store.store import Store as Store
    from shoal.front import attack as attack
    from shoal.front import measure as measure
    from shoal.front import verify as verify
    from shoal.frontier import explore as explore
    from shoal.measures.masked import measure_masked as measure_masked
    from shoal.measures.releases import attack_releases as attack_releases
    from shoal.microdata import Microdata as Microdata
    from shoal.microdata import read as read
    from shoal.partition import Partition as Partition
    from shoal.policy import Policy as Policy
    from shoal.progress import Progress as Progress
    from shoal.release import Release as Release
    from shoal.road import anonymize as anonymize
    from shoal.schema import Attribute as Attribute
    from shoal.schema import Schema as Schema
    from shoal.suggesting import profile as profile
    from shoal.taxonomy import Taxonomy as Taxonomy
    from shoal.verifier import audit as audit

__version__ = _version.VERSION

_HOME = {
    "Attribute": "schema",
    "Cancelled": "errors",
    "ConfigError": "errors",
    "InfeasibleError": "errors",
    "InputError": "errors",
    "InternalError": "errors",
    "Microdata": "microdata",
    "Partition": "partition",
    "Policy": "policy",
    "Progress": "progress",
    "Release": "release",
    "Schema": "schema",
    "ShoalError": "errors",
    "Store": "evolve.store.store",
    "Taxonomy": "taxonomy",
    "UnsupportedError": "errors",
    "VerificationError": "errors",
    "anonymize": "road",
    "attack": "front",
    "attack_releases": "measures.releases",
    "audit": "verifier",
    "compare": "comparison",
    "explore": "frontier",
    "measure": "front",
    "measure_masked": "measures.masked",
    "profile": "suggesting",
    "read": "microdata",
    "verify": "front",
}


def _models() -> dict[str, Any]:
    """The models by the names of their classes; whatever is a file in `src/shoal/models` is here."""
    from shoal.models import MODELS

    return {model.__name__: model for model in MODELS.values()}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(["__version__", *_HOME, *_models()])
    if name in _HOME:
        return getattr(import_module(f"shoal.{_HOME[name]}"), name)
    # Nothing but classes is looked for among the models, so that a wrong name costs no imports.
    if name[:1].isupper() and name in (models := _models()):
        return models[name]
    raise AttributeError(f"module 'shoal' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_models()})
