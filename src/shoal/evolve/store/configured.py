"""A store as a `shoal.toml` describes it, from the command line and from the studio."""

from __future__ import annotations

from typing import Any

import polars as pl

from shoal.configuration import Configuration
from shoal.errors import UnsupportedError
from shoal.evolve.store.store import Store
from shoal.policy import Policy
from shoal.progress import Told


def create_configured(
    url: str,
    configuration: Configuration,
    frame: pl.DataFrame,
    *,
    key: str,
    guard: str,
    seed: int | None = None,
    progress: Told | None = None,
    **more: Any,
) -> Store:
    """Make a store of a table with the configured policy, method and release; `seed` takes the place of the configured one.

    `more` is what `Store.create` takes and no configuration says: `m` and `retention`.
    """
    settings = configuration.config
    if settings.release.recode != "generalize" or settings.method.suppress:
        raise UnsupportedError(
            'A store publishes generalized values of all records; set [release] recode = "generalize" and no suppress.'
        )
    method, publication = settings.method, settings.release
    # The words of the file and of the command line; the store's settings refuse those that a store does not know.
    words: dict[str, Any] = {
        "guard": guard,
        "missing": method.missing,
        "order": publication.order,
        "intervals": publication.intervals,
    }
    return Store.create(
        url,
        frame,
        Policy.from_config(settings.policy),
        key=key,
        schema=configuration,
        algorithm=method.algorithm,
        objective=method.objective,
        refine=method.refine,
        seed=method.seed if seed is None else seed,
        options=method.options,
        missing_texts=settings.source.missing,
        progress=progress,
        **words,
        **more,
    )
