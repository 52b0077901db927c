"""Where `shoal anonymize` writes: a file, or a table of a database. The same questions are asked of both, before the work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from shoal.configuration import Configuration
    from shoal.microdata import Microdata
    from shoal.policy import Policy
    from shoal.progress import Progress
    from shoal.release import Release


class Target(Protocol):
    """What becomes of a release."""

    @property
    def name(self) -> str: ...
    @property
    def manifest(self) -> Path: ...
    @property
    def secret(self) -> Path: ...
    def require_free(self, force: bool) -> None: ...
    def refuse_inputs(self, configuration: Configuration, source: Path | None) -> None: ...
    def require_fitting(self, data: Microdata, policy: Policy) -> None: ...
    def write(self, release: Release, *, force: bool, safe_csv: bool, progress: Progress) -> None: ...
    def digest(self, release: Release) -> str: ...


def target_of(output: str, table: str | None) -> Target:
    """The file or the database that the command line names."""
    from shoal.errors import ConfigError
    from shoal.io.files import check_writable_format
    from shoal.io.sql import is_database

    if is_database(output):
        if not table:
            raise ConfigError("A database needs --table, the name of the table to write.")
        return DatabaseTarget(output, table)
    if table is not None:
        raise ConfigError(
            "--table belongs to a database: give one as --output, such as sqlite:///release.db, or leave it out."
        )
    check_writable_format(output)
    return FileTarget(Path(output))


@dataclass(frozen=True)
class FileTarget:
    """A file, with its manifest beside it."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        """What the release is called."""
        return self.path.name

    @property
    def manifest(self) -> Path:
        """The half that is published."""
        from shoal.manifest import manifest_path

        return manifest_path(self.path)

    @property
    def secret(self) -> Path:
        """The half that stays."""
        from shoal.manifest import secret_path

        return secret_path(self.path)

    def require_free(self, force: bool) -> None:
        """Nothing is overwritten unasked."""
        from shoal.cli.anonymize import refuse_existing

        refuse_existing(self.path, force)

    def refuse_inputs(self, configuration: Configuration, source: Path | None) -> None:
        """No output takes the place of what it is made from."""
        from shoal.cli.anonymize import refuse_inputs

        refuse_inputs(self.path, configuration, source)

    def require_fitting(self, data: Microdata, policy: Policy) -> None:
        """What the format cannot show is refused before the search."""
        from shoal.readable import require_fitting

        require_fitting(data, policy, self.path)

    def write(self, release: Release, *, force: bool, safe_csv: bool, progress: Progress) -> None:
        """The file and its two companions, verified."""
        release.write(self.path, force=force, safe_csv=safe_csv, progress=progress)

    def digest(self, release: Release) -> str:
        """Of the file's bytes."""
        from shoal.release import file_digest

        return file_digest(self.path)


@dataclass(frozen=True)
class DatabaseTarget:
    """A table of a database; its manifest lies in the current folder, called after it."""

    url: str
    table: str

    def __str__(self) -> str:
        import sqlalchemy as sa

        return f"{sa.make_url(self.url).render_as_string(hide_password=True)} --table {self.table}"

    @property
    def name(self) -> str:
        """What the release is called: never the address, which may hold a password."""
        return f"table {self.table}"

    @property
    def manifest(self) -> Path:
        """The half that is published."""
        from shoal.manifest import manifest_path

        return manifest_path(Path(self.table))

    @property
    def secret(self) -> Path:
        """The half that stays."""
        from shoal.manifest import secret_path

        return secret_path(Path(self.table))

    def require_free(self, force: bool) -> None:
        """Neither a table nor a manifest is overwritten unasked."""
        from shoal.errors import InputError
        from shoal.io.sql import require_writable

        require_writable(self.url, self.table, force=force)
        if self.manifest.exists() and not force:
            raise InputError(f"'{self.manifest}' already exists; choose another name for the table or add --force.")

    def refuse_inputs(self, configuration: Configuration, source: Path | None) -> None:
        """No release takes the place of the table that it is made from, --force or not."""
        from shoal.errors import InputError
        from shoal.io.sql import same_table

        given = configuration.config.source
        if (
            source is None
            and given.url
            and given.table
            and same_table((given.url, given.table), (self.url, self.table))
        ):
            raise InputError(
                f"Table '{self.table}' is what the release is made from; choose another name for the output."
            )

    def require_fitting(self, data: Microdata, policy: Policy) -> None:
        """Databases have types: what is a number stays one."""

    def write(self, release: Release, *, force: bool, safe_csv: bool, progress: Progress) -> None:
        """The table and its two companions, verified."""
        progress.seal()
        release.write_sql(self.url, self.table, force=force)

    def digest(self, release: Release) -> str:
        """Of the table's content, since a database has no bytes of its own for it."""
        from shoal.io.fingerprint import fingerprint

        return fingerprint(release.typed).hex()
