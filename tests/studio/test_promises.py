"""Promises of a policy, made, moved and taken back one by one: the others stay as they were."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.models import MODELS
from shoal.policy import Policy
from shoal.studio.promises import offered, policy_with, values_of

SECRETS = [("diagnosis", None), ("income", 1200.0)]
NAMES = [name for name, _ in SECRETS]
POLICIES: list[dict[str, Any]] = [
    {"k": 5},
    {"k": 5, "p_sensitive": {"p": 3}},
    {
        "k": 5,
        "p_sensitive": [{"p": 3, "attribute": "diagnosis"}, {"p": 2, "attribute": "income"}],
        "t_closeness": {"t": 0.2},
    },
    {"k": 2, "k_e": {"e": 500.0, "attribute": "income"}},
]


def asked(section: dict[str, Any]) -> set[str]:
    """What a policy asks of each secret column."""
    found = set()
    for model in Policy.from_config(section).models:
        given = model.parameters()
        columns = [given.pop("attribute")] if given.get("attribute") else NAMES if model.per_attribute else [""]
        given.pop("attribute", None)
        found |= {f"{model.name} {sorted(given.items())} {column}" for column in columns}
    return found


@pytest.mark.parametrize("section", POLICIES)
def test_a_change_touches_nothing_else(section: dict[str, Any]) -> None:
    for one in offered(section, SECRETS):
        for value in values_of(one):
            moved = one.moved(value)
            after = policy_with(section, moved, NAMES)
            own = asked({one.name: {**moved.model.parameters(), "attribute": one.attribute}})
            before = {
                line
                for line in asked(section)
                if not (line.startswith(f"{one.name} ") and line.endswith(one.attribute))
            }
            assert asked(after) == before | own
            assert asked(policy_with(after, one, NAMES, on=False)) == before


def test_everything_that_is_promised_is_shown_as_such() -> None:
    section = POLICIES[2]
    made = {(one.name, one.attribute, one.value) for one in offered(section, SECRETS) if one.on}
    assert made == {
        ("p_sensitive", "diagnosis", 3), ("p_sensitive", "income", 2),
        ("t_closeness", "diagnosis", 0.2), ("t_closeness", "income", 0.2),
    }  # fmt: skip
    ranges = [one for one in offered(section, SECRETS) if one.name == "k_e"]
    assert [one.attribute for one in ranges] == ["income"], "a range is offered for numbers alone"


def test_a_slider_goes_from_weak_to_strong() -> None:
    for one in offered({"k": 5}, SECRETS):
        values = values_of(one)
        assert one.value in values and len(values) == len(set(values)) > 2
        stronger = sorted(values, reverse=MODELS[one.name].smaller_is_stronger)
        assert list(values) == stronger
