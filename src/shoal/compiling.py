"""A first use compiles for a while, one function after the other: a process beside it compiles some of what is needed last.

What that process has compiled lies in the folder of compiled code (`shoal.kernels`), where the first one finds it when it gets
there. Run as a program this module compiles and ends: `python -m shoal.compiling`.
"""

from __future__ import annotations

import os
import subprocess
import sys


def compile_beside(*, persons: bool) -> None:
    """Begin compiling in another process, if there is a processor for it. Nobody waits for it, and nothing depends on it.

    Rules for `persons`, who may have several rows, are compiled apart from those for records.
    """
    if (os.cpu_count() or 1) < 2:
        return
    # Without -P a folder "shoal" where the user stands would be run instead.
    command = [sys.executable, "-P", "-m", "shoal.compiling", *(["persons"] if persons else [])]
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen(command, **silent)  # type: ignore[call-overload]


def compile_some(*, persons: bool) -> None:
    """What the search tests classes with, which it needs after a third of its own compiling, and then the bound."""
    import polars as pl

    from shoal.kernels.jit import compile_for
    from shoal.kernels.rules import class_deficit
    from shoal.measures.bounds import loss_bound
    from shoal.microdata import Microdata
    from shoal.models.k_anonymity import KAnonymity
    from shoal.models.p_sensitive import PSensitive
    from shoal.refine.box_tables import empty_store

    n = 24
    whose = [row // 2 if persons else row for row in range(n)]
    columns = {"age": [20 + 7 * one % 11 for one in whose], "city": ["abc"[one % 3] for one in whose]}
    frame = pl.DataFrame({"who": whose, **columns, "ill": ["d", "e", "f", "g"] * (n // 4)})
    schema = {
        "who": {"role": "identifier"},
        **{name: {"role": "quasi"} for name in columns},
        "ill": {"role": "sensitive"},
    }
    data = Microdata.from_frame(frame, schema, person="who" if persons else None)
    rules = data.rules(KAnonymity(3) & PSensitive(2))
    store = empty_store()
    compile_for(class_deficit, rules.flat(), len(store.histogram), store.histogram[0])
    loss_bound(data.codes, data.space("ncp"), rules, effort=0.1)


if __name__ == "__main__":
    compile_some(persons="persons" in sys.argv[1:])
