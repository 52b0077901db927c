"""`make mutation`: does some test notice when the code is wrong? Mistakes put into the code, one at a time, and counted.

    python -m tools.mutation                        a seeded sample over all files of FILES, and every named mistake
    python -m tools.mutation --only recode --all    every mutant of one file
    python -m tools.mutation --only space --line 120

`tools/mutation.toml` holds two lists. `[[mistake]]` are mistakes that somebody thought of, with the tests that should notice:
each is tried, and each must be noticed. `[[equivalent]]` are mutants that change nothing anybody is promised, each with its
reason: they do not count. An entry of either list that no longer fits the code, and an equivalent that a test noticed after all,
is stale and fails.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.mutants import Mutant, mutants_of, sampled
from tools.trials import KILLED, SURVIVED, TIMEOUT, UNREACHED, prepare, run

ROOT = Path(__file__).parents[1]
LISTS = ROOT / "tools" / "mutation.toml"
WANTED = 0.90

# The files whose promises count, and the tests that hold them to their promises.
ROAD = ["tests/test_road.py", "tests/test_microdata.py", "tests/test_collapse.py"]
POLICY = ["tests/test_policy.py", "tests/test_schema.py", "tests/models"]
FILES: dict[str, list[str]] = {
    "src/shoal/models/*.py": [*POLICY, "tests/test_verify.py", "src/shoal/models"],
    "src/shoal/policy.py": [*POLICY, "src/shoal/policy.py"],
    "src/shoal/recode.py": ["tests/test_recode.py"],
    "src/shoal/states.py": ["tests/test_recode.py"],
    "src/shoal/release.py": ["tests/test_release.py"],
    "src/shoal/order.py": ["tests/test_release.py"],
    "src/shoal/manifest.py": ["tests/test_release.py", "tests/test_manifest.py"],
    "src/shoal/collisions.py": ["tests/test_collisions.py"],
    "src/shoal/road.py": [*ROAD, "tests/measures/test_masked.py", "src/shoal/road.py"],
    "src/shoal/verifier/*.py": ["tests/test_verify.py", "tests/measures/test_audit.py", "tests/test_road.py"],
    "src/shoal/space.py": ["tests/test_space.py", "tests/test_recode.py"],
    "src/shoal/schema.py": ["tests/test_schema.py", "tests/test_columns.py", "src/shoal/schema.py"],
    "src/shoal/columns.py": ["tests/test_columns.py", "tests/test_microdata.py", "tests/test_verify.py"],
    "src/shoal/algorithms/auto.py": ["tests/algorithms/test_auto.py"],
    "src/shoal/measures/[al]*.py": ["tests/measures/test_attacks.py", "tests/measures/test_loss.py"],
    "src/shoal/measures/[bc]*.py": ["tests/measures/test_bounds.py"],
    "src/shoal/measures/m[a]*.py": ["tests/measures/test_masked.py"],
    "src/shoal/measures/mi*.py": ["tests/measures/test_attacks.py"],
    "src/shoal/measures/re*.py": ["tests/measures/test_masked.py", "tests/measures/test_attacks.py"],
    "src/shoal/measures/ri*.py": ["tests/measures/test_risk.py"],
    "src/shoal/measures/u*.py": ["tests/measures/test_utility.py"],
    "src/shoal/evolve/releases/guards.py": ["tests/evolve/releases/test_guards.py"],
}


@dataclass(frozen=True)
class Entry:
    """One entry of `mutation.toml`: the text in a file before and after, and why."""

    file: str
    was: str
    now: str
    reason: str
    where: str | None = None
    tests: tuple[str, ...] = ()

    def fits(self, mutant: Mutant) -> bool:
        """Whether the mutant is the one that the entry tells of."""
        here = (mutant.file, mutant.was, mutant.now) == (self.file, self.was, self.now)
        return here and self.where in (None, mutant.where)


def main(arguments: list[str] | None = None) -> int:
    """Try the mutants, print what became of them, and say whether it is enough."""
    given = _options(arguments)
    os.chdir(ROOT)
    tests = _tests(given.only)
    every = [mutant for file in tests for mutant in mutants_of(file, Path(file).read_text(encoding="utf-8"))]
    mistakes, equivalents = _lists(given.only)
    stale = [f"{entry.file}: no mutant `{entry.now}` any more" for entry in equivalents if not _any(every, entry)]
    named, gone = _named(mistakes)
    stale += gone
    if given.line:
        chosen, named = [mutant for mutant in every if mutant.line == given.line], []
    else:
        chosen = every if given.all else sampled(every, given.sample, given.seed)
    prepare()
    print(f"{len(chosen)} of {len(every)} mutants (seed {given.seed}) and {len(named)} named mistakes", flush=True)
    their_tests = [
        *(entry.tests or tests[entry.file] for entry, _ in named),
        *(tests[mutant.file] for mutant in chosen),
    ]
    mutants = [*(mutant for _, mutant in named), *chosen]
    verdicts = run(mutants, their_tests, given.jobs, lambda mutant, verdict: _tell(mutant, verdict, equivalents))
    return _report(mutants[: len(named)], chosen, verdicts, equivalents, stale)


def _tell(mutant: Mutant, verdict: str, equivalents: list[Entry]) -> None:
    """A dot for what was noticed; what was not, at once: the whole may take a while."""
    if verdict in (KILLED, TIMEOUT) or any(entry.fits(mutant) for entry in equivalents):
        print(".", end="", flush=True)
    else:
        print(f"\n{mutant.file}:{mutant.line} {verdict}: {mutant.now}", flush=True)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutation", description=__doc__.split("\n")[0] if __doc__ else ""
    )
    parser.add_argument("--sample", type=int, default=320, help="how many mutants, each file with its share")
    parser.add_argument("--seed", type=int, default=11, help="which ones")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="files whose path contains this text"
    )
    parser.add_argument("--all", action="store_true", help="every mutant of the files instead of a sample")
    parser.add_argument("--line", type=int, help="only the mutants of one line")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    return parser.parse_args(arguments)


def _tests(only: list[str]) -> dict[str, list[str]]:
    """The test files of each file that is mutated."""
    found: dict[str, list[str]] = {}
    for pattern, tests in FILES.items():
        for path in sorted(Path().glob(pattern)):
            if not only or any(text in str(path) for text in only):
                found[str(path)] = [test for test in tests if Path(test).exists()]
    if not found:
        raise SystemExit(f"No mutated file has {' or '.join(only)} in its path.")
    return found


def _lists(only: list[str]) -> tuple[list[Entry], list[Entry]]:
    raw: dict[str, Any] = tomllib.loads(LISTS.read_text(encoding="utf-8"))
    mistakes, equivalents = (
        [Entry(**entry) for entry in raw.get(key, []) if not only or any(text in entry["file"] for text in only)]
        for key in ("mistake", "equivalent")
    )
    return mistakes, equivalents


def _any(mutants: list[Mutant], entry: Entry) -> bool:
    return any(entry.fits(mutant) for mutant in mutants)


def _named(mistakes: list[Entry]) -> tuple[list[tuple[Entry, Mutant]], list[str]]:
    """The mistakes as mutants, and those whose text is not (once) in their file."""
    named, gone = [], []
    for entry in mistakes:
        source, was, now = Path(entry.file).read_bytes(), entry.was.encode(), entry.now.encode()
        if source.count(was) != 1:
            gone.append(f"{entry.file}: `{entry.was}` is there {source.count(was)} times ({entry.reason})")
            continue
        start = source.index(was)
        line = source[:start].count(b"\n") + 1
        # Without lines of its own it is tried in a fresh interpreter.
        mutant = Mutant(entry.file, "", line, False, frozenset(), entry.reason, entry.now, start, start + len(was), now)
        named.append((entry, mutant))
    return named, gone


def _report(
    named: list[Mutant], chosen: list[Mutant], verdicts: list[str], equivalents: list[Entry], stale: list[str]
) -> int:
    kinds: dict[str, Counter[str]] = {}
    lines: list[str] = []
    for mutant, verdict in zip(chosen, verdicts[len(named) :], strict=True):
        entry = next((entry for entry in equivalents if entry.fits(mutant)), None)
        noticed = verdict in (KILLED, TIMEOUT)
        if entry is not None and noticed:
            stale.append(f"{mutant.file}:{mutant.line}: a test notices `{mutant.now}`")
        kind = "killed" if noticed else "equivalent" if entry is not None else "survived"
        kinds.setdefault(mutant.file, Counter())[kind] += 1
        if kind == "survived":
            why = "  (no test comes here)" if verdict == UNREACHED else ""
            lines.append(f"{mutant.file}:{mutant.line} {mutant.where}{why}\n  - {mutant.was}\n  + {mutant.now}")
    print("\n\nfile                                       mutants  killed  equivalent  survived   score")
    for name, counted in sorted(kinds.items()):
        print(_row(name, counted))
    total = sum(kinds.values(), Counter())
    print(_row("all", total))
    if lines:
        print("\nSurvivors\n" + "\n".join(lines))
    unnoticed = [mutant for mutant, verdict in zip(named, verdicts, strict=False) if verdict in (SURVIVED, UNREACHED)]
    print(f"\nNamed mistakes noticed: {len(named) - len(unnoticed)} of {len(named)}")
    for mutant in unnoticed:
        print(f"  {mutant.file}:{mutant.line} {mutant.was}\n  + {mutant.now}")
    for text in stale:
        print(f"Stale: {text}")
    enough = not chosen or _score(total) >= WANTED
    print(f"\nScore {_score(total):.1%} of {total['killed'] + total['survived']} mutants that are not equivalent")
    return 0 if enough and not stale and not unnoticed else 1


def _row(name: str, counted: Counter[str]) -> str:
    killed, equivalent, survived = counted["killed"], counted["equivalent"], counted["survived"]
    return f"{name:<42} {counted.total():>7} {killed:>7} {equivalent:>11} {survived:>9} {_score(counted):>7.1%}"


def _score(counted: Counter[str]) -> float:
    return counted["killed"] / max(1, counted["killed"] + counted["survived"])


if __name__ == "__main__":
    sys.exit(main())
