"""The reference tables as the papers use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from shoal.datasets import adult, adult_taxonomy_path, census
from shoal.microdata import Microdata

SEVEN = ("age", "sex", "race", "marital-status", "education", "native-country", "workclass")
TABLE_2 = ("age", "workclass", "education", "native-country", "marital-status", "race", "sex")
"""The same in the order of Rahimi et al. 2015, Table 2."""
EIGHT = ("age", "education-num", "workclass", "marital-status", "occupation", "race", "sex", "native-country")
NUMBERS = ("age", "education-num")
DISEASES = ("HIV", "Cancer", "Indigestion", "Flu", "Asthma", "Obesity", "Hepatitis", "Phthisis")
CATEGORIES = {
    "one": ["HIV", "Cancer"],
    "two": ["Phthisis", "Hepatitis"],
    "three": ["Obesity", "Asthma"],
    "four": ["Indigestion", "Flu"],
}
"""Rahimi et al. 2015, Table 3, most secret first."""


def adult_sample(
    n: int | None,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    *,
    seed: int = 0,
    taxonomies: bool = True,
    part: Any = "train",
) -> Microdata:
    """Complete Adult records, a random sample of n of them, with the taxonomies that lie beside the table.

    Without taxonomies the values of a category stand in alphabetical order, which is how the tools of Sarrafi
    Aghdam & Sonehara 2013 code them.
    """
    table = adult(part)
    if n is not None:
        table = table[np.sort(np.random.default_rng(seed).permutation(table.height)[:n])]
    schema = adult_schema(quasi, sensitive, taxonomies)
    for name in quasi:
        if not taxonomies and name not in NUMBERS:
            schema[name]["taxonomy"] = {"rows": [[value, "*"] for value in sorted(table[name].unique())]}
    return Microdata.from_frame(table.select([*quasi, *sensitive]), schema)


def adult_schema(quasi: Sequence[str], sensitive: Sequence[str] = (), taxonomies: bool = True) -> dict[str, Any]:
    """Roles and taxonomies of Adult columns; age on its taxonomy's domain."""
    schema: dict[str, Any] = {}
    for name in quasi:
        schema[name] = {"role": "quasi"}
        if taxonomies and name not in NUMBERS:
            schema[name]["taxonomy"] = str(adult_taxonomy_path(name))
    return schema | {name: {"role": "sensitive"} for name in sensitive}


def adult_with_diseases(
    seed: int = 0, part: Any = "both", quasi: Sequence[str] = TABLE_2, n: int | None = None
) -> Microdata:
    """Rahimi et al. 2015: the quasi-identifiers of Table 2, age on its taxonomy, and a health condition drawn at random."""
    table = adult(part).select(quasi)
    random = np.random.default_rng(seed)
    if n is not None:
        table = table[np.sort(random.permutation(table.height)[:n])]
    drawn = random.choice(DISEASES, table.height)
    schema = adult_schema(quasi) | {"health": {"role": "sensitive", "categories": CATEGORIES}}
    if "age" in quasi:
        schema["age"] = {"role": "quasi", "kind": "category", "taxonomy": str(adult_taxonomy_path("age"))}
        table = table.with_columns(pl.col("age").cast(pl.Int64).cast(pl.String))
    return Microdata.from_frame(table.with_columns(health=pl.Series(drawn)), schema)


def census_table(values: np.ndarray[Any, Any] | None = None, *, leave_out: Sequence[str] = ("ERNVAL",)) -> Microdata:
    """CASC Census; Domingo-Ferrer et al. 2008 use twelve of the attributes (not ERNVAL) and a made-up confidential one."""
    table = census().drop(leave_out)
    schema: dict[str, Any] = {name: {"role": "quasi"} for name in table.columns}
    if values is not None:
        table = table.with_columns(confidential=pl.Series(values))
        schema["confidential"] = {"role": "sensitive", "kind": "number"}
    return Microdata.from_frame(table, schema)
