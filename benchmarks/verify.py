"""What verification costs: `shoal verify` beside `shoal anonymize`, and the reading back of every release beside the whole road.

    python -m benchmarks.verify                      3 million records
    python -m benchmarks.verify --records 300000     fewer

The table of `end_to_end` (Adult-like, seven quasi-identifiers, mondrian, k = 5, no refinement: the fastest road there is, so the
hardest to be fast beside). Both commands run in processes of their own, start to exit; `verify` also judges the file by every
model there is. Reading back is timed in one process: the whole road with it, and the same road with the file only written.
Processor seconds decide, because other work on the machine moves the clock. Writes benchmarks/out/verify.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.end_to_end import OUT, RECORDS, adult_like, configuration

AT_MOST, ADDED = 0.6, 0.25


def main() -> None:
    """Mask, verify, and say what each took."""
    parser = argparse.ArgumentParser(description="What verification costs.")
    parser.add_argument("--records", type=int, default=RECORDS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "shoal.toml").write_text(configuration(), encoding="utf-8")
        # Compiled code is kept on disk; a first small run makes sure that it is there.
        adult_like(2000).write_csv(folder / "small.csv")
        command(folder, "anonymize", "small.csv", "-o", "small-masked.csv")
        command(folder, "verify", "small-masked.csv")
        adult_like(options.records).write_csv(folder / "adult-like.csv")
        made = command(folder, "anonymize", "adult-like.csv", "-o", "masked.csv")
        seen = command(folder, "verify", "masked.csv")
        parts = road(folder)
    print(f"{options.records:,} records, {parts['classes']:,} classes")
    for name, run in (("anonymize", made), ("verify", seen)):
        print(f"shoal {name:<10} {run['processor']:7.2f} s processor {run['wall']:7.2f} s wall")
    ratio = seen["processor"] / made["processor"]
    print(
        f"verify / anonymize                 {ratio:.2f}  (at most {AT_MOST}; {seen['wall'] / made['wall']:.2f} by the clock)"
    )
    for name in ("reading", "masking", "writing", "reading back"):
        print(f"{name:<16} {parts[name]:7.2f} s processor")
    without = parts["reading"] + parts["masking"] + parts["writing"]
    added = parts["reading back"] / without
    print(f"reading back adds                  {added:.0%}  (at most {ADDED:.0%})")
    OUT.mkdir(exist_ok=True)
    figures: dict[str, Any] = {
        "records": options.records,
        "anonymize": made,
        "verify": seen,
        "ratio": ratio,
        "added": added,
    }
    (OUT / "verify.json").write_text(json.dumps({**figures, "parts": parts}, indent=1) + "\n", encoding="utf-8")


def command(folder: Path, *words: str) -> dict[str, float]:
    """One command in a process of its own: processor and wall clock seconds."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "shoal", *words, "--json", "--quiet"], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"processor": processor, "wall": time.perf_counter() - begun}


def road(folder: Path) -> dict[str, float]:
    """The whole road in this process, part by part."""
    from shoal import release as room
    from shoal.configuration import read_config
    from shoal.io.files import write_table_to
    from shoal.microdata import read
    from shoal.policy import Policy
    from shoal.road import anonymize

    times: dict[str, float] = {}

    def lap(name: str, since: float) -> float:
        now = time.process_time()
        times[name] = now - since
        return now

    at = time.process_time()
    config = read_config(folder / "shoal.toml")
    data = read(folder / "adult-like.csv", config)
    at = lap("reading", at)
    policy = Policy.from_config(config.config.policy)
    made = anonymize(data, policy, algorithm="mondrian", refine=False)
    at = lap("masking", at)
    write_table_to(made.table, folder / "plain.csv", folder / "plain.csv")
    at = lap("writing", at)
    room.read_back(made.table, folder / "plain.csv", folder / "plain.csv", policy, data.schema)
    lap("reading back", at)
    times["classes"] = made.evidence.classes
    return times


if __name__ == "__main__":
    main()
