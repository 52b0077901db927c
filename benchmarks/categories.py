"""Large flat categories: 20,000 employers without a taxonomy, among ages and towns; time, loss, and what a record then shows.

30,000 made-up records, k = 5, default settings ("fast"), processor seconds from an encoded table to a verified release. First the
employers as they are, published in sets; then with the taxonomy that `shoal init` proposes for so many values (by how they
begin) and with the automatic one (by what they occur with), whose groups have one name each. `shown` is the mean number of
characters of a published employer. The goal is at most 8 s. Writes benchmarks/out/categories.json.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import shoal

OUT = Path(__file__).parent / "out"
RECORDS, EMPLOYERS, K = 30_000, 20_000, 5
WAYS: dict[str, Any] = {"none": None, "beginnings": {"prefix": [12, 10, 3, 0]}, "auto": "auto"}


def main() -> None:
    """A line a way."""
    frame = employers(RECORDS)
    released(frame, None)  # compiles, or loads what is compiled
    released(frame.head(400), "auto")
    rows = []
    print(f"{'taxonomy':12} {'encode s':>9} {'seconds':>8} {'ncp':>8} {'shown':>6}  an employer as it is published")
    for name, taxonomy in WAYS.items():
        row = {"taxonomy": name} | released(frame, taxonomy)
        rows.append(row)
        print(
            f"{name:12} {row['encoding']:9.2f} {row['seconds']:8.2f} {row['ncp']:8.4f} {row['shown']:6.0f}  {row['example']:.60}",
            flush=True,
        )
    OUT.mkdir(exist_ok=True)
    (OUT / "categories.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def employers(n: int, seed: int = 1) -> pl.DataFrame:
    """Ages, towns of very different size, and an employer of 20,000."""
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": random.integers(18, 70, n),
            "town": [f"t{i:02d}" for i in random.zipf(1.6, n) % 80],
            "employer": [f"Employer {i:05d} Ltd" for i in random.integers(0, EMPLOYERS, n)],
        }
    )


def released(frame: pl.DataFrame, taxonomy: Any) -> dict[str, Any]:
    """One release: processor seconds, its loss, and how an employer looks in it."""
    schema: dict[str, Any] = {name: {"role": "quasi"} for name in frame.columns}
    if taxonomy is not None:
        schema["employer"] |= {"kind": "category", "taxonomy": taxonomy}
    begun = time.process_time()
    data = shoal.Microdata.from_frame(frame, schema)
    encoding = time.process_time() - begun
    begun = time.process_time()
    release = shoal.anonymize(data, shoal.KAnonymity(K))
    seconds = time.process_time() - begun
    shown = release.masked["employer"]
    mean = float(np.mean(shown.str.len_chars().to_numpy()))
    return {
        "encoding": encoding,
        "seconds": seconds,
        "ncp": release.measures.ncp,
        "shown": mean,
        "example": shown.sort()[len(shown) // 2],
    }


if __name__ == "__main__":
    main()
