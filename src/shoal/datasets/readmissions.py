"""People who come again: some admissions of the synthetic hospital become those of people who were there before.

Whoever comes again keeps their name, sex and occupation, is a year older after a birthday, and seldom has moved. What they come
for, how long they stay and what it costs is the admission's own; so the person is one of the same sex and about the same age.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

MOVED = 0.03  # share of readmissions under another zip code
DECADE, YEAR = 10, 365
STREAM = 0x5EA5  # apart from those of the table itself


def with_readmissions(table: pl.DataFrame, share: float, seed: int) -> pl.DataFrame:
    """The table with a column `patient`, and about `share` of its rows those of somebody who has another row."""
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, STREAM])))
    n = table.height
    again, chosen, moved, birthday = (
        random.random(n) < share,
        random.random(n),
        random.random(n) < MOVED,
        random.random(n),
    )
    owner = _owners(table, again, chosen)
    own = owner == np.arange(n)
    days = table["admitted"].to_physical().to_numpy().astype(np.int64)
    born = (birthday[owner] * YEAR).astype(np.int64)
    older = (days - born) // YEAR - (days[owner] - born) // YEAR
    same_place = pl.Series(np.where(own | moved, np.arange(n), owner))
    number = pl.Series("patient", np.cumsum(own)[owner]).cast(pl.String).str.zfill(max(7, len(str(n))))
    changed = table.with_columns(
        table["name"].gather(owner),
        table["occupation"].gather(owner),
        table["zip"].gather(same_place),
        (table["age"].gather(owner) + pl.Series(older)).clip(0, None).alias("age"),
        ("P" + number).alias("patient"),
    )
    columns = table.columns
    place = columns.index("record") + 1
    return changed.select(*columns[:place], "patient", *columns[place:])


def _owners(table: pl.DataFrame, again: NDArray[np.bool_], chosen: NDArray[np.float64]) -> NDArray[np.int64]:
    """Per row the first row of its person: itself, or one of the same sex and decade of age that is nobody's second."""
    sex = table["sex"].rank("dense").to_numpy().astype(np.int64)
    groups = table["age"].to_numpy() // DECADE * 2 + sex
    owner = np.arange(len(groups))
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        first, second = rows[~again[rows]], rows[again[rows]]
        if len(first):
            owner[second] = first[(chosen[second] * len(first)).astype(np.int64)]
    return owner
