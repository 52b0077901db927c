"""What masking cost: every loss measure, one definition each (docs/measures.md#loss), for search and report alike.

Losses are taken from class *states*: what a class publishes. A suppressed record loses everything.
`measure` gives the totals, `per_class` the same losses class by class and attribute by attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from shoal import exact
from shoal.errors import require_word
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.progress import Progress, Told
from shoal.schema import Suppressed
from shoal.space import Interval, Set, Space, States, Tree
from shoal.states import class_states, members

__all__ = ["ClassLosses", "Measures", "discernibility", "distortion_ratio", "measure", "per_class", "sse"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HeightReading = Literal["levels", "edges"]
READINGS = ("levels", "edges")


@dataclass(frozen=True)
class Measures:
    """Loss of one release (docs/measures.md#loss). Ratios lie in [0, 1].

    - `il`, `nil`: information loss by heights, as a total and as a mean; `ncp`: by leaves; `ncp_distinct`: by the
      distinct values of a class; `ncp_published`: by the size of what is published; `granularity`: as ARX reports it.
      None may be compared with another.
    - `dm`, `avg`: discernibility, a total, and the mean class size over k.
    - `sse`: the lost variance of numbers, in percent; not a number without numbers.
    - `distortion`, `precision`: how far up their hierarchies values went, and how far they did not.
    - `changed`: cells that are not published as they were; `classes`, `smallest_class`, `largest_class`, `suppressed`:
      counts.
    - `attributes`: the losses of each quasi-identifier.

    >>> import polars as pl, shoal
    >>> from shoal.measures.loss import Measures, measure
    >>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": [20, 30, 40, 60]}), {"age": {"role": "quasi"}})
    >>> found: Measures = measure(data, shoal.Partition.of_classes([[0, 1], [2, 3]], 4), k=2)
    >>> found.ncp, found.il, found.dm, found.avg
    (0.375, 1.5, 8.0, 1.0)
    >>> found.to_dict()["attributes"]["age"]["ncp"]
    0.375
    """

    il: float
    nil: float
    ncp: float
    ncp_distinct: float
    ncp_published: float
    granularity: float
    dm: float
    avg: float
    sse: float
    distortion: float
    precision: float
    changed: int
    classes: int
    smallest_class: int
    largest_class: int
    suppressed: int
    attributes: Mapping[str, Mapping[str, float]]

    def to_dict(self) -> dict[str, Any]:
        """For JSON; a measure that does not apply (no number to average) is None."""
        plain = asdict(self)
        plain["attributes"] = {
            name: {key: _or_none(value) for key, value in shares.items()} for name, shares in self.attributes.items()
        }
        return {key: _or_none(value) for key, value in plain.items()}


@dataclass(frozen=True, eq=False)
class ClassLosses:
    """Losses in [0, 1] per class (row) and quasi-identifier (column), for each measure in `cells`; `per_class` makes one.

    `names` and `weights` are those of the attributes, `heights` the edges of each one's hierarchy, for the distortion
    ratio; `sizes` are the classes' and `suppressed` the number of suppressed records.

    >>> import polars as pl, shoal
    >>> from shoal.measures.loss import ClassLosses, per_class
    >>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": [20, 30, 40, 60]}), {"age": {"role": "quasi"}})
    >>> losses: ClassLosses = per_class(data, shoal.Partition.of_classes([[0, 1], [2, 3]], 4))
    >>> losses.frame()["ncp"].to_list(), losses.shares()["ncp"].tolist()
    ([0.25, 0.5], [0.375])
    """

    names: tuple[str, ...]
    weights: Floats
    heights: Floats
    sizes: Ints
    suppressed: int
    cells: Mapping[str, Floats]

    @property
    def n(self) -> int:
        """Records, suppressed ones included."""
        return int(self.sizes.sum()) + self.suppressed

    def shares(self) -> dict[str, Floats]:
        """Per measure and attribute, the average over all records."""
        return {
            key: np.array([exact.weighed(self.sizes, column) + self.suppressed for column in cells.T]) / max(1, self.n)
            for key, cells in self.cells.items()
        }

    def frame(self) -> pl.DataFrame:
        """One row a class: its size, IL(class) = size · unit (docs/measures.md#il), and its mean loss by each measure."""
        columns: dict[str, Any] = {"class": np.arange(len(self.sizes)), "size": self.sizes}
        columns["il"] = self.sizes * exact.along(self.cells["il"], self.weights)
        columns |= {key: cells.mean(axis=1) for key, cells in self.cells.items() if key != "il"}
        return pl.DataFrame(columns)


def measure(
    data: Microdata,
    partition: Partition,
    k: int = 1,
    states: States | None = None,
    *,
    suppressed: Suppressed = "mask",
    progress: Told | None = None,
) -> Measures:
    """All measures of a partition as it would be published.

    - `data`, `partition`: the table, and which record is in which class.
    - `k`: what `avg` and `dm` measure class sizes against; 1 by default.
    - `states`: what each class publishes, where that is already known; found out by default.
    - `suppressed`: whether suppressed records are published starred ("mask", the default) or left out ("drop").
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    Returns the measures.

    >>> import polars as pl, shoal
    >>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": [20, 30, 40, 60]}), {"age": {"role": "quasi"}})
    >>> measure(data, shoal.Partition.of_classes([[0, 1], [2, 3]], 4)).granularity
    0.375
    """
    told = Progress.of(progress)
    with told.stage(weight=0.6) as part:
        losses = per_class(data, partition, states, progress=part)
    with told.stage() as part:
        return summarize(losses, k, sse(data, partition, progress=part), suppressed=suppressed)


def per_class(
    data: Microdata, partition: Partition, states: States | None = None, *, progress: Told | None = None
) -> ClassLosses:
    """The losses of every class and attribute: `data`, `partition`, `states` and `progress` as for `measure`.

    Returns them as matrices.

    >>> import polars as pl, shoal
    >>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": [20, 30, 40, 60]}), {"age": {"role": "quasi"}})
    >>> per_class(data, shoal.Partition.of_classes([[0, 1], [2, 3]], 4)).cells["il"].tolist()
    [[0.25], [0.5]]
    """
    space = data.space("il")
    if states is None:
        states = class_states(data, partition, space)
    told = Progress.of(progress)
    told(0.2)
    cells = state_losses(space, states)
    told(0.5)
    cells["ncp_distinct"] = distinct_losses(data, partition, told)
    return ClassLosses(tuple(data.quasi), space.weights, heights(space), partition.sizes, partition.suppressed, cells)


def summarize(losses: ClassLosses, k: int, of_numbers: float, *, suppressed: Suppressed = "mask") -> Measures:
    """The totals over all records; `of_numbers` is the sse, which states alone do not tell."""
    share, sizes, n, d = losses.shares(), losses.sizes, losses.n, len(losses.names)
    starred = losses.suppressed if suppressed == "mask" else 0
    classes = len(sizes) + (1 if starred else 0)
    changed = np.count_nonzero((losses.cells["ncp"] > 0) | (losses.cells["il"] > 0), axis=1)
    by_class = losses.cells["distortion"] * losses.heights
    return Measures(
        il=exact.weighed(sizes, exact.along(losses.cells["il"], losses.weights))
        + losses.suppressed * exact.total(losses.weights),
        nil=exact.mean(share["il"]),
        ncp=exact.mean(share["ncp"]),
        ncp_distinct=exact.mean(share["ncp_distinct"]),
        ncp_published=exact.mean(share["ncp_published"]),
        granularity=exact.mean(share["granularity"]),
        dm=discernibility(sizes, losses.suppressed, n, k),
        avg=(int(sizes.sum()) + starred) / (classes * k) if classes else float("nan"),
        sse=of_numbers,
        distortion=distortion_ratio(by_class, losses.heights, sizes, losses.suppressed, height_reading="edges"),
        precision=1 - exact.mean(share["distortion"]),
        changed=int(sizes @ changed) + losses.suppressed * d,
        classes=len(sizes),
        smallest_class=int(sizes.min()) if len(sizes) else 0,
        largest_class=int(sizes.max(initial=0)),
        suppressed=losses.suppressed,
        attributes={
            name: {key: float(values[a]) for key, values in share.items()} for a, name in enumerate(losses.names)
        },
    )


def state_losses(space: Space, states: States) -> dict[str, Floats]:
    """Every measure that follows from what is published, per class and attribute."""
    return {
        "il": space.losses(states, "il"),
        "ncp": space.losses(states, "ncp"),
        "ncp_published": published_losses(space, states),
        "granularity": space.losses(states, "granularity"),
        "distortion": _levels(space, states),
    }


def discernibility(sizes: Ints, suppressed: int, n: int, k: int = 1) -> float:
    """Σ |class|²; a suppressed record, and one in a class smaller than k, costs n (docs/measures.md#dm).

    `sizes` are those of the classes, `suppressed` the number of suppressed records, `n` all records, `k` 1 by default.
    Returns the sum.

    >>> import numpy as np
    >>> discernibility(np.array([4, 4]), suppressed=2, n=10)
    52.0
    """
    as_floats = sizes.astype(np.float64)
    return exact.total(np.where(sizes >= k, as_floats**2, n * as_floats)) + float(n) * suppressed


def distinct_losses(
    data: Microdata, partition: Partition, progress: Progress | None = None, everything: Sequence[int] | None = None
) -> Floats:
    """Distinct values of the class over those of the table; numbers by width (docs/measures.md#ncp_distinct).

    `everything` is how many the table has, where `data` is only some of its records.
    """
    result = np.zeros((partition.classes, len(data.domains)))
    inside, space, told = members(data, partition), data.space("ncp"), Progress.of(progress)
    tight = inside.states(space)
    for a, domain in enumerate(data.domains):
        told.check()
        if isinstance(domain, Interval):
            slot = int(space.slots[a])
            result[:, a] = domain.loss(tight[:, slot], tight[:, slot + 1], "ncp")
            continue
        cells = np.unique(inside.labels.astype(np.int64) * domain.size + inside.codes[:, a])
        distinct = np.bincount(cells // domain.size, minlength=partition.classes)
        table = len(np.unique(data.points.codes[:, a])) if everything is None else everything[a]
        result[:, a] = np.where(distinct > 1, distinct / table, 0.0)
    return result


def published_losses(space: Space, states: States) -> Floats:
    """NCP by what is actually published: set size, leaves below the node, codes in an interval of labels.

    Each over the size of the domain and 0 when it is one; numbers by width.
    """
    result = space.losses(states, "ncp")
    for a, domain in enumerate(space.domains):
        if isinstance(domain, Interval) and domain.labels is not None:
            slot = int(space.slots[a])
            codes = states[:, slot + 1] - states[:, slot] + 1
            mixed = (states[:, slot + 1] == domain.missing_code) & (codes > 1)
            result[:, a] = np.where(mixed, 1.0, np.where(codes > 1, codes / domain.size, 0.0))
    return result


def distortion_ratio(
    levels: ArrayLike,
    heights: ArrayLike,
    records: ArrayLike | None = None,
    suppressed: int = 0,
    *,
    height_reading: HeightReading = "levels",
) -> float:
    """Σ h / (n · Σ H): how far up their hierarchies values went (Rahimi et al. 2015, §V; docs/measures.md#distortion).

    - `levels`: a row a class and a column an attribute.
    - `heights`: of the hierarchies, one an attribute.
    - `records`: of each class; one each by default.
    - `suppressed`: records that go all the way; 0 by default.
    - `height_reading`: heights in print are mostly numbers of levels with the leaves among them ("levels", the default,
      so H is one less), else "edges".

    Returns the ratio.

    >>> round(distortion_ratio([[1, 0, 2, 0, 1, 0, 0]] * 2, [5, 3, 4, 3, 3, 3, 2], suppressed=2, height_reading="edges"), 5)
    0.58696
    """
    require_word("height_reading", height_reading, READINGS)
    h = np.atleast_2d(np.asarray(levels, dtype=np.float64))
    top = np.asarray(heights, dtype=np.float64) - (height_reading == "levels")
    counts = np.ones(len(h)) if records is None else np.asarray(records, dtype=np.float64)
    n, whole = exact.total(counts) + suppressed, exact.total(top)
    if n == 0:
        return float("nan")
    if whole <= 0:
        return 0.0
    return (exact.total(counts[:, None] * h) + suppressed * whole) / (n * whole)


def sse(data: Microdata, partition: Partition, *, progress: Told | None = None) -> float:
    """100·SSE/SST over standardized numeric quasi-identifiers (docs/measures.md#sse) of a `partition` of `data`.

    `progress` is called with the share that is done; nothing by default. Returns percent, and not a number when there are
    no numbers.

    >>> import polars as pl, shoal
    >>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": [20, 30, 40, 60]}), {"age": {"role": "quasi"}})
    >>> round(sse(data, shoal.Partition.of_classes([[0, 1], [2, 3]], 4)), 2)
    28.57
    """
    within = total = 0.0
    inside, points, told = members(data, partition), data.points, Progress.of(progress)
    for a, domain in enumerate(told.each(data.domains)):
        if not isinstance(domain, Interval) or not numeric(domain):
            continue
        mean, spread = moments(domain, points.codes[:, a], points.weights)
        if spread <= 0:
            continue
        found = within_classes(domain, inside.codes[:, a], inside.labels, inside.weights, partition.classes)
        lost = 0.0
        if partition.suppressed:
            away = data.codes[partition.labels < 0, a]
            lost = exact.total((domain.values[away[away < domain.missing_code]] - mean) ** 2)
        within += (exact.total(found) + lost) / spread
        total += 1.0
    return 100 * within / total if total else float("nan")


def numeric(domain: Interval) -> bool:
    """Whether the values are numbers, and not ordered labels."""
    return domain.labels is None


def within_classes(
    domain: Interval, codes: NDArray[np.int32], labels: NDArray[np.int32], weights: Ints | None, classes: int
) -> Floats:
    """Squared differences of known values from the mean of their class, one entry a row (`weights`: for so many records)."""
    known = codes < domain.missing_code
    owners, numbers = labels[known], domain.values[codes[known]]
    heavy = np.ones(len(numbers)) if weights is None else weights[known].astype(np.float64)
    counts = np.maximum(1, np.bincount(owners, heavy, classes))
    means = np.bincount(owners, heavy * numbers, classes) / counts
    return np.asarray(heavy * (numbers - means[owners]) ** 2)


def moments(domain: Interval, codes: NDArray[np.int32], weights: Ints) -> tuple[float, float]:
    """Mean and sum of squared differences from it, over the known values."""
    known = codes < domain.missing_code
    if not known.any():
        return 0.0, 0.0
    values, counts = domain.values[codes[known]], weights[known]
    mean = exact.weighed(counts, values) / int(counts.sum())
    return mean, exact.weighed(counts, (values - mean) ** 2)


def heights(space: Space) -> Floats:
    """Edges of each attribute's hierarchy; attributes without one count as a single step."""
    return np.array([float(d.taxonomy.height[d.taxonomy.root]) if isinstance(d, Tree) else 1.0 for d in space.domains])


def _levels(space: Space, states: States) -> Floats:
    """How far up its hierarchy each attribute went, as a share of the way (docs/measures.md#distortion)."""
    result = space.losses(states, "il")
    for a, domain in enumerate(space.domains):
        if isinstance(domain, Set):
            result[:, a] = result[:, a] > 0
    return result


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value
