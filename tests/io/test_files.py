"""Table files in and out: what is read, what is refused and how, and that output is whole or absent."""

from __future__ import annotations

import codecs
import errno
import gzip
import json
import os
import random
import stat
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import xlsxwriter
from polars.testing import assert_frame_equal

from shoal.errors import ConfigError, InputError
from shoal.io import (
    atomic,
    atomic_path,
    atomic_paths,
    atomic_write_text,
    delimited,
    files,
    number_problem,
    read_table,
    write_table,
)

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).parents[3] / "shared" / "data"))
ADULT = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]
EXTENSIONS = [".csv", ".tsv", ".txt", ".csv.gz", ".parquet", ".arrow", ".feather", ".ipc", ".jsonl", ".xlsx"]


def _read(tmp_path: Path, content: str | bytes, name: str = "t.csv", **options: Any) -> pl.DataFrame:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(path, **options)


def _message(call: Callable[[], object], kind: type[Exception] = InputError) -> str:
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    return message


# Reading text ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("final", [True, False])
def test_delimiters_and_line_ends(tmp_path: Path, delimiter: str, ending: str, final: bool) -> None:
    lines = [["n", "t"], ["1", '"x,;|\t"'], ["2", '"say ""hi"""'], ["3", ""]]
    text = ending.join(delimiter.join(line) for line in lines) + (ending if final else "")
    frame = _read(tmp_path, text)
    assert frame.to_dict(as_series=False) == {"n": [1, 2, 3], "t": ["x,;|", 'say "hi"', None]}


@pytest.mark.parametrize(
    ("encoded", "encoding"),
    [
        ("n,t\n1,Zoë €\n".encode(), None),
        ("n,t\n1,Zoë €\n".encode("utf-8-sig"), None),
        ("n,t\n1,Zoë €\n".encode("utf-8-sig"), "utf-8"),
        (codecs.BOM_UTF16_LE + "n,t\n1,Zoë €\n".encode("utf-16-le"), None),
        (codecs.BOM_UTF16_BE + "n,t\n1,Zoë €\n".encode("utf-16-be"), "utf-16"),
        ("n,t\n1,Zoë €\n".encode("utf-16-le"), "utf-16-le"),
        ("n,t\n1,Zoë €\n".encode("cp1252"), None),
        ("n,t\n1,Zoë €\n".encode("iso-8859-15"), "iso-8859-15"),
    ],
)
def test_encodings(tmp_path: Path, encoded: bytes, encoding: str | None) -> None:
    frame = _read(tmp_path, encoded, encoding=encoding)
    assert frame.rows() == [(1, "Zoë €")]
    assert frame.columns == ["n", "t"]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["1", "-2", "30"], pl.Int64),
        (["0", "10"], pl.Int64),
        (["1", "", "?"], pl.Int64),
        (["+5", "-3"], pl.Int64),
        (["1", "2.5"], pl.Float64),
        (["1e3", ".5", "2."], pl.Float64),
        (["0.50", "0"], pl.Float64),
        (["01234", "99999"], pl.String),
        (["-01", "2"], pl.String),
        (["00.5", "1.5"], pl.String),
        (["1", "x"], pl.String),
        (["1"] * 300 + ["x"], pl.String),
        (["1_000"], pl.String),
        (["0x1F"], pl.String),
        (["1e400", "1"], pl.String),
        (["nan", "inf"], pl.String),
        (["Nan", "Joe"], pl.String),
        (["true", "false"], pl.String),
        (["2024-01-31"], pl.String),
        (["", "?"], pl.String),
        (["9223372036854775807"], pl.Int64),
        (["9223372036854775808"], pl.Float64),
        (["9223372036854775809", "1"], pl.String),
        (["10000000000000000000", "9007199254740993"], pl.String),
        (["9" * 5000], pl.String),
    ],
)
def test_only_whole_columns_of_numbers_become_numbers(tmp_path: Path, values: list[str], dtype: Any) -> None:
    frame = _read(tmp_path, "x,y\n" + "".join(f"{value},a\n" for value in values))
    assert frame["x"].dtype == dtype
    missing = [value in ("", "?") for value in values]
    assert frame["x"].is_null().to_list() == missing
    for value, read in zip(values, frame["x"], strict=True):
        if value not in ("", "?"):
            assert read == (value if dtype == pl.String else float(value) if dtype == pl.Float64 else int(value))


