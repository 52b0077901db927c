"""What a workbook holds besides one sheet of plain values: further sheets, formulas, comments, marks on rows and cells.

A workbook is a packed folder of pages with tags. Only tags that a plain table needs may stand in its sheet and among its texts,
text only where a cell has it, and nothing between the packed pages.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

from shoal.errors import InputError
from shoal.io.hidden import refuse

_EXCEL_PARTS = re.compile(
    r"\[Content_Types\]\.xml|_rels/\.rels|docProps/(app|core)\.xml|docMetadata/LabelInfo\.xml|xl/workbook\.xml"
    r"|xl/_rels/workbook\.xml\.rels|xl/(styles|sharedStrings|metadata|calcChain)\.xml|xl/theme/theme\d*\.xml"
    r"|xl/worksheets/(_rels/)?sheet\d+\.xml(\.rels)?|xl/tables/table\d+\.xml|.*/"
)
_SHEETS = re.compile(r"xl/worksheets/sheet(\d+)\.xml")
_SHARED = re.compile(rb'<c [^>]*t="s"[^>]*>\s*<v[^>]*>(\d+)</v>')
_PROPERTIES = re.compile(
    rb"<(dc:title|dc:subject|dc:description|cp:keywords|cp:category|cp:contentStatus|Manager|Company|HyperlinkBase)>[^<]"
)
_IN_SHEETS = frozenset(
    b"worksheet sheetPr pageSetUpPr outlinePr tabColor dimension sheetViews sheetView pane selection sheetFormatPr cols col "
    b"sheetData row c v is t printOptions "
    b"pageMargins pageSetup phoneticPr autoFilter tableParts tablePart sheetProtection".split()
)
_IN_TEXTS = frozenset(b"sst si t phoneticPr".split())
_TAG = re.compile(rb"<(/?)([\w:.-]+)([^>]*)>")
_TEXT = re.compile(rb"<(v|t)( [^>]*)?>[^<]*</\1>")
_ALONE = "save the values alone in a new workbook"


def excel_holds_more(path: Path, label: str) -> int:
    """Refuse a workbook with anything besides one sheet of plain values; the position of that sheet."""
    try:
        with zipfile.ZipFile(path) as book:
            strange = [name for name in book.namelist() if not _EXCEL_PARTS.fullmatch(name)]
            if strange:
                refuse(label, f"more than a sheet ('{strange[0]}')", _ALONE)
            _nothing_between(book, path, label)
            sheets = _in_order(book)
            parts = {name: book.read(name) for name in book.namelist()}
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise InputError(f"{label} is not a readable Excel file ({error}): save it again as .xlsx.") from error
    contents = {name: part for name, part in parts.items() if _SHEETS.fullmatch(name)}
    shared = parts.get("xl/sharedStrings.xml", b"")
    filled = [name for name, content in contents.items() if re.search(rb"<(v|is)[ >]", content)]
    if len(filled) > 1:
        refuse(label, f"{len(filled)} sheets with values (some may be hidden)", "keep the sheet that is published")
    if any(re.search(rb"<f[ >/]", contents[name]) for name in filled):
        refuse(label, "formulas, which may show anything", "save their values instead")
    _plain_parts(parts, label)
    for name in filled:
        _plain_tags(contents[name], _IN_SHEETS, "cells", label)
        _plain_rows(contents[name], label)
    _plain_tags(shared, _IN_TEXTS, "texts", label)
    used = {int(index) for name in filled for index in _SHARED.findall(contents[name])}
    held = len(re.findall(rb"<si[ >/]", shared))
    if held > len(used):
        refuse(label, f"{held - len(used)} texts that stand in no cell", _ALONE)
    _numbers_as_text(contents, filled, shared, label)
    return sheets.index(filled[0]) if filled and filled[0] in sheets else 0


def _nothing_between(book: zipfile.ZipFile, path: Path, label: str) -> None:
    """Comments of the archive, pages packed twice, and bytes before, between and after the pages."""
    infos = sorted(book.infolist(), key=lambda info: info.header_offset)
    if book.comment or any(info.comment for info in infos) or len({info.filename for info in infos}) < len(infos):
        refuse(label, "comments, or pages packed twice", "pack it again")
    end = 0
    with path.open("rb") as file:
        for info in infos:
            file.seek(info.header_offset)
            head = file.read(30)
            # What follows a page of unknown length repeats its length and its check sum: at most 24 bytes.
            if not 0 <= info.header_offset - end <= (24 if end else 0):
                refuse(label, "bytes between its pages", "pack it again")
            names = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
            end = info.header_offset + 30 + names + info.compress_size
        listed = sum(46 + len(info.filename.encode()) + len(info.extra) for info in infos)
        if not 0 <= book.start_dir - end <= 24 or path.stat().st_size > book.start_dir + listed + 22 + 76:
            refuse(label, "bytes between its pages", "pack it again")


def _plain_parts(parts: Mapping[str, bytes], label: str) -> None:
    """Properties, names, and remarks that no program shows."""
    if any(_PROPERTIES.search(parts.get(f"docProps/{name}.xml", b"")) for name in ("core", "app")):
        refuse(label, "a title or other properties", "remove them")
    if b"<definedName" in parts.get("xl/workbook.xml", b""):
        refuse(label, "names of its own", _ALONE)
    remarked = sorted(name for name, part in parts.items() if name.endswith((".xml", ".rels")) and b"<!" in part)
    if remarked:
        refuse(label, f"remarks in '{remarked[0]}'", _ALONE)


def _plain_tags(part: bytes, known: frozenset[bytes], what: str, label: str) -> None:
    """Nothing but tags that a plain table needs, and no text outside its cells."""
    strange = sorted({tag for _, tag, _ in _TAG.findall(part)} - known)
    if strange:
        refuse(label, f"more than plain {what} ({strange[0].decode(errors='replace')})", _ALONE)
    if re.sub(rb"<[^>]*>", b"", _TEXT.sub(b"", part)).strip(b"\xef\xbb\xbf \t\r\n"):
        refuse(label, f"text outside its {what}", _ALONE)


def _plain_rows(sheet: bytes, label: str) -> None:
    """Rows and cells that are marked: hidden, of another height, in another colour, failed formulas."""
    if re.search(rb'<row [^>]*hidden="(1|true)"', sheet):
        refuse(label, "hidden rows", "show or remove them")
    if re.search(rb'<c [^>]*\bt="e"', sheet):
        refuse(label, "cells with errors", "write values, or nothing, in their place")
    rows = [_attributes(row) for row in re.findall(rb"<row [^>]*>", sheet)]
    looks = {
        tuple(sorted((name, value) for name, value in row.items() if name not in ("r", "spans", "dydescent")))
        for row in rows
        if row.get("r") != b"1"
    }
    if len(looks) > 1:
        refuse(label, "rows that are set apart from others", "give all rows one format")
    styles: dict[bytes, set[bytes]] = {}
    for tag in re.findall(rb"<c [^>]*>", sheet):
        cell = _attributes(tag)
        column, row = re.sub(rb"\d", b"", cell.get("r", b"")), re.sub(rb"\D", b"", cell.get("r", b""))
        if not column or set(cell) - {"r", "s", "t"}:
            refuse(label, "cells with marks of their own", _ALONE)
        if row != b"1" and not tag.endswith(b"/>"):
            styles.setdefault(column, set()).add(cell.get("s", b"0"))
    marked = sorted(column for column, found in styles.items() if len(found) > 1)
    if marked:
        where = f"cells of its column {marked[0].decode()} formatted in different ways, which tells records apart"
        refuse(label, where, "give all cells of a column one format")


def _in_order(book: zipfile.ZipFile) -> list[str]:
    """The sheets' files in the order of the tabs."""
    relations = book.read("xl/_rels/workbook.xml.rels")
    named = [_attributes(part) for part in re.findall(rb"<Relationship [^>]*>", relations)]
    target = {part["id"]: part["target"].decode() for part in named if {"id", "target"} <= part.keys()}
    workbook = book.read("xl/workbook.xml")
    order = [_attributes(part).get("id", b"") for part in re.findall(rb"<sheet [^>]*>", workbook)]
    return ["xl/" + target.get(name, "").removeprefix("/xl/") for name in order]


