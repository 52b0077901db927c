"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator

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
