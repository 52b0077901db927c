"""The synthetic hospital: its table, its taxonomies and a configuration to anonymize it with."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import ConfigError, InputError, did_you_mean

if TYPE_CHECKING:
    import polars as pl

TAXONOMIES = ("diagnosis", "occupation")
"""The shipped taxonomies; `hospital_config` expects `<name>.csv` of each beside the configuration."""


def hospital(n: int = 10_000, seed: int = 0, *, readmitted: float = 0.0) -> pl.DataFrame:
    """A made-up hospital population of `n` admissions (10000 by default) over the years 2023 and 2024.

    Columns: name, record, age, sex, zip, admitted, occupation, diagnosis, stay (days), cost. Age depends on sex and
    place; occupation on age, sex and place; diagnosis on age, sex and month; stay on diagnosis and age; cost on stay,
    diagnosis and place. Zip codes and names follow Zipf's law, stays and costs have a few outliers. About 1.5 % of zip,
    4 % of occupation, 0.5 % of diagnosis and 2 % of cost are missing; occupations rather for the very old, costs rather
    for the last weeks. Nobody in it exists.

    With `readmitted` (0.0 by default), that share of the admissions are those of people who have another one: a column `patient`
    says whose each is. Whoever comes again is often a year older, and has seldom moved.

    Returns a polars frame; the same `n`, `seed` (0 by default) and `readmitted` give the same table.

    >>> from shoal.datasets import hospital
    >>> hospital(1_000, seed=1).columns
    ['name', 'record', 'age', 'sex', 'zip', 'admitted', 'occupation', 'diagnosis', 'stay', 'cost']
    """
    for label, value in (("n", n), ("seed", seed)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ConfigError(f"hospital: {label} = {value!r} is not possible; give a whole number from 0 up.")
    if isinstance(readmitted, bool) or not isinstance(readmitted, int | float) or not 0 <= readmitted < 1:
        raise ConfigError(
            f"hospital: readmitted = {readmitted!r} is not possible; give a share from 0 up to, but not, 1."
        )
    from shoal.datasets.population import generate

    table = generate(n, seed)
    if not readmitted:
        return table
    from shoal.datasets.readmissions import with_readmissions

    return with_readmissions(table, readmitted, seed)


def hospital_config(path: str, *, readmitted: bool = False) -> str:
    """The text of a `shoal.toml` for a hospital table stored at `path`; `readmitted` says that it has the column `patient`.

    Without it (False, the default) every admission is a person.

    Returns text for a file in a folder that also holds a copy of every file of `TAXONOMIES`.

    >>> from shoal.datasets import hospital_config
    >>> 'path = "patients.csv"' in hospital_config("patients.csv")
    True
    """
    # A JSON string is a TOML basic string as long as no character is written as a surrogate pair.
    text = _CONFIG.replace("@PATH@", json.dumps(path, ensure_ascii=False))
    if not readmitted:
        return text
    for name, lines in _PERSONS.items():
        begins = f'[attributes.{name}]\nrole = "quasi"\n'
        text = text.replace(begins, begins + lines)
    return text.replace("[attributes.age]", _PATIENT + "[attributes.age]").replace("five records …", "five patients …")


def taxonomy_path(name: str) -> Path:
    """Where the shipped taxonomy `name` ("diagnosis" or "occupation") is: `leaf;…;root`, one line a leaf. Returns a path.

    >>> import shoal
    >>> from shoal.datasets import taxonomy_path
    >>> shoal.Taxonomy.read(taxonomy_path("diagnosis")).levels
    4
    """
    if name not in TAXONOMIES:
        raise InputError(f"There is no shipped taxonomy '{name}': {did_you_mean(name, TAXONOMIES)}")
    return Path(str(files("shoal.datasets").joinpath(f"{name}.csv")))


_CONFIG = """\
# How to anonymize the synthetic hospital. Every column has a role:
#   identifier  names a person; never leaves the house
#   quasi       an intruder may know it; made equal within a class
#   sensitive   what nobody must learn about a person
#   other       published as it is

[source]
path = @PATH@
missing = [""]                           # an empty cell is a missing value

[attributes.name]
role = "identifier"

[attributes.record]
role = "identifier"

[attributes.age]
role = "quasi"
kind = "number"
domain = [0, 110]                        # losses are measured against this range

[attributes.sex]
role = "quasi"
kind = "category"

[attributes.zip]
role = "quasi"
kind = "category"                        # digits, but not a number
taxonomy = { prefix = [3, 2, 0] }        # 10420 → 104** (town) → 10*** (region) → *****

[attributes.admitted]
role = "quasi"
kind = "date"
taxonomy = { dates = ["month", "year"] } # 2024-02-29 → 2024-02 → 2024

[attributes.occupation]
role = "quasi"
kind = "category"
taxonomy = "occupation.csv"              # care worker → Service work → All occupations

[attributes.diagnosis]
role = "sensitive"
kind = "category"
taxonomy = "diagnosis.csv"               # Angina → Heart disease → Heart and circulation → All diagnoses

[attributes.stay]
role = "other"
kind = "number"
round = 2                                # days; the few very long stays would be recognized
top = 14

[attributes.cost]
role = "other"
kind = "number"
round = 1000                             # to the cent it would name nearly everybody
top = 10000

[policy]
k = 5                                    # every class has at least five records …
p_sensitive = { p = 3 }                  # … with at least three different diagnoses

[method]
algorithm = "auto"
missing = "category"                     # a missing value is a value of its own
seed = 7

[release]
order = "shuffle"                        # the order of the input says something about its records
"""

_PATIENT = """\
[attributes.patient]
role = "person"                          # whose admission it is: what is protected is a person, with all their rows
publish = "token"                        # a random number, drawn anew for each release, tells which rows belong together

"""
_PERSONS = {
    "age": 'within = "max"                           # who comes again may be a year older: the last age counts\n',
    "zip": 'within = "most"                          # … or have moved: the usual place counts\n',
    "admitted": 'within = "min"                           # the first admission counts, and is published for all\n',
}
