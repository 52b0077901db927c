"""What releases of one table give away together, though each is safe alone (docs/measures.md#successive-releases).

Releases come oldest first. Regions of classes of different releases are compared in one space made of all of them, so
no original is needed. `targets` are persons whose quasi-identifiers the intruder knows; without them an intruder is
assumed who knows no more of a person than the class in the newest release.

>>> import polars as pl, shoal
>>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "illness": shoal.Attribute(role="sensitive")})
>>> first = pl.DataFrame({"age": ["[20, 29]"] * 2, "illness": ["dyspepsia", "bronchitis"]})
>>> second = pl.DataFrame({"age": ["[20, 29]"] * 3, "illness": ["dyspepsia", "bronchitis", "HIV"]})
>>> both = Releases.of([first, second], schema, pl.DataFrame({"age": [25]}))
>>> intersection(both, "illness").remaining.tolist(), tracing(both, k=2)[0].tolist()
([2], [1])
>>> changes, exposure = difference(both, k=2)
>>> changes[0].added, exposure.exposed
((('HIV',),), 1)
>>> [found.attack for found in attack_releases([first, second], schema, k=2)]
['intersection', 'difference']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import InputError, require_a
from shoal.measures.attacks import shared_quasi
from shoal.measures.exposure import Exposure
from shoal.measures.regions import common_space, relate
from shoal.measures.seen import Floats, Ints, MaskedTable
from shoal.progress import Progress, Told
from shoal.schema import Schema
from shoal.space import Space, States

__all__ = ["Releases", "attack_releases", "difference", "intersection", "tracing"]


@dataclass(frozen=True, eq=False)
class Releases:
    """Several releases, oldest first, in one space; `of` makes one.

    `tables` are the releases as an intruder sees them and `states` what their classes publish, in the common `space`;
    `targets` are the states of persons (or of the newest classes), `weights` the records behind each, and `persons`
    says which of both they are.
    """

    tables: tuple[MaskedTable, ...]
    space: Space
    states: tuple[States, ...]
    targets: States
    weights: Ints
    persons: bool

    @classmethod
    def of(cls, releases: Sequence[pl.DataFrame], schema: Schema, targets: pl.DataFrame | None = None) -> Releases:
        """Read all `releases` (and persons, the `targets`) into one space; `schema` says who each column is. Returns
        the common view.
        """
        if len(releases) < 2:
            raise InputError("Attacks across releases need two releases or more.")
        tables = tuple(MaskedTable.of(masked, schema) for masked in releases)
        frames = [table.groups for table in tables]
        names = schema.named("quasi") if targets is None else shared_quasi(schema, targets)
        if targets is None:
            space, states = common_space(frames, schema, names, [False] * len(frames))
            return cls(tables, space, tuple(states), states[-1], tables[-1].sizes, persons=False)
        space, states = common_space([*frames, targets], schema, names, [False] * len(frames) + [True])
        return cls(tables, space, tuple(states[:-1]), states[-1], np.ones(targets.height, dtype=np.int64), persons=True)


@dataclass(frozen=True, eq=False)
class Intersection:
    """Per target, how many values remain possible (0 where no release covers it) and the best guess's probability."""

    remaining: Ints
    guess: Floats
    exposure: Exposure


