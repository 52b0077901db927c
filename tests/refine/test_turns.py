"""Relocation and box search in turns: small tables get several, none ends worse, and what a large one takes is what it was."""

from __future__ import annotations

import pytest
from tests.tables import random_table

import shoal
from shoal.algorithms import run
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import Progress
from shoal.refine import refined, turns
from shoal.refine.box_search import box_search
from shoal.refine.relocation import relocate

pytestmark = pytest.mark.filterwarnings("ignore:.*do not vary")


def small(seed: int, n: int = 150) -> tuple[Microdata, Rules, Partition]:
    """A table under t-closeness, cut."""
    data = random_table(seed, n)
    rules = data.rules(shoal.KAnonymity(3) & shoal.TCloseness(0.4, "illness", distance="equal"))
    return data, rules, run("mondrian", data, rules)


def taken(data: Microdata, rules: Rules, start: Partition, effort: float, *, seed: int = 0) -> Partition:
    """What comes of the turns."""
    return turns.in_turns(
        data.codes, data.space("ncp"), rules, start, effort=effort, seed=seed, progress=Progress.of(None)
    )


@pytest.mark.parametrize("seed", range(4))
def test_no_worse_than_one_turn_of_each(seed: int) -> None:
    data, rules, start = small(seed)
    space = data.space("ncp")
    once = box_search(
        data.codes, space, rules, relocate(data.codes, space, rules, start, effort=1.0, seed=2), effort=1.0, seed=2
    )
    found = taken(data, rules, start, 1.0, seed=2)
    losses = [turns._loss(data.codes, space, partition) for partition in (start, once, found)]
    assert losses[2] <= losses[1] + 1e-9 <= losses[0] + 2e-9
    assert not rules.deficits(found.labels, found.classes).any()
    assert (taken(data, rules, start, 1.0, seed=2).labels == found.labels).all()


def test_turns_end_when_nothing_is_gained_or_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    data, rules, start = small(5)
    asked: list[int] = []

    def moved(*args: object, budget: int, **more: object) -> tuple[Partition, int]:
        asked.append(budget)
        return found, asked[0] // 4

    monkeypatch.setattr(turns, "relocated", moved)
    monkeypatch.setattr(turns, "box_search", lambda *args, **more: args[3])
    monkeypatch.setattr(turns, "nominal", lambda *args: 0.0)
    # Nothing gained: one turn.
    found = start
    taken(data, rules, start, 1.0)
    assert len(asked) == 1
    # Always something gained: as long as another turn like the last one fits into what is left.
    asked.clear()
    losses = iter(1.0 / 2**turn for turn in range(99))
    monkeypatch.setattr(turns, "_loss", lambda *args: next(losses))
    taken(data, rules, start, 1.0)
    assert [round(4 * budget / asked[0]) for budget in asked] == [4, 3, 2, 1]
    # A relocation that takes all of its time, as on large tables, leaves nothing for another turn.
    asked.clear()
    monkeypatch.setattr(turns, "relocated", lambda *args, budget, **more: asked.append(budget) or (found, budget))
    taken(data, rules, start, 1.0)
    assert len(asked) == 1


def test_the_share_told_never_falls_and_ends_at_the_whole() -> None:
    data, rules, start = small(1)
    shares: list[float] = []
    found = refined(data, rules, start, objective="ncp", effort=2.0, seed=1, progress=Progress.of(shares.append))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert found.notes["refined"] == {"by": ["relocate", "box_search"], "effort": 2.0}
