"""`shoal compare`: algorithms side by side on one configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.output import JSON, QUIET, SEED, Speaker, show
from shoal.configured import load

if TYPE_CHECKING:
    from shoal.comparison import Comparison, Outcome
    from shoal.configuration import Configuration

# What fits into eighty columns; --json has everything.
SHOWN = ("classes", "smallest_class", "suppressed")


def compare(
    config: Path = typer.Option("shoal.toml", "--config", "-c", help="Table, roles and policy."),
    source: Path | None = typer.Argument(None, help="The table, when not the one named in the configuration."),
    algorithms: str = typer.Option("", "--algorithms", "-a", help="Comma-separated; all of them when empty."),
    refine: bool = typer.Option(False, "--refine", help="Refine every result, as anonymize does."),
    limit: float | None = typer.Option(
        None, "--limit", min=0.1, help="Seconds that each may take; by default all together have 50."
    ),
    chart: Path | None = typer.Option(None, "--chart", help="Also draw loss against time: an svg, png or html file."),
    force: bool = typer.Option(False, "--force", help="Overwrite an existing chart."),
    seed: int | None = SEED,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Run all algorithms on one table and policy: loss, classes, risk, suppressed records, time.

    Each result is shown as soon as it is there. Whoever takes too long is stopped, and what refuses says why.

    Example: shoal compare -c shoal.toml --chart compare.svg
    """
    from shoal.cli.charts import refuse_chart
    from shoal.comparison import compare as ask
    from shoal.configuration import read_config

    speaker = Speaker(as_json, quiet)
    configuration = read_config(config)
    if chart is not None:
        refuse_chart(chart, force)
    wanted = [name.strip() for name in algorithms.split(",") if name.strip()] or None
    with speaker.progress("comparing") as progress:
        with progress.stage("reading", 0.05):
            data = load(configuration, source)
        with progress.stage() as part:
            found = ask(
                data,
                configuration,
                algorithms=wanted,
                limit=limit,
                each=lambda one: speaker.say(_line(one, configuration.config.method.objective)),
                progress=part,
                **settings_of(configuration, refine, seed),
            )
    report(found, speaker)
    if chart is not None:
        from shoal.cli.charts import draw_comparison

        draw_comparison(found, chart, force)
        speaker.say(f"Written: {chart}")
    speaker.result(found.to_dict())


def settings_of(configuration: Configuration, refine: bool, seed: int | None) -> dict[str, Any]:
    """The configured settings of releases that are made to be looked at; refined only where that is asked for."""
    method = configuration.config.method
    return {
        "objective": method.objective,
        "refine": method.refine if refine else False,
        "suppress": method.suppress,
        "suppressed": configuration.config.release.suppressed,
        "seed": method.seed if seed is None else seed,
    }


def _line(one: Outcome, objective: str) -> str:
    """One result, in less than eighty columns."""
    if one.refused is not None:
        return f"{one.algorithm:<17} refused"
    return f"{one.algorithm:<17} {objective} {one.losses[objective]:.4f}, {one.seconds:.1f} s"


def report(found: Comparison, speaker: Speaker) -> None:
    """The whole table, the best first; and why the others are not in it."""
    rows = [
        [
            one.algorithm,
            one.losses[found.objective],
            *(one.losses[name] for name in SHOWN),
            one.risk,
            round(one.seconds, 1),
        ]
        for one in found.results
        if one.refused is None
    ]
    headers = ["algorithm", found.objective, "classes", "smallest", "suppr.", "risk", "seconds"]
    speaker.table("Side by side", headers, rows)
    for one in found.results:
        if one.refused is not None:
            speaker.say(f"{one.algorithm} is not among them: {show(one.refused)}")
