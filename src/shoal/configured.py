"""What a `shoal.toml` asks for, done: its table read and encoded, and its road walked.

The command line and the studio both do it here, so that the same configuration gives the same bytes from either.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from shoal.configuration import Configuration
    from shoal.io.frames import Types
    from shoal.microdata import Microdata
    from shoal.progress import Progress
    from shoal.release import Release

MISSING = ["", "?"]
"""Texts that mean missing wherever nobody says otherwise."""


def load(configuration: Configuration, path: Path | None = None) -> Microdata:
    """The configured table, encoded."""
    from shoal.microdata import Microdata

    table, file, types = _read(configuration, path, lean=True)
    data = Microdata.of_table(table, configuration, missing=configuration.config.method.missing)
    return replace(data, frame=data.table, source=file, types=types)


def read_source(configuration: Configuration, path: Path | None = None) -> tuple[pl.DataFrame, Path | None]:
    """The configured table as it is, or that of another file; and the file, if it came from one."""
    return _read(configuration, path)[:2]


def _read(
    configuration: Configuration, path: Path | None, *, lean: bool = False
) -> tuple[pl.DataFrame, Path | None, Types]:
    """The table, `lean` or not, its file, and the types that its columns had there."""
    from shoal.errors import ConfigError
    from shoal.io.files import file_types, read_table
    from shoal.io.sql import read_sql_typed

    source = configuration.config.source
    if path is None and source.url is not None:
        table, types = read_sql_typed(source.url, table=source.table, query=source.query, missing=source.missing)
        return table, None, types
    if path is None and source.path is None:
        raise ConfigError("[source] names no table; add path = or url =, or give a file on the command line.")
    chosen = path if path is not None else configuration.folder / str(source.path)
    return read_table(chosen, **configuration.reading, lean=lean), chosen, file_types(chosen)


def release_of(
    configuration: Configuration,
    data: Microdata,
    progress: Progress,
    algorithm: str | None = None,
    seed: int | None = None,
    more: Mapping[str, Any] | None = None,
) -> Release:
    """Walk the road with the configured settings, and `more` options of the algorithm."""
    from shoal.algorithms.options import require_options
    from shoal.policy import Policy
    from shoal.road import anonymize as walk

    method, publication = configuration.config.method, configuration.config.release
    # Options that no algorithm has could be taken for parameters of the road.
    require_options(algorithm or method.algorithm, method.options)
    return walk(
        data,
        Policy.from_config(configuration.config.policy),
        algorithm=algorithm or method.algorithm,
        objective=method.objective,
        refine=method.refine,
        suppress=method.suppress,
        seed=method.seed if seed is None else seed,
        recode=publication.recode,
        intervals=publication.intervals,
        order=publication.order,
        suppressed=publication.suppressed,
        progress=progress,
        **{**method.options, **(more or {})},
    )


def as_written(file: Path, folder: Path, **reading: Any) -> tuple[pl.DataFrame, dict[str, Any]]:
    """A file as it is written, all of it text where it is a text file, and its `[source]` in a configuration in `folder`.

    `reading` is how to read it, where somebody says so; what stands around the table is found out.
    """
    reading, _ = found_around(file, reading)
    return read_as_text(file, reading), {"path": relative(file, folder), **reading, "missing": MISSING}


def read_as_text(file: Path, reading: Mapping[str, Any]) -> pl.DataFrame:
    """A file as it is written: how that is, is found out with everything else."""
    from shoal.io.files import read_table

    return read_table(file, missing=MISSING, as_text=True, **reading)


def found_around(file: Path, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """How to read a file, as keys of `[source]`, with what it says itself where nobody said it; and what to tell about that."""
    from shoal.io.titles import around

    if "header" in given:  # its first line is a record already
        return dict(given), []
    found = around(file, **{key: given[key] for key in ("delimiter", "encoding", "sheet") if key in given})
    keys: dict[str, Any] = {"delimiter": found.delimiter, "encoding": found.encoding, "sheet": found.sheet}
    keys |= {"skip_rows": found.above, "skip_last": found.below}
    notes = []
    if found.sheet is not None:
        notes.append(f"The workbook has {found.sheets} sheets; '{found.sheet}' has most rows. Another one: --sheet.")
    if found.below and "skip_last" not in given:
        one = found.below == 1
        lines = "1 line below the table looks" if one else f"{found.below} lines below the table look"
        notes.append(
            f"{lines} like totals or remarks and {'is' if one else 'are'} left out (skip_last); --skip-last 0 keeps "
            f"{'it' if one else 'them'}."
        )
    if found.encoding is not None:
        notes.append(
            f"The file is no UTF-8 and is read as {found.encoding}, a guess: if letters look wrong, say --encoding."
        )
    return {**{key: value for key, value in keys.items() if value}, **given}, notes


def relative(file: Path, folder: Path) -> str:
    """The file as seen from the configuration's folder."""
    try:
        return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return file.resolve().as_posix()
