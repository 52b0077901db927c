"""The database a store lives in: SQLite by default, PostgreSQL by URL; errors as one sentence."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from shoal.errors import ConfigError, InputError, MissingExtraError, require_a
from shoal.io import sql

# Another process may hold the store while it applies a batch; longer than this it is said to be busy.
PATIENCE = 60.0
# A day: whoever waits longer has been forgotten.
LONGEST = 86_400


class UnavailableError(InputError):
    """The database cannot be reached, read or written at the moment; nothing is wrong with the batch."""


class Database:
    """Where a store lives. `reading` sees one moment of it, `writing` is alone with it until it commits.

    A PostgreSQL database holds one store a schema; another schema is named by `?options=-csearch_path%3Dname` in the URL.
    """

    def __init__(self, url: str, patience: float = PATIENCE) -> None:
        require_a("url", url, str, "the address of a database, such as sqlite:///registry.db")
        require_a("patience", patience, (int, float), "seconds")
        if not 0 <= patience <= LONGEST:
            raise ConfigError(f"patience = {patience} is not allowed; it must be from 0 to {LONGEST:,} seconds.")
        self.address = sql._address(url)
        self.name = sql._name(self.address)
        self.is_sqlite = self.address.get_backend_name() == "sqlite"
        if not self.is_sqlite and self.address.get_backend_name() != "postgresql":
            raise ConfigError(
                f"a store lives in SQLite or PostgreSQL, not in '{self.address.get_backend_name()}': write "
                "sqlite:///registry.db or postgresql://user@host/database."
            )
        if self.is_sqlite and not self.address.database:
            raise ConfigError("a store needs a file: write sqlite:///registry.db.")
        self.patience = patience
        self.engine = self._engine(patience)
        self._owner = os.getpid()
        weakref.finalize(self, _close, self.engine, self._owner)

    @property
    def path(self) -> Path | None:
        """The file of a SQLite database."""
        return Path(str(self.address.database).removeprefix("file:")) if self.is_sqlite else None

    def create_file(self) -> bool:
        """An empty file that only its owner may read, unless there is one; whether it was made."""
        if self.path is None or self.path.exists():
            return False
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        except OSError as error:
            raise InputError(
                f"cannot create the store '{self.path}': {error.strerror}; choose another place."
            ) from None
        with self.engine.connect() as connection:
            # Readers then never wait for a writer. This cannot be done inside a transaction.
            connection.connection.cursor().execute("PRAGMA journal_mode = WAL").close()
        return True

    def require_file(self) -> None:
        """SQLite would create an empty database where there is none."""
        if self.path is not None and not self.path.is_file():
            raise InputError(f"There is no store '{self.path}'; make one with shoal store create, or check the URL.")

    def remove_file(self) -> None:
        """Take back a file that was made for nothing."""
        if self.path is not None:
            for ending in ("", "-wal", "-shm", "-journal"):
                Path(f"{self.path}{ending}").unlink(missing_ok=True)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that changes nothing."""
        with self._connected("BEGIN", "REPEATABLE READ") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that may change something; it commits when the block ends without an error."""
        with self._connected("BEGIN IMMEDIATE", "READ COMMITTED") as connection:
            yield connection

    def size(self, names: list[str]) -> int:
        """The bytes that these tables take; of SQLite those of the file."""
        with self.reading() as connection:
            if self.is_sqlite:
                pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
                return int(pages) * int(connection.exec_driver_sql("PRAGMA page_size").scalar_one())
            query = sa.text("SELECT pg_total_relation_size(CAST(:name AS regclass))")
            return sum(int(connection.execute(query, {"name": name}).scalar_one()) for name in names)

    def scrub(self, names: list[str]) -> None:
        """Leave nothing of what was deleted in the files of these tables: no free pages, no journal, no dead rows.

        What the server itself keeps elsewhere, its log and its backups, it cannot reach.
        """
        try:
            if not self.is_sqlite:
                with self.engine.connect() as connection:
                    alone = connection.execution_options(isolation_level="AUTOCOMMIT")
                    for name in names:
                        alone.exec_driver_sql(f"VACUUM FULL {name}")
                return
            with self.engine.connect() as connection:
                cursor = connection.connection.cursor()
                cursor.execute("VACUUM")
                busy = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                cursor.close()
        except (sa.exc.SQLAlchemyError, sqlite3.Error) as error:
            reason = str(getattr(error, "orig", None) or error)
            raise UnavailableError(
                f"{_DREGS} ({reason.splitlines()[0]}): close it there and forget them again."
            ) from None
        if busy is not None and busy[0]:
            raise UnavailableError(f"{_DREGS}: close it there and forget them again.")

    def dispose(self) -> None:
        """Close what is open."""
        self.engine.dispose()

    @contextmanager
    def _connected(self, begin: str, isolation: str) -> Iterator[sa.Connection]:
        if self._owner != os.getpid():
            # A connection belongs to the process that opened it; after a fork each has to open its own.
            self.engine.dispose(close=False)
            self._owner = os.getpid()
        try:
            with self.engine.connect() as connection:
                connection = connection.execution_options(shoal_begin=begin)
                if not self.is_sqlite:
                    connection = connection.execution_options(isolation_level=isolation)
                with connection.begin():
                    yield connection
        except sa.exc.SQLAlchemyError as error:
            raise UnavailableError(self._sentence(error)) from None

    def _engine(self, patience: float) -> sa.Engine:
        arguments: dict[str, Any] = {"timeout": patience} if self.is_sqlite else {}
        if not self.is_sqlite and "connect_timeout" not in self.address.query:
            arguments["connect_timeout"] = 15
        try:
            # One connection is kept: SQLite tidies up whenever the last one closes, and a server takes its time to answer.
            engine = sa.create_engine(
                self.address,
                poolclass=sa.pool.QueuePool,
                pool_size=1,
                pool_pre_ping=not self.is_sqlite,
                connect_args=arguments,
            )
        except ModuleNotFoundError:
            raise MissingExtraError("psycopg", "postgres", "PostgreSQL") from None
        if self.is_sqlite:
            _begin_as_told(engine)
        else:
            _wait_at_most(engine, patience)
        return engine

    def _sentence(self, error: sa.exc.SQLAlchemyError) -> str:
        """What happened and what to do; the driver's own words would repeat the statement and its records."""
        reason = str(getattr(error, "orig", None) or error)
        if getattr(error, "connection_invalidated", False) or any(part in reason for part in _LOST):
            return (
                f"The connection to {self.name} was lost; the batch is wholly in or wholly out: give it again with the same "
                "batch id, which applies it only once."
            )
        for part, told in _KNOWN.items():
            if part in reason:
                return f"{self.name} {told}; the store is as it was before.".replace("PATIENCE", f"{self.patience:g}")
        return f"{sql._sentence(error, self.address)} The store is as it was before."


