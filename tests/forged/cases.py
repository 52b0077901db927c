"""Forged files: what was done to each, and what `shoal verify` must say to it.

Each case names the file it makes, the verdict (`passes` or `refused`) and words that must stand in the answer. Files that pass
are here too: a verifier that refuses everything is of no use.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from tests.forged.table import (
    CONFIG,
    ROWS,
    Build,
    changed,
    delimited,
    excel,
    ills,
    lines,
    packed,
    parquet,
    raw,
    rows,
    second,
    text,
)

Verdict = Literal["passes", "refused"]


@dataclass(frozen=True)
class Case:
    """One file, what is the matter with it, and the answer."""

    name: str
    build: Build
    verdict: Verdict
    says: str = ""
    file: str = "masked.csv"
    config: str = CONFIG
    files: tuple[tuple[str, str], ...] = ()


def spelled(name: str, column: str, value: str) -> Case:
    """Two records of the second class have the same value in another spelling: two classes to a reader."""
    return Case(name, delimited(second(column, value)), "refused", "with 2 records fails k_anonymity")


def one_illness(name: str, *values: str) -> Case:
    """The second class has one illness in several spellings."""
    return Case(name, delimited(ills(*values)), "refused", "fails p_sensitive")


def configured(change: str, *more: str) -> str:
    """The configuration with the illness' table extended."""
    return CONFIG.replace('role = "sensitive"\n', f'role = "sensitive"\n{change}\n') + "".join(more)


TREE = 'taxonomy = { rows = [["flu", "lung", "*"], ["cold", "lung", "*"], ["ulcer", "stomach", "*"]] }'
LEVELS = '[attributes.zip]\nrole = "quasi"\nkind = "category"\ntaxonomy = { prefix = [3, 2, 0] }'
ZIPS = CONFIG.replace(LEVELS, '[attributes.zip]\nrole = "quasi"\ntaxonomy = "zips.csv"')
ZIP_FILE = (("zips.csv", "41076;410**;*\n41077;410**;*\n41101;411**;*\n41102;411**;*\n"),)
GRADES = CONFIG.replace(
    '[attributes.job]\nrole = "quasi"', '[attributes.job]\nrole = "quasi"\norder = ["clerk", "nurse", "judge"]'
)
OTHERS = CONFIG + '\n[attributes."*"]\nrole = "other"\n'
GONE = CONFIG + '\n[attributes."*"]\nrole = "identifier"\n'
KIND = 'kind = "number"\ndomain = [0, 120]'

