"""More than a thousand hostile configurations, command lines and calls: each one sentence, exit code 2, no value of the table."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import warnings
from collections import Counter
from pathlib import Path

import pytest
from tests.cli.errors import call, captured, inside
from tests.hostile import BASE, CANARIES, END, FRAME, Case, calls, command_lines, configurations

import shoal
from shoal.errors import ShoalError

pytestmark = pytest.mark.unshown


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hostile")
    FRAME.write_csv(place / "table.csv")
    (place / "shoal.toml").write_text(BASE + END)
    data = shoal.read(place / "table.csv", place / "shoal.toml")
    shoal.anonymize(data, shoal.KAnonymity(2), algorithm="mondrian", refine=False).write(place / "ready.csv")
    return place


def complaint(sentence: str) -> str | None:
    """What is wrong with what was said."""
    if not sentence.strip():
        return "nothing was said"
    if "\n" in sentence.strip():
        return "more than one line"
    if "Traceback" in sentence or "bug in shoal" in sentence.casefold():
        return "our bug"
    found = [canary for canary in CANARIES if canary in sentence]
    return f"a value of the table: {found}" if found else None


def run(case: Case, folder: Path) -> tuple[bool, str | None]:
    """Whether it was refused, and what is wrong with the answer."""
    if case.call is not None:
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                case.call(folder)
        except ShoalError as problem:
            return True, complaint(str(problem))
        except Exception as problem:
            return True, f"{type(problem).__name__}: {problem}"[:300]
        return False, None
    arguments = case.arguments or ("anonymize", "-c", "hostile.toml", "-o", "masked.csv", "--force", "--quiet")
    if case.config is not None:
        (folder / "hostile.toml").write_text(case.config, encoding="utf-8")
    before = set(folder.iterdir())
    with inside(folder), captured() as (_, err), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = call(arguments)
    for made in set(folder.iterdir()) - before:
        made.unlink() if made.is_file() else shutil.rmtree(made)
    if code == 0:
        return False, None
    if code not in (1, 2):
        return True, f"exit code {code}"
    last = [line for line in err.getvalue().splitlines() if line.startswith("shoal: ")]
    return True, complaint("\n".join(last)) if last else f"no sentence: {err.getvalue()[-300:]}"


def judged(some: list[Case], folder: Path) -> Counter[str]:
    counted: Counter[str] = Counter()
    wrong = []
    for case in some:
        refused, problem = run(case, folder)
        counted["refused" if refused else "allowed"] += 1
        if problem is not None:
            wrong.append(f"{case.what}: {problem}")
    assert not wrong, f"{len(wrong)} of {len(some)}:\n" + "\n".join(wrong[:40])
    return counted


ALL = os.environ.get("SHOAL_HOSTILE") == "all"
STEP = 11
"""One configuration in so many has its turn, with SHOAL_HOSTILE=all each. Wrong values follow each other key by key: a step that shares a
divisor with the number of keys would leave most keys out for good."""


def turns(cases: list[Case]) -> list[Case]:
    return cases if ALL else cases[::STEP]


def test_every_key_and_every_wrong_value_has_its_turn() -> None:
    cases = list(configurations())
    for half in (0, 2):
        named = [{one.what.partition(" = ")[half] for one in some} for some in (cases, turns(cases))]
        assert named[0] == named[1] and len(named[0]) > 20


def test_configurations(folder: Path) -> None:
    assert judged(turns(list(configurations())), folder)["refused"] > 500


def test_command_lines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A studio that has nothing to refuse serves until Ctrl-C: here it is told that somebody pressed it.
    server = pytest.importorskip(
        "shoal.studio.server", reason="the studio is not installed: pip install 'shoal[studio]'"
    )
    monkeypatch.setattr(server, "run", lambda app, sock, ready=None: sock.close())
    assert judged(list(command_lines()) if ALL else half(list(command_lines())), folder)["refused"] > 500


def half(lines: list[Case]) -> list[Case]:
    """Half of the command lines, drawn, and the first with each word: every second one would always have the same words."""
    drawn, seen, dice = [], set[str](), random.Random(7)
    for one in lines:
        new = set(one.arguments or ()) - seen
        if dice.random() < 0.5 or new:
            drawn.append(one)
        seen |= new
    return drawn


def test_calls(folder: Path) -> None:
    assert judged(list(calls()), folder)["refused"] > 2000
