"""`shoal anonymize`: a file goes in, a verified masked file and its manifest come out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from shoal.cli.ahead import digest_ahead, loops_ahead
from shoal.cli.large import ENGINE, MASTER, MEMORY, Asked, Outcome, anonymize_large, chosen, say_formulas
from shoal.cli.output import JSON, PERSON, QUIET, SEED, Speaker
from shoal.cli.reporting import FOR, REPORT, leave, reader
from shoal.cli.short import QUASI, SAVE, SENSITIVE, K, P, Said, command, configured, keep, look_at_the_rest
from shoal.compiling import compile_beside
from shoal.configured import load, release_of

if TYPE_CHECKING:
    from shoal.configuration import Configuration
    from shoal.declaration import Examination
    from shoal.engines.walk import LargeRelease
    from shoal.measures.bounds import Effort
    from shoal.release import Release


def anonymize(
    config: Path | None = typer.Option(
        None, "--config", "-c", help="The configuration, shoal.toml by default; make one with shoal init."
    ),
    output: str = typer.Option(
        ...,
        "--output",
        "-o",
        help="The masked file: csv, tsv, parquet, arrow, jsonl or xlsx; or, with --table, a database: sqlite:///release.db",
    ),
    table: str | None = typer.Option(None, "--table", help="The table to write, where the output is a database."),
    source: Path | None = typer.Argument(None, help="The table, when not the one named in the configuration."),
    force: bool = typer.Option(False, "--force", help="Overwrite an existing output."),
    algorithm: str | None = typer.Option(None, "--algorithm", "-a", help="Instead of the configured algorithm."),
    quasi: list[str] = QUASI,
    sensitive: list[str] = SENSITIVE,
    person: str | None = PERSON,
    k: int | None = K,
    p: int | None = P,
    save: Path | None = SAVE,
    seed: int | None = SEED,
    prepare: Path | None = typer.Option(
        None,
        "--prepare",
        help="three_layer: keep its clusters in this file, or take them from it: one clustering for many k.",
    ),
    engine: str | None = ENGINE,
    memory: str | None = MEMORY,
    master: str | None = MASTER,
    safe_csv: bool = typer.Option(
        False, "--safe-csv", help="Put an apostrophe before cells that spreadsheets would run as formulas (text files)."
    ),
    bound: str = typer.Option(
        "fast",
        "--bound",
        help="How near the release is to the proven least loss: fast (about two seconds), thorough (a minute), a number of "
        "seconds, or none.",
    ),
    page: Path | None = REPORT,
    for_: str | None = FOR,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Mask a table so that it satisfies its policy, write it, and verify the file before it gets its name.

    Without a configuration, columns that are not named are left out; --save keeps what was said in a file.

    Example: shoal anonymize -c shoal.toml -o masked.csv --report report.html

    Example: shoal anonymize visits.csv -o masked.csv --quasi age,zip --sensitive diagnosis --person pid -k 5 -p 3
    """
    from shoal.cli.target import target_of
    from shoal.configuration import read_config
    from shoal.errors import ConfigError
    from shoal.policy import Policy
    from shoal.release import formulas

    speaker = Speaker(as_json, quiet)
    effort = bound_effort(bound)
    said = Said(quasi, sensitive, k, p, save)
    if said.given(config):
        method = {"algorithm": algorithm, "seed": seed}
        said, configuration = configured(said, source, output, person, method, force, speaker)
    else:
        configuration = read_config(config or Path("shoal.toml")).with_person(person)
    whom = reader(page, for_, "owner")
    how = command(said, source, person) if said.quasi else f"-c {config or 'shoal.toml'}"
    options = (f" -a {algorithm}" if algorithm else "") + (f" --seed {seed}" if seed is not None else "")
    changed = {"algorithm": algorithm, "seed": seed}
    if (engine or configuration.config.method.engine) == "spark":
        from shoal.cli.spark import anonymize_on_spark

        Asked(table, prepare, tuple(said.quasi)).require_possible("spark")
        again = f"shoal anonymize {how} -o {output}{options} --engine spark"
        wanted = Outcome(force, safe_csv, page, whom, again)
        anonymize_on_spark(configuration, source, output, master, speaker, changed, wanted)
        return
    if master is not None:
        raise ConfigError("--master says where Spark runs: it belongs to --engine spark.")
    target = target_of(output, table)
    target.require_free(force)
    target.refuse_inputs(configuration, source)
    policy = Policy.from_config(configuration.config.policy)
    choice = chosen(configuration, source, engine, memory)
    if choice.engine != "memory":
        Asked(table, prepare, tuple(said.quasi)).require_possible(choice.engine)
        again = f"shoal anonymize {how} -o {target}{options} --engine {choice.engine}"
        wanted = Outcome(force, safe_csv, page, whom, again)
        anonymize_large(configuration, source, Path(output), choice, speaker, changed, wanted)
        return
    with speaker.progress("masking") as progress:
        with progress.stage("reading", 0.1), loops_ahead():
            if source is not None and said.quasi:
                look_at_the_rest(said, configuration, source, speaker)
            data = load(configuration, source)
            target.require_fitting(data, policy)
        if speaker.say_if_cold():
            compile_beside(persons=data.persons is not None)
        more = {}
        if prepare is not None:
            from shoal.cli.preparing import prepared

            with progress.stage("clustering", 0.3) as part:
                more = prepared(prepare, configuration, data, part, algorithm, seed)
        with progress.stage(weight=0.85 if prepare is None else 0.55) as part, digest_ahead(data):
            release = release_of(configuration, data, part, algorithm, seed, more)
        near = None
        if effort is not None and (as_json or not quiet):
            with progress.stage("looking for the least loss", 0.5) as part:
                near = release.nearness(effort, progress=part)
        with progress.stage("writing") as part:
            target.write(release, force=force, safe_csv=safe_csv, progress=part)
    report(release, speaker)
    if near is not None:
        speaker.say(str(near))
    for note in release.evidence.notes:
        speaker.say(note)
    if not quiet:
        from shoal.advice import advice

        for sentence in advice(release.data, release.partition, release.data.rules(policy).k):
            speaker.say(f"· {sentence}")
    say_formulas({} if safe_csv or table or quiet else formulas(release.table), speaker)
    if page is not None:
        from shoal.report import findings_of

        # The target, unlike the output, has no password in it.
        again = f"shoal anonymize {how} -o {target}{options}"
        found = findings_of(release, whom, name=target.name, command=again, digest=target.digest(release))
        leave(page, found, speaker, f"'{target.name}' is written. ")
    speaker.say(f"Written: {target.name if table else output} and {target.manifest}")
    keep(said, configuration, speaker, force)
    speaker.say(f"Keep to yourself: {target.secret}, with which the release can be made again and compared.")
    least = {"bound": near.to_dict()} if near is not None else {}
    speaker.result({"output": str(target), "manifest": str(target.manifest), **told(release), **least})


