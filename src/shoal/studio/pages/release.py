"""*Release*: does the file keep its promises, and may it leave?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.errors import InputError
from shoal.studio.project import MASKED
from shoal.studio.studio import Action, Form, Studio

FILES = (
    ("masked.csv", "publish"),
    ("masked.parquet", "publish"),
    ("masked.xlsx", "publish"),
    (f"{MASKED}.manifest.json", "publish"),
    ("report-public.html", "publish"),
    ("report.html", "keep"),
    ("shoal.toml", "keep"),
    (f"{MASKED}.secret.json", "keep"),
)


def view(studio: Studio, query: Mapping[str, str]) -> dict[str, Any]:
    """The candidate that was picked, verified from its file, and the files of its release where it has been released."""
    project = studio.project
    done = [one for one in project.candidates() if one.state == "done"]
    told: dict[str, Any] = {"begun": project.begun, "candidates": [one.name for one in done]}
    if not done:
        return told
    asked = query.get("candidate", "")
    picked = next((one for one in done if one.name == asked), None) or _first(done, project.releases())
    stamp = picked.masked.stat()
    found = studio.answer(
        "verified", "run:verified", {"name": picked.name, "size": stamp.st_size, "at": stamp.st_mtime_ns}
    )
    job = studio.jobs.of("release", picked.name)
    released = picked.name in project.releases()
    told |= {
        "candidate": picked.name,
        "verifying": found.to_dict(),
        "verified": found.value,
        "figures": picked.figures,
        "source": project.source,
        "released": released,
        "releases": project.releases(),
        "job": job.to_dict() if job is not None and job.open else None,
        "failed": job.sentence if job is not None and job.state == "failed" else "",
        "folder": f"{project.folder.name}/releases/{picked.name}",
        "command": f"shoal anonymize {project.source} -c shoal.toml -o {MASKED}",
        "files": [],
    }
    if released:
        folder = project.release(picked.name)
        told["files"] = [
            {"name": name, "whose": whose, "bytes": (folder / name).stat().st_size}
            for name, whose in FILES
            if (folder / name).is_file()
        ]
    return told


def _first(done: list[Any], releases: list[str]) -> Any:
    """The candidate to show when none was picked: one that was released, or the newest."""
    return next((one for one in reversed(done) if one.name in releases), done[-1])


def make(studio: Studio, form: Form) -> str:
    """Verify a candidate once more and put it into releases/."""
    name = form("candidate")
    if studio.project.candidate(name).state != "done":
        raise InputError("This candidate is not done; wait for it, or choose another.")
    studio.start("release", "run:released", {"name": name}, about=name)
    return f"/release?candidate={name}"


ACTIONS: dict[str, Action] = {"make": make}
