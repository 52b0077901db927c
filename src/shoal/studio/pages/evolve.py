"""*Evolve*: how does the table go on?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.errors import InputError, require_word
from shoal.io.atomic import atomic_write_text
from shoal.studio.project import Project
from shoal.studio.studio import Action, Form, Studio

KINDS = ("upsert", "insert", "update", "delete")
GUARDS = ("batching", "m-invariance", "none")


def view(studio: Studio, query: Mapping[str, str]) -> dict[str, Any]:
    """The store, its releases over time, the batch that was tried last, and what the audit found."""
    project = studio.project
    url = _url(project)
    job = studio.jobs.of("store")
    told: dict[str, Any] = {
        "begun": project.begun,
        "job": job.to_dict() if job is not None and job.open else None,
        "failed": job.sentence if job is not None and job.state == "failed" else "",
        "last": {"what": job.about, **job.result} if job is not None and job.state == "done" and job.result else None,
        "kinds": list(KINDS),
        "guards": list(GUARDS),
        "store": url is not None,
    }
    if url is None:
        attributes = project.configuration.config.attributes if project.begun else {}
        keys = [name for name, one in attributes.items() if one.role in ("identifier", "person") and name != "*"]
        return told | {"keys": keys, "source": project.source if project.begun else ""}
    asked = {"url": url, "at": _stamp(project, url), "stamp": None, "config": None}
    found = studio.answer("store", "evolve:looked", asked) if told["job"] is None else None
    files = sorted((project.folder / "store-releases").glob("release-*.csv"))
    batch = _batch(project)
    return told | {
        "looking": found.to_dict() if found is not None else None,
        "found": found.shown if found is not None else None,
        "url": Path(url).name if url.startswith("sqlite:///") else url.rpartition("@")[2],
        "files": [path.name for path in files],
        "batch": None if batch is None else {"name": batch[0].name, "kind": batch[1]},
    }


def _url(project: Project) -> str | None:
    """The store of the project: the one that `store.url` names."""
    try:
        return (project.folder / "store.url").read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _stamp(project: Project, url: str) -> Any:
    """Says whether the store changed; of a database on a server, whether anything was done here."""
    path = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and path.is_file():
        found = path.stat()
        return [found.st_size, found.st_mtime_ns]
    marker = project.studio / "store-changes"
    return marker.stat().st_mtime_ns if marker.is_file() else 0


def _batch(project: Project) -> tuple[Path, str] | None:
    """The batch that waits to be applied, and what it does."""
    try:
        kind, name = (project.studio / "batch").read_text(encoding="utf-8").split("\n")[:2]
    except (OSError, ValueError):
        return None
    path = project.data / name
    return (path, kind) if path.is_file() and kind in KINDS else None


def create(studio: Studio, form: Form) -> None:
    """Make a store of the project's table, in the project's folder."""
    project = studio.project
    if _url(project) is not None:
        raise InputError("The project has a store already.")
    guard, key = form("guard", "batching"), form("key")
    require_word("guard", guard, GUARDS)
    url = f"sqlite:///{project.folder / 'store.db'}"
    if (project.folder / "store.db").exists():
        raise InputError("There is a store.db in the project's folder already; open it instead.")

    def ended(job: Any, state: str) -> None:
        if state == "done":
            atomic_write_text(project.folder / "store.url", url + "\n", force=True)

    studio.start("store", "evolve:created", {"url": url, "key": key, "guard": guard}, about="create", ended=ended)


def open_store(studio: Studio, form: Form) -> None:
    """Open a store that is there already."""
    url = form("url").strip()
    if "://" not in url:
        raise InputError("A store has an address such as sqlite:///registry.db or postgresql://user@host/base.")
    target = studio.project.folder / "store.url"
    atomic_write_text(target, url + "\n", force=True)
    target.chmod(0o600)  # an address may hold a password


def close(studio: Studio, form: Form) -> None:
    """Let go of the store; it stays where it is."""
    (studio.project.folder / "store.url").unlink(missing_ok=True)


def dry_run(studio: Studio, form: Form) -> None:
    """A batch that came in: what it would do."""
    if form.file is None:
        raise InputError("No file was sent; choose one, and send it again.")
    kind = form("kind", "upsert")
    require_word("kind", kind, KINDS)
    project = studio.project
    project.studio.mkdir(exist_ok=True, mode=0o700)
    (project.studio / "batch").write_text(f"{kind}\n{form.file.name}", encoding="utf-8")
    _do(studio, "evolve:applied", {"path": f"data/{form.file.name}", "kind": kind, "dry_run": True}, "dry-run")


def apply(studio: Studio, form: Form) -> None:
    """Apply the batch that was tried."""
    project = studio.project
    batch = _batch(project)
    if batch is None:
        raise InputError("There is no batch to apply; choose a file, and try it first.")

    def ended(job: Any, state: str) -> None:
        if state == "done":
            (project.studio / "batch").unlink(missing_ok=True)
            batch[0].unlink(missing_ok=True)

    arguments = {"path": f"data/{batch[0].name}", "kind": batch[1], "dry_run": False}
    _do(studio, "evolve:applied", arguments, "apply", ended)


def release(studio: Studio, form: Form) -> None:
    """The next release; with `dry`, what it would be."""
    dry = form("dry", "") == "yes"
    _do(studio, "evolve:released", {"dry_run": dry}, "foresee" if dry else "release")


def audit(studio: Studio, form: Form) -> None:
    """Lay all releases beside each other."""
    _do(studio, "evolve:audited", {}, "audit")


def _do(studio: Studio, task: str, arguments: Mapping[str, Any], about: str, ended: Any = None) -> None:
    project, url = studio.project, _url(studio.project)
    job = studio.jobs.of("store")
    if url is None:
        raise InputError("The project has no store; make one first, or open one.")
    if job is not None and job.open:
        raise InputError("The store is busy; wait until that is done, or stop it.")

    def marked(job: Any, state: str) -> None:
        project.studio.mkdir(exist_ok=True, mode=0o700)
        (project.studio / "store-changes").touch()
        if ended is not None:
            ended(job, state)

    studio.start("store", task, {"url": url, **arguments}, about=about, ended=marked)


ACTIONS: dict[str, Action] = {
    "create": create,
    "open": open_store,
    "close": close,
    "dry-run": dry_run,
    "apply": apply,
    "release": release,
    "audit": audit,
}
