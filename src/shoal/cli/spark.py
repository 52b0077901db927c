"""`shoal anonymize --engine spark`: tables that Spark reads, masked where they are (docs/scale.md#spark)."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli.output import Speaker

if TYPE_CHECKING:
    from shoal.cli.large import Outcome
    from shoal.configuration import Configuration

CATALOG = "catalog:"
"""What an output begins with that is a table of Spark's catalog."""


def anonymize_on_spark(
    configuration: Configuration,
    source: Path | None,
    target: str,
    master: str | None,
    speaker: Speaker,
    changed: dict[str, Any],
    wanted: Outcome,
) -> None:
    """Mask what the configuration names (Parquet, delimited text, or a table of the catalog) and write what passed.

    `target` is a folder of Parquet or text, anywhere that Spark writes to, or a table of the catalog: catalog:people.masked.
    """
    from shoal.cli.anonymize import report, told
    from shoal.cli.large import say_formulas, settings_of
    from shoal.engines.spark_files import Files, absolute
    from shoal.engines.spark_release import anonymize_spark, read_source, require_folder
    from shoal.engines.spark_session import spark_session
    from shoal.policy import Policy

    given = configuration.config.source
    table = target.removeprefix(CATALOG) if target.startswith(CATALOG) else None
    if table is None:
        require_folder(target)
        target = absolute(target)
    place = _place(configuration, source)
    policy = Policy.from_config(configuration.config.policy)
    session = spark_session(master)
    speaker.say(f"Engine: spark, at {session.sparkContext.master}.")
    frame, as_text = read_source(session, place, delimiter=given.delimiter, encoding=given.encoding)
    staging = None if table is not None else target.rstrip("/").rpartition("/")[0] or "/"
    if staging is not None:
        # Asked before the work, and once more when the release gets its name.
        Files(session, staging).require_free([target, f"{target}.manifest.json", f"{target}.secret.json"], wanted.force)
    with ExitStack() as kept:
        with speaker.progress("masking") as progress:
            with progress.stage(weight=0.95) as part:
                settings = settings_of(configuration, changed)
                release = anonymize_spark(
                    frame, configuration.schema, policy, settings, staging=staging, as_text=as_text, progress=part
                )
                kept.enter_context(release)
            with progress.stage("writing") as part:
                if table is not None:
                    release.save_table(table)
                else:
                    release.write(target, force=wanted.force, safe_csv=wanted.safe_csv, progress=part)
        risky = {} if wanted.safe_csv or target.endswith(".parquet") or table is not None else release.formulas()
        report(release, speaker)
        for note in release.evidence.notes:
            speaker.say(note)
        say_formulas(risky, speaker)
        wanted.report(release, table or target.rpartition("/")[2], release.engine.released, speaker)
    if table is not None:
        speaker.say(f"Written: the table {table}, with its manifest as the property shoal.manifest")
    else:
        speaker.say(f"Written: {target} and {target}.manifest.json")
        speaker.say(f"Keep to yourself: {target}.secret.json, with the settings and the key of the commitment.")
    speaker.result({"output": target, **told(release)})


def _place(configuration: Configuration, source: Path | None) -> str:
    """The path or the table of the catalog that is masked."""
    from shoal.errors import ConfigError

    given = configuration.config.source
    if source is not None:
        return str(source.absolute())
    if given.path is not None:
        return given.path if ":/" in given.path else str((configuration.folder / given.path).absolute())
    if given.table is not None and given.url is None:
        return given.table
    raise ConfigError(
        "Spark reads [source] path (Parquet or delimited text) or [source] table, the name of a table of its catalog; "
        "write one of them."
    )
