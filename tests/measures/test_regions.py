"""Published texts read back, one by one: which region each stands for, and what cannot be read."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal.configuration import read_schema
from shoal.errors import InputError
from shoal.measures.regions import (
    Cells,
    _everything,
    _guess,
    _segments,
    _unquoted,
    common_space,
    published_cells,
    read_against,
    relate,
    suppressed_rows,
)
from shoal.microdata import Microdata
from shoal.schema import Attribute
from shoal.space import Interval, Set, Tree

EPOCH = date(1970, 1, 1)
ROWS = [["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"], ["d", "y", "*"], ["e", "*"]]


def cells_of(texts: list[Any], name: str = "a") -> Cells:
    return published_cells(pl.DataFrame({name: texts}), name)


def against(values: list[Any], texts: list[Any], **attribute: Any) -> list[set[Any]]:
    """The values of the original that each published text covers; None is missing."""
    data = Microdata.from_frame(pl.DataFrame({"a": values}, strict=False), {"a": {"role": "quasi", **attribute}})
    (domain,), (states,), _ = read_against(data.domains, [cells_of(texts)])
    return [members(domain, state, values) for state in states]


def members(domain: Any, state: Any, values: list[Any]) -> set[Any]:
    if isinstance(domain, Set):
        words = state.view(np.uint64).tolist()
        codes = [code for code in range(64 * len(words)) if words[code >> 6] >> (code & 63) & 1]
        assert all(code < domain.size for code in codes)
        return {None if domain.has_missing and code == domain.missing_code else domain.labels[code] for code in codes}
    low, high = state.tolist()
    codes = list(range(low, high + 1))
    if isinstance(domain, Tree):
        names = {code: label for label, code in domain.taxonomy.leaf_codes.items()}
        return {names[code] or None for code in codes}
    missing = {None} if domain.has_missing and high >= domain.missing_code else set()
    known = {float(domain.values[code]) for code in codes if code < len(domain.values)}
    if domain.labels is not None:
        return {domain.labels[code] for code in codes if code < len(domain.labels)} | missing
    return {value for value in values if value is not None and _number(value) in known} | missing


def _number(value: Any) -> float:
    return float((value - EPOCH).days) if isinstance(value, date) else float(value)


def test_numbers() -> None:
    values = [1, 2, 3, 5.5, 10, None]
    found = against(
        values, ["1", "[1, 3]", "[1, 3)", "[2.5, 10]", "[0, 1.5]", "*", None, "[-5, -1]", "1e1", "[10, 10]"]
    )
    assert found == [{1}, {1, 2, 3}, {1, 2}, {3, 5.5, 10}, {1}, {1, 2, 3, 5.5, 10, None}, {None}, set(), {10}, {10}]


@pytest.mark.parametrize(
    "text", ["x", "[3, 1]", "[1, 3", "1, 3", "nan", "inf", "[1, inf]", "[x, 3]", "{1, 3}", "[1, 3)x"]
)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(InputError, match=r"Column 'a': .* is neither a value nor a generalization"):
        against([1, 2, 3], [text])


def test_dates_and_parts_of_the_calendar() -> None:
    days = [date(y, m, d) for y in range(2018, 2033) for m, d in ((1, 1), (1, 31), (2, 28), (3, 31), (4, 1), (6, 30), (7, 1), (9, 30), (10, 1), (12, 1), (12, 31))]  # fmt: skip
    told = {
        "2020-02-28": {date(2020, 2, 28)},
        "2020-01": {day for day in days if (day.year, day.month) == (2020, 1)},
        "2020-12": {date(2020, 12, 1), date(2020, 12, 31)},
        "2020-Q1": {day for day in days if day.year == 2020 and day.month <= 3},
        "2020-Q2": {day for day in days if day.year == 2020 and 4 <= day.month <= 6},
        "2020-Q3": {day for day in days if day.year == 2020 and 7 <= day.month <= 9},
        "2020-Q4": {day for day in days if day.year == 2020 and day.month >= 10},
        "2021": {day for day in days if day.year == 2021},
        "2020s": {day for day in days if 2020 <= day.year <= 2029},
        "[2020-02, 2020-Q3]": {day for day in days if day.year == 2020 and 2 <= day.month <= 9},
        "[2019-12-31, 2020-01-01]": {date(2019, 12, 31), date(2020, 1, 1)},
        "[2020-01-01, 2020-01-31)": {date(2020, 1, 1)},
        "*": {*days, None},  # a star may stand for missing too
    }
    assert against(days, list(told), kind="date") == list(told.values())
    for text in ("2020-13", "2020-Q5", "20", "2020-02-30", "[2021, 2020]", "1.2.2020"):
        with pytest.raises(InputError, match="neither a value nor"):
            against(days, [text], kind="date")


def test_ordered_labels() -> None:
    order = ["low, cold", "middle", 'so "called"', "high"]
    values = [*order, None]
    found = against(
        values,
        ["middle", "low, cold", "[low, cold, middle]", "[middle, high]", '["low, cold", high]', '"middle"', "*", None, "[middle, middle]"],
        order=order,
    )  # fmt: skip
    assert found == [
        {"middle"}, {"low, cold"}, {"low, cold", "middle"}, {"middle", 'so "called"', "high"}, set(order), {"middle"}, {*order, None},
        {None}, {"middle"},
    ]  # fmt: skip
    assert against(values, ['[middle, "so ""called"""]'], order=order) == [{"middle", 'so "called"'}]
    for text in (
        "[high, middle]",
        "[middle]",
        "top",
        "[middle, top]",
        "middle, high",
        '["high", "middle"]',
        "[top, high]",
        '"top"',
    ):
        with pytest.raises(InputError, match="neither a value nor"):
            against(values, [text], order=order)


