"""What is wrong with a table of a configuration, in one sentence: the key, its line, and what is allowed there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError

from shoal.errors import did_you_mean, shown

# Which table stands at a path.
Tables = Callable[[list[str]], type[BaseModel]]


def explain(problem: ValidationError, table_at: Tables, *, name: str, text: str = "") -> str:
    """The first thing that is wrong, where `name` is what was read and `text` how it is written."""
    # What is no taxonomy made in Python, and no table, may still be what the next branch of the union is about.
    errors = problem.errors()
    error = next((error for error in errors if error["type"] not in ("is_instance_of", "model_type")), errors[0])
    where = [str(part) for part in error["loc"] if not _is_branch(part)]
    line = _line_of(text, where)
    spot = ".".join(where) or "it"
    place = f"{name}, line {line}" if line else name
    if error["type"] == "extra_forbidden":
        return f"{place}: {spot}: no such key; {did_you_mean(where[-1], list(table_at(where[:-1]).model_fields))}"
    if error["type"] == "missing":
        return f"{place}: {spot} is missing; {_needed(table_at(where[:-1]), where[-1])}."
    if error["type"] == "literal_error":
        given = error["input"]
        values = re.findall(r"'([^']+)'", str(error["ctx"]["expected"]))
        return f"{place}: {spot} = {shown(given)} is not allowed; {did_you_mean(given, values)}"
    return f"{place}: {spot} = {shown(error['input'])} is not allowed; {error['msg'].removeprefix('Value error, ').lower()}."


def _is_branch(part: Any) -> bool:
    # pydantic names the branch of a union it tried ("TaxonomySource", "tuple[float, float]"); nobody wrote that.
    return isinstance(part, str) and bool(re.search(r"[\[(]|^[A-Z]\w+$|^(str|bool|float|is-instance.*)$", part))


def _needed(table: type[BaseModel], key: str) -> str:
    # A place in a list has no name: domain = [1] lacks its second number.
    wanted = table.model_fields[key].annotation if key in table.model_fields else None
    return f"one of {', '.join(get_args(wanted))}" if get_origin(wanted) is Literal else "it is required"


def _line_of(text: str, where: list[str]) -> int | None:
    """The line of the deepest part of a key path that can be found under its table header."""
    lines = text.splitlines()
    for depth in range(len(where), 0, -1):
        header = r"\s*\.\s*".join(rf"[\"']?{re.escape(part)}[\"']?" for part in where[:depth])
        hits = [i for i, line in enumerate(lines) if re.match(rf"\s*\[+\s*{header}\s*\]", line)]
        if hits:
            section = hits[0]
            if depth == len(where):
                return section + 1
            key = re.escape(where[depth])
            for i in range(section + 1, len(lines)):
                if re.match(r"\s*\[", lines[i]):
                    break
                if re.match(rf"\s*[\"']?{key}[\"']?\s*[.=]", lines[i]):
                    return i + 1
            return section + 1
    return None
