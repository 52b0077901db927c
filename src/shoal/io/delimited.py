"""Delimited text (CSV and its relatives) in: fast where a file is well formed, careful where it is not.

The structure of the whole file is checked with array operations first: quotes closed where a value ends, the
same number of values in every record. Only then polars, which would fill short records up silently, parses it.
Whatever fails the check goes to a slower reader that either understands the file or names the offending line.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, NamedTuple

import numpy as np
import polars as pl

from shoal.errors import ConfigError, InputError, VerificationError
from shoal.io.encodings import guessed
from shoal.io.frames import apply_missing, check_names, packed, select_columns
from shoal.io.numbers import AsText, infer_numbers
from shoal.io.repeated import Alike, alike_lines, in_pieces, worth_it

# Those that values rarely contain come first and win where several would do: 1,5;2,5 is two numbers.
DELIMITERS = ("\t", "|", ";", ",")
SPACES = " \t"
"""What readers drop around a cell."""
_BLANK_FIRST = re.compile(rb"[ \t\r]*\n")
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n|\n[ \t\r]+\Z")
# A letter of two bytes in UTF-8, as it hardly ever stands in text of another encoding.
_TWO_BYTES = re.compile(rb"[\xc3-\xdf][\x80-\xbf]")
_CHUNK = 1 << 24  # bytes that are looked at or decoded at a time
_THREADS = 2  # columns that are copied at a time
_PIECE = 1 << 19  # what is made of a piece stays in the cache
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class NoRecordsError(InputError):
    """A file with a header and no records; a delta may be one."""

    def __init__(self, message: str, columns: Sequence[str]) -> None:
        super().__init__(message)
        self.columns = list(columns)


def parse_delimited(
    data: bytes,
    label: str,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    missing: Sequence[str] = ("", "?"),
    header: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    skip_rows: int = 0,
    skip_last: int = 0,
    as_text: AsText = (),
) -> pl.DataFrame:
    """Parse the content of a delimited text file; `label` is how messages call it."""
    data = without_last(_as_clean_utf8(data, label, encoding), skip_last)
    delimiter, names, skip = shape_of(data, delimiter, header, label, skip_rows)
    frame = _parse_fast(data, delimiter, names, skip)
    if frame is None:
        frame = _parse_carefully(data, delimiter, names, skip, label, named=header is not None)
    if frame.is_empty():
        raise NoRecordsError(f"{label} has a header and no records: nothing is there to be read.", frame.columns)

    def place(row: int) -> str:
        return f"line {_line_of(data, delimiter, skip, row)} of {label}"

    frame = select_columns(frame, columns, label)
    return infer_numbers(apply_missing(frame, missing), place, as_text)


class Ends(NamedTuple):
    """The first and the last records of a text file, and how it is written."""

    before: list[int]
    """How many lines come before each of the first records."""
    first: list[list[str]]
    last: list[list[str]]
    """The last lines that hold something; none where a value may go over several lines."""
    delimiter: str
    encoding: str | None
    """What was guessed, where the file is no UTF-8."""


def ends_of(data: bytes, label: str, delimiter: str | None, encoding: str | None, count: int) -> Ends:
    """The ends of a file, whatever stands above and below its table.

    The delimiter is the one that parts most of the first records alike: a title has none.
    """
    marked = data.startswith(tuple(mark for mark, _ in _BOMS))
    unsaid = encoding is None and not marked and _first_undecodable(data) is not None
    assumed = guessed(data) if unsaid else None
    if delimiter is not None:
        check_delimiter(delimiter)
    data = _as_clean_utf8(data, label, encoding)
    sample = data[: 1 << 20].decode("utf-8", errors="ignore")
    best: list[_Record] = []
    best_score, sign = (0.0, 0), delimiter or ","
    for candidate in (delimiter,) if delimiter else DELIMITERS:
        records = list(_records_of(sample, candidate, limit=count))
        widths = [len(record.fields) for record in records if len(record.fields) > 1]
        if not widths:
            continue
        width = max(set(widths), key=lambda one: (widths.count(one), one))
        score = (widths.count(width) / len(records), width)
        if score > best_score:
            best, best_score, sign = records, score, candidate
    tail = data[-(1 << 16) :].decode("utf-8", errors="ignore").split("\n")[1:]
    lines = [line for line in tail if line.strip()][-count:]
    whole = all(line.count('"') % 2 == 0 for line in lines)
    last = [next(csv.reader([line], delimiter=sign, skipinitialspace=True)) for line in lines] if whole else []
    return Ends([one.line - 1 for one in best], [one.fields for one in best], last, sign, assumed)


def without_last(data: bytes, count: int) -> bytes:
    """The content without its last lines; those that hold nothing do not count."""
    end = len(data)
    while count and end:
        while end and data[end - 1 : end].isspace():
            end -= 1
        end = data.rfind(b"\n", 0, end) + 1
        count -= 1
    return data[:end]


def cells_in_pieces(file: BinaryIO, head: bytes, delimiter: str | None = None) -> tuple[pl.DataFrame, Alike] | None:
    """`cells_as_written` of a file that never lies in memory as a whole; `head` is its beginning.

    None where it has to: nothing is judged here that is out of the ordinary, and nothing of which few records are alike.
    """
    first, end, _ = head.partition(b"\n")
    if not end or not first.strip() or b'"' in first or head.startswith(tuple(mark for mark, _ in _BOMS)):
        return None
    try:
        first.decode("utf-8")
        delimiter, names, skip = shape_of(head, delimiter, None, "the file")
    except (UnicodeDecodeError, InputError):
        return None  # whoever looks at all of it says what is wrong
    if skip != 1 or len(names) == 1:
        return None
    file.seek(len(first) + 1)
    found = alike_lines(in_pieces(file))
    frame = _parse_fast(found[0], delimiter, names, 0, stripped=False, few=True) if found is not None else None
    return None if found is None or frame is None or frame.is_empty() else (frame, found[1])


def cells_as_written(data: bytes, label: str, delimiter: str | None = None) -> tuple[pl.DataFrame, Alike | None]:
    """Every cell as it stands in the file after its quoting: text, with its spaces, and nothing taken for missing.

    What programs would split differently is refused: a quote inside a value that has none around it, two encodings in
    one file, a carriage return on its own. Where many records are alike there is one row for each kind, and which kind each
    record is; otherwise a row for each record, and None.
    """
    marked = data.startswith(tuple(mark for mark, _ in _BOMS))
    if not marked and _first_undecodable(data) is not None and _TWO_BYTES.search(data):
        raise VerificationError(
            f"{label} mixes UTF-8 with another encoding, so that one word can stand in it in two ways: save it as UTF-8."
        )
    data = _as_clean_utf8(data, label, None, returns=False)
    delimiter, names, skip = shape_of(data, delimiter, None, label)
    start, frame = offset_of_line(data, skip), None
    # polars takes a byte-order mark for one wherever it begins to read.
    marked = data.startswith(codecs.BOM_UTF8, start)
    if not marked and (b"\r" not in data or data.count(b"\r") == data.count(b"\r\n")):
        found = None
        if len(names) > 1 and worth_it(len(data)):
            rest = io.BytesIO(data)  # does not copy
            rest.seek(start)
            found = alike_lines(in_pieces(rest))
        frame = _parse_fast(found[0], delimiter, names, 0, stripped=False, few=True) if found is not None else None
        if found is not None and frame is not None:
            return frame, found[1]
        frame = _parse_fast(data, delimiter, names, skip, stripped=False)
    if frame is None:
        frame = _parse_exactly(_text_after(data, skip), delimiter, names, skip, label)
    if frame.is_empty():
        raise InputError(f"{label} has a header and no records: nothing is there to be read.")
    return frame, None


def values_of_texts(
    frame: pl.DataFrame, label: str, missing: Sequence[str], alike: Alike | None = None
) -> pl.DataFrame:
    """What `parse_delimited` makes of the texts of `cells_as_written`: spaces off, missing null, numbers where all are."""
    # An apostrophe before = + - @ is how spreadsheets are told that a cell is text.
    marked = [
        name for name, dtype in frame.schema.items() if dtype == pl.String and frame[name].str.starts_with("'").any()
    ]
    stripped = frame.with_columns(pl.col(marked).str.replace(r"^'([=+\-@\t\r])", "$1"))
    stripped = stripped.with_columns(pl.col(pl.String).str.strip_chars(SPACES))

    def place(row: int) -> str:
        return f"record {(row if alike is None else int(alike.first[row])) + 1} of {label}"

    return infer_numbers(apply_missing(stripped, missing), place)


def shape_of(
    data: bytes, delimiter: str | None, header: Sequence[str] | None, label: str, skip_rows: int = 0
) -> tuple[str, list[str], int]:
    """The delimiter, the column names, and how many lines come before the first record."""
    if not data[:_CHUNK].strip() and not data.strip():
        raise InputError(f"{label} is empty: it holds no header and no records.")
    if skip_rows:
        data = data[offset_of_line(data, skip_rows) :]
        if not data.strip():
            raise InputError(f"{label} has nothing below its first {skip_rows} lines: skip_rows is too large.")
    if delimiter is None:
        delimiter = _detect_delimiter(data, header)
    else:
        check_delimiter(delimiter)
    names, skip = _header(data, delimiter, header, label)
    return delimiter, names, skip_rows + skip


def check_delimiter(delimiter: str) -> None:
    """A delimiter is one plain character that cannot be mistaken for part of the values."""
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise ConfigError(
            f"{delimiter!r} cannot be a delimiter: it must be one ASCII character such as ',', ';', '|' or a tab."
        )


def _as_clean_utf8(data: bytes, label: str, encoding: str | None, *, returns: bool = True) -> bytes:
    """The content as UTF-8 without byte order mark, NUL bytes and (`returns`) stray carriage returns."""
    removed = 0
    for mark, marked in _BOMS:
        if data.startswith(mark) and (encoding is None or _same_family(encoding, marked)):
            data, encoding, removed = data[len(mark) :], marked, len(mark)
            break
    if encoding is not None or _first_undecodable(data) is not None:
        data = _to_utf8(data, label, encoding or guessed(data), removed)
    nul = data.find(b"\0")
    if nul >= 0:
        line = data.count(b"\n", 0, nul) + 1
        raise InputError(
            f"line {line} of {label} holds a NUL byte: remove it, "
            "or give the encoding if the file is UTF-16 (encoding = 'utf-16-le')."
        )
    # Without any newline, returns are the ends of lines; among newlines they may be part of a value.
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n") and (returns or b"\n" not in data):
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data


def _same_family(encoding: str, marked: str) -> bool:
    given = _codec(encoding)
    return given.removesuffix("-sig") == marked or marked.startswith(given + "-")


def _codec(encoding: str) -> str:
    try:
        "a".encode(encoding)  # lookup() also knows transformations that are no text encodings
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise ConfigError(f"unknown encoding '{encoding}': use one such as utf-8, utf-16, latin-1 or cp1252.") from None


def _to_utf8(data: bytes, label: str, encoding: str, removed: int) -> bytes:
    name = _codec(encoding)
    if name in ("utf-8", "ascii"):
        wrong = None if data.isascii() else _first_undecodable(data, name)
        if wrong is None:
            return data
    else:
        try:
            return data.decode(name).encode("utf-8")
        except UnicodeDecodeError as error:
            wrong = error.start
    line = data.count(b"\n", 0, wrong) + 1
    raise InputError(
        f"{label} is not {encoding}: byte {wrong + removed} (line {line}, value 0x{data[wrong]:02x}) does not "
        "belong there; give the encoding it was written in, for example latin-1 or cp1252."
    )


def _first_undecodable(data: bytes, name: str = "utf-8") -> int | None:
    """Offset of the first byte that is not `name`; decoded in pieces to keep memory small."""
    if data.isascii():
        return None
    decoder = codecs.getincrementaldecoder(name)()
    for start in range(0, len(data), _CHUNK):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(data[start : start + _CHUNK], final=start + _CHUNK >= len(data))
        except UnicodeDecodeError as error:
            return start - pending + error.start
    return None


def _detect_delimiter(data: bytes, header: Sequence[str] | None) -> str:
    """The candidate that splits the first records most evenly; one column when none splits the first."""
    sample = data[: 1 << 20].decode("utf-8", errors="ignore")
    best, best_score = ",", (0.0, 0)
    for candidate in DELIMITERS:
        widths = [len(record.fields) for record in _records_of(sample, candidate, limit=100)]
        expected = len(header) if header is not None else (widths[0] if widths else 0)
        if expected < 2 or not widths:
            continue
        score = (sum(width == expected for width in widths) / len(widths), expected)
        if score > best_score:
            best, best_score = candidate, score
    return best


def _header(data: bytes, delimiter: str, header: Sequence[str] | None, label: str) -> tuple[list[str], int]:
    """The column names, and how many lines of the file they take."""
    if header is not None:
        names = list(header)
        check_names(names, label)
        return names, 0
    # One header line may take megabytes with thousands of columns, and quoted names may span lines.
    size = 1 << 20
    while True:
        sample = data[:size].decode("utf-8", errors="ignore")
        try:
            record = next(_records_of(sample, delimiter), None)
        except csv.Error as error:
            if size >= len(data):
                raise InputError(
                    f"the header of {label} has a quote that is not closed where its name ends ({error}): "
                    "close it or remove it."
                ) from None
            record = None
        if record is not None and (size >= len(data) or sample.count("\n") >= record.last):
            names = [field.strip() for field in record.fields]
            check_names(names, label)
            return names, record.last
        size *= 8


def _parse_fast(
    data: bytes, delimiter: str, names: list[str], skip: int, *, stripped: bool = True, few: bool = False
) -> pl.DataFrame | None:
    """All values as (stripped) text, or None when anything about the file is out of the ordinary.

    Of `few` records, of which many others are like one, the texts stay where they are: to have each once takes time.
    """
    start = offset_of_line(data, skip)
    if data.endswith((b"\n\n", b"\n\r\n")):
        data = data.rstrip(b"\r\n")
    if start >= len(data):
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    if len(names) == 1 and (_BLANK_FIRST.match(data, start) or _BLANK_LINE.search(data, start)):
        return None  # a blank line is no record, but polars takes it for one when there is one column
    even, padded = structure_of(data, start, delimiter, len(names), padding=stripped)
    if not even:
        return None
    try:
        frame = pl.read_csv(
            data,
            separator=delimiter,
            has_header=False,
            skip_lines=skip,
            schema=dict.fromkeys(names, pl.String),
            empty_string_is_null=False,
            raise_if_empty=False,
        )
    except pl.exceptions.PolarsError:
        return None
    columns = frame.get_columns()
    del frame
    frame = pl.DataFrame([column.rechunk() for column in columns] if few else _whole(columns))
    return frame.with_columns(pl.all().str.strip_chars(SPACES)) if padded and stripped else frame


def _whole(columns: list[pl.Series]) -> list[pl.Series]:
    """The columns in one piece each."""

    def pack(place: int) -> None:
        columns[place] = column if (column := packed(columns[place])) is not None else columns[place].rechunk()

    # A few columns after the other: two copies of these lie in memory at a time, not of all.
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(pack, range(len(columns))))
    return columns


def structure_of(data: bytes, start: int, delimiter: str, width: int, *, padding: bool) -> tuple[bool, bool]:
    """Whether every record has `width` values with well-formed quotes, and, where asked, whether values carry outer spaces."""
    content = np.frombuffer(data, dtype=np.uint8)
    separator, newline, quote = ord(delimiter), 10, 34
    quoted_file = data.find(b'"', start) >= 0
    inside = False
    padded = b"\r" in data and (b" \r" in data or b"\t\r" in data)
    padding = padding and (b" " in data or (separator != 9 and b"\t" in data))
    left = np.zeros(0, dtype=np.bool_)
    for begin in range(start, len(content), _PIECE):
        chunk = content[begin : begin + _PIECE]
        marks = (chunk == separator) | (chunk == newline)
        if quoted_file:
            marks |= chunk == quote
        kinds = chunk[marks]
        if quoted_file or (padding and not padded):
            position = np.flatnonzero(marks) + begin
            before = content[np.maximum(position - 1, 0)]
            after = content[np.minimum(position + 1, len(content) - 1)]
        outer = np.ones(len(kinds), dtype=np.bool_)
        if quoted_file:
            is_quote = kinds == quote
            depth = np.cumsum(is_quote) + inside
            begins = (before == separator) | (before == newline) | (before == quote)
            finishes = (after == separator) | (after == newline) | (after == 13) | (after == quote)
            # Quotes open where a value begins and close where it ends; "" inside one closes and opens.
            if (is_quote & ~np.where(depth % 2 == 1, begins, finishes)).any():
                return False, padded
            ends = ~is_quote & (depth % 2 == 0)
            inside = bool(depth[-1] % 2) if len(depth) else inside
            kinds = kinds[ends]
            outer = ends | is_quote
        if padding and not padded:
            spaces = (before == 32) | (after == 32)
            if separator != 9:
                spaces |= (before == 9) | (after == 9)
            padded = bool((spaces & outer).any())
        ends_record = np.concatenate((left, kinds == newline))
        whole = len(ends_record) // width * width
        # The last of so many ends a record, and no other does.
        last = ends_record[width - 1 : whole : width]
        if not last.all() or np.count_nonzero(ends_record[:whole]) != len(last):
            return False, padded
        left = ends_record[whole:]
    # A last line without a newline leaves its delimiters over.
    closed = len(left) == 0 if data.endswith(b"\n") else len(left) == width - 1 and not left.any()
    edges = data[start : start + 1] + data[-1:]
    return closed and not inside, padded or any(byte in b" \t" and byte != separator for byte in edges)


def _parse_carefully(data: bytes, delimiter: str, names: list[str], skip: int, label: str, named: bool) -> pl.DataFrame:
    """Record by record: blank lines skipped, spaces before quotes allowed, and every trouble with its line."""
    rows: list[list[str]] = []
    line = skip
    try:
        for record in _records_of(_text_after(data, skip), delimiter, skip):
            line = record.last
            if len(record.fields) != len(names):
                raise _ragged(record.line, len(record.fields), len(names), delimiter, label, named)
            rows.append([field.strip(SPACES) for field in record.fields])
    except csv.Error as error:
        raise InputError(
            f"line {line + 1} of {label} opens a quote that is not closed where its value ends ({error}): "
            "close it, or double the quotes that belong to a value."
        ) from None
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _ragged(line: int, found: int, wanted: int, delimiter: str, label: str, named: bool = False) -> InputError:
    count = "1 column is" if wanted == 1 else f"{wanted} columns are"
    return InputError(
        f"line {line} of {label} holds {found} value{'s'[: found != 1]} where {count} "
        f"{'named' if named else 'in the header'}: correct the line, "
        f"or put quotes around values that contain '{_visible(delimiter)}'."
    )


def _parse_exactly(text: str, delimiter: str, names: list[str], skip: int, label: str) -> pl.DataFrame:
    """Cell by cell, nothing forgiven but blank lines: a value is all within quotes or has none."""
    cut = re.escape(delimiter)
    cell = re.compile(rf'(?:"((?:[^"]|"")*)"|([^"{cut}\r\n]*))({cut}|\r\n|\n|\r|\Z)')
    rows: list[list[str]] = []
    fields: list[str] = []
    at = begin = 0

    def line() -> int:
        return skip + 1 + text.count("\n", 0, begin)

    while at < len(text) or fields:
        found = cell.match(text, at)
        if found is None:
            raise VerificationError(
                f"line {line()} of {label} holds a quote that does not begin or end a value, and programs read it "
                "differently: put quotes around the whole value and double those inside."
            )
        quoted, plain, end = found.groups()
        fields.append(plain if quoted is None else quoted.replace('""', '"'))
        at = found.end()
        if end == delimiter:
            continue
        if len(fields) != len(names) and (len(fields) > 1 or quoted is not None or plain.strip()):
            raise _ragged(line(), len(fields), len(names), delimiter, label)
        if len(fields) > 1 or quoted is not None or plain.strip():
            rows.append(fields)
        fields, begin = [], at
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


class _Record(NamedTuple):
    line: int
    last: int
    fields: list[str]


def _records_of(text: str, delimiter: str, skipped: int = 0, limit: int | None = None) -> Iterator[_Record]:
    """Records with their first and last line; a line of nothing but spaces is no record."""
    blank = False

    def lines() -> Iterator[str]:
        nonlocal blank
        for line in io.StringIO(text, newline=""):
            blank = not line.strip()
            yield line

    reader = csv.reader(lines(), delimiter=delimiter, skipinitialspace=True, strict=True)
    before = found = 0
    while found != limit:
        try:
            fields = next(reader, None)
        except csv.Error:
            if limit is not None:  # a sample may end inside a quoted value
                return
            raise
        if fields is None:
            return
        first, before = before + 1, reader.line_num
        if blank and first == before and len(fields) < 2:
            continue
        yield _Record(skipped + first, skipped + before, fields)
        found += 1


def _text_after(data: bytes, skip: int) -> str:
    return data[offset_of_line(data, skip) :].decode("utf-8")


def offset_of_line(data: bytes, skip: int) -> int:
    offset = 0
    for _ in range(skip):
        newline = data.find(b"\n", offset)
        if newline < 0:
            return len(data)
        offset = newline + 1
    return offset


def _line_of(data: bytes, delimiter: str, skip: int, row: int) -> int:
    """The line a record begins in; only worked out once there is an error to place."""
    for number, record in enumerate(_records_of(_text_after(data, skip), delimiter, skip)):
        if number == row:
            return record.line
    return skip + row + 1


def _visible(delimiter: str) -> str:
    return "\\t" if delimiter == "\t" else delimiter
