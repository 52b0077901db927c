"""Table files in and out: delimited text, Parquet, Arrow, JSON lines and Excel, told apart by extension."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from shoal.errors import ConfigError, InputError, did_you_mean, require_a, require_names
from shoal.io.atomic import atomic_path
from shoal.io.delimited import check_delimiter, parse_delimited
from shoal.io.encodings import check_is_text
from shoal.io.frames import Types, alone, apply_missing, check_names, kept_types, normalise, select_columns
from shoal.io.lean import spelled_out
from shoal.io.numbers import AsText
from shoal.io.stats import READERS, read_stats
from shoal.io.streamed import Wanted, read_in_pieces

FORMATS = {
    ".csv": "text",
    ".tsv": "text",
    ".txt": "text",
    ".data": "text",
    ".dat": "text",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".xlsx": "xlsx",
    **dict.fromkeys(READERS, "stats"),
}
FORMULA = r"^[=+\-@\t\r].*[^\d.,eE+\-\s]|^[=@]"
"""Cells that spreadsheets run instead of showing them: they begin with = + - @, and are no numbers."""
_PIECE = 1 << 22  # bytes of a file that are looked at in one go
_EXCEL_TOP = 100  # rows at the top of a sheet that may be empty before the names of its columns
# What a sheet can hold, by Excel's specification; more is cut off without a word, and more than 15 digits are rounded.
_EXCEL_ROWS, _EXCEL_COLUMNS, _EXCEL_CHARACTERS, _EXCEL_EXACT = 1_048_576, 16_384, 32_767, 10**15


def read_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    missing: Sequence[str] = ("", "?"),
    sheet: str | int | None = None,
    columns: Sequence[str] | None = None,
    header: Sequence[str] | None = None,
    format: str | None = None,
    skip_rows: int = 0,
    skip_last: int = 0,
    as_text: AsText = (),
    lean: bool = False,
) -> pl.DataFrame:
    r"""Read a table; its text stays text unless a whole column is numbers.

    - `path`: a .csv, .tsv, .txt, .parquet, .arrow, .jsonl or .xlsx file, or one of SPSS (.sav, .zsav, .por), Stata (.dta) or
      SAS (.sas7bdat, .xpt), with their value labels; text and JSON lines may be packed with gzip (.csv.gz).
    - `delimiter`, `encoding`: of text files; detected by default.
    - `missing`: texts that become null.
    - `sheet`: a name, or a number counted from 1, in an Excel file; the first by default.
    - `columns`: only these columns; all by default.
    - `header`: the names of the columns, for a file that begins with its first record.
    - `format`: an extension that overrides the path's.
    - `skip_rows`: lines above the names of the columns, in text and Excel files, such as a title; 0 by default.
    - `skip_last`: lines below the last record, in the same files, such as totals; 0 by default.
    - `as_text`: columns of text files that stay as they are written, by name, or True for all; by default those that are
      numbers throughout become numbers.
    - `lean`: whether texts that repeat themselves may come as polars Enums, which take much less memory; False by default.

    Returns a polars frame. Raises `InputError` with one sentence for a file that is not what it says.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from shoal.io import read_table
    >>> path = Path(tempfile.mkdtemp()) / "patients.csv"
    >>> _ = path.write_text("age;ward\n21;A\n?;B\n")
    >>> read_table(path, missing=["?"]).rows()
    [(21, 'A'), (None, 'B')]
    """
    require_a("the file", path, (str, Path), "a path")
    for what, text in (("delimiter", delimiter), ("encoding", encoding)):
        require_a(what, text, (str, type(None)), "a text")
    for what, lines in (("skip_rows", skip_rows), ("skip_last", skip_last)):
        require_a(what, lines, int, "a whole number from 0 up")
    for what, listed in (("missing", missing), ("columns", columns), ("header", header)):
        if listed is not None:
            require_names(what, listed)
    require_a("sheet", sheet, (str, int, type(None)), "a name, or a number counted from 1")
    path = Path(path)
    kind, extension, packed = kind_of(path, format)
    label = f"'{path}'"
    check_readable(path, label)
    if kind == "text":
        if extension == ".tsv" and delimiter is None:
            delimiter = "\t"
        if encoding is None and not skip_last and not packed:
            wanted = Wanted(delimiter, missing, header, columns, skip_rows, as_text)
            streamed = read_in_pieces(path, wanted)
            if streamed is not None:
                return streamed if lean else spelled_out(streamed)
        data = read_content(path, label, packed)
        check_is_text(data, label)
        frame = parse_delimited(
            data,
            label,
            delimiter=delimiter,
            encoding=encoding,
            missing=missing,
            header=header,
            columns=columns,
            skip_rows=skip_rows,
            skip_last=skip_last,
            as_text=as_text,
        )
    else:
        if kind == "parquet":
            frame = guarded(lambda: pl.read_parquet(path, glob=False, hive_partitioning=False), label, "Parquet")
        elif kind == "arrow":
            frame = read_arrow(read_content(path, label, packed), label)
        elif kind == "jsonl":
            frame = _read_jsonl(read_content(path, label, packed), label)
        elif kind == "stats":
            frame = read_stats(path, label, extension, encoding)
        else:
            frame = read_excel(path, label, sheet, header, skip_rows, skip_last)
        if kind != "xlsx" and (header is not None or skip_rows or skip_last):
            raise ConfigError(
                f"{label} brings its own column names: header, skip_rows and skip_last are only for text and Excel files."
            )
        check_names(frame.columns, label)
        frame = apply_missing(select_columns(frame, columns, label), missing)
    if frame.is_empty():
        raise InputError(f"{label} has columns and no records: nothing is there to be read.")
    return normalise(frame, label)


def file_types(path: str | Path) -> Types:
    """The types of a file's columns that are not those of the house, where the file has types: Parquet and Arrow."""
    kind, _, packed = kind_of(Path(path), None)
    try:
        if kind == "parquet":
            return kept_types(pl.read_parquet_schema(path))
        if kind == "arrow":
            return kept_types(read_arrow(read_content(Path(path), f"'{path}'", packed), f"'{path}'").schema)
    except pl.exceptions.PolarsError:
        return {}  # what is wrong with it is told where it is read
    return {}


