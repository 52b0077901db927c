"""The chart of the page *Compare*: loss over k, where no release can be, and the candidates on it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from shoal.report import charts
from shoal.report.charts import AFTER, BOUND, INK, PAPER, RIVAL, SOFT
from shoal.studio.texts import Words


def curve(
    points: Sequence[Mapping[str, Any]], candidates: Sequence[Mapping[str, Any]], picked: str, words: Any
) -> Markup:
    """Points of the curve (`k`, `loss`, `least`) and candidates (`name`, `k`, `loss`); only the picked one is coloured."""
    line = [{name: one[name] for name in ("k", "loss", "least")} for one in points]
    marks = [{name: one[name] for name in ("name", "k", "loss")} for one in candidates]
    return _drawn(json.dumps([line, marks, picked]), words.code)


@lru_cache(maxsize=32)
def _drawn(asked: str, language: str) -> Markup:
    """Drawing takes longer than everything else on the page, and is done once."""
    points, candidates, picked = json.loads(asked)
    words = Words(language)
    ks = [one["k"] for one in (*points, *candidates)]
    if not ks:
        return Markup("")
    losses = [one["loss"] for one in (*points, *candidates)]
    steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75)
    top = next((step for step in steps if max(losses) * 1.08 <= step), 1.0)
    told = ", ".join(f"{one['name']}: k = {one['k']}, {words.percent(one['loss'])}" for one in candidates)

    def drawn(width: int) -> Any:
        return _layers(points, candidates, picked, words, (min(ks), max(*ks, min(ks) + 1)), top).properties(
            width=width - 60, height=300 if width > 400 else 240
        )

    return Markup(charts.both_widths(drawn, "curve", str(words("compare.chart")), told))


def _layers(
    points: Sequence[Mapping[str, Any]],
    candidates: Sequence[Mapping[str, Any]],
    picked: str,
    words: Any,
    ends: tuple[int, int],
    top: float,
) -> Any:
    import altair as alt

    values = sorted({one["k"] for one in (*points, *candidates)})
    axis = alt.Axis(values=values, title=str(words("compare.axis_k")), grid=False, tickSize=5, labelOverlap="greedy")
    x = alt.X("k:Q", scale=alt.Scale(type="log", domain=list(ends), nice=False, padding=12), axis=axis)
    percent = alt.Axis(
        labelExpr="format(datum.value * 100, '~g') + '\u00a0%'", title=str(words("compare.axis_lost")), tickCount=5
    )
    y = alt.Y("loss:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=percent)
    layers = []
    bounded = [{"k": one["k"], "loss": one["least"], "zero": 0} for one in points if one["least"] is not None]
    if len(bounded) > 1:
        layers.append(_of(bounded).mark_area(color=SOFT).encode(x=x, y=y, y2="zero:Q"))
        layers.append(_of(bounded).mark_line(color=BOUND, strokeDash=[5, 3], strokeWidth=1.5).encode(x=x, y=y))
    line = [{"k": one["k"], "loss": one["loss"]} for one in points]
    if line:
        layers.append(_of(line).mark_line(color=RIVAL, strokeWidth=2).encode(x=x, y=y))
        layers.append(_of(line).mark_point(filled=True, opacity=1, size=30, color=RIVAL).encode(x=x, y=y))
    for one in candidates:
        at = _of([{"k": one["k"], "loss": one["loss"], "told": one["name"]}])
        colour = AFTER if one["name"] == picked else INK
        layers.append(at.mark_point(filled=True, opacity=1, size=330, color=colour, stroke=PAPER).encode(x=x, y=y))
        layers.append(at.mark_text(fontSize=13, fontWeight=700, color=PAPER).encode(x=x, y=y, text="told:N"))
    return alt.layer(*layers)


def _of(rows: list[dict[str, Any]]) -> Any:
    import altair as alt

    return alt.Chart(alt.Data(values=rows))  # type: ignore[no-untyped-call]
