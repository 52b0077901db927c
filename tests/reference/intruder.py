"""What somebody learns who keeps every release and knows who is in which class of each: exactly, by integer programs.

A release is a pair: the class of each life in it, and the multiset of values that each class publishes. A *life* is a person
for as long as the sensitive value stays the same, whether published all the time or not; whoever is told apart by it knows
when a value was corrected. A world gives every life a value so that every class of every release comes out as published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

Life = Hashable
Release = tuple[Mapping[Life, int], Mapping[int, Counter]]


def releases_of(shown):
    """Releases from rows (person, class, value) in order of publication; negative persons are counterfeits."""
    last, releases = {}, []
    for t, rows in enumerate(shown):
        of, counts = {}, {}
        for place, (person, number, value) in enumerate(rows):
            life = (t, -1 - place)
            if person >= 0:
                number_of_life, before = last.get(person, (0, value))
                last[person] = (number_of_life + (before != value), value)
                life = (person, last[person][0])
            of[life] = number
            counts.setdefault(number, Counter())[value] += 1
        releases.append((of, counts))
    return releases


class Worlds:
    """All worlds that fit the releases."""

    def __init__(self, releases: Sequence[Release]) -> None:
        lives = sorted(set(chain.from_iterable(of for of, _ in releases)), key=repr)
        paths = {life: tuple(of.get(life) for of, _ in releases) for life in lives}
        self.groups: dict[tuple, list[Life]] = {}
        for life in lives:
            self.groups.setdefault(paths[life], []).append(life)
        self.values = sorted({value for _, counts in releases for one in counts.values() for value in one}, key=repr)
        self.at = {}
        for path in self.groups:
            for value in self.values:
                self.at[path, value] = len(self.at)
        lines, sums = [], []
        for path, members in self.groups.items():
            lines.append([self.at[path, value] for value in self.values])
            sums.append(len(members))
        for t, (_, counts) in enumerate(releases):
            for number, found in counts.items():
                for value in self.values:
                    lines.append([self.at[path, value] for path in self.groups if path[t] == number])
                    sums.append(found[value])
        matrix = np.zeros((len(lines), len(self.at)))
        for i, places in enumerate(lines):
            matrix[i, places] = 1
        self.fits = LinearConstraint(matrix, sums, sums)
        self.least, self.most = np.full(len(self.at), np.inf), np.zeros(len(self.at))
        assert self._solve(np.zeros(len(self.at))) is not None, "no world fits"

    def _solve(self, cost):
        found = milp(cost, integrality=np.ones(len(cost)), bounds=Bounds(0, np.inf), constraints=self.fits)
        if found.x is None:
            return None
        world = np.round(found.x)
        self.least, self.most = np.minimum(self.least, world), np.maximum(self.most, world)
        return world

    def possible(self, path, enough=np.inf):
        """Values that somebody with these classes may have: so many of them, or all if there are fewer."""
        found = {value for value in self.values if self.most[self.at[path, value]] > 0}
        for value in self.values:
            if len(found) >= enough:
                break
            at = self.at[path, value]
            if self.most[at] == 0:
                cost = np.zeros(len(self.at))
                cost[at] = -1
                self._solve(cost)
            if self.most[at] > 0:
                found.add(value)
        return found

    def certain(self, path):
        """Whether there is a value that somebody among those with these classes certainly has."""
        for value in self.values:
            at = self.at[path, value]
            if self.least[at] > 0:
                cost = np.zeros(len(self.at))
                cost[at] = 1
                self._solve(cost)
            if self.least[at] > 0:
                return True
        return False


def exposed(releases: Sequence[Release], k: int, p: int) -> set[Life]:
    """Lives of which all releases tell more than each of them alone, and more than k and p allow.

    Fewer than p values are possible for them (and fewer than each of their classes has), or they are fewer than k who
    cannot be told apart and certainly have a value among them.
    """
    worlds, found = Worlds(releases), set()
    for path, members in worlds.groups.items():
        classes = [(t, number) for t, number in enumerate(path) if number is not None]
        fewest = min(len(releases[t][1][number]) for t, number in classes)
        whole = any(sum(of == number for of in releases[t][0].values()) == len(members) for t, number in classes)
        enough = min(max(2, p), fewest)
        if len(worlds.possible(path, enough)) < enough or (len(members) < k and not whole and worlds.certain(path)):
            found.update(members)
    return found
