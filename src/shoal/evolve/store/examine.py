"""`shoal store check`: what the store promises, proved from what is written in it and nothing that is in memory."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl
import sqlalchemy as sa

from shoal.errors import Cancelled, ShoalError, VerificationError
from shoal.evolve.store import tables
from shoal.evolve.store.database import Database
from shoal.evolve.store.live import State, read_state
from shoal.evolve.store.seals import batch_seal, place_seal, record_seal, release_seal, rows_seal
from shoal.evolve.store.settings import Settings, decode_rows
from shoal.progress import Progress
from shoal.schema import Attribute, Schema
from shoal.transform import transformed
from shoal.verifier import verify

CLASS = "__class"


@dataclass(frozen=True)
class Examination:
    """What was looked at, and the sentences about what is not as it should be."""

    version: int
    records: int
    classes: int
    releases: int
    problems: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether everything is as it should be."""
        return not self.problems

    def require(self) -> Examination:
        """Itself, or an error that names what is wrong."""
        if self.problems:
            more = f" (and {len(self.problems) - 1} more problems)" if len(self.problems) > 1 else ""
            raise VerificationError(f"The store is not as it should be: {self.problems[0]}{more}")
        return self

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "passed": self.passed}


def examine(database: Database, settings: Settings, progress: Progress) -> Examination:
    """Read everything at one moment and check it."""
    with database.reading() as connection:
        state = read_state(connection)
        rows = connection.execute(sa.select(tables.records).order_by(tables.records.c.number)).all()
        with progress.stage("checking records", 0.5) as part:
            problems = [*_pages(connection, database), *_seals(connection, rows)]
            part(0.5)
            problems += [*_numbers(connection, state, rows), *_policy(rows, state, settings, part)]
            problems += _batches(connection, state)
        total = connection.execute(sa.select(sa.func.count()).select_from(tables.releases)).scalar() or 0
        count = 0
        for release in connection.execute(sa.select(tables.releases).order_by(tables.releases.c.number)):
            count += 1
            with progress.stage(f"checking release {release.number}", 0.5 / max(1, total)) as part:
                problems += _release(release, settings, part)
    return Examination(state.version, len(rows), len({row._mapping["class"] for row in rows}), count, tuple(problems))


def _pages(connection: sa.Connection, database: Database) -> Iterator[str]:
    """What the database itself finds wrong with its file."""
    if database.is_sqlite:
        for line in connection.exec_driver_sql("PRAGMA integrity_check(5)").scalars():
            if line != "ok":
                yield f"the file is damaged ({line}); restore it from a backup."


def _seals(connection: sa.Connection, rows: Any) -> Iterator[str]:
    """Everything that has a seal is as it was written."""
    for row in rows:
        if row.seal != record_seal(row.number, row.person, row.key, row.content):
            yield (
                f"record '{row.key}' (number {row.number}) is not as it was written; give it anew with shoal store update, "
                "or restore the store from a backup."
            )
        if row.place_seal != place_seal(row.number, row._mapping["class"], row.version):
            yield (
                f"the class of record '{row.key}' (number {row.number}) is not as it was written; shoal store renew gives all "
                "records new classes."
            )
    before = ""
    for row in connection.execute(sa.select(tables.batches).order_by(tables.batches.c.version)):
        if row.seal != batch_seal(before, row._mapping):
            yield f"change {row.version} in the list of changes is not as it was written; restore the store from a backup."
        before = row.seal
    before = ""
    for row in connection.execute(sa.select(tables.releases).order_by(tables.releases.c.number)):
        if row.seal != release_seal(before, row._mapping):
            yield (
                f"release {row.number} is not remembered as it was written, and later ones cannot be audited against it; restore "
                "the store from a backup. The file that was published is not concerned."
            )
        if row.rows_seal != rows_seal(row.shown, row.faces):
            yield f"the rows behind release {row.number} are not as they were written; restore the store from a backup."
        before = row.seal


def _numbers(connection: sa.Connection, state: State, rows: Any) -> Iterator[str]:
    """Every record once, with one class, and no number that is yet to be given."""
    numbers = [row.number for row in rows]
    if len(set(numbers)) < len(numbers):
        yield "a record is in it twice."
    if len({row.key for row in rows}) < len(rows):
        yield "two records have the same key."
    for row in rows:
        if row._mapping["class"] is None:
            yield f"record '{row.key}' is in no class."
        elif row.number >= state.next_record or row._mapping["class"] >= state.next_class:
            yield f"record '{row.key}' has a number or a class that was never given."
        elif row.version > state.version:
            yield f"record '{row.key}' was changed at version {row.version}, and the store is at {state.version}."
    gone = set(connection.execute(sa.select(tables.gone.c.number)).scalars())
    if gone & set(numbers):
        yield f"record {min(gone & set(numbers))} is both there and gone."


def _policy(rows: Any, state: State, settings: Settings, progress: Progress) -> Iterator[str]:
    """The verifier on a table whose only quasi-identifier is the class."""
    try:
        # Records are kept as they came; what is published of them is rounded and truncated as declared.
        frame = transformed(decode_rows([row.content for row in rows], state.types), settings.schema)
    except (pl.exceptions.PolarsError, ShoalError) as error:
        yield f"the records cannot be read ({str(error).splitlines()[0]})."
        return
    classes = pl.Series(CLASS, [str(row._mapping["class"]) for row in rows], dtype=pl.String)
    others = {
        name: attribute.model_copy(update={"role": "other"}) if attribute.role == "quasi" else attribute
        for name, attribute in settings.schema.attributes.items()
    }
    schema = Schema({**others, CLASS: Attribute(role="quasi", kind="category")})  # type: ignore[call-arg]
    try:
        # The store holds what came in; what it says about columns holds for what leaves.
        leaving = transformed(frame, settings.schema).with_columns(classes)
        verify(leaving, settings.policy, schema, progress=progress).require()
    except Cancelled:
        raise
    except ShoalError as problem:
        yield str(problem)


def _batches(connection: sa.Connection, state: State) -> Iterator[str]:
    """As many changes as versions, and as many records as they left."""
    versions, balance = [], 0
    for row in connection.execute(sa.select(tables.batches).order_by(tables.batches.c.version)):
        counts = json.loads(row.counts)
        versions.append(row.version)
        balance += counts.get("inserted", 0) - counts.get("deleted", 0)
    if versions != list(range(1, state.version + 1)):
        yield f"its {len(versions)} changes do not lead to version {state.version}."
    there = connection.execute(sa.select(sa.func.count()).select_from(tables.records)).scalar()
    if there != balance:
        yield f"its changes leave {balance} records, and {there} are there."


def _release(release: Any, settings: Settings, progress: Progress) -> Iterator[str]:
    """The stored table is the one of the manifest, and satisfies the policy it claims."""
    try:
        manifest = json.loads(release.manifest)
    except ValueError:
        yield f"the manifest of release {release.number} cannot be read."
        return
    if release.masked is None:
        return
    digest = hashlib.sha256(release.masked).hexdigest()
    if digest != manifest.get("table_sha256"):
        yield f"the table of release {release.number} is not the one its manifest names."
        return
    masked = pl.read_ipc(io.BytesIO(release.masked))
    try:
        evidence = verify(masked, settings.policy, settings.schema, progress=progress).require()
    except Cancelled:
        raise
    except ShoalError as problem:
        yield f"release {release.number}: {problem}"
        return
    told = manifest["evidence"]
    if (told["records"], told["classes"]) != (evidence.records, evidence.classes):
        yield f"release {release.number} has other records or classes than its manifest says."
