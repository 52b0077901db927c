"""What a command will need in a moment, fetched while its table is read.

Reading is done by polars, on threads of its own, and the interpreter waits; compiled loops take about half a second to be
found and linked. So one thread does that meanwhile. What it fetches is asked for again where it is used: if this fails, or is
never needed, nothing is lost but the time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.microdata import Microdata


def loops_ahead() -> AbstractContextManager[None]:
    """While the block runs, the machinery of compiled loops is loaded beside it."""
    return _beside(_load)


def digest_ahead(data: Microdata) -> AbstractContextManager[None]:
    """While the block runs, the digest of the table that its release names is taken beside it, and stays with the table."""
    return _beside(lambda: data.fingerprint)


def _load() -> None:
    from shoal.kernels import ready

    ready()


@contextmanager
def _beside(fetch: Callable[[], object]) -> Iterator[None]:
    def quietly() -> None:
        with suppress(Exception):  # whoever needs it will say what is wrong
            fetch()

    thread = threading.Thread(target=quietly, name="ahead")
    thread.start()
    try:
        yield
    finally:
        thread.join()
