"""The project: a folder that the command line understands, and nothing else.

```
shoal.toml                 the table, its columns, the promises, the method
data/                      files that came in through the browser, readable by their owner only
taxonomies/                value hierarchies, as CSV
candidates/A/              shoal.toml, masked.csv and its two companions, report.html, figures.json
releases/A/                what leaves: masked files, manifest, reports, and a shoal.toml that makes them again
.studio/                   answers that were found already; may be deleted at any time
```
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.configuration import Configuration, parse_config, read_config
from shoal.errors import InputError, ShoalError
from shoal.io.atomic import atomic_write_text

MASKED = "masked.csv"
NAMES = (*string.ascii_uppercase, *(f"{a}{b}" for a in string.ascii_uppercase for b in string.ascii_uppercase))


@dataclass(frozen=True)
class Candidate:
    """One way to mask the table, in a folder of its own."""

    folder: Path

    @property
    def name(self) -> str:
        """A, B, C …"""
        return self.folder.name

    @property
    def config(self) -> Path:
        """Its configuration, which makes it again: shoal anonymize -c."""
        return self.folder / "shoal.toml"

    @property
    def masked(self) -> Path:
        """The masked table."""
        return self.folder / MASKED

    @property
    def configuration(self) -> Configuration:
        """What it was made with."""
        return read_config(self.config)

    @property
    def state(self) -> str:
        """done, failed, or stopped before it was done; a job that makes it knows better."""
        if (self.folder / "figures.json").is_file():
            return "done"
        return "failed" if (self.folder / "failed.txt").is_file() else "stopped"

    @property
    def sentence(self) -> str:
        """Why it failed."""
        return _text(self.folder / "failed.txt")

    @property
    def figures(self) -> dict[str, Any]:
        """What was found about it (`tasks.run`); empty while it is not done."""
        return _json(self.folder / "figures.json")

    @property
    def manifest(self) -> dict[str, Any]:
        """What it publishes about itself."""
        return _json(self.folder / f"{MASKED}.manifest.json")

    @property
    def secret(self) -> dict[str, Any]:
        """What stays with its owner: settings and all losses."""
        return _json(self.folder / f"{MASKED}.secret.json")


@dataclass(frozen=True)
class Project:
    """A folder with a table's configuration, its candidates and its releases."""

    folder: Path

    @property
    def config(self) -> Path:
        """The configuration."""
        return self.folder / "shoal.toml"

    @property
    def begun(self) -> bool:
        """Whether a table has been opened."""
        return self.config.is_file()

    @property
    def text(self) -> str:
        """The configuration as it is written; empty before a table is opened."""
        return _text(self.config)

    @property
    def configuration(self) -> Configuration:
        """The configuration, read."""
        return read_config(self.config)

    def write(self, text: str) -> None:
        """Replace the configuration, if the new one can be read; the old one stays in `.studio/` (`undo`)."""
        parse_config(text)
        if text == self.text:
            return
        history = self.history
        if self.begun:
            self.studio.mkdir(exist_ok=True, mode=0o700)
            _write(self.studio / f"before-{len(history):04d}.toml", self.text)
        atomic_write_text(self.config, text, force=True)
        self.config.chmod(0o600)

    @property
    def history(self) -> list[Path]:
        """Earlier configurations, the oldest first."""
        return sorted(self.studio.glob("before-*.toml"))

    def undo(self) -> None:
        """The configuration as it was before the last change."""
        if not self.history:
            raise InputError("Nothing was changed yet that could be undone.")
        last = self.history[-1]
        atomic_write_text(self.config, _text(last), force=True)
        last.unlink()

    @property
    def studio(self) -> Path:
        """What the studio keeps for itself, and finds again if it is deleted."""
        return self.folder / ".studio"

    @property
    def data(self) -> Path:
        """Where uploads go."""
        return self.folder / "data"

    @property
    def taxonomies(self) -> Path:
        """Where taxonomies go."""
        return self.folder / "taxonomies"

    @property
    def source(self) -> str:
        """What the table is called."""
        given = self.configuration.config.source
        return Path(given.path).name if given.path else str(given.table or given.query or "")

    @property
    def stamp(self) -> list[Any]:
        """Says whether the table is still the same: its place, size and time. Part of every question about it."""
        given = self.configuration.config.source
        if given.path is None:
            return [given.url, given.table, given.query]
        try:
            found = (self.folder / given.path).stat()
        except OSError:
            raise InputError(f"The table '{given.path}' is not there any more; open it again.") from None
        return [given.path, found.st_size, found.st_mtime_ns]

    @property
    def asked(self) -> dict[str, Any]:
        """What answers about the whole project depend on: the table, the configuration, and its taxonomies."""
        digest = hashlib.sha256(self.text.encode())
        for path in sorted(self.taxonomies.glob("*.csv")):
            digest.update(path.name.encode() + path.read_bytes())
        return {"stamp": self.stamp, "config": digest.hexdigest()}

    def candidates(self) -> list[Candidate]:
        """All candidates there are, in the order of their names."""
        folder = self.folder / "candidates"
        found = [Candidate(folder / name) for name in _listed(folder) if name in NAMES]
        return sorted(found, key=lambda one: (len(one.name), one.name))

    def candidate(self, name: str) -> Candidate:
        """One of them."""
        found = next((one for one in self.candidates() if one.name == name), None)
        if found is None:
            raise InputError("There is no such candidate; choose one of those listed.")
        return found

    def new_candidate(self, text: str) -> Candidate:
        """A folder for the next one, with the configuration it is made with."""
        taken = {one.name for one in self.candidates()}
        name = next(name for name in NAMES if name not in taken)
        folder = self.folder / "candidates" / name
        folder.mkdir(parents=True, mode=0o700)
        made = Candidate(folder)
        atomic_write_text(made.config, text)
        made.config.chmod(0o600)
        return made

    def drop_candidate(self, name: str) -> None:
        """Delete one."""
        shutil.rmtree(self.candidate(name).folder)

    def releases(self) -> list[str]:
        """Names of what was released."""
        return [name for name in _listed(self.folder / "releases") if name in NAMES]

    def release(self, name: str) -> Path:
        """The folder of a release."""
        if name not in self.releases():
            raise InputError("There is no such release; make it first.")
        return self.folder / "releases" / name

    def put_away(self) -> None:
        """Another table is opened: what was made of this one goes to a folder of its own and loses nothing."""
        if not self.begun:
            return
        old = self.folder / "earlier"
        old.mkdir(exist_ok=True, mode=0o700)
        place = old / f"{len(_listed(old)) + 1}"
        place.mkdir(mode=0o700)
        for name in ("candidates", "releases", "taxonomies", "shoal.toml"):
            if (self.folder / name).exists():
                (self.folder / name).rename(place / name)
        shutil.rmtree(self.studio, ignore_errors=True)


