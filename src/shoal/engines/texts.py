"""Text files of tables that nobody holds in memory: written some rows at a time, and read back before they count."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from shoal.errors import InputError, UnsupportedError
from shoal.io.files import kind_of, write_table_to
from shoal.io.frames import worded
from shoal.io.parts import end_of_names
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
    with file.open("wb") as whole:
        for text in text_pieces(slices, target, safe_csv):
            whole.write(text)


def text_pieces(
    slices: Iterable[pl.DataFrame], target: str | Path, safe_csv: bool, *, check: bool = True
) -> Iterator[bytes]:
    """A text file that will be called `target`, a piece at a time; the same rows in the same slices give the same bytes.

    With `check` each piece is read back first, and refused where a cell does not say what was meant.
    """
    target = Path(target)
    with tempfile.TemporaryDirectory(prefix="shoal-text-") as folder:
        part = Path(folder) / f"part{target.suffix}"
        for number, rows in enumerate(_large(slices)):
            shown = neutralised(worded(rows)) if safe_csv else worded(rows)
            write_table_to(shown, part, target)
            wrong = differing_column(shown, read_written(part, name=target).cells) if check and rows.height else None
            if wrong is not None:
                raise InputError(
                    f"Column '{wrong}' does not read back from '{target}' as it was meant, and nothing was written; write "
                    ".parquet, or correct the column."
                )
            text = part.read_bytes()
            yield text[end_of_names(text) :] if number else text


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
