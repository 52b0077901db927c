"""No table on which refinement ends worse than it began: 10,000 random small tables, and every one of them better or the same.

Tables of 6 to 60 records with numbers, taxonomies, sets and missing values, policies of all kinds, one of several starts, a short
search by box search alone or after relocation, with merged runs wherever the budget is enough for them. Losses are compared in
whole ticks, and the policy is asked about the result. `--tables 500` tries fewer. Writes benchmarks/out/never_worse.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from tests.tables import random_table

import shoal
from shoal import exact
from shoal.algorithms import run
from shoal.errors import ShoalError
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.refine import refined
from shoal.space import Measure

OUT = Path(__file__).parent / "out"
MEASURES: tuple[Measure, ...] = ("ncp", "il", "granularity")
STARTS = ("mondrian", "k_member", "one class")
POLICIES = (
    Policy((shoal.KAnonymity(2),)),
    Policy((shoal.KAnonymity(3),)),
    Policy((shoal.KAnonymity(5),)),
    shoal.KAnonymity(2) & shoal.PSensitive(2),
    shoal.KAnonymity(3) & shoal.PSensitive(3),
    shoal.KAnonymity(2) & shoal.TCloseness(0.5),
    shoal.KAnonymity(2) & shoal.LDiversity(2, variant="entropy"),
    shoal.KAnonymity(2) & shoal.AlphaK(0.7),
)
# Nominal seconds: the longer ones are enough for runs to be merged.
EFFORTS = (0.002, 0.01, 0.04)


@dataclass(frozen=True)
class Tried:
    """One table: the policy, the loss before and after in ticks, and whether the result breaks the policy."""

    seed: int
    policy: str
    before: float
    after: float
    broken: bool

    @property
    def worse(self) -> bool:
        """Whether the search lost anything."""
        return self.after > self.before


def main() -> None:
    """All tables, and how they ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=10_000)
    options = parser.parse_args()
    begun = time.process_time()
    tried = [attempt(seed) for seed in range(options.tables)]
    ended = Counter(
        "broken" if t.broken else "worse" if t.worse else "better" if t.after < t.before else "the same" for t in tried
    )
    print(
        f"{options.tables:,} tables: "
        + ", ".join(f"{ended[name]:,} {name}" for name in ("better", "the same", "worse", "broken"))
    )
    print(f"{time.process_time() - begun:.0f} s")
    bad = [asdict(found) for found in tried if found.worse or found.broken]
    OUT.mkdir(exist_ok=True)
    (OUT / "never_worse.json").write_text(json.dumps({"ended": ended, "bad": bad}, indent=1), encoding="utf-8")
    if bad:
        raise SystemExit(f"the first of {len(bad)}: {bad[0]}")


def attempt(seed: int) -> Tried:
    """One table, policy, start and effort, all from the seed."""
    random = np.random.default_rng([seed, 19])
    data = random_table(seed, int(random.integers(6, 60)), duplicates=float(random.choice([0.0, 0.3, 0.7])))
    policy, objective = POLICIES[random.integers(len(POLICIES))], MEASURES[random.integers(len(MEASURES))]
    rules = data.rules(policy)
    name, effort = STARTS[random.integers(len(STARTS))], float(EFFORTS[random.integers(len(EFFORTS))])
    start = Partition(np.zeros(data.n, dtype=np.int32))
    if name != "one class":
        # Where no partition of this table satisfies the policy one class does not either, and there is nothing to refine.
        with suppress(ShoalError):
            start = run(name, data, rules, objective=objective)
    if (rules.deficits(start.labels, start.classes) > 0).any():
        return Tried(seed, str(policy), 0.0, 0.0, broken=False)
    found = refined(data, rules, start, objective=objective, effort=effort, seed=seed)
    broken = bool((rules.deficits(found.labels, found.classes) > 0).any()) or found.suppressed != start.suppressed
    return Tried(seed, str(policy), loss(data, start, objective), loss(data, found, objective), broken)


def loss(data: Microdata, partition: Partition, objective: Measure) -> float:
    """The loss in ticks, added without rounding."""
    space = data.space(objective)
    units = exact.ticks(space.unit(space.states(data.codes, partition.order, partition.starts)))
    return float(sum(Fraction(u) * int(s) for u, s in zip(units.tolist(), partition.sizes.tolist(), strict=True)))


if __name__ == "__main__":
    main()
