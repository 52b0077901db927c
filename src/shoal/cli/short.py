"""`shoal anonymize FILE --quasi … -k 5`: a configuration said in one line, and kept in a file if asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from shoal.cli.output import Speaker
from shoal.errors import ConfigError, InputError

if TYPE_CHECKING:
    from shoal.configuration import Configuration
    from shoal.inputs import Roles

QUASI = typer.Option(
    [], "--quasi", help="Instead of a configuration: the columns others may know, separated by commas."
)
SENSITIVE = typer.Option(
    [], "--sensitive", help="With --quasi: the columns that nobody must learn, separated by commas."
)
K = typer.Option(None, "-k", min=1, help="With --quasi: the least number of people in a class.")
P = typer.Option(None, "-p", min=1, help="With --quasi: the least number of different sensitive values in a class.")
SAVE = typer.Option(None, "--save", help="With --quasi: write what was said to this configuration.")


class Said(NamedTuple):
    """What the command line says instead of a configuration."""

    quasi: list[str]
    sensitive: list[str]
    k: int | None
    p: int | None
    save: Path | None

    @property
    def roles(self) -> Roles:
        """The columns that are named; a person is added by whoever knows it."""
        from shoal.inputs import Roles

        return Roles(quasi=self.quasi, sensitive=self.sensitive)

    def of(self, columns: Sequence[str]) -> Said:
        """The names one by one; a comma may be part of a column's name."""
        return self._replace(quasi=_names(self.quasi, columns), sensitive=_names(self.sensitive, columns))

    def given(self, config: Path | None) -> bool:
        """Whether it is said in one line; only one of the two ways may be taken."""
        words = {"--quasi": self.quasi, "--sensitive": self.sensitive, "-k": self.k, "-p": self.p, "--save": self.save}
        used = [word for word, value in words.items() if value]
        if used and config is not None:
            raise ConfigError(
                f"{used[0]} says in one line what a configuration says; give it, or --config {config}, not both."
            )
        if used and not self.quasi:
            raise ConfigError(
                f"{used[0]} needs --quasi, the columns that others may know, or a configuration instead of it."
            )
        return bool(used)


def configured(
    said: Said,
    source: Path | None,
    output: str,
    person: str | None,
    method: dict[str, Any],
    force: bool,
    speaker: Speaker,
) -> tuple[Said, Configuration]:
    """The configuration that was said, with how its columns are written; refused where it cannot be meant."""
    from shoal.cli.anonymize import refuse_existing
    from shoal.configuration import Config, Configuration
    from shoal.configured import relative
    from shoal.inputs import declared

    if source is None:
        raise ConfigError("Name the table first: shoal anonymize FILE -o masked.csv --quasi age,zip -k 5.")
    if said.k is None:
        raise ConfigError("Say how many people each class has at least: -k 5.")
    if said.p is not None and not said.sensitive:
        raise ConfigError("-p counts different sensitive values: name the column they are in with --sensitive.")
    if said.save is not None:
        refuse_existing(said.save, force)
        if said.save.resolve() in (source.resolve(), Path(output).resolve()):
            raise InputError(
                f"'{said.save}' is the table or the masked file; choose another name for the configuration."
            )
    said, reading, written = as_found(said, source, speaker)
    policy: dict[str, Any] = {"k": said.k} | ({} if said.p is None else {"p_sensitive": {"p": said.p}})
    folder = said.save.parent if said.save is not None else Path()
    config = Config.model_validate(
        {
            "source": {"path": relative(source, folder), **reading},
            "attributes": {
                name: own if name not in written else {"role": own.role, **written[name]}
                for name, own in declared(said.roles._replace(person=person)).attributes.items()
            },
            "policy": policy,
            "method": {key: value for key, value in method.items() if value is not None},
        }
    )
    return said, Configuration(config, said.save)


def as_found(said: Said, source: Path, speaker: Speaker) -> tuple[Said, dict[str, Any], dict[str, dict[str, Any]]]:
    """How the file and the named columns are written, found out as `shoal init` does: keys of `[source]`, and of columns."""
    from shoal.configured import MISSING, found_around, read_as_text
    from shoal.dialects import detected
    from shoal.io.frames import apply_missing
    from shoal.profiling import missing_texts

    reading, notes = found_around(source, {})
    table = read_as_text(source, reading)
    said = said.of(table.columns)
    named = table.select(name for name in dict.fromkeys([*said.quasi, *said.sensitive]) if name in table.columns)
    missing, doubts = missing_texts(named)
    _, found, asked = detected(apply_missing(named, missing))
    if missing:
        reading["missing"] = [*MISSING, *missing]
        speaker.say(f"Taken for missing: {', '.join(missing)}.")
    for name, dialect in found.items():
        speaker.say(f"{name}: {dialect.why}")
    for told in (*notes, *(told for _, told in (*doubts, *asked))):
        speaker.say(f"Note: {told}")
    return said, reading, {name: dialect.keys for name, dialect in found.items()}


def look_at_the_rest(said: Said, configuration: Configuration, source: Path, speaker: Speaker) -> None:
    """Columns that nobody named are left out, with a sentence; one that says whose each row is may have been forgotten."""
    from shoal.configured import read_source
    from shoal.inputs import require_nobody_unnamed

    table, _ = read_source(configuration, source)
    schema = configuration.schema
    require_nobody_unnamed(table, schema, said.roles._replace(person=schema.person))
    rest = [name for name in table.columns if name not in schema.attributes]
    if rest:
        speaker.say(f"Left out, since nobody named them: {', '.join(rest)}.")


def keep(said: Said, configuration: Configuration, speaker: Speaker, force: bool) -> None:
    """The configuration, written; it gives the same release."""
    from shoal.configuration import write_config
    from shoal.io.atomic import atomic_write_text

    if said.save is not None:
        atomic_write_text(said.save, write_config(configuration.config), force=force)
        speaker.say(f"Written: {said.save}. It gives the same release: shoal anonymize -c {said.save} -o masked.csv")


def command(said: Said, source: Path | None, person: str | None) -> str:
    """What was said, as it can be said again."""
    import shlex

    words = [str(source)]
    for option, names in (("--quasi", said.quasi), ("--sensitive", said.sensitive)):
        apart = any("," in name for name in names)
        words += [word for one in (names if apart else [",".join(names)] if names else []) for word in (option, one)]
    words += ["--person", person] if person else []
    words += ["-k", str(said.k)] + (["-p", str(said.p)] if said.p is not None else [])
    return shlex.join(words)


def _names(given: list[str], columns: Sequence[str]) -> list[str]:
    parts = [[word] if word in columns else word.split(",") for word in given]
    return [name for words in parts for word in words if (name := word if word in columns else word.strip())]
