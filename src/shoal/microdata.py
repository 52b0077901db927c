"""Microdata: the table, encoded once. Codes and domains for quasi-identifiers, codes and labels for sensitive
attributes, and the original frame for what is published unchanged. Immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.columns import (
    by_count,
    code,
    declared_taxonomy,
    is_named,
    numbers_of,
    ranks,
    sensitive_taxonomy,
    texts,
    told_apart,
    typed,
    unknown_value,
)
from shoal.configuration import Configuration, read_config, read_schema
from shoal.errors import ConfigError, InputError, ShoalError, raw, require_a, require_word
from shoal.io.fingerprint import fingerprint
from shoal.io.frames import Types, apply_missing, from_polars, index_of, to_polars, types_of
from shoal.io.lean import held, holds_lean, is_lean, places_of, spelled, spelled_out, texts_of
from shoal.models import Sensitive
from shoal.models.persons import Crowd
from shoal.persons import Persons, persons_of, settled
from shoal.policy import Policy, Rules, labelled
from shoal.progress import Progress, Told
from shoal.reading import as_declared
from shoal.schema import Attribute, Schema
from shoal.shown import Shown
from shoal.space import EPOCH, Domain, Interval, Measure, Set, Space, Tree
from shoal.transform import declared as transformations
from shoal.transform import transformed

Missing = Literal["category", "drop", "error"]
T = TypeVar("T")

# Equal rows are numbered by a table over all possible ones where that is not much longer than the rows are many.
ROOM, SMALL = 2, 1 << 20

# Columns that are encoded at a time: most of the work is polars', which has threads of its own.
THREADS = 4
# Fewer records are encoded before threads have begun.
SIDE_BY_SIDE = 5_000
# Each value of a column is encoded once where they are few: texts in a list, or whole numbers so near each other.
FEW = 1 << 14
# Records whose codes are laid side by side at a time, in the cache.
PIECE = 1 << 16


@dataclass(frozen=True, eq=False)
class Points:
    """The distinct quasi-identifier tuples, in lexicographic order of their codes."""

    codes: NDArray[np.int32]
    of_record: NDArray[np.int32]
    weights: NDArray[np.int64]


@holds_lean("frame")
@dataclass(frozen=True, eq=False)
class Microdata(Shown):
    """The table, encoded once and immutable. Make one with `from_frame`, or with `shoal.read` from a file.

    - `frame`: the table as a polars frame, as it was declared (rounded, coded, without records that `missing="drop"`
      left out).
    - `schema`: who each column is.
    - `codes`: a row a record and a column a quasi-identifier, each value as its number in the attribute's domain.
    - `domains`: what these numbers mean, one a quasi-identifier: an interval, a taxonomy or a set.
    - `sensitive`: the sensitive attributes, each with codes and labels.
    - `backend`: the frame library it came in ("polars" by default), to which `native` leads back.
    - `dropped`: how many records were left out for missing values; 0 by default.
    - `source`: the file it was read from, if any, which no release of it may overwrite.
    - `types`: what columns were before they got the types of the house, for those that are published as they are; none by
      default.
    - `index`: the rows' labels, where they came as a pandas frame that has some; none by default.

    >>> import numpy as np, polars as pl, shoal
    >>> frame = pl.DataFrame({"age": [21, 40, 22], "illness": ["flu", "cold", "flu"]})
    >>> data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}, "illness": {"role": "sensitive"}})
    >>> data.n, data.quasi, data.codes.ravel().tolist()
    (3, ['age'], [0, 2, 1])
    >>> data.space("ncp").domains[0].values.tolist()
    [21.0, 22.0, 40.0]
    >>> data.rules(shoal.Policy((shoal.KAnonymity(2),))).max_classes
    1
    >>> data.take(np.array([0, 2])).frame["age"].to_list()
    [21, 22]
    >>> type(data.native(frame)).__module__.split(".")[0]
    'polars'
    """

    frame: pl.DataFrame
    schema: Schema
    codes: NDArray[np.int32]
    domains: tuple[Domain, ...]
    sensitive: tuple[Sensitive | Crowd, ...]
    backend: str = "polars"
    dropped: int = 0
    source: Path | None = None
    """The file it was read from, which no release of it may overwrite."""
    types: Types = field(default_factory=dict)
    index: Any = None
    persons: Persons | None = None
    """Whose each row of the frame is, where a column says so. Then a record is a person: `codes` has a row for each."""

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        schema: Schema | Configuration | Mapping[str, Any] | str | Path,
        *,
        missing: Missing = "category",
        person: str | None = None,
        progress: Told | None = None,
    ) -> Microdata:
        """Encode a table.

        - `frame`: a pandas, polars or pyarrow frame.
        - `schema`: who each column is: a mapping of columns to roles and what else is known of them (see `Attribute`),
          a `Schema`, or a `shoal.toml`. Every column must be declared, or `"*"` for all others.
        - `missing`: what a missing quasi-identifier or sensitive value is: a value like any other ("category", the
          default), a reason to leave the record out ("drop"), or an error ("error").
        - `person`: the column that says whose each row is, where people have several rows (docs/persons.md); none by
          default, unless the schema gives a column the role "person".
        - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

        Returns the encoded table. Raises `ConfigError` or `InputError` where the table is not what the schema says.

        >>> import polars as pl, shoal
        >>> frame = pl.DataFrame({"age": [21, None, 22]})
        >>> shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}}, missing="drop").n
        2
        """
        table, backend = to_polars(frame)
        require_a("person", person, (str, type(None)), "the name of a column")
        declared = read_schema(schema)
        # What a reader of a file takes for missing is missing in a frame too: both give the same release.
        table = apply_missing(table, declared.missing)
        data = cls.of_table(table, declared, missing=missing, person=person, backend=backend, progress=progress)
        return replace(data, types=types_of(frame), index=index_of(frame))

    @classmethod
    def of_table(
        cls,
        table: pl.DataFrame,
        schema: Schema | Configuration | Mapping[str, Any] | str | Path,
        *,
        missing: Missing = "category",
        person: str | None = None,
        backend: str = "polars",
        progress: Told | None = None,
    ) -> Microdata:
        """Encode a table whose columns have the types of the house already, as everything that `shoal.io` reads.

        - `table`: a polars frame; `schema`, `missing` ("category" by default), `person` (none by default) and `progress` as
          for `from_frame`.
        - `backend`: the frame library that `native` leads back to; "polars" by default.

        Returns the encoded table.

        >>> import polars as pl, shoal
        >>> shoal.Microdata.of_table(pl.DataFrame({"age": [21, 40]}), {"age": {"role": "quasi"}}).n
        2
        """
        resolved = read_schema(schema).with_person(person).resolve(table.columns)
        table = spelled_out(table, _read_or_changed(table, resolved))
        if not resolved.named("quasi"):
            raise ConfigError('No column has the role "quasi"; without a quasi-identifier there is nothing to mask.')
        if table.height == 0:
            raise InputError("The table has no records.")
        table, dropped = prepared(table, resolved, missing)
        table = table.rechunk()  # picking records out of many pieces would take ten times as long
        told, quasi, secret = Progress.of(progress), resolved.named("quasi"), resolved.named("sensitive")
        persons = persons_of(table, resolved)
        people = table if persons is None else settled(table, resolved, persons)
        jobs: list[Callable[[], Any]] = [
            *(partial(encode_quasi, people, name, resolved) for name in quasi),
            *(partial(encode_sensitive, table, name, resolved) for name in secret),
        ]
        coded = _coded(jobs, table.height, told)
        columns, hidden = coded[: len(quasi)], tuple(coded[len(quasi) :])
        codes = np.empty((people.height, len(columns)), dtype=np.int32)
        for begin in range(0, people.height, PIECE):
            for a, (column, _) in enumerate(columns):
                codes[begin : begin + PIECE, a] = column[begin : begin + PIECE]
        codes.flags.writeable = False
        return cls(
            frame=table,
            schema=resolved,
            codes=codes,
            domains=tuple(domain for _, domain in columns),
            sensitive=hidden if persons is None else tuple(Crowd(one, persons.of_row, persons.count) for one in hidden),
            backend=backend,
            dropped=dropped,
            persons=persons,
        )

    def __repr__(self) -> str:
        """What it is, without any of its records."""
        roles = [(role, self.schema.named(role)) for role in ("quasi", "sensitive", "other", "identifier", "person")]
        told = "; ".join(f"{role}: {', '.join(names)}" for role, names in roles if names)
        return f"<Microdata of {self.table.height:,} records; {told}>"

    @property
    def table(self) -> pl.DataFrame:
        """The `frame` as it is held: columns whose texts repeat themselves may be numbers into the list of them."""
        return held(self, "frame")

    @property
    def n(self) -> int:
        """Number of records; of persons, where they have several rows."""
        return len(self.codes)

    @property
    def quasi(self) -> list[str]:
        """Names of the quasi-identifiers."""
        return self.schema.named("quasi")

    def space(self, measure: Measure) -> Space:
        """The quasi-identifiers' domains with the loss `measure` ("il", "ncp" or "granularity") and the declared weights.

        Returns what searches compute losses with.
        """
        weights = np.array([self.schema.attributes[name].weight for name in self.quasi])
        return Space(self.domains, weights, measure)

    def rules(self, policy: Policy) -> Rules:
        """The `policy` bound to this table.

        Returns the rules that algorithms ask about classes: deficits, bounds on the number of classes, feasibility.
        """
        return policy.bind(labelled(self.sensitive, policy, self.table), self.n)

    @cached_property
    def points(self) -> Points:
        """Equal quasi-identifier tuples, found once."""
        return distinct_rows(self.codes, [domain.size for domain in self.domains])

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest of the table's content. Never published as it is."""
        return fingerprint(self.table)

    def native(self, frame: pl.DataFrame) -> Any:
        """Returns the polars `frame` in the library the table came in, as `Release.frame` does."""
        return from_polars(frame, self.backend)

    @property
    def given_types(self) -> Types:
        """The types that columns get back when they are published: those that nothing was done to."""
        plain = {name for name, one in self.schema.attributes.items() if untouched(one)}
        return {name: dtype for name, dtype in self.types.items() if name in plain}

    def take(self, records: NDArray[Any]) -> Microdata:
        """Some of the `records` (their numbers), with the same domains and codes. Returns a table of its own."""
        rows, persons = records, None
        if self.persons is not None:
            rows, persons = self.persons.take(records)
        return Microdata(
            self.table[rows],
            self.schema,
            np.ascontiguousarray(self.codes[records]),
            self.domains,
            tuple(column.take(records) for column in self.sensitive),
            self.backend,
            persons=persons,
        )


