"""The rows that are kept are what today's code makes: a few of every file, made again and compared to the last bit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.reproduce.test_quick import needs_data

from shoal.algorithms.levels import full_domain
from shoal.progress import Progress
from shoal.reproduce import PAPERS, Book, paper
from shoal.reproduce.experiments import Cell
from shoal.reproduce.tables import TABLE_2, adult_with_diseases

PAGES = Path(__file__).parents[2] / "docs" / "reproduction"
THREE = "5: (k, p+, t)"
# Cells that are cheap at the papers' own sizes, and of every algorithm; the first one of files that are not named.
AGAIN: dict[str, list[Cell]] = {
    "000-clusterings": [
        {"algorithm": "enhanced_pk", "p": 10},
        {"algorithm": "greedy_pk", "p": 4, "seed": 3},
        {"algorithm": "incognito"},
        {"algorithm": "auto", "p": 8},
    ],
    "000-models": [{"model": "t-closeness, t = 0.3", "algorithm": "mondrian"}, {"algorithm": "enhanced_pk"}],
    "001-attributes": [{"attributes": 2}, {"model": THREE, "reading": "class", "attributes": 2, "seed": 1}],
    "001-k": [{"model": THREE, "reading": "class", "k": 100, "seed": 2}],
    "001-layers": [{"model": THREE, "reading": "class"}],
    "001-xmeans": [{"change": "kmax = 20"}],
    "002-census": [
        {"model": "k-anonymity", "k": 5},
        {"model": "p-sensitive", "k": 5, "seed": 3},
        {"model": "kpqr", "r": 0.9, "seed": 3},
        {"model": "kpqr, 4(d)i", "values": "skewed", "k": 7, "r": 0.9, "seed": 19},
    ],
    "002-mixed": [{"keys": "mixed", "confidential": 2, "k": 7}],
    "003-losses": [
        {"records": 500, "k": 10, "seed": 2, "algorithm": name}
        for name in ("spatial_distance", "mondrian strict", "mondrian relaxed", "incognito", "datafly", "k_member")
    ],
    "004-changes": [{"kind": "insert"}, {"kind": "delete", "k": 10, "share": 0.2, "seed": 4}],
    "004-p-sensitive": [{"kind": "delete", "share": 0.01}],
}
CASES = [
    (experiment.name, where)
    for number in PAPERS
    for experiment in paper(number).experiments
    for where in AGAIN.get(experiment.name, [{}])
]
# What one machine and one hour decide.
SECONDS = re.compile("second|total|optimizing|preparing|shared$|took")


@needs_data
@pytest.mark.parametrize(("name", "where"), CASES, ids=[f"{name} {where}" for name, where in CASES])
def test_the_rows_that_are_kept_come_out_again(name: str, where: Cell) -> None:
    experiment = next(one for one in paper(name[:3]).experiments if one.name == name)
    cell = next(cell for cell in experiment.cells(False) if where.items() <= cell.items())
    kept = Book(PAGES).known(experiment, [cell])[0]
    assert kept is not None
    made = {**cell, **experiment.run(cell, Progress())}
    assert {k: v for k, v in kept.items() if not SECONDS.search(k)} == {
        k: v for k, v in made.items() if not SECONDS.search(k)
    }


@needs_data
def test_taxonomies_have_the_levels_of_table_2_of_rahimi_et_al_2015() -> None:
    printed = {"age": 5, "workclass": 3, "education": 4, "native-country": 3, "marital-status": 3, "race": 3, "sex": 2}
    edges = full_domain(adult_with_diseases(n=500)).heights
    ours = {name: height + 1 for name, height in zip(TABLE_2, edges, strict=True)}
    assert ours == {**printed, "race": 2}  # which the settings on the page say


def test_no_file_has_a_row_twice_or_one_that_nobody_asks_for() -> None:
    for number in PAPERS:
        for experiment in paper(number).experiments:
            rows = Book(PAGES).open(experiment)
            cells = experiment.cells(False)
            assert len(rows) == len(cells), experiment.name
            assert len(Book(PAGES).of(experiment, False)) == len(cells), experiment.name
