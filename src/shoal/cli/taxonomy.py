"""`shoal taxonomy`: check, show, build and export the trees by which values become coarser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.anonymize import refuse_existing
from shoal.cli.output import JSON, QUIET, Speaker
from shoal.configured import read_source
from shoal.errors import ConfigError, InputError, VerificationError, raw, which

if TYPE_CHECKING:
    from shoal.configuration import Configuration
    from shoal.hierarchies import Hierarchy
    from shoal.schema import TaxonomySource
    from shoal.taxonomy import Taxonomy

taxonomy = typer.Typer(
    help="The trees by which values become coarser: what they do not know, how they look, and as files to edit.",
    no_args_is_help=True,
)

CONFIG = typer.Option("shoal.toml", "--config", "-c", help="The configuration.")
SOURCE = typer.Option(None, "--source", help="The table, when not the one named in the configuration.")
FORCE = typer.Option(False, "--force", help="Overwrite existing files.")
COLUMNS = typer.Argument(None, help="Columns; all that have a taxonomy, if left out.")


@taxonomy.command("check")
def check(
    columns: list[str] = COLUMNS,
    config: Path = CONFIG,
    source: Path | None = SOURCE,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Name everything that the taxonomies do not know, all columns and all values at once, with how many records have it.

    Values are shown with --show-values; else each is told by the first record that has it. Exit code 1 when there are gaps.

    Example: shoal taxonomy check -c shoal.toml --show-values
    """
    speaker = Speaker(as_json, quiet)
    found = _found(config, source, columns or [])
    speaker.table(
        "Taxonomies",
        ["column", "from", "levels", "leaves", "in use", "unknown values", "records with them"],
        [
            [
                one.column,
                one.source,
                one.tree.levels,
                one.tree.leaves,
                int((one.counts > 0).sum()),
                len(one.gaps),
                sum(gap.records for gap in one.gaps),
            ]
            for one in found
        ],
    )
    speaker.result({"taxonomies": [_told(one) for one in found]})
    missing = [one for one in found if one.gaps]
    if missing:
        raise VerificationError(
            f"{' '.join(_gaps(one) for one in missing)} Add them to the taxonomies, correct the data, or list them under "
            f"[source] missing{which()}."
        )
    speaker.say("Every value is known to its taxonomy.")


