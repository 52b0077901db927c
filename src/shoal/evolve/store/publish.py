"""Releases of a store: planned by a guard, masked, verified, audited against all earlier ones, written and remembered."""

from __future__ import annotations

import hashlib
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
from shoal.errors import Cancelled, InputError, InternalError, ShoalError, VerificationError
from shoal.evolve.releases.guards import Plan, Shown, Table, plan_release
from shoal.evolve.store import tables
from shoal.evolve.store.archive import Memory, read_followed, read_memory
from shoal.evolve.store.changes import frame_bytes, read_frame
from shoal.evolve.store.commit import Prospect
from shoal.evolve.store.database import Database
from shoal.evolve.store.live import State, read_state
from shoal.evolve.store.renewal import helps, note_recut, recutting
from shoal.evolve.store.retention import compact
from shoal.evolve.store.seals import last_seal, release_seal, rows_seal
from shoal.evolve.store.settings import Settings, decode_rows
from shoal.evolve.store.snapshot import read_held
from shoal.evolve.store.visits import published, seen
from shoal.io.atomic import atomic_paths
from shoal.io.files import check_writable_format
from shoal.io.lean import spelled_out
from shoal.manifest import manifest_path, published_half, secret_half
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.progress import Progress, Told
from shoal.release import Release, file_digest, mask, write_verified
from shoal.space import States
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
        held = _read(connection, settings)
    number, state = held.number, held.state
    with told_of.stage(weight=0.8) as part:
        ready = _prepared(held, settings, part)
    plan, release, found = ready.plan, ready.release, ready.found
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
    secret = {**release.secret, "followed": [asdict(finding) for finding in ready.followed]}
    told_of.check()
    if dry_run:
        target = None
    elif target is None:
        told_of.seal()
        _remember(database, held, ready, {**told, "secret": secret}, content)
    else:
        remembered = False
        try:
            with atomic_paths(target, manifest_path(target), force=force) as (table_file, manifest_file):
                how: dict[str, Any] = {"persons": release.persons, "progress": told_of}
                write_verified(release.masked, table_file, target, settings.policy, settings.given, **how)
                told["output_sha256"] = file_digest(table_file)
                manifest_file.write_text(_text(told), encoding="utf-8")
                # What was published must be known to the store; a file that is missing can be written again.
                told_of.seal()
                _remember(database, held, ready, {**told, "secret": secret}, content)
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


def prospect(connection: sa.Connection, settings: Settings, progress: Progress) -> Prospect:
    """What a release would be, made of what this connection sees now."""
    try:
        with progress.stage("opening the store", 0.1):
            held = _read(connection, settings)
        with progress.stage() as part:
            ready = _prepared(held, settings, part)
    except Cancelled:
        raise
    except ShoalError as problem:
        return Prospect(refused=str(problem))
    return Prospect(
        shown=ready.release.masked.height,
        waiting=dict(ready.plan.waiting),
        counterfeits=ready.plan.counterfeits,
        loss=ready.release.measures.ncp,
        findings=tuple(finding.withheld for finding in ready.found.found),
        undecided=ready.found.undecided,
    )


def export(database: Database, settings: Settings, number: int, path: str | Path, *, force: bool) -> Path:
    """Write a release that was made before."""
    target = Path(path)
    check_writable_format(target)
    with database.reading() as connection:
        row = connection.execute(sa.select(tables.releases).where(tables.releases.c.number == number)).one_or_none()
    if row is None:
        raise InputError(f"The store has no release {number}; see shoal store history.")
    if not row.members:
        raise InputError(f"Release {number} was withdrawn and is not kept; see shoal store history.")
    if row.masked is None:
        raise InputError(
            f"Release {number} is not kept in full any more (retention), and cannot be written again; who has its file can hold "
            "it against the digest in its manifest."
        )
    with atomic_paths(target, manifest_path(target), force=force) as (table_file, manifest_file):
        masked = read_frame(row.masked)
        write_verified(masked, table_file, target, settings.policy, settings.given)
        told = {**json.loads(row.manifest), "output_sha256": file_digest(table_file)}
        told.pop("secret", None)
        manifest_file.write_text(_text(told), encoding="utf-8")
    return target


