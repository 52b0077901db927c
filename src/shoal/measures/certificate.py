"""The certificate of a lower bound, tested box by box, in whole numbers.

Shares nothing with `shoal.measures.bounds`, which makes it, but the theorem and the family of boxes that its docstring
states: here every combination of states is walked depth first, from records in falling order of u, so that the k largest of a
box are the first k that are met. A walk turns back only where the k largest u left do not exceed k times the loss so far:
boxes further down hold no more and lose no less. u is taken up, and losses down, to whole ticks of 2⁻⁴⁰, so that no sum is
rounded. Parts that are proven by distances instead are tested in `shoal.measures.certificate_apart`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.measures.conditions import distinct_demands
from shoal.policy import Rules
from shoal.progress import Progress, Told
from shoal.space import Interval, Set, Space, Tree

__all__ = ["check_certificate"]

# Written here again, because a certificate shares nothing with what it tests.
TICKS = 2.0**40
# Losses are floats, each sum of them off by less than this share.
SAFE = 1 - 2.0**-40
# A number that is not the one with most values is looked at in so many bins.
BINS = 5

Ints = NDArray[np.int64]


class Proof(Protocol):
    """A number a record for some of the attributes, and the theorem by which it proves something."""

    @property
    def attributes(self) -> tuple[int, ...]: ...
    @property
    def u(self) -> NDArray[np.float64]: ...
    @property
    def by(self) -> str: ...


class Claim(Protocol):
    """The sum that is claimed, and what proves it: a part for each of some disjoint groups of attributes."""

    @property
    def total(self) -> float: ...
    @property
    def parts(self) -> Sequence[Proof]: ...


def check_certificate(
    codes: NDArray[np.int32],
    space: Space,
    rules: Rules,
    certificate: Claim | NDArray[np.float64],
    *,
    progress: Told | None = None,
) -> bool:
    """Whether a `certificate`, a `Bound` or a number a record, proves that no good partition loses less than its sum.

    `codes`, `space` and `rules` are as for `loss_bound`, and `progress` is called with the share that is done. Returns whether
    every box obeys, and the groups of attributes that a bound is made of are disjoint.

    >>> import numpy as np, polars as pl, shoal
    >>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": [20, 30]}), {"age": {"role": "quasi"}})
    >>> rules = data.rules(shoal.Policy((shoal.KAnonymity(2),)))
    >>> check_certificate(data.codes, data.space("ncp"), rules, np.array([0.999, 0.999]))
    True
    >>> check_certificate(data.codes, data.space("ncp"), rules, np.array([1.5, 1.5]))
    False
    """
    from shoal.measures.certificate_apart import obeys_distances

    whole = tuple(range(len(space.domains)))
    parts = (
        [(whole, certificate, "boxes")]
        if isinstance(certificate, np.ndarray)
        else [(p.attributes, p.u, p.by) for p in certificate.parts]
    )
    named = [a for attributes, _, _ in parts for a in attributes]
    if len(set(named)) < len(named) or not set(named) <= set(whole):
        return False
    if not isinstance(certificate, np.ndarray):
        # The sum that is claimed, in whole ticks, which Python adds exactly.
        proven = sum(int(np.ceil(u * TICKS).astype(np.int64).sum()) for _, u, _ in parts)
        if certificate.total * TICKS > proven + 1:
            return False
    told = Progress.of(progress)
    for attributes, u, by in told.each(parts):
        if len(u) != len(codes) or not (u >= 0).all():
            return False
        if by == "boxes":
            fine = _obeys(codes, space, rules, attributes, u, told)
        else:
            fine = obeys_distances(codes, space, rules, attributes, u, by, told)
        if not fine:
            return False
    return True


def _obeys(
    codes: NDArray[np.int32],
    space: Space,
    rules: Rules,
    attributes: tuple[int, ...],
    u: NDArray[np.float64],
    told: Progress,
) -> bool:
    """Whether one number a record obeys every box of some attributes."""
    from shoal.kernels.certificate import Walk, Way, walk

    worth = np.ceil(u * TICKS).astype(np.int64)
    order = np.lexsort((np.arange(len(u)), -worth))
    worth, own = worth[order], codes[order]
    wanted = distinct_demands(rules)
    values = np.full((len(wanted), len(own)), -1, dtype=np.int64)
    for i, (column, _, _) in enumerate(wanted):
        values[i] = column[order]
    numbers = [a for a in attributes if isinstance(space.domains[a], Interval)]
    longest = max(numbers, key=lambda a: (len(np.unique(own[:, a])), -a), default=-1)
    # The number with most values comes last; before it those with fewest states, so that the walk turns back early.
    states = {a: _states(space, a, own[:, a], whole=a == longest) for a in attributes}
    rest = sorted((a for a in attributes if a != longest), key=lambda a: (len(states[a]), a))
    chain = [*rest, longest] if longest >= 0 else rest
    if not chain:
        return not worth.any()
    # Ranges of that number are known by their ends, so that a thousand values need no half a million sets; they come last of all.
    ranges = _ranges(space, longest, own[:, longest])
    first, holds, losses = [0], [], []
    for a in chain:
        for members, loss in states[a]:
            mask = np.zeros(max(domain.size for domain in space.domains), dtype=np.bool_)
            mask[members] = True
            holds.append(mask)
            losses.append(loss * float(space.weights[a]))
        first.append(len(losses))
    first[-1] += len(ranges.low)
    sets = np.full(len(holds), -1, dtype=np.int64)
    it = Walk(
        np.ascontiguousarray(own[:, chain].T, dtype=np.int64),
        worth,
        np.array(holds) if holds else np.zeros((0, 1), dtype=np.bool_),
        np.concatenate([sets, ranges.low]),
        np.concatenate([sets, ranges.high]),
        np.concatenate([sets, ranges.left]),
        np.array(first, dtype=np.int64),
        np.concatenate([losses, ranges.losses]),
        values,
        np.array([p for _, _, p in wanted], dtype=np.int64),
        np.array([width for _, width, _ in wanted], dtype=np.int64),
    )
    deep = len(chain) + 1
    way = Way(
        np.full(len(chain), -1, dtype=np.int64),
        np.zeros((deep, len(own)), dtype=np.int64),
        np.zeros(deep, dtype=np.int64),
        np.zeros(deep),
        np.zeros(1, dtype=np.int64),
        np.zeros(max(domain.size for domain in space.domains), dtype=np.bool_),
    )
    way.lists[0], way.lengths[0] = np.arange(len(own)), len(own)
    verdict = -1
    while verdict < 0:
        told.check()
        verdict = walk(it, way, rules.k, TICKS, SAFE, 20_000_000)
    return bool(verdict)


class _Ranges(NamedTuple):
    """Ranges of values by their ends, in the order of the low ones; how many with the same low end are left; losses."""

    low: Ints
    high: Ints
    left: Ints
    losses: NDArray[np.float64]


def _ranges(space: Space, a: int, column: NDArray[np.int32]) -> _Ranges:
    """All ranges of the values that records have of a number; none where there is no number (-1)."""
    domain = space.domains[a] if a >= 0 else None
    if not isinstance(domain, Interval):
        none = np.zeros(0, dtype=np.int64)
        return _Ranges(none, none, none, np.zeros(0))
    known = np.unique(column[column < domain.missing_code]).astype(np.int64)
    i, j = np.triu_indices(len(known))
    apart = domain.values[known[j]] - domain.values[known[i]]
    shares = np.clip(apart / domain.width, 0.0, 1.0) if domain.width > 0 else np.zeros(len(apart))
    return _Ranges(known[i], known[j], len(known) - j.astype(np.int64), shares * float(space.weights[a]))


def _states(space: Space, a: int, column: NDArray[np.int32], *, whole: bool) -> list[tuple[NDArray[Any], float]]:
    """What a class can publish of an attribute: the codes each state takes in, and the least that it loses.

    Of a number that is looked at `whole` the ranges are left to `_ranges`.
    """
    domain, seen = space.domains[a], np.unique(column)
    if isinstance(domain, Tree):
        tree, losses = domain.taxonomy, domain.node_losses(space.measure)
        below = [seen[(seen >= tree.first[node]) & (seen <= tree.last[node])] for node in range(tree.nodes)]
        return [(codes, float(losses[node])) for node, codes in enumerate(below) if len(codes)]
    if isinstance(domain, Set):
        alone: list[tuple[NDArray[Any], float]] = [(np.array([code]), 0.0) for code in seen]
        return alone if len(seen) < 2 else [*alone, (seen, float(domain.size_losses(space.measure)[2]))]
    known = seen[seen < domain.missing_code]
    blocks = [] if whole else [block for block in np.array_split(known, BINS) if len(block)]
    found: list[tuple[NDArray[Any], float]] = []
    for i, low in enumerate(blocks):
        for j in range(i, len(blocks)):
            apart = float(domain.values[blocks[j][0]] - domain.values[low[-1]])
            share = min(1.0, max(0.0, apart / domain.width)) if domain.width > 0 else 0.0
            found.append((np.concatenate(blocks[i : j + 1]), share))
    if len(known) < len(seen):
        found.append((np.array([domain.missing_code]), 0.0))
        if len(known):
            found.append((seen, 1.0))
    return found
