"""A check-list of the five papers: every figure, table and sentence with a result, and where it is; and what every experiment covers."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from tests.reproduce.turned import set_to

from shoal.reproduce import PAPERS, Book, judged, paper
from shoal.reproduce.experiments import Cell

PAGES = Path(__file__).parents[2] / "docs" / "reproduction"

# Every figure and table that holds results, and the drawings that show them.
RESULTS: dict[str, dict[str, tuple[str, ...]]] = {
    "000": {
        "Table 1": (),
        "Fig. 1": (),
        "Fig. 3": ("000-fig-3-avg", "000-fig-3-dm"),
        "Fig. 4 left": ("000-fig-4-left",),
        "Fig. 4 right": ("000-fig-4-right",),
    },
    "001": {
        "Fig. 4": ("001-fig-4",),
        "Fig. 5": ("001-fig-5", "001-fig-5-shared"),
        "Fig. 6": ("001-fig-6",),
        "Fig. 7": ("001-fig-7",),
    },
    "002": {f"Table {i}": (f"002-table-{i}",) for i in (1, 2, 3)},
    "003": {
        "Fig. 1, Table 3": (),
        **{f"Fig. {i}({c})": (f"003-fig-{i}{c}",) for i in (4, 5) for c in "abcd"},
    },
    "004": {
        "Table 1": (),
        **{f"Fig. {i}{c}": (f"004-fig-{i}{c}",) for i in (4, 5) for c in "ab"},
        "Fig. 6": ("004-fig-6a", "004-fig-6b"),
    },
}
# Those that hold none.
OTHERS: dict[str, tuple[str, ...]] = {
    "000": ("Fig. 2",),
    "001": ("Table 1", "Table 2", "Table 3", "Fig. 1", "Fig. 2", "Fig. 3"),
    "002": ("§3",),
    "003": ("Table 1", "Table 2", "Fig. 2", "Fig. 3"),
    "004": ("Fig. 1", "Fig. 2", "Fig. 3"),
}
# What the results sections say, word for word, and of how many lines.
SAID: dict[str, dict[str, int]] = {
    "000": {
        "clearly outperform": 4,
        "no improvement": 4,
        "the optimal solution": 8,
        "performs better": 6,
        "very fast": 1,
        "faster": 2,
        "a slight advantage": 3,
        "O(n²)": 2,
        "a superior limit": 1,
        "weaker results": 8,
        "1": 2,
        "2": 2,
        "3": 1,
    },
    "001": {
        "21": 1,
        "13": 1,
        "916": 1,
        "only four": 2,
        "0 of 65": 2,
        "65": 2,
        "19": 2,
        "all constraints": 2,
        "considerably slower": 12,
        "slightly increases": 4,
        "almost independent": 4,
        "first has a linear increase": 4,
        "remains constant and even starts to decrease": 4,
        "considerably more efficient": 4,
        "significantly reduced": 2,
        "usually small": 2,
        "a reduction in large scales": 4,
        "considerably less": 4,
        "less": 4,
        "increases": 14,
    },
    "002": {
        "9.21": 1,
        "12.31": 1,
        **dict.fromkeys(("11.98", "12.09", "13.01", "30.85", "68.518"), 2),
        **dict.fromkeys(("5.58", "7.52", "11.53"), 1),
        **dict.fromkeys(("11.87", "11.58", "14.69"), 2),
        **dict.fromkeys(("7.24", "9.81", "14.42"), 1),
        **dict.fromkeys(("9.47", "12.13", "18.97"), 3),
        **dict.fromkeys(("16.42", "22.72", "30.42"), 1),
        "increases with r": 2,
        "lowest": 2,
        "a bit higher": 2,
        "outperforms": 2,
    },
    "003": {
        "much less": 4,
        "more significant": 6,
        "smoother": 1,
        "decreasing": 4,
        "not very clear": 8,
        "outliers are in groups of more than k": 4,
        "O(n²)": 2,
        "much lower": 1,
        **dict.fromkeys(("1.0", "0.5", "0.25", "1.5"), 1),
    },
    "004": {
        "13.23": 1,
        "13.4": 1,
        "12.96": 1,
        "S²": 1,
        "deteriorates": 2,
        "about the same level": 4,
        "far more efficient": 4,
        "grows": 2,
        "significantly lower": 2,
        "in every experiment": 12,
        "a very small amount": 2,
    },
}

# What the papers wish for, each in the last table of the page.
WISHED: dict[str, tuple[str, ...]] = {
    "000": ("combination", "complexity", "comparison", "EnhancedPK for"),
    "001": ("weightings", "x-means", "less time and less loss"),
    "002": ("not numbers", "more than one confidential"),
    "003": ("names no wish",),
    "004": ("p-sensitive", "releases", "less loss"),
}


def named(what: str, about: str) -> bool:
    """Whether a line is about a figure or a table, by itself or among others."""
    number = what.removeprefix("Table ")
    return what in about or (what != number and bool(re.search(rf"Tables [\d and]*\b{number}\b", about)))


@pytest.mark.parametrize("number", PAPERS)
def test_every_result_has_lines_and_drawings_and_everything_else_a_reason(number: str) -> None:
    one = paper(number)
    drawn = {figure.name: figure for figure in one.figures}
    for what, drawings in RESULTS[number].items():
        assert any(named(what, line.about) for line in one.lines), f"{what} of {number}"
        for drawing in drawings:
            assert drawn[drawing].about in what or what in drawn[drawing].about
    reasons = dict(one.without)
    assert set(reasons) == set(OTHERS[number])
    assert all(reasons.values())
    # Nothing that is drawn as a figure of the paper is missing above.
    listed = {name for drawings in RESULTS[number].values() for name in drawings}
    assert {name for name in drawn if re.search("-(fig|table)-", name)} == listed


@pytest.mark.parametrize("number", PAPERS)
def test_every_sentence_has_its_lines(number: str) -> None:
    lines = [
        line for line in paper(number).lines if line.printed not in ("", "not in the paper", "not stated", "not drawn")
    ]
    if number == "002":  # what others print of the same table
        lines = [line for line in lines if "13 attributes" not in line.what]
    counted: dict[str, int] = {}
    for line in lines:
        counted[line.printed] = counted.get(line.printed, 0) + 1
    assert counted == SAID[number]


@pytest.mark.parametrize("number", PAPERS)
def test_every_wish_is_answered(number: str) -> None:
    wishes = [one.wish for one in paper(number).wishes]
    assert len(wishes) == len(WISHED[number])
    for words in WISHED[number]:
        assert any(words in wish for wish in wishes), words


@pytest.mark.parametrize("number", PAPERS)
def test_the_page_that_is_kept_shows_them_all(number: str) -> None:
    page = (PAGES / "index.html").read_text(encoding="utf-8")
    text = unescape(re.sub(r"<[^>]*>", "", page))
    one = paper(number)
    for line in one.lines:
        assert f"{line.about}: {line.what}" in text, f"{number}: {line.about}: {line.what}"
    for figure in one.figures:
        assert f'href="{figure.name}.svg"' in page
        assert (PAGES / f"{figure.name}.svg").exists()
    for experiment in one.experiments:
        assert (PAGES / f"{experiment.name}.csv").exists()
        assert f"{experiment.setting[0].upper()}{experiment.setting[1:]}" in text
    for what, why in one.without:
        assert f"{what}: {why}." in text
    for wish in one.wishes:
        assert wish.wish in text
    assert text.count("not run") == 1  # the head of the column


@pytest.mark.parametrize("number", PAPERS)
def test_turning_the_rows_that_are_kept_turns_every_verdict(number: str) -> None:
    """At the papers' own sizes, where every line has its rows: none is decided by anything else."""
    one, book = paper(number), Book(PAGES)
    kept = {e.name: [dict(row) for row in book.of(e, False)] for e in one.experiments}
    for line in one.lines:
        if line.claim.kind != "no claim":
            rows = kept[line.experiment]
            holds = line.claim.judge(rows).holds
            assert holds is not None, line.what
            assert line.claim.judge(set_to(line.claim, rows, not holds)).holds is (not holds), line.what


