"""How compiled functions are declared.

A function that only other compiled functions call needs no way in from Python or C, no machine code of its own
(`shoal.kernels.linked`), and no place in the folder of compiled code: its callers lie there. A function over arrays that its
callers keep, and that makes none itself, need not count references to them either: each would cost two atomic operations a call,
and the code for them a sixth of the compiling.

Numba lets a function that does not say so inherit from whichever caller happens to be compiled first: one that makes arrays,
called from one that does not count, would compile or not by the order in which functions are needed, and all that a pasted one
calls would be pasted as well. So every function says it.
"""

from __future__ import annotations

from typing import Any

from numba import njit, typeof

from shoal.kernels.linked import compiler

KEPT: dict[str, Any] = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, "forceinline": False}
CALLED: dict[str, Any] = {
    "pipeline_class": compiler(),
    "nogil": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "forceinline": False,
}

# Called from Python, and makes arrays …
loop = njit(**KEPT, _nrt=True)
# … or is only called by others.
inner = njit(**CALLED, _nrt=True)
# Without counting references: called from Python, or only by others …
entry = njit(**KEPT, _nrt=False)
bare = njit(**CALLED, _nrt=False)
# … where one call more would cost more than what it does.
pasted = njit(**{**CALLED, "forceinline": True}, _nrt=False)


def compile_for(kernel: Any, *arguments: Any) -> None:
    """Compile a function, one of those that only compiled ones call too, for arguments of these types."""
    kernel.compile(tuple(typeof(one) for one in arguments))  # type: ignore[no-untyped-call]
