"""The pictures of docs/report.md and docs/studio.md: the demo's own report, a notebook's own cards, the studio's pages.

`make pictures` draws them all with Chromium, the report from disk with the network off; look at them before they are committed.
"""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.browser import chromium

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
COLOURS = 256
"""A palette keeps pictures small; text stays sharp."""


def main() -> None:
    """Draw them all."""
    from playwright.sync_api import sync_playwright

    path = chromium()
    if path is None:
        raise SystemExit("No Chromium: apt-get install chromium.")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        shoal = [sys.executable, "-m", "shoal"]
        subprocess.run([*shoal, "demo", "--folder", str(folder), "--quiet"], check=True)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        report = folder / "report.html"
        for kind, width, height, scheme in (
            ("light", 1040, 0, "light"),
            ("top", 1040, 930, "light"),
            ("dark", 1040, 1560, "dark"),
            ("phone", 390, 2600, "light"),
        ):
            page = _opened(browser, report, width, scheme)
            shot = page.screenshot(full_page=True, clip=_clip(page, width, height))
            _save(shot, f"report-{kind}.png")
        cards = folder / "cards.html"
        cards.write_text(_cards(folder), encoding="utf-8")
        for kind, scheme in (("light", "light"), ("dark", "dark")):
            page = _opened(browser, cards, 800, scheme)
            _save(page.screenshot(full_page=True), f"cards-{kind}.png")
        page = _opened(browser, report, 1040, "light")
        _save_pages(page.pdf(prefer_css_page_size=True, print_background=True), "report-print.png")
        _studio(browser, folder / "studio")
        browser.close()


def _studio(browser: Any, folder: Path) -> None:
    """Every page of the studio with the made-up hospital and three candidates, light, dark and at the width of a phone."""
    words = [sys.executable, "-m", "shoal", "studio", "--folder", str(folder), "--port", "0", "--no-browser", "--json"]
    served = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert served.stdout is not None
        start = json.loads(served.stdout.readline())["url"]
        page = _inside(browser, start, 1240, "light")
        page.get_by_role("button", name="Open the made-up hospital").click()
        page.get_by_role("heading", name="What is in each column?").wait_for()
        for k in (5, 10, 20):
            _ask(page, "/policy/k", {"k": str(k)})
            _ask(page, "/run/make", {"algorithm": "auto", "effort": "fast"})
        page.goto(start.partition("?")[0] + "run")
        page.wait_for_function("() => document.querySelectorAll('.v-holds').length >= 3")
        _ask(page, "/release/make", {"candidate": "B"})
        _ask(page, "/evolve/create", {"key": "record", "guard": "batching"})
        _settled(page, start, "evolve")
        _ask(page, "/evolve/release", {})
        for kind, width, scheme in (("light", 1240, "light"), ("dark", 1240, "dark"), ("phone", 390, "light")):
            page = _inside(browser, start, width, scheme)
            for name in ("data", "taxonomies", "policy", "run", "compare", "release", "evolve"):
                _settled(page, start, name)
                shot = page.screenshot(full_page=True, clip=_clip(page, width, 1500))
                _save(shot, f"studio-{name}-{kind}.png")
    finally:
        served.send_signal(signal.SIGINT)
        served.wait(30)


def _inside(browser: Any, start: str, width: int, scheme: str) -> Any:
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, locale="en-GB").new_page()
    page.set_default_timeout(300_000)
    page.goto(start)
    page.wait_for_url("**/data")
    return page


def _ask(page: Any, path: str, fields: dict[str, str]) -> None:
    """What a button of a page asks for; the next thing waits until it is done."""
    sent = (
        """async ([path, fields]) => (await fetch(path, {method: "POST", body: new URLSearchParams(fields)})).status"""
    )
    assert page.evaluate(sent, [path, fields]) == 200, path
    page.wait_for_function(
        """async () => !(await (await fetch("/jobs.json")).json()).jobs.some(job => ["waiting", "running"].includes(job.state))"""
    )


def _settled(page: Any, start: str, name: str) -> None:
    """A page on which nothing is waited for any more."""
    page.goto(start.partition("?")[0] + name)
    page.locator("h1").wait_for()
    page.wait_for_function("() => !document.querySelector('[data-job]')")


def _cards(folder: Path) -> str:
    """The cards that the example notebook shows when it runs, one below the other."""
    import nbclient
    import nbformat

    notebook = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    shown = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    style = "<style>:root{color-scheme:light dark}body{margin:16px;display:grid;gap:16px}</style>"
    return f"<!doctype html><meta charset=utf-8>{style}{''.join(shown)}"


def _opened(browser: Any, path: Path, width: int, scheme: str) -> Any:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_offline(True)
    page = context.new_page()
    page.goto(path.resolve().as_uri())
    return page


def _clip(page: Any, width: int, height: int) -> dict[str, float]:
    """The first so many pixels, or all."""
    whole = int(page.evaluate("() => document.scrollingElement.scrollHeight"))
    return {"x": 0, "y": 0, "width": width, "height": min(whole, height or whole)}


def _save(shot: bytes, name: str) -> None:
    from PIL import Image

    _write(Image.open(io.BytesIO(shot)), name)


def _write(image: Any, name: str) -> None:
    image.convert("RGB").quantize(COLOURS, dither=0).save(IMAGES / name, optimize=True)
    sys.stdout.write(f"{name}: {(IMAGES / name).stat().st_size / 1000:.0f} kB, {image.width} × {image.height}\n")


def _save_pages(pdf: bytes, name: str) -> None:
    """The pages of a document side by side."""
    import pypdfium2
    from PIL import Image

    document = pypdfium2.PdfDocument(pdf)
    pages = [document[i].render(scale=1.15).to_pil() for i in range(len(document))]
    gap = 12
    width, height = sum(page.width + gap for page in pages) + gap, pages[0].height + 2 * gap
    sheet = Image.new("RGB", (width, height), "#7d878e")
    at = gap
    for page in pages:
        sheet.paste(page, (at, gap))
        at += page.width + gap
    _write(sheet, name)


if __name__ == "__main__":
    main()
