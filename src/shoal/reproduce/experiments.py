"""Experiments as cells that are run one by one: each gives one row of figures, which is kept the moment it is there.

A cell is a set of settings (a size, a k, an algorithm, a seed); its row is the settings, what was measured, the processor seconds
that it took, a digest of what all cells of the experiment share, and the version. Rows stand in one CSV file an experiment. A run
that was interrupted goes on with the cells that have no row yet; rows that were made under other settings are made again.
"""

from __future__ import annotations

import csv
import hashlib
import io
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TypeVar

from shoal.errors import InputError
from shoal.io.atomic import atomic_path
from shoal.progress import Progress
from shoal.reproduce.figures import Figure
from shoal.reproduce.verdicts import Claim, Row, Rows, Value, Verdict
from shoal.version import VERSION

Cell = dict[str, Value]
Made = TypeVar("Made")

# Runs shorter than this are run again, so that what is loaded once is not timed with them.
SHORT = 30.0


@dataclass(frozen=True)
class Experiment:
    """`cells(quick)` are its settings, `run` measures one of them; `setting` says in words what all cells share."""

    name: str
    cells: Callable[[bool], Sequence[Cell]]
    run: Callable[[Cell, Progress], Cell]
    setting: str

    @property
    def digest(self) -> str:
        """By this a row is known as made under these settings."""
        return hashlib.sha256(f"{self.name}: {self.setting}".encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Line:
    """One statement or number of a paper: where it stands, what it says, and the claim that is tested against rows.

    Where one statement is tested under several readings, `beside` has the statement and the reading, for a table of both.
    """

    about: str
    what: str
    printed: str
    claim: Claim
    experiment: str
    note: str = ""
    beside: tuple[str, str] | None = None


@dataclass(frozen=True)
class Wish:
    """What a paper wishes for: whose it is, where it is here, and what it gives, from the rows of an experiment."""

    wish: str
    where: str
    gives: Callable[[Rows], str]
    experiment: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper: its experiments, its lines, its figures, what has no line and why, what it wishes for, and how it is cited.

    `readings` says what the lines that stand beside each other differ in.
    """

    number: str
    title: str
    experiments: tuple[Experiment, ...]
    lines: tuple[Line, ...]
    figures: tuple[Figure, ...]
    without: tuple[tuple[str, str], ...]
    wishes: tuple[Wish, ...]
    cited: str = ""
    readings: str = ""


@dataclass(frozen=True)
class Judged:
    """A line and its verdict."""

    line: Line
    verdict: Verdict
    ours: str
    setting: str

    def to_dict(self) -> dict[str, str]:
        """For JSON."""
        line = self.line
        return {
            "about": line.about,
            "what": line.what,
            "printed": line.printed,
            "ours": self.ours,
            "verdict": self.verdict,
            "tested": line.claim.says,
            "settings": self.setting,
            "note": line.note,
        }


# What stands behind the figures of every row: processor seconds, the digest of the settings, and the version.
TAIL = ("took", "settings", "version")


class Book:
    """The rows of all experiments: in memory, and in a folder if there is one."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.rows: dict[str, list[Row]] = {}

    def path(self, experiment: Experiment) -> Path | None:
        """The file of an experiment."""
        return None if self.folder is None else self.folder / f"{experiment.name}.csv"

    def open(self, experiment: Experiment) -> list[Row]:
        """What an earlier run has kept of an experiment."""
        name = experiment.name
        if name not in self.rows:
            path = self.path(experiment)
            self.rows[name] = [] if path is None or not path.exists() else _read(path, experiment.digest)
        return self.rows[name]

    def known(self, experiment: Experiment, cells: Sequence[Cell]) -> list[Row | None]:
        """The row of each cell, if it is there; all cells of an experiment name the same settings."""
        names = list(cells[0]) if cells else []
        found = {tuple(row.get(name) for name in names): row for row in reversed(self.open(experiment))}
        return [found.get(tuple(cell[name] for name in names)) for cell in cells]

    def add(self, experiment: Experiment, row: Row, took: float) -> None:
        """Keep a row: whole lines only, so that whatever stops this leaves a file that can be read."""
        rows = self.open(experiment)
        row = {**row, "took": round(took, 3)}
        if rows and list(rows[0]) != list(row):
            rows.clear()  # made by code that measured something else
        path = self.path(experiment)
        if path is not None:
            lines = [] if rows else [_header(row)]
            with path.open("a" if rows else "w", encoding="utf-8", newline="") as handle:
                handle.write(_text([*lines, _line(row, experiment)]))
        rows.append(row)

    def sort(self, experiment: Experiment, quick: bool) -> None:
        """The rows of the cells that are asked for in their order, whichever was ready first; what else there is, behind them."""
        rows, first = self.open(experiment), self.of(experiment, quick)
        asked = {id(row) for row in first}
        ordered = [*first, *(row for row in rows if id(row) not in asked)]
        if all(one is other for one, other in zip(ordered, rows, strict=True)):
            return
        path = self.path(experiment)
        if path is not None:
            text = _text([_header(ordered[0]), *(_line(row, experiment) for row in ordered)])
            with atomic_path(path, force=True) as temporary:
                temporary.write_text(text, encoding="utf-8")
        rows[:] = ordered

    def of(self, experiment: Experiment, quick: bool) -> list[Row]:
        """The rows of the cells that are asked for, and no others that lie in the file."""
        return [row for row in self.known(experiment, experiment.cells(quick)) if row is not None]


def _header(row: Row) -> list[str]:
    return [*row, *TAIL[1:]]


def _line(row: Row, experiment: Experiment) -> list[Value]:
    return [*row.values(), experiment.digest, VERSION]


def _text(lines: Iterable[Sequence[Value]]) -> str:
    """Lines of a file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def _read(path: Path, digest: str) -> list[Row]:
    """The whole rows of a file that were made under these settings.

    A line that was cut off is taken away, so that the next one does not go on with it, and so are rows of other settings.
    """
    text = path.read_text(encoding="utf-8")
    lines = list(csv.reader(io.StringIO(text[: text.rfind("\n") + 1])))
    if not lines:
        return []
    header = lines[0]
    if tuple(header[-3:]) != TAIL or any(len(line) != len(header) or line[-1] != VERSION for line in lines[1:]):
        raise InputError(f"'{path}' holds no rows of this version of Shoal; choose another folder, or delete the file.")
    kept = [line for line in lines[1:] if line[-2] == digest]
    whole = _text([header, *kept])
    if whole != text:
        with atomic_path(path, force=True) as temporary:
            temporary.write_text(whole, encoding="utf-8")
    return [{key: _value(cell) for key, cell in zip(header[:-2], line[:-2], strict=True)} for line in kept]


def _value(cell: str) -> Value:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def missing(paper: Paper, book: Book, quick: bool) -> list[tuple[Experiment, Cell]]:
    """The cells of a paper that have no row yet."""
    found = []
    for one in paper.experiments:
        cells = one.cells(quick)
        found += [(one, cell) for cell, row in zip(cells, book.known(one, cells), strict=True) if row is None]
    return found


def measured(experiment: Experiment, cell: Cell, progress: Progress) -> tuple[Row, float]:
    """The row of a cell, and the processor seconds that it took."""
    began = time.process_time()
    found = experiment.run(cell, progress)
    return {**cell, **found}, time.process_time() - began


def named(experiment: Experiment, cell: Cell) -> str:
    """A cell in words."""
    words = ", ".join(value if isinstance(value, str) else f"{name} = {value}" for name, value in cell.items())
    return f"{experiment.name}: {words}"


def run(paper: Paper, book: Book, quick: bool, progress: Progress) -> None:
    """Every cell of a paper that has no row yet, one after the other."""
    todo = missing(paper, book, quick)
    for experiment, cell in todo:
        with progress.stage(named(experiment, cell), 1 / len(todo)) as part:
            row, took = measured(experiment, cell, part)
        book.add(experiment, row, took)


def judged(paper: Paper, book: Book, quick: bool) -> Iterator[Judged]:
    """The lines of a paper with their verdicts; an experiment that is not finished decides nothing yet."""
    by_name = {one.name: (one, book.of(one, quick), one.cells(quick)) for one in paper.experiments}
    for line in paper.lines:
        experiment, rows, cells = by_name[line.experiment]
        verdict, ours = line.claim.verdict(rows)
        if len(rows) < len(cells) and verdict != "no claim":
            verdict, ours = "not run", f"{len(rows)} of {len(cells)} runs are there"
        yield Judged(line, verdict, ours, experiment.setting)


def remembered(most: int) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """As `functools.lru_cache` for work that is told of a `progress`, which is no part of what it is remembered by."""

    def around(work: Callable[..., Made]) -> Callable[..., Made]:
        found: dict[tuple[Value, ...], Made] = {}

        @wraps(work)
        def once(*settings: Value, progress: Progress) -> Made:
            if settings not in found:
                made = work(*settings, progress=progress)
                while len(found) >= most:
                    del found[next(iter(found))]
                found[settings] = made
            return found[settings]

        return once

    return around


def timed(work: Callable[[], Made], again: bool = True) -> tuple[Made, float]:
    """What some work makes, and its processor seconds; short work is done twice, if `again`, and the shorter time taken."""
    started = time.process_time()
    made = work()
    spent = time.process_time() - started
    if again and spent < SHORT:
        started = time.process_time()
        work()
        spent = min(spent, time.process_time() - started)
    return made, spent