def test_spaces_are_stripped_and_missing_is_what_is_listed(tmp_path: Path) -> None:
    text = 'a , b,c\n 1 ,  x y ,NA\n2\t,"  z", \n 3,?,q \n'
    frame = _read(tmp_path, text, missing=["NA", "?"])
    assert frame.to_dict(as_series=False) == {"a": [1, 2, 3], "b": ["x y", "z", None], "c": [None, "", "q"]}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('a,b\n1, "x, y"\n2,z\n', [(1, "x, y"), (2, "z")]),  # a space before the quote
        ('a,b\n1,5" pipe\n2,6" pipe\n', [(1, '5" pipe'), (2, '6" pipe')]),  # quotes inside plain values
        ('a,b\n1,"two\nlines"\n2,z\n', [(1, "two\nlines"), (2, "z")]),
        ("a,b\n\n1,x\n   \n2,y\n\n\n", [(1, "x"), (2, "y")]),
        ("\n\na,b\n1,x\n", [(1, "x")]),
        ("a\n1\n\n2\n", [(1,), (2,)]),
        ("a\n\n1\n2\n  ", [(1,), (2,)]),
        ('a\n1\n""\n2\n', [(1,), (None,), (2,)]),
        ('"a\nname",b\n1,x\n', [(1, "x")]),
        ("a,b\n,\n1,x\n", [(None, None), (1, "x")]),
        ("a\n1", [(1,)]),
        ("a,b\n1,x ", [(1, "x")]),
        ("a,b\r\n1 ,x \r\n", [(1, "x")]),
    ],
)
def test_unusual_but_sound_files(tmp_path: Path, text: str, rows: list[tuple[Any, ...]]) -> None:
    assert _read(tmp_path, text).rows() == rows


@pytest.mark.parametrize("chunk", [7, 16, 1 << 24])
def test_fast_and_careful_reading_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    text = "id,note,more\n" + "".join(
        f'{i},"a, ""{i}"" b\n{i}",{"" if i % 3 else "  pad"}\n' if i % 2 else f"{i},plain é,x\n" for i in range(40)
    )
    monkeypatch.setattr(delimited, "_PIECE", chunk)
    fast = delimited._parse_fast(text.encode(), ",", ["id", "note", "more"], 1)
    careful = delimited._parse_carefully(text.encode(), ",", ["id", "note", "more"], 1, "t", False)
    assert fast is not None
    assert_frame_equal(fast, careful)


def test_a_sound_file_never_takes_the_slow_road(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "_parse_carefully", lambda *_: pytest.fail("the slow road was taken"))
    assert _read(tmp_path, 'a,b\r\n1,"x, y"\r\n2,\r\n\r\n').height == 2
    assert _read(tmp_path, "a\n1\n2\n").height == 2


def test_header_given_and_columns_chosen(tmp_path: Path) -> None:
    frame = _read(tmp_path, "1,5;x\n2,5;y\n", header=["value", "name"])
    assert frame.rows() == [("1,5", "x"), ("2,5", "y")]
    frame = _read(tmp_path, "a,b,c\n1,nan,x\n2,3,y\n", columns=["c", "a"])
    assert frame.columns == ["c", "a"]
    message = _message(lambda: read_table(tmp_path / "t.csv", columns=["aa"]))
    assert "no column 'aa'" in message


def test_ten_thousand_columns(tmp_path: Path) -> None:
    names = [f"column_{i}" for i in range(10_000)]
    frame = _read(tmp_path, ",".join(names) + "\n" + ",".join(map(str, range(10_000))) + "\n")
    assert frame.columns == names
    assert frame.row(0) == tuple(range(10_000))


