"""Which folders of compiled code are kept: each is of one version of the sources, and several may be in use on one machine."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path

IDLE = 60 * 86400.0
"""Seconds without use after which a version is taken to be gone: two months, longer than people leave a project alone."""
USED = 86400.0
"""Seconds after its last use in which a version is never dropped: work that lasts a day may still load from it."""
ROOM = 2 * 2**30
"""Bytes for all versions together. One takes about 10 to 60 million, so some dozens of checkouts fit side by side."""


def drop_unused(own: Path, now: float | None = None) -> list[Path]:
    """Remove the folders beside our own that nobody used for long, and the longest unused where all take too much room.

    A folder's time is that of its last use. Returns what was removed.
    """
    now = time.time() if now is None else now
    others: list[tuple[float, Path]] = []
    for folder in own.parent.glob("kernels-*"):
        with suppress(OSError):  # another process may remove it at the same time
            if folder != own:
                others.append((folder.stat().st_mtime, folder))
    sizes = {folder: _size(folder) for _, folder in others}
    total, gone = sum(sizes.values()), []
    for used, folder in sorted(others):
        if now - used > IDLE or (total > ROOM and now - used > USED):
            shutil.rmtree(folder, ignore_errors=True)
            total -= sizes[folder]
            gone.append(folder)
    return gone


def _size(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            size += path.stat().st_size if path.is_file() else 0
    return size
