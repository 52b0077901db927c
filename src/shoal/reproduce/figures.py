"""The papers' figures, drawn from rows: the same axes, our series, and the printed numbers where there are any."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shoal import exact
from shoal.report.charts import AFTER, BEFORE, IDENTIFIER, INK, PERSON, RIVAL, SENSITIVE, svg
from shoal.report.markup import Html
from shoal.reproduce.verdicts import Rows, Value, Where, chosen, curve, spread, told

# One colour and one shape a series; more than these cannot be told apart.
COLOURS = (AFTER, BEFORE, PERSON, SENSITIVE, RIVAL, IDENTIFIER, INK)
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right")
# Points of a drawing, and of a line of its legend.
WIDE, HIGH, LEGEND = 600, 240, 640
# More words than these lie on top of each other below an axis unless they are small and steep.
MANY = 8


@dataclass(frozen=True)
class Series:
    """A line of a figure: its name, which rows it is made of, and what the paper prints for it."""

    name: str
    where: Where
    column: str = ""
    printed: Mapping[Value, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A figure of a paper: `column` over `by`, a line a series."""

    name: str
    about: str
    title: str
    experiment: str
    column: str
    by: str
    series: tuple[Series, ...]
    x: str = ""
    y: str = ""
    zero: bool = True
    shares: bool = False
    """Whether `by` is a share: written in percent, and in even steps, as the small ones would lie on top of each other."""
    over: Where | None = None
    """Rows whose means the others are divided by, where a paper draws ratios."""

    def curve(self, rows: Rows, one: Series) -> dict[Value, float]:
        """The means of a series, or their ratios."""
        column = one.column or self.column
        found = curve(rows, column, self.by, one.where)
        if self.over is None:
            return found
        base = curve(rows, column, self.by, self.over)
        return {at: mean / base[at] for at, mean in found.items() if base.get(at)}

    def points(self, rows: Rows) -> list[dict[str, Any]]:
        """The means that are drawn, with their standard deviation where there are several seeds."""
        found: list[dict[str, Any]] = []
        for one in self.series:
            column = one.column or self.column
            for at, mean in self.curve(rows, one).items():
                values = [float(row[column]) for row in chosen(rows, {**one.where, self.by: at}) if column in row]
                off = spread(values) if len(values) > 1 and self.over is None else 0.0
                found.append({"at": at, "mean": mean, "low": mean - off, "high": mean + off, "series": one.name})
        return found

    def printed(self) -> list[dict[str, Any]]:
        """What the paper prints."""
        return [{"at": at, "mean": mean, "series": one.name} for one in self.series for at, mean in one.printed.items()]


def inline(figure: Figure, rows: Rows) -> Html:
    """A figure within a page, in its variables for colours."""
    return squeezed(svg(drawn(figure, rows), figure.name, figure.title, described(figure, rows)))


def squeezed(text: str) -> Html:
    """A drawing without what changes nothing, and with places to a tenth of a point: a third of its length."""
    for nothing in (
        ' opacity="1"',
        ' stroke-width="1"',
        ' transform="translate(0,0)"',
        ' x2="0"',
        ' y2="0"',
        ' font-weight="normal"',
    ):
        text = text.replace(nothing, "")
    text = re.sub(r'<path d=""[^>]*/>|<path d="M0,0h0v0h0Z"/>|<path d="M0,0h[\d.]+v[\d.]+h-[\d.]+Z"/>', "", text)
    inner = ' (d|transform)="([^"]*)"'
    text = re.sub(inner, lambda found: f' {found[1]}="{re.sub(_LONG, _short, found[2])}"', text)
    while (shorter := re.sub(r"<g>((?:(?!</?g[ >]).)*)</g>", r"\1", text, flags=re.DOTALL)) != text:
        text = shorter
    return Html(text)


_LONG = r"-?\d+\.\d+"


def _short(found: re.Match[str]) -> str:
    return f"{round(float(found[0]), 1):g}"


