"""The papers' experiments run again: what they print beside what comes out here, with a verdict a line that rows of data decide.

Which number is which paper, what its text leaves open and what cannot come out again: docs/papers.md. Each is one module; what a
claim is stands in `verdicts`, how cells are run and kept in `experiments`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from shoal.errors import ConfigError, did_you_mean
from shoal.progress import Progress, Told
from shoal.reproduce.experiments import Book, Judged, Paper, judged, run

__all__ = ["PAPERS", "Book", "Judged", "Paper", "judged", "paper", "reproduce", "run"]

PAPERS = ("000", "001", "002", "003", "004")


def paper(number: str) -> Paper:
    """A paper by its number."""
    if number not in PAPERS:
        raise ConfigError(f"There is no paper '{number}'; {did_you_mean(number, PAPERS)}")
    found: Paper = import_module(f"shoal.reproduce.paper_{number}").PAPER
    return found


def reproduce(
    number: str, *, quick: bool = False, out: str | Path | None = None, progress: Told | None = None
) -> list[Judged]:
    """Run one paper's experiments and judge its lines.

    - `number`: which paper, one of `PAPERS`.
    - `quick`: smaller samples and fewer seeds; false by default.
    - `out`: a folder that keeps every row the moment it is there, so that an interrupted run goes on where it stopped; none
      by default.
    - `progress`: called with the share that is done.

    Returns the lines of the paper, each with its verdict.
    """
    one, told = paper(number), Progress.of(progress)
    book = Book(None if out is None else Path(out))
    run(one, book, quick, told)
    told(1.0)
    return list(judged(one, book, quick))
