"""A folder whose files are batches: each is applied once, in the order of their names, as soon as it is wholly there.

A file is taken when its size and time have not changed between two looks, so that one that is still being written waits.
What has been applied is known by name and content, in the store itself: a restart, a second watcher or a copy of the
folder applies nothing twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from shoal.errors import InputError, ShoalError
from shoal.evolve.store.batch_input import file_batch_id
from shoal.evolve.store.commit import Applied
from shoal.evolve.store.database import UnavailableError
from shoal.evolve.store.store import Store
from shoal.io.files import FORMATS

Kind = Literal["auto", "insert", "update", "delete", "upsert"]
Look = tuple[int, int]


@dataclass(frozen=True)
class Taken:
    """A file and what came of it; `later` when the store could not be reached and the file will be tried again."""

    path: Path
    applied: Applied | None
    problem: str | None = None
    later: bool = False


def watch(
    store: Store,
    folder: str | Path,
    *,
    kind: Kind = "auto",
    once: bool = False,
    interval: float = 2.0,
    done: str | Path | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Taken]:
    """Apply the files of a folder as they arrive; `once` takes what is there and ends.

    With `kind="auto"` a name that begins with insert, update or delete says what to do; any other file updates the keys
    that are known and inserts the rest. `done` is a folder that applied files are moved to.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"There is no folder '{place}' to watch; make it first.")
    if done is not None and not Path(done).is_dir():
        raise InputError(f"There is no folder '{done}' to move files to; make it first.")
    settled: dict[Path, Look] = {}
    before = _looks(place)
    while True:
        sleep(interval)
        now = _looks(place)
        for path, look in sorted(now.items()):
            if before.get(path) != look or settled.get(path) == look:
                continue
            taken = _take(store, path, kind)
            if taken is not None:
                if not taken.later:
                    settled[path] = look
                if taken.problem is None and done is not None:
                    path.replace(Path(done) / path.name)
                yield taken
        if once:
            return
        before = now


def _looks(folder: Path) -> dict[Path, Look]:
    """Size and time of every table file; hidden ones and other kinds are not looked at."""
    found = {}
    for path in folder.iterdir():
        suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
        if path.name.startswith(".") or not suffixes or suffixes[-1] not in FORMATS:
            continue
        try:
            state = path.stat()
        except FileNotFoundError:  # it was moved away meanwhile
            continue
        if path.is_file():
            found[path] = (state.st_size, state.st_mtime_ns)
    return found


def _take(store: Store, path: Path, kind: Kind) -> Taken | None:
    """Apply one file; None when it went away."""
    wanted: str = kind
    if kind == "auto":
        wanted = next((word for word in ("insert", "update", "delete") if path.name.startswith(word)), "upsert")
    try:
        source: dict[str, Any] = {wanted: path}
        return Taken(path, store.apply(**source, batch=file_batch_id(path)))
    except FileNotFoundError:
        return None
    except UnavailableError as problem:
        return Taken(path, None, str(problem), later=True)
    except ShoalError as problem:
        return Taken(path, None, str(problem))
