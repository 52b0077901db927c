"""*Compare*: which candidate do you release?"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from shoal.studio.project import Candidate
from shoal.studio.studio import Action, Studio


def view(studio: Studio, query: Mapping[str, str]) -> dict[str, Any]:
    """The candidates that are done, side by side, one of them picked; and the curve they lie on."""
    project = studio.project
    done = [one for one in project.candidates() if one.state == "done"]
    told: dict[str, Any] = {"begun": project.begun, "candidates": [_told(one) for one in done]}
    if not done:
        return told
    names = [one.name for one in done]
    asked = query.get("candidate", "")
    picked = asked if asked in names else names[-1]
    drawn = studio.answer("curve", "compare:curve", wait=0.3)
    figures = {one["name"]: one for one in told["candidates"]}
    columns = sorted(figures[picked]["columns"], key=lambda name: (-figures[picked]["columns"][name], name))
    return told | {
        "source": project.source,
        "picked": picked,
        "curve": (drawn.shown or {"points": [], "why": ""}),
        "drawing": drawn.to_dict(),
        "columns": [
            {"name": name, "loss": {one: figures[one]["columns"].get(name) for one in names}} for name in columns
        ],
        "rows": done[names.index(picked)].figures.get("rows"),
        "steps": list(_steps(told["candidates"])),
    }


def _told(one: Candidate) -> dict[str, Any]:
    """What the table of candidates shows of one."""
    figures = one.figures
    kept = ("smallest", "classes", "loss", "least", "best_chance", "count_error", "columns", "persons", "records")
    config = one.configuration.config
    return {
        "name": one.name,
        "policy": _policy(config.policy),
        "k": int(config.policy.get("k", figures["smallest"])),
        "algorithm": figures["algorithm"],
        **{key: figures.get(key) for key in kept},
    }


def _policy(policy: Mapping[str, Any]) -> str:
    from shoal.policy import Policy

    return " & ".join(str(model) for model in Policy.from_config(policy).models)


def _steps(candidates: list[dict[str, Any]]) -> Any:
    """From each candidate to the next more private one: what is gained, and what it costs."""
    ordered = sorted(candidates, key=lambda one: (-one["best_chance"], one["loss"]))
    for before, after in itertools.pairwise(ordered):
        if after["best_chance"] < before["best_chance"]:
            yield {
                "before": before["name"],
                "after": after["name"],
                "chance_before": before["best_chance"],
                "chance_after": after["best_chance"],
                "cost": after["loss"] - before["loss"],
            }


ACTIONS: dict[str, Action] = {}