@taxonomy.command("show")
def show(
    columns: list[str] = COLUMNS,
    config: Path = CONFIG,
    source: Path | None = SOURCE,
    depth: int = typer.Option(0, "--depth", min=0, help="How many levels to show below the root; all by default."),
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Draw the trees, with how many records lie below each node. This prints values of the table: they are what the tree is of.

    Example: shoal taxonomy show occupation -c shoal.toml --depth 2
    """
    speaker = Speaker(as_json, quiet)
    found = _found(config, source, columns or [])
    for one in found:
        speaker.say(f"{one.column} ({one.source}, {one.tree.leaves:,} values, {one.tree.levels} levels)")
        for label, records, level in one.outline():
            if not depth or level <= depth:
                speaker.say(f"{'  ' * (level + 1)}{label or '(missing)'}  {records:,}")
    speaker.result({"taxonomies": [{**_told(one), "nodes": [list(node) for node in one.outline()]} for one in found]})


@taxonomy.command("build")
def build(
    column: str = typer.Argument(..., help="The column."),
    output: Path = typer.Option(..., "--output", "-o", help="The file to write: leaf;…;root, one line a value."),
    rule: str = typer.Option(
        "auto", "--rule", help="auto, prefix=3,2,0, intervals=5,10,20 or dates=month,year; auto by default."
    ),
    config: Path = CONFIG,
    source: Path | None = SOURCE,
    force: bool = FORCE,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Make a taxonomy of a column's values by a rule, and write it to a file to read and edit.

    Example: shoal taxonomy build occupation -o occupation.csv -c shoal.toml
    """
    from shoal.configuration import read_config
    from shoal.hierarchies import made_by

    speaker, configuration = Speaker(as_json, quiet), read_config(config)
    refuse_existing(output, force)
    table, _ = read_source(configuration, source)
    resolved = configuration.schema.resolve(table.columns)
    found = made_by(_rule(rule), table, column, resolved, configuration.config.method.missing)
    _write(found.tree, output, force)
    _say(found, output, configuration, speaker)
    speaker.result({**_told(found), "output": str(output)})


@taxonomy.command("export")
def export(
    columns: list[str] = COLUMNS,
    output: Path = typer.Option(
        "taxonomies", "--output", "-o", help="The folder to write them to; made if it is not there."
    ),
    config: Path = CONFIG,
    source: Path | None = SOURCE,
    force: bool = FORCE,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Write the taxonomies that are made from the table's values to files, one a column, as they are used now.

    Every published label of an automatic group stands in its file, with the values that it stands for. Edited and named in the
    configuration, a file takes the place of the rule; where it was not edited the release stays the same.

    Example: shoal taxonomy export -c shoal.toml -o taxonomies
    """
    from shoal.configuration import read_config

    speaker, configuration = Speaker(as_json, quiet), read_config(config)
    found = [one for one in _found(config, source, columns or []) if one.made or columns]
    if not found:
        raise ConfigError("No column has a taxonomy that is made from its values; those in files are files already.")
    files = _files(output, found)
    for file in files:
        if file.exists() and not force:
            raise InputError(f"'{file}' already exists; choose another folder or add --force.")
    output.mkdir(parents=True, exist_ok=True)
    for one, file in zip(found, files, strict=True):
        _write(one.tree, file, force)
        _say(one, file, configuration, speaker)
    speaker.result(
        {"taxonomies": [{**_told(one), "output": str(file)} for one, file in zip(found, files, strict=True)]}
    )


def _found(config: Path, source: Path | None, columns: list[str]) -> list[Hierarchy]:
    from shoal.configuration import read_config
    from shoal.hierarchies import hierarchies

    configuration = read_config(config)
    table, _ = read_source(configuration, source)
    return hierarchies(table, configuration.schema, columns=columns, missing=configuration.config.method.missing)


def _gaps(one: Hierarchy) -> str:
    """All gaps of one taxonomy, in a sentence."""
    listed = ", ".join(
        f"{raw(gap.value, f'the value of record {gap.first}')} ({gap.records:,} record{'s' if gap.records != 1 else ''})"
        for gap in one.gaps
    )
    count = f"{len(one.gaps):,} value{'s' if len(one.gaps) != 1 else ''}"
    return f"Column '{one.column}': the taxonomy '{one.source}' does not know {count}: {listed}."


def _told(one: Hierarchy) -> dict[str, Any]:
    return {
        "column": one.column,
        "from": one.source,
        "levels": one.tree.levels,
        "leaves": one.tree.leaves,
        "unknown": [{"records": gap.records, "first_record": gap.first} for gap in one.gaps],
    }


def _rule(text: str) -> str | TaxonomySource:
    """`auto`, or `prefix=3,0` and the like."""
    from shoal.schema import UNITS, TaxonomySource

    if text == "auto":
        return text
    name, _, given = text.partition("=")
    words = [word.strip() for word in given.split(",") if word.strip()]
    try:
        if name == "prefix":
            return TaxonomySource(prefix=[int(word) for word in words])  # type: ignore[call-arg]
        if name == "intervals":
            return TaxonomySource(intervals=[float(word) for word in words])  # type: ignore[call-arg]
    except ValueError:
        raise ConfigError(f"--rule {text}: {name} takes numbers, as in {name}=10,5.") from None
    if name == "dates" and words and set(words) <= set(UNITS):
        return TaxonomySource(dates=words)  # type: ignore[call-arg, arg-type]
    raise ConfigError(f"--rule {text}: write auto, prefix=3,2,0, intervals=5,10,20 or dates=month,year.")


def _files(folder: Path, found: list[Hierarchy]) -> list[Path]:
    """A file for each column; names that no file can have are replaced, and no two columns share one."""
    import re

    files: list[Path] = []
    for one in found:
        plain = re.sub(r"[^\w.-]+", "_", one.column).strip("._") or "column"
        stem, number = plain, 2
        while any(file.stem.casefold() == plain.casefold() for file in files):
            plain, number = f"{stem}_{number}", number + 1
        files.append(folder / f"{plain}.csv")
    return files


def _write(tree: Taxonomy, file: Path, force: bool) -> None:
    """Write a tree so that reading it gives the same one, or say that no file can hold it."""
    import os
    import tempfile

    from shoal.io.atomic import atomic_write_text
    from shoal.taxonomy import Taxonomy

    number, name = tempfile.mkstemp(suffix=".csv", dir=file.parent)
    os.close(number)
    try:
        tree.write(name)
        same = Taxonomy.read(name) == tree
        text = Path(name).read_text(encoding="utf-8")
    finally:
        Path(name).unlink()
    if not same:
        raise InputError(
            f"The taxonomy of '{tree.name}' has labels that a file cannot hold as they are, such as one that begins or ends with "
            "a blank; correct the values first."
        )
    atomic_write_text(file, text, force=force)


def _say(one: Hierarchy, file: Path, configuration: Configuration, speaker: Speaker) -> None:
    from shoal.configured import relative

    speaker.say(
        f"Written: {file} ({one.tree.leaves:,} values, {one.tree.levels} levels). Edit it, then use it with "
        f'taxonomy = "{relative(file, configuration.folder)}" under [attributes.{one.column}].'
    )
