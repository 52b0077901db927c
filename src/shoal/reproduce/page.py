"""The page of a reproduction: what came out, how it was made and how to cite it, then paper by paper."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from shoal import exact
from shoal.io.atomic import atomic_path
from shoal.report.icons import SHOAL
from shoal.report.markup import Html, element
from shoal.report.page import style
from shoal.reproduce.experiments import Book, Judged, Paper, judged
from shoal.reproduce.figures import standalone
from shoal.reproduce.sections import LOOKS, paper_section, wishes_section
from shoal.version import VERSION

OTHER = (
    (
        "(c, k)-safety, named and not defined",
        "docs/measures.md#background-knowledge",
        "shoal attack: the most that any k implications tell (Martin et al. 2007), which is the least c",
    ),
    (
        "m-confidentiality, named and not defined",
        "docs/measures.md#minimality",
        "shoal attack: m is one over the largest posterior of the minimality attack (Wong et al. 2007)",
    ),
)
"""What Domingo-Ferrer et al. 2008 name in half a sentence: what it is, where it is, and what it gives."""
LOOK = """
section.paper { display: block } section.paper > h2 { margin-bottom: var(--s4) }
.open > p, .open > pre { max-width: var(--measure); margin-block: var(--s4) }
.open h2, .paper h3 { font: 650 var(--text-m)/1.35 var(--face-plain); margin: var(--s4) 0 0; scroll-margin-top: var(--s4) }
.paper a, .open a { color: var(--accent) }
.paper ul { padding-left: 1.2em }
.paper figure { min-width: 0 } .paper figcaption { font-weight: 600; margin-bottom: var(--s2) }
.paper svg.chart { min-width: 32rem }
.paper details { margin-top: var(--s2) }
.paper td > a.num { color: var(--ink-2); font-size: var(--text-xs); text-decoration: none }
.lines td, .wishes td { overflow-wrap: anywhere } tr:has(:target) { background: var(--panel) }
@media (min-width: 40.01rem), print {
  .lines th:nth-child(1) { width: 39% } .lines th:nth-child(2) { width: 15% } .lines th:nth-child(4) { width: 16% }
  .counts th:nth-child(1) { width: 34% }
  .beside th:nth-child(1) { width: 56% } .wishes th:nth-child(1) { width: 8% } .wishes th:nth-child(3) { width: 22% }
}
.numbers.tight { max-width: none } .numbers td { white-space: normal }
@media screen and (max-width: 40rem) {
  .stack td:empty { display: none }
  .stack td[data-l] { text-align: right } .stack td[data-l]::before { flex: none; max-width: 60%; text-align: left }
}
@media print {
  section.paper { padding-left: 0 } section.paper > h2 { position: static; width: auto }
  .paper svg.chart { min-width: 0 }
}
"""
"""Tables across the whole page, where a report has its headings beside them."""


def publish(papers: Sequence[Paper], book: Book, quick: bool, folder: Path) -> Path:
    """Write every figure that has rows, and the page."""
    colours = _colours()
    for paper in papers:
        by_name = {one.name: one for one in paper.experiments}
        for figure in paper.figures:
            rows = book.of(by_name[figure.experiment], quick)
            if figure.points(rows):
                with atomic_path(folder / f"{figure.name}.svg", force=True) as temporary:
                    temporary.write_text(standalone(figure, rows, colours), encoding="utf-8")
    place = folder / "index.html"
    with atomic_path(place, force=True) as temporary:
        temporary.write_text(page(papers, book, quick), encoding="utf-8")
    return place


def page(papers: Sequence[Paper], book: Book, quick: bool) -> str:
    """The page as HTML: one file, no script, no network."""
    css = style("tokens.css", "report.css") + LOOK
    allowed = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'; img-src data:; base-uri 'none'; form-action 'none'"
    title = "The papers, reproduced"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width,initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="generator", content=f"Shoal {VERSION} reproduction"),
        element("title", title),
        Html(f"<style>{css}</style>"),
    )
    sizes = "small samples and few seeds (--quick)" if quick else "the papers' own sizes"
    top = element(
        "header",
        element("span", SHOAL, element("b", "Shoal"), " reproduction"),
        element("span", f"version {VERSION} · ", element("b", sizes)),
        class_="top",
    )
    found = {paper.number: list(judged(paper, book, quick)) for paper in papers}
    parts = [
        _opening(papers, found, _spent(papers, book, quick), quick),
        *(paper_section(paper, found[paper.number], book, quick) for paper in papers),
        wishes_section(papers, OTHER, book, quick),
    ]
    body = element("body", top, element("main", *parts, id="main"), element("footer", element("p", CLOSING)))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


CLOSING = (
    "Verdicts are computed from the rows in the CSV files beside this page, which also have the seeds and settings of every run. "
    "Seconds are processor seconds of one machine: only their order is compared. This file contains no script and asks the "
    "network for nothing."
)
KINDS = (*LOOKS, "no claim", "not run")


def _opening(papers: Sequence[Paper], found: Mapping[str, Sequence[Judged]], spent: str, quick: bool) -> Html:
    rows, total = [], Counter[str]()
    for paper in papers:
        counts = Counter(str(one.verdict) for one in found[paper.number])
        total += counts
        name = element("a", f"{paper.number}: {paper.title.partition(':')[0]}", href=f"#p{paper.number}")
        rows.append(_counted(name, counts))
    if len(papers) > 1:
        rows.append(_counted("all", total))
    head = element(
        "tr", element("th", "paper", scope="col"), *(element("th", text, scope="col", class_="num") for text in KINDS)
    )
    words = element(
        "p",
        "Each line is one statement or number of a paper, held against rows of data. Equal: to the printed digits. Within "
        "spread: the printed number lies within three standard deviations of the mean over the seeds. Qualitatively: the "
        "inequality that the line names is true of the rows. Not reproduced: it is not. No claim: a comparison of ours, or "
        "a figure the paper says nothing about, which counts for nothing. In figures points are means over the seeds, bars "
        "reach one standard deviation each way, and large hollow marks are what the paper prints.",
    )
    table = element("table", element("thead", head), element("tbody", *rows), class_="counts stack")
    return element(
        "section", element("h1", "The papers, reproduced"), words, table, *_again(spent, quick), class_="open"
    )


def _counted(name: str, counts: Mapping[str, int]) -> Html:
    cells = (element("td", f"{counts.get(kind, 0)}", class_="num", data_l=kind) for kind in KINDS)
    return element("tr", element("th", name, scope="row"), *cells)


def _again(spent: str, quick: bool) -> list[Html]:
    """How to run it again, and how to cite it."""
    command = f"shoal reproduce all{' --quick' if quick else ''} --out FOLDER"
    return [
        element("h2", "To run it again"),
        element("pre", command),
        element(
            "p",
            "SHOAL_DATA names the folder with Adult (UCI Machine Learning Repository, adult.data and adult.test, records "
            "without a missing value) and Census (the CASC project, 1,080 records of 13 numbers). "
            f"{spent}An interrupted run goes on where it stopped. Figures other than times come out the same on every "
            "machine; the tests make single rows of every file again.",
        ),
        element("h2", "To cite it"),
        element(
            "p",
            "Cite the paper itself, and a line of this page by its number (the link before it): "
            f"“Shoal {VERSION}, The papers, reproduced, line 003.1”. The rows behind it are in the CSV file that its "
            "experiment names, each with its settings, its seed and the version that made it.",
        ),
    ]


def _spent(papers: Sequence[Paper], book: Book, quick: bool) -> str:
    """How long all rows took, where every one of them says so; those of older runs do not."""
    rows = [row for paper in papers for experiment in paper.experiments for row in book.of(experiment, quick)]
    known = [float(row["took"]) for row in rows if row["took"] != ""]
    return (
        f"All rows of this page took {exact.total(known) / 60:.0f} processor minutes. "
        if len(known) == len(rows)
        else ""
    )


def _colours() -> dict[str, str]:
    """The variables of light paper, for figures in files of their own."""
    light = style("tokens.css").split("@media")[0]
    return dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]+)", light))
