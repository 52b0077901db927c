"""`shoal verify`: audit any masked file, whoever made it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.anonymize import evidence
from shoal.cli.output import JSON, QUIET, Speaker

if TYPE_CHECKING:
    from shoal.declaration import Examination
    from shoal.verifier import Strength


def verify(
    masked: Path = typer.Argument(..., help="The masked file."),
    config: Path = typer.Option("shoal.toml", "--config", "-c", help="Roles, and the policy if there is one."),
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Check a masked file against the policy, from its published values alone. Exit code 1 names the classes that fail.

    It also says, with or without a policy, how strong the file is by every model: the largest k, p, l … and the
    smallest t, alpha, breach that hold.

    Example: shoal verify masked.csv -c shoal.toml
    """
    from shoal.declaration import examine as question
    from shoal.errors import VerificationError
    from shoal.io.files import read_table
    from shoal.policy import Policy
    from shoal.schema import read_config
    from shoal.verifier import audit, masked_schema
    from shoal.verifier import verify as examine

    speaker = Speaker(as_json, quiet)
    configuration = read_config(config)
    table = read_table(masked, missing=configuration.config.source.missing)
    schema = masked_schema(configuration.schema, table)
    policy = Policy.from_config(configuration.config.policy) if configuration.config.policy else None
    found = examine(table, policy or Policy(()), schema)
    told: dict[str, Any] = found.to_dict()
    if policy is None:
        told["passed"] = None
        speaker.say(
            f"{found.records:,} records in {found.classes:,} classes of {found.smallest:,} to {found.largest:,}; "
            "the configuration has no policy to check."
        )
    else:
        evidence(told, speaker)
    strengths = audit(table, schema, policy)
    report(strengths, speaker)
    asis = question(table, schema)
    declared(asis, speaker)
    speaker.result(
        {**told, "strongest": [strength.to_dict() for strength in strengths], "published_as_it_is": asis.to_dict()}
    )
    found.require()
    asis.require(VerificationError)


def declared(found: Examination, speaker: Speaker) -> None:
    """What was found about the columns that are published as they are."""
    for finding in found.findings:
        speaker.say(f"{'!' if finding.refused else '·'} {finding}")
    if found.columns:
        speaker.say(
            f"· Together, {', '.join(found.columns)} are published as they are: {found.alone:,} of {found.records:,} "
            "records are alone with their values of them. The policy says nothing about whoever knows these."
        )


def report(strengths: list[Strength], speaker: Speaker) -> None:
    """The strongest parameter of every model, as a table."""
    rows = []
    for strength in strengths:
        settings = ", ".join(f"{key} = {value}" for key, value in strength.settings.items())
        rows.append([strength.model, strength.attribute, settings, f"{strength.parameter} =", strength.strongest])
    headers = ["model", "attribute", "with", "", "holds"]
    speaker.table("How strong it is by every model", headers, rows)
