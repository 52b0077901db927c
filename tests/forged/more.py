"""Forged files of a second look: tokens of persons, marks that no cell holds, spellings that come from other programs."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.forged.cases import GRADES, KIND, Case, spelled
from tests.forged.table import CONFIG, ROWS, changed, delimited, excel, ills, lines, parquet, raw, rows, text

TOKEN = CONFIG.replace("[policy]", '[attributes.pid]\nrole = "person"\npublish = "token"\n\n[policy]')
DATES = CONFIG.replace(KIND, 'kind = "date"')
WIDE = CONFIG.replace("[0, 120]", "[0, 120000]")
USED = pa.DictionaryArray.from_arrays(pa.array([i % 2 for i in range(12)]), pa.array(["flu", "cold"]))
BARE = [{k: v for k, v in row.items() if k != "illness"} for row in ROWS]
PEOPLE = ["Ash", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Gum", "Hazel", "Ivy", "Juniper", "Kapok", "Larch"]


def tokens(*numbers: Any) -> list[dict[str, Any]]:
    return rows(pid=list(numbers))


def described(path: Path) -> None:
    """A column with something to say in its own metadata."""
    table = pa.table({name: [row[name] for row in ROWS] for name in ROWS[0]})
    fields = [field.with_metadata({"note": "Ash"}) if field.name == "job" else field for field in table.schema]
    pq.write_table(table.cast(pa.schema(fields)), path)


def coloured(book: Any, sheet: Any) -> None:
    sheet.write_string(1, 2, "clerk", book.add_format({"bg_color": "yellow"}))


def formatted(book: Any, sheet: Any) -> None:
    for row in range(1, 13):
        sheet.write_number(row, 0, 34, book.add_format({"num_format": "0.00"}) if row == 1 else None)


NUMBERS = rows(age=[34] * 12)

MORE = [
    Case("a token for each row", delimited(tokens(*range(1, 13))), "passes", "Persons were counted", config=TOKEN),
    Case("two tokens for six rows", delimited(tokens(1, 1, 1, 2, 2, 2, *range(3, 9))), "refused", "with 2 records fails k_anonymity", config=TOKEN),
    Case("a token in two classes", delimited(tokens(1, 2, 3, 4, 5, 6, 1, 8, 9, 10, 11, 12)), "refused", "in different classes", config=TOKEN),
    Case("a row without a token", delimited(tokens(1, 2, 3, 4, 5, "", *range(6, 12))), "refused", "nobody's", config=TOKEN),
    Case("persons who all have flu", delimited([*tokens(*range(1, 13)), *[{**row, "illness": "flu", "pid": i + 1} for i, row in enumerate(ROWS)]]),
         "refused", "fails p_sensitive", config=TOKEN),
    Case("tokens dealt in another order", delimited(tokens(*range(12, 0, -1))), "passes", "Persons were counted", config=TOKEN),
    Case("tokens in a typed file", parquet(tokens(*range(1, 13))), "passes", "Persons were counted", file="masked.parquet", config=TOKEN),
    Case("tokens in a workbook", excel(tokens(*range(1, 13))), "passes", "Persons were counted", file="masked.xlsx", config=TOKEN),
    Case("names in the place of tokens", delimited(tokens(*PEOPLE)), "refused", "keys of the original may", config=TOKEN),
    Case("record numbers in the place of tokens", delimited(tokens(*range(104_301, 104_313))), "refused", "keys of the original may", config=TOKEN),
    Case("a key among the tokens", delimited(tokens(*range(1, 12), 104_301)), "refused", "keys of the original may", config=TOKEN),
    Case("tokens from zero", delimited(tokens(*range(12))), "refused", "the numbers from 1", config=TOKEN),
    Case("tokens with zeros before them", delimited(tokens(*(f"{i:02d}" for i in range(1, 13)))), "refused", "the numbers from 1", config=TOKEN),
    Case("tokens with decimals", delimited(tokens(*range(1, 12), 11.5)), "refused", "the numbers from 1", config=TOKEN),
    Case("digests in the place of tokens", parquet(tokens(*(f"{i * 2654435761 % 2**32:08x}" for i in range(12)))), "refused",
         "keys of the original may", file="masked.parquet", config=TOKEN),
    Case("a token nobody declared", delimited(tokens(*range(1, 13))), "refused", "Column 'pid' has no role"),
    Case("a number with a space that does not break", delimited(rows("age", {1: "34\u00a0"})), "refused", "with 1 record fails k_anonymity"),
    Case("a number that ends in a point", delimited(rows("age", {1: "34."})), "refused", "with 1 record fails k_anonymity"),
    spelled("an interval open below", "age", "(29, 39]"),
    spelled("an interval in words", "age", "30 to 39"),
    spelled("a set inside a set", "job", "{clerk, {nurse}}"),
    Case("an order backwards", delimited(rows(job=["clerk"] * 6 + ["[nurse, clerk]"] * 6)), "refused", "no value of its order", config=GRADES),
    Case("thousands in two ways", delimited(rows(age=["34000"] * 4 + ["34,000"] * 2 + ["[30000, 39000]"] * 6)), "refused", "with 2 records", config=WIDE),
    Case("days with slashes", delimited(rows(age=["2024-03-01"] * 4 + ["2024/03/01"] * 2 + ["2024-03"] * 6)), "refused", "interval of dates", config=DATES),
    Case("stars and stars with a space", delimited(rows(age=["*"] * 4 + ["* "] * 2 + ["[30, 39]"] * 6, zip=["*"] * 6 + ["411**"] * 6)), "refused", "with 2 records"),
    Case("a byte-order mark in the middle", changed(("clerk", "\ufeffclerk")), "refused", "with 1 record fails k_anonymity"),
    Case("a vertical tab", changed(("clerk", "clerk\x0b")), "refused", "with 1 record fails k_anonymity"),
    Case("ends of lines of two systems", raw(text(ROWS).replace("\n", "\r\n", 4)), "passes"),
    Case("a header in quotes", changed(("age,zip", '"age","zip"')), "passes"),
    Case("one illness and formulas that show it", delimited(ills("flu", '="flu"', "'flu")), "refused", "fails p_sensitive"),
    Case("packed twice", lambda path: path.write_bytes(gzip.compress(gzip.compress(text(ROWS).encode()))), "refused", "", file="masked.csv.gz"),
    Case("an archive that only ends in csv", lambda path: path.write_bytes(gzip.compress(text(ROWS).encode())), "refused", ""),
    Case("words of a dictionary", parquet(BARE, illness=USED), "passes", file="masked.parquet"),
    Case("a column with metadata", described, "refused", "metadata on its column 'job'", file="masked.parquet"),
    Case("records in a column", parquet(rows(ssn=[{"a": i} for i in range(12)])), "refused", "ssn", file="masked.parquet"),
    Case("a description of a column that is not there", parquet(ROWS, metadata={"pandas": '{"columns": [{"name": "ssn", "field_name": "ssn"}]}'}),
         "refused", "a description of columns", file="masked.parquet"),
    Case("a name twice, once in codes", raw('{"age":"34","zip":"410**","job":"clerk","illness":"flu","\\u0061ge":"35"}\n' * 6), "refused", "twice", file="masked.jsonl"),
    Case("a number too large for any machine", lines([{**row, "age": "=1e999"} for row in ROWS]), "refused", "", file="masked.jsonl"),
    Case("a cell in colour", excel(ROWS, more=coloured), "refused", "formatted in different ways", file="masked.xlsx"),
    Case("a number shown with decimals", excel(NUMBERS, more=formatted), "refused", "formatted in different ways", file="masked.xlsx"),
    Case("numbers shown alike", excel(NUMBERS), "passes", file="masked.xlsx"),
    Case("a hidden row", excel(ROWS, more=lambda _, sheet: sheet.set_row(3, None, None, {"hidden": True})), "refused", "hidden rows", file="masked.xlsx"),
    Case("a title that says more", excel(ROWS, more=lambda book, _: book.set_properties({"title": "Ash"})), "refused", "properties", file="masked.xlsx"),
    Case("a header of the printed page", excel(ROWS, more=lambda _, sheet: sheet.set_header("&LAsh")), "refused", "more than plain cells", file="masked.xlsx"),
    Case("a list of allowed values", excel(ROWS, more=lambda _, sheet: sheet.data_validation(1, 3, 1, 3, {"validate": "list", "source": ["Ash"]})),
         "refused", "more than plain cells", file="masked.xlsx"),
    Case("a name for a constant", excel(ROWS, more=lambda book, _: book.define_name("raw", '="Ash"')), "refused", "names of its own", file="masked.xlsx"),
]  # fmt: skip
