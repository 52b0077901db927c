"""Hostile cells, names and files are shown harmlessly, or refused with a sentence."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from tests.studio.serving import Served

pytest.importorskip("starlette", reason="the studio's extra is not installed: pip install -e '.[studio]'")

CELLS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "=cmd|'/c calc'!A1",
    "a\u202eb\x07c",
    "{{ 7 * 7 }}",
    '"><b>',
    "${x}",
)
NAMES = ("<b>age</b>", '" onfocus="alert(1)', "=1+1", "zip\u200b", "{{name}}", "role:x", "ward")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("project")) as found:
        yield found


class Tags(HTMLParser):
    """The tags of a page and the names of their attributes, as a browser takes them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


def quoted(cells: tuple[str, ...]) -> str:
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)


def packed(inside: bytes) -> bytes:
    """What calls itself an Excel file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/worksheets/sheet1.xml", inside)
    return file.getvalue()


def test_cells_and_names_are_shown_as_what_they_are(served: Served) -> None:
    rows = [
        quoted(NAMES),
        *(quoted(tuple(CELLS[j if i % 4 else (i + j) % len(CELLS)] for j in range(len(NAMES)))) for i in range(40)),
    ]
    page = served.opened('<img src=x onerror="alert(1)">.csv', "\n".join(rows).encode())
    assert [column["name"] for column in page["columns"]] == list(NAMES)
    drawn = served.drawn("data")
    for text in (*CELLS[:2], *NAMES[:2], CELLS[5], "\u202e", "\x07"):
        assert text not in drawn, text
    # In the names of fields names stand as they are; what is read is not those.
    assert "zip⟨U+200B⟩</bdi>" in drawn and "⟨U+202E⟩" in drawn and "⟨U+0007⟩" in drawn and "{{ 7 * 7 }}" in drawn
    assert "&lt;script&gt;" in drawn
    seen = Tags(drawn)
    assert "b" not in seen.tags and "img" not in seen.tags and seen.tags.count("script") == 1
    assert not [name for name in seen.attributes if name.startswith("on") or name == "style"]
    changed = served.post("/data/roles", **{f"role:{NAMES[1]}": "other", f"role:{NAMES[0]}": "identifier"})
    assert changed.status == 200, changed.text
    roles = {column["name"]: column["role"] for column in served.settled()["columns"]}
    assert roles[NAMES[0]] == "identifier" and roles[NAMES[1]] == "other"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../evil.csv", "evil.csv"),
        ("..\\..\\evil.csv", "evil-2.csv"),
        (".hidden.csv", "hidden.csv"),
        ("a\x01b;rm -rf.csv", "a_b_rm -rf.csv"),
        ("x" * 300 + ".csv", "x" * 76 + ".csv"),
        ("Über die Straße.csv", "Über die Straße.csv"),
    ],
)
def test_names_of_files_are_made_names(served: Served, name: str, kept: str) -> None:
    sent = served.upload(name, b"age,sex\n1,f\n2,m\n3,f\n")
    assert sent.status == 200, sent.text
    path = served.folder / "data" / kept
    assert path.is_file() and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert served.settled()["columns"]
    assert not (served.folder.parent / "evil.csv").exists()


def test_a_large_cell_and_many_columns(served: Served) -> None:
    page = served.opened(
        "cell.csv", b"age,note\n" + b"".join(b"%d,short\n" % i for i in range(30)) + b'31,"' + b"x" * 1_000_000 + b'"\n'
    )
    assert page["columns"] and len(served.drawn("data")) < 60_000
    page = served.opened("wide.csv", wide(230))
    assert page["all_columns"] == 230 and page["pages"] == 3 and len(page["columns"]) == 100
    drawn = served.drawn("data?page=3")
    assert "c229" in drawn and "c199" not in drawn and len(drawn) < 100_000
    page = served.opened("wider.csv", wide(5000))
    assert not page["begun"] and page["failed"].startswith("The table has 5,000 columns")


def wide(columns: int) -> bytes:
    rows = ([f"{(i * j) % 7}" for i in range(columns)] for j in range(20))
    return "\n".join(",".join(row) for row in ([f"c{i}" for i in range(columns)], *rows)).encode()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("bomb.xlsx", lambda: packed(b"\0" * 120_000_000), "such files are made to fill a machine"),
        ("none.xlsx", lambda: b"this is no archive", "no Excel file"),
        (
            "bomb.csv.gz",
            lambda: __import__("gzip").compress(b"1" * 120_000_000),
            "such files are made to fill a machine",
        ),
        ("program.exe", lambda: b"MZ", "cannot tell from its name"),
    ],
)
def test_files_that_are_refused_at_once(served: Served, name: str, content: object, says: str) -> None:
    before = served.view("data")
    sent = served.upload(name, content())  # type: ignore[operator]
    assert sent.status == 422 and says in sent.json["error"]
    assert served.view("data") == before
    assert not list((served.folder / "data").glob(f"{name.split('.')[0]}*"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("binary.csv", bytes(range(256)) * 50),
        ("parquet.parquet", b"PAR1" + b"\xff" * 200 + b"PAR1"),
        ("arrow.arrow", b"ARROW1\0\0" + b"\xff" * 200),
        ("spss.sav", b"$FL2" + b"\0" * 500),
        ("sheet.xlsx", packed(b"<worksheet><sheetData></worksheet>")),
        ("lines.jsonl", b'{"a": ' * 5_000),
        ("one.csv", b"age\n1\n"),
    ],
)
def test_files_that_cannot_be_read_are_told_in_a_sentence(served: Served, name: str, content: bytes) -> None:
    page = served.opened(name, content)
    assert page["failed"].endswith((".", ".)")) and "bug" not in page["failed"], page["failed"]
    # The table that was there before has been put away, and nothing is half open.
    assert not page["begun"] and page["failed"] in served.view("data")["failed"]
    assert "Which table do you want to publish?" in served.drawn("data")
