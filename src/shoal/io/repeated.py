"""Records that stand in a file many times, each looked at once.

A masked table repeats itself: its classes publish one set of values each, so that millions of records are a few hundred thousand
different lines. What is true of a line is true of every line like it, so structure, values and classes are found for one of
each and dealt out. Which lines are alike is a question of bytes: each is looked up in a list of those that were seen, and
compared with the one that it is said to equal.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

Counts = NDArray[np.uint32]
_Found = TypeVar("_Found")

# Parts no line: a file that holds it is read another way.
_NEVER = "\x01"
# Lines are worth being told apart where at most this share of them is left.
_WORTH = 0.5
# … and hardly where this share of the first pieces is.
_HOPELESS, _JUDGED = 0.9, 4
# Bytes that are looked at in one go, so that a large file need not lie in memory, and how many such pieces at a time. Larger ones
# would be given fresh pages each.
_PIECE = 1 << 21
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
    # One list for the whole file, whose texts polars compares: a line is numbered as another one only where it is the same.
    kind = pl.Categorical(pl.Categories.random("shoal", pl.UInt32))
    found: list[pl.Series] = []
    with ThreadPoolExecutor(AHEAD) as pool:
        for lines in in_order(pool, pieces, lambda piece: _numbered(piece, kind)):
            if lines is None:
                return None
            found.append(lines)
            if len(found) == _JUDGED and _left(pl.concat(found)) > _HOPELESS:
                return None
    return _told(pl.concat(found)) if found else None


def in_pieces(file: BinaryIO) -> Iterator[bytes]:
    """What is left of a file, some whole lines at a time."""
    while piece := file.read(_PIECE):
        yield piece + file.readline()


def worth_it(size: int) -> bool:
    """Whether a file of so many bytes is large enough."""
    return size >= _LARGE


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


def _numbered(piece: bytes, kind: pl.Categorical) -> pl.Series | None:
    """The lines of a piece of a file, as numbers into the list of all lines that were seen."""
    if any(mark in piece for mark in (b"\r", b"\0", _NEVER.encode())):
        return None
    if not piece.isascii():
        # polars takes a byte-order mark for one wherever it begins to read.
        if BOM_UTF8 in piece:
            return None
        try:
            piece.decode("utf-8")
        except UnicodeDecodeError:
            return None
    try:
        lines = pl.read_csv(piece, separator=_NEVER, quote_char=None, has_header=False, schema={"line": kind})["line"]
    except pl.exceptions.PolarsError:
        return None
    return None if lines.null_count() else lines  # an empty line has no number


def _left(lines: pl.Series) -> float:
    """The share of the lines that is left where one of each kind is."""
    return lines.n_unique() / len(lines)


def _told(lines: pl.Series) -> tuple[bytes, Alike] | None:
    """One line of each kind as text, in the order of the file, and which one each line is."""
    numbers = lines.to_physical().to_numpy()
    first = np.full(int(numbers.max()) + 1, len(numbers), dtype=np.uint32)
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1, dtype=np.uint32)
    order = np.argsort(first, kind="stable")
    if len(order) > _WORTH * len(numbers):
        return None
    place = np.empty(len(order), dtype=np.uint32)
    place[order] = np.arange(len(order), dtype=np.uint32)
    alike = Alike(first[order], place[numbers])
    texts = lines.gather(alike.first).cast(pl.String)
    quotes = texts.str.count_matches('"', literal=True)
    if (quotes % 2 != 0).any() or (texts.str.strip_chars().str.len_bytes() == 0).any():
        return None
    return str(texts.str.join("\n").item()).encode() + b"\n", alike
