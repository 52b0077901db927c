"""Random releases, each written, read back and judged by a checker that knows nothing of Shoal.

    python -m tools.fuzz --seconds 600      as many as fit, in a process for each core
    python -m tools.fuzz --cases 500        so many
    python -m tools.fuzz --only 0:71        one case again, by its seed and its number; the table is printed

Random tables × algorithms × models × recodings × suppression × intervals × orders × formats × persons (`tests/strategies.py`).
Each either ends in a file that `tests/reference/release.py` accepts, or is refused with a sentence before it is written.
Everything else is a failure: a file that breaks its policy, a column that says something else than the original, a value that
its generalized cell leaves out, a name in any output, a file that does not read back (violations), an `InternalError`, any other
exception (tracebacks). Refusals are counted by their kind, releases by what they are made of. The exit code is 1 where anything
failed.

A case depends on its seed and its number alone, whichever process tries it. Most tables are small: a few records and their
neighbours are where rules break, and a small table is released in a tenth of a second.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from itertools import count, pairwise
from multiprocessing import get_context
from pathlib import Path

from tests.reference.release import cells_of, changed_secrets, uncovered, violations
from tests.strategies import Attempt, Thrown, an_attempt

import shoal
from shoal.algorithms import names
from shoal.claims import Judged, broken_claims, read_half
from shoal.configuration import read_schema
from shoal.errors import InternalError, ShoalError
from shoal.manifest import manifest_path
from shoal.models import MODELS
from shoal.readable import require_fitting

SHOWN = 12
WANTED = 5_000
"""Releases that the long form has to come to."""
LARGEST = (12, 12, 24, 60)
"""Records of the largest table, from case to case."""
KINDS = ("violations", "internal errors", "tracebacks")
# A process tries one case after the other; libraries that bring threads of their own only get in each other's way.
ALONE = ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass
class Tally:
    """What came of all attempts."""

    released: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    """How many failures of each kind."""
    by: dict[str, Counter[str]] = field(default_factory=dict)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Releases by algorithm and model."""
    seconds: float = 0.0
    """Of processor time."""

    def count(self, attempt: Attempt) -> None:
        """One more release, by what it is made of."""
        self.released += 1
        made = {
            "algorithm": attempt.settings["algorithm"],
            "model": [model.name for model in attempt.policy.models],
            "recode": attempt.settings["recode"],
            "intervals": attempt.settings["intervals"],
            "suppressed": attempt.settings["suppressed"],
            "format": attempt.file.partition(".")[2],
            "persons": "several rows" if attempt.table.person else "one row",
        }
        for what, found in made.items():
            self.by.setdefault(what, Counter()).update([found] if isinstance(found, str) else found)
        self.pairs.update((made["algorithm"], model) for model in dict.fromkeys(made["model"]))

    def fail(self, kind: str, told: str) -> None:
        """One more failure."""
        self.kinds[kind] += 1
        self.failed.append(told[:600])

    def __add__(self, other: Tally) -> Tally:
        by = {what: self.by.get(what, Counter()) + other.by.get(what, Counter()) for what in self.by | other.by}
        return Tally(
            self.released + other.released,
            self.refused + other.refused,
            self.failed + other.failed,
            self.kinds + other.kinds,
            by,
            self.pairs + other.pairs,
            self.seconds + other.seconds,
        )

    def __str__(self) -> str:
        kinds = ", ".join(f"{self.kinds[kind]:,} {kind}" for kind in KINDS)
        lines = [f"{self.released:,} releases, {self.refused.total():,} refusals; {kinds}"]
        a_second = self.released / self.seconds if self.seconds else 0.0
        lines += [f"  {self.seconds:,.0f} processor seconds, {a_second:.1f} releases a second of them"]
        lines += [
            f"  {what}: {', '.join(f'{k} {v:,}' for k, v in sorted(found.items()))}" for what, found in self.by.items()
        ]
        lines += [f"  pairs of algorithm and model: {len(self.pairs)} of {len(names()) * len(MODELS)}"]
        refused = sorted(self.refused.items(), key=lambda one: (-one[1], one[0]))
        lines += [f"  {number:6,}  {kind}" for kind, number in refused]
        return "\n".join(lines + [f"FAILED {one}" for one in self.failed[:SHOWN]])


