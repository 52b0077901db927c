"""`shoal doctor`: what is installed, what is not, and what to do about it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import typer

from shoal.cli.output import JSON, QUIET, Speaker

CORE = "core"
# From a CSV file to a verified one a record takes so much processor time (docs/performance.md#end_to_end), of which no more than
# so many cores can take a part.
RECORD_SECONDS, THREADED = 4e-6, 2
MILLION = 1_000_000
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
    findings = [*packages, _pandas(), *kernels, _memory(), _processors(), _java(), _data()]
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


def _memory() -> dict[str, Any]:
    """How much is free, and which tables that is enough for."""
    from shoal.engines.choosing import CELL, FITS, RECORD, free_memory, said

    free = free_memory()
    records = int(FITS * free / (RECORD + 10 * CELL))
    advice = "" if _version("duckdb") else "beyond that: pip install 'shoal[large]'"
    enough = f"tables of about {records / 1e6:,.0f} million records of ten columns"
    return {"what": "memory", "found": f"{said(free)} free", "for": enough, "advice": advice}


def _processors() -> dict[str, Any]:
    """How many there are, and how long a large table then takes: by what a record took where it was measured."""
    from shoal.refine.effort import nominal

    cores = os.cpu_count() or 1
    cut = MILLION * RECORD_SECONDS / min(cores, THREADED)
    searched = cut + nominal("fast", MILLION, 8) / cores
    takes = f"a million records masked and verified in about {cut:.0f} s by mondrian, in {searched:.0f} s with refine = fast"
    return {"what": "processors", "found": str(cores), "for": takes, "advice": ""}


def _java() -> dict[str, Any]:
    """Which Java Spark would use; nothing else needs one."""
    from shoal.engines.spark_session import java_version, require_java
    from shoal.errors import ShoalError

    try:
        program = require_java()
    except ShoalError as problem:
        return {"what": "java", "found": None, "for": "spark", "advice": str(problem)}
    return {"what": "java", "found": f"{java_version(program) or 'unknown'} at {program}", "for": "spark", "advice": ""}


def _data() -> dict[str, Any]:
    from shoal.datasets import data_folder
    from shoal.errors import ShoalError

    try:
        return {"what": "reference data", "found": str(data_folder()), "for": "reproduce, tests", "advice": ""}
    except ShoalError as problem:
        return {"what": "reference data", "found": None, "for": "reproduce, tests", "advice": str(problem)}
