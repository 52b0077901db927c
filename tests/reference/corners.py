"""The corners of parts straight from docs/scale.md#cuts: dictionaries, record by record."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any


def corners(
    codes: Sequence[Sequence[int]], seen: Sequence[Sequence[int]], part: Sequence[int]
) -> dict[tuple[int, int, int], dict[str, Any]]:
    """Per part, attribute and code: the records, every attribute's members among them, and the histograms of the views."""
    found: dict[tuple[int, int, int], dict[str, Any]] = {}
    for row, views, p in zip(codes, seen, part, strict=True):
        if p < 0:
            continue
        for a, code in enumerate(row):
            cell = found.setdefault(
                (p, a, code), {"count": 0, "members": defaultdict(set), "histograms": defaultdict(Counter)}
            )
            cell["count"] += 1
            for b, other in enumerate(row):
                cell["members"][b].add(other)
            for v, value in enumerate(views):
                if value >= 0:
                    cell["histograms"][v][value] += 1
    return found
