"""`shoal store check`: what the store promises, proved from what is written in it and nothing that is in memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa

from shoal.errors import Cancelled, ShoalError, VerificationError, because, raw
from shoal.evolve.store import dregs, tables
from shoal.evolve.store.changes import read_frame
from shoal.evolve.store.database import Database
from shoal.evolve.store.live import State, read_state
from shoal.evolve.store.retention import last_compacted
from shoal.evolve.store.seals import batch_seal, left_seal, place_seal, record_seal, release_seal, rows_seal, value_seal
from shoal.evolve.store.settings import Settings, decode_rows
from shoal.evolve.store.snapshot import ROWS, damaged, read_held
from shoal.evolve.store.visits import published
from shoal.persons import number_persons
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
        seen = _Seen(state)
        with progress.stage("checking records", 0.5) as part:
            problems = [*_pages(connection, database), *_dregs(connection)]
            query = sa.select(tables.records).order_by(tables.records.c.number).execution_options(stream_results=True)
            for rows in connection.execute(query).partitions(ROWS):
                part.check()
                problems += _told("a record", seen.add(rows))
            problems += [
                *_told("the list of changes", _chains(connection)),
                *_told("the list of those who left", _known(connection)),
                *_told("a record", seen.together(connection)),
            ]
            part(0.5)
            sound = not problems
            problems += _told("a record", _policy(seen, settings, part))
            problems += _told("the snapshot", _snapshot(connection, state, seen, sound))
            problems += _told("the list of changes", _batches(connection, state))
        compacted = last_compacted(connection)
        total = connection.execute(sa.select(sa.func.count()).select_from(tables.releases)).scalar() or 0
        count = 0
        for release in connection.execute(sa.select(tables.releases).order_by(tables.releases.c.number)):
            count += 1
            with progress.stage(f"checking release {release.number}", 0.5 / max(1, total)) as part:
                problems += _told(f"release {release.number}", _release(release, compacted, settings, part))
    return Examination(state.version, len(seen.numbers), len(set(seen.places)), count, tuple(problems))


def _pages(connection: sa.Connection, database: Database) -> Iterator[str]:
    """What the database itself finds wrong with its file."""
    if database.is_sqlite:
        for line in connection.exec_driver_sql("PRAGMA integrity_check(5)").scalars():
            if line != "ok":
                yield f"the file is damaged ({line}); restore it from a backup."


def _dregs(connection: sa.Connection) -> Iterator[str]:
    """What may be left of somebody who was forgotten."""
    if dregs.noted(connection):
        yield (
            "somebody was forgotten, and what was deleted has not been overwritten yet; close the store in all other processes "
            "and open it again."
        )


def _told(what: str, found: Iterator[str]) -> Iterator[str]:
    """The sentences, and one more where a cell holds something that nobody would have written there."""
    try:
        yield from found
    except (TypeError, ValueError, KeyError, OverflowError, pl.exceptions.PolarsError):
        yield f"{what} holds something that cannot be read; restore the store from a backup."


class _Seen:
    """The records, some at a time: what is wrong with each, and what is asked about all of them together."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.numbers: list[int] = []
        self.persons: list[int] = []
        self.places: list[int] = []
        self._keys: list[pl.Series] = []
        self._frames = [decode_rows([], state.types)]
        self._unread: str | None = None

    def add(self, rows: Any) -> Iterator[str]:
        """More of them: every one as it was written, with a class, and no number that is yet to be given."""
        for row in rows:
            yield from self._problems(row)
        self.numbers += [row.number for row in rows]
        self.persons += [row.person for row in rows]
        self.places += [row._mapping["class"] for row in rows]
        self._keys.append(pl.Series([row.key for row in rows], dtype=pl.String))
        try:
            self._frames.append(decode_rows([row.content for row in rows], self.state.types))
        except (pl.exceptions.PolarsError, ShoalError, TypeError) as error:  # a text may be another kind of cell
            self._unread = f"the records cannot be read{because(error)}."

    def frame(self) -> pl.DataFrame | str:
        """Their values, or why they cannot be read."""
        return self._unread or pl.concat(self._frames)

    def together(self, connection: sa.Connection) -> Iterator[str]:
        """Every record once."""
        numbers = set(self.numbers)
        if len(numbers) < len(self.numbers):
            yield "a record is in it twice."
        if self._keys and pl.concat(self._keys).is_duplicated().any():
            yield "two records have the same key."
        gone = set(connection.execute(sa.select(tables.gone.c.number)).scalars())
        if gone & numbers:
            yield f"record {min(gone & numbers)} is both there and gone."

    def _problems(self, row: Any) -> Iterator[str]:
        place, state = row._mapping["class"], self.state
        called = raw(row.key, "", f"number {row.number}, key") or f"number {row.number}"
        if row.seal != record_seal(row.number, row.person, row.key, row.content):
            yield (
                f"record {called} is not as it was written; give it anew with shoal store update, "
                "or restore the store from a backup."
            )
        if row.place_seal != place_seal(row.number, place, row.version):
            yield (
                f"the class of record {called} is not as it was written; shoal store renew gives all "
                "records new classes."
            )
        if place is None:
            yield f"record {called} is in no class."
        elif not all(isinstance(number, int) for number in (row.number, place, row.version)):
            # SQLite keeps what a flipped bit makes a text of, whatever the column says.
            yield f"record {called} has a number, a class or a version that is no number."
        elif row.number >= state.next_record or place >= state.next_class:
            yield f"record {called} has a number or a class that was never given."
        elif row.version > state.version:
            yield f"record {called} was changed at version {row.version}, and the store is at {state.version}."