def intersection(releases: Releases, attribute: str, *, progress: Told | None = None) -> Intersection:
    """Values of the sensitive `attribute` that a person's classes have in all `releases` in common.

    In each release the person is in one of the classes that cover it (that meet its region), so the value is among
    theirs. Only releases that cover the person count: in the others it is taken to be absent. The guess weighs each
    value by the fewest records that have it in a release. `progress` is called with the share that is done, or a
    `shoal.Progress`. Returns, target by target, how many values remain and the best guess, and the exposure.
    """
    from scipy.sparse import csr_array

    told = Progress.of(progress)
    codes = _common_codes(releases.tables, attribute)
    width = 1 + max((int(code.max(initial=-1)) for code in codes), default=0)
    targets = len(releases.targets)
    fewest: Any = None
    covered = np.zeros(targets, dtype=bool)
    for table, states, code in zip(releases.tables, releases.states, codes, strict=True):
        histogram = _histogram_of(table, attribute)
        with told.stage(weight=1 / len(releases.tables)) as part:
            cover = relate(releases.space, releases.targets, states, progress=part)
        counts = csr_array((histogram.count, (histogram.owner, code[histogram.code])), shape=(len(table.sizes), width))
        values = csr_array(cover @ counts)
        here = np.diff(cover.indptr) > 0
        if fewest is None:
            fewest = values
        else:
            fewest = _rows(fewest.minimum(values), covered & here) + _rows(fewest, covered & ~here)
            fewest = csr_array(fewest + _rows(values, here & ~covered))
        covered |= here
    fewest.eliminate_zeros()
    remaining = np.where(covered, np.diff(fewest.indptr), 0)
    total = np.asarray(fewest.sum(axis=1)).ravel()
    top = np.asarray(fewest.max(axis=1).toarray()).ravel() if width else np.zeros(targets)
    guess = np.where(remaining > 0, top / np.maximum(1, total), 0.0)
    alone = remaining == 1
    exposed = int(releases.weights[alone].sum())
    known = remaining > 0
    judged = int(releases.weights[known].sum())
    mean = exact.weighed(releases.weights[known], 1 / remaining[known]) / judged if judged else 0.0
    who = "persons" if releases.persons else "records of the newest release"
    number = int(releases.weights.sum())
    if exposed:
        sentence = (
            f"For {exposed:,} of {number:,} {who} only one value of '{attribute}' occurs in their classes of all "
            f"{len(releases.tables)} releases; putting them side by side gives it away for who is in all of them."
        )
    else:
        sentence = (
            f"Putting the {len(releases.tables)} releases side by side leaves everybody at least two values of "
            f"'{attribute}'."
        )
    details = {"mean_exposure": mean, "fewest_values": int(remaining[known].min()) if known.any() else 0}
    classes = tuple(int(c) for c in np.flatnonzero(alone)) if not releases.persons else ()
    worst = float(guess.max(initial=0.0))
    exposure = Exposure(
        "intersection", attribute, exposed, number, classes, len(releases.tables[-1].sizes), worst, sentence, details
    )
    return Intersection(remaining, guess, exposure)


@dataclass(frozen=True)
class Change:
    """A class of the newer release, the class of the older one it came from, and what was added and taken away."""

    older: int
    newer: int
    added: tuple[tuple[str | None, ...], ...]
    removed: tuple[tuple[str | None, ...], ...]

    @property
    def records(self) -> int:
        """Changed records."""
        return len(self.added) + len(self.removed)

    def disclosed(self, k: int) -> tuple[tuple[str | None, ...], ...]:
        """The values that can be read off: fewer than k at once, or newcomers who all have the same.

        Many that left with one value may just be in another class now.
        """
        newcomers = self.added if len(self.added) < k or len(set(self.added)) == 1 else ()
        return newcomers + (self.removed if len(self.removed) < k else ())


