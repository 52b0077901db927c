"""Progress: stages add up, the share never falls whatever is told, and cancelling reaches every thread."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

import pytest

from shoal.errors import Cancelled, ShoalError
from shoal.progress import Moment, Progress, side_by_side


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def listening() -> tuple[list[Moment], Progress]:
    """A progress that tells everything it hears."""
    moments: list[Moment] = []
    return moments, Progress(moments.append, every=0)


def test_stages_add_up_to_the_whole() -> None:
    moments, progress = listening()
    with progress.stage("reading", 0.2) as reading:
        reading(0.5)
    with progress.stage("grouping", 0.5) as grouping:
        with grouping.stage("growing", 0.5) as growing:
            growing(0.4)
        grouping(0.9)
    with progress.stage("verifying") as verifying:
        verifying(0.5)
    shares = [(moment.stage, round(moment.share, 6)) for moment in moments]
    assert shares == [
        ("reading", 0.0), ("reading", 0.1), ("reading", 0.2),
        ("grouping", 0.2), ("growing", 0.2), ("growing", 0.3), ("growing", 0.45),
        ("grouping", 0.65), ("grouping", 0.7),
        ("verifying", 0.7), ("verifying", 0.85), ("verifying", 1.0),
    ]  # fmt: skip


def test_the_share_never_falls_and_never_passes_one() -> None:
    moments, progress = listening()
    for share in (0.3, 0.1, -5.0, 0.3, math.nan, 0.2, 7.0, 0.5):
        progress(share)
    with progress.stage("more", 0.5) as part:
        part(1.0)
    shares = [moment.share for moment in moments]
    assert shares == sorted(shares)
    assert sorted(set(shares)) == [0.3, 1.0]


def test_a_stage_that_fails_is_not_counted_as_done() -> None:
    moments, progress = listening()

    def fail() -> None:
        with progress.stage("failing", 0.5) as part:
            part(0.5)
            raise ValueError

    with pytest.raises(ValueError):
        fail()
    assert moments[-1].share == 0.25


def test_a_plain_function_hears_the_shares() -> None:
    shares: list[float] = []
    progress = Progress.of(shares.append)
    for done in range(1, 1001):
        progress(done / 1000)
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    assert Progress.of(progress) is progress
    Progress.of(None)(0.5)


def test_listeners_are_told_at_most_so_often_and_always_the_end() -> None:
    clock, moments = Clock(), []
    progress = Progress(moments.append, every=1.0, clock=clock)
    for done in range(1, 101):
        clock.now += 0.1
        progress(done / 100)
    assert 9 <= len(moments) <= 12
    assert moments[-1].share == 1.0
    progress(1.0)
    assert [moment.share for moment in moments].count(1.0) == 1


def test_time_left_is_told_once_there_is_something_to_judge_by() -> None:
    clock, moments = Clock(), []
    progress = Progress(moments.append, every=0, clock=clock)
    clock.now += 0.5
    progress(0.1)
    clock.now += 9.5
    progress(0.25)
    assert [moment.left for moment in moments] == [None, pytest.approx(30.0)]
    assert moments[-1].elapsed == 10.0


def test_cancelling_says_what_was_stopped_and_that_nothing_was_written() -> None:
    progress = Progress()

    def work() -> None:
        with progress.stage("refining", 0.5) as part:
            part(0.5)
            assert progress.cancel()
            part(0.6)

    with pytest.raises(Cancelled) as caught:
        work()
    assert str(caught.value) == "Stopped while refining, with 25 % done. Nothing was written."
    assert isinstance(caught.value, ShoalError)
    assert (caught.value.exit_code, caught.value.stage, caught.value.share) == (130, "refining", 0.25)
    with pytest.raises(Cancelled), progress.stage("verifying"):
        raise AssertionError("a cancelled work begins no stage")
    with pytest.raises(Cancelled):
        progress.seal()


def test_what_is_sealed_is_finished() -> None:
    progress = Progress()
    progress.seal()
    assert not progress.cancel()
    progress(0.9)
    with progress.stage("writing") as part:
        part.check()


def test_a_listener_may_cancel() -> None:
    progress = Progress(lambda moment: progress.cancel(), every=0)
    progress(0.1)
    with pytest.raises(Cancelled):
        progress(0.2)


@pytest.mark.parametrize("threads", [1, 3])
def test_jobs_side_by_side_share_the_progress_by_weight(threads: int) -> None:
    moments, progress = listening()
    progress(0.2)
    found = side_by_side(
        lambda job, part: part(0.5) or job * job, range(9), progress, threads=threads, weights=range(9)
    )
    assert found == [job * job for job in range(9)]
    shares = [moment.share for moment in moments]
    assert shares == sorted(shares)
    assert shares[0] == 0.2
    assert shares[-1] == pytest.approx(1.0)
    assert side_by_side(lambda job, part: job, [], progress, threads=threads) == []


def until_stopped(job: int, part: Progress) -> None:
    """Work without end."""
    while True:
        part.check()
        time.sleep(0.001)


def failing(job: int, part: Progress) -> None:
    """The first job fails, the others go on and on."""
    if job == 0:
        raise ZeroDivisionError
    until_stopped(job, part)


@pytest.mark.parametrize("work", [failing, until_stopped])
def test_no_thread_is_left_behind(work: Callable[[int, Progress], None]) -> None:
    before = threading.active_count()
    progress = Progress()
    if work is until_stopped:
        timer = threading.Timer(0.05, progress.cancel)
        timer.start()
    with pytest.raises(ZeroDivisionError if work is failing else Cancelled):
        side_by_side(work, range(8), progress, threads=3)
    if work is until_stopped:
        timer.join()
    assert threading.active_count() == before


def test_many_threads_lose_nothing() -> None:
    moments, progress = listening()

    def work(job: int, part: Progress) -> None:
        for done in range(1, 201):
            part(done / 200)

    side_by_side(work, range(16), progress, threads=4)
    shares = [moment.share for moment in moments]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
