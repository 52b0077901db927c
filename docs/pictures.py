"""The pictures of docs/report.md, from the demo's own report and a notebook's own cards: `make pictures`.

Chromium draws them from disk with the network off; look at them before they are committed.
"""

from __future__ import annotations

import io
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
        browser.close()


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
