"""`shoal init`: look at a table, suggest who each column is, and write a configuration that says why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.anonymize import refuse_existing
from shoal.cli.output import JSON, QUIET, Speaker

if TYPE_CHECKING:
    import polars as pl

    from shoal.commented import Source
    from shoal.suggesting import Profile


def init(
    file: Path | None = typer.Argument(None, help="The table: csv, tsv, parquet, arrow, jsonl or xlsx."),
    output: Path = typer.Option("shoal.toml", "--output", "-o", help="The configuration to write."),
    url: str | None = typer.Option(None, "--url", help="Instead of a file, a database: sqlite:///registry.db"),
    table: str | None = typer.Option(None, "--table", help="The table of the database."),
    header: str | None = typer.Option(
        None, "--header", help="Column names of a file that has none, separated by commas."
    ),
    delimiter: str | None = typer.Option(
        None, "--delimiter", help="Between the values of a text file; found by default."
    ),
    encoding: str | None = typer.Option(None, "--encoding", help="Of a text file, such as cp1252; found by default."),
    sheet: str | None = typer.Option(
        None, "--sheet", help="Of an Excel file, by name or counted from 1; the one with most rows by default."
    ),
    skip_rows: int | None = typer.Option(
        None, "--skip-rows", min=0, help="Lines above the names of the columns, such as a title; found by default."
    ),
    skip_last: int | None = typer.Option(
        None, "--skip-last", min=0, help="Lines below the last record, such as totals; found by default."
    ),
    template: str | None = typer.Option(
        None, "--template", help="Rules of a field: hipaa-limited, health-registry, census, survey or education."
    ),
    force: bool = typer.Option(False, "--force", help="Overwrite an existing configuration."),
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Profile a table: suggest roles, kinds, taxonomies and a policy, say why, and write a commented shoal.toml.

    A template adds what a field asks of its tables, with the source of each rule, where the table's values are what it speaks of.

    Example: shoal init patients.csv --template hipaa-limited
    """

    from shoal.commented import config_text, count_of, proposed
    from shoal.io.atomic import atomic_write_text
    from shoal.pricing import priced
    from shoal.profiling import percent
    from shoal.suggesting import profile, read_as_found

    speaker = Speaker(as_json, quiet)
    refuse_existing(output, force)
    reading: dict[str, Any] = {"header": header, "delimiter": delimiter, "encoding": encoding, "sheet": sheet}
    reading |= {"skip_rows": skip_rows, "skip_last": skip_last}
    frame, source, label, told = _read(
        file, url, table, {key: one for key, one in reading.items() if one is not None}, output
    )
    found = profile(frame)
    found = replace(found, notes=(*told, *found.notes))
    if template is not None:
        from shoal.templates import applied

        found = applied(template, found)
    speaker.say_if_cold()
    with speaker.progress("trying the suggestions") as progress:
        found = priced(read_as_found(frame, found), found, progress)
    atomic_write_text(output, config_text(found, source, label, output.name), force=force)
    speaker.table(
        f"{label}: {count_of(found)}",
        ["column", "kind", "distinct", "missing", "role", "why"],
        [
            [c.name, c.kind, c.distinct, percent(c.missing), "left out" if c.left_out else c.role, c.why]
            for c in found.columns
        ],
    )
    if found.named("quasi"):
        speaker.say(f"Why anonymize: {found.reason}")
        speaker.say(f"Proposed: {proposed(found)}")
    for note in found.notes:
        speaker.say(f"Note: {note}")
    if found.consider:
        speaker.say(f"Consider as quasi-identifiers too, if somebody may know them: {_listed(found)}.")
    speaker.say(f"Written: {output!s}. Read it, then: shoal anonymize -c {output!s} -o masked.csv")
    speaker.result({"output": str(output), **found.to_dict()})


def _read(
    file: Path | None, url: str | None, table: str | None, reading: dict[str, Any], output: Path
) -> tuple[pl.DataFrame, Source, str, list[str]]:
    """The table, its `[source]`, what to call it, and what was found around it."""
    from shoal.configured import MISSING, found_around, read_as_text, relative
    from shoal.errors import ConfigError
    from shoal.io.sql import read_sql

    if (file is None) == (url is None):
        raise ConfigError("Give either a file, or a database with --url and --table.")
    if url is not None:
        if table is None or reading:
            raise ConfigError(
                "A database needs --url with --table, and brings its own column names: --header, --delimiter, --encoding, "
                "--sheet, --skip-rows and --skip-last are for files."
            )
        return read_sql(url, table=table), {"url": url, "table": table, "missing": MISSING}, f"table {table}", []
    assert file is not None
    if table is not None:
        raise ConfigError("--table belongs to a database: give --url with it, or leave it out.")
    if "header" in reading:
        reading["header"] = [name.strip() for name in reading["header"].split(",")]
    reading, notes = found_around(file, reading)
    source = {"path": relative(file, output.parent), **reading, "missing": MISSING}
    return read_as_text(file, reading), source, file.name, notes


def _listed(found: Profile) -> str:
    """The columns to consider, those that tell most first; of many the first."""
    from shoal.commented import LISTED

    names = [column.name for column in found.consider]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