def untouched(attribute: Attribute) -> bool:
    """Whether nothing is done to a column: it is published as it came."""
    return attribute.role in ("sensitive", "other") and not (
        attribute.patterns or attribute.missing or transformations(attribute)
    )


def read(
    path: str | Path, schema: Any, *, missing: Missing = "category", progress: Told | None = None, **options: Any
) -> Microdata:
    r"""Read a file and encode it.

    - `path`: a CSV, TSV, Parquet, Arrow, JSON Lines or Excel file.
    - `schema`: a `shoal.toml`, or whatever `Microdata.from_frame` takes. A `shoal.toml` also says how to read the file.
    - `missing`: as for `Microdata.from_frame`; "category" by default.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.
    - `options`: how to read the file, where that is not plain: `delimiter`, `encoding`, `header`, `sheet`, `skip_rows`,
      `skip_last`, `columns`, and `missing` texts, as `shoal.io.read_table` takes them.

    Returns the encoded table, which remembers the file, so that no release overwrites it.

    >>> import shoal, tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "patients.csv"
    >>> _ = path.write_text("age;illness\n21;flu\n40;cold\n")
    >>> shoal.read(path, {"age": {"role": "quasi"}, "illness": {"role": "sensitive"}}).n
    2
    """
    from shoal.io.files import file_types, read_table

    if isinstance(schema, str | Path):
        schema = read_config(schema)
    if isinstance(schema, Configuration):
        options = {**schema.config.source.reading, **options}
    schema = read_schema(schema)
    options = {"as_text": schema.as_text, **options}
    if "missing" in options:
        schema = replace(schema, missing=tuple(options["missing"]))
    told = Progress.of(progress)
    with told.stage(weight=0.5):
        table = read_table(path, **options, lean=True)
    with told.stage() as part:
        data = Microdata.of_table(table, schema, missing=missing, progress=part)
        return replace(data, frame=data.table, source=Path(path), types=file_types(path))


