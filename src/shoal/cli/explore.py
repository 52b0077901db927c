"""`shoal explore`: what privacy costs, before anything is decided."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shoal.cli.compare import settings_of
from shoal.cli.output import JSON, QUIET, SEED, Speaker
from shoal.configured import load
from shoal.errors import ConfigError

if TYPE_CHECKING:
    from shoal.frontier import Frontier


def explore(
    config: Path = typer.Option("shoal.toml", "--config", "-c", help="Table, roles and policy."),
    source: Path | None = typer.Argument(None, help="The table, when not the one named in the configuration."),
    vary: list[str] = typer.Option(
        [], "--vary", help="Values of a parameter: k=2,5,10 or p_sensitive.p=2,3; twelve values of k when not given."
    ),
    columns: str = typer.Option(
        "", "--columns", help="Comma-separated: quasi-identifiers to leave out, or other columns to add, one at a time."
    ),
    algorithms: str = typer.Option("mondrian,k_member,greedy_pk", "--algorithms", "-a", help="Comma-separated."),
    refine: bool = typer.Option(False, "--refine", help="Refine every result, as anonymize does."),
    bound: bool = typer.Option(True, help="Also compute the least that any release can lose."),
    keep: Path | None = typer.Option(
        None, "--keep", help="A file that remembers what was found: an interrupted run goes on where it stopped."
    ),
    chart: Path | None = typer.Option(None, "--chart", help="Also draw the curve: an svg, png or html file."),
    force: bool = typer.Option(False, "--force", help="Overwrite an existing chart."),
    seed: int | None = SEED,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Loss, risk and utility over k and other parameters, with the proven least loss beneath, and where the curve bends.

    Nothing is published. Every figure is that of the release that anonymize would make with the same settings.

    Example: shoal explore -c shoal.toml --vary k=2,5,10,20 --columns zip --chart frontier.svg
    """
    from shoal.cli.charts import draw_frontier, refuse_chart
    from shoal.configuration import read_config
    from shoal.frontier import explore as ask

    speaker = Speaker(as_json, quiet)
    configuration = read_config(config)
    values = read_values(vary)
    if chart is not None:
        refuse_chart(chart, force)
    with speaker.progress("exploring") as progress:
        with progress.stage("reading", 0.05):
            data = load(configuration, source)
        with progress.stage() as part:
            found = ask(
                data,
                configuration,
                vary=values or None,
                columns=[name.strip() for name in columns.split(",") if name.strip()],
                algorithms=[name.strip() for name in algorithms.split(",") if name.strip()],
                bound=bound,
                keep=keep,
                progress=part,
                **settings_of(configuration, refine, seed),
            )
    report(found, speaker)
    if chart is not None:
        draw_frontier(found, chart, force)
        speaker.say(f"Written: {chart}")
    speaker.result(found.to_dict())


def read_values(words: list[str]) -> dict[str, list[float]]:
    """`k=2,5,10` as the values of k."""
    found: dict[str, list[float]] = {}
    for word in words:
        name, _, numbers = word.partition("=")
        try:
            found[name.strip()] = [float(n) if "." in n else int(n) for n in numbers.split(",")]
        except ValueError:
            raise ConfigError(f"--vary {word}: write a parameter and its values, such as k=2,5,10.") from None
    return found


def report(found: Frontier, speaker: Speaker) -> None:
    """The points as a table, and what they say."""
    asked = list(found.points[0].asked) if found.points else []
    headers = [*asked, "algorithm", "column", found.objective, "least", "classes", "risk", "error"]
    rows = [
        [*p.asked.values(), p.algorithm, p.column or "", p.loss, p.bound, p.classes, p.risk, p.error]
        for p in found.points
        if p.refused is None
    ]
    speaker.table("What privacy costs", headers, rows)
    for point in found.points:
        if point.refused is not None:
            said = ", ".join(f"{name} = {value:g}" for name, value in point.asked.items())
            speaker.say(f"{point.algorithm} with {said}: {point.refused}")
    for sentence in found.advice:
        speaker.say(sentence)
