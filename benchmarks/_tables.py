"""The tables that several benchmarks share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from shoal.datasets import adult, adult_taxonomy_path, hospital, survey, survey_schema, taxonomy_path
from shoal.microdata import Microdata
from shoal.reproduce.tables import SEVEN, adult_schema


def adult_table(quasi: Sequence[str] = SEVEN, sensitive: Sequence[str] = ("occupation",)) -> Microdata:
    """The 30,162 complete training records with their taxonomies; ages on the domain 1 to 100."""
    schema = adult_schema(quasi, sensitive)
    schema["age"]["domain"] = [1, 100]
    return Microdata.from_frame(adult().select([*quasi, *sensitive]), schema)


def adult_like_for_like(quasi: Sequence[str] = SEVEN, sensitive: Sequence[str] = ("occupation",)) -> Microdata:
    """The same records with a hierarchy for age as well: what tools that know hierarchies only are given."""
    schema = adult_schema(quasi, sensitive)
    schema["age"] = {"role": "quasi", "kind": "category", "taxonomy": str(adult_taxonomy_path("age"))}
    table = adult().select([*quasi, *sensitive])
    return Microdata.from_frame(table.with_columns(pl.col("age").cast(pl.Int64).cast(pl.String)), schema)


def hospital_table(n: int = 30_000, seed: int = 1) -> Microdata:
    """The synthetic hospital as `shoal demo` describes it, nothing tuned for it."""
    schema: dict[str, Any] = {
        "age": {"role": "quasi", "kind": "number", "domain": [0, 110]},
        "sex": {"role": "quasi", "kind": "category"},
        "zip": {"role": "quasi", "kind": "category", "taxonomy": {"prefix": [3, 2, 0]}},
        "admitted": {"role": "quasi", "kind": "date", "taxonomy": {"dates": ["month", "year"]}},
        "occupation": {"role": "quasi", "kind": "category", "taxonomy": str(taxonomy_path("occupation"))},
        "diagnosis": {"role": "sensitive", "kind": "category", "taxonomy": str(taxonomy_path("diagnosis"))},
    }
    return Microdata.from_frame(hospital(n, seed).select(list(schema)), schema)


def survey_table(n: int = 30_000, questions: int = 24, seed: int = 1) -> Microdata:
    """The synthetic survey: as many quasi-identifiers as questions, the vote sensitive."""
    return Microdata.from_frame(survey(n, questions, seed), survey_schema(questions))
