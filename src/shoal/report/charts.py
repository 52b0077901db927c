"""Charts as SVG, in the page's own colours: drawn with stand-ins, which become CSS variables.

One drawing serves light, dark and print. Text never lives in a stretched drawing: bars are drawings without any, with HTML beside
them, and charts with axes come in two widths of which a media query shows one. No drawing has a style attribute, so that the
page's policy needs to allow none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shoal.report.markup import Html, at_least, element, escaped, joined, percent
from shoal.report.sizes import Sizes

# Colours that nobody would choose, each for a variable of tokens.css.
_VARIABLES = (
    *("ink", "ink-2", "grid", "before", "after", "bound", "mark-soft", "paper", "rule-strong", "rival"),
    *("person", "sensitive", "identifier"),
)
_COLOURS = tuple(f"#0{i:x}010{i:x}" for i in range(1, len(_VARIABLES) + 1))
INK, INK_2, GRID, BEFORE, AFTER, BOUND, SOFT, PAPER, RULE, RIVAL, PERSON, SENSITIVE, IDENTIFIER = _COLOURS
_STAND_INS = dict(zip(_COLOURS, _VARIABLES, strict=True))

WIDE, NARROW, CARD = 700, 310, 520  # points of a column of text, of a phone, of a card in a notebook
_FONT = "Liberation Sans"
"""What widths of texts are measured with; the page shows its own face."""


def bar(share: float, kind: str) -> Html:
    """A bar on its track; a share that is not nothing is never invisible."""
    width = 0.0 if share <= 0 else min(100.0, max(0.6, 100 * share))
    track = element("rect", class_="f-track", width="100", height="1")
    return _strip([track, element("rect", class_=f"f-{kind}", width=f"{width:.2f}", height="1")])


def stack(parts: Sequence[tuple[float, str]]) -> Html:
    """Shares side by side, each in a colour of its own."""
    at, drawn = 0.0, []
    for share, kind in parts:
        drawn.append(element("rect", class_=f"f-{kind}", x=f"{100 * at:.2f}", width=f"{100 * share:.2f}", height="1"))
        at += share
    return _strip(drawn)


def _strip(drawn: Sequence[Html]) -> Html:
    return element(
        "svg",
        *drawn,
        class_="bar",
        viewBox="0 0 100 1",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )


@dataclass(frozen=True)
class Bin:
    """Class sizes from `low` to `high`, and how many records (and classes) have them."""

    low: int
    high: int
    before: int | None
    after: int
    classes: int

    @property
    def label(self) -> str:
        """5, or 5–9."""
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,}–{self.high:,}"


def size_bins(after: Sizes, before: Sizes | None) -> list[Bin]:
    """Class sizes in few enough bins to look at: one by one where they are few, else each twice as far as the last.

    >>> import numpy as np
    >>> [bin.label for bin in size_bins(Sizes.of(np.array([5, 6, 60])), Sizes.of(np.array([1, 1, 3])))]
    ['1', '2–4', '5–9', '10–19', '20–39', '40–60']
    """
    smallest = after.smallest
    largest = max(after.largest, before.largest if before is not None else 0)
    edges = [] if before is None or smallest == 1 else [(1, 1)]
    if before is not None and smallest > 2:
        edges.append((2, smallest - 1))
    if largest - smallest < 8:
        edges += [(size, size) for size in range(smallest, largest + 1)]
    else:
        low = smallest
        while low <= largest:
            edges.append((low, min(2 * low - 1, largest)))
            low *= 2
    return [
        Bin(
            low,
            high,
            None if before is None else before.within(low, high),
            after.within(low, high),
            after.many(low, high),
        )
        for low, high in edges
    ]


def sizes_chart(bins: Sequence[Bin], many: str, title: str, told: str) -> Html:
    """Records by the size of their class, in the original (where it may be told) and in the release."""
    return both_widths(lambda width: _sizes(bins, many, width), "sizes", title, told)


def pictured(bins: Sequence[Bin], many: str, name: str, title: str, told: str) -> Html:
    """The same in one width, for a card; `name` is no other drawing's on the page."""
    return svg(_sizes(bins, many, CARD), name, title, told)


def _sizes(bins: Sequence[Bin], many: str, width: int) -> Any:
    import altair as alt

    rows: list[dict[str, Any]] = [
        {"size": one.label, "records": count, "which": which}
        for one in bins
        for which, count in (("original", one.before), ("release", one.after))
        if count
    ]
    paired = any(one.before and one.after for one in bins)
    top = max((row["records"] for row in rows), default=1) * 1.16
    labels = [one.label for one in bins]
    turned = width == NARROW and sum(len(label) + 2 for label in labels) > 34
    title = f"{many} that look the same (class size)"
    axis = alt.Axis(title=title, labelAngle=-40 if turned else 0, ticks=False)
    x = alt.X("size:O", scale=alt.Scale(domain=labels, paddingInner=0.28), axis=axis)
    y = alt.Y("records:Q", scale=alt.Scale(domain=[0, top]), axis=None)
    beside = {"xOffset": alt.XOffset("which:N", sort=["original", "release"])} if paired else {}
    short = "datum.records < 10000 ? format(datum.records, ',') : format(datum.records, '.2s')"
    base = _of(rows).transform_calculate(told=short if width == NARROW else "format(datum.records, ',')")
    scale = alt.Scale(domain=["original", "release"], range=[BEFORE, AFTER])
    bars = base.mark_bar().encode(x=x, y=y, color=alt.Color("which:N", scale=scale, legend=None), **beside)
    size = 13 if width != NARROW or len(bins) < 7 else 11
    texts = base.mark_text(dy=-8, fontSize=size, fontWeight=600).encode(
        x=x, y=y, text="told:N", color=alt.value(INK), **beside
    )
    return alt.layer(bars, texts).properties(width=width - 10, height=180 if width == NARROW else 140)


