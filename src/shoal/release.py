"""Release: a verified masked table with its evidence, its measures and where it came from."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.errors import InputError, UnsupportedError, VerificationError, require_a
from shoal.io.fingerprint import fingerprint
from shoal.io.frames import alone, restored
from shoal.io.lean import bytes_of, held, holds_lean, is_lean, lean, longest, repeats, shortest, spelled_out, texts_of
from shoal.manifest import commitment, halves, manifest_path, secret_path
from shoal.microdata import Microdata
from shoal.order import class_ranks, content_key, ranks, shuffled, tokens
from shoal.partition import Partition
from shoal.persons import Persons
from shoal.policy import Policy
from shoal.recode import generalize, microaggregate
from shoal.schema import Intervals, Schema
from shoal.shown import Shown, written
from shoal.space import States
from shoal.verifier import Evidence, masked_schema, published_quasi, verify

if TYPE_CHECKING:
    from shoal.measures.bounds import Effort
    from shoal.measures.loss import Measures
    from shoal.measures.nearness import Nearness
    from shoal.progress import Progress, Told


HEAD = 10_000
"""The rows that say whether a column that is published as it is repeats its texts."""
LARGE, LARGER = 64_000_000, 100
"""Published quasi-identifiers of more bytes than the first are refused where they are more than the second times the table's."""


