"""What would make a release cost less, in the table's own figures: for its owner, after the fact.

No search undoes width: in a table of many quasi-identifiers no two records are near, and every further column makes the others
coarser. So the columns that lose most are left out one at a time, on some of the records, and what the *others* then lose is
compared. And a category of thousands of values without a taxonomy is published in sets that nobody can count by: a taxonomy,
be it an automatic one, has a name for each group.

>>> import numpy as np, polars as pl, shoal
>>> random = np.random.default_rng(0)
>>> frame = pl.DataFrame({f"q{i}": random.integers(0, 50, 600) for i in range(9)})
>>> data = shoal.Microdata.from_frame(frame, {name: {"role": "quasi"} for name in frame.columns})
>>> release = shoal.anonymize(data, shoal.KAnonymity(10), algorithm="mondrian", refine=False)
>>> advice(release.data, release.partition, 10)[0].split(":")[0]
'9 quasi-identifiers are what costs'
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shoal import exact
from shoal.algorithms.mondrian import cut_columns
from shoal.microdata import Microdata
from shoal.models.k_anonymity import KAnonymity
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.space import Set, Space
from shoal.states import class_states

# Fewer quasi-identifiers than this are not many, and a release that loses less than this is not dear.
MANY, DEAR = 8, 0.2
# Records that columns are tried on, and columns that are tried: those that lose most. All of it takes about a tenth of a second.
SAMPLE, TRIED = 2_000, 6
# What a column must save the others to be named, and how many are.
WORTH, NAMED = 0.05, 2
# Values that are many for a category without a taxonomy, and members that make a set hard to use.
VALUES, MEMBERS = 200, 3.0


def advice(data: Microdata, partition: Partition, k: int) -> list[str]:
    """Sentences for the owner of a table about what its release lost; none where there is nothing to say."""
    return [*_about_width(data, partition, k), *_about_sets(data, partition)]


def _about_width(data: Microdata, partition: Partition, k: int) -> Iterator[str]:
    """Which columns cost the others most."""
    count = len(data.quasi)
    if count < MANY or partition.classes == 0 or partition.levels is not None:
        return
    space = data.space("ncp")
    lost = exact.weighed(partition.sizes, space.unit(class_states(data, partition, space)))
    if lost < DEAR * int(partition.sizes.sum()) * exact.total(space.weights):
        return
    some = np.arange(data.n)
    if data.n > SAMPLE:
        some = np.sort(np.random.default_rng(0).choice(data.n, SAMPLE, replace=False))
    if len(some) < 4 * k:
        return
    codes = data.codes[some]
    whole = _lost(codes, space, k)
    saved = []
    for a in sorted(range(count), key=lambda a: (-whole[a], a))[:TRIED]:
        others = [b for b in range(count) if b != a]
        before = exact.mean(whole[others])
        kept = Space(tuple(space.domains[b] for b in others), space.weights[others], "ncp")
        saved.append((exact.mean(_lost(codes[:, others], kept, k)), before, a))
    named = sorted(saved, key=lambda one: (one[0] / max(one[1], 1e-12), one[2]))[:NAMED]
    told = [
        f"without '{data.quasi[a]}' the others lose {after:.3f} instead of {before:.3f} ({1 - after / before:.0%} less)"
        for after, before, a in named
        if after <= (1 - WORTH) * before
    ]
    if told:
        yield (
            f"{count} quasi-identifiers are what costs: tried on {len(some):,} records with k = {k}, {', '.join(told)}. A column "
            f"that nobody needs is best left out: drop = true under [attributes.{data.quasi[named[0][2]]}]."
        )


def _lost(codes: NDArray[np.int32], space: Space, k: int) -> NDArray[np.float64]:
    """What each column loses when mondrian cuts these records, a mean over records."""
    rules = Policy((KAnonymity(k),)).bind([], len(codes))
    labels = cut_columns(list(codes.T), space, rules)
    sizes = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    losses = space.losses(space.states(codes, order, np.cumsum(sizes) - sizes))
    return np.array([exact.weighed(sizes, column) for column in losses.T]) / len(codes)


def _about_sets(data: Microdata, partition: Partition) -> Iterator[str]:
    """Categories whose published sets are too long to be used."""
    wide = [a for a, domain in enumerate(data.domains) if isinstance(domain, Set) and domain.size >= VALUES]
    if not wide or partition.classes == 0:
        return
    space = data.space("ncp")
    states = class_states(data, partition, space)
    for a in wide:
        words = states[:, int(space.slots[a]) : int(space.slots[a + 1])].view(np.uint64)
        members = np.bitwise_count(words).sum(axis=1).astype(np.float64)
        mean = exact.weighed(partition.sizes, members) / int(partition.sizes.sum())
        if mean >= MEMBERS:
            name = data.quasi[a]
            yield (
                f"Column '{name}' has {data.domains[a].size:,} values and no taxonomy: a record publishes a set of {mean:.1f} of "
                f'them on average. With taxonomy = "auto" under [attributes.{name}] it publishes groups that have one name each '
                "(shoal taxonomy build writes them down to be named); a file of your own is better."
            )