def test_long_header_beyond_the_first_sample(tmp_path: Path) -> None:
    names = [f"{i}{'x' * 50_000}" for i in range(40)] + ["b\nb"]
    frame = _read(tmp_path, ",".join(names[:-1]) + ',"b\nb"\n' + ",".join("1" * 41) + "\n")
    assert frame.columns == names
    assert frame.height == 1


def test_explicit_delimiter_and_format(tmp_path: Path) -> None:
    assert _read(tmp_path, "a#b\n1#2\n", delimiter="#").rows() == [(1, 2)]
    assert _read(tmp_path, "a,b\n1,2\n", name="t.test", format="csv").rows() == [(1, 2)]
    assert _read(tmp_path, "a,b\nx,1\n", name="t.tsv").columns == ["a,b"]
    assert "delimiter" in _message(lambda: _read(tmp_path, "a\n1\n", delimiter="ab"), ConfigError)
    assert "unknown encoding 'utf-9'" in _message(lambda: _read(tmp_path, "a\n1\n", encoding="utf-9"), ConfigError)
    assert "unknown encoding 'rot13'" in _message(lambda: _read(tmp_path, "a\n1\n", encoding="rot13"), ConfigError)


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (b"", {}, ["is empty"]),
        (b" \n\n", {}, ["is empty"]),
        (b"a,b\n", {}, ["header and no records"]),
        (b"a,b", {}, ["header and no records"]),
        (b"a,b\n1,2\n3\n4,5\n", {}, ["line 3", "1 value where 2 columns"]),
        (b"a,b\n1,2\n\n3,4,5\n", {}, ["line 4", "3 values where 2 columns", "quotes"]),
        (b'a,b\n"x\ny",2\n3\n', {}, ["line 4", "1 value"]),
        (b"a\nx, y\n", {}, ["line 2", "2 values where 1 column is"]),
        (b"1,2\n3\n", {"header": ["a", "b"]}, ["line 2", "1 value where 2 columns are named"]),
        (b"a,b,a\n1,2,3\n", {}, ["'a'", "columns 1 and 3"]),
        (b"a, b ,b\n1,2,3\n", {}, ["'b'", "columns 2 and 3"]),
        (b"a,,c\n1,2,3\n", {}, ["column 2", "no name"]),
        (b"a,^b$\n1,2\n", {}, ["column 2", "'^b$'", "pattern"]),
        (b"a,*\n1,2\n", {}, ["column 2", "'*'", "pattern"]),
        (b"1,2\n", {"header": ["a", "a"]}, ["'a'", "columns 1 and 2"]),
        (b"a,b\n1,\xe9\n", {"encoding": "utf-8"}, ["not utf-8", "byte 6", "line 2", "0xe9"]),
        (b"a,b\n1,\x81\n", {"encoding": "cp1252"}, ["not cp1252", "byte 6"]),
        (b"a,b\n1,x\0y\n", {}, ["NUL", "line 2"]),
        ("a,b\n1,2\n".encode("utf-16-le"), {}, ["NUL", "line 1", "UTF-16"]),
        (b"a,b\n1,2\n\n3,inf\n", {}, ["'b'", "'inf'", "line 4", "missing"]),
        (b"a,b\n1,2\n3,NaN\n", {}, ["'b'", "'NaN'", "line 3", "missing"]),
        (b"a,b\n1,2\n3,-Infinity\n", {}, ["'b'", "'-Infinity'", "line 3"]),
        (b'a,b\n1,"x\n2,y\n', {}, ["line 2", "quote", "not closed"]),
        (b'a,b\n1,2\n3,"x"y\n', {}, ["line 3", "quote"]),
        (b'"a,b\n1,2\n', {}, ["header", "quote"]),
        (b"PK\x03\x04rest", {}, ["not text", ".xlsx"]),
        (gzip.compress(b"a\n1\n", mtime=0), {}, ["gzip", ".gz"]),
    ],
)
def test_bad_text_files(tmp_path: Path, content: bytes, options: dict[str, Any], words: list[str]) -> None:
    message = _message(lambda: _read(tmp_path, content, **options))
    for word in [*words, str(tmp_path / "t.csv")]:
        assert word in message


