"""`make bench`: every script of this folder, one after the other, each in a process of its own.

Peers that pip can install get an environment of their own, so that they never come near ours.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE / "out"
PEERS = ("pycanon", "anonypy", "anjana")


def main() -> None:
    """Run all scripts and say where their figures are."""
    OUT.mkdir(exist_ok=True)
    peer = peer_python()
    failed = []
    for script in sorted(HERE.glob("*.py")):
        if script.name.startswith("_"):
            continue
        print(f"\n=== {script.stem} ===", flush=True)
        options = ["--peer", str(peer)] if peer and "--peer" in script.read_text(encoding="utf-8") else []
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{script.stem}", *options], cwd=HERE.parent, check=False
        )
        if done.returncode:
            failed.append(script.stem)
    print(f"\nFigures: {OUT}")
    if failed:
        sys.exit(f"These benchmarks did not finish: {', '.join(failed)}")


def peer_python() -> Path | None:
    """A Python with the peers installed, or None, with a sentence, where they cannot be had."""
    folder = OUT / "peers"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PEERS]
    if subprocess.run(command, check=False).returncode:
        print(f"The peers ({', '.join(PEERS)}) could not be installed; their columns stay empty.")
        return None
    return python


if __name__ == "__main__":
    main()
