"""The tables that several benchmarks share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.datasets import adult, hospital, taxonomy_path
from shoal.microdata import Microdata
from shoal.reproduce.tables import SEVEN, adult_schema


def adult_table(quasi: Sequence[str] = SEVEN, sensitive: Sequence[str] = ("occupation",)) -> Microdata:
    """The 30,162 complete training records with their taxonomies; ages on the domain 1 to 100."""
    schema = adult_schema(quasi, sensitive)
    schema["age"]["domain"] = [1, 100]
    return Microdata.from_frame(adult().select([*quasi, *sensitive]), schema)


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
