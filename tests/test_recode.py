"""Recoding: what a class publishes is what its members' raw values say, by every way of recoding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.reference import recode as naive
from tests.tables import UNBALANCED

from shoal.errors import InputError
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.recode import cellwise, generalize, microaggregate
from shoal.space import Interval, Tree
from shoal.states import class_states, members

GRADES = ["none", "low", "mid", "high"]
PARENTS = {child: parent for row in UNBALANCED for child, parent in pairwise(row)}
SCHEMA: dict[str, Any] = {
    "age": {"role": "quasi"},
    "pay": {"role": "quasi"},
    "seen": {"role": "quasi"},
    "grade": {"role": "quasi", "order": GRADES},
    "job": {"role": "quasi", "taxonomy": {"rows": UNBALANCED}},
    "colour": {"role": "quasi"},
}


def table(seed: int, n: int = 60, missing: float = 0.15) -> Microdata:
    """A column of every kind, each with holes, and some records twice."""
    random = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {
        "age": random.integers(-5, 30, n).tolist(),
        "pay": (random.integers(0, 50, n) / 4).tolist(),
        "seen": [date(2024, 1, 30) + timedelta(days=int(d)) for d in random.integers(0, 40, n)],
        "grade": [GRADES[i] for i in random.integers(0, 4, n)],
        "job": [UNBALANCED[i][0] for i in random.integers(0, len(UNBALANCED), n)],
        "colour": [f"c{i}" for i in np.minimum(random.geometric(0.3, n), 70)],
    }
    for column in columns.values():
        for i in np.flatnonzero(random.random(n) < missing):
            column[i] = None if i else column[i]
        column[n // 2 : n // 2 + 5] = column[:5]
    return Microdata.from_frame(pl.DataFrame(columns, strict=False), SCHEMA)


def classes_of(seed: int, n: int, suppressed: int = 3) -> Partition:
    """Classes of one to some records; the last `suppressed` records are nobody's."""
    labels = np.random.default_rng(seed).integers(0, n // 4, n)
    labels[n - suppressed :] = -1
    return Partition.compact(labels)


def expected(
    data: Microdata, partition: Partition, name: str, publish: Callable[[list[Any]], Any], away: Any
) -> list[Any]:
    """Record by record, what its class publishes."""
    values = data.frame[name].to_list()
    groups = [[values[i] for i in group] for group in partition.members()]
    return [away if label < 0 else publish(groups[label]) for label in partition.labels.tolist()]


def close(found: pl.Series, wanted: list[Any]) -> None:
    """Numbers to the last digits, everything else exactly."""
    for one, other in zip(found.to_list(), wanted, strict=True):
        assert one == (pytest.approx(other, abs=1e-9) if isinstance(other, float) else other), found.name


@pytest.mark.parametrize("seed", range(6))
def test_generalized_values_equal_the_naive_ones(seed: int) -> None:
    data, partition = table(seed), classes_of(seed, 60)
    columns = generalize(data, partition, class_states(data, partition, data.space("ncp")))
    publish = [naive.interval] * 3 + [
        lambda values: naive.ranked(values, GRADES),
        lambda values: naive.node(values, PARENTS, "*"),
        naive.collection,
    ]
    assert [column.name for column in columns] == list(SCHEMA)
    for column, how in zip(columns, publish, strict=True):
        assert column.to_list() == expected(data, partition, column.name, how, "*")


@pytest.mark.parametrize("seed", range(6))
def test_ends_and_middles_equal_the_naive_ones(seed: int) -> None:
    data, partition = table(seed), classes_of(seed, 60)
    states = class_states(data, partition, data.space("ncp"))
    ends = {column.name: column for column in generalize(data, partition, states, intervals="columns")}
    middles = {column.name: column for column in generalize(data, partition, states, intervals="midpoint")}
    assert list(ends)[:6] == ["age_min", "age_max", "pay_min", "pay_max", "seen_min", "seen_max"]
    for name in ("age", "pay", "seen"):
        column = data.frame[name].to_list()
        for side, end in enumerate(("min", "max")):
            wanted = expected(data, partition, name, lambda values, c=column, s=side: naive.ends(values, c)[s], None)
            close(ends[f"{name}_{end}"], wanted)
        close(middles[name], expected(data, partition, name, lambda values, c=column: naive.middle(values, c), None))
    # Labels have no middle: they are published as always.
    assert ends["grade"].equals(middles["grade"]) and ends["grade"].str.contains(r"\[none, ").any()


@pytest.mark.parametrize("seed", range(6))
def test_means_medians_and_modes_equal_the_naive_ones(seed: int) -> None:
    data, partition = table(seed), classes_of(seed, 60)
    counted = Counter(value for value in data.frame["colour"].to_list() if value is not None)
    codes = sorted(counted, key=lambda value: (-counted[value], value))
    jobs = [row[0] for row in UNBALANCED]
    found = {column.name: column for column in microaggregate(data, partition)}
    for name in ("age", "pay", "seen"):
        close(found[name], expected(data, partition, name, naive.mean, None))
    close(found["grade"], expected(data, partition, "grade", lambda values: naive.median(values, GRADES), "*"))
    close(found["job"], expected(data, partition, "job", lambda values: naive.mode(values, jobs), "*"))
    close(found["colour"], expected(data, partition, "colour", lambda values: naive.mode(values, codes), "*"))


def one(values: list[Any], labels: list[int], **attribute: Any) -> tuple[Microdata, Partition]:
    data = Microdata.from_frame(pl.DataFrame({"a": values}, strict=False), {"a": {"role": "quasi", **attribute}})
    return data, Partition(np.array(labels))


def numeric(values: list[Any], labels: list[int], intervals: Any, **attribute: Any) -> list[list[Any]]:
    data, partition = one(values, labels, **attribute)
    states = class_states(data, partition, data.space("ncp"))
    return [column.to_list() for column in generalize(data, partition, states, intervals=intervals)]


def test_the_lower_of_two_medians() -> None:
    data, partition = one(["low", "high", "mid", "high"], [0, 0, 0, 0], order=["low", "mid", "high"])
    assert microaggregate(data, partition)[0].to_list() == ["mid"] * 4
    data, partition = one(["low", "high", None, "low", "high", None], [0, 0, 0, 1, 2, 2], order=["low", "mid", "high"])
    assert microaggregate(data, partition)[0].to_list() == ["low", "low", "low", "low", "high", "high"]


def test_of_two_modes_the_smaller_code() -> None:
    # b is the most frequent in the table, so it has the smallest code; the class has a and b equally often.
    data, partition = one(["a", "b", "a", "b", "b", "c"], [0, 0, 0, 0, 1, 1])
    assert microaggregate(data, partition)[0].to_list() == ["b"] * 6
    rows = [["z", "*"], ["y", "*"], ["x", "*"]]
    data, partition = one(["y", "z", "x", "x", "y"], [0, 0, 1, 1, 1], taxonomy={"rows": rows})
    assert microaggregate(data, partition)[0].to_list() == ["z", "z", "x", "x", "x"]


def test_missing_among_numbers_is_any_number() -> None:
    """Whoever reads 30 to 40 may not conclude that a record without an age is between 30 and 40."""
    values, labels = [30, None, 40, 20, 90, None, None], [0, 0, 0, 1, 1, 2, 2]
    assert numeric(values, labels, "text") == [["*", "*", "*", "[20, 90]", "[20, 90]", None, None]]
    assert numeric(values, labels, "columns") == [[20, 20, 20, 20, 20, None, None], [90, 90, 90, 90, 90, None, None]]
    assert numeric(values, labels, "midpoint") == [[55, 55, 55, 55, 55, None, None]]


def test_middles_keep_their_half() -> None:
    assert numeric([1, 2, 5, 8], [0, 0, 1, 1], "midpoint") == [[1.5, 1.5, 6.5, 6.5]]
    assert numeric([1, 3, 5, 9], [0, 0, 1, 1], "midpoint") == [[2, 2, 7, 7]]


def test_whole_numbers_stay_whole_numbers() -> None:
    def kind(values: list[Any], labels: list[int]) -> Any:
        data, partition = one(values, labels)
        return microaggregate(data, partition)[0].dtype

    assert kind([1, 3, 5], [0, 0, 1]) == pl.Int64
    assert kind([1, 2, 5], [0, 0, 1]) == pl.Float64
    assert kind([1, 3, None, None], [0, 0, 1, 1]) == pl.Int64
    # All suppressed: nothing tells what it was.
    assert kind([1, 3], [-1, -1]) == pl.Float64
    # From 2^53 on a float no longer holds every whole number, and one that claims to would mislead.
    assert kind([-(2.0**53), 2.0**60], [0, 1]) == pl.Float64
    assert kind([2.0**53 - 2, 2.0**53 - 1], [0, 1]) == pl.Int64
    assert kind([2.0**53, 1.0], [0, 1]) == pl.Float64


def test_dates_are_rounded_to_the_nearest_day() -> None:
    days = [date(2024, 2, 28), date(2024, 2, 29), date(2024, 2, 29), None, date(1969, 12, 30), date(1969, 12, 31)]
    data, partition = one(days, [0, 0, 0, 0, 1, -1])
    found = microaggregate(data, partition)[0]
    assert found.to_list() == [date(2024, 2, 29)] * 4 + [date(1969, 12, 30), None]
    assert numeric(days, [0, 0, 0, 0, 1, -1], "columns")[0] == [date(1969, 12, 30)] * 5 + [None]


@pytest.mark.parametrize(
    ("values", "attribute"),
    [
        ([1, 1, None, None, 2], {}),
        ([date(2024, 1, 1), date(2024, 1, 1), None, None, date(2024, 1, 2)], {}),
        (["low", "low", None, None, "high"], {"order": GRADES}),
        (["nurse", "nurse", None, None, "farmer"], {"taxonomy": {"rows": UNBALANCED}}),
        (["a", "a", None, None, "b"], {}),
    ],
)
def test_a_class_of_nothing_but_missing_stays_missing(values: list[Any], attribute: dict[str, Any]) -> None:
    for labels in ([0, 0, 1, 1, 2], [0, 0, 2, 2, 1]):
        data, partition = one(values, labels, **attribute)
        assert microaggregate(data, partition)[0].to_list() == values
        shown = generalize(data, partition, class_states(data, partition, data.space("ncp")))[0].to_list()
        assert shown == [value if value is None else str(value) for value in values]


def test_a_column_of_one_value_or_none() -> None:
    assert numeric([7, 7, 7], [0, 0, 1], "columns") == [[7, 7, 7], [7, 7, 7]]
    assert numeric([7, None, 7], [0, 0, 1], "columns") == [[7, 7, 7], [7, 7, 7]]
    data, partition = one([1, 1], [0, 0])
    nothing = replace(data, domains=(Interval(np.array([]), 0.0, has_missing=True),), codes=np.zeros((2, 1), np.int32))
    states = class_states(nothing, partition, nothing.space("ncp"))
    found = [column.to_list() for column in generalize(nothing, partition, states, intervals="columns")]
    assert found == [[None, None], [None, None]]


def test_rows_choose_and_order_the_records() -> None:
    data, partition = table(2), classes_of(2, 60)
    states = class_states(data, partition, data.space("ncp"))
    rows = np.random.default_rng(1).permutation(60)[:31]
    for intervals in ("text", "columns", "midpoint"):
        every = generalize(data, partition, states, intervals=intervals)  # type: ignore[arg-type]
        some = generalize(data, partition, states, intervals=intervals, rows=rows)  # type: ignore[arg-type]
        for all_of_it, part in zip(every, some, strict=True):
            assert part.to_list() == all_of_it.gather(rows).to_list()
    for all_of_it, part in zip(
        microaggregate(data, partition), microaggregate(data, partition, rows=rows), strict=True
    ):
        assert part.to_list() == all_of_it.gather(rows).to_list()


@pytest.mark.parametrize("seed", range(4))
def test_cellwise_publishes_a_value_or_nothing(seed: int) -> None:
    """Local suppression: shared values stay, all others are blanked, and the loss counts the blanks."""
    data, partition = table(seed), classes_of(seed, 60, suppressed=0)
    cells = cellwise(data)
    space = cells.space("il")
    states = class_states(cells, partition, space)
    blanks = 0
    for column in generalize(cells, partition, states):
        shown = naive.number if column.name in ("age", "pay", "seen") else str
        wanted = expected(
            data,
            partition,
            column.name,
            lambda values, shown=shown: (
                "*" if len(set(values)) > 1 else None if values[0] is None else shown(values[0])
            ),
            "*",
        )
        assert column.to_list() == wanted
        blanks += wanted.count("*")
    assert space.unit(states) @ partition.sizes == blanks
    assert np.array_equal(cells.codes, data.codes) and cells.n == data.n
    for flat, domain in zip(cells.domains, data.domains, strict=True):
        assert isinstance(flat, Tree)
        assert (flat.size, flat.missing_code, flat.has_missing) == (
            domain.size,
            domain.missing_code,
            domain.has_missing,
        )


# -- what the classes are made of


@pytest.mark.parametrize("seed", range(4))
def test_states_come_from_the_members_alone(seed: int) -> None:
    data, space = table(seed), table(seed).space("ncp")
    apart = classes_of(seed, 60)
    points = data.points
    together = Partition.compact(np.where(points.of_record % 3 == 0, -1, points.of_record % 7)[: data.n])
    for partition, whole in [(apart, False), (together, True)]:
        found = class_states(data, partition, space)
        for c, group in enumerate(partition.members()):
            assert np.array_equal(found[c], space.states(data.codes[group], np.arange(len(group)), np.array([0]))[0])
        made = members(data, partition)
        assert (made.weights is not None) == whole
        weights = made.weights if made.weights is not None else np.ones(len(made.labels))
        assert np.bincount(made.labels, weights).tolist() == partition.sizes.tolist()


def test_a_partition_without_classes_has_no_states() -> None:
    data = table(0)
    states = class_states(data, Partition(np.full(60, -1)), data.space("ncp"))
    assert states.shape == (0, data.space("ncp").width)


def test_levels_publish_their_nodes() -> None:
    """Full-domain recoding: a class of one value still publishes the node of the level."""
    frame = pl.DataFrame({"job": ["nurse", "nurse", "farmer", "clerk"], "age": [1, 2, 3, 4]})
    data = Microdata.from_frame(frame, {"job": SCHEMA["job"], "age": {"role": "quasi"}})
    for level, texts in [(0, ["nurse", "nurse", "farmer", "clerk"]), (1, ["care", "care", "farmer", "clerk"])]:
        partition = Partition(np.array([0, 0, 1, 2]), levels=(level, 0))
        shown = generalize(data, partition, class_states(data, partition, data.space("ncp")))
        assert shown[0].to_list() == texts
        assert shown[1].to_list() == ["[1, 2]", "[1, 2]", "3", "4"]
    # The whole node, not only the part of it that occurs: judges are offices, though there is a clerk alone.
    offices = class_states(data, Partition(np.array([0, 0, 1, 2]), levels=(2, 0)), data.space("ncp"))
    assert offices[:, :2].tolist() == [[0, 2], [5, 5], [3, 4]]
    last = class_states(data, Partition(np.array([0, 0, 0, 1]), levels=(3, 0)), data.space("ncp"))
    assert last[:, :2].tolist() == [[0, 5], [0, 5]]


def test_a_value_that_looks_like_a_blank_is_quoted_or_refused() -> None:
    frame = pl.DataFrame({"mark": ["*", "+", "*", "+"]})
    plain = cellwise(Microdata.from_frame(frame, {"mark": {"role": "quasi"}}))
    shown = generalize(
        plain, (apart := Partition(np.array([0, 1, 0, 1]))), class_states(plain, apart, plain.space("il"))
    )
    assert shown[0].to_list() == ['"*"', "+", '"*"', "+"]
    # The nodes of a taxonomy are published as they are called.
    rows = [["*", "any"], ["+", "any"]]
    named = Microdata.from_frame(frame, {"mark": {"role": "quasi", "taxonomy": {"rows": rows}}})
    with pytest.raises(InputError, match=r"Column 'mark' has the value '\*'"):
        cellwise(named)