def test_both_readings_stand_beside_each_other() -> None:
    """Every statement about the three layers under both, and the page counts how many hold under which."""
    page = (PAGES / "index.html").read_text(encoding="utf-8")
    for number, two in (
        ("001", ["reading “class”", "reading “inside”"]),
        ("002", ["step 4(d)i off", "step 4(d)i as printed"]),
    ):
        found: dict[str, dict[str, str]] = {}
        for one in judged(paper(number), Book(PAGES), False):
            if one.line.beside is not None:
                found.setdefault(one.line.beside[0], {})[one.line.beside[1]] = one.verdict
        assert found
        assert all(list(verdicts) == two for verdicts in found.values())
        both = sum(all(v != "not reproduced" for v in verdicts.values()) for verdicts in found.values())
        assert f"Of {len(found)} statements {both} hold under both" in page


def cells(name: str) -> list[Cell]:
    """What an experiment runs at the papers' own sizes."""
    one = next(e for e in paper(name[:3]).experiments if e.name == name)
    return list(one.cells(False))


def values(found: list[Cell], key: str) -> set[object]:
    """All settings of one thing."""
    return {cell[key] for cell in found}


def test_truta_et_al_2007_covers_every_p_with_times() -> None:
    found = cells("000-clusterings")
    assert values(found, "p") == {2, 4, 6, 8, 10}
    assert values(found, "records") == {10_000}
    assert values(found, "algorithm") >= {"enhanced_pk", "greedy_pk", "incognito"}
    assert len(values(found, "seed")) == 5


