"""`shoal doctor`: what is installed, what is not, and what to do about it."""

from __future__ import annotations

import platform
import shutil
import subprocess
from importlib import metadata, util
from typing import Any

import typer

from shoal.cli.output import JSON, QUIET, Speaker

PACKAGES = {
    "numpy": "core",
    "numba": "core",
    "polars": "core",
    "pyarrow": "core",
    "sqlalchemy": "core",
    "pandas": "frames in and out",
    "psycopg": "postgres",
    "pyspark": "spark",
    "starlette": "studio",
}


def doctor(as_json: bool = JSON, quiet: bool = QUIET) -> None:
    """Say what is installed (Java, Spark, drivers, compiled kernels) and what to do about what is not.

    Example: shoal doctor
    """
    from shoal.errors import ShoalError

    speaker = Speaker(as_json, quiet)
    findings = [*map(_package, PACKAGES), _java(), _kernels(), _data()]
    speaker.table(
        f"Shoal on Python {platform.python_version()}",
        ["what", "found", "needed for", "what to do"],
        [[f["what"], f["found"] or "no", f["for"], f["advice"]] for f in findings],
    )
    speaker.result({"python": platform.python_version(), "findings": findings})
    broken = [f["what"] for f in findings if f["for"] == "core" and not f["found"]]
    if broken:
        raise ShoalError(f"Shoal cannot work without {', '.join(broken)}; install it again.")
    raise typer.Exit(0)


def _package(name: str) -> dict[str, Any]:
    extra = PACKAGES[name]
    found = metadata.version(name) if util.find_spec(name) is not None else None
    advice = (
        ""
        if found
        else f"pip install 'shoal[{extra}]'"
        if extra in ("postgres", "spark", "studio")
        else f"pip install {name}"
    )
    return {"what": name, "found": found, "for": extra, "advice": advice}


def _java() -> dict[str, Any]:
    java = shutil.which("java")
    version = None
    if java:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
        version = (told.stderr or told.stdout).splitlines()[0] if told.stderr or told.stdout else "unknown version"
    advice = "" if version else "install a Java runtime, 17 or newer"
    return {"what": "Java", "found": version, "for": "spark", "advice": advice}


def _kernels() -> dict[str, Any]:
    """Where compiled code is kept, and how much of it is there already."""
    from pathlib import Path

    import shoal

    folder = Path(shoal.__file__).parent / "kernels" / "__pycache__"
    cached = len(list(folder.glob("*.nbi"))) if folder.is_dir() else 0
    advice = "" if cached else "nothing: they compile on first use, once"
    return {
        "what": "compiled kernels",
        "found": f"{cached} cached" if cached else None,
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
