"""Text files of tables that nobody holds in memory: written some rows at a time, and read back before they count."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from shoal.errors import InputError, UnsupportedError
from shoal.io.files import kind_of, write_table_to
from shoal.io.frames import worded
from shoal.io.written import differing_column, read_written
from shoal.release import neutralised

FEWEST = 1_000
"""Rows of a piece at least: in fewer it may not show what separates the columns."""


def require_format(target: Path) -> str:
    """The kind of file; what has to be held whole to be written, or to be verified, is refused."""
    kind, _, packed = kind_of(target, None)
    if kind not in ("parquet", "text") or packed:
        raise UnsupportedError(
            f"'{target.name}': a table that is not masked in memory is written as .parquet, .csv or .tsv; convert it afterwards, "
            'or use engine = "memory".'
        )
    return kind


def write_slices(slices: Iterable[pl.DataFrame], file: Path, target: Path, safe_csv: bool) -> None:
    """Write a text file, which will be called `target`, piece by piece. Each is read back: every cell says what was judged."""
    with tempfile.TemporaryDirectory(prefix="shoal-text-") as folder, file.open("wb") as whole:
        part = Path(folder) / f"part{target.suffix}"
        for number, rows in enumerate(_large(slices)):
            shown = neutralised(worded(rows)) if safe_csv else worded(rows)
            write_table_to(shown, part, target)
            wrong = differing_column(shown, read_written(part, name=target).cells)
            if wrong is not None:
                raise InputError(
                    f"Column '{wrong}' does not read back from '{target}' as it was meant, and nothing was written; write "
                    ".parquet, or correct the column."
                )
            text = part.read_bytes()
            whole.write(text[_header(text) :] if number else text)


def _large(slices: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The same rows; few are put together with those before them."""
    waiting = pl.DataFrame()
    for rows in slices:
        if waiting.height >= FEWEST and rows.height >= FEWEST:
            yield waiting
            waiting = rows
        else:
            waiting = pl.concat([waiting, rows]) if waiting.height else rows
    yield waiting


def _header(text: bytes) -> int:
    """How many bytes the names of the columns take: up to the first end of a line that is not inside quotes."""
    end = text.index(b"\n") + 1
    while text.count(b'"', 0, end) % 2:
        end = text.index(b"\n", end) + 1
    return end
