"""`shoal init`: the configuration it writes is valid, explains itself, and leads to a release without edits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from click.testing import Result
from typer.testing import CliRunner

from shoal.cli.app import app
from shoal.commented import config_text
from shoal.configuration import parse_config, read_config
from shoal.configured import load
from shoal.datasets import adult, data_folder, hospital
from shoal.errors import ConfigError, InputError, ShoalError
from shoal.io.files import write_table
from shoal.io.sql import write_sql
from shoal.policy import Policy
from shoal.road import anonymize
from shoal.suggesting import profile


def have_data() -> bool:
    try:
        data_folder()
    except ShoalError:
        return False
    return True


needs_data = pytest.mark.skipif(not have_data(), reason="the reference data (SHOAL_DATA) is not on this machine")


def init(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["init", *map(str, arguments)], env={"COLUMNS": "250"})


def done(*arguments: str | Path) -> Result:
    result = init(*arguments)
    assert result.exception is None, result.exception
    return result


def test_from_a_file_to_a_release_without_edits(tmp_path: Path) -> None:
    write_table(hospital(600, 4), tmp_path / "patients.csv")
    config = tmp_path / "shoal.toml"
    result = done(tmp_path / "patients.csv", "-o", config)
    assert "Why anonymize" in result.stdout
    assert "diagnosis" in result.stdout
    assert str(config) in result.stdout

    configuration = read_config(config)
    policy = Policy.from_config(configuration.config.policy)
    assert str(policy).startswith("k_anonymity(k = 5) & p_sensitive(p = 3) on diagnosis & k_e(")
    assert [(model.name, model.parameters().get("attribute")) for model in policy.models][2:] == [("k_e", "cost")]
    data = load(configuration)
    assert data.n == 600
    assert data.quasi == ["age", "sex", "zip", "admitted", "occupation", "stay"]
    data.rules(policy).require_feasible()
    release = anonymize(data, policy, algorithm="mondrian", refine=False, seed=1)
    assert release.evidence.passed
    assert "name" not in release.masked.columns


@needs_data
def test_adult_leads_to_microdata_without_edits(tmp_path: Path) -> None:
    write_table(adult("test", complete=False), tmp_path / "adult.csv")
    done(tmp_path / "adult.csv", "-o", tmp_path / "shoal.toml", "--quiet")
    configuration = read_config(tmp_path / "shoal.toml")
    data = load(configuration)
    assert data.n == 16_281
    assert {"age", "sex", "race", "marital-status", "native-country"} <= set(data.quasi)
    assert "income" in [column.name for column in data.sensitive]
    data.rules(Policy.from_config(configuration.config.policy)).require_feasible()


@needs_data
def test_adult_without_a_header(tmp_path: Path) -> None:
    raw = data_folder() / "adult" / "adult.data"
    lines = [line for line in raw.read_text().splitlines() if "," in line][:300]
    (tmp_path / "adult.data").write_text("\n".join(lines) + "\n")
    assert "--header" in done(tmp_path / "adult.data", "-o", tmp_path / "wrong.toml").stdout
    names = ",".join(adult("test").columns)
    done(tmp_path / "adult.data", "-o", tmp_path / "right.toml", "--header", names)
    data = load(read_config(tmp_path / "right.toml"))
    assert data.n == 300
    assert "marital-status" in data.quasi


def test_every_attribute_says_why(tmp_path: Path) -> None:
    write_table(hospital(200, 1), tmp_path / "patients.csv")
    done(tmp_path / "patients.csv", "-o", tmp_path / "shoal.toml")
    lines = (tmp_path / "shoal.toml").read_text().splitlines()
    headers = [i for i, line in enumerate(lines) if line.startswith("[attributes.")]
    assert len(headers) == 10
    assert all(lines[i - 1].startswith("# ") for i in headers)
    assert all(len(line) <= 120 for line in lines)
    assert any("of the records are the only ones" in line for line in lines)


def test_the_source_is_written_as_seen_from_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "conf").mkdir()
    write_table(hospital(60, 1), tmp_path / "data" / "patients.parquet")
    done(tmp_path / "data" / "patients.parquet", "-o", tmp_path / "conf" / "my.toml")
    configuration = read_config(tmp_path / "conf" / "my.toml")
    assert configuration.config.source.path == "../data/patients.parquet"
    assert load(configuration).n == 60


def test_missing_texts_are_found_and_written(tmp_path: Path) -> None:
    rows = [f"{20 + i},{'NA' if i % 4 == 0 else i},{'nan' if i % 5 == 0 else i / 2},{'ab'[i % 2]}" for i in range(40)]
    (tmp_path / "t.csv").write_text("age,height,weight,diagnosis\n" + "\n".join(rows) + "\n")
    done(tmp_path / "t.csv", "-o", tmp_path / "shoal.toml")
    configuration = read_config(tmp_path / "shoal.toml")
    assert {"", "?", "NA", "nan"} <= set(configuration.config.source.missing)
    assert {
        name: a.kind for name, a in configuration.config.attributes.items() if name != "diagnosis"
    } == dict.fromkeys(["age", "height", "weight"], "number")
    assert load(configuration).frame["height"].null_count() == 10


def test_an_existing_configuration_stays(tmp_path: Path) -> None:
    write_table(hospital(60, 1), tmp_path / "patients.csv")
    (tmp_path / "shoal.toml").write_text("# mine\n")
    refused = init(tmp_path / "patients.csv", "-o", tmp_path / "shoal.toml")
    assert isinstance(refused.exception, InputError)
    assert "--force" in str(refused.exception)
    assert (tmp_path / "shoal.toml").read_text() == "# mine\n"
    done(tmp_path / "patients.csv", "-o", tmp_path / "shoal.toml", "--force")
    assert parse_config((tmp_path / "shoal.toml").read_text()).policy["k"] == 5


def test_errors_leave_no_file_and_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "ragged.csv").write_text("age,sex\n1,f\n2\n")
    command = [sys.executable, "-m", "shoal", "init", "ragged.csv"]
    told = subprocess.run(command, cwd=tmp_path, env={**os.environ}, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert told.stderr.startswith("shoal: line 3 of 'ragged.csv'")
    assert len(told.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["ragged.csv"]


def test_json_is_one_object(tmp_path: Path) -> None:
    write_table(hospital(200, 1), tmp_path / "patients.csv")
    result = done(tmp_path / "patients.csv", "-o", tmp_path / "shoal.toml", "--json")
    told = json.loads(result.stdout)
    assert told["output"].endswith("shoal.toml")
    assert told["records"] == 200
    assert 0.9 < told["unique"] <= 1
    assert {c["name"]: c["role"] for c in told["columns"]}["zip"] == "quasi"
    assert "patients.csv: 200 records" in result.stderr
    assert done(tmp_path / "patients.csv", "-o", tmp_path / "b.toml", "--quiet").output == ""


def test_a_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'registry.db'}"
    write_sql(hospital(80, 2), url, "patients")
    done("--url", url, "--table", "patients", "-o", tmp_path / "shoal.toml")
    configuration = read_config(tmp_path / "shoal.toml")
    assert (configuration.config.source.url, configuration.config.source.table) == (url, "patients")
    assert load(configuration).n == 80


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["a.csv", "--url", "sqlite:///a.db"],
        ["--url", "sqlite:///a.db"],
        ["a.csv", "--table", "t"],
        ["--url", "sqlite:///a.db", "--table", "t", "--header", "a,b"],
    ],
)
def test_what_does_not_go_together(arguments: list[str], tmp_path: Path) -> None:
    refused = init(*arguments, "-o", tmp_path / "shoal.toml")
    assert isinstance(refused.exception, ConfigError)
    assert not list(tmp_path.iterdir())


def test_strange_names_and_values_stay_valid(tmp_path: Path) -> None:
    names = ["plain", 'quo"ted', "[bold]x[/bold]", "new\nline", "tab\t#hash", "ünïcode", "a.b", "x = 1", "\x7f"]
    frame = pl.DataFrame({name: [f"v{i % 3}" for i in range(30)] for name in names})
    config = parse_config(config_text(profile(frame), {"path": "x\\y\n.csv", "missing": [""]}, "new\nline"))
    assert list(config.attributes) == names
    assert config.source.path == "x\\y\n.csv"
    frame.write_parquet(tmp_path / "strange.parquet")
    result = done(tmp_path / "strange.parquet", "-o", tmp_path / "shoal.toml")
    assert "[bold]x[/bold]" in result.stdout
    assert load(read_config(tmp_path / "shoal.toml")).n == 30


def test_a_rule_that_would_cost_too_much_is_left_out_and_said(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "age": [i % 80 for i in range(1000)],
            "hiv": ["no"] * 999 + ["yes"],
            "income": ["low", "high"] * 500,
            "diagnosis": ["flu", "cold", "ulcer", "gout"] * 250,
        }
    )
    text = config_text(profile(frame), {"path": "t.csv", "missing": [""]}, "t.csv")
    assert "# hiv: No rule" in text
    policy = parse_config(text).policy
    assert policy["p_sensitive"] == [{"p": 2, "attribute": "income"}, {"p": 3, "attribute": "diagnosis"}]
    assert len(Policy.from_config(policy).models) == 3
