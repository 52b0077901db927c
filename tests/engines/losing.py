"""Walk a table on a cluster of two executors, and lose one of them during each stage; a program of its own for its own cluster.

Prints one line a run: when the executor was killed, how many were, and a digest of the staged rows (footers of files may differ between Java
machines, docs/scale.md#spark). The first is of a walk in memory, where there is none to lose.
"""

from __future__ import annotations

import os
import signal
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
from tests.engines.conftest import started
from tests.tables import random_table

import shoal
from shoal.engines.memory import MemoryEngine
from shoal.engines.spark import SparkEngine
from shoal.engines.walk import Settings, walk

POLICY = shoal.KAnonymity(3) & shoal.PSensitive(2)


def main(folder: Path) -> None:
    session = started("local-cluster[2,1,1536]", folder)
    data = random_table(4, 400)
    frame = session.createDataFrame(data.frame.to_arrow(compat_level=pl.CompatLevel.oldest())).repartition(3)
    settings = Settings(algorithm="mondrian", refine=False, blocks=100)
    print("never", 0, _digest(walk(MemoryEngine(data.frame.to_arrow()), data.schema, POLICY, settings).frame))
    for stage in ("weigh", "solve", "judge"):
        killed = folder / f"killed-{stage}"
        engine = _Losing(frame, staging=folder)
        engine.stage, engine.killed = stage, killed
        with walk(engine, data.schema, POLICY, settings):
            staged = pl.read_parquet(engine.staged.removeprefix("file:") + "/*.parquet")
            print(stage, int(killed.exists()), _digest(staged), flush=True)
    session.stop()


def _digest(table: pl.DataFrame) -> str:
    """A digest of the rows, in whatever order."""
    return sha256(repr(sorted(map(repr, table.rows()))).encode()).hexdigest()


class _Losing(SparkEngine):
    """An engine whose executors meet an accident at one stage, once."""

    stage: str
    killed: Path

    def weigh(self, *args: Any) -> Any:
        self._meet("weigh")
        return super().weigh(*args)

    def solve(self, *args: Any) -> Any:
        self._meet("solve")
        return super().solve(*args)

    def _meet(self, stage: str) -> None:
        if stage == self.stage and not self.killed.exists():
            kept = self._coded
            self._coded = _with_accident(kept, self.killed)
            self._coded.unpersist = kept.unpersist

    def judge(self, *args: Any) -> Any:
        if self.stage == "judge":
            files = self._contents(self.staged)
            self._contents = lambda _: _with_accident(files, self.killed)  # type: ignore[method-assign]
        return super().judge(*args)


def _with_accident(table: Any, killed: Path) -> Any:
    """The same rows, but whoever reads the first of them loses its executor with kill -9."""

    def accident(batches):  # type: ignore[no-untyped-def]
        for batch in batches:
            try:
                os.close(os.open(killed, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                # A worker is the child of a daemon, and that one the child of the executor.
                daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
                os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)
            yield batch

    return table.mapInArrow(accident, table.schema)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
