"""One block, solved by whoever has its records: the same algorithm, the same rules, the same recoding as in memory.

A `Solver` holds all that a block needs to know of the table (domains, rules with the whole table's distributions, books of
sensitive values) and none of its records, so it can be sent to wherever the records are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from shoal.algorithms import find
from shoal.collisions import Recoding, published_classes
from shoal.engines.cutting import CutTree, Leaf
from shoal.engines.learning import Learned
from shoal.errors import UnsupportedError
from shoal.io.lean import spelled_out
from shoal.measures.folding import Tally, Whole, tally, tally_class
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Rules
from shoal.progress import Progress
from shoal.refine import Effort, refined
from shoal.release import mask
from shoal.schema import Intervals, Recode
from shoal.space import Interval, Measure, States
from shoal.states import class_states


@dataclass(frozen=True, eq=False)
class Solver:
    """How the records of a block become published rows."""

    learned: Learned
    whole: Whole
    algorithm: str
    objective: Measure = "ncp"
    refine: Effort = False
    recode: Recode = "generalize"
    intervals: Intervals = "text"
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    largest: int = 0
    """A block with more records than this does not fit into memory."""

    @property
    def exact(self) -> bool:
        """Whether the classes are those of the whole table: Mondrian's cuts go on inside a block as if there were none."""
        return self.algorithm == "mondrian" and self.refine is False

    def block(self, number: int, rows: pl.DataFrame) -> tuple[pl.DataFrame, Tally]:
        """All records of a block, in any order: what they publish, and what that costs."""
        if not self.exact:
            # Equal content, equal place: in which order records came decides nothing.
            rows = rows.sort(self.learned.coded)
        data, rules = self._table(rows)
        seed = int(np.random.default_rng([self.seed, number]).integers(2**31))
        told = Progress.of(None)
        aim: dict[str, Any] = {"objective": self.objective, "seed": seed, "progress": told}
        partition = find(self.algorithm)(data, rules, **aim, **self.options)
        if self.refine is not False:
            partition = refined(data, rules, partition, **aim, effort=self.refine)
        if partition.suppressed:
            raise UnsupportedError(f"{self.algorithm} suppresses records, which is done in memory only.")
        space = data.space(self.objective)
        how = Recoding(self.recode, self.intervals)
        partition, states = published_classes(data, partition, rules, space, how)
        return self._published(data, partition, states)

    def _table(self, rows: pl.DataFrame) -> tuple[Microdata, Rules]:
        """The block as a table of its own, and the rules for it."""
        learned = self.learned
        codes = np.empty((rows.height, len(learned.domains)), dtype=np.int32)
        for a in range(len(learned.domains)):
            codes[:, a] = rows[f"q{a}"].to_numpy()
        kinds = [rows[f"s{s}"].to_numpy() for s in range(len(learned.sensitive))]
        columns = tuple(
            replace(column, weights=None).take(own) for column, own in zip(learned.sensitive, kinds, strict=True)
        )
        data = replace(learned.data, frame=learned.shown(rows), codes=codes, sensitive=columns)
        place = {column.name: s for s, column in enumerate(learned.sensitive)}
        seen = [view.codes[kinds[place[view.key[0]]]] for view in learned.rules.views]
        rules = learned.rules.elsewhere(seen, rows.height)
        # Mondrian goes on with the table's own bounds; other algorithms are told those of the block.
        return data, rules if self.exact else rules.alone()

    def _published(self, data: Microdata, partition: Partition, states: States) -> tuple[pl.DataFrame, Tally]:
        table, _ = mask(
            data,
            partition,
            states,
            recode=self.recode,
            intervals=self.intervals,
            drop_suppressed=False,
            shuffle_seed=None,
        )
        found = tally(data, partition, states, self.whole)
        return self._numbers(spelled_out(table), found)

    def _numbers(self, table: pl.DataFrame, found: Tally) -> tuple[pl.DataFrame, Tally]:
        """Published numbers as floats, whole or not: what other blocks have is not known here."""
        for name in self.numbers:
            if not table[name].dtype.is_integer() and table[name].null_count() < table.height:
                found.fractions.add(name)
        return table.with_columns(pl.col(self.numbers).cast(pl.Float64)), found

    @property
    def numbers(self) -> list[str]:
        """Published quasi-identifiers that are numbers and no texts."""
        found: list[str] = []
        for name, domain in zip(self.learned.data.quasi, self.learned.domains, strict=True):
            if not isinstance(domain, Interval) or domain.labels is not None or domain.is_date:
                continue
            if self.recode == "microaggregate" or self.intervals == "midpoint":
                found.append(name)
            elif self.intervals == "columns" and self.recode == "generalize":
                found += [f"{name}_min", f"{name}_max"]
        return found

    @property
    def empty(self) -> pl.DataFrame:
        """What is published without its rows: names and types, found by publishing a record that nobody has."""
        rows = pl.DataFrame({name: np.zeros(1, dtype=np.int32) for name in self.learned.coded})
        data, _ = self._table(rows)
        alone = Partition(np.zeros(1, dtype=np.int32))
        return self._published(data, alone, class_states(data, alone, data.space(self.objective)))[0].clear()

    def known(self, leaf: Leaf, rows: pl.DataFrame) -> pl.DataFrame:
        """Some records of a class that is known already: what they publish."""
        _, states = self.known_class(leaf)
        partition = Partition(np.zeros(rows.height, dtype=np.int32))
        data, _ = self._table(rows)
        return self._published(data, partition, states)[0]

    def known_class(self, leaf: Leaf) -> tuple[Tally, States]:
        """What a class costs that is known already, and what it publishes."""
        groups = leaf.groups or ()
        if self.recode == "microaggregate":
            raise UnsupportedError(
                f'A class of {leaf.part.weight:,} records cannot be cut and is too large to average; use recode = "generalize".'
            )
        return tally_class([(one.codes, one.counts) for one in groups], self.whole)

    def require_blocks(self, tree: CutTree) -> None:
        """Blocks that cannot be cut are classes to Mondrian; for others they must fit into memory, or be all alike."""
        for leaf in tree.parts:
            alike = bool((leaf.part.low == leaf.part.high).all())
            if leaf.groups is not None and not self.exact and not alike:
                raise UnsupportedError(
                    f"A block of {leaf.part.weight:,} records cannot be cut into parts that satisfy the policy, and "
                    f"{self.algorithm} takes at most {self.largest:,} at a time here; give it more with --memory, or use "
                    'algorithm = "mondrian" with refine = false.'
                )
