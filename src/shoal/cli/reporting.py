"""`--report FILE --for owner|public`: the page that a command leaves beside what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from shoal.cli.output import Speaker
    from shoal.configuration import Configuration
    from shoal.report import Findings
    from shoal.schema import Schema
    from shoal.verifier import Evidence

REPORT = typer.Option(None, "--report", help="Also write a report for people, one page of HTML: report.html.")
FOR = typer.Option(
    None, "--for", help="Whom the report is for: owner (with figures of the original) or public (without)."
)


def reader(page: Path | None, for_: str | None, usual: str, *, original: bool = True) -> str:
    """Whom a report is for, asked before the work; `original`: whether the command has the original."""
    from shoal.errors import ConfigError, require_word

    if page is None:
        if for_ is not None:
            raise ConfigError("--for says whom a report is for, and there is none: add --report report.html.")
        return usual
    from shoal.report import READERS, require_place

    require_place(page)
    if not page.parent.is_dir():
        from shoal.errors import InputError

        raise InputError(f"The folder '{page.parent}' does not exist; make it first.")
    chosen = for_ or usual
    require_word("--for", chosen, READERS)
    if chosen == "owner" and not original:
        raise ConfigError(
            "--for owner tells about the original, which this command does not have: use shoal measure, or --for public."
        )
    return chosen


def leave(page: Path, found: Findings, speaker: Speaker, left: str = "") -> None:
    """Write the report and say where it is; `left` is what is there if somebody stops it."""
    from shoal.errors import Cancelled
    from shoal.report import write_page

    try:
        with speaker.progress("report") as progress:
            write_page(page, found.found_out(progress))
    except Cancelled as stopped:
        raise Cancelled(stopped.stage, stopped.share, f"{left}The report was not written.") from None
    speaker.say(f"Report: {page}, for the {'owner' if found.for_owner else 'public'}.")


def judged(
    masked: Path,
    table: pl.DataFrame,
    schema: Schema,
    evidence: Evidence,
    configuration: Configuration | None,
    *,
    cells: pl.DataFrame | None = None,
    **more: Any,
) -> Findings:
    """What a report of a file is made of, whoever made it; `more` is the strength of an intruder, what further attacks found
    (`extra`) and the `original`.
    """
    from shoal.policy import Policy
    from shoal.release import file_digest
    from shoal.report import Findings, Published

    config = configuration.config if configuration is not None else None
    policy = Policy.from_config(config.policy) if config is not None and config.policy else Policy(())
    settings: dict[str, Any] = {} if config is None else {"recode": config.release.recode}
    digest = file_digest(masked)
    found = Published.of(
        masked.name,
        table,
        schema,
        policy,
        evidence,
        cells=cells,
        settings=settings,
        digest=digest,
        strength=more.get("strength", 1),
    )
    return Findings(found, more.get("original"), more.get("extra", ()))
