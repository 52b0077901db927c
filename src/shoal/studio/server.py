"""The server: uvicorn, quiet and impatient. Nothing is written to a log."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS = 10.0
"""Seconds in which a request's headers have to come."""
AT_ONCE = 100
"""Connections at a time."""


class Impatient(H11Protocol):
    """Closes a connection on which no request has come in time, which uvicorn leaves open."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody calls."""
        super().connection_made(transport)
        self.loop.call_later(HEADERS, self._hurry)

    def _hurry(self) -> None:
        begun: object = self.cycle
        if begun is None and not self.transport.is_closing():
            self.transport.close()


class _Server(uvicorn.Server):
    """Says when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._told = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if self._told is not None:
            self._told()


def bound(host: str, port: int) -> socket.socket:
    """A socket on this port, or on any free one for 0."""
    from shoal.errors import InputError

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as problem:
        sock.close()
        raise InputError(
            f"The studio cannot listen on {host}, port {port}: {problem.strerror}; choose another --port."
        ) from None
    return sock


def run(app: Any, sock: socket.socket, ready: Callable[[], None] | None = None) -> None:
    """Serve until Ctrl-C."""
    config = uvicorn.Config(
        app,
        http=Impatient,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=AT_ONCE,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=32_768,
    )
    _Server(config, ready).run(sockets=[sock])
