"""Random releases, each written, read back and judged by a checker that knows nothing of Shoal.

    python -m tools.fuzz --seconds 600      as many as fit
    python -m tools.fuzz --cases 500        so many
    python -m tools.fuzz --only 0:71        one case again, by its seed and its number; the table is printed

Random tables × algorithms × models × recodings × suppression × intervals × orders × formats × persons (`tests/strategies.py`).
Each either ends in a file that `tests/reference/release.py` accepts, or is refused with a sentence before it is written.
Everything else is a failure: a file that breaks its policy, a column that says something else than the original, a value that
its generalized cell leaves out, a name in any output, a file that does not read back, an `InternalError`, a traceback. Refusals
are counted by their kind. The exit code is 1 where anything failed.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.reference.release import cells_of, changed_secrets, uncovered, violations
from tests.strategies import Attempt, Thrown, an_attempt

import shoal
from shoal.errors import InternalError, ShoalError
from shoal.readable import require_fitting

SHOWN = 12
WANTED = 5_000
"""Releases that the long form has to come to."""


@dataclass
class Tally:
    """What came of all attempts."""

    released: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    by: dict[str, Counter[str]] = field(default_factory=dict)

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
        for what, names in made.items():
            self.by.setdefault(what, Counter()).update([names] if isinstance(names, str) else names)

    def __str__(self) -> str:
        lines = [f"{self.released:,} releases, {self.refused.total():,} refusals, {len(self.failed)} failures"]
        lines += [
            f"  {what}: {', '.join(f'{k} {v:,}' for k, v in sorted(found.items()))}" for what, found in self.by.items()
        ]
        lines += [f"  {count:6,}  {kind}" for kind, count in self.refused.most_common()]
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
    for wrong in judged(attempt, path):
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


def campaign(*, seconds: float | None = None, cases: int | None = None, seed: int = 0) -> Tally:
    """Attempts until the time is over or there were enough."""
    tally, started, number = Tally(), time.monotonic(), 0
    while number < cases if cases is not None else time.monotonic() - started < (seconds or 0):
        attempt = an_attempt(Thrown(f"{seed}:{number}"))
        with tempfile.TemporaryDirectory(prefix="shoal-fuzz-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                refusal = try_release(attempt, Path(folder))
            except Exception as problem:  # whatever it is, it is a failure, and the others go on
                known = isinstance(problem, AssertionError | InternalError)
                last = "" if known else traceback.format_exc().strip().splitlines()[-3].strip()
                tally.failed.append(f"{seed}:{number} {type(problem).__name__} {problem} {last}"[:600])
            else:
                if refusal is None:
                    tally.count(attempt)
                else:
                    tally.refused[refusal] += 1
        number += 1
    return tally


def main() -> None:
    """Try, and say what came of it."""
    parser = argparse.ArgumentParser(description="Random releases, judged by a checker that knows nothing of Shoal.")
    parser.add_argument("--seconds", type=float, help="how long")
    parser.add_argument("--cases", type=int, help="how many, instead")
    parser.add_argument("--seed", type=int, default=0, help="which ones; 0 by default")
    parser.add_argument("--only", help="one case again: SEED:NUMBER")
    given = parser.parse_args()
    if given.only:
        again(given.only)
        return
    if given.seconds is None and given.cases is None:
        parser.error("say how long (--seconds 600) or how many (--cases 500)")
    tally = campaign(seconds=given.seconds, cases=given.cases, seed=given.seed)
    print(tally)
    short = given.seconds is not None and given.seconds >= 600 and tally.released < WANTED
    if short:
        print(f"fewer than {WANTED:,} releases")
    sys.exit(1 if tally.failed or short else 0)


def again(name: str) -> None:
    """One case by its name, with its table printed."""
    attempt = an_attempt(Thrown(name))
    print(attempt)
    with tempfile.TemporaryDirectory(prefix="shoal-fuzz-") as folder:
        print("refused:", try_release(attempt, Path(folder)))


if __name__ == "__main__":
    main()