def difference(releases: Releases, k: int, *, progress: Told | None = None) -> tuple[list[Change], Exposure]:
    """What the two newest `releases` differ in, class by class.

    Classes with the same region and the same values are taken for unchanged. Another class is matched with the one of
    the other older classes that has the same, a containing or a contained region and the most sensitive values in
    common. Fewer than `k` records added or removed, and newcomers who all have one value, are disclosed: their values
    can be read off. The values of all sensitive attributes are taken together. `progress` is called with the share that
    is done, or a `shoal.Progress`. Returns the changes and the exposure.
    """
    told = Progress.of(progress)
    older, newer = releases.tables[-2:]
    one, other = releases.states[-2:]
    with told.stage(weight=0.3) as part:
        within = relate(releases.space, other, one, "inside", part)
    with told.stage(weight=0.3) as part:
        inside = (within + relate(releases.space, one, other, "inside", part).T).tocsr()
    keys_old, keys_new = _value_keys(older), _value_keys(newer)
    regions = {region.tobytes(): c for c, region in enumerate(one)}
    twins = {c: regions[region.tobytes()] for c, region in enumerate(other) if region.tobytes() in regions}
    unchanged = {c: twin for c, twin in twins.items() if keys_old.get(twin) == keys_new.get(c)}
    taken = set(unchanged.values())
    changes = []
    for c in range(len(newer.sizes)):
        told.check()
        here = keys_new.get(c, {})
        if c in unchanged:
            changes.append(Change(unchanged[c], c, (), ()))
            continue
        best: tuple[int, int] | None = None
        for candidate in sorted(set(inside.indices[inside.indptr[c] : inside.indptr[c + 1]].tolist()) - taken):
            there = keys_old.get(candidate, {})
            common = sum(min(count, there.get(key, 0)) for key, count in here.items())
            if common and (best is None or common > best[0]):
                best = (common, candidate)
        if best is not None:
            changes.append(_change(best[1], c, keys_old.get(best[1], {}), here))
    hit = [change for change in changes if change.disclosed(k)]
    exposed = sum(len(change.disclosed(k)) for change in hit)
    changed = [change.records for change in changes if change.records]
    small = sum(1 <= number < k for number in changed)
    if hit:
        first = hit[0]
        verb = "joined" if first.disclosed(k)[0] in first.added else "left"
        values = ", ".join("missing" if value is None else value for value in first.disclosed(k)[0])
        sentence = (
            f"Comparing the two newest releases gives away the sensitive values of {exposed:,} records in {len(hit):,} "
            f"classes that changed by fewer than {k} records or by one value only; for example, who {verb} the class "
            f"({newer.show(first.newer)}) has {values}."
        )
    else:
        sentence = f"No class changed by fewer than {k} records or by one value only between the two newest releases."
    details = {
        "fewest_changed_records": min(changed, default=0),
        "classes_changed_by_fewer_than_k": small,
        "unchanged_classes": len(changes) - len(changed),
        "matched_classes": len(changes),
    }
    classes = tuple(change.newer for change in hit)
    exposure = Exposure(
        "difference", None, exposed, newer.n, classes, len(newer.sizes), float(bool(hit)), sentence, details
    )
    return changes, exposure


def tracing(releases: Releases, k: int, *, progress: Told | None = None) -> tuple[Ints, Exposure]:
    """Who can be followed through the `releases`: persons that fit one class of a release and one of the next.

    A person that fits one class in each release has as many candidates as persons fit both: the effective k. Where
    classes overlap nobody can tell which of them a person is in, so the pair with the most candidates counts, and who
    is exposed (to fewer than `k`) is so whichever it is. It needs persons. `progress` is called with the share that is
    done, or a `shoal.Progress`. Returns each person's effective k, and the exposure.
    """
    told = Progress.of(progress)
    if not releases.persons:
        raise InputError("Tracing needs persons whose quasi-identifiers are known; give an external table.")
    covers = [relate(releases.space, releases.targets, states) for states in told.each(releases.states)]
    effective = np.full(len(releases.targets), np.iinfo(np.int64).max, dtype=np.int64)
    for one, other in pairwise(covers):
        told.check()
        together = (one.T @ other).tocsr()
        found = _most(one, other, together)
        effective = np.where(found > 0, np.minimum(effective, found), effective)
    linked = effective < np.iinfo(np.int64).max
    effective = np.where(linked, effective, 0)
    hit = linked & (effective < k)
    exposed, smallest = int(hit.sum()), int(effective[linked].min()) if linked.any() else 0
    sentence = (
        f"Following classes from release to release leaves {exposed:,} of {len(effective):,} persons among fewer than "
        f"{k} candidates; the smallest such group has {smallest}."
    )
    details = {"smallest_effective_k": smallest, "linked": int(linked.sum())}
    worst = 1 / smallest if smallest else 0.0
    exposure = Exposure("tracing", None, exposed, len(effective), (), 0, worst, sentence, details)
    return effective, exposure