def audit_all(database: Database, settings: Settings, progress: Progress) -> Audit:
    """All releases against each other."""
    from shoal.evolve.releases.history import audit_members

    with database.reading() as connection:
        memory = read_memory(connection, settings, seen(decode_rows([], read_state(connection).types)))
        followed = read_followed(connection)
    if not memory.releases:
        raise InputError("The store has no releases yet; make one with shoal store release.")
    with progress.stage("comparing releases") as part:
        how: dict[str, Any] = {"followed": followed, "numbers": memory.numbers, "progress": part}
        return audit_members(memory.releases, settings.schema, settings.policy, **how)


def read_table(connection: sa.Connection, state: State) -> Table:
    """The records by person."""
    held = read_held(connection, state.types, state.version)
    if not (np.diff(held.persons) > 0).all():
        held = held.take(np.argsort(held.persons))
    return Table(held.persons, seen(held.frame), held.labels)


@dataclass(frozen=True, eq=False)
class _Held:
    """What a release is made of: the table, the releases so far, the number it gets, and the seal of the last one."""

    state: State
    table: Table
    memory: Memory
    number: int
    seal: str
    recut: bool
    """Whether the table was renewed since the last release, and what was published can be cut finer."""


@dataclass(frozen=True, eq=False)
class _Ready:
    """A release that could be made, and what would be remembered of it."""

    plan: Plan
    release: Release
    kept: Shown
    found: Audit
    followed: list[Finding]


def _read(connection: sa.Connection, settings: Settings) -> _Held:
    state = read_state(connection)
    table = read_table(connection, state)
    memory = read_memory(connection, settings, table.frame)
    seal = last_seal(connection, tables.releases, tables.releases.c.number)
    return _Held(state, table, memory, _last(connection) + 1, seal, recutting(connection))


def _prepared(held: _Held, settings: Settings, progress: Progress) -> _Ready:
    """Plan, mask, verify and audit the next release."""
    from shoal.evolve.releases.history import class_texts

    with progress.stage("planning the release", 0.5) as part:
        plan = _planned(held, settings, held.recut, part)
    with progress.stage("masking", 0.25) as part:
        release, states = _masked(plan, settings, part)
    with progress.stage("comparing with earlier releases") as part:
        # Classes that look alike are one to a reader; the plan's are told apart.
        one_each = release.partition.classes == Partition.compact(plan.shown.classes).classes
        texts = class_texts(plan.shown, settings.schema, release.data, states if one_each else None)
        kept = held.memory.remembered(replace(plan.shown, texts=texts))
        found, followed = _audited(held.memory, plan, kept, held.number, settings, part)
    return _Ready(plan, release, kept, found, followed)


def _planned(held: _Held, settings: Settings, recut: bool, progress: Progress) -> Plan:
    memory = held.memory
    return plan_release(
        settings.guard,
        memory.with_lives(held.table),
        memory.before,
        settings.schema,
        settings.policy,
        m=settings.m,
        objective=settings.objective,
        seed=settings.seed,
        progress=progress,
        next_class=max(held.state.next_class, memory.next_class),
        earlier=memory.releases[:-1],
        recut=recut,
    )


def worth(connection: sa.Connection, settings: Settings, progress: Progress) -> tuple[str | None, bool]:
    """What a renewal is worth to what is published, in a sentence, and whether the next release is to cut that finer.

    No sentence where the next release simply shows the new classes.
    """
    from shoal.evolve.releases.history import line

    if helps(connection, settings.guard):
        return None, False
    if settings.guard == "m-invariance":
        return "Every release is cut anew under m-invariance: what is published loses as much as before.", False
    held = _read(connection, settings)
    losses = []
    for recut in (False, True):
        with progress.stage(weight=0.5) as part:
            plan = _planned(held, settings, recut, part)
        losses.append(line(settings.guard, plan, settings.schema)["ncp"])
    if losses[1] < losses[0]:
        return (
            f"The next release cuts what was published finer, and loses {losses[1]:.4f} instead of {losses[0]:.4f}.",
            True,
        )
    return (
        "What was published stays together under batching and cannot be cut finer: it loses as much as before.",
        False,
    )


