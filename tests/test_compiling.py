"""What the process beside a first use compiles is what the first use needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import polars as pl
import pytest

import shoal
from shoal import compiling
from shoal.kernels import bound_cells, bound_rows, bounds
from shoal.kernels.rules import class_deficit
from shoal.measures.bounds import loss_bound
from shoal.progress import Progress
from shoal.refine.box_tables import empty_store, encode, take


def table(persons: bool) -> shoal.Microdata:
    """Another table than the one that is compiled with."""
    whose = [row // 3 if persons else row for row in range(90)]
    columns = {
        "who": whose,
        "age": [20 + one % 31 for one in whose],
        "city": ["abcde"[one % 5] for one in whose],
        "ill": [("flu", "cold", "cough")[row % 3] for row in range(90)],
    }
    roles = {"who": {"role": "identifier"}, "age": {"role": "quasi"}, "city": {"role": "quasi"}}
    schema = {**roles, "ill": {"role": "sensitive"}}
    return shoal.Microdata.from_frame(pl.DataFrame(columns), schema, person="who" if persons else None)


def bound_signatures() -> int:
    kernels = [one for module in (bound_cells, bound_rows, bounds) for one in vars(module).values()]
    return sum(len(one.signatures) for one in kernels if hasattr(one, "signatures"))


@pytest.mark.parametrize("persons", [False, True])
def test_nothing_of_it_is_compiled_again(persons: bool) -> None:
    compiling.compile_some(persons=persons)
    before = bound_signatures()
    assert before > 10
    data = table(persons)
    rules, space = data.rules(shoal.KAnonymity(4) & shoal.PSensitive(2)), data.space("ncp")
    loss_bound(data.codes, space, rules)
    assert bound_signatures() == before
    everyone = np.arange(data.n)
    whole = encode(data.codes, space, rules, everyone, Progress(), budget=10**6)
    store = take(whole, everyone, np.zeros(data.n, dtype=np.int64)).store
    assert numba.typeof(store) == numba.typeof(empty_store())
    asked = (whole.flat, store.classes[0].size, store.histogram[0])
    assert tuple(numba.typeof(one) for one in asked) in class_deficit.signatures


def test_a_folder_of_the_users_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's `shoal` in the folder where a command is given must not run beside it."""
    (tmp_path / "shoal").mkdir()
    (tmp_path / "shoal" / "__init__.py").write_text("open('run', 'w')")
    begun = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compiling.os, "cpu_count", lambda: 2)
    with monkeypatch.context() as noted:
        noted.setattr(subprocess, "Popen", lambda command, **_: begun.append(command))
        compiling.compile_beside(persons=True)
    assert begun == [[sys.executable, "-P", "-m", "shoal.compiling", "persons"]]
    find = [*begun[0][:2], "-c", "import importlib.util as u; print(u.find_spec('shoal').origin)"]
    found = subprocess.run(find, capture_output=True, text=True, check=True).stdout
    assert found and str(tmp_path) not in found and not (tmp_path / "run").exists()
