"""What an intruder learns from one masked table: attacks are run, not argued (docs/measures.md#attacks).

Every attack looks at the masked table alone (linking also at what the intruder has) and answers with an `Exposure`: who
is exposed, how much, and a sentence a data steward understands. Classes are those of the published values; suppressed
records are one of them. A missing sensitive value exposes nobody and is no value.

>>> import polars as pl, shoal
>>> ages, illnesses = ["[20, 29]"] * 3 + ["[30, 39]"] * 3, ["flu", "flu", "flu", "flu", "cold", "cold"]
>>> masked = pl.DataFrame({"age": ages, "illness": illnesses})
>>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "illness": shoal.Attribute(role="sensitive")})
>>> table = MaskedTable.of(masked, schema)
>>> table.n, table.show(0), [found.attack for found in run_attacks(table)]
(6, 'age = [20, 29]', ['homogeneity', 'background_knowledge', 'skewness'])
>>> illness = table.histograms[0]
>>> homogeneity(table, illness).sentence
"In 1 of 2 classes everybody has the same 'illness', so who is known to be in one of them is exposed: 3 of 6 records."
>>> background_knowledge(table, illness, strength=1).exposed
3
>>> skewness(table, illness, gain=0.9).details["value"]
'cold'
>>> similarity(table, illness) is None
True
>>> linking(table, pl.DataFrame({"age": [25, 37]})).exposure.details["certain"]
1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import InputError, did_you_mean
from shoal.measures.exposure import Exposure, farther_apart, more_values, nearer_the_table
from shoal.measures.regions import common_space, relate
from shoal.measures.seen import Floats, Histogram, Ints, MaskedTable
from shoal.measures.worst_case import worst_case
from shoal.models.base import TOLERANCE
from shoal.models.extended_p_sensitive import strong_nodes
from shoal.progress import Told
from shoal.schema import Schema

__all__ = [
    "background_knowledge",
    "homogeneity",
    "linking",
    "run_attacks",
    "similarity",
    "skewness",
    "vulnerable_tables",
]

SIMILAR_RANGE = 0.1
"""Numbers of a class are similar when they span at most this share of the table's range."""
AMOUNTS = 20
"""Numbers with more different values than this are amounts, of which two are hardly ever equal."""
SKEWED_GAIN = 1.0
"""A value is skewed in a class when its share there is more than twice that in the table."""


def run_attacks(
    table: MaskedTable, *, strength: int = 1, similar_range: float = SIMILAR_RANGE, gain: float = SKEWED_GAIN
) -> list[Exposure]:
    """All attacks that need nothing but the masked table, for every sensitive attribute.

    - `table`: the masked table.
    - `strength`: how many values the intruder can rule out; 1 by default.
    - `similar_range`: the share of the table's range within which numbers are similar; 0.1 by default.
    - `gain`: from which gain on a value counts as skewed; 1.0 by default, twice as frequent as in the table.

    Returns one `Exposure` an attack and attribute.
    """
    found: list[Exposure] = []
    for histogram in table.histograms:
        found.append(homogeneity(table, histogram))
        found.append(background_knowledge(table, histogram, strength))
        alike = similarity(table, histogram, similar_range)
        if alike is not None:
            found.append(alike)
        found.append(skewness(table, histogram, gain))
    return found


def homogeneity(table: MaskedTable, histogram: Histogram) -> Exposure:
    """Classes in which everybody has the same value (Truta et al. 2007, §2.1).

    `table` is the masked table and `histogram` the attribute, one of `table.histograms`. Returns what is exposed.
    """
    top = np.zeros(len(histogram.known), dtype=np.int64)
    np.maximum.at(top, histogram.owner, histogram.count)
    hit = np.flatnonzero((histogram.known > 0) & (top == histogram.known))
    name, exposed = histogram.column.name, int(histogram.known[hit].sum())
    if len(hit):
        sentence = (
            f"In {_of(len(hit), len(table.sizes), 'class', 'classes')} everybody has the same '{name}', so who is "
            f"known to be in one of them is exposed: {_of(exposed, table.n, 'record', 'records')}."
        )
    else:
        sentence = f"No class has only one value of '{name}', so being in a class does not give the value away."
    worst = 1.0 if len(hit) else _top_share(histogram)
    way_out = more_values(name, 2, _values(histogram)) if len(hit) else ""
    return Exposure(
        "homogeneity", name, exposed, table.n, _ids(hit), len(table.sizes), worst, sentence, way_out=way_out
    )