@pytest.mark.parametrize("offset", range(5))
def test_wrong_byte_is_found_across_pieces(monkeypatch: pytest.MonkeyPatch, offset: int) -> None:
    monkeypatch.setattr(delimited, "_CHUNK", 4)
    good = "é€x".encode() * 2 + b"a" * offset
    assert delimited._first_undecodable(good) is None
    assert delimited._first_undecodable(good + b"\xff" + good) == len(good)
    assert delimited._first_undecodable(good + "€".encode()[:2]) == len(good)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text("a\n1\n")
    assert "did you mean 'patients.csv'" in _message(lambda: read_table(tmp_path / "patient.csv"))
    assert "does not exist" in _message(lambda: read_table(tmp_path / "no" / "x.csv"))
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in _message(lambda: read_table(tmp_path / "folder.csv"))
    assert "did you mean '.csv'" in _message(lambda: read_table(tmp_path / "x.csw"))
    assert "no extension" in _message(lambda: read_table(tmp_path / "x"))
    assert "gzip" in _message(lambda: read_table(tmp_path / "x.parquet.gz"))
    assert "gzip" in _message(lambda: _read(tmp_path, b"no", name="x.csv.gz"))
    assert "gzip" in _message(lambda: _read(tmp_path, gzip.compress(b"a\n1\n" * 99)[:-9], name="x.csv.gz"))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (["1", "2.5", None, "007", " 3 "], None),
        (["1", "x", "2", "x", "y"], (2, "x", 3)),
        (["1", "inf"], (2, "inf", 1)),
        (["1", "1e400"], (2, "1e400", 1)),
        (["", "1"], (1, "", 1)),
        ([1.5, None], None),
        ([1, 2], None),
        ([1.5, float("nan")], (2, "NaN", 1)),
        ([], None),
    ],
)
def test_number_problem(values: list[Any], problem: tuple[int, str, int] | None) -> None:
    assert number_problem(pl.Series("x", values, dtype=None if values else pl.String)) == problem


@pytest.mark.skipif(not (DATA / "adult").is_dir(), reason="the Adult data is not here (SHOAL_DATA)")
def test_adult() -> None:
    train = read_table(DATA / "adult" / "adult.data", header=ADULT)
    test = read_table(DATA / "adult" / "adult.test", header=ADULT, format="csv")
    assert (train.height, train.drop_nulls().height) == (32_561, 30_162)
    assert (test.height, test.drop_nulls().height) == (16_281, 15_060)
    numbers = [name for name, dtype in train.schema.items() if dtype == pl.Int64]
    assert numbers == ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    assert train["workclass"].null_count() == 1836
    assert sorted(train["income"].unique()) == ["<=50K", ">50K"]


def test_fast_reading_never_disagrees_with_careful_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(3)
    values = ["a", "", "1", " a", "a ", '"x"', '"x,y"', '""', '"a""b"', '"\n"', '" q "', '"x\r\n"', "é", 'b"', "\n"]
    taken = 0
    for _ in range(600):
        names = ["a", "b", "c"][: draw.randint(1, 3)]
        rows = [[draw.choice(values) for _ in names] for _ in range(draw.randint(1, 4))]
        if draw.random() < 0.1:
            rows[-1].append("more")
        text = draw.choice(["\n", "\r\n"]).join(",".join(row) for row in rows) + draw.choice(["", "\n", "\n\n"])
        monkeypatch.setattr(delimited, "_PIECE", draw.choice([3, 8, 1 << 24]))
        fast = delimited._parse_fast(text.encode(), ",", names, 0)
        if fast is None or fast.is_empty():
            continue
        taken += 1
        careful = delimited._parse_carefully(text.encode(), ",", names, 0, "t", True)
        assert fast.rows() == careful.rows(), text
    assert taken > 100


