"""A sensitive attribute for model tests, without a table around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tests.reference.models import About

from shoal.models import Sensitive
from shoal.taxonomy import Taxonomy

VALUES = ("10", "20", "30", "40", "50", "60")
NUMBERS = np.array([10.0, 20.0, 30.0, 40.0, 50.0, 60.0])
# Unbalanced on purpose: guards of values at different depths are what breaks unions under personalized privacy.
PARENTS = {
    "10": "low", "20": "pair", "30": "pair", "40": "alone", "pair": "low", "alone": "low",
    "50": "high", "60": "high", "low": "*", "high": "*",
}  # fmt: skip
CATEGORIES = (("secret", ("10", "20")), ("delicate", ("30", "40")), ("plain", ("50", "60")))


def column(values: Sequence[str | None], labels: Sequence[str] | None = None, **more: Any) -> Sensitive:
    """The column of these values; a taxonomy may be given as a mapping child → parent."""
    domain = tuple(sorted({value for value in values if value is not None}) if labels is None else labels)
    codes = np.array([-1 if value is None else domain.index(value) for value in values], dtype=np.int32)
    if isinstance(more.get("taxonomy"), Mapping):
        more["taxonomy"] = Taxonomy.from_parents(more["taxonomy"])
    return Sensitive(**{"name": "illness", "codes": codes, "labels": domain, **more})


def rich(codes: Sequence[int], **more: Any) -> Sensitive:
    """A column that every model's examples bind to."""
    return Sensitive(
        more.pop("name", "illness"),
        np.asarray(codes, dtype=np.int32),
        VALUES,
        numbers=NUMBERS,
        ordered=True,
        taxonomy=Taxonomy.from_parents(PARENTS),
        protect=("pair",),
        categories=CATEGORIES,
        **more,
    )


RICH = About(
    number=dict(zip(VALUES, NUMBERS.tolist(), strict=True)),
    rank={value: code for code, value in enumerate(VALUES)},
    parent=PARENTS,
    protect=("pair",),
    categories=CATEGORIES,
)


def histogram(members: Sequence[str | None], labels: Sequence[str]) -> Any:
    """Counts of a class's values, as one row."""
    return np.array([[sum(member == label for member in members) for label in labels]], dtype=np.int64)


def size(members: Sequence[Any]) -> Any:
    """The size of a class, as one row."""
    return np.array([len(members)], dtype=np.int64)
