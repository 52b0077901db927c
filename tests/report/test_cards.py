"""Cards of notebooks: what they say is what was found, nothing of the original is in them, and a notebook shows them."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.report.test_canaries import Reader, a_table
from tests.report.test_report import words

import shoal
from shoal.report.cards import CARDS, card, compose

ROOT = Path(__file__).parents[2]


def a_release() -> tuple[pl.DataFrame, dict[str, Any], shoal.Release]:
    frame, schema = a_table(1)
    return frame, schema, shoal.anonymize(frame, {"k": 3}, schema=schema, algorithm="mondrian", refine=False)


NAMES = ("Attacks", "Audit", "Comparison", "Evidence", "Frontier", "Measured", "Microdata", "Profile", "Release")


@pytest.fixture(scope="module")
def things() -> dict[str, Any]:
    frame, schema, release = a_release()
    from shoal.evolve.releases.history import Audit

    return {
        "Release": release,
        "Evidence": release.evidence,
        "Microdata": release.data,
        "Profile": shoal.profile(frame),
        "Attacks": shoal.attack(release),
        "Measured": shoal.measure(frame, release, schema),
        "Audit": Audit(2),
        "Comparison": shoal.compare(release.data, {"k": 3}, algorithms=["mondrian", "datafly"], limit=600),
        "Frontier": shoal.explore(release.data, {"k": 3}, vary={"k": [2, 3, 6]}, algorithms=["mondrian"]),
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_card_is_harmless_and_shows_no_raw_value(things: dict[str, Any], name: str) -> None:
    frame, schema, release = a_release()
    text = things[name]._repr_html_()
    read = Reader(text)
    assert "script" not in read.tags and not [one for one in read.attributes if one.startswith("on") or one == "style"]
    assert text.startswith('<div class="shoal-card">') and re.search(r"<p class=\"title\">[^<]{5,}", text)
    told = html.unescape(re.sub(r"\d*\.\d+", "", text)).replace(",", "") + repr(things[name])
    shown = " ".join(str(value) for column in release.masked.iter_columns() for value in column)
    published = set(re.findall(r"\d{9}", shown))
    masked = [column for column, attribute in schema.items() if attribute["role"] in ("identifier", "quasi")]
    raw = set(re.findall(r"\d{9}", " ".join(str(value) for column in masked for value in frame[column]))) - published
    assert len(raw) > 20 and not raw & set(re.findall(r"\d{9}", told))


def test_these_have_cards(things: dict[str, Any]) -> None:
    assert set(NAMES) == set(things) <= set(CARDS)


def test_a_release_says_its_verdict_and_its_numbers(things: dict[str, Any]) -> None:
    release = things["Release"]
    told = words(release._repr_html_())
    assert "the promise holds" in told and f"Release: {release.masked.height} records in 5 columns" in told
    assert f"at least 3 records asked 3 found {release.evidence.smallest} holds" in told
    assert '<svg class="chart' in release._repr_html_()
    failing = shoal.verify(release.masked, {"k": 30}, release.data.schema)
    assert "the promise fails" in words(failing._repr_html_()) and "holds" not in words(failing._repr_html_())


def test_comparisons_and_frontiers_say_what_is_best_and_what_it_costs(things: dict[str, Any]) -> None:
    comparison, frontier = things["Comparison"], things["Frontier"]
    told = words(comparison._repr_html_())
    assert "2 algorithms side by side" in told
    assert f"by {comparison.best.algorithm}, the least" in told
    told = words(frontier._repr_html_())
    assert all(f"k = {k}" in told for k in (2, 3, 6))
    assert "no less than" in told


def test_reprs_print_no_record(things: dict[str, Any]) -> None:
    release = things["Release"]
    for thing in (release, release.data):
        assert "shape" not in repr(thing) and len(repr(thing)) < 400
    assert (
        repr(release)
        == f"<Release of {release.masked.height} records in {release.evidence.classes} classes; k_anonymity(k = 3) holds>"
    )


def test_a_card_of_anything_is_composed_of_pieces() -> None:
    text = compose("a < b", state="fails", stamp="no", facts=[("4", "in all")], note="x & y")
    assert "a &lt; b" in text and "v-fails" in text and "x &amp; y" in text
    assert card(3.5) == "<pre>3.5</pre>"


def test_the_example_notebook_runs_and_shows_its_cards(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install -e '.[dev]'")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    notebook = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "the notebook is kept without its outputs"
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    cards = [
        output["data"]["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    titles = [words(re.search(r'<p class="title">(.*?)</p>', one)[1]) for one in cards]  # type: ignore[index]
    assert [title.split(":")[0].split(" of ")[0] for title in titles] == [
        "Suggested roles", "Table", "Release", "Verified", "Attacked", "What masking cost",
    ]  # fmt: skip
    plain = [o["data"]["text/plain"] for cell in notebook.cells for o in cell.get("outputs", []) if "data" in o]
    assert not any("shape:" in text for text in plain)
    assert (tmp_path / "report.html").is_file()
