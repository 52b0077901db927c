"""How a store begins: the table that is given is read, anonymized by a full run and written, all of it or nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import sqlalchemy as sa

from shoal.algorithms import run
from shoal.configuration import read_schema
from shoal.errors import ConfigError, InputError, UnsupportedError, did_you_mean
from shoal.evolve.i3m.classes import Classes
from shoal.evolve.store import tables
from shoal.evolve.store.batch_input import key_texts, read_keys
from shoal.evolve.store.codebook import Books, settled
from shoal.evolve.store.commit import record_row, write_batch_row
from shoal.evolve.store.database import Database
from shoal.evolve.store.live import Live
from shoal.evolve.store.seals import write_values
from shoal.evolve.store.settings import OfMissing, Settings, encode_rows, type_names
from shoal.evolve.store.snapshot import Held, write
from shoal.evolve.store.visits import KEY, gathered, of_persons
from shoal.io.frames import to_polars
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.progress import Progress
from shoal.reading import as_declared
from shoal.refine import refined
from shoal.schema import Attribute, Schema


@dataclass(frozen=True, eq=False)
class Beginning:
    """The first table of a store: as it was given, what is kept of it, and who each column is."""

    given: pl.DataFrame
    kept: pl.DataFrame
    schema: Schema
    ignored: tuple[str, ...]
    """Identifiers, the key among them: they are not kept."""
    rows: Schema | None = None
    """Where people have several rows, who each column of these is; `kept` has a line a person then."""
    row_types: Mapping[str, str] = field(default_factory=dict)
    keys: Sequence[str] = ()

    @classmethod
    def of(cls, data: Any, schema: Any, key: str, missing: OfMissing, missing_texts: Sequence[str]) -> Beginning:
        """What `Store.create` is given."""
        frame, declared = _table_and_schema(data, schema, key)
        kept = [name for name, attribute in declared.attributes.items() if attribute.role != "identifier"]
        plain = Schema({name: declared.attributes[name] for name in kept}, declared.folder, tuple(missing_texts))
        table = Microdata.of_table(frame.select(kept), plain, missing=missing)
        ignored, own = tuple(declared.named("identifier")), settled(plain, table.frame)
        if plain.person is None:
            return cls(frame, table.frame, own, ignored)
        visits = table.frame.with_columns(key_texts(table.frame[plain.person]), key_texts(frame[key]).alias(KEY))
        people = gathered(visits, own)
        types = {name: kind for name, kind in type_names(visits).items() if name != KEY}
        return cls(frame, people.frame, of_persons(own), ignored, own, types, people.keys)


def begin(database: Database, settings: Settings, first: Beginning, told: Progress) -> Live:
    """Anonymize the first table and write the store; what fails leaves no file behind."""
    keys = read_keys(first.given.select(settings.key), settings)
    if first.rows is not None:
        keys = list(first.keys)
    books = Books(settings.schema, settings.policy).learn(first.kept)
    codes, secrets = books.codes(first.kept)
    with told.stage(weight=0.85) as part:
        labels = full_run(encoded(books, first.kept, codes, secrets), settings, part)
    classes = Classes(books.space(settings.objective), codes, labels, books.bind, secrets)
    made = database.create_file()
    try:
        with database.writing() as connection:
            tables.require_none(connection, database.name)
            with told.stage("writing the store") as part:
                _write(connection, settings, first.kept, keys, books, classes, part)
            told.seal()
    except BaseException:
        if made:
            database.remove_file()
        raise
    return Live(1, books, classes)


def encoded(books: Books, frame: pl.DataFrame, codes: Any, secrets: Any) -> Microdata:
    """The table with the codes of the store."""
    domains = books.space("ncp").domains
    return Microdata(frame, books.schema, codes, domains, books.sensitive(secrets))


def full_run(data: Microdata, settings: Settings, progress: Progress) -> Any:
    """Labels of the whole table, by the configured method."""
    rules = settings.policy.bind(data.sensitive, data.n)
    options = dict(settings.options)
    if settings.algorithm == "auto":
        options["refined"] = bool(settings.refine)
    how: dict[str, Any] = {"objective": settings.objective, "seed": settings.seed}
    with progress.stage("grouping records", 0.3) as part:
        partition = run(settings.algorithm, data, rules, options=options, progress=part, **how)
    if partition.suppressed:
        raise UnsupportedError(
            f"{settings.algorithm} suppressed {partition.suppressed} records, and a store keeps all of them; choose an "
            "algorithm that suppresses none."
        )
    # Levels belong to the first table; the classes go their own ways from here.
    plain = Partition(partition.labels)
    with progress.stage("refining") as part:
        return refined(data, rules, plain, effort=settings.refine, progress=part, **how).labels


def _table_and_schema(data: Any, schema: Any, key: str) -> tuple[pl.DataFrame, Schema]:
    """The table, and the role of each of its columns; the key is an identifier."""
    if isinstance(data, Microdata):
        frame, declared = data.frame, data.schema
    else:
        if schema is None:
            raise ConfigError("A frame needs a schema that says who each column is; give schema=.")
        declared = read_schema(schema)
        frame = as_declared(to_polars(data)[0], declared)
    if key not in frame.columns:
        raise InputError(f"The table has no column '{key}' to be the key; {did_you_mean(key, frame.columns)}")
    if declared.person == key:
        raise ConfigError(
            f"'{key}' says whose each row is, and cannot be the key as well, which names a single row; name another column, or, "
            'where everybody has one row, give it the role "identifier".'
        )
    for name, attribute in declared.attributes.items():
        if attribute.shift is not None or attribute.pseudonym is not None:
            raise UnsupportedError(
                f"[attributes.{name}]: a store neither shifts dates nor makes pseudonyms, since each batch would need the key; "
                "leave both out, or publish the table with shoal anonymize."
            )
    given = declared.attributes.get(key)
    if given is not None and given.role != "identifier":
        raise ConfigError(
            f"The key '{key}' has the role {given.role} and would be published; give it the role \"identifier\", or copy it "
            "to a column of its own."
        )
    own = {key: Attribute(role="identifier")}  # type: ignore[call-arg]
    return frame, Schema({**declared.attributes, **own}, declared.folder).resolve(frame.columns)


def _write(
    connection: sa.Connection,
    settings: Settings,
    frame: pl.DataFrame,
    keys: list[str],
    books: Books,
    classes: Classes,
    progress: Progress,
) -> None:
    tables.create_tables(connection)
    connection.execute(tables.meta.insert(), {"name": "settings", "value": settings.to_json()})
    connection.execute(
        tables.state.insert(),
        {
            "one": 1,
            "version": 1,
            "next_record": len(keys),
            "next_class": classes.next_class,
            "baseline": classes.baseline,
            "changed": 0,
            "types": json.dumps(type_names(frame)),
        },
    )
    write_batch_row(connection, 1, "creation", {"inserted": len(keys)})
    write_values(connection, books.news(Books(settings.schema, settings.policy)), 1)
    rows = zip(range(len(keys)), keys, classes.labels.tolist(), encode_rows(frame), strict=True)
    for part in tables.chunks(list(rows)):
        progress.check()
        connection.execute(
            tables.records.insert(),
            [record_row(n, n, key, c, text, 1) for n, key, c, text in part],
        )
    progress.check()
    write(connection, 1, Held(classes.records, classes.records, classes.labels, frame))
