"""Cancelling: whatever is being done stops within a second, at any moment, and leaves no file and no thread.

Processor time, not the clock: a busy machine makes everything wait, and nothing slower. A run that is not cancelled must look up
at least once in a second of the processor's time of every thread that works; one that is cancelled must end in about a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.cli.test_journey import needs_data

import shoal
from shoal.algorithms import names, run
from shoal.errors import Cancelled
from shoal.measures.attacks import linking
from shoal.measures.bounds import loss_bound
from shoal.measures.loss import measure
from shoal.measures.minimality import minimality_attack
from shoal.measures.seen import MaskedTable
from shoal.measures.utility import classification, query_error
from shoal.microdata import Microdata
from shoal.models import Model
from shoal.policy import Policy
from shoal.progress import Moment, Progress
from shoal.refine import refined
from shoal.reproduce import PAPERS, reproduce

# Seconds of the processor. Several threads may be at work when the whole process is asked to stop.
SECOND, SOON = 1.0, 2.0
K, P = shoal.KAnonymity(5), shoal.PSensitive(3, "illness")
T, Q = shoal.TCloseness(0.3, "illness"), shoal.KPQR(2, 0.15, 0.1, "illness")

# Records, models and options with which a run takes about a second or more.
WORK: dict[str, tuple[int, tuple[Model, ...], dict[str, Any]]] = {
    "auto": (6_000, (K, T), {}),
    "datafly": (60_000, (K, P), {}),
    "enhanced_pk": (15_000, (K, P), {}),
    "greedy_pk": (15_000, (K, P), {}),
    "incognito": (20_000, (K, P), {}),
    "k_member": (15_000, (K, T), {}),
    "kpqr": (15_000, (K, Q), {}),
    "mdav": (15_000, (K,), {}),
    "mondrian": (60_000, (K, P), {}),
    "p_mdav": (15_000, (K, P), {}),
    "peel": (4_000, (K, T), {}),
    "spatial_distance": (4_000, (K,), {}),
    "three_layer": (1_500, (K, P), {}),
    "top_down": (15_000, (K, P), {}),
}


@cache
def table(n: int) -> Microdata:
    """Many different records, so that nothing is easy: numbers, a taxonomy, a category without one."""
    random = np.random.default_rng(7)
    frame = pl.DataFrame(
        {
            "age": random.integers(0, 90, n),
            "income": random.integers(0, 4_000, n),
            "zip": [f"{code:03d}" for code in random.integers(0, 1_000, n)],
            "job": random.integers(0, 30, n).astype(str),
            "illness": random.choice(list("abcdefg"), n, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.04, 0.01]),
        }
    )
    quasi = {name: {"role": "quasi"} for name in ("age", "income", "zip", "job")}
    quasi["zip"]["taxonomy"] = {"prefix": [2, 1, 0]}  # type: ignore[assignment]
    return Microdata.from_frame(frame, {**quasi, "illness": {"role": "sensitive"}})


@pytest.fixture
def gaps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Processor seconds that a thread lets pass between two looks."""
    found: list[float] = []
    last = threading.local()
    check = Progress.check

    def timed(self: Progress) -> None:
        now = time.thread_time()
        found.append(now - getattr(last, "time", now))
        last.time = now
        check(self)

    monkeypatch.setattr(Progress, "check", timed)
    return found


def from_here(gaps: list[float]) -> None:
    """What was before does not count."""
    Progress().check()
    gaps.clear()


def cancelled_at(moment: float, work: Callable[[Progress], object]) -> float:
    """Cancel some work when it has taken so many processor seconds, or half of it if it is done by then; seconds to its end."""
    while True:
        progress, ended, told = Progress(), threading.Event(), [0.0]
        begun = time.process_time()

        def give_up(progress: Progress = progress, ended: threading.Event = ended, told: list[float] = told) -> None:
            while time.process_time() - begun < moment and not ended.is_set():  # noqa: B023 - joined below
                time.sleep(0.002)
            told[0] = time.process_time()
            progress.cancel()

        other = threading.Thread(target=give_up)
        other.start()
        try:
            work(progress)
        except Cancelled:
            return time.process_time() - told[0]
        finally:
            ended.set()
            other.join()
        moment /= 2


def warmed_up(name: str, models: tuple[Model, ...], options: dict[str, Any]) -> None:
    """Compile what there is to compile: that is neither here nor there."""
    small = table(300)
    run(name, small, small.rules(Policy(models)), options=options)


def test_every_algorithm_is_here() -> None:
    assert sorted(WORK) == names()


