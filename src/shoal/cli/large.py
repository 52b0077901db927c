"""`shoal anonymize` for tables that are not read into memory (docs/scale.md)."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.output import Speaker

if TYPE_CHECKING:
    from shoal.configuration import Configuration
    from shoal.engines.choosing import Choice
    from shoal.engines.walk import LargeRelease

ENGINE = typer.Option(
    None,
    "--engine",
    help="Where records are kept: memory, duckdb (beyond memory), spark, or auto: memory while it fits.",
)
MASTER = typer.Option(
    None,
    "--master",
    help="Where Spark runs, such as spark://host:7077, yarn or local[4]; by default all cores of this machine.",
)
MEMORY = typer.Option(None, "--memory", help="How much memory may be taken, such as 4GB; by default what is free.")


@dataclass(frozen=True)
class Asked:
    """What else was asked for on the command line, by the name of the option."""

    table: str | None = None
    prepare: Path | None = None
    quasi: tuple[str, ...] = ()

    def require_possible(self, engine: str) -> None:
        """Refuse what needs the table in memory."""
        from shoal.errors import UnsupportedError

        asked = {
            "--table": self.table,
            "--prepare": self.prepare,
            "--quasi": self.quasi,
        }
        for option, value in asked.items():
            if value:
                raise UnsupportedError(
                    f"{option} needs the table in memory, and the engine is {engine}; leave it out, or say --engine memory."
                )


@dataclass(frozen=True)
class Outcome:
    """What is to come of it beside the table: may it replace another, with what in its texts, and which report for whom."""

    force: bool
    safe_csv: bool
    page: Path | None
    whom: str
    command: str
    """That makes the release again."""

    def report(self, release: LargeRelease, name: str, digest: str | None, speaker: Speaker) -> None:
        """Write the report, while the engine still has the table; nothing where none was asked for."""
        if self.page is None:
            return
        from shoal.cli.reporting import leave
        from shoal.report import findings_of

        found = findings_of(release, self.whom, name=name, command=self.command, digest=digest)
        leave(self.page, found, speaker, f"'{name}' is written. ")


def chosen(configuration: Configuration, source: Path | None, engine: str | None, memory: str | None) -> Choice:
    """The engine for the configured table, or another one."""
    from shoal.engines.choosing import choose

    given = configuration.config.source
    path = source
    if path is None and given.url is None and given.path is not None:
        path = configuration.folder / given.path
    return choose(engine or configuration.config.method.engine, path, memory)


def anonymize_large(
    configuration: Configuration,
    source: Path | None,
    target: Path,
    choice: Choice,
    speaker: Speaker,
    changed: dict[str, Any],
    wanted: Outcome,
) -> None:
    """Mask a table with the engine that was chosen; `changed` are settings from the command line."""
    from shoal.cli.anonymize import report, told
    from shoal.engines.choosing import said, source_of
    from shoal.engines.duck import BLOCKS, DuckEngine
    from shoal.engines.texts import require_format
    from shoal.engines.walk import walk
    from shoal.errors import UnsupportedError
    from shoal.policy import Policy
    from shoal.release import file_digest

    if choice.engine != "duckdb":
        raise UnsupportedError(f'engine = "{choice.engine}": say memory, duckdb or auto here.')
    kind = require_format(target)
    speaker.say(f"Engine: duckdb, with {said(choice.memory)} of memory: {choice.why}.")
    found = source_of(configuration, source)
    policy = Policy.from_config(configuration.config.policy)
    with ExitStack() as kept:
        with speaker.progress("masking") as progress:
            speaker.say_if_cold()
            engine = DuckEngine(found, memory=choice.memory)
            with progress.stage(weight=0.95) as part:
                release = walk(
                    engine,
                    configuration.schema,
                    policy,
                    settings_of(configuration, {**changed, "room": int(BLOCKS * choice.memory)}),
                    as_text=found.as_text,
                    progress=part,
                )
                kept.enter_context(release)
            with progress.stage("writing") as part:
                release.write(target, force=wanted.force, safe_csv=wanted.safe_csv, progress=part)
        risky = release.formulas() if kind == "text" and not wanted.safe_csv else {}
        report(release, speaker)
        for note in release.evidence.notes:
            speaker.say(note)
        say_formulas(risky, speaker)
        wanted.report(release, target.name, file_digest(target), speaker)
    from shoal.manifest import manifest_path, secret_path

    speaker.say(f"Written: {target} and {manifest_path(target)}")
    speaker.say(f"Keep to yourself: {secret_path(target)}, with the settings and the key of the commitment.")
    speaker.result({"output": str(target), "manifest": str(manifest_path(target)), **told(release)})


def settings_of(configuration: Configuration, changed: dict[str, Any]) -> Any:
    """The configured settings, and what the command line says instead."""
    from shoal.engines.walk import Settings

    method, publication = configuration.config.method, configuration.config.release
    given = {
        "algorithm": method.algorithm,
        "objective": method.objective,
        "refine": method.refine,
        "suppress": method.suppress,
        "seed": method.seed,
        "missing": method.missing,
        "options": method.options,
        "recode": publication.recode,
        "intervals": publication.intervals,
        "order": publication.order,
        "suppressed": publication.suppressed,
    }
    return Settings(**{**given, **{name: value for name, value in changed.items() if value is not None}})


def say_formulas(found: dict[str, int], speaker: Speaker) -> None:
    """Which columns a spreadsheet would run, with how many cells."""
    for name, count in found.items():
        speaker.say(
            f"Column '{name}': spreadsheets would run {count} of its cells as formulas; --safe-csv puts an apostrophe "
            "before them."
        )
