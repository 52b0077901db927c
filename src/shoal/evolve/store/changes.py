"""A release as it is remembered, written as what changed since the one before it: classes that came, went, or publish something
else. Most classes of most releases are those of the last one, to the last value.

A class is the same when it has its number, its persons and their lives, its values and what it publishes of its
quasi-identifiers; what is read back is, row by row, what was remembered.
"""

from __future__ import annotations

import io

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.evolve.releases.guards import Numbers, Shown
from shoal.evolve.releases.people import ROWS, of_people
from shoal.evolve.releases.rows import numbered
from shoal.evolve.store.settings import Settings

RECORD, CLASS, REGION, LIFE, GONE = "__record", "__class", "__region", "__life ", "__gone"


def pack(shown: Shown, before: Shown | None) -> bytes:
    """A remembered release as bytes, after the remembered one before it, if there is one."""
    if before is None:
        return frame_bytes(_lines(shown, np.ones(len(shown.classes), dtype=bool)))
    fresh = ~np.isin(shown.classes, _same(shown, before))
    gone = np.setdiff1d(_counted(before.classes)[0], _counted(shown.classes)[0], assume_unique=True)
    if int(fresh.sum()) + len(gone) >= len(fresh):
        return frame_bytes(_lines(shown, np.ones(len(fresh), dtype=bool)))
    ended = pl.DataFrame({CLASS: gone}, schema={CLASS: pl.Int64}).with_columns(pl.lit(True).alias(GONE))
    rows = _lines(shown, fresh).with_columns(pl.lit(False).alias(GONE))
    return frame_bytes(pl.concat([rows, ended], how="diagonal"))


def _lines(shown: Shown, some: NDArray[np.bool_]) -> pl.DataFrame:
    """Some whole classes, a line a row; what a class publishes in words stands in the first of its lines."""
    names, classes = shown.texts or {}, shown.classes[some]
    first = np.flatnonzero(np.diff(classes, prepend=-1))
    told = pl.Series([names[number] for number in classes[first].tolist()], dtype=pl.String)
    regions = pl.Series(REGION, [None], dtype=pl.String).new_from_index(0, len(classes)).scatter(first, told)
    lives = [pl.Series(LIFE + name, own[some], dtype=pl.Int64) for name, own in (shown.lives or {}).items()]
    columns = [column.filter(some) for column in (*shown.frame, *numbers_of(shown))]
    return pl.DataFrame([*columns, regions, *lives])


def unpack(content: bytes, settings: Settings, names: list[str], like: pl.DataFrame, before: Shown | None) -> Shown:
    """A remembered release, its values in the types of a frame; `names` are their columns."""
    rows = read_frame(content)
    touched = rows[CLASS].to_numpy()
    changes = GONE in rows.columns
    if changes:
        rows = rows.filter(~pl.col(GONE))
    values = rows.select(pl.col(name).cast(like.schema[name]) for name in names)
    lives = {name: rows[LIFE + name].to_numpy() for name in life_names(settings)}
    records, classes = rows[RECORD].to_numpy(), rows[CLASS].to_numpy()
    first = np.flatnonzero(np.diff(classes, prepend=-1))
    texts = dict(zip(classes[first].tolist(), rows[REGION].gather(first).to_list(), strict=True))
    found = Shown(records, classes, values, lives, texts)
    return found if before is None or not changes else amended(before, touched, found)


def amended(before: Shown, touched: Numbers, new: Shown) -> Shown:
    """The release before without the classes that are touched, and with the new ones."""
    if not len(touched):
        return before
    kept = np.flatnonzero(~np.isin(before.classes, touched))
    classes = np.concatenate([before.classes[kept], new.classes])
    order = np.argsort(classes, kind="stable")

    def both(old: NDArray[np.int64], more: NDArray[np.int64]) -> Numbers:
        return np.concatenate([old[kept], more])[order]

    frame = pl.concat([before.frame[kept], new.frame])[order] if new.frame.width else new.frame
    was = before.lives or {}
    gone, texts = set(touched.tolist()), dict(before.texts or {})
    texts = {number: text for number, text in texts.items() if number not in gone} | dict(new.texts or {})
    lives = {name: both(was[name], own) for name, own in (new.lives or {}).items()}
    return Shown(both(before.records, new.records), classes[order], frame, lives, texts)


def _same(shown: Shown, before: Shown) -> Numbers:
    """The classes that are what they were."""
    (mine, own), (theirs, old) = (_counted(one.classes) for one in (shown, before))
    common, here, there = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    common = common[own[here] == old[there]]
    one, other = np.isin(shown.classes, common), np.isin(before.classes, common)
    differs = shown.records[one] != before.records[other]
    for name, own_lives in (shown.lives or {}).items():
        differs |= own_lives[one] != (before.lives or {})[name][other]
    for name in shown.frame.columns:
        now, was = shown.frame[name].filter(one), before.frame[name].filter(other)
        differs |= now.ne_missing(was.cast(now.dtype)).to_numpy()
    altered = set(shown.classes[one][differs].tolist())
    texts, earlier = shown.texts or {}, before.texts or {}
    return np.array(
        [number for number in common.tolist() if number not in altered and texts[number] == earlier[number]],
        dtype=np.int64,
    )


def _counted(classes: Numbers) -> tuple[Numbers, Numbers]:
    """Each class once, and how many rows it has."""
    label, first = numbered(classes)
    return classes[first], np.bincount(label, minlength=len(first))


def life_names(settings: Settings) -> list[str]:
    """What lives are counted of: each sensitive attribute, and of people with several rows these rows as well."""
    return settings.schema.named("sensitive") + ([ROWS] if of_people(settings.schema) else [])


def numbers_of(shown: Shown) -> tuple[pl.Series, pl.Series]:
    """Persons and classes as columns."""
    return pl.Series(RECORD, shown.records, dtype=pl.Int64), pl.Series(CLASS, shown.classes, dtype=pl.Int64)


def frame_bytes(frame: pl.DataFrame) -> bytes:
    """A frame as bytes, and nothing of the frames that it was taken from.

    Parquet writes a value that many rows of a column have once, which is most of what is published.
    """
    frame.write_parquet(buffer := io.BytesIO(), compression="zstd", compression_level=1, statistics=False)
    return buffer.getvalue()


def read_frame(content: bytes) -> pl.DataFrame:
    """The frame of bytes; stores that were made before have it as an Arrow file."""
    return (pl.read_parquet if content[:4] == b"PAR1" else pl.read_ipc)(io.BytesIO(content))