def test_rahimi_et_al_2015_covers_every_model_by_quasi_identifiers_and_by_k() -> None:
    by_attributes, by_k = cells("001-attributes"), cells("001-k")
    for found in (by_attributes, by_k):
        assert {str(model)[0] for model in values(found, "model")} == set("12345")
        assert {cell["reading"] for cell in found if str(cell["model"])[0] in "45"} == {"class", "inside"}
        assert values(found, "records") == {0}  # all of them
        assert len(values(found, "seed")) == 3
    assert values(by_attributes, "attributes") == {2, 3, 4, 5, 6, 7}
    assert all((cell["k"], cell["p"], cell["alpha"], cell["t"]) == (4, 4, 4.0, 0.5) for cell in by_attributes)
    assert {2, 100} <= values(by_k, "k")
    assert all((cell["p"], cell["t"], cell["attributes"]) == (2, 0.2, 7) for cell in by_k)
    assert {str(model)[0] for model in values(cells("001-tables"), "model")} == set("123")
    assert {str(model)[0] for model in values(cells("001-layers"), "model")} == set("45")
    explored = cells("001-xmeans")
    for key in ("kmin", "kmax", "criterion", "weighting", "scaling", "attributes", "start"):
        assert len(values(explored, key)) > 1, key


def test_domingo_ferrer_et_al_2008_covers_every_column_with_and_without_the_printed_step() -> None:
    found = cells("002-census")
    for model in ("kpqr", "kpqr, 4(d)i"):
        mine = [cell for cell in found if cell["model"] == model]
        assert {cell["r"] for cell in mine if (cell["k"], cell["values"]) == (5, "even")} == {0.1, 0.3, 0.5, 0.7, 0.9}
        for spread in ("even", "skewed"):
            assert {3, 4, 7} <= {cell["k"] for cell in mine if cell["values"] == spread and cell["r"] == 0.5}
    assert len(values(found, "seed")) == 20
    guessed = [line for line in paper("002").lines if "hypothesis" in line.note]
    assert len(guessed) == 3
    assert {line.claim.kind for line in guessed} == {"no claim"}


def test_sarrafi_aghdam_and_sonehara_2013_covers_every_k_and_size() -> None:
    found = cells("003-losses")
    assert values(found, "k") == {2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50}
    assert values(found, "records") == {500, 1000, 3000, 5000}
    assert values(found, "algorithm") >= {"spatial_distance", "incognito", "datafly"}
    assert len(values(found, "seed")) == 3


def test_truta_and_campan_2007_covers_every_k_and_change_over_several_samples() -> None:
    found = cells("004-changes")
    assert values(found, "k") == {3, 5, 10}
    assert values(found, "kind") == {"insert", "delete"}
    assert {min(values(found, "share"), key=float), max(values(found, "share"), key=float)} == {0.005, 0.5}
    assert values(found, "records") == {10_000}
    assert len(values(found, "seed")) == 5
