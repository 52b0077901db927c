"""The engine beyond memory on one machine: DuckDB, which keeps its tables in files and spills what does not fit.

Everything it writes lies in one folder that only its owner can read, and that is removed in the end, whatever happens; one that
a killed process left behind is removed by the next. The staged table is a Parquet file there, whose digest is taken when it is
written: what is judged, and what gets its name, is that file and no other.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl

from shoal.engines.base import COUNT, RECORDS, Book, Repeats, fold, require_told_apart
from shoal.engines.corners import Corners, Shape, coded_arrays
from shoal.engines.cutting import CutTree, Leaf
from shoal.engines.memory import whole_classes
from shoal.engines.solving import Solver
from shoal.engines.texts import write_slices
from shoal.errors import InputError, MissingExtraError, UnsupportedError, VerificationError
from shoal.measures.folding import Tally
from shoal.progress import Progress

if TYPE_CHECKING:
    from shoal.kernels.corners import Tree

T = TypeVar("T")

BATCH = 1 << 17
"""Records that are handed over at a time: a few megabytes of codes."""
WALK = 1 << 20
"""The same for walks, which need nothing else: the more records at a time, the more of a part's follow each other."""
STRETCH = 2_000_000
"""Rows that are sorted at a time when a table is published: together with their texts less than a gigabyte."""
PIECE = 500_000
"""Rows that blocks publish before they are sorted into a file: thousands of small files would take long to merge."""
SHARE = 0.45
"""The part of the memory that DuckDB may take for itself; the rest is for blocks, counts and Python."""
BLOCKS = 0.3
"""The part of the memory that the records of one block may take; what is left over is for Python itself."""
YES, NO = "true", "false"
PREFIX = "shoal-duckdb-"
_GONE = re.compile(rf"{PREFIX}(\d+)-")


@dataclass(frozen=True)
class Source:
    """A table that DuckDB can read: how it says so, the files it lies in, and whether all of it is text."""

    sql: str
    files: tuple[Path, ...] = ()
    as_text: bool = False
    frame: Any = None
    """An Arrow table, where it comes from memory."""
    fetch: Callable[[Path], None] | None = None
    """Puts Parquet files into a new folder, where it comes from a database."""
    names: tuple[str, ...] = ()
    """Of the columns, where a first line of text has them."""


def parquet_files(path: str | Path) -> Source:
    """A Parquet file, or all of those in a folder."""
    path = Path(path)
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"The folder '{path}' has no .parquet files.")
    for file in files:
        if not file.is_file():
            raise InputError(f"There is no file '{file}'.")
    return Source(
        f"read_parquet([{', '.join(_text(str(file)) for file in files)}], hive_partitioning = false)", tuple(files)
    )


def text_file(path: str | Path, delimiter: str, encoding: str | None = None) -> Source:
    """A delimited text file whose first line names its columns."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no file '{path}'.")
    how = "header = true, all_varchar = true, quote = '\"', escape = '\"', strict_mode = true, auto_detect = false"
    names = _header(path, delimiter, encoding)
    columns = "{" + ", ".join(f"{_text(name)}: 'VARCHAR'" for name in names) + "}"
    spelled = "" if encoding is None else f", encoding = {_text(encoding)}"
    sql = f"read_csv({_text(str(path))}, columns = {columns}, delim = {_text(delimiter)}, {how}{spelled})"
    return Source(sql.replace("all_varchar = true, ", ""), (path,), as_text=True, names=tuple(names))


def _own_columns(file: Path, source: Source) -> list[str]:
    """The columns of a file, as it names them itself."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if source.as_text:
        return list(source.names)
    try:
        return list(pq.read_schema(file).names)
    except (pa.ArrowException, OSError):
        return []  # whoever reads it says what is wrong with it


def _header(path: Path, delimiter: str, encoding: str | None) -> list[str]:
    import csv

    with path.open(encoding=encoding or "utf-8-sig", newline="") as file:
        return next(csv.reader(file, delimiter=delimiter), [])


