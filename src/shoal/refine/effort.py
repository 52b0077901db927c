"""How hard the searches try: what "fast", "thorough" and a number of seconds mean to each of them, in operations.

A budget is a number of elementary operations, never a clock: the same seed gives the same partition on every machine.
"""

from __future__ import annotations

from typing import Literal

from shoal.errors import ConfigError, shown

Effort = Literal["fast", "thorough"] | float

# Elementary operations of the box search that take about a second on one core of an ordinary machine …
SECOND = 60_000_000
# … and units of work of the relocation, which counts in about nanoseconds of a quiet core but shares its cache.
RELOCATION_SECOND = 500_000_000
# Box search: operations a record, so that small tables do not take longer than they gain by, and the seconds that ORDINARY
# records may take at most, for somebody who waits and for somebody who does not. Larger tables get more in proportion.
EFFORTS = {"fast": (20_000, 1.8), "thorough": (200_000, 15.0)}
ORDINARY = 30_000
# Relocation: it serves rules that box search alone serves badly, and may take about twice its time.
RELOCATION_SECONDS = {"fast": 4.0, "thorough": 20.0}


# A budget of more than a day is a slip of the pen.
DAY = 86_400


def box_budget(effort: Effort, n: int) -> int:
    """Operations of a box search over n records."""
    if isinstance(effort, str) and effort in EFFORTS:
        per_record, seconds = EFFORTS[effort]
        return int(min(per_record * n, seconds * SECOND * max(1.0, n / ORDINARY)))
    return int(_seconds(effort) * SECOND)


def relocation_budget(effort: Effort) -> int:
    """Units of work of a relocation."""
    if isinstance(effort, str) and effort in RELOCATION_SECONDS:
        return int(RELOCATION_SECONDS[effort] * RELOCATION_SECOND)
    return int(_seconds(effort) * RELOCATION_SECOND)


def _seconds(effort: Effort) -> float:
    if isinstance(effort, bool) or not isinstance(effort, int | float) or not 0 < effort <= DAY:
        raise ConfigError(
            f"refine = {shown(effort)} is not allowed; write fast, thorough or a number of seconds, at most {DAY:,} (a day)."
        )
    return float(effort)
