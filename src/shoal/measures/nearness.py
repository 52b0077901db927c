"""How near a release is to the proven least: its loss beside a lower bound on the loss of any release with its policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.errors import Cancelled, ShoalError
from shoal.measures.bounds import Effort, loss_bound
from shoal.measures.loss import Measures
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.progress import Told
from shoal.space import Measure, Space

__all__ = ["Nearness", "nearness"]

LARGE = 200_000
"""Records up to which a bound is looked for when nobody asks for more than a moment: listing the boxes of more takes longer."""


@dataclass(frozen=True)
class Nearness:
    """What a release loses (`loss`, per cell, by `measure`) and what none with its policy can fall below (`least`).

    `least` is None where that is not known, and `why` says the reason.

    >>> str(Nearness("ncp", 0.020, 0.018))
    'It loses 0.0200 (ncp), and no release with this policy loses less than 0.0180: it is within 11.2 % of the least.'
    >>> Nearness("ncp", 0.4, 0.2).ratio, Nearness("ncp", 0.4, None, "it was not asked for").to_dict()["why"]
    (0.5, 'it was not asked for')
    """

    measure: str
    loss: float
    least: float | None
    why: str = ""

    @property
    def ratio(self) -> float | None:
        """The least over the loss, at most 1; None where the least is not known."""
        if self.least is None:
            return None
        return min(1.0, self.least / self.loss) if self.loss > 0 else 1.0

    def __str__(self) -> str:
        if self.least is None:
            return f"How near it is to the least loss is not known: {self.why}."
        # Down for what is proven, up for what follows from it.
        shown = f"It loses {self.loss:.4f} ({self.measure}), and no release with this policy loses less than {_down(self.least)}"
        if self.loss <= 0:
            return f"{shown}: it is the least."
        if self.least <= 0:
            return f"{shown}, as far as is known."
        return f"{shown}: it is within {np.ceil(1000 * (self.loss / self.least - 1)) / 10:.1f} % of the least."

    def to_dict(self) -> dict[str, Any]:
        """For programs.

        >>> Nearness("ncp", 0.5, 0.375).to_dict()["ratio"]
        0.75
        """
        return {
            "measure": self.measure,
            "loss": self.loss,
            "least": self.least,
            "ratio": self.ratio,
            "why": self.why or None,
        }


def nearness(
    data: Microdata,
    policy: Policy,
    measures: Measures,
    settings: Mapping[str, Any],
    *,
    effort: Effort = "fast",
    progress: Told | None = None,
) -> Nearness:
    """How near a release is to the least that is proven (docs/algorithms.md#a-lower-bound-with-its-proof).

    - `data`, `policy`: the original and what the release satisfies; `measures` what it lost, `settings` how it was made.
    - `effort`: how hard to look for a bound, as for `loss_bound`: "fast" by default, about two seconds.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    Returns loss and bound; where no bound is known, the reason.

    >>> import polars as pl, shoal
    >>> frame = pl.DataFrame({"age": [21, 22, 40, 41]})
    >>> release = shoal.anonymize(frame, {"k": 2}, quasi="age")
    >>> found = nearness(release.data, release.policy, release.measures, release.secret["settings"])
    >>> round(found.loss, 3), round(found.ratio, 3)
    (0.05, 1.0)
    """
    name: Measure = "granularity" if settings.get("objective") == "granularity" else "ncp"
    loss = float(getattr(measures, name))
    why = _unknown(data, loss, measures, settings, effort)
    if why:
        return Nearness(name, loss, None, why)
    # Columns count alike in the mean that is shown, whatever they weigh in the search.
    space = Space(data.domains, np.ones(len(data.domains)), name)
    try:
        found = loss_bound(data.codes, space, data.rules(policy), effort=effort, progress=progress)
    except Cancelled:
        raise
    except ShoalError as problem:
        return Nearness(name, loss, None, str(problem).rstrip("."))
    return Nearness(name, loss, found.mean)


def _unknown(data: Microdata, loss: float, measures: Measures, settings: Mapping[str, Any], effort: Effort) -> str:
    if settings.get("recode", "generalize") != "generalize":
        return "it is proven for classes that publish ranges, nodes and sets, not for averages or blanked cells"
    if settings.get("suppressed") == "drop" and measures.suppressed:
        return "it is proven for releases of all records, and some were left out here"
    if loss != loss:
        return "the loss itself cannot be measured"
    if effort in ("quick", "fast") and data.n > LARGE:
        return f"of more than {LARGE:,} records it takes longer than a moment; --bound thorough takes the time"
    return ""


def _down(share: float) -> str:
    return f"{np.floor(share * 1e4) / 1e4:.4f}"
