"""A digest of what a table holds, the same whatever library or file it came from."""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl

from shoal.io.lean import is_lean, spelled

STRETCH = 1 << 17
"""Records whose texts are laid beside each other at a time."""


def fingerprint(frame: pl.DataFrame) -> bytes:
    """A digest of a table's content, the same whatever library or file it came from. Never published as it is."""
    digest = hashlib.sha256()
    for series in frame:
        text = series.dtype == pl.String or is_lean(series)
        digest.update(f"{series.name}\x00{pl.String() if text else series.dtype}\x00{len(series)}\x00".encode())
        digest.update(np.packbits(series.is_null().to_numpy()).tobytes())
        if text:
            # Some records at a time: their texts beside each other take more than the table does.
            for begin in range(0, len(series), STRETCH):
                texts = spelled(series.slice(begin, STRETCH))
                digest.update(texts.str.len_bytes().fill_null(0).to_numpy().tobytes())
            for begin in range(0, len(series), STRETCH):
                digest.update(_content(spelled(series.slice(begin, STRETCH))))
        else:
            digest.update(series.cast(pl.Float64).fill_null(0.0).to_numpy().tobytes())
    return digest.digest()


def _content(texts: pl.Series) -> bytes:
    """The bytes of all texts, one after the other, without making a Python text of each."""
    return str(texts.fill_null("").str.join("").item()).encode()
