"""The same input, configuration and seed give the same bytes whatever the processor, the BLAS and the number of threads.

Every process below is another machine to the libraries: a BLAS with the kernels of another processor, a NumPy and a C library
without the wide and fused instructions, Numba's code for a processor of 2008, one thread or two.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PARTS = ["demo", "three_layer", "measures", "bound"]
ALL = [*PARTS, "algorithms", "store", "canary"]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS")
# Names differ between versions of NumPy; what it has found here can be switched off without a warning.
WIDE = " ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", []))  # type: ignore[index]
LIBM = "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F"

# Operations whose last digit may depend on the machine, and why each of these does not (docs/architecture.md, "Any machine").
FUNCTIONS = {
    *(
        "log",
        "log2",
        "log10",
        "log1p",
        "logaddexp",
        "exp",
        "exp2",
        "expm1",
        "pow",
        "power",
        "float_power",
        "cbrt",
        "hypot",
    ),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "arctan", "arctan2", "atan", "atan2", "gamma", "lgamma", "erf"),
    *("dot", "vdot", "inner", "matmul", "einsum", "tensordot", "linalg", "convolve", "correlate", "cov", "corrcoef"),
}
WHOLE, SPARSE, DISTINCT = "whole numbers", "sparse, of whole numbers: no BLAS", "no two are equal"
KNOWN = {
    "algorithms/xmeans.py: points @ centres.T": "whole ticks below 2⁵³",
    "collisions.py: np.argsort(first)": DISTINCT,
    "collisions.py: np.argsort(np.argsort(first))": DISTINCT,
    "datasets/profiles.py: np.cos": "constants, rounded to 2⁻³⁰",
    "evolve/releases/decision.py: scipy.optimize": "integer programs without BLAS: the least and most are whole and proved",
    "evolve/releases/decision.py: scipy.sparse": SPARSE,
    "evolve/releases/deduction.py: matrix @ rows": SPARSE,
    "evolve/releases/deduction.py: scipy.sparse": SPARSE,
    "evolve/store/live.py: np.argsort(numbers)": DISTINCT,
    "evolve/store/publish.py: np.argsort(held.persons)": DISTINCT,
    "evolve/store/snapshot.py: np.argsort(numbers)": DISTINCT,
    "kernels/specialize.py: np.argsort(keys, kind='mergesort')": "Numba's merge sort, which is stable and has no other name there",
    "measures/attacks.py: cover @ counts": SPARSE,
    "measures/attacks.py: cover @ table.sizes": SPARSE,
    "measures/attacks.py: scipy.sparse": SPARSE,
    "measures/loss.py: sizes @ changed": WHOLE,
    "measures/regions.py: scipy.sparse": SPARSE,
    "measures/releases.py: cover @ counts": SPARSE,
    "measures/releases.py: diags_array(keep.astype(np.int64), dtype=np.int64) @ matrix": SPARSE,
    "measures/releases.py: one.T @ other": SPARSE,
    "measures/releases.py: scipy.sparse": SPARSE,
    "measures/risk.py: relate(space, classes, points) @ weights": SPARSE,
    "measures/risk.py: scipy.optimize": "Nelder and Mead's simplex: additions and comparisons of single numbers",
    "measures/utility.py: sklearn.base": "no arithmetic",
    "measures/utility.py: sklearn.ensemble": "trees count and compare, without BLAS; one code for all processors of a kind",
    "measures/utility.py: sklearn.model_selection": "whole numbers, and shares of them",
    "report/original.py: cover @ found.sizes": SPARSE,
    "report/original.py: sklearn.tree": "a tree counts and compares, without BLAS; one code for all processors of a kind",
    "models/forms.py: table @ self.sets.incidence(self.groups, spread=self.spread)": SPARSE,
    "models/p_alpha_sensitive.py: used @ self.rank": WHOLE,
    "models/p_alpha_sensitive.py: weighed @ self.rank": WHOLE,
    "models/personalized.py: counts @ self.owners.T": "zeros and ones",
    "models/personalized.py: counts @ whole.T": "zeros and ones",
    "models/personalized.py: self.owners @ table": "zeros and ones",
    "models/persons.py: (self.having(counts) > 0).astype(np.int64) @ weight.ranks": WHOLE,
    "models/persons.py: counts @ self.ranks": WHOLE,
    "models/persons.py: persons @ sets.incidence(max(1, width), spread=self.spread)": SPARSE,
    "models/sets.py: csr_array(counts) @ incidence": SPARSE,
    "models/sets.py: scipy.sparse": SPARSE,
    "persons.py: np.argsort(first)": DISTINCT,
    "persons.py: np.argsort(np.argsort(first))": DISTINCT,
    "refine/merging.py: scipy.optimize": "a program's answer counts when proved the only least one, in whole numbers",
    "refine/merging.py: scipy.sparse": "no arithmetic",
    "taxonomy_build.py: 2 * block @ centres.T": "steps of 2⁻²⁶ that add up to one",
    "taxonomy_build.py: scipy.cluster": "distances added in one order, without BLAS; one code for all processors of a kind",
}

Told = dict[str, dict[str, Any]]


def machine(folder: Path, parts: list[str], threads: int, **settings: str) -> Told:
    """What a machine with these settings makes of the tables in `tests/machine.py`."""
    made = folder / "demo"
    made.mkdir(parents=True)
    environment = {**os.environ, **dict.fromkeys(THREADS, str(threads)), **settings}
    command = [sys.executable, "-m", "tests.machine", str(made), str(threads), *parts]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name: told for line in done.stdout.splitlines() for name, told in json.loads(line).items()}


def differences(one: Told, other: Told) -> list[str]:
    """Where two machines disagree, with both figures where they are short."""
    found = []
    for part in one.keys() & other.keys():
        found += _differences(one[part], other[part], part)
    return sorted(found)


def _differences(one: Any, other: Any, where: str) -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted(one.keys() | other.keys())
        return [line for name in names for line in _differences(one.get(name), other.get(name), f"{where} / {name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [line for i, (a, b) in pairs for line in _differences(a, b, f"{where} / {i}")]
    return [] if repr(one) == repr(other) else [f"{where}: {str(one)[:40]} and {str(other)[:40]}"]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Told:
    return machine(tmp_path_factory.mktemp("here"), ALL, 2)


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> Told:
    settings = {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": WIDE, "GLIBC_TUNABLES": LIBM}
    return machine(tmp_path_factory.mktemp("oldest"), ALL, 1, **settings)


def test_no_wide_instructions_and_one_thread(here: Told, oldest: Told) -> None:
    assert differences(here, {**oldest, "canary": here["canary"]}) == []


@pytest.mark.parametrize("kernels", ["Haswell", "Zen"])
def test_another_blas(kernels: str, here: Told, tmp_path: Path) -> None:
    assert differences(here, machine(tmp_path, PARTS, 2, OPENBLAS_CORETYPE=kernels)) == []


def test_compiled_for_another_processor(here: Told, tmp_path: Path) -> None:
    # Its compiled code must not be mixed with that of this processor, so it is kept apart; compiling takes half a minute.
    cache = {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    assert differences(here, machine(tmp_path, PARTS, 1, **cache)) == []


def test_these_are_other_machines(here: Told, oldest: Told) -> None:
    """The libraries themselves do give other digits, so that what is compared above could differ."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(f"The settings are those of x86-64 libraries; this is {platform.machine()}.")
    assert here["canary"].keys() == oldest["canary"].keys()
    assert [name for name, told in here["canary"].items() if oldest["canary"][name] == told] == []


