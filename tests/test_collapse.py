"""Shortcuts for large tables give what the long way gives: equal rows, labels, classes, digests, distinct tuples."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.tables import random_table

from shoal import microdata
from shoal.errors import InternalError
from shoal.io.files import read_table, write_table
from shoal.io.fingerprint import fingerprint
from shoal.measures.loss import distinct_losses, sse
from shoal.microdata import Microdata, distinct_rows
from shoal.partition import Partition
from shoal.states import class_states, members
from shoal.verifier import derive_classes


@pytest.mark.parametrize("small", [1, 1 << 20])
@pytest.mark.parametrize("sizes", [[3], [4, 1, 5], [2, 3, 2, 2, 3], [900, 800, 7], [2**31 - 2] * 4])
def test_equal_rows_are_numbered_in_lexicographic_order(
    sizes: list[int], small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(microdata, "SMALL", small)
    random = np.random.default_rng(len(sizes))
    for n in (1, 2, 40, 700):
        pool = np.stack([random.integers(0, size, 30) for size in sizes], axis=1)
        codes = pool[random.integers(0, 30, n)].astype(np.int32)
        points = distinct_rows(codes, sizes)
        distinct, inverse, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
        assert np.array_equal(points.codes, distinct)
        assert np.array_equal(points.of_record, inverse.ravel())
        assert np.array_equal(points.weights, counts)


def test_labels_are_compacted_in_their_order() -> None:
    random = np.random.default_rng(0)
    for highest in (1, 5, 50, 10**9):
        for lowest in (-3, -1, 0):
            labels = random.integers(lowest, highest, 40)
            kept = sorted({int(x) for x in labels if x >= 0})
            wanted = [kept.index(int(x)) if x >= 0 else -1 for x in labels]
            assert Partition.compact(labels).labels.tolist() == wanted
    assert Partition.compact(np.array([-1, -1])).classes == 0
    assert Partition.compact(np.zeros(0, dtype=np.int64)).n == 0


@pytest.mark.parametrize("labels", [[0, 2], [1], [-2, 0], [0, 10**6], [-1, 1]])
def test_labels_with_gaps_are_no_partition(labels: list[int]) -> None:
    with pytest.raises(InternalError, match="without gaps"):
        Partition(np.array(labels))


def test_classes_of_tuples_are_classes_of_records() -> None:
    random = np.random.default_rng(5)
    for seed in range(6):
        data = random_table(seed, 60)
        owner = np.unique(random.integers(0, 7, len(data.points.weights)), return_inverse=True)[1]
        whole = Partition(owner[data.points.of_record].astype(np.int32))
        some = whole.labels.copy()
        some[data.points.of_record == 0] = -1
        torn = Partition.compact(random.integers(0, 5, data.n))
        for partition, collapsed in ((whole, True), (Partition.compact(some), True), (torn, False)):
            found, space = members(data, partition), data.space("ncp")
            assert (found.weights is not None) == collapsed
            assert np.array_equal(
                class_states(data, partition, space), space.states(data.codes, partition.order, partition.starts)
            )
            assert int(np.sum(found.weights) if collapsed else len(found.labels)) == partition.sizes.sum()
            one_by_one = _torn(data)
            assert sse(data, partition) == pytest.approx(sse(one_by_one, partition), nan_ok=True, rel=1e-9)
            assert np.array_equal(distinct_losses(data, partition), distinct_losses(one_by_one, partition))


def _torn(data: Microdata) -> Microdata:
    """The same table whose points are its records, so that nothing can be collapsed."""
    copy = data.take(np.arange(data.n))
    everyone = np.arange(data.n, dtype=np.int32)
    copy.__dict__["points"] = microdata.Points(data.codes, everyone, np.ones(data.n, dtype=np.int64))
    return copy


def test_classes_are_derived_as_by_hand() -> None:
    random = np.random.default_rng(2)
    frame = pl.DataFrame(
        {
            "a": [(None, "", "x", "[1, 2]")[i] for i in random.integers(0, 4, 200)],
            "b": [(None, 1.5, 2.0)[i] for i in random.integers(0, 3, 200)],
            "c": [(None, 3, 4)[i] for i in random.integers(0, 3, 200)],
            "d": ["always"] * 200,
        }
    )
    for quasi in (["a"], ["a", "b"], ["b", "c", "a"], ["d"], ["a", "b", "c", "d"]):
        labels, groups = derive_classes(frame, quasi)
        seen: dict[tuple[Any, ...], int] = {}
        wanted = [seen.setdefault(row, len(seen)) for row in frame.select(quasi).rows()]
        assert labels.tolist() == wanted
        assert groups.rows() == list(seen)


def test_the_fingerprint_is_what_it_says() -> None:
    frame = pl.DataFrame(
        {
            "n": [1, None, 3, 4],
            "x": [0.5, None, -0.0, 2.0],
            "t": ["ä", None, "", "a long text of more than twelve bytes"],
        }
    )
    digest = hashlib.sha256()
    for series in frame:
        digest.update(f"{series.name}\x00{series.dtype}\x004\x00".encode())
        digest.update(np.packbits(np.array([value is None for value in series])).tobytes())
        if series.dtype == pl.String:
            texts = ["" if value is None else value for value in series]
            digest.update(np.array([len(text.encode()) for text in texts], dtype=np.uint32).tobytes())
            digest.update("".join(texts).encode())
        else:
            digest.update(np.array([0.0 if value is None else value for value in series]).tobytes())
    assert fingerprint(frame) == digest.digest()
    pieces = pl.concat([frame[:1], frame[1:3], frame[3:]], rechunk=False)
    assert fingerprint(pieces) == digest.digest()
    assert fingerprint(pl.concat([frame, frame])[4:]) == digest.digest()
    assert fingerprint(frame[::-1]) != digest.digest()


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_carriage_returns_are_written_in_quotes(tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame({"a": ["one\rtwo", "three"], "b": ["x", "y, z"]})
    write_table(frame, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    assert b'"one\rtwo"' in (gzip.decompress(content) if name.endswith(".gz") else content)
    assert read_table(tmp_path / name)["b"].to_list() == ["x", "y, z"]
