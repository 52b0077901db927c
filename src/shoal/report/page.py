"""The page: one file, no script, no network, for screens and paper."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from shoal.report import sections
from shoal.report.findings import Findings
from shoal.report.icons import SHOAL
from shoal.report.markup import Html, counted, element, joined, plain, shown
from shoal.report.opening import four, opening
from shoal.version import VERSION

GENERATOR = f"Shoal {VERSION} release report"
"""By this a file is known as one of ours, which a newer one may replace."""


@cache
def style(*names: str) -> str:
    """The style sheets, as they lie in the package."""
    folder = files("shoal.report")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def page(found: Findings) -> str:
    """The whole report as HTML."""
    of, evidence = found.published, found.published.evidence
    css = style("tokens.css", "report.css")
    allowed = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'; img-src data:; base-uri 'none'; form-action 'none'"
    whose = "for the owner" if found.for_owner else "for the public"
    whose += ", with figures of the original" if found.original is not None else ""
    rows = "record" if evidence.persons is None else "row"
    counts = f"{counted(evidence.records, rows)} · {counted(len(of.columns), 'column')} · "
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width,initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="generator", content=GENERATOR),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"Release report: {plain(of.name)}"),
        Html(f"<style>{css}</style>"),
    )
    top = element(
        "header",
        element("span", SHOAL, element("b", "Shoal"), " release report"),
        element("span", shown(of.name), f" · {counts}", element("b", whose)),
        class_="top",
    )
    parts = [
        opening(found),
        four(found),
        sections.intruder(found),
        sections.loss(found),
        sections.promises(found),
        sections.attacks(found),
        sections.least(found),
        sections.as_it_is(found),
        sections.reproduce(found),
    ]
    body = element(
        "body",
        element("a", "Skip to the verdict", class_="skip", href="#main"),
        top,
        element("main", *parts, id="main"),
        element("footer", element("p", _closing(found))),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _closing(found: Findings) -> Html:
    whose = (
        "It tells more than the masked table does and is meant for the owner of the original: keep it where that is. "
        "A report for the public leaves such figures out."
        if found.for_owner
        else "Everything in it follows from the published table and its configuration; figures of the original are left out."
    )
    return joined([f"{whose} This file contains no script and asks the network for nothing."])
