"""The report that a data steward reads before signing (docs/report.md), and the cards that notebooks show.

`report.published` is what the masked table tells by itself and `report.original` what only its owner knows; a report for the
public is never given the second. Pages are made of escaped pieces (`report.markup`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shoal.engines.walk import LargeRelease
from shoal.errors import InputError, require_word
from shoal.report.findings import Findings
from shoal.report.large import findings_afar
from shoal.report.original import Original
from shoal.report.page import page
from shoal.report.published import Published

if TYPE_CHECKING:
    from shoal.release import Release

__all__ = ["Findings", "Original", "Published", "findings_of", "page", "report_release", "write_page"]

For = Literal["owner", "public"]
READERS = ("owner", "public")
ENDINGS = (".html", ".htm")


def report_release(
    release: Release | LargeRelease,
    path: str | Path,
    for_: str = "owner",
    *,
    name: str = "masked.csv",
    command: str | None = None,
    digest: str | None = None,
    bounds: bool = True,
) -> Path:
    """Write the report of a release; see `Release.report`. `name`, `command` and `digest` are told where they are known."""
    require_word("for_", for_, READERS)
    target = require_place(path)
    found = findings_of(release, for_, name=name, command=command, digest=digest, bounds=bounds)
    return write_page(target, found)


def findings_of(
    release: Release | LargeRelease,
    for_: str = "owner",
    *,
    name: str = "masked.csv",
    command: str | None = None,
    digest: str | None = None,
    bounds: bool = True,
) -> Findings:
    """What is found about a release. For the public nothing of the original goes further than this function."""
    if isinstance(release, LargeRelease):
        return findings_afar(release, for_, name=name, command=command, digest=digest)
    settings: Mapping[str, Any] = release.secret["settings"]
    seen = Published.of(
        name,
        release.masked,
        release.data.schema,
        release.policy,
        release.evidence,
        persons=release.persons if for_ == "owner" else None,
        settings=release.manifest.get("settings", {}),
        digest=digest,
    )
    if for_ == "public":
        return Findings(seen)
    known = {**settings, "policy": release.policy}
    notes = release.secret.get("notes", {})
    return Findings(seen, Original(release.data, release.measures, known, notes, bounds, command))


def require_place(path: str | Path) -> Path:
    """A report may take the place of another report, and of nothing else."""
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise InputError(f"'{target}' is no name for a report; it is a page, so let it end in .html.")
    if target.exists() and b'name="generator" content="Shoal' not in _beginning(target):
        raise InputError(f"'{target}' already exists and is not a report of Shoal; choose another name.")
    return target


def _beginning(path: Path) -> bytes:
    if not path.is_file():
        return b""
    with path.open("rb") as handle:
        return handle.read(2000)


def write_page(target: Path, found: Findings) -> Path:
    """The page, whole or not at all."""
    from shoal.io.atomic import atomic_write_text

    atomic_write_text(target, page(found), force=True)
    return target
