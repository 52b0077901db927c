"""What an engine is: wherever the records are, the few things that have to be done with all of them.

The road is written once (`shoal.engines.walk`) and never holds a record. It asks an engine for counts, hands it look-up tables,
cuts and functions, and gets counts back. An engine keeps three tables: the *source* as it came, the *coded* one that `encode`
makes of it, and the *staged* one that `solve` and `publish` make, which is what a reader will get.

| method | what it does with the records | what comes back |
|---|---|---|
| `value_counts` | counts the distinct values of columns, or of some together, of the source or the staged table | a row a value |
| `repeats` | counts how often the values of some columns repeat | three numbers |
| `alike` | counts the records of the source that books make equal | a row a number of records |
| `leave_out` | leaves records with some values out of the source, for good | nothing |
| `encode` | looks every value up in books: the coded table | nothing |
| `sample` | takes some coded records, evenly spaced, for what only warns | some records |
| `weigh` | counts the corners of parts (`shoal.engines.corners`) | a cell a part, attribute and code |
| `solve` | gives all records of a block to a function, block by block, and stages what it publishes | losses, added up |
| `publish` | puts the staged rows into an order that tells nothing, as they will lie in the file | nothing |
| `judge` | groups the staged rows into classes, and gives a function whole classes at a time | what it found, folded |
| `fingerprint` | tells the source by its content, after `encode`, which reads all of it | a digest |
| `write` | puts the staged table at a path | nothing |
| `discard` | removes everything it kept | nothing |

Nothing that comes back grows with the records, but for `sample`, which has a bound of its own. None of the functions may depend
on the order or the grouping in which records reach them, except that a block or a class is always whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import polars as pl

from shoal.errors import InputError, UnsupportedError

if TYPE_CHECKING:
    from shoal.engines.corners import Corners, Shape
    from shoal.engines.cutting import CutTree
    from shoal.engines.solving import Solver
    from shoal.kernels.corners import Tree
    from shoal.measures.folding import Tally
    from shoal.progress import Progress

T = TypeVar("T")

RECORDS = "records"
"""The column that says how many records a row stands for, beside columns of the house."""
COUNT = "shoal: records"
"""The same beside columns of a table, of which one may well be called records."""


@dataclass(frozen=True, eq=False)
class Book:
    """A look-up table: what becomes of each distinct value, or combination of values, of some columns.

    `values` is what `value_counts` gave for them, as the engine itself writes values (an Arrow table, without its counts), and
    `columns` has what each row becomes, in the same order: one new column or several.
    """

    names: tuple[str, ...]
    values: Any
    columns: pl.DataFrame


class Repeats(NamedTuple):
    """How often values repeat: records that have one, how many values there are, and records that no other equals."""

    known: int
    distinct: int
    alone: int


class Engine(Protocol):
    """The protocol; docs/scale.md explains it."""

    @property
    def name(self) -> str:
        """What it is called: memory, duckdb or spark."""

    @property
    def columns(self) -> list[str]:
        """The columns of the source."""

    def value_counts(self, groups: Sequence[Sequence[str]], *, most: int, staged: bool = False) -> list[Any]:
        """For each group of columns its distinct values, as an Arrow table with a last column `COUNT`.

        Rows come in any order; missing is a value. Where there are more than `most`, any `most` + 1 of them.
        """

    def repeats(self, names: Sequence[str], *, missing: Sequence[str] = (), staged: bool = False) -> Repeats:
        """How often the values of some columns together repeat; the texts `missing` are no values."""

    def leave_out(self, names: Sequence[str], values: Any) -> None:
        """Leave out of the source, from now on, the records whose values of some columns are among those of an Arrow table."""

    def encode(self, books: Sequence[Book]) -> None:
        """Make the coded table: for each record the new columns of all books. Every value stands in its book."""

    def alike(self, books: Sequence[Book]) -> Mapping[int, int]:
        """How many groups of so many records there are in the source that books say the same of."""

    def sample(self, rows: int) -> pl.DataFrame:
        """About so many records of the coded table, evenly spaced, or all of them."""

    def weigh(self, tree: Tree, shape: Shape) -> Corners:
        """Count the corners of parts in one walk over the coded table (columns q0, q1 … and s0, s1 …)."""

    def solve(self, tree: CutTree, solver: Solver, progress: Progress) -> Tally:
        """Give the coded records of each leaf to the solver and stage what it publishes; its tallies, merged."""

    def publish(self, whole: Sequence[str]) -> None:
        """Order the staged rows by what they show and the solver's seed alone.

        The columns `whole` are numbers in which every one turned out to be a whole one.
        """

    def judge(self, books: Sequence[Book], judged: Callable[[pl.DataFrame], T], merge: Callable[[T, T], T]) -> T:
        """Look the staged columns up in books (c0, c1 … and s0, s1 …), count equal rows, and fold whole classes.

        `judged` is given frames of the looked-up columns and `records`, the rows of a class (equal c0, c1 …) beside each other
        and never in two frames.
        """

    def staged_columns(self) -> pl.DataFrame:
        """The staged table without its rows: names and types."""

    def fingerprint(self) -> bytes:
        """A digest of the encoded source's content, whatever order its rows or files come in. Never published as it is."""

    def frame(self) -> Any:
        """The staged table in the engine's own kind of frame, of which nothing is read before somebody asks."""

    def write(self, path: Path, target: Path, safe_csv: bool) -> None:
        """Put the staged table, exactly as it was judged, into the file at `path`, which will be called `target`."""

    def discard(self) -> None:
        """Remove everything that was kept; nothing of the records stays anywhere."""


def require_told_apart(names: Sequence[str], engine: str) -> None:
    """Refuse names that an engine takes for one: twice the same, or in other capitals."""
    known: dict[str, str] = {}
    for name in names:
        if name.lower() not in known:
            known[name.lower()] = name
        elif known[name.lower()] == name:
            raise InputError(f"Column '{name}' is there twice; rename one.")
        else:
            raise UnsupportedError(
                f"Columns '{known[name.lower()]}' and '{name}' differ in capitals alone, which {engine} does not tell apart; "
                "rename one."
            )


def fold(parts: Iterable[T], merge: Callable[[T, T], T]) -> T:
    """All parts merged, one after the other; there is at least one."""
    turns = iter(parts)
    found = next(turns)
    for part in turns:
        found = merge(found, part)
    return found