@pytest.mark.parametrize("extension", [".csv", ".tsv"])
def test_text_of_any_kind_is_read_back(tmp_path: Path, extension: str) -> None:
    draw = random.Random(4)

    def plain(value: str | None) -> str | None:
        return None if value is None else value.replace("\r\n", "\n").replace("\r", "\n").strip(" \t") or None

    for _ in range(100):
        words = ["".join(draw.choices('xy,;"\n\r \t|é[', k=draw.randint(0, 5))) for _ in range(12)]
        width = draw.randint(1, 3)
        columns = [words[0:4], [None, *words[4:7]], words[8:12]][:width]
        table = pl.DataFrame(columns, schema=dict.fromkeys("abc"[:width], pl.String))
        write_table(table, tmp_path / f"t{extension}", force=True)
        read = read_table(tmp_path / f"t{extension}")
        assert [[plain(value) for value in column] for column in read] == [[plain(v) for v in c] for c in columns]


# Other formats -----------------------------------------------------------------------------------------------

TABLE = pl.DataFrame(
    {
        "age": [39, None, 50],
        "cost": [1.25, 1e-9, None],
        "interval": ["[17, 39]", "{a, b}", None],
        "note": ['say "hi"', "two\nlines", "=SUM(A1)"],
        "zip": ["01234", "99999", "00000"],
    }
)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_round_trip(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"table{extension}"
    write_table(TABLE, path)
    assert_frame_equal(read_table(path), TABLE)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("extension", [".parquet", ".arrow", ".xlsx"])
def test_round_trip_of_dates(tmp_path: Path, extension: str) -> None:
    table = pl.DataFrame(
        {"day": [date(2024, 2, 29), None], "moment": [datetime(2024, 2, 29, 13, 5, 7), datetime(1999, 1, 1)]}
    )
    write_table(table, tmp_path / f"table{extension}")
    assert_frame_equal(read_table(tmp_path / f"table{extension}"), table)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_same_table_same_bytes(tmp_path: Path, extension: str) -> None:
    write_table(TABLE, tmp_path / f"one{extension}")
    write_table(TABLE, tmp_path / f"other{extension}")
    assert (tmp_path / f"one{extension}").read_bytes() == (tmp_path / f"other{extension}").read_bytes()


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_no_records(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"table{extension}"
    write_table(TABLE.head(0), path)
    message = _message(lambda: read_table(path))
    assert "no records" in message


@pytest.mark.parametrize("extension", [".csv", ".jsonl", ".xlsx", ".parquet"])
def test_one_column_with_gaps(tmp_path: Path, extension: str) -> None:
    table = pl.DataFrame({"a": ["x", None, "y", None, "z"]})
    write_table(table, tmp_path / f"t{extension}")
    assert_frame_equal(read_table(tmp_path / f"t{extension}"), table)


def test_carriage_return_in_a_value(tmp_path: Path) -> None:
    write_table(pl.DataFrame({"a": ["x\ry", "z"], "b": [1, 2]}), tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv").rows() == [("x\ny", 1), ("z", 2)]


def test_arrow_stream(tmp_path: Path) -> None:
    TABLE.write_ipc_stream(tmp_path / "t.arrow")
    assert_frame_equal(read_table(tmp_path / "t.arrow"), TABLE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "b": "x"}\n\n{"a": 2.5}\n', {"a": [1.0, 2.5], "b": ["x", None]}),
        ('{"a": true}\n{"a": 1}\n', {"a": ["True", "1"]}),
        ('{"a": 1}\n{"a": "x"}\n', {"a": ["1", "x"]}),
        ('{"a": "?"}\n{"a": "x"}\n', {"a": [None, "x"]}),
        ('{"a": 18446744073709551615}\n', {"a": ["18446744073709551615"]}),
    ],
)
def test_json_lines(tmp_path: Path, text: str, expected: dict[str, list[Any]]) -> None:
    assert _read(tmp_path, text, name="t.jsonl").to_dict(as_series=False) == expected


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.jsonl", b'{"a": 1}\n{"a": \n', ["line 2", "not JSON"]),
        ("t.jsonl", b'{"a": 1}\n\n{"a": NaN}\n', ["line 3", "NaN", "null"]),
        ("t.jsonl", b'{"a": 1}\n[1]\n', ["line 2", "object"]),
        ("t.jsonl", b'{"a": "\xff"}\n', ["line 1", "not JSON"]),
        ("t.jsonl", b'{"a": [1, 2]}\n', ["'a'", "List"]),
        ("t.jsonl", b"\n\n", ["empty"]),
        ("t.jsonl", b"", ["empty"]),
        ("t.parquet", b"nonsense", ["Parquet"]),
        ("t.arrow", b"nonsense", ["Arrow"]),
        ("t.arrow", b"ARROW1nonsense", ["Arrow"]),
        ("t.xlsx", b"nonsense", ["Excel"]),
    ],
)
def test_bad_files_of_other_formats(tmp_path: Path, name: str, content: bytes, words: list[str]) -> None:
    message = _message(lambda: _read(tmp_path, content, name=name))
    for word in words:
        assert word in message


