"""`make mutation`: does some test notice when the code is wrong? Mistakes put into the code, one at a time, and counted.

    python -m tools.mutation                        a seeded sample over all files of ROOMS, and every named mistake
    python -m tools.mutation --only recode --all    every mutant of one file
    python -m tools.mutation --only space --line 120

`tools/mutation.toml` holds three lists. `[[mistake]]` are mistakes that somebody thought of, with the tests that should notice:
each is tried, and each must be noticed. `[[equivalent]]` are mutants that change nothing anybody is promised, each with its
reason: they do not count. `[[survivor]]` are mutants that no test notices though something would change, each with the reason
why it was left: they count as what they are. An entry of any list that no longer fits the code, and one of the last two that a
test noticed after all, is stale and fails.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from tools.mutants import Mutant, mutants_of, sampled
from tools.trials import KILLED, SURVIVED, TIMEOUT, UNREACHED, prepare, run

ROOT = Path(__file__).parents[1]
LISTS = ROOT / "tools" / "mutation.toml"
WANTED = 0.90

# The files whose promises count, by room, and the tests that hold them to their promises.
MODELS = [
    "tests/models/test_closeness_and_variance.py", "tests/models/test_model_contract.py", "tests/models/test_model_golden.py",
    "tests/models/test_model_parameters.py", "tests/models/test_model_parts.py", "tests/models/test_one_file.py",
    "tests/models/test_persons.py", "tests/models/test_policies.py", "tests/models/test_shares.py",
    "tests/models/test_sharpness.py", "tests/test_policy.py", "tests/test_schema.py",
    "tests/algorithms/test_peel.py::test_limits_move_towards_the_table",
    "tests/algorithms/test_peel.py::test_bounds_of_each_value_move_towards_its_own_share",
]  # fmt: skip
GUARDS = ["tests/evolve/releases/test_guards.py", "tests/evolve/releases/test_guard_parts.py"]
ATTACKS = ["tests/measures/test_attacks.py", "tests/measures/test_attack_twins.py"]
VERIFIER = [
    "tests/test_verify.py",
    "tests/test_verifier_parts.py",
    "tests/test_meaning.py",
    "tests/measures/test_audit.py",
]
RELEASE = ["tests/test_release.py", "tests/test_release_parts.py"]
# Tests of these files that take long, for what other tests notice sooner.
SLOW = [
    "tests/test_collisions.py::test_no_internal_error_on_small_domains", "tests/test_road.py::test_the_input_is_left_alone",
    "tests/evolve/releases/test_guards.py::test_cohorts",
    "tests/models/test_one_file.py::test_a_model_without_forms_is_refined_and_the_notes_say_how",
    "tests/models/test_one_file.py::test_the_command_writes_the_schema",
    "tests/models/test_one_file.py::test_the_stub_of_a_built_package_has_every_public_name",
    "tests/models/test_model_golden.py::test_uniform_classes_reach_their_entropy_exactly",
    "tests/models/test_persons.py::test_a_class_is_good_exactly_when_its_twin_says_so[l_diversity",
    "tests/models/test_shares.py::test_no_good_class_is_smaller_than_the_least_size",
    "tests/measures/test_bounds.py::test_adult_quickly",
    *(f"tests/measures/test_bounds.py::test_never_above_the_optimum[{block}]" for block in range(1, 10)),
    "tests/measures/test_utility.py::test_a_classifier_loses_what_generalization_took",
]  # fmt: skip
ROOMS: dict[str, dict[str, list[str]]] = {
    "models": {"src/shoal/models/*.py": [*MODELS, "tests/test_verifier_parts.py", "src/shoal/models"]},
    "policy": {"src/shoal/policy.py": [*MODELS, "src/shoal/policy.py"]},
    "recode": {"src/shoal/recode.py": ["tests/test_recode.py"], "src/shoal/states.py": ["tests/test_recode.py"]},
    "release": {
        "src/shoal/release.py": RELEASE,
        "src/shoal/order.py": RELEASE,
        "src/shoal/manifest.py": ["tests/test_release.py", "tests/test_manifest.py"],
        "src/shoal/collisions.py": ["tests/test_collisions.py", "tests/test_release_parts.py"],
    },
    "road": {"src/shoal/road.py": ["tests/test_road.py", "tests/test_road_settings.py", "src/shoal/road.py"]},
    "verifier": {"src/shoal/verifier/*.py": VERIFIER},
    "space": {"src/shoal/space.py": ["tests/test_space.py", "tests/test_recode.py"]},
    "schema": {
        "src/shoal/schema.py": [
            "tests/test_schema.py",
            "tests/test_columns.py",
            "tests/test_release_parts.py",
            "src/shoal/schema.py",
        ],
        "src/shoal/columns.py": ["tests/test_columns.py", "tests/test_microdata.py", "tests/test_verify.py"],
    },
    "measures": {
        "src/shoal/measures/a*.py": ATTACKS,
        "src/shoal/measures/l*.py": ["tests/measures/test_loss.py"],
        "src/shoal/measures/[bc]*.py": ["tests/measures/test_bounds.py", "tests/measures/test_attack_twins.py"],
        "src/shoal/measures/ma*.py": ["tests/measures/test_masked.py", "tests/measures/test_loss.py"],
        "src/shoal/measures/mi*.py": ATTACKS,
        "src/shoal/measures/reg*.py": ["tests/measures/test_masked.py", "tests/measures/test_regions.py", *ATTACKS],
        "src/shoal/measures/rel*.py": ATTACKS,
        "src/shoal/measures/ri*.py": ["tests/measures/test_risk.py"],
        "src/shoal/measures/u*.py": ["tests/measures/test_utility.py"],
        "src/shoal/measures/w*.py": ["tests/measures/test_worst_case.py"],
    },
    "guards": {"src/shoal/evolve/releases/guards.py": GUARDS},
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
    tests = _tests()
    every = [mutant for file in tests for mutant in mutants_of(file, Path(file).read_text(encoding="utf-8"))]
    mistakes, equivalents, left = _lists(given.only)
    stale = [
        f"{entry.file}: no mutant `{entry.now}` any more" for entry in equivalents + left if not _any(every, entry)
    ]
    named, gone = _named(mistakes)
    stale += gone
    # The part of a sample is drawn as the whole is: one file alone meets the mutants that it meets among all files.
    drawn = every if given.all or given.line else sampled(every, given.sample, given.seed)
    chosen = [mutant for mutant in drawn if _wanted(mutant.file, given.only)]
    if given.line:
        chosen, named = [mutant for mutant in chosen if mutant.line == given.line], []
    prepare()
    print(f"{len(chosen)} of {len(every)} mutants (seed {given.seed}) and {len(named)} named mistakes", flush=True)
    their_tests = [
        *(entry.tests or tests[entry.file] for entry, _ in named),
        *(tests[mutant.file] for mutant in chosen),
    ]
    mutants = [*(mutant for _, mutant in named), *chosen]
    verdicts, failures = run(
        mutants, their_tests, given.jobs, lambda mutant, verdict: _tell(mutant, verdict, equivalents), SLOW
    )
    fine = _report(list(zip(chosen, verdicts[len(named) :], strict=True)), equivalents, left, stale)
    unnoticed = [mutant for (_, mutant), found in zip(named, verdicts, strict=False) if found in (SURVIVED, UNREACHED)]
    print(f"\nNamed mistakes noticed: {len(named) - len(unnoticed)} of {len(named)}")
    for mutant in unnoticed:
        print(f"  {mutant.file}:{mutant.line} {mutant.was}\n  + {mutant.now}")
    for text in stale:
        print(f"Stale: {text}")
    for text in failures:
        print(f"Fails without any mutant, and was left aside: {text}")
    return 0 if fine and not stale and not unnoticed and not failures else 1


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


def _tests() -> dict[str, list[str]]:
    """The test files of each file that is mutated."""
    found: dict[str, list[str]] = {}
    for patterns in ROOMS.values():
        for pattern, tests in patterns.items():
            found |= {str(path): tests for path in sorted(Path().glob(pattern))}
    return found


def _wanted(file: str, only: list[str]) -> bool:
    return not only or any(text in file for text in only)


def _lists(only: list[str]) -> tuple[list[Entry], list[Entry], list[Entry]]:
    raw: dict[str, Any] = tomllib.loads(LISTS.read_text(encoding="utf-8"))
    mistakes, equivalents, left = (
        [Entry(**entry) for entry in raw.get(key, []) if _wanted(entry["file"], only)]
        for key in ("mistake", "equivalent", "survivor")
    )
    return mistakes, equivalents, left


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


def _report(tried: list[tuple[Mutant, str]], equivalents: list[Entry], left: list[Entry], stale: list[str]) -> bool:
    """Print the score of each room and what was not noticed; whether the score is high enough."""
    rooms: dict[str, Counter[str]] = {}
    lines: dict[str, list[str]] = {"equivalent": [], "survived": []}
    for mutant, verdict in tried:
        entry, known = (next((e for e in some if e.fits(mutant)), None) for some in (equivalents, left))
        noticed = verdict in (KILLED, TIMEOUT)
        if noticed and (entry or known):
            stale.append(f"{mutant.file}:{mutant.line}: a test notices `{mutant.now}`")
        kind = "killed" if noticed else "equivalent" if entry is not None else "survived"
        rooms.setdefault(room_of(mutant.file), Counter())[kind] += 1
        if not noticed:
            why = entry or known
            reason = why.reason if why else "no test comes here" if verdict == UNREACHED else "no reason known"
            place = f"{mutant.file}:{mutant.line} {mutant.where}: {reason}"
            lines[kind].append(f"{place}\n  - {mutant.was}\n  + {mutant.now}")
    for title, kind in (("Equivalent", "equivalent"), ("Survivors", "survived")):
        if lines[kind]:
            print(f"\n\n{title}\n" + "\n".join(lines[kind]))
    print("\n\nroom       mutants  killed  equivalent  survived   score")
    for name in ROOMS:
        if name in rooms:
            print(_row(name, rooms[name]))
    total = sum(rooms.values(), Counter())
    print(_row("all", total))
    print(f"\nScore {_score(total):.1%} of {total['killed'] + total['survived']} mutants that are not equivalent")
    return not tried or _score(total) >= WANTED


def room_of(file: str) -> str:
    """The room that a mutated file is in."""
    return next(room for room, patterns in ROOMS.items() if any(PurePath(file).match(pattern) for pattern in patterns))


def _row(name: str, counted: Counter[str]) -> str:
    killed, equivalent, survived = counted["killed"], counted["equivalent"], counted["survived"]
    return f"{name:<10} {counted.total():>7} {killed:>7} {equivalent:>11} {survived:>9} {_score(counted):>7.1%}"


def _score(counted: Counter[str]) -> float:
    return counted["killed"] / max(1, counted["killed"] + counted["survived"])


if __name__ == "__main__":
    sys.exit(main())
