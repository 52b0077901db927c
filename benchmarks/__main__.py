"""`make bench`: every script of this folder, one after the other, each in a process of its own.

    python -m benchmarks               all of them
    python -m benchmarks losses mdav   only these

What they print is kept in benchmarks/out/ and makes up docs/performance.md, which nobody writes by hand. Peers that pip can
install get an environment of their own, so that they never come near ours.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks._summary import summary

HERE = Path(__file__).parent
OUT = HERE / "out"
PAGE = HERE.parent / "docs" / "performance.md"
PEERS = ("pycanon", "anonypy", "anjana")
INTRODUCTION = """\
# Performance

Every figure on this page was printed by a script of `benchmarks/`; `make bench` runs them all, one after the other, and writes
the page anew; `python -m benchmarks NAME` runs some, and the page keeps what the others printed last. They were measured on
{cores} cores. Machines differ, so look at the ratios within a block, which are of one run. Figures of tools that are not
installable with pip (ARX 3.9.2, sdcMicro 5.8.1) are quoted: measured once on a machine like this one, mostly quiet, ARX warm
and without start-up (`benchmarks/quoted.py` says with which settings). ARX's losses stand beside ours with the same hierarchies;
what free intervals add stands apart.
"""


def main() -> None:
    """Run the scripts asked for and write the page."""
    scripts = {path.stem: path for path in sorted(HERE.glob("*.py")) if not path.name.startswith("_")}
    parser = argparse.ArgumentParser(description="Run benchmarks and write docs/performance.md.")
    parser.add_argument("scripts", nargs="*", choices=[*scripts, []], help="all by default")
    wanted = parser.parse_args().scripts or list(scripts)
    OUT.mkdir(exist_ok=True)
    peer = peer_python() if any("--peer" in scripts[name].read_text(encoding="utf-8") for name in wanted) else None
    failed = [name for name in wanted if not ran(name, scripts[name], peer)]
    write_page(scripts)
    print(f"\n{summary()}")
    print(f"Figures: {OUT.relative_to(HERE.parent)}, page: {PAGE.relative_to(HERE.parent)}")
    if failed:
        sys.exit(f"These benchmarks did not finish: {', '.join(failed)}")


def ran(name: str, script: Path, peer: Path | None) -> bool:
    """Run one script, show what it prints and keep it; whether it finished."""
    print(f"\n=== {name} ===", flush=True)
    options = ["--peer", str(peer)] if peer and "--peer" in script.read_text(encoding="utf-8") else []
    lines = []
    with subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.{name}", *options],
        cwd=HERE.parent,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    if running.returncode == 0:
        (OUT / f"{name}.txt").write_text("".join(lines), encoding="utf-8")
    return running.returncode == 0


def write_page(scripts: dict[str, Path]) -> None:
    """The page: what every script says it measures, and what it printed last, here or before."""
    before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    kept_parts = {part.partition("\n")[0]: f"## {part.strip()}\n" for part in before.split("\n## ")[1:]}
    parts = [INTRODUCTION.format(cores=os.cpu_count()), f"## At a glance\n\n{summary(before)}"]
    for name, script in scripts.items():
        printed = OUT / f"{name}.txt"
        if printed.exists():
            says = (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").splitlines()
            prose = "\n".join(line for line in says if not line.startswith("    "))
            while "\n\n\n" in prose:
                prose = prose.replace("\n\n\n", "\n\n")
            kept = [line.rstrip() for line in printed.read_text(encoding="utf-8").splitlines()]
            shown = "\n".join(line for line in kept if not line.startswith("written: ")).strip()
            parts.append(f"## {name}\n\n{prose}\n\n```text\n{shown}\n```\n")
        elif name in kept_parts:
            parts.append(kept_parts[name])
    PAGE.write_text("\n".join(parts), encoding="utf-8")


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
