"""`shoal reproduce all --quick`, once: its verdicts, its rows, its figures, its page, and a run that goes on where it stopped."""

from __future__ import annotations

import csv
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.reproduce.turned import set_to
from typer.testing import CliRunner

from shoal.cli.app import app
from shoal.datasets import data_folder
from shoal.errors import Cancelled, ConfigError, InputError
from shoal.progress import Progress
from shoal.reproduce import PAPERS, Book, experiments, judged, paper, reproduce
from shoal.reproduce.experiments import Cell, Experiment, Line, Paper
from shoal.reproduce.verdicts import Within
from shoal.version import VERSION

HERE = Path(__file__).parent
EXPECTED = HERE / "quick.txt"


def there() -> bool:
    try:
        return data_folder().is_dir()
    except InputError:
        return False


needs_data = pytest.mark.skipif(
    not there(), reason="Adult and Census are not here; set SHOAL_DATA to the folder that holds them"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that the command leaves."""
    place = tmp_path_factory.mktemp("reproduction") / "out"
    done = CliRunner().invoke(app, ["reproduce", "all", "--quick", "--out", str(place), "--quiet", "--processes", "1"])
    assert done.exit_code == 0, done.output
    return place


def is_time(line: Line) -> bool:
    """Whether a line compares times, which no test may rely on."""
    claim = line.claim
    names = f"{getattr(claim, 'column', '')} {getattr(claim, 'limit', '')}"
    return bool(re.search(r"seconds|shared|total|optimizing", names))


@needs_data
def test_verdicts_of_the_quick_form(folder: Path) -> None:
    found = []
    for number in PAPERS:
        for one in judged(paper(number), Book(folder), True):
            if is_time(one.line):
                assert one.verdict in (one.line.claim.kind, "not reproduced")
            else:
                found.append(f"{number} | {one.line.about} | {one.line.what} | {one.verdict}")
    # When a change is meant to move a verdict: write the lines above into the file, and say why in the commit.
    assert found == EXPECTED.read_text(encoding="utf-8").splitlines()


@needs_data
def test_turning_the_data_of_a_line_turns_its_verdict(folder: Path) -> None:
    book, turned = Book(folder), 0
    for number in PAPERS:
        one = paper(number)
        by_name = {e.name: e for e in one.experiments}
        for line in one.lines:
            rows = book.of(by_name[line.experiment], True)
            holds = line.claim.judge(rows).holds
            if holds is not None:
                other = line.claim.judge(set_to(line.claim, [dict(row) for row in rows], not holds))
                assert other.holds is (not holds), f"{number}: {line.about}: {line.what}"
                turned += 1
    assert turned > 100


@needs_data
def test_every_row_says_how_it_was_made(folder: Path) -> None:
    for number in PAPERS:
        for experiment in paper(number).experiments:
            with (folder / f"{experiment.name}.csv").open(encoding="utf-8", newline="") as handle:
                rows = list(csv.DictReader(handle))
            cells = experiment.cells(True)
            assert len(rows) == len(cells)
            assert all(row["version"] == VERSION for row in rows)
            assert all(set(cell) <= set(row) for cell, row in zip(cells, rows, strict=True))


@needs_data
def test_figures_and_page(folder: Path) -> None:
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    for number in PAPERS:
        one = paper(number)
        assert f'id="p{number}"' in page
        for figure in one.figures:
            drawn = folder / f"{figure.name}.svg"
            if drawn.exists():
                text = drawn.read_text(encoding="utf-8")
                ElementTree.fromstring(text)
                assert "var(" not in text
                assert f'href="{figure.name}.svg"' in page
    drawn = {path.stem for path in folder.glob("*.svg")}
    assert {figure.name for number in PAPERS for figure in paper(number).figures} - drawn == {
        f"003-fig-{number}{letter}" for number in (4, 5) for letter in "cd"
    }
    assert "docs/algorithms.md#kpqr" in page
    assert "not run" in page


@needs_data
def test_a_finished_run_runs_nothing_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(cell: Cell, progress: Progress) -> Cell:
        raise AssertionError(f"{cell} was run again")

    before = {path.name: path.read_bytes() for path in folder.glob("*.csv")}
    for number in PAPERS:
        one = paper(number)
        lazy = Paper(
            one.number, one.title, tuple(Experiment(e.name, e.cells, never, e.setting) for e in one.experiments),
            one.lines, one.figures, one.without, one.wishes,
        )  # fmt: skip
        experiments.run(lazy, Book(folder), True, Progress())
    assert before == {path.name: path.read_bytes() for path in folder.glob("*.csv")}


@needs_data
@pytest.mark.parametrize("ended", [signal.SIGINT, signal.SIGKILL])
def test_ended_in_the_middle_no_row_is_lost_and_no_process_left(
    folder: Path, tmp_path: Path, ended: signal.Signals
) -> None:
    """Two processes make them; the rows are those that one process made."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "shoal", "reproduce", "002", "--quick", "--out", str(out), "--quiet"]
    command += ["--processes", "2"]
    # Shells have their background jobs ignore Ctrl-C; what a terminal starts does not.
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **heard)  # type: ignore[call-overload]
    rows = out / "002-census.csv"
    while process.poll() is None and not (rows.exists() and rows.read_text().count("\n") > 20):
        time.sleep(0.01)
    others = children(process.pid)
    assert len(others) >= 2
    process.send_signal(ended)
    _, told = process.communicate()
    if ended == signal.SIGINT:
        assert process.returncode == 130, told
        assert told.rstrip().endswith(f"Every finished row is in '{out}'; the same command goes on from there.")
    until = time.monotonic() + 30
    while any(Path(f"/proc/{other}").exists() for other in others) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [other for other in others if Path(f"/proc/{other}").exists()]
    finished, whole = untimed(rows), untimed(folder / rows.name)
    assert all(row in whole for row in finished)
    assert 20 <= len(finished) < len(whole)
    assert subprocess.run(command, check=False).returncode == 0
    for name in ("002-census.csv", "002-mixed.csv"):
        assert untimed(out / name) == untimed(folder / name)
    assert (out / "002-table-1.svg").read_bytes() == (folder / "002-table-1.svg").read_bytes()


