"""A throw-away PostgreSQL server for tests, on a unix socket in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class PostgresUnavailableError(RuntimeError):
    """No server can be started here; the message says why."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """Yield the URL of an empty database: the one in SHOAL_TEST_POSTGRES, or a server started for this block."""
    given = os.environ.get("SHOAL_TEST_POSTGRES")
    if given:
        yield given
        return
    programs = _programs()
    prefix, owner = _unprivileged()
    # A socket path may have no more than about a hundred characters, so not below pytest's folders.
    with tempfile.TemporaryDirectory(prefix="shoal-pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        if owner is not None:
            os.chown(folder, owner, -1)
        data = f"{folder}/data"
        _run([*prefix, str(programs / "initdb"), "-D", data, "-A", "trust", "-U", "shoal", "-E", "UTF8", "-N"])
        settings = f"-F -k {folder} -c listen_addresses= -c max_connections=20 -c shared_buffers=16MB"
        control = [*prefix, str(programs / "pg_ctl"), "-D", data, "-w", "-t", "30"]
        _run([*control, "-o", settings, "-l", f"{folder}/log", "start"])
        try:
            yield f"postgresql://shoal@/postgres?host={folder}"
        finally:
            _run([*control, "-m", "immediate", "stop"])


def _programs() -> Path:
    """The folder that holds initdb and pg_ctl, the newest version first."""
    found = shutil.which("pg_ctl")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name))
    if found:
        folders.append(Path(found).resolve().parent)
    for folder in folders:
        if (folder / "pg_ctl").exists() and (folder / "initdb").exists():
            return folder
    raise PostgresUnavailableError("no PostgreSQL server is installed and SHOAL_TEST_POSTGRES is not set")


def _unprivileged() -> tuple[list[str], int | None]:
    """How to start a program as somebody other than root, whom initdb refuses."""
    if os.geteuid() != 0:
        return [], None
    runuser = shutil.which("runuser")
    for name in ("postgres", "nobody"):
        try:
            owner = pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
        if runuser:
            return [runuser, "-u", name, "--"], owner
    raise PostgresUnavailableError("PostgreSQL does not run as root and there is no other user to run it as")


def _run(command: list[str]) -> None:
    # The server inherits the streams: a pipe would never close.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, cwd="/", check=False)
        if done.returncode:
            output.seek(0)
            text = output.read().decode(errors="replace").strip()
            raise PostgresUnavailableError(f"{Path(command[-1]).name} failed: {text[-400:]}")
