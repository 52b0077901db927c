"""What published cells mean: which spellings are one thing, which are not, and what nobody can vouch for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal.configuration import read_schema
from shoal.schema import Schema
from shoal.verifier.meaning import Problem, read_cells, reader_of


def schema_of(**attribute: Any) -> Schema:
    return read_schema({"a": {"role": "quasi", **attribute}})


def groups(texts: list[str | None], **attribute: Any) -> list[list[str | None]]:
    """The texts in groups that mean the same, in order of first appearance."""
    found: dict[Any, list[str | None]] = {}
    for key, text in zip(read_cells(texts, "a", schema_of(**attribute)).keys, texts, strict=True):
        found.setdefault(key, []).append(text)
    return list(found.values())


def strange(texts: list[str | None], **attribute: Any) -> list[str | None]:
    """The texts that are not what the column should hold, or lie outside its domain."""
    problems = read_cells(texts, "a", schema_of(**attribute)).problems
    return [texts[i] for i in sorted({i for problem in problems for i in problem.texts})]


NUMBERS = [
    ["34", "34.0", "+34", " 34", "3.4e1", "034", "34,0", "[34, 34]", "34-34", "{34}", "{34, 34.0}", "[34,34]"],
    ["-34", "-34.0", "[-34, -34]"],
    ["[-34, -20]", "[-34,-20]", "-34 to -20"],
    ["[-34, 20]", "-34-20"],
    ["[20, 29]", "20-29", "20..29", "20 to 29", "20–29", "20—29", "20:29", "20;29", "[20.0; 29]", "20 , 29"],
    ["[20, 30]", "20-30"],
    ["[20, 29)", "20-29)", "[20, 29["],
    ["(20, 29]", "]20, 29]"],
    ["(20, 29)", "]20, 29["],
    ["{20, 29}", "{29,20}", "{20, 29, 20.0}"],
    ["{20, 25, 29}"],
    [">=65", "65+", ">= 65", "65 +"],
    [">65"],
    ["≥65"],
    ["<65"],
    ["<=65"],
    ["≤65"],
    ["0", "-0", "0.0"],
    ["*", "**", "***"],
    [None, "", "?"],
    [".5", "0.5", ",5"],
]  # fmt: skip


def test_numbers_that_mean_the_same() -> None:
    texts = [text for group in NUMBERS for text in group]
    assert groups(texts, kind="number") == NUMBERS
    assert strange(texts, kind="number") == []
    assert groups(texts) == NUMBERS  # all of them read as numbers, so nobody needs to say so


@pytest.mark.parametrize(
    "text",
    ["[29, 20]", "thirty", "{20, x}", "{}", "34 (Ash)", "[20, 29, 30]", "20-", "65++", "=>65", "1.2.3", "[20", "{20, 29", "1e", "--1"],
)  # fmt: skip
def test_what_is_no_number_is_a_problem_of_its_own(text: str) -> None:
    texts = ["1", text, "2"]
    reading = read_cells(texts, "a", schema_of(kind="number"))
    found = strange(texts, kind="number")
    if text in ("[20", "{20, 29"):
        # One bracket is enough to see an interval; a set without its end is none.
        assert found == ([] if text == "[20, 29" else [text])
    else:
        assert found == [text]
    assert reading.keys[1] == ("text", text)
    assert [problem.what for problem in reading.problems] == ["it holds what is no number and no interval of numbers"]


DATES = [
    ["2024-03-31", "[2024-03-31, 2024-03-31]", "2024-03-31 to 2024-03-31", "(2024-03-31; 2024-03-31)", "2024-03-31..2024-03-31"],
    ["2024-03"],
    ["2024-Q1"],
    ["2024"],
    ["2020s"],
    ["[2024-01, 2024-03]", "2024-01–2024-03", "2024-01—2024-03", "[2024-01 ,2024-03]"],
    ["[2024-Q1, 2024-Q2]"],
    ["*"],
    [None],
]  # fmt: skip


def test_dates_that_mean_the_same() -> None:
    texts = [text for group in DATES for text in group]
    assert groups(texts, kind="date") == DATES
    assert strange(texts, kind="date") == []
    assert groups(texts) == DATES
    odd: list[str | None] = ["31.03.2024", "2024-3", "2024-Q5", "[2024-03, 2024-01]", "24", "2024-03-31x", "[2024-01]"]
    assert strange([*odd, "2024"], kind="date") == odd


def test_categories_that_mean_the_same() -> None:
    told: list[list[str | None]] = [
        ["clerk", " clerk", "{clerk}", "{clerk, clerk}"],
        ["{clerk, nurse}", "{nurse,clerk}", "{clerk, nurse, clerk}", '{"clerk", nurse}'],
        ['{"a, b", c}', '{c, "a, b"}'],
        ["{a, b, c}"],
        ['{"say ""hi""", x}'],
        ["Clerk"],
        ["**"],
        [None],
        ["clerk}"],
        ["{clerk"],
        ["1"],
        ["1.0"],
        ['{", x}', '{x, "}'],
    ]
    assert groups([text for group in told for text in group], kind="category") == told
    # One word among numbers, and they are texts; one among dates likewise.
    assert groups(["1", "1.0", "x"]) == [["1"], ["1.0"], ["x"]]
    assert groups(["2024", "[2024, 2024]", "x"]) == [["2024"], ["[2024, 2024]"], ["x"]]
    assert groups(["1", "1.0", "*", None]) == [["1", "1.0"], ["*"], [None]]


def test_quoted_members_are_unquoted() -> None:
    keys = read_cells(['{"say ""hi""", "a, b", c}'], "a", schema_of(kind="category")).keys
    assert keys == [("set", ("a, b", "c", 'say "hi"'))]


