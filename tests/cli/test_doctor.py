"""`shoal doctor` tells what is there: packages that Shoal itself asks for, and kernels where they are really kept."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# The smallest kernel that can be called by itself.
COMPILE_ONE = "from shoal.kernels.heap import make_heap, push; push(make_heap(1), 1, 2, 3)"


def python(*arguments: str, **environment: str) -> str:
    changed = {**os.environ, **environment}
    done = subprocess.run([sys.executable, *arguments], env=changed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def findings(**environment: str) -> dict[str, dict[str, Any]]:
    told = json.loads(python("-m", "shoal", "doctor", "--json", **environment))
    return {finding["what"]: finding for finding in told["findings"]}


def test_every_package_that_is_asked_for_is_looked_for() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    asked = [
        *PROJECT["project"]["dependencies"],
        *(one for e in extras if e not in ("dev", "all") for one in extras[e]),
    ]
    found = findings()
    names = [re.match(r"[\w.-]+", one)[0] for one in asked]  # type: ignore[index]
    assert [found[name]["found"] for name in names if name != "psycopg"].count(None) == 0
    assert set(names) | {"pandas", "compiled kernels", "memory", "processors", "java", "reference data"} == set(found)
    assert found["processors"]["found"] == str(os.cpu_count()) and "a million records" in found["processors"]["for"]


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "NUMBA_CACHE_DIR"])
def test_kernels_are_found_where_they_are_kept(variable: str, tmp_path: Path) -> None:
    place = {variable: str(tmp_path)}
    before = findings(**place)["compiled kernels"]
    assert before["found"] is None
    assert "first use" in before["advice"]
    python("-c", COMPILE_ONE, **place)
    assert python("-c", "from shoal.kernels import is_cold; print(is_cold())", **place).strip() == "False"
    after = findings(**place)["compiled kernels"]
    count, folder = after["found"].split(" in ")
    assert int(count) == len(list(tmp_path.rglob("*.nbi"))) > 0
    assert Path(folder).is_relative_to(tmp_path)
    assert after["advice"] == ""