def attack_releases(
    releases: Sequence[pl.DataFrame],
    schema: Schema,
    k: int,
    targets: pl.DataFrame | None = None,
    *,
    progress: Told | None = None,
) -> list[Exposure]:
    """All attacks across releases that these tables allow.

    - `releases`: masked tables of successive releases, oldest first; two at least.
    - `schema`: who each column is.
    - `k`: below how many records a change or a group gives somebody away.
    - `targets`: persons whose quasi-identifiers the intruder knows; none by default.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    Returns one `Exposure` an attack and attribute.

    >>> import polars as pl, shoal
    >>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "illness": shoal.Attribute(role="sensitive")})
    >>> first = pl.DataFrame({"age": ["[20, 29]"] * 2, "illness": ["flu", "cold"]})
    >>> second = pl.DataFrame({"age": ["[20, 29]"] * 3, "illness": ["flu", "cold", "HIV"]})
    >>> shoal.attack_releases([first, second], schema, k=2)[1].sentence
    'Comparing the two newest releases gives away the sensitive values of 1 records ... for example, who joined ... has HIV.'
    """
    require_a("releases", releases, (list, tuple), "a list of polars frames, oldest first")
    for one in releases:
        require_a("a release", one, pl.DataFrame, "a polars frame")
    require_a("schema", schema, Schema, "a Schema")
    require_a("k", k, (int, np.integer), "a whole number")
    require_a("targets", targets, (pl.DataFrame, type(None)), "a polars frame")
    told, names, found = Progress.of(progress), schema.named("sensitive"), []
    read = Releases.of(releases, schema, targets)
    for name in names:
        with told.stage("putting releases side by side", 0.4 / len(names)) as part:
            found.append(intersection(read, name, progress=part).exposure)
    if names:
        # Classes are compared as a whole, which needs all quasi-identifiers and not only those a person shows.
        with told.stage("comparing releases", 0.3) as part:
            found.append(difference(Releases.of(releases, schema), k, progress=part)[1])
    if targets is not None:
        with told.stage("following persons") as part:
            found.append(tracing(read, k, progress=part)[1])
    return found


def _histogram_of(table: MaskedTable, attribute: str) -> Any:
    for histogram in table.histograms:
        if histogram.column.name == attribute:
            return histogram
    raise InputError(f"'{attribute}' is not a sensitive attribute.")


def _common_codes(tables: Sequence[MaskedTable], attribute: str) -> list[Ints]:
    """For each release, the code that its labels have in all of them."""
    labels = [_histogram_of(table, attribute).column.labels for table in tables]
    place = {label: i for i, label in enumerate(sorted(set().union(*labels)))}
    return [np.array([place[label] for label in own], dtype=np.int64) for own in labels]


def _rows(matrix: Any, keep: NDArray[np.bool_]) -> Any:
    """The matrix with all rows but some emptied."""
    from scipy.sparse import diags_array

    return diags_array(keep.astype(np.int64), dtype=np.int64) @ matrix


def _value_keys(table: MaskedTable) -> dict[int, dict[tuple[str | None, ...], int]]:
    """Per class, how often each combination of sensitive values occurs."""
    columns = [histogram.column for histogram in table.histograms]
    codes = np.column_stack([table.labels, *(column.codes for column in columns)])
    rows, counts = np.unique(codes, axis=0, return_counts=True)
    found: dict[int, dict[tuple[str | None, ...], int]] = {}
    for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
        pairs = zip(columns, row[1:], strict=True)
        key = tuple(column.labels[code] if code >= 0 else None for column, code in pairs)
        found.setdefault(row[0], {})[key] = count
    return found


def _change(
    older: int, newer: int, there: dict[tuple[str | None, ...], int], here: dict[tuple[str | None, ...], int]
) -> Change:
    def surplus(
        one: dict[tuple[str | None, ...], int], other: dict[tuple[str | None, ...], int]
    ) -> tuple[tuple[str | None, ...], ...]:
        return tuple(key for key, count in one.items() for _ in range(max(0, count - other.get(key, 0))))

    return Change(older, newer, surplus(here, there), surplus(there, here))


def _most(one: Any, other: Any, together: Any) -> Ints:
    """Per row, the largest entry of `together` over pairs of a column of `one` and a column of `other`; 0 without any."""
    result = np.zeros(one.shape[0], dtype=np.int64)
    first, second = np.diff(one.indptr), np.diff(other.indptr)
    pairs = first * second
    owner = np.repeat(np.arange(one.shape[0]), pairs)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    width = np.maximum(1, second[owner])
    left = one.indices[one.indptr[:-1][owner] + within // width]
    right = other.indices[other.indptr[:-1][owner] + within % width]
    np.maximum.at(result, owner, np.asarray(together[left, right]).ravel())
    return result
