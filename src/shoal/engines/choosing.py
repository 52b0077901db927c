"""Which engine a table gets: memory while it fits, DuckDB beyond. Estimated from the file, before anything of it is read.

>>> bytes_of("4GB"), bytes_of("512 MB"), said(4_000_000_000)
(4000000000, 512000000, '4.0 GB')
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from shoal.configuration import Configuration
from shoal.errors import ConfigError, UnsupportedError, require_word
from shoal.io.files import kind_of

Engines = Literal["auto", "memory", "duckdb", "spark"]
ENGINES = ("auto", "memory", "duckdb", "spark")

RECORD, CELL = 130, 40
"""Bytes that a record, and each of its cells, takes in memory at most: 1.6 GB for three million records of ten columns."""
TEXT, PACKED = 6, 30
"""Times its size on the disk that a text file takes in memory, and one that is packed."""
FITS = 0.8
"""The part of the free memory that may be taken."""
DEFAULT = 4_000_000_000
"""What DuckDB gets where nobody says how much."""
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)i?[bB]?\s*")
_STEPS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


@dataclass(frozen=True)
class Choice:
    """The engine, how much memory it may take, and why it is this one."""

    engine: str
    memory: int
    why: str


def bytes_of(text: str) -> int:
    """A size as people write it: 4GB, 512 MB."""
    found = _SIZE.fullmatch(text)
    size = int(float(found[1]) * _STEPS[found[2].lower()]) if found else 0
    if size < 256 * 10**6:
        raise ConfigError(f"memory = '{text}' is not allowed; write a size such as 4GB, and no less than 256MB.")
    return size


def said(size: int) -> str:
    """A size in words."""
    return f"{size / 1e9:.1f} GB"


def choose(engine: str, path: Path | None, memory: str | None = None) -> Choice:
    """The engine for a file; None is a table that does not come from one. `memory` is how much may be taken, as it is written."""
    require_word("engine", engine, ENGINES)
    limit = None if memory is None else bytes_of(memory)
    if engine != "auto":
        return Choice(engine, limit or DEFAULT, "as asked for")
    free = limit or int(FITS * free_memory())
    if path is None or not path.exists():
        return Choice("memory", free, "it comes from a database")
    needed = estimated(path)
    if needed <= free:
        return Choice("memory", free, f"it takes about {said(needed)} in memory, and {said(free)} are free for it")
    if kind_of(path, None)[0] not in ("parquet", "text") and not path.is_dir():
        return Choice(
            "memory",
            free,
            f"it may take {said(needed)} and only {said(free)} are free, but its format has to be read whole",
        )
    return Choice(
        "duckdb",
        limit or min(DEFAULT, free),
        f"it would take about {said(needed)} in memory, and {said(free)} are free",
    )


def estimated(path: Path) -> int:
    """Bytes that masking a file in memory takes, at most."""
    if path.is_dir():
        return sum(estimated(file) for file in sorted(path.rglob("*.parquet")))
    kind, _, packed = kind_of(path, None)
    if kind != "parquet":
        return path.stat().st_size * (PACKED if packed else TEXT)
    import pyarrow.parquet as pq

    try:
        found = pq.read_metadata(path)
    except Exception:
        return path.stat().st_size * TEXT  # whoever reads it says what is wrong with it
    return int(found.num_rows) * (RECORD + CELL * int(found.num_columns))


def free_memory() -> int:
    """Memory that is free, or can be made so."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ValueError, OSError, AttributeError):
        return DEFAULT


def source_of(configuration: Configuration, path: Path | None) -> Any:
    """The configured file or table of a database, or another file, as DuckDB reads it."""
    from shoal.engines.duck import database_table, parquet_files, text_file

    given = configuration.config.source
    if path is None and given.url is not None:
        return database_table(given.url, table=given.table, query=given.query)
    if path is None and given.path is None:
        raise ConfigError("[source] names no table; add path = or url =, or give a file on the command line.")
    path = path if path is not None else configuration.folder / str(given.path)
    if path.is_dir():
        return parquet_files(path)
    kind, extension, packed = kind_of(path, None)
    if kind == "parquet":
        return parquet_files(path)
    if kind != "text" or packed or given.header is not None or given.skip_rows or given.skip_last:
        raise UnsupportedError(
            f"'{path.name}': the engine \"duckdb\" reads Parquet, and delimited text whose first line names its columns; "
            'convert it, or use engine = "memory".'
        )
    delimiter = given.delimiter or ("\t" if extension == ".tsv" else None)
    if delimiter is None:
        raise UnsupportedError(
            f"'{path.name}' is not read whole here, so nobody can find out what separates its columns; say it under [source] "
            'with delimiter = ",".'
        )
    return text_file(path, delimiter, given.encoding)
