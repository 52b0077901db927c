"""Functions that only compiled ones call: their code goes into that of their callers, and none is made of their own.

Numba optimises every function together with all that it calls and makes machine code of the whole, once for the function and once
more for each caller above it. Of a function without a way in from Python nobody ever runs the first. Here it is typed, written
down for LLVM and tidied up by itself; what takes most of the time is done for the caller, once. That is two fifths of compiling,
and what runs has been optimised in one go.

This reaches into insides of Numba that another version may have built otherwise: one that was not tested compiles as usual.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from llvmlite.binding import parse_assembly
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompilerBase, DefaultPassBuilder

TESTED = (0, 68)

# What Numba calls the place where a function finds its globals, and sets for each.
PLACE = "_ZN08NumbaEnv"


class Linked(JITCodeLibrary):
    """The code of such a function, for linking."""

    def _optimize_final_module(self) -> None:
        """Left to the callers."""

    def _finalize_final_module(self) -> None:
        """Ready to be linked. Only the places of globals are made, which callers share and Numba sets."""
        codegen: Any = self._codegen
        engine, places = codegen._engine, codegen._create_empty_module(f"{self.name} globals")
        word = ir.IntType(8).as_pointer()
        for one in self._final_module.global_variables:
            if one.name.startswith(PLACE) and not engine.is_symbol_defined(one.name):
                place = ir.GlobalVariable(places, word, one.name)
                place.linkage, place.initializer = "common", ir.Constant(word, None)
        if places.globals:
            engine.add_module(parse_assembly(str(places)))
            engine.finalize_object()
        self._finalized = True


class LinkedCompiler(CompilerBase):
    """Numba's compiler with such a library."""

    def define_pipelines(self) -> list[Any]:
        """The passes of every function."""
        state = self.state
        library: Any = Linked
        passes: Any = DefaultPassBuilder
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        return [passes.define_nopython_pipeline(state)]


def compiler(version: tuple[int, int] = numba.version_info.short) -> type[CompilerBase]:
    """The compiler of functions that only compiled ones call.

    >>> compiler((0, 68)).__name__, compiler((0, 99)).__name__
    ('LinkedCompiler', 'Compiler')
    """
    return LinkedCompiler if version == TESTED else Compiler
