"""`shoal measure`: what any masked file lost against its original, whoever made it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shoal.cli.output import JSON, QUIET, SEED, Speaker
from shoal.cli.reporting import FOR, REPORT, judged, leave, reader

if TYPE_CHECKING:
    from shoal.configuration import Configuration
    from shoal.measures.masked import MaskedMeasures
    from shoal.microdata import Microdata


def measure(
    original: Path = typer.Argument(..., help="The original table."),
    masked: Path = typer.Argument(..., help="The masked file, its records in any order."),
    config: Path = typer.Option("shoal.toml", "--config", "-c", help="Roles, domains and taxonomies."),
    aligned: bool = typer.Option(False, "--aligned", help="Both files have the same records in the same order."),
    queries: int = typer.Option(1000, "--queries", min=0, help="Random counting queries to compare; 0 for none."),
    predict: str | None = typer.Option(None, "--predict", help="A column that a classifier shall predict."),
    seed: int | None = SEED,
    page: Path | None = REPORT,
    for_: str | None = FOR,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Every loss measure of a masked file, and what an analyst keeps: answers to counts, accuracy of a classifier.

    Example: shoal measure patients.csv masked.csv -c shoal.toml
    """
    from shoal.configuration import read_config
    from shoal.configured import load
    from shoal.front import measure as ask

    speaker = Speaker(as_json, quiet)
    whom = reader(page, for_, "owner")
    configuration = read_config(config)
    chosen = configuration.config.method.seed if seed is None else seed
    with speaker.progress("measuring") as progress:
        with progress.stage("reading", 0.1):
            data = load(configuration, original)
        with progress.stage() as part:
            found = ask(
                data,
                masked,
                policy=configuration if configuration.config.policy else None,
                aligned=aligned,
                averages=configuration.config.release.recode == "microaggregate",
                queries=queries,
                predict=predict,
                seed=chosen,
                progress=part,
            )
    report(found.found, speaker)
    if found.queries is not None:
        speaker.say(
            f"Half of {found.queries.queries:,} random counting queries are off by less than {found.queries.median:.1%}, "
            f"one in ten by more than {found.queries.percentile_90:.1%}."
        )
    if found.classifier is not None:
        accuracy = found.classifier
        speaker.say(
            f"A classifier of '{predict}' is right in {accuracy.masked:.1%} of the masked records, in "
            f"{accuracy.original:.1%} of the original ones and in {accuracy.baseline:.1%} without looking."
        )
    if page is not None:
        _leave(page, whom, masked, configuration, data, found.found, chosen, speaker)
    speaker.result(found.to_dict())


def _leave(
    page: Path,
    whom: str,
    masked: Path,
    configuration: Configuration,
    data: Microdata,
    found: MaskedMeasures,
    seed: int,
    speaker: Speaker,
) -> None:
    """The report of a file beside its original."""
    from shoal.io.written import read_written
    from shoal.policy import Policy
    from shoal.report import Original
    from shoal.verifier import masked_schema, verify

    written = read_written(masked, missing=configuration.schema.missing)
    schema = masked_schema(data.schema, written.table)
    policy = Policy.from_config(configuration.config.policy) if configuration.config.policy else Policy(())
    evidence = verify(written.table, policy, schema, cells=written.cells)
    settings = {
        "policy": policy,
        "seed": seed,
        "recode": configuration.config.release.recode,
        "suppressed": "drop" if written.table.height < data.frame.height else "mask",
    }
    original = Original(data, found.measures, settings) if whom == "owner" else None
    leave(
        page,
        judged(masked, written.table, schema, evidence, configuration, cells=written.cells, original=original),
        speaker,
    )


def report(found: MaskedMeasures, speaker: Speaker) -> None:
    """Totals, attributes and notes, for people."""
    totals = found.measures.to_dict()
    rows = [[name, value] for name, value in totals.items() if name != "attributes"]
    speaker.table("What it cost", ["measure", "value"], rows)
    shown = ("il", "ncp", "ncp_published", "granularity", "distortion")
    by_attribute = found.measures.attributes.items()
    attributes = [[name, *(shares[key] for key in shown)] for name, shares in by_attribute]
    speaker.table("By attribute", ["attribute", *shown], attributes)
    for note in found.notes:
        speaker.say(note)
