"""`shoal anonymize`: a file goes in, a verified masked file and its manifest come out."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.output import JSON, PERSON, QUIET, SEED, Speaker
from shoal.cli.reporting import FOR, REPORT, leave, reader

if TYPE_CHECKING:
    import polars as pl

    from shoal.declaration import Examination
    from shoal.microdata import Microdata
    from shoal.progress import Progress
    from shoal.release import Release
    from shoal.schema import Configuration


def anonymize(
    config: Path = typer.Option("shoal.toml", "--config", "-c", help="The configuration; make one with shoal init."),
    output: Path = typer.Option(
        ..., "--output", "-o", help="The masked file: csv, tsv, parquet, arrow, jsonl or xlsx."
    ),
    source: Path | None = typer.Argument(None, help="The table, when not the one named in the configuration."),
    force: bool = typer.Option(False, "--force", help="Overwrite an existing output."),
    algorithm: str | None = typer.Option(None, "--algorithm", "-a", help="Instead of the configured algorithm."),
    person: str | None = PERSON,
    seed: int | None = SEED,
    safe_csv: bool = typer.Option(
        False, "--safe-csv", help="Put an apostrophe before cells that spreadsheets would run as formulas (text files)."
    ),
    page: Path | None = REPORT,
    for_: str | None = FOR,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Mask a table so that it satisfies its policy, write it, and verify the file before it gets its name.

    Example: shoal anonymize -c shoal.toml -o masked.csv --report report.html
    """
    from shoal.io.files import check_writable_format
    from shoal.manifest import manifest_path, secret_path
    from shoal.policy import Policy
    from shoal.readable import require_fitting
    from shoal.release import formulas
    from shoal.schema import read_config

    speaker = Speaker(as_json, quiet)
    configuration = read_config(config).with_person(person)
    check_writable_format(output)
    whom = reader(page, for_, "owner")
    refuse_existing(output, force)
    refuse_inputs(output, configuration, source)
    policy = Policy.from_config(configuration.config.policy)
    with speaker.progress("masking") as progress:
        with progress.stage("reading", 0.1):
            data = load(configuration, source)
            require_fitting(data, policy, output)
        speaker.say_if_cold()
        with progress.stage(weight=0.85) as part:
            release = release_of(configuration, data, part, algorithm, seed)
        with progress.stage("writing") as part:
            release.write(output, force=force, safe_csv=safe_csv, progress=part)
    report(release, speaker)
    for note in release.evidence.notes:
        speaker.say(note)
    for name, count in ({} if safe_csv else formulas(release.masked)).items():
        speaker.say(
            f"Column '{name}': spreadsheets would run {count} of its cells as formulas; --safe-csv puts an apostrophe "
            "before them."
        )
    if page is not None:
        from shoal.release import file_digest
        from shoal.report import findings_of

        again = f"shoal anonymize -c {config} -o {output}{f' -a {algorithm}' if algorithm else ''}"
        again += f" --seed {seed}" if seed is not None else ""
        found = findings_of(release, whom, name=output.name, command=again, digest=file_digest(output))
        leave(page, found, speaker, f"'{output}' is written. ")
    speaker.say(f"Written: {output} and {manifest_path(output)}")
    speaker.say(f"Keep to yourself: {secret_path(output)}, with which the release can be made again and compared.")
    speaker.result({"output": str(output), "manifest": str(manifest_path(output)), **told(release)})


def told(release: Release) -> dict[str, Any]:
    """What a program that runs the command is told: both halves, since it holds the original anyway."""
    return {**release.manifest, **release.secret}


def refuse_existing(output: Path, force: bool) -> None:
    """Say no before the work, not after it."""
    from shoal.errors import InputError

    if output.exists() and not force:
        raise InputError(f"'{output}' already exists; choose another name or add --force.")
    if not output.parent.is_dir():
        raise InputError(f"The folder '{output.parent}' does not exist; make it first.")
    if not os.access(output.parent, os.W_OK):
        raise InputError(
            f"The folder '{output.parent}' cannot be written to; change its permissions or choose another."
        )


