"""What guards are made of, against plain loops: who is back, who stood where, what changed, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.configuration import read_schema
from shoal.errors import ConfigError, InternalError
from shoal.evolve.releases.guards import Shown, Table, aligned, changed, columns_of, plan_release, returned
from shoal.policy import Policy

SCHEMA = read_schema({"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})
TWO = Policy((shoal.KAnonymity(2),))


def frame_of(records: list[int], shift: int = 0) -> pl.DataFrame:
    ages = [20 + record + shift for record in records]
    return pl.DataFrame({"age": ages, "ill": ["flu" if record % 2 else "cold" for record in records]})


def table(records: list[int], classes: list[int] | None = None) -> Table:
    labels = classes if classes is not None else [i // 2 for i in range(len(records))]
    return Table(np.array(records, dtype=np.int64), frame_of(records), np.array(labels, dtype=np.int64))


def shown(records: list[int], classes: list[int], shift: int = 0) -> Shown:
    return Shown(np.array(records, dtype=np.int64), np.array(classes, dtype=np.int64), frame_of(records, shift))


def naive_returned(now: list[int], before: list[int] | None, earlier: list[Shown]) -> list[tuple[int, int, int]]:
    """Record (or -1), class and age of every row of a class that somebody who is back was last published in."""
    missing = set(now) - set(before if before is not None else now)
    rows, count = [], 0
    for release in reversed(earlier):
        records, classes = release.records.tolist(), release.classes.tolist()
        wanted = sorted({c for record, c in zip(records, classes, strict=True) if record in missing})
        for record, c, age in zip(records, classes, release.frame["age"].to_list(), strict=True):
            if c in wanted:
                rows.append((record if record in missing else -1, count + wanted.index(c), age))
        count += len(wanted)
        missing -= set(records)
    return rows


@pytest.mark.parametrize("seed", range(12))
def test_who_is_back_is_in_the_class_of_the_newest_release_that_showed_it(seed: int) -> None:
    random = np.random.default_rng(seed)

    def some() -> list[int]:
        return sorted(random.choice(12, int(random.integers(4, 9)), replace=False).tolist())

    earlier = []
    for release in range(3):
        records = some()
        earlier.append(shown(records, random.integers(0, 3, len(records)).tolist(), shift=10 * release))
    now, before = some(), some()
    found = returned(table(now), shown(before, [0] * len(before)), earlier)
    rows = list(zip(found.records.tolist(), found.classes.tolist(), found.frame["age"].to_list(), strict=True))
    assert rows == naive_returned(now, before, earlier)
    assert found.frame.schema == table(now).frame.schema
    # Without a last release everybody is here for the first time.
    nobody = returned(table(now), None, earlier)
    assert (len(nobody.records), len(nobody.classes), nobody.frame.height) == (0, 0, 0)
    assert nobody.frame.columns == ["age", "ill"]


@pytest.mark.parametrize("seed", range(6))
def test_where_records_shown_before_stand_now(seed: int) -> None:
    random = np.random.default_rng(100 + seed)
    now = sorted(random.choice(20, int(random.integers(1, 10)), replace=False).tolist())
    before = [*random.permutation(20)[:8].tolist(), -1, -2]
    frame, place = aligned(shown(before, [0] * 10, shift=5), table(now))
    assert place.tolist() == [now.index(record) if record in now else -1 for record in before]
    assert frame["age"].to_list() == [25 + record for record in before]
    assert frame.schema == table(now).frame.schema


def test_what_differs_counts_missing_as_a_value() -> None:
    old = pl.DataFrame({"a": [1, 2, None, None, 5], "b": ["x", "x", "x", "x", "x"]})
    new = pl.DataFrame({"a": [1, 3, None, 4, None], "b": ["x", "x", "x", "x", "y"]})
    rows = np.arange(5)
    assert changed(old, rows, new, rows, ["a", "b"]).tolist() == [False, True, False, True, True]
    assert changed(old, rows, new, rows, ["b"]).tolist() == [False] * 4 + [True]
    assert changed(old, rows, new, rows, []).tolist() == [False] * 5
    assert changed(old, np.array([4, 0]), new, np.array([1, 0]), ["a", "b"]).tolist() == [True, False]


def test_columns_of_the_table_alone() -> None:
    schema = read_schema({"key": {"role": "identifier"}, "age": {"role": "quasi"}, "*": {"role": "other"}})
    found = columns_of(pl.DataFrame({"age": [1], "ward": ["x"]}), schema)
    assert {name: attribute.role for name, attribute in found.attributes.items()} == {"age": "quasi", "ward": "other"}
    with pytest.raises(InternalError, match="column 'ward' of the table is not in its schema"):
        columns_of(pl.DataFrame({"age": [1], "ward": ["x"]}), SCHEMA)


def test_what_no_guard_does() -> None:
    now = table([1, 2, 3, 4])
    for before in (None, shown([1, 2], [0, 0])):
        plan = plan_release("none", now, before, SCHEMA, TWO)
        assert plan.shown.records is now.records and plan.shown.classes is now.labels
        assert plan.shown.frame is now.frame
        assert (plan.waiting, plan.counterfeits) == ({"insertions": 0, "deletions": 0, "updates": 0}, 0)
    first: Any = plan_release("batching", now, None, SCHEMA, TWO)
    assert first.shown.classes.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("guard", ["none", "batching"])
def test_words_and_numbers_that_do_not_belong(guard: Any) -> None:
    now = table([1, 2])
    with pytest.raises(ConfigError, match="m = 2 belongs to guard"):
        plan_release(guard, now, None, SCHEMA, TWO, m=2)
    with pytest.raises(ConfigError, match="guard = 'batch'"):
        plan_release("batch", now, None, SCHEMA, TWO)  # type: ignore[arg-type]
    for odd in (
        Table(now.records[:1], now.frame, now.labels),
        Table(now.records, now.frame[:1], now.labels),
        Table(now.records, now.frame, now.labels[:1]),
    ):
        with pytest.raises(InternalError, match="differ in number"):
            plan_release(guard, odd, None, SCHEMA, TWO)


def test_new_classes_have_numbers_that_nobody_has_had() -> None:
    before = shown([1, 2], [7, 7])
    now = table([1, 2, 3, 4], [0, 0, 0, 0])
    for first, least in ((0, 8), (30, 30)):
        plan = plan_release("batching", now, before, SCHEMA, TWO, next_class=first)
        by_record = dict(zip(plan.shown.records.tolist(), plan.shown.classes.tolist(), strict=True))
        assert by_record[1] == by_record[2] == 7
        assert by_record[3] == by_record[4] == least
