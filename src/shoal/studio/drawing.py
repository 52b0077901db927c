"""What templates draw with: shapes and bars without a style attribute, values that hide nothing, the steps of the road."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from shoal.report import charts, icons, markup
from shoal.studio.curve import curve
from shoal.studio.project import Project

SPARK = 24  # bars of a small chart, so that those of all columns are as wide


def value(thing: object, longest: int = markup.LONGEST) -> Markup:
    """A value or a name out of a table, kept apart from what stands around it; controls are shown by their numbers."""
    return Markup(markup.shown(thing, longest))


def icon(name: str) -> Markup:
    """A shape that stands beside a word."""
    return Markup(icons.icon(name))


def bar(share: float, kind: str = "after") -> Markup:
    """A bar on its track."""
    return Markup(charts.bar(share, kind))


def spark(bars: Sequence[int], role: str) -> Markup:
    """How values are distributed: bars from a common ground, the highest at full height."""
    if not bars:
        return Markup("")
    most = max(*bars, 1)
    drawn = "".join(
        f'<rect x="{6 * i}" y="{26 - _height(n, most):.1f}" width="5" height="{_height(n, most):.1f}"/>'
        for i, n in enumerate(bars[:SPARK])
    )
    box = 'viewBox="0 0 144 26" width="144" height="26" aria-hidden="true" focusable="false"'
    return Markup(f'<svg class="spark k-{role}" {box}>{drawn}</svg>')


def columns(steps: Sequence[Mapping[str, Any]], chosen: Any, words: Any) -> Markup:
    """What each step of a slider loses: a column for each, with its figure above and its value beneath."""
    most = max([0.02, *(one["loss"] or 0.0 for one in steps)])
    cells = []
    for one in steps:
        loss, now = one["loss"], one["value"] == chosen
        high = 0.0 if loss is None else max(1.5, 40 * loss / most)
        rect = f'<rect class="f-{"after" if now else "other"}" y="{40 - high:.1f}" width="10" height="{high:.1f}"/>'
        drawing = f'<svg viewBox="0 0 10 40" width="22" height="44" aria-hidden="true" focusable="false">{rect}</svg>'
        told = (
            "–" if loss is None else words.percent(loss) if loss < 0.01 else f"{words.number(round(100 * loss))}\u00a0%"
        )
        kind = ' class="now"' if now else ""
        cells.append(
            Markup("<li{}><span>{}</span>{}<b>{}</b></li>").format(
                Markup(kind), told, Markup(drawing), short(one["value"])
            )
        )
    return Markup('<ol class="columns">{}</ol>').format(Markup("").join(cells))


def short(value: object) -> str:
    """A parameter as people write it: 2000 and 0.3, not 2000.0."""
    return f"{value:g}" if isinstance(value, float) and abs(value) < 1e6 else str(value)


def _height(n: int, most: int) -> float:
    return 0.0 if n <= 0 else max(1.0, 26 * n / most)


def steps(project: Project, now: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """The pages in the order of the road: which are behind, and which can be gone to."""
    done = {
        "data": project.begun,
        "taxonomies": project.begun and bool(project.candidates()),
        "policy": project.begun and bool(project.candidates()),
        "run": any(one.state == "done" for one in project.candidates()),
        "compare": bool(project.releases()),
        "release": bool(project.releases()),
    }
    return [
        {
            "name": name,
            "number": i + 1,
            "done": done.get(name, False),
            "now": name == now,
            "open": project.begun or name in ("data", "evolve"),
        }
        for i, name in enumerate(names)
    ]


@cache
def static(name: str) -> bytes:
    """Style and script; the tokens are those of reports."""
    if name == "tokens.css":
        return files("shoal.report").joinpath(name).read_bytes()
    return files("shoal.studio").joinpath("static", name).read_bytes()


@cache
def report_policy() -> str:
    """What a report may do: nothing but show its own style."""
    from shoal.report.page import style

    allowed = base64.b64encode(hashlib.sha256(style("tokens.css", "report.css").encode()).digest()).decode()
    rest = "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return f"default-src 'none'; style-src 'sha256-{allowed}'; {rest}"


def safe(piece: str) -> Markup:
    """Markup that `report` made, which escapes what it is given."""
    return Markup(piece)


FILTERS: Mapping[str, Any] = {"value": value, "short": short, "one_in": markup.one_in, "at_least": markup.at_least}
GLOBALS: Mapping[str, Any] = {
    "icon": icon,
    "bar": bar,
    "spark": spark,
    "columns": columns,
    "curve": curve,
    "SHOAL": Markup(icons.SHOAL),
    "ROLES": ("quasi", "sensitive", "identifier", "other", "person"),
    "plain": markup.plain,
}
