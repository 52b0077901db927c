"""Bad input gets one clear sentence, exit code 2, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.errors_page import PAGE, errors_page
from tests.cli.errors import CASES, Case, provoke


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_one_sentence_and_nothing_written(case: Case, tmp_path: Path) -> None:
    code, out, err, changed = provoke(case, tmp_path)
    assert code == 2, err
    assert case.says in err
    assert out == ""
    assert changed == []
    assert "Traceback" not in err
    assert "bug in Shoal" not in err


def test_the_page_of_errors_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == errors_page(), "run make docs to write it again"
