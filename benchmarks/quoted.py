"""Figures of tools that pip does not install: what was run, and with which settings. It builds and runs nothing.

    python -m benchmarks.quoted                     what is quoted, and how it was obtained
    python -m benchmarks.quoted --folder FOLDER     also writes the tables and hierarchies that those tools read

ARX 3.9.2 (Java) and sdcMicro 5.8.1 (R) were run once each, on two cores like those of the other figures, mostly quiet, warm and
without start-up. Whoever has them can compare: FOLDER then holds exactly what they were given. Two ways to generalize must
not be mixed up. ARX publishes an age as a node of its hierarchy; Shoal, unless it is given that hierarchy too, as the smallest
interval that holds the ages of the class. So its figures stand beside ours *with the same hierarchies* (like for like), and what
free intervals add stands beside these, by its own name.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

from shoal.datasets import adult, adult_taxonomy_path
from shoal.errors import InputError
from shoal.reproduce.tables import SEVEN

# Granularity on Adult, 30,162 records and seven quasi-identifiers, by k; nothing suppressed.
ARX = {2: 0.0163, 5: 0.0266, 10: 0.0443, 25: 0.0699, 50: 0.0950, 100: 0.1244}
ARX_DIVERSE = 0.0300
BAND = 5

HOW = """
ARX 3.9.2, loss by k (benchmarks.losses: {by_k}; k = 5 with three distinct occupations {diverse}):
  input        adult.csv: the 30,162 complete training records; quasi-identifiers {seven}
  hierarchies  the files of FOLDER, one a column, age.csv among them
  policy       k-anonymity (and distinct l-diversity, l = 3, on occupation), nothing suppressed; quality model granularity
  search       local recoding; of the settings that were tried the best one is quoted
  time         0.2 to 2.2 s by k; 3.4 s with diversity

ARX 3.9.2, t-closeness (benchmarks.closeness): the same table and hierarchies, k = 5, t = 0.2, equal distance on occupation:
  0.427 with 6 % of the records suppressed, 71 s.

ARX 3.9.2, the whole road (benchmarks.end_to_end): the table of 3,000,000 records that `python -m benchmarks.end_to_end
  --folder FOLDER` leaves there, k = 5, local recoding: 8.9 s in one run, 10.6 s in another, 0.64 GB.

sdcMicro 5.8.1, local suppression (benchmarks.suppression): adult-bands.csv, seven quasi-identifiers with age in bands of
  {band} years, k = 3: 5,983 cells, 68 s. By default it lets a blank match every value when it counts.
"""


def main() -> None:
    """Print how; write what they were given, where a folder is named."""
    parser = argparse.ArgumentParser(description="How the figures of ARX and sdcMicro were obtained.")
    parser.add_argument("--folder", type=Path, help="write their inputs here")
    folder = parser.parse_args().folder
    by_k = ", ".join(f"{k}: {loss}" for k, loss in ARX.items())
    print(HOW.format(by_k=by_k, diverse=ARX_DIVERSE, seven=", ".join(SEVEN), band=BAND))
    if folder is not None:
        try:
            written = inputs(folder)
        except InputError as missing:
            raise SystemExit(f"Adult is not here: {missing}") from None
        print("written: " + ", ".join(written))


def inputs(folder: Path) -> list[str]:
    """The tables and hierarchies, as those tools read them; what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    table = adult().select([*SEVEN, "occupation"])
    table.write_csv(folder / "adult.csv", separator=";")
    lowest = (pl.col("age") // BAND * BAND).cast(pl.Int64)
    bands = table.with_columns(age=pl.format("{}-{}", lowest, lowest + BAND - 1))
    bands.write_csv(folder / "adult-bands.csv", separator=";")
    for name in SEVEN:
        (folder / f"{name}.csv").write_text(adult_taxonomy_path(name).read_text(encoding="utf-8"), encoding="utf-8")
    return ["adult.csv", "adult-bands.csv", *(f"{name}.csv" for name in SEVEN)]


if __name__ == "__main__":
    main()
