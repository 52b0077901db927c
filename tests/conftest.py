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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where tests run on several processes, those of a file stay together, and so do all that need Spark: one session for all."""
    from xdist.scheduler import LoadFileScheduling

    class OneSession(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = str(super()._split_scope(nodeid))
            # The one that loses executors has a cluster of its own.
            shared = file.startswith("tests/engines/test_spark") and not file.endswith("_losses.py")
            return "tests with one Spark" if shared else file

    return OneSession(config, log)
