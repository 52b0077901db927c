"""Refinements work in slices: the same partition whatever the slices, and whoever cancels does not wait for the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from tests.tables import random_table

import shoal
from shoal.algorithms import run
from shoal.errors import Cancelled
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.progress import Progress
from shoal.refine import box_search, il_optimization, near, refined, relocation

Refinement = Callable[[Progress], tuple[Partition, Partition]]


def refining(policy: Policy, effort: float, n: int = 260) -> Refinement:
    data = random_table(6, n=n)
    rules = data.rules(policy)
    start = run("mondrian", data, rules)
    return lambda told: (start, refined(data, rules, start, objective="ncp", effort=effort, progress=told))


def breaking(told: Progress) -> tuple[Partition, Partition]:
    data = random_table(7, n=300)
    rules = data.rules(Policy((shoal.KAnonymity(3),)))
    start = Partition(np.random.default_rng(1).permutation(np.arange(300) % 40))
    return start, il_optimization.il_optimization(
        data.codes, data.space("il"), rules, start, iterate=True, progress=told
    )


REFINEMENTS: dict[str, Refinement] = {
    "box search": refining(shoal.KAnonymity(3) & shoal.PSensitive(2), 0.02),
    "box search in regions": refining(Policy((shoal.KAnonymity(3),)), 0.02),
    "relocation and box search": refining(shoal.KAnonymity(2) & shoal.TCloseness(0.5), 0.02, 120),
    "breaking and splitting": breaking,
}


@pytest.fixture(params=REFINEMENTS)
def refinement(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Refinement:
    if request.param == "box search in regions":
        monkeypatch.setattr(box_search, "REGION_RECORDS", 60)
        monkeypatch.setattr(box_search, "REGION_CLASSES", 5)
        monkeypatch.setattr("os.cpu_count", lambda: 3)
    return REFINEMENTS[request.param]


@contextmanager
def slices_of(steps: int) -> Iterator[None]:
    """So many steps at a time, of which some take more than one."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (box_search, near, il_optimization):
            patch.setattr(module, "SLICE", steps)
        patch.setattr(relocation, "PAUSE", steps)
        yield


@contextmanager
def looks(cancel_at: int | None = None) -> Iterator[list[int]]:
    """Counts how often the work asks whether it is still wanted, from whatever thread; at a certain look it is not."""
    asked, lock, check = [0], threading.Lock(), Progress.check

    def counted(self: Progress) -> None:
        with lock:
            asked[0] += 1
            if asked[0] == cancel_at:
                self.cancel()
        check(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Progress, "check", counted)
        yield asked


def test_slices_change_nothing(refinement: Refinement) -> None:
    start, whole = refinement(Progress())
    assert not np.array_equal(whole.labels, start.labels)
    for steps in (100, 7777):
        with slices_of(steps), looks() as asked:
            assert np.array_equal(refinement(Progress())[1].labels, whole.labels)
        assert asked[0] > 50


def test_cancelling_stops_every_refinement_anywhere(refinement: Refinement) -> None:
    threads = threading.active_count()
    with slices_of(3000):
        with looks() as asked:
            start, _ = refinement(Progress())
        before = start.labels.copy()
        for moment in np.random.default_rng(len(before)).integers(1, asked[0], size=4).tolist():
            with looks(cancel_at=moment) as until, pytest.raises(Cancelled):
                refinement(Progress())
            # Every thread may look once more before it hears of it.
            assert until[0] <= moment + 8
            assert threading.active_count() == threads
            assert np.array_equal(start.labels, before)


def test_a_search_tells_its_stages_and_a_share_that_never_falls(refinement: Refinement) -> None:
    told: list[tuple[str, float]] = []
    refinement(Progress(lambda moment: told.append((moment.stage, moment.share)), every=0))
    shares = [share for _, share in told]
    assert shares == sorted(shares) and shares[-1] == pytest.approx(1.0)
    stages = {"finding near records", "searching for better classes", "moving single records"}
    assert {name for name, _ in told} & {*stages, "breaking classes", "splitting and breaking classes"}
