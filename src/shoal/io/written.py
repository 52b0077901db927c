"""A published file as whoever opens it sees it: every cell as it is written, and what the house reads in it.

`34`, `34.0` and ` 34` are three cells here. Files that programs read differently, or that hold more than their table,
are refused: nobody can vouch for what another program will show.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from shoal.errors import InputError, VerificationError
from shoal.io import hidden
from shoal.io.delimited import cells_as_written, cells_in_pieces, values_of_texts
from shoal.io.encodings import check_is_text
from shoal.io.files import check_readable, guarded, kind_of, read_arrow, read_content, read_excel
from shoal.io.frames import apply_missing, check_names, normalise
from shoal.io.lean import is_lean, lean, spelled, texts_of
from shoal.io.numbers import infer_numbers
from shoal.io.parts import joined_text, parts_of
from shoal.io.repeated import Alike, worth_it
from shoal.io.workbooks import excel_holds_more

_THREADS, _STRETCH = 2, 1 << 18  # columns that are compared at a time, and how many of their records
_HEAD = 1 << 20  # bytes that say how a text file is written


@dataclass(frozen=True, eq=False)
class Written:
    """A file's cells as they are written, and the table that `read_table` makes of them.

    Where it was found out which records are written `alike`, both have one row for each kind, and are dealt out when they are
    asked for: a masked table of millions of records is a few hundred thousand kinds.
    """

    kinds: pl.DataFrame
    read: pl.DataFrame
    alike: Alike | None = None

    @cached_property
    def cells(self) -> pl.DataFrame:
        """A row for each record, every cell as it is written."""
        return self.kinds if self.alike is None else self.alike.dealt(self.kinds)

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row for each record, as it is read."""
        if self.alike is None:
            return self.read
        same = [name for name in self.read.columns if self._as_written(name)]
        rest = self.some([name for name in self.read.columns if name not in same])
        return self.cells.with_columns(rest.iter_columns()) if same else rest

    def some(self, names: Sequence[str]) -> pl.DataFrame:
        """A row for each record, of these columns, as they are read."""
        chosen = self.read.select(names)
        return chosen if self.alike is None else self.alike.dealt(chosen)

    def lean(self, names: Sequence[str]) -> pl.DataFrame:
        """What `some` gives, its columns of texts as numbers into the lists of their texts, where records are written alike."""
        chosen = self.read.select(names)
        if self.alike is None:
            return chosen
        return self.alike.dealt(pl.DataFrame([lean(column) for column in chosen]))

    def differing(self, meant: pl.DataFrame, digits: int = 17) -> str | None:
        """The first column that does not say what was meant, or None; little of it is dealt out at a time."""
        height = self.kinds.height if self.alike is None else len(self.alike.which)
        if meant.columns != self.kinds.columns or meant.height != height:
            return differing_column(meant, self.cells, digits=digits)
        with ThreadPoolExecutor(_THREADS) as pool:
            found = pool.map(lambda name: self._says(meant[name], digits), meant.columns)
            return next((name for name, says in zip(meant.columns, found, strict=True) if not says), None)

    def _says(self, meant: pl.Series, digits: int) -> bool:
        """Whether a column says what was meant."""
        cells = self.kinds[meant.name]
        if self.alike is None:
            return _same(meant, cells, digits)
        if is_lean(meant):
            return _says_texts(meant, cells, self.alike)
        # How dates are written is found out from all of them; what each says of other values, it says alone.
        step = _STRETCH if meant.dtype == pl.String or meant.dtype.is_numeric() else max(1, len(meant))
        return all(
            _same(meant.slice(begin, step), cells.gather(pl.Series(self.alike.which[begin : begin + step])), digits)
            for begin in range(0, len(meant), step)
        )

    def _as_written(self, name: str) -> bool:
        return self.read.schema[name] == pl.String and self.read[name].equals(self.kinds[name])


def _says_texts(meant: pl.Series, cells: pl.Series, alike: Alike) -> bool:
    """Whether records say these texts: the cell of each kind is looked up in their list; nothing written and missing are one."""
    known = texts_of(meant)
    found = (cells if cells.dtype == pl.String else cells.cast(pl.String)).fill_null("")
    # After the places of the texts come that of nothing, and that of a cell which is no such text and no record means.
    nothing, other = len(known), len(known) + 1
    short = pl.UInt8 if other < 1 << 8 else pl.UInt16 if other < 1 << 16 else pl.UInt32
    where = pl.int_range(other + 1, dtype=short, eager=True)
    empty = known.index_of("")
    if empty is not None:
        where[empty] = nothing
    places = found.cast(pl.Enum(known), strict=False).to_physical().cast(pl.UInt32).fill_null(other)
    places = pl.select(pl.when(found == "").then(pl.lit(nothing, pl.UInt32)).otherwise(places)).to_series()
    cell, said = where.gather(places), meant.to_physical().cast(short)
    if meant.null_count() or empty is not None:
        said = where.gather(said.cast(pl.UInt32).fill_null(nothing))
    return all(
        bool((said.slice(begin, _STRETCH) == cell.gather(pl.Series(alike.which[begin : begin + _STRETCH]))).all())
        for begin in range(0, len(meant), _STRETCH)
    )


