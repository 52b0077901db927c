"""For the page *Evolve*: a store of the project's table, changed in batches, released and audited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shoal.progress import Progress
from shoal.studio.project import Project

TOLD = 20
"""Findings, batches and releases that a page lists."""


def looked(folder: Path, progress: Progress, url: str, **_: Any) -> dict[str, Any]:
    """How the store is: numbers, releases, and the batches that came in."""
    from shoal.evolve.store.store import Store

    with progress.stage("opening the store"), Store.open(url) as store:
        settings = store.settings
        return {
            "status": store.status(),
            "history": store.history()[-200:],
            "batches": store.batches()[-TOLD:],
            "key": settings.key,
            "guard": settings.guard,
            "policy": str(settings.policy),
        }


def created(folder: Path, progress: Progress, url: str, key: str, guard: str) -> dict[str, Any]:
    """Make a store of the project's table."""
    from shoal.configured import read_source
    from shoal.evolve.store.configured import create_configured

    configuration = Project(folder).configuration
    with progress.stage("reading", 0.1):
        frame, _ = read_source(configuration)
    with progress.stage() as part:
        made = create_configured(url, configuration, frame, key=key, guard=guard, progress=part)
    found = made.check().require()
    made.close()
    return {"records": found.records, "classes": found.classes}


def applied(folder: Path, progress: Progress, url: str, path: str, kind: str, dry_run: bool) -> dict[str, Any]:
    """Apply a batch, or say what it would do and what the release after it would be."""
    from shoal.evolve.store.store import Store

    with Store.open(url) as store:
        change: dict[str, Any] = {kind: folder / path}
        done = store.apply(**change, dry_run=dry_run, progress=progress)
    return done.to_dict()


def released(folder: Path, progress: Progress, url: str, dry_run: bool) -> dict[str, Any]:
    """The next release, audited against all earlier ones, into releases/; or what it would be."""
    from shoal.evolve.store.store import Store

    with Store.open(url) as store:
        if dry_run:
            made = store.release(dry_run=True, progress=progress)
        else:
            number = len(store.history()) + 1
            place = folder / "store-releases"
            place.mkdir(exist_ok=True, mode=0o700)
            made = store.release(place / f"release-{number}.csv", progress=progress)
    return {
        "number": made.number,
        "waiting": dict(made.waiting),
        "records": made.release.evidence.records,
        "classes": made.release.evidence.classes,
        "loss": made.release.measures.ncp,
        "exposed": made.audit.exposed,
        "findings": [finding.withheld for finding in made.audit.found[:TOLD]],
        "undecided": made.audit.undecided,
    }


def audited(folder: Path, progress: Progress, url: str) -> dict[str, Any]:
    """All releases laid beside each other."""
    from shoal.evolve.store.store import Store

    with Store.open(url) as store:
        found = store.audit(progress=progress)
    return {
        "releases": found.releases,
        "exposed": found.exposed,
        "undecided": found.undecided,
        "findings": [finding.withheld for finding in found.found[:TOLD]],
    }
