"""Tables of SQL databases in and out, by SQLAlchemy URL; SQLite needs no driver, PostgreSQL needs psycopg."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from shoal.errors import ConfigError, InputError, MissingExtraError, because, did_you_mean
from shoal.io.frames import apply_missing, check_names, normalise

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine, Inspector, Table

_CHUNK = 50_000  # rows that are read or written at a time


def read_sql(
    url: str, *, table: str | None = None, query: str | None = None, missing: Sequence[str] = ("", "?")
) -> pl.DataFrame:
    """Read a table (or view) or the result of a query; the database is opened for reading only.

    - `url`: the database, as SQLAlchemy writes it: `sqlite:///file.db`, `postgresql://user@host/name`.
    - `table`: the table or view, `schema.table` where there are schemas; or
    - `query`: a SELECT statement. Exactly one of both.
    - `missing`: texts that become null.

    Returns a polars frame.

    >>> import polars as pl, tempfile
    >>> from shoal.io import read_sql, write_sql
    >>> url = f"sqlite:///{tempfile.mkdtemp()}/clinic.db"
    >>> write_sql(pl.DataFrame({"age": [21, 40]}), url, "patients")
    >>> read_sql(url, query="select age from patients where age > 30").rows()
    [(40,)]
    """
    if (table is None) == (query is None):
        raise ConfigError("reading from a database needs either a table or a query: give exactly one of them.")
    address = _address(url)
    _check_sqlite_file(address)
    if query is not None:
        _require_one_select(query)
    with _connected(address, writing=False) as connection:
        if table is not None:
            frame = _fetch(connection, _select_all(connection, address, table), f"table '{table}'")
        else:
            frame = _fetch(connection, str(query), "the result of the query")
    label = f"table '{table}'" if table is not None else "the result of the query"
    if frame.is_empty():
        raise InputError(f"{label} in {_name(address)} has no records: nothing is there to be read.")
    return normalise(apply_missing(frame, missing), label)


def _require_one_select(query: str) -> None:
    """One statement that reads. The transaction would refuse to write, but a database has more to offer than that."""
    bare = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", " ", query, flags=re.DOTALL).strip()
    if not re.match(r"\(*\s*(select|with|values)\b", bare, re.IGNORECASE):
        raise ConfigError("the query is no SELECT: a table is read with one statement that begins with SELECT or WITH.")
    if ";" in bare.rstrip("; \n\t\r"):
        raise ConfigError("the query has several statements: a table is read with one SELECT.")


def write_sql(frame: pl.DataFrame, url: str, table: str, *, force: bool = False) -> None:
    """Create a table and fill it in one transaction.

    - `frame`: a polars frame.
    - `url`, `table`: the database and the table, as for `read_sql`.
    - `force`: whether a table that is there may be replaced; False by default.

    >>> import polars as pl, tempfile
    >>> from shoal.io import read_sql, write_sql
    >>> url = f"sqlite:///{tempfile.mkdtemp()}/clinic.db"
    >>> write_sql(pl.DataFrame({"age": [21, 40]}), url, "patients")
    >>> read_sql(url, table="patients").height
    2
    """
    import sqlalchemy as sa

    address = _address(url)
    check_names(frame.columns, "the table to write")
    schema, name = _split(address, table)
    fresh = address.get_backend_name() == "sqlite" and address.database and not Path(address.database).exists()
    try:
        with _connected(address, writing=True) as connection:
            target = sa.Table(
                name,
                sa.MetaData(),
                *[sa.Column(column.name, _sql_type(column)) for column in frame.iter_columns()],
                schema=schema,
            )
            if sa.inspect(connection).has_table(name, schema=schema):
                if not force:
                    raise InputError(
                        f"table '{table}' already exists in {_name(address)}: choose another name, "
                        "or use force to replace it."
                    )
                target.drop(connection)
            target.create(connection)
            for part in frame.iter_slices(_CHUNK):
                connection.execute(target.insert(), part.to_dicts())
    except BaseException:
        if fresh:
            Path(str(address.database)).unlink(missing_ok=True)
        raise


def _address(url: str) -> URL:
    import sqlalchemy as sa

    try:
        address = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        # The text is not repeated: it may hold a password.
        raise ConfigError(
            "the database URL cannot be understood: write sqlite:///file.db or "
            "postgresql://user:password@host/database."
        ) from None
    if address.drivername in ("postgresql", "postgres"):
        address = address.set(drivername="postgresql+psycopg")
    return address


def _name(address: URL) -> str:
    """The database as messages call it: never user or password."""
    kind = address.get_backend_name()
    host = f" on {address.host}" if address.host else ""
    return f"the {kind} database '{address.database}'{host}"


def _check_sqlite_file(address: URL) -> None:
    # SQLite would create an empty database where there is none.
    if address.get_backend_name() == "sqlite" and address.database and not Path(address.database).is_file():
        raise InputError(f"the database file '{address.database}' does not exist: check the URL.")


@contextmanager
def _connected(address: URL, *, writing: bool) -> Iterator[Connection]:
    """One connection with one transaction, and its errors as one sentence without secrets."""
    import sqlalchemy as sa

    engine = _engine(address)
    try:
        with engine.connect() as connection:
            if not writing:
                _read_only(connection, address)
            with connection.begin():
                yield connection
    except sa.exc.SQLAlchemyError as error:
        raise InputError(_sentence(error, address)) from None
    finally:
        engine.dispose()


def _engine(address: URL) -> Engine:
    import sqlalchemy as sa

    options: dict[str, Any] = {"poolclass": sa.pool.NullPool}
    if address.drivername == "postgresql+psycopg" and "connect_timeout" not in address.query:
        options["connect_args"] = {"connect_timeout": 15}
    try:
        engine = sa.create_engine(address, **options)
    except sa.exc.NoSuchModuleError:
        known = ["sqlite", "postgresql", "mysql", "mariadb", "oracle", "mssql"]
        kind = address.drivername
        raise ConfigError(f"unknown kind of database '{kind}': {did_you_mean(kind, known)}") from None
    except ModuleNotFoundError as error:
        if address.get_backend_name() == "postgresql":
            raise MissingExtraError("psycopg", "postgres", "PostgreSQL") from None
        raise ConfigError(
            f"a {address.get_backend_name()} database needs the package '{error.name}': install it."
        ) from None
    if address.get_backend_name() == "sqlite":
        _begin_explicitly(engine)
    return engine


def _begin_explicitly(engine: Engine) -> None:
    """Python's sqlite3 leaves CREATE and DROP outside transactions unless it is told to keep out."""
    import sqlalchemy as sa

    @sa.event.listens_for(engine, "connect")
    def keep_out(connection: Any, record: Any) -> None:
        connection.isolation_level = None

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")


