"""`shoal.Store`: a table that is kept anonymized while people are admitted, discharged and corrected.

A batch is one transaction, applied once however often it is given. After every commit each record is in one class and
every class satisfies the policy. Whoever holds the store holds the secrets; whoever holds the releases does not.

>>> import polars as pl, shoal, tempfile
>>> people = pl.DataFrame({"id": range(8), "age": [21, 22, 40, 41, 25, 44, 60, 62]})
>>> url = f"sqlite:///{tempfile.mkdtemp()}/registry.db"
>>> schema = {"age": {"role": "quasi"}}
>>> store = shoal.Store.create(url, people, shoal.KAnonymity(2), key="id", schema=schema, algorithm="mondrian")
>>> store.insert(pl.DataFrame({"id": [8, 9], "age": [23, 61]}), batch="monday").records
10
>>> store.insert(pl.DataFrame({"id": [8, 9], "age": [23, 61]}), batch="monday").applied
False
>>> store.delete([0]).deleted, store.check().passed
(1, True)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import polars as pl
import sqlalchemy as sa

from shoal.algorithms import run
from shoal.errors import ConfigError, InputError, UnsupportedError, did_you_mean
from shoal.evolve.i3m.classes import Classes
from shoal.evolve.releases.guards import Guard
from shoal.evolve.store import tables
from shoal.evolve.store.batch_input import KeyedRows, read_keys, read_rows
from shoal.evolve.store.codebook import Books, settled
from shoal.evolve.store.commit import (
    Applied,
    adopt,
    commit,
    forgotten,
    locate,
    mark_of,
    record_row,
    records_of,
    take_back,
    version_of,
    write_batch_row,
)
from shoal.evolve.store.database import PATIENCE, Database
from shoal.evolve.store.live import Live, State, follow, load, read_records, read_state
from shoal.evolve.store.seals import batch_content
from shoal.evolve.store.settings import (
    MISSING_TEXTS,
    OfMissing,
    Settings,
    Shape,
    decode_rows,
    encode_rows,
    type_names,
)
from shoal.io.frames import to_polars
from shoal.microdata import Microdata
from shoal.models import Model
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.progress import Progress, Told
from shoal.refine import Effort, refined
from shoal.schema import Attribute, Configuration, Order, Schema, read_schema
from shoal.space import Measure

if TYPE_CHECKING:
    from shoal.evolve.releases.history import Audit
    from shoal.evolve.store.examine import Examination
    from shoal.evolve.store.forget import Forgotten
    from shoal.evolve.store.publish import Published


class _RehearsedError(Exception):
    """Ends a dry run, so that the transaction is taken back."""

    def __init__(self, applied: Applied) -> None:
        super().__init__()
        self.applied = applied


class Store:
    """An anonymized table that changes, in a database. Make one with `create`, come back to it with `open`.

    `database` and `settings` are what `create` made and `open` read; nobody else needs to know them.

    >>> import polars as pl, shoal, tempfile
    >>> people = pl.DataFrame({"id": range(8), "age": [21, 22, 40, 41, 25, 44, 60, 62]})
    >>> url = f"sqlite:///{tempfile.mkdtemp()}/registry.db"
    >>> schema = {"age": {"role": "quasi", "domain": [0, 100]}}
    >>> store = shoal.Store.create(
    ...     url, people, shoal.KAnonymity(2), key="id", schema=schema, algorithm="mondrian", refine=False
    ... )
    >>> store.release().number
    1
    >>> store.insert(pl.DataFrame({"id": [8, 9], "age": [23, 24]})).inserted
    2
    >>> store.update(pl.DataFrame({"id": [8], "age": [30]})).updated
    1
    >>> store.upsert(pl.DataFrame({"id": [8, 10], "age": [31, 32]})).records
    11
    >>> store.delete([0]).deleted, store.undo().records, len(store.keys())
    (1, 11, 11)
    >>> store.apply(insert=pl.DataFrame({"id": [11], "age": [33]}), delete=[1], mark=("clinic", "2024-05-01")).moved >= 0
    True
    >>> store.mark("clinic"), store.records().height, store.renew().records
    ('2024-05-01', 11, 11)
    >>> store.release().waiting, store.audit().exposed, store.check().passed
    ({'insertions': 0, 'deletions': 1, 'updates': 0}, False, True)
    >>> [row["kind"] for row in store.batches()][:3], [row["release"] for row in store.history()]
    (['creation', 'batch', 'batch'], [1, 2])
    >>> store.export(1, tempfile.mkdtemp() + "/first.csv").name
    'first.csv'
    >>> store.forget([11]).deleted, store.status()["releases"]
    (1, 2)
    >>> store.close()
    >>> shoal.Store.open(url).records().height
    10
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self.settings = database, settings
        self._live: Live | None = None

    @classmethod
    def create(
        cls,
        url: str,
        data: Any,
        policy: Policy | Model,
        *,
        key: str,
        schema: Schema | Configuration | Mapping[str, Any] | str | Path | None = None,
        algorithm: str = "auto",
        objective: Measure = "ncp",
        refine: Effort = True,
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
        guard: Guard = "batching",
        m: int | None = None,
        missing: OfMissing = "category",
        missing_texts: Sequence[str] = MISSING_TEXTS,
        order: Order = "shuffle",
        intervals: Shape = "text",
        progress: Told | None = None,
        patience: float = PATIENCE,
    ) -> Store:
        """Anonymize a table and keep it, so that it can change and be released again. All or nothing.

        What is given here is written into the store (`Store.settings`) and holds for all batches and releases to come.

        - `url`: the database, as SQLAlchemy writes it: `sqlite:///registry.db`, `postgresql://user@host/name`.
        - `data`: a Microdata, or a frame of pandas, polars or pyarrow together with its `schema`.
        - `policy`: a model, or several joined with `&`; every class satisfies it after every batch.
        - `key`: the column that names each record in later batches. It is never published; other identifiers are not kept.
        - `schema`: who each column is, as for `shoal.read`; not needed with a Microdata.
        - `algorithm` ("auto"), `objective` ("ncp"), `seed` (0), `options`: how the first classes are made, as for
          `shoal.anonymize`; `options` are those of the algorithm.
        - `refine`: whether a search follows. After a batch it is about the classes that the batch changed: IL_Optimization
          (Truta & Campan 2007), and with "thorough" or seconds a box search.
        - `guard`: what protects from comparing releases: "batching", "m-invariance" (with its `m`) or "none"
          (docs/evolving-data.md).
        - `missing`: an empty cell is a value like any other ("category") or refused ("error").
        - `missing_texts`: texts that mean missing in files and change feeds.
        - `order`, `intervals`: how releases look: rows shuffled or kept ("shuffle", "keep"), intervals as text or as two
          columns ("text", "columns"); the first by default.
        - `progress`: called with the share of the work that is done.
        - `patience`: seconds to wait for a database that others write to; 60.0 by default.

        Returns the store, ready for `insert`, `update`, `delete`, `apply` and `release`.
        """
        database = Database(url, patience)
        if database.path is None or database.path.exists():  # say no before the work, not after it
            with database.reading() as connection:
                tables.require_none(connection, database.name)
        policy = policy if isinstance(policy, Policy) else Policy((policy,))
        frame, declared = _table_and_schema(data, schema, key)
        kept = [name for name, attribute in declared.attributes.items() if attribute.role != "identifier"]
        plain = Schema({name: declared.attributes[name] for name in kept}, declared.folder, tuple(missing_texts))
        table = Microdata.of_table(frame.select(kept), plain, missing=missing)
        settings = Settings(
            key=key,
            schema=settled(plain, table.frame),
            policy=policy,
            ignored=tuple(declared.named("identifier")),
            algorithm=algorithm,
            objective=objective,
            refine=refine,
            seed=seed,
            options=dict(options or {}),
            guard=guard,
            m=m,
            missing=missing,
            missing_texts=tuple(missing_texts),
            order=order,
            intervals=intervals,
        )
        keys = read_keys(frame.select(key), settings)
        books = Books(settings.schema, policy).learn(table.frame)
        codes, secrets = books.codes(table.frame)
        told = Progress.of(progress)
        with told.stage(weight=0.85) as part:
            labels = _full_run(_encoded(books, table.frame, codes, secrets), settings, part)
        classes = Classes(books.space(objective), codes, labels, books.bind, secrets)
        made = database.create_file()
        try:
            with database.writing() as connection:
                tables.require_none(connection, database.name)
                with told.stage("writing the store") as part:
                    _write_new(connection, settings, table.frame, keys, books, classes, part)
                told.seal()
        except BaseException:
            if made:
                database.remove_file()
            raise
        store = cls(database, settings)
        store._live = Live(1, books, classes)
        return store

    @classmethod
    def open(cls, url: str, *, patience: float = PATIENCE) -> Store:
        """A store that is there; one of an older layout is brought to the present one.

        `url` is the database, as for `create`; `patience` the seconds to wait for one that others write to (60.0 by
        default). Returns the store.
        """
        database = Database(url, patience)
        database.require_file()
        with database.reading() as connection:
            old = tables.require_layout(tables.layout_of(connection), database.name)
        if old:
            with database.writing() as connection:
                tables.migrate(connection, database.name)
        with database.reading() as connection:
            text = connection.execute(sa.select(tables.meta.c.value).where(tables.meta.c.name == "settings")).scalar()
        return cls(database, Settings.from_json(str(text)))

    def close(self) -> None:
        """Forget what is in memory; everything else is in the database."""
        self._live = None
        self._database.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def insert(self, source: Any, *, batch: str | None = None, progress: Told | None = None) -> Applied:
        """New records; their keys must not be in the store.

        - `source`: a frame or a file with the key and all columns.
        - `batch`: a name of your own for the batch, which is then never applied twice.
        - `progress`: called with the share of the work that is done, or a `shoal.Progress`; nothing by default.

        Returns what it did.
        """
        return self.apply(insert=source, batch=batch, progress=progress)

    def update(self, source: Any, *, batch: str | None = None, progress: Told | None = None) -> Applied:
        """New values of records that are in the store: `source` is a frame or a file with the key and the columns that
        change, `batch` and `progress` as for `insert`.

        Returns what it did.
        """
        return self.apply(update=source, batch=batch, progress=progress)

    def delete(self, keys: Any, *, batch: str | None = None, progress: Told | None = None) -> Applied:
        """Remove records by their `keys`: a list, or a frame or file with the key column; `batch` and `progress` as for
        `insert`. Returns what it did.
        """
        return self.apply(delete=keys, batch=batch, progress=progress)

    def upsert(self, source: Any, *, batch: str | None = None, progress: Told | None = None) -> Applied:
        """Records of `source` whose keys are known are updated, the others are inserted; `batch` and `progress` as for
        `insert`. Returns what it did.
        """
        return self.apply(upsert=source, batch=batch, progress=progress)

    def apply(
        self,
        *,
        insert: Any = None,
        update: Any = None,
        delete: Any = None,
        upsert: Any = None,
        batch: str | None = None,
        mark: tuple[str, str] | None = None,
        progress: Told | None = None,
        dry_run: bool = False,
    ) -> Applied:
        """Several changes as one batch: all of it or nothing.

        - `insert`, `update`, `delete`, `upsert`: as the methods of that name take them; at least one.
        - `batch`: a name of your own for the batch, which is then never applied twice; another batch under it is refused.
        - `mark`: a feed and how far it was read, kept with the batch (`Store.mark`).
        - `progress`: called with the share of the work that is done, or a `shoal.Progress`; cancelled before the batch is
          in, the store is as it was.
        - `dry_run`: whether to find out what it would do, and do nothing; False by default.

        Returns what it did, or would do.
        """
        if insert is None and update is None and delete is None and upsert is None:
            raise InputError("The batch is empty; give records to insert or update, or keys to delete.")
        told = Progress.of(progress)
        types = self._types()
        given = {
            name: read_rows(source, self.settings, types, partial=name == "update")
            for name, source in (("insert", insert), ("update", update), ("upsert", upsert))
            if source is not None
        }
        leaving = [] if delete is None else read_keys(delete, self.settings)
        try:
            with self._changing() as (connection, state):
                applied = self._applied(connection, state, given, leaving, batch, mark, told)
                if dry_run:
                    raise _RehearsedError(applied)
                told.seal()
        except _RehearsedError as only:
            return only.applied
        return applied

    def _applied(
        self,
        connection: sa.Connection,
        state: State,
        given: Mapping[str, KeyedRows],
        leaving: list[str],
        batch: str | None,
        mark: tuple[str, str] | None,
        told: Progress,
    ) -> Applied:
        content = None if batch is None else batch_content(connection, given, leaving)
        done = None if batch is None or content is None else version_of(connection, batch, content)
        if done is not None:
            return Applied(done, batch, applied=False)
        located = locate(connection, self.settings, state, given, leaving)
        if located.empty and batch is None and mark_of(connection, mark) == mark:
            return Applied(state.version, None, applied=False, unchanged=located.unchanged)
        with told.stage("opening the store", 0.1):
            live = self._load(connection, state)
        with told.stage() as part:
            return commit(connection, self.settings, live, state, located, batch, mark, part, content)

    def undo(self, *, progress: Told | None = None) -> Applied:
        """Take back the last batch; one level, and releases that were made of it stay. `progress` as for `insert`.

        Returns what it did.
        """
        told = Progress.of(progress)
        with self._changing() as (connection, state):
            applied = take_back(connection, state, told)
            self._live = None
            told.seal()
        return applied

    def forget(self, keys: Any, *, progress: Told | None = None) -> Forgotten:
        """Remove people for good: their key and values are nowhere in the database afterwards, nor in its free pages.

        `keys` is a list, or a frame or file with the key column; of people who are in the table, or were. A row of theirs
        that is published stays one of its class, with somebody else's quasi-identifiers, until the class leaves: without it
        the class would tell what they had. The last batch cannot be undone any more. `progress` as for `insert`. Returns what
        was done.
        """
        from shoal.evolve.store.forget import Forgotten, left_persons, wipe

        wanted, told = read_keys(keys, self.settings), Progress.of(progress)
        if not wanted:
            raise InputError("There is nobody to forget; give at least one key.")
        with self._changing() as (connection, state):
            there = records_of(connection, wanted)
            absent = [key for key in wanted if key not in there]
            persons = left_persons(connection, self.settings, absent) + [row.person for row in there.values()]
            if there:
                located = locate(connection, self.settings, state, {}, list(there))
                with told.stage("opening the store", 0.2):
                    live = self._load(connection, state)
                with told.stage(weight=0.6) as part:
                    commit(connection, self.settings, live, state, located, None, None, part)
            version = forgotten(connection, state, len(there))
            shown = wipe(connection, self.settings, read_state(connection), persons)
            self._live = None
            told.seal()
        self._database.scrub([table.name for table in tables.metadata.sorted_tables])
        return Forgotten(version, len(wanted), len(there), shown)

    def renew(self, *, progress: Told | None = None) -> Applied:
        """Anonymize the whole table anew and go on from there; `progress` as for `shoal.anonymize`.

        The store is not held meanwhile; a change in it starts it over. Returns what it did.
        """
        told = Progress.of(progress)
        for _ in range(5):
            with told.stage("opening the store", 0.1), self._database.reading() as connection:
                state = read_state(connection)
                live = self._load(connection, state)
                _, _, frame = read_records(connection, state)
            data = _encoded(live.books, frame, live.classes.codes, live.classes.sensitive)
            with told.stage(weight=0.85) as part:
                labels = _full_run(data, self.settings, part)
            with self._changing() as (connection, now):
                applied = adopt(connection, live, now, labels, told) if now.version == state.version else None
                if applied is not None:
                    told.seal()
            if applied is not None:
                return applied
        raise InputError(
            "The store changed five times while it was being renewed; renew it when fewer batches come in."
        )

    def release(
        self,
        path: str | Path | None = None,
        *,
        guard: Guard | None = None,
        m: int | None = None,
        allow_exposure: bool = False,
        force: bool = False,
        dry_run: bool = False,
        progress: Told | None = None,
    ) -> Published:
        """The next release: guarded, masked, verified, audited against all earlier ones, written and remembered.

        - `path`: the file, if one is wanted; its manifest lies beside it.
        - `guard`, `m`: others than the store's own, for this release.
        - `allow_exposure`: release although comparing with the earlier ones would expose somebody; False by default,
          and then it is refused.
        - `force`: whether a file that is there may be replaced; False by default.
        - `dry_run`: whether to find out what would be shown, what would wait and what the audit would find, and publish
          nothing; False by default. Exposure is then told and not refused.
        - `progress`: as for `shoal.anonymize`.

        Returns the release, what waits for a later one, and the audit.
        """
        from shoal.evolve.store.publish import publish

        chosen = guard or self.settings.guard
        own = self.settings.m if chosen == self.settings.guard else None
        settings = replace(self.settings, guard=chosen, m=own if m is None else m)
        how: dict[str, Any] = {"allow_exposure": allow_exposure or dry_run, "force": force, "progress": progress}
        return publish(self._database, settings, path, dry_run=dry_run, **how)

    def export(self, number: int, path: str | Path, *, force: bool = False) -> Path:
        """Write an earlier release again: its `number`, the `path` of the file, and with `force` over one that is
        there. Returns the path.
        """
        from shoal.evolve.store.publish import export

        return export(self._database, self.settings, number, path, force=force)

    def history(self) -> list[dict[str, Any]]:
        """The releases so far, oldest first: number, version, records, classes, losses, waiting rows, counterfeits."""
        from shoal.evolve.store.publish import history

        return history(self._database)

    def status(self) -> dict[str, Any]:
        """How the store is, in numbers for who looks after it: version, records, classes, changes since the last release, and
        of that release what waits, its loss and what its audit found; the database's size in bytes."""
        with self._database.reading() as connection:
            state = read_state(connection)
            counts = sa.select(sa.func.count(), sa.func.count(sa.distinct(tables.records.c["class"])))
            records, classes = connection.execute(counts.select_from(tables.records)).one()
        lines = self.history()
        last = lines[-1] if lines else None
        return {
            "version": state.version,
            "records": records,
            "classes": classes,
            "releases": len(lines),
            "last_release": None if last is None else last["at"],
            "changes_since_release": state.version - (0 if last is None else last["version"]),
            "waiting": 0 if last is None else last["waiting"],
            "loss": None if last is None else last["ncp"],
            "exposed": None if last is None else last["exposed"],
            "bytes": self._database.size([table.name for table in tables.metadata.sorted_tables]),
        }

    def batches(self) -> list[dict[str, Any]]:
        """The batches so far, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(tables.batches).order_by(tables.batches.c.version)).all()
        return [
            {"version": row.version, "batch": row.id, "kind": row.kind, "at": row.at, **json.loads(row.counts)}
            | ({"undone": row.undone} if row.undone is not None else {})
            for row in rows
        ]

    def audit(self, *, progress: Told | None = None) -> Audit:
        """What comparing all releases with each other exposes; `progress` as for `insert`. Returns the findings."""
        from shoal.evolve.store.publish import audit_all

        return audit_all(self._database, self.settings, Progress.of(progress))

    def check(self, *, progress: Told | None = None) -> Examination:
        """Prove it: every record in one class, the policy in every class, every release as its manifest says; `progress` as
        for `insert`. Returns the problems.
        """
        from shoal.evolve.store.examine import examine

        return examine(self._database, self.settings, Progress.of(progress))

    def records(self) -> pl.DataFrame:
        """The table as it is now, with its keys."""
        with self._database.reading() as connection:
            state = read_state(connection)
            rows = connection.execute(
                sa.select(tables.records.c.key, tables.records.c.content).order_by(tables.records.c.number)
            ).all()
        frame = decode_rows([row.content for row in rows], state.types)
        return frame.insert_column(0, pl.Series(self.settings.key, [row.key for row in rows], dtype=pl.String))

    def keys(self) -> list[str]:
        """The keys of all records, as text."""
        with self._database.reading() as connection:
            return list(connection.execute(sa.select(tables.records.c.key).order_by(tables.records.c.number)).scalars())

    def mark(self, feed: str) -> str | None:
        """Returns how far a `feed` has been read, as the last batch of it said; None for one that is not known."""
        with self._database.reading() as connection:
            found = mark_of(connection, (feed, ""))
        return None if found is None else found[1]

    @contextmanager
    def _changing(self) -> Iterator[tuple[sa.Connection, State]]:
        """A transaction alone with the store; when it fails, what is in memory goes too, unless nothing was done to it."""
        try:
            with self._database.writing() as connection:
                yield connection, read_state(connection, lock=True)
        except BaseException:
            if self._live is not None and self._live.next_version is not None:
                self._live = None
            raise
        if self._live is not None and self._live.next_version is not None:
            self._live.version, self._live.next_version = self._live.next_version, None

    def _types(self) -> dict[str, str]:
        with self._database.reading() as connection:
            return read_state(connection).types

    def _load(self, connection: sa.Connection, state: State) -> Live:
        """The classes at this state, from memory as far as possible."""
        live, self._live = self._live, None
        if live is None:
            live = load(connection, self.settings, state)
        elif live.version != state.version:
            live = follow(connection, self.settings, state, live)
        self._live = live
        return live


def _table_and_schema(data: Any, schema: Any, key: str) -> tuple[pl.DataFrame, Schema]:
    """The table, and the role of each of its columns; the key is an identifier."""
    if isinstance(data, Microdata):
        frame, declared = data.frame, data.schema
    else:
        if schema is None:
            raise ConfigError("A frame needs a schema that says who each column is; give schema=.")
        frame, _ = to_polars(data)
        declared = read_schema(schema)
    if key not in frame.columns:
        raise InputError(f"The table has no column '{key}' to be the key; {did_you_mean(key, frame.columns)}")
    if declared.person is not None:
        raise UnsupportedError(
            f"A store takes one row a person, and '{declared.person}' has the role \"person\": publish the table with shoal "
            "anonymize, or bring it to one row a person first."
        )
    given = declared.attributes.get(key)
    if given is not None and given.role != "identifier":
        raise ConfigError(
            f"The key '{key}' has the role {given.role} and would be published; give it the role \"identifier\", or copy it "
            "to a column of its own."
        )
    own = {key: Attribute(role="identifier")}  # type: ignore[call-arg]
    return frame, Schema({**declared.attributes, **own}, declared.folder).resolve(frame.columns)


def _encoded(books: Books, frame: pl.DataFrame, codes: Any, secrets: Any) -> Microdata:
    """The table with the codes of the store."""
    domains = books.space("ncp").domains
    return Microdata(frame, books.schema, codes, domains, books.sensitive(secrets))


def _full_run(data: Microdata, settings: Settings, progress: Progress) -> Any:
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


def _write_new(
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
    news = [{**row, "version": 1} for row in books.news(Books(settings.schema, settings.policy))]
    if news:
        connection.execute(tables.values.insert(), news)
    rows = zip(range(len(keys)), keys, classes.labels.tolist(), encode_rows(frame), strict=True)
    for part in tables.chunks(list(rows)):
        progress.check()
        connection.execute(
            tables.records.insert(),
            [record_row(n, n, key, c, text, 1) for n, key, c, text in part],
        )
