"""Loaders for public reference tables that the user has on disk: UCI Adult and the CASC Census.

Nothing is downloaded or shipped. `SHOAL_DATA` names the folder that holds `adult/` and `casc/`.

>>> import os, tempfile
>>> from unittest import mock
>>> folder = Path(tempfile.mkdtemp())
>>> (folder / "adult" / "taxonomies").mkdir(parents=True)
>>> (folder / "casc").mkdir()
>>> row = "39, State-gov, 77516, Bachelors, 13, Never-married, ?, Own-child, White, Male, 0, 0, 40, Cuba, <=50K"
>>> _ = (folder / "adult" / "adult.data").write_text(row)
>>> _ = (folder / "adult" / "taxonomies" / "sex.csv").write_text("Male;*")
>>> _ = (folder / "casc" / "census.csv").write_text(",".join("ABCDEFGHIJKLM") + "\\n" + ",".join(["1"] * 13))
>>> with mock.patch.dict(os.environ, SHOAL_DATA=str(folder)):
...     data_folder() == folder, adult("train", complete=False)["occupation"].to_list(), census().shape
...     adult_taxonomy_path("sex").name
(True, [None], (1, 13))
'sex.csv'
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from shoal.errors import ConfigError, InputError, did_you_mean

if TYPE_CHECKING:
    import polars as pl

ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_FILES = {
    "train": ("adult/adult.data",),
    "test": ("adult/adult.test",),
    "both": ("adult/adult.data", "adult/adult.test"),
}
CENSUS_WIDTH = 13


def adult(part: Literal["train", "test", "both"] = "train", complete: bool = True) -> pl.DataFrame:
    """UCI Adult with named columns and `?` read as missing.

    - `part`: "train" (the default), "test" or "both".
    - `complete`: whether records with missing values are left out; True by default. Complete records: 30,162 in
      "train", 15,060 in "test", 45,222 in "both".

    Returns a polars frame.
    """
    if part not in ADULT_FILES:
        raise ConfigError(f"adult: there is no part {part!r}: {did_you_mean(str(part), ADULT_FILES)}")
    import polars as pl

    table = pl.concat([_read_adult(_data_file(name)) for name in ADULT_FILES[part]])
    return table.drop_nulls() if complete else table


def census() -> pl.DataFrame:
    """The CASC "Census" reference table: 1,080 records, 13 numeric attributes."""
    import polars as pl

    path = _data_file("casc/census.csv")
    try:
        raw = pl.read_csv(path, infer_schema=False)
        if raw.width == CENSUS_WIDTH:
            return raw.cast(pl.Int64)
    except pl.exceptions.PolarsError as error:
        raise _not_the_file(path, "CASC Census (a header and 13 columns of whole numbers)") from error
    raise _not_the_file(path, f"CASC Census: it has {raw.width} columns, not {CENSUS_WIDTH}")


def adult_taxonomy_path(attribute: str) -> Path:
    """The taxonomy file of an Adult `attribute`: `leaf;level1;…;root`, one line a leaf. Returns a path."""
    folder = data_folder() / "adult" / "taxonomies"
    # The taxonomies come from a distribution that calls the class label otherwise.
    path = folder / f"{'salary-class' if attribute == 'income' else attribute}.csv"
    if attribute not in ADULT_COLUMNS or not path.is_file():
        there = sorted("income" if file.stem == "salary-class" else file.stem for file in folder.glob("*.csv"))
        hint = did_you_mean(attribute, there) if there else "the folder holds no taxonomy at all"
        raise InputError(f"There is no taxonomy for the Adult attribute '{attribute}' in '{folder}': {hint}")
    return path


def data_folder() -> Path:
    """The folder of public data: `SHOAL_DATA`, else `../shared/data` seen from here or from the checkout."""
    named = os.environ.get("SHOAL_DATA", "")
    if named:
        folder = Path(named).expanduser()
        if not folder.is_dir():
            raise InputError(
                f"SHOAL_DATA names '{named}', which is not a folder; let it name the folder that holds "
                "adult/adult.data, adult/adult.test and casc/census.csv."
            )
        return folder
    starts = [Path.cwd()]
    package = Path(__file__).resolve().parent
    # An installed copy has no checkout around it, and what stands above site-packages is not ours to read.
    if package.parents[1].name == "src":
        starts.append(package.parents[2])
    for start in starts:
        folder = start.parent / "shared" / "data"
        if folder.is_dir():
            return folder
    raise InputError(
        "The public data is not here: set SHOAL_DATA to the folder that holds adult/adult.data, "
        "adult/adult.test (UCI Adult), adult/taxonomies/*.csv and casc/census.csv."
    )


def _data_file(name: str) -> Path:
    path = data_folder() / name
    if not path.is_file():
        raise InputError(
            f"The file '{path}' is missing: put it there, or set SHOAL_DATA to the folder that holds {name}."
        )
    return path


def _read_adult(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        raw = pl.read_csv(
            path,
            has_header=False,
            infer_schema=False,
            comment_prefix="|",  # the original adult.test opens with such a line
        )
        if raw.width == len(ADULT_COLUMNS):
            raw.columns = list(ADULT_COLUMNS)
            text = pl.all().str.strip_chars()
            return (
                raw.select(pl.when(text == "?").then(None).otherwise(text).name.keep())
                .filter(~pl.all_horizontal(pl.all().is_null()))  # the files end with an empty line
                .with_columns(pl.col("income").str.strip_chars_end("."), pl.col(ADULT_NUMBERS).cast(pl.Int64))
            )
    except pl.exceptions.PolarsError as error:
        raise _not_the_file(path, "UCI Adult (15 columns, no header, whole numbers in six of them)") from error
    raise _not_the_file(path, f"UCI Adult: it has {raw.width} columns, not {len(ADULT_COLUMNS)}")


def _not_the_file(path: Path, expected: str) -> InputError:
    return InputError(f"'{path}' does not read as {expected}; put the original file there.")
