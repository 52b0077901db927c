"""Every forged file gets the verdict it deserves, from the command line, and honest files pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.errors import call, captured, inside
from tests.forged.cases import CASES as FIRST
from tests.forged.cases import Case
from tests.forged.more import MORE

CASES = [*FIRST, *MORE]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict(case: Case, tmp_path: Path) -> None:
    case.build(tmp_path / case.file)
    (tmp_path / "shoal.toml").write_text(case.config)
    for name, content in case.files:
        (tmp_path / name).write_text(content)
    with inside(tmp_path), captured() as (out, err):
        code = call(("verify", case.file))
    assert ("passes" if code == 0 else "refused") == case.verdict, out.getvalue() + err.getvalue()
    assert "Traceback" not in err.getvalue()
    # Rich breaks lines of notes; a sentence is a sentence whatever its lines.
    said = " ".join((out.getvalue() if code == 0 else err.getvalue() + out.getvalue()).split())
    assert " ".join(case.says.split()) in said


def test_there_are_enough_of_them() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert sum(case.verdict == "refused" for case in CASES) >= 80
    assert sum(case.verdict == "passes" for case in CASES) >= 20
