"""One Spark session for all tests that need one; where there is no Java they are skipped, and say so."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.engines.spark_session import require_java
from shoal.errors import ShoalError

# Hundreds of small jobs: compiling them well costs more than running them.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def started(master: str, folder: Any, **more: str) -> Any:
    """A session with everything it writes in a folder of its own."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'shoal[spark]'")
    try:
        require_java()
    except ShoalError as problem:
        pytest.skip(str(problem))
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
        "spark.sql.codegen.wholeStage": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        **more,
    }
    builder = SparkSession.builder.master(master).appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return builder.getOrCreate()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two threads of this machine."""
    session = started("local[2]", tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture
def spill(tmp_path: Path) -> Iterator[Path]:
    """A folder for the engines' own; nothing may be left in it."""
    folder = tmp_path / "spill"
    folder.mkdir()
    yield folder
    assert list(folder.iterdir()) == []
