"""Records that stand in a file many times, each looked at once.

A masked table repeats itself: its classes publish one set of values each, so that millions of records are a few hundred thousand
different lines. What is true of a line is true of every line like it, so structure, values and classes are found for one of
each and dealt out. Which lines are alike is a question of bytes: numbers made of them (hashes) only propose, and every line is
compared with the one that it is said to equal.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.io.frames import alone

Counts = NDArray[np.uint32]
_Found = TypeVar("_Found")

# Parts no line: a file that holds it is read another way.
_NEVER = "\x01"
# Lines are worth being told apart where at most this share of them is left.
_WORTH = 0.5
# … and hardly where this share of the first piece is.
_HOPELESS = 0.9
# Bytes that are looked at in one go, so that a large file need not lie in memory, and how many such pieces at a time.
_PIECE = 1 << 23
AHEAD = 2
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


def alike_lines(pieces: Iterator[bytes]) -> tuple[bytes, Alike] | None:
    """One line of each kind, and which one each line is; None where that is not worth it or not sure.

    `pieces` are whole lines each, and all of them are the records of a file. The lines are records only where no line ends
    inside quotes. That is so when every line has an even number of them: then as many are closed as were opened wherever a
    line ends.
    """
    kinds = _Kinds()
    with ThreadPoolExecutor(AHEAD) as pool:
        for found in in_order(pool, pieces, _looked_at):
            if found is None or not kinds.take(found):
                return None
    return kinds.told()


def in_pieces(file: BinaryIO) -> Iterator[bytes]:
    """What is left of a file, some whole lines at a time."""
    while piece := file.read(_PIECE):
        yield piece + file.readline()


def worth_it(size: int) -> bool:
    """Whether a file of so many bytes is large enough."""
    return size >= _LARGE


class _Piece(NamedTuple):
    """Some lines: how many, the first of each kind in its place, its text and its number, and the kind of each line."""

    lines: int
    first: Counts
    texts: pl.Series
    hashes: pl.Series
    which: Counts


def in_order(
    pool: ThreadPoolExecutor, pieces: Iterator[bytes], look: Callable[[bytes], _Found | None]
) -> Iterator[_Found | None]:
    """What comes of each piece, in their order; no more of them lie in memory than are worked on."""
    begun: deque[Future[_Found | None]] = deque()
    for piece in pieces:
        begun.append(pool.submit(look, piece))
        del piece
        if len(begun) == AHEAD:
            yield begun.popleft().result()
    while begun:
        yield begun.popleft().result()


def _looked_at(piece: bytes) -> _Piece | None:
    # polars takes a byte-order mark for one wherever it begins to read.
    if any(mark in piece for mark in (b"\r", b"\0", _NEVER.encode(), BOM_UTF8)):
        return None
    if not piece.isascii():
        try:
            piece.decode("utf-8")
        except UnicodeDecodeError:
            return None
    lines = _lines(piece)
    inside = None if lines is None else _alike(lines)
    if lines is None or inside is None:
        return None
    first, which, hashes = inside
    return _Piece(len(lines), first, lines.gather(first), hashes.gather(first), which)


class _Kinds:
    """The kinds of lines that were seen so far."""

    def __init__(self) -> None:
        self.texts = pl.Series("line", [], dtype=pl.String)
        self.known = pl.DataFrame(schema={"hash": pl.UInt64, "kind": pl.UInt32})
        self.lines = 0
        self.first: list[Counts] = []
        self.which: list[Counts] = []

    def take(self, piece: _Piece) -> bool:
        """Add a piece; False where it is not worth it, or where two different lines have one number."""
        count = len(self.texts)
        if not self.lines and len(piece.first) > _HOPELESS * piece.lines:
            return False
        asked = piece.hashes.to_frame("hash").join(self.known, on="hash", how="left", maintain_order="left")["kind"]
        seen = asked.is_not_null()
        if not (piece.texts.filter(seen) == self.texts.gather(asked.drop_nulls())).all():
            return False
        new = ~seen.to_numpy()
        numbers = (np.cumsum(new) + (count - 1)).astype(np.uint32)
        numbers[~new] = asked.drop_nulls().to_numpy()
        self.first.append(piece.first[new] + np.uint32(self.lines))
        self.which.append(numbers[piece.which])
        fresh = pl.DataFrame({"hash": piece.hashes, "kind": numbers}).filter(~seen)
        self.known = pl.concat([self.known, fresh]).rechunk()
        # The few that are new would keep the memory of all lines of their piece.
        self.texts = pl.concat([self.texts, alone(piece.texts.filter(~seen))]).rechunk()
        self.lines += piece.lines
        return True

    def told(self) -> tuple[bytes, Alike] | None:
        """One line of each kind as text, and which one each line is."""
        if not self.lines or len(self.texts) > _WORTH * self.lines:
            return None
        quotes = self.texts.str.count_matches('"', literal=True)
        if (quotes % 2 != 0).any() or (self.texts.str.strip_chars().str.len_bytes() == 0).any():
            return None
        alike = Alike(np.concatenate(self.first), np.concatenate(self.which))
        return str(self.texts.str.join("\n").item()).encode() + b"\n", alike


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


def _alike(lines: pl.Series) -> tuple[Counts, Counts, pl.Series] | None:
    """The first of each kind, the kind of each, and their numbers; None where two different lines have one number."""
    hashes = _proposed(lines)
    numbered = pl.DataFrame({"row": pl.int_range(len(lines), dtype=pl.UInt32, eager=True), "hash": hashes})
    same = numbered.select(pl.col("row").first().over("hash")).to_series()
    if not (lines == lines.gather(same)).all():
        return None
    begins = same.to_numpy() == np.arange(len(lines))
    which = (np.cumsum(begins, dtype=np.uint32) - np.uint32(1))[same.to_numpy()]
    return np.flatnonzero(begins).astype(np.uint32), which, hashes


def _proposed(lines: pl.Series) -> pl.Series:
    """A number a line; equal lines have equal numbers, and others nearly always different ones."""
    return lines.hash()
