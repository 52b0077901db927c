"""The papers' experiments run again: what they print beside what comes out here, with an honest verdict a line.

Which number is which paper, what its text leaves open and what cannot come out again: docs/papers.md. Each is one module.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, Literal

from shoal.errors import ConfigError, did_you_mean
from shoal.progress import Progress, Told

Verdict = Literal["equal", "within spread", "qualitatively", "not reproduced"]

PAPERS = {
    "000": "Truta et al. 2007: EnhancedPKClustering against GreedyPKClustering and Incognito (AVG, DM)",
    "001": "Rahimi et al. 2015: the three-layer (k, p+, t) algorithm against three models of top-down recoding",
    "002": "Domingo-Ferrer et al. 2008: (k, p, q, r)-anonymity by microaggregation on Census",
    "003": "Sarrafi Aghdam & Sonehara 2013: SpatialDistance against Mondrian, Incognito and Datafly (NCP)",
    "004": "Truta & Campan 2007: incremental maintenance I3M+ / I3M- and IL_Optimization",
}


@dataclass(frozen=True)
class Line:
    """One statement or number of a paper, what came out here, and the verdict."""

    what: str
    printed: str
    ours: str
    verdict: Verdict
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def judged(what: str, printed: str, ours: str, holds: bool, note: str = "", *, kind: Verdict = "qualitatively") -> Line:
    """A line whose claim either holds, in the given sense, or was not reproduced."""
    return Line(what, printed, ours, kind if holds else "not reproduced", note)


def reproduce(paper: str, *, quick: bool = False, progress: Told | None = None) -> list[Line]:
    """Run one paper's protocol; `quick` uses smaller samples and fewer seeds."""
    if paper not in PAPERS:
        raise ConfigError(f"There is no paper '{paper}'; {did_you_mean(paper, PAPERS)}")
    told = Progress.of(progress)
    lines: list[Line] = import_module(f"shoal.reproduce.paper_{paper}").run(quick, told)
    told(1.0)
    return lines
