"""How hard the searches try: what "fast", "thorough" and a number of seconds mean to each of them, in operations.

A budget is a number of elementary operations, never a clock: the same seed gives the same partition on every machine. Whatever a
search does before its first step comes out of the same budget.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from shoal.errors import ConfigError, shown
from shoal.models import Kind
from shoal.policy import FlatRules

Effort = Literal["fast", "thorough"] | float

# Elementary operations of the box search that take about a second on one core of an ordinary machine …
SECOND = 88_000_000
# … and units of work of the relocation, which counts in about nanoseconds of a quiet core but shares its cache.
RELOCATION_SECOND = 500_000_000
# Box search: operations a record, so that small tables do not take longer than they gain by, and the seconds that ORDINARY
# records may take at most, for somebody who waits and for somebody who does not. Larger tables get more in proportion …
EFFORTS = {"fast": (20_000, 1.8), "thorough": (200_000, 15.0)}
ORDINARY = 30_000
# Beyond so many records "fast" takes no more time, until a record has this share of what it had: the denser a table, the sooner
# its records have what they can get from their neighbours, and minutes are not what "fast" promises.
LARGE, HURRIED = 114_000, 0.38
# … and quasi-identifiers: an operation looks at all of them, so wider tables take more in proportion, too.
WIDTH = 8
# Beyond so many distinct tuples what an operation looks at is seldom in the cache, and it takes this share longer: measured on
# 100,000 answers to eight questions.
CACHED, REMOTE = 50_000, 0.5
# … and beyond so many codes of distinct tuples this many times: measured on 30,000 answers to twelve questions.
SCATTERED, APART = 300_000, 1.4
# Words of a set that take as long to compare as an ordinary operation does; and beyond so many, which do not stay in the nearest
# cache, so many take another: measured on 20,000 employers without a taxonomy.
READ_AT_ONCE, STAYING, READ_BEYOND = 80, 100, 55
# Operations that a rule beyond sizes and numbers of values takes, and how many of its values are read in one more.
ASKED, READ_A_STEP = 2, 6
COUNTED = (Kind.SIZE, Kind.DISTINCT, Kind.HITTING)
# Relocation: it serves rules that box search alone serves badly, and may take about twice its time.
RELOCATION_SECONDS = {"fast": 4.0, "thorough": 20.0}


# A budget of more than a day is a slip of the pen.
DAY = 86_400


def box_budget(effort: Effort, n: int, attributes: int, words: int = 0) -> int:
    """Operations of a box search over n records, everything that it does included.

    `words` is how many an operation reads to compare sets of many values, beyond what a set of a few takes.
    """
    if isinstance(effort, str) and effort in EFFORTS:
        per_record, seconds = EFFORTS[effort]
        most = seconds * SECOND * max(1.0, n / ORDINARY) * patience(effort, n)
        return int(min(per_record * n, most) / heaviness(words))
    return int(_seconds(effort) * SECOND / breadth(attributes) / heaviness(words))


def patience(effort: Effort, n: int) -> float:
    """The share of the time in proportion that somebody in a hurry still gives a record of a large table.

    >>> patience("fast", 100_000), patience("fast", 228_000), patience("fast", 3_000_000), patience("thorough", 3_000_000)
    (1.0, 0.5, 0.38, 1.0)
    """
    return min(1.0, max(HURRIED, LARGE / n)) if effort == "fast" and n else 1.0


def heaviness(words: int) -> float:
    """How much longer an operation takes where sets of thousands of values are compared, word for word.

    >>> heaviness(0), heaviness(80), heaviness(320)
    (1.0, 2.0, 9.0)
    """
    return 1.0 + words / READ_AT_ONCE + max(0, words - STAYING) / READ_BEYOND


def nominal(effort: Effort, n: int, attributes: int) -> float:
    """The seconds on one core of an ordinary machine that a box search stands for.

    >>> nominal("fast", 30_000, 8), nominal("fast", 30_000, 24), nominal(5.0, 30_000, 24)
    (1.8, 5.4, 5.0)
    """
    return round(box_budget(effort, n, attributes) * breadth(attributes) / SECOND, 3)


def breadth(attributes: int) -> float:
    """How much longer an operation takes than in a table of ordinary width."""
    return max(1.0, attributes / WIDTH)


def relocation_budget(effort: Effort) -> int:
    """Units of work of a relocation."""
    if isinstance(effort, str) and effort in RELOCATION_SECONDS:
        return int(RELOCATION_SECONDS[effort] * RELOCATION_SECOND)
    return int(_seconds(effort) * RELOCATION_SECOND)


def remoteness(tuples: int, attributes: int) -> float:
    """How much longer an operation takes than in a table that fits into a cache; the wider a row, the more is read at once."""
    apart = APART if tuples * attributes > SCATTERED else 1.0
    return apart * (1.0 + (REMOTE / breadth(attributes) if tuples > CACHED else 0.0))


def asking_work(rules: FlatRules) -> int:
    """Operations that it takes to ask whether a class satisfies rules that read all their values and do more than count them.

    Sizes and numbers of values are part of every step.
    """
    heavy = np.isin(rules.kind, COUNTED, invert=True)
    return int(np.ceil((ASKED + (rules.width[heavy] / READ_A_STEP)).sum()))


def _seconds(effort: Effort) -> float:
    if isinstance(effort, bool) or not isinstance(effort, int | float) or not 0 < effort <= DAY:
        raise ConfigError(
            f"refine = {shown(effort)} is not allowed; write fast, thorough or a number of seconds, at most {DAY:,} (a day)."
        )
    return float(effort)
