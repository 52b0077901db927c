"""`shoal demo`: the whole road on a synthetic hospital."""

from __future__ import annotations

import shutil
from pathlib import Path

import typer

from shoal.cli.anonymize import report, told
from shoal.cli.output import JSON, QUIET, Speaker
from shoal.compiling import compile_beside
from shoal.configured import load, release_of

READMITTED = 0.3
"""The share of admissions that are somebody's second or later one."""


def demo(
    folder: Path = typer.Option("demo", "--folder", help="Where to put the files; made if it is not there."),
    records: int = typer.Option(5_000, "--records", "-n", min=100, help="How many admissions to make up."),
    seed: int = typer.Option(7, "--seed", min=0, help="Another seed is another hospital."),
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Make up a hospital, mask its table, verify the result, and leave everything in a folder to play with.

    Example: shoal demo --records 20000
    """
    from shoal.configuration import read_config
    from shoal.datasets import TAXONOMIES, hospital, hospital_config, taxonomy_path
    from shoal.errors import Cancelled
    from shoal.io.atomic import atomic_write_text
    from shoal.io.files import write_table
    from shoal.manifest import manifest_path
    from shoal.policy import Policy
    from shoal.report import report_release
    from shoal.verifier import verify_file

    speaker = Speaker(as_json, quiet)
    folder.mkdir(parents=True, exist_ok=True)
    patients, config, masked = folder / "patients.csv", folder / "shoal.toml", folder / "masked.csv"
    table = hospital(records, seed, readmitted=READMITTED)
    write_table(table, patients, force=True)
    for name in TAXONOMIES:
        shutil.copy(taxonomy_path(name), folder / f"{name}.csv")
    atomic_write_text(config, hospital_config(patients.name, readmitted=True), force=True)
    people = table["patient"].n_unique()
    speaker.say(
        f"1. A made-up hospital with {records:,} admissions of {people:,} patients: {patients}, and its configuration: {config}"
    )

    configuration = read_config(config)
    if speaker.say_if_cold():
        compile_beside(persons=True)
    try:
        with speaker.progress("masking") as progress:
            with progress.stage(weight=0.95) as part:
                release = release_of(configuration, load(configuration), part, seed=seed)
            with progress.stage("writing") as part:
                release.write(masked, force=True, progress=part)
    except Cancelled as stopped:
        left = f"The made-up hospital is in '{folder}'; it was not masked."
        raise Cancelled(stopped.stage, stopped.share, left) from None
    speaker.say(f"2. Masked with the policy {release.policy}: {masked}")
    speaker.table("What a reader sees", release.masked.columns, release.masked.head(5).rows())
    report(release, speaker)

    policy = Policy.from_config(configuration.config.policy)
    found = verify_file(masked, policy, configuration.schema).require()
    speaker.say(
        f"3. Read back from the file alone and verified: classes of {found.smallest:,} patients or more, counted by their "
        f"tokens. The evidence is in {manifest_path(masked)}"
    )
    page = report_release(release, folder / "report.html", name=masked.name)
    speaker.say(f"4. What to look at before signing, to open in a browser: {page}")
    speaker.say(f"Next: change k or p in {config}, then  shoal anonymize -c {config} -o {masked} --force")
    speaker.result({"folder": str(folder), **told(release)})
