"""The configuration file: read, written, and refused with the line, the key and the way out."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from shoal.errors import ConfigError
from shoal.policy import Policy, json_schema
from shoal.schema import parse_config, write_config

GOOD = """
[source]
path = "patients.csv"

[attributes.age]
role = "quasi"
domain = [0, 120]

[attributes.zip]
role = "quasi"
taxonomy = { prefix = [3, 2, 0] }
weight = 2.0

[attributes.diagnosis]
role = "sensitive"
categories = { secret = ["HIV"], plain = ["flu"] }

[policy]
k = 5
p_sensitive = { p = 3 }

[method]
algorithm = "mondrian"
seed = 7
"""


def test_reads_what_the_design_shows() -> None:
    config = parse_config(GOOD)
    assert config.attributes["zip"].weight == 2.0
    assert str(Policy.from_config(config.policy)) == "k_anonymity(k = 5) & p_sensitive(p = 3)"
    assert config.method.seed == 7


def test_written_and_read_again_it_is_the_same() -> None:
    config = parse_config(GOOD)
    assert parse_config(write_config(config)) == config


@pytest.mark.parametrize(
    ("line", "replacement", "message"),
    [
        (
            'role = "sensitive"',
            'role = "secret"',
            r"line 15: attributes.diagnosis.role = 'secret' is not allowed; allowed: identifier",
        ),
        ('role = "sensitive"', 'role = "sensitiv"', "did you mean 'sensitive'"),
        ("weight = 2.0", "wieght = 2.0", r"line 12: attributes.zip.wieght: no such key; did you mean 'weight'"),
        ("weight = 2.0", "weight = -1", r"attributes.zip.weight = -1 is not allowed"),
        ("prefix = [3, 2, 0]", "prefixes = [3]", r"attributes.zip.taxonomy"),
        ("[method]", "[methods]", r"methods: no such key; did you mean 'method'"),
        ("seed = 7", "seed = ", "not valid TOML"),
        ('algorithm = "mondrian"', 'objective = "nil"', r"method.objective = 'nil' is not allowed; did you mean 'il'"),
    ],
)
def test_mistakes_are_pointed_at(line: str, replacement: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(GOOD.replace(line, replacement))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"kk": 3}, "no such model; did you mean 'k'"),
        ({"k": 0}, r"k = 0 is not allowed; it must be a whole number at least 1"),
        ({"k": 2.5}, "whole number"),
        ({"p_sensitive": 3}, "write a table"),
        ({"p_sensitive": {"q": 3}}, r"p_sensitive.q: no such parameter"),
        ({"p_sensitive": {}}, "parameters are p"),
        ({}, r"\[policy\] is empty"),
    ],
)
def test_policies_are_checked(section: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Policy.from_config(section)


def test_policy_survives_its_configuration() -> None:
    policy = Policy.from_config({"k": 5, "p_sensitive": [{"p": 3, "attribute": "a"}, {"p": 2, "attribute": "b"}]})
    assert Policy.from_config(policy.to_config()) == policy


def test_the_shipped_json_schema_is_current() -> None:
    shipped = json.loads((files("shoal") / "shoal.schema.json").read_text(encoding="utf-8"))
    assert shipped == json_schema(), "run make docs to write it again"
