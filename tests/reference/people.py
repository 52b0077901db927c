"""What somebody learns of people with several rows who keeps every release, exactly: by worlds, and by integer programs.

A release gives every person in it a class and a *line*, the values of all rows of the person. The intruder knows who is in
which class of which release, how often each line occurs in each class, and also at which releases a person's line became
another one, and whether it then kept something of what it had. A line that did has grown, as visits do that are added. One that
kept nothing begins another *life* of the person, about which the lines of the old one say nothing.

A world gives every life a line in every release so that every class comes out as published and all of this is true. Somebody
is exposed who has, in every world, one of fewer than p values at some release; or whose lines, from the first release of a life
to its last, could be those of fewer than k persons.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

STAYED, GREW = "stayed", "grew"


def kind(old, new):
    """What became of a line; a part of it that is taken back is not what visits do that are added."""
    if old == new:
        return STAYED
    return GREW if set(old) <= set(new) and not Counter(old) - Counter(new) else "taken back"


def lives_of(releases):
    """The releases by lives: a person and how often their line kept nothing of what it was."""
    last, found = {}, []
    for release in releases:
        own = {}
        for person, (number, line) in release.items():
            life, before = last.get(person, (0, line))
            life += before != line and not set(before) & set(line)
            last[person] = (life, line)
            own[person, life] = (number, line)
        found.append(own)
    return found


class Worlds:
    """All worlds that fit the releases; each is a mapping of lives, here called persons, to their class and line."""

    def __init__(self, releases):
        self.releases = releases
        self.persons = sorted({person for release in releases for person in release})
        self.when = {i: [t for t, release in enumerate(releases) if i in release] for i in self.persons}
        self.truth = {i: tuple(releases[t][i][1] for t in self.when[i]) for i in self.persons}
        self.place = {i: tuple(releases[t][i][0] for t in self.when[i]) for i in self.persons}
        self.kinds = {i: tuple(map(kind, self.truth[i], self.truth[i][1:])) for i in self.persons}
        self.lines = [{} for _ in releases]
        for t, release in enumerate(releases):
            for number, line in release.values():
                self.lines[t].setdefault(number, Counter())[line] += 1
        self._program = None

    def fits(self, person, path):
        """Whether a person can have these lines, from release to release."""
        for old, new, what in zip(path, path[1:], self.kinds[person], strict=False):
            grows = set(old) <= set(new) and not Counter(old) - Counter(new) and old != new
            if (what == STAYED and old != new) or (what == GREW and not grows):
                return False
        return True

    def alike(self, person):
        """Those who could change places with a person in all releases at once: a world that nobody has to look for."""
        same = [j for j in self.persons if (self.when[j], self.place[j]) == (self.when[person], self.place[person])]
        return [j for j in same if self.fits(person, self.truth[j]) and self.fits(j, self.truth[person])]

    def possible(self, person, wanted):
        """Whether a person can have lines of which `wanted` is true."""
        if any(wanted(self.truth[j]) for j in self.alike(person)):
            return True
        program = self._made()
        some = [at for at, (i, path) in enumerate(self.columns) if i == person and wanted(path)]
        if not some:
            return False
        matrix, sums = program
        extra = np.zeros((1, matrix.shape[1]))
        extra[0, some] = 1
        found = milp(
            np.zeros(matrix.shape[1]),
            integrality=np.ones(matrix.shape[1]),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(np.vstack([matrix, extra]), [*sums, 1], [*sums, 1]),
        )
        return found.status == 0

    def _made(self):
        """The program: one unknown for each person and each row of lines that the person can have."""
        if self._program is None:
            self.columns = []
            for i in self.persons:
                choices = [sorted(self.lines[t][c]) for t, c in zip(self.when[i], self.place[i], strict=True)]
                self.columns += [(i, path) for path in product(*choices) if self.fits(i, path)]
            rows, sums = [], []
            for i in self.persons:
                rows.append([float(owner == i) for owner, _ in self.columns])
                sums.append(1)
            for t, classes in enumerate(self.lines):
                for number, counts in classes.items():
                    for line, count in counts.items():
                        rows.append([float(self._has(column, t, number, line)) for column in self.columns])
                        sums.append(count)
            self._program = np.array(rows), sums
        return self._program

    def _has(self, column, release, number, line):
        person, path = column
        if person not in self.releases[release] or self.releases[release][person][0] != number:
            return False
        return path[self.when[person].index(release)] == line


def exposed(releases, k, p):
    """Who is exposed by releases (person → class and line, each line a sorted tuple of values), and how."""
    worlds = Worlds(lives_of(releases))
    found = set()
    for i in worlds.persons:
        if "taken back" in worlds.kinds[i]:
            found.add((i, "taken back"))
        for at in range(len(worlds.truth[i])):
            mine = sorted(set(worlds.truth[i][at]))
            for size in range(1, p):
                for some in combinations(sorted({v for line in worlds.truth.values() for v in sum(line, ())}), size):
                    if not set(some) & set(mine):
                        continue  # they do not even have one of them
                    if not worlds.possible(i, lambda path, at=at, some=some: not set(some) & set(path[at])):
                        found.add((i, at, some))
        others = [j for j in worlds.persons if worlds.when[j] == worlds.when[i]]
        owners = [j for j in others if worlds.possible(j, lambda path, i=i: path == worlds.truth[i])]
        if len(owners) < k:
            found.add((i, f"{len(owners)} persons"))
    return found


def too_few(release, k, p):
    """Classes of one release, person → class and line, that do not satisfy k and p, counted by persons."""
    wrong = []
    for number in sorted({number for number, _ in release.values()}):
        sets = [set(line) for own, line in release.values() if own == number]
        values = sorted(set().union(*sets))
        met = any(all(set(some) & one for one in sets) for size in range(1, p) for some in combinations(values, size))
        if len(sets) < k or met:
            wrong.append(number)
    return wrong
