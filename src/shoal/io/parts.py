"""A table in several files of one folder, as clusters write it: masked.csv/part-00000.csv, part-00001.csv, …

Every file has the names of the columns, and all together are read as the one file they would be.
"""

from __future__ import annotations

import csv
from pathlib import Path

from shoal.errors import InputError, VerificationError
from shoal.io.files import read_content

SUCCESS = "_SUCCESS"
"""An empty file that Hadoop leaves beside a table that is whole."""


def parts_of(path: Path, extension: str, label: str) -> list[Path]:
    """The files of a table: the path itself, or all of those in its folder. Whatever else lies there is no table and refused."""
    if not path.is_dir():
        return [path]
    found = []
    for one in sorted(path.iterdir()):
        if one.name == SUCCESS and one.is_file() and one.stat().st_size == 0:
            continue
        if one.suffix.lower() != extension or one.name[0] in "._" or not one.is_file():
            raise VerificationError(f"{label} holds '{one.name}' beside its {extension} files: remove it.")
        found.append(one)
    if not found:
        raise InputError(f"{label} is a folder without {extension} files: give one that has some, or a file.")
    return found


def joined_text(parts: list[Path], label: str, packed: bool) -> bytes:
    """The text of all parts as one file: the names of the columns once, and then the records of each."""
    texts = [read_content(part, label, packed) for part in parts]
    if len(texts) == 1:
        return texts[0]
    ends = [end_of_names(text) for text in texts]
    head = texts[0][: ends[0]]
    for part, text, end in zip(parts, texts, ends, strict=True):
        if not _same_names(text[:end], head):
            raise VerificationError(
                f"'{part.name}' of {label} has other columns than the first file: write them alike."
            )
    # A last line may lack its end.
    rest = [text[end:] for text, end in zip(texts, ends, strict=True)]
    return head + b"".join(text if text.endswith(b"\n") else text + b"\n" for text in rest if text)


def _same_names(one: bytes, other: bytes) -> bool:
    """Whether two first lines name the same columns: quoted or not, by one and the same separator."""
    lines = [head.decode(errors="replace").rstrip("\r\n") for head in (one, other)]
    if lines[0] == lines[1]:
        return True
    read = ([next(csv.reader([line], delimiter=between), []) for line in lines] for between in ",\t;|")
    return any(names[0] == names[1] and len(names[0]) > 1 for names in read)


def end_of_names(text: bytes) -> int:
    """How many bytes the names of the columns take: up to the first end of a line that is not inside quotes."""
    end = text.find(b"\n") + 1
    while end and text.count(b'"', 0, end) % 2:
        end = text.find(b"\n", end) + 1
    return end or len(text)
