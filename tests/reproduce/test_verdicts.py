"""No verdict is a constant: whatever a line claims, there are rows that make it true and rows that make it false."""

from __future__ import annotations

import pytest
from tests.reproduce.turned import off_at_one, rows_for

from shoal.reproduce import PAPERS, paper
from shoal.reproduce.experiments import Line
from shoal.reproduce.verdicts import Below, Finding, Ordered, Prints, Shown, Smoother, Spread, Within, told

CLAIMED = [
    pytest.param(line, id=f"{number}: {line.about}: {line.what}")
    for number in PAPERS
    for line in paper(number).lines
    if line.claim.kind != "no claim"
]


@pytest.mark.parametrize("line", CLAIMED)
def test_data_decide_every_verdict(line: Line) -> None:
    claim = line.claim
    assert claim.verdict(rows_for(claim, True))[0] == claim.kind
    assert claim.verdict(rows_for(claim, False))[0] == "not reproduced"
    assert claim.verdict([])[0] == "not run"


@pytest.mark.parametrize("line", CLAIMED)
def test_one_setting_or_run_that_says_otherwise_is_enough(line: Line) -> None:
    claim = line.claim
    rows = off_at_one(claim, rows_for(claim, True))
    if rows is not None:
        assert claim.verdict(rows)[0] == "not reproduced"


def test_what_is_no_claim_counts_for_nothing_whatever_the_rows() -> None:
    found = [line for number in PAPERS for line in paper(number).lines if line.claim.kind == "no claim"]
    assert found
    assert all(isinstance(line.claim, Shown) for line in found)
    rows = [{"k": 2, "loss": 1.0}]
    assert Shown("loss", "k").verdict(rows) == ("no claim", "2: 1")


@pytest.mark.parametrize("number", PAPERS)
def test_every_line_belongs_to_an_experiment_and_is_told_apart(number: str) -> None:
    found = paper(number)
    names = {one.name for one in found.experiments}
    assert {line.experiment for line in found.lines} <= names
    assert {figure.experiment for figure in found.figures} <= names
    assert {wish.experiment for wish in found.wishes} <= {*names, ""}
    keys = [(line.about, line.what) for line in found.lines]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    ("value", "printed", "rounded", "holds"),
    [
        (5.58723, "5.58", False, True),
        (5.58723, "5.59", False, False),
        (5.58723, "5.59", True, True),
        (12.966666, "12.96", False, True),
        (13.4, "13.4", False, True),
        (0.25, "0.25", False, True),
        (13.39999, "13.4", False, False),
        (916.0, "916", False, True),
        (915.0, "916", False, False),
    ],
)
def test_printed_numbers_are_compared_to_their_last_digit(
    value: float, printed: str, rounded: bool, holds: bool
) -> None:
    assert Prints("x", printed, {}, rounded).judge([{"x": value}]).holds is holds


def test_a_printed_number_has_to_come_out_of_every_run() -> None:
    assert Prints("x", "2", {}).judge([{"x": 2}, {"x": 3}]).holds is False


def test_spread_says_its_rule_and_its_seeds() -> None:
    claim, rows = Spread("loss", 16.0), [{"loss": value} for value in (9.0, 11.0, 10.0)]
    assert "3 standard deviations" in claim.says
    assert claim.verdict(rows) == ("not reproduced", "10.00 ± 1.00 (3 seeds)")
    assert Spread("loss", 13.0).verdict(rows)[0] == "within spread"
    assert Spread("loss", 13.001).verdict(rows)[0] == "not reproduced"


def test_the_lowest_is_lower_than_each_of_the_others() -> None:
    rows = [
        {"k": k, "tool": tool, "loss": loss}
        for k, tool, loss in ((2, "a", 1), (2, "b", 2), (2, "c", 0.5), (4, "a", 1), (4, "b", 2))
    ]
    others = ({"tool": "b"}, {"tool": "c"})
    assert Below("loss", "k", {"tool": "a"}, others[:1]).judge(rows).holds
    assert not Below("loss", "k", {"tool": "a"}, others).judge(rows).holds
    assert not Below("loss", "k", {"tool": "a"}, ({"tool": "a"},)).judge(rows).holds
    assert Below("loss", "k", {"tool": "a"}, ({"tool": "a"},), strict=False).judge(rows).holds


@pytest.mark.parametrize(
    ("order", "values", "holds"),
    [
        ("rises", (1, 2, 3), True),
        ("rises", (1, 2, 2), False),
        ("falls", (3, 2, 1), True),
        ("falls", (3, 3, 1), False),
        ("bends", (1, 3, 2), True),
        ("bends", (1, 2, 2), False),
        ("lags", (4, 4, 4), True),
        ("lags", (1, 2, 3), False),
        ("squares", (1, 5, 9), True),
        ("squares", (1, 4, 9.1), False),
        ("begins", (1, 2, 0), True),
        ("begins", (1, 1, 5), False),
        ("peaks", (1, 3, 2), True),
        ("peaks", (1, 3, 3), False),
    ],
)  # fmt: skip
def test_orders(order: str, values: tuple[float, ...], holds: bool) -> None:
    rows = [{"n": n, "x": value} for n, value in zip((1, 2, 3), values, strict=True)]
    assert Ordered("x", "n", {}, order).judge(rows).holds is holds  # type: ignore[arg-type]


def test_a_smoother_curve_bends_less() -> None:
    curves = {500: (0.1, 0.5, 0.4, 0.9), 5000: (0.1, 0.2, 0.4, 0.5)}
    rows = [{"n": n, "k": k, "x": x} for n, values in curves.items() for k, x in zip((2, 4, 6, 8), values, strict=True)]
    claim = Smoother("x", "k", "n")
    assert claim.judge(rows) == Finding(True, "500: 0.55; 5000: 0.1")
    other = [{**row, "n": 5500 - row["n"]} for row in rows]
    assert claim.judge(other).holds is False
    # A straight line has no bends, however steep; two points say nothing.
    assert claim.judge([*rows[:4], *({"n": 9, "k": k, "x": 7 * k} for k in (2, 4, 9))]).holds is False
    assert claim.judge([row for row in rows if row["k"] < 5]).holds is None


def test_what_is_tested_is_said_in_words() -> None:
    assert Prints("k", "3").says == "k = 3"
    assert Prints("il", "12.96").says == "il = 12.96, cut off at its last digit"
    one, other = {"tool": "a"}, ({"tool": "b"},)
    assert Below("loss", "k", one, other).says == "loss(a) < loss(b) at every k"
    assert Below("loss", "k", one, other, where={"k": 5, "n": 9}).says == "loss(a) < loss(b) at k = 5 (n = 9)"


def test_limits() -> None:
    rows = [{"classes": 3, "bound": 3}, {"classes": 2, "bound": 3}]
    assert Within("classes", "bound").judge(rows).holds
    assert not Within("classes", "bound", {}, "<").judge(rows).holds
    assert not Within("classes", "bound", {}, "=").judge(rows).holds
    assert "1 of 2 runs" in Within("classes", "bound", {}, "=").judge(rows).ours


def test_numbers_as_people_read_them() -> None:
    assert [told(x) for x in (0.0, 3.0, 0.30534, 12.0249, 398790.5, float("inf"))] == [
        "0",
        "3",
        "0.3053",
        "12.02",
        "398,790",
        "inf",
    ]
