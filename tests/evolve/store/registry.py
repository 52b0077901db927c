"""A small registry for the tests of the store: people with a key, and a place of its own for each store."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl
import sqlalchemy as sa

import shoal

ILLNESSES = ["flu", "cold", "asthma", "ulcer"]
TREE = [["flu", "lung", "*"], ["asthma", "lung", "*"], ["cold", "lung", "*"], ["ulcer", "stomach", "*"]]
SCHEMA: dict[str, Any] = {
    "age": {"role": "quasi", "kind": "number"},
    "zip": {"role": "quasi", "kind": "category", "taxonomy": {"prefix": [3, 0]}},
    "job": {"role": "quasi"},
    "illness": {"role": "sensitive", "taxonomy": {"rows": TREE}},
    "note": {"role": "other", "accept": "a number that only the tests know"},
    "name": {"role": "identifier"},
}
POLICY = shoal.KAnonymity(3) & shoal.PSensitive(2, "illness")


def people(first: int, n: int, seed: int = 0) -> pl.DataFrame:
    """Records with keys from `first` on."""
    random = np.random.default_rng([seed, first])
    return pl.DataFrame(
        {
            "id": np.arange(first, first + n),
            "name": [f"person {i}" for i in range(first, first + n)],
            "age": random.integers(18, 90, n),
            "zip": [f"4{a}{b}{c}" for a, b, c in random.integers(0, 4, (n, 3))],
            "job": [None if x == 0 else ("nurse", "clerk", "judge", "cook")[x - 1] for x in random.integers(0, 5, n)],
            "illness": [ILLNESSES[x] for x in random.integers(0, 4, n)],
            "note": random.integers(0, 100, n),
        }
    )


def make(url: str, n: int = 60, policy: Any = POLICY, **more: Any) -> shoal.Store:
    """A store of some people."""
    options = {"key": "id", "schema": SCHEMA, "algorithm": "mondrian", "refine": False, "guard": "none", **more}
    return shoal.Store.create(url, people(0, n), policy, **options)


@contextmanager
def place(server: str) -> Iterator[str]:
    """A schema of its own on a PostgreSQL server, gone afterwards: the server may be somebody's."""
    name = f"shoal_{secrets.token_hex(6)}"
    engine = sa.create_engine(sa.make_url(server).set(drivername="postgresql+psycopg"), poolclass=sa.pool.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE SCHEMA {name}"))
    try:
        separator = "&" if "?" in server else "?"
        yield f"{server}{separator}options=-csearch_path%3D{name}"
    finally:
        with engine.begin() as connection:
            connection.execute(sa.text(f"DROP SCHEMA {name} CASCADE"))
        engine.dispose()


def same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Whether two tables of the store hold the same records, in whatever order."""
    return one.sort("id").equals(other.select(one.columns).sort("id"))


def kept(frame: pl.DataFrame) -> pl.DataFrame:
    """What a store keeps of people: the key as text, no names."""
    return frame.drop("name").with_columns(pl.col("id").cast(pl.String))
