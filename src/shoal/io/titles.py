"""What stands around a table in its file: a title above, totals below, other sheets; found from its first and last rows.

A row is a title when its first cell is filled and most others are not, or when it is shorter than the table; the names of the
columns come after the last one. An empty first cell is no title: programs leave the name of a numbering out. Totals say so in
their first words, and remarks below a table are one cell of several words.

>>> rows_above([["Export 2024", "", ""], ["", "", ""], ["age", "sex", "zip"], ["34", "f", "41076"]])
2
>>> rows_above([["", "age", "sex"], ["0", "34", "f"]])
0
>>> rows_below([["Ash", "34", "f"], ["Birch", "", ""], ["Total", "34", ""], ["Source: our own", "", ""]], 3)
2
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

Row = Sequence[str | None]

LOOKED_AT = 40  # rows at the top in which the names of the columns are looked for, and at the end
MOST = 20  # more rows than this above or below a table belong to it
_TOTAL = re.compile(
    r"^\W*(grand |sub-?|zwischen|gesamt)?"
    r"(totals?|totale|total général|totaal|sums?|summen?|gesamt|insgesamt|suma|somme|somma|soma|razem|合計|总计|Σ)\b",
    re.IGNORECASE,
)


class Around(NamedTuple):
    """What stands around a table."""

    above: int = 0
    """Lines above the names of the columns."""
    below: int = 0
    """Lines below the last record."""
    sheet: str | None = None
    """The sheet with the table, where a workbook has several."""
    sheets: int = 1
    delimiter: str | None = None
    """What parts the values of a text file, where it is no comma."""
    encoding: str | None = None
    """What was guessed, where a text file is no UTF-8."""


def rows_above(rows: Sequence[Row]) -> int:
    """How many of the first rows stand above the names of the columns."""
    width = width_of(rows)
    for place, row in enumerate(rows[: MOST + 1] if width else []):
        if _filled(row) and not _is_title(row, width):
            return place
    return 0


def rows_below(rows: Sequence[Row], width: int) -> int:
    """How many of the last rows stand below a table of so many columns, empty ones between them included."""
    found = 0
    for count, row in enumerate(reversed(rows[-MOST:]), start=1):
        if not _filled(row):
            continue
        if not _is_below(row, width):
            break
        found = count
    return found if found < len(rows) else 0


def width_of(rows: Sequence[Row]) -> int:
    """The number of cells that most rows have; of several the larger, and 0 where no row has two."""
    widths = Counter(len(row) for row in rows if _filled(row) > 1)
    return max(widths, key=lambda one: (widths[one], one), default=0)


def _filled(row: Row) -> int:
    return sum(bool(cell and cell.strip()) for cell in row)


def _is_title(row: Row, width: int) -> bool:
    return bool(row and row[0] and row[0].strip()) and (len(row) != width or 2 * _filled(row) <= width)


def _is_below(row: Row, width: int) -> bool:
    cells = [cell.strip() for cell in row if cell and cell.strip()]
    if _TOTAL.match(cells[0]):
        return True
    remark = len(cells) == 1 and width > 2 - (len(row) < width) and bool(row[0])
    return remark and (" " in cells[0] or cells[0][0] in "#*(-")


def around(
    path: str | Path, *, delimiter: str | None = None, encoding: str | None = None, sheet: str | int | None = None
) -> Around:
    """What stands around the table in a text or Excel file; nothing for all others. What is given is not looked for."""
    from shoal.io.delimited import ends_of
    from shoal.io.encodings import check_is_text
    from shoal.io.files import check_readable, excel_sheets, kind_of, read_content

    path = Path(path)
    kind, extension, packed = kind_of(path, None)
    label = f"'{path}'"
    if kind == "xlsx":
        check_readable(path, label)
        return _in_workbook(excel_sheets(path, label, sheet), sheet is None)
    if kind != "text":
        return Around()
    check_readable(path, label)
    data = read_content(path, label, packed)
    check_is_text(data, label)
    if delimiter is None and extension == ".tsv":
        delimiter = "\t"
    ends = ends_of(data, label, delimiter, encoding, LOOKED_AT)
    above, width = rows_above(ends.first), width_of(ends.first)
    below = rows_below(ends.last, width) if width > 1 else 0
    said = None if delimiter is not None or ends.delimiter == "," else ends.delimiter
    return Around(ends.before[above] if above else 0, below, delimiter=said, encoding=ends.encoding)


def _in_workbook(sheets: dict[str, list[tuple[str | None, ...]]], several: bool) -> Around:
    """Of several sheets the one with most rows of two cells and more."""
    name = max(sheets, key=lambda one: sum(_filled(row) > 1 for row in sheets[one]))
    rows = sheets[name]
    while rows and not _filled(rows[-1]):
        rows.pop()
    above = rows_above(rows[:LOOKED_AT])
    below = rows_below(rows[above + 1 :], width_of(rows))
    return Around(above, below, name if several and len(sheets) > 1 else None, len(sheets))
