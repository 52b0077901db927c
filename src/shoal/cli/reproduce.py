"""`shoal reproduce`: the papers' tables and figures beside ours."""

from __future__ import annotations

import typer

from shoal.cli.output import JSON, QUIET, Speaker


def reproduce(
    paper: str = typer.Argument("all", help="000, 001, 002, 003, 004 (docs/papers.md), or all."),
    quick: bool = typer.Option(False, "--quick", help="Smaller samples and fewer seeds: a first impression."),
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Run a paper's experiments on Adult and Census (SHOAL_DATA) and set what it prints beside what comes out here.

    Example: shoal reproduce 002
    """
    from shoal.reproduce import PAPERS
    from shoal.reproduce import reproduce as run

    speaker = Speaker(as_json, quiet)
    results = {}
    for name in PAPERS if paper == "all" else [paper]:
        with speaker.progress(f"paper {name}") as progress:
            lines = run(name, quick=quick, progress=progress)
        results[name] = [line.to_dict() for line in lines]
        rows = [[line.what, line.printed, line.ours, line.verdict, line.note] for line in lines]
        speaker.table(f"{name}: {PAPERS[name]}", ["what", "printed", "ours", "verdict", "note"], rows)
    speaker.result(results)
