"""The mutation tool: which mistakes it makes, and that it tells noticed ones from those that nobody notices."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools.mutants import mutants_of, sampled
from tools.mutation import ROOMS, Entry, room_of

ROOT = Path(__file__).parents[2]


def after(source: str) -> set[str]:
    return {mutant.now for mutant in mutants_of("demo.py", source)}


@pytest.mark.parametrize(
    ("line", "mutant"),
    [
        ("return a < b", "return (a <= b)"),
        ("return a == b", "return (a != b)"),
        ("return a and b", "return (a or b)"),
        ("return a and b", "return a and True"),
        ("return a + b", "return (a - b)"),
        ("return a // b", "return (a * b)"),
        ("return max(a, b)", "return min(a, b)"),
        ("return any(a)", "return all(a)"),
        ("return a.min()", "return a.max()"),
        ("return a[1:]", "return a[:]"),
        ("return a[1]", "return a[2]"),
        ("return sorted(a, key=b)", "return sorted(a, )"),
        ("return b if a else 0", "return b if (not a) else 0"),
        ("return [x for x in a if x]", "return [x for x in a if True]"),
        ("return not a", "return (a)"),
        ("return a == 'text'", "return a == 'not text'"),
        ("return a", "return None"),
        ("a.append(b)", "pass"),
        ("raise ValueError(a)", "pass"),
        ("a = a + b", "pass"),
        ("a[0] = b", "pass"),
        ("return True", "return False"),
        ("return 0.5", "return 1.0"),
    ],
)
def test_each_mistake_is_made(line: str, mutant: str) -> None:
    assert mutant in after(f"def f(a, b):\n    {line}\n")


def test_what_promises_nothing_is_spared() -> None:
    source = '''"""A module of 1 function."""
from dataclasses import dataclass
Either = int | str
@dataclass(frozen=True)
class Point:
    """One of 2."""
    x: "int | None"
def f(a: int | None, b: float) -> int | None:
    """Not 3."""
    for x, y in zip(a, b, strict=True):
        raise ValueError(f"{x + 1} is more than {y}")
'''
    assert after(source) == {"pass"}


def test_every_mutant_is_python_and_differs() -> None:
    source = (ROOT / "src/shoal/recode.py").read_text(encoding="utf-8")
    found = mutants_of("recode.py", source)
    assert len({mutant.applied(source.encode()) for mutant in found}) == len(found) > 100
    assert source.encode() not in {mutant.applied(source.encode()) for mutant in found}
    for mutant in found:
        compile(mutant.applied(source.encode()), mutant.file, "exec")


def test_a_change_elsewhere_leaves_the_draw_alone() -> None:
    source = (ROOT / "src/shoal/recode.py").read_text(encoding="utf-8")
    drawn = sampled(mutants_of("recode.py", source), 30, seed=1)
    moved = sampled(mutants_of("recode.py", "import this\n\n" + source), 30, seed=1)
    assert len(drawn) == 30
    assert [mutant.key for mutant in drawn] == [mutant.key for mutant in moved]
    assert drawn != sampled(mutants_of("recode.py", source), 30, seed=2)


def test_an_entry_fits_its_mutant_alone() -> None:
    first, second = mutants_of("demo.py", "def f(a, b):\n    return a < b\n")
    entry = Entry("demo.py", first.was, first.now, "told apart by nothing", where="f")
    assert entry.fits(first) and not entry.fits(second)
    assert not Entry("demo.py", first.was, first.now, "another function", where="g").fits(first)


def test_every_file_that_is_mutated_is_in_one_room_and_has_tests() -> None:
    for room, patterns in ROOMS.items():
        for pattern, tests in patterns.items():
            files = sorted(path.relative_to(ROOT) for path in ROOT.glob(pattern))
            assert files and {room_of(str(file)) for file in files} == {room}
            assert tests and all((ROOT / test.split("::")[0]).exists() for test in tests)


SMALL = """
LIMIT = 3

def larger(a, b):
    return a if a > b else b

def below(a):
    return a < LIMIT

def count(a):
    while a > 0:
        a = a - 1
    return a

def forgotten(a):
    return a + 1
"""
TESTS = """
import small

def test_larger():
    assert small.larger(1, 2) == 2 and small.larger(2, 1) == 2

def test_below():
    assert small.below(2) and not small.below(3)

def test_count():
    assert small.count(3) == 0

def test_that_always_fails():
    assert small.forgotten(1) == 3
"""


def test_noticed_is_told_from_unnoticed(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "small.py").write_text(SMALL)
    (tmp_path / "test_small.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = src\naddopts = --doctest-modules\n")
    program = f"""
import sys
from pathlib import Path
sys.path[:0] = [{str(ROOT)!r}, "src"]
from tools import trials
from tools.mutants import mutants_of
trials.GRACE, trials.SLOW_IMPORTS = 1.0, ()
trials.prepare()
found = mutants_of("src/small.py", Path("src/small.py").read_text())
verdicts, failures = trials.run(found, [["test_small.py", "src/small.py"]] * len(found), 2, lambda *_: None)
for mutant, verdict in zip(found, verdicts, strict=True):
    print(verdict, mutant.now, sep="|")
print(len(failures), failures[0].splitlines()[0], sep="|")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    # A test that fails anyway notices nothing, and is told.
    assert last == "1|test_small.py::test_that_always_fails"
    verdicts = {now: verdict for verdict, now in (line.split("|") for line in lines)}
    # Equal numbers: either is the larger one.
    assert verdicts.pop("return a if (a >= b) else b") == "survived"
    assert verdicts.pop("return (a - 1)") == verdicts.pop("return a + 2") == "unreached"
    assert verdicts.pop("pass") == "timeout"
    assert verdicts.pop("LIMIT = 4") == "killed"
    assert verdicts.pop("return (a <= LIMIT)") == "killed"
    assert {now for now, verdict in verdicts.items() if verdict not in ("killed", "timeout")} <= {"return None"}