def _of(rows: list[dict[str, Any]]) -> Any:
    """A chart of some rows, which stand in its description."""
    import altair as alt

    data: Any = alt.Data(values=rows)  # type: ignore[no-untyped-call]
    return alt.Chart(data)


def line_chart(
    loss: float, least: float | None, rivals: Sequence[tuple[str, float]], title: str, told: str, name: str = "line"
) -> Html:
    """Losses on one line from nothing: where no release can be, the proven least, this release, and what else was tried."""
    import altair as alt

    largest = max([loss, least or 0.0, *(value for _, value in rivals)])
    step = next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25) if largest * 1.9 <= 5 * step or step == 0.25)
    top = min(1.0, step * 5)

    before = least is not None and least > 0.22 * top
    after = loss <= 0.58 * top
    high = 2.6 if before and after else 3.8

    def drawn(width: int) -> Any:
        # Labels on both sides share a row; else each has its own, so that none lies on another.
        x_scale, rows = alt.Scale(domain=[0, top], nice=False), alt.Scale(domain=[0, high])

        def placed(values: list[dict[str, Any]]) -> Any:
            return _of(values)

        axis = alt.Axis(
            labelExpr="format(datum.value * 100, 'd') + '\u00a0%'",
            values=[i * step for i in range(6) if i * step <= top + 1e-9],
            title="detail lost",
            grid=False,
            tickSize=5,
        )
        x = alt.X("loss:Q", scale=x_scale, axis=axis)
        line = placed([{"loss": 0, "to": top, "row": 0.8}])
        layers = [line.mark_rule(color=RULE).encode(x=x, x2="to:Q", y=alt.Y("row:Q", scale=rows, axis=None))]
        if least is not None:
            zone = placed([{"loss": 0, "to": least, "low": 0.35, "high": 1.25}])
            layers.append(zone.mark_rect(color=SOFT).encode(x=x, x2="to:Q", y=alt.Y("low:Q", scale=rows), y2="high:Q"))
            edge = placed([{"loss": least, "low": 0.2, "high": 2.1}])
            layers.append(
                edge.mark_rule(color=BOUND, strokeWidth=2, strokeDash=[5, 3]).encode(
                    x=x, y=alt.Y("low:Q", scale=rows), y2="high:Q"
                )
            )
            layers += _label(placed, x, rows, least, 2.1, f"{at_least(least)} proven least", INK, left=before)
        layers.append(
            placed([{"loss": loss, "row": 0.8}])
            .mark_point(filled=True, opacity=1, size=170, color=AFTER, stroke=PAPER, strokeWidth=1.5)
            .encode(x=x, y=alt.Y("row:Q", scale=rows))
        )
        layers += _label(
            placed,
            x,
            rows,
            loss,
            2.1 if before and after else 3.3,
            f"{percent(loss)} this release",
            AFTER,
            left=not after,
        )
        for _, value in rivals:
            layers.append(
                placed([{"loss": value, "row": 0.8}])
                .mark_point(filled=True, opacity=1, size=60, color=RIVAL)
                .encode(x=x, y=alt.Y("row:Q", scale=rows))
            )
        return alt.layer(*layers).properties(width=width - 30, height=int(25 * high))

    return both_widths(drawn, name, title, told)


def _label(
    placed: Any, x: Any, rows: Any, value: float, row: float, text: str, colour: str, *, left: bool
) -> list[Any]:
    """A text beside its place, on the side with room for it."""
    import altair as alt

    mark = placed([{"loss": value, "row": row, "told": text}])
    return [
        mark.mark_text(
            align="right" if left else "left", dx=-6 if left else 6, fontSize=13, fontWeight=600, color=colour
        ).encode(x=x, y=alt.Y("row:Q", scale=rows), text="told:N")
    ]


def both_widths(drawn: Any, name: str, title: str, told: str) -> Html:
    """A chart for screens and paper, and one for telephones."""
    return joined(
        [svg(drawn(WIDE), f"{name}-w", title, told, "wide"), svg(drawn(NARROW), f"{name}-n", title, told, "narrow")]
    )


def svg(chart: Any, name: str, title: str, told: str, kind: str = "") -> Html:
    """An Altair chart as an SVG with a title and a description, in variables for colours."""
    import vl_convert

    chart = (
        chart.configure(font=_FONT, background="transparent")
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=INK_2, titleColor=INK_2, labelFontSize=13, titleFontSize=13, titleFontWeight="normal",
            domainColor=RULE, tickColor=RULE, gridColor=GRID, titlePadding=8, labelPadding=6,
        )
    )  # fmt: skip
    text = vl_convert.vegalite_to_svg(chart.to_dict(validate=False))
    inner = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    inner = re.sub(
        r' (?:font-family|style|role|aria-[a-z]+|aria-roledescription|class|pointer-events)="[^"]*"', "", inner
    )
    inner = re.sub(
        r"rgb\((\d+), ?(\d+), ?(\d+)\)", lambda found: "#" + "".join(f"{int(n):02x}" for n in found.groups()), inner
    )
    for stand_in, variable in _STAND_INS.items():
        inner = inner.replace(stand_in, f"var(--{variable})")
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups()  # type: ignore[union-attr]
    titles = f'<title id="{name}-t">{escaped(title)}</title><desc id="{name}-d">{escaped(told)}</desc>'
    head = (
        f'<svg class="chart {kind}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-labelledby="{name}-t {name}-d">'
    )
    return Html(f"{head}{titles}{inner}</svg>")
