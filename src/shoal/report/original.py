"""What only the owner knows: figures that need the original table. No report for the public is given any of this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.declaration import Examination, examine
from shoal.errors import Cancelled, ShoalError
from shoal.measures.loss import Measures
from shoal.measures.masked import Published as Regions
from shoal.measures.masked import read_published
from shoal.measures.regions import relate
from shoal.measures.utility import Classification, QueryError, classification, query_error
from shoal.microdata import Microdata
from shoal.naming import speaks_of
from shoal.report.published import Published
from shoal.report.sizes import Sizes
from shoal.space import Domain, Set, Space, States

QUERIES = 500  # enough for the median of their errors; fewer where the table is large
WORK = 10_000_000
"""Records × queries: a second or so."""
LINKED = 20_000
"""Persons that are looked for in the release; of a larger table an even sample."""
BOUND = 60_000
"""Records of a table whose bound is found in about two seconds."""
TARGETS = 20
"""A classifier is worth its time where the secret has no more values than this."""

_LIST = {"age", "birth", "sex", "a place", "origin"}
_EVENT = {"a point in time", "a visible trait or event"}
_SEEN = {"age", "birth", "sex", *_EVENT}


@dataclass(frozen=True)
class Intruder:
    """One who knows some columns of everybody, in the original and in the release."""

    knows: tuple[str, ...]
    source: str
    persons: int
    certain_before: int
    right_before: float
    median_before: float
    certain: int
    right: float
    median: float
    fewest: int


@dataclass(frozen=True)
class Least:
    """What no release can fall below, or why that is not known."""

    share: float | None
    why: str = ""


@dataclass(frozen=True, eq=False)
class Original:
    """The original, what its masking cost, and how it was masked. `bounds` False leaves out what takes longest."""

    data: Microdata
    measures: Measures
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    bounds: bool = True
    command: str | None = None

    @cached_property
    def sizes(self) -> Sizes:
        """Classes of records that are alike in the original."""
        return Sizes.of(self.data.points.weights)

    @cached_property
    def asis(self) -> Examination:
        """The columns that are published as they are, beside what they tell about the exact quasi-identifiers."""
        return examine(self.data.frame, self.data.schema)

    def intruders(self, published: Published) -> list[Intruder] | str:
        """A list of voters, a neighbour, and whoever knows everything that others may know; or why that is not known."""
        try:
            found = read_published(self.data, published.by_persons)
        except Cancelled:
            raise
        except ShoalError as problem:
            return str(problem)
        if found.averaged or self.settings.get("recode") == "microaggregate":
            return "averages are no ranges that a list could be compared with"
        return [self._tried(published, found, knows, source) for knows, source in knowledge(self.data.quasi)]

    def _tried(self, published: Published, found: Regions, knows: Sequence[str], source: str) -> Intruder:
        step = max(1, self.data.n // LINKED)
        before = self._fitting(knows)[::step]
        after = self._covering(published, found, knows, step)
        fits = after > 0
        return Intruder(
            knows=tuple(knows),
            source=source,
            persons=len(before),
            certain_before=int(np.count_nonzero(before == 1)),
            right_before=exact.total(1 / before),
            median_before=float(np.median(before)),
            certain=int(np.count_nonzero(after == 1)),
            right=exact.total(1 / after[fits]),
            median=float(np.median(after[fits])) if fits.any() else 0.0,
            fewest=int(after[fits].min()) if fits.any() else 0,
        )

    def _covering(self, published: Published, found: Regions, knows: Sequence[str], step: int) -> NDArray[np.int64]:
        """How many published records cover what is known of each person; one that is starred covers everybody."""
        at = [self.data.quasi.index(name) for name in knows]
        space = Space(tuple(found.space.domains[a] for a in at), np.ones(len(at)), "ncp")
        slots = [slice(int(found.space.slots[a]), int(found.space.slots[a + 1])) for a in at]
        classes = np.concatenate([found.states[:, slot] for slot in slots], axis=1)
        persons = np.concatenate([_points(found.space.domains[a], found.codes[::step, a]) for a in at], axis=1)
        cover = relate(space, persons, classes)
        return np.asarray(cover @ found.sizes, dtype=np.int64) + int(np.count_nonzero(found.labels < 0))

    def _fitting(self, knows: Sequence[str]) -> NDArray[np.int64]:
        """How many records of the original fit what is known of each person; what is missing there rules nobody out."""
        at = [self.data.quasi.index(name) for name in knows]
        codes = self.data.codes[:, at].astype(np.int64)
        gaps = np.column_stack(
            [
                codes[:, i] == self.data.domains[a].missing_code
                if self.data.domains[a].has_missing
                else np.zeros(len(codes), dtype=bool)
                for i, a in enumerate(at)
            ]
        )
        fitting = np.full(len(codes), len(codes), dtype=np.int64)
        for pattern in np.unique(gaps, axis=0):
            known = codes[:, ~pattern]
            if known.shape[1] == 0:
                continue
            own = np.flatnonzero((gaps == pattern).all(axis=1))
            _, which, counts = np.unique(known, axis=0, return_inverse=True, return_counts=True)
            fitting[own] = counts[which.ravel()[own]]
        return fitting

    @cached_property
    def least(self) -> Least:
        """What no release that keeps the promises falls below (docs/algorithms.md#a-lower-bound-with-its-proof)."""
        from shoal.measures.bounds import loss_bound

        why = self._unbounded()
        if why:
            return Least(None, why)
        policy = self.settings["policy"]
        # Columns count alike in the mean that is shown, whatever they weigh in the search.
        space = Space(self.data.domains, np.ones(len(self.data.domains)), "ncp")
        try:
            found = loss_bound(self.data.codes, space, self.data.rules(policy))
        except Cancelled:
            raise
        except ShoalError as problem:
            return Least(None, str(problem))
        return Least(found.mean)

    def _unbounded(self) -> str:
        if not self.bounds:
            return "it was not asked for"
        if self.settings.get("policy") is None or not self.settings["policy"].models:
            return "there is no promise to keep"
        if self.settings.get("recode", "generalize") != "generalize":
            return "it is proven for classes that publish ranges, nodes and sets, not for averages or blanked cells"
        if self.settings.get("suppressed") == "drop" and self.measures.suppressed:
            return "it is proven for releases of all records, and some were left out here"
        if self.data.n > BOUND:
            return f"for more than {BOUND:,} records it takes longer than a report should"
        if self.measures.ncp != self.measures.ncp:
            return "the loss itself cannot be measured"
        return ""

    def queries(self, published: Published) -> QueryError | str:
        """How far counts are off, or why that is not known."""
        number = min(QUERIES, WORK // max(1, self.data.n))
        if number < 50:
            return "the table is too large to ask it in the time a report has; shoal measure does"
        try:
            return query_error(
                self.data, published.by_persons, queries=number, seed=int(self.settings.get("seed") or 0)
            )
        except Cancelled:
            raise
        except ShoalError as problem:
            return str(problem)

    def classifier(self, published: Published) -> Classification | None:
        """What a decision tree tells about the first secret with few values, where that is quick."""
        if not self.bounds or self.data.n > LINKED or self.data.persons is not None:
            return None
        names = self.data.schema.named("sensitive")
        few = [name for name in names if 2 <= self.data.frame[name].drop_nulls().n_unique() <= TARGETS]
        if not few or self.data.n < 100:
            return None
        from sklearn.tree import DecisionTreeClassifier

        tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=0)
        try:
            return classification(self.data, published.masked, few[0], folds=3, classifier=tree)
        except Cancelled:
            raise
        except ShoalError:
            return None

    def different(self, name: str) -> int:
        """Different values of a quasi-identifier in the original."""
        a = self.data.quasi.index(name)
        return len(np.unique(self.data.points.codes[:, a]))

    def loss(self, name: str) -> float:
        """Of detail, in a column."""
        return float(self.measures.attributes[name]["ncp"])


def _points(domain: Domain, codes: NDArray[np.int64]) -> States:
    """Single values as states; one that is missing may be anything."""
    if isinstance(domain, Set):
        words = np.zeros((len(codes), domain.words), dtype=np.uint64)
        words[np.arange(len(codes)), codes >> 6] = np.uint64(1) << (codes & 63).astype(np.uint64)
        if domain.has_missing:
            words[codes == domain.missing_code] = np.uint64(2**64 - 1)
        return words.view(np.int64)
    ends = np.column_stack([codes, codes]).astype(np.int64)
    if domain.has_missing:
        ends[codes == domain.missing_code] = 0, domain.size - 1
    return ends


def knowledge(quasi: Sequence[str]) -> list[tuple[list[str], str]]:
    """What intruders may know, and from where: by what the names of the columns speak of."""
    found: list[tuple[list[str], str]] = []
    for about, source in ((_LIST, "a voter list"), (_SEEN, "a neighbour")):
        names = [name for name in quasi if speaks_of(name) in about]
        event = about is _LIST or any(speaks_of(name) in _EVENT for name in names)
        if 2 <= len(names) < len(quasi) and event and names not in [one for one, _ in found]:
            found.append((names, source))
    return [*found, (list(quasi), "all that others may know")]