def bound_effort(bound: str) -> Effort | None:
    """What --bound says; None for none."""
    from shoal.errors import ConfigError, shown

    if bound == "none":
        return None
    if bound in ("fast", "thorough"):
        return cast("Effort", bound)
    try:
        seconds = float(bound)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86_400:
        raise ConfigError(f"--bound {shown(bound)} is not allowed; write fast, thorough, none or a number of seconds.")
    return seconds


def told(release: Release | LargeRelease) -> dict[str, Any]:
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
    named += [configuration.folder / key for a in config.attributes.values() for key in a.key_files]
    for place in (output, manifest_path(output), secret_path(output)):
        for one in named:
            if one is not None and one.exists() and place.exists() and place.samefile(one):
                raise InputError(f"'{place}' is what the release is made from; choose another name for the output.")


def report(release: Release | LargeRelease, speaker: Speaker) -> None:
    """Measures and evidence, for people."""
    from shoal.declaration import Examination

    measures: dict[str, Any] = release.measures.to_dict()
    shown = ["classes", "smallest_class", "ncp", "granularity", "il", "dm", "avg", "distortion", "suppressed"]
    speaker.table("What it cost", ["measure", "value"], [[name, measures[name]] for name in shown])
    evidence(release.evidence.to_dict(), speaker)
    published(Examination.from_dict(release.secret["published_as_it_is"]), speaker)


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
