"""auto: which algorithms it tries for which policy, that the best one wins, and that it says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.tables import random_table

import shoal
from shoal.algorithms import auto as module
from shoal.algorithms import run
from shoal.algorithms.auto import suitable
from shoal.errors import Cancelled, UnsupportedError
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Policy, Rules
from shoal.progress import Progress


def rules_of(data: Microdata, *models: Any) -> Rules:
    return data.rules(Policy(models))


def loss(data: Microdata, partition: Partition, objective: str = "ncp") -> float:
    measures = measure(data, partition, 2)
    return measures.nil if objective == "il" else getattr(measures, objective)


# -- who is tried


def test_sizes_alone_are_tried_with_five_and_refined_with_one() -> None:
    rules = rules_of(random_table(1, 40), shoal.KAnonymity(3))
    assert suitable(rules, 40, refined=False) == ["k_member", "mondrian", "peel", "greedy_pk", "enhanced_pk"]
    assert suitable(rules, 40, refined=True) == ["mondrian"]
    assert suitable(rules, 40, refined=True, prefer="classes") == ["greedy_pk", "enhanced_pk", "k_member"]


def test_greedy_while_diversity_is_cheap_and_enhanced_when_it_decides() -> None:
    """Truta et al. 2007: where p decides how many classes there can be, Enhanced finds more of them."""
    data = random_table(1, 60, missing=0.0)
    cheap = rules_of(data, shoal.KAnonymity(2), shoal.PSensitive(2, "illness"))
    dear = rules_of(data, shoal.KAnonymity(2), shoal.PSensitive(5, "illness"))
    for rules in (cheap, dear):
        both = ["greedy_pk", "enhanced_pk"] if rules.max_classes * rules.k >= 2 * 60 else ["enhanced_pk", "greedy_pk"]
        assert suitable(rules, 60, refined=False) == ["k_member", "mondrian", "peel", *both]
    edge = rules_of(data, shoal.KAnonymity(2), shoal.PSensitive(2, "illness"))
    most = edge.max_classes * edge.k
    assert suitable(edge, most // 2, refined=False)[-1] == "enhanced_pk"
    assert suitable(edge, most // 2 + 1, refined=False)[-1] == "greedy_pk"


def test_policies_that_compare_with_the_table_get_who_can_take_them() -> None:
    data = random_table(2, 60, sensitive=2)
    close = rules_of(data, shoal.KAnonymity(2), shoal.TCloseness(0.4, "illness"))
    assert close.union_closed and not close.superset_closed
    assert suitable(close, 60, refined=False) == ["peel", "mondrian", "greedy_pk", "k_member"]
    assert suitable(close, 60, refined=True) == ["peel"]
    alpha = rules_of(data, shoal.KAnonymity(2), shoal.AlphaK(0.8, "illness"))
    assert alpha.union_closed and not alpha.superset_closed
    assert suitable(alpha, 60, refined=True) == ["peel", "mondrian"]


def test_neither_closed_nor_compiled_leaves_mondrian(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(2, 60)
    close = rules_of(data, shoal.KAnonymity(2), shoal.TCloseness(0.4, "illness"))
    monkeypatch.setitem(vars(close), "entries", None)
    assert suitable(close, 60, refined=False) == suitable(close, 60, refined=True) == ["mondrian"]
    close = rules_of(data, shoal.KAnonymity(2), shoal.TCloseness(0.4, "illness"))
    monkeypatch.setitem(vars(close), "union_closed", False)
    assert suitable(close, 60, refined=True) == ["mondrian"]
    assert suitable(close, 60, refined=False) == ["mondrian", "greedy_pk", "k_member"]
    monkeypatch.setattr(module, "names", lambda: ["datafly"])
    with pytest.raises(UnsupportedError, match="no algorithm is suitable"):
        suitable(close, 60, refined=False)


# -- who wins


class Stand:
    """Algorithms that make what they are told, and note what they were asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **made: Any) -> None:
        self.made, self.asked = made, []
        monkeypatch.setattr(module, "run", self.run)
        monkeypatch.setattr(module, "suitable", lambda *_: list(made))

    def run(self, name: str, data: Microdata, rules: Rules, **more: Any) -> Partition:
        self.asked.append((name, data.n, more["seed"], more["objective"]))
        made = self.made[name]
        if isinstance(made, Exception):
            raise made
        return Partition(np.resize(np.asarray(made, dtype=np.int32), data.n) if len(made) else np.zeros(data.n))


