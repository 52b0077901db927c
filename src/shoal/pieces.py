"""How much is worked on at a time, where all at once would not fit into memory.

>>> [(some.start, some.stop) for some in pieces(5, CELLS // 2)]
[(0, 2), (2, 4), (4, 5)]
"""

from __future__ import annotations

from collections.abc import Iterator

CELLS = 4_000_000
"""Numbers of a matrix that is made and thrown away: 32 MB, of which there are several at a time."""


def pieces(rows: int, width: int) -> Iterator[slice]:
    """All rows of a matrix of this width, as many at a time as make CELLS numbers, and at least one."""
    step = max(1, CELLS // max(1, width))
    for begin in range(0, rows, step):
        yield slice(begin, min(begin + step, rows))