def _chains(connection: sa.Connection) -> Iterator[str]:
    """Changes and releases are as they were written, each after the one before."""
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


def _known(connection: sa.Connection) -> Iterator[str]:
    """Who left and which values are known are as they were written."""
    secret = tables.secret_of(connection)
    for row in connection.execute(sa.select(tables.left)):
        if row.seal != left_seal(secret, row.digest, row.person, row.forgotten):
            yield (
                f"what is kept of person {row.person}, who left, is not as it was written, and they would not be known again if "
                "they came back; restore the store from a backup."
            )
    for row in connection.execute(sa.select(tables.values)):
        if row.seal != value_seal(row._mapping):
            yield (
                f"a value that column '{str(row.column).partition(' ')[2]}' is known to have is not as it was written; restore "
                "the store from a backup."
            )


def _snapshot(connection: sa.Connection, state: State, seen: _Seen, sound: bool) -> Iterator[str]:
    """The snapshot is as it was written, and says what the records say; `sound` where nothing is wrong with these."""
    for piece in damaged(connection):
        yield (
            f"piece {piece} of the snapshot of the table is not as it was written; it is not used, and the next change writes "
            "another."
        )
    if sound:
        held = read_held(connection, state.types, state.version)
        pairs = zip((held.numbers, held.persons, held.labels), (seen.numbers, seen.persons, seen.places), strict=True)
        frame = seen.frame()
        same = isinstance(frame, pl.DataFrame) and held.frame.equals(frame)
        if not same or not all(np.array_equal(one, other) for one, other in pairs):
            yield "the snapshot of the table is of another table; shoal store renew writes another."


def _policy(seen: _Seen, settings: Settings, progress: Progress) -> Iterator[str]:
    """The verifier on a table whose only quasi-identifier is the class."""
    frame = seen.frame()
    if isinstance(frame, str):
        yield frame
        return
    classes = pl.Series(CLASS, [str(place) for place in seen.places], dtype=pl.String)
    persons = None
    if settings.rows is not None:
        frame = published(frame, settings)
        persons = number_persons(frame[str(settings.person)])
        frame, classes = frame.drop(str(settings.person)), classes[persons.of_row]
    others = {
        name: attribute.model_copy(update={"role": "other", "within": None}) if attribute.role == "quasi" else attribute
        for name, attribute in settings.given.attributes.items()
        if name != settings.person
    }
    schema = Schema({**others, CLASS: Attribute(role="quasi", kind="category")})  # type: ignore[call-arg]
    try:
        # The store holds what came in; what it says about columns holds for what leaves.
        leaving = transformed(frame, Schema(others)).with_columns(classes)
        verify(leaving, settings.policy, schema, persons=persons, progress=progress).require()
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


def _release(release: Any, compacted: int, settings: Settings, progress: Progress) -> Iterator[str]:
    """The stored table is the one of the manifest, and satisfies the policy it claims."""
    try:
        manifest = json.loads(release.manifest)
    except ValueError:
        yield f"the manifest of release {release.number} cannot be read."
        return
    if release.masked is None:
        if release.number > compacted and "withdrawn" not in manifest:
            yield f"the table of release {release.number} is missing; restore the store from a backup."
        return
    digest = hashlib.sha256(release.masked).hexdigest()
    if digest != manifest.get("table_sha256"):
        yield f"the table of release {release.number} is not the one its manifest names."
        return
    masked = read_frame(release.masked)
    try:
        evidence = verify(masked, settings.policy, settings.given, progress=progress).require()
    except Cancelled:
        raise
    except ShoalError as problem:
        yield f"release {release.number}: {problem}"
        return
    told = manifest["evidence"]
    if (told["records"], told["classes"]) != (evidence.records, evidence.classes):
        yield f"release {release.number} has other records or classes than its manifest says."
