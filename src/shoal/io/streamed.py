"""Large text files in, some of their lines at a time, so that neither their bytes nor their texts ever lie in memory as a whole.

Columns whose texts repeat themselves come as numbers into the list of their texts (`shoal.io.lean`), and what is asked of texts
(is one missing, is it a number?) is asked once of each. Nothing is judged here that is out of the ordinary: the file is then read
as a whole by `shoal.io.delimited`, which understands it, or says what is wrong and where.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.errors import InputError
from shoal.io.delimited import SPACES, offset_of_line, shape_of, structure_of
from shoal.io.encodings import check_is_text
from shoal.io.frames import apply_missing, normalise
from shoal.io.lean import of_places, repeats
from shoal.io.numbers import AsText, infer_numbers
from shoal.io.repeated import AHEAD, in_order, in_pieces, worth_it

_HEAD = 1 << 20  # bytes that say how a file is written, and which of its columns repeat themselves


@dataclass(frozen=True)
class Wanted:
    """What is asked of a text file, as `read_table` is asked for it."""

    delimiter: str | None
    missing: Sequence[str]
    header: Sequence[str] | None
    columns: Sequence[str] | None
    skip_rows: int
    as_text: AsText


def read_in_pieces(path: Path, wanted: Wanted) -> pl.DataFrame | None:
    """The table, its columns of few texts lean; None for a file that is small, or has to be looked at as a whole."""
    try:
        if not path.is_file() or not worth_it(path.stat().st_size):
            return None
        return _read(path, wanted)
    except (OSError, InputError, UnicodeDecodeError, pl.exceptions.PolarsError):
        return None  # whoever looks at all of it says what is wrong


class _Shape(NamedTuple):
    """How the records of a file are written, and which types its columns are read with."""

    delimiter: str
    types: dict[str, Any]
    columns: list[str]


class _Piece(NamedTuple):
    """Some records as they are written, and whether spaces stand around their values."""

    cells: pl.DataFrame
    padded: bool


def _read(path: Path, wanted: Wanted) -> pl.DataFrame | None:
    with path.open("rb") as file:
        head = file.read(_HEAD)
        check_is_text(head, f"'{path}'")
        if head[:1] in (b"\xef", b"\xfe", b"\xff") or b"\0" in head:
            return None  # a byte-order mark, or no text in UTF-8
        delimiter, names, skip = shape_of(head, wanted.delimiter, wanted.header, f"'{path}'", wanted.skip_rows)
        begin, end = offset_of_line(head, skip), head.rfind(b"\n") + 1
        head[:end].decode()
        columns = names if wanted.columns is None else list(wanted.columns)
        if len(names) == 1 or begin >= end or not set(columns) <= set(names):
            return None
        shape = _Shape(delimiter, _types(head[begin:end], delimiter, names), columns)
        file.seek(begin)
        found: list[_Piece] = []
        with ThreadPoolExecutor(AHEAD) as pool:
            for piece in in_order(pool, in_pieces(file), lambda lines: _looked_at(lines, shape)):
                if piece is None:
                    return None
                found.append(piece)
    padded = any(piece.padded for piece in found)
    cells = pl.concat([piece.cells for piece in found])
    del found
    return None if cells.is_empty() else _table(cells, padded, wanted)


def _types(lines: bytes, delimiter: str, names: list[str]) -> dict[str, Any]:
    """Columns that repeat themselves in the first records are read as numbers into a list, which each has for itself."""
    head = _cells(lines, delimiter, dict.fromkeys(names, pl.String))
    types: dict[str, Any] = {}
    for name in names:
        few = repeats(head[name])
        # More texts than such numbers can tell apart are an error of polars, and the file is read as a whole.
        types[name] = pl.Categorical(pl.Categories.random("shoal", pl.UInt16)) if few else pl.String
    return types


def _cells(lines: bytes, delimiter: str, types: dict[str, Any]) -> pl.DataFrame:
    return pl.read_csv(lines, separator=delimiter, has_header=False, schema=types, empty_string_is_null=False)


def _looked_at(lines: bytes, shape: _Shape) -> _Piece | None:
    if lines.endswith((b"\n\n", b"\n\r\n")):
        lines = lines.rstrip(b"\r\n")
    # polars takes a byte-order mark for one wherever it begins to read.
    if not lines or b"\0" in lines or lines.startswith(BOM_UTF8):
        return None
    if b"\r" in lines and lines.count(b"\r") != lines.count(b"\r\n"):
        return None
    if not lines.isascii():
        lines.decode()
    even, padded = structure_of(lines, 0, shape.delimiter, len(shape.types), padding=True)
    if not even:
        return None
    return _Piece(_cells(lines, shape.delimiter, shape.types).select(shape.columns), padded)


def _table(cells: pl.DataFrame, padded: bool, wanted: Wanted) -> pl.DataFrame:
    """What the cells are read as."""

    def place(row: int) -> str:
        raise InputError("Where a value stands is told by whoever reads the whole file.")

    as_text = cells.columns if wanted.as_text is True else wanted.as_text
    columns = cells.get_columns()
    del cells

    def read(at: int) -> None:
        column = columns[at]
        if column.dtype == pl.String:
            text = column.rechunk().str.strip_chars(SPACES) if padded else column.rechunk()
            plain = infer_numbers(apply_missing(text.to_frame(), wanted.missing), place, as_text)
            columns[at] = normalise(plain).to_series()
        else:
            columns[at] = _lean(column, padded, wanted.missing, place, column.name in as_text)

    # A few columns after the other: two copies of these lie in memory at a time, not of all.
    with ThreadPoolExecutor(AHEAD) as pool:
        list(pool.map(read, range(len(columns))))
    return pl.DataFrame(columns)


def _lean(column: pl.Series, padded: bool, missing: Sequence[str], place: Any, as_text: bool) -> pl.Series:
    """A column of few texts: as numbers where all of them are numbers, else lean."""
    distinct = column.unique()
    # An empty cell has no number; it is the empty text.
    texts = distinct.cast(pl.String).fill_null("")
    if padded:
        texts = texts.str.strip_chars(SPACES)
    texts = apply_missing(texts.to_frame(), missing).to_series()
    known = texts.drop_nulls().unique().sort()
    if known.is_empty():
        return pl.Series(column.name, [None], dtype=pl.String).new_from_index(0, len(column))
    numbered = distinct.to_physical().cast(pl.UInt32)
    beyond = 1 + int(numbered.fill_null(0).to_numpy().max())
    where = np.zeros(beyond + 1, dtype=np.uint32)
    where[numbered.fill_null(beyond).to_numpy()] = np.arange(len(distinct), dtype=np.uint32)
    place_of = texts.cast(pl.Enum(known)).to_physical().gather(where)
    places = place_of.gather(column.to_physical().cast(pl.UInt32).fill_null(beyond).rechunk())
    read = known if as_text else infer_numbers(known.to_frame(), place).to_series()
    if read.dtype == pl.String:
        return of_places(column.name, known, places)
    return normalise(read.gather(places).alias(column.name).to_frame()).to_series()
