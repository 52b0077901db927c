"""Cases of a third look: typed files, two ends, declared levels, letters that run backwards, marks in workbooks."""

from __future__ import annotations

import gzip
import warnings
import zipfile
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.forged.cases import GRADES, KIND, ZIP_FILE, ZIPS, Case, configured, one_illness
from tests.forged.more import DATES, TOKEN, tokens
from tests.forged.table import CONFIG, ROWS, Build, delimited, excel, ills, lines, packed, parquet, raw, rows, text

TENS = CONFIG.replace(KIND, 'kind = "number"\ntaxonomy = { intervals = [10, 20] }')
EDGES = CONFIG.replace(KIND, 'kind = "number"\ntaxonomy = { edges = [[0, 18, 65, 120], [0, 65, 120]] }')
MONTHS = CONFIG.replace(KIND, 'kind = "date"\ntaxonomy = { dates = ["month", "year"] }')
NUMBER = configured('kind = "number"')
BELOW = CONFIG.replace("[0, 120]", "[-10, 120]")
DOMAIN, NODE, NUMBERS, DAYS = (
    "outside its declared domain",
    "no node of its taxonomy",
    "no interval of numbers",
    "no interval of dates",
)
FEW, TOO_FEW, PAIR, TOKENS = (
    "with 2 records fails k_anonymity",
    "fails p_sensitive",
    "it is no interval",
    "the numbers from 1",
)
SHEET, TEXTS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"


def typed(**columns: Any) -> Build:
    """The table with columns of other types."""
    found = {name: [row[name] for row in ROWS] for name in ROWS[0]} | columns
    return parquet([dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)])


def halves(column: str, first: Any, second: Any) -> Build:
    """A text file whose two classes have these values of a column."""
    return delimited(rows(**{column: [first] * 6 + [second] * 6}))


def some(column: str, most: Any, two: Any) -> Build:
    """Two records of the first class have another spelling than the other four."""
    return delimited(rows(column, {**dict.fromkeys(range(1, 5), most), 5: two, 6: two}))


