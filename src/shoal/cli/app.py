"""The application object that all commands attach to."""

from __future__ import annotations

import typer

from shoal.cli import (
    anonymize,
    attack,
    compare,
    demo,
    doctor,
    explore,
    init,
    measure,
    reproduce,
    schema,
    store,
    studio,
    taxonomy,
    verify,
)
from shoal.version import VERSION

app = typer.Typer(
    name="shoal",
    help="Turn a table about people into a table that can be published.\n\nStart with: shoal demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def common(
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    """Every command takes --json, --quiet and, for the full story of an error, --debug. Messages name columns and records, and
    values of the table only with --show-values."""
    if version:
        typer.echo(VERSION)
        raise typer.Exit


app.command("demo")(demo.demo)
app.command("init")(init.init)
app.command("anonymize")(anonymize.anonymize)
app.command("verify")(verify.verify)
app.command("attack")(attack.attack)
app.command("measure")(measure.measure)
app.command("compare")(compare.compare)
app.command("explore")(explore.explore)
app.command("reproduce")(reproduce.reproduce)
app.add_typer(store.store, name="store")
app.add_typer(taxonomy.taxonomy, name="taxonomy")
app.command("studio")(studio.studio)
app.command("schema")(schema.schema)
app.command("doctor")(doctor.doctor)
