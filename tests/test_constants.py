"""Every number that was chosen has its reason beside it, and what is one number is written once."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "shoal"
# Compiled loops and searches have columns and codes by the dozen; figures of papers and of a made-up hospital speak for themselves.
ELSEWHERE = ("kernels", "refine", "reproduce", "datasets")
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in ELSEWHERE]


NAMES = r"_?[A-Z][A-Z0-9_]*(?:, _?[A-Z][A-Z0-9_]*)*"


def is_number(node: ast.expr) -> bool:
    """Whether it is written in digits: 5, 2**18, (0.3, 1.0), -1."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.BinOp):
        return is_number(node.left) and is_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    return isinstance(node, ast.Tuple) and len(node.elts) > 0 and all(map(is_number, node.elts))


def without_a_reason(text: str) -> list[str]:
    """Names of chosen numbers at the top of a module without a comment at the line, above it, or words below it."""
    lines, body = text.splitlines(), ast.parse(text).body
    found = []
    for place, node in enumerate(body):
        target = (
            node.targets[0]
            if isinstance(node, ast.Assign)
            else node.target
            if isinstance(node, ast.AnnAssign)
            else None
        )
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if target is None or value is None or not is_number(value):
            continue
        name = ast.unparse(target).strip("()")
        if not re.fullmatch(NAMES, name):
            continue
        after = body[place + 1] if place + 1 < len(body) else None
        told = (
            isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
        )
        above = node.lineno - 2
        while above >= 0 and re.match(rf"{NAMES} = [\d(]", lines[above]):  # one reason for numbers that belong together
            above -= 1
        if "#" in lines[node.lineno - 1] or lines[above].startswith("#") or told:
            continue
        found.append(name)
    return found


def test_what_counts_as_a_reason() -> None:
    assert without_a_reason("# Why.\nA = 5\nB = 2**3\n\nC = 7\n") == ["C"]
    assert without_a_reason('A = 5\n"""Why."""\nB = 6  # why\nC, D = 1, 2\nE = (0.5, 1)\n') == ["C, D", "E"]
    assert without_a_reason("NAMES = ('a', 'b')\nOTHER = NAMES\n") == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_chosen_number_has_its_reason(path: Path) -> None:
    assert without_a_reason(path.read_text(encoding="utf-8")) == []


def test_a_tick_is_defined_once() -> None:
    said = [path for path in FILES if re.search(r"2(\.0)?\s*\*\*\s*40", path.read_text(encoding="utf-8"))]
    # And once more by the test of certificates, which shares nothing with what it tests.
    assert [str(path.relative_to(PACKAGE)) for path in said] == ["exact.py", "measures/certificate.py"]
