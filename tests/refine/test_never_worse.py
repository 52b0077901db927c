"""No table on which refinement ends worse than it began: a few hundred small ones here, 10,000 in `benchmarks.never_worse`."""

from __future__ import annotations

from benchmarks.never_worse import Tried, attempt

TABLES = 240


def test_no_refinement_ends_worse_than_it_began() -> None:
    tried = [attempt(seed) for seed in range(TABLES)]
    assert [found for found in tried if found.worse or found.broken] == []
    better = sum(found.after < found.before for found in tried)
    assert better > TABLES // 3
    assert len({found.policy for found in tried}) > 5


def test_what_counts_as_worse() -> None:
    assert Tried(0, "", 1.0, 1.5, broken=False).worse
    assert not Tried(0, "", 1.0, 1.0, broken=False).worse
