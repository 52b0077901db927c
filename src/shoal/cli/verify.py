"""`shoal verify`: audit any masked file, whoever made it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.anonymize import evidence, published
from shoal.cli.output import JSON, PERSON, QUIET, Speaker
from shoal.cli.reporting import FOR, REPORT, judged, leave, reader
from shoal.configured import load

if TYPE_CHECKING:
    from shoal.configuration import Configuration
    from shoal.policy import Policy
    from shoal.verifier import Strength

DEFAULT = Path("shoal.toml")


def verify(
    masked: Path = typer.Argument(..., help="The masked file."),
    config: Path | None = typer.Option(
        None, "--config", "-c", help="Roles, and the policy if there is one; shoal.toml where it is there."
    ),
    person: str | None = PERSON,
    manifest: bool = typer.Option(
        False, "--manifest", help="Hold the manifest beside the file against it: digest, policy, every claim."
    ),
    secret: Path | None = typer.Option(
        None,
        "--secret",
        help="The owner's half of the manifest: make the release again from the original, and compare bytes.",
    ),
    page: Path | None = REPORT,
    for_: str | None = FOR,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Check a masked file against the policy, from what is written in it alone. Exit code 1 names the classes that fail.

    Classes are those a reader sees: 34, 34.0 and " 34" are three cells. Sensitive values that a reader takes for one (flu, Flu)
    are one, spellings of missing are none, and columns that the configuration does not know are refused. Without a
    configuration it says which role it takes each column to have, and why.
    It also says, with or without a policy, how strong the file is by every model: the largest k, p, l … and the
    smallest t, alpha, breach that hold.

    Example: shoal verify masked.csv -c shoal.toml
    """
    from shoal.configuration import read_config
    from shoal.declaration import examine as question
    from shoal.errors import VerificationError
    from shoal.io.written import read_written
    from shoal.policy import Policy
    from shoal.schema import Schema
    from shoal.verifier import assumed_roles, assumed_schema, audit, masked_schema
    from shoal.verifier import verify as examine

    speaker = Speaker(as_json, quiet)
    reader(page, for_, "public", original=False)
    configuration = read_config(config or DEFAULT) if config is not None or DEFAULT.is_file() else None
    if configuration is not None and person is not None:
        configuration = configuration.with_person(person, published=True)
    declared = configuration.schema if configuration else Schema({})
    with speaker.progress("verifying") as progress, progress.stage("reading"):
        written = read_written(masked, missing=declared.missing)
    told: dict[str, Any] = {}
    if configuration is None:
        assumed = assumed_roles(written.table)
        schema = assumed_schema(assumed)
        told["assumed"] = [vars(column) for column in assumed]
        rows = [[column.name, column.role, column.why] for column in assumed]
        speaker.table("No configuration: roles as they look", ["column", "role", "why"], rows)
    else:
        schema = masked_schema(declared, written.table)
    claimed = configuration.config.policy if configuration else {}
    policy = Policy.from_config(claimed) if claimed else None
    with speaker.progress("verifying") as progress:
        with progress.stage("testing the policy", 0.4) as part:
            found = examine(
                written.table, policy or Policy(()), schema, cells=written.cells, alike=written.alike, progress=part
            )
        with progress.stage("trying every model") as part:
            strengths = audit(written.table, schema, policy, cells=written.cells, alike=written.alike, progress=part)
    told |= found.to_dict()
    if policy is None:
        told["passed"] = None if not found.problems else False
        speaker.say(
            f"{found.records:,} records in {found.classes:,} classes of {found.smallest:,} to {found.largest:,}; "
            f"{'the configuration has' if configuration else 'there is'} no policy to check."
        )
    else:
        evidence(told, speaker)
    for note in found.notes:
        speaker.say(note)
    report(strengths, speaker)
    asis = question(written.table, schema)
    published(asis, speaker)
    speaker.result(
        {**told, "strongest": [strength.to_dict() for strength in strengths], "published_as_it_is": asis.to_dict()}
    )
    if page is not None:
        leave(page, judged(masked, written.table, schema, found, configuration, cells=written.cells), speaker)
    found.require()
    if manifest:
        from shoal.claims import Judged, broken_claims, read_half
        from shoal.manifest import manifest_path

        judged_file = Judged(masked, written, found, policy, declared, schema)
        broken = list(broken_claims(read_half(manifest_path(masked)), judged_file))
        if broken:
            raise VerificationError(" ".join(broken))
        speaker.say("Every claim of the manifest holds.")
    if secret is not None:
        _again(masked, secret, configuration, policy, speaker, manifest=manifest)
    if configuration is not None:
        asis.require(VerificationError)


def _again(
    masked: Path,
    secret: Path,
    configuration: Configuration | None,
    policy: Policy | None,
    speaker: Speaker,
    *,
    manifest: bool,
) -> None:
    """Make the release again from the configured table."""
    from shoal.claims import read_half, require_same
    from shoal.errors import ConfigError
    from shoal.manifest import manifest_path

    if configuration is None or policy is None:
        raise ConfigError(
            "--secret makes the release again and needs the configuration with its policy: add -c shoal.toml."
        )
    claims = read_half(manifest_path(masked)) if manifest else None
    require_same(masked, read_half(secret), load(configuration), policy, claims)
    speaker.say("Made again from the original: the same, byte for byte.")


def report(strengths: list[Strength], speaker: Speaker) -> None:
    """The strongest parameter of every model, as a table."""
    rows = []
    for strength in strengths:
        settings = ", ".join(f"{key} = {value}" for key, value in strength.settings.items())
        rows.append([strength.model, strength.attribute, settings, f"{strength.parameter} =", strength.strongest])
    headers = ["model", "attribute", "with", "", "holds"]
    speaker.table("How strong it is by every model", headers, rows)
