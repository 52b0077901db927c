"""The nightly job of docs/evolving-data.md: a PostgreSQL table by day, a Parquet file by night."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from tests.io.postgres import PostgresUnavailableError, postgres_server

import shoal

EXAMPLE = Path(__file__).parents[3] / "examples" / "nightly.py"


@pytest.fixture(scope="module")
def clinic() -> Iterator[str]:
    try:
        with postgres_server() as url:
            yield url
    except PostgresUnavailableError as problem:
        pytest.skip(str(problem))


def test_the_manual_prints_the_script_that_runs() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "evolving-data.md").read_text(encoding="utf-8")
    block = re.search(r"## A nightly job\n.*?```sh\n(.*?)```", page, re.DOTALL)
    assert block is not None and block.group(1) == EXAMPLE.with_suffix(".sh").read_text(encoding="utf-8")
    assert "shoal store create" in block.group(1)
    assert EXAMPLE.with_suffix(".sh").stat().st_mode & 0o111


@pytest.mark.slow
def test_two_nights(clinic: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), clinic, str(tmp_path / "register"), "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    folder = tmp_path / "register" / "published"
    files = sorted(folder.glob("*.parquet"))
    assert [file.name for file in files] == [f"admissions-2025-01-0{day}.parquet" for day in (2, 3)]
    manifests = [json.loads(file.with_name(file.name + ".manifest.json").read_text()) for file in files]
    assert [(m["release"], m["guard"], m["exposed"]) for m in manifests] == [(n, "batching", False) for n in (1, 2)]
    assert manifests[1]["waiting"]["deletions"] > 0
    for file, told in zip(files, manifests, strict=True):
        masked = pl.read_parquet(file)
        assert masked.height == told["evidence"]["records"]
        assert not {"name", "record", "updated_at", "discharged_at"} & set(masked.columns)
    with shoal.Store.open(f"sqlite:///{tmp_path}/register/register.db") as store:
        # 400 at the start; every day twenty come and ten go.
        assert (store.check().passed, store.check().records, store.audit().exposed) == (True, 420, False)