def table() -> Microdata:
    frame = pl.DataFrame({"a": [0, 10, 10, 20, 20, 30], "b": ["x", "x", "y", "y", "x", "x"]})
    return Microdata.from_frame(frame, {"a": {"role": "quasi"}, "b": {"role": "quasi", "weight": 2}})


def test_the_least_loss_wins_and_all_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table()
    rules = rules_of(data, shoal.KAnonymity(2))
    stand = Stand(monkeypatch, wide=[0, 1, 1, 0, 0, 1], near=[0, 0, 1, 1, 2, 2], rest=UnsupportedError("cannot"))
    found = module.auto(data, rules, objective="ncp", seed=5, progress=Progress())
    assert found.labels.tolist() == [0, 0, 1, 1, 2, 2]
    note = found.notes["auto"]
    assert (note["algorithm"], note["why"], note["refused"]) == ("near", "least ncp on all records", {"rest": "cannot"})
    # A third of the range of `a` in each class, and `b` is the same inside each: a sixth with weights of 1 and 2.
    assert note["losses"]["near"] == pytest.approx((1 / 3) / 3)
    assert note["losses"]["wide"] > note["losses"]["near"]
    assert [asked[0] for asked in stand.asked] == ["wide", "near", "rest"]
    assert stand.asked[0][1:] == (6, 5, "ncp")


def test_suppressed_records_lose_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    Stand(monkeypatch, gone=[0, 0, -1, -1, -1, -1], kept=[0, 0, 0, 0, 0, 0])
    note = module.auto(table(), rules_of(table(), shoal.KAnonymity(2)), progress=Progress()).notes["auto"]
    assert note["losses"]["gone"] == pytest.approx((2 * (1 / 3) + 4 * 3) / (6 * 3))
    assert note["losses"]["kept"] == 1
    assert note["algorithm"] == "gone"


def test_equal_losses_go_to_the_first_and_most_classes_win_when_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table()
    rules = rules_of(data, shoal.KAnonymity(2))
    near = [0, 0, 1, 1, 2, 2]
    Stand(monkeypatch, one=near, other=near)
    assert module.auto(data, rules, progress=Progress()).notes["auto"]["algorithm"] == "one"
    Stand(monkeypatch, few=[0, 0, 0, 1, 1, 1], many=[0, 1, 2, 2, 1, 0], better=near)
    found = module.auto(data, rules, progress=Progress(), prefer="classes", refined=True)
    assert found.notes["auto"]["algorithm"] == "better"
    assert found.notes["auto"]["why"] == "most classes, then least ncp, on all records"
    Stand(monkeypatch, few=[0, 0, 1, 1, 1, 1], many=[0, 1, 2, 2, 1, 0])
    assert module.auto(data, rules, progress=Progress(), prefer="classes").notes["auto"]["algorithm"] == "many"


def test_the_only_candidate_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(3, 30)
    rules = rules_of(data, shoal.KAnonymity(2), shoal.TCloseness(0.5, "illness"))
    stand = Stand(monkeypatch, peel=[0, 0, 1])
    for refined, why in [(True, "a refinement follows, so the fastest"), (False, "the only suitable one")]:
        note = module.auto(data, rules, objective="il", seed=9, progress=Progress(), refined=refined).notes["auto"]
        assert note["algorithm"] == "peel" and note["why"].startswith(why)
    assert stand.asked == [("peel", 30, 9, "il")] * 2


def test_large_tables_are_judged_by_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(4, 50)
    rules = rules_of(data, shoal.KAnonymity(2))
    monkeypatch.setattr(module, "WHOLE", 49)
    monkeypatch.setattr(module, "SAMPLE", 20)
    monkeypatch.setattr(module, "CLOSE", 0.0)
    stand = Stand(monkeypatch, one=[0], two=np.arange(10) % 5)
    found = module.auto(data, rules, objective="ncp", seed=1, progress=Progress())
    assert [(name, n) for name, n, *_ in stand.asked] == [("one", 20), ("two", 20), ("two", 50)]
    assert found.n == 50 and found.notes["auto"]["why"] == "least ncp on a sample of 20 records"
    # Whoever is near the least loss on the sample runs on the whole table, up to a size.
    monkeypatch.setattr(module, "CLOSE", 1e9)
    stand.asked.clear()
    found = module.auto(data, rules, objective="ncp", seed=1, progress=Progress())
    assert [(name, n) for name, n, *_ in stand.asked] == [("one", 20), ("two", 20), ("two", 50), ("one", 50)]
    assert found.notes["auto"]["why"] == "least ncp on a sample of 20 records, and on all of them among 2"
    assert found.notes["auto"]["losses"]["one"] == pytest.approx(loss(data, Partition(np.zeros(50, dtype=np.int32))))
    monkeypatch.setattr(module, "FINAL", 49)
    stand.asked.clear()
    assert module.auto(data, rules, seed=1, progress=Progress()).notes["auto"]["algorithm"] == "two"
    assert [n for _, n, *_ in stand.asked] == [20, 20, 50]
    monkeypatch.setattr(module, "WHOLE", 50)
    stand.asked.clear()
    assert module.auto(data, rules, progress=Progress()).notes["auto"]["why"] == "least ncp on all records"
    assert [n for _, n, *_ in stand.asked] == [50, 50]


