"""The configuration file: read, written, and refused with the line, the key and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from shoal.configuration import Config, Configuration, parse_config, read_config, read_schema, write_config
from shoal.errors import ConfigError, InputError
from shoal.policy import Policy
from shoal.schema import Attribute
from shoal.taxonomy import Taxonomy

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


def test_what_is_not_written_has_its_default() -> None:
    config = parse_config("")
    assert config == Config()
    assert (config.method.algorithm, config.method.objective, config.method.refine) == ("auto", "ncp", True)
    assert (config.method.missing, config.method.suppress, config.method.seed) == ("category", None, 0)
    assert (config.release.order, config.release.recode) == ("shuffle", "generalize")
    assert (config.release.intervals, config.release.suppressed) == ("text", "mask")
    assert config.source.missing == ["", "?"]
    assert config.attributes == config.policy == config.method.options == {}
    plain = Attribute.model_validate({"role": "quasi"})
    assert (plain.weight, plain.protect, plain.drop, plain.kind, plain.taxonomy) == (1.0, [], False, None, None)


@pytest.mark.parametrize(
    ("key", "allowed", "refused"),
    [
        ("attributes.a.weight", ["0", "0.5", "3"], ["-0.1"]),
        ("attributes.a.round", ["0.5", "1"], ["0", "-1"]),
        ("attributes.a.truncate", ["0", '"month"'], ["-1", '"minute"']),
        ("attributes.a.accept", ['"public"'], ['""']),
        ("method.suppress", ["0", "0.5", "1"], ["-0.01", "1.01"]),
        ("method.seed", ["0", "7"], ["-1"]),
        ("method.refine", ["true", "false", '"fast"', '"thorough"', "2.5"], ['"slow"']),
    ],
)
def test_numbers_have_their_bounds(key: str, allowed: list[str], refused: list[str]) -> None:
    role = '[attributes.a]\nrole = "quasi"\n' if key.startswith("attributes") else "[method]\n"
    for value in allowed:
        parse_config(f"{role}{key.split('.')[-1]} = {value}")
    for value in refused:
        with pytest.raises(ConfigError, match=rf"line \d: {key} = .* is not allowed"):
            parse_config(f"{role}{key.split('.')[-1]} = {value}")


@pytest.mark.parametrize("rule", ["{}", "{ prefix = [2], intervals = [5] }"])
def test_a_taxonomy_is_made_in_exactly_one_way(rule: str) -> None:
    """`taxonomy = {}` would otherwise be read as none at all, or as intervals without a width."""
    with pytest.raises(ConfigError, match="give exactly one of prefix, intervals, edges, dates, parents, rows"):
        parse_config(f'[attributes.zip]\nrole = "quasi"\ntaxonomy = {rule}')


def test_a_column_that_is_dropped_needs_no_other_role() -> None:
    assert parse_config("[attributes.a]\ndrop = true").attributes["a"].role == "identifier"
    assert parse_config('[attributes.a]\nrole = "quasi"\ndrop = true').attributes["a"].role == "identifier"
    assert parse_config('[attributes.a]\nrole = "quasi"\ndrop = false').attributes["a"].role == "quasi"


LINES = """
# [method] in a comment is no header
[ source ]
path = "seed.csv"

["attributes"."the zip"]
role = "quasi"
"wieght" = 2

[attributes.other]
weight = 3
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LINES, r"^shoal.toml, line 8: attributes.the zip.wieght: no such key; did you mean 'weight'\?$"),
        (
            LINES.replace('"wieght" = 2', ""),
            r"line 10: attributes.other.role is missing; one of identifier, person, quasi, ",
        ),
        (
            "[attributes.a]\nrole = 3",
            r"line 2: attributes.a.role = 3 is not allowed; allowed: identifier, person, quasi,",
        ),
        ("[method]\nsede = 1", "line 2: method.sede: no such key; did you mean 'seed'"),
        ("[release]\norderr = 1", "line 2: release.orderr: no such key; did you mean 'order'"),
        ("[source]\npaht = 1", "line 2: source.paht: no such key; did you mean 'path'"),
        ("method.seed = -1", r"^shoal.toml: method.seed = -1 is not allowed; input should be greater than or equal"),
        ("[method]\nalgorithm = 3", "line 2: method.algorithm = 3 is not allowed; input should be a valid string"),
        ("[method]\n\n[release]\nseed = 1", "line 4: release.seed: no such key"),
        (
            '[attributes.a]\nrole = "quasi"\n[attributes.a.taxonomy]\nprefx = [2]',
            r"line 4: attributes.a.taxonomy.prefx: no such key; did you mean 'prefix'",
        ),
        (
            '[attributes.a]\nrole = "quasi"\ntaxonomy = 3',
            "line 3: attributes.a.taxonomy = 3 is not allowed; input should be a",
        ),
        ("method = 3", "^shoal.toml: method = 3 is not allowed"),
        ("[source]\nheader = [1]", r"line 2: source.header.0 = 1 is not allowed; input should be a valid string"),
        ('[attributes.a]\nweight = 1\n[attributes.b]\nrole = "quasi"', "line 1: attributes.a.role is missing"),
        ("sauce = 1", "^shoal.toml: sauce: no such key; did you mean 'source'"),
        ("[methode]\nseed = 1", "line 1: methode: no such key; did you mean 'method'"),
    ],
)
def test_the_line_is_that_of_the_key(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(text)


def test_a_configuration_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"There is no configuration '.*none.toml'; make one with: shoal init FILE"):
        read_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=r"cannot be read: .*directory"):
        read_config(tmp_path)
    (tmp_path / "latin.toml").write_bytes('path = "Köln"'.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"cannot be read: .*codec"):
        read_config(tmp_path / "latin.toml")
    (tmp_path / "bad.toml").write_text("[method]\nsede = 1", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"bad.toml, line 2: method.sede"):
        read_config(str(tmp_path / "bad.toml"))


