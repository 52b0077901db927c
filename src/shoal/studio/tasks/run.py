"""For the pages *Run* and *Release*: candidates, made as the command line makes them, and what is found about them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import UnsupportedError
from shoal.progress import Progress
from shoal.studio.project import MASKED, Candidate, Project

if TYPE_CHECKING:
    from shoal.configuration import Configuration
    from shoal.release import Release
    from shoal.report import Findings

SHEET = 200_000
"""Rows of a table that is also written for spreadsheets: larger ones take long to write, and nobody opens them."""
BESIDE = 6
"""Records of a class that are shown beside what is published of them."""
COMPANIONS = (f"{MASKED}.manifest.json", f"{MASKED}.secret.json")


def candidate(folder: Path, progress: Progress, name: str) -> dict[str, Any]:
    """Make a candidate: the masked table with its manifest, as `shoal anonymize` does, its reports and its figures."""
    from shoal.configured import load, release_of

    made = Project(folder).candidate(name)
    configuration = made.configuration
    require_in_memory(configuration)
    with progress.stage("reading", 0.08):
        data = load(configuration)
    with progress.stage(weight=0.72) as part:
        release = release_of(configuration, data, part)
    with progress.stage("writing", 0.05) as part:
        release.write(made.masked, force=True)
        for kind in ("parquet", "xlsx") if release.masked.height <= SHEET else ("parquet",):
            part.check()
            written = release.write(made.folder / f"masked.{kind}", force=True)
            for half in (".manifest.json", ".secret.json"):
                written.with_name(written.name + half).unlink()
    with progress.stage(weight=0.15) as part:
        found = _reported(made, release, part)
    figures = _figures(release, found) | {"rows": _rows_beside(release)}
    temporary = made.folder / ".figures"
    temporary.write_text(json.dumps(figures, default=str), encoding="utf-8")
    temporary.rename(made.folder / "figures.json")
    for path in made.folder.iterdir():
        path.chmod(0o600)
    return {"classes": figures["classes"]}


def require_in_memory(configuration: Configuration) -> None:
    """The studio shows rows side by side, and so has them in memory."""
    from shoal.engines.choosing import choose

    path = configuration.config.source.path
    engine = configuration.config.method.engine
    if path is None or engine == "memory":
        return
    if choose(engine, configuration.folder / path, None).engine != "memory":
        raise UnsupportedError(
            "This table is larger than memory, which the studio needs for it; use shoal anonymize --engine duckdb with the same "
            "shoal.toml."
        )


def _reported(made: Candidate, release: Release, progress: Progress) -> Findings:
    from shoal.release import file_digest
    from shoal.report import findings_of, write_page

    digest = file_digest(made.masked)
    command = f"shoal anonymize -c shoal.toml -o {MASKED}"
    for whom in ("public", "owner"):
        found = findings_of(release, whom, name=MASKED, command=command if whom == "owner" else None, digest=digest)
        with progress.stage(weight=0.2 if whom == "public" else None) as part:
            write_page(
                made.folder / ("report.html" if whom == "owner" else "report-public.html"), found.found_out(part)
            )
    return found


def _figures(release: Release, found: Findings) -> dict[str, Any]:
    """What pages compare: asked and found, loss and the proven least, column by column."""
    of, original = found.published, found.original
    assert original is not None
    queries = found.queries
    return {
        "records": of.evidence.records,
        "persons": of.evidence.persons,
        "classes": of.evidence.classes,
        "smallest": of.evidence.smallest,
        "largest": of.evidence.largest,
        "passed": of.evidence.passed,
        "checks": of.evidence.to_dict()["checks"],
        "loss": release.measures.ncp,
        "measures": release.measures.to_dict(),
        "columns": {name: original.loss(name) for name in release.data.quasi},
        "least": None if found.least is None else found.least.share,
        "least_why": "" if found.least is None else found.least.why,
        "best_chance": of.risks.prosecutor.highest,
        "average_chance": of.risks.prosecutor.average,
        "count_error": None if queries is None or isinstance(queries, str) else queries.median,
        "intruders": [
            {"knows": list(one.knows), "persons": one.persons, "before": one.certain_before, "after": one.certain}
            for one in found.intruders
        ],
        "suppressed": release.measures.suppressed,
        "algorithm": str(release.partition.notes.get("algorithm") or release.secret["settings"]["algorithm"]),
    }


def _rows_beside(release: Release) -> dict[str, Any] | None:
    """Some whole classes, record by record: what is in the table, and what is published of it. For the owner alone."""
    from shoal.io.lean import spelled_out
    from shoal.release import mask
    from shoal.report.markup import plain
    from shoal.states import class_states

    data, partition, settings = release.data, release.partition, release.secret["settings"]
    if data.frame.height > SHEET or settings["intervals"] == "columns":
        return None
    states = class_states(data, partition, data.space(settings["objective"]))
    how = {"recode": settings["recode"], "intervals": settings["intervals"]}
    masked, _ = mask(data, partition, states, **how, drop_suppressed=False, shuffle_seed=None)
    masked = spelled_out(masked)
    labels = partition.labels if data.persons is None else partition.labels[data.persons.of_row]
    classes = partition.classes
    rows = []
    for number in sorted({0, classes // 4, classes // 2, 3 * classes // 4}):
        for place, row in enumerate((labels == number).nonzero()[0][:BESIDE].tolist()):
            pairs = [[plain(data.frame[name][row], 40), plain(masked[name][row], 40)] for name in data.quasi]
            rows.append({"class": number + 1, "first": place == 0, "cells": pairs})
    return {"columns": list(data.quasi), "rows": rows}


def verified(folder: Path, progress: Progress, name: str, **_: Any) -> dict[str, Any]:
    """A candidate's file read back and verified by what stands in it alone, and its manifest held against it."""
    from shoal.claims import Judged, broken_claims, read_half
    from shoal.manifest import manifest_path
    from shoal.policy import Policy
    from shoal.report.words import model_of, promise

    made = Project(folder).candidate(name)
    configuration = made.configuration
    policy = Policy.from_config(configuration.config.policy)
    with progress.stage("verifying"):
        judged = Judged.of(made.masked, policy, configuration.schema)
        found, broken = judged.evidence, list(broken_claims(read_half(manifest_path(made.masked)), judged))
    many = "persons" if found.persons is not None else "records"
    return {
        "passed": found.passed and not broken,
        "broken": broken,
        "records": found.records,
        "persons": found.persons,
        "classes": found.classes,
        "smallest": found.smallest,
        "notes": list(found.notes),
        "checks": [
            {
                "promise": promise(model_of(check, policy.models), check, many),
                "rule": check.rule,
                "required": check.required,
                "strongest": check.strongest,
                "holds": check.holds,
                "failing": check.failing,
            }
            for check in found.checks
        ],
    }


