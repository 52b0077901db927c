"""`shoal verify`: audit any masked file, whoever made it."""

from __future__ import annotations

from pathlib import Path

import typer

from shoal.cli.anonymize import evidence
from shoal.cli.output import JSON, QUIET, Speaker


def verify(
    masked: Path = typer.Argument(..., help="The masked file."),
    config: Path = typer.Option("shoal.toml", "--config", "-c", help="Roles and policy."),
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Check a masked file against the policy, from its published values alone. Exit code 1 names the classes that fail.

    Example: shoal verify masked.csv -c shoal.toml
    """
    from shoal.io.files import read_table
    from shoal.policy import Policy
    from shoal.schema import read_config
    from shoal.verifier import masked_schema
    from shoal.verifier import verify as audit

    speaker = Speaker(as_json, quiet)
    configuration = read_config(config)
    table = read_table(masked, missing=configuration.config.source.missing)
    found = audit(table, Policy.from_config(configuration.config.policy), masked_schema(configuration.schema, table))
    evidence(found.to_dict(), speaker)
    speaker.result(found.to_dict())
    found.require()
