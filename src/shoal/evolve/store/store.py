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

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl
import sqlalchemy as sa

from shoal.algorithms import names
from shoal.configuration import Configuration
from shoal.errors import (
    ConfigError,
    InputError,
    require_a,
    require_names,
    require_switch,
    require_whole,
    require_word,
    shown,
)
from shoal.evolve.releases.guards import GUARDS, Guard
from shoal.evolve.store import dregs, overview, tables
from shoal.evolve.store.batch_input import KeyedRows, read_keys, read_rows
from shoal.evolve.store.commit import (
    Applied,
    adopt,
    commit,
    forgotten,
    locate,
    mark_of,
    records_of,
    take_back,
    version_of,
)
from shoal.evolve.store.database import PATIENCE, Database, UnavailableError
from shoal.evolve.store.live import Live, State, classes_of, follow, load, read_state
from shoal.evolve.store.making import Beginning, begin, encoded, full_run
from shoal.evolve.store.renewal import note_recut
from shoal.evolve.store.seals import batch_content
from shoal.evolve.store.settings import MISSING_TEXTS, OfMissing, Settings, Shape
from shoal.evolve.store.snapshot import read_changed, read_held, write
from shoal.evolve.store.visits import spread, translated
from shoal.inputs import as_policy
from shoal.models import Model
from shoal.policy import Policy
from shoal.progress import Progress, Told
from shoal.refine import Effort
from shoal.schema import Order, Schema
from shoal.space import Measure

if TYPE_CHECKING:
    from shoal.evolve.releases.history import Audit
    from shoal.evolve.store.examine import Examination
    from shoal.evolve.store.forget import Forgotten
    from shoal.evolve.store.publish import Published
    from shoal.evolve.store.withdraw import Withdrawn


Done = TypeVar("Done", Applied, "Forgotten")


