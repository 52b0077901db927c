"""Rows as they were shown and as they are: what is encoded of them says the same as if all were."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.evolve.store.registry import TREE, people

import shoal
from shoal.configuration import read_schema
from shoal.evolve.releases import batching
from shoal.evolve.releases.guards import Shown, Table, plan_release
from shoal.evolve.releases.versions import Versions
from shoal.microdata import Microdata
from shoal.policy import Policy

SCHEMA = read_schema(
    {
        "age": {"role": "quasi", "kind": "number"},
        "zip": {"role": "quasi", "kind": "category", "taxonomy": {"prefix": [3, 0]}},
        "job": {"role": "quasi"},
        "illness": {"role": "sensitive", "taxonomy": {"rows": TREE}},
        "note": {"role": "other", "accept": "made up"},
    }
)
NAMES = list(SCHEMA.attributes)


def test_what_is_encoded_says_what_the_whole_says() -> None:
    """The same widths, trees, values and missing values, and so the same loss of every class and the same judgement of it."""
    random = np.random.default_rng(3)
    for seed in range(20):
        now = people(100 * seed, 60).select(NAMES)
        old, absent = now[random.permutation(60)[:40]], now[random.permutation(60)[:3]]
        some = random.choice(100, 12, replace=False)
        whole, part = (Versions.of(old, now, [absent], SCHEMA, rows) for rows in (None, some))
        assert part.data.n < whole.data.n
        rows = np.concatenate([some, [100, 102]])
        policy = Policy((shoal.KAnonymity(3), shoal.PSensitive(2)))
        losses, judged = [], []
        for one in (whole, part):
            space, starts = one.data.space("ncp"), np.array([0, 4, 9])
            losses.append(space.unit(space.states(one.data.codes, one.encoded(rows), starts)).tolist())
            judged.append([one.data.rules(policy).ok(one.encoded(chunk)) for chunk in np.split(rows, starts[1:])])
        assert losses[0] == losses[1] and judged[0] == judged[1]
        both = pl.concat([old, now])
        for chosen in (some, np.sort(some), 40 + np.arange(60), 40 + random.permutation(60)):
            assert part.frame(chosen).equals(both[chosen])


def test_a_column_that_is_empty_now_is_read_by_what_it_was() -> None:
    old = people(0, 6).select(NAMES)
    now = old.with_columns(job=pl.lit(None, dtype=pl.String))
    assert Versions.of(old, now, [], SCHEMA, np.array([0, 6])).data.n == 12


@pytest.mark.parametrize("recut", [False, True])
def test_the_next_release_is_the_one_of_all_rows(recut: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batching that encodes what it looks at, against batching that encodes everything: who is shown how, who waits, and which
    classes stay. Newcomers may be grouped otherwise, by codes that are numbered otherwise, in classes that are good."""
    policy = Policy((shoal.KAnonymity(3), shoal.PSensitive(2)))
    known = read_schema({name: {"role": one.role, **FIXED.get(name, {})} for name, one in SCHEMA.attributes.items()})
    seen = 0
    for seed in range(12):
        random = np.random.default_rng(seed)
        frame = people(1000 * seed, 80).select(NAMES)
        before = Shown(np.arange(60), np.arange(60) // 5, frame[:60])
        there = np.sort(np.concatenate([np.flatnonzero(random.random(60) < 0.95), np.arange(60, 80)]))
        ill = random.permutation(frame["illness"].to_numpy())
        moved = random.random(80) < 0.05
        now = frame.with_columns(illness=pl.Series(np.where(moved, ill, frame["illness"].to_numpy())))[there]
        table = Table(there, now.with_columns(age=pl.col("age") + (seed % 2)), np.zeros(len(there), dtype=np.int64))
        plans = []
        for whole in (False, True):
            with monkeypatch.context() as patch:
                if whole:
                    patch.setattr(batching.Versions, "of", _everything)
                plans.append(plan_release("batching", table, before, known, policy, recut=recut))
        one, other = plans
        assert one.waiting == other.waiting
        assert np.array_equal(one.shown.records, other.shown.records)
        assert one.shown.frame.equals(other.shown.frame)
        old = one.shown.classes < 12
        assert np.array_equal(old, other.shown.classes < 12)
        assert np.array_equal(one.shown.classes[old], other.shown.classes[old])
        rules = Microdata.from_frame(one.shown.frame, known).rules(policy)
        for number in np.unique(one.shown.classes[~old]):
            assert rules.ok(np.flatnonzero(one.shown.classes == number))
        seen += int(old.sum() < len(old))
    assert seen > 6


FIXED: dict[str, Any] = {
    # Widths are those of the present table, and a set's codes go by how often its values occur: both are written down here.
    "age": {"kind": "number", "domain": [0, 120]},
    "job": {"order": ["clerk", "cook", "judge", "nurse"]},
    "zip": {"kind": "category", "taxonomy": {"prefix": [3, 0]}},
    "note": {"accept": "made up"},
}
_whole = Versions.of


def _everything(old: pl.DataFrame, now: pl.DataFrame, absent: Any, schema: Any, some: Any) -> Versions:
    return _whole(old, now, absent, schema, None)
