"""Mutants before the tests: each in a process of its own, made by forking one that has already imported everything slow.

A mutant inside a function is tried where all tests are already collected: the function gets the mutant's code, and only the tests
that reach its lines run, the quickest first, until one fails. What does its work while modules are imported and tests collected
is tried in a fresh interpreter, whose import of that one module is the mutant.

Processor time is limited, not time: another job on the machine does not kill a mutant.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import pickle
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from tools.mutants import Mutant

KILLED, TIMEOUT, SURVIVED, UNREACHED, MISFIT = "killed", "timeout", "survived", "unreached", "misfit"
# A mutant may take this much longer than the tests did without it, in seconds and as a multiple; then it has been noticed.
GRACE, PATIENCE = 10.0, 4.0
# A mutant meets the quickest tests that reach it, as many as take this many seconds without it (one in any case): what is noticed
# by a slow test alone counts as a survivor, and a survivor does not hold up the others.
ENOUGH = 15.0
# A process that sleeps uses no processor time; nobody waits for it longer than this many times its limit.
ASLEEP = 10.0
MEMORY = 8 << 30
# Hypothesis is among what has been imported before pytest could rewrite its assertions.
PYTEST = (
    "-q",
    "-s",
    "-x",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)
SLOW_IMPORTS = (
    "numpy", "polars", "numba", "scipy.optimize", "scipy.sparse", "scipy.stats", "scipy.spatial", "sklearn.cluster", "pydantic",
    "hypothesis", "pandas", "pyarrow", "typer.testing", "rich.progress", "narwhals", "sqlalchemy", "tomlkit",
    "fastexcel", "xlsxwriter",
)  # fmt: skip


@dataclass
class Reach:
    """What the tests do without a mutant: how long each takes, and which lines of the mutated files it reaches."""

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    before: set[tuple[str, int]] = field(default_factory=set)  # reached before any test begins
    failures: dict[str, str] = field(default_factory=dict)  # what the failing ones say


def prepare() -> None:
    """One thread a process, tests that draw the same examples every time, and slow libraries imported once for all."""
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "POLARS_MAX_THREADS",
        "NUMBA_NUM_THREADS",
        "MKL_NUM_THREADS",
    ):
        os.environ[name] = "1"
    for name in SLOW_IMPORTS:
        importlib.import_module(name)
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "mutation", database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    settings.load_profile("mutation")


def run(
    mutants: Sequence[Mutant],
    tests: Sequence[Sequence[str]],
    jobs: int,
    tell: Callable[[Mutant, str], None],
    aside: Sequence[str] = (),
) -> tuple[list[str], list[str]]:
    """A verdict for each mutant, told as soon as it is there; `tests` names the tests of each: files, folders or single ones.

    Tests whose names begin like one of `aside` are not run. Also the tests that fail without any mutant, with what they say:
    they notice nothing, so they are left aside.
    """
    said = tempfile.TemporaryFile()  # noqa: SIM115 (what pytest says, in case that it does not get far)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _quiet(said.fileno())
        with os.fdopen(writing, "wb") as pipe:
            _Collected(mutants, tests, jobs, pipe).run(aside)
        os._exit(0)
    os.close(writing)
    verdicts = [UNREACHED] * len(mutants)
    reach: Reach | None = None
    with os.fdopen(reading, "rb") as pipe:
        for index, what in _messages(pipe):
            if index < 0:
                reach = what
                print(_took(what), file=sys.stderr, flush=True)
            else:
                verdicts[index] = what
                if what in (KILLED, TIMEOUT) or (what == SURVIVED and reach and not _early(mutants[index], reach)):
                    tell(mutants[index], what)
    os.waitpid(child, 0)
    if reach is None:
        said.seek(0)
        raise SystemExit("The tests could not be collected:\n" + said.read().decode())
    unsure = [i for i, verdict in enumerate(verdicts) if verdict not in (KILLED, TIMEOUT)]
    again = [i for i in unsure if verdicts[i] == MISFIT or _early(mutants[i], reach)]
    trials = {i: _fresh(mutants[i], tests[i], reach, [*aside, *reach.failures]) for i in again}
    for index, verdict in _all(trials, jobs):
        verdicts[index] = verdict
        tell(mutants[index], verdict)
    return verdicts, [f"{test}\n{text}" for test, text in reach.failures.items()]


def _took(reach: Reach) -> str:
    """How long the tests take without a mutant, while it is noted which lines they reach: slow ones are seldom worth it."""
    slow = sorted(reach.seconds, key=lambda test: -reach.seconds[test])[:8]
    told = "".join(f"\n{reach.seconds[test]:7.1f} s {test}" for test in slow)
    return f"{len(reach.seconds)} tests, {sum(reach.seconds.values()):.0f} s; the slowest:{told}"


def _early(mutant: Mutant, reach: Reach) -> bool:
    """Whether the mutant may have done its work before the tests were collected."""
    return not mutant.called or any((mutant.file, line) in reach.before for line in mutant.lines)


def _messages(pipe: Any) -> Iterator[tuple[int, Any]]:
    while True:
        try:
            yield pickle.load(pipe)
        except EOFError:
            return


# -- one process a trial


@dataclass(frozen=True)
class Trial:
    """What a child does (True: no test noticed anything) and for how many seconds of processor time it may."""

    work: Callable[[], bool]
    limit: float


def _all(trials: Mapping[int, Trial], jobs: int) -> Iterator[tuple[int, str]]:
    """The verdict of each trial as it comes, `jobs` of them at a time."""
    waiting = list(trials)[::-1]
    running: dict[int, tuple[int, float]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            index = waiting.pop()
            running[_fork(trials[index])] = index, time.monotonic() + ASLEEP * trials[index].limit
        for child, (index, end) in list(running.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                del running[child]
                _kill_group(child)
                yield index, _verdict(status)
            elif time.monotonic() > end:
                _kill_group(child)
        time.sleep(0.005)


class _Misfit(Exception):  # noqa: N818
    """A function cannot take the mutant's code; a fresh interpreter can."""


