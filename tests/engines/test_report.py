"""The report of a release that lies with an engine is the page of memory, from folded classes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.tables import random_table

import shoal
from shoal.engines.duck import DuckEngine, frame_source
from shoal.engines.memory import MemoryEngine
from shoal.engines.walk import LargeRelease, Settings, walk
from shoal.errors import InputError
from shoal.measures.attacks import run_attacks
from shoal.measures.glimpses import Glimpse, Looking
from shoal.measures.seen import MaskedTable
from shoal.report import findings_of
from shoal.report.large import AFAR
from shoal.report.page import page
from shoal.verifier import audited_column, published_quasi

P = shoal.KAnonymity(3) & shoal.PSensitive(2)
PLAIN: dict[str, Any] = {"algorithm": "mondrian", "refine": False}


def told(release: Any, for_: str) -> str:
    """The page without the tightest classes, of which any three are examples."""
    return re.sub(r"<details><summary>Some of the tightest.*?</details>", "", page(findings_of(release, for_)))


@pytest.mark.parametrize("settings", [{}, {"intervals": "columns"}, {"recode": "suppress"}], ids=str)
def test_the_public_page_is_the_same(settings: dict[str, Any], spill: Path) -> None:
    data = random_table(3, 200, sensitive=2)
    wanted = told(shoal.anonymize(data, P, **PLAIN, **settings), "public")
    source = data.frame.to_arrow()
    for engine in (MemoryEngine(source, batch=37), DuckEngine(frame_source(source), folder=spill)):
        with walk(engine, data.schema, P, Settings(**PLAIN, **settings, blocks=50)) as release:
            assert told(release, "public") == wanted


def test_the_owners_page_has_the_figures_of_the_original_that_counts_tell(spill: Path) -> None:
    data = random_table(3, 200)
    wanted = findings_of(shoal.anonymize(data, P, **PLAIN))
    source = data.frame.to_arrow()
    for engine in (MemoryEngine(source), DuckEngine(frame_source(source), folder=spill)):
        with walk(engine, data.schema, P, Settings(**PLAIN, blocks=50)) as release:
            found = findings_of(release)
            assert found.original is not None and wanted.original is not None
            for name in data.quasi:
                assert found.original.different(name) == wanted.original.different(name)
                assert found.original.loss(name) == wanted.original.loss(name)
            for one, other in zip(
                vars(found.original.sizes).values(), vars(wanted.original.sizes).values(), strict=True
            ):
                assert np.array_equal(one, other)
            assert found.asis == wanted.asis
            text = page(found)
            assert text.count(AFAR) >= 3 and "for the owner" in text
            engine.collected.clear()
            told(release, "owner")
            assert max(rows for what, rows in engine.collected) <= 200


def test_a_report_is_written_until_the_engine_is_gone(tmp_path: Path, spill: Path) -> None:
    data = random_table(5, 120)
    path = tmp_path / "table.parquet"
    data.frame.write_parquet(path)
    release = shoal.anonymize(path, P, schema=data.schema, engine="duckdb", **PLAIN)
    assert isinstance(release, LargeRelease)
    with release:
        assert release.report(tmp_path / "report.html").read_text().startswith("<!doctype html>")
        release.write(tmp_path / "masked.parquet")
        release.report(tmp_path / "report.html", for_="public")
        data.frame[:60].write_parquet(path)
        with pytest.raises(InputError, match="not what it was when it was masked"):
            release.report(tmp_path / "other.html")
    assert not (tmp_path / "other.html").exists()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("strength", [1, 2])
def test_attacks_on_some_classes_add_up_to_attacks_on_all(seed: int, strength: int) -> None:
    """Whatever classes are looked at together."""
    random = np.random.default_rng(seed)
    n = 150
    masked = pl.DataFrame(
        {
            "a": random.integers(0, 6, n).astype(str),
            "b": ["*" if star else "x" for star in random.random(n) < 0.5],
            "ill": [[None, "flu", "cold", "HIV", "ulcer"][i] for i in random.integers(0, 5, n)],
            "pay": random.integers(0, 40, n) * 10.0,
        }
    )
    roles = {"a": "quasi", "b": "quasi", "ill": "sensitive", "pay": "sensitive"}
    schema = shoal.Schema({name: shoal.Attribute(role=role) for name, role in roles.items()})  # type: ignore[arg-type]
    wanted = run_attacks(MaskedTable.of(masked, schema), strength=strength)
    quasi = published_quasi(masked, schema)
    secrets = [masked.group_by(name, maintain_order=True).len() for name in ("ill", "pay")]
    columns = [
        audited_column(one.select(one.columns[0]), one.columns[0], schema, one["len"].to_numpy()) for one in secrets
    ]
    ranks = [masked[name].rank("dense").cast(pl.Int64).alias(f"c{i}") for i, name in enumerate(quasi)]
    places = [
        masked.select(one.columns[0])
        .join(one.with_row_index("at"), on=one.columns[0], nulls_equal=True, maintain_order="left", how="left")["at"]
        .cast(pl.Int64)
        .alias(f"s{s}")
        for s, one in enumerate(secrets)
    ]
    table = pl.DataFrame([*ranks, *places])
    counted = table.group_by(table.columns).len(name="records").sort(table.columns)
    looking = Looking(schema, columns, 2, (1, 1), strength)
    parts = counted.partition_by("c0", "c1")
    cut = int(random.integers(1, len(parts)))
    seen: Glimpse = looking.glimpse(pl.concat(parts[:cut])).merge(looking.glimpse(pl.concat(parts[cut:])))
    for one, other in zip(seen.exposures, wanted, strict=True):
        same = ("attack", "attribute", "exposed", "total", "of_classes")
        assert [getattr(one, name) for name in same] == [getattr(other, name) for name in same]
        assert len(one.classes) == len(other.classes)
        assert one.details.get("own") == other.details.get("own")
        if one.attack in ("homogeneity", "background_knowledge"):
            assert one.worst == other.worst and one.details.get("values") == other.details.get("values")
    assert sum(size * many for size, many in seen.sizes.items()) == n
    assert seen.starred == masked.filter((pl.col("a") == "0") & (pl.col("b") == "*")).height
