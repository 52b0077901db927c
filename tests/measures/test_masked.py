"""Any masked table against its original: the same numbers as from the partition, and every value read back."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.measures.masking import masked_of, partition_of
from tests.tables import random_table

import shoal
from shoal.configuration import read_schema
from shoal.errors import InputError
from shoal.measures.loss import measure
from shoal.measures.masked import covered, measure_masked, read_published
from shoal.measures.regions import common_space, relate
from shoal.microdata import Microdata
from shoal.partition import Partition

NEED_MEMBERS = ("sse", "ncp_distinct", "attributes")


def numbers(measures: Any) -> dict[str, float]:
    return {key: value for key, value in measures.to_dict().items() if key not in NEED_MEMBERS}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("drop", [False, True])
def test_a_shuffled_file_measures_like_its_partition(seed: int, drop: bool) -> None:
    data = random_table(seed, 40)
    masked, classes, states = masked_of(data, partition_of(seed, 40, 9, suppressed=2 * (seed % 2)), drop=drop)
    expected = measure(data, classes, 2, states, suppressed="drop" if drop else "mask")
    found = measure_masked(data, masked, 2)
    assert numbers(found.measures) == pytest.approx(numbers(expected), abs=1e-9)
    assert any("ncp_distinct" in note for note in found.notes)


@pytest.mark.parametrize("seed", range(4))
def test_in_the_original_order_everything_can_be_measured(seed: int) -> None:
    data = random_table(seed, 40)
    masked, classes, states = masked_of(data, partition_of(seed, 40, 9, suppressed=seed % 2), shuffle=False)
    expected = measure(data, classes, 2, states).to_dict()
    found = measure_masked(data, masked, 2, aligned=True)
    assert found.notes == ()
    for name in ("sse", "ncp_distinct", "il", "granularity"):
        assert found.to_dict()[name] == pytest.approx(expected[name], abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_published_values_cover_the_original_ones(seed: int) -> None:
    """Every published value covers its original."""
    data = random_table(seed, 30)
    masked, _, _ = masked_of(data, partition_of(seed, 30, 6, suppressed=1), shuffle=False)
    assert covered(read_published(data, masked)).all()
    turned = pl.concat([masked[1:], masked[:1]])
    assert not covered(read_published(data, turned)).all()


def test_a_file_in_another_order_is_told_from_an_aligned_one() -> None:
    data = random_table(1, 30)
    masked, _, _ = masked_of(data, partition_of(1, 30, 6), shuffle=False)
    with pytest.raises(InputError, match=r"record \d+: the published '.*' does not cover"):
        measure_masked(data, masked[::-1], aligned=True)


def test_two_columns_for_an_interval() -> None:
    data = random_table(2, 40, missing=0.0)
    classes = partition_of(2, 40, 8, suppressed=2)
    text, _, _ = masked_of(data, classes)
    columns, _, _ = masked_of(data, classes, intervals="columns")
    assert "age_min" in columns.columns
    one, other = measure_masked(data, text), measure_masked(data, columns)
    assert numbers(other.measures) == pytest.approx(numbers(one.measures))


def one_column(values: list[Any], published: list[Any], **attribute: Any) -> tuple[Microdata, pl.DataFrame]:
    data = Microdata.from_frame(pl.DataFrame({"a": values}), {"a": {"role": "quasi", **attribute}})
    return data, pl.DataFrame({"a": published})


def test_ends_that_nobody_has_count_with_their_own_width() -> None:
    data, masked = one_column([17, 20, 40, 57], ["[10, 20]", "[10, 20]", "[40, 60)", "[40, 60)"])
    found = measure_masked(data, masked).measures
    assert found.ncp == pytest.approx((2 * 10 + 2 * 20) / (4 * 40))


def test_dates_and_calendar_units() -> None:
    days = [date(2020, 1, 1), date(2020, 2, 10), date(2020, 12, 31)]
    data, masked = one_column(days, ["[2020-01-01, 2020-02-10]", "[2020-01-01, 2020-02-10]", "2020-12-31"])
    assert measure_masked(data, masked).measures.ncp == pytest.approx(2 * 40 / (3 * 365))
    schema = read_schema({"a": {"role": "quasi", "kind": "date"}})
    tables = [pl.DataFrame({"a": ["2020-02", "2020-Q1", "2020", "2020s", "*", None]}), pl.DataFrame({"a": days})]
    space, (regions, persons) = common_space(tables, schema, ["a"], [False, True])
    assert relate(space, persons, regions).toarray().tolist() == [
        [0, 1, 1, 1, 1, 0],
        [1, 1, 1, 1, 1, 0],
        [0, 0, 1, 1, 1, 0],
    ]


def test_labels_with_commas_in_sets_and_orders() -> None:
    values = ["a, b", "c", "d", "a, b"]
    data, masked = one_column(values, ["{a, b, c}", "{a, b, c}", "d", "d"])
    # "a, b" and "c": two of three labels, not three.
    assert measure_masked(data, masked).measures.ncp == pytest.approx(2 * (2 / 3) / 4)
    order = ["low, cold", "middle", "high, hot"]
    data, masked = one_column(["low, cold", "middle"] * 2, ["[low, cold, middle]"] * 4, order=order)
    assert measure_masked(data, masked).measures.ncp == pytest.approx(1 / 2)


def test_missing_among_others_in_a_set() -> None:
    data, masked = one_column(["a", None, "b", "c"], ["{a, ∅}", "{a, ∅}", "{b, c}", "{b, c}"])
    assert measure_masked(data, masked).measures.ncp == pytest.approx(2 / 4)
    assert measure_masked(data, masked, aligned=True).measures.classes == 2


def test_what_cannot_be_read_is_named() -> None:
    data, masked = one_column([1, 2, 3], ["1", "two", "3"])
    with pytest.raises(InputError, match="Column 'a': 'two' is neither a value nor a generalization"):
        measure_masked(data, masked)
    data, masked = one_column([1, 2, 3], ["[3, 1]", "2", "3"])
    with pytest.raises(InputError, match=r"\[3, 1\]"):
        measure_masked(data, masked)
    data, masked = one_column(["x", "y"], [None, "y"])
    with pytest.raises(InputError, match=r"missing values \(1 classes\) and the original has none"):
        measure_masked(data, masked)
    data, masked = one_column(["x", "y"], ["{x, z}", "y"])
    with pytest.raises(InputError, match=r"\{x, z\}"):
        measure_masked(data, masked)


def test_more_records_than_the_original_do_not_belong_to_it() -> None:
    data, masked = one_column([1, 2], ["1", "2", "2"])
    with pytest.raises(InputError, match="3 records and the original 2"):
        measure_masked(data, masked)


def test_rows_that_are_gone_and_rows_that_are_starred_are_suppressed() -> None:
    data, masked = one_column([1, 2, 3, 4], ["[1, 2]", "[1, 2]", "*"])
    found = measure_masked(data, masked, 2)
    assert (found.measures.suppressed, found.measures.classes) == (2, 1)
    assert found.measures.dm == 4 + 2 * 4
    assert any("1 records of the original are not in the masked table" in note for note in found.notes)


def test_means_leave_only_the_squared_error_to_measure() -> None:
    data = random_table(4, 40, missing=0.0)
    classes = partition_of(4, 40, 9)
    masked, joined, _ = masked_of(data, classes, recode="microaggregate")
    found = measure_masked(data, masked)
    expected = measure(data, classes).sse
    assert np.isnan(found.measures.ncp)
    assert found.measures.sse == pytest.approx(expected)
    assert found.measures.classes == joined.classes
    assert any("averages" in note for note in found.notes)


def test_midpoints_are_no_means() -> None:
    data, masked = one_column([1, 2, 6, 20], [3.5, 3.5, 3.5, 20.0])
    found = measure_masked(data, masked)
    assert np.isnan(found.measures.sse)
    assert any("midpoints" in note for note in found.notes)


@pytest.mark.parametrize("relation", ["meet", "inside"])
def test_relations_of_regions_equal_pairwise_comparison(relation: str) -> None:
    random = np.random.default_rng(5)

    def table(rows: int) -> pl.DataFrame:
        low = random.integers(0, 20, rows)
        text = [f"[{a}, {a + b}]" if b else str(a) for a, b in zip(low, random.integers(0, 6, rows), strict=True)]
        sets = [sorted(set(random.choice(list("abcdef"), 1 + random.integers(3)))) for _ in range(rows)]
        names = ["{" + ", ".join(s) + "}" if len(s) > 1 else s[0] for s in sets]
        zips = [
            "".join(map(str, random.integers(0, 3, 3)))[: 1 + random.integers(3)].ljust(3, "*") for _ in range(rows)
        ]
        return pl.DataFrame({"age": text, "kind": names, "zip": zips})

    schema = read_schema(
        {
            "age": {"role": "quasi"},
            "kind": {"role": "quasi"},
            "zip": {"role": "quasi", "taxonomy": {"prefix": [2, 1, 0]}},
        }
    )
    one, other = table(40), table(25)
    space, (these, those) = common_space([one, other], schema, ["age", "kind", "zip"], [False, False])
    found = relate(space, these, those, relation).toarray().astype(bool)  # type: ignore[arg-type]

    def points(row: dict[str, str]) -> tuple[set[int], set[str], set[str]]:
        ends = [int(x) for x in row["age"].strip("[]").split(", ")]
        prefix = row["zip"].rstrip("*")
        zips = {f"{i:03d}" for i in range(1000) if f"{i:03d}".startswith(prefix)}
        return set(range(ends[0], ends[-1] + 1)), set(row["kind"].strip("{}").split(", ")), zips

    for i, a in enumerate(one.iter_rows(named=True)):
        for j, b in enumerate(other.iter_rows(named=True)):
            pairs = list(zip(points(a), points(b), strict=True))
            expected = all(x & y if relation == "meet" else x <= y for x, y in pairs)
            assert found[i, j] == expected, (a, b)


def test_a_release_of_the_road_reads_back() -> None:
    data = random_table(7, 60)
    release = shoal.anonymize(data, shoal.KAnonymity(5), algorithm="datafly", refine=False)
    found = measure_masked(data, release.masked, 5)
    assert numbers(found.measures) == pytest.approx(numbers(release.measures), abs=1e-9)


def test_distinct_values_are_those_that_occur() -> None:
    """A table may be part of a larger one: labels that none of its records has are not lost."""
    frame = pl.DataFrame({"a": ["x", "y", "z", "x", "w"], "b": [1, 2, 3, 4, 5]})
    data = Microdata.from_frame(frame, {"a": {"role": "quasi"}, "b": {"role": "quasi"}}).take(np.array([0, 1, 3]))
    masked = pl.DataFrame({"a": ["{x, y}", "{x, y}", "x"], "b": ["[1, 2]", "[1, 2]", "4"]})
    found = measure_masked(data, masked).measures
    aligned = measure_masked(data, masked, aligned=True).measures
    assert found.ncp_distinct == pytest.approx(aligned.ncp_distinct)
    # Both of two labels in two of three records, and a third or a fourth of the range of numbers.
    assert found.ncp_distinct > found.ncp


@pytest.mark.parametrize(("published", "form"), [([3.0, 3.0, None], "mask"), ([3.0, 3.0], "drop")])
def test_averages_without_some_records(published: list[float | None], form: str) -> None:
    data, masked = one_column([1, 5, 9], published)
    found = measure_masked(data, masked, 2)
    assert found.measures.suppressed == 1 and found.measures.classes == 1
    # Two records that nobody tells apart, and one that is like nobody (starred) or not there at all.
    assert found.measures.dm == 4 + 3 and np.isnan(found.measures.sse)
    assert found.measures.avg == pytest.approx(measure(data, Partition(np.array([0, 0, -1], dtype=np.int32)), 2, suppressed=form).avg)  # type: ignore[arg-type]  # fmt: skip
    assert any("(midpoints, rounding, or suppressed records)" in note for note in found.notes)
    assert any("Column 'a' holds averages" in note for note in found.notes)


def test_means_that_somebody_says_are_means() -> None:
    """2 and 8 are values of the original, so nothing but the caller's word tells that they are means."""
    data, masked = one_column([1, 2, 3, 7, 8, 9], [2, 2, 2, 8, 8, 8])
    found = measure_masked(data, masked, averages=True)
    assert found.measures.sse == pytest.approx(100 * 4 / 58)
    assert any("The quasi-identifiers hold averages" in note for note in found.notes)
    assert np.isnan(measure_masked(data, masked).measures.sse)
    words, shown = one_column(["x", "y", "x", "y"], ["x"] * 4)
    assert np.isnan(measure_masked(words, shown, averages=True).measures.sse)
    both = Microdata.from_frame(
        pl.DataFrame({"a": [1, 3], "b": [1, 1]}), {"a": {"role": "quasi"}, "b": {"role": "quasi"}}
    )
    assert measure_masked(both, pl.DataFrame({"a": [2.0, 2.0], "b": [1, 1]})).measures.sse == 100
    text = measure_masked(both, pl.DataFrame({"a": ["[1, 3]"] * 2, "b": [1, 1]}), averages=True)
    assert any("sse needs one number in every cell, and column 'a' has others" in note for note in text.notes)
    days, means = one_column([date(2020, 1, 1), date(2020, 1, 3)], [date(2020, 1, 2)] * 2)
    assert measure_masked(days, means).measures.sse == pytest.approx(100)


