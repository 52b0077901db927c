"""What a file holds besides its table: further sheets, formulas, comments, metadata, values that no record has.

A table that is safe in a file that is not would be published all the same, so whoever verifies a file looks here first.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from shoal.errors import InputError, VerificationError

_EXCEL_PARTS = re.compile(
    r"\[Content_Types\]\.xml|_rels/\.rels|docProps/(app|core)\.xml|docMetadata/LabelInfo\.xml|xl/workbook\.xml"
    r"|xl/_rels/workbook\.xml\.rels|xl/(styles|sharedStrings|metadata|calcChain)\.xml|xl/theme/theme\d*\.xml"
    r"|xl/worksheets/(_rels/)?sheet\d+\.xml(\.rels)?|xl/tables/table\d+\.xml|xl/printerSettings/[^/]+\.bin|.*/"
)
_SHEETS = re.compile(r"xl/worksheets/sheet(\d+)\.xml")
_SHARED = re.compile(rb'<c [^>]*t="s"[^>]*>\s*<v>(\d+)</v>')
AROUND: tuple[str, ...] = ("docProps/core.xml", "xl/workbook.xml")
_PROPERTIES = re.compile(rb"<(dc:title|dc:subject|dc:description|cp:keywords|cp:category|cp:contentStatus)>[^<]")
_BESIDE_CELLS = re.compile(
    rb"<(mergeCell|dataValidation|conditionalFormatting|hyperlink|headerFooter|protectedRange|customSheetView|scenario)[ >/]"
)
_DESCRIBING = re.compile(
    rb"ARROW:schema|pandas|org\.apache\.spark\..*|parquet\.avro\.schema|writer\.(model\.name|.*date)"
)


def gzip_holds_more(data: bytes, label: str) -> None:
    """A packed file whose head carries a comment or further fields."""
    if len(data) > 3 and data[3] & 0b10100:
        _refuse(label, "a comment or a field of its own in the head of the archive", "pack it again")


def excel_holds_more(path: Path, label: str) -> int:
    """Refuse a workbook with anything besides one sheet of plain values; the position of that sheet."""
    try:
        with zipfile.ZipFile(path) as book:
            strange = [name for name in book.namelist() if not _EXCEL_PARTS.fullmatch(name)]
            if strange:
                _refuse(label, f"more than a sheet ('{strange[0]}')", "save the values alone in a new workbook")
            sheets = _in_order(book)
            contents = {name: book.read(name) for name in book.namelist() if _SHEETS.fullmatch(name)}
            shared = book.read("xl/sharedStrings.xml") if "xl/sharedStrings.xml" in book.namelist() else b""
            around = {name: book.read(name) for name in AROUND if name in book.namelist()}
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise InputError(f"{label} is not a readable Excel file ({error}): save it again as .xlsx.") from error
    filled = [name for name, content in contents.items() if re.search(rb"<(v|is)[ >]", content)]
    if len(filled) > 1:
        _refuse(label, f"{len(filled)} sheets with values (some may be hidden)", "keep the sheet that is published")
    if any(re.search(rb"<f[ >/]", contents[name]) for name in filled):
        _refuse(label, "formulas, which may show anything", "save their values instead")
    _plain_cells([contents[name] for name in filled], around, label)
    used = {int(index) for name in filled for index in _SHARED.findall(contents[name])}
    held = len(re.findall(rb"<si[ >/]", shared))
    if held > len(used):
        _refuse(label, f"{held - len(used)} texts that stand in no cell", "save the values alone in a new workbook")
    _numbers_as_text(contents, filled, shared, label)
    return sheets.index(filled[0]) if filled and filled[0] in sheets else 0


def _plain_cells(sheets: list[bytes], around: Mapping[str, bytes], label: str) -> None:
    """Properties, names, headers of pages, lists of values: texts outside the cells. Colours and hidden rows: records marked."""
    if _PROPERTIES.search(around.get("docProps/core.xml", b"")):
        _refuse(label, "a title or other properties", "remove them")
    if b"<definedName" in around.get("xl/workbook.xml", b""):
        _refuse(label, "names of its own", "save the values alone in a new workbook")
    for sheet in sheets:
        beside = _BESIDE_CELLS.search(sheet)
        if beside:
            _refuse(label, f"more than plain cells ({beside[1].decode()})", "save the values alone in a new workbook")
        if re.search(rb'<row [^>]*hidden="(1|true)"', sheet):
            _refuse(label, "hidden rows", "show or remove them")
        styles: dict[bytes, set[bytes]] = {}
        for column, row, rest in re.findall(rb'<c r="([A-Z]+)(\d+)"([^>]*)>', sheet):
            style = re.search(rb'\bs="(\d+)"', rest)
            if int(row) > 1 and not rest.rstrip().endswith(b"/"):
                styles.setdefault(column, set()).add(style[1] if style else b"0")
        marked = sorted(column for column, found in styles.items() if len(found) > 1)
        if marked:
            where = f"cells of its column {marked[0].decode()} formatted in different ways, which tells records apart"
            _refuse(label, where, "give all cells of a column one format")


def parquet_holds_more(path: Path, label: str) -> None:
    """Metadata that describes something else than the columns, and dictionaries with values that no record has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        texts = [
            field.name
            for field in file.schema_arrow
            if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        ]
        coded = pq.ParquetFile(path, read_dictionary=texts).read()
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{label} is not a whole Parquet file ({str(error).splitlines()[0]}): make it again."
        ) from error
    _metadata({**(file.metadata.metadata or {}), **(file.schema_arrow.metadata or {})}, coded.column_names, label)
    _fields(file.schema_arrow, label)
    _dictionaries(coded, label)