def _fork(trial: Trial) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setpgid(0, 0)
        limit = int(trial.limit) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _quiet()
        code = 0 if trial.work() else 1
    except _Misfit:
        code = 3
    finally:
        os._exit(code)


def _verdict(status: int) -> str:
    if os.WIFSIGNALED(status):
        return TIMEOUT if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else KILLED
    return {0: SURVIVED, 3: MISFIT}.get(os.WEXITSTATUS(status), KILLED)


def _kill_group(child: int) -> None:
    """A test may have started processes of its own."""
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _quiet(into: int | None = None) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere if into is None or stream == 0 else into, stream)


def _limit(reach: Reach, tests: Iterable[str]) -> float:
    return GRACE + PATIENCE * sum(reach.seconds.get(test, 0.0) for test in tests)


def quickest(items: list[pytest.Item], seconds: Mapping[str, float]) -> list[pytest.Item]:
    """The quickest first, and no more than take ENOUGH."""
    found: list[pytest.Item] = []
    spent = 0.0
    for item in sorted(items, key=lambda item: seconds.get(item.nodeid, 0.0)):
        spent += seconds.get(item.nodeid, 0.0)
        if found and spent > ENOUGH:
            break
        found.append(item)
    return found


# -- where all tests are collected


class _Collected:
    """A pytest session whose loop tries mutants instead of running its tests."""

    def __init__(self, mutants: Sequence[Mutant], tests: Sequence[Sequence[str]], jobs: int, pipe: Any) -> None:
        self.mutants, self.tests, self.jobs, self.pipe = mutants, tests, jobs, pipe
        self.files = sorted({mutant.file for mutant in mutants})
        self.failures: dict[str, str] = {}
        self.tracer = _Tracer({str(Path(file).resolve()): file for file in self.files})

    def run(self, aside: Sequence[str]) -> None:
        every = dict.fromkeys(test for tests in self.tests for test in tests)
        self.tracer.start()
        for file in self.files:
            importlib.import_module(module_of(file))
        pytest.main([*PYTEST, *(f"--deselect={test}" for test in aside), *every], plugins=[self])

    def say(self, index: int, what: Any) -> None:
        pickle.dump((index, what), self.pipe)
        self.pipe.flush()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failures[report.nodeid] = report.longreprtext

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        before = self.tracer.stop()
        if session.testsfailed:
            return True
        reach = self.reach(session.items)
        reach.before = before
        self.say(-1, reach)
        functions = _functions({str(Path(file).resolve()) for file in self.files})
        sound = [item for item in session.items if item.nodeid not in reach.failures]
        trials = {i: self.trial(i, sound, reach, functions) for i in range(len(self.mutants))}
        for index, verdict in _all({i: trial for i, trial in trials.items() if trial is not None}, self.jobs):
            self.say(index, verdict)
        return True

    def reach(self, items: list[pytest.Item]) -> Reach:
        """All tests once, in a child: a thread that a library starts here would not be there in the children to come."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            found = Reach()
            for item in items:
                self.tracer.start()
                took = self.timed(item)
                found.lines[item.nodeid] = self.tracer.stop()
                # Some of it may have gone into compiling, which is done once for all.
                found.seconds[item.nodeid] = took if took < ENOUGH / 3 else min(took, self.timed(item))
            found.failures = self.failures
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(found, pipe)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            result: Reach = pickle.load(pipe)
        os.waitpid(child, 0)
        return result

    def timed(self, item: pytest.Item) -> float:
        """The processor time that a test takes."""
        begun = time.process_time()
        self.passes(item)
        return time.process_time() - begun

    def passes(self, item: pytest.Item) -> bool:
        before = len(self.failures)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return len(self.failures) == before

    def trial(
        self,
        index: int,
        items: list[pytest.Item],
        reach: Reach,
        functions: dict[tuple[str, str, int], list[FunctionType]],
    ) -> Trial | None:
        """The tests that reach the mutant's lines, with its code in the place of the function's."""
        mutant = self.mutants[index]
        if not mutant.called:
            return None
        near = tuple(self.tests[index])
        spots = {(mutant.file, line) for line in mutant.lines}
        chosen = [item for item in items if item.nodeid.startswith(near) and spots & reach.lines[item.nodeid]]
        if not chosen:
            return None
        chosen = quickest(chosen, reach.seconds)

        def work() -> bool:
            path = Path(mutant.file).resolve()
            source = path.read_bytes()
            old = _code(compile(source, str(path), "exec"), mutant)
            new = _code(compile(mutant.applied(source), str(path), "exec"), mutant)
            targets = functions.get((str(path), old.co_qualname, old.co_firstlineno), []) if old and new else []
            if not targets or not new or any(f.__code__.co_freevars != new.co_freevars for f in targets):
                raise _Misfit
            for function in targets:
                function.__code__ = new
            return all(self.passes(item) for item in chosen)

        return Trial(work, _limit(reach, [item.nodeid for item in chosen]))


class _Tracer:
    """Notes the lines of some files that run."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        self.found: set[tuple[str, int]] = set()

    def start(self) -> None:
        self.found = set()
        threading.settrace(self.enter)
        sys.settrace(self.enter)

    def stop(self) -> set[tuple[str, int]]:
        sys.settrace(None)
        threading.settrace(None)
        return self.found

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        file = self.files.get(frame.f_code.co_filename)
        if file is None:
            return None
        found = self.found

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                found.add((file, frame.f_lineno))
            return step

        return step


