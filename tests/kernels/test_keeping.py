"""Compiled code of other versions stays while somebody may use it, and goes when nobody does or there is too much of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shoal.kernels import keeping
from shoal.kernels.keeping import IDLE, USED, drop_unused

NOW = 2_000_000_000.0


def folder(home: Path, name: str, unused: float, size: int = 100) -> Path:
    """A version with one compiled function, last used so many seconds ago."""
    place = home / f"kernels-{name}"
    (place / "kernels_0").mkdir(parents=True)
    (place / "kernels_0" / "search.nbc").write_bytes(b"x" * size)
    os.utime(place, (NOW - unused, NOW - unused))
    return place


def test_many_versions_stay_side_by_side(tmp_path: Path) -> None:
    own = folder(tmp_path, "own", 0)
    others = [folder(tmp_path, str(i), i * USED) for i in range(20)]
    assert drop_unused(own, NOW) == []
    assert all(one.exists() for one in others)


def test_a_version_nobody_used_for_two_months_goes(tmp_path: Path) -> None:
    own, used = folder(tmp_path, "own", IDLE + 1), folder(tmp_path, "used", IDLE - 1)
    idle = folder(tmp_path, "idle", IDLE + 1)
    assert drop_unused(own, NOW) == [idle]
    assert own.exists() and used.exists() and not idle.exists()


def test_with_too_little_room_the_longest_unused_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "ROOM", 250)
    own = folder(tmp_path, "own", 0)
    days = {i: folder(tmp_path, str(i), i * USED + 1) for i in (3, 1, 2, 4)}
    assert drop_unused(own, NOW) == [days[4], days[3]]
    assert days[1].exists() and days[2].exists()


def test_what_was_used_today_stays_whatever_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "ROOM", 0)
    own = folder(tmp_path, "own", 0)
    today, before = folder(tmp_path, "today", USED - 1), folder(tmp_path, "before", USED + 1)
    (tmp_path / "other").mkdir()
    assert drop_unused(own, NOW) == [before]
    assert today.exists() and (tmp_path / "other").exists()