def read_written(
    path: str | Path, *, missing: Sequence[str] = ("", "?"), format: str | None = None, name: str | Path | None = None
) -> Written:
    """Read a published file, or a folder of parts, twice over.

    `format` (an extension) overrides that of the path, `name` is how messages call it.
    """
    path = Path(path)
    kind, extension, packed = kind_of(path, format)
    label = f"'{name or path}'"
    parts = parts_of(path, extension, label) if kind in ("text", "parquet") and not packed else [path]
    for part in parts:
        check_readable(part, label)
    if kind == "stats":
        raise InputError(f"{label}: files of SPSS, Stata and SAS are read as originals only; publish .csv or .parquet.")
    if packed:
        with path.open("rb") as file:
            hidden.gzip_holds_more(file.read(4), label)
    if kind == "text":
        cells, alike = _text(parts, label, packed, "\t" if extension == ".tsv" else None)
        return Written(cells, normalise(values_of_texts(cells, label, missing, alike), label), alike)
    if kind == "parquet":
        for part in parts:
            hidden.parquet_holds_more(part, label)
        frame = guarded(lambda: pl.concat([_parquet(part) for part in parts]), label, "Parquet")
    elif kind == "arrow":
        data = read_content(path, label, packed)
        hidden.arrow_holds_more(data, label)
        frame = read_arrow(data, label)
    elif kind == "jsonl":
        return _json(read_content(path, label, packed), label, missing)
    else:
        frame = read_excel(path, label, excel_holds_more(path, label) + 1, None)
    return _typed(frame, label, missing)


def _text(parts: list[Path], label: str, packed: bool, delimiter: str | None) -> tuple[pl.DataFrame, Alike | None]:
    """The cells of text files. A large one that repeats itself is never held as a whole."""
    if len(parts) == 1 and not packed and parts[0].is_file() and worth_it(parts[0].stat().st_size):
        with suppress(OSError), parts[0].open("rb") as file:
            head = file.read(_HEAD)
            check_is_text(head, label)
            found = cells_in_pieces(file, head, delimiter)
            if found is not None:
                return found
    data = joined_text(parts, label, packed)
    check_is_text(data, label)
    return cells_as_written(data, label, delimiter)


def _parquet(path: Path) -> pl.DataFrame:
    return pl.read_parquet(path, glob=False, hive_partitioning=False)


def _typed(frame: pl.DataFrame, label: str, missing: Sequence[str]) -> Written:
    """A file whose columns have types."""
    check_names(frame.columns, label)
    if frame.is_empty():
        raise InputError(f"{label} has columns and no records: nothing is there to be read.")
    for name in frame.select(pl.col(pl.String)).columns:
        refuse_nul(frame[name], label)
    cells = frame.select(_as_shown(column) for column in frame.iter_columns())
    return Written(cells, normalise(apply_missing(frame, missing), label))


def refuse_nul(texts: pl.Series, label: str) -> None:
    """A NUL ends a text for some programs and is nothing to others."""
    found = texts.str.contains("\x00", literal=True)
    if found.any():
        row = int(found.arg_max() or 0) + 1
        raise InputError(f"column '{texts.name}' of {label} holds a NUL in record {row}: remove it.")


def _as_shown(column: pl.Series) -> pl.Series:
    """The column with every value that a reader can tell apart as a value of its own: -0.0 and NaN are text."""
    dtype = column.dtype
    if dtype.is_float():
        odd = column.is_nan().any() or ((column == 0) & (column.cast(pl.String).str.starts_with("-"))).any()
        return column.cast(pl.String) if odd else column
    if isinstance(dtype, pl.Categorical | pl.Enum) or dtype.is_decimal() or dtype in (pl.Time, pl.Boolean):
        return column.cast(pl.String)
    return column


class _Literal(str):
    """A number as it is written."""