def _functions(paths: set[str]) -> dict[tuple[str, str, int], list[FunctionType]]:
    """Every living function of these files by its file, name and line, however it is wrapped."""
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename in paths:
            code = thing.__code__
            found.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(thing)
    return found


def _code(module: CodeType, mutant: Mutant) -> CodeType | None:
    """The code of the outermost function that the mutant is in."""
    for part in module.co_consts:
        if isinstance(part, CodeType):
            if part.co_qualname == mutant.where and part.co_flags & 0x2:  # a function's, not a class's
                if part.co_firstlineno <= mutant.line <= max((line for *_, line in part.co_lines() if line), default=0):
                    return part
            elif mutant.where.startswith(part.co_qualname + "."):
                return _code(part, mutant)
    return None


# -- in a fresh interpreter


def _fresh(mutant: Mutant, tests: Sequence[str], reach: Reach, aside: Sequence[str]) -> Trial:
    class Guide:
        """The mutant before pytest's own import (which takes files it is told of for tests), and the quickest tests first."""

        @pytest.hookimpl(tryfirst=True)
        def pytest_collection(self) -> None:
            sys.meta_path.insert(0, _Import(mutant))

        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            items[:] = quickest(items, reach.seconds)

    def work() -> bool:
        left = [f"--deselect={test}" for test in aside]
        return pytest.main([*PYTEST, *left, *tests], plugins=[Guide()]) == pytest.ExitCode.OK

    return Trial(work, GRACE + PATIENCE * ENOUGH)


class _Import:
    """An import that gives the mutant's code for one module."""

    def __init__(self, mutant: Mutant) -> None:
        self.module, self.path = module_of(mutant.file), str(Path(mutant.file).resolve())
        self.code = compile(mutant.applied(Path(self.path).read_bytes()), self.path, "exec")

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self.module:
            return None
        code = self.code

        class Loader(SourceFileLoader):
            def get_code(self, fullname: str) -> CodeType:
                return code

        return importlib.util.spec_from_file_location(name, self.path, loader=Loader(name, self.path))


def module_of(file: str) -> str:
    """`src/shoal/models/base.py` → `shoal.models.base`."""
    parts = Path(file).with_suffix("").parts
    parts = parts[1:] if parts[0] == "src" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
