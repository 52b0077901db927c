"""A small masked table that satisfies its policy, and the ways to write it down; forgers start from here."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Build = Callable[[Path], Any]

CONFIG = """
[attributes.name]
role = "identifier"

[attributes.age]
role = "quasi"
kind = "number"
domain = [0, 120]

[attributes.zip]
role = "quasi"
kind = "category"
taxonomy = { prefix = [3, 2, 0] }

[attributes.job]
role = "quasi"

[attributes.illness]
role = "sensitive"

[policy]
k = 3
p_sensitive = { p = 2 }
"""

COLUMNS = ["age", "zip", "job", "illness"]
FIRST = {"age": "34", "zip": "410**", "job": "clerk"}
SECOND = {"age": "[30, 39]", "zip": "411**", "job": "{clerk, nurse}"}
ROWS: list[Row] = [{**FIRST, "illness": ("flu", "cold")[i % 2]} for i in range(6)]
ROWS += [{**SECOND, "illness": ("flu", "ulcer")[i % 2]} for i in range(6)]
"""Two classes of six; k = 3 and p = 2 hold. Records 1 to 6 are the first class, 7 to 12 the second."""


def rows(column: str = "", values: Mapping[int, Any] | None = None, **more: Sequence[Any]) -> list[Row]:
    """The table with some cells of one column changed (records count from 1), and whole columns added or replaced."""
    found = [dict(row) for row in ROWS]
    for record, value in (values or {}).items():
        found[record - 1][column] = value
    for name, column_values in more.items():
        for row, value in zip(found, column_values, strict=True):
            row[name] = value
    return found


def second(column: str, *values: Any) -> list[Row]:
    """The table with the last records of the second class changed: two of them, or as many as there are values."""
    values = values * 2 if len(values) == 1 else values
    return rows(column, {13 - len(values) + i: value for i, value in enumerate(values)})


def ills(*values: Any) -> list[Row]:
    """The table whose second class has these six illnesses (repeated until there are six)."""
    return rows("illness", {7 + i: values[i % len(values)] for i in range(6)})


def text(table: Sequence[Row], *, header: Sequence[str] | None = None, cut: str = ",", end: str = "\n") -> str:
    """The table as delimited text."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=cut, lineterminator=end)
    names = list(table[0])
    writer.writerow(header or names)
    writer.writerows([row[name] for name in names] for row in table)
    return buffer.getvalue()


def delimited(table: Sequence[Row], *, encoding: str = "utf-8", **more: Any) -> Build:
    """A text file of the table."""
    return lambda path: path.write_bytes(text(table, **more).encode(encoding))


def raw(content: str | bytes) -> Build:
    """A file with exactly this content."""
    return lambda path: path.write_bytes(content.encode() if isinstance(content, str) else content)


def changed(*changes: tuple[str, str]) -> Build:
    """The good file with pieces of its text replaced, each once."""
    content = text(ROWS)
    for old, new in changes:
        assert old in content
        content = content.replace(old, new, 1)
    return raw(content)


def packed(table: Sequence[Row], *, after: bytes = b"", flags: int = 0, extra: bytes = b"") -> Build:
    """The table packed with gzip, with something after it or in its head."""
    data = bytearray(gzip.compress(text(table).encode(), mtime=0))
    data[3] |= flags
    data[10:10] = extra
    return raw(bytes(data) + after)


def lines(table: Sequence[Row]) -> Build:
    """JSON lines; a text value `=…` stands as it is, without quotes."""

    def cell(value: Any) -> str:
        return value[1:] if isinstance(value, str) and value.startswith("=") else json.dumps(value)

    records = ["{" + ",".join(f"{json.dumps(k)}:{cell(v)}" for k, v in row.items()) + "}" for row in table]
    return raw("\n".join(records) + "\n")


def excel(
    table: Sequence[Row], *, more: Callable[[Any, Any], Any] | None = None, after: Callable[[Path], Any] | None = None
) -> Build:
    """A workbook; `more` adds to the book and its sheet, `after` changes the finished file."""

    def build(path: Path) -> None:
        import xlsxwriter

        book = xlsxwriter.Workbook(path)
        sheet = book.add_worksheet()
        for position, name in enumerate(table[0]):
            sheet.write_string(0, position, name)
            for row, record in enumerate(table, start=1):
                value = record[name]
                if isinstance(value, str):
                    sheet.write_string(row, position, value)
                elif value is not None:
                    sheet.write_number(row, position, value)
        if more:
            more(book, sheet)
        book.close()
        if after:
            after(path)

    return build


def parquet(table: Sequence[Row], *, arrow: bool = False, **columns: Any) -> Build:
    """A Parquet (or Arrow) file; further columns and `metadata` as pyarrow has them."""

    def build(path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        metadata = columns.pop("metadata", None)
        made = pa.table({name: pa.array([row[name] for row in table]) for name in table[0]} | columns)
        made = made.replace_schema_metadata(metadata)
        if arrow:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, made.schema) as writer:
                writer.write_table(made)
        else:
            pq.write_table(made, path)

    return build
