"""A PostgreSQL server for the tests of stores, one a file; without one they are skipped and say why."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.io.postgres import PostgresUnavailableError, postgres_server


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an empty database."""
    pytest.importorskip("psycopg")
    try:
        with postgres_server() as url:
            yield url
    except PostgresUnavailableError as reason:
        pytest.skip(f"PostgreSQL: {reason}")