def write_table(frame: pl.DataFrame, path: str | Path, *, force: bool = False, delimiter: str | None = None) -> None:
    """Write a table in the format of the extension, all of it or nothing.

    - `frame`, `path`: a polars frame, and the file; its ending says the format, as for `read_table`.
    - `force`: whether a file that is there may be replaced; False by default.
    - `delimiter`: of text files; a comma by default, a tab for .tsv.

    >>> import polars as pl, tempfile
    >>> from shoal.io import read_table, write_table
    >>> path = tempfile.mkdtemp() + "/table.parquet"
    >>> write_table(pl.DataFrame({"age": [21, 40]}), path)
    >>> read_table(path)["age"].to_list()
    [21, 40]
    """
    path = Path(path)
    check_writable_format(path)
    with atomic_path(path, force=force) as temporary:
        write_table_to(frame, temporary, path, delimiter=delimiter)


def check_writable_format(path: str | Path) -> None:
    """An error when no table can be written under this name, before any work is done for it."""
    kind, extension, _ = kind_of(Path(path), None)
    if kind == "stats":
        raise InputError(f"'{path}': {extension} files are read and not written; write .csv or .parquet.")


def write_table_to(frame: pl.DataFrame, temporary: Path, path: str | Path, *, delimiter: str | None = None) -> None:
    r"""Write to a path of `atomic_paths`, in the format that the final path's extension asks for.

    - `frame`: a polars frame.
    - `temporary`: where it is written first; `path`: what it will be called.
    - `delimiter`: as for `write_table`.

    >>> import polars as pl, tempfile
    >>> from pathlib import Path
    >>> from shoal.io import atomic_paths, write_table_to
    >>> target = Path(tempfile.mkdtemp()) / "table.csv"
    >>> with atomic_paths(target, target.with_suffix(".json")) as (table_file, json_file):
    ...     write_table_to(pl.DataFrame({"age": [21]}), table_file, target)
    ...     _ = json_file.write_text("{}")
    >>> target.read_text()
    'age\n21\n'
    """
    kind, extension, packed = kind_of(Path(path), None)
    if delimiter is not None:
        check_delimiter(delimiter)
    if kind == "text":
        content = _text_writer(frame, delimiter or ("\t" if extension == ".tsv" else ","))
    elif kind == "parquet":
        content = frame.write_parquet
    elif kind == "arrow":
        # Views would be written with all that lies where they look, texts of rows that are gone among them.
        frame = pl.DataFrame([alone(column) for column in frame.iter_columns()])
        content = partial(frame.write_ipc, compat_level=pl.CompatLevel.oldest())
    elif kind == "jsonl":
        content = frame.write_ndjson
    else:
        _write_excel(frame, temporary, path)
        return
    if not packed:
        content(temporary)
        return
    buffer = io.BytesIO()
    content(buffer)
    # No name and no time in the archive: the same table gives the same bytes.
    temporary.write_bytes(gzip.compress(buffer.getbuffer(), compresslevel=6, mtime=0))


