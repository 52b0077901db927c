"""Who may talk to the studio, and how much they may say.

Every request passes the guard before anything looks at it: the name it was sent to (another name in `Host` is DNS rebinding), the
page that sent it (`Origin`, `Sec-Fetch-Site`: another site's), the key (the start address's token, which becomes a cookie), and
its size and pace. Whatever fails is answered with 403 (408, 413) and one sentence.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEAD = 32_000
"""Bytes of what stands before a request's body."""
FORM = 1_000_000
"""Bytes of a request that is no upload."""
PATIENCE = 20.0
"""Seconds without a byte after which a request is given up."""
TRIES, PAUSE = 5, 30.0
"""Wrong passwords before everybody has to wait, and how many seconds."""

CONTENT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Nothing goes to other sites; with "no-referrer" a browser would not say of our own forms whose they are either.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Refused(Exception):  # noqa: N818 - no mistake of ours
    """A request that is not answered: the status, and why in a sentence."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass
class Doors:
    """Where the studio is reached, and with which keys."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    password: str | None = None
    upload: int = 4 << 30
    """Bytes of the largest upload."""
    wrong: list[float] = field(default_factory=list)

    @property
    def cookie(self) -> str:
        """Cookies know no ports: two studios on one machine must not take each other's."""
        return f"shoal-{self.port}"

    @property
    def local(self) -> bool:
        """Whether nobody beyond this machine reaches it."""
        return self.host in ("127.0.0.1", "::1", "localhost")

    @property
    def address(self) -> str:
        """Where to begin; on this machine with the token in it."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{shown}:{self.port}/" + (f"?token={self.token}" if self.local else "")

    def knows(self, host: str) -> bool:
        """Whether this is one of its names. An address in numbers cannot be bent to another machine by its name's owner."""
        name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        if port != str(self.port) and not (self.port in (80, 443) and not port):
            return False
        if name in (*("127.0.0.1", "localhost", "[::1]"), self.host):
            return True
        return not self.local and _is_address(name.strip("[]"))

    def opens(self, scope: Scope) -> bool:
        """Whether a request has the key: the cookie, or the token as a bearer for programs."""
        headers = _headers(scope)
        bearer = headers.get("authorization", "")
        if self.local and bearer.startswith("Bearer ") and same(bearer[7:], self.token):
            return True
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        found = cookies.get(self.cookie)
        return found is not None and same(found.value, self.session)

    def starts(self, scope: Scope) -> bool:
        """Whether it is the start address with its token."""
        if not self.local or scope["path"] != "/" or scope["method"] != "GET":
            return False
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])
        return same(given[0], self.token)

    def is_password(self, given: str) -> bool:
        """Whether this is the password; after some wrong ones nobody is asked for a while."""
        now = time.monotonic()
        self.wrong = [at for at in self.wrong if now - at < PAUSE]
        if len(self.wrong) >= TRIES:
            raise Refused(429, f"Too many wrong passwords; try again in {PAUSE:.0f} seconds.")
        if self.password is not None and same(given, self.password):
            return True
        self.wrong.append(now)
        return False

    @property
    def set_cookie(self) -> str:
        """The header that lets a browser in."""
        return f"{self.cookie}={self.session}; HttpOnly; SameSite=Strict; Path=/"


class Guard:
    """Stands before the application."""

    def __init__(self, app: App, doors: Doors) -> None:
        self.app, self.doors = app, doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        begun = False

        async def told(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                given = {key.lower() for key, _ in message.get("headers", [])}
                more = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in given]
                message = {**message, "headers": [*message.get("headers", []), *more]}
            await send(message)

        try:
            limit = self._limit(scope)
            await self.app(scope, _bounded(receive, limit), told)
        except Refused as refused:
            if begun:
                raise
            await refuse(refused, told)

    def _limit(self, scope: Scope) -> int:
        """How many bytes the request may have; raises where it may not come in at all."""
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEAD or len(scope["raw_path"]) > HEAD:
            raise Refused(431, f"A request's head has {HEAD:,} bytes at most.")
        headers, doors = _headers(scope), self.doors
        host = headers.get("host", "")
        if not doors.knows(host):
            raise Refused(403, "This address is not the studio's.")
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}" and not (not doors.local and origin == f"https://{host}"):
            raise Refused(403, "Another site's page may not talk to the studio.")
        site = headers.get("sec-fetch-site", "none")
        if site not in ("same-origin", "none") and not doors.starts(scope):
            raise Refused(403, "Another site's page may not talk to the studio.")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            raise Refused(405, "The studio is read with GET and changed with POST.")
        public = scope["path"] in ("/login", "/health") or scope["path"].startswith("/static/")
        if not doors.opens(scope) and not doors.starts(scope) and not (public and not doors.local):
            if not doors.local and scope["method"] == "GET":
                raise Refused(401, "Give the password first.")
            raise Refused(403, "Open the studio with the address that it printed when it was started.")
        # Files go straight to the disk; everything else is read into memory.
        limit = doors.upload if headers.get("content-type", "").startswith("multipart/form-data") else FORM
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > limit:
            raise Refused(413, f"That is more than the {limit:,} bytes that may be sent here.")
        return limit


async def refuse(refused: Refused, send: Send) -> None:
    """The answer to what is refused."""
    if refused.status == 401:
        await send({"type": "http.response.start", "status": 303, "headers": [(b"location", b"/login")]})
        await send({"type": "http.response.body", "body": b""})
        return
    body = f"{refused.why}\n".encode()
    kind = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    if refused.status in (408, 413):
        kind.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refused.status, "headers": kind})
    await send({"type": "http.response.body", "body": body})


def _bounded(receive: Receive, limit: int) -> Receive:
    """The body, no more than so many bytes of it, and no waiting for ever."""
    seen = 0

    async def bounded() -> Message:
        nonlocal seen
        try:
            message = await asyncio.wait_for(receive(), PATIENCE)
        except TimeoutError:
            raise Refused(408, f"Nothing came for {PATIENCE:.0f} seconds.") from None
        seen += len(message.get("body", b""))
        if seen > limit:
            raise Refused(413, f"That is more than the {limit:,} bytes that may be sent here.")
        return message

    return bounded


def same(given: str, wanted: str) -> bool:
    """Compared in a time that tells nothing."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def _headers(scope: Scope) -> dict[str, str]:
    """The headers that are looked at; one that comes twice counts as both, and fits nothing."""
    found: dict[str, str] = {}
    for key, value in scope["headers"]:
        name = key.decode("latin-1").lower()
        text = value.decode("latin-1")
        found[name] = f"{found[name]},{text}" if name in found else text
    return found


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
