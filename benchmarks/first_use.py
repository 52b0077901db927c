"""First use: what compiling costs once, and what loading the compiled code costs every later process.

`shoal anonymize` on a made-up hospital (2,000 records, k = 5 and three diagnoses, default settings) in processes of their own:
with an empty cache, with the cache that the first one left, and a second time within that process. Compiling is the
difference of the first two, loading the difference of the last two. Processor seconds, wall clock in brackets. Then `shoal
demo`, which compiles for persons with several rows and on two processors (`shoal.compiling`), with an empty cache, with the
one that it left, and with an empty one and no help of a second processor: seconds by the clock. Goals: compiling under 8 s for
the demo, loading under 0.5 s. Writes benchmarks/out/first_use.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

OUT = Path(__file__).parent / "out"
WORK = """
import json, time
from benchmarks._tables import hospital_table
import shoal
data, policy, found = hospital_table(2000), shoal.KAnonymity(5) & shoal.PSensitive(3), []
for _ in range(2):
    wall, processor = time.perf_counter(), time.process_time()
    shoal.anonymize(data, policy)
    found.append([time.process_time() - processor, time.perf_counter() - wall])
print(json.dumps(found))
"""


ALONE = ["-c", "import shoal.compiling as c; c.compile_beside = lambda **_: None; from shoal.cli import main; main()"]
"""The command line without the process that compiles beside it."""


def main() -> None:
    """Cold, warm, again."""
    with tempfile.TemporaryDirectory() as cache:
        cold, _ = times(cache)
        warm, again = times(cache)
    figures = {"cold": cold, "warm": warm, "again": again}
    figures["compiling"] = [a - b for a, b in zip(cold, warm, strict=True)]
    figures["loading"] = [a - b for a, b in zip(warm, again, strict=True)]
    for name, (processor, wall) in figures.items():
        print(f"{name:10} {processor:6.2f} s  ({wall:.2f} s)")
    with tempfile.TemporaryDirectory() as cache:
        first, later = demo(cache), demo(cache)
    with tempfile.TemporaryDirectory() as cache:
        alone = demo(cache, ALONE)
    figures["demo"] = [first, later, alone]
    print(f"shoal demo: {first:.2f} s at first, {later:.2f} s later: {first - later:.2f} s for compiling, by the clock")
    print(f"without the second process {alone:.2f} s at first")
    OUT.mkdir(exist_ok=True)
    (OUT / "first_use.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")


def demo(cache: str, program: Sequence[str] = ("-m", "shoal")) -> float:
    """Seconds that the demo takes in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        command = [sys.executable, *program, "demo", "--folder", folder, "--quiet"]
        subprocess.run(command, env={**os.environ, "XDG_CACHE_HOME": cache}, check=True)
        return time.perf_counter() - began


def times(cache: str) -> list[list[float]]:
    """Processor and wall seconds of the first and the second run in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", WORK],
        cwd=OUT.parent.parent,
        env={**os.environ, "XDG_CACHE_HOME": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[list[float]] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
