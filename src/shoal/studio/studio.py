"""What pages are given: the project, and those who work for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.errors import InputError
from shoal.studio.jobs import Answer, Desk, Job, Jobs
from shoal.studio.project import Project
from shoal.studio.security import Doors

TASKS = "shoal.studio.tasks."


@dataclass
class Studio:
    """One project, open in a browser."""

    project: Project
    doors: Doors = field(default_factory=Doors)

    def __post_init__(self) -> None:
        self.jobs = Jobs(self.project.folder)
        self.desk = Desk(self.project.folder, self.project.studio / "answers")

    def answer(self, name: str, task: str, arguments: Mapping[str, Any] | None = None, wait: float = 0.4) -> Answer:
        """What a task finds out about the project as it is ("data:looked"). It is asked again only when the table, the
        configuration or the `arguments` are others; while it is being found, the page shows what was there before.
        """
        asked = {**self.project.asked, **(arguments or {})}
        return self.desk.ask(name, TASKS + task, asked, wait)

    def start(self, kind: str, task: str, arguments: Mapping[str, Any], **more: Any) -> Job:
        """Begin a job (`Jobs.start`)."""
        return self.jobs.start(kind, TASKS + task, dict(arguments), **more)

    def warm(self) -> None:
        """Have processes ready before anybody asks."""
        self.jobs.warm()
        self.desk.warm()

    def close(self) -> None:
        """Stop everything."""
        self.jobs.close()
        self.desk.close()


@dataclass(frozen=True)
class Form:
    """What was sent with a POST: fields, each any number of times, and perhaps a file that came with them."""

    fields: Mapping[str, list[str]]
    file: Path | None = None

    def __call__(self, name: str, default: str | None = None) -> str:
        """The one value of a field."""
        found = self.fields.get(name)
        if not found:
            if default is None:
                raise InputError(f"Nothing was said about {name}; fill it in and send it again.")
            return default
        return found[-1]

    def all(self, name: str) -> list[str]:
        """All values of a field."""
        return list(self.fields.get(name, []))

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number."""
        text = self(name, None if default is None else str(default)).strip()
        if not text.lstrip("-").isdigit() or len(text) > 18:
            raise InputError(f"{name} has to be a whole number.")
        return int(text)

    def decimal(self, name: str, default: float | None = None) -> float:
        """A number."""
        text = self(name, None if default is None else str(default)).strip().replace(",", ".")
        try:
            found = float(text)
        except ValueError:
            raise InputError(f"{name} has to be a number.") from None
        if found != found or abs(found) == float("inf"):
            raise InputError(f"{name} has to be a number.")
        return found


Action = Callable[[Studio, Form], str | None]