def test_ordered_labels_and_their_intervals() -> None:
    order = ["low", "mid, dle", "high"]
    told: list[list[str | None]] = [
        ["low", "[low, low]", "{low, low}"],
        ["[low, mid, dle]", "{low, mid, dle}", "[low,mid, dle]"],
        ["[low, high]"],
        ["mid, dle", "[mid, dle, mid, dle]"],
        ["[mid, dle, high]"],
        ["*"],
        [None],
    ]
    texts = [text for group in told for text in group]
    assert groups(texts, order=order) == told
    assert strange(texts, order=order) == []
    odd: list[str | None] = ["[high, low]", "[low]", "top", "[low, top]", "[top, low]", "low, high", "[]", "Low"]
    assert strange([*odd, "low"], order=order) == odd
    assert read_cells(["low", "[low, high]"], "a", schema_of(order=order)).keys == [
        ("between", 0, 0),
        ("between", 0, 2),
    ]


def test_nodes_of_a_taxonomy_and_nothing_else() -> None:
    rows = {"rows": [["flu", "lung", "*"], ["cold", "lung", "*"], ["ulcer", "stomach", "*"]]}
    texts: list[str | None] = ["flu", "lung", " lung", "*", None, "Lung", "{flu, cold}", "x"]
    reading = read_cells(texts, "a", schema_of(taxonomy=rows))
    assert reading.keys[:5] == [("node", "flu"), ("node", "lung"), ("node", "lung"), "*", None]
    assert strange(texts, taxonomy=rows) == ["Lung", "{flu, cold}", "x"]
    assert reading.problems[0].what == "it holds what is no node of its taxonomy"
    assert reading.spellings == [["lung", " lung"]]


def test_prefixes_are_texts_even_where_they_look_like_numbers() -> None:
    assert groups(["41", "41.0", "4*", "*", "{1, 2}", "{2, 1}"], taxonomy={"prefix": [1, 0]}) == [
        ["41"], ["41.0"], ["4*"], ["*"], ["{1, 2}"], ["{2, 1}"],
    ]  # fmt: skip


def test_taxonomies_of_numbers_and_dates_are_read_as_such() -> None:
    assert groups(["20", "20.0", "[20, 30)"], taxonomy={"intervals": [5, 10]}) == [["20", "20.0"], ["[20, 30)"]]
    assert groups(["2024", "[2024, 2024]"], kind="date", taxonomy={"dates": ["month", "year"]}) == [
        ["2024", "[2024, 2024]"]
    ]
    units = {"kind": "date", "taxonomy": {"dates": ["month", "year"]}}
    assert strange(["2024-03", "2024-Q1", "[2023, 2024]"], **units) == ["2024-Q1", "[2023, 2024]"]
    assert strange(["[20, 29]", "[21, 28]", "[20, 30)", "7"], taxonomy={"intervals": [10]}) == ["[21, 28]"]
    assert strange(["410**", "41076", "4107*", "4*0**"], taxonomy={"prefix": [3, 0]}) == ["4107*", "4*0**"]


def test_what_lies_outside_the_domain() -> None:
    texts: list[str | None] = [
        "0",
        "120",
        "[0, 120]",
        "-1",
        "121",
        "[0, 121]",
        "[-1, 5]",
        "{5, 121}",
        "{5, 6}",
        "*",
        None,
        ">=500",
    ]
    found = strange(texts, kind="number", domain=[0, 120])
    assert found == ["-1", "121", "[0, 121]", "[-1, 5]", "{5, 121}"]
    problems = read_cells(texts, "a", schema_of(kind="number", domain=[0, 120])).problems
    assert [problem.what for problem in problems] == ["it holds what lies outside its declared domain"]
    both = read_cells([*texts, "x"], "a", schema_of(kind="number", domain=[0, 120])).problems
    assert [sorted(problem.texts) for problem in both] == [[12], [3, 4, 5, 6, 7]]
    days: list[str | None] = [
        "2020-01-01",
        "2020-12-31",
        "2020",
        "2020-06",
        "2019-12-31",
        "2021-01-01",
        "2019",
        "2021",
        "*",
    ]
    dated = strange(days, kind="date", domain=["2020-01-01", "2020-12-31"])
    assert dated == ["2019-12-31", "2021-01-01", "2019", "2021"]


def test_both_ends_of_an_interval_are_read_as_their_quasi_identifier() -> None:
    schema = read_schema({"age": {"role": "quasi", "kind": "number", "domain": [0, 120]}})
    for column in ("age_min", "age_max"):
        reading = read_cells(["20", "20.0", "130"], column, schema)
        assert reading.spellings == [["20", "20.0"]]
        assert [sorted(problem.texts) for problem in reading.problems] == [[2]]


def test_where_a_problem_is() -> None:
    which = np.array([0, 2, 1, 2])
    assert (
        Problem("it is odd", frozenset({2})).told("a", which)
        == "Column 'a': it is odd in 2 records, the first is record 2."
    )
    assert (
        Problem("it is odd", frozenset({1})).told("a", which)
        == "Column 'a': it is odd in 1 record, the first is record 3."
    )
    assert "in 3 records, the first is record 2." in Problem("it is odd", frozenset({1, 2})).told("a", which)


def test_texts_of_another_table_are_read_alike() -> None:
    read = reader_of(["1", "2"], "a", schema_of())
    keys = read(["1.0", " 1", "x", None, "**"])
    assert keys[0] == keys[1] and keys[2:] == [("text", "x"), None, "*"]
    assert reader_of(["1", "x"], "a", schema_of())(["1.0"]) == [("text", "1.0")]
