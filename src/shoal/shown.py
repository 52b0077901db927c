"""What is shown of things: a card in a notebook, a report in a file.

Cards and reports are drawn in a late room (`report/`), from things of early ones. The early ones know it by its name only and ask
for it when somebody looks; nothing is imported before, and the rooms keep their order.

>>> import polars as pl, shoal
>>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": [20, 30, 40, 60]}), {"age": {"role": "quasi"}})
>>> isinstance(data, Shown), "4 records" in data._repr_html_()
(True, True)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

CARDS, REPORTS = "shoal.report.cards", "shoal.report"


class Shown:
    """Something that notebooks show as a card. A card says what its thing is and never shows a record of the original."""

    def _repr_html_(self) -> str:
        return str(import_module(CARDS).card(self))


def written(release: Any, path: Any, for_: str) -> Any:
    """The report of a release, in a file."""
    return import_module(REPORTS).report_release(release, path, for_)