def test_an_aligned_table_has_as_many_records() -> None:
    data, masked = one_column([1, 2, 3], ["[1, 2]", "[1, 2]"])
    with pytest.raises(InputError, match="2 records and the original 3, so they are not in the same order"):
        measure_masked(data, masked, aligned=True)


def test_persons_are_measured_once_whatever_the_number_of_their_rows() -> None:
    random = np.random.default_rng(0)
    visits = pl.DataFrame(
        {
            "pid": np.repeat(np.arange(60), 3),
            "age": np.repeat(random.integers(20, 90, 60), 3),
            "ill": random.choice(["a", "b", "c", "d"], 180),
        }
    )
    roles = {"pid": {"role": "person", "publish": "token"}, "age": {"role": "quasi"}, "ill": {"role": "sensitive"}}
    settings = {"algorithm": "mondrian", "refine": False}
    release = shoal.anonymize(visits, {"k": 4}, schema=roles, **settings)
    found = shoal.measure(visits, release.frame, roles, queries=20)
    assert found.measures.ncp == pytest.approx(release.measures.ncp)
    assert found.measures.classes == release.evidence.classes
    assert found.queries is not None
    # Without a token the rows of a table in its own order are still known.
    silent = {**roles, "pid": {"role": "person"}}
    kept = shoal.anonymize(visits, {"k": 4}, schema=silent, order="keep", **settings)
    assert shoal.measure(visits, kept.frame, silent, aligned=True).measures.sse == pytest.approx(kept.measures.sse)
    with pytest.raises(shoal.InputError, match="do not say whose they are"):
        shoal.measure(visits, kept.frame, silent)
    with pytest.raises(shoal.InputError, match="several rows"):
        shoal.measure(visits, release.frame, roles, predict="ill")


def test_means_of_large_numbers_may_be_rounded_in_proportion() -> None:
    data = Microdata.from_frame(pl.DataFrame({"pay": [1e9, 3e9, 5e9, 7e9]}), {"pay": {"role": "quasi"}})
    means = pl.DataFrame({"pay": [2e9 + 100.0, 2e9 + 100.0, 6e9, 6e9]})
    assert measure_masked(data, means, averages=True).measures.sse == pytest.approx(20.0)
    off = pl.DataFrame({"pay": [2e9 + 1e5, 2e9 + 1e5, 6e9, 6e9]})
    assert np.isnan(measure_masked(data, off, averages=True).measures.sse)