def kind_of(problem: ShoalError) -> str:
    """A refusal without its names, numbers and values: what sort of sentence it is."""
    text = re.sub(r"'[^']*'", "'…'", str(problem).replace("\n", " "))
    return f"{type(problem).__name__}: {re.sub(r'[0-9][0-9.,]*', 'N', text)[:110]}"


def try_release(attempt: Attempt, folder: Path) -> str | None:
    """Make, write and judge one release; the kind of the refusal, or None. An AssertionError is what must not be."""
    table, path = attempt.table, folder / attempt.file
    told = ""
    try:
        data = shoal.Microdata.from_frame(table.frame, table.schema)
        require_fitting(data, attempt.policy, path)
        release = shoal.anonymize(data, attempt.policy, **attempt.settings)
    except ShoalError as problem:
        told = str(problem)
        assert "Canary" not in told, "a name stands in a sentence"
        assert "\n" not in told.strip(), f"more than a line: {told!r}"
        return kind_of(problem)
    try:
        release.write(path, safe_csv=attempt.safe_csv)
    except ShoalError as problem:
        raise AssertionError(f"refused after the search: {problem}") from problem
    for wrong in (*judged(attempt, path), *claimed(attempt, path)):
        raise AssertionError(wrong)
    for file in folder.iterdir():
        assert b"Canary" not in file.read_bytes() or file.name.endswith(".gz"), f"a name stands in {file.name}"
    return None


def judged(attempt: Attempt, path: Path) -> Iterator[str]:
    """What is wrong with a file, by the checker that is not ours."""
    table, how = attempt.table, attempt.settings
    header, rows = cells_of(path)
    kept = how["order"] == "keep" and how["suppressed"] == "mask"
    owners = None
    if table.person is not None:
        token = header.index("pid") if "pid" in header else None
        owners = [row[token] for row in rows] if token is not None else table.frame["pid"].to_list()
    elif how["suppressed"] == "mask" and len(rows) != table.frame.height:
        yield f"{len(rows)} rows were published of {table.frame.height}"
    quasi = [name for name, one in table.schema.items() if one["role"] == "quasi"]
    extra = set(header) - set(table.schema) - {f"{name}{end}" for name in quasi for end in ("_min", "_max")}
    if extra or "name" in header:
        yield f"columns that nobody declared, or that never leave: {extra or 'name'}"
    policy = [(model.name, model.parameters()) for model in attempt.policy.models]
    yield from violations(header, rows, policy, quasi, table.abouts, folded=table.folded, owners=owners)
    formula = attempt.safe_csv and not path.name.endswith((".parquet", ".arrow", ".jsonl", ".xlsx"))
    for name in [*table.abouts, *(["ward"] if "ward" in table.schema else [])]:
        published = [row[header.index(name)] for row in rows]
        if (
            how["suppressed"] == "mask"
            and not formula
            and changed_secrets(published, table.frame[name].to_list(), kept_order=kept)
        ):
            yield f"column {name} does not say what the original does"
    if kept and how["recode"] == "generalize" and table.person is None:
        yield from left_out(attempt, header, rows)


def claimed(attempt: Attempt, path: Path) -> Iterator[str]:
    """What the manifest says and `shoal verify --manifest` does not find in the file; not so with apostrophes before cells."""
    if not attempt.safe_csv:
        found = Judged.of(path, attempt.policy, read_schema(attempt.table.schema))
        yield from broken_claims(read_half(manifest_path(path)), found)


