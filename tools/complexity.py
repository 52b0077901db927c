"""`make lint`: no function with more than eight parameters, or of a complexity above twenty, but those that are listed.

    python -m tools.complexity

Ruff counts (its rules C901 and PLR0913: ways through a function, and parameters whether by place or by name). The list is
`tools/complexity.toml`: a function, how many parameters it has or how complex it is, and why it stays so. An entry for a function
that is gone or has become smaller is stale and fails, so the list can only tell what is true. Box search gets no entry.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tools" / "complexity.toml"
LIMITS = {"parameters": 8, "complexity": 20}
RULES = {"PLR0913": "parameters", "C901": "complexity"}
# Rooms that the list must not name.
FORBIDDEN = re.compile(r"src/shoal/(kernels|refine)/box_")


@dataclass(frozen=True, order=True)
class Excess:
    """A function that is too large: the file, its name with the classes and functions around it, what is too much, how much."""

    file: str
    function: str
    what: str
    count: int
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.function} has {self.what} {self.count}, at most {LIMITS[self.what]} are allowed"


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    found, listed = measured(), listed_in(tomllib.loads(LIST.read_text(encoding="utf-8")))
    problems = compared(found, listed)
    for problem in problems:
        print(problem)
    if not problems:
        print(f"Complexity: {len(listed)} functions are larger than others, each with its reason in {LIST.name}.")
    return 1 if problems else 0


def compared(found: list[Excess], listed: list[Excess]) -> list[str]:
    """A sentence for every function that is too large without a reason, and for every entry that is not true."""
    known = {(entry.file, entry.function, entry.what): entry for entry in listed}
    actual = {(one.file, one.function, one.what): one for one in found}
    problems = [
        f"{one}; make it smaller, or give a reason in {LIST.name}." for key, one in actual.items() if key not in known
    ]
    for key, entry in known.items():
        if key not in actual:
            problems.append(
                f"{LIST.name}: {entry.function} of {entry.file} is not too large, or is gone; remove the entry."
            )
        elif actual[key].count > entry.count:
            problems.append(
                f"{LIST.name}: {entry.function} of {entry.file} has {entry.what} {actual[key].count}, not {entry.count}."
            )
        if FORBIDDEN.match(entry.file):
            problems.append(
                f"{LIST.name}: {entry.function} of {entry.file} is part of box search, where nothing is excepted."
            )
        if len(entry.reason.split()) < 3:
            problems.append(f"{LIST.name}: {entry.function} of {entry.file} has no reason.")
    return problems


def listed_in(page: dict[str, Any]) -> list[Excess]:
    """The entries of the list."""
    entries = []
    for entry in page.get("exception", []):
        (what,) = LIMITS.keys() & entry.keys()
        entries.append(Excess(entry["file"], entry["function"], what, entry[what], entry["reason"]))
    return entries


def measured(root: Path = ROOT) -> list[Excess]:
    """Every function below a folder that is too large, as Ruff counts."""
    limits = [f"lint.mccabe.max-complexity={LIMITS['complexity']}", f"lint.pylint.max-args={LIMITS['parameters']}"]
    settings = [part for limit in limits for part in ("--config", limit)]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--ignore-noqa", "--select", ",".join(RULES),
         "--output-format", "json", *settings, "."],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    found = []
    for one in json.loads(done.stdout):
        path = Path(one["filename"]).relative_to(root.resolve())
        count = re.search(r"\((\d+) > \d+\)", one["message"])
        assert count is not None, one["message"]
        name = name_at((root / path).read_text(encoding="utf-8"), one["location"]["row"])
        found.append(Excess(path.as_posix(), name, RULES[one["code"]], int(count[1])))
    return sorted(found)


def name_at(source: str, row: int) -> str:
    """The function whose name stands in a row, with what it is in: `Store.create`."""
    names: list[str] = []
    body: list[ast.stmt] = ast.parse(source).body
    while body:
        inside = [node for node in body if node.lineno <= row <= (node.end_lineno or row)]
        named = [node for node in inside if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
        names += [node.name for node in named]
        body = [child for node in inside for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return ".".join(names)


if __name__ == "__main__":
    raise SystemExit(main())
