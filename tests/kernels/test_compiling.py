"""What the package does to Numba's compiling."""

from __future__ import annotations

import gc
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from numba import njit
from numba.core import event
from numba.core.errors import TypingError

import shoal.kernels  # noqa: F401  (it registers what is tested)


class Probe(event.Listener):
    def __init__(self) -> None:
        self.seen: list[bool] = []

    def on_start(self, event: event.Event) -> None:
        self.seen.append(gc.isenabled())

    def on_end(self, event: event.Event) -> None:
        pass


def test_no_garbage_is_collected_while_compiling() -> None:
    @njit
    def half(x: int) -> int:
        return x // 2

    @njit
    def fine(x: int) -> int:
        return half(x) + 1

    @njit
    def wrong(x: int) -> int:
        return fine(x) + "1"

    probe = Probe()
    with event.install_listener("numba:compile", probe):
        assert fine(4) == 3
        with pytest.raises(TypingError):
            wrong(4)
    assert probe.seen == [False] * 3
    assert gc.isenabled()
    gc.disable()
    try:
        assert half(4.0) == 2.0
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    """Whoever writes there decides what runs here."""
    (tmp_path / "shoal").mkdir()
    (tmp_path / "shoal").chmod(0o777)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    found = subprocess.run(
        [sys.executable, "-c", "import shoal.kernels"], env=environment, capture_output=True, text=True, check=False
    )
    assert found.returncode == 1 and "can be written by others" in found.stderr
    (tmp_path / "shoal").chmod(0o755)
    assert subprocess.run([sys.executable, "-c", "import shoal.kernels"], env=environment, check=False).returncode == 0
    assert all(stat.S_IMODE(made.stat().st_mode) == 0o700 for made in (tmp_path / "shoal").iterdir())