def children(process: int) -> list[int]:
    """Who was started by a process."""
    return [int(one) for path in Path(f"/proc/{process}/task").glob("*/children") for one in path.read_text().split()]


def untimed(path: Path) -> list[dict[str, str]]:
    """Rows without the seconds that they took."""
    with path.open(encoding="utf-8", newline="") as handle:
        return [{**row, "took": ""} for row in csv.DictReader(handle)]


def test_without_a_folder_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def given_up(*_: object) -> None:
        raise Cancelled("002-census", 0.5)

    monkeypatch.setattr("shoal.reproduce.beside.run_beside", given_up)
    done = CliRunner().invoke(app, ["reproduce", "002", "--quiet"])
    assert str(done.exception).endswith(
        "50 % done. Nothing was written; with --out FOLDER a run can be stopped and go on."
    )


def test_work_is_remembered_whatever_progress_it_is_told_of() -> None:
    ran: list[int] = []

    @experiments.remembered(2)
    def square(n: int, *, progress: Progress) -> int:
        progress.check()
        ran.append(n)
        return n * n

    assert [square(n, progress=Progress()) for n in (1, 2, 1, 3, 2, 1)] == [1, 4, 1, 9, 4, 1]
    assert ran == [1, 2, 3, 1]
    stopped = Progress()
    stopped.cancel()
    with pytest.raises(Cancelled):
        square(9, progress=stopped)
    assert square(9, progress=Progress()) == 81


def counting(stop_at: int | None) -> tuple[Paper, list[int]]:
    """A paper of five cells, the run of which is given up at one of them."""
    ran: list[int] = []

    def run(cell: Cell, progress: Progress) -> Cell:
        if cell["i"] == stop_at:
            progress.cancel()
        progress.check()
        ran.append(int(cell["i"]))
        return {"square": int(cell["i"]) ** 2, "half": int(cell["i"]) / 2}

    made = Experiment("five", lambda quick: [{"i": i, "name": "a, b"} for i in range(3 if quick else 5)], run, "none")
    line = Line("Fig. 1", "squares", "", Within("square", 16), "five")
    return Paper("x", "x", (made,), (line,), (), (), ()), ran


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    given_up, ran = counting(2)
    with pytest.raises(Cancelled):
        experiments.run(given_up, Book(tmp_path), False, Progress())
    assert ran == [0, 1]
    # Two rows of five could be all that speak for a claim.
    assert [(one.verdict, one.ours) for one in judged(given_up, Book(tmp_path), False)] == [
        ("not run", "2 of 5 runs are there")
    ]
    assert len((tmp_path / "five.csv").read_text().splitlines()) == 3
    whole, ran = counting(None)
    experiments.run(whole, Book(tmp_path), False, Progress())
    assert ran == [2, 3, 4]
    again = Book(tmp_path)
    assert [row["square"] for row in again.of(whole.experiments[0], False)] == [0, 1, 4, 9, 16]
    assert [row["half"] for row in again.of(whole.experiments[0], True)] == [0, 0.5, 1]
    assert [one.verdict for one in judged(whole, again, False)] == ["qualitatively"]


