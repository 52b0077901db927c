"""`shoal schema`: the JSON Schema of shoal.toml, for editors."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from shoal.cli.anonymize import refuse_existing
from shoal.cli.output import JSON, QUIET, Speaker


def schema(
    output: Path | None = typer.Option(None, "--output", "-o", help="The file to write; printed if left out."),
    force: bool = typer.Option(False, "--force", help="Overwrite an existing file."),
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Print or write the JSON Schema of shoal.toml: every key, and every model of this installation with its parameters.

    Editors that know TOML complete and check a configuration that begins with the line #:schema ./shoal.schema.json

    Example: shoal schema -o shoal.schema.json
    """
    from shoal.io.atomic import atomic_write_text
    from shoal.policy import json_schema

    speaker, text = Speaker(as_json, quiet), json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    if output is None:
        typer.echo(text, nl=False)
        return
    refuse_existing(output, force)
    atomic_write_text(output, text, force=force)
    speaker.say(f"Written: {output!s}. Let your shoal.toml begin with #:schema ./{output.name}")
    speaker.result({"output": str(output)})