@holds_lean("masked")
@dataclass(frozen=True, eq=False)
class Release(Shown):
    """A masked table that has passed verification; `shoal.anonymize` makes it.

    - `masked`: the published table as a polars frame (`frame` is the same in the library that came in).
    - `policy`: what every class satisfies.
    - `evidence`: what the verifier found, from the masked values alone.
    - `measures`: what masking cost (docs/measures.md#loss).
    - `manifest`: what is published beside the table: version, policy, roles, evidence, and figures that the table itself
      gives (`shoal.manifest` has the rule). No raw value.
    - `secret`: what stays with the owner: seed, settings, all losses and notes.
    - `data`: the table it was made from. Keep it where that is.
    - `partition`: which record is in which class, and how the algorithm came to it.
    - `persons`: whose each published row is, where people have several (docs/persons.md); none by default.

    >>> import polars as pl, shoal, tempfile
    >>> frame = pl.DataFrame({"age": [21, 22, 40, 41]})
    >>> data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}})
    >>> release: shoal.Release = shoal.anonymize(data, shoal.KAnonymity(2), algorithm="mondrian", refine=False)
    >>> release.verify().smallest
    2
    >>> release.write(tempfile.mkdtemp() + "/masked.csv").name
    'masked.csv'
    """

    masked: pl.DataFrame
    policy: Policy
    evidence: Evidence
    measures: Measures
    manifest: Mapping[str, Any]
    secret: Mapping[str, Any] = field(repr=False)
    data: Microdata = field(repr=False)
    partition: Partition = field(repr=False)
    persons: Persons | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        """What it is, without any of its records."""
        found = self.evidence
        return f"<Release of {found.records:,} records in {found.classes:,} classes; {self.policy} holds>"

    @property
    def frame(self) -> Any:
        """The masked table in the frame library that came in, its columns in the types they had where nothing was done to them.

        A pandas frame has its index where the records keep their order; in another order the index would undo it.
        """
        found = self.data.native(self.typed)
        kept = self.manifest["settings"].get("order") == "keep" and self.data.index is not None
        if kept and len(self.data.index) == self.masked.height:
            found.index = self.data.index
        return found

    @property
    def table(self) -> pl.DataFrame:
        """The masked table as it is held: columns of texts are numbers into the list of their texts."""
        return held(self, "masked")

    @property
    def typed(self) -> pl.DataFrame:
        """The masked table with booleans and short numbers as they came, for whatever has types."""
        return restored(self.masked, self.data.given_types)

    def nearness(self, effort: Effort = "fast", *, progress: Told | None = None) -> Nearness:
        """How near it is to the least loss proven for its policy (docs/algorithms.md#a-lower-bound-with-its-proof).

        - `effort`: "fast" (the default, about two seconds), "thorough" (a minute) or a number of nominal seconds.
        - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

        Returns loss, bound and ratio; where no bound is known, the reason.

        >>> import polars as pl, shoal
        >>> release = shoal.anonymize(pl.DataFrame({"age": [21, 22, 40, 41]}), {"k": 2}, quasi="age")
        >>> print(release.nearness())
        It loses 0.0500 (ncp), and no release with this policy loses less than 0.0499: it is within 0.1 % of the least.
        """
        from shoal.measures.nearness import nearness

        settings = self.secret["settings"]
        return nearness(self.data, self.policy, self.measures, settings, effort=effort, progress=progress)

    def verify(self) -> Evidence:
        """Verify again, from the masked values alone.

        Returns the evidence; raises `VerificationError` when the policy does not hold.
        """
        return verify(self.table, self.policy, self.data.schema, persons=self.persons).require()

    def write(
        self,
        path: str | Path,
        *,
        force: bool = False,
        safe_csv: bool = False,
        key: bytes | None = None,
        progress: Progress | None = None,
    ) -> Path:
        """Write the masked table and its two companions; all of them whole or none at all.

        Beside masked.csv lie masked.csv.manifest.json, to be published with it, and masked.csv.secret.json, readable by its
        owner only, which stays. The finished table is read back and verified before it gets its name.

        - `path`: a CSV, TSV, Parquet, Arrow, JSON Lines or Excel file, by its ending. Never the table it was made from.
        - `force`: whether a file that is there may be replaced; False by default.
        - `safe_csv`: whether cells of a text file that spreadsheets would run as formulas get an apostrophe before them.
        - `key`: the key of the commitment to the original, from an earlier secret half; by default a random one.
        - `progress`: can be cancelled until the files appear; none by default.

        Returns the path.
        """
        from shoal.io.files import check_writable_format, kind_of, write_table_to

        require_a("the output", path, (str, Path), "a path, whose ending says the format")
        require_a("the key", key, (bytes, type(None)), "bytes, from an earlier secret half")
        for what, switch in (("force", force), ("safe_csv", safe_csv)):
            require_a(what, switch, bool, "True or False")
        target = Path(path)
        check_writable_format(target)
        refuse_source((target, manifest_path(target), secret_path(target)), self.data.source)
        own = key or secrets.token_bytes(32)
        kind, _, _ = kind_of(target, None)
        masked = self.table if kind == "text" else self.masked if kind == "xlsx" else self.typed

        def put(file: Path) -> dict[str, str]:
            asked = self.policy, self.data.schema
            # Hashing needs one core and nobody waits for it: the original while the masked table is written, that while it is
            # read back.
            with ThreadPoolExecutor(1) as beside:
                committed = beside.submit(commitment, self.data, own)
                shown = neutralised(masked) if safe_csv and kind == "text" else masked
                write_table_to(shown, file, target)
                digest = beside.submit(file_digest, file)
                read_back(shown, file, target, *asked, persons=self.persons, progress=progress)
                return {"output_sha256": digest.result(), "input_commitment": committed.result()}

        return write_release(target, self.manifest, self.secret, own, put, force=force, progress=progress)

    def write_sql(
        self, url: str, table: str, *, folder: str | Path = ".", force: bool = False, key: bytes | None = None
    ) -> Path:
        """Write the masked table into a database, in one transaction that ends after it was read back and verified.

        - `url`, `table`: the database, as SQLAlchemy writes it, and the table, `schema.table` where there are schemas.
        - `folder`: where the manifest and the secret half go, called after the table; "." by default.
        - `force`: whether a table that is there may be replaced; False by default.
        - `key`: as for `write`; a random one by default.

        Returns the path of the manifest.

        >>> import polars as pl, shoal, tempfile
        >>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": [21, 22, 40, 41]}), {"age": {"role": "quasi"}})
        >>> release = shoal.anonymize(data, shoal.KAnonymity(2), algorithm="mondrian", refine=False)
        >>> folder = tempfile.mkdtemp()
        >>> release.write_sql(f"sqlite:///{folder}/release.db", "masked", folder=folder).name
        'masked.manifest.json'
        """
        from shoal.io.atomic import atomic_paths
        from shoal.io.sql import write_sql

        shown = self.typed
        key = key or secrets.token_bytes(32)
        target = Path(folder) / table
        companions = manifest_path(target), secret_path(target)
        refuse_source(companions, self.data.source)

        def check(found: pl.DataFrame) -> None:
            _require_same_rows(shown, found, table)
            verify(self.table, self.policy, self.data.schema, persons=self.persons).require()

        with atomic_paths(*companions, force=force) as (manifest_file, secret_file):
            secret_file.chmod(0o600)
            named = {"output_sha256": fingerprint(shown).hex(), "input_commitment": commitment(self.data, key)}
            _write_halves((manifest_file, secret_file), halves(self.manifest, self.secret, key, named))
            write_sql(shown, url, table, force=force, check=check)
        return companions[0]

    def report(self, path: str | Path, for_: str = "owner") -> Path:
        """Write a report that people read before they sign: one page of HTML, without script or network (docs/report.md).

        - `path`: where it goes; its name ends in .html. It replaces an older report and no other file.
        - `for_`: "owner" (the default: with figures of the original, such as what was lost and what an intruder could have
          done before) or "public" (nothing that the masked table does not tell).

        Returns the path.

        >>> import polars as pl, shoal, tempfile
        >>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": [21, 22, 40, 41]}), {"age": {"role": "quasi"}})
        >>> release = shoal.anonymize(data, shoal.KAnonymity(2), algorithm="mondrian", refine=False)
        >>> release.report(tempfile.mkdtemp() + "/report.html", for_="public").name
        'report.html'
        """
        return Path(written(self, path, for_))


