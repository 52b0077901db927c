"""`shoal init`: look at a table, suggest who each column is, and write a configuration that says why."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.anonymize import refuse_existing
from shoal.cli.output import JSON, QUIET, Speaker

if TYPE_CHECKING:
    import polars as pl

    from shoal.profiling import Profile

MISSING = ["", "?"]
NOT_A_NUMBER = ["NaN", "nan", "NAN"]
# Characters of a comment line, as in the rest of the file.
WIDTH = 118
ROLES = """\
# Every column has a role:
#   identifier  names a person; left out of the release
#   person      says whose each row is, where people have several; left out of the release
#   quasi       others may know it; made equal within a class
#   sensitive   what nobody must learn about a person; published as it is
#   other       harmless; published as it is"""
PUBLISH = """\
# publish = "token"                      # a random number for each person instead, to tell which rows belong together"""
METHOD = """\
[method]
algorithm = "auto"
objective = "ncp"                        # the loss to keep small: il, ncp or granularity
refine = true
missing = "category"                     # a missing value is a value of its own; or drop, error
seed = 0

[release]
order = "shuffle"                        # the order of the input says something about its records"""

Source = dict[str, str | list[str]]


def init(
    file: Path | None = typer.Argument(None, help="The table: csv, tsv, parquet, arrow, jsonl or xlsx."),
    output: Path = typer.Option("shoal.toml", "--output", "-o", help="The configuration to write."),
    url: str | None = typer.Option(None, "--url", help="Instead of a file, a database: sqlite:///registry.db"),
    table: str | None = typer.Option(None, "--table", help="The table of the database."),
    header: str | None = typer.Option(
        None, "--header", help="Column names of a file that has none, separated by commas."
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

    from shoal.io.atomic import atomic_write_text
    from shoal.profiling import percent, profile

    speaker = Speaker(as_json, quiet)
    refuse_existing(output, force)
    frame, source, label = _read(file, url, table, header, output)
    found = profile(frame)
    if template is not None:
        from shoal.templates import applied

        found = applied(template, found)
    atomic_write_text(output, config_text(found, source, label, output.name), force=force)
    speaker.table(
        f"{label}: {_count(found)}",
        ["column", "kind", "distinct", "missing", "role", "why"],
        [[c.name, c.kind, c.distinct, percent(c.missing), c.role, c.why] for c in found.columns],
    )
    if found.named("quasi"):
        speaker.say(f"Why anonymize: {found.reason}")
    for note in found.notes:
        speaker.say(f"Note: {note}")
    speaker.say(f"Written: {output!s}. Read it, then: shoal anonymize -c {output!s} -o masked.csv")
    speaker.result({"output": str(output), **found.to_dict()})


def config_text(found: Profile, source: Source, label: str, name: str = "shoal.toml") -> str:
    """The commented text of a `shoal.toml`; `source` is its `[source]` table."""
    lines = [
        *_comment(
            f"Suggested by shoal init for {label}: {_count(found)}, {len(found.columns)} columns. "
            "Every suggestion says why: read them, correct what you know better, then run"
        ),
        f"#   shoal anonymize -c {name} -o masked.csv",
        "#",
    ]
    if found.named("quasi"):
        lines += [*_comment(f"Why anonymize: {found.reason}"), "#"]
    for note in found.notes:
        lines += [*_comment(f"Note: {note}"), "#"]
    lines += [ROLES, "", "[source]"]
    if "@" in source.get("url", ""):
        lines += _comment("Keep this file to yourself if the address holds a password.")
    lines += [_set(key, value) for key, value in source.items() if key != "missing"]
    missing = list(dict.fromkeys([*source["missing"], *found.missing]))
    lines.append(f"{_set('missing', missing):<40} # texts that mean: no value")
    for column in found.columns:
        lines += ["", *_comment(column.why), f"[attributes.{_key(column.name)}]", _set("role", column.role)]
        if column.role in ("quasi", "sensitive"):
            lines.append(_set("kind", column.kind))
        lines += _comment(column.taxonomy_why)
        if column.taxonomy is not None:
            lines.append(_set("taxonomy", column.taxonomy))
        lines += _comment(column.within_why)
        lines += [_set(key, value) for key in ("within", "repeats") if (value := getattr(column, key)) is not None]
        lines += [_set(key, value) for key, value in column.more.items()]
        if column.role == "person":
            lines.append(PUBLISH)
    return "\n".join([*lines, "", *_policy(found), "", METHOD]) + "\n"


def _count(found: Profile) -> str:
    return f"{found.records:,} records" + ("" if found.persons is None else f" of {found.persons:,} persons")


def _read(
    file: Path | None, url: str | None, table: str | None, header: str | None, output: Path
) -> tuple[pl.DataFrame, Source, str]:
    """The table, its `[source]`, and what to call it."""
    from shoal.errors import ConfigError
    from shoal.io.sql import read_sql

    if (file is None) == (url is None):
        raise ConfigError("Give either a file, or a database with --url and --table.")
    if url is not None:
        if table is None or header is not None:
            raise ConfigError("A database needs --url with --table, and brings its own column names without --header.")
        return read_sql(url, table=table), {"url": url, "table": table, "missing": MISSING}, f"table {table}"
    assert file is not None
    if table is not None:
        raise ConfigError("--table belongs to a database: give --url with it, or leave it out.")
    names = [name.strip() for name in header.split(",")] if header is not None else None
    frame, missing = _read_file(file, names)
    source: Source = {"path": _relative(file, output.parent), "missing": missing}
    if names is not None:
        source["header"] = names
    return frame, source, file.name


def _read_file(file: Path, names: list[str] | None) -> tuple[pl.DataFrame, list[str]]:
    """The table of a file, and the texts that had to be read as missing for it."""
    from shoal.errors import InputError
    from shoal.io.files import read_table

    try:
        return read_table(file, missing=MISSING, header=names), MISSING
    except InputError as problem:
        # NaN among numbers stops the reading; whatever else is wrong will stop it again.
        try:
            return read_table(file, missing=MISSING + NOT_A_NUMBER, header=names), MISSING + NOT_A_NUMBER
        except InputError:
            raise problem from None


def _relative(file: Path, folder: Path) -> str:
    """The file as seen from the configuration's folder."""
    try:
        return Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return file.resolve().as_posix()


def _policy(found: Profile) -> list[str]:
    """`[policy]`; a sensitive attribute whose rule would cost too much is left as a comment."""
    who = "records" if found.persons is None else "persons"
    lines = ["[policy]", f"{_set('k', found.k):<40} # every class has at least {found.k} {who}"]
    rules = [rule for rule in found.diversity if rule.p > 1]
    for rule in found.diversity:
        lines += _comment(f"{rule.attribute}: {rule.why}")
    if rules and len({rule.p for rule in found.diversity}) == 1:
        lines.append(_set("p_sensitive", {"p": rules[0].p}))
    elif rules:
        lines.append("p_sensitive = [")
        lines += [f"    {_toml({'p': rule.p, 'attribute': rule.attribute})}," for rule in rules]
        lines.append("]")
    return lines


def _comment(text: str) -> list[str]:
    """Wrapped lines; nothing of the text can end a comment before its time."""
    from textwrap import wrap

    visible = "".join(c if c.isprintable() else " " for c in text)
    return [f"# {line}" for line in wrap(visible, WIDTH, break_long_words=False, break_on_hyphens=False)]


def _set(key: str, value: Any) -> str:
    return f"{key} = {_toml(value)}"


def _toml(value: Any) -> str:
    import tomlkit

    if isinstance(value, Mapping):
        return "{ " + ", ".join(_set(key, entry) for key, entry in value.items()) + " }"
    return str(tomlkit.item(value).as_string())


def _key(name: str) -> str:
    import tomlkit

    return str(tomlkit.key(name).as_string())