def test_what_could_differ_is_known() -> None:
    """A product, logarithm or library call that is not listed above may be harmless, but somebody has to say why."""
    home = ROOT / "src" / "shoal"
    found = {
        f"{path.relative_to(home).as_posix()}: {what}"
        for path in home.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for what in _suspects(node)
    }
    assert sorted(found) == sorted(KNOWN)


def _suspects(node: ast.AST) -> list[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return [ast.unparse(node)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        whole = isinstance(node.right, ast.Constant) and isinstance(node.right.value, int)
        # 2.0**level is exact, and x**2 a product.
        return [] if whole or isinstance(node.left, ast.Constant) else [ast.unparse(node)]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("np", "math"):
        return [ast.unparse(node)] if node.attr in FUNCTIONS else []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("arg"):
        # NumPy's fast sorts leave equal entries in an order of the processor's own.
        stable = any(isinstance(k.value, ast.Constant) and k.value.value == "stable" for k in node.keywords)
        return [ast.unparse(node)] if node.func.attr in ("argsort", "argpartition") and not stable else []
    if isinstance(node, ast.keyword) and node.arg in ("fastmath", "parallel"):
        return [node.arg]
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    return [".".join(name.split(".")[:2]) for name in names if name.split(".")[0] in ("scipy", "sklearn")]
