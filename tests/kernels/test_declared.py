"""How compiled functions are declared.

One without a way in from Python is never called from there, and one that counts no references hands out no array. Neither
mistake is an error that Python could report: the first ends the process, the second reads memory that may be gone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from numba.core.registry import CPUDispatcher

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "src" / "shoal" / "kernels"
# What is compiled, what of it is only called by compiled functions, and what counts no references.
CLOSED, UNCOUNTED = {"inner", "bare", "pasted"}, {"entry", "bare", "pasted"}
COMPILED = {"njit", "loop", *CLOSED, *UNCOUNTED}
PLAIN = {"int", "float", "bool", "None", "tuple"}


def declared(node: ast.stmt) -> str:
    """The name of what declares a function, empty for ordinary ones and everything else."""
    if not isinstance(node, ast.FunctionDef) or not node.decorator_list:
        return ""
    first = node.decorator_list[0]
    name = first.func if isinstance(first, ast.Call) else first
    return name.id if isinstance(name, ast.Name) else ""


def kernels(declarations: set[str]) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions that are declared so, each with the name of its file."""
    for file in sorted(KERNELS.glob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef) and declared(node) in declarations:
                yield file.stem, node


def called_in(tree: ast.AST) -> set[str]:
    """The names that are called."""
    return {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def known_in(file: Path, tree: ast.Module) -> dict[str, tuple[str, str]]:
    """The kernels that a file names: the file of each, and its name there."""
    own = {node.name: (file.stem, node.name) for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {
        **(own if file.parent == KERNELS else {}),
        **{
            alias.asname or alias.name: (node.module.rpartition(".")[2], alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("shoal.kernels")
            for alias in node.names
        },
    }


def test_what_has_no_way_in_is_not_called_from_python() -> None:
    closed = {(file, node.name) for file, node in kernels(CLOSED)}
    assert ("space", "range_loss") in closed and ("space", "loss") not in closed
    wrong = []
    for folder in ("src", "tests", "tools", "benchmarks"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(file.read_text())
            known = known_in(file, tree)
            for node in tree.body:
                if known and declared(node) not in COMPILED:
                    wrong += [f"{file.name}: {name}" for name in called_in(node) if known.get(name) in closed]
    assert not wrong


def test_what_counts_no_references_hands_out_no_array() -> None:
    handed_out = {
        f"{file}.{node.name}": {part.id for part in ast.walk(node.returns) if isinstance(part, ast.Name)}
        for file, node in kernels(UNCOUNTED)
        if node.returns is not None
    }
    assert len(handed_out) == len(list(kernels(UNCOUNTED))) > 100
    assert [name for name, types in handed_out.items() if types - PLAIN] == []


@pytest.mark.parametrize("file", sorted(file.stem for file in KERNELS.glob("*.py") if file.stem != "__init__"))
def test_every_function_says_whether_it_counts_references_and_is_pasted(file: str) -> None:
    """It would inherit it from whoever is compiled first."""
    compiled = [one for one in vars(import_module(f"shoal.kernels.{file}")).values() if isinstance(one, CPUDispatcher)]
    said = [(one.__name__, one.targetoptions) for one in compiled]
    silent = [name for name, options in said if not ("inline" in options or {"_nrt", "forceinline"} <= options.keys())]
    assert silent == []