def released(folder: Path, progress: Progress, name: str) -> dict[str, Any]:
    """Put a candidate that passes into releases/: all its files, and a `shoal.toml` that needs nothing but the table."""
    project = Project(folder)
    made = project.candidate(name)
    with progress.stage(weight=0.8) as part:
        found = verified(folder, part, name)
    if not found["passed"]:
        from shoal.errors import VerificationError

        raise VerificationError("A promise fails in this file, so it is not released; make another candidate.")
    place = folder / "releases" / name
    place.parent.mkdir(exist_ok=True, mode=0o700)
    temporary = place.with_name(f".{name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(mode=0o700)
    for path in sorted(made.folder.iterdir()):
        if path.name.startswith(("masked.", "report")):
            shutil.copyfile(path, temporary / path.name)
    (temporary / "shoal.toml").write_text(standalone(made.configuration), encoding="utf-8")
    for path in temporary.iterdir():
        path.chmod(0o600)
    shutil.rmtree(place, ignore_errors=True)
    temporary.rename(place)
    return {"name": name}


def standalone(configuration: Configuration) -> str:
    """The configuration with its taxonomies inside, beside whose table it makes the same release."""
    from shoal.configuration import write_config

    config = configuration.config
    attributes: dict[str, Any] = {}
    for name, attribute in config.attributes.items():
        if isinstance(attribute.taxonomy, str) and attribute.taxonomy != "auto":
            rows = [list(row) for row in configuration.schema.taxonomy_file(name, attribute.taxonomy).rows()]
            attribute = attribute.model_copy(update={"taxonomy": _rows(rows)})
        attributes[name] = attribute
    source = config.source
    if source.path is not None:
        source = source.model_copy(update={"path": Path(source.path).name})
    return write_config(config.model_copy(update={"attributes": attributes, "source": source}))


def _rows(rows: list[list[str]]) -> Any:
    from shoal.schema import TaxonomySource

    return TaxonomySource(rows=rows)  # type: ignore[call-arg]
