"""The engine for tables on a Spark cluster: records stay with the executors, counts and cuts go to the driver.

Spark reads, sends and writes; the functions of `shoal.engines.spark_tasks` count values and corners, solve blocks and judge
classes where the records are, and hand each other packs of records (`shoal.engines.spark_packs`). The coded table and the solved
blocks are kept by Spark itself, and made again from the source where an executor is lost: they come out the same, since neither
partitions nor batches decide anything. The staged table is a folder of Parquet
files (`shoal.engines.spark_files`) whose digest is taken when it is written: what is judged, and what gets its name, are those
files and no others.
"""

from __future__ import annotations

import math
import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import polars as pl
import pyarrow as pa

from shoal.engines import spark_corners as corners
from shoal.engines import spark_staged as staged_files
from shoal.engines import spark_tasks as tasks
from shoal.engines.base import COUNT, RECORDS, Book, Repeats, fold, require_told_apart
from shoal.engines.corners import Corners, Shape
from shoal.engines.cutting import CutTree
from shoal.engines.digests import added
from shoal.engines.solving import Solver
from shoal.engines.spark_counts import merged_counts, value_counts
from shoal.engines.spark_files import Files, absolute
from shoal.engines.spark_packs import DATA, DIGEST, NOTE, TO, frames, packs, unpacked
from shoal.errors import ConfigError, InputError, MissingExtraError, UnsupportedError, VerificationError
from shoal.io.frames import check_names
from shoal.measures.folding import Tally
from shoal.progress import Progress

if TYPE_CHECKING:
    from shoal.kernels.corners import Tree

T = TypeVar("T")

