"""Digests of rows that come out the same on every machine, whatever rows lie beside them.

A value is digested once however many rows have it, and a row from its values' digests, so that most rows cost no digest of
their own.
"""

from __future__ import annotations

from hashlib import blake2b, sha256

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.engines.looking_up import found_at, one_zero

Words = NDArray[np.uint64]

WIDTH = 16
"""Bytes of a value's digest."""
WORDS = 4
"""Numbers of 64 bits in which the digests of rows are added up."""
# Of splitmix64 (Steele, Lea, Flood 2014), which spreads every bit over all others.
_SPREAD = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def row_keys(table: pl.DataFrame, seed: int) -> tuple[Words, Words]:
    """Two numbers a row, drawn from what it shows and the seed: an order that tells nothing.

    >>> table = pl.DataFrame({"age": [30, 40, 30], "sex": ["f", None, "f"]})
    >>> first, second = row_keys(table, 7)
    >>> bool(first[0] == first[2] != first[1]), bool((first == row_keys(table, 8)[0]).any())
    (True, False)
    """
    keys = np.zeros((2, table.height), dtype=np.uint64)
    for place, series in enumerate(table):
        digests, rows = _digests(series, f"{seed} {place}")
        for key, words in zip(keys, digests.view("<u8").T, strict=True):
            key ^= words[rows]
            for shift, factor in zip((30, 27), _SPREAD, strict=True):
                key ^= key >> np.uint64(shift)
                key *= factor
            key ^= key >> np.uint64(31)
    return keys[0], keys[1]


def row_sums(table: pl.DataFrame) -> Words:
    """The SHA-256 digests of all rows, added up: tables in any order and any pieces add up to the same.

    >>> table = pl.DataFrame({"age": [30, 40, 30], "sex": ["f", None, "f"]})
    >>> bool((row_sums(table) == row_sums(table[1:]) + row_sums(table[:1])).all())
    True
    """
    cells = np.empty((table.height, table.width * WIDTH), dtype=np.uint8)
    for place, series in enumerate(table):
        digests, rows = _digests(series, str(place))
        cells[:, place * WIDTH : (place + 1) * WIDTH] = digests[rows]
    width, data = cells.shape[1], memoryview(cells.tobytes())
    each = b"".join([sha256(data[i : i + width]).digest() for i in range(0, len(data), width)])
    return added(each)


def added(sums: bytes) -> Words:
    """Sums of digests, as bytes one after the other, as one."""
    return np.asarray(np.frombuffer(sums, dtype="<u8").reshape(-1, WORDS).sum(axis=0, dtype=np.uint64))


def _digests(series: pl.Series, about: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """A digest for each distinct value of a column, and which of them each row has."""
    if series.dtype.is_nested():
        values, rows = series.to_list(), np.arange(len(series))
    else:
        table = one_zero(series.to_frame())
        known = table.unique()
        values, rows = known.to_series().to_list(), found_at(table, known).to_numpy().astype(np.int64)
    key = about.encode()
    each = b"".join([blake2b(repr(value).encode(), digest_size=WIDTH, key=key).digest() for value in values])
    return np.frombuffer(each, dtype=np.uint8).reshape(-1, WIDTH), rows