def _require_same_rows(meant: pl.DataFrame, found: pl.DataFrame, table: str) -> None:
    """A database gives its rows in any order: the same rows, however often each."""
    from shoal.io.written import differing_column

    keys = [pl.col(name).cast(pl.String) for name in meant.columns]
    if meant.columns == found.columns and meant.height == found.height:
        meant, found = (one.sort(keys, nulls_last=True, maintain_order=True) for one in (meant, found))
    wrong = differing_column(meant, found)
    if wrong is not None:
        raise InputError(
            f"Column '{wrong}' does not read back from table '{table}' as it was meant, and nothing was written; correct the "
            "column, or write a file."
        )


def write_release(
    target: Path,
    manifest: Mapping[str, Any],
    secret: Mapping[str, Any],
    key: bytes,
    put: Callable[[Path], Mapping[str, str]],
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> Path:
    """A table and both halves of its manifest, all of them whole or none at all.

    `put` writes the table to a file that gets its name in the end, and says what the halves are told of it: its digest and the
    commitment. Returns the target.
    """
    from shoal.io.atomic import atomic_paths

    files = atomic_paths(target, manifest_path(target), secret_path(target), force=force, progress=progress)
    with files as (table_file, *companions):
        companions[1].chmod(0o600)
        _write_halves(companions, halves(manifest, secret, key, put(table_file)))
    return target


def _write_halves(files: Sequence[Path], texts: Sequence[bytes]) -> None:
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text)


def write_verified(
    masked: pl.DataFrame,
    file: Path,
    target: Path,
    policy: Policy,
    schema: Schema,
    *,
    safe_csv: bool = False,
    persons: Persons | None = None,
    progress: Progress | None = None,
) -> Evidence:
    """Write a table to `file`, in the format of `target`, and read it back the way `shoal verify` does.

    Nothing is verified but what lies on the disk.
    """
    from shoal.io.files import kind_of, write_table_to

    kind, _, _ = kind_of(target, None)
    shown = neutralised(masked) if safe_csv and kind == "text" else masked
    write_table_to(shown, file, target)
    return read_back(shown, file, target, policy, schema, persons=persons, progress=progress)


