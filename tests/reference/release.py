"""Is a published file safe? Judged from its bytes, with other readers than the house's and the twins of the models.

Nothing of Shoal is used here: text files are read with `csv` and `json`, workbooks by unpacking their XML, Parquet and Arrow with
pyarrow. A class is what has the same cells in the columns of the quasi-identifiers. What a policy asks is given as pairs of a
model's name and its parameters.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import math
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.reference import models, persons
from tests.reference.models import About

MISSING = {"", "?", "na", "nan", "null", "*", "-", "unknown", "∅"}
SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def cells_of(path: Path) -> tuple[list[str], list[list[Any]]]:
    """Header and rows of a file; None for an empty cell."""
    name = path.name
    if name.endswith((".csv", ".tsv", ".csv.gz")):
        data = path.read_bytes()
        text = (gzip.decompress(data) if name.endswith(".gz") else data).decode("utf-8")
        lines = list(
            csv.reader(io.StringIO(text, newline=""), delimiter="\t" if name.endswith(".tsv") else ",", strict=True)
        )
        return lines[0], [[cell or None for cell in line] for line in lines[1:]]
    if name.endswith(".jsonl"):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        return list(rows[0]), [list(row.values()) for row in rows]
    if name.endswith(".xlsx"):
        return _workbook(path)
    import pyarrow.ipc
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path) if name.endswith(".parquet") else pyarrow.ipc.open_file(path).read_all()
    columns = [column.to_pylist() for column in table.columns]
    return table.column_names, [list(row) for row in zip(*columns, strict=True)]


def _workbook(path: Path) -> tuple[list[str], list[list[Any]]]:
    with zipfile.ZipFile(path) as book:
        shared = []
        if "xl/sharedStrings.xml" in book.namelist():
            items = ElementTree.fromstring(book.read("xl/sharedStrings.xml")).iter(f"{SHEET}si")
            shared = ["".join(part.text or "" for part in item.iter(f"{SHEET}t")) for item in items]
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    grid = []
    for row in sheet.iter(f"{SHEET}row"):
        cells: dict[int, Any] = {}
        for cell in row.iter(f"{SHEET}c"):
            letters = re.match("[A-Z]+", cell.get("r", ""))
            place = 0
            for letter in letters[0] if letters else "":
                place = 26 * place + ord(letter) - 64
            value = cell.findtext(f"{SHEET}v")
            if value is None:
                value = "".join(part.text or "" for part in cell.iter(f"{SHEET}t")) or None
            elif cell.get("t") == "s":
                value = _unescaped(shared[int(value)])
            elif cell.get("t") == "b":
                value = ("false", "true")[int(value)]
            elif cell.get("t") in (None, "n"):
                value = float(value)
            cells[place - 1] = value
        # A row of nothing but missing values is left out of the file, and its number with it.
        grid += [{}] * (int(row.get("r", len(grid) + 1)) - 1 - len(grid))
        grid.append(cells)
    width = len(grid[0])
    rows = [[row.get(place) for place in range(width)] for row in grid]
    return [str(name) for name in rows[0]], rows[1:]


def _unescaped(text: str) -> str:
    return re.sub("_x([0-9A-Fa-f]{4})_", lambda found: chr(int(found[1], 16)), text)


def canonical(value: Any, about: About, fold: bool) -> Any:
    """A secret as the twins know it."""
    if value is None:
        return None
    if about.number:
        return None if str(value).strip().casefold() in MISSING else repr(float(value))
    text = str(value)
    if fold:
        text = text.strip().casefold()
        return None if text in MISSING else text
    return text


def same_value(one: Any, other: Any) -> bool:
    """Whether a cell says what the original does, whatever the format made of its type."""
    if one is None or other is None:
        return one is other or {str(one), str(other)} <= {"", "None", "?"}
    if isinstance(other, bool):
        return str(one).casefold() in (str(other).casefold(), str(int(other)))
    if isinstance(other, int | float):
        return math.isclose(float(one), float(other), rel_tol=1e-12)
    if isinstance(other, datetime.date) and isinstance(one, float):
        return datetime.date(1899, 12, 30) + datetime.timedelta(days=one) == other
    return str(one) == str(other)


def violations(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    policy: Sequence[tuple[str, dict[str, Any]]],
    quasi: Sequence[str],
    abouts: dict[str, About],
    *,
    folded: set[str] = frozenset(),  # type: ignore[assignment]
    owners: Sequence[Any] | None = None,
) -> Iterator[str]:
    """Every class that breaks the policy. `owners` says whose each row is, where people have several."""
    published = [name for name in header if name in quasi or name.removesuffix("_min").removesuffix("_max") in quasi]
    places = [header.index(name) for name in published]
    classes: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(rows):
        classes.setdefault(tuple(repr(row[place]) for place in places), []).append(number)
    if owners is not None:
        home: dict[Any, tuple[str, ...]] = {}
        for key, numbers in classes.items():
            for number in numbers:
                if home.setdefault(owners[number], key) != key:
                    yield f"the rows of a person are in two classes, one of them {key}"
    for name, parameters in policy:
        attribute = parameters.get("attribute")
        asked = {key: value for key, value in parameters.items() if key != "attribute"}
        for column in [attribute] if attribute else list(abouts) if name != "k_anonymity" else [None]:
            about = abouts.get(column, About()) if column else About()
            values = [None] * len(rows)
            if column:
                place = header.index(column)
                values = [canonical(row[place], about, column in folded) for row in rows]
                about = _present(about, values)
            if owners is None:
                judge, members_of, table = (
                    getattr(models, name),
                    lambda numbers, v=values: [v[i] for i in numbers],
                    values,
                )
            else:
                judge, members_of = getattr(persons, name), lambda numbers, v=values: _by_owner(numbers, owners, v)
                table = _by_owner(range(len(rows)), owners, values)
            for key, numbers in classes.items():
                if not judge(members_of(numbers), table, about, **asked):
                    yield f"class {key} of {len(numbers)} rows breaks {name} {asked} on {column}"


def _present(about: About, values: Sequence[Any]) -> About:
    """Distances of numbers are among those that are published."""
    if not about.number:
        return about
    numbers = {value: about.number[value] for value in set(values) - {None}}
    ranked = sorted(numbers, key=numbers.__getitem__)
    return About(
        numbers, {value: rank for rank, value in enumerate(ranked)}, about.parent, about.protect, about.categories
    )


def _by_owner(numbers: Sequence[int] | range, owners: Sequence[Any], values: Sequence[Any]) -> list[list[Any]]:
    people: dict[Any, list[Any]] = {}
    for number in numbers:
        people.setdefault(owners[number], []).append(values[number])
    return list(people.values())


def changed_secrets(published: Sequence[Any], original: Sequence[Any], *, kept_order: bool) -> bool:
    """Whether a column that is published as it is says something else than the original."""
    if len(published) != len(original):
        return True
    if kept_order:
        return not all(same_value(one, other) for one, other in zip(published, original, strict=True))
    left = Counter(_plain(value) for value in published)
    return left != Counter(_plain(value) for value in original)


def _plain(value: Any) -> Any:
    try:
        return round(float(value), 9)
    except (TypeError, ValueError):
        return "" if value in (None, "?") else str(value)


def uncovered(published: Any, original: Any, parents: dict[str, str] | None) -> bool:
    """Whether a generalized cell leaves out the value it stands for (of numbers and of nodes of a given taxonomy)."""
    if published is None or original is None:
        return original is not None if published is None else published != "*" and "∅" not in str(published)
    if published == "*":
        return False
    if parents is not None:
        node = str(original)
        while node != published and node in parents:
            node = parents[node]
        return node != published
    found = re.fullmatch(r"\[(.+), (.+)\]", str(published))
    low, high = (found[1], found[2]) if found else (published, published)
    try:
        return not float(low) <= float(original) <= float(high)
    except ValueError:
        return not str(low) <= str(original) <= str(high)