def test_sets() -> None:
    values = ["a", "b", "c, d", "e", None]
    found = against(
        values,
        ["a", "{a, b}", "{b, a}", "{a, c, d}", '{"c, d", e}', "{a, ∅}", "*", None, "c, d", '"a"', "{c, d, ∅}", "{e}"],
    )
    assert found == [
        {"a"}, {"a", "b"}, {"a", "b"}, {"a", "c, d"}, {"c, d", "e"}, {"a", None}, set(values), {None}, {"c, d"}, {"a"}, {"c, d", None},
        {"e"},
    ]  # fmt: skip
    for text in ("z", "{a, z}", "{a, c}", "{∅, a}", "{a", "a}", "{}", '{"z", a}', '"z"'):
        with pytest.raises(InputError, match="neither a value nor"):
            against(values, [text])


def test_sets_of_more_than_a_word() -> None:
    values = [f"v{i:03d}" for i in range(130)]
    found = against(values, ["{v000, v063, v064, v129}", "v127", "v128", "*"])
    assert found == [{"v000", "v063", "v064", "v129"}, {"v127"}, {"v128"}, set(values)]


def test_nodes() -> None:
    values = ["a", "b", "c", "d", "e", None]
    found = against(values, ["a", "x", "y", "e", "*", None], taxonomy={"rows": ROWS})
    assert found == [{"a"}, {"a", "b"}, {"c", "d"}, {"e"}, {"a", "b", "c", "d", "e", None}, {None}]
    with pytest.raises(InputError, match=r"'z' is neither a value nor a generalization .*\("):
        against(values, ["z"], taxonomy={"rows": ROWS})


def test_labels_put_together_again() -> None:
    known = {"a", "b", "a, b", "c"}
    assert _segments(["a"], known) == ["a"]
    assert _segments(["c", "∅"], known) == ["c", "∅"]
    assert _segments(["c", "a", "b"], known) == ["c", "a", "b"]
    assert _segments(["a", "b"], {"a, b"}) == ["a, b"]
    for parts in (["a", "z"], ["z", "a"], ["z"], ["∅", "a"], ["a", "∅", "b"]):
        with pytest.raises(ValueError, match=", ".join(parts)):
            _segments(parts, known)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("a", []),
        ("{a, b}", []),
        ('"a"', ["a"]),
        ('{"a", b}', ["a", "b"]),
        ('["a, b", c]', ["a, b", "c"]),
        ('{"say ""hi""", ∅}', ['say "hi"', None]),
        ('{"∅", a}', ["∅", "a"]),
        ('say "hi"', []),
        ('{"a"b}', []),
        ('"{a, b}"', ["{a, b}"]),
        ('"a", b', ["a", "b"]),
    ],
)
def test_quotes(text: str, labels: list[str | None]) -> None:
    assert _unquoted(text) == labels


