"""A real browser for the tests of reports: Debian's Chromium, found or installed; `make test` runs it once.

Without one those tests are skipped, and say why. Nothing else needs it, so it never fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 300


def chromium() -> str | None:
    """Where a Chromium is: the one that SHOAL_CHROMIUM names, or one on the path."""
    named = os.environ.get("SHOAL_CHROMIUM")
    if named:
        return named if Path(named).exists() else None
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def install() -> str:
    """Install one where that is possible; what came of it, in a sentence."""
    found = chromium()
    if found:
        return f"Chromium for the tests of reports: {found}."
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return "No Chromium, and it cannot be installed here (no apt-get, or no right to use it): its tests will be skipped."
    get = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        for command in (get, ["apt-get", "update", "-qq"], get):
            done = subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS, check=False)
            if command is get and done.returncode == 0:
                break
    except (OSError, subprocess.TimeoutExpired) as problem:
        return f"No Chromium: {problem}. Its tests will be skipped."
    found = chromium()
    return (
        f"Chromium for the tests of reports: {found}."
        if found
        else "No Chromium could be installed: its tests will be skipped."
    )


if __name__ == "__main__":
    sys.stderr.write(install() + "\n")
