"""Releases of a store: planned by a guard, masked, verified, audited against all earlier ones, written and remembered."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import sqlalchemy as sa

from shoal.collisions import Recoding, published_classes
from shoal.declaration import examine
from shoal.errors import InputError, InternalError, ShoalError, VerificationError
from shoal.evolve.releases.guards import Plan, Table, plan_release
from shoal.evolve.store import tables
from shoal.evolve.store.archive import Memory, frame_bytes, read_followed, read_memory
from shoal.evolve.store.database import Database
from shoal.evolve.store.live import State, read_records, read_state
from shoal.evolve.store.seals import last_seal, release_seal, rows_seal
from shoal.evolve.store.settings import Settings, decode_rows
from shoal.io.atomic import atomic_paths
from shoal.io.files import check_writable_format
from shoal.manifest import manifest_path, published_half, secret_half
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.progress import Progress, Told
from shoal.release import Release, file_digest, mask, write_verified
from shoal.verifier import verify

if TYPE_CHECKING:
    from shoal.evolve.releases.history import Audit, Finding


@dataclass(frozen=True, eq=False)
class Published:
    """A release of a store: its number, the version it shows, and the rows that wait for a later one."""

    number: int
    version: int
    release: Release = field(repr=False)
    audit: Audit = field(repr=False)
    waiting: dict[str, int]
    counterfeits: int
    path: Path | None = None

    @property
    def masked(self) -> pl.DataFrame:
        """The published table."""
        return self.release.masked

    @property
    def manifest(self) -> dict[str, Any]:
        """Where it came from and what was proved."""
        return dict(self.release.manifest)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"output": None if self.path is None else str(self.path), **self.manifest}


def publish(
    database: Database,
    settings: Settings,
    path: str | Path | None,
    *,
    allow_exposure: bool,
    force: bool,
    dry_run: bool,
    progress: Told | None,
) -> Published:
    """Make the next release. The store is held only while it is written down; with `dry_run` nothing is."""
    target, told_of = None if path is None else Path(path), Progress.of(progress)
    if target is not None:
        check_writable_format(target)
    with told_of.stage("opening the store", 0.1), database.reading() as connection:
        state = read_state(connection)
        table = read_table(connection, state)
        memory = read_memory(connection, settings, table.frame)
        number = _last(connection) + 1
    with told_of.stage("planning the release", 0.4) as part:
        plan = plan_release(
            settings.guard,
            memory.with_lives(table),
            memory.before,
            settings.schema,
            settings.policy,
            m=settings.m,
            objective=settings.objective,
            seed=settings.seed,
            progress=part,
            next_class=max(state.next_class, memory.next_class),
            earlier=memory.releases[:-1],
        )
    with told_of.stage("masking", 0.2) as part:
        release = _masked(plan, settings, part)
    with told_of.stage("comparing with earlier releases", 0.2) as part:
        found, followed = _audited(memory, plan, number, settings, part)
    if found.undecided and not found.exposed and not allow_exposure:
        raise VerificationError(
            f"Release {number} was refused, because it could not be decided within the budget whether comparing it with the "
            f"earlier ones exposes some of {found.undecided:,} records. Use the guard batching or m-invariance, wait for more "
            "changes, or release all the same with allow_exposure."
        )
    if found.exposed and not allow_exposure:
        raise VerificationError(
            f"Release {number} was refused, because comparing it with the earlier ones exposes somebody: "
            f"{_first(found)} Use the guard batching or m-invariance, wait for more changes, or release all the same "
            "with allow_exposure."
        )
    content = frame_bytes(release.masked)
    told = {
        **release.manifest,
        "release": number,
        "store_version": state.version,
        "guard": settings.guard,
        "m": settings.m,
        "waiting": dict(plan.waiting),
        "counterfeits": plan.counterfeits,
        "counterfeits_by_class": _counterfeits(plan, settings) if plan.counterfeits else [],
        "exposed": bool(found.exposed),
        "undecided": found.undecided,
        "table_sha256": hashlib.sha256(content).hexdigest(),
    }
    secret = {**release.secret, "followed": [asdict(finding) for finding in followed]}
    told_of.check()
    if dry_run:
        target = None
    elif target is None:
        told_of.seal()
        _remember(database, settings, number, state, {**told, "secret": secret}, content, plan)
    else:
        remembered = False
        try:
            with atomic_paths(target, manifest_path(target), force=force) as (table_file, manifest_file):
                write_verified(release.masked, table_file, target, settings.policy, settings.schema, progress=told_of)
                told["output_sha256"] = file_digest(table_file)
                manifest_file.write_text(_text(told), encoding="utf-8")
                # What was published must be known to the store; a file that is missing can be written again.
                told_of.seal()
                _remember(database, settings, number, state, {**told, "secret": secret}, content, plan)
                remembered = True
        except (ShoalError, OSError) as problem:
            if not remembered:
                raise
            raise InputError(
                f"Release {number} is in the store and its file is not there ({problem}); write it with shoal store release "
                f"--again {number}."
            ) from None
    final = replace(release, policy=settings.policy, manifest=told)
    return Published(number, state.version, final, found, dict(plan.waiting), plan.counterfeits, target)


def export(database: Database, settings: Settings, number: int, path: str | Path, *, force: bool) -> Path:
    """Write a release that was made before."""
    target = Path(path)
    check_writable_format(target)
    with database.reading() as connection:
        row = connection.execute(sa.select(tables.releases).where(tables.releases.c.number == number)).one_or_none()
    if row is None:
        raise InputError(f"The store has no release {number}; see shoal store history.")
    with atomic_paths(target, manifest_path(target), force=force) as (table_file, manifest_file):
        masked = pl.read_ipc(io.BytesIO(row.masked))
        write_verified(masked, table_file, target, settings.policy, settings.schema)
        told = {**json.loads(row.manifest), "output_sha256": file_digest(table_file)}
        told.pop("secret", None)
        manifest_file.write_text(_text(told), encoding="utf-8")
    return target


def history(database: Database) -> list[dict[str, Any]]:
    """One line a release, oldest first."""
    table = tables.releases.c
    with database.reading() as connection:
        query = sa.select(table.number, table.version, table.manifest, table.at).order_by(table.number)
        rows = connection.execute(query).all()
    found = []
    for row in rows:
        told = json.loads(row.manifest)
        measures = told.get("secret", told)["measures"]
        shown = {name: measures[name] for name in ("classes", "smallest_class", "ncp", "il", "nil")}
        found.append(
            {
                "release": row.number,
                "version": row.version,
                "at": row.at,
                "guard": told["guard"],
                "records": told["evidence"]["records"],
                **shown,
                "waiting": sum(told["waiting"].values()),
                **{f"waiting_{name}": count for name, count in told["waiting"].items()},
                "counterfeits": told["counterfeits"],
                "exposed": told["exposed"],
            }
        )
    return found


def audit_all(database: Database, settings: Settings, progress: Progress) -> Audit:
    """All releases against each other."""
    from shoal.evolve.releases.history import audit_members

    with database.reading() as connection:
        memory = read_memory(connection, settings, decode_rows([], read_state(connection).types))
        followed = read_followed(connection)
    if not memory.releases:
        raise InputError("The store has no releases yet; make one with shoal store release.")
    with progress.stage("comparing releases") as part:
        return audit_members(memory.releases, settings.schema, settings.policy, followed=followed, progress=part)


def read_table(connection: sa.Connection, state: State) -> Table:
    """The records by person."""
    numbers, labels, frame = read_records(connection, state)
    order = sa.select(tables.records.c.person).order_by(tables.records.c.number)
    persons = np.fromiter(connection.execute(order).scalars(), dtype=np.int64, count=len(numbers))
    by_person = np.argsort(persons)
    return Table(persons[by_person], frame[by_person], labels[by_person])


def _masked(plan: Plan, settings: Settings, progress: Progress) -> Release:
    """Mask what the guard lets through, and verify it."""
    frame = plan.shown.frame
    for name in (*settings.schema.named("quasi"), *settings.schema.named("sensitive")):
        if frame[name].null_count() == frame.height:
            raise InputError(
                f"Column '{name}' has no value left in any record that would be shown; undo the batch that took the last ones "
                "(shoal store undo), bring records that have values, or create a store without the column."
            )
    data = Microdata.from_frame(frame, settings.schema)
    asis = examine(data.frame, data.schema).require()
    rules = data.rules(settings.policy)
    partition = Partition.compact(plan.shown.classes)
    shown_as = Recoding(intervals=settings.intervals)
    partition, states = published_classes(data, partition, rules, data.space(settings.objective), shown_as)
    masked, _ = mask(
        data,
        partition,
        states,
        recode="generalize",
        intervals=settings.intervals,
        drop_suppressed=False,
        shuffle_seed=settings.seed if settings.order == "shuffle" else None,
    )
    with progress.stage("verifying", 0.5) as part:
        evidence = verify(masked, settings.policy, settings.schema, progress=part)
    if not evidence.passed:
        try:
            evidence.require()
        except VerificationError as problem:
            raise InternalError(f"a release failed verification, nothing was released. {problem}") from None
    with progress.stage("measuring") as part:
        measures = measure(data, partition, rules.k, states, progress=part)
    how = {
        "algorithm": settings.algorithm,
        "objective": settings.objective,
        "refine": settings.refine,
        "seed": settings.seed,
        "recode": "generalize",
        "intervals": settings.intervals,
        "order": settings.order,
        "options": dict(settings.options),
    }
    told = published_half(data, settings.policy, evidence, measures, how)
    told["roles"] = {**dict.fromkeys(settings.ignored, "identifier"), **told["roles"]}
    told["published_as_it_is"] = asis.to_dict()
    return Release(
        masked, settings.policy, evidence, measures, told, secret_half(data, measures, how, {}), data, partition
    )


def _audited(
    memory: Memory, plan: Plan, number: int, settings: Settings, progress: Progress
) -> tuple[Audit, list[Finding]]:
    """What the release would give away that the earlier ones did not, and of that the rows that can be followed."""
    from shoal.evolve.releases.history import audit_members, rows_followed

    followed: list[Finding] = []
    if memory.before is not None:
        followed = rows_followed(memory.before, plan.shown, number, settings.schema, settings.policy)
    releases = [*memory.releases, memory.remembered(plan.shown)]
    found = audit_members(
        releases, settings.schema, settings.policy, newest_only=True, followed=followed, progress=progress
    )
    return found, followed


def _first(found: Audit) -> str:
    shown = str(found.findings[0]) if found.findings else "an attack succeeds."
    more = f" (and {len(found.findings) - 1} more findings)" if len(found.findings) > 1 else ""
    return f"{shown.rstrip('.')}{more}."


def _counterfeits(plan: Plan, settings: Settings) -> list[dict[str, Any]]:
    """How many rows of a class nobody is behind; the reader must know."""
    data = Microdata.from_frame(plan.shown.frame, settings.schema)
    partition = Partition.compact(plan.shown.classes)
    how = Recoding(intervals=settings.intervals)
    rules = data.rules(settings.policy)
    partition, states = published_classes(data, partition, rules, data.space(settings.objective), how)
    texts = data.space(settings.objective).publish(states)
    forged = np.bincount(partition.labels[plan.shown.records < 0], minlength=partition.classes)
    return [
        {
            "class": {name: column[c] for name, column in zip(data.quasi, texts, strict=True)},
            "counterfeits": int(forged[c]),
        }
        for c in np.flatnonzero(forged).tolist()
    ]


def _last(connection: sa.Connection) -> int:
    return connection.execute(sa.select(sa.func.max(tables.releases.c.number))).scalar() or 0


def _remember(
    database: Database,
    settings: Settings,
    number: int,
    state: State,
    told: dict[str, Any],
    content: bytes,
    plan: Plan,
) -> None:
    """Write the release down with what later ones are planned by and audited against."""
    with database.writing() as connection:
        read_state(connection, lock=True)
        if _last(connection) + 1 != number:
            raise InputError("Another process made a release at the same moment; nothing was released: try again.")
        _, written = read_memory(connection, settings, plan.shown.frame).after(plan.shown)
        before = last_seal(connection, tables.releases, tables.releases.c.number)
        nothing = {"shown": None, "faces": None, "rows_seal": rows_seal(None, None)}
        connection.execute(tables.releases.update().values(**nothing))
        row = {
            "number": number,
            "version": state.version,
            "manifest": json.dumps(told, ensure_ascii=False, sort_keys=True),
            "masked": content,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            **written,
        }
        row |= {"seal": release_seal(before, row), "rows_seal": rows_seal(row["shown"], row["faces"])}
        connection.execute(tables.releases.insert(), row)


def _text(told: dict[str, Any]) -> str:
    return json.dumps(told, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