def test_cells_in_one_column_or_two() -> None:
    table = pl.DataFrame({"a_min": [1.0, 1, None, 2.5], "a_max": [3.0, 1, None, 4.0], "b": ["x", None, "*", "x"]})
    found = published_cells(table, "a")
    assert [found.texts[i] for i in found.of_row] == ["[1, 3]", "1", None, "[2.5, 4]"]
    assert found.numeric and found.missing().tolist() == [False, False, True, False]
    assert found.all_suppressed().tolist() == [False, False, True, False]
    words = published_cells(table, "b")
    assert [words.texts[i] for i in words.of_row] == ["x", None, "*", "x"]
    assert not words.numeric and words.missing().tolist() == [False, True, False, False]
    assert words.all_suppressed().tolist() == [False, False, True, False]
    # Nothing is published of the third row alone.
    assert suppressed_rows([found, words]).tolist() == [False, False, True, False]
    half = pl.DataFrame({"a_min": [1.0, None], "a_max": [None, 3.0]})
    assert published_cells(half, "a").missing().all()  # one end is no interval
    days = published_cells(pl.DataFrame({"a": [date(2020, 1, 2), None]}), "a")
    assert days.numeric and [days.texts[i] for i in days.of_row] == ["2020-01-02", None]
    times = published_cells(pl.DataFrame({"a": [datetime(2020, 1, 2, 5, 30)]}), "a")
    assert times.texts == ("2020-01-02",) and times.numeric
    assert published_cells(pl.DataFrame({"a": [1.0, 2.5]}), "a").numeric
    shuffled = [f"v{i * 37 % 101}" for i in range(101)]
    assert published_cells(pl.DataFrame({"a": shuffled * 2}), "a").texts == tuple(shuffled)


def test_two_columns_that_span_everything_are_anything() -> None:
    """Two columns of numbers have no star; with missing values the whole range may be one."""
    table = pl.DataFrame({"a_min": [1, 1, 2], "a_max": [9, 3, 9]})
    for values, whole in (([1, 3, 9, None], True), ([1, 3, 9], False)):
        data = Microdata.from_frame(pl.DataFrame({"a": values}), {"a": {"role": "quasi"}})
        (domain,), (states,), averaged = read_against(data.domains, [published_cells(table, "a")])
        assert isinstance(domain, Interval) and averaged == []
        assert [bool(state[1] >= domain.missing_code) for state in states] == [whole, False, False]
    single = Microdata.from_frame(pl.DataFrame({"a": [4, 4, None]}), {"a": {"role": "quasi"}})
    (domain,), (states,), _ = read_against(single.domains, [cells_of([4, 4])])
    assert states.tolist() == [[0, 0]] * 2  # one number is that number


def test_numbers_that_nobody_has_are_averages() -> None:
    data = Microdata.from_frame(pl.DataFrame({"a": [1, 2, 4]}), {"a": {"role": "quasi"}})
    for texts, averaged in (
        (["1", "2"], []),
        (["1.5"], ["a"]),
        (["[1.5, 3]"], []),
        (["1", "[3, 3]"], ["a"]),
        (["*"], []),
    ):
        assert read_against(data.domains, [cells_of(texts)])[2] == averaged


@pytest.mark.parametrize(
    ("texts", "source", "kind"),
    [
        (["1", "[2, 3]", "*", None], None, "number"),
        (["2020-01", "2020-01-05"], None, "date"),
        (["2020", "2021"], None, "number"),
        (["2020-01", "x"], None, "category"),
        (["1", "{1, 2}"], None, "category"),
        (["x"], {"dates": ["month", "year"]}, "date"),
        (["x"], {"intervals": [5, 10]}, "number"),
    ],
)
def test_what_a_column_seems_to_be(texts: list[str | None], source: Any, kind: str) -> None:
    attribute = Attribute.model_validate({"role": "quasi", **({"taxonomy": source} if source else {})})
    assert _guess([cells_of(["*"]), cells_of(texts)], attribute) == kind