def left_out(attempt: Attempt, header: list[str], rows: list[list[object]]) -> Iterator[str]:
    """Values that their generalized cells do not hold, where the cells are numbers or nodes of a given taxonomy."""
    table = attempt.table
    for name, one in table.schema.items():
        if one["role"] != "quasi" or name not in header or attempt.settings["intervals"] != "text":
            continue
        source = one.get("taxonomy")
        listed = source.get("rows") if isinstance(source, dict) else None
        numeric = source is None and table.frame[name].dtype.is_numeric() and one.get("kind") != "category"
        if not numeric and listed is None:
            continue
        parents = {low: high for row in listed for low, high in pairwise(row)} if listed else None
        place = header.index(name)
        for row, value in zip(rows, table.frame[name].to_list(), strict=True):
            if uncovered(row[place], value, parents):
                yield f"column {name} publishes {row[place]!r} for {value!r}"


def campaign(*, seconds: float | None = None, cases: int | None = None, seed: int = 0, processes: int = 1) -> Tally:
    """Attempts until the time is over or there were enough, in so many processes."""
    if processes == 1:
        return share(seconds, cases, seed, 0, 1)
    before = {name: os.environ.get(name) for name in ALONE}
    os.environ.update(dict.fromkeys(ALONE, "1"))
    try:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            shares = [pool.submit(share, seconds, cases, seed, first, processes) for first in range(processes)]
            return reduce(Tally.__add__, (one.result() for one in shares))
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def share(seconds: float | None, cases: int | None, seed: int, first: int, step: int) -> Tally:
    """The attempts `first`, `first + step`, …, one after the other."""
    tally, started, began = Tally(), time.monotonic(), time.process_time()
    for number in count(first, step):
        if number >= cases if cases is not None else time.monotonic() - started >= (seconds or 0):
            break
        attempt = thrown(f"{seed}:{number}")
        with tempfile.TemporaryDirectory(prefix="shoal-fuzz-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                refusal = try_release(attempt, Path(folder))
            except AssertionError as problem:
                tally.fail("violations", f"{seed}:{number} {problem}")
            except InternalError as problem:
                tally.fail("internal errors", f"{seed}:{number} InternalError {problem}")
            except Exception as problem:  # whatever it is, it is a failure, and the others go on
                last = traceback.format_exc().strip().splitlines()[-3].strip()
                tally.fail("tracebacks", f"{seed}:{number} {type(problem).__name__} {problem} {last}")
            else:
                if refusal is None:
                    tally.count(attempt)
                else:
                    tally.refused[refusal] += 1
    tally.seconds = time.process_time() - began
    return tally


def thrown(name: str) -> Attempt:
    """The case of this name: SEED:NUMBER."""
    return an_attempt(Thrown(name), largest=LARGEST[int(name.partition(":")[2]) % len(LARGEST)])


def main() -> None:
    """Try, and say what came of it."""
    parser = argparse.ArgumentParser(description="Random releases, judged by a checker that knows nothing of Shoal.")
    parser.add_argument("--seconds", type=float, help="how long")
    parser.add_argument("--cases", type=int, help="how many, instead")
    parser.add_argument("--seed", type=int, default=0, help="which ones; 0 by default")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="at a time; as many as cores by default"
    )
    parser.add_argument("--only", help="one case again: SEED:NUMBER")
    given = parser.parse_args()
    if given.only:
        again(given.only)
        return
    if given.seconds is None and given.cases is None:
        parser.error("say how long (--seconds 600) or how many (--cases 500)")
    tally = campaign(seconds=given.seconds, cases=given.cases, seed=given.seed, processes=max(1, given.processes))
    print(tally)
    short = given.seconds is not None and given.seconds >= 600 and tally.released < WANTED
    if short:
        print(f"fewer than {WANTED:,} releases")
    sys.exit(1 if tally.failed or short else 0)


def again(name: str) -> None:
    """One case by its name, with its table printed."""
    attempt = thrown(name)
    print(attempt)
    with tempfile.TemporaryDirectory(prefix="shoal-fuzz-") as folder:
        print("refused:", try_release(attempt, Path(folder)))


if __name__ == "__main__":
    main()
