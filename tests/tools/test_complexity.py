"""No function is too large but those that are listed, and the list tells what is true."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.complexity import Excess, compared, main, measured, name_at

BRANCHES = "\n".join(f"        if a == {i}:\n            return {i}" for i in range(20))
SOURCE = f"""
class Box:
    def wide(self, a, b, c, d, e, f, g, h, *, i):
        def inner(a): return a
        return inner(a)

    def narrow(self, a, b, c, d, e, f, g):
        return a

    def deep(self, a):
{BRANCHES}
        return -1
"""


def test_the_house_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0, capsys.readouterr().out


def test_parameters_and_complexity_are_counted(tmp_path: Path) -> None:
    (tmp_path / "boxes.py").write_text(SOURCE, encoding="utf-8")
    found = {(one.file, one.function, one.what): one.count for one in measured(tmp_path)}
    assert found.pop(("boxes.py", "Box.deep", "complexity")) == 21
    assert found.pop(("boxes.py", "Box.wide", "parameters")) >= 9
    assert found == {}
    assert name_at(SOURCE, 4) == "Box.wide.inner"


def test_what_is_not_listed_or_not_true_is_told() -> None:
    wide = Excess("src/a.py", "wide", "parameters", 9)
    listed = Excess("src/a.py", "wide", "parameters", 9, "all of its options")
    assert compared([wide], [listed]) == []
    assert compared([wide], [Excess("src/a.py", "wide", "parameters", 12, "all of its options")]) == []
    assert "give a reason" in compared([wide], [])[0]
    assert "remove the entry" in compared([], [listed])[0]
    assert "has parameters 10, not 9" in compared([Excess("src/a.py", "wide", "parameters", 10)], [listed])[0]
    assert "no reason" in compared([wide], [Excess("src/a.py", "wide", "parameters", 9, "why not")])[0]
    box = Excess("src/shoal/kernels/box_search.py", "search", "parameters", 9, "all of its options")
    assert "nothing is excepted" in compared([box], [box])[0]
