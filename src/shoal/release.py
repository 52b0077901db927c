"""Release: a verified masked table with its evidence, its measures and where it came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.errors import InputError
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.recode import generalize, microaggregate
from shoal.schema import Intervals
from shoal.space import States
from shoal.transform import declared
from shoal.verifier import Evidence, verify
from shoal.version import VERSION

if TYPE_CHECKING:
    from shoal.measures.loss import Measures
    from shoal.progress import Progress


@dataclass(frozen=True, eq=False)
class Release:
    """A masked table that has passed verification; `shoal.anonymize` makes it.

    - `masked`: the published table as a polars frame (`frame` is the same in the library that came in).
    - `policy`: what every class satisfies.
    - `evidence`: what the verifier found, from the masked values alone.
    - `measures`: what masking cost (docs/measures.md#loss).
    - `manifest`: where it comes from, for the file beside the table: version, settings, seed, digests, evidence,
      losses. No raw value.
    - `data`: the table it was made from. Keep it where that is.
    - `partition`: which record is in which class, and how the algorithm came to it.

    >>> import polars as pl, shoal, tempfile
    >>> frame = pl.DataFrame({"age": [21, 22, 40, 41]})
    >>> data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}})
    >>> release: shoal.Release = shoal.anonymize(data, shoal.KAnonymity(2), algorithm="mondrian", refine=False)
    >>> release.verify().smallest
    2
    >>> release.write(tempfile.mkdtemp() + "/masked.csv").name
    'masked.csv'
    """

    masked: pl.DataFrame
    policy: Policy
    evidence: Evidence
    measures: Measures
    manifest: Mapping[str, Any]
    data: Microdata = field(repr=False)
    partition: Partition = field(repr=False)

    @property
    def frame(self) -> Any:
        """The masked table in the frame library that came in."""
        return self.data.native(self.masked)

    def verify(self) -> Evidence:
        """Verify again, from the masked values alone.

        Returns the evidence; raises `VerificationError` when the policy does not hold.
        """
        return verify(self.masked, self.policy, self.data.schema).require()

    def write(self, path: str | Path, *, force: bool = False, progress: Progress | None = None) -> Path:
        """Write the masked table and, beside it, its manifest (masked.csv.manifest.json); both whole or not at all.

        - `path`: a CSV, TSV, Parquet, Arrow, JSON Lines or Excel file, by its ending. Never the table it was made from.
        - `force`: whether a file that is there may be replaced; False by default.
        - `progress`: can be cancelled until the files appear; none by default.

        Returns the path.
        """
        from shoal.io.atomic import atomic_paths
        from shoal.io.files import check_writable_format, write_table_to

        target = Path(path)
        check_writable_format(target)
        refuse_source(target, self.data.source)
        files = atomic_paths(target, manifest_path(target), force=force, progress=progress)
        with files as (table_file, manifest_file):
            write_table_to(self.masked, table_file, target)
            digest = file_digest(table_file)
            text = json.dumps({**self.manifest, "output_sha256": digest}, indent=2, ensure_ascii=False, sort_keys=True)
            manifest_file.write_text(text + "\n", encoding="utf-8")
        return target


def refuse_source(target: Path, source: Path | None) -> None:
    """No release overwrites the table it was made from, by whatever name it is called."""
    for one in (target, manifest_path(target)):
        if source is not None and one.exists() and source.exists() and one.samefile(source):
            raise InputError(f"'{one}' is the table itself; a release never overwrites what it was made from.")


def manifest_path(target: Path) -> Path:
    """Where a release's manifest lies: masked.csv → masked.csv.manifest.json."""
    return target.with_name(target.name + ".manifest.json")


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def mask(
    data: Microdata,
    partition: Partition,
    states: States,
    *,
    recode: str,
    intervals: Intervals,
    drop_suppressed: bool,
    shuffle_seed: int | None,
    secret: bytes,
) -> pl.DataFrame:
    """The published table: masked quasi-identifiers, sensitive and other columns as they are, no identifiers."""
    rows = _published_rows(partition, drop_suppressed, shuffle_seed, secret)
    if recode == "microaggregate":
        masked = microaggregate(data, partition, rows=rows)
    else:
        masked = generalize(data, partition, states, intervals=intervals, rows=rows)
    by_name: dict[str, list[pl.Series]] = {name: [] for name in data.quasi}
    for series in masked:
        owner = series.name if series.name in by_name else series.name.removesuffix("_min").removesuffix("_max")
        by_name[owner].append(series)
    columns: list[pl.Series] = []
    for name, attribute in data.schema.attributes.items():
        if attribute.role == "quasi":
            columns += by_name[name]
        elif attribute.role != "identifier":
            columns.append(data.frame[name] if rows is None else data.frame[name].gather(rows))
    names = [series.name for series in columns]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"Column '{name}' would be published twice; rename it, or use intervals = \"text\".")
    return pl.DataFrame(columns)


def _published_rows(
    partition: Partition, drop_suppressed: bool, shuffle_seed: int | None, secret: bytes
) -> NDArray[np.int64] | None:
    """The records to publish in their order; None for all as they stand."""
    keep = partition.labels >= 0 if drop_suppressed else np.ones(partition.n, dtype=bool)
    if shuffle_seed is None:
        return None if keep.all() else np.flatnonzero(keep)
    # The seed is published in the manifest; drawing also on the raw table keeps the order from being undone.
    key = np.frombuffer(hashlib.sha256(secret + b"order").digest(), dtype=np.uint32)
    return np.random.default_rng([shuffle_seed, *key.tolist()]).permutation(np.flatnonzero(keep))


def fingerprint(frame: pl.DataFrame) -> bytes:
    """A digest of a table's content, the same whatever library or file it came from. Never published as it is."""
    digest = hashlib.sha256()
    for series in frame:
        digest.update(f"{series.name}\x00{series.dtype}\x00{len(series)}\x00".encode())
        digest.update(np.packbits(series.is_null().to_numpy()).tobytes())
        if series.dtype == pl.String:
            lengths = series.str.len_bytes().fill_null(0).to_numpy()
            digest.update(lengths.tobytes())
            digest.update(_content(series.fill_null("")))
        else:
            digest.update(series.cast(pl.Float64).fill_null(0.0).to_numpy().tobytes())
    return digest.digest()


def _content(texts: pl.Series) -> memoryview:
    """The bytes of all texts, one after the other, without making a Python text of each."""
    arrow = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, content = arrow.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[[arrow.offset, arrow.offset + len(arrow)]]
    return memoryview(content if content is not None else b"")[ends[0] : ends[1]]


def manifest(
    data: Microdata,
    policy: Policy,
    evidence: Evidence,
    measures: Measures,
    settings: Mapping[str, Any],
    notes: Mapping[str, Any],
    secret: bytes,
) -> dict[str, Any]:
    """Provenance: version, configuration, seed, digest of the input, measures and evidence. No time, no raw value."""
    return {
        "shoal": VERSION,
        "policy": policy.to_config(),
        "settings": dict(settings),
        "transformations": {name: found for name, one in data.schema.attributes.items() if (found := declared(one))},
        "roles": {name: attribute.role for name, attribute in data.schema.attributes.items()},
        "input_sha256": hashlib.sha256(secret + b"input").hexdigest(),
        "input_records": data.n + data.dropped,
        "dropped_for_missing": data.dropped,
        "measures": measures.to_dict(),
        "evidence": {**evidence.to_dict(), "violations": []},
        "notes": dict(notes),
    }
