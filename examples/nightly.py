"""A week of nights: a hospital's table changes by day, and nightly.sh publishes it by night.

    python examples/nightly.py postgresql://user@host/scratch folder

makes a table `admissions` of a made-up hospital in an empty database (sqlite:///clinic.db does as well), and then a release a
night in the folder; the first night makes the store. At the end it audits all releases against each other.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from shoal.datasets import hospital
from shoal.datasets.hospital import TAXONOMIES, hospital_config, taxonomy_path
from shoal.io import write_sql

HERE = Path(__file__).parent
SHOAL = [sys.executable, "-m", "shoal"]
BEGIN, ADMITTED, DISCHARGED, CORRECTED = 400, 20, 10, 4


def main(clinic: str, folder: Path, nights: int = 7) -> None:
    """A table, its configuration, and the nights."""
    folder.mkdir(parents=True, exist_ok=True)
    patients = hospital(BEGIN + nights * ADMITTED, seed=5).sort("admitted")
    patients = patients.with_columns(
        updated_at=pl.lit(datetime(2025, 1, 1, 12)), discharged_at=pl.lit(None, dtype=pl.Datetime)
    )
    table = patients[:BEGIN]
    write_sql(table, clinic, "admissions")
    (folder / "shoal.toml").write_text(configuration(clinic), encoding="utf-8")
    for name in TAXONOMIES:
        (folder / f"{name}.csv").write_bytes(taxonomy_path(name).read_bytes())
    for night in range(1, nights + 1):
        table = day(table, patients[BEGIN + (night - 1) * ADMITTED : BEGIN + night * ADMITTED], night)
        write_sql(table, clinic, "admissions", force=True)
        subprocess.run([str(HERE / "nightly.sh")], cwd=folder, env=surroundings(clinic, folder, night), check=True)
    shoal("store", "history", "--store", "sqlite:///register.db", folder=folder)
    shoal("store", "audit", "--store", "sqlite:///register.db", folder=folder)


def surroundings(clinic: str, folder: Path, night: int) -> dict[str, str]:
    """What the script finds: this Python's `shoal`, the database, and a clock that says which night it is."""
    clock = folder / "clock"
    clock.mkdir(exist_ok=True)
    (clock / "date").write_text(
        f'#!/bin/sh\nexec {shutil.which("date")} -d 2025-01-{1 + night:02} "$@"\n', encoding="utf-8"
    )
    (clock / "date").chmod(0o755)
    path = os.pathsep.join([str(clock), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "CLINIC": clinic, "PATH": path}


def configuration(clinic: str) -> str:
    """The hospital's configuration, with the database for a source and two columns more that nobody publishes."""
    text = hospital_config("unused").replace('path = "unused"', f'url = "{clinic}"\ntable = "admissions"')
    more = "".join(f'[attributes.{name}]\nrole = "identifier"\n\n' for name in ("updated_at", "discharged_at"))
    return text.replace("[policy]", more + "[policy]")


def day(table: pl.DataFrame, admitted: pl.DataFrame, night: int) -> pl.DataFrame:
    """Some are admitted, some discharged, some diagnoses corrected; whoever changed has a new time."""
    random = np.random.default_rng(night)
    noon = pl.lit(datetime(2025, 1, 1, 12) + timedelta(days=night))
    here = np.flatnonzero(table["discharged_at"].is_null().to_numpy())
    chosen = random.choice(here, DISCHARGED + CORRECTED, replace=False)
    left = pl.Series(np.isin(np.arange(table.height), chosen[:DISCHARGED]))
    corrected = pl.Series(np.isin(np.arange(table.height), chosen[DISCHARGED:]))
    table = table.with_columns(
        discharged_at=pl.when(left).then(noon).otherwise(pl.col("discharged_at")),
        diagnosis=pl.when(corrected).then(pl.col("diagnosis").shuffle(night)).otherwise(pl.col("diagnosis")),
        updated_at=pl.when(left | corrected).then(noon).otherwise(pl.col("updated_at")),
    )
    return pl.concat([table, admitted.with_columns(updated_at=noon)])


def shoal(*words: str, folder: Path) -> None:
    """A command of Shoal, in the folder."""
    subprocess.run([*SHOAL, *words], cwd=folder, check=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))
