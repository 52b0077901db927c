"""What the package does to Numba's compiling."""

from __future__ import annotations

import gc

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
