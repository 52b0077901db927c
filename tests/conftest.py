"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from shoal.errors import show_values

# No test asserts a wall-clock time: hypothesis would, with 200 ms an example.
settings.register_profile("shoal", deadline=None)
settings.load_profile("shoal")


@pytest.fixture(autouse=True)
def _values_are_shown(request: pytest.FixtureRequest) -> Iterator[None]:
    """Messages may name values of the table here, so that tests can ask which; those marked `unshown` see what others do.

    The command line decides for itself.
    """
    with show_values("unshown" not in request.keywords):
        yield


# Files that one process takes together: they share a Spark session (the one that loses executors has a cluster of its own), or they run
# every algorithm, so that two processes would compile the same loops at the same time.
TOGETHER = {
    **{f"tests/engines/test_spark{name}.py": "one Spark" for name in ("", "_cli", "_staging", "_text")},
    **{f"tests/test_{name}.py": "every algorithm" for name in ("contract", "persons_grid")},
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where tests run on several processes, those of a file stay together, and so do some files."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = str(super()._split_scope(nodeid))
            return TOGETHER.get(file, file)

    return Together(config, log)