def _attributes(element: bytes) -> dict[str, bytes]:
    return {
        key.decode().rpartition(":")[2].lower(): value for key, value in re.findall(rb'([\w:]+)="([^"]*)"', element)
    }


def _numbers_as_text(contents: dict[str, bytes], filled: list[str], shared: bytes, label: str) -> None:
    """34 as a number and 34 as text look alike in a cell and are two values to a program."""
    texts = re.findall(rb"<si[ >].*?</si>|<si/>", shared, re.DOTALL)
    plain = [b"".join(re.findall(rb"<t[^>]*>([^<]*)</t>", text)) for text in texts]
    for name in filled:
        numbers: set[bytes] = set()
        worded: set[bytes] = set()
        for found in re.finditer(rb"(<c [^>/]*>)\s*(?:<v[^>]*>([^<]*)</v>|<is><t[^>]*>([^<]*)</t>)", contents[name]):
            tag, value, inline = found.groups()
            cell = _attributes(tag)
            column, kind = re.sub(rb"\d", b"", cell.get("r", b"")), cell.get("t", b"n")
            if kind == b"n":
                numbers.add(column)
                continue
            text = inline if inline is not None else plain[int(value)] if kind == b"s" else value
            if re.fullmatch(rb"\s*[+-]?\d+([.,]\d*)?([eE][+-]?\d+)?\s*", text or b""):
                worded.add(column)
        if both := sorted(numbers & worded):
            refuse(
                label,
                f"numbers both as numbers and as text in its column {both[0].decode()}",
                "write them one way",
            )
