"""What the package says of itself is true: every extra is for something that exists, every shipped file is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "shoal"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
SOURCES = "\n".join(path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py")))
# Not for users: for those who work on Shoal, and for those who want everything.
OURS = ("dev", "all")


def test_extras_are_those_that_the_code_asks_for() -> None:
    asked = {extra for _, extra in re.findall(r'MissingExtraError\(\s*"([\w-]+)",\s*"(\w+)"', SOURCES)}
    assert asked == set(EXTRAS) - set(OURS)
    assert set(re.findall(r"shoal\[([\w,]+)\]", " ".join(EXTRAS["all"]))) == {",".join(sorted(asked))}


def test_every_pattern_of_shipped_files_finds_some() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["shoal"]
    assert [pattern for pattern in patterns if not list(PACKAGE.glob(pattern))] == []
