"""What the studio's processes do (`worker`), a file for each page that asks for it.

A task is a function `(folder, progress, **arguments) -> plain values for JSON`; it raises `ShoalError` with the sentence that the
page shows. `folder` is the project's. Arguments that say what the answer depends on (`stamp`, `config`) need not be used.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from shoal.configuration import Configuration
    from shoal.microdata import Microdata
    from shoal.suggesting import Profile


def configured(folder: Path) -> tuple[Configuration, Microdata]:
    """The project's configuration and its table, encoded; kept at hand until one of them changes."""
    from shoal.studio.project import Project

    asked = Project(folder).asked
    return _configured(folder, str(asked))


def suggested(folder: Path) -> tuple[pl.DataFrame, Profile]:
    """The project's table as it is written, and what is suggested for it; kept at hand until the table changes."""
    from shoal.studio.project import Project

    project = Project(folder)
    source = project.configuration.config.source
    return _suggested(folder, str([project.stamp, source.model_dump(exclude={"missing"})]))


@lru_cache(maxsize=1)
def _configured(folder: Path, _: str) -> tuple[Configuration, Microdata]:
    from shoal.configured import load
    from shoal.studio.project import Project

    configuration = Project(folder).configuration
    return configuration, load(configuration)


@lru_cache(maxsize=1)
def _suggested(folder: Path, _: str) -> tuple[pl.DataFrame, Profile]:
    from shoal.configured import as_written
    from shoal.io.sql import read_sql
    from shoal.studio.project import Project
    from shoal.suggesting import profile

    source = Project(folder).configuration.config.source
    if source.path is None:
        frame = read_sql(str(source.url), table=source.table, query=source.query)
    else:
        given: dict[str, Any] = {key: value for key, value in source.reading.items() if key != "missing"}
        frame, _given = as_written(folder / source.path, folder, **given)
    return frame, profile(frame)
