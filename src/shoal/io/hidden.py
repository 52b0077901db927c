"""What a file holds besides its table: comments, metadata, values that no record has, bytes beneath missing values.

A table that is safe in a file that is not would be published all the same, so whoever verifies a file looks here first.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from shoal.errors import InputError, VerificationError

# What may be said about the columns besides their names and types; what is said is looked at too.
_PANDAS = frozenset(
    ["index_columns", "column_indexes", "columns", "creator", "pandas_version", "attributes", "partition_columns"]
)
_SPARK = "org.apache.spark."
_VERSION = re.compile(rb"[0-9][0-9A-Za-z.+-]{0,30}|[A-Z][A-Za-z_]+(/[A-Z][A-Za-z_]+)?")


def gzip_holds_more(data: bytes, label: str) -> None:
    """A packed file whose head carries a comment or further fields."""
    if len(data) > 3 and data[3] & 0b10100:
        refuse(label, "a comment or a field of its own in the head of the archive", "pack it again")


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
        coded = pq.ParquetFile(path, read_dictionary=texts)
        # Each group has dictionaries of its own; one at a time, since the file may be larger than memory.
        for group in range(coded.num_row_groups):
            _dictionaries(coded.read_row_group(group), label)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{label} is not a whole Parquet file ({str(error).splitlines()[0]}): make it again."
        ) from error
    _metadata({**(file.metadata.metadata or {}), **(file.schema_arrow.metadata or {})}, file.schema_arrow.names, label)
    _fields(file.schema_arrow, label)
    _no_gaps(file.metadata, path, label)


def _no_gaps(described: Any, path: Path, label: str) -> None:
    """Bytes of the file that belong to no column; an index of pages has a length that nobody tells."""
    groups = [described.row_group(i) for i in range(described.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    if any(chunk.has_offset_index or chunk.has_column_index for chunk in chunks):
        return
    held = sum(chunk.total_compressed_size for chunk in chunks)
    if path.stat().st_size > 4 + held + described.serialized_size + 8:
        refuse(label, "bytes that belong to no column", "write it again")


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
    for name, column in zip(table.column_names, table.columns, strict=True):
        if any(_beneath(chunk) for chunk in column.chunks):
            refuse(label, f"values of '{name}' that no record has, where its values are missing", "write it again")


def _beneath(array: Any) -> bool:
    """Whether the memory of a column says more than its values: something beneath what is missing, or texts in no cell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = array.indices if isinstance(array, pa.DictionaryArray) else array
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        lengths = np.asarray(pc.binary_length(array.cast(pa.large_string())).fill_null(0))
        # Short texts stand in their views themselves.
        shown = int(lengths[lengths > 12].sum() if pa.types.is_string_view(kind) else lengths.sum())
        held = b"".join(buffer.to_pybytes() for buffer in array.buffers()[2:] if buffer is not None)
        return len(held) > shown and len(held.rstrip(b"\0")) > shown
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)
    if array.null_count == 0 or not plain:
        return False
    width = kind.bit_width // 8
    values = np.frombuffer(array.buffers()[1], dtype=np.uint8)[: (array.offset + len(array)) * width].reshape(-1, width)
    return len(np.unique(values[array.offset :][~np.asarray(array.is_valid())], axis=0)) > 1


def _metadata(found: dict[bytes, bytes], columns: list[str], label: str) -> None:
    for key, value in found.items():
        name = key.decode("utf-8", errors="replace")
        if name == "ARROW:schema" or (name == "writer.model.name" and value in (b"avro", b"thrift", b"protobuf")):
            continue
        if name.startswith(_SPARK) and _VERSION.fullmatch(value):
            continue
        if name == "pandas" or name == "parquet.avro.schema" or name.startswith(_SPARK):
            if not _describes(value, set(columns)):
                refuse(label, "a description of columns that are not in it", "write it again without them")
            continue
        refuse(label, f"metadata of its own ('{name}')", "write the table alone")


def _describes(value: bytes, columns: set[str]) -> bool:
    """Whether metadata that other programs leave names columns of the table and says nothing else in words of its own."""
    try:
        told = json.loads(value)
    except ValueError:
        return False
    if (
        not isinstance(told, dict)
        or told.get("attributes")
        or set(told) - _PANDAS - {"type", "fields", "name", "namespace"}
    ):
        return False
    listed = [*told.get("columns", []), *told.get("fields", [])]
    named = [one.get("field_name") or one.get("name") for one in listed if isinstance(one, dict)]
    noted = [one for one in listed if isinstance(one, dict) and isinstance(one.get("metadata"), dict)]
    known = {"timezone", "encoding", "num_categories", "ordered", "precision", "scale"}
    return {name for name in named if isinstance(name, str)} <= columns and all(
        set(one["metadata"]) <= known for one in noted
    )


def _fields(schema: Any, label: str) -> None:
    for field in schema:
        strange = [key for key in field.metadata or {} if not key.startswith((b"PARQUET:field_id", b"_PL_"))]
        if strange:
            refuse(label, f"metadata on its column '{field.name}'", "write the table alone")


def _dictionaries(table: Any, label: str) -> None:
    import pyarrow as pa

    for name, column in zip(table.column_names, table.columns, strict=True):
        for chunk in column.chunks if pa.types.is_dictionary(column.type) else ():
            unused = len(chunk.dictionary) - len(chunk.indices.drop_null().unique())
            if unused > 0:
                refuse(label, f"{unused} values of '{name}' that no record has", "write the column as plain text")


def refuse(label: str, what: str, way_out: str) -> NoReturn:
    raise VerificationError(f"{label} holds {what}: {way_out}.")