def pairs(
    one: list[Any], other: list[Any], relation: Any = "meet", unknown: bool = False, **attribute: Any
) -> list[list[int]]:
    schema = read_schema({"a": {"role": "quasi", **attribute}})
    tables = [pl.DataFrame({"a": one}, strict=False), pl.DataFrame({"a": other}, strict=False)]
    space, (these, those) = common_space(tables, schema, ["a"], [unknown, False])
    found: list[list[int]] = relate(space, these, those, relation).toarray().tolist()
    return found


def test_regions_that_meet_and_regions_inside() -> None:
    regions = ["[1, 5]", "[5, 9]", "7", "*", None]
    assert pairs(["5", "[1, 9]"], regions) == [[1, 1, 0, 1, 0], [1, 1, 1, 1, 0]]
    assert pairs(["5", "[1, 9]", "[1, 5]"], regions, "inside") == [[1, 1, 0, 1, 0], [0, 0, 0, 1, 0], [1, 0, 0, 1, 0]]
    # Who has no value may be anybody to an intruder who does not know it; else it is a value of its own.
    assert pairs([None], ["[1, 5]", "7", None], unknown=True) == [[1, 1, 1]]
    assert pairs([None], ["[1, 5]", "7", None], unknown=False) == [[0, 0, 1]]
    assert pairs(["b", "{a, c}"], ["{a, b}", "c", "*", None]) == [[1, 0, 1, 0], [1, 1, 1, 0]]
    assert pairs(["b", "{a, c}"], ["{a, b}", "c", "{c, a, b}", "*"], "inside") == [[1, 0, 1, 1], [0, 0, 1, 1]]
    assert pairs(["a", "x"], ["x", "y", "*", "b"], taxonomy={"rows": ROWS}) == [[1, 0, 1, 0], [1, 0, 1, 1]]
    assert pairs(["a", "x"], ["x", "y", "*", "b"], "inside", taxonomy={"rows": ROWS}) == [[1, 0, 1, 0], [1, 0, 1, 0]]
    zips = pairs(["41076", "41***"], ["410**", "41***", "42***", "*"], taxonomy={"prefix": [3, 2, 0]})
    assert zips == [[1, 1, 0, 1], [1, 1, 0, 1]]
    assert pairs(["middle"], ["[low, middle]", "high", "*"], order=["low", "middle", "high"]) == [[1, 0, 1]]
    assert pairs(["2020-02-03"], ["2020-02", "2020-Q2", "2020"], kind="date") == [[1, 0, 1]]


def test_groups_that_their_labels_do_not_spell_out_are_refused() -> None:
    with pytest.raises(InputError, match="automatic taxonomy whose groups"):
        pairs(["a"], ["{a, b, +3}"])
    assert pairs(["a+b", "a"], ["a+b", "{a, b}"]) == [[1, 0], [0, 1]]


def test_many_regions_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The matrix is the same whatever fits into memory at once."""
    random = np.random.default_rng(0)
    low = random.integers(0, 30, 40)
    one = [f"[{a}, {a + b}]" for a, b in zip(low, random.integers(0, 5, 40), strict=True)]
    other = [*one[20:], "[3, 4]"]
    whole = pairs(one, other)
    monkeypatch.setattr("shoal.measures.regions.BITS", 64)
    assert pairs(one, other) == whole
    monkeypatch.setattr("shoal.measures.regions.BITS", 1)
    assert pairs(one, other) == whole


def test_everything_of_a_domain() -> None:
    assert _everything(Interval(np.array([1.0, 2.0, 5.0]), 4.0)).tolist() == [0, 2]
    assert _everything(Interval(np.array([1.0, 2.0]), 1.0, has_missing=True)).tolist() == [0, 2]
    assert _everything(Interval(np.zeros(0), 0.0)).tolist() == [0, 0]
    sizes = [sum(bin(word).count("1") for word in _everything(Set(tuple(f"v{i}" for i in range(n)))).view(np.uint64).tolist()) for n in (1, 63, 64, 65, 128, 129)]  # fmt: skip
    assert sizes == [1, 63, 64, 65, 128, 129]
