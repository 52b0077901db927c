"""An executor that is killed during cutting, solving or verifying changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.engines.spark_session import require_java
from shoal.errors import ShoalError


def test_an_executor_that_is_killed_changes_nothing(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'shoal[spark]'")
    try:
        require_java()
    except ShoalError as problem:
        pytest.skip(str(problem))
    top = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.engines.losing", str(tmp_path)],
        cwd=top,
        env={**os.environ, "PYTHONPATH": str(top)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    runs = [line.split() for line in done.stdout.splitlines()]
    assert [(stage, killed) for stage, killed, _ in runs] == [
        ("never", "0"),
        ("weigh", "1"),
        ("solve", "1"),
        ("judge", "1"),
    ]
    assert len({digest for _, _, digest in runs}) == 1