def database_table(url: str, *, table: str | None = None, query: str | None = None) -> Source:
    """A table, or the result of a query, of a database, fetched into Parquet files when the engine starts."""
    from shoal.io.sql import store_sql

    return Source("", fetch=partial(store_sql, url=url, table=table, query=query))


def frame_source(table: Any) -> Source:
    """An Arrow table in memory."""
    return Source("source_frame", frame=table)


class DuckEngine:
    """A DuckDB database in a folder of its own.

    - `source`: where the records come from; `memory`: bytes it may take in all, 4 GB by default.
    - `folder`: where its own folder goes; the system's place for temporary files by default.
    """

    name = "duckdb"

    def __init__(self, source: Source, *, memory: int = 4 << 30, folder: str | Path | None = None) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("duckdb", "large", "A table beyond memory") from None
        self._error = duckdb.Error
        self.memory = memory
        self.collected: list[tuple[str, int]] = []
        """How many rows each answer had."""
        remove_left_behind(Path(folder or tempfile.gettempdir()))
        # Readable by its owner only, as mkdtemp makes it.
        self.folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=folder))
        self._removed = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.source = self._fetched(source)
        settings: dict[str, Any] = {
            "memory_limit": f"{max(256, int(SHARE * memory) >> 20)}MiB",
            "temp_directory": str(self.folder / "spill"),
            "preserve_insertion_order": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "max_expression_depth": "100000",
        }
        try:
            self._connection = duckdb.connect(str(self.folder / "work.duckdb"), config=settings)
            # Not the machine's own zone: elsewhere moments would be published as others.
            self._connection.execute("SET TimeZone = 'UTC'")
        except duckdb.Error as problem:
            self._removed()
            raise self._explained(problem) from None
        if source.frame is not None:
            self._connection.register("source_frame", source.frame)
        self._digest = ""
        self._names: list[str] = []
        self._stretches = 1
        self._left_out = 0

    def _fetched(self, source: Source) -> Source:
        """A source that DuckDB reads."""
        if source.fetch is None:
            return source
        try:
            source.fetch(self.folder / "source")
        except BaseException:
            self._removed()
            raise
        return parquet_files(self.folder / "source")

    @property
    def staged(self) -> Path:
        """The staged table."""
        return self.folder / "staged.parquet"

    @property
    def columns(self) -> list[str]:
        """The columns of the source."""
        from shoal.io.frames import check_names

        # DuckDB gives a column another name where it knows the first already.
        for file in self.source.files:
            require_told_apart(_own_columns(file, self.source), "DuckDB")
        names = list(self._asked(f"SELECT * FROM {self.source.sql} LIMIT 0").column_names)
        check_names(names, "the table")
        return names

    def _require_plain_time(self, names: Sequence[str], staged: bool) -> None:
        """Refuse moments of another zone than UTC, in which DuckDB would show them as other days than memory does."""
        import pyarrow.parquet as pq

        for file in () if staged or self.source.as_text else self.source.files[:1]:
            for field in (field for field in pq.read_schema(file) if field.name in names):
                zone = getattr(field.type, "tz", None)
                if zone not in (None, "UTC"):
                    raise UnsupportedError(
                        f"Column '{field.name}' holds moments of the zone {zone}, which DuckDB shows in UTC; write them "
                        'without a zone, or use engine = "memory".'
                    )

    def value_counts(self, groups: Sequence[Sequence[str]], *, most: int, staged: bool = False) -> list[Any]:
        """Counted by DuckDB, group after group."""
        answers = []
        for names in groups:
            listed, table = ", ".join(_name(name) for name in names), self._table(staged)
            self._require_plain_time(names, staged)
            found = self._asked(
                f"SELECT {listed}, count(*) AS {_name(COUNT)} FROM {table} GROUP BY ALL LIMIT {most + 1}"
            )
            self.collected.append(("value_counts", len(found)))
            answers.append(found)
        return answers

    def repeats(self, names: Sequence[str], *, missing: Sequence[str] = (), staged: bool = False) -> Repeats:
        """Counted by DuckDB."""
        gone = ", ".join(_text(text) for text in missing)
        shown = [
            f"CASE WHEN {_name(n)}::VARCHAR IN ({gone}) THEN NULL ELSE {_name(n)} END" if gone else _name(n)
            for n in names
        ]
        columns = ", ".join(f"{sql} AS k{i}" for i, sql in enumerate(shown))
        known = " AND ".join(f"k{i} IS NOT NULL" for i in range(len(names)))
        grouped = f"SELECT *, count(*) AS n FROM (SELECT {columns} FROM {self._table(staged)}) GROUP BY ALL"
        answer = self._asked(
            f"SELECT coalesce(sum(n) FILTER ({known}), 0)::BIGINT, count(*) FILTER ({known}), count(*) FILTER (n = 1) "
            f"FROM ({grouped})"
        )
        self.collected.append(("repeats", len(answer)))
        return Repeats(*(int(column[0].as_py()) for column in answer.columns))

    def leave_out(self, names: Sequence[str], values: Any) -> None:
        """What no value meets stays."""
        import pyarrow as pa

        self._left_out += 1
        gone = f"gone{self._left_out}"
        self._connection.register("given", pa.table({f"k{j}": values.column(name) for j, name in enumerate(names)}))
        self._done(f"CREATE TABLE {gone} AS FROM given")
        self._connection.unregister("given")
        same = " AND ".join(f"t.{_name(name)} IS NOT DISTINCT FROM g.k{j}" for j, name in enumerate(names))
        left = f"(SELECT t.* FROM {self.source.sql} AS t ANTI JOIN {gone} AS g ON {same})"
        self.source = replace(self.source, sql=left)

    def encode(self, books: Sequence[Book]) -> None:
        """One join a book."""
        self._done(f"CREATE TABLE coded AS SELECT {_looked_up(books)} FROM {self._joined(books, self.source.sql)}")

    def alike(self, books: Sequence[Book]) -> dict[int, int]:
        """Grouped twice."""
        table = self._joined(books, self.source.sql)
        grouped = f"SELECT count(*) AS {RECORDS} FROM {table} GROUP BY {_looked_up(books)}"
        found = self._asked(f"SELECT {RECORDS}, count(*) AS groups FROM ({grouped}) GROUP BY {RECORDS}")
        self.collected.append(("alike", len(found)))
        return dict(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))

    def sample(self, rows: int) -> pl.DataFrame:
        """Every so-manieth record."""
        count = int(self._asked("SELECT count(*) FROM coded").column(0)[0].as_py())
        step = max(1, count // rows)
        found = self._asked(f"SELECT * FROM coded WHERE rowid % {step} = 0")
        self.collected.append(("sample", len(found)))
        return pl.DataFrame(pl.from_arrow(found))

    def weigh(self, tree: Tree, shape: Shape) -> Corners:
        """One walk, batch after batch."""
        found = Corners(shape)
        names = [f"q{a}" for a in range(len(shape.sets))] + list(dict.fromkeys(name for name, _ in shape.seen))
        for rows in self._batches(f"SELECT {', '.join(names)} FROM coded WHERE {_asked_for(tree)}", WALK):
            found.add(tree, *coded_arrays(rows, shape.seen))
        self.collected.append(("weigh", len(found.counts)))
        return found

    def solve(self, tree: CutTree, solver: Solver, progress: Progress) -> Tally:
        """Sorted by leaf, and solved one after the other; what they publish goes into files of many rows."""
        leaves, total = tree.parts, Tally()
        records = sum(leaf.part.weight for leaf in leaves)
        self._stretches = -(-records // STRETCH)
        pieces = self.folder / "pieces"
        pieces.mkdir()
        for leaf in leaves:
            if leaf.groups is not None:
                total.merge(solver.known_class(leaf)[0])
        routed = f"SELECT {_route(tree)} AS part, * FROM coded"
        done = 0
        waiting: list[pl.DataFrame] = []
        for number, rows in self._leaves(f"FROM ({routed}) ORDER BY part", leaves):
            progress(done / records)
            done += rows.height
            if leaves[number].groups is None:
                published, found = solver.block(number, rows)
                total.merge(found)
            else:
                published = solver.known(leaves[number], rows)
            waiting.append(published)
            if sum(one.height for one in waiting) >= PIECE:
                self._stage(waiting, pieces / f"{done:016}.parquet", solver.seed)
                waiting = []
        if waiting:
            self._stage(waiting, pieces / "last.parquet", solver.seed)
        self._done("DROP TABLE coded")
        return total

    def _leaves(self, sql: str, leaves: Sequence[Leaf]) -> Iterator[tuple[int, pl.DataFrame]]:
        """The records of each leaf, all at once; those of classes that are known already as they come."""
        waiting: list[pl.DataFrame] = []
        current = -1
        for rows in self._batches(sql, BATCH):
            parts = rows["part"].to_numpy()
            starts = np.concatenate([[0], np.flatnonzero(np.diff(parts)) + 1, [len(parts)]])
            for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
                number = int(parts[begin])
                if number != current and waiting:
                    yield current, pl.concat(waiting)
                    waiting = []
                current = number
                piece = rows[begin:end].drop("part")
                if leaves[number].groups is None:
                    waiting.append(piece)
                else:
                    yield number, piece
        if waiting:
            yield current, pl.concat(waiting)

    def _stage(self, pieces: Sequence[pl.DataFrame], path: Path, seed: int) -> None:
        """What blocks publish, sorted by two digests of rows and seed: a run that `publish` merges with the others."""
        import pyarrow.parquet as pq

        published = pl.concat(pieces)
        self._names = published.columns
        places = [f"x{i}" for i in range(published.width)]
        named = published.rename(dict(zip(published.columns, places, strict=True)))
        content = ", ".join(places)
        digests = ", ".join(f"hash({2 * seed + i}, {content}) AS h{i}" for i in range(2))
        # The connection itself is still reading records.
        with self._connection.cursor() as own:
            own.register("given", named.to_arrow(compat_level=pl.CompatLevel.oldest()))
            found = pl.DataFrame(pl.from_arrow(own.sql(f"SELECT *, {digests} FROM given").to_arrow_table()))
        ordered = found.sort("h0", "h1")
        # A group of rows a stretch, so that whoever wants one reads nothing else.
        starts = np.searchsorted(ordered["h0"].to_numpy(), np.array(self._starts, dtype=np.uint64)).tolist()
        table = ordered.to_arrow(compat_level=pl.CompatLevel.oldest())
        how = {"compression": "lz4", "use_dictionary": places, "write_statistics": ["h0"]}
        with pq.ParquetWriter(path, table.schema, **how) as file:
            for first, end in pairwise([*starts, len(table)]):
                if end > first:
                    file.write_table(table.slice(first, end - first))

    @property
    def _starts(self) -> list[int]:
        """The least digest of each stretch."""
        return [i * 2**64 // self._stretches for i in range(self._stretches)]

    def publish(self, whole: Sequence[str]) -> None:
        """Merged by digest, a stretch after the other: an order that is a function of what is published alone."""
        import pyarrow.parquet as pq

        pieces = f"read_parquet({_text(str(self.folder / 'pieces' / '*.parquet'))})"
        shown = ", ".join(
            f"x{i}{'::BIGINT' if name in whole else ''} AS {_name(name)}" for i, name in enumerate(self._names)
        )
        empty = self._asked(f"SELECT {shown} FROM {pieces} LIMIT 0")
        with pq.ParquetWriter(self.staged, empty.schema, compression="zstd", store_schema=False) as file:
            for first, end in pairwise([*self._starts, 2**64]):
                inside = f"h0 BETWEEN {first}::UBIGINT AND {end - 1}::UBIGINT"
                file.write_table(self._asked(f"SELECT {shown} FROM {pieces} WHERE {inside} ORDER BY h0, h1"))
        shutil.rmtree(self.folder / "pieces")
        self._digest = _digest(self.staged)

    def judge(self, books: Sequence[Book], judged: Callable[[pl.DataFrame], T], merge: Callable[[T, T], T]) -> T:
        """Grouped and sorted by class, so that each is whole."""
        self._require_untouched()
        names = [name for book in books for name in book.columns.columns]
        classes = [name for name in names if name.startswith("c")]
        grouped = f"SELECT {_looked_up(books)}, count(*) AS {RECORDS} FROM {self._joined(books, self._table(True))} GROUP BY ALL"
        frames = self._batches(f"FROM ({grouped}) ORDER BY {', '.join(classes)}", BATCH)
        found = fold((judged(rows) for rows in whole_classes(frames, classes)), merge)
        self._require_untouched()
        return found

    def staged_columns(self) -> pl.DataFrame:
        """Names and types."""
        return pl.DataFrame(pl.from_arrow(self._asked(f"SELECT * FROM {self._table(True)} LIMIT 0")))

    def fingerprint(self) -> bytes:
        """Of the files' bytes, in whatever order the files come; of a frame's rows, sorted."""
        if self.source.frame is not None:
            from shoal.engines.memory import MemoryEngine

            return MemoryEngine(self.source.frame).fingerprint()
        each = sorted(_digest(file) for file in self.source.files)
        return hashlib.sha256("".join(each).encode()).digest()

    def frame(self) -> pl.LazyFrame:
        """A lazy frame; it can be read until the engine is gone."""
        return pl.scan_parquet(self.staged)

    def write(self, path: Path, target: Path, safe_csv: bool) -> None:
        """The staged file itself under another name, or a copy of it where that lies on another disk; as text, its rows."""
        from shoal.io.hidden import parquet_holds_more

        self._require_untouched()
        if target.suffix != ".parquet":
            write_slices(self._slices(), path, target, safe_csv)
            self._require_untouched()
            return
        parquet_holds_more(self.staged, f"'{target.name}'")
        mode = path.stat().st_mode
        path.unlink()
        try:
            os.link(self.staged, path)
        except OSError:
            shutil.copyfile(self.staged, path)
        path.chmod(mode & 0o777)
        if _digest(path) != self._digest:
            raise VerificationError("The staged table was changed while it was written; nothing was released.")

    def _slices(self) -> Iterator[pl.DataFrame]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.staged) as file:
            for batch in file.iter_batches(BATCH):
                yield pl.DataFrame(pl.from_arrow(batch))

    def _require_untouched(self) -> None:
        if not self.staged.is_file() or _digest(self.staged) != self._digest:
            raise VerificationError("The staged table was changed after it was written; nothing was released.")

    def discard(self) -> None:
        """The folder and everything in it."""
        self._connection.close()
        self._removed()

    def _table(self, staged: bool) -> str:
        return f"read_parquet({_text(str(self.staged))}, hive_partitioning = false)" if staged else self.source.sql

    def _joined(self, books: Sequence[Book], table: str) -> str:
        """A table with a book beside each of its values."""
        import pyarrow as pa

        joined = f"{table} AS t"
        for i, book in enumerate(books):
            keys = {f"k{j}": book.values.column(name) for j, name in enumerate(book.names)}
            columns = {name: pa.array(book.columns[name].to_numpy()) for name in book.columns.columns}
            self._connection.register("given", pa.table({**keys, **columns}))
            self._done(f"CREATE OR REPLACE TABLE book{i} AS FROM given")
            self._connection.unregister("given")
            same = " AND ".join(f"t.{_name(name)} IS NOT DISTINCT FROM b{i}.k{j}" for j, name in enumerate(book.names))
            joined += f" JOIN book{i} AS b{i} ON {same}"
        return joined

    def _asked(self, sql: str) -> Any:
        """The answer to a question, an Arrow table."""
        try:
            return self._connection.sql(sql).to_arrow_table()
        except self._error as problem:
            raise self._explained(problem) from None

    def _done(self, sql: str) -> None:
        try:
            self._connection.execute(sql)
        except self._error as problem:
            raise self._explained(problem) from None

    def _batches(self, sql: str, rows: int) -> Iterator[pl.DataFrame]:
        """The answer to a question, some rows at a time."""
        try:
            for batch in self._connection.sql(sql).to_arrow_reader(rows):
                if batch.num_rows:
                    yield pl.DataFrame(pl.from_arrow(batch))
        except self._error as problem:
            raise self._explained(problem) from None

    def _explained(self, problem: Exception) -> Exception:
        """What went wrong in a sentence. DuckDB's own may show values, so it is not repeated."""
        kind, said = type(problem).__name__, str(problem)
        if kind == "OutOfMemoryException" and "max_temp_directory_size" not in said:
            return UnsupportedError(
                f"{self.memory / 1e9:.1f} GB are too little for this table; give it more with --memory, or fewer columns."
            )
        if "No space left" in said or "max_temp_directory_size" in said:
            return InputError(
                f"The disk of '{self.folder.parent}' is full; free some space, or set TMPDIR to a folder on a larger disk."
            )
        return InputError(
            f"DuckDB cannot read or write this table ({kind}); check that its files are whole and of one kind."
        )


def _looked_up(books: Sequence[Book]) -> str:
    """The new columns of all books, which a column of the table may be called like."""
    return ", ".join(f"b{i}.{_name(name)}" for i, book in enumerate(books) for name in book.columns.columns)


def _route(tree: CutTree) -> str:
    """The number of each record's leaf, from its codes."""
    numbers = tree.numbers
    return _case(tree.nodes, lambda node: str(numbers[node]))


def _asked_for(tree: Tree) -> str:
    """Whether a record lies in a part that is asked for: after a guess that was wrong, only those of some parts do."""
    nodes = np.stack([tree.attribute, tree.first, tree.last, tree.left, tree.right], axis=1).tolist()
    return _case(nodes, lambda node: YES if nodes[node][3] >= 0 else NO)


def _case(nodes: Sequence[Sequence[int]], told: Callable[[int], str]) -> str:
    """What is told of the leaf that a record comes to, from its codes."""
    done: dict[int, str] = {}
    # Children have larger numbers than their parents.
    for node in range(len(nodes) - 1, -1, -1):
        attribute, first, last, left, right = nodes[node]
        if attribute < 0:
            done[node] = told(node)
            continue
        inside, outside, between = done.pop(left), done.pop(right), f"BETWEEN {first} AND {last}"
        if inside == outside:
            done[node] = inside
        elif outside == NO:
            # A condition on a column by itself is tested while it is read.
            done[node] = f"(q{attribute} {between} AND {inside})"
        elif inside == NO:
            done[node] = f"(q{attribute} NOT {between} AND {outside})"
        else:
            done[node] = f"CASE WHEN q{attribute} {between} THEN {inside} ELSE {outside} END"
    return done[0]


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_left_behind(folder: Path) -> None:
    """Remove the folders of engines whose process is gone: what was spilled are records."""
    for one in folder.glob(f"{PREFIX}*"):
        found = _GONE.match(one.name)
        try:
            if found is not None and one.stat().st_uid == os.getuid() and not _runs(int(found[1])):
                shutil.rmtree(one, ignore_errors=True)
        except OSError:
            continue


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