def ends(low: Sequence[Any], high: Sequence[Any]) -> Build:
    """Age as two columns; a value for each class."""
    found = []
    for number, row in enumerate(ROWS):
        rest = {name: value for name, value in row.items() if name != "age"}
        found.append({"age_min": low[number // 6], "age_max": high[number // 6], **rest})
    return delimited(found)


def arrow(build: Callable[[], pa.Array], column: str) -> Build:
    """An Arrow file in which one column has the memory that is built."""

    def written(path: Path) -> None:
        table = pa.table(
            {name: pa.array([row[name] for row in ROWS]) if name != column else build() for name in ROWS[0]}
        )
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)

    return written


def numbers_beneath() -> pa.Array:
    """Ages that were made missing, and still lie beneath."""
    ages = pa.array(range(30, 42), pa.int64())
    return pa.Array.from_buffers(pa.int64(), 12, [pa.py_buffer(bytes(2)), ages.buffers()[1]])


def texts_beneath() -> pa.Array:
    names = [b"Ash", b"Birch", b"Cedar"] * 4
    places = [sum(map(len, names[:i])) for i in range(13)]
    offsets = pa.py_buffer(b"".join(place.to_bytes(4, "little") for place in places))
    return pa.Array.from_buffers(pa.string(), 12, [pa.py_buffer(bytes(2)), offsets, pa.py_buffer(b"".join(names))])


def before_the_footer(path: Path) -> None:
    parquet(ROWS)(path)
    data = path.read_bytes()
    footer = 8 + int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[:-footer] + b"Ash Birch Cedar" + data[-footer:])


def book(part: str, old: bytes, new: bytes) -> Build:
    """The workbook with a piece of one of its pages replaced."""

    def build(path: Path) -> None:
        excel(ROWS)(path)
        with zipfile.ZipFile(path) as archive:
            pages = {name: archive.read(name) for name in archive.namelist()}
        assert old in pages[part]
        pages[part] = pages[part].replace(old, new, 1)
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in pages.items():
                archive.writestr(name, content)

    return build


def new_page(name: str, content: bytes, *, comment: bytes = b"") -> Build:
    """The workbook with one page more, or one packed twice, or a comment."""

    def build(path: Path) -> None:
        excel(ROWS)(path)
        with zipfile.ZipFile(path, "a") as archive:
            if name:
                archive.writestr(name, content)
            archive.comment = comment

    return build


def twice(path: Path) -> None:
    """Two pages of one name; programs show the one or the other."""
    excel(ROWS)(path)
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zipfile, which says what is the matter
        archive.writestr(SHEET, archive.read(SHEET).replace(b"clerk", b"nurse"))


def dated(path: Path) -> None:
    """A workbook with days as Excel has them."""
    import xlsxwriter

    made = xlsxwriter.Workbook(path)
    sheet, form = made.add_worksheet(), made.add_format({"num_format": "yyyy-mm-dd"})
    for place, name in enumerate(ROWS[0]):
        sheet.write_string(0, place, name)
        for number, row in enumerate(ROWS):
            if name == "age":
                sheet.write_datetime(number + 1, place, datetime(2024, 1, 1 + number // 6), form)
            else:
                sheet.write_string(number + 1, place, row[name])
    made.close()


def second_half() -> bytes:
    """The records of the second class, packed."""
    return gzip.compress(text(ROWS[6:]).partition("\n")[2].encode(), mtime=0)


def line(illness: str, *, age: str = '"34"', job: str = '"clerk"', after: str = "") -> str:
    return f'{{"age":{age},"zip":"410**","job":{job},"illness":"{illness}"}}{after}\n'


def both(**more: str) -> Build:
    """JSON lines of one class with two illnesses."""
    return raw("".join(line(("flu", "cold")[i % 2], **more) for i in range(6)))


def parquet_case(name: str, build: Build, verdict: Any, says: str = "", config: str = CONFIG) -> Case:
    return Case(
        name, build, verdict, says, file="masked.parquet", config=config, files=ZIP_FILE if config is ZIPS else ()
    )


def marked(name: str, says: str, build: Build) -> Case:
    return Case(name, build, "refused", says, file="masked.xlsx")


TYPED = [
    parquet_case("a typed number outside its domain", typed(age=[934] * 6 + [35] * 6), "refused", DOMAIN),
    parquet_case("a typed number below its domain", typed(age=[-5] * 6 + [35] * 6), "refused", DOMAIN),
    parquet_case("an infinite number", typed(age=[float("inf")] * 6 + [35.0] * 6), "refused", "infinite"),
    parquet_case("typed numbers", typed(age=[34] * 6 + [35] * 6), "passes"),
    parquet_case("decimals", typed(age=[Decimal("34.0")] * 6 + [Decimal("35.0")] * 6), "passes"),
    parquet_case("a decimal outside its domain", typed(age=[Decimal("934.0")] * 6 + [Decimal("35.0")] * 6), "refused", DOMAIN),
    parquet_case("numbers a hair apart", typed(age=[34.0] * 5 + [34.000000000000007] + [35.0] * 6), "refused", "with 1 record"),
    parquet_case("days where numbers were declared", typed(age=[date(2024, 1, 1)] * 12), "refused", NUMBERS),
    parquet_case("times where numbers were declared", typed(age=[datetime(2024, 1, 1, 10, 3)] * 12), "refused", NUMBERS),
    parquet_case("truths where numbers were declared", typed(age=[True] * 6 + [False] * 6), "refused", NUMBERS),
    parquet_case("numbers where days were declared", typed(age=[34] * 12), "refused", DAYS, DATES),
    parquet_case("times where days were declared", typed(age=[datetime(2024, 1, 1, 10, 3)] * 12), "refused", DAYS, DATES),
    parquet_case("typed days", typed(age=[date(2024, 1, 1)] * 6 + [date(2024, 1, 2)] * 6), "passes", "", DATES),
    parquet_case("numbers where an order was declared", typed(job=[1] * 12), "refused", "no value of its order", GRADES),
    parquet_case("a number that the taxonomy does not know", typed(zip=[41076] * 6 + [99999] * 6), "refused", NODE, ZIPS),
    parquet_case("typed ends backwards", parquet([{"age_min": 39, "age_max": 30, "zip": r["zip"], "job": r["job"], "illness": r["illness"]} for r in ROWS]),
                 "refused", PAIR),
    parquet_case("NaN as an illness", typed(illness=[1.0, 2.0] * 3 + [7.0, float("nan")] * 3), "refused", TOO_FEW),
    parquet_case("zero and minus zero as illnesses", typed(illness=[1.0, 2.0] * 3 + [0.0, -0.0] * 3), "refused", TOO_FEW, NUMBER),
    parquet_case("a NUL in a typed file", typed(job=["clerk"] * 5 + ["cl\0erk"] + ["{clerk, nurse}"] * 6), "refused", "NUL"),
    parquet_case("attributes that pandas keeps", parquet(ROWS, metadata={"pandas": '{"columns": [], "attributes": {"note": "Ash"}}'}),
                 "refused", "a description of columns"),
    parquet_case("a note among what pandas says", parquet(ROWS, metadata={"pandas": '{"columns": [], "note": "Ash"}'}), "refused", "a description of columns"),
    parquet_case("words in the place of Spark's", parquet(ROWS, metadata={"org.apache.spark.sql.parquet.row.metadata": "Ash Birch"}),
                 "refused", "a description of columns"),
    parquet_case("a date of writing", parquet(ROWS, metadata={"writer.date": "Ash Birch"}), "refused", "metadata of its own"),
    parquet_case("bytes before the footer", before_the_footer, "refused", "bytes that belong to no column"),
    Case("a number outside its domain in JSON", lines([{**row, "age": 934} for row in ROWS]), "refused", DOMAIN, file="masked.jsonl"),
    Case("a number outside its domain in a workbook", excel([{**row, "age": 934} for row in ROWS]), "refused", DOMAIN, file="masked.xlsx"),
    Case("days of a workbook", dated, "passes", file="masked.xlsx", config=DATES),
    Case("numbers beneath what is missing", arrow(numbers_beneath, "age"), "refused", "where its values are missing", file="masked.arrow"),
    Case("names beneath what is missing", arrow(texts_beneath, "job"), "refused", "where its values are missing", file="masked.arrow"),
    Case("missing values with nothing beneath", arrow(lambda: pa.array([None] * 6 + [35] * 6), "age"), "passes", file="masked.arrow"),
]  # fmt: skip

LEVELS = [
    Case("ends backwards", ends([39, 39], [30, 30]), "refused", PAIR),
    Case("an end outside the domain", ends([30, 30], [930, 930]), "refused", DOMAIN),
    Case("one end missing", ends(["", 30], [39, 39]), "refused", PAIR),
    Case("both ends missing", ends(["", 30], ["", 39]), "passes"),
    Case("an end that is an interval", ends(["[30, 31]", 30], [39, 39]), "refused", PAIR),
    Case("an end that is a star", ends(["*", 30], [40, 39]), "refused", PAIR),
    Case("ends that are stars", ends(["*", 30], ["*", 39]), "passes"),
    Case("names as ends", ends(["Ash", "Ash"], ["Birch", "Birch"]), "refused", NUMBERS),
    Case("days as ends", ends(["2024-03-01"] * 2, ["2024-03-09"] * 2), "passes", config=DATES),
    Case("days as ends backwards", ends(["2024-03-02"] * 2, ["2024-03-01"] * 2), "refused", PAIR, config=DATES),
    Case("a level that nobody declared", halves("zip", "4107*", "411**"), "refused", NODE),
    Case("a name as a zip", halves("zip", "Ash Birch", "411**"), "refused", NODE),
    Case("stars in the middle", halves("zip", "4*076", "411**"), "refused", NODE),
    Case("stars in front", halves("zip", "**076", "411**"), "refused", NODE),
    Case("stars of two widths", halves("zip", "410*", "411**"), "refused", NODE),
    Case("whole zips beside prefixes", halves("zip", "41076", "411**"), "passes"),
    Case("nothing but stars", halves("zip", "*****", "411**"), "passes"),
    Case("an interval of no level", halves("age", "[31, 38]", "[30, 39]"), "refused", NODE, config=TENS),
    Case("an interval that begins elsewhere", halves("age", "[35, 44]", "[30, 39]"), "refused", NODE, config=TENS),
    Case("intervals of both levels", halves("age", "[20, 39]", "[30, 39]"), "passes", config=TENS),
    Case("numbers beside intervals", halves("age", "34", "[30, 39]"), "passes", config=TENS),
    Case("intervals between the edges", halves("age", "[18, 64]", "[65, 120]"), "passes", config=EDGES),
    Case("an interval across an edge", halves("age", "[18, 70]", "[65, 120]"), "refused", NODE, config=EDGES),
    Case("a quarter where months were declared", halves("age", "2024-Q1", "2024-03"), "refused", NODE, config=MONTHS),
    Case("an interval where months were declared", halves("age", "[2023, 2024]", "2024-03"), "refused", NODE, config=MONTHS),
    Case("months and years", halves("age", "2024", "2024-03"), "passes", config=MONTHS),
    Case("a thirteenth month", halves("age", "2024-13", "2024-03"), "refused", DAYS, config=DATES),
    Case("the 30th of February", halves("age", "2024-02-30", "2024-03-01"), "refused", DAYS, config=DATES),
    Case("a job that runs backwards", some("job", "clerk", "\u202ekrelc"), "refused", FEW),
    Case("an empty set", some("job", "clerk", "{}"), "refused", FEW),
    Case("a set of one", some("job", "clerk", "{clerk}"), "refused", FEW),
    Case("an interval of one", some("age", "34", "[34, 34]"), "refused", FEW),
    Case("two signs for at least", some("age", ">=65", "≥65"), "refused", FEW),
    Case("a sign that is no hyphen", some("age", "-5", "\u22125"), "refused", "", config=BELOW),
    Case("zero with a sign", some("age", "0", "-0"), "refused", FEW),
    Case("an age that is no number", halves("age", "nan", "[30, 39]"), "refused", NUMBERS),
    Case("an age without end", halves("age", "[30, inf)", "[30, 39]"), "refused", NUMBERS),
    Case("a number of four hundred digits", halves("age", "9" * 400, "[30, 39]"), "refused", DOMAIN),
    Case("a number beyond all numbers", halves("age", "1e999", "[30, 39]"), "refused", DOMAIN),
    Case("a number in sixteens", halves("age", "0x22", "[30, 39]"), "refused", NUMBERS),
    Case("a number with an underscore", halves("age", "3_4", "[30, 39]"), "refused", NUMBERS),
    Case("a Roman number", halves("age", "XXXIV", "[30, 39]"), "refused", NUMBERS),
]  # fmt: skip

SECRETS = [
    one_illness("flu backwards, turned round", "flu", "\u202eulf"),
    one_illness("white letters on black", "flu", "🅵🅻🆄", "🅕🅛🅤"),
    one_illness("letters in circles and brackets", "flu", "ⓕⓛⓤ", "⒡⒧⒰"),
    one_illness("letters of flags", "flu", "🇫🇱🇺"),
    one_illness("flu in brackets", "flu", "(flu)", "[flu]", "{flu}"),
    one_illness("marks around it", "flu", "*flu*", "flu!", ".flu", "-flu"),
    one_illness("a stroke through it", "flu", "f\u0336l\u0336u\u0336"),
    one_illness("a sign of sets for a letter", "flu", "fl∪"),
    one_illness("a character nobody has drawn", "flu", "flu\ue000"),
    one_illness("with and without a hyphen", "heart attack", "heart-attack", "heartattack"),
    one_illness("an i without its dot", "DIABETES", "dıabetes", "diabetes"),
    one_illness("illnesses in another order", "flu, cold", "cold, flu", "cold; flu"),
    one_illness("a set of illnesses in another order", "{flu, cold}", "{cold, flu}"),
    one_illness("a half in two ways", "1/2", "½"),
    one_illness("ten o'clock", "10:00", "10:00:00"),
    one_illness("a day with the name of its month", "2024-03-31", "31 March 2024", "Mar 31, 2024"),
    one_illness("errors of a spreadsheet", "flu", "#NULL!", "#VALUE!", "#REF!"),
    one_illness("a stop alone", "flu", ".", "_"),
    one_illness("not a number, as machines say it", "flu", "-nan", "1.#QNAN"),
    one_illness("missing in brackets", "flu", "(missing)", "[unknown]", "<null>"),
    one_illness("blank and empty", "flu", "(blank)", "empty"),
    one_illness("missing in other languages", "flu", "keine Angabe", "inconnu", "unbekannt"),
    one_illness("suppressed by somebody", "flu", "suppressed", "redacted", "withheld"),
    one_illness("many stars and questions", "flu", "*****", "????", "-----"),
    one_illness("letters that are blank", "flu", "\u3164", "\uffa0"),
    Case("a number in five spellings", delimited(rows(illness=["1", "2"] * 3 + ["7", "7.0", "07", "+7", "7e0", "7."])), "refused", TOO_FEW, config=NUMBER),
    Case("results of tests are told apart", delimited(ills("+", "++", "A+", "A-", "<5", ">5")), "passes"),
    Case("blood groups are told apart", delimited(ills("A", "AB", "B", "0")), "passes"),
    Case("codes that differ in a digit are told apart", delimited(ills("I10", "I11", "J10.1", "J10.2")), "passes"),
]  # fmt: skip

PERSONS = [
    Case("a token with a sign", delimited(tokens(*range(1, 12), "+12")), "refused", TOKENS, config=TOKEN),
    Case("a token with a space", delimited(tokens(*range(1, 12), " 12")), "refused", TOKENS, config=TOKEN),
    Case("a token with a decimal", delimited(tokens(*range(1, 12), "12.0")), "refused", TOKENS, config=TOKEN),
    Case("a token with a power", delimited(tokens(*range(1, 12), "1.2e1")), "refused", TOKENS, config=TOKEN),
    Case("a token in full width", delimited(tokens(*range(1, 12), "１２")), "refused", TOKENS, config=TOKEN),
    Case("tokens below zero", delimited(tokens(*range(-12, 0))), "refused", TOKENS, config=TOKEN),
    parquet_case("tokens that are not whole by type", typed(pid=[float(i) for i in range(1, 13)]), "refused", TOKENS, TOKEN),
    parquet_case("days as tokens", typed(pid=[date(1970, 1, i) for i in range(1, 13)]), "refused", TOKENS, TOKEN),
    Case("tokens left out", delimited(ROWS), "passes", "rows were counted, not persons", config=TOKEN),
    Case("a person nobody said to publish", delimited(tokens(*range(1, 13))), "refused", "person column 'pid'",
         config=TOKEN.replace('publish = "token"\n', "")),
]  # fmt: skip

WRITTEN = [
    Case("true and the word true", lines([{**row, "job": ("=true", "true")[i % 2]} for i, row in enumerate(ROWS)]), "refused", "both as such and as text", file="masked.jsonl"),
    Case("an array of records", raw("[" + line("flu").strip() + "]\n"), "refused", "no record", file="masked.jsonl"),
    Case("words after a record", both(after=" Ash"), "refused", "not JSON", file="masked.jsonl"),
    Case("a remark before the records", raw("// Ash\n" + line("flu") * 6), "refused", "not JSON", file="masked.jsonl"),
    Case("two records in a line", raw((line("flu").strip() + " " + line("cold")) * 3), "refused", "not JSON", file="masked.jsonl"),
    Case("half a character", both(job='"cl\\ud800erk"'), "refused", "", file="masked.jsonl"),
    Case("a NUL in JSON", both(job='"cl\\u0000erk"'), "refused", "NUL", file="masked.jsonl"),
    Case("a name that is a space longer", lines([{**row, "age ": "34"} for row in ROWS]), "refused", "'age ' has no role", file="masked.jsonl"),
    Case("zero and minus zero in JSON", lines([{**row, "age": "=-0" if i < 2 else 0} for i, row in enumerate(ROWS)]), "refused", FEW, file="masked.jsonl"),
    Case("spaces between names and values", raw("".join(line(("flu", "cold")[i % 2]).replace(":", " : ") for i in range(6))), "passes", file="masked.jsonl"),
    Case("a line for spreadsheets", raw("sep=,\n" + text(ROWS)), "refused", ""),
    Case("the header again", raw(text(ROWS) + "age,zip,job,illness\n"), "refused", NUMBERS),
    Case("a sum at the end", raw(text(ROWS) + "Total,,,12\n"), "refused", NUMBERS),
    Case("records after the end of the file", raw(text(ROWS) + "\x1aAsh,Birch"), "refused", ""),
    Case("a record of commas", raw(text(ROWS) + ",,,\n"), "refused", "with 1 record"),
    Case("a record with another delimiter", raw(text(ROWS).replace("34,410**,clerk,flu", "34;410**;clerk;flu", 1)), "refused", "holds 1 value"),
    Case("two byte-order marks", raw("\ufeff\ufeff" + text(ROWS)), "refused", "has no role"),
    Case("a separator of lines that no program ends one at", raw(text(ROWS).replace("clerk", "cl\u2028erk", 1)), "refused", "with 1 record"),
    Case("a quote behind a backslash", raw(text(ROWS).replace("clerk", '"cl\\"erk"', 1)), "refused", "programs read it differently"),
    Case("half a character in UTF-8", raw(text(ROWS).encode().replace(b"clerk", b"cl\xed\xa0\x80erk", 1)), "refused", ""),
    Case("UTF-16 without a mark", raw(text(ROWS).encode("utf-16-le")), "refused", ""),
    Case("a blank line in the middle", raw(text(ROWS).replace("flu\n", "flu\n\n", 1)), "passes"),
    Case("packed in two pieces", lambda path: (packed(ROWS[:6])(path), path.write_bytes(path.read_bytes() + second_half())), "passes", file="masked.csv.gz"),
]  # fmt: skip


WORKBOOKS = [
    marked("how a text is spoken", "more than plain texts (rPh)", book(TEXTS, b"<t>flu</t>", b'<t>flu</t><rPh sb="0" eb="1"><t>Ash</t></rPh>')),
    marked("a letter in bold", "more than plain texts (b)", book(TEXTS, b"<t>flu</t>", b"<r><rPr><b/></rPr><t>f</t></r><r><t>lu</t></r>")),
    marked("a remark on a page", "remarks", book(SHEET, b"</sheetData>", b"</sheetData><!-- Ash -->")),
    marked("text between the rows", "text outside its cells", book(SHEET, b"</sheetData>", b"Ash</sheetData>")),
    marked("a row of another height", "rows that are set apart", book(SHEET, b'<row r="3"', b'<row ht="31" customHeight="1" r="3"')),
    marked("a row in a group of its own", "rows that are set apart", book(SHEET, b'<row r="3"', b'<row outlineLevel="1" r="3"')),
    marked("a cell with a mark", "cells with marks", book(SHEET, b'<c r="A3"', b'<c vm="1" r="A3"')),
    marked("a style before the name of a cell", "formatted in different ways", book(SHEET, b'<c r="C3"', b'<c s="1" r="C3"')),
    marked("a filter with a name in it", "more than plain cells (filter",
           book(SHEET, b"</sheetData>", b'</sheetData><autoFilter ref="A1:D13"><filterColumn colId="0"><filters><filter val="Ash"/></filters></filterColumn></autoFilter>')),
    marked("a page that ends after a record", "more than plain cells (brk)", book(SHEET, b"</worksheet>", b'<rowBreaks count="1"><brk id="3" man="1"/></rowBreaks></worksheet>')),
    marked("an error that is to be ignored", "more than plain cells (ignoredError",
           book(SHEET, b"</worksheet>", b'<ignoredErrors><ignoredError sqref="A3" numberStoredAsText="1"/></ignoredErrors></worksheet>')),
    marked("an extension", "more than plain cells", book(SHEET, b"</worksheet>", b'<extLst><ext uri="x"><a>Ash</a></ext></extLst></worksheet>')),
    marked("an error in a cell", "cells with errors", book(SHEET, b"</sheetData>", b'<row r="14"><c r="A14" t="e"><v>#N/A</v></c></row></sheetData>')),
    marked("a cell beyond the header", "", book(SHEET, b'</row><row r="4"', b'<c r="H3"><v>77</v></c></row><row r="4"')),
    marked("a row far below", "", book(SHEET, b"</sheetData>", b'<row r="900"><c r="A900"><v>77</v></c></row></sheetData>')),
    marked("somebody who is responsible", "properties", book("docProps/app.xml", b"</Properties>", b"<Manager>Ash</Manager></Properties>")),
    marked("settings of a printer", "more than a sheet", new_page("xl/printerSettings/printerSettings1.bin", b"Ash")),
    marked("a page packed twice", "packed twice", twice),
    marked("a comment on the archive", "comments", new_page("", b"", comment=b"Ash Birch")),
    marked("something before the archive", "bytes between", lambda path: (excel(ROWS)(path), path.write_bytes(b"Ash Birch" + path.read_bytes()))),
]  # fmt: skip


FINER = [*TYPED, *LEVELS, *SECRETS, *PERSONS, *WRITTEN, *WORKBOOKS]
