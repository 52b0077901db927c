"""Pictures that commands draw into files, with their labels at the marks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError, require_word

if TYPE_CHECKING:
    from shoal.comparison import Comparison
    from shoal.frontier import Frontier

FORMATS = ("svg", "png", "html")
BLUE, GREY, INK = "#1a6ea8", "#8a949b", "#16222b"
# Points of a picture that fits into a page and a slide.
WIDTH, HEIGHT = 620, 360


def refuse_chart(path: Path, force: bool) -> None:
    """Say no before the work, not after it."""
    from shoal.cli.anonymize import refuse_existing

    require_word("--chart: the ending", path.suffix.removeprefix("."), FORMATS)
    refuse_existing(path, force)


def draw_comparison(found: Comparison, path: Path, force: bool) -> None:
    """Loss against time; the best one coloured."""
    import altair as alt

    rows = [one.to_dict() for one in found.results if one.refused is None]
    if not rows:
        raise InputError("No algorithm made a release, so there is nothing to draw.")
    best = found.best.algorithm if found.best is not None else ""
    base = alt.Chart(_table(rows)).encode(
        x=alt.X("seconds:Q", scale=alt.Scale(type="log"), title="seconds"),
        y=alt.Y(f"{found.objective}:Q", title=f"loss ({found.objective})", scale=alt.Scale(zero=True)),
        color=alt.condition(alt.datum.algorithm == best, alt.value(BLUE), alt.value(GREY)),
    )
    labels = base.mark_text(align="left", dx=8, fontSize=13).encode(text="algorithm:N")
    _save(base.mark_circle(size=80) + labels, "Loss against time", path, force)


def draw_frontier(found: Frontier, path: Path, force: bool) -> None:
    """Loss over the first parameter: the best of all algorithms, the others grey, and the proven least beneath."""
    import altair as alt

    curve = found.curve
    if not curve:
        raise InputError("No release could be made, so there is nothing to draw.")
    name = next(iter(curve[0].asked))
    x = alt.X("at:Q", title=name, scale=alt.Scale(type="log", nice=False))
    y = alt.Y("loss:Q", title=f"loss ({found.objective})", scale=alt.Scale(zero=True))
    tried = [
        {"at": next(iter(p.asked.values())), "loss": p.loss, "algorithm": p.algorithm}
        for p in found.points
        if p.loss is not None and p.column is None
    ]
    best = [{"at": next(iter(p.asked.values())), "loss": p.loss} for p in curve]
    layers: list[Any] = [
        alt.Chart(_table(tried)).mark_circle(size=40, color=GREY).encode(x=x, y=y),
        alt.Chart(_table(best)).mark_line(point=True, color=BLUE).encode(x=x, y=y),
        alt.Chart(_table([best[-1] | {"text": "best found"}]))
        .mark_text(align="left", dx=8, fontSize=13, color=BLUE)
        .encode(x=x, y=y, text="text:N"),
    ]
    least = [{"at": next(iter(p.asked.values())), "loss": p.bound} for p in curve if p.bound is not None]
    if least:
        layers += [
            alt.Chart(_table(least)).mark_area(color=GREY, opacity=0.2).encode(x=x, y=y),
            alt.Chart(_table(least)).mark_line(strokeDash=[5, 4], color=INK).encode(x=x, y=y),
            alt.Chart(_table([least[-1] | {"text": "proven least"}]))
            .mark_text(align="left", dx=8, fontSize=13, color=INK)
            .encode(x=x, y=y, text="text:N"),
        ]
    knee = found.knee
    if knee is not None:
        mark = {
            "at": next(iter(knee.asked.values())),
            "loss": knee.loss,
            "text": f"{name} = {next(iter(knee.asked.values())):g}",
        }
        layers += [
            alt.Chart(_table([mark])).mark_point(size=180, color=BLUE, strokeWidth=2).encode(x=x, y=y),
            alt.Chart(_table([mark]))
            .mark_text(align="right", dx=-12, dy=-8, fontSize=13, color=BLUE)
            .encode(x=x, y=y, text="text:N"),
        ]
    _save(alt.layer(*layers), "What privacy costs", path, force)


def _table(rows: list[dict[str, Any]]) -> Any:
    import polars as pl

    return pl.DataFrame(rows, infer_schema_length=None)


def _save(chart: Any, title: str, path: Path, force: bool) -> None:
    from shoal.io.atomic import atomic_path

    picture = chart.properties(width=WIDTH, height=HEIGHT, title=title).configure_axis(
        labelFontSize=13, titleFontSize=13
    )
    with atomic_path(path, force=force) as temporary:
        picture.save(str(temporary), format=path.suffix.removeprefix("."))