def background_knowledge(table: MaskedTable, histogram: Histogram, strength: int = 1) -> Exposure:
    """An intruder who can rule out `strength` values (1 by default) for the target (docs/measures.md#background-knowledge).

    At worst these are the most frequent of the others, so the top value has the probability r_1 / (s − (r_2 + … +
    r_{b+1})), and certainty comes with at most b + 1 values in the class. Where the whole table has no more values than that,
    whoever rules out all but one needs no table: only classes with fewer values than the table expose anybody. `table` is
    the masked table and `histogram` the attribute, one of `table.histograms`. Returns what is exposed.
    """
    by_strength = {b: float(posteriors(histogram, b).max(initial=0.0)) for b in range(max(2, strength) + 1)}
    values = _values(histogram)
    hit = np.flatnonzero((histogram.distinct > 0) & (histogram.distinct <= min(strength + 1, values - 1)))
    exposed, name = int(histogram.known[hit].sum()), histogram.column.name
    ruled = f"{strength} value" if strength == 1 else f"{strength} values"
    if len(hit):
        sentence = (
            f"Who can rule out {ruled} of '{name}' for a person may learn the value of "
            f"{_of(exposed, table.n, 'record', 'records')}, in {_of(len(hit), len(table.sizes), 'class', 'classes')}."
        )
    elif values <= strength + 1:
        sentence = (
            f"'{name}' has {values} value{'s' if values != 1 else ''} in the whole table: who can rule out {ruled} knows the "
            "rest with or without this table, and no class tells more."
        )
    else:
        sentence = (
            f"Who can rule out {ruled} of '{name}' still cannot be certain of anybody's; the best guess is right with "
            f"probability {by_strength[strength]:.2f}."
        )
    details: dict[str, Any] = {"posterior": {str(b): value for b, value in by_strength.items()}, "values": values}
    if worst := _worst_case(histogram, max(by_strength)):
        details["worst_case"] = worst
    return Exposure(
        "background_knowledge",
        name,
        exposed,
        table.n,
        _ids(hit),
        len(table.sizes),
        by_strength[strength],
        sentence,
        details,
        more_values(name, strength + 2, values) if len(hit) else "",
    )


def _worst_case(histogram: Histogram, strength: int) -> dict[str, float]:
    """The most that 0, 1, … implications tell; nothing where persons have several values, of whom it does not speak."""
    if int(histogram.count.sum()) != int(histogram.known.sum()):
        return {}
    ends = zip(histogram.starts[:-1], histogram.starts[1:], strict=True)
    classes = [histogram.count[start:end].tolist() for start, end in ends]
    return {str(have): value for have, value in enumerate(worst_case(classes, strength))}


def posteriors(histogram: Histogram, strength: int) -> Floats:
    """Per class, the probability of its most frequent value when the `strength` next ones are ruled out."""
    classes = len(histogram.known)
    rank = np.arange(len(histogram.owner)) - histogram.starts[:-1][histogram.owner]
    first, ruled = rank == 0, (rank >= 1) & (rank <= strength)
    top = np.bincount(histogram.owner[first], histogram.count[first], classes)
    out = np.bincount(histogram.owner[ruled], histogram.count[ruled], classes)
    # Persons may have several values; whoever has one that is ruled out may be counted for another, and it is at most certain.
    return np.where(histogram.known > 0, np.minimum(1.0, top / np.maximum(1, histogram.known - out)), 0.0)