_DREGS = (
    "They are forgotten, but pages that were freed could not be overwritten while another process has the store open"
)
_LOST = ("server closed the connection", "the connection is lost", "the connection is closed", "terminating connection")
_KNOWN = {
    "database is locked": "is busy: another process has held it for PATIENCE seconds; try again when it is done",
    "lock timeout": "is busy: another process has held it for PATIENCE seconds; try again when it is done",
    "readonly database": "cannot be written to; change the permissions of the file and its folder",
    "read-only transaction": "cannot be written to; ask its owner for the right to write",
    "permission denied": "does not let you in; ask its owner for the right to write",
    "unable to open database file": "cannot be opened; check the path, and the permissions of the file and its folder",
    "disk is full": "has no room left on its disk; free some space and give the batch again",
    "No space left": "has no room left on its disk; free some space and give the batch again",
    "could not extend file": "has no room left on its disk; free some space and give the batch again",
    "disk I/O error": "could not be read or written (the device reports an error)",
    "file is not a database": "is not a store but some other file; check the URL",
    "malformed": "is damaged; restore it from a backup",
}


def _close(engine: sa.Engine, owner: int) -> None:
    """Who forgets to close a store leaves no connection behind; a forked process does not close its parent's."""
    engine.dispose(close=os.getpid() == owner)


def _begin_as_told(engine: sa.Engine) -> None:
    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        # Python's sqlite3 would begin transactions by itself, and too late.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        # What is deleted is overwritten, and not only taken off a list.
        cursor.execute("PRAGMA secure_delete = ON")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("shoal_begin", "BEGIN"))


def _wait_at_most(engine: sa.Engine, patience: float) -> None:
    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{int(patience * 1000)}ms'")
        connection.commit()
