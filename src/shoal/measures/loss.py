"""What masking cost: every loss measure, one definition each (SPEC §3), for search, report and verification alike.

Losses are taken from class *states*: what a class publishes. A suppressed record loses everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.recode import class_states
from shoal.space import Interval, Set, States, Tree

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measures:
    """Loss of one release. Ratios lie in [0, 1]; `il` and `dm` are totals, `sse` is in percent."""

    il: float
    nil: float
    ncp: float
    ncp_distinct: float
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
        return {key: None if isinstance(value, float) and np.isnan(value) else value for key, value in plain.items()}


def measure(data: Microdata, partition: Partition, k: int = 1, states: States | None = None) -> Measures:
    """All measures of a partition of `data` as it would be published."""
    space = data.space("il")
    if states is None:
        states = class_states(data, partition, space)
    sizes = partition.sizes.astype(np.float64)
    n, d, suppressed = partition.n, len(data.domains), partition.suppressed
    per_cell: dict[str, Floats] = {
        "il": space.losses(states, "il"),
        "ncp": space.losses(states, "ncp"),
        "ncp_distinct": distinct_losses(data, partition),
        "granularity": space.losses(states, "granularity"),
        "distortion": _levels(data, states),
    }
    share = {name: (sizes @ cells + suppressed) / n for name, cells in per_cell.items()}
    heights = np.array([_height(data, a) for a in range(d)])
    avg_classes = partition.classes + (1 if suppressed else 0)
    return Measures(
        il=float(sizes @ (per_cell["il"] @ space.weights) + suppressed * space.weights.sum()),
        nil=float(share["il"].mean()),
        ncp=float(share["ncp"].mean()),
        ncp_distinct=float(share["ncp_distinct"].mean()),
        granularity=float(share["granularity"].mean()),
        dm=discernibility(partition.sizes, suppressed, n),
        avg=n / (avg_classes * k) if avg_classes else float("nan"),
        sse=sse(data, partition),
        distortion=float(share["distortion"] @ heights / heights.sum()) if heights.sum() else 0.0,
        precision=float(1 - share["distortion"].mean()),
        changed=int(sizes @ np.count_nonzero(per_cell["ncp"] > 0, axis=1)) + suppressed * d,
        classes=partition.classes,
        smallest_class=int(partition.sizes.min()) if partition.classes else 0,
        largest_class=int(partition.sizes.max()) if partition.classes else 0,
        suppressed=suppressed,
        attributes={
            name: {key: float(values[a]) for key, values in share.items()} for a, name in enumerate(data.quasi)
        },
    )


def discernibility(sizes: NDArray[np.int64], suppressed: int, n: int) -> float:
    """Σ |class|², a suppressed record costs n (000, eq. 2; 003, eq. 1)."""
    return float((sizes.astype(np.float64) ** 2).sum() + float(n) * suppressed)


def distinct_losses(data: Microdata, partition: Partition) -> Floats:
    """NCP as 003 prints it (eq. 2, 3): distinct values of the class over those of the table; numbers by width."""
    result = np.zeros((partition.classes, len(data.domains)))
    inside = partition.labels >= 0
    labels = partition.labels[inside].astype(np.int64)
    space = data.space("ncp")
    tight = space.states(data.codes, partition.order, partition.starts)
    for a, domain in enumerate(data.domains):
        if isinstance(domain, Interval):
            slot = int(space.slots[a])
            result[:, a] = domain.loss(tight[:, slot], tight[:, slot + 1], "ncp")
            continue
        cells = np.unique(labels * domain.size + data.codes[inside, a])
        distinct = np.bincount(cells // domain.size, minlength=partition.classes)
        everything = len(np.unique(data.codes[:, a]))
        result[:, a] = np.where(distinct > 1, distinct / everything, 0.0)
    return result


def sse(data: Microdata, partition: Partition) -> float:
    """100·SSE/SST over standardized numeric quasi-identifiers (002, §5); NaN when there are none."""
    within = total = 0.0
    inside = partition.labels >= 0
    labels = partition.labels[inside]
    for a, domain in enumerate(data.domains):
        if not isinstance(domain, Interval) or domain.labels is not None:
            continue
        codes = data.codes[:, a]
        known = codes < domain.missing_code
        values = domain.values[np.minimum(codes, max(0, len(domain.values) - 1))]
        spread = float(((values[known] - values[known].mean()) ** 2).sum()) if known.any() else 0.0
        if spread <= 0:
            continue
        kept = known[inside]
        owners, numbers = labels[kept], values[inside][kept]
        counts = np.maximum(1, np.bincount(owners, minlength=partition.classes))
        means = np.bincount(owners, numbers, partition.classes) / counts
        lost = float(((values[known & ~inside] - values[known].mean()) ** 2).sum())
        within += (float(((numbers - means[owners]) ** 2).sum()) + lost) / spread
        total += 1.0
    return 100 * within / total if total else float("nan")


def _levels(data: Microdata, states: States) -> Floats:
    """How far up its hierarchy each attribute went, as a share of the way (SPEC §3.5)."""
    space = data.space("il")
    result = space.losses(states, "il")
    for a, domain in enumerate(data.domains):
        if isinstance(domain, Set):
            result[:, a] = result[:, a] > 0
    return result


def _height(data: Microdata, a: int) -> float:
    domain = data.domains[a]
    if isinstance(domain, Tree):
        return float(domain.taxonomy.height[domain.taxonomy.root])
    return 1.0