def similarity(
    table: MaskedTable,
    histogram: Histogram,
    similar_range: float = SIMILAR_RANGE,
    variance_ratio: float | None = None,
) -> Exposure | None:
    """Classes whose values differ and yet say the same (docs/measures.md#similarity).

    Values are alike in one category, below one protected node, or, for numbers and ordered labels, within
    `similar_range` (0.1 by default) of the table's range or with less than `variance_ratio` of its variance. By default
    that ratio is the square of the range, which is what an even spread over that range has. `table` is the masked table
    and `histogram` the attribute, one of `table.histograms`.

    Returns what is exposed, or None where nothing says what is similar.
    """
    column = histogram.column
    if column.categories or (column.protect and column.taxonomy is not None):
        groups, meaning = _alike_groups(histogram)
        model = "p_plus_sensitive" if column.categories else "extended_p_sensitive"
        way_out = f'Ask for {model} = {{ p = 2, attribute = "{column.name}" }} in [policy].'
        hit = np.flatnonzero(_distinct_groups(histogram, groups) == 1)
        worst = len(hit) / len(table.sizes)
    elif column.ordered:
        ratio = similar_range**2 if variance_ratio is None else variance_ratio
        spans, variances = _spreads(histogram)
        hit = np.flatnonzero((histogram.known > 0) & ((spans <= similar_range + TOLERANCE) | (variances < ratio)))
        meaning = f"lie within {similar_range:.0%} of the range, or hardly vary"
        way_out = farther_apart(column, similar_range)
        worst = len(hit) / len(table.sizes)
    else:
        return None
    exposed = int(histogram.known[hit].sum())
    if len(hit):
        sentence = (
            f"In {_of(len(hit), len(table.sizes), 'class', 'classes')} the values of '{column.name}' {meaning}: "
            f"{_of(exposed, table.n, 'record', 'records')} are exposed to who only wants to know that much."
        )
    else:
        sentence = f"In no class do all values of '{column.name}' say the same ({meaning})."
    return Exposure(
        "similarity",
        column.name,
        exposed,
        table.n,
        _ids(hit),
        len(table.sizes),
        worst,
        sentence,
        way_out=way_out if exposed else "",
    )


def vulnerable_tables(tables: Sequence[pl.DataFrame], schema: Schema, attribute: str) -> tuple[int, int]:
    """Of several masked `tables` (say, all minimal generalizations), how many a similarity attack on the `attribute`
    succeeds on.

    `schema` says who each column is. Returns how many are vulnerable, and of how many.

    >>> import polars as pl, shoal
    >>> from shoal.measures.attacks import vulnerable_tables
    >>> secret = shoal.Attribute(role="sensitive", categories={"grave": ["HIV", "cancer"], "plain": ["flu"]})
    >>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "illness": secret})
    >>> one = pl.DataFrame({"age": ["*"] * 3, "illness": ["HIV", "cancer", "flu"]})
    >>> other = pl.DataFrame({"age": ["[20, 29]", "[20, 29]", "[30, 39]"], "illness": ["HIV", "cancer", "flu"]})
    >>> vulnerable_tables([one, other], schema, "illness")
    (1, 2)
    """
    vulnerable = 0
    for masked in tables:
        table = MaskedTable.of(masked, schema)
        by_name = {histogram.column.name: histogram for histogram in table.histograms}
        if attribute not in by_name:
            raise InputError(f"'{attribute}' is not a sensitive attribute; {did_you_mean(attribute, by_name)}")
        found = similarity(table, by_name[attribute])
        vulnerable += found is not None and found.exposed > 0
    return vulnerable, len(tables)


def skewness(table: MaskedTable, histogram: Histogram, gain: float = SKEWED_GAIN) -> Exposure:
    """Values that are more frequent in a class than in the table by more than `gain` (docs/measures.md#skewness); 1.0
    by default.

    The gain of a value is p/q − 1 for its shares p in the class and q in the table: being in the class makes it that
    much more probable. `table` is the masked table and `histogram` the attribute, one of `table.histograms`. Returns
    what is exposed.
    """
    share = histogram.count / np.maximum(1, histogram.known)[histogram.owner]
    whole = histogram.table / max(1, histogram.everybody)
    prior = whole[histogram.code]
    gains = share / prior - 1
    # Amounts are hardly ever equal: one that nobody else in the class has is one person's of the class, which k bounds.
    own = (histogram.count == 1) if _amounts(histogram) else np.zeros(len(gains), dtype=bool)
    hit = (gains > gain + TOLERANCE) & ~own
    exposed, name = histogram.having(hit), histogram.column.name
    worst = int(np.where(own, -1.0, gains).argmax()) if len(gains) else -1
    if worst < 0:
        return Exposure("skewness", name, 0, table.n, (), len(table.sizes), 0.0, f"'{name}' has no known value.")
    if own.all():
        alone = histogram.having(own)
        sentence = (
            f"'{name}' holds amounts, which are hardly ever equal: {_of(alone, table.n, 'record', 'records')} have one that "
            "nobody else in their class has, and no class makes one more frequent. How near they lie is what similarity tells."
        )
        details = {"gain": 0.0, "additive_gain": 0.0, "value": None, "own": alone}
        return Exposure("skewness", name, 0, table.n, (), len(table.sizes), 0.0, sentence, details)
    value, owner = histogram.column.labels[histogram.code[worst]], int(histogram.owner[worst])
    sentence = (
        f"'{value}' is {gains[worst] + 1:.1f} times as frequent in the class ({table.show(owner)}) as in the table "
        f"({share[worst]:.0%} instead of {prior[worst]:.1%}); {_of(exposed, table.n, 'record', 'records')} have a "
        f"value of '{name}' that their class makes more than {gain + 1:g} times as probable."
    )
    details = {
        "gain": float(gains[worst]),
        "additive_gain": float((share - prior)[~own].max()),
        "value": value,
        "own": histogram.having(own),
    }
    classes = np.unique(histogram.owner[hit])
    return Exposure(
        "skewness",
        name,
        exposed,
        table.n,
        _ids(classes),
        len(table.sizes),
        float(gains[worst]),
        sentence,
        details,
        nearer_the_table(name, gain) if exposed else "",
    )


