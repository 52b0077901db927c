"""How compiled functions are declared.

A function that only other compiled functions call needs no way in from Python or C; without these wrappers it compiles in
about half the time. A function over arrays that its callers keep, and that makes none itself, need not count references to
them either: each would cost two atomic operations a call, and the code for them a sixth of the compiling.
"""

from __future__ import annotations

from numba import njit

inner = njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
# Without counting references; `entry` may be called from Python.
bare = njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)
entry = njit(cache=True, nogil=True, no_cfunc_wrapper=True, _nrt=False)