def edited(text: str, changes: Mapping[Any, Any]) -> str:
    """The text of a configuration with some keys changed, and its comments kept; None takes a key away.

    A key is a path, "policy.k", or a tuple where names may hold dots.

    >>> edited('[policy]\\nk = 5  # as usual\\n', {"policy.k": 10})
    '[policy]\\nk = 10  # as usual\\n'
    """
    import tomlkit

    document = tomlkit.parse(text)
    for path, value in changes.items():
        *tables, key = path if isinstance(path, tuple) else path.split(".")
        table: Any = document
        for name in tables:
            if name not in table:
                table[name] = tomlkit.table()
            table = table[name]
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    return tomlkit.dumps(document)


def _listed(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(text)


def open_folder(folder: Path) -> Project:
    """A folder for a project, made if it is not there; readable by its owner only where it is made."""
    folder = folder.resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as problem:
        raise InputError(
            f"The folder '{folder}' cannot be made: {problem.strerror}; choose another --folder."
        ) from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"The folder '{folder}' cannot be written to; choose another --folder.")
    return Project(folder)


def readable(project: Project) -> Iterator[str]:
    """What stands in the way of showing the project, in sentences."""
    if project.begun:
        try:
            _ = project.stamp
        except ShoalError as problem:
            yield str(problem)