def _amounts(histogram: Histogram) -> bool:
    """Whether an attribute is numbers with many values, as amounts of money and measurements are."""
    return histogram.column.numbers is not None and len(histogram.column.labels) > AMOUNTS


@dataclass(frozen=True, eq=False)
class Links:
    """What linking found for each person of the external table: candidate records, and the best guess's probability.

    `posterior` has, per sensitive attribute, the share of the most frequent value among the candidates; `value` is
    that value's label (None where no candidate has a known value).
    """

    candidates: Ints
    posterior: Mapping[str, Floats]
    value: Mapping[str, list[str | None]]
    exposure: Exposure


def linking(
    table: MaskedTable, external: pl.DataFrame, certainty: float = 1.0, *, progress: Told | None = None
) -> Links:
    """Persons with known quasi-identifiers against the masked table (docs/measures.md#linking).

    - `table`: the masked table.
    - `external`: one row a person, with some or all of the quasi-identifiers. A value missing there rules nothing out.
    - `certainty`: from which probability on a sensitive value counts as known; 1.0 by default.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    Candidates of a person are the records whose published values cover what is known: intervals and sets that contain
    it, nodes above it. Exposed are persons with one candidate, or with a known value. Returns candidates and best
    guesses person by person, and the exposure.
    """
    from scipy.sparse import csr_array

    if external.height == 0:
        raise InputError("The external table has no persons.")
    names = shared_quasi(table.schema, external)
    space, (classes, persons) = common_space([table.groups, external], table.schema, names, [False, True])
    cover = relate(space, persons, classes, progress=progress)
    candidates = np.asarray(cover @ table.sizes, dtype=np.int64)
    posterior, values = {}, {}
    for histogram in table.histograms:
        width = max(1, len(histogram.column.labels))
        counts = csr_array((histogram.count, (histogram.owner, histogram.code)), shape=(len(table.sizes), width))
        found = csr_array(cover @ counts)
        best, code = _row_maxima(found)
        posterior[histogram.column.name] = best / np.maximum(1, candidates)
        values[histogram.column.name] = [histogram.column.labels[c] if c >= 0 else None for c in code]
    certain = np.zeros(external.height, dtype=bool)
    for share in posterior.values():
        certain |= (candidates > 0) & (share >= certainty - TOLERANCE)
    unique = candidates == 1
    exposed = unique | certain
    hit = np.unique(np.asarray(cover[exposed].indices)) if exposed.any() else np.zeros(0, dtype=np.int64)
    linked = candidates > 0
    expected = exact.total(1 / candidates[linked])
    total = external.height
    fewest = int(candidates[linked].min()) if linked.any() else 0
    sentence = (
        f"Of {total:,} persons in the external table {int(linked.sum()):,} fit some masked record, "
        f"{int(unique.sum()):,} fit exactly one, and for {int(certain.sum()):,} a sensitive value is certain; guessing "
        f"would find {expected:,.1f} of them, and nobody who fits has fewer than {fewest} candidates."
    )
    details = {
        "linked": int(linked.sum()),
        "unique": int(unique.sum()),
        "certain": int(certain.sum()),
        "expected_reidentified": expected,
        "fewest_candidates": fewest,
        "median_candidates": float(np.median(candidates[linked])) if linked.any() else 0.0,
        "columns": names,
    }
    worst = max((float(share.max()) for share in posterior.values()), default=1 / fewest if fewest else 0.0)
    exposure = Exposure(
        "linking", None, int(exposed.sum()), total, _ids(hit), len(table.sizes), worst, sentence, details
    )
    return Links(candidates, posterior, values, exposure)


