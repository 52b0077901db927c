"""The classes that a masked table itself shows: as it is written, and as its values are read."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.io.lean import is_lean, spelled_out
from shoal.io.repeated import Alike
from shoal.schema import Schema
from shoal.verifier.meaning import Reading, read_cells
from shoal.verifier.typed import end_problems, pairs_of, typed_problems

Ints = NDArray[np.int64]
# Values that a message lists as spelled alike: enough to see what is meant.
SHOWN = 4
# The numbers of columns are joined into one as long as it fits.
LARGEST = 2**62
# Columns whose texts are numbered at a time.
THREADS = 2


@dataclass(frozen=True, eq=False)
class Classes:
    """A label per record, what each class publishes, and in which of the two ways it was looked at."""

    labels: Ints
    groups: pl.DataFrame
    way: str

    @property
    def sizes(self) -> Ints:
        """Records of each class."""
        return np.bincount(self.labels, minlength=self.groups.height).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Published:
    """The classes of a masked table, what should be said about its quasi-identifiers, and why they must be refused."""

    ways: tuple[Classes, ...]
    notes: tuple[str, ...]
    problems: tuple[str, ...]


def published_classes(
    cells: pl.DataFrame, quasi: Sequence[str], schema: Schema, alike: Alike | None = None
) -> Published:
    """Classes from the cells as they are written; and once more from what they mean, where two spellings mean one thing.

    `34`, `34.0` and ` 34` are three things to whoever looks at the file, and one to whoever computes with it. A policy has
    to hold for both. Records that are known to be written `alike` are in one class both ways, so one of each kind is looked
    at (`cells` may have no others), and the others go where it goes.
    """
    if alike is not None and cells.height != len(alike.first):
        cells = cells.select(pl.col(list(quasi)).gather(pl.Series(alike.first)))
    labels, groups = derive_classes(cells, list(quasi))
    labels = labels if alike is None else labels[alike.which]
    written = Classes(labels, groups, "as written")
    notes: list[str] = []
    problems: list[str] = []
    meanings: list[pl.Series] = []
    # Every value that is published is published by a class, so one row a class is read and not one a record.
    for column in quasi:
        series = groups[column]
        if series.dtype != pl.String:
            problems += typed_problems(series, schema, labels)
            continue
        texts, which = _distinct(series)
        reading = read_cells(texts, column, schema)
        problems += [problem.told(column, which[labels]) for problem in reading.problems]
        if reading.spellings:
            notes.append(spelled(column, reading))
            keys = {key: i for i, key in enumerate(dict.fromkeys(reading.keys))}
            numbered = np.array([keys[key] for key in reading.keys], dtype=np.uint32)
            meanings.append(pl.Series(column, numbered[which]))
    for low, high in pairs_of(quasi, schema):
        which, ends = derive_classes(groups, [low, high])
        problems += end_problems(ends, which[labels], schema)
    if not meanings:
        return Published((written,), tuple(notes), tuple(problems))
    merged, different = derive_classes(groups.with_columns(meanings), list(quasi))
    first = np.full(different.height, len(merged), dtype=np.int64)
    np.minimum.at(first, merged, np.arange(len(merged)))
    read = Classes(merged[labels], groups[first], "as read")
    return Published((written, read), tuple(notes), tuple(problems))


def derive_classes(masked: pl.DataFrame, quasi: list[str]) -> tuple[Ints, pl.DataFrame]:
    """The classes that a `masked` table shows: records with equal values in the columns `quasi`. Missing is a value.

    Returns a label per row and the distinct published values, in order of first appearance.

    >>> import polars as pl
    >>> from shoal.verifier import derive_classes
    >>> labels, groups = derive_classes(pl.DataFrame({"age": ["[20, 29]", "[30, 39]", "[20, 29]"]}), ["age"])
    >>> labels.tolist(), groups["age"].to_list()
    ([0, 1, 0], ['[20, 29]', '[30, 39]'])
    """
    keys = masked.select(quasi)
    # A number for each text first: to compare numbers is much faster than to compare texts.
    if all(column.dtype == pl.String or is_lean(column) for column in keys):
        first = _first_of(pl.Series(_joined(keys)).to_frame())
    else:
        first = _first_of(keys.with_columns(_numbered(one) for one in keys if one.dtype == pl.String or is_lean(one)))
    begins = first == np.arange(len(first))
    labels = np.cumsum(begins)[first] - 1
    return labels.astype(np.int64, copy=False), spelled_out(keys.filter(pl.Series(begins)))


def _joined(texts: pl.DataFrame) -> Ints:
    """One number a row, the same for rows with the same texts and for no others."""
    key, span = np.zeros(texts.height, dtype=np.int64), 1
    with ThreadPoolExecutor(THREADS) as pool:
        for numbers in pool.map(_numbered, texts.iter_columns()):
            count = int(numbers.max() or 0) + 2  # type: ignore[arg-type]  # missing is the last
            if span > LARGEST // count:
                key, span = _first_of(pl.Series(key).to_frame()).astype(np.int64), len(key)
            key *= count
            key += numbers.fill_null(count - 1).to_numpy()
            span *= count
    return key


def _numbered(texts: pl.Series) -> pl.Series:
    return (texts if is_lean(texts) else texts.cast(pl.Categorical)).to_physical()


def _first_of(numbers: pl.DataFrame) -> NDArray[np.uint32]:
    """The first row with the same numbers, for each row."""
    counted = numbers.with_row_index("__row")
    return counted.select(pl.col("__row").first().over(numbers.columns)).to_series().to_numpy()


def _distinct(series: pl.Series) -> tuple[list[str | None], NDArray[np.int64]]:
    """The distinct texts of a column, in order of first appearance, and which one each row has."""
    labels, groups = derive_classes(series.to_frame(), [series.name])
    return groups.to_series().to_list(), labels


def spelled(column: str, reading: Reading) -> str:
    """What should be said about a column that writes one value in several ways."""
    shown = "; ".join(
        " and ".join("missing" if text is None else repr(text) for text in texts[:SHOWN])
        for texts in reading.spellings[:SHOWN]
    )
    return f"Column '{column}' writes one value in several ways ({shown}): whoever looks at the file tells them apart."
