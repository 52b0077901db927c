"""Records that stand in a file many times, each looked at once.

A masked table repeats itself: its classes publish one set of values each, so that millions of records are a few hundred thousand
different lines. What is true of a line is true of every line like it, so structure, values and classes are found for one of
each and dealt out. Which lines are alike is a question of bytes: numbers made of them (hashes) only propose, and every line is
compared with the one that it is said to equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

Counts = NDArray[np.uint32]

# Parts no line: a file that holds it is read another way.
_NEVER = "\x01"
# Lines are worth being told apart where at most this share of them is left.
_WORTH = 0.5
# … and hardly where this share of the first piece is.
_HOPELESS = 0.9
# Bytes that are looked at in one go, so that the lines of a large file need not lie in memory a second time.
_PIECE = 1 << 25
# Files of fewer bytes are read as quickly without.
_LARGE = 1 << 20


@dataclass(frozen=True, eq=False)
class Alike:
    """Which records are written alike, to the byte."""

    first: Counts
    """The first record of each kind, in their order."""
    which: Counts
    """The kind of each record."""

    def dealt(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A row for each record, from a `frame` with a row for each kind."""
        return frame.select(pl.all().gather(pl.Series(self.which)))


def alike_lines(data: bytes, skip: int) -> tuple[bytes, Alike] | None:
    """One line of each kind after the first `skip`, and which one each line is; None where that is not worth it or not sure.

    The lines are records only where no line ends inside quotes. That is so when every line has an even number of them: then
    as many are closed as were opened wherever a line ends.
    """
    if len(data) < _LARGE or b"\r" in data or _NEVER.encode() in data:
        return None
    begin = 0
    for _ in range(skip):
        begin = data.find(b"\n", begin) + 1
        if begin == 0:
            return None
    kinds: list[pl.Series] = []
    places: list[tuple[Counts, Counts]] = []  # of each piece the first of each kind, and the kind of each line
    lines = found = 0
    while begin < len(data):
        end = data.find(b"\n", begin + _PIECE) + 1 or len(data)
        piece = _lines(data[begin:end])
        inside = None if piece is None else _alike(piece)
        if piece is None or inside is None or (not kinds and len(inside[0]) > _HOPELESS * len(piece)):
            return None
        first, which = inside
        kinds.append(piece.gather(first))
        places.append((first + np.uint32(lines), which + np.uint32(found)))
        lines, found, begin = lines + len(piece), found + len(first), end
    among = _alike(pl.concat(kinds).rechunk()) if kinds else None  # one line may be in several pieces
    if among is None or len(among[0]) > _WORTH * lines:
        return None
    different = pl.concat(kinds).gather(among[0])
    quotes = different.str.count_matches('"', literal=True)
    if (quotes % 2 != 0).any() or (different.str.strip_chars().str.len_bytes() == 0).any():
        return None
    alike = Alike(
        np.concatenate([first for first, _ in places])[among[0]],
        among[1][np.concatenate([which for _, which in places])],
    )
    return str(different.str.join("\n").item()).encode() + b"\n", alike


def _lines(piece: bytes) -> pl.Series | None:
    """The lines of a piece of a file."""
    try:
        return pl.read_csv(
            piece,
            separator=_NEVER,
            quote_char=None,
            has_header=False,
            schema={"line": pl.String},
            empty_string_is_null=False,
        )["line"].rechunk()
    except pl.exceptions.PolarsError:
        return None


def _alike(lines: pl.Series) -> tuple[Counts, Counts] | None:
    """The first of each kind, and the kind of each; None where two different lines have one number."""
    numbered = pl.DataFrame({"row": pl.int_range(len(lines), dtype=pl.UInt32, eager=True), "hash": _proposed(lines)})
    same = numbered.select(pl.col("row").first().over("hash")).to_series()
    if not (lines == lines.gather(same)).all():
        return None
    begins = same.to_numpy() == np.arange(len(lines))
    which = (np.cumsum(begins, dtype=np.uint32) - np.uint32(1))[same.to_numpy()]
    return np.flatnonzero(begins).astype(np.uint32), which


def _proposed(lines: pl.Series) -> pl.Series:
    """A number a line; equal lines have equal numbers, and others nearly always different ones."""
    return lines.hash()