def _workbook(path: Path, *sheets: tuple[str, list[list[Any]]]) -> Path:
    book = xlsxwriter.Workbook(str(path), {"default_date_format": "yyyy-mm-dd", "nan_inf_to_errors": True})
    for name, rows in sheets:
        page = book.add_worksheet(name)
        for number, row in enumerate(rows):
            page.write_row(number, 0, row)
    book.close()
    return path


def test_excel_sheets_and_types(tmp_path: Path) -> None:
    rows = [["n", 2020, "zip", "day", "mix", "flag"], [1, 1.5, "01", datetime(2024, 1, 2), 1, True], [None] * 6]
    rows += [[3, 2, "02", None, "x", False]]
    path = _workbook(tmp_path / "t.xlsx", ("one", rows), ("two", [["a"], [5]]), ("blank", []))
    frame = read_table(path)
    assert frame.schema == {
        "n": pl.Int64,
        "2020": pl.Float64,
        "zip": pl.String,
        "day": pl.Date,
        "mix": pl.String,
        "flag": pl.String,
    }
    assert frame.row(0) == (1, 1.5, "01", date(2024, 1, 2), "1", "True")
    assert frame.height == 3
    assert read_table(path, sheet="two").rows() == [(5,)]
    assert read_table(path, sheet=2).rows() == [(5,)]
    assert read_table(path, sheet="two", header=["b"]).columns == ["b"]
    assert "did you mean 'two'" in _message(lambda: read_table(path, sheet="tow"))
    assert "sheet number 4" in _message(lambda: read_table(path, sheet=4))
    assert "'blank'" in _message(lambda: read_table(path, sheet="blank"))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([["a", "a"], [1, 2]], ["'a'", "columns 1 and 2"]),
        ([["a", None, "c"], [1, 2, 3]], ["column 2", "no name"]),
        ([["a", "b"], [1, 2, 3]], ["column 3", "no name"]),
        ([["a", "b"]], ["no records"]),
    ],
)
def test_bad_excel_headers(tmp_path: Path, rows: list[list[Any]], words: list[str]) -> None:
    path = _workbook(tmp_path / "t.xlsx", ("s", rows))
    message = _message(lambda: read_table(path))
    for word in words:
        assert word in message


def test_excel_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = pl.DataFrame({"a": ["x", "y" * 40_000]})
    assert "row 2" in _message(lambda: write_table(long, tmp_path / "t.xlsx"))
    monkeypatch.setattr(files, "_EXCEL_ROWS", 3)
    assert "cannot hold 3 records" in _message(lambda: write_table(TABLE, tmp_path / "t.xlsx"))
    assert list(tmp_path.iterdir()) == []


# Writing -----------------------------------------------------------------------------------------------------


