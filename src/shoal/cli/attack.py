"""`shoal attack`: what an intruder learns from a masked file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shoal.cli.anonymize import published
from shoal.cli.output import JSON, PERSON, QUIET, Speaker
from shoal.cli.reporting import FOR, REPORT, judged, leave, reader
from shoal.errors import ConfigError, VerificationError, did_you_mean

if TYPE_CHECKING:
    from shoal.configuration import Configuration
    from shoal.front import Attacks

INTRUDERS = ("prosecutor", "journalist", "marketer")
ATTACKS = (
    "homogeneity",
    "background_knowledge",
    "similarity",
    "skewness",
    "linking",
    "minimality",
    "intersection",
    "difference",
    "tracing",
)
BEYOND = ("linking", "minimality", "intersection", "difference", "tracing")
"""Attacks that need more than the masked table."""


def attack(
    masked: Path = typer.Argument(..., help="The masked file."),
    config: Path = typer.Option("shoal.toml", "--config", "-c", help="Roles and taxonomies."),
    external: Path | None = typer.Option(
        None, "--external", help="What the intruder has: persons with some or all quasi-identifiers."
    ),
    previous: list[Path] = typer.Option([], "--previous", help="An earlier release; oldest first, once for each."),
    population: Path | None = typer.Option(None, "--population", help="All persons the table was drawn from."),
    fraction: float | None = typer.Option(None, "--fraction", help="Which share of the population the table holds."),
    strength: int = typer.Option(1, "--strength", min=0, help="How many values an intruder can rule out."),
    threshold: list[str] = typer.Option(
        [],
        "--threshold",
        help="Largest share of records that may be exposed: 0.05, or for one attack linking=0.01, prosecutor=0.2.",
    ),
    person: str | None = PERSON,
    page: Path | None = REPORT,
    for_: str | None = FOR,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Run every attack that the files allow and say who is exposed. Exit code 1 when a threshold is exceeded.

    Example: shoal attack masked.csv -c shoal.toml --external voters.csv --threshold 0.05
    """
    from shoal.configuration import read_config
    from shoal.front import attack as ask

    speaker = Speaker(as_json, quiet)
    limits = read_thresholds(threshold)
    # What a list or an earlier release adds is not told by the masked table.
    more = external is not None or bool(previous)
    whom = reader(page, for_, "owner" if more else "public", original=more)
    configuration = read_config(config)
    with speaker.progress("attacking") as progress:
        found = ask(
            masked,
            configuration,
            person=person,
            external=external,
            previous=previous,
            population=population,
            fraction=fraction,
            strength=strength,
            policy=configuration if configuration.config.policy else None,
            algorithm=configuration.config.method.algorithm,
            progress=progress,
        )
    report(found, speaker)
    if page is not None:
        _leave(page, whom, masked, configuration.with_person(person, published=True), found, strength, speaker)
    problems = exceeded(found, limits)
    speaker.result({**found.to_dict(), "exceeded": problems})
    if problems:
        raise VerificationError("The masked table exposes more than was allowed: " + " ".join(problems))


def _leave(
    page: Path, whom: str, masked: Path, configuration: Configuration, found: Attacks, strength: int, speaker: Speaker
) -> None:
    """The report of the attacks, which says what the file promises too."""
    from shoal.io.written import read_written
    from shoal.policy import Policy
    from shoal.verifier import masked_schema, verify

    written = read_written(masked, missing=configuration.schema.missing)
    schema = masked_schema(configuration.schema, written.table)
    policy = Policy.from_config(configuration.config.policy) if configuration.config.policy else Policy(())
    evidence = verify(written.table, policy, schema, cells=written.cells)
    extra = tuple(one for one in found.exposures if one.attack in BEYOND) if whom == "owner" else ()
    cells = written.cells
    leave(
        page,
        judged(masked, written.table, schema, evidence, configuration, cells=cells, strength=strength, extra=extra),
        speaker,
    )


def read_thresholds(words: list[str]) -> dict[str, float]:
    """`0.05` is for every attack, `linking=0.01` for one."""
    limits: dict[str, float] = {}
    for word in words:
        name, _, number = word.rpartition("=")
        if name and name not in (*ATTACKS, *INTRUDERS):
            raise ConfigError(f"--threshold {word}: no such attack; {did_you_mean(name, (*ATTACKS, *INTRUDERS))}")
        try:
            limit = float(number)
        except ValueError:
            limit = -1.0
        if not 0 <= limit <= 1:
            raise ConfigError(f"--threshold {word}: '{number}' is not a share between 0 and 1.")
        limits[name] = limit
    return limits


def exceeded(found: Attacks, limits: dict[str, float]) -> list[str]:
    """What goes beyond the thresholds, in sentences."""
    problems, risks = [], found.risks
    for exposure in found.exposures:
        limit = limits.get(exposure.attack, limits.get(""))
        if limit is not None and exposure.share > limit + 1e-12:
            of = f" of '{exposure.attribute}'" if exposure.attribute else ""
            problems.append(f"{exposure.attack}{of} exposes {exposure.share:.2%}, allowed are {limit:.2%}.")
    values = {"prosecutor": risks.prosecutor.highest, "marketer": risks.marketer.average}
    if risks.journalist is not None:
        values["journalist"] = risks.journalist.highest
    for name in INTRUDERS:
        if name in limits and name not in values:
            raise ConfigError("--threshold journalist needs --population.")
        if name in limits and values[name] > limits[name] + 1e-12:
            problems.append(f"The risk by the {name} is {values[name]:.4g}, allowed is {limits[name]:g}.")
    return problems


def report(found: Attacks, speaker: Speaker) -> None:
    """Risks and attacks, for people."""
    risks, uniqueness = found.risks, found.uniqueness
    rows = [
        [risk.intruder, risk.highest, risk.average, risk.above.get(0.1, 0), risk.above.get(0.2, 0)]
        for risk in (risks.prosecutor, risks.journalist, risks.marketer)
        if risk is not None
    ]
    speaker.table("Risk of being found", ["intruder", "highest", "average", "records > 0.1", "records > 0.2"], rows)
    shown = [[e.attack, e.attribute, e.exposed, e.share, len(e.classes), e.worst] for e in found.exposures]
    speaker.table("What the attacks expose", ["attack", "attribute", "exposed", "share", "classes", "worst"], shown)
    for exposure in found.exposures:
        # Published intervals such as [low, high] are no markup.
        speaker.say(f"{exposure.sentence} {exposure.way_out}".rstrip())
    if uniqueness is not None:
        speaker.say(
            f"{uniqueness.sample:,} records are alone in their class; in a population of {uniqueness.population:,} about "
            f"{uniqueness.estimate:,.0f} persons would be ({uniqueness.model})."
        )
    published(found.published, speaker)
    for note in found.notes:
        speaker.say(note)
