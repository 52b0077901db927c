"""Taxonomies changed by hand: what each change does, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ShoalError
from shoal.studio.trees import CHANGES, changed, parents
from shoal.taxonomy import Taxonomy

TREE = {"flu": "lungs", "asthma": "lungs", "ulcer": "belly", "lungs": "any", "belly": "any"}


def tree() -> Taxonomy:
    return Taxonomy.from_parents(TREE, name="illness")


@pytest.mark.parametrize(
    ("change", "nodes", "to", "wanted"),
    [
        (
            "rename",
            ["lungs"],
            "chest",
            {"flu": "chest", "asthma": "chest", "ulcer": "belly", "chest": "any", "belly": "any"},
        ),
        (
            "rename",
            ["any"],
            "all",
            {"flu": "lungs", "asthma": "lungs", "ulcer": "belly", "lungs": "all", "belly": "all"},
        ),
        ("move", ["asthma"], "belly", {**TREE, "asthma": "belly"}),
        ("move", ["lungs"], "belly", {**TREE, "lungs": "belly"}),
        ("move", ["ulcer"], "any", {"flu": "lungs", "asthma": "lungs", "ulcer": "any", "lungs": "any"}),
        (
            "group",
            ["flu", "ulcer"],
            "common",
            {"flu": "common", "ulcer": "common", "common": "lungs", "asthma": "lungs", "lungs": "any"},
        ),
        ("split", ["lungs"], "", {"flu": "any", "asthma": "any", "ulcer": "belly", "belly": "any"}),
    ],
)
def test_a_change_does_what_it_says(change: str, nodes: list[str], to: str, wanted: dict[str, str]) -> None:
    assert parents(changed(tree(), change, nodes, to)) == wanted


@pytest.mark.parametrize(
    ("change", "nodes", "to"),
    [
        ("rename", ["flu"], "cold"),  # a value stands in the table under its name
        ("rename", ["lungs"], "belly"),
        ("rename", ["lungs"], "  "),
        ("rename", ["lungs", "belly"], "x"),
        ("group", [], "x"),
        ("group", ["nobody"], "x"),
        ("group", ["any"], "x"),
        ("move", ["lungs"], "lungs"),
        ("move", ["belly"], "flu"),
        ("move", ["any"], "lungs"),
        ("split", ["any"], ""),
        ("split", ["flu"], ""),
    ],
)
def test_what_makes_no_tree_is_refused(change: str, nodes: list[str], to: str) -> None:
    with pytest.raises(ShoalError):
        changed(tree(), change, nodes, to)


LABELS = ["flu", "asthma", "ulcer", "lungs", "belly", "any", "new", "newer", ""]


@given(
    st.lists(
        st.tuples(st.sampled_from(CHANGES), st.lists(st.sampled_from(LABELS), max_size=3), st.sampled_from(LABELS)),
        max_size=6,
    )
)
def test_no_value_is_ever_lost(changes: list[tuple[str, list[str], str]]) -> None:
    now = tree()
    for change, nodes, to in changes:
        try:
            now = changed(now, change, nodes, to)
        except ShoalError:
            continue
        assert set(now.labels[: now.leaves]) == {"flu", "asthma", "ulcer"}
