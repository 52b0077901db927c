"""Options: every algorithm refuses what it does not have, says what it takes, and none is taken for a setting of the road."""

from __future__ import annotations

import inspect
from typing import Any, Literal, get_args, get_origin

import pytest
from tests.tables import rt7

import shoal
from shoal.algorithms import names, run
from shoal.algorithms.options import NAMES, options_of
from shoal.errors import ConfigError

EVERY = [(name, option, kind) for name in names() for option, kind in options_of(name).items()]
ROAD = set(inspect.signature(shoal.anonymize).parameters)


def wrong_values(kind: Any) -> list[Any]:
    """Values of other kinds than those an annotation allows; none for what only Python can give."""
    kinds = {kind} if get_origin(kind) is Literal else set(get_args(kind)) or {kind}
    words = any(get_origin(one) is Literal for one in kinds)
    if not words and not kinds & set(NAMES):
        return []
    numbers: list[Any] = [True, float("nan")] if kinds & {int, float} else [3]
    return [
        *([] if str in kinds else ["quite another word"]),
        *numbers,
        *([2.5] if int in kinds and float not in kinds else []),
    ]


@pytest.mark.parametrize(("name", "option", "kind"), EVERY, ids=[f"{name}-{option}" for name, option, _ in EVERY])
def test_values_of_another_kind_are_refused_before_any_work(name: str, option: str, kind: Any) -> None:
    data = rt7()
    rules = data.rules(shoal.Policy((shoal.KAnonymity(2),)))
    for value in wrong_values(kind):
        with pytest.raises(ConfigError, match=rf"^{name}: {option} = .* is not allowed; [^;]*[.?]$"):
            run(name, data, rules, options={option: value})


def test_most_options_are_tried() -> None:
    assert sum(bool(wrong_values(kind)) for _, _, kind in EVERY) >= len(EVERY) - 2


@pytest.mark.parametrize("name", names())
def test_no_option_has_the_name_of_a_parameter_of_the_road(name: str) -> None:
    assert set(options_of(name)) & ROAD == set()


@pytest.mark.parametrize("name", names())
def test_an_unknown_option_is_refused(name: str) -> None:
    data = rt7()
    with pytest.raises(ConfigError, match=f"{name}: no option 'colour'"):
        run(name, data, data.rules(shoal.Policy((shoal.KAnonymity(2),))), options={"colour": 1})


def test_the_old_name_of_an_option_leads_to_the_new_one() -> None:
    data = rt7()
    with pytest.raises(
        ConfigError, match=r"top_down: the option 'order' is called 'visit' now; write visit = 'record'\."
    ):
        run("top_down", data, data.rules(shoal.Policy((shoal.KAnonymity(2),))), options={"order": "record"})


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("order", "Shuffle"),
        ("order", "record"),
        ("suppressed", "dropp"),
        ("recode", "generalise"),
        ("intervals", "column"),
        ("objective", "npc"),
        ("refine", "quick"),
    ],
)
def test_the_road_refuses_words_it_does_not_know(word: str, value: str) -> None:
    more: dict[str, Any] = {word: value}
    with pytest.raises(ConfigError, match=f"^{word} = '{value}' is not allowed"):
        shoal.anonymize(rt7(), shoal.KAnonymity(2), **more)