FILE = 1_000_000
"""Records of one file of the staged table: some tens of megabytes, which an executor reads whole to take its digest."""
TOGETHER = 64 << 20
"""Bytes of counts that the driver adds up itself; more are added up by the executors first."""
FEW = 20_000
"""Distinct values of some columns that an executor counts in its memory; where there are more, Spark itself counts."""
SMALL = 200_000
"""Rows of a look-up table that is sent to every executor; larger ones are joined as Spark sees fit."""
PACK = f"{TO} int, {DATA} binary"
PIECE = f"{PACK}, {NOTE} string"
USUAL = {"string", "boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "date", "binary"}
USUAL |= {"timestamp", "timestamp_ntz"}
"""Kinds of values that executors count themselves."""


class Staged(NamedTuple):
    """A folder of files that is ready to get its name, and the digest of the files."""

    place: str
    digest: str


class SparkEngine:
    """A Spark DataFrame, worked on in its own session.

    - `frame`: the source; `staging`: a folder that driver and executors reach, in which the staged table gets a folder of its
      own. By default a temporary one, which is possible only where all executors run on this machine.
    """

    name = "spark"

    def __init__(self, frame: Any, *, staging: str | Path | None = None) -> None:
        try:
            from pyspark.errors import PySparkException
            from pyspark.sql import functions
        except ImportError:
            raise MissingExtraError("pyspark", "spark", "A Spark DataFrame") from None
        if ".connect." in type(frame).__module__:
            raise UnsupportedError(
                "This DataFrame comes from Spark Connect, which runs no functions on whole blocks and renames no folders; use a "
                "session of the cluster itself (SparkSession.builder.master(...))."
            )
        self._errors = _spark_errors(PySparkException)
        self._f = functions
        self.session = frame.sparkSession
        self.columns = list(frame.columns)
        check_names(self.columns, "the table")
        require_told_apart(self.columns, "Spark")
        # Columns go by their places: a name may have dots, spaces and quotes.
        self._source = frame.toDF(*(f"x{i}" for i in range(len(self.columns))))
        self.collected: list[tuple[str, int]] = []
        """How many rows each answer had."""
        self._coded: Any = None
        self._pieces: Any = None
        self._types: Any = None
        self._names: list[str] = []
        self.digest = ""
        """Of the staged files."""
        self.records = self._partitions = 0
        self._sums: list[int] = []
        with self._sentences():
            self.files = Files(self.session, absolute(staging) if staging is not None else _temporary(self.session))
            self.folder = self.files.new_folder()
        self._place = self.staged
        self.released: str | None = None
        """The digest of what got its name last."""

    @property
    def staged(self) -> str:
        """Where the staged table is."""
        return f"{self.folder}/staged.parquet"

    def value_counts(self, groups: Sequence[Sequence[str]], *, most: int, staged: bool = False) -> list[Any]:
        """All groups in one pass; those with many values, or values of unusual kinds, by Spark itself."""
        names = list(dict.fromkeys(name for group in groups for name in group))
        table, places = self._table(staged, names)
        place = dict(zip(names, places, strict=True))
        rows, opened = (self._contents(self._place), staged_files.staged_frames) if staged else (table, frames)
        usual = {name for name, field in zip(names, table.schema, strict=True) if field.dataType.typeName() in USUAL}
        asked = {
            which: [place[name] for name in group] for which, group in enumerate(groups) if usual.issuperset(group)
        }
        found = self._counted_by_tasks(rows, opened, list(asked.values())) if asked else []
        known = dict(zip(asked, found, strict=True))
        answers = []
        for which, group in enumerate(groups):
            counted = known.get(which)
            if counted is None:
                counted = self._counted_by_spark(table, [place[name] for name in group], most)
            self._collect("value_counts", counted.num_rows)
            answers.append(counted.slice(0, most + 1).rename_columns([*group, COUNT]))
        return answers

    def _counted_by_tasks(
        self, table: Any, opened: Callable[[Any], Iterator[pl.DataFrame]], groups: list[list[str]]
    ) -> list[Any]:
        """A table for each group, or nothing where there are more than a few values."""
        found: list[Any] = [None] * len(groups)
        few = FEW
        with self._sentences():
            counted = table.mapInArrow(lambda batches: value_counts(opened(batches), groups, few), PACK)
            own = counted.repartitionById(len(groups), self._f.col(TO))
            merged = own.mapInArrow(lambda batches: merged_counts(batches, few), PACK).toArrow()
        for which, data in zip(merged.column(TO).to_pylist(), merged.column(DATA), strict=True):
            if data.is_valid:
                found[which] = unpacked(data.as_buffer()).to_arrow()
        return found

    def _counted_by_spark(self, table: Any, places: list[str], most: int) -> Any:
        with self._sentences():
            return table.groupBy(*places).agg(self._f.count("*").alias(RECORDS)).limit(most + 1).toArrow()

    def repeats(self, names: Sequence[str], *, missing: Sequence[str] = (), staged: bool = False) -> Repeats:
        """Counted by Spark."""
        f, (table, places) = self._f, self._table(staged, names)
        if missing:
            gone = [f.when(f.col(p).cast("string").isin(*missing), None).otherwise(f.col(p)).alias(p) for p in places]
            table = table.select(*gone)
        there = f.lit(True)
        for place in places:
            there = there & f.col(place).isNotNull()
        grouped = table.groupBy(*places).agg(f.count("*").alias(RECORDS))
        numbers = (
            f.coalesce(f.sum(f.when(there, f.col(RECORDS))), f.lit(0)),
            f.count_if(there),
            f.count_if(f.col(RECORDS) == 1),
        )
        with self._sentences():
            row = grouped.agg(*numbers).collect()[0]
        self._collect("repeats", 1)
        return Repeats(*(int(value) for value in row))

    def leave_out(self, names: Sequence[str], values: Any) -> None:
        """What no value meets stays."""
        f, own = self._f, {f"g{j}": values.column(name) for j, name in enumerate(names)}
        with self._sentences():
            gone = f.broadcast(self.session.createDataFrame(pa.table(own)))
            same = [f.col(f"x{self.columns.index(name)}").eqNullSafe(f.col(f"g{j}")) for j, name in enumerate(names)]
            self._source = self._source.join(gone, same, "left_anti")

    def encode(self, books: Sequence[Book]) -> None:
        """Looked up and digested in one pass."""
        from pyspark import StorageLevel

        source, lookup = self._source.columns, _lookup(self.columns, books)
        kept = f"{tasks.COUNTED} int, {DIGEST} binary, {DATA} binary"
        with self._sentences():
            table = self._with_large(self._source, self.columns, books)
            coded = table.mapInArrow(lambda batches: tasks.encoded(batches, lookup, source), kept)
            self._coded = coded.persist(StorageLevel.MEMORY_AND_DISK)
            few = self._coded.select(tasks.COUNTED, DIGEST)
            answer = few.mapInArrow(tasks.summed, f"{tasks.COUNTED} int, {DIGEST} binary").toArrow()
            self._partitions = int(self._coded.rdd.getNumPartitions())
        self._collect("encode", answer.num_rows)
        self.records = sum(answer.column(0).to_pylist())
        self._sums = added(b"".join(answer.column(1).to_pylist())).tolist()

    def alike(self, books: Sequence[Book]) -> dict[int, int]:
        """Grouped twice."""
        f, columns = self._f, [name for book in books for name in book.columns.columns]
        with self._sentences():
            table = self._with_large(self._source, self.columns, books)
            rows = self._counted(table, frames, _lookup(self.columns, books), columns)
            sizes = rows.mapInArrow(tasks.sizes, f"{RECORDS} long, groups long")
            found = sizes.groupBy(RECORDS).agg(f.sum("groups").alias("groups")).toArrow()
        self._collect("alike", found.num_rows)
        return dict(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))

    def sample(self, rows: int) -> pl.DataFrame:
        """Every so-manieth record of each partition."""
        step = max(1, self.records // rows)
        with self._sentences():
            taken = self._packs().mapInArrow(lambda batches: tasks.sampled(batches, step), f"{DATA} binary").toArrow()
        found = pl.concat(list(packs(taken.to_batches())))
        self._collect("sample", found.height)
        return found

    def weigh(self, tree: Tree, shape: Shape) -> Corners:
        """Each partition counts for itself; what they counted is added up."""
        packed = "first long, data binary"
        found = Corners(shape)
        size = int(shape.start[-1]) * shape.cell_bytes
        with self._sentences():
            rows = self._packs().mapInArrow(lambda batches: corners.counted(batches, tree, shape), packed)
            if size * self._partitions > TOGETHER:
                rows = rows.groupBy("first").applyInArrow(lambda table: corners.merged(table, shape), packed)
            answer = rows.toArrow()
        for first, data in zip(answer.column("first").to_pylist(), answer.column("data"), strict=True):
            corners.add_piece(found, first, corners.piece_of(data.as_py(), shape))
        self._collect("weigh", len(found.counts))
        return found

    def solve(self, tree: CutTree, solver: Solver, progress: Progress) -> Tally:
        """All records of a block go to one executor; those of a class that is known already stay where they are."""
        from pyspark import StorageLevel

        sent = tasks.without_records(solver)
        self._types, self._names = _announced(sent.empty)
        flat, files, number = tree.flat(tree.numbers), self._files, self._f.col(TO)
        leaves = {number: leaf for number, leaf in enumerate(tree.parts) if leaf.groups is not None}
        total = fold((solver.known_class(leaf)[0] for leaf in leaves.values()), Tally.merge) if leaves else Tally()
        with self._sentences():
            routed = self._packs().mapInArrow(lambda batches: tasks.routed(batches, flat), PACK)
            blocks = routed.where(~number.isin(list(leaves))) if leaves else routed
            # A block is a partition of its own: whole, however many there are.
            pieces = blocks.repartitionById(len(tree.parts), number).mapInArrow(
                lambda batches: tasks.solved(batches, sent, files), PIECE
            )
            if leaves:
                rest = routed.where(number.isin(list(leaves)))
                pieces = pieces.union(rest.mapInArrow(lambda batches: tasks.known(batches, sent, leaves, files), PIECE))
            self._pieces = pieces.persist(StorageLevel.DISK_ONLY)
            notes = self._pieces.select(NOTE).where(self._f.col(NOTE).isNotNull())
            told = notes.mapInArrow(tasks.folded_notes, f"{NOTE} string").toArrow().column(0).to_pylist()
        self._collect("solve", len(told))
        for note in told:
            total.merge(tasks.tallied(note))
        self._coded.unpersist()
        return total

    def publish(self, whole: Sequence[str]) -> None:
        """Each file put into order by those who have its rows."""
        from pyspark.sql.pandas.types import from_arrow_schema

        number = self._f.col(TO)
        types = pa.schema(
            pa.field(field.name, pa.int64() if name in whole else field.type)
            for field, name in zip(self._types, self._names, strict=True)
        )
        with self._sentences():
            pieces = self._pieces.where(number >= 0).select(TO, DATA).repartitionById(self._files, number)
            table = pieces.mapInArrow(lambda batches: staged_files.in_order(batches, types), from_arrow_schema(types))
            table.toDF(*self._names).write.parquet(self.staged, compression="zstd")
            self.files.tidy(self.staged)
            self.digest = self._digest_of_files(self.staged)
        self._pieces.unpersist()

    def judge(self, books: Sequence[Book], judged: Callable[[pl.DataFrame], T], merge: Callable[[T, T], T]) -> T:
        """Counted and put together, so that each class is whole."""
        self.require_untouched()
        names = [name for book in books for name in book.columns.columns]
        classes = [name for name in names if name.startswith("c")]
        with self._sentences():
            table, opened = self._contents(self._place), staged_files.staged_frames
            if any(len(book.values) > SMALL for book in books):
                table, opened = self._with_large(self._read_staged(), self._names, books), frames
            rows = self._counted(table, opened, _lookup(self._names, books), classes)
            answer = rows.mapInArrow(
                lambda batches: tasks.judged_classes(batches, classes, judged, merge), "data binary"
            ).toArrow()
        self._collect("judge", answer.num_rows)
        found: T = fold((pickle.loads(data.as_py()) for data in answer.column("data")), merge)
        self.require_untouched()
        return found

    def staged_columns(self) -> pl.DataFrame:
        """Names and types."""
        with self._sentences():
            return pl.DataFrame(pl.from_arrow(self._read_staged().limit(0).toArrow().rename_columns(self._names)))

    def fingerprint(self) -> bytes:
        """Of all rows, whose digests were added up: in which order they come makes no difference."""
        return " ".join(str(value) for value in (self.records, *self._sums, *self.columns)).encode()

    def frame(self) -> Any:
        """The masked table as a Spark DataFrame, wherever it lies by now."""
        with self._sentences():
            return self.session.read.parquet(self._place)

    def write(self, path: Path, target: Path, safe_csv: bool) -> None:
        """Give the staged folder its name."""
        self.release(self.ready(str(target), safe_csv), str(target), {}, False, None)

    def ready(self, target: str, safe_csv: bool = False) -> Staged:
        """The staged folder in the format of a target: Parquet as it is, or text with the same rows in as many files."""
        ending = target.rpartition(".")[2]
        if ending == "parquet":
            return Staged(self._place, self.digest)
        self.require_untouched()
        place = f"{self.folder}/staged.{ending}"
        name = target.rpartition("/")[2]
        with self._sentences():
            self.files.remove(place)
            files = self._contents(self._place)
            number = self._f.col("number")
            parts = max(self.files.numbers(self._place)) + 1
            lines = files.repartitionById(parts, number).mapInArrow(
                lambda batches: staged_files.texts(batches, name, safe_csv), "value string"
            )
            lines.write.text(place, lineSep="\n", compression="none")
            self.files.tidy(place)
            digest = self._digest_of_files(place)
            pairs = files.join(self._contents(place).withColumnRenamed("content", "written"), "number", "full")
            found = pairs.mapInArrow(lambda batches: staged_files.compared(batches, name, safe_csv), "wrong string")
            wrong = found.where(found.wrong != "").limit(1).toArrow().column(0).to_pylist()
        self._collect("text", len(wrong))
        if wrong:
            raise VerificationError(wrong[0])
        self.require_untouched()
        return Staged(place, digest)

    def _contents(self, place: str) -> Any:
        """The bytes of each file of a folder, and its number."""
        f = self._f
        number = f.regexp_extract("path", r"part-(\d+)\.[a-z]+$", 1).cast("int").alias("number")
        return self.session.read.format("binaryFile").load(place).select(number, "content")

    def release(
        self,
        staged: Staged,
        target: str,
        companions: Mapping[str, tuple[bytes, str]],
        force: bool,
        progress: Progress | None,
    ) -> None:
        """Give a staged folder its name, after small files that belong to it (bytes and mode, by path): all of them or none."""
        self.require_untouched()
        with self._sentences():
            self.files.require_plain(staged.place)
            # Elsewhere a rename would be a copy, which can be seen half done: the copy comes first, under a hidden name.
            own = staged.place.startswith(f"{self.folder}/") and self.files.holds(target)
            ready = staged.place if own else self.files.copied(staged.place, target)
            folder = ready.rpartition("/")[0]
            try:
                if self._digest_of_files(ready) != staged.digest:
                    raise VerificationError("The staged table was changed while it was written; nothing was released.")
                Progress.of(progress).seal()
                self.files.publish(ready, target, companions, folder, force)
            finally:
                if ready != staged.place:
                    self.files.remove(folder)
        self.released = staged.digest
        if staged.place == self._place and own:
            self._place = target

    def save(self, name: str, manifest: str) -> None:
        """Put the staged table into the catalog, with its manifest as a property."""
        self.require_untouched()
        with self._sentences():
            if self.session.catalog.tableExists(name):
                raise InputError(f"A table '{name}' already exists: choose another name, or drop it first.")
            writer = self.session.read.parquet(self._place).writeTo(name).using("parquet")
            writer.tableProperty("shoal.manifest", manifest).create()

    def discard(self) -> None:
        """What Spark keeps of it, and the folder with everything in it."""
        for table in (self._coded, self._pieces):
            if table is not None:
                table.unpersist()
        with self._sentences():
            self.files.remove(self.folder)

    def _collect(self, what: str, rows: int) -> None:
        self.collected.append((what, rows))

    def _table(self, staged: bool, names: Sequence[str]) -> tuple[Any, list[str]]:
        """Some columns of the source or the staged table, and how they are called here."""
        own = self._names if staged else self.columns
        places = [f"x{own.index(name)}" for name in names]
        return (self._read_staged() if staged else self._source).select(*places), places

    def _read_staged(self) -> Any:
        with self._sentences():
            return self.session.read.parquet(self._place).toDF(*(f"x{i}" for i in range(len(self._names))))

    @property
    def _files(self) -> int:
        """How many files the staged table has, and in how many parts it is judged."""
        return max(1, math.ceil(self.records / FILE))

    def _packs(self) -> Any:
        """The coded table."""
        return self._coded.select(DATA)

    def _counted(
        self, table: Any, opened: Callable[[Any], Iterator[pl.DataFrame]], lookup: tasks.Lookup, by: Sequence[str]
    ) -> Any:
        """Records that books say the same of, counted; those that agree `by` some of it are in one partition."""
        buckets = self._files
        counted = table.mapInArrow(lambda batches: tasks.counted_rows(opened(batches), lookup, by, buckets), PACK)
        return counted.repartitionById(buckets, self._f.col(TO))

    def _with_large(self, table: Any, names: Sequence[str], books: Sequence[Book]) -> Any:
        """The table with what large books say beside each record."""
        f = self._f
        for i, book in enumerate(book for book in books if len(book.values) > SMALL):
            keys = {f"b{i}k{j}": book.values.column(name) for j, name in enumerate(book.names)}
            columns = {name: pa.array(book.columns[name].to_numpy()) for name in book.columns.columns}
            given = self.session.createDataFrame(pa.table({**keys, **columns}))
            same = [f.col(place).eqNullSafe(f.col(key)) for place, key in zip(_places(book, names), keys, strict=True)]
            table = table.join(given, same, "inner").drop(*keys)
        return table

    def _digest_of_files(self, place: str) -> str:
        """Of all files' bytes, whatever they are called."""
        f = self._f
        files = self.session.read.format("binaryFile").load(place)
        each = f.sort_array(f.collect_list(f.sha2("content", 256)))
        row = files.select("content").agg(f.sha2(f.concat_ws(" ", each), 256)).collect()[0]
        self._collect("digest", 1)
        return str(row[0])

    def require_untouched(self) -> None:
        """Refuse a staged table that is not what it was when it was written."""
        with self._sentences():
            same = self.files.exists(self._place) and self._digest_of_files(self._place) == self.digest
        if not same:
            raise VerificationError("The staged table was changed after it was written; nothing was released.")

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """What goes wrong in Spark in a sentence. Spark's own may show values, so it is not repeated."""
        try:
            with warnings.catch_warnings():
                # PySpark warns of pandas 3, of which no frame is made here.
                warnings.filterwarnings("ignore", message="PySpark does not yet fully support", category=FutureWarning)
                yield
        except self._errors as problem:
            raise _explained(problem) from None


def _spark_errors(own: type[Exception]) -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JError

    return (own, Py4JError)


def _explained(problem: Exception) -> Exception:
    said = str(problem)
    kind = getattr(problem, "getCondition", lambda: None)() or type(problem).__name__
    if "ModuleNotFoundError" in said and "shoal" in said:
        return InputError("The executors cannot import shoal; install it in the Python that they use (PYSPARK_PYTHON).")
    if "OutOfMemory" in said:
        return UnsupportedError(
            "An executor has too little memory for this table; give executors more, or set smaller blocks ([method] blocks)."
        )
    if "maxResultSize" in said:
        return UnsupportedError(
            "The counts that this table is cut by are more than the driver may take; raise spark.driver.maxResultSize."
        )
    if "No space left" in said:
        return InputError("The disk of an executor is full; free some space, or set spark.local.dir to a larger disk.")
    return InputError(
        f"Spark cannot read or write this table ({kind}); check that its files are whole and of one kind, and Spark's own log."
    )


def _announced(empty: pl.DataFrame) -> tuple[Any, list[str]]:
    """The types in which rows are published, by places, and their names."""
    plain = empty.to_arrow(compat_level=pl.CompatLevel.oldest())
    fields = []
    for i, (field, name) in enumerate(zip(plain.schema, empty.columns, strict=True)):
        kind = pa.string() if pa.types.is_large_string(field.type) or pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_unsigned_integer(kind):
            kind = pa.int64()
        if pa.types.is_duration(kind) or pa.types.is_time(kind) or pa.types.is_null(kind):
            raise UnsupportedError(
                f"Column '{name}' has values ({kind}) that Spark does not write to Parquet; make them numbers or texts first."
            )
        fields.append(pa.field(f"x{i}", kind))
    return pa.schema(fields), empty.columns


def _lookup(names: Sequence[str], books: Sequence[Book]) -> tasks.Lookup:
    """The small books, for executors."""
    small = [
        Book(_places(book, names), book.values.rename_columns(list(_places(book, names))), book.columns)
        for book in books
        if len(book.values) <= SMALL
    ]
    return tasks.Lookup(tuple(small), tuple(name for book in books for name in book.columns.columns))


def _places(book: Book, names: Sequence[str]) -> tuple[str, ...]:
    """How the columns of a book are called here."""
    return tuple(f"x{list(names).index(name)}" for name in book.names)


def _temporary(session: Any) -> str:
    """A folder of this machine, where that is where the executors are."""
    if not str(session.sparkContext.master).startswith("local"):
        raise ConfigError(
            "Nothing says where the staged table may lie; name a folder that the driver and all executors reach: staging = "
            "'hdfs:///tmp' for example."
        )
    return tempfile.gettempdir()
