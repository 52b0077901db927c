"""Records left out for missing values, and taxonomies that are made of the values: as in memory, whoever holds the records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.engines import learning
from shoal.engines.duck import DuckEngine, frame_source, text_file
from shoal.engines.learning import learn
from shoal.engines.memory import MemoryEngine
from shoal.engines.walk import Settings, walk
from shoal.errors import InputError, UnsupportedError
from shoal.io import read_table
from shoal.schema import Schema

P = shoal.KAnonymity(3) & shoal.PSensitive(2)
PLAIN: dict[str, Any] = {"algorithm": "mondrian", "refine": False}
ROLES: dict[str, Any] = {
    "age": {"role": "quasi"},
    "town": {"role": "quasi", "taxonomy": "auto"},
    "job": {"role": "quasi", "taxonomy": "auto"},
    "pay": {"role": "quasi", "taxonomy": "auto"},
    "ill": {"role": "sensitive"},
    "ward": {"role": "other"},
}


def people(n: int = 240, seed: int = 0) -> pl.DataFrame:
    """Towns go with jobs and ages, so that there is something to group them by; some of everything is missing."""
    random = np.random.default_rng(seed)
    town = random.integers(0, 9, n)
    job = (town // 3 * 2 + random.integers(0, 3, n)) % 7
    columns: dict[str, Any] = {
        "age": (30 + 5 * (town % 3) + random.integers(0, 9, n)).tolist(),
        "town": [f"town {i}" for i in town],
        "job": [f"job {i}" for i in job],
        "pay": (random.integers(0, 30, n) * 100.0).tolist(),
        "ill": [f"i{i}" for i in random.integers(0, 4, n)],
        "ward": [f"w{i}" for i in random.integers(0, 3, n)],
    }
    for values in columns.values():
        for row in random.integers(0, n, n // 20):
            values[row] = None
    return pl.DataFrame(columns)


def rows(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sort(frame.columns, nulls_last=True)


def engines(frame: pl.DataFrame, spill: Path) -> list[Any]:
    return [MemoryEngine(frame.to_arrow(), batch=31), DuckEngine(frame_source(frame.to_arrow()), folder=spill)]


@pytest.mark.parametrize("missing", ["category", "drop"])
@pytest.mark.parametrize("seed", range(2))
def test_what_memory_releases(missing: Any, seed: int, spill: Path) -> None:
    frame = people(seed=seed)
    data = shoal.Microdata.from_frame(frame, ROLES, missing=missing)
    wanted = shoal.anonymize(data, P, **PLAIN)
    assert (data.dropped > 20) is (missing == "drop")
    for engine in engines(frame, spill):
        with walk(engine, data.schema, P, Settings(**PLAIN, missing=missing, blocks=60)) as found:
            masked = pl.DataFrame(found.frame.lazy().collect())
            assert rows(masked).equals(rows(wanted.masked))
            assert found.measures.to_dict() == wanted.measures.to_dict()
            for name in ("dropped_for_missing", "input_records"):
                assert found.secret[name] == wanted.secret[name]
            assert found.manifest.keys() == wanted.manifest.keys()
            assert found.learned.data.domains[1].taxonomy == data.domains[1].taxonomy  # type: ignore[union-attr]


def test_what_a_value_means_is_decided_with_all_records(tmp_path: Path, spill: Path) -> None:
    """A column of texts stays one, though the only text that is no number goes with a record that is left out."""
    lines = ["age,zip,ill", *(f"{30 + i % 9},{100 + i % 4},i{i % 3}" for i in range(40)), ",abc,i1", "?,101,i2"]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines) + "\n")
    data = shoal.Microdata.from_frame(
        read_table(path),
        {"age": {"role": "quasi"}, "zip": {"role": "quasi"}, "ill": {"role": "sensitive"}},
        missing="drop",
    )
    schema, wanted = data.schema, shoal.anonymize(data, P, **PLAIN)
    with walk(
        DuckEngine(text_file(path, ","), folder=spill), schema, P, Settings(**PLAIN, missing="drop"), as_text=True
    ) as found:
        assert rows(pl.DataFrame(found.frame.collect())).equals(rows(wanted.masked))
        assert found.secret["dropped_for_missing"] == 2


def test_nothing_left_and_too_many_pairs_are_sentences(spill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"a": [1, 2, None, None], "ill": [None, None, "x", "y"]})
    schema = Schema({"a": shoal.Attribute(role="quasi"), "ill": shoal.Attribute(role="sensitive")})
    for engine in engines(frame, spill):
        with pytest.raises(InputError, match='Every record has a missing value, so missing = "drop" leaves none'):
            walk(engine, schema, P, Settings(missing="drop"))
    frame = people()
    monkeypatch.setattr(learning, "MOST", 100)
    for engine in engines(frame, spill):
        with pytest.raises(UnsupportedError, match="pairs of values; make it once"):
            learn(engine, shoal.Microdata.from_frame(frame, ROLES).schema, P)
        engine.discard()