def test_a_schema_from_wherever_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "shoal.toml"
    path.write_text(GOOD, encoding="utf-8")
    found = read_config(path)
    assert (found.path, found.folder, found.schema.folder) == (path, tmp_path, tmp_path)
    assert Configuration(found.config).folder == Path()
    for schema in [read_schema(path), read_schema(str(path)), read_schema(found), read_schema(found.schema)]:
        assert schema == found.schema
        assert schema.named("quasi") == ["age", "zip"] and schema.named("other") == []
    assert read_schema({"a": {"role": "quasi"}}).named("quasi") == ["a"]
    with pytest.raises(ConfigError, match=r"^schema of column 'a': role is missing; one of identifier"):
        read_schema({"b": {"role": "quasi"}, "a": {"weight": 2}})
    with pytest.raises(ConfigError, match=r"^schema of column 'a': it = 5 is not allowed"):
        read_schema({"a": 5})
    with pytest.raises(ValidationError, match="frozen"):
        found.config.method.seed = 3  # type: ignore[misc]


def test_columns_without_a_role_are_named() -> None:
    schema = read_schema({"b": {"role": "quasi"}, "a": {"role": "other"}})
    assert schema.folder == Path() and schema.missing == ("", "?")
    assert list(schema.resolve(iter(["a", "b"])).attributes) == ["a", "b"]
    with pytest.raises(
        ConfigError, match=r"^Column 'c' has no role; declare \[attributes.c\] with a role of identifier,"
    ):
        schema.resolve(["a", "c", "b"])
    with pytest.raises(
        ConfigError, match=r"^Column 'my c' has no role \(and 2 more\); declare \[attributes.\"my c\"\]"
    ):
        schema.resolve(["a", "my c", "b", "d", "e"])
    with pytest.raises(ConfigError, match=r"\[attributes.b\]: the table has no such column; allowed: a\."):
        schema.resolve(["a"])
    rest = read_schema({"b": {"role": "quasi"}, "*": {"role": "other", "weight": 2}})
    found = rest.resolve(["a", "b", "c"])
    assert (list(found.attributes), found.named("other"), found.attributes["c"].weight) == (
        ["a", "b", "c"],
        ["a", "c"],
        2,
    )


def test_a_column_spelled_like_a_declared_one_is_not_one_of_all_others() -> None:
    rest = read_schema({"*": {"role": "other"}, "name": {"role": "identifier"}, "age": {"role": "quasi"}})
    for spelled in ("Name", "name ", "nаme"):  # the last with a Cyrillic letter
        with pytest.raises(
            ConfigError, match=f"Column '{spelled}' is spelled like the declared column 'name'; rename it"
        ):
            rest.resolve(["name", "age", spelled])
    # Two undeclared columns that look alike are both among all others, and the star is no column.
    assert rest.resolve(["name", "age", "ward", "Ward"]).named("other") == ["ward", "Ward"]
    assert rest.resolve(["name", "age"]).named("other") == []
    both = read_schema({"name": {"role": "identifier"}, "Name": {"role": "other"}, "*": {"role": "other"}})
    assert both.resolve(["name", "Name", "x"]).named("other") == ["Name", "x"]


def test_what_cannot_be_written_is_refused() -> None:
    own = Taxonomy.from_rows([["x", "*"], ["y", "*"]])
    made = Config(attributes={"a": Attribute.model_validate({"role": "quasi", "taxonomy": own})})  # type: ignore[call-arg]
    with pytest.raises(InputError, match=r"\[attributes.a\] taxonomy: one made in Python has no place in a TOML"):
        write_config(made)


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


def test_a_person_named_by_the_way_is_not_published() -> None:
    plain = read_schema({"age": "quasi"})
    assert (plain.with_person("pid").token, plain.with_person("pid", published=True).token) == (None, "pid")
