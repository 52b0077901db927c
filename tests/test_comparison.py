"""compare: every result as it comes, the best first, refusals with their sentence, and a limit that holds."""

from __future__ import annotations

import polars as pl
import pytest
from tests.tables import random_table

import shoal
from shoal.algorithms import names
from shoal.comparison import attempt, ranked, within
from shoal.errors import Cancelled
from shoal.progress import Progress


def test_results_come_one_by_one_and_are_ranked_by_the_objective() -> None:
    data, seen = random_table(4, 90), []
    found = shoal.compare(data, {"k": 3}, limit=600, algorithms=["datafly", "mondrian", "k_member"], each=seen.append)
    assert [one.algorithm for one in seen] == ["datafly", "mondrian", "k_member"]
    losses = [one.losses["ncp"] for one in found.results]
    assert losses == sorted(losses)
    assert found.best is found.results[0]
    assert ranked(seen, "ncp") == list(found.results)


def test_figures_are_those_of_single_runs() -> None:
    data = random_table(4, 90)
    found = shoal.compare(data, {"k": 3}, limit=600, algorithms=["k_member", "mondrian"], seed=5)
    for one in found.results:
        single = shoal.anonymize(data, {"k": 3}, algorithm=one.algorithm, refine=False, seed=5)
        assert one.losses["ncp"] == single.measures.ncp
        assert one.losses["classes"] == single.measures.classes
        assert one.risk == 1 / single.evidence.smallest


def test_a_refusal_is_a_sentence_and_comes_last() -> None:
    data = random_table(4, 90)
    found = shoal.compare(
        data, shoal.KAnonymity(3) & shoal.TCloseness(0.4, "illness"), limit=600, algorithms=["k_member", "mondrian"]
    )
    refused = [one for one in found.results if one.refused is not None]
    assert all(one.refused.endswith(".") and one.losses == {} for one in refused)
    assert [one.refused is None for one in found.results] == sorted(
        (one.refused is None for one in found.results), reverse=True
    )
    assert found.to_dict()["results"][0]["refused"] is None
    assert isinstance(found.frame, pl.DataFrame)


def test_all_algorithms_by_default() -> None:
    found = shoal.compare(random_table(4, 40), {"k": 3}, limit=600)
    assert sorted(one.algorithm for one in found.results) == names()


def test_who_takes_too_long_is_stopped_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import shoal.comparison as module

    def forever(*_: object, progress: Progress, **__: object) -> None:
        while True:
            progress.check()

    monkeypatch.setattr(module, "anonymize", forever)
    one, release = attempt(random_table(1, 20), shoal.Policy((shoal.KAnonymity(2),)), "mondrian", Progress(), limit=0.2)
    assert release is None
    assert one.refused == "It was stopped after 0 s; give it more time, or a sample."
    whole = Progress()
    whole.cancel()
    with pytest.raises(Cancelled):
        attempt(random_table(1, 20), shoal.Policy((shoal.KAnonymity(2),)), "mondrian", whole, limit=0.2)


def test_a_limit_leaves_no_timer_behind() -> None:
    import threading

    before = threading.active_count()
    with within(60, Progress()) as own:
        own(0.5)
        assert threading.active_count() == before + 1
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(5)
    assert threading.active_count() == before


def test_a_misspelt_algorithm_and_an_impossible_policy_are_told_before_the_work() -> None:
    with pytest.raises(shoal.ConfigError, match="did you mean 'mondrian'"):
        shoal.compare(random_table(1, 20), {"k": 2}, algorithms=["k_member", "mondrain"])
    with pytest.raises(shoal.InfeasibleError):
        shoal.compare(random_table(1, 20), {"k": 21}, algorithms=["mondrian"])
