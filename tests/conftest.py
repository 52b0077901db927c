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


# What takes minutes comes first, so that no process is left with it when the others are done; Spark beside the one that compiles most.
LONG = (
    "every algorithm",
    "one Spark",
    "tests/evolve/store/test_histories.py",
    "tests/test_any_machine.py",
    "tests/engines/test_spark_losses.py",
    "tests/reproduce/test_quick.py",
    "tests/test_hostile.py",
    "tests/evolve/store/test_store_sequences.py",
    "tests/tools/test_fuzz.py",
    "tests/evolve/store/test_people_histories.py",
    "tests/report/test_canaries.py",
)


def scope_of(nodeid: str) -> str:
    """The file of a test, or those it is taken together with."""
    file = nodeid.split("::", 1)[0]
    return TOGETHER.get(file, file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long ones first; the others as they are."""
    rank = {scope: place for place, scope in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(scope_of(item.nodeid), len(LONG)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where tests run on several processes, those of a file stay together, and so do some files."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    # It would put files with many tests first, and those that take long have few.
    config.option.loadscopereorder = False
    return Together(config, log)