def test_the_sample_is_drawn_by_the_seed_without_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(4, 50)
    monkeypatch.setattr(module, "WHOLE", 1)
    monkeypatch.setattr(module, "SAMPLE", 30)
    Stand(monkeypatch, one=[0], two=[0])
    taken: list[list[int]] = []
    real = Microdata.take
    monkeypatch.setattr(Microdata, "take", lambda self, rows: taken.append(rows.tolist()) or real(self, rows))
    for seed in (0, 0, 1):
        module.auto(data, rules_of(data, shoal.KAnonymity(2)), seed=seed, progress=Progress())
    assert taken[0] == taken[1] != taken[2]
    assert all(rows == sorted(set(rows)) and len(rows) == 30 for rows in taken)


def test_when_nothing_works_mondrian_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table()
    stand = Stand(monkeypatch, k_member=UnsupportedError("no"), mondrian=UnsupportedError("not even I"))
    with pytest.raises(UnsupportedError, match="not even I"):
        module.auto(data, rules_of(data, shoal.KAnonymity(2)), progress=Progress())
    assert [name for name, *_ in stand.asked] == ["k_member", "mondrian", "mondrian"]
    Stand(monkeypatch, one=Cancelled("trying"), two=[0])
    with pytest.raises(Cancelled):
        module.auto(data, rules_of(data, shoal.KAnonymity(2)), progress=Progress())


# -- with the algorithms themselves


def test_a_search_that_needs_no_start_gets_one_class() -> None:
    data = random_table(5, 40)
    rules = rules_of(data, shoal.KAnonymity(3), shoal.PSensitive(2, "illness"))
    found = run("auto", data, rules, options={"refined": True})
    assert found.classes == 1 and found.notes["auto"]["algorithm"] == "box_search"
    # Seeking classes, it starts from where there are many.
    assert run("auto", data, rules, options={"refined": True, "prefer": "classes"}).classes > 1
    close = rules_of(data, shoal.KAnonymity(3), shoal.TCloseness(0.6, "illness"))
    assert run("auto", data, close, options={"refined": True}).notes["auto"]["algorithm"] == "peel"


def test_beyond_fifty_thousand_records_a_start_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(5, 40)
    rules = rules_of(data, shoal.KAnonymity(3))
    Stand(monkeypatch, mondrian=[0, 1])
    monkeypatch.setattr(module, "FROM_NOTHING", 40)
    assert module.auto(data, rules, progress=Progress(), refined=True).classes == 1
    monkeypatch.setattr(module, "FROM_NOTHING", 39)
    assert module.auto(data, rules, progress=Progress(), refined=True).notes["auto"]["algorithm"] == "mondrian"
    # A policy without a compiled form cannot be searched, so it needs a start.
    monkeypatch.setattr(module, "FROM_NOTHING", 40)
    monkeypatch.setattr(rules, "flat", lambda: None)
    assert module.auto(data, rules, progress=Progress(), refined=True).notes["auto"]["algorithm"] == "mondrian"


@pytest.mark.parametrize("objective", ["ncp", "il", "granularity"])
def test_no_candidate_is_better_than_what_it_returns(objective: str) -> None:
    data = random_table(6, 60, weights=False)
    rules = rules_of(data, shoal.KAnonymity(3), shoal.PSensitive(2, "illness"))
    found = run("auto", data, rules, objective=objective)  # type: ignore[arg-type]
    note = found.notes["auto"]
    for name, told in note["losses"].items():
        other = run(name, data, rules, objective=objective)  # type: ignore[arg-type]
        assert told == pytest.approx(loss(data, other, objective))
        assert told >= note["losses"][note["algorithm"]]
    assert loss(data, found, objective) == pytest.approx(note["losses"][note["algorithm"]])