def _read_or_changed(table: pl.DataFrame, schema: Schema) -> list[str]:
    """Columns that are looked at record by record: they are read or changed, beside others, or belong to persons."""
    named = [(name, schema.attributes[name]) for name in table.columns]
    if schema.person in table.columns or any(one.role == "quasi" and one.taxonomy == "auto" for _, one in named):
        return table.columns
    return [name for name, one in named if one.patterns or one.missing or transformations(one)]


def distinct_rows(codes: NDArray[np.int32], sizes: list[int]) -> Points:
    """Number equal rows alike, in lexicographic order."""
    n, span = len(codes), sizes[0]
    key = codes[:, 0].astype(np.int64)
    short = max(ROOM * n, SMALL)
    for a in range(1, codes.shape[1]):
        # Ranking by table is cheap and keeps numbers small; ranking by sorting has to wait until there is no other way.
        if (span <= short < span * sizes[a]) or span > 2**62 // max(1, sizes[a]):
            key, span = _ranked(key, span, short)
        key *= sizes[a]
        key += codes[:, a]
        span *= sizes[a]
    of_record, count = _ranked(key, span, short)
    some = np.empty(count, dtype=np.int64)
    some[of_record] = np.arange(n)
    weights = np.bincount(of_record, minlength=count).astype(np.int64, copy=False)
    return Points(np.ascontiguousarray(codes[some]), of_record.astype(np.int32), weights)


