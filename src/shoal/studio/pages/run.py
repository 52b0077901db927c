"""*Run*: how should it be done?"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

from shoal.algorithms import names
from shoal.configuration import Configuration
from shoal.errors import require_word
from shoal.studio.jobs import Job
from shoal.studio.project import Candidate, Project, edited
from shoal.studio.studio import Action, Form, Studio

EFFORTS = {"fast": True, "thorough": "thorough", "none": False}


def view(studio: Studio, query: Mapping[str, str]) -> dict[str, Any]:
    """The candidates there are and are being made, and what the next one would be made with."""
    project = studio.project
    told: dict[str, Any] = {"begun": project.begun, "candidates": [_told(studio, one) for one in project.candidates()]}
    told["done"] = [one["name"] for one in told["candidates"] if one["state"] == "done"]
    if not project.begun:
        return told
    method = project.configuration.config.method
    efforts = {True: "fast", "fast": "fast", "thorough": "thorough", False: "none"}
    meant = studio.answer("consequences", "data:consequences", wait=0.2)
    refused = [one for one in (meant.shown or {}).get("findings", []) if one["refused"]]
    return told | {
        "source": project.source,
        "policy": short(project.configuration.config.policy),
        "promises": promises(project.configuration),
        "algorithms": ["auto", *(name for name in names() if name != "auto")],
        "algorithm": method.algorithm,
        "efforts": list(EFFORTS),
        "effort": efforts.get(method.refine, "fast") if isinstance(method.refine, bool | str) else "fast",
        "seed": method.seed,
        "refused": refused,
        "problem": meant.sentence if meant.state == "failed" else "",
    }


def _told(studio: Studio, one: Candidate) -> dict[str, Any]:
    """A candidate: how it was made, and what came of it or how far it is."""
    job = studio.jobs.of("candidate", one.name)
    state = job.state if job is not None and job.open else one.state
    config = one.configuration.config
    told = {
        "name": one.name,
        "state": state,
        "job": job.to_dict() if job is not None and job.open else None,
        "sentence": one.sentence,
        "policy": short(config.policy),
        "algorithm": config.method.algorithm,
        "effort": "none"
        if config.method.refine is False
        else "thorough"
        if config.method.refine == "thorough"
        else "fast",
    }
    return told | ({"figures": one.figures} if state == "done" else {})


def short(policy: Mapping[str, Any]) -> str:
    """The promises by their numbers: k = 5, p = 3."""
    from shoal.policy import Policy

    told = [str(model) for model in Policy.from_config(policy).models]
    return ", ".join(one.partition("(")[2].removesuffix(")") if one.count("(") == 1 else one for one in told)


def promises(configuration: Configuration) -> list[dict[str, str]]:
    """The promises in sentences (markup, escaped), each with the rule as configurations write it."""
    from shoal.policy import Policy
    from shoal.report.words import promise
    from shoal.verifier import Check

    schema, found = configuration.schema, []
    many = "records" if schema.person is None else "persons"
    for model in Policy.from_config(configuration.config.policy).models:
        given = getattr(model, "attribute", None)
        about = [given] if given is not None or not model.per_attribute else schema.named("sensitive")
        for attribute in about:
            check = Check(str(model), model.name, attribute, "", 0.0, 0.0, 0)
            found.append({"promise": promise(model, check, many), "rule": str(model)})
    return found


def make(studio: Studio, form: Form) -> None:
    """Begin a candidate; what was chosen becomes the project's own setting."""
    project = studio.project
    algorithm, effort = form("algorithm", "auto"), form("effort", "fast")
    require_word("algorithm", algorithm, ["auto", *names()])
    require_word("effort", effort, list(EFFORTS))
    seed = form.whole("seed", project.configuration.config.method.seed)
    settings = {"method.algorithm": algorithm, "method.refine": EFFORTS[effort], "method.seed": seed}
    project.write(edited(project.text, settings))
    made = project.new_candidate(moved(project))
    studio.start("candidate", "run:candidate", {"name": made.name}, about=made.name, ended=_ended(project, made))


def _ended(project: Project, made: Candidate) -> Any:
    """What is left of a candidate that failed or was stopped: the sentence, or nothing."""

    def ended(job: Job, state: str) -> None:
        if state == "failed":
            for path in made.folder.iterdir():
                if path.name != "shoal.toml":
                    path.unlink()
            (made.folder / "failed.txt").write_text(job.sentence, encoding="utf-8")
        elif state == "stopped":
            shutil.rmtree(made.folder, ignore_errors=True)

    return ended


def moved(project: Project) -> str:
    """The project's configuration as it reads two folders further down."""
    config = project.configuration.config
    changes: dict[Any, Any] = {}
    if config.source.path is not None:
        changes["source", "path"] = f"../../{config.source.path}"
    for name, one in config.attributes.items():
        if isinstance(one.taxonomy, str) and one.taxonomy != "auto":
            changes["attributes", name, "taxonomy"] = f"../../{one.taxonomy}"
        if one.pseudonym is not None:
            changes["attributes", name, "pseudonym"] = f"../../{one.pseudonym}"
        if one.shift is not None:
            changes["attributes", name, "shift", "key"] = f"../../{one.shift.key}"
    return edited(project.text, changes)


def drop(studio: Studio, form: Form) -> None:
    """Delete a candidate, or stop it."""
    name = form("candidate")
    job = studio.jobs.of("candidate", name)
    if job is not None and job.open:
        studio.jobs.stop(job)
        return
    studio.project.drop_candidate(name)


ACTIONS: dict[str, Action] = {"make": make, "drop": drop}