def _json(data: bytes, label: str, missing: Sequence[str]) -> Written:
    """JSON lines. A file that is the same when it is written again has nothing to hide; any other is read line by line."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        frame = pl.read_ndjson(data, infer_schema_length=None)
        if frame.write_ndjson().encode() == (data if data.endswith(b"\n") else data + b"\n"):
            return _typed(frame, label, missing)
    except pl.exceptions.PolarsError:
        pass
    rows = [_json_record(line, number, label) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    if not rows:
        raise InputError(f"{label} is empty: it holds no records.")
    names = list(dict.fromkeys(name for row in rows for name in row))
    check_names(names, label)
    cells = pl.DataFrame([_json_column(name, rows, label) for name in names])
    numeric = [name for name in names if all(isinstance(row.get(name), _Literal | None) for row in rows)]
    numbers = infer_numbers(cells.select(numeric), lambda row: f"record {row + 1} of {label}")
    table = apply_missing(cells.with_columns(numbers.iter_columns()), missing)
    return Written(cells, normalise(table, label))


def _json_record(line: bytes, number: int, label: str) -> dict[str, Any]:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in found]
        if len(set(names)) < len(names):
            raise VerificationError(
                f"line {number} of {label} gives one of its values twice, and programs read it differently: keep one."
            )
        return dict(found)

    def refuse(value: str) -> NoReturn:
        raise ValueError(f"{value} is not a number; write null for a missing one")

    try:
        row = json.loads(line, object_pairs_hook=pairs, parse_int=_Literal, parse_float=_Literal, parse_constant=refuse)
    except ValueError as error:
        raise InputError(f"line {number} of {label} is not JSON: {error}.") from error
    if not isinstance(row, dict):
        raise InputError(f'line {number} of {label} is no record: each line must be an object such as {{"age": 41}}.')
    if any(isinstance(value, dict | list) for value in row.values()):
        raise InputError(f"line {number} of {label} holds a value inside a value: write one plain value a name.")
    return row


def _json_column(name: str, rows: list[dict[str, Any]], label: str) -> pl.Series:
    absent = sum(name not in row for row in rows)
    values = [row.get(name) for row in rows]
    if 0 < absent < sum(value is None for value in values):
        raise VerificationError(
            f"'{name}' is left out in some records of {label} and null in others, and both mean missing: write it one way."
        )
    numbers = any(isinstance(value, _Literal) for value in values)
    if numbers and any(_is_number(value) for value in values if not isinstance(value, _Literal)):
        raise VerificationError(f"{label} holds numbers both as numbers and as text in '{name}': write them one way.")
    truths = any(isinstance(value, bool) for value in values)
    if truths and any(isinstance(value, str) and value.casefold() in ("true", "false") for value in values):
        raise VerificationError(
            f"{label} holds true or false both as such and as text in '{name}': write them one way."
        )
    try:
        texts = [
            None if value is None else ("true", "false")[not value] if isinstance(value, bool) else value
            for value in values
        ]
        found = pl.Series(name, texts, dtype=pl.String)
    except UnicodeEncodeError:
        raise InputError(f"{label} holds half a character in '{name}': write it as UTF-8.") from None
    refuse_nul(found, label)
    return found


def _is_number(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return False
    return True


def differing_column(meant: pl.DataFrame, cells: pl.DataFrame, *, digits: int = 17) -> str | None:
    """The first column of a file that does not say what was meant, or None; numbers are compared to so many digits."""
    if meant.columns != cells.columns:
        return next((name for name in meant.columns if name not in cells.columns), cells.columns[-1])
    if meant.height != cells.height:
        return meant.columns[0]
    return next((name for name in meant.columns if not _same(meant[name], cells[name], digits)), None)


def _same(meant: pl.Series, cells: pl.Series, digits: int) -> bool:
    meant = spelled(meant)
    dtype = meant.dtype
    if dtype == pl.Boolean:
        return bool(cells.cast(pl.String).eq_missing(meant.cast(pl.String)).all())
    if dtype == pl.String:
        found = cells if cells.dtype == pl.String else cells.cast(pl.String)
        return bool((found.fill_null("") == meant.fill_null("")).all())
    if cells.dtype == pl.String and not dtype.is_numeric():
        if dtype == pl.Date:
            found = cells.str.to_date("%Y-%m-%d", strict=False)
        else:
            found = cells.str.replace(" ", "T", literal=True).str.to_datetime(strict=False, time_unit="us")
    else:
        found = cells.cast(dtype, strict=False)
    if isinstance(dtype, pl.Datetime) and digits < 17:
        meant, found = meant.dt.truncate("1ms"), found.dt.truncate("1ms")
    if dtype.is_float() and digits < 17:
        near = (found - meant).abs() <= meant.abs() * 10.0 ** (1 - digits)
        return bool(near.fill_null(True).all()) and bool((found.is_null() == meant.is_null()).all())
    return bool(found.eq_missing(meant).all())