def _ranked(key: NDArray[np.int64], span: int, short: int) -> tuple[NDArray[np.int64], int]:
    """The rank of each number below `span` among the distinct ones, and how many there are."""
    if span <= short:
        used = np.zeros(span, dtype=bool)
        used[key] = True
        rank = np.cumsum(used)
        rank -= 1
        return rank[key], int(rank[-1]) + 1
    kept, rank_of = np.unique(key, return_inverse=True)
    return rank_of.astype(np.int64), len(kept)


def prepared(table: pl.DataFrame, schema: Schema, missing: Missing) -> tuple[pl.DataFrame, int]:
    """The table as it is declared, ready to be encoded: read, transformed, missing values treated; and the records dropped."""
    judged = schema.named("quasi") + schema.named("sensitive")
    return _treat_missing(transformed(as_declared(table, schema), schema), judged, missing)


def _treat_missing(table: pl.DataFrame, judged: list[str], missing: Missing) -> tuple[pl.DataFrame, int]:
    require_word("missing", missing, get_args(Missing))
    for name in judged:
        if table[name].null_count() == table.height:
            raise InputError(f"Column '{name}' has no values at all; leave it out or give it the role \"other\".")
    if missing == "category":
        return table, 0
    holes = {name: table[name].null_count() for name in judged}
    worst = max(holes, key=lambda name: holes[name])
    if missing == "error" and holes[worst]:
        row = int(table[worst].is_null().arg_max() or 0) + 1
        raise InputError(
            f"Column '{worst}' has {holes[worst]} missing values, the first in record {row}; "
            'fill them, or set missing = "category" or "drop".'
        )
    kept = table.drop_nulls(judged)
    if kept.height == 0:
        raise InputError('Every record has a missing value, so missing = "drop" leaves none.')
    return kept, table.height - kept.height


def encode_quasi(
    table: pl.DataFrame, name: str, schema: Schema, counts: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int32], Domain]:
    """Codes and domain of one quasi-identifier. A row may be a distinct value that stands for `counts` records."""
    attribute = schema.attributes[name]
    if counts is None and _has_few(table[name], attribute):
        return _by_value(table[name], lambda values, counted: encode_quasi(values, name, schema, counted))
    series, kind = typed(table[name], attribute)
    has_missing = series.null_count() > 0
    if kind == "category" and attribute.domain is not None:
        raise ConfigError(
            f"[attributes.{name}] domain: a range of numbers or dates, and the column is a category; leave it out, or declare "
            'kind = "number".'
        )
    if attribute.order is not None:
        codes = code(series, attribute.order, name, "order", counts=counts)
        values = np.arange(len(attribute.order), dtype=np.float64)
        return codes, Interval(values, max(1.0, len(values) - 1.0), has_missing, tuple(attribute.order))
    if attribute.taxonomy is not None:
        taxonomy = declared_taxonomy(table, series, kind, name, schema, counts)
        tree = taxonomy.with_missing() if has_missing else taxonomy
        leaves = list(taxonomy.labels[: taxonomy.leaves])
        codes = code(texts(series, kind), leaves, name, "taxonomy", tree.leaves - 1, counts)
        return codes, Tree(tree, has_missing)
    if kind == "category":
        labels_by_count = by_count(series, counts)
        return code(series, labels_by_count, name, "column"), Set(tuple(labels_by_count), has_missing)
    numbers = numbers_of(series)
    codes, values = ranks(numbers)
    return codes, Interval(values, _width(values, attribute, name), has_missing, is_date=kind == "date")