QUASI = [
    spelled("a number with a decimal", "age", "[30.0, 39.0]"),
    Case("34 and 34.0", delimited(rows("age", {1: "34.0", 2: "34.0"})), "refused", "with 2 records fails k_anonymity"),
    Case("34 and +34", delimited(rows("age", {1: "+34", 2: "+34"})), "refused", "with 2 records fails k_anonymity"),
    Case("34 and 3.4e1", delimited(rows("age", {1: "3.4e1"})), "refused", "with 1 record fails k_anonymity"),
    Case("34 and 034", delimited(rows("age", {1: "034"})), "refused", "with 1 record fails k_anonymity"),
    Case("34 and 34,0", delimited(rows("age", {1: "34,0"})), "refused", "with 1 record fails k_anonymity"),
    Case("34 and full-width 34", delimited(rows("age", {1: "３４"})), "refused", "with 1 record fails k_anonymity"),
    Case("34 and Arabic 34", delimited(rows("age", {1: "٣٤"})), "refused", "with 1 record fails k_anonymity"),
    Case("four spellings of 34", delimited(rows("age", {1: "34.0", 2: "+34", 3: "3.4e1", 4: " 34"})), "refused", "several ways"),
    Case("a space before", delimited(rows("age", {1: " 34"})), "refused", "with 1 record fails k_anonymity"),
    Case("a space after", delimited(rows("age", {1: "34 "})), "refused", "with 1 record fails k_anonymity"),
    Case("a tab after", delimited(rows("age", {1: "34\t"})), "refused", "with 1 record fails k_anonymity"),
    spelled("a space before a word", "job", " {clerk, nurse}"),
    spelled("a space that does not break", "job", "{clerk, nurse}\u00a0"),
    spelled("a zero-width space", "job", "{clerk,\u200b nurse}"),
    spelled("a soft hyphen", "job", "{cl\u00aderk, nurse}"),
    spelled("a right-to-left mark", "job", "{clerk, nurse}\u200f"),
    spelled("another case", "job", "{Clerk, nurse}"),
    spelled("a Cyrillic letter", "job", "{сlerk, nurse}"),
    spelled("a set in another order", "job", "{nurse, clerk}"),
    spelled("a set without a space", "job", "{clerk,nurse}"),
    spelled("a set with a member twice", "job", "{clerk, clerk, nurse}"),
    spelled("an interval without a space", "age", "[30,39]"),
    spelled("an interval with a dash", "age", "30-39"),
    spelled("an interval that is open", "age", "[30, 40)"),
    spelled("intervals that overlap", "age", "[30, 40]"),
    spelled("a node of another level", "zip", "41***"),
    spelled("a value beside its node", "zip", "41101"),
    spelled("more stars", "zip", "411***"),
    Case("an interval backwards", delimited(second("age", "[39, 30]")), "refused", "no interval of numbers"),
    Case("three records of an interval backwards", delimited(second("age", *["[39, 30]"] * 3)), "refused", "no interval of numbers"),
    Case("one star and two", delimited(rows("zip", {1: "*", 2: "*", 3: "*", 4: "**", 5: "**", 6: "**"},
         age=["*"] * 6 + ["[30, 39]"] * 6)), "passes", "several ways"),
    Case("one star and two, too few", delimited(rows("zip", {i: "*" * (1 + i // 5) for i in range(1, 7)})), "refused", "with 2 records"),
    Case("empty and ?", delimited(rows("job", {1: "", 2: "", 3: "", 4: "", 5: "?", 6: "?"})), "refused", "with 2 records fails k_anonymity"),
    Case("empty and NA", delimited(rows("job", {1: "", 2: "", 3: "", 4: "", 5: "NA", 6: "NA"})), "refused", "with 2 records fails k_anonymity"),
    Case("quotes that are part of the value", changed(("34,", '"""34""",')), "refused", "no interval of numbers"),
    Case("an apostrophe that a spreadsheet hides", changed(("34,", "'34,")), "refused", "with 1 record"),
    Case("a line break inside a cell", changed(("clerk", '"clerk\n"')), "refused", "with 1 record fails k_anonymity"),
    Case("a return inside a cell", changed(("clerk", '"clerk\r"')), "refused", "with 1 record fails k_anonymity"),
    Case("accents in two forms", delimited(rows("job", {**dict.fromkeys(range(1, 6), "café"), 6: "cafe\u0301"})), "refused", "with 1 record fails k_anonymity"),
    Case("two spellings, each of enough records", delimited(rows("age", {1: "34.0", 2: "34.0", 3: "34.0"},
         illness=["flu", "cold", "flu", "cold", "flu", "cold"] + ["flu", "ulcer"] * 3)), "passes", "several ways ('34.0' and '34')"),
    Case("a column of two spellings that a computer joins", delimited(rows(age=["34.0", "34"] * 3 + ["[30, 39]"] * 6,
         illness=["flu", "cold", "cold", "flu", "flu", "cold"] + ["flu", "ulcer"] * 3)), "passes", "several ways"),
    Case("a suppressed record alone", delimited(rows("age", {12: "*"}, zip=["410**"] * 6 + ["411**"] * 5 + ["*"],
         job=["clerk"] * 6 + ["{clerk, nurse}"] * 5 + ["*"])), "refused", "the class of suppressed records"),
    Case("a number outside its domain", delimited(rows(age=["934"] * 6 + ["[30, 39]"] * 6)), "refused", "outside its declared domain"),
    Case("a word among numbers", delimited(rows(age=["thirty-four"] * 6 + ["[30, 39]"] * 6)), "refused", "no interval of numbers"),
    Case("a name beside a number", delimited(rows("age", {1: "34 (Ash)"})), "refused", "no interval of numbers"),
    Case("zips that the taxonomy knows", delimited(ROWS), "passes", config=ZIPS, files=ZIP_FILE),
    Case("a zip that the taxonomy does not know", delimited(rows(zip=["999**"] * 6 + ["411**"] * 6)), "refused", "no node of its taxonomy",
         config=ZIPS, files=ZIP_FILE),
    Case("nodes of two levels of the taxonomy", delimited(second("zip", "41101")), "refused", "with 2 records", config=ZIPS, files=ZIP_FILE),
    Case("a label that the order does not know", delimited(rows(job=["clerk"] * 6 + ["[clerk, surgeon]"] * 6)), "refused",
         "no value of its order", config=GRADES),
    Case("labels that the order knows", delimited(rows(job=["clerk"] * 6 + ["[clerk, nurse]"] * 6)), "passes", config=GRADES),
    Case("months and days", delimited(rows(age=["2024-03"] * 4 + ["2024-03-01"] * 2 + ["[2023, 2024]"] * 6)), "refused", "with 2 records",
         config=CONFIG.replace(KIND, 'kind = "date"')),
    Case("dates in two formats", delimited(rows(age=["2024-03-01"] * 4 + ["01.03.2024"] * 2 + ["2024-03"] * 6)), "refused", "interval of dates",
         config=CONFIG.replace(KIND, 'kind = "date"')),
]  # fmt: skip

SENSITIVE = [
    one_illness("flu in capitals", "flu", "Flu", "FLU"),
    one_illness("flu with a ligature", "flu", "ﬂu"),
    one_illness("flu with a zero-width space", "flu", "fl\u200bu"),
    one_illness("flu with a Cyrillic letter", "grippe", "grіppe"),
    one_illness("flu with a Greek letter", "covid", "cοvid"),
    one_illness("capitals of another alphabet", "HIV", "НIV"),
    one_illness("flu with a space after", "flu", "flu "),
    one_illness("flu with a space before", "flu", " flu"),
    one_illness("flu with a space that does not break", "flu", "\u00a0flu"),
    one_illness("accents of an illness in two forms", "grippé", "grippe\u0301"),
    one_illness("full-width letters", "flu", "ｆｌｕ"),
    one_illness("small capitals", "flu", "ꜰʟᴜ"),
    one_illness("letters of mathematicians", "flu", "𝓯𝓵𝓾"),
    one_illness("a capital I for an l", "flu", "fIu"),
    one_illness("a capital I at the beginning", "lung", "Iung"),
    one_illness("1 for l", "flu", "f1u"),
    one_illness("0 for o", "cold", "c0ld"),
    one_illness("rn for m", "migraine", "rnigraine"),
    one_illness("O for 0 in a code", "C50", "C5O"),
    one_illness("quotes around it", "flu", '"flu"', "'flu'"),
    one_illness("a formula that shows it", "flu", '="flu"'),
    one_illness("a stop after it", "flu", "flu."),
    one_illness("two spaces and an underscore", "lung cancer", "lung  cancer", "lung_cancer"),
    one_illness("dashes", "COVID-19", "COVID–19", "COVID‑19"),
    one_illness("a soft hyphen in an illness", "influenza", "influ\u00adenza"),
    one_illness("a right-to-left mark after an illness", "flu", "flu\u200f"),
    one_illness("an unseen joiner", "flu", "f\u034flu"),
    one_illness("characters of tags", "flu", "flu\U000e0061"),
    one_illness("a byte-order mark inside", "flu", "\ufeffflu"),
    one_illness("flu and NA", "flu", "NA"),
    one_illness("flu and nan", "flu", "nan", "NaN"),
    one_illness("flu and null", "flu", "null", "NULL"),
    one_illness("flu and ?", "flu", "?"),
    one_illness("flu and *", "flu", "*", "**"),
    one_illness("flu and -", "flu", "-", "—"),
    one_illness("flu and n/a", "flu", "N/A", "n.a."),
    one_illness("flu and nothing", "flu", ""),
    one_illness("flu and unknown", "flu", "unknown", "not known"),
    one_illness("nothing but spellings of missing", "NA", "null", "-", "?"),
    one_illness("1 and 1.0 among words", "1", "1.0", "+1"),
    one_illness("1 and 01 among words", "1", "01"),
    one_illness("1.5 and 1,5", "1.5", "1,5", "1.50"),
    one_illness("1000 and 1,000", "1000", "1,000", "1 000"),
    one_illness("a day in three formats", "2024-03-31", "31.03.2024", "2024-03-31 00:00:00"),
    Case("what was joined is said", delimited(rows("illness", {1: "Flu"})), "passes", "'flu', 'Flu' are counted as one value"),
    Case("what is no value is said", delimited(rows("illness", {1: "NA"})), "passes", "'NA' say that there is no value"),
    Case("none is an answer", delimited(ills("flu", "none")), "passes"),
    Case("a declared NA is a value", delimited(ills("flu", "NA")), "passes", config=configured('order = ["flu", "cold", "NA"]')),
    Case("declared values are told apart as declared", delimited(ills("flu", "Flu")), "passes", config=configured('order = ["flu", "cold", "Flu"]')),
    Case("a value that the order does not know", delimited(ills("flu", "Flu")), "refused", "does not know", config=configured('order = ["flu", "cold", "ulcer"]')),
    Case("a value that the taxonomy does not know", delimited(ills("flu", "flu2")), "refused", "taxonomy does not know", config=configured(TREE)),
    Case("a value that the categories do not know", delimited(ills("flu", "flu2")), "refused", "list of categories does not know",
         config=configured('categories = { all = ["flu", "cold", "ulcer"] }')),
    Case("a value and a node above it", delimited(ills("flu", "lung")), "refused", "a node of its taxonomy above", config=configured(TREE)),
    Case("values that the taxonomy knows", delimited(ROWS), "passes", config=configured(TREE)),
    Case("illnesses that are numbers, in two spellings", delimited(ills("7", "7.0")), "refused", "fails p_sensitive"),
    Case("two encodings in one file", raw(text(ills("grippé")).encode().replace("grippé".encode(), "grippé".encode("latin-1"), 3)),
         "refused", "mixes UTF-8 with another encoding"),
]  # fmt: skip

COLUMNS = [
    Case("the identifier itself", delimited(rows(name=list("abcdefghijkl"))), "refused", "identifier 'name'"),
    Case("the identifier with a space", delimited(rows(name=list("abcdefghijkl")), header=["age", "zip", "job", "illness", " name"]),
         "refused", "identifier 'name'"),
    Case("the identifier in another case", delimited(rows(Name=list("abcdefghijkl"))), "refused", "Column 'Name' has no role"),
    Case("the identifier behind a byte-order mark", delimited(rows(**{"\ufeffname": list("abcdefghijkl")})), "refused", "has no role"),
    Case("the identifier with a zero-width space", delimited(rows(**{"na\u200bme": list("abcdefghijkl")})), "refused", "has no role"),
    Case("the identifier as one end", delimited(rows(name_min=list("abcdefghijkl"))), "refused", "'name_min' has no role"),
    Case("the identifier as both ends", delimited(rows(name_min=list("abcdefghijkl"), name_max=list("abcdefghijkl"))), "refused", "has no role"),
    Case("a column nobody declared", delimited(rows(ssn=range(12))), "refused", "Column 'ssn' has no role"),
    Case("a column with a Cyrillic letter", delimited(rows(аge=range(12))), "refused", "has no role"),
    Case("an index without a name", delimited(rows(index=range(12)), header=["age", "zip", "job", "illness", ""]), "refused", "has no name"),
    Case("an index of another program", delimited(rows(**{"Unnamed: 0": range(12)})), "refused", "has no role"),
    Case("one end beside the attribute", delimited(rows(age_min=range(12))), "refused", "'age_min' has no role"),
    Case("both ends beside the attribute", delimited(rows(age_min=range(12), age_max=range(12))), "refused", "has no role"),
    Case("one end without the other", delimited([{"age_min": 34, **{k: v for k, v in row.items() if k != "age"}} for row in ROWS]), "refused", "'age_min' has no role"),
    Case("both ends instead of the attribute", delimited([
        {"age_min": 34 - 4 * i, "age_max": 34 + 5 * i, **{k: v for k, v in row.items() if k != "age"}}
        for i, row in ((number // 6, row) for number, row in enumerate(ROWS))]), "passes"),
    Case("ends of a category", delimited([{"zip_min": "41000", "zip_max": "41099", **{k: v for k, v in row.items() if k != "zip"}} for row in ROWS]),
         "refused", "has no role"),
    Case("ends in two spellings", delimited([
        {"age_min": ("34", "34.0")[number == 0], "age_max": "34", **{k: v for k, v in row.items() if k != "age"}}
        for number, row in enumerate(ROWS)]), "refused", "with 1 record fails k_anonymity"),
    Case("a name for all others", delimited(rows(Name=["Ash", "Birch"] * 6)), "refused", "spelled like the declared column 'name'", config=OTHERS),
    Case("a column for all others", delimited(rows(ward=["a", "b"] * 6)), "passes", config=OTHERS),
    Case("a column that should have been dropped", delimited(rows(ward=["a", "b"] * 6)), "refused", "identifiers never leave", config=GONE),
    Case("two columns of one name", delimited(rows(twin=["34"] * 12), header=["age", "zip", "job", "illness", "age"]), "refused", "two columns named 'age'"),
    Case("two columns of one name but for a space", delimited(rows(twin=["34"] * 12), header=["age", "zip", "job", "illness", "age "]), "refused", "two columns named 'age'"),
    Case("a quasi-identifier left out", delimited([{k: v for k, v in row.items() if k != "zip"} for row in ROWS]), "refused", "no column 'zip'"),
    Case("a secret left out", delimited([{k: v for k, v in row.items() if k != "illness"} for row in ROWS]), "refused", "no column 'illness'"),
    Case("a header in capitals", delimited(ROWS, header=["AGE", "ZIP", "JOB", "ILLNESS"]), "refused", "has no role"),
    Case("columns in another order", delimited([dict(reversed(row.items())) for row in ROWS]), "passes"),
]  # fmt: skip

STRUCTURE = [
    Case("as it should be", delimited(ROWS), "passes"),
    Case("all in quotes", raw("\n".join(",".join(f'"{cell}"' for cell in row.values()) for row in [dict(zip(ROWS[0], ROWS[0], strict=True)), *ROWS]) + "\n"), "passes"),
    Case("some in quotes", changed(("34,", '"34",'), ("clerk", '"clerk"')), "passes"),
    Case("ends of lines of another system", delimited(ROWS, end="\r\n"), "passes"),
    Case("ends of lines of an old system", delimited(ROWS, end="\r"), "passes"),
    Case("a byte-order mark", delimited(ROWS, encoding="utf-8-sig"), "passes"),
    Case("UTF-16", delimited(ROWS, encoding="utf-16"), "passes"),
    Case("a western encoding", delimited(rows("illness", {1: "grippé"}), encoding="latin-1"), "passes"),
    Case("semicolons", delimited(ROWS, cut=";"), "passes"),
    Case("tabs", delimited(ROWS, cut="\t"), "passes", file="masked.tsv"),
    Case("blank lines at the end", raw(text(ROWS) + "\n\n"), "passes"),
    Case("a record too short", raw(text(ROWS) + "34,410**,clerk\n"), "refused", "holds 3 values"),
    Case("a record too long", raw(text(ROWS) + "34,410**,clerk,flu,Ash\n"), "refused", "holds 5 values"),
    Case("a delimiter after every record", raw(text(ROWS).replace("\n", ",\n")), "refused", "has no name"),
    Case("a delimiter after one record", changed(("flu\n", "flu,\n")), "refused", "holds 5 values"),
    Case("a comment", raw("# made by hand\n" + text(ROWS)), "refused", "header"),
    Case("a comment among the records", raw(text(ROWS) + "# Ash,410**,clerk,flu\n"), "refused", "no interval of numbers"),
    Case("a NUL", changed(("clerk", "cl\0erk")), "refused", "NUL"),
    Case("a quote in the middle", changed(("clerk", 'cl"erk')), "refused", "programs read it differently"),
    Case("a quote that is never closed", changed(("clerk", '"clerk')), "refused", "programs read it differently"),
    Case("text after a quote", changed(("clerk", '"clerk"s')), "refused", "programs read it differently"),
    Case("a space before a quote", changed(("clerk", ' "clerk"')), "refused", "programs read it differently"),
    Case("a return on its own", changed(("clerk", "cl\rerk")), "refused", "line"),
    Case("a header and nothing else", raw("age,zip,job,illness\n"), "refused", "no records"),
    Case("nothing", raw(""), "refused", "empty"),
    Case("another kind of file", raw(b"PAR1" + text(ROWS).encode()), "refused", "is not text"),
    Case("packed", packed(ROWS), "passes", file="masked.csv.gz"),
    Case("packed with something after it", packed(ROWS, after=b"Ash,Birch,Cole"), "refused", "gzip", file="masked.csv.gz"),
    Case("packed with a comment", packed(ROWS, flags=16, extra=b"Ash Birch Cole\0"), "refused", "comment", file="masked.csv.gz"),
    Case("packed and cut off", lambda path: (packed(ROWS)(path), path.write_bytes(path.read_bytes()[:-9])), "refused", "gzip", file="masked.csv.gz"),
]  # fmt: skip


def second_sheet(hide: bool) -> Any:
    def add(book: Any, _: Any) -> None:
        other = book.add_worksheet("raw")
        other.write_string(0, 0, "Ash")
        if hide:
            other.hide()

    return add


def forgotten_text(path: Path) -> None:
    """A text that stands in no cell any more, as some programs leave them."""
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    part = "xl/sharedStrings.xml"
    parts[part] = parts[part].replace(b"</sst>", b"<si><t>Ash Birch</t></si></sst>")
    with zipfile.ZipFile(path, "w") as book:
        for name, content in parts.items():
            book.writestr(name, content)


def json_rows(column: str = "age", values: dict[int, Any] | None = None) -> list[dict[str, Any]]:
    plain = [{**row, "age": 34} if row["age"] == "34" else {**row, "age": 35} for row in ROWS]
    for record, value in (values or {}).items():
        plain[record - 1][column] = value
    return plain


def floats(*odd: float | None) -> list[dict[str, Any]]:
    return [
        {**row, "age": float(34 + number // 6) if number >= len(odd) else odd[number]}
        for number, row in enumerate(ROWS)
    ]


WORDS = pa.DictionaryArray.from_arrays(pa.array([i % 2 for i in range(12)]), pa.array(["flu", "cold", "Ash's illness"]))

FORMATS = [
    Case("a workbook", excel(ROWS), "passes", file="masked.xlsx"),
    Case("a second sheet", excel(ROWS, more=second_sheet(hide=False)), "refused", "2 sheets with values", file="masked.xlsx"),
    Case("a hidden sheet", excel(ROWS, more=second_sheet(hide=True)), "refused", "2 sheets with values", file="masked.xlsx"),
    Case("an empty second sheet", excel(ROWS, more=lambda book, _: book.add_worksheet()), "passes", file="masked.xlsx"),
    Case("a formula", excel(ROWS, more=lambda _, sheet: sheet.write_formula(1, 3, '="fl"&"u"', None, "flu")), "refused", "formulas", file="masked.xlsx"),
    Case("a comment on a cell", excel(ROWS, more=lambda _, sheet: sheet.write_comment(1, 3, "Ash")), "refused", "more than a sheet", file="masked.xlsx"),
    Case("a property of its own", excel(ROWS, more=lambda book, _: book.set_custom_property("patient", "Ash")), "refused", "more than a sheet", file="masked.xlsx"),
    Case("a text that no cell has", excel(ROWS, after=forgotten_text), "refused", "texts that stand in no cell", file="masked.xlsx"),
    Case("numbers and texts that look like them", excel(rows("age", {1: 34, 2: 34})), "refused", "both as numbers and as text", file="masked.xlsx"),
    Case("a space in a cell", excel(rows("job", {1: "clerk "})), "refused", "with 1 record", file="masked.xlsx"),
    Case("a hidden column", excel(rows(ssn=list(range(12))), more=lambda _, sheet: sheet.set_column(4, 4, None, None, {"hidden": True})), "refused", "'ssn' has no role", file="masked.xlsx"),
    Case("Parquet", parquet(ROWS), "passes", file="masked.parquet"),
    Case("metadata", parquet(ROWS, metadata={"source": "Ash, Birch, Cole"}), "refused", "metadata of its own", file="masked.parquet"),
    Case("words that no record has", parquet([{k: v for k, v in row.items() if k != "illness"} for row in ROWS], illness=WORDS), "refused", "that no record has", file="masked.parquet"),
    Case("lists in a column", parquet(rows(ssn=[[i] for i in range(12)])), "refused", "ssn", file="masked.parquet"),
    Case("bytes in a column", parquet(ROWS, job2=pa.array([b"x"] * 12)), "refused", "job2", file="masked.parquet"),
    Case("an index that pandas left", parquet(rows(__index_level_0__=list(range(12)))), "refused", "has no role", file="masked.parquet"),
    Case("NaN and missing", parquet(floats(float("nan"), None, None)), "refused", "with 1 record", file="masked.parquet"),
    Case("zero and minus zero", parquet(floats(*[0.0] * 4, -0.0, -0.0)), "refused", "with 2 records", file="masked.parquet"),
    Case("Arrow", parquet(ROWS, arrow=True), "passes", file="masked.arrow"),
    Case("metadata in Arrow", parquet(ROWS, arrow=True, metadata={"source": "Ash"}), "refused", "metadata of its own", file="masked.arrow"),
    Case("words that no record of Arrow has", parquet([{k: v for k, v in row.items() if k != "illness"} for row in ROWS], arrow=True, illness=WORDS), "refused", "that no record has", file="masked.arrow"),
    Case("JSON lines", lines(ROWS), "passes", file="masked.jsonl"),
    Case("JSON lines with numbers", lines(json_rows()), "passes", file="masked.jsonl"),
    Case("a name twice in a record", raw('{"age":"34","age":"35","zip":"410**","job":"clerk","illness":"flu"}\n' * 6), "refused", "twice", file="masked.jsonl"),
    Case("a number and its text", lines(json_rows("age", {1: "34"})), "refused", "both as numbers and as text", file="masked.jsonl"),
    Case("34 and 34.0 in JSON", lines(json_rows("age", {1: "=34.0", 2: "=3.4e1"})), "refused", "with 1 record", file="masked.jsonl"),
    Case("left out and null", lines([{k: v for k, v in {**row, "job": None}.items() if k != "job" or i > 2} for i, row in enumerate(ROWS)]), "refused", "left out in some records", file="masked.jsonl"),
    Case("names in another order", lines([dict(reversed(row.items())) if i % 2 else row for i, row in enumerate(ROWS)]), "passes", file="masked.jsonl"),
    Case("letters written as codes", raw("".join(f'{{"age":"34","zip":"410**","job":"cl\\u0065rk","illness":"{ill}"}}\n' for ill in ["flu", "cold"] * 3)), "passes", file="masked.jsonl"),
    Case("a record inside a record", raw('{"age":{"a":34},"zip":"410**","job":"clerk","illness":"flu"}\n' * 6), "refused", "", file="masked.jsonl"),
    Case("NaN in JSON", lines(json_rows("age", {1: "=NaN"})), "refused", "not a number", file="masked.jsonl"),
    Case("a name that only one record has", lines([{**row, **({"ssn": 1} if i == 0 else {})} for i, row in enumerate(ROWS)]), "refused", "'ssn' has no role", file="masked.jsonl"),
]  # fmt: skip

CASES = [*QUASI, *SENSITIVE, *COLUMNS, *STRUCTURE, *FORMATS]
