"""`shoal doctor`: what is installed, what is not, and what to do about it."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import typer

from shoal.cli.output import JSON, QUIET, Speaker

CORE = "core"
# Extras for people who work on Shoal, or that stand for all the others.
NOT_SHOWN = ("dev", "all")


def doctor(as_json: bool = JSON, quiet: bool = QUIET) -> None:
    """Say what is installed (packages, drivers, compiled kernels, data) and what to do about what is not.

    Example: shoal doctor
    """
    from shoal.errors import ShoalError

    speaker = Speaker(as_json, quiet)
    packages = [_package(name, extra) for name, extra in requirements()]
    broken = [f["what"] for f in packages if f["for"] == CORE and not f["found"]]
    kernels = [] if broken else [_kernels()]
    findings = [*packages, _pandas(), *kernels, _data()]
    speaker.table(
        f"Shoal on Python {platform.python_version()}",
        ["what", "found", "needed for", "what to do"],
        [[f["what"], f["found"] or "no", f["for"], f["advice"]] for f in findings],
    )
    speaker.result({"python": platform.python_version(), "findings": findings})
    if broken:
        raise ShoalError(f"Shoal cannot work without {', '.join(broken)}; install it again.")
    raise typer.Exit(0)


def requirements() -> Iterator[tuple[str, str]]:
    """The packages that Shoal names itself when it is installed, each with its extra."""
    for line in metadata.requires("shoal") or []:
        found = re.fullmatch(r"([\w.-]+)[^;]*(?:;.*extra == [\"'](\w+)[\"'])?", line)
        if found is not None and found[2] not in NOT_SHOWN:
            yield found[1], found[2] or CORE


def _package(name: str, extra: str) -> dict[str, Any]:
    found = _version(name)
    advice = "" if found else f"pip install '{name if extra == CORE else f'shoal[{extra}]'}'"
    return {"what": name, "found": found, "for": extra, "advice": advice}


def _pandas() -> dict[str, Any]:
    """No extra of ours: who has pandas frames has pandas."""
    found = _version("pandas")
    return {"what": "pandas", "found": found, "for": "its frames", "advice": "" if found else "pip install pandas"}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _kernels() -> dict[str, Any]:
    """How many kernels are compiled already, and where they are kept."""
    from shoal.kernels import compiled, kept_in

    count = len(compiled())
    advice = "" if count else "nothing: they compile on first use, once"
    return {
        "what": "compiled kernels",
        "found": f"{count} in {kept_in()}" if count else None,
        "for": "speed",
        "advice": advice,
    }


def _data() -> dict[str, Any]:
    from shoal.datasets import data_folder
    from shoal.errors import ShoalError

    try:
        return {"what": "reference data", "found": str(data_folder()), "for": "reproduce, tests", "advice": ""}
    except ShoalError as problem:
        return {"what": "reference data", "found": None, "for": "reproduce, tests", "advice": str(problem)}