def read_back(
    shown: pl.DataFrame,
    file: Path,
    target: Path,
    policy: Policy,
    schema: Schema,
    *,
    persons: Persons | None = None,
    progress: Progress | None = None,
) -> Evidence:
    """What lies in `file`, which will be called `target`: every cell says what was `shown`, and the policy holds for them."""
    from shoal.io.files import kind_of
    from shoal.io.written import read_written

    written = read_written(file, missing=schema.missing, format="".join(target.suffixes[-2:]), name=target)
    wrong = written.differing(shown, digits=15 if kind_of(target, None)[0] == "xlsx" else 17)
    if wrong is not None:
        raise InputError(
            f"Column '{wrong}' does not read back from '{target}' as it was meant, and nothing was written; write another "
            "format, such as .parquet, or correct the column."
        )
    declared, cells, alike = masked_schema(schema, written.kinds), written.kinds, written.alike
    # Classes are found from one record of each kind; of the records themselves the verifier asks what is beside them.
    asked = {name for beside in policy.beside(declared.named("sensitive")).values() for name in beside}
    quasi = set(published_quasi(cells, declared)) - asked
    table = written.lean([name for name in cells.columns if name not in quasi] or cells.columns[:1])
    found = verify(table, policy, declared, cells=cells, alike=alike, persons=persons, progress=progress)
    try:
        return found.require()
    except VerificationError as problem:
        raise VerificationError(f"Read back, '{target}' fails, and nothing was written. {problem}") from None


def neutralised(masked: pl.DataFrame) -> pl.DataFrame:
    """The table with an apostrophe before every cell that a spreadsheet would run."""
    from shoal.io.files import FORMULA

    for name in masked.columns:
        if name[:1] in ("=", "+", "-", "@"):
            raise InputError(f"Column '{name}' has a name that spreadsheets run as a formula; rename it.")
    return spelled_out(masked).with_columns(pl.col(pl.String).str.replace(FORMULA, "'$0"))


def formulas(masked: pl.DataFrame) -> dict[str, int]:
    """How many cells of each column a spreadsheet would run as formulas, where there are any."""
    counts = {column.name: _run(column) for column in masked if _is_text(column)}
    return {name: count for name, count in counts.items() if count}


def _run(texts: pl.Series) -> int:
    """How many cells a spreadsheet would run."""
    from shoal.io.files import FORMULA

    if not is_lean(texts):
        return int(texts.str.contains(FORMULA).sum())
    run = texts_of(texts).str.contains(FORMULA)
    return int(run.gather(texts.to_physical()).sum()) if run.any() else 0