def kind_of(path: Path, format: str | None) -> tuple[str, str, bool]:
    """The kind of file, its extension, and whether it is packed with gzip."""
    given = path.suffixes[-2:] if format is None else Path("x." + format.lstrip(".")).suffixes
    suffixes = [suffix.lower() for suffix in given]
    packed = bool(suffixes) and suffixes[-1] == ".gz"
    extension = (suffixes[:-1] if packed else suffixes)[-1:]
    if not extension:
        ending = " before .gz" if packed else ""
        raise InputError(f"'{path}' has no extension{ending}: {did_you_mean('', FORMATS)}")
    kind = FORMATS.get(extension[0])
    if kind is None:
        hint = did_you_mean(extension[0], FORMATS)
        raise InputError(f"'{path}' has the unknown extension '{extension[0]}': {hint}")
    if packed and kind not in ("text", "jsonl"):
        raise InputError(f"'{path}': only text and JSON lines files are packed with gzip; leave out '.gz'.")
    return kind, extension[0], packed


def check_readable(path: Path, label: str) -> None:
    try:
        if path.is_dir():
            raise InputError(f"{label} is a folder: give the name of a file inside it.")
        if not path.exists():
            near = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
            hint = did_you_mean(path.name, near)
            raise InputError(f"{label} does not exist: {hint if hint.startswith('did') else 'check the path.'}")
        if path.is_file() and path.stat().st_size == 0:
            raise InputError(f"{label} is empty: it holds no header and no records.")
    except OSError as error:
        _refuse(error, label)


def read_content(path: Path, label: str, packed: bool) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if packed else data
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{label} is not a whole gzip file ({error}): pack it again.") from error
    except OSError as error:
        _refuse(error, label)


def _refuse(error: OSError, label: str) -> NoReturn:
    reason = (error.strerror or str(error)).lower()
    raise InputError(f"{label} cannot be read: {reason}.") from error


def guarded(read: Callable[[], pl.DataFrame], label: str, kind: str) -> pl.DataFrame:
    try:
        return read()
    except OSError as error:
        _refuse(error, label)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{label} is not a whole {kind} file ({reason}): make it again.") from error


def read_arrow(data: bytes, label: str) -> pl.DataFrame:
    def read() -> pl.DataFrame:
        # The file format begins with its name, the stream format does not.
        if data.startswith(b"ARROW1"):
            return pl.read_ipc(io.BytesIO(data))
        return pl.read_ipc_stream(io.BytesIO(data))

    return guarded(read, label, "Arrow")


def _read_jsonl(data: bytes, label: str) -> pl.DataFrame:
    try:
        return pl.read_ndjson(data, infer_schema_length=None)
    except pl.exceptions.PolarsError:
        return _read_jsonl_carefully(data, label)