def arrow_holds_more(data: bytes, label: str) -> None:
    """The same for Arrow files and streams."""
    import pyarrow as pa

    try:
        table = (pa.ipc.open_file(data) if data.startswith(b"ARROW1") else pa.ipc.open_stream(data)).read_all()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{label} is not a whole Arrow file ({str(error).splitlines()[0]}): make it again.") from error
    _metadata(table.schema.metadata or {}, table.column_names, label)
    _fields(table.schema, label)
    _dictionaries(table, label)


def _metadata(found: dict[bytes, bytes], columns: list[str], label: str) -> None:
    for key, value in found.items():
        if not _DESCRIBING.fullmatch(key):
            name = key.decode("utf-8", errors="replace")
            _refuse(label, f"metadata of its own ('{name}')", "write the table alone")
        if key == b"pandas" and not set(_named_by_pandas(value)) <= set(columns):
            _refuse(label, "a description of columns that are not in it", "write it again without them")


def _named_by_pandas(value: bytes) -> list[str]:
    try:
        told: dict[str, Any] = json.loads(value)
        names = [column.get("field_name") or column.get("name") for column in told.get("columns", [])]
        return [name for name in names if isinstance(name, str)]
    except (ValueError, AttributeError):
        return ["?"]


def _fields(schema: Any, label: str) -> None:
    for field in schema:
        strange = [key for key in field.metadata or {} if not key.startswith((b"PARQUET:field_id", b"_PL_"))]
        if strange:
            _refuse(label, f"metadata on its column '{field.name}'", "write the table alone")


def _dictionaries(table: Any, label: str) -> None:
    import pyarrow as pa

    for name, column in zip(table.column_names, table.columns, strict=True):
        for chunk in column.chunks if pa.types.is_dictionary(column.type) else ():
            unused = len(chunk.dictionary) - len(chunk.indices.drop_null().unique())
            if unused > 0:
                _refuse(label, f"{unused} values of '{name}' that no record has", "write the column as plain text")


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
        for found in re.finditer(
            rb'<c r="([A-Z]+)\d+"([^>/]*)>\s*(?:<v>([^<]*)</v>|<is><t[^>]*>([^<]*)</t>)', contents[name]
        ):
            column, attributes, value, inline = found.groups()
            kind = re.search(rb't="(\w+)"', attributes)
            if kind is None or kind[1] == b"n":
                numbers.add(column)
                continue
            text = inline if inline is not None else plain[int(value)] if kind[1] == b"s" else value
            if re.fullmatch(rb"\s*[+-]?\d+([.,]\d*)?([eE][+-]?\d+)?\s*", text or b""):
                worded.add(column)
        if both := sorted(numbers & worded):
            _refuse(
                label,
                f"numbers both as numbers and as text in its column {both[0].decode()}",
                "write them one way",
            )


def _refuse(label: str, what: str, way_out: str) -> NoReturn:
    raise VerificationError(f"{label} holds {what}: {way_out}.")