def refuse_source(outputs: Iterable[Path], source: Path | None) -> None:
    """No release overwrites the table it was made from, by whatever name it is called."""
    for one in outputs:
        if source is not None and one.exists() and source.exists() and one.samefile(source):
            raise InputError(f"'{one}' is the table itself; a release never overwrites what it was made from.")


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes; of a folder, of those of its files in hexadecimal, sorted and joined with spaces."""
    if path.is_dir():
        from shoal.io.parts import parts_of

        each = sorted(file_digest(part) for part in parts_of(path, path.suffix.lower(), f"'{path}'"))
        return hashlib.sha256(" ".join(each).encode()).hexdigest()
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def mask(
    data: Microdata,
    partition: Partition,
    states: States,
    *,
    recode: str,
    intervals: Intervals,
    drop_suppressed: bool,
    shuffle_seed: int | None,
) -> tuple[pl.DataFrame, Persons | None]:
    """The published table: masked quasi-identifiers, sensitive and other columns as they are, no identifiers.

    Beside it, whose each published row is, where persons have several. Columns of texts are numbers into the lists of their texts
    (`shoal.io.lean`). These are in their own order, and only those that are published are there: neither memory nor a file that
    copies it tells which class was made first, or who was left out.
    """
    shown = pl.DataFrame(_class_values(data, partition, states, recode, intervals))
    # A record is a person where persons have several rows; their rows all show what their class does.
    labels = partition.labels if data.persons is None else partition.labels[data.persons.of_row]
    keep = np.flatnonzero(labels >= 0) if drop_suppressed else np.arange(len(labels), dtype=np.int64)
    everything = len(keep) == len(labels)
    here = labels if everything else labels[keep]
    key = _content(data, here, shown, keep) if shuffle_seed is not None or data.schema.token else keep
    numbers = None
    if data.persons is not None and data.schema.token is not None:
        numbers = tokens(key, data.persons.of_row[keep], shuffle_seed or 0)
        key = content_key([(key, int(key.max(initial=0)) + 1), (numbers, data.persons.count + 1)])
    places = np.arange(len(keep)) if shuffle_seed is None else shuffled(key, shuffle_seed)
    rows = (places if everything else keep[places]).astype(np.uint32, copy=False)
    token = None if numbers is None else numbers[places]
    del key, keep, places, numbers  # of millions of records every array counts
    place = pl.Series(np.where(labels < 0, partition.classes, labels).astype(np.uint32)).gather(pl.Series(rows))
    masked = pl.DataFrame([lean(series) for series in shown]).select(pl.all().gather(place))
    require_size(masked.get_columns(), data)
    by_name: dict[str, list[pl.Series]] = {name: [] for name in data.quasi}
    for series in masked:
        owner = series.name if series.name in by_name else series.name.removesuffix("_min").removesuffix("_max")
        by_name[owner].append(series)
    columns: list[pl.Series] = []
    for name, attribute in data.schema.attributes.items():
        if attribute.role == "quasi":
            columns += by_name[name]
        elif name == data.schema.token and token is not None:
            columns.append(pl.Series(name, token))
        elif attribute.stays:
            columns.append(_own(data.table[name].gather(pl.Series(rows))))
    names = [series.name for series in columns]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"Column '{name}' would be published twice; rename it, or use intervals = \"text\".")
    return pl.DataFrame(columns), None if data.persons is None else data.persons.of_rows(rows)


def _own(column: pl.Series) -> pl.Series:
    """The column with nothing in its memory but what it shows."""
    if is_lean(column):
        return lean(column)
    if column.dtype != pl.String:
        return alone(column)
    return lean(column) if repeats(column.head(HEAD)) else alone(column)


def _class_values(
    data: Microdata, partition: Partition, states: States, recode: str, intervals: Intervals
) -> list[pl.Series]:
    """What each class publishes, one row a class, and last what a suppressed record does, where there is one."""
    first = np.zeros(partition.classes + 1, dtype=np.int64)
    first[partition.labels[::-1]] = np.arange(partition.n - 1, -1, -1)
    rows = first if (partition.labels < 0).any() else first[:-1]
    if recode == "microaggregate":
        return microaggregate(data, partition, rows=rows)
    return generalize(data, partition, states, intervals=intervals, rows=rows)


def require_size(masked: list[pl.Series], data: Microdata) -> None:
    """Refuse a release that would be a hundred times the table: sets of thousands of values, repeated in every record."""
    texts = [series for series in masked if _is_text(series)]
    lowest = sum(_fewest(data.table[name]) for name in data.quasi if name in data.table.columns)
    if sum(len(series) * longest(series) for series in texts) <= max(LARGE, LARGER * lowest):
        return
    taken = {series.name: bytes_of(series) for series in texts}
    # Where the original columns are not at hand, as in a block of a large table, a value is taken for a number's eight bytes.
    original = sum(_bytes(data.table[name]) if name in data.table.columns else 8 * data.n for name in data.quasi)
    if sum(taken.values()) <= max(LARGE, LARGER * original):
        return
    worst = max(taken, key=lambda name: taken[name])
    raise UnsupportedError(
        f"Column '{worst}' would take {taken[worst] / 1e6:,.0f} MB where all quasi-identifiers of the table take "
        f"{original / 1e6:,.1f} MB, because every record repeats the set of its class; give it a taxonomy (taxonomy = "
        '"auto", or a file), whose nodes have one name each, or the role "identifier".'
    )


def _bytes(series: pl.Series) -> int:
    return bytes_of(series) if _is_text(series) else 8 * len(series)


def _fewest(series: pl.Series) -> int:
    """So many bytes a column takes at least, found without looking at its records where it is no list of texts."""
    return len(series) * shortest(series) if is_lean(series) and not series.null_count() else 0


def _is_text(series: pl.Series) -> bool:
    return series.dtype == pl.String or is_lean(series)


def _content(
    data: Microdata, labels: NDArray[np.int32], shown: pl.DataFrame, keep: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The rank of each row that is kept by what it publishes; `shown` is what each class does."""
    place = class_ranks(shown)
    columns = [(place[labels], int(place.max(initial=0)) + 1)]
    for name, attribute in data.schema.attributes.items():
        if attribute.stays and attribute.role != "quasi":
            series = data.table[name]
            columns.append(ranks(series if len(keep) == len(series) else series.gather(keep)))
    return content_key(columns)
