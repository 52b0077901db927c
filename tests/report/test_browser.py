"""The demo's report in a real browser: from disk, with the network off, at every width, light, dark and on paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.errors import call, captured, inside
from tests.report.browser import Opened, a_browser, axe

WIDTHS = (1280, 1000, 800, 600, 390, 320)

# Elements whose content is wider than they are, and drawings or words that stick out of the page.
CUT_OFF = """() => {
  const out = [];
  for (const e of document.querySelectorAll('main *, header *, footer *')) {
    if (e.closest('.scroll, .vh, .skip, details:not([open]), svg')) continue;
    const style = getComputedStyle(e), box = e.getBoundingClientRect();
    if (style.display === 'none' || style.display === 'inline' || box.width === 0) continue;
    const thead = e.closest('thead'), tiny = thead && getComputedStyle(thead).position === 'absolute';
    if (tiny) continue;
    if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0) out.push(e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 60));
    if (box.right > innerWidth + 1 || box.left < -1) out.push('sticks out: ' + e.tagName + '.' + e.className);
  }
  if (document.scrollingElement.scrollWidth > innerWidth) out.push('the page scrolls sideways');
  return out;
}"""
CHARTS = """() => [...document.querySelectorAll('svg.chart')].map(e => {
  const box = e.getBoundingClientRect(), marks = [...e.querySelectorAll('path, rect, circle')].filter(m => m.getBoundingClientRect().width > 1);
  return {id: e.querySelector('title').id, shown: box.width > 100 && box.height > 60, marks: marks.length,
          small: [...e.querySelectorAll('text')].map(t => parseFloat(getComputedStyle(t).fontSize) * box.width / e.viewBox.baseVal.width)};
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with a_browser() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the demo leaves; its report is for the owner."""
    folder = tmp_path_factory.mktemp("demo")
    with inside(folder), captured() as (_, err):
        assert call(("demo", "--folder", ".", "--records", "1200")) == 0, err.getvalue()
        assert call(("verify", "masked.csv", "--report", "public.html", "--quiet")) == 0, err.getvalue()
    return folder


@pytest.mark.parametrize("name", ["report.html", "public.html"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_from_disk_without_the_network(browser: Any, folder: Path, name: str, scheme: str) -> None:
    path = folder / name
    assert path.stat().st_size < 2_000_000
    with Opened(browser, path, scheme=scheme) as opened:
        assert opened.page.locator("h1").inner_text().startswith("This file keeps its promises.")
        colours = opened.page.evaluate(
            "() => [document.body, document.querySelector('h1')].map(e => getComputedStyle(e).color)"
        )
        paper = opened.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        # The style sheet was allowed: without it paper would have no colour.
        assert paper == ("rgb(252, 252, 250)" if scheme == "light" else "rgb(16, 23, 28)") and paper not in colours
        assert opened.asked == [path.resolve().as_uri()]
        assert opened.said == []


@pytest.mark.parametrize("name", ["report.html", "public.html"])
def test_all_charts_are_seen_and_nothing_is_cut_off(browser: Any, folder: Path, name: str) -> None:
    expected = 2 if name == "report.html" else 1
    for width in WIDTHS:
        with Opened(browser, folder / name, width=width) as opened:
            assert opened.page.evaluate(CUT_OFF) == [], f"{width} pixels"
            charts = opened.page.evaluate(CHARTS)
            seen = [chart for chart in charts if chart["shown"]]
            assert len(charts) == 2 * expected and len(seen) == expected, f"{width} pixels"
            assert all(chart["marks"] >= 2 for chart in seen)
            if width >= 390:
                assert min(size for chart in seen for size in chart["small"]) >= 10.5
            opened.page.evaluate("() => document.querySelectorAll('details').forEach(e => { e.open = true })")
            assert opened.page.evaluate(CUT_OFF) == [], f"{width} pixels, opened"


@pytest.mark.parametrize("name", ["report.html", "public.html"])
def test_axe_finds_nothing_serious(browser: Any, folder: Path, name: str) -> None:
    source = axe()
    for scheme, width in (("light", 1100), ("dark", 1100), ("light", 390)):
        with Opened(browser, folder / name, width=width, scheme=scheme) as opened:
            opened.page.evaluate("() => document.querySelectorAll('details').forEach(e => { e.open = true })")
            opened.page.evaluate(source)
            found = opened.page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
            serious = [
                (one["id"], one["nodes"][0]["html"][:200], one["nodes"][0].get("failureSummary", "")[:300])
                for one in found["violations"]
                if one["impact"] in ("serious", "critical")
            ]
            assert serious == [], f"{scheme}, {width} pixels"
            assert len(found["passes"]) > 10


def test_it_prints_on_a_few_pages_of_a4(browser: Any, folder: Path) -> None:
    pdf = pytest.importorskip("pypdfium2", reason="pypdfium2 is not installed")
    with Opened(browser, folder / "report.html", scheme="dark") as opened:
        document = pdf.PdfDocument(opened.page.pdf(prefer_css_page_size=True, print_background=True))
        try:
            assert 2 <= len(document) <= 5
            width, height = document[0].get_size()
            assert abs(width - 595) < 2 and abs(height - 842) < 2
            first = " ".join(document[0].get_textpage().get_text_range().split())
            # The verdict and the four numbers are on the first page.
            assert "This file keeps its promises." in first and "best chance to pick the right one" in first
            pages = [document[i].get_textpage().get_text_range() for i in range(len(document))]
            everything = " ".join(" ".join(pages).split())
            assert "Reproduce it" in everything and "Class sizes as a table" not in everything
        finally:
            document.close()
