"""`shoal attack`: what an intruder learns from a masked file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.output import JSON, PERSON, QUIET, Speaker
from shoal.cli.verify import published
from shoal.errors import ConfigError, VerificationError, did_you_mean

if TYPE_CHECKING:
    from shoal.measures.attacks import Exposure
    from shoal.measures.risk import Risks
    from shoal.schema import Configuration

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
MINIMAL = ("incognito", "datafly", "mondrian")


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
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Run every attack that the files allow and say who is exposed. Exit code 1 when a threshold is exceeded.

    Example: shoal attack masked.csv -c shoal.toml --external voters.csv --threshold 0.05
    """
    from shoal.declaration import examine
    from shoal.io.files import read_table
    from shoal.measures.attacks import MaskedTable, linking, run_attacks
    from shoal.measures.releases import attack_releases
    from shoal.measures.risk import dankar, population_sizes, reidentification_risk
    from shoal.schema import read_config
    from shoal.verifier import masked_schema

    speaker = Speaker(as_json, quiet)
    limits = read_thresholds(threshold)
    configuration = read_config(config)
    if person is not None:
        configuration = configuration.with_person(person, published=True)
    missing = configuration.config.source.missing
    frame = read_table(masked, missing=missing)
    schema = masked_schema(configuration.schema, frame)
    table = MaskedTable.of(frame, schema)
    fits = population_sizes(table, read_table(population, missing=missing)) if population else None
    risks = reidentification_risk(table.sizes, fits)
    found = run_attacks(table, strength=strength)
    notes: list[str] = []
    persons = read_table(external, missing=missing) if external else None
    if persons is not None:
        found.append(linking(table, persons).exposure)
        attempted, reason = minimality_of(configuration, table, persons)
        found += attempted
        notes += [reason] if reason else []
    if previous:
        releases = [read_table(path, missing=missing) for path in previous]
        found += attack_releases([*releases, frame], schema, smallest_k(configuration, table.sizes), persons)
    asis = examine(frame, schema)
    told: dict[str, Any] = {
        "records": table.n,
        "classes": len(table.sizes),
        "risk": risks.to_dict(),
        "attacks": [exposure.to_dict() for exposure in found],
        "notes": notes,
        "published_as_it_is": asis.to_dict(),
    }
    uniqueness = dankar(table.sizes, fraction) if fraction is not None else None
    if uniqueness is not None:
        told["uniqueness"] = uniqueness.to_dict()
    report(found, risks, speaker)
    if uniqueness is not None:
        speaker.say(
            f"{uniqueness.sample:,} records are alone in their class; in a population of {uniqueness.population:,} about "
            f"{uniqueness.estimate:,.0f} persons would be ({uniqueness.model})."
        )
    published(asis, speaker)
    for note in notes:
        speaker.say(note)
    problems = exceeded(found, risks, limits)
    speaker.result({**told, "exceeded": problems})
    if problems:
        raise VerificationError("The masked table exposes more than was allowed: " + " ".join(problems))


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


def exceeded(found: list[Exposure], risks: Risks, limits: dict[str, float]) -> list[str]:
    """What goes beyond the thresholds, in sentences."""
    problems = []
    for exposure in found:
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


def minimality_of(configuration: Configuration, table: Any, persons: Any) -> tuple[list[Exposure], str | None]:
    """The minimality attack where the policy limits shares and the algorithm generalizes no more than it must."""
    from shoal.measures.minimality import minimality_attack
    from shoal.models.alpha_k import AlphaK
    from shoal.policy import Policy

    algorithm = configuration.config.method.algorithm
    models = Policy.from_config(configuration.config.policy).models if configuration.config.policy else ()
    shares = [model for model in models if isinstance(model, AlphaK)]
    if not shares:
        return [], None
    if algorithm not in MINIMAL:
        return [], f"Minimality does not apply: {algorithm} does not generalize only as far as it must."
    found = []
    for model in shares:
        names = [model.attribute] if model.attribute else [h.column.name for h in table.histograms]
        found += [minimality_attack(table, persons, float(model.alpha), name) for name in names]
    return found, None


def smallest_k(configuration: Configuration, sizes: Any) -> int:
    """The policy's k, or the smallest class there is."""
    k = configuration.config.policy.get("k")
    return int(k) if k else int(sizes.min())


def report(found: list[Exposure], risks: Risks, speaker: Speaker) -> None:
    """Risks and attacks, for people."""

    rows = [
        [risk.intruder, risk.highest, risk.average, risk.above.get(0.1, 0), risk.above.get(0.2, 0)]
        for risk in (risks.prosecutor, risks.journalist, risks.marketer)
        if risk is not None
    ]
    speaker.table("Risk of being found", ["intruder", "highest", "average", "records > 0.1", "records > 0.2"], rows)
    shown = [[e.attack, e.attribute, e.exposed, e.share, len(e.classes), e.worst] for e in found]
    speaker.table("What the attacks expose", ["attack", "attribute", "exposed", "share", "classes", "worst"], shown)
    for exposure in found:
        # Published intervals such as [low, high] are no markup.
        speaker.say(exposure.sentence)