def _read_only(connection: Connection, address: URL) -> None:
    kind = address.get_backend_name()
    if kind == "sqlite":
        connection.exec_driver_sql("PRAGMA query_only = ON")
        connection.rollback()
    elif kind == "postgresql":
        connection.execution_options(postgresql_readonly=True)


def _sentence(error: Exception, address: URL) -> str:
    # str(error) of SQLAlchemy repeats the statement and its parameters: records of the table.
    cause = getattr(error, "orig", None) or error
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    reason = lines[0].rstrip(".")
    if address.password:
        reason = reason.replace(str(address.password), "***")
    return f"{_name(address)} reports: {reason}."


def _split(address: URL, table: str) -> tuple[str | None, str]:
    """schema.table, where databases have schemas."""
    if "." in table and address.get_backend_name() != "sqlite":
        schema, _, name = table.partition(".")
        return schema, name
    return None, table


def _select_all(connection: Connection, address: URL, table: str) -> Any:
    import sqlalchemy as sa

    inspector = sa.inspect(connection)
    schema, name = _split(address, table)
    if not inspector.has_table(name, schema=schema):
        raise InputError(f"{_name(address)} has no table '{table}': {_hint(inspector, schema, name)}")
    columns = [
        sa.Column(column["name"], _reading_type(column["type"])) for column in inspector.get_columns(name, schema)
    ]
    source: Table = sa.Table(name, sa.MetaData(), *columns, schema=schema)
    return sa.select(source)


def _hint(inspector: Inspector, schema: str | None, name: str) -> str:
    found = sorted([*inspector.get_table_names(schema), *inspector.get_view_names(schema)])
    return did_you_mean(name, found) if found else "it has no tables."


def _reading_type(declared: Any) -> Any:
    import sqlalchemy as sa

    # Exact decimals end as Float64 in any case, and SQLite has none.
    return sa.Float() if isinstance(declared, sa.Numeric) else declared


def _fetch(connection: Connection, statement: Any, label: str) -> pl.DataFrame:
    connection = connection.execution_options(stream_results=True, yield_per=_CHUNK)
    if isinstance(statement, str):
        # Drivers that mark parameters with % read it even where there are none.
        marked = connection.dialect.paramstyle in ("format", "pyformat")
        result = connection.exec_driver_sql(statement.replace("%", "%%") if marked else statement)
    else:
        result = connection.execute(statement)
    with closing(result):
        if not result.returns_rows:
            raise InputError("the query returns no rows: a SELECT is needed.")
        names = list(map(str, result.keys()))
        check_names(names, label)
        try:
            parts = [_part(names, rows) for rows in result.partitions(_CHUNK)]
        except ValueError as error:
            raise InputError(
                f"{label} holds a value that its column type does not allow {because(error)}: read it with a query "
                "that casts the column to text."
            ) from error
    return pl.concat(parts, how="vertical_relaxed") if parts else pl.DataFrame(schema=names)


def _part(names: list[str], rows: Sequence[Any]) -> pl.DataFrame:
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return pl.DataFrame([_column(name, values) for name, values in columns])


def _column(name: str, values: Sequence[Any]) -> pl.Series:
    import uuid

    first = next((value for value in values if value is not None), None)
    if isinstance(first, uuid.UUID):
        return pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)
    return pl.Series(name, values, strict=False)


def _sql_type(column: pl.Series) -> Any:
    import sqlalchemy as sa

    dtype = column.dtype
    if dtype.is_integer() and column.cast(pl.Int64, strict=False).null_count() == column.null_count():
        return sa.BigInteger()
    if dtype.is_float():
        return sa.Double()
    if isinstance(dtype, pl.Datetime):
        return sa.DateTime()
    kinds: dict[Any, Any] = {
        pl.String: sa.Text(),
        pl.Date: sa.Date(),
        pl.Boolean: sa.Boolean(),
        pl.Time: sa.Time(),
        pl.Null: sa.Text(),
    }
    if dtype in kinds:
        return kinds[dtype]
    raise InputError(f"column '{column.name}' of type {dtype} cannot be written to a database: make it text first.")
