"""The algorithms, one a file; each reads like its paper. `run` finds one by name and checks its options.

An algorithm is a function `(data, rules, *, objective, seed, progress, …options) -> Partition` in the module of its name.
It refuses what it cannot do before it starts working (`UnsupportedError`), and everything it returns satisfies the rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from typing import Any

from shoal.errors import ConfigError, did_you_mean, shown
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import Progress, Told
from shoal.space import Measure

Algorithm = Callable[..., Partition]

# Rooms that algorithms share; they are not algorithms themselves.
SHARED = ("blocks", "common", "features", "levels", "options", "weighting", "xmeans")
# What an algorithm is given besides its own options; `allowed`, the records it may suppress, if it suppresses any by itself.
COMMON = ("objective", "seed", "progress", "allowed")
# Those whose time grows faster than the table: they take the option `blocks` (docs/algorithms.md#blocks).
BLOCKED = ("enhanced_pk", "greedy_pk", "k_member", "kpqr", "mdav", "p_mdav", "spatial_distance")


def names() -> list[str]:
    """All algorithms there are."""
    return sorted(info.name for info in iter_modules(__path__) if info.name not in SHARED)


def find(name: str) -> Algorithm:
    """The algorithm of this name."""
    if name not in names():
        raise ConfigError(f"algorithm = '{name}': no such algorithm; {did_you_mean(name, names())}")
    algorithm: Algorithm = getattr(import_module(f"shoal.algorithms.{name}"), name)
    return algorithm


def suppresses(name: str) -> bool:
    """Whether the algorithm suppresses records by itself."""
    return "allowed" in signature(find(name)).parameters


def most_suppressed(share: float, n: int) -> int:
    """How many of n records a share of them is; a share that means a whole number means it whatever its last digit."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise ConfigError(
            f"suppress = {shown(share)} is not allowed; it is the largest share of records that may be suppressed, from 0 to 1."
        )
    return math.floor(share * n + 1e-9)


def run(
    name: str,
    data: Microdata,
    rules: Rules,
    *,
    objective: Measure = "ncp",
    seed: int = 0,
    progress: Told | None = None,
    suppress: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Partition:
    """Run one algorithm. Infeasible policies are refused before any work.

    `suppress` is the largest share of records that it may suppress, None for as many as it does by itself. Most suppress none
    (`suppresses`).
    """
    from shoal.algorithms.options import require_options

    algorithm = find(name)
    require_options(name, options or {})
    rules.require_feasible()
    told = Progress.of(progress)
    settings = {"objective": objective, "seed": seed, "progress": told, **(options or {})}
    allowed = None if suppress is None else most_suppressed(suppress, data.n)
    if suppresses(name):
        settings["allowed"] = allowed
    if name in BLOCKED:
        from shoal.algorithms.blocks import in_blocks

        found = in_blocks(name, data, rules, **settings)
    else:
        found = algorithm(data, rules, **settings)
    told(1.0)
    return found
