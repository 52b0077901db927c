"""`shoal reproduce`: the papers' tables and figures beside ours."""

from __future__ import annotations

from pathlib import Path

import typer

from shoal.cli.output import JSON, QUIET, Speaker


def reproduce(
    which: str = typer.Argument("all", metavar="PAPER", help="000, 001, 002, 003, 004 (docs/papers.md), or all."),
    out: Path | None = typer.Option(
        None,
        "--out",
        help="A folder for every row (CSV), every figure (SVG) and a page with the verdicts (index.html).",
    ),
    processes: int | None = typer.Option(
        None,
        "--processes",
        min=1,
        help="How many experiments run at a time, 8 at most; one for each processor by default. Times (processor seconds) come "
        "out a little longer beside others.",
    ),
    quick: bool = typer.Option(False, "--quick", help="Smaller samples and fewer seeds: a first impression."),
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Run a paper's experiments on Adult and Census (SHOAL_DATA) and set what it prints beside what comes out here.

    Every verdict is computed from rows. With --out a row is kept the moment it is there: interrupted with Ctrl-C, the same
    command goes on where it stopped.

    Example: shoal reproduce 003 --out reproduction
    """
    from shoal.errors import Cancelled
    from shoal.reproduce import PAPERS, Book, judged, paper
    from shoal.reproduce.beside import run_beside

    speaker = Speaker(as_json, quiet)
    papers = [paper(name) for name in (PAPERS if which == "all" else (which,))]
    if out is not None:
        make_folder(out)
    book = Book(out)
    results = {}
    for one in papers:
        try:
            with speaker.progress(f"paper {one.number}") as progress:
                run_beside(one, book, quick, progress, processes)
        except Cancelled as stopped:
            raise Cancelled(stopped.stage, stopped.share, _kept(out)) from None
        lines = list(judged(one, book, quick))
        results[one.number] = [line.to_dict() for line in lines]
        rows = [[line.line.about, line.line.what, line.line.printed, line.ours, line.verdict] for line in lines]
        speaker.table(f"{one.number}: {one.title}", ["where", "what", "paper", "here", "verdict"], rows)
        if out is not None:
            write(out, quick, book, speaker)
    speaker.result(results)


def _kept(out: Path | None) -> str:
    """What is there when a run was stopped."""
    if out is None:
        return "Nothing was written; with --out FOLDER a run can be stopped and go on."
    return f"Every finished row is in '{out}'; the same command goes on from there."


def make_folder(out: Path) -> None:
    """The folder, if it can be made."""
    from shoal.errors import InputError

    if out.exists() and not out.is_dir():
        raise InputError(f"'{out}' is a file; name a folder for the rows and figures.")
    try:
        out.mkdir(exist_ok=True)
    except OSError as problem:
        raise InputError(
            f"The folder '{out}' cannot be made ({problem.strerror}); make the one it stands in first."
        ) from None


def write(out: Path, quick: bool, book: object, speaker: Speaker) -> None:
    """The page of all papers that have rows in the folder."""
    from shoal.reproduce import PAPERS, Book, paper
    from shoal.reproduce.page import publish

    assert isinstance(book, Book)
    there = [one for one in map(paper, PAPERS) if any(book.of(experiment, quick) for experiment in one.experiments)]
    speaker.say(f"Written: {publish(there, book, quick, out)}")
