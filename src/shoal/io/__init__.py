"""Tables in and out: files, SQL databases and frames of other libraries."""

from shoal.io.atomic import atomic_path, atomic_paths, atomic_write_bytes, atomic_write_text
from shoal.io.files import check_writable_format, read_table, write_table, write_table_to
from shoal.io.frames import apply_missing, from_polars, normalise, to_polars
from shoal.io.numbers import number_problem
from shoal.io.sql import read_sql, write_sql

__all__ = [
    "apply_missing",
    "atomic_path",
    "atomic_paths",
    "atomic_write_bytes",
    "atomic_write_text",
    "check_writable_format",
    "from_polars",
    "normalise",
    "number_problem",
    "read_sql",
    "read_table",
    "to_polars",
    "write_sql",
    "write_table",
    "write_table_to",
]