class _RehearsedError(Exception):
    """Ends a dry run, so that the transaction is taken back."""

    def __init__(self, done: Any) -> None:
        super().__init__()
        self.done = done


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
    >>> store.retain(1), [row["in_full"] for row in store.history()]
    (1, [False, True])
    >>> store.withdraw(never_handed_out=True).number, store.status()["releases"]
    (2, 1)
    >>> store.forget([11]).deleted
    1
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
        retention: int | None = None,
        progress: Told | None = None,
        patience: float = PATIENCE,
    ) -> Store:
        """Anonymize a table and keep it, so that it can change and be released again. All or nothing.

        What is given here is written into the store (`Store.settings`) and holds for all batches and releases to come.

        - `url`: the database, as SQLAlchemy writes it: `sqlite:///registry.db`, `postgresql://user@host/name`.
        - `data`: a Microdata, or a frame of pandas, polars or pyarrow together with its `schema`.
        - `policy`: a model, or several joined with `&`; every class satisfies it after every batch.
        - `key`: the column that names each record in later batches. It is never published; other identifiers are not kept.
          Where a column has the role "person", the key names a row, and what the store counts, keeps together and forgets is a
          person (docs/evolving-data.md#people-with-several-rows).
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
        - `retention`: how many releases are kept in full, all by default; the tables of older ones are dropped, and what
          guards and audits ask stays (`Store.retain` changes it later).
        - `progress`: called with the share of the work that is done.
        - `patience`: seconds to wait for a database that others write to; 60.0 by default.

        Returns the store, ready for `insert`, `update`, `delete`, `apply` and `release`.
        """
        require_a("key", key, str, "the name of a column")
        require_a("options", options, (Mapping, type(None)), "a dictionary of the algorithm's options")
        require_names("missing", missing_texts)
        require_word("algorithm", algorithm, names())
        asked = as_policy(policy)
        database = Database(url, patience)
        if database.path is None or database.path.exists():  # say no before the work, not after it
            with database.reading() as connection:
                tables.require_none(connection, database.name)
        first = Beginning.of(data, schema, key, missing, missing_texts)
        settings = Settings(
            key=key,
            schema=first.schema,
            policy=asked,
            ignored=first.ignored,
            rows=first.rows,
            row_types=first.row_types,
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
            retention=retention,
        )
        live = begin(database, settings, first, Progress.of(progress))
        store = cls(database, settings)
        store._live = live
        return store

    @classmethod
    def open(cls, url: str, *, patience: float = PATIENCE) -> Store:
        """A store that is there; one of an older layout is brought to the present one, and one that was left while somebody
        was being forgotten is rewritten.

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
            unfinished = dregs.noted(connection)
        if unfinished:
            # Somebody may be reading it; then `check` says so, and whoever opens it next tries again.
            with suppress(UnavailableError):
                dregs.scour(database)
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
        - `dry_run`: whether to find out what it would do and what the next release would then be, and do nothing; False by
          default.

        Returns what it did, or would do.
        """
        if insert is None and update is None and delete is None and upsert is None:
            raise InputError("The batch is empty; give records to insert or update, or keys to delete.")
        require_a("batch", batch, (str, type(None)), "a name")
        if mark is not None and not (
            isinstance(mark, tuple) and len(mark) == 2 and all(isinstance(m, str) for m in mark)
        ):
            raise ConfigError(
                f"mark = {shown(mark)} is not allowed; it must be the name of a feed and how far it was read."
            )
        require_switch("dry_run", dry_run)
        told = Progress.of(progress)
        types = self.settings.row_types or self._types()
        given = {
            name: read_rows(source, self.settings, types, partial=name == "update")
            for name, source in (("insert", insert), ("update", update), ("upsert", upsert))
            if source is not None
        }
        leaving = [] if delete is None else read_keys(delete, self.settings)

        def do(connection: sa.Connection, state: State, part: Progress) -> Applied:
            return self._applied(connection, state, given, leaving, batch, mark, part)

        return self._done(do, told, dry_run)

    def _done(self, do: Callable[[sa.Connection, State, Progress], Done], told: Progress, dry_run: bool) -> Done:
        """Change something in one transaction. A dry run looks at what would be released then, and takes it back."""
        from shoal.evolve.store.publish import prospect

        try:
            with self._changing() as (connection, state):
                with told.stage(weight=0.5 if dry_run else None) as part:
                    done = do(connection, state, part)
                if dry_run:
                    raise _RehearsedError(replace(done, prospect=prospect(connection, self.settings, told)))
                told.seal()
        except _RehearsedError as only:
            found: Done = only.done
            return found
        return done

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
        if self.settings.rows is not None:
            present = spread(read_held(connection, state.types, state.version).frame, self.settings)
            given, leaving = translated(present, self.settings, given, leaving)
        located = locate(connection, self.settings, state, given, leaving)
        if located.empty and batch is None and mark_of(connection, mark) == mark:
            return Applied(state.version, None, applied=False, unchanged=located.unchanged)
        with told.stage("opening the store", 0.1):
            live = self._load(connection, state)
        with told.stage() as part:
            return commit(connection, self.settings, live, state, located, batch, mark, part, content)

    def undo(self, *, progress: Told | None = None, dry_run: bool = False) -> Applied:
        """Take back the last batch; one level, and releases that were made of it stay. `progress` as for `insert`, `dry_run` as
        for `apply`.

        Returns what it did, or would do.
        """

        require_switch("dry_run", dry_run)

        def do(connection: sa.Connection, state: State, part: Progress) -> Applied:
            self._live = None
            return take_back(connection, state, part)

        return self._done(do, Progress.of(progress), dry_run)

    def forget(self, keys: Any, *, progress: Told | None = None, dry_run: bool = False) -> Forgotten:
        """Remove people for good: their key and values are nowhere in the database afterwards, nor in its free pages.

        `keys` is a list, or a frame or file with the key column, or with that of the role "person" if there is one, all of whose
        rows then go; of people who are in the table, or were. A row of theirs that is published stays one of its class, with
        somebody else's quasi-identifiers, until the class leaves: without it the class would tell what they had. The last batch
        cannot be undone any more. `progress` as for `insert`, `dry_run` as for `apply`. Returns what was done, or would be.
        """
        from shoal.evolve.store.forget import Forgotten, left_persons, wipe

        require_switch("dry_run", dry_run)
        wanted, told = read_keys(keys, self.settings, self.settings.person), Progress.of(progress)
        if not wanted:
            raise InputError("There is nobody to forget; give at least one key.")

        def do(connection: sa.Connection, state: State, part: Progress) -> Forgotten:
            there = records_of(connection, wanted)
            absent = [key for key in wanted if key not in there]
            persons = left_persons(connection, self.settings, absent) + [row.person for row in there.values()]
            if there:
                located = locate(connection, self.settings, state, {}, list(there))
                with part.stage("opening the store", 0.2):
                    live = self._load(connection, state)
                with part.stage(weight=0.6) as inner:
                    commit(connection, self.settings, live, state, located, None, None, inner)
            version = forgotten(connection, state, len(there))
            shown = wipe(connection, self.settings, read_state(connection), persons)
            self._live = None
            return Forgotten(version, len(wanted), len(there), shown)

        done = self._done(do, told, dry_run)
        if not dry_run:
            dregs.scour(self._database)
        return done

    def renew(self, *, progress: Told | None = None) -> Applied:
        """Anonymize the whole table anew and go on from there; `progress` as for `shoal.anonymize`.

        Under batching what was published stays together: the next release cuts it finer where that loses less, and `note` says
        how much less, or that it cannot. Under m-invariance every release is cut anew by itself. The store is not held
        meanwhile; a change in it starts it over. Returns what it did.
        """
        from shoal.evolve.store.publish import worth

        told = Progress.of(progress)
        for _ in range(5):
            with told.stage("opening the store", 0.1), self._database.reading() as connection:
                state = read_state(connection)
                held = read_changed(connection, state.types)  # what is renewed goes back to nothing but the records
                self._live = live = classes_of(connection, self.settings, state, held)
            data = encoded(live.books, held.frame, live.classes.codes, live.classes.sensitive)
            with told.stage(weight=0.65) as part:
                labels = full_run(data, self.settings, part)
            with told.stage("planning the release", 0.2) as part, self._database.reading() as connection:
                note, recut = worth(connection, self.settings, part)
            with self._changing() as (connection, now):
                applied = adopt(connection, live, now, labels, told) if now.version == state.version else None
                if applied is not None:
                    write(connection, applied.version, replace(held, labels=live.classes.labels))
                    note_recut(connection, recut)
                    told.seal()
            if applied is not None:
                return replace(applied, note=note)
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

        require_a("path", path, (str, Path, type(None)), "a path, whose ending says the format")
        for what, switch in (("allow_exposure", allow_exposure), ("force", force), ("dry_run", dry_run)):
            require_switch(what, switch)
        if guard is not None:
            require_word("guard", guard, GUARDS)
        chosen = self.settings.guard if guard is None else guard
        own = self.settings.m if chosen == self.settings.guard else None
        settings = replace(self.settings, guard=chosen, m=own if m is None else m)
        how: dict[str, Any] = {"allow_exposure": allow_exposure or dry_run, "force": force, "progress": progress}
        return publish(self._database, settings, path, dry_run=dry_run, **how)

    def export(self, number: int, path: str | Path, *, force: bool = False) -> Path:
        """Write an earlier release again: its `number`, the `path` of the file, and with `force` over one that is
        there. Returns the path.
        """
        from shoal.evolve.store.publish import export

        require_whole("number", number, 1, 2**31)
        require_a("path", path, (str, Path), "a path, whose ending says the format")
        require_switch("force", force)
        return export(self._database, self.settings, number, path, force=force)

    def withdraw(self, *, never_handed_out: bool) -> Withdrawn:
        """Take back the last release, which nobody has: later ones are neither planned after it nor audited against it.

        `never_handed_out` is your word for it, True or nothing happens. Whoever has the release all the same can lay it beside
        later ones, which are not made to be safe beside it. Only the last release can be withdrawn; its number is not given
        again, and the history says that it was there. Returns its number and that of the last release that counts.
        """
        from shoal.evolve.store.withdraw import withdraw

        require_switch("never_handed_out", never_handed_out)
        return withdraw(self._database, never_handed_out=never_handed_out)

    def retain(self, releases: int | None) -> int:
        """Keep so many `releases` in full from now on, the newest ones; None for all. The tables of older ones are dropped, and
        cannot be written again. What guards and audits ask stays for all of them, and their answers are the same.

        Returns how many were compacted.
        """
        from shoal.evolve.store.retention import retain

        settings = replace(self.settings, retention=releases)
        count = retain(self._database, settings)
        self.settings = settings
        return count

    def history(self) -> list[dict[str, Any]]:
        """The releases so far, oldest first: number, version, records, classes, losses, waiting rows, counterfeits, and when
        one was withdrawn."""
        return overview.history(self._database)

    def status(self) -> dict[str, Any]:
        """How the store is, in numbers for who looks after it: version, records, classes, changes since the last release, and
        of that release what waits, its loss and what its audit found; the database's size in bytes."""
        return overview.status(self._database)

    def batches(self) -> list[dict[str, Any]]:
        """The batches so far, oldest first."""
        return overview.batches(self._database)

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
        return overview.records(self._database, self.settings)

    def keys(self) -> list[str]:
        """The keys of all records, as text."""
        return overview.keys(self._database, self.settings)

    def mark(self, feed: str) -> str | None:
        """Returns how far a `feed` has been read, as the last batch of it said; None for one that is not known."""
        require_a("feed", feed, str, "a name")
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
        """The classes at this state, from memory as far as possible, in a transaction that may write."""
        live, self._live = self._live, None
        if live is None:
            live = load(connection, self.settings, state)
        elif live.version != state.version:
            live = follow(connection, self.settings, state, live)
        self._live = live
        return live
