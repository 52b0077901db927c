"""The page that is kept, in a real browser: from disk, without the network, light and dark, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report.browser import Opened, a_browser
from tests.report.test_browser import CUT_OFF

PAGE = Path(__file__).parents[2] / "docs" / "reproduction" / "index.html"

# Words of drawings whose contrast with the page is below 4.5 to 1.
FAINT = """() => {
  const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(x => x / 255).map(x => x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll('svg.chart text')].filter(e => {
    const ink = light(getComputedStyle(e).fill);
    return (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05) < 4.5;
  }).map(e => e.textContent);
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with a_browser() as found:
        yield found


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_everything_can_be_read(browser: Any, scheme: str, width: int) -> None:
    with Opened(browser, PAGE, width=width, scheme=scheme) as opened:
        page = opened.page
        assert page.locator("h1").inner_text() == "The papers, reproduced"
        page.evaluate("() => document.querySelectorAll('details').forEach(e => e.open = true)")
        assert page.evaluate(CUT_OFF) == []
        # The words of legends were once black on a dark page.
        assert page.evaluate(FAINT) == []
        assert page.locator("svg.chart").count() > 25
        assert opened.asked == [PAGE.resolve().as_uri()]
        assert opened.said == []


def test_a_line_is_found_by_its_number(browser: Any) -> None:
    with Opened(browser, PAGE) as opened:
        for number in ("000", "001", "002", "003", "004"):
            one = opened.page.locator(f"[id='L{number}.1']")
            assert one.count() == 1
            assert one.locator("a").get_attribute("href") == f"#L{number}.1"
        # What a figure draws stands below it in numbers, the paper's beside ours.
        table = opened.page.locator("figure:has(svg[aria-labelledby*='002-table-1']) details")
        table.locator("summary").click()
        assert "paper: 68.518" in table.inner_text()
