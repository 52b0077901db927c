"""`shoal compare`: algorithms side by side on one configuration."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.anonymize import load
from shoal.cli.output import JSON, QUIET, SEED, Speaker

if TYPE_CHECKING:
    from shoal.progress import Progress

SHOWN = ("ncp", "granularity", "il", "dm", "avg", "classes", "smallest_class", "suppressed")


def compare(
    config: Path = typer.Option("shoal.toml", "--config", "-c", help="Table, roles and policy."),
    source: Path | None = typer.Argument(None, help="The table, when not the one named in the configuration."),
    algorithms: str = typer.Option("", "--algorithms", "-a", help="Comma-separated; all of them when empty."),
    refine: bool = typer.Option(False, "--refine", help="Refine every result, as anonymize does."),
    chart: Path | None = typer.Option(None, "--chart", help="Also draw loss against time: an svg, png or html file."),
    force: bool = typer.Option(False, "--force", help="Overwrite an existing chart."),
    seed: int | None = SEED,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Run all algorithms on one table and policy: loss, classes, risk, suppressed records, time.

    Example: shoal compare -c shoal.toml --chart compare.svg
    """
    from shoal.algorithms import names
    from shoal.schema import read_config

    speaker = Speaker(as_json, quiet)
    configuration = read_config(config)
    wanted = [name.strip() for name in algorithms.split(",") if name.strip()] or names()
    results = []
    with speaker.progress("comparing") as progress:
        with progress.stage("reading", 0.05):
            data = load(configuration, source)
        for name in wanted:
            with progress.stage(f"running {name}", 0.95 / len(wanted)) as part:
                results.append(_one(name, data, configuration, refine, seed, part))
    objective = configuration.config.method.objective
    results.sort(key=lambda row: (row["refused"] is not None, row.get(objective) or 0.0))
    rows = [
        [r["algorithm"], *(r.get(m) for m in SHOWN), r.get("risk"), r["seconds"], r["refused"] or ""] for r in results
    ]
    speaker.table("Side by side", ["algorithm", *SHOWN, "highest risk", "seconds", "refused because"], rows)
    if chart is not None:
        _draw([r for r in results if r["refused"] is None], objective, chart, force)
        speaker.say(f"Written: {chart}")
    speaker.result({"objective": objective, "results": results})


def _one(
    name: str, data: Any, configuration: Any, refine: bool, seed: int | None, progress: Progress
) -> dict[str, Any]:
    """One algorithm's release, or the sentence with which it refused."""
    from shoal.errors import Cancelled, ShoalError
    from shoal.policy import Policy
    from shoal.road import anonymize

    method = configuration.config.method
    started = time.perf_counter()
    try:
        release = anonymize(
            data,
            Policy.from_config(configuration.config.policy),
            algorithm=name,
            objective=method.objective,
            refine=method.refine if refine else False,
            suppress=method.suppress,
            suppressed=configuration.config.release.suppressed,
            seed=method.seed if seed is None else seed,
            progress=progress,
        )
    except Cancelled:
        raise
    except ShoalError as problem:
        return {"algorithm": name, "refused": str(problem), "seconds": time.perf_counter() - started}
    measures = release.measures.to_dict()
    found = {measure: measures[measure] for measure in SHOWN}
    seconds = time.perf_counter() - started
    return {"algorithm": name, "refused": None, "seconds": seconds, "risk": 1 / release.evidence.smallest, **found}


def _draw(results: list[dict[str, Any]], objective: str, path: Path, force: bool) -> None:
    import altair as alt
    import polars as pl

    from shoal.io.atomic import atomic_path

    base = alt.Chart(pl.DataFrame(results)).encode(
        x=alt.X("seconds:Q", scale=alt.Scale(type="log"), title="seconds"),
        y=alt.Y(f"{objective}:Q", title=f"loss ({objective})"),
    )
    labels = base.mark_text(align="left", dx=7).encode(text="algorithm:N")
    picture = (base.mark_circle(size=70) + labels).properties(width=560, height=360, title="Loss against time")
    with atomic_path(path, force=force) as temporary:
        picture.save(str(temporary), format=path.suffix.removeprefix("."))
