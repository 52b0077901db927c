"""Nothing of the original gets into a report for the public, and no cell becomes markup, whatever stands in it."""

from __future__ import annotations

import html
import random
import re
from html.parser import HTMLParser
from typing import Any

import polars as pl

import shoal
from shoal.report import findings_of, page

TABLES = 100
LONG = 10_240
HOSTILE = [
    "<script>alert({0})</script>",
    "<img src=x onerror=alert({0})>",
    '"><svg onload=alert({0})>',
    "</style><style>*{{display:none}}/*{0}",
    "javascript:alert({0})",
    '=HYPERLINK("http://example.org/{0}","x")',
    "+1+cmd|' /C calc'!A{0}",
    "@SUM({0})",
    "right-to-left \u202etxet\u202c {0}",
    "isolated \u2067 {0}",
    "invisible\u200b\u00ad{0}",
    "&lt;b&gt;{0}&amp;",
    "{{{{{0}}}}}",
    "ترجمة {0}",
]
# Elements that a report is made of; anything else came out of a cell.
KNOWN = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "a",
        "header",
        "main",
        "footer",
        "section",
        "h1",
        "h2",
        "p",
        "div",
        "span",
    ),
    *("b", "bdi", "small", "dl", "dt", "dd", "ul", "li", "pre", "table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("figure", "figcaption", "details", "summary", "svg", "g", "path", "circle", "rect", "line", "text", "desc"),
}
UNSEEN = re.compile("[\u0000-\u0008\u000b-\u001f\u007f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


class Reader(HTMLParser):
    """Which elements and attributes a page has."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def a_table(seed: int) -> tuple[pl.DataFrame, dict[str, Any]]:
    """A small table of hostile cells, each of which carries a number that occurs nowhere else."""
    rng = random.Random(seed)
    rows = rng.randrange(12, 40)
    canary = iter(rng.sample(range(10**8, 10**9), 6 * rows + 40))

    def hostile() -> str:
        text = rng.choice(HOSTILE).format(next(canary))
        return text + "y" * LONG if rng.random() < 0.02 else text

    few = [hostile() for _ in range(4)]
    secrets = [hostile() for _ in range(5)]
    spelled = {"name": "name", "city": "city", "note": "note", "illness": "illness"}
    if rng.random() < 0.5:
        spelled = {"name": "na<b>me", "city": "city\u202e", "note": "<i>note</i>", "illness": "ill'\"ness"}
    frame = pl.DataFrame(
        {
            spelled["name"]: [hostile() for _ in range(rows)],
            "age": [next(canary) for _ in range(rows)],
            "zip": [str(next(canary)) for _ in range(rows)],
            spelled["city"]: [rng.choice(few) for _ in range(rows)],
            spelled["illness"]: [rng.choice(secrets) for _ in range(rows)],
            spelled["note"]: [hostile() for _ in range(rows)],
        }
    )
    schema: dict[str, Any] = {
        spelled["name"]: {"role": "identifier"},
        "age": {"role": "quasi", "kind": "number"},
        "zip": {"role": "quasi", "kind": "category", "taxonomy": {"prefix": [4, 2, 0]}},
        spelled["city"]: {"role": "quasi"},
        spelled["illness"]: {"role": "sensitive"},
        spelled["note"]: {"role": "other", "accept": f"because <u>{hostile()[:200]}</u>"},
    }
    return frame, schema


def test_canaries_of_a_hundred_hostile_tables() -> None:
    made = 0
    for seed in range(2 * TABLES):
        if made == TABLES:
            break
        frame, schema = a_table(seed)
        policy = shoal.KAnonymity(2 + seed % 3)
        try:
            data = shoal.Microdata.from_frame(frame, schema)
            release = shoal.anonymize(data, policy, algorithm="mondrian", refine=False, seed=seed)
        except shoal.ShoalError:
            continue  # a table that is refused has no report
        made += 1
        for who in ("public", "owner") if made <= 10 else ("public",):
            text = page(findings_of(release, who, bounds=False, name="<x>.csv"))
            assert_harmless(text)
            assert_nothing_raw(text, frame, release.masked, schema)
    assert made == TABLES


def assert_harmless(text: str) -> None:
    read = Reader(text)
    assert read.tags <= KNOWN, read.tags - KNOWN
    assert not {name for name in read.attributes if name.startswith("on") or name in ("style", "src", "srcset")}
    assert read.attributes & {"href"} == {"href"} and re.findall(r'href="([^"]*)"', text) == ["#main"]
    assert not UNSEEN.search(text), "a character that nobody sees"
    assert "y" * 200 not in text and len(text.encode()) < 500_000


def assert_nothing_raw(text: str, frame: pl.DataFrame, masked: pl.DataFrame, schema: dict[str, Any]) -> None:
    """No number of an identifier, and none of a masked column that the masked table does not show."""
    plain = re.sub(r"\d*\.\d+", "", html.unescape(text)).replace(",", "")  # without the coordinates of drawings
    there = set(re.findall(r"\d{9}", plain))
    shown = " ".join(str(value) for column in masked.iter_columns() for value in column)
    published = set(re.findall(r"\d{9}", shown)) | set(re.findall(r"\d{9}", " ".join(map(str, schema.values()))))
    for name, attribute in schema.items():
        cells = set(re.findall(r"\d{9}", " ".join(str(value) for value in frame[name])))
        hidden = cells if attribute["role"] == "identifier" else cells - published
        assert not there & hidden, f"{len(there & hidden)} values of {name!r}"


def test_the_canaries_sing() -> None:
    """A page with one identifier in it does not pass."""
    frame, schema = a_table(0)
    text = f"<p>{html.escape(str(frame.to_series(0)[0]))}</p>"
    try:
        assert_nothing_raw(text, frame, frame.drop(frame.columns[0]), schema)
    except AssertionError:
        return
    raise AssertionError("an identifier was not noticed")
