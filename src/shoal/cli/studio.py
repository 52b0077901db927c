"""`shoal studio`: the whole road in a browser, on this machine."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from socket import socket

import typer

from shoal.cli.output import JSON, QUIET

PORT = 8700  # nobody's by agreement, and easy to remember


def studio(
    file: Path | None = typer.Argument(None, help="The table to open; it stays where it is. The browser opens others."),
    folder: Path | None = typer.Option(
        None,
        "--folder",
        help="Where the project is kept; made if it is not there. By default FILE-studio, or shoal-studio.",
    ),
    port: int | None = typer.Option(
        None, "--port", min=0, max=65535, help=f"Where to listen; {PORT} by default, or any that is free."
    ),
    no_browser: bool = typer.Option(False, "--no-browser", help="Open no browser."),
    listen: str | None = typer.Option(
        None,
        "--listen",
        help="Serve other machines too, on this address such as 0.0.0.0; needs a password in SHOAL_STUDIO_PASSWORD.",
    ),
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Do the whole job in a browser, on this machine: nothing is sent anywhere.

    The first line of stdout is the address, with the token that lets you in. The project is a folder that the other commands
    understand. Ctrl-C ends it; started again with the same folder, everything is there.

    Example: shoal studio patients.csv
    """
    from shoal.errors import ConfigError, InputError, MissingExtraError

    try:
        from shoal.studio.app import folder_of, serve
        from shoal.studio.pages.data import open_file
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] in ("shoal", ""):
            raise
        raise MissingExtraError("starlette", "studio", "The studio") from None
    from shoal.studio.project import open_folder
    from shoal.studio.security import Doors
    from shoal.studio.studio import Studio

    if file is not None and not file.is_file():
        raise InputError(f"There is no file '{file}'; check its name.")
    password = os.environ.get("SHOAL_STUDIO_PASSWORD") if listen is not None else None
    if listen is not None and len(password or "") < 10:
        raise ConfigError(
            "--listen lets other machines in: set the environment variable SHOAL_STUDIO_PASSWORD to a password of ten characters "
            "or more."
        )
    project = open_folder(folder or (folder_of(file) if file is not None else Path("shoal-studio")))
    if file is not None and project.begun and project.configuration.config.source.path is not None:
        there = project.folder / project.configuration.config.source.path
        if there.resolve() != file.resolve():
            raise InputError(f"The folder '{project.folder}' is about another table; choose another --folder.")
    host = listen or "127.0.0.1"
    sock = _socket(host, port)
    opened = Studio(project, Doors(host=host, port=sock.getsockname()[1], password=password))
    if file is not None and not project.begun:
        open_file(opened, file)
    address = opened.doors.address

    def ready() -> None:
        sys.stdout.write((json.dumps({"url": address}) if as_json else address) + "\n")
        sys.stdout.flush()
        if not quiet:
            sys.stderr.write(f"The project is in {project.folder}. Ctrl-C ends the studio.\n")
            if listen is not None:
                sys.stderr.write(
                    "Whoever reaches this address and knows the password reads and changes everything in it, and the connection "
                    "is not encrypted: let it run behind a proxy with TLS, or through a tunnel.\n"
                )
        if not no_browser and listen is None:
            import webbrowser

            webbrowser.open(address)

    serve(opened, sock, ready)


def _socket(host: str, port: int | None) -> socket:
    """On the port that was asked for; else on the usual one, or on any that is free."""
    from shoal.errors import InputError
    from shoal.studio.server import bound

    if port is not None:
        return bound(host, port)
    try:
        return bound(host, PORT)
    except InputError:
        return bound(host, 0)