def _read_jsonl_carefully(data: bytes, label: str) -> pl.DataFrame:
    """Line by line, to name the line that is wrong, or to join columns whose types vary."""

    def refuse_constant(value: str) -> NoReturn:
        raise ValueError(f"{value} is not a number; write null for a missing one")

    rows: list[dict[str, Any]] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_constant=refuse_constant)
        except ValueError as error:
            raise InputError(f"line {number} of {label} is not JSON: {error}.") from error
        if not isinstance(row, dict):
            raise InputError(
                f'line {number} of {label} is no record: each line must be an object such as {{"age": 41}}.'
            )
        rows.append({name: str(value) if isinstance(value, bool) else value for name, value in row.items()})
    if not rows:
        raise InputError(f"{label} is empty: it holds no records.")
    return pl.DataFrame(rows, strict=False, infer_schema_length=None)


def _book(path: Path, label: str) -> Any:
    import fastexcel

    try:
        return fastexcel.read_excel(str(path))
    except fastexcel.FastExcelError as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{label} is not a readable Excel file ({reason}): save it again as .xlsx.") from error


def excel_sheets(path: Path, label: str, sheet: str | int | None = None) -> dict[str, list[tuple[str | None, ...]]]:
    """The rows of each sheet, as text; of one sheet where it is named."""
    book = _book(path, label)
    names = book.sheet_names if sheet is None else [book.sheet_names[_sheet_position(book.sheet_names, sheet, label)]]
    return {
        name: list(book.load_sheet(name, header_row=None, skip_rows=0, dtypes="string").to_polars().iter_rows())
        for name in names
    }


def read_excel(
    path: Path,
    label: str,
    sheet: str | int | None,
    header: Sequence[str] | None,
    skip_rows: int = 0,
    skip_last: int = 0,
) -> pl.DataFrame:
    book = _book(path, label)
    position = _sheet_position(book.sheet_names, sheet, label)
    where = f"sheet '{book.sheet_names[position]}' of {label}"
    skip = skip_rows
    if header is None:
        top = book.load_sheet(position, header_row=None, skip_rows=skip, n_rows=_EXCEL_TOP, dtypes="string").to_polars()
        filled = top.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true() if top.width else []
        first = int(filled[0]) if len(filled) else 0
        header = ["" if name is None else name.strip() for name in top.row(first)] if len(filled) else []
        skip += first + 1
    if not header:
        raise InputError(f"{where} is empty: it holds no header and no records.")
    check_names(header, where)
    body = book.load_sheet(position, header_row=None, skip_rows=skip, schema_sample_rows=None).to_polars()
    if body.width != len(header) and body.height:
        raise InputError(
            f"{where} has {body.width} columns of values where {len(header)} names are given: name every column."
        )
    frame = pl.DataFrame([column.alias(name) for name, column in zip(header, body.iter_columns(), strict=False)])
    frame = _until_the_last(frame)
    if skip_last:
        # Without the totals, a column of numbers is one: their words are gone.
        body = book.load_sheet(
            position,
            header_row=None,
            skip_rows=skip,
            n_rows=max(0, frame.height - skip_last),
            schema_sample_rows=None,
        ).to_polars()
        shorter = [column.alias(name) for name, column in zip(header, body.iter_columns(), strict=False)]
        frame = _until_the_last(pl.DataFrame(shorter))
    return frame.with_columns(_whole(column) for column in frame.iter_columns())


def _until_the_last(frame: pl.DataFrame) -> pl.DataFrame:
    """Without the rows that only carry formatting behind the last record."""
    if not frame.width:
        return frame
    filled = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()
    return frame.head(int(filled[-1]) + 1 if len(filled) else 0)


def _sheet_position(names: list[str], sheet: str | int | None, label: str) -> int:
    if sheet is None:
        return 0
    if isinstance(sheet, str) and sheet not in names and sheet.isdecimal():
        sheet = int(sheet)
    if isinstance(sheet, str):
        if sheet not in names:
            raise InputError(f"{label} has no sheet '{sheet}': {did_you_mean(sheet, names)}")
        return names.index(sheet)
    if not 1 <= sheet <= len(names):
        raise InputError(f"{label} has no sheet number {sheet}: it has {len(names)}, counted from 1.")
    return sheet - 1