def shared_quasi(schema: Schema, external: pl.DataFrame) -> list[str]:
    """The quasi-identifiers that an external table has; one at least."""
    quasi = schema.named("quasi")
    names = [name for name in quasi if name in external.columns]
    if not names:
        raise InputError(
            f"The external table has none of the quasi-identifiers {', '.join(quasi)}; "
            f"{did_you_mean(quasi[0], external.columns)}"
        )
    return names


def _alike_groups(histogram: Histogram) -> tuple[Ints, str]:
    """The group of each code: its category, or its strong node (a value below no protected node is its own)."""
    column = histogram.column
    if column.categories:
        category = {value: i for i, (_, values) in enumerate(column.categories) for value in values}
        rest = len(column.categories)
        groups = [category.get(label, rest + code) for code, label in enumerate(column.labels)]
        return np.array(groups, dtype=np.int64), "are all of one category"
    tree = column.taxonomy
    if tree is None:
        raise InputError(f"'{column.name}' has neither categories nor a taxonomy.")
    strong = strong_nodes(tree, column.protect)
    places = [tree.leaf_codes.get(label) for label in column.labels]
    groups = [tree.nodes + code if place is None else int(strong[place]) for code, place in enumerate(places)]
    return np.array(groups, dtype=np.int64), "lie all below one protected node"


def _distinct_groups(histogram: Histogram, groups: Ints) -> Ints:
    width = int(groups.max(initial=0)) + 1
    cells = np.unique(histogram.owner * width + groups[histogram.code])
    return np.bincount(cells // width, minlength=len(histogram.known))


def _spreads(histogram: Histogram) -> tuple[Floats, Floats]:
    """Range and variance of each class over those of the table; infinite where the table does not vary."""
    column, classes = histogram.column, len(histogram.known)
    numbers = np.arange(len(column.labels), dtype=np.float64) if column.numbers is None else column.numbers
    values = numbers[histogram.code]
    spans = np.where(histogram.known > 0, histogram.largest(values) + histogram.largest(-values), np.inf)
    known = np.maximum(1, histogram.known)
    means = np.bincount(histogram.owner, histogram.count * values, classes) / known
    squares = histogram.count * (values - means[histogram.owner]) ** 2
    variances = np.bincount(histogram.owner, squares, classes) / known
    there = np.flatnonzero(histogram.table)
    counts, values = histogram.table[there], numbers[there]
    everything = float(counts.sum())
    if not everything:
        return spans, variances
    centre = exact.weighed(counts, values) / everything
    variance = exact.weighed(counts, (values - centre) ** 2) / everything
    if variance <= 0:
        return np.full(classes, np.inf), np.full(classes, np.inf)
    return spans / float(values.max() - values.min()), variances / variance


def _row_maxima(matrix: Any) -> tuple[Ints, Ints]:
    """Largest entry of every row of a sparse matrix and its column (the smallest of several), 0 and -1 without any."""
    best, code = np.zeros(matrix.shape[0], dtype=np.int64), np.full(matrix.shape[0], -1, dtype=np.int64)
    owner = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    # Row by row, as the owners come: their own order stays.
    order = np.lexsort((matrix.indices, -matrix.data, owner))
    first = np.ones(len(owner), dtype=bool)
    first[1:] = owner[1:] != owner[:-1]
    best[owner[first]] = matrix.data[order][first]
    code[owner[first]] = matrix.indices[order][first]
    return best, code


def _values(histogram: Histogram) -> int:
    """How many values the whole table has."""
    return int(np.count_nonzero(histogram.table))


def _top_share(histogram: Histogram) -> float:
    return float(posteriors(histogram, 0).max(initial=0.0))


def _ids(classes: NDArray[Any]) -> tuple[int, ...]:
    return tuple(int(c) for c in classes)


def _of(some: int, total: int, one: str, many: str) -> str:
    return f"{some:,} of {total:,} {one if total == 1 else many}"
