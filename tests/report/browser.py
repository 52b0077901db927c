"""A report in a real Chromium, from disk, with the network off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tools.browser import chromium


@contextmanager
def a_browser() -> Iterator[Any]:
    """Debian's Chromium, driven by Playwright; the test is skipped where one of them is missing."""
    driver = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install -e '.[dev]'")
    path = chromium()
    if path is None:
        pytest.skip("no Chromium on the path: apt-get install chromium, or SHOAL_CHROMIUM=/path/to/it")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


class Opened:
    """A page, and all that it asked for and complained about."""

    def __init__(self, browser: Any, path: Path, width: int = 1100, height: int = 900, scheme: str = "light") -> None:
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.context.set_offline(True)
        self.asked: list[str] = []
        self.said: list[str] = []
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda problem: self.said.append(str(problem)))
        self.page.goto(path.resolve().as_uri())

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


def axe() -> str:
    """axe-core, as the package that drives it from Playwright carries it."""
    package = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    return next(Path(package.__file__).parent.rglob("axe.min.js")).read_text(encoding="utf-8")
