"""Tables of SQL databases in and out, by SQLAlchemy URL; SQLite needs no driver, PostgreSQL needs psycopg."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from shoal.errors import ConfigError, InputError, MissingExtraError, because, did_you_mean
from shoal.io.frames import Types, apply_missing, check_names, kept_types, normalise

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
    return read_sql_typed(url, table=table, query=query, missing=missing)[0]


def read_sql_typed(
    url: str, *, table: str | None = None, query: str | None = None, missing: Sequence[str] = ("", "?")
) -> tuple[pl.DataFrame, Types]:
    """As `read_sql`, and the types that columns had and can get back: booleans, and the short whole numbers of a table."""
    with _reading(url, table, query) as (parts, label, name):
        found = list(parts)
    frame = pl.concat(found, how="vertical_relaxed") if found else pl.DataFrame()
    if frame.is_empty():
        raise InputError(f"{label} in {name} has no records: nothing is there to be read.")
    short = {} if table is None else _short(_address(url), table)
    return normalise(apply_missing(frame, missing), label), {**short, **kept_types(frame.schema)}


def _short(address: URL, table: str) -> dict[str, Any]:
    """Columns of short whole numbers; SQLite has one length of them, whatever they are called."""
    import sqlalchemy as sa

    if address.get_backend_name() == "sqlite":
        return {}
    lengths = ((sa.SmallInteger, pl.Int16), (sa.BigInteger, None), (sa.Integer, pl.Int32))
    with _connected(address, writing=False) as connection:
        columns = list(_select_all(connection, address, table).selected_columns)
    found = {one.name: next((dtype for kind, dtype in lengths if isinstance(one.type, kind)), None) for one in columns}
    return {name: dtype for name, dtype in found.items() if dtype is not None}


def store_sql(
    folder: Path, url: str, *, table: str | None = None, query: str | None = None, rows: int = 1_000_000
) -> None:
    """Read a table, or the result of a query, into Parquet files of a folder, so many rows each: no more are held at a time.

    `url`, `table`, `query`: as for `read_sql`. The columns have the types that they would have all read at once.
    """
    folder.mkdir()
    schemas: list[pl.Schema] = []
    with _reading(url, table, query) as (parts, label, name):
        waiting: list[pl.DataFrame] = []
        for part in itertools.chain(parts, (None,)):
            waiting += [] if part is None else [part]
            if waiting and (part is None or sum(one.height for one in waiting) >= rows):
                frame = pl.concat(waiting, how="vertical_relaxed")
                frame.write_parquet(folder / f"{len(schemas):06}.parquet", compression="lz4")
                schemas.append(frame.schema)
                waiting = []
    if not schemas:
        raise InputError(f"{label} in {name} has no records: nothing is there to be read.")
    # What a column is shows when all of it is there: numbers may be followed by fractions, nothing by texts.
    whole = pl.concat([pl.DataFrame(schema=schema) for schema in schemas], how="vertical_relaxed").schema
    for number, schema in enumerate(schemas):
        if schema != whole:
            file = folder / f"{number:06}.parquet"
            frame = pl.read_parquet(file).cast(whole)
            frame.write_parquet(file, compression="lz4")


@contextmanager
def _reading(url: str, table: str | None, query: str | None) -> Iterator[tuple[Iterator[pl.DataFrame], str, str]]:
    """Some rows at a time, with what they are called and where they come from."""
    if (table is None) == (query is None):
        raise ConfigError("reading from a database needs either a table or a query: give exactly one of them.")
    address = _address(url)
    _check_sqlite_file(address)
    if query is not None:
        _require_one_select(query)
    label = f"table '{table}'" if table is not None else "the result of the query"
    with _connected(address, writing=False) as connection:
        statement = _select_all(connection, address, table) if table is not None else str(query)
        yield _parts(connection, statement, label), label, _name(address)


def _require_one_select(query: str) -> None:
    """One statement that reads. The transaction would refuse to write, but a database has more to offer than that."""
    bare = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", " ", query, flags=re.DOTALL).strip()
    if not re.match(r"\(*\s*(select|with|values)\b", bare, re.IGNORECASE):
        raise ConfigError("the query is no SELECT: a table is read with one statement that begins with SELECT or WITH.")
    if ";" in bare.rstrip("; \n\t\r"):
        raise ConfigError("the query has several statements: a table is read with one SELECT.")


def write_sql(
    frame: pl.DataFrame,
    url: str,
    table: str,
    *,
    force: bool = False,
    check: Callable[[pl.DataFrame], None] | None = None,
) -> None:
    """Create a table and fill it in one transaction.

    - `frame`: a polars frame.
    - `url`, `table`: the database and the table, as for `read_sql`.
    - `force`: whether a table that is there may be replaced; False by default.
    - `check`: called with what can be read back, in any order, before the transaction ends; an error leaves nothing.

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
            if check is not None:
                check(_fetch(connection, sa.select(target), f"table '{table}'"))
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
    schema, _, name = table.partition(".")
    # SQLite has one schema unless others are attached; a table may have a point in its name.
    if name and (address.get_backend_name() != "sqlite" or schema == "main"):
        return schema, name
    return None, table


def is_database(output: str) -> bool:
    """Whether an output is a database and no file: `sqlite:///release.db`."""
    return "://" in output


def same_table(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two databases and tables are the same, by whatever address."""

    def place(url: str, table: str) -> tuple[str | int | None, ...]:
        address = _address(url)
        name = (address.host or "", address.port, address.database)
        if address.get_backend_name() == "sqlite":
            name = ("", None, str(Path(address.database or "").resolve()))
        schema, plain = _split(address, table)
        default = {"sqlite": "main", "postgresql": "public"}.get(address.get_backend_name())
        return (*name, schema or default, plain)

    return place(*one) == place(*other)


def require_writable(url: str, table: str, *, force: bool) -> None:
    """An error when a table cannot be written, before any work is done for it."""
    import sqlalchemy as sa

    address = _address(url)
    if address.get_backend_name() == "sqlite" and not Path(address.database or "").exists():
        if not Path(address.database or "").parent.is_dir():
            raise InputError(f"The folder of '{address.database}' does not exist; make it first.")
        return
    schema, name = _split(address, table)
    with _connected(address, writing=False) as connection:
        if not force and sa.inspect(connection).has_table(name, schema=schema):
            raise InputError(
                f"table '{table}' already exists in {_name(address)}: choose another name, or use force to replace it."
            )


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
    parts = list(_parts(connection, statement, label))
    return pl.concat(parts, how="vertical_relaxed") if parts else pl.DataFrame()


def _parts(connection: Connection, statement: Any, label: str) -> Iterator[pl.DataFrame]:
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
            for rows in result.partitions(_CHUNK):
                yield _part(names, rows)
        except ValueError as error:
            raise InputError(
                f"{label} holds a value that its column type does not allow {because(error)}: read it with a query "
                "that casts the column to text."
            ) from error


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
    if dtype in (pl.Int8, pl.Int16, pl.UInt8):
        return sa.SmallInteger()
    if dtype in (pl.Int32, pl.UInt16):
        return sa.Integer()
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
