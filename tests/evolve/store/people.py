"""Stores of visits, for tests: who came when, and what an intruder who knows everybody has of their releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
from tests.reference.people import exposed, too_few

import shoal
from shoal.evolve.store.archive import read_memory
from shoal.evolve.store.live import read_state
from shoal.evolve.store.settings import decode_rows
from shoal.evolve.store.visits import seen

SCHEMA: dict[str, Any] = {
    "pid": {"role": "person"},
    "age": {"role": "quasi", "domain": [0, 100], "within": "first"},
    "ill": {"role": "sensitive"},
}
K, P = 2, 2
POLICY = shoal.KAnonymity(K) & shoal.PSensitive(P, "ill")
Line = tuple[str, ...]
Visit = tuple[int, str, int, str]
"""Its key, whose it is, the age and the illness."""


def table(*visits: Visit) -> pl.DataFrame:
    types = {"visit": pl.Int64, "pid": pl.String, "age": pl.Int64, "ill": pl.String}
    return pl.DataFrame(visits, schema=types, orient="row")


class Register:
    """A store, and what the intruder keeps of its releases: of everybody the class and the line."""

    def __init__(self, folder: Path, *visits: Visit, policy: Any = POLICY, k: int = K, p: int = P, **more: Any) -> None:
        options = {"schema": SCHEMA, "algorithm": "mondrian", "refine": False, **more}
        self.store = shoal.Store.create(
            f"sqlite:///{folder}/registry.db", table(*visits), policy, key="visit", **options
        )
        self.k, self.p = k, p
        self.releases: list[dict[int, tuple[int, Line]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def insert(self, *visits: Visit) -> Any:
        return self.store.insert(table(*visits))

    def update(self, *visits: Visit) -> Any:
        return self.store.update(table(*visits))

    def release(self, *args: Any, **more: Any) -> Any:
        made = self.store.release(*args, **more)
        self.releases.append(self.newest())
        assert made.masked.height == sum(len(line) for _, line in self.releases[-1].values())
        return made

    def withdraw(self) -> None:
        self.store.withdraw(never_handed_out=True)
        self.releases.pop()

    def newest(self) -> dict[int, tuple[int, Line]]:
        """By person's number, the class and the line in the newest release."""
        with self.store._database.reading() as connection:
            like = seen(decode_rows([], read_state(connection).types))
            shown = read_memory(connection, self.store.settings, like).before
        assert shown is not None
        lines = [tuple(sorted(row["ill"] for row in json.loads(text))) for text in shown.frame["__rows"]]
        pairs = zip(shown.classes.tolist(), lines, strict=True)
        return dict(zip(shown.records.tolist(), pairs, strict=True))

    def safe(self) -> bool:
        """Whether every release is good by persons, nobody learns more from all of them, and nothing is wrong with the store."""
        assert not any(too_few(release, self.k, self.p) for release in self.releases), self.releases
        learned = exposed(self.releases, self.k, self.p)
        assert not learned, (learned, self.releases)
        audit = self.store.audit()
        assert audit.safe, (audit.findings, audit.undecided)
        assert self.store.check().require()
        return True

    def shown(self) -> list[Line]:
        """All lines of the newest release."""
        return sorted(line for _, line in self.releases[-1].values())