def _whole(column: pl.Series) -> pl.Series:
    """Excel knows one kind of number; a column of whole ones is integers."""
    if not column.dtype.is_float() or not (column.drop_nulls() == column.drop_nulls().floor()).all():
        return column
    whole = column.cast(pl.Int64, strict=False)
    return whole if whole.null_count() == column.null_count() else column


def _text_writer(frame: pl.DataFrame, delimiter: str) -> Callable[[Any], Any]:
    # polars quotes what contains a delimiter, a quote or a newline; two more cases need it to be read back:
    # a carriage return ends a line, and in an only column a value of nothing but spaces makes a blank one.
    quoted = False
    if frame.width == 1:
        text = frame.to_series().cast(pl.String).fill_null("")
        quoted = bool((text.str.strip_chars() == "").any())

    def write(target: Any) -> None:
        frame.write_csv(target, separator=delimiter, quote_style="always" if quoted else "necessary")
        if not quoted and _has_returns(target):  # looked for in what was written: values are read only once
            if not isinstance(target, Path):
                target.seek(0)
                target.truncate()
            frame.write_csv(target, separator=delimiter, quote_style="always")

    return write


def _has_returns(target: Path | io.BytesIO) -> bool:
    if isinstance(target, io.BytesIO):
        return b"\r" in target.getvalue()
    with target.open("rb") as written:
        return any(b"\r" in piece for piece in iter(lambda: written.read(_PIECE), b""))


def _write_excel(frame: pl.DataFrame, temporary: Path, path: str | Path) -> None:
    import xlsxwriter

    check_cells(frame, path)
    # In memory first: a workbook whose disk fills up goes on trying after its error.
    buffer = io.BytesIO()
    book = xlsxwriter.Workbook(buffer, {"in_memory": True, "default_date_format": "yyyy-mm-dd"})
    # A fixed date: the same table gives the same bytes.
    book.set_properties({"created": datetime(2000, 1, 1)})
    page = book.add_worksheet()
    clock = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
    for position, column in enumerate(frame.iter_columns()):
        page.write_string(0, position, column.name)
        dtype = column.dtype
        if dtype.is_numeric():
            write: Callable[..., Any] = page.write_number
        elif dtype.is_temporal() and dtype != pl.Time and dtype != pl.Duration:
            write = page.write_datetime
        else:
            write = page.write_string
            column = column.cast(pl.String)
        style = (clock,) if isinstance(dtype, pl.Datetime) else ()
        for row, value in enumerate(column.to_list(), start=1):
            if value is not None:
                write(row, position, value, *style)
    book.close()
    temporary.write_bytes(buffer.getbuffer())


def check_cells(frame: pl.DataFrame, path: str | Path) -> None:
    """An error for what an Excel sheet cannot hold: too many records, texts too long, whole numbers it would round."""
    if frame.height >= _EXCEL_ROWS or frame.width > _EXCEL_COLUMNS:
        raise InputError(
            f"'{path}' cannot hold {frame.height} records of {frame.width} columns: an Excel sheet ends at "
            f"{_EXCEL_ROWS - 1} records and {_EXCEL_COLUMNS} columns; write .csv or .parquet."
        )
    for column in frame.iter_columns():
        if column.dtype == pl.String:
            long = (column.str.len_chars() > _EXCEL_CHARACTERS).fill_null(False).arg_true()
            if len(long):
                raise InputError(
                    f"column '{column.name}' has a value of more than {_EXCEL_CHARACTERS} characters in row {long[0] + 1}, "
                    f"which '{path}' cannot hold: write .csv or .parquet."
                )
        elif column.dtype.is_integer():
            large = (column.abs() > _EXCEL_EXACT).fill_null(False).arg_true()
            if len(large):
                raise InputError(
                    f"column '{column.name}' has a whole number in row {large[0] + 1} that '{path}' would round: write .csv or "
                    ".parquet."
                )
