"""Random histories of people with several visits, against an exact intruder who shares no code with the store.

People come once and again, visits are added, corrected, moved to somebody else and deleted, people leave and come back with
what they had, with more or with something else, are forgotten, batches are undone, releases withdrawn, the table renewed.
Every release is good by persons, and all of them together tell nobody more.

SHOAL_PEOPLE=1000 tries as many; by default there are 24.
"""

from __future__ import annotations

import os
import random
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from tests.evolve.store.people import Register, Visit

import shoal
from shoal.errors import InfeasibleError, InputError

HISTORIES = int(os.environ.get("SHOAL_PEOPLE", "24"))
BLOCKS = 4
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
ILLS = ["flu", "cold", "ulcer", "asthma", "gout", "mumps"]
POLICIES = ((2, 2), (3, 2), (2, 1), (3, 3))
STEPS = 7


class History:
    """A register, and what its table is."""

    def __init__(self, number: int, folder: Path) -> None:
        self.random = random.Random(number)
        self.k, self.p = self.random.choice(POLICIES)
        self.ills = ILLS[: max(self.p + 2, self.random.randint(3, 6))]
        self.visits: dict[int, Visit] = {}
        self.left: dict[str, list[Visit]] = {}
        self.before: tuple[dict[int, Visit], dict[str, list[Visit]]] | None = None
        self.next_visit, self.next_person = 0, 0
        first = [self.new_visit(self.new_person()) for _ in range(self.random.randint(2 * self.k, 10))]
        first += [self.new_visit(one[1], one[2]) for one in first if self.random.random() < 0.4]
        self.visits = {one[0]: one for one in first}
        policy = shoal.KAnonymity(self.k) & shoal.PSensitive(self.p, "ill")
        self.register = Register(folder, *first, policy=policy, k=self.k, p=self.p)

    def new_person(self) -> str:
        self.next_person += 1
        return f"P{self.next_person}"

    def new_visit(self, person: str, age: int | None = None) -> Visit:
        self.next_visit += 1
        known = [visit[2] for visit in self.visits.values() if visit[1] == person]
        own = age if age is not None else known[0] if known else self.random.randrange(0, 100, 7)
        return (self.next_visit, person, own, self.random.choice(self.ills))

    def persons(self) -> list[str]:
        return sorted({visit[1] for visit in self.visits.values()})

    def some(self, names: list[str], most: int = 4) -> list[str]:
        return self.random.sample(names, min(len(names), self.random.randint(1, most)))

    def apply(self, insert: list[Visit] = (), delete: list[int] = (), update: list[Visit] = ()) -> None:  # type: ignore[assignment]
        """A batch, as one transaction; what the policy does not allow changes nothing."""
        from tests.evolve.store.people import table

        parts = {"insert": table(*insert) if insert else None, "delete": list(delete) or None}
        parts["update"] = table(*update) if update else None
        if all(part is None for part in parts.values()):
            return
        before = dict(self.visits), {name: list(own) for name, own in self.left.items()}
        try:
            done = self.register.store.apply(**{name: part for name, part in parts.items() if part is not None})
        except InfeasibleError:
            return
        if not done.applied:
            return
        self.before, here = before, set(self.persons())
        for key in delete:
            self.left.setdefault(self.visits[key][1], []).append(self.visits.pop(key))
        for visit in (*insert, *update):
            self.visits[visit[0]] = visit
        for name in set(self.persons()) - here:
            self.left.pop(name, None)

    def step(self) -> None:
        what = self.random.choice(
            ["come", "again", "again", "leave", "back", "back", "less", "correct", "move", "undo", "forget", "renew"]
        )
        getattr(self, what)()

    def come(self) -> None:
        people = [self.new_person() for _ in range(self.random.randint(1, 4))]
        first = [self.new_visit(name) for name in people]
        self.apply(insert=[*first, *(self.new_visit(one[1], one[2]) for one in first if self.random.random() < 0.3)])

    def again(self) -> None:
        """Further visits: of some, or of all who are published in one class."""
        names = self.some(self.persons())
        if self.random.random() < 0.5:
            ages = sorted((visit[2], visit[1]) for visit in self.visits.values())
            begin = self.random.randrange(len(ages))
            names = sorted({name for _, name in ages[begin : begin + 2 * self.k]})
        self.apply(insert=[self.new_visit(name) for name in names])

    def leave(self) -> None:
        names = set(self.some(self.persons()))
        if self.random.random() < 0.5:
            order = sorted(self.persons(), key=lambda name: min(v[2] for v in self.visits.values() if v[1] == name))
            names = set(order[: 2 * self.k])
        self.apply(delete=[key for key, visit in self.visits.items() if visit[1] in names])

    def back(self) -> None:
        """Who left is back: as they were, with more, or with something else."""
        rows = []
        for name in self.some(sorted(set(self.left) - set(self.persons()))):
            own = {visit[0]: visit for visit in self.left[name]}
            how = self.random.choice(["same", "same", "more", "other"])
            rows += list(own.values()) if how != "other" else []
            rows += [self.new_visit(name, next(iter(own.values()))[2])] if how != "same" else []
        self.apply(insert=rows)

    def less(self) -> None:
        names = self.some(self.persons())
        keys = [self.random.choice([k for k, visit in self.visits.items() if visit[1] == name]) for name in names]
        self.apply(delete=keys)

    def correct(self) -> None:
        keys = self.random.sample(sorted(self.visits), min(2, len(self.visits)))
        self.apply(update=[(*self.visits[key][:3], self.random.choice(self.ills)) for key in keys])

    def move(self) -> None:
        """A visit turns out to be somebody else's."""
        key, name = self.random.choice(sorted(self.visits)), self.random.choice(self.persons())
        age = next(visit[2] for visit in self.visits.values() if visit[1] == name)
        self.apply(update=[(key, name, age, self.visits[key][3])])

    def undo(self) -> None:
        if self.before is not None:
            self.register.undo()
            (self.visits, self.left), self.before = self.before, None

    def forget(self) -> None:
        name = self.random.choice([*self.persons(), *self.left] or [""])
        try:
            self.register.forget([name])
        except (InfeasibleError, InputError):
            return
        self.visits = {key: visit for key, visit in self.visits.items() if visit[1] != name}
        self.left.pop(name, None)
        self.before = None

    def renew(self) -> None:
        self.register.renew()
        self.before = None

    def release(self) -> None:
        self.register.release()
        if self.random.random() < 0.1:
            self.register.withdraw()


@pytest.mark.parametrize("block", range(BLOCKS))
def test_nobody_is_exposed_by_any_history(block: int) -> None:
    shown = grown = 0
    for number in range(block, HISTORIES, BLOCKS):
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            try:
                history = History(number, Path(folder))
            except InfeasibleError:
                continue  # a first table that no policy could be kept for
            history.release()
            for _ in range(STEPS):
                history.step()
                if history.random.random() < 0.6:
                    history.release()
            history.release()
            assert sorted(history.register.keys(), key=int) == [str(key) for key in sorted(history.visits)]
            assert history.register.safe(), number
            shown += len(history.register.releases)
            lines = [{person: line for person, (_, line) in one.items()} for one in history.register.releases]
            for old, new in pairwise(lines):
                grown += sum(old[person] != new[person] for person in old.keys() & new.keys())
            history.register.close()
    assert shown > 2 * HISTORIES / BLOCKS and grown, "histories in which nothing happens prove nothing"
