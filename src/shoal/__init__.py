"""Shoal turns a table about people into a table that can be published.

The public names are loaded when they are first used, so that `import shoal` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal import version as _version

if TYPE_CHECKING:
    from shoal.errors import (
        ConfigError,
        InfeasibleError,
        InputError,
        InternalError,
        ShoalError,
        UnsupportedError,
        VerificationError,
    )
    from shoal.microdata import Microdata, read
    from shoal.models.k_anonymity import KAnonymity
    from shoal.models.p_sensitive import PSensitive
    from shoal.partition import Partition
    from shoal.policy import Policy
    from shoal.release import Release
    from shoal.road import anonymize
    from shoal.schema import Attribute, Schema
    from shoal.taxonomy import Taxonomy

__version__ = _version.VERSION

_HOME = {
    "Attribute": "schema",
    "ConfigError": "errors",
    "InfeasibleError": "errors",
    "InputError": "errors",
    "InternalError": "errors",
    "KAnonymity": "models.k_anonymity",
    "Microdata": "microdata",
    "PSensitive": "models.p_sensitive",
    "Partition": "partition",
    "Policy": "policy",
    "Release": "release",
    "Schema": "schema",
    "ShoalError": "errors",
    "Taxonomy": "taxonomy",
    "UnsupportedError": "errors",
    "VerificationError": "errors",
    "anonymize": "road",
    "read": "microdata",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'shoal' has no attribute '{name}'")
    return getattr(import_module(f"shoal.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])


__all__ = [
    "Attribute",
    "ConfigError",
    "InfeasibleError",
    "InputError",
    "InternalError",
    "KAnonymity",
    "Microdata",
    "PSensitive",
    "Partition",
    "Policy",
    "Release",
    "Schema",
    "ShoalError",
    "Taxonomy",
    "UnsupportedError",
    "VerificationError",
    "__version__",
    "anonymize",
    "read",
]
