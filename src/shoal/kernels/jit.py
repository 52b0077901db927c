"""How compiled functions are declared.

A function that only other compiled functions call needs no way in from Python or C; without these wrappers it compiles in
about half the time.
"""

from __future__ import annotations

from numba import njit

inner = njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