def test_existing_output_needs_force(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("precious")
    path.chmod(0o600)
    assert "already exists" in _message(lambda: write_table(TABLE, path))
    assert path.read_text() == "precious"
    write_table(TABLE, path, force=True)
    assert_frame_equal(read_table(path), TABLE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious.csv").write_text("precious\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "precious.csv")
    (tmp_path / "dangling.csv").symlink_to(tmp_path / "nowhere.csv")
    for name in ("link.csv", "dangling.csv"):
        for force in (False, True):
            with pytest.raises(InputError, match="symbolic link"):
                write_table(TABLE, tmp_path / name, force=force)
    assert (tmp_path / "precious.csv").read_text() == "precious\n"
    assert not (tmp_path / "nowhere.csv").exists()
    # A folder that is a link is a place like any other.
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    write_table(TABLE, tmp_path / "folder" / "file.csv")
    assert (tmp_path / "real" / "file.csv").is_file()


def test_outputs_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "does not exist" in _message(lambda: write_table(TABLE, tmp_path / "no" / "x.csv"))
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in _message(lambda: write_table(TABLE, tmp_path / "folder.csv", force=True))
    assert "did you mean '.parquet'" in _message(lambda: write_table(TABLE, tmp_path / "x.parket"))
    assert "too long" in _message(lambda: write_table(TABLE, tmp_path / ("x" * 300 + ".csv")))

    def refuse(path: Any, *_: Any) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    assert "no permission to write" in _message(lambda: write_table(TABLE, tmp_path / "x.csv"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder.csv"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full to stand for a full disk")
@pytest.mark.parametrize("extension", EXTENSIONS)
def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str) -> None:
    create = atomic._create_beside

    def on_full_disk(target: Path) -> Path:
        temporary = create(target)
        temporary.unlink()
        temporary.symlink_to("/dev/full")
        return temporary

    monkeypatch.setattr(atomic, "_create_beside", on_full_disk)
    table = pl.DataFrame({"a": range(20_000)})
    message = _message(lambda: write_table(table, tmp_path / f"x{extension}"))
    assert "disk is full" in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no"), OSError(errno.ENOSPC, "full")])
def test_failures_leave_nothing(tmp_path: Path, error: BaseException) -> None:
    old = tmp_path / "old.csv"
    old.write_text("old")

    def write() -> None:
        with atomic_paths(old, tmp_path / "manifest.json", force=True) as (table, manifest):
            table.write_text("new")
            manifest.write_text("{}")
            raise error

    with pytest.raises(InputError if isinstance(error, OSError) else type(error)):
        write()
    assert [entry.name for entry in tmp_path.iterdir()] == ["old.csv"]
    assert old.read_text() == "old"


def test_several_files_appear_together_and_the_main_one_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    rename = Path.replace

    def watch(self: Path, target: Path) -> Path:
        order.append(target.name)
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", watch)
    main, first, second = tmp_path / "m.csv", tmp_path / "a.json", tmp_path / "b.html"
    with atomic_paths(main, first, second) as temporaries:
        assert [path.suffix for path in temporaries] == [".csv", ".json", ".html"]
        assert all(path.name.startswith(".") and path.parent == tmp_path for path in temporaries)
        for path in temporaries:
            path.write_text(path.suffix)
    assert order == ["a.json", "b.html", "m.csv"]
    assert [path.read_text() for path in (main, first, second)] == [".csv", ".json", ".html"]


def test_companions_go_when_the_main_file_cannot_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.replace

    def fail_for_main(self: Path, target: Path) -> Path:
        if target.suffix == ".csv":
            raise OSError(errno.EIO, "error", str(target))
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", fail_for_main)
    with pytest.raises(InputError, match="device"), atomic_paths(tmp_path / "m.csv", tmp_path / "m.json"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_error_about_another_file_stays_itself(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_path(tmp_path / "x.csv"):
        (tmp_path / "not-there").read_text()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"

    def write() -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("ours")
            path.write_text("theirs")

    assert "already exists" in _message(write)
    assert path.read_text() == "theirs"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.csv"]


def test_same_output_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="two outputs"), atomic_paths(tmp_path / "x", tmp_path / "y" / ".." / "x"):
        pass


def test_text_is_written_whole(tmp_path: Path) -> None:
    atomic_write_text(tmp_path / "report.json", json.dumps({"k": 5}) + "\né")
    assert (tmp_path / "report.json").read_bytes() == b'{"k": 5}\n\xc3\xa9'
