"""Shoal turns a table about people into a table that can be published.

The public names are loaded when they are first used, so that `import shoal` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal import version as _version

if TYPE_CHECKING:
    from shoal.errors import (
        Cancelled,
        ConfigError,
        InfeasibleError,
        InputError,
        InternalError,
        ShoalError,
        UnsupportedError,
        VerificationError,
    )
    from shoal.evolve.store.store import Store
    from shoal.measures.masked import measure_masked
    from shoal.measures.releases import attack_releases
    from shoal.microdata import Microdata, read
    from shoal.models.alpha_k import AlphaK
    from shoal.models.extended_p_sensitive import ExtendedPSensitive
    from shoal.models.k_anonymity import KAnonymity
    from shoal.models.k_e import KE
    from shoal.models.kpqr import KPQR
    from shoal.models.l_diversity import LDiversity
    from shoal.models.p_alpha_sensitive import PAlphaSensitive
    from shoal.models.p_plus_sensitive import PPlusSensitive
    from shoal.models.p_sensitive import PSensitive
    from shoal.models.personalized import Personalized
    from shoal.models.t_closeness import TCloseness
    from shoal.partition import Partition
    from shoal.policy import Policy
    from shoal.progress import Progress
    from shoal.release import Release
    from shoal.road import anonymize
    from shoal.schema import Attribute, Schema
    from shoal.taxonomy import Taxonomy
    from shoal.verifier import audit, verify

__version__ = _version.VERSION

_HOME = {
    "AlphaK": "models.alpha_k",
    "Attribute": "schema",
    "Cancelled": "errors",
    "ConfigError": "errors",
    "ExtendedPSensitive": "models.extended_p_sensitive",
    "InfeasibleError": "errors",
    "InputError": "errors",
    "InternalError": "errors",
    "KAnonymity": "models.k_anonymity",
    "KE": "models.k_e",
    "KPQR": "models.kpqr",
    "LDiversity": "models.l_diversity",
    "Microdata": "microdata",
    "PAlphaSensitive": "models.p_alpha_sensitive",
    "PPlusSensitive": "models.p_plus_sensitive",
    "PSensitive": "models.p_sensitive",
    "Partition": "partition",
    "Personalized": "models.personalized",
    "Policy": "policy",
    "Progress": "progress",
    "Release": "release",
    "Schema": "schema",
    "ShoalError": "errors",
    "Store": "evolve.store.store",
    "TCloseness": "models.t_closeness",
    "Taxonomy": "taxonomy",
    "UnsupportedError": "errors",
    "VerificationError": "errors",
    "anonymize": "road",
    "attack_releases": "measures.releases",
    "audit": "verifier",
    "measure_masked": "measures.masked",
    "read": "microdata",
    "verify": "verifier",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'shoal' has no attribute '{name}'")
    return getattr(import_module(f"shoal.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])


__all__ = [
    "KE",
    "KPQR",
    "AlphaK",
    "Attribute",
    "Cancelled",
    "ConfigError",
    "ExtendedPSensitive",
    "InfeasibleError",
    "InputError",
    "InternalError",
    "KAnonymity",
    "LDiversity",
    "Microdata",
    "PAlphaSensitive",
    "PPlusSensitive",
    "PSensitive",
    "Partition",
    "Personalized",
    "Policy",
    "Progress",
    "Release",
    "Schema",
    "ShoalError",
    "Store",
    "TCloseness",
    "Taxonomy",
    "UnsupportedError",
    "VerificationError",
    "__version__",
    "anonymize",
    "attack_releases",
    "audit",
    "measure_masked",
    "read",
    "verify",
]
