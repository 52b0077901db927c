"""The page docs/errors.md: every mistake we provoke in the tests, and what Shoal answers."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.cli.errors import CASES, provoke

PAGE = Path(__file__).parent / "errors.md"
HEAD = """# What Shoal says when something is wrong

One sentence on stderr, exit code 2, and no output file at all. The tests provoke each of these mistakes
(`tests/cli/errors.py`) and this page is made from the answers (`make docs`). Add `--debug` for the whole story.

| what is wrong | what Shoal says |
|---|---|
"""


def errors_page() -> str:
    """The text of the page."""
    rows = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            _, _, err, _ = provoke(case, Path(folder))
        # On a machine that has compiled nothing yet, the first one says so, and how far it is.
        err = "\n".join(line for line in err.splitlines() if not line.startswith(("Compiling ", "masking (")))
        sentence = (
            " ".join(err.split())
            .removeprefix("shoal: ")
            .replace(folder + "/", "")
            .replace(folder, "FOLDER")
            .replace("|", "\\|")
        )
        rows.append(f"| {case.what} | {sentence} |\n")
    return HEAD + "".join(rows)
