"""The drawing of the house and the import checker are one: the same rooms, in the same order, and none that does not exist."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def layers(container: str) -> list[str]:
    """The rooms of a container as `make lint` knows them, from the first to the last."""
    contracts: list[dict[str, Any]] = PROJECT["tool"]["importlinter"]["contracts"]
    contract = next(one for one in contracts if one.get("containers") == [container])
    assert contract["exhaustive"], "a new room could be left out of the list"
    return [room.strip() for layer in reversed(contract["layers"]) for room in reversed(layer.split("|"))]


def table() -> list[str]:
    """The rooms of the page's table."""
    return re.findall(r"^\| `([\w/]+?)(?:/|\.py)` \|", PAGE, flags=re.MULTILINE)


def test_the_table_of_rooms_is_the_list_of_layers() -> None:
    houses = [f"evolve/{house}" for house in layers("shoal.evolve")]
    expected = [room for name in layers("shoal") for room in (houses if name == "evolve" else [name])]
    assert table() == expected


def test_every_room_of_the_table_is_there() -> None:
    package = ROOT / "src" / "shoal"
    named = re.findall(r"^\| `([\w/]+(?:\.py|/))` \|", PAGE, flags=re.MULTILINE)
    assert len(named) == len(table())
    assert [name for name in named if not (package / name).exists()] == []
    there = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert there - {"__init__", "__main__"} == {name.split("/")[0].removesuffix(".py") for name in named}


def test_the_road_is_walked_in_that_order() -> None:
    drawing = PAGE.split("```")[1]
    road = re.findall(r"│ (\w+)", drawing)
    order = layers("shoal")
    assert {"io", "algorithms", "refine", "recode", "verifier", "measures", "release"} <= set(road) <= set(order)
    assert all(order.index(before) < order.index(after) for before, after in pairwise(road))