def refuse_inputs(output: Path, configuration: Configuration, source: Path | None) -> None:
    """No output takes the place of what it is made from: the table, the configuration or a taxonomy, --force or not."""
    from shoal.errors import InputError
    from shoal.manifest import manifest_path, secret_path

    config = configuration.config
    named = [source, configuration.path, *(configuration.folder / name for name in [config.source.path] if name)]
    named += [configuration.folder / a.taxonomy for a in config.attributes.values() if isinstance(a.taxonomy, str)]
    for place in (output, manifest_path(output), secret_path(output)):
        for one in named:
            if one is not None and one.exists() and place.exists() and place.samefile(one):
                raise InputError(f"'{place}' is what the release is made from; choose another name for the output.")


def load(configuration: Configuration, path: Path | None = None) -> Microdata:
    """The configured table, encoded."""
    from shoal.microdata import Microdata

    table, file = read_source(configuration, path)
    data = Microdata.of_table(table, configuration, missing=configuration.config.method.missing)
    return replace(data, source=file)


def read_source(configuration: Configuration, path: Path | None = None) -> tuple[pl.DataFrame, Path | None]:
    """The configured table as it is, or that of another file; and the file, if it came from one."""
    from shoal.errors import ConfigError
    from shoal.io.files import read_table
    from shoal.io.sql import read_sql

    source = configuration.config.source
    if path is None and source.url is not None:
        return read_sql(source.url, table=source.table, query=source.query, missing=source.missing), None
    if path is None and source.path is None:
        raise ConfigError("[source] names no table; add path = or url =, or give a file on the command line.")
    chosen = path if path is not None else configuration.folder / str(source.path)
    return read_table(chosen, **source.reading), chosen


def release_of(
    configuration: Configuration,
    data: Microdata,
    progress: Progress,
    algorithm: str | None = None,
    seed: int | None = None,
) -> Release:
    """Walk the road with the configured settings."""
    from shoal.algorithms.options import require_options
    from shoal.policy import Policy
    from shoal.road import anonymize as walk

    method, publication = configuration.config.method, configuration.config.release
    # Options that no algorithm has could be taken for parameters of the road.
    require_options(algorithm or method.algorithm, method.options)
    return walk(
        data,
        Policy.from_config(configuration.config.policy),
        algorithm=algorithm or method.algorithm,
        objective=method.objective,
        refine=method.refine,
        suppress=method.suppress,
        seed=method.seed if seed is None else seed,
        recode=publication.recode,
        intervals=publication.intervals,
        order=publication.order,
        suppressed=publication.suppressed,
        progress=progress,
        **method.options,
    )


def report(release: Release, speaker: Speaker) -> None:
    """Measures and evidence, for people."""
    from shoal.declaration import Examination

    measures: dict[str, Any] = release.measures.to_dict()
    shown = ["classes", "smallest_class", "ncp", "granularity", "il", "dm", "avg", "distortion", "suppressed"]
    speaker.table("What it cost", ["measure", "value"], [[name, measures[name]] for name in shown])
    evidence(release.evidence.to_dict(), speaker)
    published(Examination.from_dict(release.manifest["published_as_it_is"]), speaker)


def evidence(found: dict[str, Any], speaker: Speaker) -> None:
    """The verifier's findings as a table."""
    rows = [
        [
            check["rule"],
            check["required"],
            check["strongest"],
            "holds" if check["holds"] else f"{check['failing']} classes fail",
        ]
        for check in found["checks"]
    ]
    who = f"{found['records']:,} records" + (f" of {found['persons']:,} persons" if found.get("persons") else "")
    speaker.table(
        f"Verified on {who} in {found['classes']:,} classes",
        ["rule", "asked", "found", "verdict"],
        rows,
    )


def published(found: Examination, speaker: Speaker) -> None:
    """What was found about the columns that are published as they are."""
    for finding in found.findings:
        speaker.say(f"{'!' if finding.refused else '·'} {finding}")
    if found.columns:
        speaker.say(
            f"· Together, {', '.join(found.columns)} are published as they are: {found.alone:,} of {found.records:,} "
            f"{found.counted} are alone with their values of them. The policy says nothing about whoever knows these."
        )
