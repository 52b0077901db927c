"""What a command will need in a moment, fetched while its table is read.

Reading is done by polars, on threads of its own, and the interpreter waits; compiled loops take about half a second to be
found and linked. So one thread does that meanwhile. What it fetches is asked for again where it is used: if this fails, or is
never needed, nothing is lost but the time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.microdata import Microdata


@contextmanager
def loops_ahead() -> Iterator[None]:
    """While the block runs, the machinery of compiled loops is loaded beside it."""
    thread = threading.Thread(target=_fetch, name="loops ahead")
    thread.start()
    try:
        yield
    finally:
        thread.join()


@contextmanager
def digest_ahead(data: Microdata) -> Iterator[None]:
    """While the block runs, the digest of the table that its release names is taken beside it."""
    thread = threading.Thread(target=_take, args=(data,), name="digest ahead")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _take(data: Microdata) -> None:
    with suppress(Exception):  # whoever needs it will say what is wrong
        data.fingerprint  # noqa: B018  # it stays with the table


def _fetch() -> None:
    with suppress(Exception):  # whoever needs it will say what is wrong
        from shoal.kernels import ready

        ready()
