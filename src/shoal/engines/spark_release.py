"""A release that lies on Spark: its frame is a Spark DataFrame, and it gets its name by one rename.

The table is a folder of Parquet files, as Spark writes and reads them; its manifest and its secret half lie beside it. They come
first and the table last, so whoever finds the table finds all three; whatever goes wrong before that leaves none of them.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from shoal.engines.spark import SparkEngine
from shoal.engines.spark_files import absolute
from shoal.engines.walk import LargeRelease, Settings, walk
from shoal.errors import InputError, UnsupportedError
from shoal.manifest import halves
from shoal.policy import Policy
from shoal.progress import Progress, Told
from shoal.schema import Schema

ENDINGS = (".parquet", ".csv", ".tsv")
"""Of folders that Spark writes."""


@dataclass(frozen=True, eq=False)
class SparkRelease(LargeRelease):
    """A masked table that has passed verification and lies where Spark staged it; `write` gives it its name."""

    engine: SparkEngine

    def write(  # type: ignore[override]
        self,
        path: str | Path,
        *,
        force: bool = False,
        safe_csv: bool = False,
        key: bytes | None = None,
        progress: Progress | None = None,
    ) -> str:
        """Put the verified table at `path`, a folder of Parquet or text files, with its manifest and secret half; all or none.

        `path` is any that Spark writes to (/data/masked.parquet, hdfs:///data/masked.csv, s3a://…); the rest is as for other
        releases. The manifest's `output_sha256` is the digest of the files' sorted digests. Returns the path.
        """
        target = absolute(path).rstrip("/")
        require_folder(target)
        key = key or secrets.token_bytes(32)
        ready = self.engine.ready(target, safe_csv)
        public, private = halves(self.manifest, self.secret, key, self.named(ready.digest, key))
        companions = {f"{target}.manifest.json": (public, "644"), f"{target}.secret.json": (private, "600")}
        self.engine.release(ready, target, companions, force, progress)
        return target

    def save_table(self, name: str) -> None:
        """Put the verified table into the session's catalog under a name that no table has yet, manifest and all.

        The manifest becomes the table's property `shoal.manifest`; the secret half is written by `write` alone.
        """
        self.engine.save(name, json.dumps({**self.manifest, "output_sha256": self.engine.digest}, default=str))


def require_folder(target: str) -> None:
    """Other formats have to be read whole to be verified, or have no parts."""
    if not target.rstrip("/").endswith(ENDINGS):
        raise UnsupportedError(
            f"'{target}': Spark writes a folder of Parquet or text files, which are verified as they lie there; give it a name "
            "that ends in .parquet, .csv or .tsv."
        )


def anonymize_spark(
    frame: Any,
    schema: Schema,
    policy: Policy,
    settings: Settings | None = None,
    *,
    staging: str | Path | None = None,
    as_text: bool = False,
    progress: Told | None = None,
) -> SparkRelease:
    """Mask a Spark DataFrame in its own session; nothing is returned that has not passed.

    - `frame`: the table; `schema`, `policy`, `settings`, `as_text`, `progress`: as for `shoal.engines.walk.walk`.
    - `staging`: a folder that the driver and all executors reach, best on the file system of the target; by default a temporary
      one, where all executors run on this machine.
    """
    done = walk(SparkEngine(frame, staging=staging), schema, policy, settings, as_text=as_text, progress=progress)
    return SparkRelease(**{field.name: getattr(done, field.name) for field in fields(done)})


def read_source(
    session: Any, place: str, *, delimiter: str | None = None, encoding: str | None = None
) -> tuple[Any, bool]:
    """A table that Spark can read, and whether all of it is text: Parquet, delimited text, or a table of the catalog.

    Paths end in .parquet, .csv, .tsv or .txt, or are folders of Parquet; whatever has no slash and no such end is a table's name.
    """
    from pyspark.errors import PySparkException

    plain = place.rstrip("/").lower()
    try:
        if plain.endswith((".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")):
            between = delimiter or ("\t" if ".tsv" in plain else ",")
            how = {"header": True, "sep": between, "quote": '"', "escape": '"', "multiLine": True, "mode": "FAILFAST"}
            reader = session.read.options(**how, encoding=encoding or "UTF-8", emptyValue="", nullValue="")
            return reader.csv(absolute(place)), True
        if plain.endswith(".parquet") or "/" in plain:
            return session.read.parquet(absolute(place)), False
        return session.table(place), False
    except PySparkException as problem:
        kind = problem.getCondition() or type(problem).__name__
        raise InputError(
            f"Spark cannot read '{place}' ({kind}); name a folder or file of Parquet, a .csv with a first line of names, or a "
            "table of its catalog."
        ) from None