def _masked(plan: Plan, settings: Settings, progress: Progress) -> tuple[Release, States]:
    """Mask what the guard lets through, and verify it; and what its classes publish, in codes."""
    frame, schema = plan.shown.frame, settings.given
    if settings.rows is not None:
        frame = published(frame, settings)
    for name in (*schema.named("quasi"), *schema.named("sensitive")):
        if frame[name].null_count() == frame.height:
            raise InputError(
                f"Column '{name}' has no value left in any record that would be shown; undo the batch that took the last ones "
                "(shoal store undo), bring records that have values, or create a store without the column."
            )
    data = Microdata.from_frame(frame, schema)
    asis = examine(data.frame, data.schema).require()
    rules = data.rules(settings.policy)
    partition = Partition.compact(plan.shown.classes)
    shown_as = Recoding(intervals=settings.intervals)
    partition, states = published_classes(data, partition, rules, data.space(settings.objective), shown_as)
    masked, people = mask(
        data,
        partition,
        states,
        recode="generalize",
        intervals=settings.intervals,
        drop_suppressed=False,
        shuffle_seed=settings.seed if settings.order == "shuffle" else None,
    )
    masked = spelled_out(masked)
    with progress.stage("verifying", 0.5) as part:
        evidence = verify(masked, settings.policy, schema, persons=people, progress=part)
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
    told = published_half(masked, data, settings.policy, evidence, measures, how)
    told["roles"] = {**dict.fromkeys(settings.ignored, "identifier"), **told["roles"]}
    secret = secret_half(data, measures, how, {}, asis)
    release = Release(masked, settings.policy, evidence, measures, told, secret, data, partition, people)
    return release, states


def _audited(
    memory: Memory, plan: Plan, kept: Shown, number: int, settings: Settings, progress: Progress
) -> tuple[Audit, list[Finding]]:
    """What the release would give away that the earlier ones did not, and of that the rows that can be followed."""
    from shoal.evolve.releases.history import audit_members, rows_followed

    followed: list[Finding] = []
    if memory.before is not None:
        numbers = memory.numbers[-1], number
        followed = rows_followed(memory.before, plan.shown, numbers, settings.schema, settings.policy)
    releases = [*memory.releases, kept]
    how: dict[str, Any] = {"followed": followed, "numbers": (*memory.numbers, number), "progress": progress}
    return audit_members(releases, settings.schema, settings.policy, newest_only=True, **how), followed


def _first(found: Audit) -> str:
    shown = found.found[0].withheld if found.found else "an attack succeeds."
    more = f" (and {len(found.found) - 1} more findings)" if len(found.found) > 1 else ""
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


def _remember(database: Database, held: _Held, ready: _Ready, told: dict[str, Any], content: bytes) -> None:
    """Write the release down with what later ones are planned by and audited against."""
    with database.writing() as connection:
        read_state(connection, lock=True)
        before = last_seal(connection, tables.releases, tables.releases.c.number)
        if before != held.seal or _last(connection) + 1 != held.number:
            raise InputError("Another process made a release at the same moment; nothing was released: try again.")
        forgetting = (tables.batches.c.kind == "forgetting") & (tables.batches.c.version > held.state.version)
        if connection.execute(sa.select(sa.func.count()).where(forgetting)).scalar():
            # What the release was made of has their values, and would bring them back.
            raise InputError("Somebody was forgotten at the same moment; nothing was released: try again.")
        written = held.memory.written(ready.plan.shown, ready.kept)
        nothing = {"shown": None, "faces": None, "rows_seal": rows_seal(None, None)}
        # The release before this one keeps its rows, in case that this one is withdrawn.
        others = tables.releases.update().where(tables.releases.c.number.not_in(held.memory.numbers[-1:]))
        connection.execute(others.values(**nothing))
        row = {
            "number": held.number,
            "version": held.state.version,
            "manifest": json.dumps(told, ensure_ascii=False, sort_keys=True),
            "masked": content,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            **written,
        }
        row |= {"seal": release_seal(before, row), "rows_seal": rows_seal(row["shown"], row["faces"])}
        connection.execute(tables.releases.insert(), row)
        compact(connection)
        note_recut(connection, False)


def _text(told: dict[str, Any]) -> str:
    return json.dumps(told, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