def test_a_row_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    whole, _ = counting(None)
    experiments.run(whole, Book(tmp_path), False, Progress())
    kept = tmp_path / "five.csv"
    text, before = kept.read_text(), untimed(kept)
    kept.write_text(text[: text.rindex("16")])
    again, ran = counting(None)
    experiments.run(again, Book(tmp_path), False, Progress())
    assert ran == [4]
    assert untimed(kept) == before


KILLED = """
import os, signal, sys
from pathlib import Path
from shoal.progress import Progress
from shoal.reproduce import Book, Paper, run
from shoal.reproduce.experiments import Experiment

out, stop_at = Path(sys.argv[1]), int(sys.argv[2])

def work(cell, progress):
    if cell["i"] == stop_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"square": cell["i"] ** 2}

made = Experiment("nine", lambda quick: [{"i": i} for i in range(9)], work, "none")
run(Paper("x", "x", (made,), (), (), (), ()), Book(out), False, Progress())
"""


def test_killed_without_a_warning_no_row_is_lost_or_made_twice(tmp_path: Path) -> None:
    ended = [
        subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(stop_at)], check=False).returncode
        for stop_at in (3, 7, 99)
    ]
    assert ended == [-signal.SIGKILL, -signal.SIGKILL, 0]
    with (tmp_path / "nine.csv").open(encoding="utf-8", newline="") as handle:
        assert [(row["i"], row["square"]) for row in csv.DictReader(handle)] == [(f"{i}", f"{i * i}") for i in range(9)]


def test_rows_of_other_settings_are_made_again(tmp_path: Path) -> None:
    whole, _ = counting(None)
    experiments.run(whole, Book(tmp_path), False, Progress())
    again, ran = counting(None)
    made = replace(again.experiments[0], setting="on another table")
    changed = replace(again, experiments=(made,))
    # What was made on the first table says nothing of the second, and does not stay in the file.
    assert [one.verdict for one in judged(changed, Book(tmp_path), False)] == ["not run"]
    experiments.run(changed, Book(tmp_path), False, Progress())
    assert ran == [0, 1, 2, 3, 4]
    with (tmp_path / "five.csv").open(encoding="utf-8", newline="") as handle:
        assert [(row["i"], row["settings"]) for row in csv.DictReader(handle)] == [
            (f"{i}", made.digest) for i in range(5)
        ]


def test_rows_that_lack_a_figure_are_made_again(tmp_path: Path) -> None:
    whole, _ = counting(None)
    experiments.run(whole, Book(tmp_path), True, Progress())
    again, _ = counting(None)
    first = again.experiments[0]
    made = replace(
        first,
        run=lambda cell, progress: {**first.run(cell, progress), "cube": 1},
        cells=lambda quick: first.cells(False),
    )
    for _ in range(2):
        experiments.run(replace(again, experiments=(made,)), Book(tmp_path), False, Progress())
    assert all("cube" in row for row in Book(tmp_path).of(made, False))
    assert len(Book(tmp_path).of(made, False)) == 5


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(VERSION, "0.0.0"),
        lambda text: "i,j\n1,2\n",
        lambda text: text.replace('"a, b"', "a, b"),
    ],
)
def test_rows_that_are_not_ours_are_refused(tmp_path: Path, change: object) -> None:
    whole, _ = counting(None)
    experiments.run(whole, Book(tmp_path), False, Progress())
    kept = tmp_path / "five.csv"
    kept.write_text(change(kept.read_text()))  # type: ignore[operator]
    with pytest.raises(InputError, match=r"five\.csv' holds no rows of this version"):
        experiments.run(whole, Book(tmp_path), False, Progress())


def test_a_folder_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out, why in (("file", "is a file"), ("no/folder", "cannot be made")):
        done = CliRunner().invoke(app, ["reproduce", "003", "--out", str(tmp_path / out)])
        assert done.exit_code != 0
        assert why in str(done.exception) + done.output


def test_papers_have_numbers() -> None:
    with pytest.raises(ConfigError, match="There is no paper '005'"):
        reproduce("005")
