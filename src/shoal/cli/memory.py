"""How much memory the command line keeps for itself: what is freed goes back to the system.

Allocators hold on to what was freed, in the hope that it is asked for again. A table walks a road on which nearly everything is
asked for once, in another size each time: what one room left would lie there until the end, beside what the next one makes.
Only the process of the command line is told so; whoever imports Shoal has a process of their own, and settings of their own.
"""

from __future__ import annotations

import gc
import os
import sys

# Of arrays: larger ones get pages of their own, which go back with them. Left alone, glibc raises the bound to 32 MB.
_OWN_PAGES = 1 << 22
_M_MMAP_THRESHOLD = -3
# Of smaller ones: so much may lie free, since a file is read in pieces, each where the last one was. Left alone, glibc gives
# every piece back at once, and to be given it again takes longer than to look at it.
_LEFT = 1 << 25
_M_TRIM_THRESHOLD = -1
# Of polars, which has an allocator of its own (jemalloc): it reads this when it is loaded, and never gives pages back otherwise.
_POLARS = ("_RJEM_MALLOC_CONF", "muzzy_decay_ms:0,dirty_decay_ms:500")

# Objects that are made before garbage is looked for: most are modules and functions, which stay, and looking through them again
# and again takes a tenth of a second of each command.
_GARBAGE = (50_000, 20, 20)


def give_back() -> None:
    """Ask the allocators to give back what is freed; before polars is loaded. What somebody set themselves stays."""
    os.environ.setdefault(*_POLARS)
    gc.set_threshold(*_GARBAGE)
    if sys.platform != "linux" or "MALLOC_MMAP_THRESHOLD_" in os.environ:
        return
    import ctypes

    # Another C library than glibc may not have it.
    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        tune(_M_MMAP_THRESHOLD, _OWN_PAGES)
        tune(_M_TRIM_THRESHOLD, _LEFT)
