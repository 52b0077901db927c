"""What loops without reference counts call says itself whether it counts: it would inherit it from whoever is compiled first."""

from __future__ import annotations

import pytest
from numba.core.registry import CPUDispatcher

from shoal.kernels import hitting, logs, rules


@pytest.mark.parametrize("module", [hitting, logs, rules], ids=lambda module: module.__name__)
def test_every_function_says_whether_it_counts_references(module: object) -> None:
    compiled = {name: one for name, one in vars(module).items() if isinstance(one, CPUDispatcher)}
    assert compiled
    assert [name for name, one in compiled.items() if "_nrt" not in one.targetoptions] == []
