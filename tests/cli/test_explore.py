"""compare and explore on the command line: readable at eighty columns, charts whole or not at all, sentences for mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.errors import call, captured
from typer.testing import CliRunner

from shoal.cli.app import app
from shoal.datasets import TAXONOMIES, hospital, hospital_config, taxonomy_path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hospital")
    hospital(400, 1).write_csv(place / "patients.csv")
    for name in TAXONOMIES:
        (place / f"{name}.csv").write_bytes(taxonomy_path(name).read_bytes())
    (place / "shoal.toml").write_text(hospital_config("patients.csv"), encoding="utf-8")
    return place


def run(folder: Path, *words: str) -> Any:
    return CliRunner().invoke(app, [words[0], "-c", str(folder / "shoal.toml"), *words[1:]], env={"COLUMNS": "80"})


def test_compare_is_readable_at_eighty_columns(folder: Path) -> None:
    found = run(folder, "compare", "-a", "mondrian,greedy_pk,incognito")
    assert found.exit_code == 0, found.output
    table = found.stdout[found.stdout.index("Side by side") :]
    for name in ("mondrian", "greedy_pk"):
        assert name in table
    assert max(map(len, table.splitlines()[:8])) <= 80
    assert "…" not in table


def test_a_chart_of_each(folder: Path) -> None:
    compared, explored = folder / "compare.svg", folder / "explore.svg"
    assert run(folder, "compare", "-a", "mondrian,datafly", "--chart", str(compared)).exit_code == 0
    found = run(folder, "explore", "-a", "mondrian", "--vary", "k=5,10,20", "--chart", str(explored), "--json")
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert [point["asked"]["k"] for point in told["points"]] == [5, 10, 20]
    for path, words in ((compared, ("mondrian", "seconds")), (explored, ("proven least", "best found"))):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("<svg")
        assert all(word in text for word in words)
    with captured() as (_, err):
        code = call(["compare", "-c", str(folder / "shoal.toml"), "-a", "mondrian", "--chart", str(compared)])
    assert code == 2
    assert "--force" in err.getvalue()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("explore", "--vary", "k"), "such as k=2,5,10"),
        (("explore", "--vary", "k=two"), "such as k=2,5,10"),
        (("explore", "--chart", "picture.bmp"), "ending"),
        (("compare", "-a", "mondrain"), "did you mean 'mondrian'"),
    ],
)
def test_mistakes_get_a_sentence(folder: Path, words: tuple[str, ...], said: str) -> None:
    with captured() as (_, err):
        code = call([words[0], "-c", str(folder / "shoal.toml"), *words[1:]])
    assert code == 2
    assert said in err.getvalue()
