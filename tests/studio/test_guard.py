"""Nobody else gets in: foreign names, foreign pages, no token, and requests that are meant to hurt."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from tests.studio.serving import Served

pytest.importorskip("starlette", reason="the studio's extra is not installed: pip install -e '.[studio]'")

READ = (
    "/data",
    "/data.json",
    "/run.json",
    "/release.json",
    "/jobs.json",
    "/static/studio.css",
    "/files/candidates/A/masked.csv",
)
WRITTEN = ("/data/made-up", "/data/roles", "/run/make", "/jobs/stop", "/language")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("project")) as found:
        yield found


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"Authorization": ""}, "address that it printed"),
        ({"Authorization": "Bearer wrong"}, "address that it printed"),
        ({"Authorization": "", "Cookie": "shoal-1=x"}, "address that it printed"),
        ({"Host": "evil.example"}, "not the studio's"),
        ({"Host": "127.0.0.1"}, "not the studio's"),
        ({"Host": "127.0.0.1:1"}, "not the studio's"),
        ({"Host": "evil.example:{port}"}, "not the studio's"),
        ({"Origin": "http://evil.example"}, "Another site"),
        ({"Origin": "null"}, "Another site"),
        ({"Origin": "http://127.0.0.1:1"}, "Another site"),
        ({"Origin": "https://127.0.0.1:{port}"}, "Another site"),
        ({"Sec-Fetch-Site": "cross-site"}, "Another site"),
        ({"Sec-Fetch-Site": "same-site"}, "Another site"),
    ],
    ids=str,
)
def test_strangers_get_403_whatever_they_ask(served: Served, headers: dict[str, str], why: str) -> None:
    told = {name: value.format(port=served.port) for name, value in headers.items()}
    for path in READ:
        found = served.ask("GET", path, **told)
        assert found.status == 403 and why in found.text, path
    for path in WRITTEN:
        found = served.ask("POST", path, b"", **told)
        assert found.status == 403 and why in found.text, path
    assert not (served.folder / "shoal.toml").exists()


def test_the_token_becomes_a_strict_cookie_and_every_answer_is_guarded(served: Served) -> None:
    start = served.ask("GET", f"/?token={served.token}", Authorization="")
    cookie = start.headers["set-cookie"]
    assert start.status == 200 and "HttpOnly" in cookie and "SameSite=Strict" in cookie and served.token not in cookie
    key = cookie.partition(";")[0]
    for path in ("/data", "/data.json", "/static/studio.js", "/nothing", "/?token=wrong"):
        found = served.ask("GET", path, Authorization="", Cookie=key)
        policy = found.headers["content-security-policy"]
        assert found.status in (200, 303, 404)
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "http:" not in policy
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["referrer-policy"] == "same-origin"
        assert "access-control-allow-origin" not in found.headers
    assert served.ask("GET", "/?token=wrong", Authorization="").status == 403


def hostile(served: Served) -> dict[str, bytes]:
    """Requests that are meant to hurt, all of them with the token: a browser of ours may be made to send such."""
    host, port = served.host, served.port
    common = f"Host: {host}:{port}\r\nAuthorization: Bearer {served.token}\r\nConnection: close\r\n"

    def get(path: str, more: str = "", method: str = "GET") -> bytes:
        return f"{method} {path} HTTP/1.1\r\n{common}{more}\r\n".encode("latin-1")

    def post(
        path: str, body: bytes, kind: str = "application/x-www-form-urlencoded", length: int | None = None
    ) -> bytes:
        size = len(body) if length is None else length
        return get(path, f"Content-Type: {kind}\r\nContent-Length: {size}\r\n", "POST") + body

    def parts(*inside: str, end: str = "--x--\r\n") -> bytes:
        return ("".join(f"--x\r\n{one}\r\n" for one in inside) + end).encode()

    form = "multipart/form-data; boundary=x"
    a_file = 'Content-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\nage\r\n1'
    return {
        "traversal": get("/../../../../etc/passwd"),
        "traversal in static": get("/static/../app.py"),
        "traversal, encoded": get("/static/%2e%2e%2fapp.py"),
        "traversal in a candidate": get("/files/candidates/..%2f..%2f/shoal.toml"),
        "traversal in a release": get("/files/releases/%2e%2e/shoal.toml"),
        "traversal in a file": get("/files/releases/A/..%2f..%2fshoal.toml"),
        "another folder": get("/files/data/A/patients.csv"),
        "a zero byte": get("/files/candidates/A%00/masked.csv"),
        "no such page": get("/secret"),
        "no such twin": get("/secret.json"),
        "two slashes": get("//evil.example/data"),
        "a proxy's request": get("http://evil.example/data"),
        "a large header": get("/data", f"Cookie: {'a' * 100_000}\r\n"),
        "a large address": get("/" + "a" * 100_000),
        "a large form": post("/data/roles", b"", length=5_000_000),
        "a large form that says it is small": get("/data/roles", "Transfer-Encoding: chunked\r\n", "POST")
        + b"".join(b"10000\r\n" + b"a" * 65536 + b"\r\n" for _ in range(20))
        + b"0\r\n\r\n",
        "an upload beyond all measure": post("/data/upload", b"", form, length=10**15),
        "a negative length": get("/data/roles", "Content-Length: -1\r\n", "POST"),
        "no length at all": get("/data/roles", "Content-Length: many\r\n", "POST"),
        "two lengths": get("/data/roles", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "POST")
        + b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "another host beside": f"GET /data HTTP/1.1\r\n{common}Host: evil.example\r\n\r\n".encode(),
        "TRACE": get("/data", method="TRACE"),
        "PUT": get("/data/upload", method="PUT"),
        "DELETE": get("/data", method="DELETE"),
        "a preflight": get(
            "/data", "Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n", "OPTIONS"
        ),
        "a web socket": get(
            "/data",
            "Upgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\nOrigin: http://evil.example\r\n",
        ),
        "multipart without a boundary": post("/data/upload", parts(a_file), "multipart/form-data"),
        "multipart that is none": post("/data/upload", b"\x00\xff" * 500, form),
        "multipart cut short": post("/data/upload", parts(a_file, end="")[:-5], form, length=10_000),
        "multipart without its end": post("/data/upload", parts(a_file, end=""), form),
        "two files": post("/data/upload", parts(a_file, a_file), form),
        "a thousand fields": post(
            "/data/upload",
            parts(*[f'Content-Disposition: form-data; name="f{i}"\r\n\r\n1' for i in range(1000)], a_file),
            form,
        ),
        "a file without a kind": post("/data/upload", parts(a_file.replace("a.csv", "passwd")), form),
        "a file named like a folder": post("/data/upload", parts(a_file.replace("a.csv", "..")), form),
        "no file": post("/data/upload", parts('Content-Disposition: form-data; name="a"\r\n\r\n1'), form),
        "too many fields": post("/data/roles", b"&".join(b"a=1" for _ in range(30_000))),
        "fields that are no text": post("/data/roles", b"role%3Aage=\xff\xfe"),
        "nested JSON": post("/data/roles", b"[" * 100_000, "application/json"),
        "no such action": post("/data/delete", b""),
        "a role that is none": post("/data/roles", b"role%3Aage=owner", "application/x-www-form-urlencoded"),
        "a candidate that is a path": post("/run/drop", b"candidate=..%2F..%2Fdata"),
        "a release that is a path": post("/release/make", b"candidate=..%2Fdata"),
        "a database that is none": post("/data/database", b"url=&table="),
        "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    }


def test_hostile_requests_are_refused_and_the_studio_goes_on(served: Served) -> None:
    slow = socket.create_connection((served.host, served.port))
    slow.sendall(b"GET /data HTTP/1.1\r\nHost: ")
    cases = hostile(served)
    assert len(cases) >= 30
    for name, content in cases.items():
        found = served.raw(content, hang_up=name == "multipart cut short")
        first = found.split(b"\r\n", 1)[0]
        assert name == "multipart cut short" or first.split()[1][:1] == b"4", f"{name}: {first!r}"
        assert b"Traceback" not in found, name
        assert served.ask("GET", "/health").status == 200, name
    assert not (served.folder / "shoal.toml").exists()
    left = [path.name for path in served.folder.rglob("*") if path.is_file() and ".studio" not in path.parts]
    assert left == [], "what did not come whole is left"
    with slow:
        # Whoever takes for ever to say what he wants is hung up on.
        slow.settimeout(120)
        assert slow.recv(1000) == b""


def test_nothing_is_logged(tmp_path: object, served: Served) -> None:
    # The module's studio is ended here, as Ctrl-C ends it.
    served.ask("GET", "/data?page=canary")
    assert served.end() in (0, 130, -2)
    assert "canary" not in served.said and served.token not in served.said
    assert served.said.count("\n") <= 2


def test_beyond_the_machine_it_wants_a_password(tmp_path_factory: pytest.TempPathFactory) -> None:
    from tests.cli.errors import call, captured

    with captured() as (_, err):
        assert call(("studio", "--listen", "127.0.0.1", "--no-browser")) == 2
    assert "SHOAL_STUDIO_PASSWORD" in err.getvalue()