def encode_sensitive(
    table: pl.DataFrame, name: str, schema: Schema, counts: NDArray[np.int64] | None = None
) -> Sensitive:
    """Codes of one sensitive attribute: numbers ascending, ordered labels as declared, others by frequency.

    A row may be a distinct value that stands for `counts` records.
    """
    attribute = schema.attributes[name]
    if counts is None and _has_few(table[name], attribute):

        def coded(values: pl.DataFrame, counted: NDArray[np.int64]) -> tuple[NDArray[np.int32], Sensitive]:
            found = encode_sensitive(values, name, schema, counted)
            return found.codes, found

        codes, found = _by_value(table[name], coded)
        return replace(found, codes=codes, weights=None)
    series, kind = typed(table[name], attribute)
    numbers = taxonomy = None
    if kind == "category":
        if is_named(attribute.taxonomy):
            taxonomy = sensitive_taxonomy([], kind, name, schema)
        told = told_apart(series, name, attribute, taxonomy.leaf_codes if taxonomy else (), counts)
        labels = told.labels
        spellings = code(series, list(told.code_of), name, "column")
        codes = np.array([*told.code_of.values(), -1], dtype=np.int32)[spellings]
    else:
        ranked, numbers = ranks(numbers_of(series))
        codes = np.where(ranked == len(numbers), np.int32(-1), ranked).astype(np.int32)
        whole = Interval(numbers, 0.0, is_date=kind == "date")
        labels = tuple(whole.text(i) for i in range(len(numbers)))
    if taxonomy is None:
        taxonomy = sensitive_taxonomy(labels, kind, name, schema)
    if taxonomy is not None:
        for position, label in enumerate(labels):
            if label not in taxonomy.leaf_codes:
                have = codes == position
                count = int(np.count_nonzero(have) if counts is None else counts[have].sum())
                raise InputError(unknown_value(name, label, count, "taxonomy"))
    return Sensitive(
        name=name,
        codes=codes,
        labels=labels,
        numbers=numbers,
        ordered=numbers is not None or attribute.order is not None,
        taxonomy=taxonomy,
        protect=tuple(attribute.protect),
        categories=tuple((key, tuple(values)) for key, values in (attribute.categories or {}).items()),
        weights=counts,
    )


def _has_few(column: pl.Series, attribute: Attribute) -> bool:
    """Whether a column's values can be numbered without a search: texts in a list, or whole numbers near each other.

    The taxonomy of "auto" is made of what stands beside each value.
    """
    if attribute.taxonomy == "auto":
        return False
    if is_lean(column):
        return True
    if column.dtype != pl.Int64 or column.null_count() == len(column):
        return False
    least, most = _ends(column)
    return most - least < FEW


def _ends(column: pl.Series) -> tuple[int, int]:
    """The smallest and the largest of a column of whole numbers."""
    return int(column.min()), int(column.max())  # type: ignore[arg-type]


def _by_value(
    column: pl.Series, encode: Callable[[pl.DataFrame, NDArray[np.int64]], tuple[NDArray[np.int32], T]]
) -> tuple[NDArray[np.int32], T]:
    """What `encode` makes of a column of few values: each is looked at once, and the codes are dealt out."""
    if is_lean(column):
        places, known = places_of(column), texts_of(column)
    else:
        least, most = _ends(column)
        known = pl.Series(np.arange(least, most + 1))
        places = (column - least).fill_null(len(known)).cast(pl.UInt32)
    counts = np.bincount(places.to_numpy(), minlength=len(known) + 1)
    there = np.flatnonzero(counts)
    values = known.append(pl.Series([None], dtype=known.dtype)).gather(there)
    try:
        codes, rest = encode(values.alias(column.name).to_frame(), counts[there].astype(np.int64))
    except ShoalError:
        # What is wrong is told with the record it stands in.
        return encode(spelled(column).to_frame(), np.ones(len(column), dtype=np.int64))
    of_place = np.zeros(len(counts), dtype=np.int32)
    of_place[there] = codes
    return pl.Series(of_place).gather(places).to_numpy(writable=True), rest


def _coded(jobs: Sequence[Callable[[], Any]], records: int, told: Progress) -> list[Any]:
    """What comes of the jobs, a column each, one beside the other; the first that fails, in their order, is told."""
    if records < SIDE_BY_SIDE:
        return [job() for job in jobs]
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            futures = [pool.submit(job) for job in jobs]
            for done, future in enumerate(futures):
                told(done / len(futures))
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def _width(values: NDArray[np.float64], attribute: Attribute, name: str) -> float:
    low, high = (float(values[0]), float(values[-1])) if len(values) else (0.0, 0.0)
    if attribute.domain is None:
        return high - low
    first, last = (_bound(end, name) for end in attribute.domain)
    if low < first or high > last:
        outside = low if low < first else high
        raise InputError(
            f"Column '{name}': {raw(outside, 'a value')} lies outside the declared domain; widen it or correct the data."
        )
    return last - first


def _bound(end: float | str, name: str) -> float:
    if isinstance(end, str):
        try:
            return float((pl.Series([end]).str.to_date("%Y-%m-%d")[0] - EPOCH).days)
        except pl.exceptions.PolarsError:
            raise ConfigError(f"[attributes.{name}] domain: {end!r} is not a date such as 2024-03-31.") from None
    return float(end)