@pytest.mark.parametrize("name", sorted(WORK))
def test_algorithms_stop_within_a_second(
    name: str, gaps: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    n, models, options = WORK[name]
    warmed_up(name, models, options)
    data = table(n)
    rules, threads = data.rules(Policy(models)), threading.active_count()

    def work(progress: Progress) -> None:
        run(name, data, rules, seed=3, progress=progress, options=options)

    from_here(gaps)
    begun = time.process_time()
    work(Progress())
    took = time.process_time() - begun
    assert max(gaps) < SECOND
    moment = float(np.random.default_rng([11, sorted(WORK).index(name)]).uniform(0.05, 0.9)) * took
    assert cancelled_at(moment, work) < SOON
    assert threading.active_count() == threads
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("models", [(K,), (K, T)], ids=["box search", "relocation"])
def test_refinements_stop_within_a_second(models: tuple[Model, ...], gaps: list[float], tmp_path: Path) -> None:
    small, data = table(300), table(6_000)
    for part in (small, data):
        rules = part.rules(Policy(models))
        start, threads = run("mondrian", part, rules), threading.active_count()
        if part is small:
            refined(small, rules, start, objective="ncp", effort=0.1)

    def work(progress: Progress) -> None:
        refined(data, rules, start, objective="ncp", effort=3600.0, progress=progress)

    for moment in np.random.default_rng([13, len(models)]).uniform(0.1, 2.0, 2):
        from_here(gaps)
        assert cancelled_at(float(moment), work) < SOON
        assert threading.active_count() == threads
        assert max(gaps) < SECOND


def at_look(number: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Cancel when the work looks up for the so many-th time; what comes back counts the looks."""
    looks, check = [0], Progress.check

    def counted(self: Progress) -> None:
        looks[0] += 1
        if looks[0] == number:
            self.cancel()
        check(self)

    monkeypatch.setattr(Progress, "check", counted)
    return looks


@cache
def released(n: int) -> shoal.Release:
    """What is published of a table."""
    return shoal.anonymize(table(n), K & P, algorithm="mondrian", refine=False)


def intruder(release: shoal.Release) -> tuple[MaskedTable, pl.DataFrame]:
    """What is published, and somebody who knows everybody in it."""
    return MaskedTable.of(release.masked, release.data.schema), release.data.frame.drop("illness")


# What is asked about a release.
EXAMINED: dict[str, Callable[[shoal.Release, Progress], object]] = {
    "reading": lambda made, told: Microdata.of_table(made.data.frame, made.data.schema, progress=told),
    "verify": lambda made, told: shoal.verify(made.masked, K & P, made.data.schema, progress=told),
    "audit": lambda made, told: shoal.audit(made.masked, made.data.schema, progress=told),
    "measure": lambda made, told: measure(made.data, made.partition, progress=told),
    "quick bound": lambda made, told: bound_of(made.data, "quick", told),
    "fast bound": lambda made, told: bound_of(made.data.take(np.arange(300)), "fast", told),
    "queries": lambda made, told: query_error(made.data, made.masked, queries=200, progress=told),
    "classification": lambda made, told: classification(made.data, made.masked, "illness", progress=told),
    "linking": lambda made, told: linking(*intruder(made), progress=told),
    "minimality": lambda made, told: minimality_attack(*intruder(made), 0.6, progress=told),
    "releases": lambda made, told: shoal.attack_releases(
        [made.masked, made.masked.head(made.masked.height - 100)],
        made.data.schema,
        5,
        made.data.frame.head(500),
        progress=told,
    ),
}


def bound_of(data: Microdata, effort: Any, progress: Progress) -> object:
    """A lower bound on what any release of a table loses."""
    return loss_bound(data.codes, data.space("ncp"), data.rules(K & P), effort=effort, progress=progress)


@pytest.mark.parametrize("what", EXAMINED)
def test_whatever_is_asked_about_a_release_stops_within_a_second(
    what: str, gaps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    EXAMINED[what](released(300), Progress())
    made, threads = released(6_000), threading.active_count()
    from_here(gaps)
    EXAMINED[what](made, Progress())
    assert max(gaps) < SECOND
    number = int(np.random.default_rng([17, list(EXAMINED).index(what)]).integers(1, len(gaps) + 1))
    looks = at_look(number, monkeypatch)
    with pytest.raises(Cancelled):
        EXAMINED[what](made, Progress())
    assert looks == [number]
    assert threading.active_count() == threads


@needs_data
@pytest.mark.parametrize("paper", PAPERS)
def test_experiments_of_the_papers_stop_within_a_second(
    paper: str, gaps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(progress: Progress) -> None:
        from_here(gaps)
        reproduce(paper, quick=True, progress=progress)

    threads = threading.active_count()
    cancelled_at(float(np.random.default_rng([19, int(paper)]).uniform(0.5, 3.0)), work)
    number = len(gaps)  # and what there was to compile so far is compiled
    at_look(number + 1, monkeypatch)  # one for the look from which on is counted
    with pytest.raises(Cancelled):
        work(Progress())
    assert max(gaps) < SECOND
    assert threading.active_count() == threads


STAGES = ("grouping records", "refining", "masking", "verifying", "measuring")


@pytest.mark.parametrize("stage", STAGES)
def test_the_whole_road_stops_in_every_stage(stage: str) -> None:
    seen: list[Moment] = []

    def listen(moment: Moment) -> None:
        seen.append(moment)
        if moment.stage == stage:
            progress.cancel()

    progress = Progress(listen, every=0)
    threads = threading.active_count()
    with pytest.raises(Cancelled, match=f"Stopped while {stage}, with "):
        shoal.anonymize(table(300), K, algorithm="k_member", refine=0.1, progress=progress)
    assert seen[-1].stage == stage
    assert threading.active_count() == threads


def test_progress_runs_from_0_to_1_once() -> None:
    seen: list[Moment] = []
    shoal.anonymize(table(300), K & T, algorithm="auto", refine=0.1, progress=Progress(seen.append, every=0))
    shares = [moment.share for moment in seen]
    assert shares == sorted(shares)
    assert shares.count(1.0) == 1
    assert shares[0] == 0.0
    told = [stage for stage in dict.fromkeys(moment.stage for moment in seen) if stage in STAGES]
    assert tuple(told) == STAGES


def test_a_plain_function_of_the_share_will_do() -> None:
    shares: list[float] = []
    shoal.anonymize(table(300), K, refine=False, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_whoever_raises_in_the_function_stops_the_work() -> None:
    threads = threading.active_count()

    def enough(share: float) -> None:
        if share > 0.1:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        shoal.anonymize(table(300), K, algorithm="mondrian", refine=0.1, progress=enough)
    assert threading.active_count() == threads
