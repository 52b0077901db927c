"""The order of a published table: drawn from what is published and the seed alone, so that it carries nothing.

An order that depends on the original, even through a digest of it, lets an intruder test a guess of the whole table: shuffle the
guess and compare. Here the published rows are sorted by their own content first, and the seed then says how they are shuffled.
Whoever has the masked table and the seed can do both again; there is nothing else in it. Rows with the same content are the same
to every reader, whichever came first.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.io.lean import is_lean, lean, texts_of

Ints = NDArray[np.int64]

# Ranks are joined into one whole number as long as it fits.
ROOM = 2**62


def shuffled(key: Ints, seed: int) -> Ints:
    """The places of rows in the order in which they are published; `key` ranks their content (`content_key`)."""
    return np.random.default_rng(seed).permutation(_sorted(key))


def _sorted(key: Ints) -> NDArray[np.uint32]:
    """The places of the smallest numbers first, and of equal ones as they come.

    Sixteen bits at a time, which NumPy sorts by counting: several times faster than comparing whole numbers.
    """
    order, shifted, left = np.arange(len(key), dtype=np.uint32), key, int(key.max(initial=0))
    while True:
        order = order[np.argsort(shifted.astype(np.uint16)[order], kind="stable")]
        left >>= 16
        if not left:
            return order
        shifted = shifted >> 16


def content_key(columns: list[tuple[Ints, int]]) -> Ints:
    """One rank a row from the ranks of its columns, each with how many ranks there are; equal content, equal rank.

    >>> content_key([(np.array([1, 0, 1]), 2), (np.array([0, 4, 0]), 5)]).tolist()
    [5, 4, 5]
    """
    key, span = columns[0]
    key = key.astype(np.int64)
    for ranks, count in columns[1:]:
        if span > ROOM // max(1, count):
            kept, key = np.unique(key, return_inverse=True)
            key, span = key.astype(np.int64), len(kept)
        key *= count
        key += ranks
        span *= count
    return key


def ranks(series: pl.Series) -> tuple[Ints, int]:
    """The rank of each value in the order of values, missing first, and how many ranks there are."""
    if series.dtype == pl.Boolean:
        series = series.cast(pl.Int8)
    if series.dtype == pl.String or is_lean(series):
        # A number for each text is found by looking it up, which is much faster than sorting all of them.
        known = lean(series)
        places = known.to_physical().cast(pl.Int64)
        return places.fill_null(-1).to_numpy() + 1, len(texts_of(known)) + 1
    dense = series.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
    return dense, int(dense.max(initial=0)) + 1


def class_ranks(published: pl.DataFrame) -> Ints:
    """The rank of each class by what it publishes; classes that publish the same have the same rank."""
    return content_key([ranks(series) for series in published])


def tokens(key: Ints, owner: NDArray[np.int32], seed: int) -> Ints:
    """A number for each row from 1 up, the same for all rows of a person: which rows belong together, and nothing else.

    Persons are put in the order of what their rows publish (`key`), and the seed then says how their numbers are dealt. Persons
    who publish the same may have each other's number.
    """
    people, of_row = np.unique(owner, return_inverse=True)
    ranked = np.unique(key, return_inverse=True)[1]
    order = np.lexsort((ranked, of_row))
    starts = np.searchsorted(of_row[order], np.arange(len(people) + 1))
    content = ranked[order].astype(">i8")  # big-endian, so that bytes are in the order of the numbers
    rows = [content[starts[i] : starts[i + 1]].tobytes() for i in range(len(people))]
    numbers = np.empty(len(people), dtype=np.int64)
    numbers[sorted(range(len(people)), key=rows.__getitem__)] = (
        np.random.default_rng([seed, 1]).permutation(len(people)) + 1
    )
    return np.asarray(numbers[of_row])