def standalone(figure: Figure, rows: Rows, colours: Mapping[str, str]) -> str:
    """A figure as a file of its own, with the colours of paper in place of the page's variables."""
    text = re.sub(r"var\(--([a-z0-9-]+)\)", lambda found: colours[found[1]], inline(figure, rows))
    face = 'font-family="Liberation Sans, Arial, sans-serif"'
    return text.replace("<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" {face} ', 1) + "\n"


def described(figure: Figure, rows: Rows) -> str:
    """A figure in words, for whoever does not see it."""
    parts = []
    for one in figure.series:
        found = figure.curve(rows, one)
        if found:
            parts.append(f"{one.name}: " + ", ".join(f"{told(value)} at {at}" for at, value in found.items()))
    return f"{figure.y or figure.column} by {figure.x or figure.by}. " + "; ".join(parts) + "."


def drawn(figure: Figure, rows: Rows) -> Any:
    """Lines through the means, a bar of one standard deviation each way, and hollow marks for what the paper prints."""
    import altair as alt

    points, printed = figure.points(rows), figure.printed()
    names = [one.name for one in figure.series]
    words = any(isinstance(point["at"], str) for point in points)
    kind = "O" if words or figure.shares else "Q"
    axis = alt.Axis(title=figure.x or figure.by, **_labels(figure, points, words))
    scale = alt.Scale(zero=False, nice=False, padding=12) if kind == "Q" else alt.Undefined
    x = alt.X(f"at:{kind}", axis=axis, scale=scale, title=figure.x or figure.by)
    title = alt.Axis(title=figure.y or figure.column, tickCount=5)
    y = alt.Y("mean:Q", axis=title, scale=alt.Scale(zero=figure.zero))
    hues = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    shapes = alt.Scale(domain=names, range=list(SHAPES[: len(names)]))
    # Texts are measured with another face than they are shown in: room between the columns.
    legend = alt.Legend(
        orient="top", title=None, columns=3, labelLimit=LEGEND, labelFontSize=13, labelColor=INK, columnPadding=40
    )
    colour = alt.Color("series:N", scale=hues, legend=legend)
    shape = alt.Shape("series:N", scale=shapes, legend=legend)
    ours = _of(points)
    layers = [ours.mark_point(filled=True, opacity=1, size=45).encode(x=x, y=y, color=colour, shape=shape)]
    if not words:
        # Nothing lies between two words.
        layers.insert(0, ours.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour))
    wide = [point for point in points if point["high"] > point["low"]]
    if wide:
        layers.append(_of(wide).mark_rule(strokeWidth=1.2).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour))
    if printed:
        marks = _of(printed).mark_point(size=150, strokeWidth=1.6, fill=None)
        layers.append(marks.encode(x=x, y=y, color=colour, shape=shape))
    return alt.layer(*layers).properties(width=WIDE, height=HIGH)


def _of(rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    data: Any = alt.Data(values=rows)  # type: ignore[no-untyped-call]
    return alt.Chart(data)


def _labels(figure: Figure, points: list[dict[str, Any]], words: bool) -> dict[str, Any]:
    """How the settings are written below the axis: each that was tried, where there is room."""
    if words:
        many = len({point["at"] for point in points}) > MANY
        return {"labelAngle": -35 if many else -20, "labelLimit": LEGEND, "labelFontSize": 11 if many else 13}
    if figure.shares:
        return {"labelAngle": 0, "labelExpr": "format(datum.value, '~%')"}
    # Left to itself the axis rounds them to its own precision: 0.05 would be written as 0.1.
    few = _few(sorted({point["at"] for point in points}))
    return {"labelAngle": 0, "labelExpr": "format(datum.value, ',')", "values": few}


def _few(ticks: Sequence[Any]) -> list[Any]:
    """The settings that are tried, or every second one, and so on, where there are many."""
    step = -(-len(ticks) // 12)
    return list(ticks[::step])


def average(rows: Rows, column: str, where: Where) -> float:
    """The mean of a column over some rows."""
    return exact.mean([float(row[column]) for row in chosen(rows, where) if column in row])
