"""Every forged file gets the verdict it deserves, from the command line, and honest files pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.errors import call, captured, inside
from tests.forged.cases import CASES as FIRST
from tests.forged.cases import Case
from tests.forged.finer import FINER
from tests.forged.more import MORE

CASES = [*FIRST, *MORE, *FINER]


def require_verdict(case: Case, folder: Path) -> None:
    """Write a case down in a folder, verify it from the command line, and fail where the answer is another."""
    case.build(folder / case.file)
    (folder / "shoal.toml").write_text(case.config)
    for name, content in case.files:
        (folder / name).write_text(content)
    with inside(folder), captured() as (out, err):
        code = call(("verify", case.file))
    assert ("passes" if code == 0 else "refused") == case.verdict, out.getvalue() + err.getvalue()
    assert "Traceback" not in err.getvalue()
    # Rich breaks lines of notes; a sentence is a sentence whatever its lines.
    said = " ".join((out.getvalue() if code == 0 else err.getvalue() + out.getvalue()).split())
    assert " ".join(case.says.split()) in said


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict(case: Case, tmp_path: Path) -> None:
    require_verdict(case, tmp_path)


def test_there_are_enough_of_them() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert sum(case.verdict == "refused" for case in CASES) >= 80
    assert sum(case.verdict == "passes" for case in CASES) >= 20
